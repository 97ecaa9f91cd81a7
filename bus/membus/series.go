package membus

import (
	"cmp"
	"slices"
	"time"
)

// item is the newest write of one key: an entry of a table or a record of the log.
type item struct {
	group    string // of a log record
	key      string
	pos      uint64
	value    []byte // nil: a deleted entry
	storedAt time.Time
	expires  time.Time // zero: never
	replaced bool      // a newer one stands
}

func (it *item) standsAt(now time.Time) bool {
	return !it.replaced && (it.expires.IsZero() || now.Before(it.expires))
}

// series holds the newest item of each key, in the order they were written. Replaced
// and expired items are swept out when the order has grown to twice what stood after
// the last sweep, so that a write costs the same however many keys there are.
type series struct {
	latest  map[string]*item
	order   []*item // by pos
	sweepAt int     // length of order at which to sweep
}

const sweepMin = 64

func newSeries() *series {
	return &series{latest: make(map[string]*item), sweepAt: sweepMin}
}

// get returns the item that stands for key, or nil.
func (s *series) get(key string, now time.Time) *item {
	if it := s.latest[key]; it != nil && it.standsAt(now) {
		return it
	}
	return nil
}

// put adds the newest item of all.
func (s *series) put(it *item, now time.Time) {
	if old := s.latest[it.key]; old != nil {
		old.replaced = true
	}
	s.latest[it.key] = it
	s.order = append(s.order, it)
	if len(s.order) >= s.sweepAt {
		s.sweep(now)
	}
}

func (s *series) sweep(now time.Time) {
	s.order = slices.DeleteFunc(s.order, func(it *item) bool {
		if it.standsAt(now) {
			return false
		}
		if s.latest[it.key] == it {
			delete(s.latest, it.key)
		}
		return true
	})
	s.sweepAt = max(sweepMin, 2*len(s.order))
}

// head is the position of the newest item that stands, or 0.
func (s *series) head(now time.Time) uint64 {
	for _, it := range slices.Backward(s.order) {
		if it.standsAt(now) {
			return it.pos
		}
	}
	return 0
}

// after appends to batch up to limit standing items behind pos that are wanted (nil: all), in order.
func (s *series) after(batch []*item, pos uint64, limit int, now time.Time, wanted func(*item) bool) []*item {
	from, _ := slices.BinarySearchFunc(s.order, pos+1, func(it *item, p uint64) int { return cmp.Compare(it.pos, p) })
	for _, it := range s.order[from:] {
		if limit == 0 {
			break
		}
		if it.standsAt(now) && (wanted == nil || wanted(it)) {
			batch = append(batch, it)
			limit--
		}
	}
	return batch
}
