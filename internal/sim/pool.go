package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/bus/membus"
	"rollcall/internal/directory"
	"rollcall/internal/simnet"
	"rollcall/registrar"
	"rollcall/routing"
)

// Config of a Pool. The zero value of each field means its default.
type Config struct {
	Seed      uint64
	FrontEnds int // 3
	Groups    int // 6
	Users     int // 12
	Expect    int // Front Ends that form the pool; all of them if 0
	Policy    registrar.Policy
	HoldMax   time.Duration
	Clients   simnet.Link // between phones and Front Ends
}

func (c Config) withDefaults() Config {
	positive := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	positive(&c.FrontEnds, 3)
	positive(&c.Groups, 6)
	positive(&c.Users, 12)
	positive(&c.Expect, c.FrontEnds)
	if c.Policy.MaxExpires == 0 {
		c.Policy = registrar.DefaultPolicy()
		c.Policy.MinExpires = 10 * time.Second
	}
	if c.Clients == (simnet.Link{}) {
		c.Clients = simnet.Link{Delay: 2 * time.Millisecond, Jitter: 3 * time.Millisecond}
	}
	return c
}

// The zones of the network, and the pool's addresses.
const (
	frontEnds  = "frontends"
	phones     = "phones"
	domain     = "example.test"
	password   = "a password of the simulator"
	sipPort    = 5060
	healthPort = 8081
)

var poolAddress = netip.MustParseAddrPort("10.0.0.100:5060")

// Pool is a whole pool in one process.
type Pool struct {
	t     testing.TB
	cfg   Config
	start time.Time
	net   *simnet.Network
	bus   *membus.Bus
	links *busLinks
	logs  *tail
	// replay are the flags that run this very scenario again.
	replay string

	fes      []*node
	users    []user
	model    *model
	observer *observer
	phones   []*Phone

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // of Front Ends and of phones that run by themselves

	mu     sync.Mutex
	broken []string // what went wrong, oldest first; guarded by mu
}

// user is one provisioned user.
type user struct {
	aor   registrar.AOR
	group routing.Group
}

// mostBroken bounds the failures that are kept: the first ones tell most.
const mostBroken = 20

// New makes a pool and provisions its users; no Front End runs yet. Everything ends with the test.
func New(t testing.TB, cfg Config) *Pool {
	t.Helper()
	cfg = cfg.withDefaults()
	p := &Pool{t: t, cfg: cfg, start: time.Now(), logs: &tail{start: time.Now()}}
	p.replay = fmt.Sprintf("-run '^%s$' -seed %d", t.Name(), cfg.Seed)
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.net = simnet.New(simnet.Options{Seed: cfg.Seed, Default: simnet.Link{Delay: 100 * time.Microsecond}})
	p.net.SetLink(phones, frontEnds, cfg.Clients)
	p.net.SetLink(frontEnds, phones, cfg.Clients)
	p.links = newBusLinks(cfg.Seed)
	p.bus = membus.New(membus.Options{Latency: p.links.latency, LoseAck: p.links.loseAck})
	p.model = newModel(p.fail)
	p.provision()
	p.observer = newObserver(p)
	for i := range cfg.FrontEnds {
		p.addFrontEnd(i)
	}
	t.Cleanup(p.close)
	return p
}

func (p *Pool) addFrontEnd(i int) *node {
	f := &node{pool: p, name: routing.FrontEnd(fmt.Sprintf("fe%d", i+1)), ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}
	p.fes = append(p.fes, f)
	return f
}

// provision stores the users, evenly over the groups.
func (p *Pool) provision() {
	conn := p.bus.Connect("admin")
	defer conn.Close()
	groups := routing.GroupNames(p.cfg.Groups)
	writes := func(yield func(bus.Write) bool) {
		for i := range p.cfg.Users {
			u := user{aor: registrar.AOR(fmt.Sprintf("sip:u%d@%s", i+1, domain)), group: groups[i%len(groups)]}
			ha1, err := registrar.HA1(registrar.MD5, u.aor.User(), domain, password)
			if err != nil {
				p.t.Fatal(err)
			}
			value, err := directory.Encode(directory.User{AOR: u.aor, Group: u.group, HA1: map[string]string{registrar.MD5: ha1}})
			if err != nil {
				p.t.Fatal(err)
			}
			p.users = append(p.users, u)
			if !yield(bus.Write{Key: string(u.aor), Value: value}) {
				return
			}
		}
	}
	err := conn.Users().PutAll(p.ctx, writes, func(w bus.Write, _ bus.Revision, err error) {
		if err != nil {
			p.fail("user %s could not be provisioned: %v", w.Key, err)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// Start starts all Front Ends and waits until the pool has settled.
func (p *Pool) Start() {
	p.t.Helper()
	for _, f := range p.fes {
		f.start()
	}
	p.Settle(15 * time.Second)
}

// close ends everything; the bubble then checks that no goroutine is left.
func (p *Pool) close() {
	p.stop()
	for _, ph := range p.phones {
		ph.host.Kill()
	}
	for _, f := range p.fes {
		f.kill()
	}
	p.wg.Wait()
	p.observer.close()
	p.report()
}

// fail notes a broken promise. It may be called from any goroutine.
func (p *Pool) fail(format string, args ...any) {
	at := time.Since(p.start)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.broken) < mostBroken {
		p.broken = append(p.broken, fmt.Sprintf("at %v: ", at)+fmt.Sprintf(format, args...))
		p.logs.note("BROKEN: " + fmt.Sprintf(format, args...))
	}
}

func (p *Pool) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.broken) > 0
}

// report hands what was broken to the test, with the seed that replays it.
func (p *Pool) report() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.broken) == 0 {
		return
	}
	for _, b := range p.broken {
		p.t.Error(b)
	}
	p.t.Logf("replay: go test ./internal/sim -cpu 1 %s", p.replay)
	p.t.Log("what happened last:\n" + p.logs.String())
}

// note leaves a line in the log that a failure shows.
func (p *Pool) note(format string, args ...any) { p.logs.note(fmt.Sprintf(format, args...)) }

func (p *Pool) logger() *slog.Logger { return slog.New(p.logs) }
