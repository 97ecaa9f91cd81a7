package sipfront

import (
	"context"
	"strings"
	"testing"
	"time"

	"rollcall/registrar"

	"github.com/google/go-cmp/cmp"
)

var fuzzNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const subscribeText = "SUBSCRIBE sip:alice@example.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKs1\r\nMax-Forwards: 70\r\n" +
	"Record-Route: <sip:p2.example.test;lr>, <sip:p1.example.test;lr>\r\n" +
	"From: \"A\" <sip:alice@example.test>;tag=w1\r\nTo: <sip:alice@example.test>\r\nCall-ID: s1@192.0.2.1\r\nCSeq: 7 SUBSCRIBE\r\n" +
	"Event: reg;id=5\r\nExpires: 600\r\nAccept: application/reginfo+xml;q=0.5, Text/Plain\r\nContact: <sip:alice@192.0.2.1>\r\nContent-Length: 0\r\n\r\n"

// with applies "old => new" edits to the SUBSCRIBE above.
func with(edits ...string) string {
	text := subscribeText
	for _, e := range edits {
		from, to, ok := strings.Cut(e, " => ")
		if !ok || !strings.Contains(text, from) {
			panic(e)
		}
		text = strings.Replace(text, from, to, 1)
	}
	return text
}

func TestParseSubscribe(t *testing.T) {
	in, _, err := Parse([]byte(subscribeText), registrar.Flow{Transport: "udp", Remote: "192.0.2.1:5060"})
	if err != nil {
		t.Fatal(err)
	}
	want := &registrar.Subscribe{
		Event: "reg", EventID: "5", Accept: []string{"application/reginfo+xml", "text/plain"},
		From: `"A" <sip:alice@example.test>;tag=w1`, FromTag: "w1", To: "<sip:alice@example.test>",
		RecordRoutes: []string{"<sip:p2.example.test;lr>", "<sip:p1.example.test;lr>"},
	}
	tag := in.Subscribe.Tag
	got := *in.Subscribe
	got.Tag = ""
	if d := cmp.Diff(want, &got); d != "" {
		t.Error(d)
	}
	if in.Request.Method != "SUBSCRIBE" || in.Request.AOR != "sip:alice@example.test" || in.Request.CSeq != 7 || in.Request.Expires.Seconds != 600 {
		t.Errorf("%+v", in.Request)
	}
	// The dialog's tag is that of the answer, at whichever Front End it is made.
	again, _, err := Parse([]byte(subscribeText), registrar.Flow{Transport: "tcp"})
	if answer := string(in.Render(registrar.Reply{Status: 200, Reason: "OK"})); err != nil || tag == "" ||
		!strings.Contains(answer, "To: <sip:alice@example.test>;tag="+tag+"\r\n") || again.Subscribe.Tag != tag {
		t.Errorf("tag %q in %s", tag, answer)
	}
}

// The form of a SUBSCRIBE is judged as a REGISTER's is; what its package makes of it is the Handler's.
func TestSubscribeForms(t *testing.T) {
	for _, c := range []struct {
		edit   string
		status int // 0: it reaches the Handler
	}{
		{"Event: reg;id=5 => Event: reg", 0},
		{"Event: reg;id=5 => o: reg ; id = 5", 0},
		{"Event: reg;id=5 => Event: presence", 0},
		{"Event: reg;id=5 => X: y", 0},
		{"Event: reg;id=5 => Event: reg\r\nEvent: reg", 400},
		{"Event: reg;id=5 => Event: ", 400},
		{"Event: reg;id=5 => Event: ;id=5", 400},
		{"Event: reg;id=5 => Event: reg;id=", 400},
		{"Event: reg;id=5 => Event: reg, presence", 400},
		{"Event: reg;id=5 => Event: reg;", 400},
		{"Event: reg;id=5 => Event: r\x01g", 400},
		{"Expires: 600 => Expires: 600\r\nExpires: 600", 400},
		{"Accept: application/reginfo+xml;q=0.5, Text/Plain => Accept: ", 0},
		{"Accept: application/reginfo+xml;q=0.5, Text/Plain => Accept: a/b,,c/d", 400},
		{"Record-Route: <sip:p2.example.test;lr> => Record-Route: <sip:p2.example.test;lr", 400},
		{"Contact: <sip:alice@192.0.2.1> => Contact: <<sip:alice@192.0.2.1>", 400},
		{"To: <sip:alice@example.test> => To: <sip:alice@example.test>;tag=x", 0},
		{"CSeq: 7 SUBSCRIBE => CSeq: 7 REGISTER", 400},
		{"Call-ID: s1@192.0.2.1 => X: y", 400},
		{"SUBSCRIBE sip:alice@example.test SIP/2.0 => SUBSCRIBE tel:+123 SIP/2.0", 416},
	} {
		in, refusal, err := Parse([]byte(with(c.edit)), registrar.Flow{Transport: "udp", Remote: "192.0.2.1:5060"})
		if c.status == 0 && (err != nil || in.Subscribe == nil) {
			t.Errorf("%q: %v", c.edit, err)
		}
		if c.status != 0 && (err == nil || statusOf(refusal) != c.status) {
			t.Errorf("%q: %s, not %d", c.edit, refusal, c.status)
		}
	}
}

// A SUBSCRIBE has a door of its own to the Handler, over UDP and TCP.
type doors struct{ *answerer }

func (d doors) Subscribe(_ context.Context, in *Inbound) []byte {
	return in.Render(registrar.Reply{Status: 489, Reason: "Bad Event: " + in.Subscribe.Event})
}

func TestSubscribeReachesTheHandler(t *testing.T) {
	s := open(t, doors{newAnswerer(nil)}, nil)
	for _, transport := range []string{"udp", "tcp"} {
		r := &reader{c: dial(t, s, transport)}
		write(t, r.c, with("z9hG4bKs1 => z9hG4bKs1;rport"))
		if got := r.next(t); !strings.HasPrefix(got, "SIP/2.0 489 Bad Event: reg\r\n") {
			t.Errorf("%s: %s", transport, got)
		}
	}
	if st := s.Stats(); st.Subscribes != 2 || st.Registers != 0 {
		t.Errorf("%+v", st)
	}
}

func FuzzParseSubscribe(f *testing.F) {
	f.Add([]byte(subscribeText))
	f.Add([]byte(with("Event: reg;id=5 => o: reg ; id = \"5\";x", "Accept: => Accept: */*,")))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, refusal, err := Parse(data, registrar.Flow{Transport: "udp", Local: "127.0.0.1:5060", Remote: "192.0.2.1:5060"})
		if err != nil || in.Subscribe == nil {
			if err == nil && in.Request.Method != "" {
				t.Fatal("a REGISTER with a method")
			}
			_ = refusal
			return
		}
		if refusal := registrar.CheckSubscribe(&in.Request, in.Subscribe); refusal != nil {
			return
		}
		d, sub := registrar.DecideSubscribe(registrar.Set{}, &in.Request, in.Subscribe, fuzzNow, registrar.DefaultSubscribePolicy())
		if d.Reply.Status != 200 {
			return
		}
		n := registrar.Notice{Subscription: sub, Full: true}
		n.Subscription.Notified = 1
		uri, headers, body, err := n.Request(in.Request.AOR, fuzzNow)
		if err != nil {
			t.Fatal(err)
		}
		// What we would send back is itself a message that can be read.
		s := &Server{cfg: Config{FrontEnd: "fe1", Version: "x"}}
		text := s.request(in.Flow(), "z9hG4bKx", "NOTIFY", uri, headers, body)
		m, err := split(text[:headEnd(text, 0)])
		if err != nil || m.fault != "" || m.event.n != 1 || m.callID.value != in.Request.CallID || strings.Count(string(text[:headEnd(text, 0)]), "\r\nSubscription-State:") != 1 {
			t.Fatalf("%v %q\n%s", err, m.fault, text)
		}
	})
}
