package registrar

import (
	"strings"
	"testing"
)

func TestReceived(t *testing.T) {
	for _, c := range []struct {
		contact, transport, remote string
		path                       []string
		uri                        string
		differs                    bool
	}{
		{"sip:a@10.0.0.1:5060", "udp", "192.0.2.1:4000", nil, "sip:192.0.2.1:4000", true},
		{"sip:a@192.0.2.1", "udp", "192.0.2.1:5060", nil, "sip:192.0.2.1:5060", false},
		{"sip:a@192.0.2.1:4000", "tcp", "192.0.2.1:4000", nil, "sip:192.0.2.1:4000;transport=tcp", true},
		{"sip:a@192.0.2.1:4000;transport=TCP", "tcp", "192.0.2.1:4000", nil, "sip:192.0.2.1:4000;transport=tcp", false},
		{"sip:a@[2001:DB8:0::1]:4000", "udp", "[2001:db8::1]:4000", nil, "sip:[2001:db8::1]:4000", false},
		{"sip:a@x.invalid;transport=ws", "ws", "192.0.2.1:4000", nil, "sip:192.0.2.1:4000;transport=ws", true},
		{"tel:+1", "udp", "192.0.2.1:4000", nil, "sip:192.0.2.1:4000", true},
		{"sip:a@10.0.0.1:5060", "udp", "192.0.2.1:4000", []string{"<sip:p;lr>"}, "", false},
		{"sip:a@10.0.0.1:5060", "udp", "", nil, "", false},
	} {
		b := Binding{Contact: Contact{URI: c.contact}, Path: c.path, Flow: Flow{Transport: c.transport, Remote: c.remote}}
		if uri, differs := b.Received(); uri != c.uri || differs != c.differs {
			t.Errorf("%s from %s: %s, %v", c.contact, c.remote, uri, differs)
		}
	}
}

// The option tells it in the 200, beside the contact as it was registered; a client's own word stays.
func TestShowReceived(t *testing.T) {
	p := newPhone(t)
	p.policy.ShowReceived = true
	p.set, p.now = Set{}, benchNow
	got := values(p.register("c", 1, "<sip:a@10.0.0.1:5060>;expires=600", `<sip:b@10.0.0.1>;received="sip:x";expires=600`, "<sip:c@192.0.2.1>;expires=600").Reply, "Contact")
	want := []string{`<sip:a@10.0.0.1:5060>;received="sip:192.0.2.1:5060";expires=600`,
		`<sip:b@10.0.0.1>;received="sip:x";expires=600`, `<sip:c@192.0.2.1>;expires=600`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

// The parameters of push (RFC 8599) are kept byte by byte, echoed, and do not make one contact two.
func TestPushParameters(t *testing.T) {
	const push = `<sip:alice@192.0.2.9:5061;transport=tls;pn-provider=acme;pn-param=acme-param;pn-prid=00fc13adff78512e>`
	p := newPhone(t)
	first := p.register("c", 1, push+";expires=600")
	again := p.register("c", 2, push+";expires=600;sip.pnsreg")
	for _, d := range []Decision{first, again} {
		if c := values(d.Reply, "Contact"); len(c) != 1 || !strings.HasPrefix(c[0], push+";") {
			t.Errorf("%q", c)
		}
	}
	if !strings.Contains(values(again.Reply, "Contact")[0], ";sip.pnsreg;") {
		t.Error("the header parameter was lost")
	}
	// A new token of the same device, by its instance, replaces the old one.
	const instance = `;+sip.instance="<urn:uuid:1>";reg-id=1;expires=600`
	p.register("d", 1, strings.Replace(push, "00fc", "11fc", 1)+instance)
	p.register("d", 2, strings.Replace(push, "00fc", "22fc", 1)+instance)
	if n := len(p.set.Bindings); n != 2 || !strings.Contains(p.set.Bindings[1].URI, "pn-prid=22fc") {
		t.Errorf("%+v", p.set.Bindings)
	}
}
