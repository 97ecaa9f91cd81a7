package sipfront

import (
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		backlog, perSecond float64
		most               time.Duration
		want               uint32
	}{
		{8192, 0, 30 * time.Second, 30},      // nothing is answered: a promotion, or the bus is gone
		{8192, 0, time.Millisecond, 1},       // never 0
		{8192, 8000, 30 * time.Second, 2},    // full, and drained in a second
		{8192, 100000, 30 * time.Second, 1},  // just a peak
		{100000, 4000, 30 * time.Second, 25}, // a storm: as long as it takes
		{1000000, 4000, 30 * time.Second, 30},
		{0, 4000, 30 * time.Second, 1},
	} {
		if got := spread(c.backlog, c.perSecond, c.most); got != c.want {
			t.Errorf("spread(%v, %v, %v) = %d, want %d", c.backlog, c.perSecond, c.most, got, c.want)
		}
	}
}

// A steady 4,000 answers a second with 40,000 refused clients is found out within
// some seconds, and forgotten some time after.
func TestPace(t *testing.T) {
	var p pace
	refused := uint64(40_000)
	for range 10 { // 5 s
		p.finished.Add(2000)
		p.measure(refused, 8192, 30*time.Second)
	}
	if n := p.spread.Load(); n < 4 || n > 12 {
		t.Errorf("spread %d s", n)
	}
	for range 60 { // 30 s
		p.finished.Add(2000)
		p.measure(refused, 100, 30*time.Second)
	}
	if n := p.spread.Load(); n != 1 {
		t.Errorf("spread %d s when it is over", n)
	}
}
