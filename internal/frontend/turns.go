package frontend

import (
	"context"
	"hash/maphash"
	"sync"

	"rollcall/registrar"
)

// turns let the requests of one user be handled one after the other, in the
// order they came. Users do not wait for each other.
type turns struct {
	seed   maphash.Seed
	shards [64]turnShard
}

type turnShard struct {
	mu    sync.Mutex
	users map[registrar.AOR]*turn // guarded by mu; a user is there while somebody has or awaits the turn
}

// turn hands a token from one request to the next.
type turn struct {
	token chan struct{} // one slot
	want  int           // holders and waiters; guarded by the shard's mu
}

// mostTurns is how many requests of one user may wait; one more is refused.
const mostTurns = 64

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].users = map[registrar.AOR]*turn{}
	}
	return t
}

// taken reports whether somebody has the user's turn just now.
func (t *turns) taken(user registrar.AOR) bool {
	s := t.of(user)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users[user] != nil
}

func (t *turns) of(user registrar.AOR) *turnShard {
	return &t.shards[maphash.String(t.seed, string(user))%uint64(len(t.shards))]
}

// try takes the user's turn if nobody has or awaits it. It returns the function that ends the turn.
func (t *turns) try(user registrar.AOR) (end func(), ok bool) {
	s := t.of(user)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] != nil {
		return nil, false
	}
	u := &turn{token: make(chan struct{}, 1), want: 1}
	s.users[user] = u
	return func() { s.leave(user, u, true) }, true
}

// take waits for the user's turn. It returns the function that ends the turn, or
// false if ctx ended or too many wait already.
func (t *turns) take(ctx context.Context, user registrar.AOR) (end func(), ok bool) {
	s := t.of(user)
	s.mu.Lock()
	u := s.users[user]
	if u == nil {
		u = &turn{token: make(chan struct{}, 1)}
		u.token <- struct{}{}
		s.users[user] = u
	}
	if u.want >= mostTurns {
		s.mu.Unlock()
		return nil, false
	}
	u.want++
	s.mu.Unlock()

	select {
	case <-u.token:
		return func() { s.leave(user, u, true) }, true
	default:
	}
	select {
	case <-u.token:
		return func() { s.leave(user, u, true) }, true
	case <-ctx.Done():
		s.leave(user, u, false)
		return nil, false
	}
}

func (s *turnShard) leave(user registrar.AOR, u *turn, held bool) {
	s.mu.Lock()
	u.want--
	if u.want == 0 {
		delete(s.users, user)
	}
	s.mu.Unlock()
	if held {
		u.token <- struct{}{} // never blocks: only the holder puts it back
	}
}
