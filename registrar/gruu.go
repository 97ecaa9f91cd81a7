package registrar

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"
)

// GRUU makes and reads the globally routable URIs of user agents (RFC 5627). It keeps
// nothing of the temporary ones: they are sealed with the pool's key (appendix A.2 there),
// so that every Front End, promoted or started anew, can read those that another one made.
type GRUU struct {
	seals atomic.Pointer[[]seal] // the first one makes, all of them read
}

// seal is what one key of the pool gives.
type seal struct {
	box cipher.AEAD
	iv  []byte // keys the nonces
}

// NewGRUU derives from the pool's key, as in Authenticator, and from those that it had before.
func NewGRUU(key []byte, previous ...[]byte) *GRUU {
	g := &GRUU{}
	g.SetKeys(key, previous...)
	return g
}

// SetKeys changes the keys while it is used, from any goroutine.
func (g *GRUU) SetKeys(key []byte, previous ...[]byte) {
	var seals []seal
	for _, k := range append([][]byte{key}, previous...) {
		block, err := aes.NewCipher(derive(k, "temporary GRUU: seal"))
		if err != nil {
			panic(err) // the length is fixed
		}
		box, err := cipher.NewGCM(block)
		if err != nil {
			panic(err) // as is the block size
		}
		seals = append(seals, seal{box, derive(k, "temporary GRUU: nonce")})
	}
	g.seals.Store(&seals)
}

func derive(key []byte, purpose string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}

const (
	tempUser   = "tgruu." // what the user part of a temporary GRUU begins with
	sealedUnit = 16       // its text is padded to a multiple: the length shall not tell the user
	generation = 8        // bytes
)

// Public is the GRUU that an instance has for ever.
func (g *GRUU) Public(aor AOR, instance string) string {
	v := make([]byte, 0, len(aor)+4+len(instance))
	v = append(append(v, aor...), ";gr="...)
	return string(appendEscaped(v, instance, classParam))
}

// temporary is the GRUU made for a binding by its newest REGISTER, so that a
// retransmission and a query get the same one.
func (g *GRUU) temporary(aor AOR, b *Binding) string {
	s := &(*g.seals.Load())[0]
	domain := aor.Domain()
	text := binary.BigEndian.AppendUint64(make([]byte, 0, 128), b.Generation)
	text = append(text, strings.TrimSuffix(strings.TrimPrefix(string(aor), "sip:"), "@"+domain)...)
	for len(text)%sealedUnit != 0 {
		text = append(text, 0)
	}
	m := hmac.New(sha256.New, s.iv)
	m.Write(binary.BigEndian.AppendUint64(nil, uint64(b.Refreshed.UnixMilli())))
	m.Write(binary.BigEndian.AppendUint32(nil, b.CSeq))
	m.Write([]byte(domain))
	m.Write(text)
	m.Write([]byte(b.CallID + "\x00" + b.Branch))
	nonce := m.Sum(nil)[:s.box.NonceSize():s.box.NonceSize()]
	sealed := s.box.Seal(nonce, nonce, text, []byte(domain))
	return "sip:" + tempUser + base64.RawURLEncoding.EncodeToString(sealed) + "@" + domain + ";gr"
}

// GRUURef is what a GRUU names. It says nothing of whether the instance is registered: see In.
type GRUURef struct {
	AOR       AOR
	Instance  string // of a public GRUU
	Temporary bool

	generation uint64
}

// Resolve reads a URI that may be a GRUU of this pool. Not ok: it is none, or a
// temporary one that no key of the pool has made.
func (g *GRUU) Resolve(uri string) (ref GRUURef, ok bool) {
	if !mayBeGRUU(uri) {
		return ref, false
	}
	u, err := ParseURI(uri)
	if err != nil || u.Scheme == "tel" {
		return ref, false
	}
	gr, ok := find(u.Params, "gr")
	if !ok {
		return ref, false
	}
	if !gr.Bare {
		return GRUURef{AOR: u.aor(), Instance: unescape(gr.Value)}, u.User != ""
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(u.User, tempUser))
	if err != nil || !strings.HasPrefix(u.User, tempUser) {
		return ref, false
	}
	domain := u.aor().Domain()
	for _, s := range *g.seals.Load() {
		box := s.box
		if len(sealed) < box.NonceSize() {
			return ref, false
		}
		text, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], []byte(domain))
		if err == nil && len(text) > generation {
			user := strings.TrimRight(string(text[generation:]), "\x00")
			return GRUURef{AOR: AOR("sip:" + user + "@" + domain), Temporary: true,
				generation: binary.BigEndian.Uint64(text)}, true
		}
	}
	return ref, false
}

// mayBeGRUU spares all other URIs the parsing.
func mayBeGRUU(uri string) bool {
	for i := 0; i+2 < len(uri); i++ {
		if uri[i] == ';' && uri[i+1]|0x20 == 'g' && uri[i+2]|0x20 == 'r' {
			return true
		}
	}
	return false
}

// In returns the instance that a GRUU names and its live bindings, the last refreshed
// first, in the set of ref.AOR. Without bindings, a public GRUU is valid but cannot be
// reached now (480); a temporary one is dead for ever, and instance is "" (404).
func (r GRUURef) In(s Set, now time.Time, grace time.Duration) (instance string, bindings []Binding) {
	instance = r.Instance
	for _, b := range s.Live(now, grace) {
		switch {
		case r.Temporary && (r.generation == 0 || b.Generation != r.generation):
			continue
		case !r.Temporary && !strings.EqualFold(b.Instance, r.Instance):
			continue
		}
		instance = b.Instance
		at := 0
		for at < len(bindings) && !b.Refreshed.After(bindings[at].Refreshed) {
			at++
		}
		bindings = append(bindings, Binding{})
		copy(bindings[at+1:], bindings[at:])
		bindings[at] = b
	}
	return instance, bindings
}

// checkGRUU: a contact that is a GRUU of its own instance would be a loop (RFC 5627 §5.1).
func (w *work) checkGRUU() *Reply {
	if w.policy.GRUU == nil {
		return nil
	}
	for i := range w.req.Contacts {
		c := &w.req.Contacts[i]
		if c.Instance == "" || !mayBeGRUU(c.URI) {
			continue
		}
		ref, ok := w.policy.GRUU.Resolve(c.URI)
		if !ok || ref.AOR != w.req.AOR {
			continue
		}
		if instance, _ := ref.In(w.cur, w.now, w.policy.Grace); strings.EqualFold(instance, c.Instance) {
			return refuse(403)
		}
	}
	return nil
}

// usesGRUU: the request asks for GRUUs, and they are given.
func (w *work) usesGRUU() bool { return w.policy.GRUU != nil && w.supports("gruu") }

// generate gives the bindings that the request put their generation of temporary GRUUs.
// All of an instance's bindings share one. It begins with the first binding of the
// instance, and anew when a REGISTER for the same contact comes with another Call-ID; then
// all temporary GRUUs of before are dead (RFC 5627 §5.1). Another flow of the
// instance (reg-id) is another contact, and joins.
func (w *work) generate(next []Binding, changes []Change) {
	for n := range next {
		b := &next[n]
		put := b.Refreshed.Equal(w.now) && b.CSeq == w.req.CSeq && b.CallID == w.req.CallID
		if b.Instance == "" || !put {
			continue
		}
		before, known := w.generationOf(b)
		if before == 0 && !w.usesGRUU() {
			continue
		}
		if before == 0 || !known {
			before = newGeneration(b)
		}
		for i := range next {
			if next[i].Instance == b.Instance {
				next[i].Generation = before
			}
		}
		for i := range changes {
			if c := &changes[i]; c.Binding.Instance == b.Instance && (c.Kind == Created || c.Kind == Refreshed || c.Kind == Shortened) {
				c.Binding.Generation = before
			}
		}
	}
}

func (w *work) hasGenerations() bool {
	for i := range w.live {
		if w.live[i].Generation != 0 {
			return true
		}
	}
	return false
}

// generationOf is the present generation of a binding's instance, 0 for none. not
// continued: the same contact had another Call-ID.
func (w *work) generationOf(b *Binding) (present uint64, continued bool) {
	continued = true
	var contact, any time.Time // newest of the same contact, newest of all
	for i := range w.live {
		old := &w.live[i]
		if old.Instance != b.Instance {
			continue
		}
		if old.RegID == b.RegID && !old.Refreshed.Before(contact) {
			contact, continued = old.Refreshed, old.CallID == b.CallID
		}
		if !old.Refreshed.Before(any) && old.Generation != 0 {
			any, present = old.Refreshed, old.Generation
		}
	}
	return present, continued
}

// newGeneration is unlike every other one of this user, and never 0.
func newGeneration(b *Binding) uint64 {
	m := sha256.New()
	m.Write(binary.BigEndian.AppendUint64(nil, uint64(b.Refreshed.UnixMilli())))
	m.Write(binary.BigEndian.AppendUint32(nil, b.CSeq))
	m.Write([]byte(b.Instance + "\x00" + b.CallID + "\x00" + b.Branch))
	return max(1, binary.BigEndian.Uint64(m.Sum(nil)))
}

// appendGRUUs writes the parameters that tell a binding its GRUUs: the public one, and
// the newest temporary one of the instance.
func (w *work) appendGRUUs(v []byte, b *Binding, all []Binding) []byte {
	newest := b
	for i := range all {
		if o := &all[i]; o.Generation == b.Generation && o.Refreshed.After(newest.Refreshed) {
			newest = o
		}
	}
	g := w.policy.GRUU
	v = append(append(v, `;pub-gruu="`...), quotedText(g.Public(w.req.AOR, b.Instance))...)
	v = append(append(v, `";temp-gruu="`...), g.temporary(w.req.AOR, newest)...)
	return append(v, '"')
}
