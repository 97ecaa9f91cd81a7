package sipfront

import (
	"net/netip"
	"sync"
	"time"

	"rollcall/registrar"
)

// streams is the table of open connections.
type streams struct {
	mu     sync.Mutex
	byID   map[uint64]*conn
	last   uint64
	closed bool
}

// add gives a connection its number; not when there are max already or all are being closed.
func (t *streams) add(c *conn, max int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) >= max {
		return false
	}
	t.last++
	c.flow.ID = t.last
	t.byID[t.last] = c
	return true
}

func (t *streams) remove(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
}

func (t *streams) get(id uint64) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *streams) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

func (t *streams) all() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*conn, 0, len(t.byID))
	for _, c := range t.byID {
		list = append(list, c)
	}
	return list
}

// shut lets no new connection in and returns those that are open.
func (t *streams) shut() []*conn {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.all()
}

// keptKey is a UDP flow: the number of our socket, and the client's address.
type keptKey struct {
	socket int
	remote netip.AddrPort
}

// kept is the table of UDP flows with a registration. An entry whose time is
// past counts as gone, and is taken out when the table is counted or full.
type kept struct {
	mu    sync.Mutex
	max   int
	until map[keptKey]int64 // Unix nanoseconds
}

// set reports false when there is no room. It never shortens: of several registrations
// and subscriptions over one flow the longest counts.
func (t *kept) set(k keptKey, until, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until.IsZero() {
		delete(t.until, k)
		return true
	}
	if !until.After(now) || until.UnixNano() <= t.until[k] {
		return true
	}
	if _, ok := t.until[k]; !ok && len(t.until) >= t.max {
		if t.sweepLocked(now); len(t.until) >= t.max {
			return false
		}
	}
	t.until[k] = until.UnixNano()
	return true
}

func (t *kept) has(k keptKey, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until[k] > now.UnixNano()
}

func (t *kept) count(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(now)
	return len(t.until)
}

func (t *kept) sweepLocked(now time.Time) {
	n := now.UnixNano()
	for k, until := range t.until {
		if until <= n {
			delete(t.until, k)
		}
	}
}

// keptKey finds the socket of a UDP flow of this process.
func (s *Server) keptKey(flow registrar.Flow) (keptKey, *packetSocket, bool) {
	if flow.Stream() || flow.FrontEnd != s.cfg.FrontEnd || flow.Boot != s.cfg.Boot {
		return keptKey{}, nil, false
	}
	remote, err := netip.ParseAddrPort(flow.Remote)
	if err != nil {
		return keptKey{}, nil, false
	}
	for i, p := range s.packets {
		if p.local == flow.Local {
			return keptKey{i, remote}, p, true
		}
	}
	return keptKey{}, nil, false
}

// Keep notes that a UDP flow has a registration or a subscription until then, at least; the zero time forgets it.
func (s *Server) Keep(flow registrar.Flow, until time.Time) {
	if k, _, ok := s.keptKey(flow); ok && !s.kept.set(k, until, time.Now()) {
		s.count.drop(DropKept)
	}
}

// HasFlow reports whether the flow can be sent over: an open connection, or a kept UDP flow.
func (s *Server) HasFlow(flow registrar.Flow) bool {
	if flow.Stream() {
		return flow.FrontEnd == s.cfg.FrontEnd && flow.Boot == s.cfg.Boot && s.streams.get(flow.ID) != nil
	}
	k, _, ok := s.keptKey(flow)
	return ok && s.kept.has(k, time.Now())
}

// Flows counts open connections and UDP flows with a registration.
func (s *Server) Flows() int { return s.streams.len() + s.kept.count(time.Now()) }

// CloseFlow closes one connection, with a reset if asked. It reports whether it was open.
func (s *Server) CloseFlow(id uint64, reset bool) bool {
	c := s.streams.get(id)
	if c == nil {
		return false
	}
	c.close(reset)
	return true
}

// CloseFlows closes the connections that are open now, one each pause, and
// returns when all are closed or the server is.
func (s *Server) CloseFlows(pause time.Duration, reset bool) {
	for i, c := range s.streams.all() {
		if i > 0 && pause > 0 {
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				return
			}
		}
		c.close(reset)
	}
}
