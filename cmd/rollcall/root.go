package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"rollcall/loadtest/cli"
)

// Exit codes.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
)

// console is where a command reads from and writes to.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a mistake in how a command was called.
type usageError struct{ error }

// codedError is a failure that has an exit code of its own. When it wraps nothing, there is nothing to say.
type codedError interface {
	error
	ExitCode() int
}

// run does what args say and returns the exit code. Each error is one line on con.err.
func run(ctx context.Context, args []string, con console) int {
	root := newRoot(con)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitFine
	}
	var coded codedError
	if errors.As(err, &coded) && errors.Unwrap(coded) == nil {
		return coded.ExitCode() // all is said already
	}
	for _, one := range errorsIn(err) {
		line, _, _ := strings.Cut(one.Error(), "\n")
		fmt.Fprintln(con.err, "rollcall: "+line)
	}
	line := err.Error()
	var usage usageError
	switch {
	case coded != nil:
		return coded.ExitCode()
	case errors.As(err, &usage), strings.HasPrefix(line, "unknown command"), strings.HasPrefix(line, "if any flags in the group"):
		return exitUsage
	}
	return exitFailed
}

// errorsIn returns the errors that were joined (errors.Join), or the one that there is.
func errorsIn(err error) []error {
	if usage, ok := err.(usageError); ok {
		err = usage.error
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all := joined.Unwrap()
		text := make([]string, len(all))
		for i, one := range all {
			text[i] = one.Error()
		}
		if err.Error() == strings.Join(text, "\n") { // fmt.Errorf with several %w has words of its own around
			return all
		}
	}
	return []error{err}
}

func newRoot(con console) *cobra.Command {
	root := &cobra.Command{
		Use:   "rollcall",
		Short: "A pool of SIP registrars that behaves like one that doesn't go away",
		Long: `Rollcall is a pool of SIP registrars that behaves like one registrar that
doesn't go away. Users are spread over routing groups; each group has a primary
copy and up to two hot ones on other Front Ends. When a Front End dies, the
next copy takes over, and no acknowledged registration is lost.

Start with 'rollcall up': a whole pool on this machine, with two users.`,
		Example: `  rollcall up                            # a pool of three Front Ends, until Ctrl-C
  rollcall status                        # who holds which copies
  rollcall user add carol                # a new user; prints the password
  rollcall explain alice                 # where alice is served, why, and her phones
  rollcall watch                         # what happens, as it happens`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(con.in)
	root.SetOut(con.out)
	root.SetErr(con.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see '%s --help'", flagError(err), cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddGroup(&cobra.Group{ID: "run", Title: "Run a pool:"}, &cobra.Group{ID: "look", Title: "Look at it:"},
		&cobra.Group{ID: "keep", Title: "Look after it:"})
	root.AddCommand(upCommand(), frontendCommand(), busCommand())
	root.AddCommand(statusCommand(), explainCommand(), watchCommand())
	root.AddCommand(userCommand(), rotateKeyCommand())
	root.AddCommand(cli.Command()) // storm
	root.SetHelpCommandGroupID("look")
	wrapArgs(root)
	return root
}

// flagError says in words what a flag takes, where the library tells which of Go's functions failed.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	f := invalid.GetFlag()
	expected := map[string]string{
		"int": "a whole number", "int32": "a whole number", "int64": "a whole number",
		"uint": "a whole number that is not negative", "uint16": "a whole number up to 65535", "uint32": "a whole number that is not negative", "uint64": "a whole number that is not negative",
		"float64": "a number", "bool": "true or false", "duration": "a duration with its unit, such as 5s or 100ms",
	}[f.Value.Type()]
	if expected == "" {
		return fmt.Errorf("--%s %q: %w", f.Name, invalid.GetValue(), errors.Unwrap(invalid))
	}
	return fmt.Errorf("--%s %q: expected is %s", f.Name, invalid.GetValue(), expected)
}

// wrapArgs makes a wrong number of arguments a usage error, for all commands.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// interruptible returns the command's context, which ends with Ctrl-C or SIGTERM. A second
// one ends the process at once.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// isTerminal reports whether a stream is one, and its size.
func terminal(stream any) (columns, rows int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 80, 0, false
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 20 {
		return 80, 24, true
	}
	return columns, rows, true
}
