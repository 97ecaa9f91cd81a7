package sim

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/bus/membus"
)

// admin is the name of the simulator's own connections, which are faster than all others:
// it sees what is stored before whoever stored it hears of it.
const admin = "admin"

// busLinks are the ways between the Front Ends and the bus.
type busLinks struct {
	seed uint64

	mu     sync.Mutex // guards the following
	frozen map[string]time.Time
	lose   float64           // share of acknowledgements lost
	writes map[string]uint64 // numbers the writes of each connection and key
}

func newBusLinks(seed uint64) *busLinks {
	return &busLinks{seed: seed, frozen: map[string]time.Time{}, writes: map[string]uint64{}}
}

// latency of a message. To and from a frozen process nothing comes before it goes on.
func (b *busLinks) latency(from, to string) time.Duration {
	if from == admin || to == admin {
		return 0
	}
	d := 150*time.Microsecond + time.Duration(b.hash(from, to)%100_000)
	if from == membus.Store || to == membus.Store {
		d += 50 * time.Microsecond
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, end := range [...]string{from, to} {
		if until, ok := b.frozen[end]; ok {
			if left := time.Until(until); left > 0 {
				d = max(d, left+d)
			} else {
				delete(b.frozen, end)
			}
		}
	}
	return d
}

func (b *busLinks) freeze(conn string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frozen[conn] = time.Now().Add(d)
}

func (b *busLinks) setLose(share float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose = share
}

func (b *busLinks) loseAck(conn, key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lose <= 0 || strings.HasPrefix(conn, admin) {
		return false
	}
	b.writes[conn+" "+key]++
	n := b.writes[conn+" "+key]
	return float64(b.hash(conn, key, string(binary.BigEndian.AppendUint64(nil, n)))>>11)/(1<<53) < b.lose
}

func (b *busLinks) hash(parts ...string) uint64 { return hash(b.seed, parts...) }

// hash draws a number from names, the same whenever it is asked for.
func hash(seed uint64, parts ...string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return scatter(h.Sum64())
}

func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// source is where a Front End's nonces come from: as many as it likes, the same in every run.
type source struct {
	seed uint64
	n    atomic.Uint64
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		copy(b[i:], binary.BigEndian.AppendUint64(nil, scatter(s.seed^s.n.Add(1))))
	}
	return len(b), nil
}
