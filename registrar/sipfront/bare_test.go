package sipfront

import (
	"context"

	"rollcall/registrar"
)

// bare answers 200 and remembers nothing.
type bare struct{}

func newBare() bare { return bare{} }

func (bare) Register(_ context.Context, in *Inbound) []byte {
	return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
}
func (b bare) Subscribe(ctx context.Context, in *Inbound) []byte { return b.Register(ctx, in) }

func (bare) FlowOpened(registrar.Flow) {}
func (bare) FlowClosed(registrar.Flow) {}
