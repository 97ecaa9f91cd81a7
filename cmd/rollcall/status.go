package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

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

func watchCommand() *cobra.Command {
	var r reach
	var asJSON bool
	var types []string
	known := []string{control.EventPlacement, control.EventFrontEnd, control.EventRegistration, control.EventFlow}
	cmd := &cobra.Command{
		Use:     "watch",
		GroupID: "look",
		Short:   "Show placement changes and registrations as they happen",
		Long: `Prints a line for each event of the pool until Ctrl-C: placement (decided, seen,
ready), frontend (a state has changed), registration, flow. With --json, one
object a line; each has type, time and frontend, and epoch where it applies.

A watcher that is too slow misses events; it never slows the pool.`,
		Example: `  rollcall watch
  rollcall watch --type placement --type frontend
  rollcall watch --json | jq -c 'select(.type == "registration")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted := map[string]bool{}
			for _, t := range types {
				if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+t+" ") {
					return usageError{fmt.Errorf("--type %s: choose %s", t, strings.Join(known, ", "))}
				}
				wanted[t] = true
			}
			return runWatch(cmd, r, asJSON, func(e control.Event) bool { return len(wanted) == 0 || wanted[e.Type] })
		},
	}
	r.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs: one object a line")
	cmd.Flags().StringArrayVar(&types, "type", nil, "only this `type` of event (repeatable): "+strings.Join(known, ", "))
	return cmd
}

func runWatch(cmd *cobra.Command, r reach, asJSON bool, wanted func(control.Event) bool) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	b, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	out := cmd.OutOrStdout()
	var broken error
	var once sync.Once
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	err = control.Watch(ctx, b, func(e control.Event) {
		var err error
		switch {
		case !wanted(e):
		case asJSON:
			err = encoder.Encode(e)
		default:
			_, err = fmt.Fprintln(out, control.RenderEvent(e))
		}
		if err != nil { // nobody reads any more
			once.Do(func() { broken = err; stop() })
		}
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	b.Close() // its goroutine writes no more after this
	return broken
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
