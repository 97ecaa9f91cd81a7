package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rollcall/internal/control"
)

func rotateKeyCommand() *cobra.Command {
	var r reach
	cmd := &cobra.Command{
		Use:     "rotate-key",
		GroupID: "keep",
		Short:   "Give the pool a new key for challenges and temporary GRUUs",
		Long: `Gives the pool a new key. All Front Ends take it over at once, and no client
notices: what was made with the last two keys is still accepted. Rotated a
third time, nothing that the first key made is worth anything any more.`,
		Example: `  rollcall rotate-key`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 20*time.Second)
			defer cancel()
			b, _, err := r.openPool(ctx)
			if err != nil {
				return err
			}
			defer b.Close()
			if err := control.RotateKey(ctx, b.Pool()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The pool has a new key. The last two before it are still accepted.")
			return nil
		},
	}
	r.addTo(cmd)
	return cmd
}
