package control

import (
	"bytes"
	"errors"
	"testing"

	"rollcall/bus"
)

// A rotation changes the key and nothing else, and keeps the last two.
func TestRotateKey(t *testing.T) {
	b := connect(t)
	if err := RotateKey(t.Context(), b.Pool()); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("without a pool: %v", err)
	}
	first, err := EnsureSettings(t.Context(), b.Pool(), Settings{Groups: 7})
	if err != nil {
		t.Fatal(err)
	}
	keys := [][]byte{first.Key}
	for range 3 {
		if err := RotateKey(t.Context(), b.Pool()); err != nil {
			t.Fatal(err)
		}
		s, err := EnsureSettings(t.Context(), b.Pool(), Settings{Expect: 4}) // who comes later keeps them
		if err != nil {
			t.Fatal(err)
		}
		if s.Groups != 7 || s.Expect != 4 || len(s.Key) != 32 || bytes.Equal(s.Key, keys[0]) {
			t.Errorf("%s", s)
		}
		keys = append([][]byte{s.Key}, keys...)
		for i, k := range s.PreviousKeys {
			if !bytes.Equal(k, keys[i+1]) {
				t.Errorf("previous key %d is another one", i)
			}
		}
		if want := min(len(keys)-1, keptKeys); len(s.PreviousKeys) != want {
			t.Errorf("%d previous keys, want %d", len(s.PreviousKeys), want)
		}
	}
}
