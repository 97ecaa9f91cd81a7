package bustest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rollcall/bus"
)

func messageTests() []contractTest {
	return []contractTest{
		{"pulses reach all, oneself included", testPulses},
		{"a request is answered", testRequest},
		{"an answer may come later and from elsewhere", testAnswerLater},
		{"nobody there, at once", testNobodyThere},
		{"nobody there after the server's connection is closed", testServerCloses},
		{"nobody there after Serve's ctx ended", testServeEnds},
		{"a request that isn't answered ends with ctx", testRequestTimeout},
		{"each verb has its own goroutine", testVerbsApart},
		{"events reach all", testEvents},
		{"who listens to a kind of event is heard of", testHeard},
		{"a slow receiver of events loses the newest and slows nobody", testSlowReceiver},
		{"Close ends everything", testClose},
	}
}

func testPulses(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe.2 x")
	f1, f2 := s.feed(), s.feed()
	ctx, cancel := context.WithCancel(s.ctx())
	s.must(fe1.Pulses(s.ctx(), func(fe string, data []byte) { f1.add("%s: %s", fe, data) }))
	s.must(fe2.Pulses(ctx, func(fe string, data []byte) { f2.add("%s: %s", fe, data) }))
	s.must(fe1.Pulse("fe1", []byte("1")))
	f1.want("fe1: 1")
	f2.want("fe1: 1")
	s.must(fe2.Pulse("fe.2 x", []byte("2")))
	f1.want("fe.2 x: 2")
	f2.want("fe.2 x: 2")
	cancel()
	s.must(fe1.Pulse("fe1", []byte("3")))
	f1.want("fe1: 3")
	f2.wantQuiet()
}

// echo serves a verb by sending back what came, with a prefix.
func (s *suite) echo(ctx context.Context, b bus.Bus, frontEnd, verb, prefix string) {
	s.Helper()
	s.must(b.Serve(ctx, frontEnd, verb, func(r bus.Request) {
		if err := r.Respond(append([]byte(prefix), r.Data...)); err != nil {
			s.Error(err)
		}
	}))
}

// ask waits until the server is known everywhere, as it may not be at once in a cluster.
func (s *suite) ask(b bus.Bus, frontEnd, verb, data, want string) {
	s.Helper()
	var err error
	s.eventually(fmt.Sprintf("answer %q", want), func() bool {
		var answer []byte
		answer, err = b.Request(s.ctx(), frontEnd, verb, []byte(data))
		return err == nil && string(answer) == want
	})
}

func testRequest(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	s.echo(s.ctx(), fe2, "fe2", "register", "fe2 says ")
	s.echo(s.ctx(), fe2, "fe2", "ping", "fe2 lives ")
	s.echo(s.ctx(), fe1, "fe1", "register", "fe1 says ")
	for _, from := range []bus.Bus{fe1, fe2} {
		for _, c := range [][3]string{{"fe2", "register", "fe2 says x"}, {"fe2", "ping", "fe2 lives x"}, {"fe1", "register", "fe1 says x"}} {
			answer, err := from.Request(s.ctx(), c[0], c[1], []byte("x"))
			s.must(err)
			if string(answer) != c[2] {
				s.Errorf("answer %q, want %q", answer, c[2])
			}
		}
	}
}

func testAnswerLater(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	requests := make(chan bus.Request, 10)
	s.must(fe2.Serve(s.ctx(), "fe2", "register", func(r bus.Request) { requests <- r }))
	f := s.feed()
	for i := range 3 {
		go func() {
			answer, err := fe1.Request(s.ctx(), "fe2", "register", fmt.Append(nil, i))
			f.add("%d: %s %v", i, answer, err)
		}()
	}
	held := map[string]bus.Request{}
	for range 3 {
		r := <-requests
		held[string(r.Data)] = r
	}
	for _, i := range []string{"2", "0", "1"} {
		go func() { held[i].Respond([]byte("answer to " + i)) }()
		f.want(fmt.Sprintf("%s: answer to %s <nil>", i, i))
	}
}

func testNobodyThere(s *suite) {
	b := s.connect("fe1")
	s.echo(s.ctx(), b, "fe1", "ping", "")
	for _, c := range [][2]string{{"fe2", "ping"}, {"fe1", "register"}, {"fe2", "register"}} {
		start := time.Now()
		_, err := b.Request(s.ctx(), c[0], c[1], nil)
		s.mustBe(err, bus.ErrNobodyThere)
		if took := time.Since(start); took > patience/4 {
			s.Errorf("took %v", took)
		}
	}
}

// wantGone expects ErrNobodyThere soon; a request in flight to the server may still time out.
func (s *suite) wantGone(b bus.Bus, frontEnd, verb string) {
	s.Helper()
	s.eventually("nobody serves "+verb+" for "+frontEnd, func() bool {
		ctx, cancel := context.WithTimeout(s.ctx(), time.Second)
		defer cancel()
		_, err := b.Request(ctx, frontEnd, verb, nil)
		return errors.Is(err, bus.ErrNobodyThere)
	})
}

func testServerCloses(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	for _, verb := range []string{"ping", "register"} {
		s.echo(s.ctx(), fe2, "fe2", verb, "")
		s.ask(fe1, "fe2", verb, "x", "x")
	}
	s.must(fe2.Close())
	s.wantGone(fe1, "fe2", "ping")
	s.wantGone(fe1, "fe2", "register")
}

func testServeEnds(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	ctx, cancel := context.WithCancel(s.ctx())
	s.echo(ctx, fe2, "fe2", "register", "")
	s.ask(fe1, "fe2", "register", "x", "x")
	cancel()
	s.wantGone(fe1, "fe2", "register")
}

func testRequestTimeout(s *suite) {
	b := s.connect("fe1")
	s.must(b.Serve(s.ctx(), "fe1", "register", func(bus.Request) {}))
	ctx, cancel := context.WithTimeout(s.ctx(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Request(ctx, "fe1", "register", nil)
	s.mustBe(err, context.DeadlineExceeded)
}

func testVerbsApart(s *suite) {
	b := s.connect("fe1")
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s.must(b.Serve(s.ctx(), "fe1", "register", func(bus.Request) { entered <- struct{}{}; <-release }))
	s.echo(s.ctx(), b, "fe1", "ping", "")
	s.echo(s.ctx(), b, "fe1", "status", "")
	ctx, cancel := context.WithCancel(s.ctx())
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		b.Request(ctx, "fe1", "register", nil)
	}()
	<-entered
	s.ask(b, "fe1", "ping", "x", "x")
	s.ask(b, "fe1", "status", "x", "x")
	cancel()
	<-stuck
}

func testEvents(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	f1, f2 := s.feed(), s.feed()
	s.must(fe1.Events(s.ctx(), func(kind string, data []byte) { f1.add("%s %s", kind, data) }))
	s.must(fe2.Events(s.ctx(), func(kind string, data []byte) { f2.add("%s %s", kind, data) }))
	s.must(fe1.Emit("placement", []byte(`{"epoch":1}`)))
	s.must(fe1.Emit("flow", []byte(`{}`)))
	f1.want(`placement {"epoch":1}`, "flow {}")
	f2.want(`placement {"epoch":1}`, "flow {}")
}

// Whoever makes events only while they are heard leaves out none that a listener waits for.
func testHeard(s *suite) {
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	tell := func(i int) {
		if fe1.Heard("flow") {
			s.must(fe1.Emit("flow", fmt.Append(nil, i)))
		}
		s.must(fe1.Emit("placement", []byte("{}")))
	}
	for range 3 {
		tell(0)
		time.Sleep(quiet)
	}
	for i := range 3 {
		f := s.feed()
		ctx, cancel := context.WithCancel(s.ctx())
		s.must(fe2.Events(ctx, func(kind string, data []byte) { f.add("%s %s", kind, data) }, "flow", "registration"))
		tell(i)
		f.want(fmt.Sprint("flow ", i))
		cancel()
		time.Sleep(quiet)
	}
}

func testSlowReceiver(s *suite) {
	const n = 20_000
	fe1, fe2 := s.connect("fe1"), s.connect("fe2")
	release := make(chan struct{})
	f := s.feed()
	s.must(fe2.Events(s.ctx(), func(kind string, data []byte) { <-release; f.add("%s", data) }))
	s.echo(s.ctx(), fe2, "fe2", "status", "")
	for i := range n {
		s.must(fe1.Emit("flow", fmt.Append(nil, i)))
	}
	// The answer comes behind the events on the same connection, so all of them have arrived.
	s.ask(fe1, "fe2", "status", "x", "x")
	close(release)
	f.want("0", "1", "2")
	s.eventually("the queue is empty", func() bool { n := len(f.lines); time.Sleep(quiet); return n == len(f.lines) })
	if got := len(f.lines) + 3; got >= n || got < 100 {
		s.Errorf("%d of %d events came, the queue is not bounded sensibly", got, n)
	}
	s.must(fe1.Emit("flow", []byte("after")))
	f.until("after")
}

func testClose(s *suite) {
	const ours = "rollcall/bus/bustest.testClose"
	b, other := s.Connect(s.T, "fe1"), s.connect("fe2")
	f := s.feed()
	s.must(b.Pulses(s.ctx(), func(string, []byte) { f.add("pulse") }))
	s.must(b.Events(s.ctx(), func(string, []byte) { f.add("event") }))
	s.must(b.Serve(s.ctx(), "fe1", "ping", func(bus.Request) { f.add("request") }))
	s.must(b.Pool().Watch(s.ctx(), "", func(bus.Entry) { f.add("entry") }, func() { f.add("ready") }))
	s.must(b.Bindings().Follow(s.ctx(), []string{"g"}, 0, func(bus.Record) { f.add("record") }))
	f.want("ready")
	s.must(b.Close())
	s.must(b.Close())
	s.put(other.Pool(), "k", "x", 0)
	s.append(other, "g", "alice", "x", 0)
	s.must(other.Pulse("fe2", nil))
	s.must(other.Emit("flow", nil))
	s.wantGone(other, "fe1", "ping")
	f.wantQuiet()
	if b.Connected() {
		s.Error("still connected after Close")
	}
	_, err := b.Bindings().Append(s.ctx(), bus.Record{Group: "g", User: "bob"}, 0)
	s.mustBe(err, bus.ErrUnavailable)
	s.mustBe(b.Pulse("fe1", nil), bus.ErrUnavailable)
	s.mustBe(b.Pulses(s.ctx(), func(string, []byte) {}), bus.ErrUnavailable)
	s.must(other.Close())
	s.eventually("no goroutine is left", func() bool {
		return goroutinesIn(ours) <= 1 && goroutinesIn("rollcall/bus/natsbus.(*Bus)") == 0 &&
			goroutinesIn("rollcall/bus/membus.(*Conn).start") == 0 && goroutinesIn("nats.go.(*Conn)") == 0
	})
}
