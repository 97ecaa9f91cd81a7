package registrar

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestRegisterCases has one subtest for each situation that was seen to go wrong in
// the field and that the decision has to get right. The parsing ones are in address_test.go.
func TestRegisterCases(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *phone){
		"case 01 blank before expires=0":     caseBlanks,
		"case 05 star with Expires 0":        caseStar,
		"case 06 star against the rules":     caseStarRefused,
		"case 07 star out of order":          caseStarOrder,
		"case 21 lower CSeq":                 caseLowerCSeq,
		"case 22 retransmission":             caseRetransmission,
		"case 22 retransmitted un-REGISTER":  caseRetransmittedRemoval,
		"case 23 equal CSeq, new branch":     caseEqualCSeq,
		"case 24 second contact bad":         caseAtomic,
		"case 25 instance replaces":          caseInstance,
		"case 26 instance twice":             caseInstanceTwice,
		"case 27 too brief":                  caseTooBrief,
		"case 28 malformed Expires, query":   caseDefaultExpires,
		"case 29 spellings of one contact":   caseSpellings,
		"case 30 limit":                      caseLimit,
		"case 30 limit by replacement":       caseReplaceOldest,
		"case 31 closed connection":          caseClosed,
		"case 32 unknown Require":            caseRequire,
		"case 33 other domains":              caseDomains,
		"case 35 Path":                       casePath,
		"case 43 refresh at expiry":          caseRefreshAtExpiry,
		"late duplicate after a removal":     caseLateDuplicate,
		"late duplicate after a new Call-ID": caseLateOldCallID,
		"removal before its REGISTER":        caseRemovalFirst,
		"outbound":                           caseOutbound,
		"several flows of one instance":      caseFlows,
	} {
		t.Run(name, func(t *testing.T) { test(t, newPhone(t)) })
	}
}

func caseBlanks(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>")
	p.register("c", 2, "<sip:a@h> ; EXPIRES = 0")
	p.bound()
}

func caseStar(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>", "<sip:b@h>")
	req := p.request("c", 2, "*")
	req.Expires = lasting(0)
	p.send(req, 200)
	p.bound()
	if d := p.send(req, 200); d.Write { // retransmitted
		t.Error("written twice")
	}
}

func caseStarRefused(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>")
	for _, bad := range []struct {
		expires  ExpiresIn
		contacts []string
	}{
		{lasting(3600), []string{"*"}},
		{ExpiresIn{}, []string{"*"}},
		{ExpiresIn{Given: true}, []string{"*"}},
		{lasting(0), []string{"*", "<sip:b@h>"}},
		{lasting(0), []string{"<sip:b@h>, *"}},
	} {
		req := p.request("c", 2, bad.contacts...)
		req.Expires = bad.expires
		p.send(req, 400)
		p.bound("sip:a@h")
	}
}

func caseStarOrder(t *testing.T, p *phone) {
	p.register("other", 1, "<sip:b@h>")
	p.register("c", 5, "<sip:a@h>")
	for _, cseq := range []uint32{4, 5} {
		req := p.request("c", cseq, "*")
		req.Expires, req.Branch = lasting(0), "z9hG4bK-new"
		p.send(req, 500)
		p.bound("sip:b@h", "sip:a@h")
	}
}

func caseLowerCSeq(t *testing.T, p *phone) {
	p.register("c", 5, "<sip:a@h>;expires=600")
	p.send(p.request("c", 4, "<sip:a@h>;expires=700"), 500)
	p.policy.OrderStatus = 400
	p.send(p.request("c", 4, "<sip:a@h>;expires=0"), 400)
	p.bound("sip:a@h")
}

func caseRetransmission(t *testing.T, p *phone) {
	req := p.request("c", 1, "<sip:a@h>;expires=600")
	first := p.send(req, 200)
	p.now = p.now.Add(300 * time.Millisecond)
	again := p.send(req, 200)
	if again.Write || len(again.Changes) > 0 {
		t.Errorf("a second change: %+v", again)
	}
	if !slices.Equal(values(first.Reply, "Contact"), values(again.Reply, "Contact")) {
		t.Errorf("%v, then %v", first.Reply, again.Reply)
	}
	p.send(p.request("c", 2, "<sip:a@h>;expires=1"), 423) // a refused one is refused again
	p.send(p.request("c", 2, "<sip:a@h>;expires=1"), 423)
}

func caseRetransmittedRemoval(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>")
	req := p.request("c", 2, "<sip:a@h>;expires=0")
	p.send(req, 200)
	p.now = p.now.Add(20 * time.Second)
	if d := p.send(req, 200); d.Write {
		t.Error("written twice")
	}
	p.bound()
}

func caseEqualCSeq(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>;expires=600")
	req := p.request("c", 1, "<sip:a@h>;expires=700")
	req.Branch = "z9hG4bK-another"
	p.send(req, 500)
	p.policy.AllowEqualCSeq = true
	if d := p.send(req, 200); !d.Write || !slices.Equal(d.kinds(), []ChangeKind{Refreshed}) {
		t.Errorf("%+v", d)
	}
	gone := p.request("c", 1, "<sip:a@h>;expires=0")
	gone.Branch = "z9hG4bK-third"
	p.send(gone, 200)
	back := p.request("c", 1, "<sip:a@h>")
	back.Branch = "z9hG4bK-fourth"
	p.send(back, 200)
	p.bound("sip:a@h")
}

func caseAtomic(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>")
	p.send(p.request("c", 2, "<sip:a@h>;expires=0, <sip:b@h>;expires=5"), 423)
	p.bound("sip:a@h")
	if _, _, err := ParseContacts([]string{"<sip:a@h>;expires=0, <sip:b@h"}); err == nil {
		t.Error("a malformed second contact passed")
	}
}

func instance(uri string, regID int, more string) string {
	return fmt.Sprintf(`<%s>;+sip.instance="<urn:uuid:1>";reg-id=%d%s`, uri, regID, more)
}

func caseInstance(t *testing.T, p *phone) {
	p.policy.MaxContacts = 1
	p.register("old", 7, instance("sip:a@h:1000", 1, ""))
	d := p.register("new", 1, instance("sip:a@h:2000", 1, ""))
	p.bound("sip:a@h:2000")
	if !slices.Equal(d.kinds(), []ChangeKind{Refreshed}) {
		t.Errorf("%v", d.kinds())
	}
}

func caseInstanceTwice(t *testing.T, p *phone) {
	p.register("c", 1, instance("sip:a@h:1000", 1, ""))
	d := p.register("c", 2, instance("sip:a@h:2000", 1, ""), instance("sip:a@h:1000", 1, ";expires=0"))
	p.bound("sip:a@h:2000")
	if len(d.Changes) != 1 || d.Changes[0].Kind != Refreshed {
		t.Errorf("%+v", d.Changes)
	}
	d = p.register("c", 3, instance("sip:a@h:2000", 1, ";expires=0"), instance("sip:a@h:3000", 1, ""))
	p.bound("sip:a@h:3000")
	if len(d.Changes) != 1 {
		t.Errorf("%+v", d.Changes)
	}
	// The same without reg-id goes by the URIs.
	p.register("c", 4, `<sip:b@h:1>;+sip.instance="<urn:uuid:2>"`)
	p.register("c", 5, `<sip:b@h:2>;+sip.instance="<urn:uuid:2>"`, `<sip:b@h:1>;+sip.instance="<urn:uuid:2>";expires=0`)
	p.bound("sip:a@h:3000", "sip:b@h:2")
	p.send(p.request("c", 6, instance("sip:a@h:4000", 1, ""), instance("sip:a@h:5000", 2, "")), 400) // RFC 5626 §6
}

func caseTooBrief(t *testing.T, p *phone) {
	p.has(p.send(p.request("c", 1, "<sip:a@h>;expires=10"), 423).Reply, "Min-Expires", "60")
	p.bound()
}

func caseDefaultExpires(t *testing.T, p *phone) {
	req := p.request("c", 1, "<sip:a@h>")
	req.Expires = ParseExpires("soon")
	p.has(p.send(req, 200).Reply, "Contact", "<sip:a@h>;expires=3600")
	query := p.request("c", 2)
	query.Expires = ParseExpires("0") // changes nothing without a Contact
	p.has(p.send(query, 200).Reply, "Contact", "<sip:a@h>;expires=3600")
}

func caseSpellings(t *testing.T, p *phone) {
	for i, uri := range []string{
		"sip:alice@h.test;x=1;y=2", "sip:alice@h.test;y=2;x=1", "sip:%61lice@H.TEST;Y=2", "sip:alice@h.test",
	} {
		p.register("c", uint32(i+1), "<"+uri+">")
		p.bound(uri) // the newest spelling is the one to use
	}
	p.register("c", 10, "<sip:alice@h.test:5060>", "<sip:Alice@h.test>")
	p.bound("sip:alice@h.test", "sip:alice@h.test:5060", "sip:Alice@h.test")
	p.register("c", 11, "<sip:%61lice@h.test>;expires=0")
	p.bound("sip:alice@h.test:5060", "sip:Alice@h.test")
}

func caseLimit(t *testing.T, p *phone) {
	p.policy.MaxContacts = 2
	p.register("c", 1, "<sip:a@h>", "<sip:b@h>")
	p.send(p.request("c", 2, "<sip:c@h>"), 403)
	p.send(p.request("c", 2, "<sip:a@h>", "<sip:c@h>"), 403)
	p.policy.WhenFull = RefuseUnavailable
	p.send(p.request("c", 2, "<sip:c@h>"), 503)
	p.register("c", 3, "<sip:a@h>", "<sip:b@h>")
	p.register("c", 4, "<sip:c@h>", "<sip:a@h>;expires=0") // an exchange is not one more
	p.bound("sip:b@h", "sip:c@h")
	p.policy.MaxContacts = 1 // lowered: refreshing goes on
	p.register("c", 5, "<sip:c@h>")
}

func caseReplaceOldest(t *testing.T, p *phone) {
	p.policy.MaxContacts, p.policy.WhenFull = 2, ReplaceOldest
	p.register("c", 1, "<sip:a@h>")
	p.now = p.now.Add(time.Second)
	p.register("c", 2, "<sip:b@h>")
	p.now = p.now.Add(time.Second)
	p.register("c", 3, "<sip:a@h>")
	d := p.register("d", 1, "<sip:c@h>")
	p.bound("sip:a@h", "sip:c@h")
	if !slices.Equal(d.kinds(), []ChangeKind{Rejected, Created}) {
		t.Errorf("%v", d.kinds())
	}
	p.send(p.request("d", 2, "<sip:d@h>", "<sip:e@h>", "<sip:f@h>"), 403) // more than can be at all
	p.bound("sip:a@h", "sip:c@h")
}

func caseClosed(t *testing.T, p *phone) {
	p.policy.MaxContacts = 1
	for i := range uint32(5) {
		req := p.request("c", i+1, fmt.Sprintf("<sip:a@h:%d;transport=tls>", 1000+i))
		req.Flow = Flow{FrontEnd: "fe1", Boot: "b", Transport: "tls", ID: uint64(i + 1)}
		p.send(req, 200)
		next, changes := p.set.Drop(func(b Binding) bool { return b.Flow == req.Flow }, Deactivated, p.now)
		if len(changes) != 1 {
			t.Fatalf("%+v", changes)
		}
		p.set = next
	}
	p.bound()
}

func caseRequire(t *testing.T, p *phone) {
	req := p.request("c", 1, "<sip:a@h>")
	req.Require = []string{"something-unknown"}
	p.has(p.send(req, 420).Reply, "Unsupported", "something-unknown")
}

func caseDomains(t *testing.T, p *phone) {
	p.policy.Domains = []string{"example.test", "example.net"}
	req := p.request("c", 1, "<sip:a@h>")
	req.Domain = "elsewhere.test"
	p.send(req, 404)
	req = p.request("c", 1, "<sip:a@h>")
	req.AOR = "sip:alice@elsewhere.test"
	p.send(req, 404)
}

func casePath(t *testing.T, p *phone) {
	paths := []string{"<sip:p2.example.test;lr>", "<sip:p1.example.test;lr;ob>"}
	req := p.request("c", 1, "<sip:a@h>")
	req.Path, req.Vias = paths, 3
	p.has(p.send(req, 200).Reply, "Path") // accepted, not echoed to who does not know it
	if got := p.set.Bindings[0].Path; !slices.Equal(got, paths) {
		t.Errorf("stored %q", got)
	}
	p.policy.RequirePathSupport = true
	req = p.request("c", 2, "<sip:a@h>")
	req.Path, req.Vias = paths, 3
	p.has(p.send(req, 421).Reply, "Require", "path")
	req.Supported = []string{"path"}
	p.has(p.send(req, 200).Reply, "Path", paths...)
}

func caseRefreshAtExpiry(t *testing.T, p *phone) {
	p.register("c", 1, "<sip:a@h>;expires=60")
	for _, after := range []time.Duration{60 * time.Second, 70*time.Second - time.Millisecond} {
		p.now = benchNow.Add(after)
		if d := p.register("c", uint32(2+after/time.Millisecond), "<sip:a@h>;expires=60"); !slices.Equal(d.kinds(), []ChangeKind{Refreshed}) {
			t.Errorf("after %v: %v", after, d.kinds())
		}
		next, changes := p.set.Expire(p.now, p.policy.Grace)
		if len(changes) > 0 {
			t.Fatalf("refreshed and yet expired: %+v", changes)
		}
		p.set = next
		p.set.Bindings[0].Expires = benchNow.Add(60 * time.Second)
	}
	p.now = benchNow.Add(70 * time.Second)
	if d := p.register("c", 99999999, "<sip:a@h>;expires=60"); !slices.Equal(d.kinds(), []ChangeKind{Expired, Created}) {
		t.Errorf("%v", d.kinds())
	}
}

func caseLateDuplicate(t *testing.T, p *phone) {
	first := p.request("c", 1, "<sip:a@h>")
	p.send(first, 200)
	p.register("c", 2, "<sip:a@h>;expires=0")
	p.now = p.now.Add(31 * time.Second)
	p.send(first, 500)
	p.bound()
	p.register("c", 3, "<sip:a@h>") // a real return is welcome
	p.bound("sip:a@h")
}

func caseLateOldCallID(t *testing.T, p *phone) {
	first := p.request("old", 1, "<sip:a@h>")
	p.send(first, 200)
	p.register("new", 1, "<sip:a@h>;expires=0") // the device restarted and cleans up
	p.send(first, 500)
	p.bound()

	moved := p.request("old2", 9, instance("sip:b@h:1", 1, ""))
	p.send(moved, 200)
	p.register("new2", 1, instance("sip:b@h:2", 1, ""))
	p.send(moved, 500)
	p.bound("sip:b@h:2")

	p.register("x", 5, "<sip:c@h>")
	star := p.request("y", 1, "*")
	star.Expires = lasting(0)
	p.send(star, 200)
	p.send(p.request("x", 5, "<sip:c@h>"), 500)
	p.send(p.request("new2", 1, instance("sip:b@h:2", 1, "")), 500)
	p.bound()
}

func caseRemovalFirst(t *testing.T, p *phone) {
	p.register("c", 2, "<sip:a@h>;expires=0") // overtook the REGISTER that it takes back
	p.send(p.request("c", 1, "<sip:a@h>"), 500)
	p.bound()
	if until := p.set.Until(0); !until.Equal(p.now.Add(RemovalMemory)) {
		t.Errorf("kept until %v", until)
	}
	p.now = p.now.Add(RemovalMemory)
	p.register("c", 1, "<sip:a@h>")
	p.bound("sip:a@h")
}

func caseOutbound(t *testing.T, p *phone) {
	p.policy.FlowTimer = 2 * time.Minute
	req := p.request("c", 1, instance("sip:a@h", 1, ""))
	p.has(p.send(req, 200).Reply, "Require") // did not say that it supports it
	req = p.request("c", 2, instance("sip:a@h", 1, ""))
	req.Supported = []string{"path", "outbound"}
	d := p.send(req, 200)
	p.has(d.Reply, "Require", "outbound")
	p.has(d.Reply, "Flow-Timer", "120")
	req = p.request("c", 3, instance("sip:a@h", 1, ""))
	req.Supported, req.Vias = []string{"outbound"}, 2
	p.send(req, 439)
	req.Path = []string{"<sip:edge;lr>"}
	p.send(req, 439)
	req.Path = []string{"<sip:core;lr>, <sip:edge;lr;ob>"}
	p.send(req, 200)
}

func caseFlows(t *testing.T, p *phone) {
	p.register("c", 1, instance("sip:a@h", 1, "")) // the same Contact over two flows
	p.register("d", 1, instance("sip:a@h", 2, ""))
	p.bound("sip:a@h", "sip:a@h")
	p.register("d", 2, instance("sip:a@h", 2, ";expires=0"))
	p.bound("sip:a@h")
	if p.set.Bindings[0].RegID != 1 {
		t.Errorf("%+v", p.set.Bindings)
	}
}
