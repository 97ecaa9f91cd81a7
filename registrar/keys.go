package registrar

import "sync/atomic"

// Keys is the pool's key and those that it had before. It may be changed while
// Authenticators use it, from any goroutine: what is made with an old one is
// accepted for as long as that one is kept, and nothing is made with it any more.
type Keys struct {
	all atomic.Pointer[[][]byte] // never empty; the first one makes
}

// NewKeys begins with these.
func NewKeys(key []byte, previous ...[]byte) *Keys {
	k := &Keys{}
	k.Set(key, previous...)
	return k
}

// Set replaces them all. The slices must not be changed afterwards.
func (k *Keys) Set(key []byte, previous ...[]byte) {
	all := append([][]byte{key}, previous...)
	k.all.Store(&all)
}

// current is the key to make nonces with.
func (a *Authenticator) current() []byte {
	if a.Keys != nil {
		return (*a.Keys.all.Load())[0]
	}
	return a.Key
}

// previous are those whose nonces are accepted, too.
func (a *Authenticator) previous() [][]byte {
	if a.Keys != nil {
		return (*a.Keys.all.Load())[1:]
	}
	return nil
}
