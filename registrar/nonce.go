package registrar

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"
)

// NonceUse is how far one nonce is used up by one user. It is stored with the
// user's bindings: whoever is promoted knows of every count with which a stored
// change was made. A query and a refused request store nothing, so their counts may
// be used once more.
type NonceUse struct {
	ID    uint64 // the random part of the nonce; allOlder stands for all that are not listed
	NC    uint32 // highest nonce count seen
	Until time.Time
}

// allOlder marks the entry that keeps the memory bounded without a gap: every nonce that
// ends by its Until and is not listed itself counts as used up.
const allOlder = 0

// usedUp reports whether this use of a nonce is not above what is remembered.
func usedUp(seen []NonceUse, use NonceUse) bool {
	older := false
	for _, n := range seen {
		switch n.ID {
		case use.ID:
			return use.NC <= n.NC
		case allOlder:
			older = !use.Until.After(n.Until)
		}
	}
	return older
}

// useNonce adds a use to what is remembered: allOlder first, then the newest last.
func useNonce(seen []NonceUse, use NonceUse, now time.Time) []NonceUse {
	if use == (NonceUse{}) {
		return recentNonces(seen, now)
	}
	next := make([]NonceUse, 1, len(seen)+2)
	use.Until = use.Until.UTC().Truncate(time.Millisecond)
	for _, n := range seen {
		switch {
		case n.ID == allOlder:
			next[0] = n
		case n.ID == use.ID:
			use.NC = max(use.NC, n.NC)
		case n.Until.After(now):
			next = append(next, n)
		}
	}
	next = append(next, use)
	for len(next)-1 > maxNonces {
		first := 1 // issued first, so that no nonce that somebody still holds counts as used up with it
		for i := range next[1:] {
			if next[1+i].Until.Before(next[first].Until) {
				first = 1 + i
			}
		}
		if next[first].Until.After(next[0].Until) {
			next[0].Until = next[first].Until
		}
		next = slices.Delete(next, first, first+1)
	}
	if !next[0].Until.After(now) {
		return next[1:]
	}
	return next
}

// A nonce is its time of issue, random bits, and a keyed hash of both and of the
// realm: any Front End with the pool's key can tell that another one issued it.
const (
	nonceTime  = 6 // milliseconds since 1970: devices of one user come back within one second, too
	nonceID    = 8
	nonceMAC   = 12
	nonceBytes = nonceTime + nonceID + nonceMAC
)

type nonce struct {
	issued time.Time
	id     uint64
}

// newNonce makes the text of a fresh nonce.
func (a *Authenticator) newNonce(realm string, now time.Time) (string, error) {
	var b [nonceBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(now.UnixMilli())<<16) // the two low bytes are overwritten
	source := a.Rand
	if source == nil {
		source = rand.Reader
	}
	if _, err := io.ReadFull(source, b[nonceTime:nonceTime+nonceID]); err != nil {
		return "", fmt.Errorf("make a nonce: %w", err)
	}
	sign(a.current(), &b, realm)
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// readNonce reports whether this pool issued the nonce for this realm, at whatever time.
func (a *Authenticator) readNonce(s, realm string) (nonce, bool) {
	var b [nonceBytes]byte
	if len(s) != base64.RawURLEncoding.EncodedLen(nonceBytes) {
		return nonce{}, false
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(s)); err != nil {
		return nonce{}, false
	}
	if !a.signed(&b, realm) {
		return nonce{}, false
	}
	return nonce{
		issued: time.UnixMilli(int64(binary.BigEndian.Uint64(b[:]) >> 16)).UTC(),
		id:     binary.BigEndian.Uint64(b[nonceTime:]),
	}, true
}

// signed reports whether the pool's key, or one that it had before, made the keyed hash.
func (a *Authenticator) signed(b *[nonceBytes]byte, realm string) bool {
	want := *b
	if sign(a.current(), &want, realm); hmac.Equal(want[:], b[:]) {
		return true
	}
	for _, key := range a.previous() {
		if sign(key, &want, realm); hmac.Equal(want[:], b[:]) {
			return true
		}
	}
	return false
}

// sign fills in the keyed hash.
func sign(key []byte, b *[nonceBytes]byte, realm string) {
	mac := hmac.New(sha256.New, key)
	mac.Write(b[:nonceTime+nonceID])
	io.WriteString(mac, realm)
	var sum [sha256.Size]byte
	copy(b[nonceTime+nonceID:], mac.Sum(sum[:0]))
}
