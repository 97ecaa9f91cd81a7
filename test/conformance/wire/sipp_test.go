package wire

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/test/harness"
)

// sippAtOnce bounds how many SIPp processes run together.
const sippAtOnce = 6

// unsuccessful is the scenario that wants wrong passwords.
const unsuccessful = "rfc3665-2.5"

// TestSIPp runs every scenario of test/sipp/conformance over UDP and TCP. A run at fe1's own
// address has two users, one whose primary fe1 is and one whose primary it isn't; a run at the pool address has two as well.
func TestSIPp(t *testing.T) {
	t.Parallel()
	harness.Require(t, "sipp")
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "test", "sipp", "conformance", "*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	slots := make(chan struct{}, sippAtOnce)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".xml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs sync.WaitGroup
			for _, transport := range []string{"udp", "tcp"} {
				for _, addr := range []string{pool.at[transport], pool.SIP} {
					run := scenario{name, transport, addr, []harness.User{pool.users.take(t, true), pool.users.take(t, false)}, t.TempDir()}
					runs.Go(func() {
						slots <- struct{}{}
						defer func() { <-slots }()
						run.play(t)
					})
				}
			}
			runs.Wait()
		})
	}
}

// scenario is one run of SIPp.
type scenario struct {
	name, transport, addr string
	users                 []harness.User
	dir                   string
}

func (s scenario) play(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	users := append([]harness.User(nil), s.users...)
	if s.name == unsuccessful {
		for i := range users {
			users[i].Password += "-wrong"
		}
	}
	if _, err := (harness.SIPp{
		Scenario: "conformance/" + s.name, Target: s.addr, Transport: s.transport, Users: users,
		Rate: 100, Dir: s.dir, Ports: pool.ports,
	}).Run(ctx); err != nil {
		t.Errorf("users %s (fe1 is the primary) and %s (it isn't): %v", users[0].Name, users[1].Name, err)
	}
	if s.name == unsuccessful {
		for _, u := range s.users {
			c := newClient(t, s.transport, s.addr, u)
			if got := c.query(); len(contacts(got)) != 0 {
				t.Errorf("a wrong password bound %q", got)
			}
		}
	}
}
