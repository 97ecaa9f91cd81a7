package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

func counts(n ...int) string {
	var s []string
	for _, v := range n {
		s = append(s, fmt.Sprint(v))
	}
	return strings.Join(s, "/")
}

// eventually waits until problem returns "", within a virtual time; otherwise the pool is broken.
func (p *Pool) eventually(within time.Duration, problem func() string) bool {
	const look = 20 * time.Millisecond
	end := time.Now().Add(within)
	for {
		what := problem()
		if what == "" {
			return true
		}
		if !time.Now().Before(end) {
			p.fail("not within %v: %s", within, what)
			return false
		}
		time.Sleep(look)
	}
}

// Settle waits until every Front End that runs is a member, all act on the newest
// placement, and every group is served.
func (p *Pool) Settle(within time.Duration) bool {
	p.t.Helper()
	return p.eventually(within, p.unsettled)
}

// unsettled says what is not settled, "" when all is.
func (p *Pool) unsettled() string {
	place := p.observer.current()
	up := map[routing.FrontEnd]string{}
	for _, f := range p.up() {
		up[f.name] = f.run.boot
	}
	for fe, m := range place.Members {
		if m.State == routing.Up && up[fe] != m.Boot {
			return fmt.Sprintf("epoch %d counts %s (%s) as up", place.Epoch, fe, m.Boot)
		}
	}
	for _, fe := range slices.Sorted(maps.Keys(up)) {
		if m := place.Members[fe]; m.State != routing.Up || m.Boot != up[fe] {
			return fmt.Sprintf("epoch %d has %s (%s) as %q", place.Epoch, fe, up[fe], m.State)
		}
		s, err := p.observer.status(fe)
		if err != nil {
			return fmt.Sprintf("%s does not answer: %v", fe, err)
		}
		if s.Epoch != place.Epoch || s.State != routing.Up {
			return fmt.Sprintf("%s is %s and acts on epoch %d of %d", fe, s.State, s.Epoch, place.Epoch)
		}
		for g, c := range place.Groups {
			if n, ok := s.Groups[g]; ok != (c.Primary == fe) || ok && !n.Ready {
				return fmt.Sprintf("%s serves %s: %v, ready %v; its primary is %s", fe, g, ok, n.Ready, c.Primary)
			}
		}
	}
	if err := place.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// CheckLog judges the newest record of every user, as the bus has it.
func (p *Pool) CheckLog() {
	ctx, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	for _, u := range p.users {
		set, err := p.read(ctx, u)
		if errors.Is(err, bus.ErrUnavailable) {
			return // no bus, so nothing can be read, nor acknowledged
		}
		if err != nil {
			p.fail("the record of %s: %v", u.aor, err)
			return
		}
		p.model.check("the log", u.aor, set)
	}
}

func (p *Pool) read(ctx context.Context, u user) (registrar.Set, error) {
	r, err := p.observer.conn.Bindings().Last(ctx, string(u.group), string(u.aor))
	if errors.Is(err, bus.ErrNotFound) {
		return registrar.Set{}, nil
	}
	if err != nil {
		return registrar.Set{}, err
	}
	return registrar.DecodeSet(r.Data)
}

// CheckStep is what can be checked at any time, whatever is broken just now.
func (p *Pool) CheckStep() {
	p.CheckLog()
	for _, f := range p.up() {
		_, _ = p.observer.status(f.name) // judged by observer; who is cut off says nothing
	}
}

// CheckCopies waits until every copy of a settled pool has what the log has.
func (p *Pool) CheckCopies(within time.Duration) {
	for _, u := range p.users {
		p.eventually(within, func() string { return p.differs(u) })
	}
}

// differs says which copy of a user is not what the log has.
func (p *Pool) differs(u user) string {
	set, err := p.read(p.ctx, u)
	if err != nil {
		return err.Error()
	}
	want := bindings(set.Live(time.Now(), p.cfg.Policy.Grace))
	copies := p.observer.current().Groups[u.group]
	for _, fe := range copies.List() {
		var x control.Explanation
		if err := p.observer.ask(fe, control.VerbExplain, []byte(u.aor), &x); err != nil {
			return fmt.Sprintf("%s does not explain %s: %v", fe, u.aor, err)
		}
		got := map[string]string{}
		for _, b := range x.Bindings {
			got[b.Contact] = fmt.Sprintf("%s %d at %s", b.CallID, b.CSeq, b.Flow.FrontEnd)
		}
		if !maps.Equal(got, want) || x.Group != u.group || x.Primary == nil || *x.Primary != copies.Primary {
			return fmt.Sprintf("%s has of %s %v, the log has %v", fe, u.aor, got, want)
		}
	}
	return ""
}

func bindings(of []registrar.Binding) map[string]string {
	m := map[string]string{}
	for _, b := range of {
		m[b.URI] = fmt.Sprintf("%s %d at %s", b.CallID, b.CSeq, b.Flow.FrontEnd)
	}
	return m
}

// Recover waits until every phone that runs by itself has registered again from now on.
func (p *Pool) Recover(within time.Duration) bool {
	from := time.Now()
	for _, ph := range p.phones {
		ph.Wake()
	}
	return p.eventually(within, func() string {
		n, first := 0, ""
		for _, ph := range p.phones {
			if !ph.Last().After(from) {
				if n++; first == "" {
					first = ph.name
				}
			}
		}
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%d phones have not refreshed, as %s", n, first)
	})
}

// CheckAll settles the pool and checks everything.
func (p *Pool) CheckAll(within time.Duration) {
	p.t.Helper()
	if p.Settle(within) {
		p.CheckLog()
		p.CheckCopies(3 * time.Second)
	}
}
