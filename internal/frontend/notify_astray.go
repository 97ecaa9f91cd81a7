package frontend

import (
	"context"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sync/errgroup"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// At a UDP address that several Front Ends share, the answer to a NOTIFY may be read by
// another one than sent it: it goes over the bus to the one that did.

const (
	strayQueue   = 1024 // beyond it answers are dropped; the NOTIFY is sent again, and answered again
	straysAtOnce = 64
)

// stray is a sipfront.Astray on its way.
type stray struct {
	Branch string         `cbor:"1,keyasint"`
	Method string         `cbor:"2,keyasint"`
	Status int            `cbor:"3,keyasint"`
	Flow   registrar.Flow `cbor:"4,keyasint"`
}

// astray is told by the SIP side.
func (f *FrontEnd) astray(a sipfront.Astray) {
	select {
	case f.notices.strays <- a:
	default:
	}
}

// passOn hands strays on until ctx ends.
func (f *FrontEnd) passOn(ctx context.Context) error {
	g := errgroup.Group{}
	g.SetLimit(straysAtOnce)
	defer g.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-f.notices.strays:
			if !f.isMember(a.FrontEnd) {
				continue
			}
			data, err := cbor.Marshal(stray{a.Branch, a.Method, a.Status, a.Flow})
			if err != nil {
				continue
			}
			g.Go(func() error {
				ctx, cancel := context.WithTimeout(ctx, tellWithin)
				defer cancel()
				_, _ = f.bus.Request(ctx, a.FrontEnd, control.VerbAnswer, data) // who is gone needs no answer
				return nil
			})
		}
	}
}

// answeredElsewhere takes an answer that another Front End read. It does not block.
func (f *FrontEnd) answeredElsewhere(r bus.Request) {
	var s stray
	if err := cbor.Unmarshal(r.Data, &s); err != nil {
		f.log.Error("an answer that went astray cannot be read", "err", err)
	} else if f.open.Load() {
		f.sip.Answered(sipfront.Astray{FrontEnd: string(f.cfg.Name), Branch: s.Branch, Method: s.Method, Status: s.Status, Flow: s.Flow})
	}
	_ = r.Respond([]byte{1}) // nobody waits for long
}

// isMember: what a branch names is anybody's word.
func (f *FrontEnd) isMember(name string) bool {
	_, ok := f.view.Load().placement.Members[routing.FrontEnd(name)]
	return ok
}
