package simnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// connected returns both ends of a connection, and the hosts.
func connected(t *testing.T, n *Network) (client, server *conn, a, b *Host) {
	t.Helper()
	a, b = n.Host("a", "", ip(1)), n.Host("b", "", ip(2))
	l, err := b.Listen(t.Context(), ":5060", false)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Dial(t.Context(), "10.0.0.2:5060")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*conn), s.(*conn), a, b
}

// Everything arrives, in order, over a link that loses and delays; a writer waits for the reader.
func TestStreamArrivesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{WindowMax: 1000, Default: Link{Delay: time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.2}})
		client, server, _, _ := connected(t, n)
		sent := make([]byte, 50_000)
		for i := range sent {
			sent[i] = byte(i * 7)
		}
		go func() {
			for rest := sent; len(rest) > 0; {
				k := min(len(rest), 700)
				if _, err := client.Write(rest[:k]); err != nil {
					t.Error(err)
				}
				rest = rest[k:]
				n.mu.Lock()
				if len(server.in) > 1000 {
					t.Error("more than the window is waiting")
				}
				n.mu.Unlock()
			}
			client.Close()
		}()
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d of %d bytes, %v", len(got), len(sent), err)
		}
		server.Close()
	})
}

func TestDialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{Default: Link{Delay: time.Millisecond}})
		a := n.Host("a", "", ip(1))
		n.Host("b", "", ip(2)).Kill()
		start := time.Now()
		_, err := a.Dial(t.Context(), "10.0.0.2:5060")
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(start) > 5*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// No way there, and no such host, look the same: silence.
func TestDialSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		a := n.Host("a", "", ip(1))
		n.Host("b", "", ip(2))
		n.SetLink("b", "a", Link{Cut: true}) // the answer's way is enough
		for _, to := range []string{"10.0.0.2:5060", "10.0.0.3:5060"} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			start := time.Now()
			_, err := a.Dial(ctx, to)
			var ne net.Error
			if !errors.As(err, &ne) || !ne.Timeout() || time.Since(start) != 200*time.Millisecond {
				t.Errorf("%s: %v after %v", to, err, time.Since(start))
			}
			cancel()
		}
		start := time.Now()
		if _, err := a.Dial(t.Context(), "10.0.0.3:5060"); !errors.Is(err, syscall.ETIMEDOUT) || time.Since(start) < time.Minute {
			t.Errorf("without a deadline: %v after %v", err, time.Since(start))
		}
	})
}

func TestKillResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{Default: Link{Delay: time.Millisecond}})
		client, server, _, b := connected(t, n)
		time.AfterFunc(time.Second, b.Kill)
		start := time.Now()
		_, err := client.Read(make([]byte, 1))
		if !errors.Is(err, syscall.ECONNRESET) || time.Since(start) > 1002*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a killed process writes: %v", err)
		}
		if _, err := b.Dial(t.Context(), "10.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a killed process dials: %v", err)
		}
		client.Close()
	})
}

// A reset that was lost is made good when the other end sends again.
func TestHalfOpenIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		client, _, _, b := connected(t, n)
		n.Cut("a", "b")
		b.Kill()
		client.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("nothing can have come: %v", err)
		}
		n.Mend("a", "b")
		client.SetReadDeadline(time.Time{})
		client.Write([]byte("are you there?"))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
		client.Close()
	})
}

// A cut shorter than a minute only delays; a longer one ends the connection of who sends.
func TestStreamOverACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		client, server, _, _ := connected(t, n)
		buf := make([]byte, 10)
		n.Cut("a", "b")
		client.Write([]byte("1"))
		time.AfterFunc(10*time.Second, func() { n.Mend("a", "b") })
		start := time.Now()
		if k, err := server.Read(buf); err != nil || string(buf[:k]) != "1" || time.Since(start) < 10*time.Second || time.Since(start) > 16*time.Second {
			t.Errorf("%q, %v after %v", buf[:k], err, time.Since(start))
		}
		n.Cut("a", "b")
		client.Write([]byte("2"))
		start = time.Now()
		if _, err := client.Read(buf); !errors.Is(err, syscall.ETIMEDOUT) || time.Since(start) > 70*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		client.Close()
		server.Close()
	})
}

func TestCloseKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(server *conn)
		want error
	}{
		{"plain", func(*conn) {}, io.EOF},
		{"linger 0", func(s *conn) { s.SetLinger(0) }, syscall.ECONNRESET},
		{"unread", func(s *conn) { s.peer.Write([]byte("x")); time.Sleep(time.Second) }, syscall.ECONNRESET},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server, _, _ := connected(t, New(Options{}))
				c.do(server)
				server.Close()
				if _, err := client.Read(make([]byte, 1)); !errors.Is(err, c.want) {
					t.Error(err)
				}
				client.Close()
			})
		})
	}
}

// The kernel of a frozen process takes connections and bytes; the process sees them when it goes on.
func TestFreezeStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		a, b := n.Host("a", "", ip(1)), n.Host("b", "", ip(2))
		l, err := b.Listen(t.Context(), ":5060", false)
		if err != nil {
			t.Fatal(err)
		}
		n.Freeze("b", 3*time.Second)
		start := time.Now()
		c, err := a.Dial(t.Context(), "10.0.0.2:5060")
		if err != nil || time.Since(start) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		c.Write([]byte("hi"))
		s, err := l.Accept()
		if err != nil || time.Since(start) < 3*time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		buf := make([]byte, 2)
		if _, err := io.ReadFull(s, buf); err != nil || time.Since(start) > 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		s.Close()
		c.Close()
		l.Close()
	})
}

func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _, _ := connected(t, New(Options{WindowMax: 100}))
		start := time.Now()
		client.SetWriteDeadline(start.Add(time.Second))
		k, err := client.Write(make([]byte, 200))
		if k != 100 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%d, %v after %v", k, err, time.Since(start))
		}
		client.Close()
		server.Close()
	})
}
