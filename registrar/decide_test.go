package registrar

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// phone makes the REGISTERs of one client, and keeps what was stored for it.
type phone struct {
	t      *testing.T
	policy Policy
	now    time.Time
	set    Set
}

func newPhone(t *testing.T) *phone {
	return &phone{t: t, policy: DefaultPolicy(), now: benchNow}
}

// request makes a REGISTER; the branch follows from Call-ID and CSeq, so the same one twice is a retransmission.
func (p *phone) request(callID string, cseq uint32, contacts ...string) *Request {
	p.t.Helper()
	cs, star, err := ParseContacts(contacts)
	if err != nil {
		p.t.Fatal(err)
	}
	return &Request{
		RequestURI: "sip:example.test", Domain: "example.test", AOR: "sip:alice@example.test", From: "sip:alice@example.test",
		CallID: callID, CSeq: cseq, Branch: fmt.Sprintf("z9hG4bK-%s-%d", callID, cseq), Vias: 1,
		Contacts: cs, Star: star, Flow: Flow{FrontEnd: "fe1", Transport: "udp", Remote: "192.0.2.1:5060"},
	}
}

// send decides and, as the store does, goes through the stored form.
func (p *phone) send(req *Request, status int) Decision {
	p.t.Helper()
	before := clone(p.t, p.set)
	d := Decide(p.set, req, p.now, p.policy)
	if d.Reply.Status != status {
		p.t.Fatalf("answered %d %s, want %d", d.Reply.Status, d.Reply.Reason, status)
	}
	if diff := cmp.Diff(before, p.set); diff != "" {
		p.t.Fatalf("Decide changed its input: %s", diff)
	}
	if status != 200 && (d.Write || len(d.Changes) > 0) {
		p.t.Fatalf("a refusal changes something: %+v", d)
	}
	if !d.Write {
		if diff := cmp.Diff(before, d.Next); diff != "" {
			p.t.Fatalf("nothing to write, yet another set: %s", diff)
		}
	}
	p.set = clone(p.t, d.Next)
	return d
}

func (p *phone) register(callID string, cseq uint32, contacts ...string) Decision {
	p.t.Helper()
	return p.send(p.request(callID, cseq, contacts...), 200)
}

func clone(t *testing.T, s Set) Set {
	t.Helper()
	data, err := EncodeSet(s)
	if err != nil {
		t.Fatal(err)
	}
	s, err = DecodeSet(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p *phone) bound(want ...string) {
	p.t.Helper()
	var got []string
	for _, b := range p.set.Live(p.now, p.policy.Grace) {
		got = append(got, b.URI)
	}
	if !slices.Equal(got, want) {
		p.t.Fatalf("bound: %q, want %q", got, want)
	}
}

func (d Decision) kinds() (kinds []ChangeKind) {
	for _, c := range d.Changes {
		kinds = append(kinds, c.Kind)
	}
	return kinds
}

func values(r Reply, name string) (values []string) {
	for _, h := range r.Headers {
		if h.Name == name {
			values = append(values, h.Value)
		}
	}
	return values
}

func (p *phone) has(r Reply, name string, want ...string) {
	p.t.Helper()
	if got := values(r, name); !slices.Equal(got, want) {
		p.t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// TestSection10_3 goes through RFC 3261 §10.3 step by step. Step 3 is in authenticate_test.go.
func TestSection10_3(t *testing.T) {
	t.Run("step 1: a Request-URI of another domain", func(t *testing.T) {
		p := newPhone(t)
		p.policy.Domains, p.policy.Aliases = []string{"example.test"}, []string{"192.0.2.99"}
		req := p.request("c", 1, "<sip:a@h>")
		req.Domain = "example.org"
		p.send(req, 404)
		req.Domain = "192.0.2.99"
		p.send(req, 200)
	})
	t.Run("step 2: unknown extension", func(t *testing.T) {
		p := newPhone(t)
		req := p.request("c", 1, "<sip:a@h>")
		req.Require = []string{"path", "foo", "bar"}
		p.has(p.send(req, 420).Reply, "Unsupported", "foo, bar")
	})
	t.Run("step 4: third-party registration", func(t *testing.T) {
		p := newPhone(t)
		req := p.request("c", 1, "<sip:a@h>")
		req.From = "sip:boss@example.test"
		p.policy.RefuseThirdParty = true
		p.send(req, 403)
		p.policy.RefuseThirdParty = false
		p.send(req, 200)
	})
	t.Run("step 5: an AOR that is not valid in the domain", func(t *testing.T) {
		p := newPhone(t)
		req := p.request("c", 1, "<sip:a@h>")
		req.AOR = "sip:example.test"
		p.send(req, 404)
		p.policy.Domains = []string{"example.test"}
		req.AOR = "sip:alice@example.org"
		p.send(req, 404)
	})
	t.Run("step 6: no Contact is a query", func(t *testing.T) {
		p := newPhone(t)
		p.register("c", 1, "<sip:a@h>;expires=600")
		d := p.register("c", 2)
		p.has(d.Reply, "Contact", "<sip:a@h>;expires=600")
		if d.Write {
			t.Error("a query writes")
		}
	})
	t.Run("step 6: star removes all", testStar)
	t.Run("step 7: expiry", testExpiry)
	t.Run("step 7: order", testOrder)
	t.Run("step 7: all or nothing", func(t *testing.T) {
		p := newPhone(t)
		p.register("c", 5, "<sip:a@h>")
		p.send(p.request("d", 1, "<sip:b@h>", "<sip:c@h>;expires=1"), 423)
		p.send(p.request("c", 4, "<sip:b@h>", "<sip:a@h>"), 500)
		p.bound("sip:a@h")
	})
	t.Run("step 8: the answer", testAnswer)
}

func testStar(t *testing.T) {
	p := newPhone(t)
	p.register("c", 1, "<sip:a@h>", "<sip:b@h>")
	req := p.request("d", 9, "*")
	req.Expires = lasting(0)
	d := p.send(req, 200)
	p.bound()
	if !slices.Equal(d.kinds(), []ChangeKind{Unregistered, Unregistered}) || len(values(d.Reply, "Contact")) != 0 {
		t.Errorf("%v, %v", d.kinds(), d.Reply)
	}
}

func testExpiry(t *testing.T) {
	for _, c := range []struct {
		name, param  string
		header       ExpiresIn
		status, want int
	}{
		{"parameter before header field", ";expires=120", lasting(300), 200, 120},
		{"header field", "", lasting(300), 200, 300},
		{"default", "", ExpiresIn{}, 200, 3600},
		{"malformed parameter is the default", ";expires=x", lasting(300), 200, 3600},
		{"malformed header field is the default", "", ExpiresIn{Given: true}, 200, 3600},
		{"above the maximum is lowered", ";expires=90000", ExpiresIn{}, 200, 7200},
		{"largest number", ";expires=4294967295", ExpiresIn{}, 200, 7200},
		{"minimum", ";expires=60", ExpiresIn{}, 200, 60},
		{"case 27: below the minimum", ";expires=59", ExpiresIn{}, 423, 0},
		{"too brief by the header field", "", lasting(1), 423, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPhone(t)
			req := p.request("c", 1, "<sip:a@h>"+c.param)
			req.Expires = c.header
			d := p.send(req, c.status)
			if c.status == 423 {
				p.has(d.Reply, "Min-Expires", "60")
				p.bound()
				return
			}
			p.has(d.Reply, "Contact", fmt.Sprintf("<sip:a@h>;expires=%d", c.want))
		})
	}
	t.Run("an hour is never too brief", func(t *testing.T) {
		p := newPhone(t)
		p.policy.MinExpires, p.policy.MaxExpires = 2*time.Hour, 3*time.Hour
		p.register("c", 1, "<sip:a@h>;expires=3600")
		p.has(p.send(p.request("c", 2, "<sip:a@h>;expires=3599"), 423).Reply, "Min-Expires", "7200")
	})
}

func testOrder(t *testing.T) {
	p := newPhone(t)
	p.register("c", 5, "<sip:a@h>")
	p.send(p.request("c", 4, "<sip:a@h>"), 500)
	p.send(p.request("c", 4, "<sip:a@h>;expires=0"), 500)
	p.bound("sip:a@h")
	p.register("c", 4, "<sip:b@h>") // the order is per binding
	if d := p.register("c", 6, "<sip:a@h>"); !slices.Equal(d.kinds(), []ChangeKind{Refreshed}) {
		t.Errorf("%v", d.kinds())
	}
	p.register("other", 1, "<sip:a@h>") // another Call-ID starts anew
	p.register("other", 2, "<sip:a@h>;expires=0", "<sip:b@h>;expires=0")
	p.bound()
}

func testAnswer(t *testing.T) {
	p := newPhone(t)
	p.register("c", 1, `<sip:a@h;ob>;Q=0.7;x="y, z";w;+sip.instance="<urn:uuid:1>";reg-id=1;expires=600`)
	p.now = p.now.Add(1500 * time.Millisecond)
	d := p.register("d", 1, "sip:b@h;q=0.125")
	p.has(d.Reply, "Contact",
		`<sip:a@h;ob>;q=0.7;+sip.instance="<urn:uuid:1>";reg-id=1;x="y, z";w;expires=599`,
		"<sip:b@h>;q=0.125;expires=3600")
	p.has(d.Reply, "Date", "Sun, 01 Mar 2026 12:00:01 GMT")
	t.Run("a binding in its grace never shows 0", func(t *testing.T) {
		for _, after := range []time.Duration{600 * time.Second, 609 * time.Second} {
			p.now = benchNow.Add(after)
			if v := values(p.register("q", 1).Reply, "Contact"); len(v) != 2 || !strings.HasSuffix(v[0], ";expires=1") {
				t.Errorf("after %v: %q", after, v)
			}
		}
		p.now = benchNow.Add(610 * time.Second)
		p.bound("sip:b@h")
	})
}

func TestQValues(t *testing.T) {
	for q := 0; q <= 1000; q++ {
		s := string(appendQ(nil, q))
		if got, ok := parseQ(s); !ok || got != q {
			t.Fatalf("%d is written %s and read %d, %v", q, s, got, ok)
		}
	}
}

func TestChanges(t *testing.T) {
	p := newPhone(t)
	created := p.register("c", 1, "<sip:a@h>;expires=600")
	if !slices.Equal(created.kinds(), []ChangeKind{Created}) {
		t.Errorf("%v", created.kinds())
	}
	p.now = p.now.Add(time.Minute)
	d := p.register("c", 2, "<sip:a@h>;expires=60")
	if !slices.Equal(d.kinds(), []ChangeKind{Shortened}) || !d.Changes[0].Binding.Created.Equal(benchNow) || !d.Changes[0].Binding.Refreshed.Equal(p.now) {
		t.Errorf("%+v", d.Changes)
	}
	p.now = p.now.Add(2 * time.Minute)
	d = p.register("c", 3, "<sip:b@h>")
	if !slices.Equal(d.kinds(), []ChangeKind{Expired, Created}) {
		t.Errorf("%v", d.kinds())
	}
}

func TestGrants(t *testing.T) {
	p := newPhone(t)
	p.policy.Grants = []Grant{
		{Transport: "udp", UserAgent: regexp.MustCompile(`^baresip`), Max: 30 * time.Second},
		{Transport: "udp", Max: time.Minute},
	}
	for i, c := range []struct {
		transport, ua string
		want          int
	}{{"udp", "baresip v1", 30}, {"udp", "other", 60}, {"tcp", "baresip v1", 600}} {
		req := p.request("c", uint32(i+1), "<sip:a@h>;expires=600")
		req.Flow.Transport, req.UserAgent = c.transport, c.ua
		p.has(p.send(req, 200).Reply, "Contact", fmt.Sprintf("<sip:a@h>;expires=%d", c.want))
	}
}

func TestRecordLimit(t *testing.T) {
	p := newPhone(t)
	p.policy.MaxRecord = 1000
	p.register("c", 1, "<sip:a@h>")
	refresh := func(size int) *Request { return p.request("c", 2, "<sip:a@h>;x="+strings.Repeat("y", size)) }
	p.send(refresh(1200), 403) // however often it is tried
	p.register("c", 3, "<sip:a@h>")
	add := p.request("d", 1, "<sip:b@h>;x="+strings.Repeat("y", 700))
	p.send(add, 403)
	p.policy.WhenFull = RefuseUnavailable
	p.send(add, 503)
	p.policy.WhenFull = ReplaceOldest
	d := p.send(add, 200)
	p.bound("sip:b@h")
	if !slices.Equal(d.kinds(), []ChangeKind{Rejected, Created}) {
		t.Errorf("%v", d.kinds())
	}
	p.send(p.request("d", 2, "<sip:c@h>;x="+strings.Repeat("y", 1200)), 403) // too large even alone
	p.bound("sip:b@h")
	p.register("d", 3, "<sip:b@h>;x="+strings.Repeat("y", 1000)) // a refresh may take a little more
	p.policy.WhenFull = RefuseForbidden
	p.register("c", 4, "<sip:b@h>;x=y")
	p.policy.MaxRecord = 10 // lowered later: what is there can still be refreshed
	p.register("c", 5, "<sip:b@h>")
}

func TestManyContactsAreRefused(t *testing.T) {
	p := newPhone(t)
	p.policy.MaxContacts = 0
	var many []string
	for i := range maxRequestContacts + 1 {
		many = append(many, fmt.Sprintf("<sip:a@h%d>", i))
	}
	p.send(p.request("c", 1, many...), 403)
	p.register("c", 2, many[1:]...)
}
