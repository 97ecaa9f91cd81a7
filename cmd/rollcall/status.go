package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"rollcall/internal/control"
)

func statusCommand() *cobra.Command {
	var r reach
	var asJSON, allGroups bool
	cmd := &cobra.Command{
		Use:     "status",
		GroupID: "look",
		Short:   "Show the Front Ends and who holds which copies",
		Long: `Asks every Front End how it is, and shows the placement: P is the primary of a
group, which takes its REGISTERs; S and T are the secondary and the tertiary,
which hold the same registrations and take over in that order.

Groups with their copies in the same places share a line when there are many;
--groups gives each its own.`,
		Example: `  rollcall status
  rollcall status --groups
  rollcall status --json | jq '.frontends[] | {name, state, primaries}'
  rollcall status --nats nats://10.0.0.1:4222`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			b, settings, err := r.openPool(ctx)
			if err != nil {
				return err
			}
			defer b.Close()
			s, err := control.ReadStatus(ctx, b, settings.GroupIDs())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return printJSON(out, s)
			}
			columns, _, _ := terminal(out)
			_, err = io.WriteString(out, control.RenderStatus(s, control.Layout{Width: columns, Groups: allGroups}))
			return err
		},
	}
	r.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs")
	cmd.Flags().BoolVar(&allGroups, "groups", false, "a line for each routing group")
	return cmd
}

func explainCommand() *cobra.Command {
	var r reach
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "explain USER",
		GroupID: "look",
		Short:   "Say where a user is served, why, and what is registered",
		Long: `Asks the primary of the user's routing group. When no primary answers, what is
stored on the bus is shown, and the answer says so.`,
		Example: `  rollcall explain alice
  rollcall explain alice@example.test --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			b, settings, err := r.openPool(ctx)
			if err != nil {
				return err
			}
			defer b.Close()
			a, err := namesOf(settings).AOR(args[0])
			if err != nil {
				return err
			}
			x, err := control.Explain(ctx, b, a)
			if err != nil {
				return noSuchUser(err, args[0])
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), x)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), control.RenderExplanation(x))
			return err
		},
	}
	r.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs")
	return cmd
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
