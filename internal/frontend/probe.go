package frontend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"syscall"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/routing"
)

// pinger returns the function that sends a peer one ping over the bus. Pings are
// short and overlap, since a ping that is under way when its process dies is
// answered by nobody, while the next one is refused at once.
func (m *membership) pinger(ctx context.Context) func(*peer) {
	m.ping = func(p *peer) {
		if p.pinging >= pingsAtOnce {
			return
		}
		p.pinging++
		fe := p.Member.Name
		m.probes.Go(func() {
			pctx, cancel := context.WithTimeout(ctx, m.cfg.Rules.PingTimeout)
			defer cancel()
			_, err := m.bus.Request(pctx, string(fe), control.VerbPing, nil)
			m.post(ctx, func(now time.Time) { m.pinged(fe, err, now) })
		})
	}
	return m.ping
}

func (m *membership) pingNow(p *peer) {
	if m.ping != nil {
		m.ping(p)
	}
}

func (m *membership) pinged(fe routing.FrontEnd, err error, now time.Time) {
	p := m.peers[fe]
	if p == nil {
		return
	}
	p.pinging--
	switch {
	case err == nil:
		p.Ping = routing.Probe{At: now, Outcome: routing.Answered}
		p.NobodySince = time.Time{}
	case errors.Is(err, bus.ErrNobodyThere):
		p.Ping = routing.Probe{At: now, Outcome: routing.NobodyThere}
		if p.NobodySince.IsZero() {
			p.NobodySince = now
		}
	case errors.Is(err, bus.ErrUnavailable):
		// says something of us, not of it
	default:
		if p.Ping.Outcome != routing.NobodyThere { // an older ping's silence says less than a newer refusal
			p.Ping = routing.Probe{At: now, Outcome: routing.NoAnswer}
		}
	}
}

const healthTimeout = 200 * time.Millisecond

// health is what the health port says to everybody who connects, as one line of JSON.
type health struct {
	FrontEnd routing.FrontEnd `json:"frontend"`
	Boot     string           `json:"boot"`
	State    routing.State    `json:"state"`
	Bus      bool             `json:"bus"` // it is connected to the bus
}

// askHealth asks a peer's health port, which does not depend on the bus.
func (m *membership) askHealth(ctx context.Context, p *peer) {
	address := m.health(p.Member.Name)
	if p.asking || address == "" {
		return
	}
	p.asking = true
	fe := p.Member.Name
	m.probes.Go(func() {
		outcome, h := askHealth(ctx, m.net, address)
		m.post(ctx, func(now time.Time) {
			p := m.peer(fe, now)
			p.asking = false
			p.Health = routing.Probe{At: now, Outcome: outcome}
			p.hasBus = outcome == routing.Answered && h.Bus
			if outcome == routing.Answered && h.FrontEnd != fe {
				p.Health.Outcome = routing.Refused // another process has that port now
			}
		})
	})
}

func askHealth(ctx context.Context, n Net, address string) (routing.Outcome, health) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	c, err := n.Dial(ctx, address)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return routing.Refused, health{}
		}
		return routing.NoAnswer, health{}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(healthTimeout))
	line, err := bufio.NewReaderSize(c, 512).ReadSlice('\n')
	var h health
	if err != nil || json.Unmarshal(line, &h) != nil {
		if errors.Is(err, syscall.ECONNRESET) {
			return routing.Refused, health{} // it died with our connection in its queue
		}
		return routing.NoAnswer, health{}
	}
	return routing.Answered, h
}

// serveHealth answers the health port until ctx ends, one after the other.
func (f *FrontEnd) serveHealth(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			f.log.Warn("the health port did not accept a connection", "err", err)
			pause(ctx, 50*time.Millisecond)
			continue
		}
		line, _ := json.Marshal(health{FrontEnd: f.cfg.Name, Boot: f.cfg.Boot, State: f.members.state(), Bus: f.bus.Connected()})
		_ = c.SetDeadline(time.Now().Add(healthTimeout))
		_, _ = c.Write(append(line, '\n'))
		c.Close()
	}
}
