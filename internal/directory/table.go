package directory

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rollcall/bus"
	"rollcall/registrar"
	"rollcall/routing"
)

// ErrExists is the answer to provisioning a user who is there already.
var ErrExists = errors.New("the user exists already")

// shards of the table. Readers of one shard share a read lock's counter; 256 of
// them make two readers meet on it rarely enough.
const shards = 256

// Table holds all provisioned users in memory, as the bus has them.
type Table struct {
	users   bus.Table
	groups  *balance
	seed    maphash.Seed
	shard   [shards]shard
	size    atomic.Int64
	follows atomic.Bool
	ready   chan struct{}
	caught  sync.Once
	damaged atomic.Pointer[error]
	wants   func(name string) bool // which HA1s are kept in memory
	removed func(User)             // see OnRemove
}

// shard is a part of the table, padded to a cache line of its own.
type shard struct {
	mu   sync.RWMutex
	rows map[registrar.AOR]*row // guarded by mu
	_    [64 - 32]byte
}

// row is what is known of one user. A row is never changed, only replaced. A
// removed user keeps one (gone) until the watch confirms the removal, so that an
// older entry that is still on its way doesn't bring the user back.
type row struct {
	user     User
	revision bus.Revision
	gone     bool
	newer    bool // the stored record has fields of a newer version, which are not kept here
}

// New returns an empty table; Follow fills it. groups are the pool's routing
// groups, among which new users are spread.
func New(groups []routing.Group, users bus.Table) *Table {
	t := &Table{users: users, groups: newBalance(groups), seed: maphash.MakeSeed(), ready: make(chan struct{}), wants: all, removed: func(User) {}}
	for i := range t.shard {
		t.shard[i].rows = map[registrar.AOR]*row{}
	}
	return t
}

// KeepOnly makes the table keep the HA1s of these algorithms only, to save memory:
// those that the pool offers. Call it before Follow. What is stored stays whole.
func (t *Table) KeepOnly(algorithms []string) {
	t.wants = func(name string) bool { return slices.Contains(algorithms, strings.TrimSuffix(name, "@")) }
}

// OnRemove makes fn be called for each user whom the watch tells to be removed, or
// removed and provisioned again in another group. Lookup does not find him any more, or
// finds the new one. fn is called from one goroutine and must not block. Call OnRemove before Follow.
func (t *Table) OnRemove(fn func(User)) { t.removed = fn }

// Follow watches the users table into memory until ctx ends. It returns when the
// watch is set up; Ready tells when all users are there. Call it once.
func (t *Table) Follow(ctx context.Context) error {
	t.follows.Store(true)
	return t.users.Watch(ctx, "", t.changed, func() { t.caught.Do(func() { close(t.ready) }) })
}

// Ready is closed when the table has caught up with the bus.
func (t *Table) Ready() <-chan struct{} { return t.ready }

// Lookup returns a user. It neither allocates nor waits for other readers.
func (t *Table) Lookup(a registrar.AOR) (User, bool) {
	if r := t.find(a); r != nil && !r.gone {
		return r.user, true
	}
	return User{}, false
}

// Len returns the number of users.
func (t *Table) Len() int { return int(t.size.Load()) }

// Counts returns the users per group. All of the pool's groups are in it.
func (t *Table) Counts() map[routing.Group]int { return t.groups.counts() }

// Damaged returns why the newest unreadable entry of the users table could not
// be read, or nil. Its user counts as not provisioned.
func (t *Table) Damaged() error {
	if err := t.damaged.Load(); err != nil {
		return *err
	}
	return nil
}

// All calls yield for each user, in no order, until it returns false.
func (t *Table) All(yield func(User) bool) {
	var batch []User
	for i := range t.shard {
		s := &t.shard[i]
		batch = batch[:0]
		s.mu.RLock()
		for _, r := range s.rows {
			if !r.gone {
				batch = append(batch, r.user)
			}
		}
		s.mu.RUnlock()
		for _, u := range batch {
			if !yield(u) {
				return
			}
		}
	}
}

// changed takes in one entry from the watch.
func (t *Table) changed(e bus.Entry) {
	a := registrar.AOR(e.Key)
	known := t.find(a)
	if e.Value == nil {
		t.put(a, &row{revision: e.Revision, gone: true}, true)
		if known != nil && !known.gone && known.revision < e.Revision {
			t.removed(known.user)
		}
		return
	}
	if known != nil && known.revision >= e.Revision {
		return // this process wrote it itself, or something newer
	}
	u, err := Decode(a, e.Value)
	if err != nil {
		t.damaged.Store(&err)
		t.put(a, &row{revision: e.Revision, gone: true}, true)
		return
	}
	t.put(a, &row{user: u, revision: e.Revision}, true)
	if known != nil && !known.gone && known.user.Group != u.Group {
		t.removed(known.user)
	}
}

// store takes in what this process itself has written at that revision.
func (t *Table) store(u User, revision bus.Revision) {
	t.put(u.AOR, &row{user: u, revision: revision}, false)
}

// forget takes in that this process has removed a user at that revision.
func (t *Table) forget(a registrar.AOR, revision bus.Revision) {
	t.put(a, &row{revision: revision, gone: true}, false)
}

// put replaces the user's row unless the present one is newer. What comes from
// the watch is in order, so nothing older follows a removal seen there.
func (t *Table) put(a registrar.AOR, next *row, watched bool) {
	next.newer = next.user.unknown != nil
	next.user.unknown = nil
	next.user.HA1 = shareNames(next.user.HA1, t.wants)
	next.user.Group = t.groups.name(next.user.Group)

	s := t.of(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.rows[a]
	if old != nil && (old.revision > next.revision || old.revision == next.revision && !watched) {
		return
	}
	if old != nil && !old.gone {
		t.groups.leave(old.user.Group)
		t.size.Add(-1)
	}
	if next.gone && watched {
		delete(s.rows, a)
		return
	}
	s.rows[a] = next
	if !next.gone {
		t.groups.arrive(a, next.user.Group)
		t.size.Add(1)
	}
}

func (t *Table) find(a registrar.AOR) *row {
	s := t.of(a)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rows[a]
}

func (t *Table) of(a registrar.AOR) *shard {
	return &t.shard[maphash.String(t.seed, string(a))%shards]
}

// shareNames copies HA1s, those that are wanted, with their names shared between all users.
func shareNames(ha1 map[string]string, wanted func(name string) bool) map[string]string {
	if len(ha1) == 0 {
		return nil
	}
	shared := make(map[string]string, len(ha1))
	for _, name := range ha1Names {
		if h, ok := ha1[name]; ok && wanted(name) {
			shared[name] = h
		}
	}
	for name, h := range ha1 {
		if ha1Size(name) == 0 && wanted(name) {
			shared[name] = h
		}
	}
	return shared
}

func all(string) bool { return true }
