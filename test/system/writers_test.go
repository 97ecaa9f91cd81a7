package system

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/test/harness"
)

// Two phones of the same user register at two Front Ends at the same time, again and again: both are answered,
// and in the end both are there with what they were promised.
func TestSameUserAtTwoFrontEnds(t *testing.T) {
	t.Parallel()
	users := harness.Users(20)
	pool, status := startPool(t, harness.PoolOptions{Users: users})
	left, right := newPhones(t, "left", users), newPhones(t, "right", users)

	var both sync.WaitGroup
	for n, phones := range []*harness.Phones{left, right} {
		target := ownUDP(t, pool, status, n)
		both.Go(func() {
			for range 20 {
				if err := phones.Each(len(users), func(p *harness.Phone) error { return p.MustRegister(t.Context(), target, grant) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	for n := range status.FrontEnds {
		target := ownUDP(t, pool, status, n)
		for _, phones := range []*harness.Phones{left, right} {
			if err := phones.Each(4, func(p *harness.Phone) error { return p.Kept(t.Context(), target) }); err != nil {
				t.Errorf("asked at fe%d: %v", n+1, err)
			}
		}
	}
}

// A primary is frozen with REGISTERs in its socket, which it has not read. Another Front End takes its groups over and
// acknowledges newer REGISTERs of the same users. When the first one wakes up it finds the old
// REGISTERs, and believes for a moment that it is primary: it must not undo the newer ones.
func TestFrozenPrimaryDoesNotUndo(t *testing.T) {
	t.Parallel()
	users := harness.Users(60)
	pool, before := startPool(t, harness.PoolOptions{Users: users})
	phones := registered(t, pool, users)
	victim := before.FrontEnds[2]
	primaries, err := pool.Primaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var old sync.WaitGroup
	freeze(t, pool, victim.Name, 3*time.Second, func() {
		frozen := ownUDP(t, pool, before, 2)
		for _, p := range phones.All() {
			if primaries[p.User.Name] != victim.Name {
				continue
			}
			p.Sent++
			twin, cseq := p.Twin(), p.Sent
			old.Go(func() {
				a, err := twin.Repeat(ctx, frozen, cseq)
				if errors.Is(err, harness.ErrNoAnswer) {
					return
				}
				if err != nil || a.Status < 300 {
					t.Errorf("%s: the old REGISTER at the frozen primary was answered %d %s, %v", p.User.Name, a.Status, a.Reason, err)
				}
			})
		}
		if _, err := pool.WaitFor(t.Context(), 30*time.Second, "the frozen one replaced", func(s control.Status) error {
			fe, err := harness.FrontEnd(s, victim.Name)
			if err == nil && fe.Primaries > 0 {
				err = fmt.Errorf("%s is primary of %d groups", fe.Name, fe.Primaries)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		refreshAll(t, pool, phones, ownUDP(t, pool, before, 0))
	})
	old.Wait()
	for n := range before.FrontEnds {
		target := ownUDP(t, pool, before, n)
		if err := phones.Each(16, func(p *harness.Phone) error { return p.Kept(t.Context(), target) }); err != nil {
			t.Errorf("asked at fe%d: %v", n+1, err)
		}
	}
}
