package directory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
)

// Import stores many users, pipelined. New ones are spread over the groups;
// existing ones keep their group and limits and get the new HA1s, all of them
// replaced; who is stored like that already is left alone and counted in neither number. A user who
// comes twice ends as he came last. progress (may be nil) hears how many are dealt with.
//
// It stops at the first error that users yields or a write meets, waits for what
// is under way and returns the error; what was stored until then stays, and
// running it again goes on from there.
func (t *Table) Import(ctx context.Context, users iter.Seq2[User, error], progress func(done int)) (added, updated int, err error) {
	if err := t.wait(ctx); err != nil {
		return 0, 0, err
	}
	run := &importRun{table: t, progress: progress, underWay: map[registrar.AOR]inputUser{}}
	err = t.users.PutAll(ctx, run.writes(users), run.done)
	if run.failed != nil {
		err = run.failed
	}
	if err == nil {
		err = run.finishLate(ctx)
	}
	return run.added, run.updated, err
}

// importRun is one Import on its way. PutAll may call writes and done from
// different goroutines.
type importRun struct {
	table    *Table
	progress func(done int)

	mu       sync.Mutex // guards what follows
	sequence int
	underWay map[registrar.AOR]inputUser // writes that are out; bounded by PutAll
	late     []inputUser                 // repeated in the input, written by somebody else meanwhile or by a newer version, or not known to be stored
	unsure   int                         // those in late that are not known to be stored
	added    int
	updated  int
	count    int
	failed   error
}

// inputUser is a user at his place in the input.
type inputUser struct {
	sequence int
	user     User
}

// The bus may go away for a moment in the middle of an import. What was out then is
// stored again, one by one; when it stays away, the import fails.
const (
	maxUnsure = 8192 // more than PutAll has out
	lateTries = 10
	latePause = time.Second
)

// writes turns users into writes until something failed.
func (r *importRun) writes(users iter.Seq2[User, error]) iter.Seq[bus.Write] {
	return func(yield func(bus.Write) bool) {
		for u, err := range users {
			w, ok := bus.Write{}, false
			if err == nil {
				w, ok, err = r.next(u)
			}
			if err != nil {
				r.fail(err)
			}
			if r.stopped() || ok && !yield(w) {
				return
			}
		}
	}
}

// next decides what to write for one user; false when there is nothing to write now.
func (r *importRun) next(u User) (bus.Write, bool, error) {
	stored := r.table.find(u.AOR)
	r.mu.Lock()
	r.sequence++
	in := inputUser{r.sequence, u}
	if _, busy := r.underWay[u.AOR]; busy || stored != nil && stored.newer {
		r.late = append(r.late, in)
		r.mu.Unlock()
		return bus.Write{}, false, nil
	}
	r.underWay[u.AOR] = in
	r.mu.Unlock()

	u, w, ok, err := r.write(u, stored)
	if !ok {
		r.settle(u.AOR)
		return w, ok, err
	}
	r.mu.Lock()
	r.underWay[u.AOR] = inputUser{in.sequence, u}
	r.mu.Unlock()
	return w, ok, err
}

// write returns the write that stores u over what the table has (nil: nothing), and u as
// it will be then; false when the table has that already.
func (r *importRun) write(u User, stored *row) (User, bus.Write, bool, error) {
	w := bus.Write{Key: string(u.AOR)}
	if stored != nil && !stored.gone {
		if maps.Equal(stored.user.HA1, u.HA1) {
			return u, w, false, nil
		}
		next := stored.user
		next.HA1 = u.HA1
		w.Expect = stored.revision
		u = next
	} else if g, ok := r.table.groups.reserve(u.AOR); ok {
		u.Group = g
	} else {
		return u, w, false, errors.New("the pool has no routing groups")
	}
	value, err := Encode(u)
	if err != nil && w.Expect == 0 {
		r.table.groups.release(u.AOR)
	}
	w.Value = value
	return u, w, err == nil, err
}

// done takes in the outcome of one write.
func (r *importRun) done(w bus.Write, revision bus.Revision, err error) {
	a := registrar.AOR(w.Key)
	r.mu.Lock()
	in := r.underWay[a]
	r.mu.Unlock()
	if err == nil {
		r.table.store(in.user, revision)
	}
	if w.Expect == 0 {
		r.table.groups.release(a)
	}
	switch {
	case err == nil && w.Expect == 0:
		r.tally(1, 0)
	case err == nil:
		r.tally(0, 1)
	case r.putOff(in, err):
		return
	default:
		r.fail(fmt.Errorf("user %s: %w", a, err))
	}
	r.settle(a)
}

// putOff keeps a user for the end of the import, when that can mend the error.
func (r *importRun) putOff(in inputUser, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, bus.ErrUnavailable) && r.unsure < maxUnsure {
		r.unsure++
	} else if !errors.Is(err, bus.ErrConflict) {
		return false
	}
	r.late = append(r.late, in)
	delete(r.underWay, in.user.AOR)
	return true
}

// finishLate stores one by one, in order of the input, who could not go through the pipeline.
func (r *importRun) finishLate(ctx context.Context) error {
	slices.SortFunc(r.late, func(a, b inputUser) int { return a.sequence - b.sequence })
	for _, l := range r.late {
		err := r.storeLate(ctx, l.user)
		for try := 1; errors.Is(err, bus.ErrUnavailable) && try < lateTries; try++ {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(latePause):
			}
			err = r.storeLate(ctx, l.user)
		}
		if err != nil {
			return err
		}
		r.settle(l.user.AOR)
	}
	return nil
}

// storeLate stores one user. A write whose outcome was unknown may turn out to be stored: he is there already then.
func (r *importRun) storeLate(ctx context.Context, u User) error {
	u.Group = ""
	_, err := r.table.Provision(ctx, u)
	switch {
	case err == nil:
		r.tally(1, 0)
	case errors.Is(err, ErrExists):
		if err = r.table.Update(ctx, u.AOR, func(stored *User) { stored.HA1 = u.HA1 }); err == nil {
			r.tally(0, 1)
		}
	}
	return err
}

func (r *importRun) tally(added, updated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added += added
	r.updated += updated
}

// settle counts a user as dealt with.
func (r *importRun) settle(a registrar.AOR) {
	r.mu.Lock()
	delete(r.underWay, a)
	r.count++
	count := r.count
	r.mu.Unlock()
	if r.progress != nil {
		r.progress(count)
	}
}

func (r *importRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

func (r *importRun) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}
