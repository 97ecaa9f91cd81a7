package frontend

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// carried is a NOTIFY on its way from the primary to the Front End that has the watcher's flow.
type carried struct {
	Flow    registrar.Flow `cbor:"1,keyasint"`
	URI     string         `cbor:"2,keyasint"`
	Headers [][2]string    `cbor:"3,keyasint"` // name, value
	Body    []byte         `cbor:"4,keyasint"`
}

// carryFor is longer than a client transaction takes to give up (timer F, 32 s).
const carryFor = 40 * time.Second

// sendNotice sends a NOTIFY by the flow of its SUBSCRIBE, wherever that is.
func (f *FrontEnd) sendNotice(ctx context.Context, user registrar.AOR, n registrar.Notice) outcome {
	fe, flow, ok := f.carrier(n.Subscription.Flow)
	if !ok {
		return gone
	}
	c := carried{Flow: flow}
	var headers []registrar.Header
	var err error
	if c.URI, headers, c.Body, err = n.Request(user, time.Now()); err != nil {
		f.log.Error("a NOTIFY cannot be written", "aor", user, "err", err)
		return gone
	}
	for _, h := range headers {
		c.Headers = append(c.Headers, [2]string{h.Name, h.Value})
	}
	ctx, cancel := context.WithTimeout(ctx, carryFor)
	defer cancel()
	if fe == f.cfg.Name {
		return f.carry(ctx, c)
	}
	data, err := cbor.Marshal(c)
	if err != nil {
		f.log.Error("a NOTIFY cannot be handed on", "aor", user, "err", err)
		return gone
	}
	answer, err := f.bus.Request(ctx, string(fe), control.VerbNotify, data)
	if err != nil || len(answer) != 1 {
		return failed
	}
	return outcome(answer[0])
}

// carrier finds the Front End that a flow can be sent over by. A connection ends with its
// process; a UDP address that several Front Ends share outlives each of them.
func (f *FrontEnd) carrier(flow registrar.Flow) (routing.FrontEnd, registrar.Flow, bool) {
	fe := routing.FrontEnd(flow.FrontEnd)
	if f.isAlive(fe, flow.Boot) {
		return fe, flow, true
	}
	if flow.Stream() {
		return "", flow, false
	}
	members := f.view.Load().placement.Members
	candidates := make([]routing.FrontEnd, 0, len(members)+1)
	for name := range members {
		candidates = append(candidates, name)
	}
	slices.Sort(candidates)
	for _, name := range append([]routing.FrontEnd{f.cfg.Name}, candidates...) {
		m, ok := f.address(name)
		if ok && f.isAlive(name, m.Boot) && slices.Contains(m.SIP, flow.Transport+":"+flow.Local) {
			flow.FrontEnd, flow.Boot = string(name), m.Boot
			return name, flow, true
		}
	}
	return "", flow, false
}

// isAlive: that process of the Front End is not known to be gone.
func (f *FrontEnd) isAlive(fe routing.FrontEnd, boot string) bool {
	if fe == f.cfg.Name {
		return boot == f.cfg.Boot
	}
	if m := f.view.Load().placement.Members[fe]; m.Boot == boot {
		return m.State != routing.Down
	}
	m, ok := f.address(fe) // it may be joining
	return ok && m.Boot == boot
}

// carry sends a NOTIFY over a flow of this Front End.
func (f *FrontEnd) carry(ctx context.Context, c carried) outcome {
	headers := make([]registrar.Header, len(c.Headers))
	for i, h := range c.Headers {
		headers[i] = registrar.Header{Name: h[0], Value: h[1]}
	}
	f.sip.Keep(c.Flow, time.Now().Add(carryFor)) // the primary answers for it that there is a subscription
	status, err := f.sip.SendTo(ctx, c.Flow, "NOTIFY", c.URI, headers, c.Body)
	switch {
	case errors.Is(err, sipfront.ErrBusy):
		return busy
	case errors.Is(err, sipfront.ErrFlowGone) || errors.Is(err, sipfront.ErrNotHere):
		return gone
	case err != nil:
		return failed
	case status < 300:
		return arrived
	}
	switch status {
	case 408, 500, 503, 504:
		return failed
	}
	return gone
}

// carryElsewhere answers another Front End's carried with one byte, its outcome.
func (f *FrontEnd) carryElsewhere(ctx context.Context, r bus.Request) {
	var c carried
	if err := cbor.Unmarshal(r.Data, &c); err != nil {
		f.log.Error("a NOTIFY of another Front End cannot be read", "err", err)
		_ = r.Respond([]byte{byte(failed)})
		return
	}
	select {
	case f.notices.carrying <- struct{}{}:
	default:
		_ = r.Respond([]byte{byte(busy)})
		return
	}
	f.work.Go(func() {
		defer func() { <-f.notices.carrying }()
		ctx, cancel := context.WithTimeout(ctx, carryFor)
		defer cancel()
		_ = r.Respond([]byte{byte(f.carry(ctx, c))}) // if it is lost, it counts as failed there
	})
}
