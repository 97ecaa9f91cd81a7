package frontend

import (
	"encoding/json"
	"fmt"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// status is this Front End's account of itself.
func (f *FrontEnd) status() control.FrontEndStatus {
	s := control.FrontEndStatus{
		Name: f.cfg.Name, State: f.members.state(), Pid: f.cfg.Pid, Boot: f.cfg.Boot, Zone: f.cfg.Zone,
		SIP: []string{}, Health: f.healthAddress,
		Epoch: f.view.Load().epoch(), Groups: map[routing.Group]control.GroupCount{},
	}
	if f.open.Load() {
		s.SIP, s.Flows = f.sip.Addresses(), f.sip.Flows()
	}
	users := f.users.Counts()
	for g, c := range f.held() {
		if f.isPrimary(g) {
			_, bindings := c.counts()
			s.Groups[g] = control.GroupCount{Bindings: bindings, Users: users[g], Ready: c.ready.Load()}
		}
	}
	return s
}

// explain says where a user is and why, and what he has registered, as this Front End knows it.
func (f *FrontEnd) explain(aor registrar.AOR) (control.Explanation, error) {
	user, ok := f.users.Lookup(aor)
	if !ok {
		return control.Explanation{}, fmt.Errorf("there is no user %s", aor)
	}
	v := f.view.Load()
	c := v.copies(user.Group)
	e := control.Explanation{
		AOR: aor, Group: user.Group, Epoch: v.epoch(), Why: f.whyPrimary(user.Group, c),
		Primary: present(c.Primary), Secondary: present(c.Secondary), Tertiary: present(c.Tertiary),
		Bindings: []control.Binding{},
	}
	own := f.held()[user.Group]
	if own == nil {
		return e, fmt.Errorf("%s holds no copy of %s", f.cfg.Name, user.Group)
	}
	data, _ := own.get(aor)
	set, err := f.decode(aor, data)
	if err != nil {
		return e, err
	}
	now := time.Now()
	for _, b := range set.Live(now, f.cfg.Policy.Grace) {
		e.Bindings = append(e.Bindings, control.Binding{
			Contact: b.URI, ExpiresIn: max(0, int(b.Expires.Sub(now)/time.Second)), CallID: b.CallID, CSeq: b.CSeq,
			UserAgent: b.UserAgent, Path: b.Path, Flow: b.Flow,
		})
	}
	return e, nil
}

// whyPrimary says why a group's primary is where it is, as far as this Front End saw it happen.
func (f *FrontEnd) whyPrimary(g routing.Group, c routing.Copies) string {
	if w, ok := f.why.Load(g); ok && w.(control.Why).Primary == c.Primary {
		return fmt.Sprintf("%s (epoch %d)", w.(control.Why).Words, w.(control.Why).Epoch)
	}
	if c.Primary == "" {
		return "no Front End can hold it now"
	}
	return fmt.Sprintf("%s was primary before %s started", c.Primary, f.cfg.Name)
}

func present(fe routing.FrontEnd) *routing.FrontEnd {
	if fe == "" {
		return nil
	}
	return &fe
}

// answer to a question of the control package: JSON, or an error as {"error":"…"}.
func reply(r bus.Request, v any, err error) {
	if err != nil {
		v = struct {
			Error string `json:"error"`
		}{err.Error()}
	}
	if data, err := json.Marshal(v); err == nil {
		_ = r.Respond(data) // who asked has gone
	}
}
