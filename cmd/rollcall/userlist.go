package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rollcall/internal/directory"
)

// pageOnTerminal is how many users a terminal gets without being asked for.
const pageOnTerminal = 200

func userListCommand(r *reach) *cobra.Command {
	var asJSON bool
	var limit int
	var after, group string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List users in order of their address",
		Long: `Lists users in order of their address. A terminal gets a page at a time, and the
line that goes on from there; --limit 0 lists all.`,
		Example: `  rollcall user list
  rollcall user list --group g07 --limit 0
  rollcall user list --limit 50 --after sip:bob@example.test
  rollcall user list --json | jq -r .aor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("limit") {
				if _, _, isTerminal := terminal(cmd.OutOrStdout()); isTerminal {
					limit = pageOnTerminal
				}
			}
			return withUsers(cmd, r, true, func(_ context.Context, p userPool) error {
				var all []directory.User
				for u := range p.users.All {
					if string(u.AOR) > after && (group == "" || string(u.Group) == group) {
						all = append(all, u)
					}
				}
				slices.SortFunc(all, func(a, b directory.User) int { return strings.Compare(string(a.AOR), string(b.AOR)) })
				return printUsers(cmd.OutOrStdout(), cmd.ErrOrStderr(), all, limit, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "for programs: one object a line")
	f.IntVar(&limit, "limit", 0, "`users` to list at most; 0 for all (default: all, 200 on a terminal)")
	f.StringVar(&after, "after", "", "start after this `address`")
	f.StringVar(&group, "group", "", "only users of this routing group")
	return cmd
}

// printUsers writes one page, and on notes how to go on.
func printUsers(out, notes io.Writer, users []directory.User, limit int, asJSON bool) error {
	page := users
	if limit > 0 && len(page) > limit {
		page = page[:limit]
	}
	encoder := json.NewEncoder(out)
	for _, u := range page {
		var err error
		if asJSON {
			err = encoder.Encode(showUser(u))
		} else {
			_, err = fmt.Fprintf(out, "%-6s %s\n", u.Group, u.AOR)
		}
		if err != nil {
			return err
		}
	}
	if left := len(users) - len(page); left > 0 {
		fmt.Fprintf(notes, "%d more: --after %s\n", left, page[len(page)-1].AOR)
	}
	return nil
}
