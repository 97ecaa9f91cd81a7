package control

import (
	"context"
	"encoding/json"

	"rollcall/bus"
)

// Watch calls fn for each event of the pool, or each of these kinds, from one goroutine until ctx ends. It
// returns when it listens. What is no event of a known shape is left out.
func Watch(ctx context.Context, b bus.Bus, fn func(Event), kinds ...string) error {
	return b.Events(ctx, func(_ string, data []byte) {
		var e Event
		if json.Unmarshal(data, &e) == nil && e.Type != "" {
			fn(e)
		}
	}, kinds...)
}
