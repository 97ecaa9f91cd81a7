package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"rollcall/loadtest/behaviour"
)

func behavioursCommand() *cobra.Command {
	return &cobra.Command{Use: "behaviours [NAME]", Short: "List the behaviours of clients, or show one as a scenario would write it",
		Args:         func(c *cobra.Command, args []string) error { return usage(cobra.MaximumNArgs(1)(c, args)) },
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			all, err := behaviour.Profiles()
			if err != nil {
				return err
			}
			for _, b := range all {
				if len(args) == 0 {
					fmt.Fprintf(c.OutOrStdout(), "%-10s %s\n", b.Name, b.About)
					continue
				}
				if b.Name != args[0] {
					continue
				}
				out, err := yaml.MarshalWithOptions([]*behaviour.Behaviour{b}, yaml.OmitEmpty())
				if err != nil {
					return err
				}
				_, err = c.OutOrStdout().Write(out)
				return err
			}
			if len(args) == 1 {
				return usage(fmt.Errorf("no behaviour %q: `rollcall storm behaviours` lists them", args[0]))
			}
			return nil
		}}
}

// countUsers counts the lines of a CSV file of users.
func countUsers(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a number nor a file that can be read: %w", path, err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.ReuseRecord, r.Comment = -1, true, '#'
	n := 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if n == 0 && len(row) > 1 && row[0] == "user" && row[1] == "password" {
			continue
		}
		n++
	}
}
