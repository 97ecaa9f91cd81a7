package system

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"rollcall/test/harness"
)

// refreshing is a load: phones that refresh again and again, each as soon as its turn comes.
type refreshing struct {
	stop    chan struct{}
	stopped sync.Once
	done    chan struct{}
	mu      sync.Mutex
	answers map[int]int // by status; 0: no answer; guarded by mu
	passes  int         // guarded by mu: how often all phones have had their turn
}

// keepRefreshing starts the load. Every tenth phone removes its binding and makes it again, in turn. The
// caller must call end before it uses the phones again.
func keepRefreshing(t *testing.T, phones *harness.Phones, target string) *refreshing {
	r := &refreshing{stop: make(chan struct{}), done: make(chan struct{}), answers: map[int]int{}}
	t.Cleanup(func() { r.end() })
	removes := map[*harness.Phone]bool{}
	for i, p := range phones.All() {
		removes[p] = i%10 == 0
	}
	go func() {
		defer close(r.done)
		for !r.over() {
			_ = phones.Each(48, func(p *harness.Phone) error {
				if r.over() {
					return nil
				}
				expires := grant
				if removes[p] && p.Acked.Expires > 0 {
					expires = 0
				}
				a, err := p.Register(t.Context(), target, expires)
				r.count(a, err)
				return nil
			})
			r.mu.Lock()
			r.passes++
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *refreshing) count(a harness.Answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		a.Status = 0
	}
	r.answers[a.Status]++
}

// pass waits until every phone has had its turn again, from now on.
func (r *refreshing) pass(t *testing.T, within time.Duration) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.passes
	}
	begin := count()
	eventually(t, within, "every phone has its turn", func(context.Context) error {
		if n := count() - begin; n < 2 { // the first one had begun before
			return fmt.Errorf("%d passes since", n)
		}
		return nil
	})
}

func (r *refreshing) over() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// end stops the load, lets the requests that are under way come to their end, and returns the answers by status.
func (r *refreshing) end() map[int]int {
	r.stopped.Do(func() { close(r.stop) })
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.answers)
}

// checkAnswers: nothing but 200s, except what is allowed.
func checkAnswers(t *testing.T, answers map[int]int, allowed ...int) {
	t.Helper()
	t.Logf("answers by status (0: none): %v", answers)
	if answers[200] == 0 {
		t.Error("no REGISTER was answered 200")
	}
	rest := maps.Clone(answers)
	for _, status := range append(allowed, 200) {
		delete(rest, status)
	}
	if len(rest) > 0 {
		t.Errorf("other answers than 200: %v", rest)
	}
}
