package registrar

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// NonceUse is how far one nonce is used up by one user. It is stored with the
// user's bindings, so it holds across a promotion exactly as far as they do.
type NonceUse struct {
	ID    uint64 // the random part of the nonce
	NC    uint32 // highest nonce count seen
	Until time.Time
}

// A nonce is its time of issue, random bits, and a keyed hash of both and of the
// realm: any Front End with the pool's key can tell that another one issued it.
const (
	nonceTime  = 4 // seconds since 1970
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
	binary.BigEndian.PutUint32(b[:], uint32(now.Unix()))
	source := a.Rand
	if source == nil {
		source = rand.Reader
	}
	if _, err := io.ReadFull(source, b[nonceTime:nonceTime+nonceID]); err != nil {
		return "", fmt.Errorf("make a nonce: %w", err)
	}
	a.sign(&b, realm)
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
	want := b
	a.sign(&want, realm)
	if !hmac.Equal(want[:], b[:]) {
		return nonce{}, false
	}
	return nonce{
		issued: time.Unix(int64(binary.BigEndian.Uint32(b[:])), 0).UTC(),
		id:     binary.BigEndian.Uint64(b[nonceTime:]),
	}, true
}

// sign fills in the keyed hash.
func (a *Authenticator) sign(b *[nonceBytes]byte, realm string) {
	mac := hmac.New(sha256.New, a.Key)
	mac.Write(b[:nonceTime+nonceID])
	io.WriteString(mac, realm)
	var sum [sha256.Size]byte
	copy(b[nonceTime+nonceID:], mac.Sum(sum[:0]))
}
