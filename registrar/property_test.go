package registrar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func (r modelRequest) real() *Request {
	req := &Request{
		AOR: "sip:alice@example.test", From: "sip:alice@example.test", Domain: "example.test",
		CallID: fmt.Sprintf("call%d", r.call), CSeq: uint32(r.cseq), Branch: fmt.Sprintf("z9hG4bK%d", r.branch),
		Vias: 1, Star: r.star, Expires: realExpires(r.expires),
	}
	for _, c := range r.contacts {
		rc := Contact{URI: spellings[c.address][c.spelling], Q: -1, Expires: realExpires(c.expires)}
		if c.key != 0 {
			rc.Instance, rc.RegID = "urn:x", uint32(c.key)
		}
		req.Contacts = append(req.Contacts, rc)
	}
	return req
}

func realExpires(e int) ExpiresIn {
	switch e {
	case -1:
		return ExpiresIn{}
	case -2:
		return ExpiresIn{Given: true}
	}
	return lasting(uint32(e))
}

func describe(s Set, now time.Time, grace time.Duration) string {
	var lines []string
	for _, b := range s.Live(now, grace) {
		lines = append(lines, fmt.Sprintf("%s key %d call %s cseq %d branch %s created %d until %d", b.URI, b.RegID,
			strings.TrimPrefix(b.CallID, "call"), b.CSeq, strings.TrimPrefix(b.Branch, "z9hG4bK"), b.Created.Unix(), b.Expires.UnixMilli()))
	}
	return strings.Join(lines, "\n")
}

// picker chooses one of n, 0 to n-1; what for is said to whoever reads a failure.
type picker func(n int, what string) int

func pickOf[T any](pick picker, what string, from ...T) T { return from[pick(len(from), what)] }

func drawExpires(pick picker, what string) int {
	return pickOf(pick, what, -1, 0, 0, 60, 600, 90000, -2, 30)
}

func drawRequest(pick picker) modelRequest {
	r := modelRequest{
		call: 1 + pick(2, "call"), cseq: 1 + pick(9, "cseq"), branch: 1 + pick(2, "branch"),
		expires: drawExpires(pick, "expires"), star: pick(10, "star") == 0,
	}
	most := 3
	if r.star && pick(4, "with star") > 0 {
		most = 0
	}
	for range pick(most+1, "contacts") {
		address := pick(len(spellings), "address")
		r.contacts = append(r.contacts, modelContact{
			address: address, spelling: pick(len(spellings[address]), "spelling"),
			key: max(0, pick(6, "key")-3), expires: drawExpires(pick, "contact expires"),
		})
	}
	return r
}

// failer is what the checks need of a test.
type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// TestDecideAgainstModel plays random sequences of REGISTERs to Decide and to the
// model, and checks after each what must always hold.
func TestDecideAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		playAgainstModel(t, func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) })
	})
}

func playAgainstModel(t failer, pick picker) {
	p := DefaultPolicy()
	p.MaxContacts = 1 + pick(4, "limit")
	p.WhenFull = pickOf(pick, "when full", RefuseForbidden, ReplaceOldest)
	p.AllowEqualCSeq = pick(2, "equal cseq") == 1
	m := &model{policy: p}
	now, set := benchNow, Set{}
	for range 1 + pick(12, "steps") {
		now = now.Add(time.Duration(pickOf(pick, "pause", 1, 5, 40, 70, 700))*time.Second + time.Millisecond)
		if len(m.done)+len(m.past) > 0 && tooMuchToRemember(m, now) {
			return // what Decide forgets by its bound, the model still knows
		}
		r := drawRequest(pick)
		status, write := m.apply(r, now)
		d := Decide(set, r.real(), now, p)
		if d.Reply.Status != status || d.Write != write {
			t.Fatalf("%+v: %d, write %v; the model says %d, %v", r, d.Reply.Status, d.Write, status, write)
		}
		checkDecision(t, set, d, r, now, p)
		set = d.Next
		if got, want := describe(set, now, p.Grace), m.describe(now); got != want {
			t.Fatalf("%+v:\n%s\nthe model has\n%s", r, got, want)
		}
	}
}

// tooMuchToRemember: the memory of removals may be at its bound.
func tooMuchToRemember(m *model, now time.Time) bool {
	n := 0
	for _, p := range m.past {
		if now.Sub(p.at) < RemovalMemory {
			n++
		}
	}
	return n > maxRemoved
}

func checkDecision(t failer, before Set, d Decision, r modelRequest, now time.Time, p Policy) {
	data, err := EncodeSet(d.Next)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := DecodeSet(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Next, stored); diff != "" {
		t.Fatalf("stored and read again: %s", diff)
	}
	if size := d.Next.size(); size < len(data) {
		t.Fatalf("size says %d, stored are %d bytes", size, len(data))
	}
	if !d.Write {
		if diff := cmp.Diff(before, d.Next); diff != "" || len(d.Changes) > 0 {
			t.Fatalf("nothing to write, yet a change: %s %v", diff, d.Changes)
		}
	}
	for i := range d.Next.Bindings {
		if b := &d.Next.Bindings[i]; !firstFree(d.Next.Bindings[:i], b.Created).Equal(b.Created) {
			t.Fatalf("%s was created in the same millisecond as another", b.URI)
		}
	}
	if len(d.Next.Removed) > maxRemoved {
		t.Fatalf("%d removals", len(d.Next.Removed))
	}
	if d.Reply.Status != 200 {
		return
	}
	if n := len(values(d.Reply, "Contact")); n != len(d.Next.Live(now, p.Grace)) {
		t.Fatalf("%d contacts in the answer, %d live", n, len(d.Next.Live(now, p.Grace)))
	}
	again := Decide(d.Next, r.real(), now.Add(time.Millisecond), p)
	if again.Write || again.Reply.Status != 200 {
		t.Fatalf("retransmitted: %d, write %v", again.Reply.Status, again.Write)
	}
}
