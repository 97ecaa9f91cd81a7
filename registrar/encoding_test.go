package registrar

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fullSet() Set {
	at := func(s int) time.Time { return benchNow.Add(time.Duration(s)*time.Second + 7*time.Millisecond) }
	return Set{
		Bindings: []Binding{
			{
				Contact: Contact{URI: "sip:a@h", Q: 0, Instance: "urn:x", RegID: 1, Params: `;a="b"`, Display: "Al"},
				CallID:  "c1", CSeq: 4294967295, Branch: "z9hG4bK1", Path: []string{"<sip:p1;lr>", "<sip:p2;lr>"},
				UserAgent: "Caf\xe9 1.0", // Latin-1, as the wire brings it
				Flow:      Flow{FrontEnd: "fe1", Boot: "b", Transport: "tcp", Local: "l:1", Remote: "r:2", ID: 1<<63 + 1},
				Created:   at(0), Refreshed: at(1), Expires: at(90), Generation: 1<<63 + 9,
			},
			{Contact: contact("sip:b@h"), CallID: "c2", CSeq: 1, Created: at(2), Refreshed: at(2), Expires: at(60)},
		},
		Removed: []Removal{{URI: "*", CallID: "c3", CSeq: 7, Branch: "z9hG4bK2", Until: at(30)}},
		Nonces:  []NonceUse{{ID: 1<<63 + 5, NC: 3, Until: at(300)}},
	}
}

func TestStoredForm(t *testing.T) {
	for _, want := range []Set{{}, fullSet(), {Removed: fullSet().Removed}} {
		data, err := EncodeSet(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeSet(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

func TestPeekSet(t *testing.T) {
	data, err := EncodeSet(fullSet())
	if err != nil {
		t.Fatal(err)
	}
	n, first, last, err := PeekSet(data)
	set := fullSet()
	if err != nil || n != 2 || !first.Equal(set.Bindings[1].Expires) || !last.Equal(set.Bindings[0].Expires) {
		t.Errorf("%d, %v, %v, %v", n, first, last, err)
	}
	if data, err = EncodeSet(Set{}); err != nil {
		t.Fatal(err)
	}
	if n, first, last, err = PeekSet(data); err != nil || n != 0 || !first.IsZero() || !last.IsZero() {
		t.Errorf("empty set: %d, %v, %v, %v", n, first, last, err)
	}
}

func TestDecodeSetRefuses(t *testing.T) {
	good, err := EncodeSet(fullSet())
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := DecodeSet(good[:n]); err == nil {
			t.Fatalf("a record cut at byte %d passed", n)
		}
	}
	for name, data := range map[string][]byte{
		"newer version": append([]byte{2}, good[1:]...),
		"wrong count":   append([]byte{1, 0, 3}, good[3:]...),
		"trailing":      append(bytes.Clone(good), 0),
		"too long":      make([]byte, maxStored+1),
		"huge array":    append(append([]byte{1}, make([]byte, 14)...), 0xa1, 0x01, 0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"deep":          append(append([]byte{1}, make([]byte, 14)...), bytes.Repeat([]byte{0xa1, 0x18, 0x63}, 5000)...),
	} {
		if _, err := DecodeSet(data); err == nil {
			t.Errorf("%s passed", name)
		}
	}
}

func TestTypicalRecordIsSmall(t *testing.T) {
	data, err := EncodeSet(Decide(Set{}, benchRequest(1), benchNow, DefaultPolicy()).Next)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 300 {
		t.Errorf("%d bytes, want at most 300", len(data))
	}
}

func TestExpireAndDrop(t *testing.T) {
	set := fullSet()
	grace := 10 * time.Second
	if live := set.Live(benchNow.Add(69*time.Second), grace); len(live) != 2 {
		t.Errorf("within the grace: %d live", len(live))
	}
	later := set.Bindings[1].Expires.Add(grace)
	if live := set.Live(later, grace); len(live) != 1 || live[0].URI != "sip:a@h" {
		t.Errorf("at the end of the grace: %+v", live)
	}
	next, changes := set.Expire(later, grace)
	if len(next.Bindings) != 1 || len(changes) != 1 || changes[0].Kind != Expired || changes[0].Binding.URI != "sip:b@h" ||
		len(next.Removed) != 0 || len(next.Nonces) != 1 {
		t.Errorf("%+v, %+v", next, changes)
	}
	next, changes = set.Drop(func(b Binding) bool { return b.Flow.Stream() }, Deactivated, benchNow) // case 31
	if len(next.Bindings) != 1 || next.Bindings[0].URI != "sip:b@h" || len(changes) != 1 || changes[0].Kind != Deactivated || len(next.Removed) != 1 {
		t.Errorf("%+v, %+v", next, changes)
	}
	if d := cmp.Diff(fullSet(), set); d != "" {
		t.Errorf("the set itself was changed: %s", d)
	}
	if u := (Set{Bindings: set.Bindings}).Until(grace); !u.Equal(set.Bindings[0].Expires.Add(grace)) {
		t.Errorf("Until: %v", u)
	}
	if u := set.Until(grace); !u.Equal(set.Nonces[0].Until) {
		t.Errorf("Until of nonces: %v", u)
	}
	if u := (Set{Removed: set.Removed}).Until(grace); !u.Equal(set.Removed[0].Until) {
		t.Errorf("Until of removals: %v", u)
	}
}
