// Package frontend assembles one Front End: the SIP side, the hot copies, the
// membership of the pool, and the relay. It holds the parts and the order in
// which they start and stop; each part is in the file of its name.
//
// The life of a REGISTER is register.go; where it goes is direct.go; how it gets
// to the primary is relay.go.
package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// Config is what one Front End is told. See Validate for what is required.
type Config struct {
	Name routing.FrontEnd // unique in the pool, kept over restarts
	Boot string           // new at every start
	Pid  int
	Zone string

	Domains      []string // served; the first is that of AORs at the pool's own addresses
	Aliases      []string // hosts that count as the first domain: the pool's own addresses
	Authenticate bool     // false: no digest, and a new user is provisioned at his first REGISTER
	Auth         registrar.Authenticator
	Policy       registrar.Policy
	MaxUsers     int // of a pool without authentication

	Subscriptions registrar.SubscribePolicy // the zero value is the default
	Watchers      []registrar.AOR           // may subscribe to everyone's registrations; others to their own
	NotifyRest    time.Duration             // a watcher who does not answer is left alone so long, then twice as long

	Listen       []sipfront.Listen
	SIP          sipfront.Config // limits only; the rest is filled in
	Health       string          // host:port of the health port; port 0 lets the system choose
	Directing    Directing
	ServiceRoute bool          // name the primary in a Service-Route (RFC 3608)
	FlowGrace    time.Duration // how long a binding outlives its connection
	HoldMax      time.Duration // how long a REGISTER waits for a primary; below timer F, 32 s

	Groups       int // of a new pool
	Expect       int // Front Ends that form a new pool at once
	Rules        routing.Rules
	DrainTimeout time.Duration
}

// Validate fills in defaults and reports what is missing.
func (c *Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("a Front End needs a name")
	case c.Boot == "":
		return errors.New("a Front End needs a boot id")
	case len(c.Domains) == 0:
		return errors.New("a pool needs a domain to serve")
	case c.Groups < 1:
		return errors.New("a pool needs at least one routing group")
	}
	if c.HoldMax <= 0 {
		c.HoldMax = 20 * time.Second
	}
	if c.DrainTimeout <= 0 {
		c.DrainTimeout = 10 * time.Second
	}
	if c.MaxUsers <= 0 {
		c.MaxUsers = 1_000_000
	}
	if c.SIP.MaxInFlight <= 0 {
		c.SIP.MaxInFlight = 16384
	}
	if c.Expect < 1 {
		c.Expect = 1
	}
	if c.Subscriptions == (registrar.SubscribePolicy{}) {
		c.Subscriptions = registrar.DefaultSubscribePolicy()
	}
	c.Subscriptions.Grace = c.Policy.Grace
	if c.NotifyRest <= 0 {
		c.NotifyRest = 30 * time.Second
	}
	if c.Rules == (routing.Rules{}) {
		c.Rules = routing.DefaultRules()
	}
	return nil
}

// Net is the network as a Front End uses it.
type Net interface {
	sipfront.Net
	// Dial connects to a health port.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// Deps are the things outside that a Front End stands on.
type Deps struct {
	Bus bus.Bus
	Net Net // nil: the operating system's
	Log *slog.Logger
}

// FrontEnd is one Front End. Make it with New, then Run it once.
type FrontEnd struct {
	cfg  Config
	bus  bus.Bus
	net  Net
	log  *slog.Logger
	auth *registrar.Authenticator

	watchAuth *registrar.Authenticator // who may watch whom

	domains map[string]bool // fixed after New, and so is aliases
	aliases map[string]bool

	view   atomic.Pointer[view]
	copies atomic.Pointer[copySet] // written by the pool watch only

	users     *directory.Table
	gates     *gates
	turns     *turns
	follower  *follower
	promoter  *promoter
	members   *membership
	events    *events
	flows     *flows
	notices   *notices
	leavers   *dismissals
	sip       *sipfront.Server
	addresses sync.Map // routing.FrontEnd → control.MemberInfo
	why       sync.Map // routing.Group → control.Why

	serving       chan struct{}  // bounds REGISTERs that are being decided and stored
	relaySlots    chan struct{}  // bounds relayed REGISTERs under way
	work          sync.WaitGroup // of relayed REGISTERs and carried NOTIFYs
	healthAddress string         // fixed before anything is served
	open          atomic.Bool    // the SIP side answers; before that it must not be asked
	drain         chan struct{}  // closed by Drain
	drainOnce     sync.Once
}

// New makes a Front End; nothing runs yet.
func New(cfg Config, deps Deps) (*FrontEnd, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Net == nil {
		deps.Net = systemNet{sipfront.SystemNet()}
	}
	if cfg.Auth.Keys == nil {
		cfg.Auth.Keys = registrar.NewKeys(cfg.Auth.Key)
	}
	log := deps.Log.With("frontend", string(cfg.Name))
	f := &FrontEnd{
		cfg: cfg, bus: deps.Bus, net: deps.Net, log: log, auth: &cfg.Auth,
		domains: set(cfg.Domains), aliases: set(cfg.Aliases),
		users: directory.New(routing.GroupNames(cfg.Groups), deps.Bus.Users()),
		gates: newGates(), turns: newTurns(), flows: newFlows(), leavers: newDismissals(),
		relaySlots: make(chan struct{}, cfg.SIP.MaxInFlight), serving: make(chan struct{}, servedAtOnce), drain: make(chan struct{}),
	}
	f.users.KeepOnly(f.auth.Offers())
	for _, d := range cfg.Domains {
		delete(f.aliases, d) // a domain that is an address is itself
	}
	f.users.OnRemove(f.leavers.removed)
	watch := cfg.Auth
	watch.MayRegister = f.mayWatch
	f.watchAuth, f.notices = &watch, newNotices()
	f.view.Store(&view{})
	f.copies.Store(&copySet{})
	f.events = newEvents(cfg.Name, deps.Bus, f.view.Load, log)
	f.follower = &follower{log: deps.Bus.Bindings(), copies: f.held, logger: log, wake: make(chan struct{}, 1)}
	f.promoter = &promoter{log: deps.Bus.Bindings(), pending: f.pendingPrimaries, primary: f.isPrimary, ready: f.groupReady,
		logger: log, wake: make(chan struct{}, 1), busy: map[routing.Group]bool{}}
	f.members = &membership{cfg: cfg, boot: cfg.Boot, bus: deps.Bus, net: deps.Net, logger: log, view: f.view.Load,
		health: f.healthOf, events: f.events, fence: f.letGo,
		input: make(chan func(time.Time), membershipQueue), peers: map[routing.FrontEnd]*peer{}}
	f.members.own.Store(routing.Joining)
	sip := cfg.SIP
	sip.FrontEnd, sip.Boot, sip.Listen, sip.Net, sip.Log = string(cfg.Name), cfg.Boot, cfg.Listen, deps.Net, log
	sip.Astray = f.astray
	f.sip = sipfront.New(sip, f)
	return f, nil
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// systemNet is the operating system's network.
type systemNet struct{ sipfront.Net }

func (systemNet) Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// Run joins the pool and serves until ctx ends (at once) or Drain is called (as
// planned: first its groups are promoted elsewhere). It returns when everything
// that it started has ended.
func (f *FrontEnd) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := f.onBus(ctx, f.alone); err != nil {
		return err
	}
	l, err := f.net.Listen(ctx, f.cfg.Health, false)
	if err != nil {
		return fmt.Errorf("health port: %w", err)
	}
	f.healthAddress = l.Addr().String()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.serveHealth(ctx, l) })
	g.Go(func() error { return f.events.run(ctx) })
	g.Go(func() error { return f.members.run(ctx) })
	g.Go(func() error { return f.follower.run(ctx) })
	g.Go(func() error { return f.promoter.run(ctx) })
	g.Go(func() error { return f.sweep(ctx) })
	g.Go(func() error { return f.reap(ctx) })
	g.Go(func() error { return f.dismiss(ctx) })
	g.Go(func() error { return f.notify(ctx) })
	g.Go(func() error { return f.passOn(ctx) })
	g.Go(func() error { return f.tellReleased(ctx) })
	g.Go(func() error { return f.closeIdle(ctx) })
	g.Go(func() error {
		if err := f.join(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-f.drain:
			f.leave(ctx)
			stop()
		}
		return nil
	})
	g.Go(func() error {
		select {
		case <-ctx.Done():
		case <-f.drain:
			if f.members.state() == routing.Joining { // nothing is here yet, and joining may wait for the bus for long
				stop()
			}
		}
		return nil
	})
	err = g.Wait()
	closeErr := f.sip.Close()
	f.work.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// join loads what this Front End must know, opens its SIP side, and says that it is up.
func (f *FrontEnd) join(ctx context.Context) error {
	if err := f.serveBus(ctx); err != nil {
		return err
	}
	if err := f.onBus(ctx, f.users.Follow); err != nil {
		return fmt.Errorf("follow the users: %w", err)
	}
	placed := make(chan struct{})
	watch := func(ctx context.Context) error {
		return f.bus.Pool().Watch(ctx, "", f.poolChanged, func() { closeOnce(placed) })
	}
	if err := f.onBus(ctx, watch); err != nil {
		return fmt.Errorf("watch the placement: %w", err)
	}
	for _, ready := range []<-chan struct{}{f.users.Ready(), placed} {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	if err := f.sip.Open(ctx); err != nil {
		return err
	}
	f.open.Store(true)
	if err := f.tellAddresses(ctx); err != nil {
		return err
	}
	f.log.Info("up", "sip", f.sip.Addresses(), "users", f.users.Len(), "epoch", f.view.Load().epoch())
	f.members.setState(routing.Up)
	return nil
}

// onBus does what needs the bus, again and again while there is none: a Front End may
// start before it. It returns nil when ctx ends.
func (f *FrontEnd) onBus(ctx context.Context, do func(context.Context) error) error {
	for warned := false; ctx.Err() == nil; warned = true {
		err := do(ctx)
		if err == nil || !errors.Is(err, bus.ErrUnavailable) {
			return err
		}
		if !warned {
			f.log.Warn("waiting for the bus", "err", err)
		}
		pause(ctx, storeRetry)
	}
	return nil
}

// alone fails if another process goes by this Front End's name: two would take the
// groups from one another without end.
func (f *FrontEnd) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	boot, err := f.bus.Request(ctx, string(f.cfg.Name), control.VerbPing, nil)
	if err == nil {
		return errTwin(f.cfg.Name, string(boot))
	}
	if errors.Is(err, bus.ErrUnavailable) {
		return err
	}
	return nil // nobody, or one that has not answered for a second
}

func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// serveBus answers what others ask of this Front End.
func (f *FrontEnd) serveBus(ctx context.Context) error {
	me := string(f.cfg.Name)
	serve := func(verb string, fn func(bus.Request)) error {
		if err := f.bus.Serve(ctx, me, verb, fn); err != nil {
			return fmt.Errorf("serve %s on the bus: %w", verb, err)
		}
		return nil
	}
	return errors.Join(
		serve(control.VerbPing, func(r bus.Request) { _ = r.Respond([]byte(f.cfg.Boot)) }),
		serve(control.VerbRegister, func(r bus.Request) { f.relayedRegister(ctx, r) }),
		serve(control.VerbFlowClosed, func(r bus.Request) { f.flowClosedElsewhere(ctx, r) }),
		serve(control.VerbFlowReleased, f.releasedElsewhere),
		serve(control.VerbNotify, func(r bus.Request) { f.carryElsewhere(ctx, r) }),
		serve(control.VerbAnswer, f.answeredElsewhere),
		serve(control.VerbStatus, func(r bus.Request) { reply(r, f.status(), nil) }),
		serve(control.VerbExplain, func(r bus.Request) {
			e, err := f.explain(registrar.AOR(r.Data))
			reply(r, e, err)
		}),
	)
}

// tellAddresses leaves in the pool table how this Front End can be reached.
func (f *FrontEnd) tellAddresses(ctx context.Context) error {
	data, err := json.Marshal(control.MemberInfo{Name: f.cfg.Name, Pid: f.cfg.Pid, Boot: f.cfg.Boot, Zone: f.cfg.Zone,
		SIP: f.sip.Addresses(), Health: f.healthAddress, Started: time.Now().UTC()})
	if err != nil {
		return err
	}
	key := control.MemberKey(f.cfg.Name)
	for ctx.Err() == nil {
		e, err := f.bus.Pool().Get(ctx, key)
		if err == nil || errors.Is(err, bus.ErrNotFound) {
			if _, err = f.bus.Pool().Put(ctx, bus.Write{Key: key, Value: data, Expect: e.Revision}); err == nil {
				return nil
			}
		}
		pause(ctx, storeRetry)
	}
	return nil
}

// Drain stops this Front End as planned: its groups are promoted elsewhere, then its clients are let go. Run returns.
func (f *FrontEnd) Drain() { f.drainOnce.Do(func() { close(f.drain) }) }

// leave waits until no copy is here any more, then lets the clients go.
func (f *FrontEnd) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.DrainTimeout)
	defer cancel()
	f.members.setState(routing.Draining)
	for ctx.Err() == nil && f.isNeeded() {
		pause(ctx, 20*time.Millisecond)
	}
	f.log.Info("drained", "in_time", ctx.Err() == nil)
	f.sip.CloseFlows(0, true)
	for ctx.Err() == nil && f.flows.pending.Load() > 0 {
		pause(ctx, 20*time.Millisecond)
	}
}

// isNeeded: the placement has copies here, and somebody else to take them.
func (f *FrontEnd) isNeeded() bool {
	v := f.view.Load()
	others := false
	for fe, m := range v.placement.Members {
		others = others || fe != f.cfg.Name && m.State == routing.Up
	}
	return others && len(f.held()) > 0
}

// letGo closes the clients' connections, so that they go where they are served.
func (f *FrontEnd) letGo() {
	f.gates.all()
	f.work.Go(func() { f.sip.CloseFlows(0, true) })
}

func (f *FrontEnd) healthOf(fe routing.FrontEnd) string {
	m, _ := f.address(fe)
	return m.Health
}

// FlowOpened is told by the SIP side.
func (f *FrontEnd) FlowOpened(flow registrar.Flow) {
	f.events.flow("opened", flow)
}

// FlowClosed is told by the SIP side.
func (f *FrontEnd) FlowClosed(flow registrar.Flow) {
	f.events.flow("closed", flow)
	f.flows.close(flow, time.Now())
}
