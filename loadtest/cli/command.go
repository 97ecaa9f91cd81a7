// Package cli is the command `rollcall storm`.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"rollcall/loadtest"
	"rollcall/loadtest/report"
	"rollcall/loadtest/scenario"
)

// Exit codes of `rollcall storm`.
const (
	ExitFailed = 1 // the run failed, or something went wrong on the way
	ExitUsage  = 2
	ExitHeld   = 3 // a --fail-if held
)

// Exit is an error with the exit code that it stands for. main prints Err, if it is not
// empty, and ends with the code.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

// ExitCode is the exit code of the process.
func (e *Exit) ExitCode() int { return e.Code }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &Exit{ExitUsage, err}
}

// Command is `rollcall storm`.
func Command() *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "storm [SCENARIO.yaml]",
		Short: "Load a registrar with simulated softphones, take it away, and measure how long each was gone",
		Long: `storm keeps thousands of registered softphones, takes their server away, and measures for
each one how long it was gone. It works against any registrar (--target), and starts a
throw-away pool of ours if told to (--pool).

The clients come in a ramp. Times of events count from its end ("5s"), or from its start
("ramp+2s"). A scenario in YAML says the same as the flags and more; flags go before it.
Samples are in configs/storms.

Exit codes: 0 fine, 1 the run failed, 2 usage, 3 a --fail-if held.`,
		Example: `  rollcall storm --pool --frontends 3 --users 1000 --transport tcp --kill fe2@5s --duration 15s --out out/storm
  rollcall storm --pool --users 5000 --kill fe2@5s --until 'back >= 30%' --fail-if 'gap.p99 > 2s' --fail-if generator.tainted
  rollcall storm --target 127.0.0.1:5060,127.0.0.2:5060 --users 500 --user-format u%d --password secret --exec 'kill 4711'@5s
  rollcall storm configs/storms/office.yaml --mix linphone=3,baresip=1 --out out/office
  rollcall storm compare out/a/report.json out/b/report.json`,
		Args:          func(c *cobra.Command, args []string) error { return usage(cobra.MaximumNArgs(1)(c, args)) },
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, args []string) error { return storm(c, f, args) },
	}
	f.register(c.Flags())
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	c.AddCommand(compareCommand(), behavioursCommand(), rateCommand(), workerCommand())
	return c
}

// storm runs one scenario.
func storm(c *cobra.Command, f *flags, args []string) error {
	sc := &scenario.Scenario{}
	if len(args) == 1 {
		var err error
		if sc, err = scenario.Load(args[0]); err != nil {
			return usage(err)
		}
	}
	if err := f.apply(c.Flags(), sc); err != nil {
		return usage(err)
	}
	if err := sc.Complete(); err != nil {
		return usage(err)
	}
	var conditions []report.Condition
	for _, text := range sc.FailIf {
		cond, err := report.ParseCondition(text)
		if err != nil {
			return usage(err)
		}
		conditions = append(conditions, cond)
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return usage(fmt.Errorf("--out: %w", err))
		}
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(c.Context()), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(50) // as in worker processes: nearly all of the heap lives as long as the clients
	screen := newScreen(c.ErrOrStderr(), f.quiet)
	screen.begin(sc)
	rep, err := loadtest.Run(ctx, sc, loadtest.Options{Dir: f.out, Arguments: os.Args, Progress: screen.progress})
	screen.end()
	if rep == nil {
		return &Exit{ExitFailed, err}
	}
	return finish(c, f, rep, conditions, err)
}

// finish judges, writes and prints the report, and says how the command ends.
func finish(c *cobra.Command, f *flags, rep *report.Report, conditions []report.Condition, runErr error) error {
	held, err := rep.Judge(conditions)
	if err != nil {
		return usage(err)
	}
	if f.out != "" {
		if err := rep.Write(f.out); err != nil {
			return &Exit{ExitFailed, err}
		}
	}
	if err := rep.Summary(c.OutOrStdout()); err != nil {
		return &Exit{ExitFailed, err}
	}
	if f.out != "" {
		fmt.Fprintf(c.OutOrStdout(), "report: %s/report.html, report.json, gaps.csv\n", strings.TrimSuffix(f.out, "/"))
	}
	switch {
	case runErr != nil:
		return &Exit{ExitFailed, runErr}
	case len(rep.Errors) > 0:
		return &Exit{ExitFailed, fmt.Errorf("the run failed: %s", rep.Errors[0])}
	case rep.Registered == 0:
		return &Exit{ExitFailed, errors.New("the run failed: no client was registered at its end")}
	case held:
		var texts []string
		for _, v := range rep.FailIf {
			if v.Held {
				texts = append(texts, fmt.Sprintf("%s (%g)", v.Condition, v.Value))
			}
		}
		return &Exit{ExitHeld, fmt.Errorf("fail-if held: %s", strings.Join(texts, "; "))}
	}
	return nil
}

func workerCommand() *cobra.Command {
	return &cobra.Command{Use: "worker", Short: "Run a part of the clients, as a process of its own", Hidden: true,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return loadtest.ServeWorker(c.Context(), c.InOrStdin(), c.OutOrStdout())
		}}
}

func compareCommand() *cobra.Command {
	return &cobra.Command{Use: "compare A.json B.json", Short: "Put the figures of two runs side by side",
		Args:         func(c *cobra.Command, args []string) error { return usage(cobra.ExactArgs(2)(c, args)) },
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			a, err := report.Load(args[0])
			if err != nil {
				return usage(err)
			}
			b, err := report.Load(args[1])
			if err != nil {
				return usage(err)
			}
			return report.Compare(c.OutOrStdout(), args[0], a, args[1], b)
		}}
}
