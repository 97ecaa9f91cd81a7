package sipfront

import (
	"hash/fnv"
	"io"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"rollcall/registrar"
)

// sweepEvery is how often the server looks for requests that wait long, and at its own pace.
const sweepEvery = 500 * time.Millisecond

// pace is how fast REGISTERs are answered, for the Retry-After of those that are refused.
type pace struct {
	finished atomic.Uint64
	spread   atomic.Uint32 // s; a Retry-After is 1 up to this

	// Owned by sweep.
	perSecond, returning          float64
	finishedBefore, refusedBefore uint64
}

// measure is called each sweepEvery.
func (p *pace) measure(refused uint64, inFlight int, most time.Duration) {
	finished := p.finished.Load()
	rate := float64(finished-p.finishedBefore) / sweepEvery.Seconds()
	// Both look back some seconds: about as long as a refused client stays away.
	p.perSecond += (rate - p.perSecond) * 0.2
	p.returning = p.returning*0.9 + float64(refused-p.refusedBefore)
	p.finishedBefore, p.refusedBefore = finished, refused
	p.spread.Store(spread(float64(inFlight)+p.returning, p.perSecond, most))
}

// spread is over how many seconds clients must return so that they find places:
// the time it takes to answer what is here and what will come back.
func spread(backlog, perSecond float64, most time.Duration) uint32 {
	limit := math.Max(1, most.Seconds())
	if perSecond < 1 {
		return uint32(limit)
	}
	return uint32(math.Min(limit, math.Max(1, math.Ceil(backlog/perSecond))))
}

// overload is the answer of admission. Each client gets its own Retry-After, so
// that they don't all return at once; never 0, which some answer with a flood.
func (s *Server) overload(m *message) registrar.Reply {
	h := fnv.New32a()
	_, _ = io.WriteString(h, m.origin.Remote+m.callID.value+m.cseq.value)
	return registrar.Reply{
		Status: 503, Reason: "Service Unavailable: too much at once",
		Headers: []registrar.Header{{Name: "Retry-After", Value: strconv.Itoa(int(1 + h.Sum32()%s.pace.spread.Load()))}},
	}
}
