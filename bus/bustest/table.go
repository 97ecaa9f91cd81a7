package bustest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rollcall/bus"
)

func tableTests() []contractTest {
	return []contractTest{
		{"Get returns an entry, or ErrNotFound", testGet},
		{"Put stores if the revision is the expected one, else ErrConflict", testPut},
		{"of several creators one wins", testCreateRace},
		{"nil deletes, and a deleted entry can be created again", testDelete},
		{"a key is any UTF-8 string of 1 to 512 bytes", testKeys},
		{"the tables are apart", testTablesApart},
		{"PutAll reports each outcome, one at a time", testPutAll},
		{"PutAll returns when ctx ends", testPutAllEnds},
		{"List returns the entries with the prefix", testList},
	}
}

func testGet(s *suite) {
	t := s.connect("fe1").Pool()
	_, err := t.Get(s.ctx(), "settings")
	s.mustBe(err, bus.ErrNotFound)
	r := s.put(t, "settings", "x", 0)
	e, err := t.Get(s.ctx(), "settings")
	s.must(err)
	if e.Key != "settings" || string(e.Value) != "x" || e.Revision != r || r == 0 {
		s.Errorf("got %+v, stored at revision %d", e, r)
	}
	s.put(t, "settings", "", r)
	if e, err = t.Get(s.ctx(), "settings"); err != nil || e.Value == nil || len(e.Value) != 0 {
		s.Errorf("empty value: got %+v, %v", e, err)
	}
}

func testPut(s *suite) {
	t := s.connect("fe1").Pool()
	r1 := s.put(t, "k", "1", 0)
	r2 := s.put(t, "k", "2", r1)
	if r2 <= r1 {
		s.Errorf("revision %d after %d", r2, r1)
	}
	for _, stale := range []bus.Revision{0, r1, r2 + 1} {
		_, err := t.Put(s.ctx(), bus.Write{Key: "k", Value: []byte("3"), Expect: stale})
		s.mustBe(err, bus.ErrConflict)
	}
	_, err := t.Put(s.ctx(), bus.Write{Key: "other", Value: []byte("3"), Expect: r2})
	s.mustBe(err, bus.ErrConflict)
	if e, err := t.Get(s.ctx(), "k"); err != nil || string(e.Value) != "2" {
		s.Errorf("after conflicts: %+v, %v", e, err)
	}
}

func testCreateRace(s *suite) {
	t := s.connect("fe1").Pool()
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		b := s.connect(fmt.Sprint("writer", i))
		wg.Go(func() {
			_, err := b.Pool().Put(s.ctx(), bus.Write{Key: "placement", Value: []byte{byte(i)}})
			if err == nil {
				won.Add(1)
			} else if !strings.Contains(err.Error(), bus.ErrConflict.Error()) {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		s.Errorf("%d of 8 creators won", won.Load())
	}
	_, err := t.Get(s.ctx(), "placement")
	s.must(err)
}

func testDelete(s *suite) {
	t := s.connect("fe1").Pool()
	r := s.put(t, "k", "1", 0)
	_, err := t.Put(s.ctx(), bus.Write{Key: "k", Expect: r + 7})
	s.mustBe(err, bus.ErrConflict)
	gone := s.remove(t, "k", r)
	_, err = t.Get(s.ctx(), "k")
	s.mustBe(err, bus.ErrNotFound)
	list, err := t.List(s.ctx(), "")
	s.must(err)
	if len(list) != 0 {
		s.Errorf("a deleted entry is listed: %+v", list)
	}
	_, err = t.Put(s.ctx(), bus.Write{Key: "k", Value: []byte("2"), Expect: r})
	s.mustBe(err, bus.ErrConflict)
	again := s.put(t, "k", "2", 0)
	if again <= gone || gone <= r {
		s.Errorf("revisions %d, %d, %d don't grow", r, gone, again)
	}
}

// oddKeys are hard to encode.
func oddKeys() []string {
	return []string{
		"alice@example.test", "sip:a@b", "a.b", ".", "..", "a b", "*", ">", "a.>", "=", "=40", "a/b", "/", "//", "a//b", "a/", "/a",
		"ü/日本", "\x00\r\n\t", "$JS.API", "%41", strings.Repeat("x", 512), strings.Repeat("ä", 256), strings.Repeat("/", 512),
	}
}

func testKeys(s *suite) {
	t := s.connect("fe1").Users()
	revisions := map[string]bus.Revision{}
	for _, k := range oddKeys() {
		revisions[k] = s.put(t, k, "value of "+k, 0)
	}
	for _, k := range oddKeys() {
		e, err := t.Get(s.ctx(), k)
		s.must(err)
		if e.Key != k || string(e.Value) != "value of "+k || e.Revision != revisions[k] {
			s.Errorf("key %q: got %q at %d", k, e.Key, e.Revision)
		}
	}
	list, err := t.List(s.ctx(), "")
	s.must(err)
	s.wantKeys(list, oddKeys()...)
	for _, k := range []string{"", strings.Repeat("x", 513), "\xff"} {
		if _, err := t.Put(s.ctx(), bus.Write{Key: k, Value: []byte("x")}); err == nil {
			s.Errorf("key %q was taken", k)
		}
	}
}

func (s *suite) wantKeys(list []bus.Entry, want ...string) {
	s.Helper()
	var keys []string
	for _, e := range list {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(keys, want) {
		s.Errorf("keys %q, want %q", keys, want)
	}
}

func testTablesApart(s *suite) {
	b := s.connect("fe1")
	s.put(b.Pool(), "k", "pool", 0)
	_, err := b.Users().Get(s.ctx(), "k")
	s.mustBe(err, bus.ErrNotFound)
}

func testPutAll(s *suite) {
	const n = 5000
	t := s.connect("fe1").Users()
	s.put(t, "user7", "before", 0)
	gone := s.put(t, "user8", "before", 0)
	s.remove(t, "user8", gone)
	var running atomic.Int64
	outcomes := map[string]int{}
	failed := 0
	err := t.PutAll(s.ctx(), newWrites(n), func(w bus.Write, r bus.Revision, err error) {
		if running.Add(1) != 1 {
			s.Error("done was called from two goroutines at a time")
		}
		defer running.Add(-1)
		outcomes[w.Key]++
		if (w.Key == "user7") != (err != nil) || (err == nil) != (r > 0) {
			s.Errorf("%s: revision %d, %v", w.Key, r, err)
		}
		if err != nil {
			failed++
			s.mustBe(err, bus.ErrConflict)
		}
	})
	s.must(err)
	if len(outcomes) != n || failed != 1 {
		s.Errorf("%d outcomes of %d writes, %d failed", len(outcomes), n, failed)
	}
	list, err := t.List(s.ctx(), "")
	s.must(err)
	if len(list) != n {
		s.Errorf("%d entries are stored", len(list))
	}
}

func newWrites(n int) iter.Seq[bus.Write] {
	return func(yield func(bus.Write) bool) {
		for i := range n {
			if !yield(bus.Write{Key: fmt.Sprint("user", i), Value: []byte("x")}) {
				return
			}
		}
	}
}

func testPutAllEnds(s *suite) {
	t := s.connect("fe1").Users()
	ctx, cancel := context.WithCancel(s.ctx())
	outcomes := 0
	err := t.PutAll(ctx, newWrites(1_000_000), func(bus.Write, bus.Revision, error) {
		if outcomes++; outcomes == 100 {
			cancel()
		}
	})
	s.mustBe(err, context.Canceled)
	if outcomes > 10_000 {
		s.Errorf("%d writes went on after the end", outcomes)
	}
}

func testList(s *suite) {
	t := s.connect("fe1").Pool()
	list, err := t.List(s.ctx(), "")
	s.must(err)
	s.wantKeys(list)
	for _, k := range []string{"member/fe1", "member/fe2", "member", "members", "placement", "member/a/b"} {
		s.put(t, k, "x", 0)
	}
	for prefix, want := range map[string][]string{
		"member/":    {"member/fe1", "member/fe2", "member/a/b"},
		"member/fe":  {"member/fe1", "member/fe2"},
		"member":     {"member/fe1", "member/fe2", "member", "members", "member/a/b"},
		"placement":  {"placement"},
		"member/a/":  {"member/a/b"},
		"nothing/":   nil,
		"member/fe3": nil,
	} {
		list, err := t.List(s.ctx(), prefix)
		s.must(err)
		s.wantKeys(list, want...)
	}
}
