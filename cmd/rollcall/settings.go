package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"rollcall/internal/config"
)

// knobs are the flags of a command that are also keys of the configuration file.
type knobs struct {
	file    string
	flagged config.Config // where the flags' values go
	all     []knob
}

// knob is one flag, its key, and how its value gets from one configuration to another.
type knob struct {
	flag, path string
	copy       func(to, from *config.Config)
}

func newKnobs(cmd *cobra.Command) *knobs {
	k := &knobs{flagged: config.Default()}
	cmd.Flags().StringVar(&k.file, "config", "", "YAML `file` with these settings and more; flags win (samples: configs/)")
	return k
}

func (k *knobs) add(flag, path string, copy func(to, from *config.Config)) {
	k.all = append(k.all, knob{flag, path, copy})
}

// addPool adds what all processes of a pool must agree on.
func (k *knobs) addPool(cmd *cobra.Command) {
	f, c := cmd.Flags(), &k.flagged
	f.IntVar(&c.Pool.Groups, "groups", c.Pool.Groups, "routing groups of a new pool; fixed once there is data")
	k.add("groups", "pool.groups", func(to, from *config.Config) { to.Pool.Groups = from.Pool.Groups })
	f.StringArrayVar(&c.Pool.Domains, "domain", c.Pool.Domains, "SIP `domain` to serve (repeatable)")
	k.add("domain", "pool.domains", func(to, from *config.Config) { to.Pool.Domains = from.Pool.Domains })
	f.StringVar(&c.Pool.Realm, "realm", c.Pool.Realm, "realm of digest challenges (default: the user's domain)")
	k.add("realm", "pool.realm", func(to, from *config.Config) { to.Pool.Realm = from.Pool.Realm })
	f.StringVar(&c.Pool.Auth, "auth", c.Pool.Auth, "digest, or off: whoever comes is believed, and provisioned at his first REGISTER")
	k.add("auth", "pool.auth", func(to, from *config.Config) { to.Pool.Auth = from.Pool.Auth })
	f.StringVar(&c.Pool.Direct, "direct", c.Pool.Direct, "what to do with a client at another Front End than its primary: relay or redirect")
	k.add("direct", "pool.direct", func(to, from *config.Config) { to.Pool.Direct = from.Pool.Direct })
}

// addBus adds how to reach a bus.
func (k *knobs) addBus(cmd *cobra.Command) {
	addBusFlags(cmd, &k.flagged.Bus)
	k.add("nats", "bus.url", func(to, from *config.Config) { to.Bus.URL = from.Bus.URL })
	k.add("creds", "bus.credentials", func(to, from *config.Config) { to.Bus.Credentials = from.Bus.Credentials })
	k.add("nats-user", "bus.user", func(to, from *config.Config) { to.Bus.User = from.Bus.User })
	k.add("nats-password-file", "bus.password_file", func(to, from *config.Config) { to.Bus.Password = from.Bus.Password })
	k.add("nats-token-file", "bus.token_file", func(to, from *config.Config) { to.Bus.Token = from.Bus.Token })
	k.add("nats-ca", "bus.tls.ca", func(to, from *config.Config) { to.Bus.TLS.CA = from.Bus.TLS.CA })
	k.add("nats-cert", "bus.tls.cert", func(to, from *config.Config) { to.Bus.TLS.Cert = from.Bus.TLS.Cert })
	k.add("nats-key", "bus.tls.key", func(to, from *config.Config) { to.Bus.TLS.Key = from.Bus.TLS.Key })
	k.add("replicas", "bus.replicas", func(to, from *config.Config) { to.Bus.Replicas = from.Bus.Replicas })
}

// addLog adds how much is logged.
func (k *knobs) addLog(cmd *cobra.Command) {
	c := &k.flagged
	cmd.Flags().StringVar(&c.Log.Level, "log-level", c.Log.Level, "debug, info, warn or error")
	k.add("log-level", "log.level", func(to, from *config.Config) { to.Log.Level = from.Log.Level })
}

// read returns the file's configuration with the flags over it, and what was asked for.
func (k *knobs) read(cmd *cobra.Command) (c config.Config, asked func(path string) bool, err error) {
	c = config.Default()
	if k.file != "" {
		if c, err = config.Load(k.file); err != nil {
			return c, nil, err
		}
	}
	changed := map[string]bool{}
	for _, knob := range k.all {
		if cmd.Flags().Changed(knob.flag) {
			knob.copy(&c, &k.flagged)
			changed[knob.path] = true
		}
	}
	if err := c.Validate(); err != nil {
		return c, nil, usageError{err}
	}
	return c, func(path string) bool { return changed[path] || c.Given(path) }, nil
}

// newLogger logs to the command's error stream.
func newLogger(cmd *cobra.Command, l config.Log) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, usageError{fmt.Errorf("log level: %w", err)}
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
}
