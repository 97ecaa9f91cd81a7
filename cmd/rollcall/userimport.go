package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"rollcall/internal/directory"
)

func userImportCommand(r *reach) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import users from a CSV or htdigest file",
		Long: `Reads user,password (CSV) or user:realm:HA1 (as Apache's htdigest writes it).
New users are spread over the routing groups; those that exist keep their group
and get the new password. The whole file is checked before anything is stored.
Running it again goes on from where an interrupted run ended.`,
		Example: `  rollcall user import users.csv
  rollcall user import --format htdigest /etc/asterisk/users.htdigest`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch format {
			case "auto", string(directory.CSV), string(directory.HTDigest):
			default:
				return usageError{fmt.Errorf("--format %q: auto, csv or htdigest", format)}
			}
			return withUsers(cmd, r, true, func(ctx context.Context, p userPool) error {
				return importUsers(ctx, cmd, p, args[0], directory.Format(format))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "auto", "csv, htdigest, or auto: told by the first line")
	return cmd
}

func importUsers(ctx context.Context, cmd *cobra.Command, p userPool, name string, format directory.Format) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if format == "auto" {
		beginning, err := bufio.NewReaderSize(f, 4096).Peek(4096)
		if err != nil && err != io.EOF {
			return err
		}
		format = directory.Guess(beginning)
	}
	total, err := checkFile(p.names, format, f)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	start := time.Now()
	progress, finish := showProgress(cmd.ErrOrStderr(), total)
	added, updated, err := p.users.Import(ctx, p.names.Read(format, name, f), progress)
	finish()
	if err != nil {
		return fmt.Errorf("%w (%d added, %d updated until then)", err, added, updated)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d users: %d added, %d updated, %d as they were; %.1f s\n",
		total, added, updated, total-added-updated, time.Since(start).Seconds())
	return nil
}

// checkFile reads the whole file once, and counts its users.
func checkFile(names directory.Names, format directory.Format, f *os.File) (total int, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return names.Check(format, f.Name(), f)
}

// showProgress draws a bar on a terminal, and writes a line every five seconds elsewhere.
func showProgress(w io.Writer, total int) (progress func(done int), finish func()) {
	columns, _, isTerminal := terminal(w)
	if isTerminal {
		bar := progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("importing"),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("users"),
			progressbar.OptionSetWidth(min(40, columns/3)), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		return func(done int) { _ = bar.Set(done) }, func() { _ = bar.Finish() }
	}
	var mu sync.Mutex
	next := time.Now().Add(5 * time.Second)
	return func(done int) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.After(next) {
			next = now.Add(5 * time.Second)
			fmt.Fprintf(w, "%d of %d users\n", done, total)
		}
	}, func() {}
}
