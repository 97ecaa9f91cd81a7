package bustest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"rollcall/bus"
)

func faultTests() []contractTest {
	return []contractTest{
		{"a cut connection fails at once and knows it", testCut},
		{"watches and follows catch up after the connection was lost", testCatchUp},
		{"subscriptions survive a lost connection", testSubscriptionsSurvive},
		{"a request in flight fails when the connection is lost", testRequestInFlight},
		{"the bus comes back with all that was stored", testRestart},
		{"what is subscribed to while the bus is away works when it is back", testSubscribeAway},
		{"under load over a restart no acknowledged append is lost", testRestartUnderLoad},
	}
}

func testCut(s *suite) {
	b, other := s.connect("fe1"), s.connect("fe2")
	if !b.Connected() {
		s.Error("not connected at first")
	}
	s.append(b, "g", "alice", "1", 0)
	s.Cut(s.T, b)
	if b.Connected() || !other.Connected() {
		s.Errorf("connected: %v, the other one: %v", b.Connected(), other.Connected())
	}
	start := time.Now()
	_, err := b.Bindings().Append(s.ctx(), bus.Record{Group: "g", User: "bob", Data: []byte("behind your back")}, 0)
	s.mustBe(err, bus.ErrUnavailable)
	_, err = b.Bindings().Last(s.ctx(), "g", "alice")
	s.mustBe(err, bus.ErrUnavailable)
	_, err = b.Bindings().Head(s.ctx(), "g")
	s.mustBe(err, bus.ErrUnavailable)
	_, err = b.Pool().Get(s.ctx(), "k")
	s.mustBe(err, bus.ErrUnavailable)
	_, err = b.Pool().Put(s.ctx(), bus.Write{Key: "k", Value: []byte("x")})
	s.mustBe(err, bus.ErrUnavailable)
	_, err = b.Request(s.ctx(), "fe2", "ping", nil)
	s.mustBe(err, bus.ErrUnavailable)
	s.mustBe(b.Pulse("fe1", nil), bus.ErrUnavailable)
	s.mustBe(b.Emit("flow", nil), bus.ErrUnavailable)
	if took := time.Since(start); took > patience/4 {
		s.Errorf("failing took %v", took)
	}
	s.must(b.Pool().PutAll(s.ctx(), newWrites(3), func(w bus.Write, _ bus.Revision, err error) { s.mustBe(err, bus.ErrUnavailable) }))
	s.Heal(s.T, b)
	// Nothing that was refused is stored later.
	s.append(b, "g", "carol", "1", 0)
	time.Sleep(quiet)
	_, err = b.Bindings().Last(s.ctx(), "g", "bob")
	s.mustBe(err, bus.ErrNotFound)
}

func testCatchUp(s *suite) {
	b, other := s.connect("fe1"), s.connect("fe2")
	k, gone := s.put(other.Pool(), "k", "1", 0), s.put(other.Pool(), "gone", "1", 0)
	watch, follow := s.watch(s.ctx(), b.Pool(), ""), s.follow(s.ctx(), b, []string{"g", "h"}, 0)
	watch.want("k=1", "gone=1", "ready")
	p := s.append(other, "g", "alice", "1", 0)
	follow.want("g/alice=1")
	for round := range 3 {
		s.Cut(s.T, b)
		k = s.put(other.Pool(), "k", fmt.Sprint("cut", round), k)
		p = s.append(other, "g", "alice", fmt.Sprint("cut", round), p)
		s.append(other, "h", fmt.Sprint("bob", round), "1", 0)
		if round == 0 {
			s.remove(other.Pool(), "gone", gone)
		}
		s.Heal(s.T, b)
		watch.until(fmt.Sprint("k=cut", round))
		if round == 0 {
			watch.until("-gone")
		}
		follow.until(fmt.Sprint("g/alice=cut", round))
		follow.until(fmt.Sprintf("h/bob%d=1", round))
	}
	s.put(other.Pool(), "k", "end", k)
	watch.until("k=end")
}

func testSubscriptionsSurvive(s *suite) {
	b, other := s.connect("fe1"), s.connect("fe2")
	f := s.feed()
	s.must(b.Pulses(s.ctx(), func(fe string, data []byte) { f.add("pulse %s", data) }))
	s.must(b.Events(s.ctx(), func(kind string, data []byte) { f.add("event %s", data) }))
	s.echo(s.ctx(), b, "fe1", "ping", "")
	s.echo(s.ctx(), b, "fe1", "register", "")
	s.Cut(s.T, b)
	s.wantGone(other, "fe1", "ping")
	s.wantGone(other, "fe1", "register")
	s.must(other.Pulse("fe2", []byte("lost")))
	s.Heal(s.T, b)
	s.ask(other, "fe1", "ping", "x", "x")
	s.ask(other, "fe1", "register", "x", "x")
	s.must(other.Pulse("fe2", []byte("1")))
	f.want("pulse 1")
	s.must(other.Emit("flow", []byte("1")))
	f.want("event 1")
}

func testRequestInFlight(s *suite) {
	b, other := s.connect("fe1"), s.connect("fe2")
	arrived := make(chan struct{}, 1)
	s.must(other.Serve(s.ctx(), "fe2", "register", func(bus.Request) { arrived <- struct{}{} }))
	failed := make(chan error, 1)
	go func() {
		_, err := b.Request(s.ctx(), "fe2", "register", nil)
		failed <- err
	}()
	<-arrived
	s.Cut(s.T, b)
	s.mustBe(<-failed, bus.ErrUnavailable)
}

func testRestart(s *suite) {
	b := s.connect("fe1")
	k := s.put(b.Pool(), "k", "1", 0)
	s.put(b.Users(), "alice@example.test", "ha1", 0)
	p := s.append(b, "g", "alice", "1", 0)
	watch, follow := s.watch(s.ctx(), b.Pool(), ""), s.follow(s.ctx(), b, []string{"g"}, 0)
	watch.want("k=1", "ready")
	follow.want("g/alice=1")
	s.echo(s.ctx(), b, "fe1", "ping", "")
	s.Stop(s.T)
	s.eventually("the connection is lost", func() bool { return !b.Connected() })
	_, err := b.Bindings().Append(s.ctx(), bus.Record{Group: "g", User: "alice", Position: p}, 0)
	s.mustBe(err, bus.ErrUnavailable)
	s.Start(s.T)
	s.eventually("the connection is back", b.Connected)
	s.eventually("the store is back", func() bool {
		_, err := b.Bindings().Last(s.ctx(), "g", "alice")
		if err != nil && !errors.Is(err, bus.ErrUnavailable) {
			s.Fatal(err)
		}
		return err == nil
	})
	if e, err := b.Pool().Get(s.ctx(), "k"); err != nil || e.Revision != k {
		s.Errorf("entry after the restart: %+v, %v", e, err)
	}
	if e, err := b.Users().Get(s.ctx(), "alice@example.test"); err != nil || string(e.Value) != "ha1" {
		s.Errorf("user after the restart: %+v, %v", e, err)
	}
	s.put(b.Pool(), "k", "2", k)
	s.append(b, "g", "alice", "2", p)
	watch.until("k=2")
	follow.until("g/alice=2")
	s.ask(b, "fe1", "ping", "x", "x")
}

func testSubscribeAway(s *suite) {
	b, other := s.connect("fe1"), s.connect("fe2")
	s.Cut(s.T, b)
	f := s.feed()
	s.must(b.Pulses(s.ctx(), func(fe string, data []byte) { f.add("pulse %s", data) }))
	s.echo(s.ctx(), b, "fe1", "ping", "")
	s.mustBe(b.Bindings().Follow(s.ctx(), []string{"g"}, 0, func(bus.Record) {}), bus.ErrUnavailable)
	s.Heal(s.T, b)
	s.ask(other, "fe1", "ping", "x", "x")
	s.must(other.Pulse("fe2", []byte("1")))
	f.want("pulse 1")
}

// Each writer counts upwards for its user. When an append fails, it reads what stands and
// goes on from there, as a Front End does. What was acknowledged must never be missing, and a
// follower must end with the same as the log.
func testRestartUnderLoad(s *suite) {
	const writers = 16
	b, other := s.connect("fe1"), s.connect("fe2")
	var mu sync.Mutex
	followed := map[string]string{}
	s.must(other.Bindings().Follow(s.ctx(), []string{"g"}, 0, func(r bus.Record) {
		mu.Lock()
		defer mu.Unlock()
		followed[r.User] = string(r.Data)
	}))
	ctx, cancel := context.WithCancel(s.ctx())
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { s.countUp(ctx, b, fmt.Sprint("user", i)) })
	}
	for range 2 {
		time.Sleep(quiet)
		s.Stop(s.T)
		time.Sleep(quiet)
		s.Start(s.T)
		s.eventually("the connection is back", b.Connected)
	}
	time.Sleep(3 * quiet)
	cancel()
	wg.Wait()
	s.eventually("the follower has what the log has", func() bool {
		for i := range writers {
			user := fmt.Sprint("user", i)
			r, err := b.Bindings().Last(s.ctx(), "g", user)
			if !errors.Is(err, bus.ErrNotFound) { // on a busy machine a writer may not have got anywhere
				s.must(err)
			}
			mu.Lock()
			same := followed[user] == string(r.Data)
			mu.Unlock()
			if !same {
				return false
			}
		}
		return true
	})
}

func (s *suite) countUp(ctx context.Context, b bus.Bus, user string) {
	acked, count := 0, 0
	var at bus.Position
	for ctx.Err() == nil {
		p, err := b.Bindings().Append(ctx, bus.Record{Group: "g", User: user, Position: at, Data: fmt.Append(nil, count+1)}, time.Hour)
		if err == nil {
			count++
			acked, at = count, p
			continue
		}
		if !errors.Is(err, bus.ErrUnavailable) && !errors.Is(err, bus.ErrConflict) {
			s.Errorf("append: %v", err)
			return
		}
		r, err := s.readBack(ctx, b, user)
		if err != nil {
			return // the test ends
		}
		if count, err = strconv.Atoi(string(r.Data)); err != nil && r.Position != 0 || count < acked {
			s.Errorf("%s: %d was acknowledged, %q stands", user, acked, r.Data)
			return
		}
		at = r.Position
	}
}

// readBack reads the newest record, as soon as the bus is there.
func (s *suite) readBack(ctx context.Context, b bus.Bus, user string) (bus.Record, error) {
	for {
		r, err := b.Bindings().Last(ctx, "g", user)
		switch {
		case err == nil:
			return r, nil
		case errors.Is(err, bus.ErrNotFound):
			return bus.Record{}, nil
		case !errors.Is(err, bus.ErrUnavailable):
			s.Errorf("last: %v", err)
		}
		select {
		case <-ctx.Done():
			return bus.Record{}, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
