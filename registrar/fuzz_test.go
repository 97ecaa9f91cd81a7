package registrar

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzParseURI(f *testing.F) {
	for _, s := range []string{"sip:a%20b:p@h.test:5060;lr?x=y", "sips:a@[::1]", "tel:+1-2;x=y", "sip:a@b@c", "sip:a@h;a;A"} {
		f.Add(s, "sip:a@h")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		u, err := ParseURI(a)
		if err != nil {
			return
		}
		if !u.Equal(u) {
			t.Fatal("does not equal itself")
		}
		if equalURI(a, b) != equalURI(b, a) {
			t.Fatal("equal one way only")
		}
		if a != b && equalURI(a, b) != equalParsed(a, b) {
			t.Fatal("the short cut leads elsewhere")
		}
		aor, err := ParseAOR(a)
		if err != nil {
			return
		}
		if again, err := ParseAOR(string(aor)); err != nil || again != aor {
			t.Fatalf("canonical form %q becomes %q, %v", aor, again, err)
		}
		if aor.User() != "" && aorOf(aor.User(), aor.Domain()) != aor {
			t.Fatalf("%q is not made of %q and %q", aor, aor.User(), aor.Domain())
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{`"A \"b\" <c>" <sip:a@h>;x="y";z = 1`, "A B <sip:a@h>", "sip:a@h;tag=1", "<sip:a@h>\r\n ;x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			return
		}
		var b strings.Builder
		if a.Display != "" {
			b.WriteString(quoted(a.Display) + " ")
		}
		b.WriteString("<" + a.URI + ">")
		for _, p := range a.Params {
			writeParam(&b, p)
		}
		again, err := ParseAddress(b.String())
		if err != nil {
			t.Fatalf("written %q: %v", b.String(), err)
		}
		if diff := cmp.Diff(a, again); diff != "" {
			t.Fatalf("written %q: %s", b.String(), diff)
		}
	})
}

// FuzzParseContacts: what the 200 says of a contact is the contact.
func FuzzParseContacts(f *testing.F) {
	for _, s := range []string{
		`<sip:a@h;ob>;q=0.7;+sip.instance="<urn:uuid:1>";reg-id=1;x="y, z";expires=9, sip:b@h`, "*", "<sip:a@h>; EXPIRES = 0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		contacts, _, err := ParseContacts([]string{s})
		if err != nil {
			return
		}
		for _, c := range contacts {
			w := work{now: benchNow}
			line := w.contactValue([]Binding{{Contact: c, Expires: benchNow.Add(600e9)}}, 0, false)
			if strings.ContainsAny(line, "\r\n") {
				t.Fatalf("%q breaks the line", line)
			}
			again, star, err := ParseContacts([]string{line})
			if err != nil || star || len(again) != 1 {
				t.Fatalf("written %q: %v, %v, %v", line, again, star, err)
			}
			c.Expires, c.Display = lasting(600), "" // a display name is not told in the 200
			if diff := cmp.Diff(c, again[0]); diff != "" {
				t.Fatalf("written %q: %s", line, diff)
			}
		}
	})
}

func FuzzAuthorization(f *testing.F) {
	a := &Authenticator{Key: []byte("0123456789abcdef"), AllowNoQOP: true, Algorithms: []string{MD5, SHA256, "SHA-512-256-sess"}}
	n, err := a.newNonce("example.test", benchNow)
	if err != nil {
		f.Fatal(err)
	}
	req := benchRequest(1)
	f.Add(answer(f, "alice", "secret", MD5, n, "auth", 1, req))
	f.Add(`Digest username="a\"", realm="example.test", nonce="", uri="sip:x", response=""`)
	f.Add("Basic xyz")
	find := realmUsers(f)
	f.Fuzz(func(t *testing.T, s string) {
		req := benchRequest(1)
		req.Authorization = []string{s}
		user, reply, ok := a.Authenticate(req, find, benchNow)
		if ok && user != req.AOR {
			t.Fatalf("let in as %q", user)
		}
		if !ok && reply.Status != 400 && reply.Status != 401 && reply.Status != 403 {
			t.Fatalf("answered %d", reply.Status)
		}
	})
}

func FuzzDecodeSet(f *testing.F) {
	watched := fullSet()
	watched.Subscriptions = []Subscription{{Tag: "t", CallID: "c", Local: "<sip:a@h>;tag=t", Remote: "<sip:a@h>;tag=f", RemoteTag: "f",
		EventID: "1", Target: "sip:a@h", Routes: []string{"<sip:p;lr>"}, CSeq: 1, Branch: "z9hG4bK1", Notified: 3, Expires: benchNow}}
	for _, s := range []Set{{}, fullSet(), watched} {
		data, err := EncodeSet(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeSet(data)
		if err != nil {
			return
		}
		stored, err := EncodeSet(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeSet(stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatal(diff)
		}
		Decide(s, benchRequest(2), benchNow, DefaultPolicy()) // whatever is stored can be decided on
	})
}

// FuzzDecide is TestDecideAgainstModel with the fuzzer choosing the sequences.
func FuzzDecide(f *testing.F) {
	random := rand.NewChaCha8([32]byte{1})
	for range 4 {
		seed := make([]byte, 256)
		random.Read(seed)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		playAgainstModel(t, func(n int, _ string) int { // a byte is a choice; what is missing counts as 0
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b) % n
		})
	})
}
