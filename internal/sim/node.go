package sim

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"rollcall/bus/membus"
	"rollcall/internal/frontend"
	"rollcall/internal/simnet"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// node is one Front End's machine: it runs a process, or none.
type node struct {
	pool  *Pool
	name  routing.FrontEnd
	ip    netip.Addr
	boots int
	run   *process // nil: no process
}

// process is one run of a Front End.
type process struct {
	fe     *frontend.FrontEnd
	conn   *membus.Conn
	host   *simnet.Host
	boot   string
	cancel context.CancelFunc
	done   chan struct{} // closes when Run has returned
	killed atomic.Bool
}

func (f *node) sip() netip.AddrPort { return netip.AddrPortFrom(f.ip, sipPort) }

// start starts the process anew, with a boot id of its own.
func (f *node) start() {
	p := f.pool
	f.boots++
	r := &process{boot: fmt.Sprintf("%s-%d", f.name, f.boots), done: make(chan struct{})}
	r.conn = p.bus.Connect(string(f.name))
	r.host = p.net.Host(string(f.name), frontEnds, f.ip)
	own := f.sip().String()
	cfg := frontend.Config{
		Name: f.name, Boot: r.boot, Pid: 1000*f.boots + len(p.fes),
		Domains: []string{domain}, Aliases: []string{f.ip.String(), poolAddress.Addr().String()},
		Authenticate: true,
		Auth: registrar.Authenticator{
			Key:  []byte("the pool's key in the simulator"),
			Rand: &source{seed: hash(p.cfg.Seed, r.boot)},
		},
		Policy: p.cfg.Policy,
		Listen: []sipfront.Listen{
			{Transport: "udp", Addr: own}, {Transport: "tcp", Addr: own},
			{Transport: "udp", Addr: poolAddress.String(), Shared: true}, {Transport: "tcp", Addr: poolAddress.String(), Shared: true},
		},
		Health:  netip.AddrPortFrom(f.ip, healthPort).String(),
		HoldMax: p.cfg.HoldMax, Groups: p.cfg.Groups, Expect: p.cfg.Expect,
	}
	fe, err := frontend.New(cfg, frontend.Deps{Bus: r.conn, Net: r.host, Log: p.logger()})
	if err != nil {
		p.t.Fatal(err)
	}
	r.fe = fe
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	f.run = r
	p.note("%s starts as %s", f.name, r.boot)
	p.wg.Go(func() {
		err := fe.Run(ctx)
		close(r.done)
		r.conn.Close()
		r.host.Kill()
		if err != nil && !r.killed.Load() {
			p.fail("%s (%s) ended by itself: %v", f.name, r.boot, err)
		}
	})
}

// kill is kill -9: the sockets and the connection to the bus vanish first, so that nothing of the
// process's end is seen outside.
func (f *node) kill() {
	r := f.run
	if r == nil {
		return
	}
	f.pool.note("%s is killed", f.name)
	r.killed.Store(true)
	r.conn.Kill()
	r.host.Kill()
	r.cancel()
	f.run = nil
	f.pool.links.freeze(string(f.name), 0) // the next process doesn't stand still
	f.pool.net.Freeze(string(f.name), 0)
}

// restart kills and starts.
func (f *node) restart() {
	f.kill()
	f.start()
}

// drain stops the process as planned; it returns when it has ended.
func (f *node) drain() {
	r := f.run
	f.pool.note("%s drains", f.name)
	r.fe.Drain()
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		f.pool.fail("%s did not end within a minute of Drain", f.name)
		f.kill()
	}
	f.run = nil
}

// freeze is SIGSTOP for d, then SIGCONT, as seen from outside. The process's own timers run on.
func (f *node) freeze(d time.Duration) {
	f.pool.note("%s stands still for %v", f.name, d)
	f.pool.links.freeze(string(f.name), d)
	f.pool.net.Freeze(string(f.name), d)
}

// cutBus and cutClients break its links; the heal functions mend them.
func (f *node) cutBus() {
	f.pool.note("%s is cut from the bus", f.name)
	f.run.conn.Cut()
}

func (f *node) healBus() {
	if f.run != nil {
		f.pool.note("%s has the bus again", f.name)
		f.run.conn.Heal()
	}
}

func (f *node) cutClients() {
	f.pool.note("%s is cut from its clients", f.name)
	f.pool.net.Cut(string(f.name), phones)
}

func (f *node) healClients() {
	f.pool.note("%s has its clients again", f.name)
	f.pool.net.Mend(string(f.name), phones)
}

// up returns the Front Ends that run.
func (p *Pool) up() (up []*node) {
	for _, f := range p.fes {
		if f.run != nil {
			up = append(up, f)
		}
	}
	return up
}

// node returns a Front End by name.
func (p *Pool) node(name routing.FrontEnd) *node {
	for _, f := range p.fes {
		if f.name == name {
			return f
		}
	}
	return nil
}

// addresses of the pool and of every Front End.
func (p *Pool) addresses() []netip.AddrPort {
	all := []netip.AddrPort{poolAddress}
	for _, f := range p.fes {
		all = append(all, f.sip())
	}
	return all
}
