package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"rollcall/bus"
	"rollcall/bus/natsbus"
	"rollcall/internal/config"
	"rollcall/internal/control"
)

// stopWithin is what a Front End has to stop by itself when the pool stops.
const stopWithin = 5 * time.Second

// Options of Up.
type Options struct {
	Config   config.Config
	Settings control.Settings // what is wanted of the pool's settings; zero fields: as they are
	Self     string           // the program that runs a Front End by 'frontend --supervised'
	Out      io.Writer        // for people
	Terminal bool             // Out is one: the matrix is drawn over itself
	Size     func() (columns, rows int)
	Log      *slog.Logger
}

// pool is a running pool and what must be stopped with it, last thing first.
type pool struct {
	opts      Options
	addresses Addresses
	dir       *Dir
	listener  net.Listener // of --http; nil without
	link      Link
	bus       bus.Bus
	settings  control.Settings
	closers   []func()
}

// Up runs a pool on this machine until ctx ends. It returns nil when it was stopped.
func Up(ctx context.Context, o Options) error {
	p := &pool{opts: o}
	defer p.close()
	if err := p.prepare(); err != nil {
		return err
	}
	if err := p.startBus(ctx); err != nil {
		return err
	}
	told, err := p.furnish(ctx)
	if err == nil {
		err = p.run(ctx, told)
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil // stopped, as asked
	}
	return err
}

// prepare takes all that another pool could have before anything is started.
func (p *pool) prepare() error {
	up := p.opts.Config.Up
	var err error
	if p.addresses, err = AddressesOf(up.SIP, up.Frontends); err != nil {
		return err
	}
	if p.dir, err = OpenDir(up.Data); err != nil {
		return err
	}
	p.closing(func() {
		if err := p.dir.Close(); err != nil {
			p.opts.Log.Warn("data directory", "error", err)
		}
	})
	if err := p.addresses.Check(); err != nil {
		return err
	}
	if up.HTTP == "" {
		return nil
	}
	if p.listener, err = net.Listen("tcp", up.HTTP); err != nil {
		return portError("--http", up.HTTP, err)
	}
	p.closing(func() { p.listener.Close() })
	return nil
}

// startBus starts a bus in this process, unless there is one elsewhere, and connects to it.
func (p *pool) startBus(ctx context.Context) error {
	via := p.opts.Config.Bus
	p.link = Link{URL: via.URL, Via: via}
	if via.URL == "" {
		token := rand.Text()
		server, err := natsbus.StartServer(natsbus.ServerOptions{
			Dir: filepath.Join(p.dir.Path, "bus"), Token: token, SyncAlways: via.Sync == "always", Log: p.opts.Log,
		})
		if err != nil {
			return fmt.Errorf("start the bus: %w", err)
		}
		p.closing(server.Shutdown)
		p.link = Link{URL: server.ClientURL(), Token: token, Via: config.Bus{Replicas: 1}}
	}
	b, err := p.link.Open(ctx, "up", p.opts.Log)
	if err != nil {
		return err
	}
	p.bus = b
	p.closing(func() { b.Close() })
	return nil
}

// furnish sees to settings and users, and leaves word of how to reach the pool.
func (p *pool) furnish(ctx context.Context) (guide, error) {
	want := p.opts.Settings
	if want.Expect == 0 {
		want.Expect = p.opts.Config.Up.Frontends
	}
	var err error
	if p.settings, err = control.EnsureSettings(ctx, p.bus.Pool(), want); err != nil {
		return guide{}, err
	}
	ctx, cancel := context.WithCancel(ctx) // the table is followed only as long as users are made
	defer cancel()
	made, users, err := welcome(ctx, p.bus, p.settings, p.opts.Config.Up.Users)
	if err != nil {
		return guide{}, err
	}
	up := p.opts.Config.Up
	err = p.dir.WritePool(Pool{Pid: os.Getpid(), Started: time.Now().UTC(), SIP: up.SIP, HTTP: p.http(), Link: p.link})
	return guide{
		settings: p.settings, addresses: p.addresses, made: made, users: users.Len(),
		http: p.http(), dataFlag: p.dataFlag(), restart: up.RestartAfter,
	}, err
}

// run keeps the Front Ends running and shows the pool until ctx ends.
func (p *pool) run(ctx context.Context, told guide) error {
	fmt.Fprintln(p.opts.Out, told)
	screen := newScreen(p.opts, p.readStatus)
	commands, err := p.commands()
	if err != nil {
		return err
	}
	var ended atomic.Int64
	keeper := &Keeper{
		RestartAfter: p.opts.Config.Up.RestartAfter, StopWithin: stopWithin,
		Started: func(name string, pid int) { screen.say("%s started (pid %d)", name, pid) },
		Ended: func(name string, pid int, why string) {
			screen.say("%s (pid %d) %s", name, pid, why)
			if ended.Add(1) == int64(len(commands)) && p.opts.Config.Up.RestartAfter <= 0 {
				screen.say("no Front End is left, and none is started again (--restart-after 0)")
				screen.say("nobody is served; what was registered is stored: Ctrl-C, then 'rollcall up'")
			}
		},
	}
	keeper.Open()
	defer keeper.Close()
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range commands {
		g.Go(func() error { return keeper.Keep(ctx, c) })
	}
	g.Go(func() error { return screen.run(ctx, p.bus) })
	if p.listener != nil {
		g.Go(func() error { return serveHTTP(ctx, p.listener, p.readStatus) })
	}
	return g.Wait()
}

// commands are the Front Ends to run.
func (p *pool) commands() ([]Command, error) {
	handover, err := Handover{Link: p.link, Config: p.opts.Config}.encode()
	if err != nil {
		return nil, err
	}
	var all []Command
	for i, own := range p.addresses.Own {
		name := fmt.Sprintf("fe%d", i+1)
		all = append(all, Command{
			Name: name, Path: p.opts.Self, Handover: handover, Log: p.dir.file(name + ".log"),
			Args: []string{"frontend", "--supervised", "--name", name, "--sip", "udp:" + own, "--sip", "tcp:" + own,
				"--shared-sip", p.addresses.Shared},
		})
	}
	return all, nil
}

func (p *pool) readStatus(ctx context.Context) (control.Status, error) {
	return control.ReadStatus(ctx, p.bus, p.settings.GroupIDs())
}

// http is the address that was listened on: port 0 has become a real one.
func (p *pool) http() string {
	if p.listener == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// dataFlag is what commands need to find this pool.
func (p *pool) dataFlag() string {
	if standard, err := DefaultDir(); err == nil && standard == p.dir.Path {
		return ""
	}
	return " --data " + p.dir.Path
}

func (p *pool) closing(f func()) { p.closers = append(p.closers, f) }

func (p *pool) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}
