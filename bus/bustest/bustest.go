// Package bustest is the contract of package bus as tests. Every implementation
// passes all of them; none is optional.
package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"rollcall/bus"
)

// Fixture is a bus with nothing stored, and the power to break it.
type Fixture struct {
	// Connect returns a new connection. The suite closes it.
	Connect func(t *testing.T, name string) bus.Bus
	// Cut breaks a connection until Heal; both return when the connection knows.
	Cut, Heal func(t *testing.T, b bus.Bus)
	// Stop takes the whole bus away and Start brings it back, with all that was stored.
	Stop, Start func(t *testing.T)
}

// patience is how long the suite waits for what must happen; quiet, for what must not.
const (
	patience = 20 * time.Second
	quiet    = 100 * time.Millisecond
)

// Run tests an implementation. newFixture is called for each test, and cleans up after it by t.Cleanup.
func Run(t *testing.T, newFixture func(t *testing.T) Fixture) {
	for _, section := range []struct {
		name  string
		tests []contractTest
	}{
		{"Table", tableTests()},
		{"Watch", watchTests()},
		{"Log", logTests()},
		{"Follow", followTests()},
		{"Messages", messageTests()},
		{"Faults", faultTests()},
	} {
		t.Run(section.name, func(t *testing.T) {
			for _, test := range section.tests {
				t.Run(strings.ReplaceAll(test.sentence, " ", "_"), func(t *testing.T) {
					s := &suite{T: t, Fixture: newFixture(t)}
					test.run(s)
				})
			}
		})
	}
}

// contractTest proves one sentence of the contract.
type contractTest struct {
	sentence string
	run      func(s *suite)
}

// suite is what a test holds: its fixture and some means of saying things briefly.
type suite struct {
	*testing.T
	Fixture
}

func (s *suite) connect(name string) bus.Bus {
	s.Helper()
	b := s.Connect(s.T, name)
	s.Cleanup(func() { s.must(b.Close()) })
	return b
}

// ctx ends with the test, or when patience does.
func (s *suite) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) mustBe(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want one that is %q", err, want)
	}
}

func (s *suite) put(t bus.Table, key, value string, expect bus.Revision) bus.Revision {
	s.Helper()
	r, err := t.Put(s.ctx(), bus.Write{Key: key, Value: []byte(value), Expect: expect})
	s.must(err)
	return r
}

func (s *suite) remove(t bus.Table, key string, expect bus.Revision) bus.Revision {
	s.Helper()
	r, err := t.Put(s.ctx(), bus.Write{Key: key, Expect: expect})
	s.must(err)
	return r
}

func (s *suite) append(b bus.Bus, group, user, data string, after bus.Position) bus.Position {
	s.Helper()
	p, err := b.Bindings().Append(s.ctx(), bus.Record{Group: group, User: user, Position: after, Data: []byte(data)}, 0)
	s.must(err)
	return p
}

// feed collects what callbacks report, one line each.
type feed struct {
	s     *suite
	lines chan string
}

func (s *suite) feed() *feed { return &feed{s, make(chan string, 100_000)} }

func (f *feed) add(format string, args ...any) { f.lines <- fmt.Sprintf(format, args...) }

// want fails unless exactly these lines come next.
func (f *feed) want(lines ...string) {
	f.s.Helper()
	for i, want := range lines {
		if got := f.next(); got != want {
			f.s.Fatalf("line %d of %q is %q", i, lines, got)
		}
	}
}

// until reads lines up to this one, whatever comes before: for what may be delivered twice.
func (f *feed) until(want string) (before []string) {
	f.s.Helper()
	for {
		got := f.next()
		if got == want {
			return before
		}
		before = append(before, got)
	}
}

func (f *feed) next() string {
	f.s.Helper()
	select {
	case line := <-f.lines:
		return line
	case <-time.After(patience):
		f.s.Fatal("nothing came")
		return ""
	}
}

func (f *feed) wantQuiet() {
	f.s.Helper()
	select {
	case line := <-f.lines:
		f.s.Fatalf("%q came, nothing was expected", line)
	case <-time.After(quiet):
	}
}

// eventually waits until done reports true.
func (s *suite) eventually(what string, done func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("not reached in %v: %s", patience, what)
		}
	}
}

// goroutinesIn counts the goroutines that run code of this package path.
func goroutinesIn(path string) int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for g := range bytes.SplitSeq(buf, []byte("\n\n")) {
		if bytes.Contains(g, []byte(path)) {
			n++
		}
	}
	return n
}
