package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"rollcall/bus/natsbus"
	"rollcall/internal/config"
	"rollcall/internal/supervisor"
)

func busCommand() *cobra.Command {
	var o natsbus.ServerOptions
	var data, password, token, sync string
	log := config.Default().Log
	cmd := &cobra.Command{
		Use:     "bus",
		GroupID: "run",
		Short:   "Run a bus: a NATS server with JetStream, in its own process",
		Long: `Runs a NATS server that stores a pool's users, registrations and placement.
'rollcall up' has one built in; this is for pools over several machines. Three
of them, each with the others as --route, keep working when one is lost. Any
nats-server with JetStream does as well, and is needed for TLS: see
configs/nats-cluster.conf.

What is acknowledged has been written to the operating system, and is forced to
the disk every second, or each time with --sync always.`,
		Example: `  rollcall bus --data /var/lib/rollcall/bus --token-file /etc/rollcall/token
  rollcall bus --data /var/lib/rollcall/bus --host 10.0.0.1 --server-name n1 \
      --cluster-port 6222 --route nats://10.0.0.2:6222 --route nats://10.0.0.3:6222`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := newLogger(cmd, log)
			if err != nil {
				return err
			}
			o.Log = logger
			switch sync {
			case "interval":
			case "always":
				o.SyncAlways = true
			default:
				return usageError{fmt.Errorf("--sync %q: interval or always", sync)}
			}
			if (o.User == "") != (password == "") {
				return usageError{fmt.Errorf("--user and --password-file go together")}
			}
			if o.Password, err = supervisor.ReadSecret(password); err != nil {
				return fmt.Errorf("--password-file: %w", err)
			}
			if o.Token, err = supervisor.ReadSecret(token); err != nil {
				return fmt.Errorf("--token-file: %w", err)
			}
			if o.Dir = data; data == "" {
				state, err := supervisor.DefaultDir()
				if err != nil {
					return err
				}
				o.Dir = filepath.Join(state, "bus")
			}
			return runBus(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&data, "data", "", "`directory` for what is stored (default: bus in that of 'rollcall up')")
	f.StringVar(&o.Host, "host", "127.0.0.1", "`host` to listen on")
	f.IntVar(&o.Port, "port", 4222, "port for the Front Ends; 0 for any free one")
	f.StringVar(&o.User, "user", "", "only this user may connect")
	f.StringVar(&password, "password-file", "", "`file` with that user's password")
	f.StringVar(&token, "token-file", "", "`file` with a token; only who has it may connect")
	f.StringVar(&o.Cluster.Name, "cluster-name", "rollcall", "name of the cluster, the same on each server")
	f.StringVar(&o.Cluster.ServerName, "server-name", "", "name of this server in the cluster")
	f.IntVar(&o.Cluster.Port, "cluster-port", 0, "port for the other servers; 0 for no cluster")
	f.StringArrayVar(&o.Cluster.Routes, "route", nil, "cluster `address` of another server, nats://host:port (repeatable)")
	f.StringVar(&sync, "sync", "interval", "when stored records are forced to the disk: interval (1 s) or always")
	f.StringVar(&log.Level, "log-level", log.Level, "debug, info, warn or error")
	return cmd
}

func runBus(cmd *cobra.Command, o natsbus.ServerOptions) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	server, err := natsbus.StartServer(o)
	if err != nil {
		return err
	}
	defer server.Shutdown()
	fmt.Fprintf(cmd.OutOrStdout(), "The bus is at %s, stored in %s. Ctrl-C stops it.\n", server.ClientURL(), o.Dir)
	<-ctx.Done()
	return nil
}
