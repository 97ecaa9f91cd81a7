package phone

import "time"

// gap is the open gap of a phone: see Gap for what the times mean.
type gap struct {
	open     bool
	cause    string
	lost     time.Duration
	first    time.Duration
	attempts int
}

// openGap begins a gap, unless one is open: a phone is gone from the first loss on.
func (p *Phone) openGap(cause string, at time.Duration, out *Out) {
	if p.gap.open || p.quit {
		return
	}
	p.gap = gap{open: true, cause: cause, lost: at, first: Never}
	out.fact(Fact{Kind: FactGapOpen, Word: cause})
}

// tried notes the start of an attempt to return.
func (g *gap) tried(now time.Duration) {
	if !g.open {
		return
	}
	g.attempts++
	if g.first == Never {
		g.first = now
	}
}

// closeGap ends the open gap with a 200, if the REGISTER that it answers left after the
// loss: a 200 that was already on its way proves nothing.
func (p *Phone) closeGap(now time.Duration, out *Out) {
	if !p.gap.open || p.tx.lastSent < p.gap.lost {
		return
	}
	g := &p.gap
	if g.first == Never { // its REGISTER was in flight at the loss, and was sent again since
		g.first, g.attempts = p.tx.lastSent, 1
	}
	out.fact(Fact{Kind: FactGapClosed, Gap: p.row(now)})
	g.open = false
}

func (p *Phone) row(back time.Duration) Gap {
	return Gap{Client: int(p.index), Cause: p.gap.cause, Lost: p.gap.lost, First: p.gap.first, Back: back, Attempts: p.gap.attempts}
}

// OpenGap returns the gap that has not ended, if there is one.
func (p *Phone) OpenGap() (Gap, bool) { return p.row(Never), p.gap.open }
