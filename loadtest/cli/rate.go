package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rollcall/loadtest"
	"rollcall/loadtest/scenario"
)

// rateCommand is `rollcall storm rate`.
func rateCommand() *cobra.Command {
	f := &flags{}
	var from, top, tolerance float64
	var threshold time.Duration
	var again bool
	c := &cobra.Command{
		Use:   "rate",
		Short: "Search the highest rate of registrations without a failure (RFC 7501, RFC 7502)",
		Long: `rate runs trials at rising rates, each with all clients once, and then between the last that held
and the first that did not. A rate holds when every attempt succeeds within --threshold and the
rate asked for was reached within 5 %. The result is the Registration Rate of RFC 7501, or with
--again its Re-registration Rate.`,
		Example: `  rollcall storm rate --pool --users 3000
  rollcall storm rate --target 127.0.0.1:5060 --users 2000 --user-format u%d --password secret --transport udp --again`,
		Args:         func(c *cobra.Command, args []string) error { return usage(cobra.NoArgs(c, args)) },
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			sc := &scenario.Scenario{}
			if err := f.apply(c.Flags(), sc); err != nil {
				return usage(err)
			}
			if err := sc.Complete(); err != nil {
				return usage(err)
			}
			if from <= 0 || top < from || tolerance <= 0 || threshold <= 0 {
				return usage(fmt.Errorf("--from, --max, --tolerance and --threshold must be above 0, and --max not below --from"))
			}
			ctx, stop := signal.NotifyContext(context.WithoutCancel(c.Context()), os.Interrupt, syscall.SIGTERM)
			defer stop()
			res, err := loadtest.SearchRate(ctx, sc, loadtest.RateSearch{Again: again, From: from, Max: top, Tolerance: tolerance, Threshold: threshold,
				Trial: func(t loadtest.Trial) {
					fmt.Fprintf(c.ErrOrStderr(), "%8.0f/s asked  %8.0f/s reached  %6d failures  p99 %8.1f ms  %s\n", t.Asked, t.Reached, t.Failures, t.P99,
						map[bool]string{true: "sustained", false: "not sustained"}[t.Sustained])
				}}, loadtest.Options{})
			if err != nil {
				return &Exit{ExitFailed, err}
			}
			name := map[bool]string{false: "registration rate", true: "re-registration rate"}[again]
			fmt.Fprintf(c.OutOrStdout(), "%s: %.0f/s (ended by: %s)\n", name, res.Rate, res.Limit)
			if f.out != "" {
				return writeRate(f.out, res)
			}
			return nil
		},
	}
	f.register(c.Flags())
	for _, name := range []string{"kill", "stop", "pause", "resume", "restart", "drain", "exec", "cut", "fail-if", "rate", "ramp", "ramp-wait", "duration", "until", "mix", "timeout", "unregister", "quiet"} {
		_ = c.Flags().MarkHidden(name) // has no meaning here; the name exists
	}
	c.Flags().Float64Var(&from, "from", 100, "first rate, per second")
	c.Flags().Float64Var(&top, "max", 50_000, "highest rate")
	c.Flags().Float64Var(&tolerance, "tolerance", 0.05, "relative width at which the search ends")
	c.Flags().DurationVar(&threshold, "threshold", 2*time.Second, "an answer later than this is a failure")
	c.Flags().BoolVar(&again, "again", false, "re-registrations instead of registrations")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	return c
}

func writeRate(dir string, res loadtest.RateResult) error {
	b, err := json.MarshalIndent(res, "", " ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "rate.json"), append(b, '\n'), 0o644)
	}
	if err != nil {
		return &Exit{ExitFailed, err}
	}
	return nil
}
