package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"rollcall/bus"
	"rollcall/internal/bearer"
	"rollcall/internal/config"
	"rollcall/internal/control"
	"rollcall/internal/frontend"
	"rollcall/internal/supervisor"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

func frontendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "frontend",
		GroupID: "run",
		Short:   "Run one Front End of a pool",
		Long: `Runs one Front End: it joins the pool on the bus, holds copies of routing
groups, and answers the SIP clients that come to it. 'rollcall up' starts these
itself; by hand, or as a service, they make a pool over several machines.

What the whole pool agrees on (domains, auth, direct, ...) is stored on the bus,
and read only when a Front End starts: after a change, start them all again, one
by one.

SIGTERM or Ctrl-C stops it as planned: its groups are promoted elsewhere first.
A second one stops it at once.`,
		Example: `  rollcall frontend --name fe1 --nats nats://10.0.0.1:4222,nats://10.0.0.2:4222 \
      --sip udp:10.0.0.1:5060 --sip tcp:10.0.0.1:5060 --zone rack1
  rollcall frontend --config three-hosts.yaml --name fe2`,
		Args: cobra.NoArgs,
	}
	k := newKnobs(cmd)
	var supervised bool
	f, c := cmd.Flags(), &k.flagged
	f.StringVar(&c.Frontend.Name, "name", c.Frontend.Name, "name of this Front End, unique in the pool and kept over restarts")
	k.add("name", "frontend.name", func(to, from *config.Config) { to.Frontend.Name = from.Frontend.Name })
	f.StringArrayVar(&c.Frontend.SIP, "sip", c.Frontend.SIP, "own `address`, udp:host:port or tcp:host:port (repeatable)")
	k.add("sip", "frontend.sip", func(to, from *config.Config) { to.Frontend.SIP = from.Frontend.SIP })
	f.StringVar(&c.Frontend.SharedSIP, "shared-sip", c.Frontend.SharedSIP, "pool address that the Front Ends of this machine share, `host:port`")
	k.add("shared-sip", "frontend.shared_sip", func(to, from *config.Config) { to.Frontend.SharedSIP = from.Frontend.SharedSIP })
	f.StringVar(&c.Frontend.Health, "health", c.Frontend.Health, "`host:port` where the others see whether this process lives; port 0 for any")
	k.add("health", "frontend.health", func(to, from *config.Config) { to.Frontend.Health = from.Frontend.Health })
	f.StringVar(&c.Frontend.Zone, "zone", c.Frontend.Zone, "failure domain, such as a rack: copies go to different ones")
	k.add("zone", "frontend.zone", func(to, from *config.Config) { to.Frontend.Zone = from.Frontend.Zone })
	f.BoolVar(&supervised, "supervised", false, "told by 'rollcall up' on standard input")
	f.Lookup("supervised").Hidden = true
	k.addPool(cmd)
	k.addBus(cmd)
	k.addLog(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runFrontend(cmd, k, supervised) }
	return cmd
}

func runFrontend(cmd *cobra.Command, k *knobs, supervised bool) error {
	c, asked, err := k.read(cmd)
	if err != nil {
		return err
	}
	ctx, link := cmd.Context(), supervisor.Link{URL: c.Bus.URL, Via: c.Bus}
	var want control.Settings
	if supervised {
		own := c.Frontend
		var h supervisor.Handover
		if h, ctx, err = supervisor.ReadHandover(ctx, cmd.InOrStdin()); err != nil {
			return err
		}
		c, link = h.Config, h.Link
		c.Frontend = own
		shareProcessors(c.Up.Frontends)
	} else {
		want = c.Settings(asked)
	}
	switch {
	case c.Frontend.Name == "":
		return usageError{errors.New("a Front End needs --name, unique in the pool and kept over restarts")}
	case link.URL == "":
		return usageError{errors.New("a Front End needs --nats, the URL of the bus; 'rollcall up' starts a pool with its own")}
	case len(c.Frontend.SIP) == 0 && c.Frontend.SharedSIP == "":
		return usageError{errors.New("a Front End needs --sip, its own address: udp:host:port, tcp:host:port")}
	}
	log, err := newLogger(cmd, c.Log)
	if err != nil {
		return err
	}
	b, err := link.Open(ctx, c.Frontend.Name, log)
	if err != nil {
		return err
	}
	defer b.Close()
	settings, err := control.EnsureSettings(ctx, b.Pool(), want)
	if err != nil {
		return err
	}
	return serveFrontend(ctx, c, settings, b, log)
}

// serveFrontend runs the Front End until ctx ends, or until a signal has made it leave.
func serveFrontend(ctx context.Context, c config.Config, s control.Settings, b bus.Bus, log *slog.Logger) error {
	cfg, err := assemble(c, s, log)
	if err != nil {
		return err
	}
	fe, err := frontend.New(cfg, frontend.Deps{Bus: b, Log: log})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() { // ends with ctx
		for _, act := range []func(){fe.Drain, stop} {
			select {
			case <-signals:
				act()
			case <-ctx.Done():
				return
			}
		}
	}()
	return fe.Run(ctx)
}

// assemble turns configuration and the pool's settings into those of one Front End.
func assemble(c config.Config, s control.Settings, log *slog.Logger) (frontend.Config, error) {
	auth, err := authenticator(c, s, log)
	if err != nil {
		return frontend.Config{}, err
	}
	policy := c.Registrar.Policy()
	if c.Registrar.GRUU {
		policy.GRUU = registrar.NewGRUU(s.Key, s.PreviousKeys...)
	}
	directing := frontend.Directing{Redirect: s.Direct == control.DirectRedirect}
	for _, pattern := range s.Redirect {
		agent, err := regexp.Compile(pattern)
		if err != nil {
			return frontend.Config{}, fmt.Errorf("the pool's redirect patterns: %w", err)
		}
		directing.Agents = append(directing.Agents, agent)
	}
	listen, hosts := listeners(c.Frontend)
	watchers, err := c.Registrar.Watching(s.Domains[0])
	if err != nil {
		return frontend.Config{}, err
	}
	return frontend.Config{
		Name: routing.FrontEnd(c.Frontend.Name), Boot: rand.Text()[:12], Pid: os.Getpid(), Zone: c.Frontend.Zone,
		Domains: s.Domains, Aliases: hosts, Authenticate: s.Auth == control.AuthDigest, Auth: auth,
		Watchers: watchers, Policy: policy, FlowGrace: c.Registrar.FlowGrace, Listen: listen,
		SIP:    sipfront.Config{Version: "Rollcall", Supported: supported(c), MaxInFlight: c.SIP.MaxInFlight, MaxConns: c.SIP.MaxConnections},
		Health: c.Frontend.Health, Directing: directing, ServiceRoute: c.SIP.ServiceRoute, HoldMax: c.SIP.HoldMax,
		Groups: s.Groups, Expect: s.Expect, Rules: c.Liveness.Rules(), DrainTimeout: c.SIP.DrainTimeout,
	}, nil
}

// authenticator asks clients who they are.
func authenticator(c config.Config, s control.Settings, log *slog.Logger) (registrar.Authenticator, error) {
	a := c.Digest.Authenticator()
	a.Realm, a.Keys, a.Algorithms = s.Realm, registrar.NewKeys(s.Key, s.PreviousKeys...), s.Algorithms
	a.MayRegister = c.Registrar.MayRegister(s.Domains[0])
	if c.Bearer.Offer == "none" || c.Bearer.Offer == "" {
		return a, nil
	}
	tokens, err := bearer.Open(c.Bearer.Tokens(s.Domains[0]), log)
	if err != nil {
		return a, err
	}
	a.Schemes = c.Bearer.Schemes()
	a.Bearer = &registrar.Bearer{Check: tokens.Check, Server: c.Bearer.Server, Scope: c.Bearer.Scope}
	return a, nil
}

// supported are the option tags that OPTIONS is answered with (RFC 3261 §11.2).
func supported(c config.Config) []string {
	tags := []string{"path", "outbound"}
	if c.Registrar.GRUU {
		tags = append(tags, "gruu")
	}
	return tags
}

// listeners returns where to listen, and the hosts by which clients may name the pool.
func listeners(f config.Frontend) (listen []sipfront.Listen, hosts []string) {
	for _, own := range f.SIP {
		transport, address, _ := strings.Cut(own, ":")
		listen = append(listen, sipfront.Listen{Transport: transport, Addr: address})
	}
	if f.SharedSIP != "" {
		for _, transport := range []string{"udp", "tcp"} {
			listen = append(listen, sipfront.Listen{Transport: transport, Addr: f.SharedSIP, Shared: true})
		}
	}
	for _, l := range listen {
		hosts = append(hosts, hostsOf(l.Addr)...)
	}
	slices.Sort(hosts)
	return listen, slices.Compact(hosts)
}

// hostsOf returns the host of an address as it stands in a URI; for one that listens
// everywhere, all addresses of this machine.
func hostsOf(address string) []string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	ip := net.ParseIP(host)
	if host != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{uriHost(strings.ToLower(host))}
	}
	var all []string
	addresses, _ := net.InterfaceAddrs() // an error leaves the domains, which is what clients should use
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			all = append(all, uriHost(n.IP.String()))
		}
	}
	return all
}

func uriHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
