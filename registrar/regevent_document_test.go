package registrar

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func aliceBindings() []Binding {
	return []Binding{
		{
			Contact: Contact{URI: "sip:alice@192.0.2.10:51234;transport=tcp", Q: 700, Instance: "urn:uuid:0001", RegID: 1, Params: `;audio;methods="INVITE,ACK"`, Display: "Alice <A>"},
			CallID:  "a&b@192.0.2.10", CSeq: 3, Created: benchNow, Refreshed: benchNow.Add(60 * time.Second), Expires: benchNow.Add(660 * time.Second),
		},
		{
			Contact: Contact{URI: "sip:alice@192.0.2.11?a=%3C", Q: -1}, CallID: "c2", CSeq: 1,
			Created: benchNow.Add(time.Millisecond), Refreshed: benchNow.Add(time.Millisecond), Expires: benchNow.Add(300 * time.Second),
		},
	}
}

const twoContacts = `<?xml version="1.0" encoding="UTF-8"?>
<reginfo xmlns="urn:ietf:params:xml:ns:reginfo" version="0" state="full">
 <registration aor="sip:alice@example.test" id="r" state="active">
  <contact id="cmm7p6yo0" state="active" event="refreshed" duration-registered="120" expires="540" q="0.7" callid="a&amp;b@192.0.2.10" cseq="3">
   <uri>sip:alice@192.0.2.10:51234;transport=tcp</uri>
   <display-name>Alice &lt;A&gt;</display-name>
   <unknown-param name="+sip.instance">&#34;&lt;urn:uuid:0001&gt;&#34;</unknown-param>
   <unknown-param name="reg-id">1</unknown-param>
   <unknown-param name="audio"></unknown-param>
   <unknown-param name="methods">&#34;INVITE,ACK&#34;</unknown-param>
  </contact>
  <contact id="cmm7p6yo1" state="active" event="registered" duration-registered="119" expires="180" callid="c2" cseq="1">
   <uri>sip:alice@192.0.2.11?a=%3C</uri>
  </contact>
 </registration>
</reginfo>
`

const noContacts = `<?xml version="1.0" encoding="UTF-8"?>
<reginfo xmlns="urn:ietf:params:xml:ns:reginfo" version="0" state="full">
 <registration aor="sip:alice@example.test" id="r" state="init"></registration>
</reginfo>
`

const lastOneGone = `<?xml version="1.0" encoding="UTF-8"?>
<reginfo xmlns="urn:ietf:params:xml:ns:reginfo" version="41" state="partial">
 <registration aor="sip:alice@example.test" id="r" state="terminated">
  <contact id="cmm7p6yo1" state="terminated" event="unregistered" duration-registered="119" callid="c2" cseq="1">
   <uri>sip:alice@192.0.2.11?a=%3C</uri>
  </contact>
 </registration>
</reginfo>
`

const onProbation = `<?xml version="1.0" encoding="UTF-8"?>
<reginfo xmlns="urn:ietf:params:xml:ns:reginfo" version="4" state="partial">
 <registration aor="sip:alice@example.test" id="r" state="active">
  <contact id="cmm7p6yo1" state="terminated" event="probation" duration-registered="119" retry-after="60" callid="c2" cseq="1">
   <uri>sip:alice@192.0.2.11?a=%3C</uri>
  </contact>
 </registration>
</reginfo>
`

// The documents of RFC 3680 §5.
func TestReginfo(t *testing.T) {
	b := aliceBindings()
	for _, c := range []struct {
		name string
		n    Notice
		want string
	}{
		{"full", Notice{Subscription: Subscription{Notified: 1}, Bindings: b, Full: true}, twoContacts},
		{"full, nothing registered", Notice{Subscription: Subscription{Notified: 1}, Full: true}, noContacts},
		{"partial, the last one gone", Notice{Subscription: Subscription{Notified: 42}, Changes: []Change{{Unregistered, b[1]}}}, lastOneGone},
		{"partial, on probation", Notice{Subscription: Subscription{Notified: 5}, Bindings: b[:1], Changes: []Change{{Probation, b[1]}}}, onProbation},
	} {
		got, err := c.n.Document("sip:alice@example.test", benchNow.Add(2*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, string(got)); d != "" {
			t.Errorf("%s:\n%s", c.name, d)
		}
	}
}

// What each change of a binding is called, and whether the contact is there afterwards (§5.3.3, figure 2).
func TestReginfoEvents(t *testing.T) {
	b := aliceBindings()[0]
	for kind, want := range map[ChangeKind]string{
		Created: "active registered", Refreshed: "active refreshed", Shortened: "active shortened",
		Expired: "terminated expired", Deactivated: "terminated deactivated", Probation: "terminated probation",
		Unregistered: "terminated unregistered", Rejected: "terminated rejected",
	} {
		c := contactElement(&b, kind, benchNow)
		if got := c.State + " " + c.Event; got != want || (c.Expires != nil) != (c.State == "active") || (c.RetryAfter != nil) != (kind == Probation) {
			t.Errorf("%s: %s, expires %v, retry-after %v", kind, got, c.Expires, c.RetryAfter)
		}
	}
}

// The NOTIFY in its dialog (RFC 3261 §12.2.1.1, RFC 6665 §4.2.2).
func TestNotifyRequest(t *testing.T) {
	set := subscribed(t)
	s := set.Subscriptions[0]
	s.EventID = "9"
	uri, headers, _, err := Notice{Subscription: s, Full: true}.Request("sip:alice@example.test", benchNow.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want := []Header{
		{"Route", "<sip:p2.example.test;lr>"}, {"Route", "<sip:p1.example.test;lr>"},
		{"From", "<sip:alice@example.test>;tag=ours1"}, {"To", "<sip:alice@example.test>;tag=w"},
		{"Call-ID", "watch@192.0.2.10"}, {"CSeq", "1 NOTIFY"}, {"Contact", "<sip:192.0.2.1:5060;transport=tcp>"},
		{"Event", "reg;id=9"}, {"Subscription-State", "active;expires=599"}, {"Content-Type", "application/reginfo+xml"},
	}
	if d := cmp.Diff(want, headers); d != "" || uri != "sip:alice@192.0.2.10:5060;transport=tcp" {
		t.Error(uri, d)
	}
	s.Routes = []string{"<sip:old.example.test>", "<sip:p1.example.test;lr>"}
	uri, headers, _, err = Notice{Subscription: s, Full: true, Ended: EndNoResource}.Request("sip:alice@example.test", benchNow)
	if err != nil {
		t.Fatal(err)
	}
	if uri != "sip:old.example.test" || headers[0].Value != "<sip:p1.example.test;lr>" || headers[1].Value != "<sip:alice@192.0.2.10:5060;transport=tcp>" {
		t.Error("a strict router:", uri, headers[:2])
	}
	for _, h := range headers {
		if h.Name == "Subscription-State" && !strings.Contains(h.Value, "terminated;reason=noresource") {
			t.Error(h)
		}
	}
}
