// Package wire sends what the rules of package conformance speak of to a pool of
// real processes, with authentication on: by SIPp, and by sockets of its own where
// SIPp cannot send the thing. Everything is sent at a Front End that is the user's
// primary, at one that isn't, and to the address that the pool shares.
package wire

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/routing"
	"rollcall/test/harness"
)

// What TestMain prepares and no test changes.
var pool struct {
	*harness.Pool
	ports *harness.Ports
	at    map[string]string // by transport: the address that fe1 has for itself
	other map[string]string // the same of fe2
	users *supply
}

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "conformance on the wire:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "rollcall-wire-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	if err := sources(); err != nil {
		return fail(err)
	}
	binary, err := harness.Build(dir)
	if err != nil {
		return fail(err)
	}
	pool.ports = &harness.Ports{}
	users := harness.Users(2400)
	pool.Pool, err = harness.StartPool(harness.PoolOptions{Binary: binary, Dir: dir, Ports: pool.ports, Users: users})
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := errors.Join(pool.Stop(), faults()); err != nil {
			code = fail(err)
		}
	}()
	if err := prepare(users); err != nil {
		return fail(err)
	}
	return m.Run()
}

// sources looks at every source file of the module: what a test looks at belongs to what its cached
// result depends on, and the program that is built here would not otherwise.
func sources() error {
	root, err := harness.Root()
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
}

// prepare waits for the pool and learns its addresses and who is primary of whom.
func prepare(users []harness.User) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	status, err := pool.Ready(ctx, time.Minute)
	if err != nil {
		return err
	}
	pool.at, pool.other = map[string]string{}, map[string]string{}
	for _, transport := range []string{"udp", "tcp"} {
		for n, into := range []map[string]string{pool.at, pool.other} {
			if into[transport], err = pool.Own(status.FrontEnds[n], transport); err != nil {
				return err
			}
		}
	}
	primaries, err := pool.Primaries(ctx)
	if err != nil {
		return err
	}
	pool.users = newSupply(users, primaries, status.FrontEnds[0].Name)
	return nil
}

// faults are races and panics that the pool's processes wrote of.
func faults() error {
	logs, err := pool.Logs()
	for name, text := range logs {
		for _, sign := range []string{"WARNING: DATA RACE", "panic: ", "a request made the program panic"} {
			if i := strings.Index(text, sign); i >= 0 {
				err = errors.Join(err, fmt.Errorf("%s: %s", name, text[i:min(len(text), i+4000)]))
			}
		}
	}
	return err
}

// supply hands out users that no other test has.
type supply struct {
	mu    sync.Mutex
	there []harness.User // their primary is fe1
	away  []harness.User // it isn't
}

func newSupply(users []harness.User, primaries map[string]routing.FrontEnd, fe1 routing.FrontEnd) *supply {
	s := &supply{}
	for _, u := range users[1:] { // the first one is everybody's victim: row 34
		if primaries[u.Name] == fe1 {
			s.there = append(s.there, u)
		} else {
			s.away = append(s.away, u)
		}
	}
	return s
}

func (s *supply) take(t *testing.T, primary bool) harness.User {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	from := &s.away
	if primary {
		from = &s.there
	}
	if len(*from) == 0 {
		t.Fatal("no user left: provision more in run")
	}
	u := (*from)[0]
	*from = (*from)[1:]
	return u
}

// spot is where a user registers, seen from his primary.
type spot struct {
	name      string
	transport string
	addr      string
	primary   bool
}

func spots() []spot {
	var all []spot
	for _, transport := range []string{"udp", "tcp"} {
		all = append(all,
			spot{transport + " at the primary", transport, pool.at[transport], true},
			spot{transport + " at another Front End", transport, pool.at[transport], false},
			spot{transport + " at the pool address", transport, pool.SIP, false})
	}
	return all
}

// everywhere runs a test at every spot, each time with a user of its own who has no binding.
func everywhere(t *testing.T, test func(t *testing.T, c *client)) {
	t.Helper()
	t.Parallel()
	over(t, "", test)
}

// over is everywhere for one transport; "" is both.
func over(t *testing.T, transport string, test func(t *testing.T, c *client)) {
	t.Helper()
	for _, s := range spots() {
		if transport == "" || s.transport == transport {
			t.Run(s.name, func(t *testing.T) { test(t, newClient(t, s.transport, s.addr, pool.users.take(t, s.primary))) })
		}
	}
}
