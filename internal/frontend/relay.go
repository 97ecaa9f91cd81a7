package frontend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"

	"rollcall/internal/directory"
)

// relayed is a REGISTER on its way from the Front End that took it to the primary.
type relayed struct {
	Flow  registrar.Flow `cbor:"1,keyasint"`
	Raw   []byte         `cbor:"2,keyasint"` // the complete request, as received
	Epoch routing.Epoch  `cbor:"3,keyasint"` // of the placement by which it was sent here
	Until int64          `cbor:"4,keyasint"` // Unix milliseconds: nobody waits for an answer after it
}

// relayedAnswer is the primary's answer. Without a response the Front End asked is
// not the primary (any more): look again.
type relayedAnswer struct {
	Response []byte       `cbor:"1,keyasint,omitempty"` // the complete response
	Until    int64        `cbor:"2,keyasint,omitempty"` // see answered
	Busy     bool         `cbor:"3,keyasint,omitempty"` // too many are under way: refuse the client
	At       bus.Position `cbor:"4,keyasint,omitempty"` // see answered
}

// relay hands a REGISTER to the primary and returns its answer. False: the primary
// did not answer it, or the group moved meanwhile; wait for the gate and look again.
func (f *FrontEnd) relay(ctx context.Context, in *sipfront.Inbound, user directory.User, primary routing.FrontEnd, gate context.Context) (answered, bool) {
	deadline, _ := ctx.Deadline()
	data, err := cbor.Marshal(relayed{Flow: in.Flow(), Raw: in.Raw, Epoch: f.view.Load().epoch(), Until: deadline.UnixMilli()})
	if err != nil {
		f.log.Error("a REGISTER cannot be relayed", "err", err)
		return answered{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, relayAgain)
	defer cancel()
	defer context.AfterFunc(gate, cancel)() // the group moved: the old primary may never answer
	data, err = f.bus.Request(ctx, string(primary), control.VerbRegister, data)
	if err != nil {
		if errors.Is(err, bus.ErrNobodyThere) {
			f.members.accuse(primary)
		}
		return answered{}, false
	}
	var a relayedAnswer
	if err := cbor.Unmarshal(data, &a); err != nil {
		f.log.Error("a relayed REGISTER was answered with nonsense", "primary", primary, "err", err)
		return answered{}, false
	}
	if a.Busy {
		return answered{response: in.Render(f.unavailable())}, true
	}
	return answered{response: a.Response, until: a.Until, at: a.At}, len(a.Response) > 0
}

// relayAgain is how long an answer to a relayed REGISTER is awaited before it is
// sent once more: the bus may have lost either. The primary takes it for a retransmission.
const relayAgain = 5 * time.Second

// atWork answers a request of another Front End away from the bus's goroutine, within
// the bound on such work; beyond it the answer is busy.
func (f *FrontEnd) atWork(r bus.Request, work func() []byte, busy []byte) {
	select {
	case f.relaySlots <- struct{}{}:
	default:
		_ = r.Respond(busy) // if it is lost, the other side asks again
		return
	}
	f.work.Go(func() {
		defer func() { <-f.relaySlots }()
		_ = r.Respond(work()) // likewise
	})
}

// relayedRegister answers a REGISTER that another Front End took.
func (f *FrontEnd) relayedRegister(ctx context.Context, r bus.Request) {
	f.atWork(r, func() []byte {
		a, err := f.answerRelayed(ctx, r.Data)
		if err != nil {
			f.log.Error("a relayed REGISTER could not be answered", "err", err)
		}
		return encodeAnswer(relayedAnswer{Response: a.response, Until: a.until, At: a.at})
	}, encodeAnswer(relayedAnswer{Busy: true}))
}

func encodeAnswer(a relayedAnswer) []byte {
	data, err := cbor.Marshal(a)
	if err != nil {
		return nil // an answer without a response
	}
	return data
}

func (f *FrontEnd) answerRelayed(ctx context.Context, data []byte) (answered, error) {
	var r relayed
	if err := cbor.Unmarshal(data, &r); err != nil {
		return answered{}, fmt.Errorf("read it: %w", err)
	}
	ctx, cancel := context.WithDeadline(ctx, time.UnixMilli(r.Until))
	defer cancel()
	in, refusal, err := sipfront.Parse(r.Raw, r.Flow)
	if err != nil {
		return answered{response: refusal}, nil
	}
	f.adopt(&in.Request)
	user, ok := f.users.Lookup(in.Request.AOR)
	for ; !ok || f.view.Load().epoch() < r.Epoch; user, ok = f.users.Lookup(in.Request.AOR) {
		// The other side knows a newer placement or user: it is on its way to us, too.
		pause(ctx, behindRetry)
		if ctx.Err() != nil {
			return answered{}, nil
		}
	}
	return f.answer(ctx, in, user, true), nil
}

// behindRetry is how soon a Front End looks again for what another one knew before it.
const behindRetry = 2 * time.Millisecond
