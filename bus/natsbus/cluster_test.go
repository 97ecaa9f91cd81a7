package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/bus/natsbus"
)

// cluster is three servers in this process.
type cluster struct {
	t       *testing.T
	options [3]natsbus.ServerOptions
	servers [3]*natsbus.Server
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t}
	var routes []string
	var ports [6]int
	var listeners [6]net.Listener
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		ports[i] = l.Addr().(*net.TCPAddr).Port
		if i < 3 {
			routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		}
	}
	for _, l := range listeners {
		l.Close()
	}
	for i := range c.options {
		c.options[i] = natsbus.ServerOptions{Dir: t.TempDir(), Port: ports[3+i], Cluster: natsbus.Cluster{
			ServerName: fmt.Sprint("bus", i+1), Port: ports[i], Routes: routes,
		}}
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.stop(i)
		}
	})
	return c
}

func (c *cluster) start(i int) { c.servers[i] = startServer(c.t, c.options[i]) }

func (c *cluster) stop(i int) {
	if c.servers[i] != nil {
		c.servers[i].Shutdown()
		c.servers[i] = nil
	}
}

func (c *cluster) urls() (urls []string) {
	for _, o := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
	}
	return urls
}

// Without a quorum nothing is acknowledged, and messages pass; with it again, everything goes
// on by itself, and nothing acknowledged is missing.
func TestClusterQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	c := newCluster(t)
	for i := range c.servers {
		c.start(i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b, err := natsbus.Open(ctx, natsbus.Options{URLs: c.urls(), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	followed := make(chan string, 100)
	if err := b.Bindings().Follow(ctx, []string{"g"}, 0, func(r bus.Record) { followed <- string(r.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := b.Serve(ctx, "fe1", "ping", func(r bus.Request) { r.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	at, err := b.Bindings().Append(ctx, bus.Record{Group: "g", User: "alice", Data: []byte("1")}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, followed, "1")
	_, err = b.Bindings().Append(ctx, bus.Record{Group: "g", User: "alice", Data: []byte("2")}, 0)
	if !errors.Is(err, bus.ErrConflict) {
		t.Errorf("append at a stale position: %v", err)
	}

	c.stop(0)
	c.stop(1)
	await(t, "connected to the server that is left", b.Connected)
	short, cancelShort := context.WithTimeout(ctx, time.Second)
	defer cancelShort()
	_, err = b.Bindings().Append(short, bus.Record{Group: "g", User: "bob", Data: []byte("lost")}, 0)
	if !errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("append without quorum: %v", err)
	}
	if _, err := b.Request(ctx, "fe1", "ping", nil); err != nil {
		t.Errorf("request without quorum: %v", err)
	}

	c.start(0)
	c.start(1)
	var r bus.Record
	await(t, "the log is read again", func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		r, err = b.Bindings().Last(short, "g", "alice")
		return err == nil
	})
	if r.Position != at || string(r.Data) != "1" {
		t.Errorf("after the quorum is back: %+v, acknowledged at %d", r, at)
	}
	await(t, "the log is written again", func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := b.Bindings().Append(short, bus.Record{Group: "g", User: "alice", Position: at, Data: []byte("3")}, 0)
		return err == nil || errors.Is(err, bus.ErrConflict) // a try before may have been stored
	})
	waitFor(t, followed, "3")
}

// waitFor reads lines until this one comes.
func waitFor(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		select {
		case line := <-lines:
			if line == want {
				return
			}
		case <-deadline:
			t.Fatalf("%q didn't come", want)
		}
	}
}
