package registrar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// A stored record is a header that can be read at a glance, then the set as CBOR:
//
//	byte  0      version, 1
//	bytes 1-2    number of bindings, big endian; the top bit is set when there are subscriptions
//	bytes 3-8    earliest expiry of a binding or subscription, milliseconds since 1970, big endian; 0 when there is none
//	bytes 9-14   latest expiry
//	bytes 15-    CBOR map with small integers as keys; unknown keys are ignored
const (
	recordVersion = 1
	recordHeader  = 15
	maxStored     = 1 << 20 // no record that a bus would carry is longer
	maxBindings   = 1 << 12

	subscribedFlag = 1 << 15 // in the number of bindings
)

type storedSet struct {
	Bindings []storedBinding `cbor:"1,keyasint,omitempty"`
	Removed  []storedRemoval `cbor:"2,keyasint,omitempty"`
	Nonces   []storedNonce   `cbor:"3,keyasint,omitempty"`

	Subscriptions []storedSubscription `cbor:"4,keyasint,omitempty"`
}

type storedBinding struct {
	URI       string   `cbor:"1,keyasint,omitempty"`
	Q         int      `cbor:"2,keyasint,omitempty"` // 0 when absent, else q+1
	Instance  string   `cbor:"3,keyasint,omitempty"`
	RegID     uint32   `cbor:"4,keyasint,omitempty"`
	Params    string   `cbor:"5,keyasint,omitempty"`
	CallID    string   `cbor:"6,keyasint,omitempty"`
	CSeq      uint32   `cbor:"7,keyasint,omitempty"`
	Branch    string   `cbor:"8,keyasint,omitempty"`
	Path      []string `cbor:"9,keyasint,omitempty"`
	UserAgent string   `cbor:"10,keyasint,omitempty"`
	Flow      Flow     `cbor:"11,keyasint,omitempty"`
	Created   int64    `cbor:"12,keyasint,omitempty"` // milliseconds
	Refreshed int64    `cbor:"13,keyasint,omitempty"`
	Expires   int64    `cbor:"14,keyasint,omitempty"`
	Generated uint64   `cbor:"15,keyasint,omitempty"` // Generation
	Display   string   `cbor:"16,keyasint,omitempty"`
}

type storedRemoval struct {
	URI    string `cbor:"1,keyasint,omitempty"`
	CallID string `cbor:"2,keyasint,omitempty"`
	CSeq   uint32 `cbor:"3,keyasint,omitempty"`
	Branch string `cbor:"4,keyasint,omitempty"`
	Until  int64  `cbor:"5,keyasint,omitempty"`
}

type storedNonce struct {
	ID    uint64 `cbor:"1,keyasint,omitempty"`
	NC    uint32 `cbor:"2,keyasint,omitempty"`
	Until int64  `cbor:"3,keyasint,omitempty"`
}

// encoder and decoder are made once and never changed.
var encoder, decoder = cborModes()

func cborModes() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.EncOptions{}.EncMode()
	if err != nil {
		panic(err) // constant options
	}
	dec, err := cbor.DecOptions{
		MaxNestedLevels:  8,
		MaxArrayElements: maxBindings,
		MaxMapPairs:      256,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		// Header field values may hold any bytes; what was stored must be readable again.
		UTF8: cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}

// EncodeSet returns the stored form of a set. Times are kept to the millisecond.
func EncodeSet(s Set) ([]byte, error) {
	if len(s.Bindings) > maxBindings {
		return nil, fmt.Errorf("set of %d bindings is too large to store", len(s.Bindings))
	}
	w := storedSet{Bindings: make([]storedBinding, len(s.Bindings))}
	var first, last int64
	for i := range s.Bindings {
		w.Bindings[i] = storeBinding(&s.Bindings[i])
		e := w.Bindings[i].Expires
		if first == 0 || e < first {
			first = e
		}
		last = max(last, e)
	}
	for _, r := range s.Removed {
		w.Removed = append(w.Removed, storedRemoval{r.URI, r.CallID, r.CSeq, r.Branch, millis(r.Until)})
	}
	for _, n := range s.Nonces {
		w.Nonces = append(w.Nonces, storedNonce{n.ID, n.NC, millis(n.Until)})
	}
	n := uint16(len(s.Bindings))
	for i := range s.Subscriptions {
		w.Subscriptions = append(w.Subscriptions, storeSubscription(&s.Subscriptions[i]))
		n |= subscribedFlag
		e := w.Subscriptions[i].Expires
		if first == 0 || e < first {
			first = e
		}
		last = max(last, e)
	}
	body, err := encoder.Marshal(&w)
	if err != nil {
		return nil, fmt.Errorf("encode bindings: %w", err)
	}
	data := make([]byte, recordHeader, recordHeader+len(body))
	data[0] = recordVersion
	binary.BigEndian.PutUint16(data[1:], n)
	putUint48(data[3:], uint64(first))
	putUint48(data[9:], uint64(last))
	return append(data, body...), nil
}

// PeekSet reads the number of bindings, and the earliest and latest expiry of bindings and
// subscriptions (zero when there are none), without decoding them.
func PeekSet(data []byte) (n int, first, last time.Time, err error) {
	switch {
	case len(data) < recordHeader:
		return 0, first, last, errors.New("stored bindings: record is cut short")
	case len(data) > maxStored:
		return 0, first, last, errors.New("stored bindings: record is too long")
	case data[0] != recordVersion:
		return 0, first, last, fmt.Errorf("stored bindings: version %d is not known; a newer program wrote it", data[0])
	}
	n = int(binary.BigEndian.Uint16(data[1:]) &^ subscribedFlag)
	return n, timeOf(int64(uint48(data[3:]))), timeOf(int64(uint48(data[9:]))), nil
}

// DecodeSet reads the stored form of a set. It accepts any input without panic and
// with bounded memory.
func DecodeSet(data []byte) (Set, error) {
	n, _, _, err := PeekSet(data)
	if err != nil {
		return Set{}, err
	}
	var w storedSet
	if !w.quick(data[recordHeader:]) {
		w = storedSet{}
		if err := decoder.Unmarshal(data[recordHeader:], &w); err != nil {
			return Set{}, fmt.Errorf("stored bindings: %w", err)
		}
	}
	if len(w.Bindings) != n {
		return Set{}, fmt.Errorf("stored bindings: header says %d, body holds %d", n, len(w.Bindings))
	}
	var s Set
	if n > 0 {
		s.Bindings = make([]Binding, n)
	}
	for i := range w.Bindings {
		w.Bindings[i].load(&s.Bindings[i])
	}
	for _, r := range w.Removed {
		s.Removed = append(s.Removed, Removal{r.URI, r.CallID, r.CSeq, r.Branch, timeOf(r.Until)})
	}
	for _, u := range w.Nonces {
		s.Nonces = append(s.Nonces, NonceUse{u.ID, u.NC, timeOf(u.Until)})
	}
	for i := range w.Subscriptions {
		s.Subscriptions = append(s.Subscriptions, w.Subscriptions[i].load())
	}
	return s, nil
}

func storeBinding(b *Binding) storedBinding {
	return storedBinding{
		URI: b.URI, Q: b.Q + 1, Instance: b.Instance, RegID: b.RegID, Params: b.Params,
		CallID: b.CallID, CSeq: b.CSeq, Branch: b.Branch, Path: b.Path, UserAgent: b.UserAgent, Flow: b.Flow,
		Created: millis(b.Created), Refreshed: millis(b.Refreshed), Expires: millis(b.Expires),
		Generated: b.Generation, Display: b.Display,
	}
}

func (w *storedBinding) load(b *Binding) {
	*b = Binding{
		Contact: Contact{URI: w.URI, Q: w.Q - 1, Instance: w.Instance, RegID: w.RegID, Params: w.Params, Display: w.Display},
		CallID:  w.CallID, CSeq: w.CSeq, Branch: w.Branch, Path: w.Path, UserAgent: w.UserAgent, Flow: w.Flow,
		Created: timeOf(w.Created), Refreshed: timeOf(w.Refreshed), Expires: timeOf(w.Expires),
		Generation: w.Generated,
	}
}

// millis and timeOf keep the zero time as 0, and hold to what 48 bits can say.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return min(max(t.UnixMilli(), 1), 1<<48-1)
}

func timeOf(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(min(ms, 1<<48-1)).UTC()
}

func putUint48(b []byte, v uint64) {
	_ = b[5]
	for i := range 6 {
		b[i] = byte(v >> (40 - 8*i))
	}
}

func uint48(b []byte) (v uint64) {
	for _, c := range b[:6] {
		v = v<<8 | uint64(c)
	}
	return v
}
