package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"rollcall/bus"
)

// keptKeys is how many keys of before are still accepted.
const keptKeys = 2

// RotateKey gives the pool a new key. Front Ends take it over as they see it; nonces and
// temporary GRUUs made with the last keptKeys keys go on to be accepted, so that no client notices.
func RotateKey(ctx context.Context, pool bus.Table) error {
	for range 10 { // each failure means that another process has just written
		s, revision, err := readSettings(ctx, pool)
		if err != nil {
			return err
		}
		s.PreviousKeys = append([][]byte{s.Key}, s.PreviousKeys...)
		s.PreviousKeys = s.PreviousKeys[:min(keptKeys, len(s.PreviousKeys))]
		s.Key = make([]byte, 32)
		rand.Read(s.Key) // never fails
		value, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = pool.Put(ctx, bus.Write{Key: SettingsKey, Value: value, Expect: revision})
		if err == nil {
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return fmt.Errorf("store the pool's new key: %w", err)
		}
	}
	return fmt.Errorf("store the pool's new key: %w", bus.ErrConflict)
}
