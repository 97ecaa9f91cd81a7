package bustest

import (
	"context"
	"fmt"
	"sync/atomic"

	"rollcall/bus"
)

func watchTests() []contractTest {
	return []contractTest{
		{"entries as they stand, caughtUp once, then changes in order", testWatch},
		{"of an empty table caughtUp comes at once", testWatchEmpty},
		{"only keys with the prefix", testWatchPrefix},
		{"deletes come with a nil value", testWatchDelete},
		{"all from one goroutine", testWatchOneGoroutine},
		{"until ctx ends", testWatchEnds},
		{"many entries are complete before caughtUp", testWatchMany},
	}
}

// watch reports entries as key=value, deletes as -key, and ready.
func (s *suite) watch(ctx context.Context, t bus.Table, prefix string) *feed {
	s.Helper()
	f := s.feed()
	s.must(t.Watch(ctx, prefix, func(e bus.Entry) {
		if e.Value == nil {
			f.add("-%s", e.Key)
		} else {
			f.add("%s=%s", e.Key, e.Value)
		}
	}, func() { f.add("ready") }))
	return f
}

func testWatch(s *suite) {
	writer, t := s.connect("fe1").Pool(), s.connect("fe2").Pool()
	a := s.put(writer, "a", "1", 0)
	s.put(writer, "b", "1", 0)
	s.put(writer, "a", "2", a)
	f := s.watch(s.ctx(), t, "")
	f.want("b=1", "a=2", "ready")
	c := s.put(writer, "c", "1", 0)
	f.want("c=1")
	s.put(writer, "c", "2", c)
	f.want("c=2")
	f.wantQuiet()
}

func testWatchEmpty(s *suite) {
	b := s.connect("fe1")
	f := s.watch(s.ctx(), b.Pool(), "member/")
	f.want("ready")
	s.put(b.Pool(), "member/fe1", "x", 0)
	f.want("member/fe1=x")
}

func testWatchPrefix(s *suite) {
	t := s.connect("fe1").Pool()
	s.put(t, "other", "x", 0)
	s.put(t, "member/fe1", "x", 0)
	slash, half := s.watch(s.ctx(), t, "member/"), s.watch(s.ctx(), t, "member/fe")
	slash.want("member/fe1=x", "ready")
	half.want("member/fe1=x", "ready")
	for _, k := range []string{"others", "member/x", "member", "member/fe2"} {
		s.put(t, k, "y", 0)
	}
	slash.want("member/x=y", "member/fe2=y")
	half.want("member/fe2=y")
	slash.wantQuiet()
	half.wantQuiet()
}

func testWatchDelete(s *suite) {
	t := s.connect("fe1").Pool()
	s.remove(t, "before", s.put(t, "before", "x", 0))
	r := s.put(t, "k", "x", 0)
	f := s.watch(s.ctx(), t, "")
	f.want("k=x", "ready")
	s.remove(t, "k", r)
	f.want("-k")
	s.put(t, "k", "y", 0)
	f.want("k=y")
}

func testWatchOneGoroutine(s *suite) {
	t := s.connect("fe1").Users()
	var running atomic.Int64
	var last bus.Revision
	done := make(chan struct{})
	enter := func() {
		if running.Add(1) != 1 {
			s.Error("two callbacks at a time")
		}
	}
	s.must(t.Watch(s.ctx(), "", func(e bus.Entry) {
		enter()
		defer running.Add(-1)
		if e.Revision <= last {
			s.Errorf("revision %d after %d", e.Revision, last)
		}
		last = e.Revision
		if e.Key == "last" {
			close(done)
		}
	}, func() { enter(); running.Add(-1) }))
	s.must(t.PutAll(s.ctx(), newWrites(1000), func(bus.Write, bus.Revision, error) {}))
	s.put(t, "last", "x", 0)
	<-done
}

func testWatchEnds(s *suite) {
	t := s.connect("fe1").Pool()
	ctx, cancel := context.WithCancel(s.ctx())
	f, other := s.watch(ctx, t, ""), s.watch(s.ctx(), t, "")
	f.want("ready")
	cancel()
	s.put(t, "k", "x", 0)
	other.want("ready", "k=x")
	f.wantQuiet()
}

func testWatchMany(s *suite) {
	const n = 3000
	b := s.connect("fe1")
	s.must(b.Users().PutAll(s.ctx(), newWrites(n), func(bus.Write, bus.Revision, error) {}))
	f := s.watch(s.ctx(), s.connect("fe2").Users(), "")
	seen := map[string]bool{}
	for _, line := range f.until("ready") {
		seen[line] = true
	}
	for i := range n {
		if line := fmt.Sprintf("user%d=x", i); !seen[line] {
			s.Fatalf("%s was missing when the watch was caught up, with %d others", line, n-len(seen)-1)
		}
	}
}
