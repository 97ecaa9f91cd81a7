package registrar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The usual set is read quickly; and whatever is read so, the general decoder reads the same.
func TestQuickReadsTheUsualSet(t *testing.T) {
	d := Decide(Set{}, benchRequest(1), benchNow, DefaultPolicy())
	d.Next.Nonces = []NonceUse{{ID: 1 << 60, NC: 7, Until: benchNow}}
	data, err := EncodeSet(d.Next)
	if err != nil {
		t.Fatal(err)
	}
	var w storedSet
	if !w.quick(data[recordHeader:]) {
		t.Error("the usual set is not read quickly")
	}
	if err := sameAsGeneral(data[recordHeader:]); err != "" {
		t.Error(err)
	}
}

func FuzzQuick(f *testing.F) {
	d := Decide(Set{}, benchRequest(1), benchNow, DefaultPolicy())
	for _, s := range []Set{{}, fullSet(), d.Next} {
		data, err := EncodeSet(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[recordHeader:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := sameAsGeneral(body); err != "" {
			t.Error(err)
		}
	})
}

func sameAsGeneral(body []byte) string {
	var quick, general storedSet
	if !quick.quick(body) {
		return ""
	}
	if err := decoder.Unmarshal(body, &general); err != nil {
		return "the general decoder refuses: " + err.Error()
	}
	if len(quick.Bindings)+len(general.Bindings) == 0 { // an empty list is no list
		quick.Bindings, general.Bindings = nil, nil
	}
	if len(quick.Nonces)+len(general.Nonces) == 0 {
		quick.Nonces, general.Nonces = nil, nil
	}
	return cmp.Diff(quick, general)
}
