package natsbus_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/bus/natsbus"
)

// wantOneLine fails unless err is one line that has all of these words.
func wantOneLine(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range append(words, "") {
		if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q, want one line with %q", err, words)
		}
	}
}

func TestServerDirInUse(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, natsbus.ServerOptions{Dir: dir})
	_, err := natsbus.StartServer(natsbus.ServerOptions{Dir: dir})
	wantOneLine(t, err, "another process", dir)
	s.Shutdown()
	startServer(t, natsbus.ServerOptions{Dir: dir}).Shutdown()
}

func TestServerPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	_, err = natsbus.StartServer(natsbus.ServerOptions{Dir: dir, Port: port})
	wantOneLine(t, err, "in use", strconv.Itoa(port))
	startServer(t, natsbus.ServerOptions{Dir: dir}).Shutdown() // the failed one let go of the lock
}

func TestServerToken(t *testing.T) {
	s := startServer(t, natsbus.ServerOptions{Dir: t.TempDir(), Token: "secret"})
	defer s.Shutdown()
	start := time.Now()
	_, err := natsbus.Open(t.Context(), natsbus.Options{URLs: []string{s.ClientURL()}, Token: "wrong"})
	wantOneLine(t, err, "uthorization")
	if strings.Contains(err.Error(), "wrong") || time.Since(start) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	open(t, natsbus.Options{URLs: []string{s.ClientURL()}, Token: "secret"}).Close()
}

func TestOpenWithoutBus(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := natsbus.Open(ctx, natsbus.Options{URLs: []string{"nats://u:secret@127.0.0.1:1"}})
	wantOneLine(t, err, "127.0.0.1:1")
	if !errors.Is(err, bus.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// A pool that finds streams of another kind says so, and doesn't touch them.
func TestDifferingStream(t *testing.T) {
	s := startServer(t, natsbus.ServerOptions{Dir: t.TempDir()})
	defer s.Shutdown()
	open(t, natsbus.Options{URLs: []string{s.ClientURL()}}).Close()
	_, err := natsbus.Open(t.Context(), natsbus.Options{URLs: []string{s.ClientURL()}, Replicas: 3})
	wantOneLine(t, err, "rollcall_pool", "replicas 1, not 3")
	open(t, natsbus.Options{URLs: []string{s.ClientURL()}, Namespace: "other"}).Close()
}

// Pools with different namespaces share a server and don't hear of each other.
func TestNamespaces(t *testing.T) {
	s := startServer(t, natsbus.ServerOptions{Dir: t.TempDir()})
	defer s.Shutdown()
	a := open(t, natsbus.Options{URLs: []string{s.ClientURL()}, Namespace: "a"})
	defer a.Close()
	b := open(t, natsbus.Options{URLs: []string{s.ClientURL()}, Namespace: "b"})
	defer b.Close()
	if _, err := a.Pool().Put(t.Context(), bus.Write{Key: "k", Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pool().Get(t.Context(), "k"); !errors.Is(err, bus.ErrNotFound) {
		t.Error(err)
	}
	if err := a.Serve(t.Context(), "fe1", "ping", func(r bus.Request) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Request(t.Context(), "fe1", "ping", nil); !errors.Is(err, bus.ErrNobodyThere) {
		t.Error(err)
	}
}
