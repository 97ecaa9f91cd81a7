package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/bus"
)

func logTests() []contractTest {
	return []contractTest{
		{"Append stores if the newest record is at the position, else ErrConflict", testAppend},
		{"of several first appends one wins", testAppendRace},
		{"appends of many users at once", testAppendMany},
		{"Last and Head see every acknowledged append", testReadAfterAck},
		{"users and groups may have any name", testOddUsers},
		{"a record vanishes after its ttl", testTTL},
		{"an Append whose context is over is unknown, not done", testAppendLate},
		{"AppendThen tells once what Append would have returned", testAppendThen},
	}
}

func testAppend(s *suite) {
	b := s.connect("fe1")
	p1 := s.append(b, "g1", "alice", "1", 0)
	p2 := s.append(b, "g1", "alice", "2", p1)
	p3 := s.append(b, "g1", "bob", "1", 0)
	if p1 == 0 || p2 <= p1 || p3 <= p2 {
		s.Errorf("positions %d, %d, %d don't grow", p1, p2, p3)
	}
	for _, stale := range []bus.Position{0, p1, p3, p3 + 9} {
		_, err := b.Bindings().Append(s.ctx(), bus.Record{Group: "g1", User: "alice", Position: stale}, 0)
		s.mustBe(err, bus.ErrConflict)
	}
	r, err := b.Bindings().Last(s.ctx(), "g1", "alice")
	s.must(err)
	if r.Group != "g1" || r.User != "alice" || r.Position != p2 || string(r.Data) != "2" {
		s.Errorf("last is %+v", r)
	}
	_, err = b.Bindings().Last(s.ctx(), "g2", "alice")
	s.mustBe(err, bus.ErrNotFound)
}

func testAppendRace(s *suite) {
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		b := s.connect(fmt.Sprint("fe", i))
		wg.Go(func() {
			_, err := b.Bindings().Append(s.ctx(), bus.Record{Group: "g", User: "alice", Data: []byte{byte(i)}}, 0)
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, bus.ErrConflict):
				s.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		s.Errorf("%d of 8 appends won", won.Load())
	}
}

func testAppendMany(s *suite) {
	b := s.connect("fe1")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			var p bus.Position
			for n := range 20 {
				next, err := b.Bindings().Append(s.ctx(), bus.Record{Group: "g", User: fmt.Sprint(i), Position: p, Data: fmt.Append(nil, n)}, time.Hour)
				if err != nil || next <= p {
					s.Errorf("append %d of user %d: %d after %d, %v", n, i, next, p, err)
					return
				}
				p = next
			}
		})
	}
	wg.Wait()
}

func testReadAfterAck(s *suite) {
	b, other := s.connect("fe1"), s.connect("fe2")
	head, err := b.Bindings().Head(s.ctx(), "g")
	s.must(err)
	if head != 0 {
		s.Errorf("head of an empty group is %d", head)
	}
	s.append(b, "other", "zoe", "x", 0)
	var p bus.Position
	for i := range 50 {
		p = s.append(b, "g", "alice", fmt.Sprint(i), p)
		r, err := other.Bindings().Last(s.ctx(), "g", "alice")
		s.must(err)
		head, err := other.Bindings().Head(s.ctx(), "g")
		s.must(err)
		if r.Position != p || head != p {
			s.Fatalf("appended at %d, last is at %d, head at %d", p, r.Position, head)
		}
	}
}

func testOddUsers(s *suite) {
	b := s.connect("fe1")
	f := s.follow(s.ctx(), b, []string{"g.1 >"}, 0)
	for _, user := range oddKeys() {
		s.append(b, "g.1 >", user, "of "+user, 0)
	}
	for _, user := range oddKeys() {
		f.want(fmt.Sprintf("g.1 >/%s=of %s", user, user))
		r, err := b.Bindings().Last(s.ctx(), "g.1 >", user)
		s.must(err)
		if r.User != user || string(r.Data) != "of "+user {
			s.Errorf("last of %q is %+v", user, r)
		}
	}
}

func testTTL(s *suite) {
	l := s.connect("fe1").Bindings()
	stays, err := l.Append(s.ctx(), bus.Record{Group: "g", User: "bob"}, 0)
	s.must(err)
	p, err := l.Append(s.ctx(), bus.Record{Group: "g", User: "alice", Data: []byte("x")}, time.Second)
	s.must(err)
	_, err = l.Last(s.ctx(), "g", "alice")
	s.must(err)
	s.eventually("the record is gone", func() bool {
		_, err := l.Last(s.ctx(), "g", "alice")
		return errors.Is(err, bus.ErrNotFound)
	})
	head, err := l.Head(s.ctx(), "g")
	s.must(err)
	if head != stays {
		s.Errorf("head is %d, the record that stays is at %d", head, stays)
	}
	_, err = l.Append(s.ctx(), bus.Record{Group: "g", User: "alice", Position: p}, 0)
	s.mustBe(err, bus.ErrConflict)
	again, err := l.Append(s.ctx(), bus.Record{Group: "g", User: "alice"}, 0)
	s.must(err)
	if again <= p {
		s.Errorf("position %d after %d", again, p)
	}
	if _, err := l.Append(s.ctx(), bus.Record{Group: "g", User: "eve"}, -time.Second); err == nil {
		s.Error("a negative ttl was taken")
	}
}

func testAppendLate(s *suite) {
	l := s.connect("fe1").Bindings()
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	_, err := l.Append(ctx, bus.Record{Group: "g", User: "alice"}, 0)
	s.mustBe(err, bus.ErrUnavailable)
}

func testAppendThen(s *suite) {
	b := s.connect("fe1")
	type outcome struct {
		at  bus.Position
		err error
	}
	told := make(chan outcome, 3000)
	start := func(r bus.Record, ttl time.Duration) {
		b.Bindings().AppendThen(r, ttl, func(p bus.Position, err error) { told <- outcome{p, err} })
	}
	next := func() outcome {
		select {
		case o := <-told:
			return o
		case <-s.ctx().Done():
			s.Fatal("AppendThen tells nothing")
			return outcome{}
		}
	}
	start(bus.Record{Group: "g", User: "alice", Data: []byte("1")}, time.Hour)
	first := next()
	s.must(first.err)
	start(bus.Record{Group: "g", User: "alice", Data: []byte("2")}, 0)
	s.mustBe(next().err, bus.ErrConflict)
	if start(bus.Record{Group: "g", User: "alice"}, -time.Second); next().err == nil {
		s.Error("a negative ttl is taken")
	}
	r, err := b.Bindings().Last(s.ctx(), "g", "alice")
	s.must(err)
	if r.Position != first.at || string(r.Data) != "1" {
		s.Errorf("last is %+v, not the record at %d", r, first.at)
	}
	const many = 1000
	for i := range many {
		start(bus.Record{Group: "g", User: fmt.Sprint("u", i)}, 0)
	}
	seen := map[bus.Position]bool{}
	for range many {
		o := next()
		s.must(o.err)
		seen[o.at] = true
	}
	s.must(b.Close())
	start(bus.Record{Group: "g", User: "eve"}, 0)
	s.mustBe(next().err, bus.ErrUnavailable)
	if len(seen) != many || len(told) > 0 {
		s.Errorf("%d positions for %d records, %d outcomes too many", len(seen), many, len(told))
	}
}

func followTests() []contractTest {
	return []contractTest{
		{"the newest record of each user, then each new one, in order", testFollow},
		{"only what stands after the position", testFollowAfter},
		{"several groups in one follow", testFollowGroups},
		{"a vanished record is not reported", testFollowTTL},
		{"until ctx ends", testFollowEnds},
		{"many records, in order of position", testFollowMany},
	}
}

// follow reports records as group/user=data.
func (s *suite) follow(ctx context.Context, b bus.Bus, groups []string, after bus.Position) *feed {
	s.Helper()
	f := s.feed()
	s.must(b.Bindings().Follow(ctx, groups, after, func(r bus.Record) { f.add("%s/%s=%s", r.Group, r.User, r.Data) }))
	return f
}

func testFollow(s *suite) {
	writer, b := s.connect("fe1"), s.connect("fe2")
	a := s.append(writer, "g", "alice", "1", 0)
	s.append(writer, "g", "bob", "1", 0)
	a = s.append(writer, "g", "alice", "2", a)
	f := s.follow(s.ctx(), b, []string{"g"}, 0)
	f.want("g/bob=1", "g/alice=2")
	a = s.append(writer, "g", "alice", "3", a)
	f.want("g/alice=3")
	s.append(writer, "g", "alice", "", a)
	f.want("g/alice=")
	f.wantQuiet()
}

func testFollowAfter(s *suite) {
	b := s.connect("fe1")
	s.append(b, "g", "alice", "1", 0)
	p := s.append(b, "g", "bob", "1", 0)
	s.append(b, "g", "carol", "1", 0)
	s.follow(s.ctx(), b, []string{"g"}, p).want("g/carol=1")
	late := s.follow(s.ctx(), b, []string{"g"}, p+1)
	late.wantQuiet()
	s.append(b, "g", "bob", "2", p)
	late.want("g/bob=2")
}

func testFollowGroups(s *suite) {
	b := s.connect("fe1")
	var groups []string
	for g := range 20 {
		groups = append(groups, fmt.Sprint("g", g))
		s.append(b, groups[g], "alice", "1", 0)
		s.append(b, fmt.Sprint("other", g), "alice", "1", 0)
	}
	f, none := s.follow(s.ctx(), b, groups, 0), s.follow(s.ctx(), b, nil, 0)
	for g := range 20 {
		f.want(fmt.Sprintf("g%d/alice=1", g))
	}
	s.append(b, "other1", "bob", "1", 0)
	s.append(b, "g19", "bob", "1", 0)
	s.append(b, "g1", "bob", "1", 0)
	f.want("g19/bob=1", "g1/bob=1")
	none.wantQuiet()
}

func testFollowTTL(s *suite) {
	l := s.connect("fe1")
	_, err := l.Bindings().Append(s.ctx(), bus.Record{Group: "g", User: "alice"}, time.Second)
	s.must(err)
	s.append(l, "g", "bob", "1", 0)
	s.eventually("the record is gone", func() bool {
		_, err := l.Bindings().Last(s.ctx(), "g", "alice")
		return errors.Is(err, bus.ErrNotFound)
	})
	f := s.follow(s.ctx(), l, []string{"g"}, 0)
	f.want("g/bob=1")
	f.wantQuiet()
}

func testFollowEnds(s *suite) {
	b := s.connect("fe1")
	ctx, cancel := context.WithCancel(s.ctx())
	f, other := s.follow(ctx, b, []string{"g"}, 0), s.follow(s.ctx(), b, []string{"g"}, 0)
	cancel()
	s.append(b, "g", "alice", "1", 0)
	other.want("g/alice=1")
	f.wantQuiet()
}

func testFollowMany(s *suite) {
	const users = 2000
	b := s.connect("fe1")
	last := make(chan struct{})
	var at bus.Position
	n := 0
	s.must(b.Bindings().Follow(s.ctx(), []string{"g0", "g1", "g2"}, 0, func(r bus.Record) {
		if r.Position <= at {
			s.Errorf("position %d after %d", r.Position, at)
		}
		at = r.Position
		if n++; n == users {
			close(last)
		}
	}))
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := range users / 50 {
				_, err := b.Bindings().Append(s.ctx(), bus.Record{Group: fmt.Sprint("g", i%3), User: fmt.Sprint(w, "-", i)}, 0)
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	select {
	case <-last:
	case <-time.After(patience):
		s.Fatalf("not all of %d records came", users)
	}
}
