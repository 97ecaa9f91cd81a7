package frontend

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/registrar"
)

func TestTurnsOfOneUserComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // they come one after the other
				end, ok := turns.take(t.Context(), "sip:alice@example.test")
				if !ok {
					t.Errorf("request %d got no turn", i)
					return
				}
				time.Sleep(50 * time.Millisecond)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				end()
			})
		}
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("served in order %v", order)
		}
	})
}

func TestTurnsDoNotMixUsers(t *testing.T) {
	turns := newTurns()
	for _, u := range []registrar.AOR{"sip:a@x", "sip:b@x"} {
		if _, ok := turns.take(t.Context(), u); !ok {
			t.Errorf("%s waits for somebody else", u)
		}
	}
}

func TestTurnsAreBoundedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		ctx, cancel := context.WithCancel(t.Context())
		end, ok := turns.take(ctx, "u")
		if !ok {
			t.Fatal("the first got no turn")
		}
		var wg sync.WaitGroup
		for range mostTurns - 1 {
			wg.Go(func() {
				if _, ok := turns.take(ctx, "u"); ok {
					t.Error("got a turn that somebody has")
				}
			})
		}
		synctest.Wait()
		if _, ok := turns.take(ctx, "u"); ok {
			t.Error("one more than the bound was let in")
		}
		cancel()
		wg.Wait()
		end()
		for i := range turns.shards {
			if n := len(turns.shards[i].users); n != 0 {
				t.Errorf("shard %d still remembers %d users", i, n)
			}
		}
	})
}
