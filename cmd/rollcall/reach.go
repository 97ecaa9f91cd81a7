package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"rollcall/bus"
	"rollcall/internal/config"
	"rollcall/internal/control"
	"rollcall/internal/directory"
	"rollcall/internal/supervisor"
)

// reach is how a client command finds the pool.
type reach struct {
	data string
	via  config.Bus
}

func (r *reach) addTo(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&r.data, "data", "", "data directory of the pool that runs on this machine (default: that of 'rollcall up')")
	addBusFlags(cmd, &r.via)
	f.Lookup("replicas").Hidden = true // the streams are there already
}

// addBusFlags adds the flags that say how to reach a bus.
func addBusFlags(cmd *cobra.Command, via *config.Bus) {
	f := cmd.PersistentFlags()
	f.StringVar(&via.URL, "nats", via.URL, "NATS URL of the bus, several with commas (nats://host:4222)")
	f.StringVar(&via.Credentials, "creds", via.Credentials, "NATS credentials `file`")
	f.StringVar(&via.User, "nats-user", via.User, "user at the bus")
	f.StringVar(&via.Password, "nats-password-file", via.Password, "`file` with that user's password")
	f.StringVar(&via.Token, "nats-token-file", via.Token, "`file` with the token for the bus")
	f.StringVar(&via.TLS.CA, "nats-ca", via.TLS.CA, "PEM `file` of the authorities that signed the bus's certificate")
	f.StringVar(&via.TLS.Cert, "nats-cert", via.TLS.Cert, "PEM `file` of the certificate to show to the bus")
	f.StringVar(&via.TLS.Key, "nats-key", via.TLS.Key, "PEM `file` of its key")
	f.IntVar(&via.Replicas, "replicas", via.Replicas, "servers that store each record: 1, 3 or 5")
}

// find says how to reach the pool's bus.
func (r *reach) find(ctx context.Context) (supervisor.Link, error) {
	if r.via.URL != "" {
		return supervisor.Link{URL: r.via.URL, Via: r.via}, nil
	}
	pool, err := supervisor.FindPool(ctx, r.data)
	return pool.Link, err
}

// open connects to the pool's bus.
func (r *reach) open(ctx context.Context) (bus.Bus, error) {
	link, err := r.find(ctx)
	if err != nil {
		return nil, err
	}
	return link.Open(ctx, "rollcall", slog.New(slog.DiscardHandler))
}

// openPool connects and reads the pool's settings.
func (r *reach) openPool(ctx context.Context) (bus.Bus, control.Settings, error) {
	b, err := r.open(ctx)
	if err != nil {
		return nil, control.Settings{}, err
	}
	s, err := control.ReadSettings(ctx, b.Pool())
	if errors.Is(err, bus.ErrNotFound) {
		err = errors.New("there is a bus, but no pool was ever on it: start one with 'rollcall up' or 'rollcall frontend'")
	}
	if err != nil {
		b.Close()
		return nil, control.Settings{}, err
	}
	return b, s, nil
}

// namesOf says how names become users in that pool.
func namesOf(s control.Settings) directory.Names {
	return directory.Names{Domains: s.Domains, Realm: s.Realm}
}
