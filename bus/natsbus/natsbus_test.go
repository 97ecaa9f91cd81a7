package natsbus_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/bus/bustest"
	"rollcall/bus/natsbus"
)

func TestContract(t *testing.T) { bustest.Run(t, newFixture) }

func newFixture(t *testing.T) bustest.Fixture {
	dir := t.TempDir()
	server := startServer(t, natsbus.ServerOptions{Dir: dir})
	port := server.Port()
	t.Cleanup(func() { server.Shutdown() })
	var mu sync.Mutex
	proxies := map[bus.Bus]*proxy{}
	proxyOf := func(b bus.Bus) *proxy {
		mu.Lock()
		defer mu.Unlock()
		return proxies[b]
	}
	return bustest.Fixture{
		Connect: func(t *testing.T, name string) bus.Bus {
			p := newProxy(t, server.ClientURL())
			b := open(t, natsbus.Options{URLs: []string{p.url()}, Name: name})
			mu.Lock()
			defer mu.Unlock()
			proxies[b] = p
			return b
		},
		Cut: func(t *testing.T, b bus.Bus) {
			proxyOf(b).setCut(true)
			await(t, "the connection is lost", func() bool { return !b.Connected() })
		},
		Heal: func(t *testing.T, b bus.Bus) {
			proxyOf(b).setCut(false)
			await(t, "the connection is back", b.Connected)
		},
		Stop: func(*testing.T) { server.Shutdown() },
		Start: func(t *testing.T) {
			server = startServer(t, natsbus.ServerOptions{Dir: dir, Port: port})
		},
	}
}

func startServer(t testing.TB, o natsbus.ServerOptions) *natsbus.Server {
	t.Helper()
	s, err := natsbus.StartServer(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t testing.TB, o natsbus.Options) *natsbus.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b, err := natsbus.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not reached: %s", what)
		}
	}
}

// proxy is a TCP link that can be cut.
type proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

func newProxy(t testing.TB, targetURL string) *proxy {
	t.Helper()
	u, err := url.Parse(targetURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: u.Host, conns: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.setCut(true)
		p.running.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		if !p.add(client, server) {
			continue
		}
		p.running.Go(func() { p.copy(client, server) })
		p.running.Go(func() { p.copy(server, client) })
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.cut {
			c.Close()
		} else {
			p.conns[c] = struct{}{}
		}
	}
	return !p.cut
}

func (p *proxy) copy(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}
