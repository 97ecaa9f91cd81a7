package registrar

import (
	"fmt"
	"testing"
	"time"
)

// benchNow is any moment, to the millisecond as stored times are.
var benchNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func benchRequest(cseq uint32) *Request {
	contacts, _, err := ParseContacts([]string{`<sip:alice@192.0.2.10:51234;transport=tcp;ob>;+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E128>";reg-id=1;expires=600`})
	if err != nil {
		panic(err)
	}
	return &Request{
		RequestURI: "sip:example.test", Domain: "example.test",
		AOR: "sip:alice@example.test", From: "sip:alice@example.test",
		CallID: "a84b4c76e66710@192.0.2.10", CSeq: cseq, Branch: fmt.Sprintf("z9hG4bK776asdhds%d", cseq), Vias: 1,
		Contacts: contacts, Supported: []string{"path", "outbound"}, UserAgent: "Linphone Desktop/5.1.65",
		Flow: Flow{FrontEnd: "fe1", Boot: "b7f3a1c2", Transport: "tcp", Local: "192.0.2.1:5060", Remote: "192.0.2.10:51234", ID: 42},
	}
}

func BenchmarkParse(b *testing.B) {
	values := []string{`"Alice" <sip:alice@192.0.2.10:51234;transport=tcp;ob>;+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E128>";reg-id=1;expires=600`}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseAOR("sip:alice@Example.test"); err != nil {
			b.Fatal(err)
		}
		if _, _, err := ParseContacts(values); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecideRefresh(b *testing.B) {
	p := DefaultPolicy()
	set := Decide(Set{}, benchRequest(1), benchNow, p).Next
	req := benchRequest(2)
	b.ReportAllocs()
	for b.Loop() {
		if d := Decide(set, req, benchNow.Add(time.Second), p); !d.Write {
			b.Fatal(d.Reply)
		}
	}
}

// BenchmarkDecideTenContacts refreshes the last of ten, all of the same user.
func BenchmarkDecideTenContacts(b *testing.B) {
	p, set := DefaultPolicy(), Set{}
	var req *Request
	for i := range 10 {
		req = benchRequest(1)
		req.CallID = fmt.Sprintf("call%d", i)
		req.Contacts[0] = Contact{URI: fmt.Sprintf("sip:alice@192.0.2.%d:5060;transport=tcp", i), Q: -1}
		set = Decide(set, req, benchNow, p).Next
	}
	req.CSeq, req.Branch = 2, "z9hG4bKnext"
	b.ReportAllocs()
	for b.Loop() {
		if d := Decide(set, req, benchNow, p); !d.Write || len(d.Next.Bindings) != 10 {
			b.Fatal(d.Reply)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	set := Decide(Set{}, benchRequest(1), benchNow, DefaultPolicy()).Next
	b.ReportAllocs()
	for b.Loop() {
		data, err := EncodeSet(set)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(data)), "bytes")
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := EncodeSet(Decide(Set{}, benchRequest(1), benchNow, DefaultPolicy()).Next)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeSet(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	a := &Authenticator{Key: []byte("0123456789abcdef0123456789abcdef")}
	req := benchRequest(1)
	n, err := a.newNonce("example.test", benchNow)
	if err != nil {
		b.Fatal(err)
	}
	req.Authorization = []string{answer(b, "alice", "secret", MD5, n, "auth", 1, req)}
	ha1, err := HA1s([]string{MD5}, req.AOR, "example.test", "secret")
	if err != nil {
		b.Fatal(err)
	}
	find := func(AOR) (map[string]string, bool) { return ha1, true }
	b.ReportAllocs()
	for b.Loop() {
		if _, reply, ok := a.Authenticate(req, find, benchNow); !ok {
			b.Fatal(reply)
		}
	}
}

// BenchmarkRegister is all that the core does for one authenticated refresh.
func BenchmarkRegister(b *testing.B) {
	p := DefaultPolicy()
	data, err := EncodeSet(Decide(Set{}, benchRequest(1), benchNow, p).Next)
	if err != nil {
		b.Fatal(err)
	}
	values := []string{`<sip:alice@192.0.2.10:51234;transport=tcp;ob>;+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E128>";reg-id=1;expires=600`}
	req := benchRequest(2)
	b.ReportAllocs()
	for b.Loop() {
		set, err := DecodeSet(data)
		if err != nil {
			b.Fatal(err)
		}
		if req.Contacts, _, err = ParseContacts(values); err != nil {
			b.Fatal(err)
		}
		d := Decide(set, req, benchNow.Add(time.Second), p)
		if _, err := EncodeSet(d.Next); err != nil || !d.Write {
			b.Fatal(err, d.Reply)
		}
	}
}
