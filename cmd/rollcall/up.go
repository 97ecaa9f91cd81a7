package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"rollcall/internal/config"
	"rollcall/internal/supervisor"
)

func upCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "up",
		GroupID: "run",
		Short:   "Run a whole pool on this machine until Ctrl-C",
		Long: `Starts a bus and several Front Ends, each a process of its own, shows who holds
which copies, and starts a Front End again when it dies. The first start makes
two users, alice and bob, and prints their passwords; they are not stored.

All Front Ends listen together on the pool address (--sip); each also has an
address of its own: fe1 the pool's port +11, fe2 +12, and so on.

The data directory keeps users, registrations and placement over restarts, and
tells the other commands how to reach the pool.`,
		Example: `  rollcall up
  rollcall up --data :temp: --frontends 4 --groups 3 --restart-after 0
  rollcall up --sip 192.0.2.10:5060 --domain example.com --users users.csv
  rollcall up --config one-machine.yaml`,
		Args: cobra.NoArgs,
	}
	k := newKnobs(cmd)
	f, c := cmd.Flags(), &k.flagged
	f.IntVar(&c.Up.Frontends, "frontends", c.Up.Frontends, "Front Ends to run")
	k.add("frontends", "up.frontends", func(to, from *config.Config) { to.Up.Frontends = from.Up.Frontends })
	f.StringVar(&c.Up.SIP, "sip", c.Up.SIP, "pool address for UDP and TCP, `host:port`")
	k.add("sip", "up.sip", func(to, from *config.Config) { to.Up.SIP = from.Up.SIP })
	f.StringVar(&c.Up.HTTP, "http", c.Up.HTTP, "`host:port` of /status, /healthz and /metrics; empty for none")
	k.add("http", "up.http", func(to, from *config.Config) { to.Up.HTTP = from.Up.HTTP })
	f.StringVar(&c.Up.Data, "data", c.Up.Data, "data `directory` (default: rollcall under $XDG_STATE_HOME or ~/.local/state); :temp: for a throw-away")
	k.add("data", "up.data", func(to, from *config.Config) { to.Up.Data = from.Up.Data })
	f.StringVar(&c.Up.Users, "users", c.Up.Users, "CSV `file` of user,password to provision, instead of alice and bob")
	k.add("users", "up.users", func(to, from *config.Config) { to.Up.Users = from.Up.Users })
	f.DurationVar(&c.Up.RestartAfter, "restart-after", c.Up.RestartAfter, "pause before a dead Front End is started again; 0 for never")
	k.add("restart-after", "up.restart_after", func(to, from *config.Config) { to.Up.RestartAfter = from.Up.RestartAfter })
	k.addPool(cmd)
	k.addBus(cmd)
	k.addLog(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runUp(cmd, k) }
	return cmd
}

func runUp(cmd *cobra.Command, k *knobs) error {
	c, asked, err := k.read(cmd)
	if err != nil {
		return err
	}
	if _, err := supervisor.AddressesOf(c.Up.SIP, c.Up.Frontends); err != nil {
		return usageError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself: %w", err)
	}
	quiet := c.Log // the log of the Front Ends goes to files; here only what is wrong is shown
	if quiet.Level == "info" {
		quiet.Level = "error"
	}
	log, err := newLogger(cmd, quiet)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	_, _, isTerminal := terminal(out)
	if isTerminal {
		log = slog.New(slog.DiscardHandler) // it would be drawn into the matrix
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	return supervisor.Up(ctx, supervisor.Options{
		Config: c, Settings: c.Settings(asked), Self: self, Out: out, Terminal: isTerminal, Log: log,
		Size: func() (int, int) {
			columns, rows, _ := terminal(out)
			return columns, rows
		},
	})
}
