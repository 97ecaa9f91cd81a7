package measure

import "maps"

// Merge adds all of o, which is not used afterwards. Phases are matched by their order.
func (d *Data) Merge(o *Data) {
	if d.Width == 0 {
		d.Width = o.Width
	}
	for i, p := range o.Phases {
		if i == len(d.Phases) {
			d.Phases = append(d.Phases, newPhase(p.Name, p.From))
		}
		d.Phases[i].Merge(p)
	}
	for i, b := range o.Series {
		if i == len(d.Series) {
			d.Series = append(d.Series, Bucket{})
		}
		s := &d.Series[i]
		s.Bound += b.Bound
		s.Attempts += b.Attempts
		s.OK += b.OK
		s.Failed += b.Failed
		s.Lost += b.Lost
	}
	d.Gaps = append(d.Gaps, o.Gaps...)
	d.GapsDropped += o.GapsDropped
}

// Merge adds the counts of o.
func (p *Phase) Merge(o *Phase) {
	p.From, p.To = min(p.From, o.From), max(p.To, o.To)
	p.Attempts += o.Attempts
	p.ReAttempts += o.ReAttempts
	p.OK += o.OK
	p.ReOK += o.ReOK
	p.Sent += o.Sent
	p.Resent += o.Resent
	p.Parked += o.Parked
	p.Removed += o.Removed
	add(p.Failed, o.Failed)
	add(p.ConnectFail, o.ConnectFail)
	add(p.Responses, o.Responses)
	add(p.Odd, o.Odd)
	add(p.Lost, o.Lost)
	add(p.Requests, o.Requests)
	p.Register.Merge(&o.Register)
	p.ReRegister.Merge(&o.ReRegister)
	p.Connect.Merge(&o.Connect)
	p.Lag.Merge(&o.Lag)
	p.First.Merge(o.First)
	p.Re.Merge(o.Re)
}

func add(to, from map[string]int) {
	for k, v := range maps.All(from) {
		to[k] += v
	}
}

// Total adds all phases up.
func (d *Data) Total() *Phase {
	t := newPhase("all", 0)
	for _, p := range d.Phases {
		t.Merge(p)
	}
	return t
}
