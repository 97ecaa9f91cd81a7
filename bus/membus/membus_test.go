package membus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/bus"
	"rollcall/bus/membus"
)

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// A message takes the latency of its path, a store the latency there and back.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{Latency: func(from, to string) time.Duration {
			switch {
			case to == membus.Store:
				return milliseconds(3)
			case from == membus.Store:
				return milliseconds(4)
			case from == "fe1" && to == "fe2":
				return milliseconds(10)
			}
			return milliseconds(20)
		}})
		fe1, fe2 := b.Connect("fe1"), b.Connect("fe2")
		defer fe1.Close()
		defer fe2.Close()
		start := time.Now()
		took := func(what string, want time.Duration) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("%s took %v, want %v", what, got, want)
			}
			start = time.Now()
		}
		must(t, fe2.Serve(t.Context(), "fe2", "ping", func(r bus.Request) { r.Respond(r.Data) }))
		if _, err := fe1.Request(t.Context(), "fe2", "ping", nil); err != nil {
			t.Fatal(err)
		}
		took("request", milliseconds(30))
		if _, err := fe1.Request(t.Context(), "fe3", "ping", nil); !errors.Is(err, bus.ErrNobodyThere) {
			t.Fatal(err)
		}
		took("no responders", milliseconds(7))
		seen := make(chan bus.Record, 1)
		must(t, fe2.Bindings().Follow(t.Context(), []string{"g"}, 0, func(r bus.Record) { seen <- r }))
		took("follow", milliseconds(7))
		if _, err := fe1.Bindings().Append(t.Context(), bus.Record{Group: "g", User: "u"}, 0); err != nil {
			t.Fatal(err)
		}
		<-seen
		took("append", milliseconds(7))
	})
}

// A killed process is gone at once for new requests; one in flight to it ends with its context.
func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{})
		fe1, fe2 := b.Connect("fe1"), b.Connect("fe2")
		defer fe1.Close()
		defer fe2.Close()
		held := make(chan bus.Request, 1)
		must(t, fe2.Serve(t.Context(), "fe2", "ping", func(r bus.Request) { held <- r }))
		inFlight := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := fe1.Request(ctx, "fe2", "ping", nil)
			inFlight <- err
		}()
		r := <-held
		fe2.Kill()
		if err := r.Respond(nil); !errors.Is(err, bus.ErrUnavailable) {
			t.Errorf("a killed process responded: %v", err)
		}
		if _, err := fe1.Request(t.Context(), "fe2", "ping", nil); !errors.Is(err, bus.ErrNobodyThere) {
			t.Errorf("request to a killed process: %v", err)
		}
		if fe2.Connected() || !errors.Is(fe2.Pulse("fe2", nil), bus.ErrUnavailable) {
			t.Error("a killed process is still connected")
		}
		if err := <-inFlight; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("request in flight: %v", err)
		}
	})
}

// Without a quorum messages pass and stores fail after their time; with it they go on.
func TestQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{StoreTimeout: 2 * time.Second})
		fe1 := b.Connect("fe1")
		defer fe1.Close()
		must(t, fe1.Serve(t.Context(), "fe1", "ping", func(r bus.Request) { r.Respond(nil) }))
		b.SetQuorum(false)
		start := time.Now()
		_, err := fe1.Bindings().Append(t.Context(), bus.Record{Group: "g", User: "u"}, 0)
		if !errors.Is(err, bus.ErrUnavailable) || time.Since(start) != 2*time.Second {
			t.Errorf("append without quorum: %v after %v", err, time.Since(start))
		}
		if _, err := fe1.Request(t.Context(), "fe1", "ping", nil); err != nil || !fe1.Connected() {
			t.Errorf("message without quorum: %v", err)
		}
		time.AfterFunc(time.Second, func() { b.SetQuorum(true) })
		if _, err := fe1.Bindings().Append(t.Context(), bus.Record{Group: "g", User: "u"}, 0); err != nil {
			t.Errorf("append while the quorum returns: %v", err)
		}
	})
}

// An append whose acknowledgement is lost is stored, and Last tells.
func TestLoseAck(t *testing.T) {
	b := membus.New(membus.Options{LoseAck: func(conn, key string) bool { return conn == "fe1" }})
	fe1 := b.Connect("fe1")
	defer fe1.Close()
	_, err := fe1.Bindings().Append(t.Context(), bus.Record{Group: "g", User: "u", Data: []byte("x")}, 0)
	if !errors.Is(err, bus.ErrUnavailable) {
		t.Fatalf("append: %v", err)
	}
	if r, err := fe1.Bindings().Last(t.Context(), "g", "u"); err != nil || string(r.Data) != "x" {
		t.Errorf("last: %v, %v", r, err)
	}
}

// A follower cut from the bus catches up with what still stands, in order, and an expired
// record is neither followed, nor read, nor in the way.
func TestCutAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{})
		fe1, fe2 := b.Connect("fe1"), b.Connect("fe2")
		defer fe1.Close()
		defer fe2.Close()
		var got []string
		must(t, fe2.Bindings().Follow(t.Context(), []string{"g"}, 0, func(r bus.Record) { got = append(got, r.User) }))
		appendTo := func(user string, ttl time.Duration) {
			t.Helper()
			if _, err := fe1.Bindings().Append(t.Context(), bus.Record{Group: "g", User: user}, ttl); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		appendTo("a", 0)
		fe2.Cut()
		appendTo("b", time.Second)
		appendTo("c", 3*time.Second)
		time.Sleep(time.Second)
		fe2.Heal()
		synctest.Wait()
		if want := []string{"a", "c"}; !slices.Equal(got, want) {
			t.Errorf("followed %v, want %v", got, want)
		}
		appendTo("b", 0)
	})
}

// A receiver that is stuck loses the newest messages; nobody waits for it.
func TestQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{})
		fe1, fe2 := b.Connect("fe1"), b.Connect("fe2")
		defer fe1.Close()
		defer fe2.Close()
		release := make(chan struct{})
		var got []string
		must(t, fe2.Events(t.Context(), func(kind string, _ []byte) { <-release; got = append(got, kind) }))
		must(t, fe1.Emit("first", nil))
		synctest.Wait()
		for i := range 10_000 {
			must(t, fe1.Emit(fmt.Sprint(i), nil))
		}
		close(release)
		synctest.Wait()
		if len(got) != 4097 || got[4096] != "4095" {
			t.Errorf("received %d events, the last one %s", len(got), got[len(got)-1])
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
