package sipwire

import (
	"errors"
	"strings"
	"testing"
)

const ok200 = "SIP/2.0 200 OK\r\nv: SIP/2.0/TCP 127.0.0.1:4000 ; rport=4000 ; BRANCH=z9hG4bKabc\r\nf: <sip:a@b>;tag=1\r\n" +
	"t: \"x;tag=no, <\" <sip:a@b>;tag=2\r\ni: call-1\r\nCSeq: 7 REGISTER\r\n" +
	"m: <sip:a@127.0.0.1:4000;transport=tcp>;q=0.5;Expires=60, \"B, b\" <sip:a@10.0.0.1>\r\n ;expires=20\r\n" +
	"WWW-Authenticate: Digest realm=\"r\"\r\nRetry-After: 5 (busy);duration=3\r\nRequire: Outbound\r\nFlow-Timer: 30\r\nl: 0\r\n\r\n"

func TestParseReadsWhatASoftphoneNeeds(t *testing.T) {
	m, err := Parse([]byte(ok200))
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != 200 || m.Branch != "z9hG4bKabc" || m.CSeq != 7 || m.CSeqMethod != "REGISTER" || m.CallID != "call-1" {
		t.Errorf("head read as %+v", m)
	}
	if len(m.Contacts) != 2 || m.Contacts[0].Expires != 60 || m.Contacts[0].URI != "sip:a@127.0.0.1:4000;transport=tcp" ||
		m.Contacts[1].Expires != 20 || m.Contacts[1].URI != "sip:a@10.0.0.1" {
		t.Errorf("contacts read as %+v", m.Contacts)
	}
	if m.RetryAfter != 5 || m.FlowTimer != 30 || !m.Outbound || m.Expires != -1 || len(m.Challenges) != 1 {
		t.Errorf("fields read as %+v", m)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", "SIP/2.0 OK\r\n\r\n", "SIP/2.0 99 x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "SIP/2.0 200 OK\r\n\r\n",
		strings.Replace(ok200, "CSeq: 7 REGISTER", "CSeq: x REGISTER", 1),
		strings.Replace(ok200, "i: call-1\r\n", "", 1),
		strings.Replace(ok200, "l: 0", "nonsense", 1),
	} {
		if _, err := Parse([]byte(s)); !errors.Is(err, ErrMalformed) {
			t.Errorf("Parse(%q): %v, want ErrMalformed", s, err)
		}
	}
}

func TestSplit(t *testing.T) {
	body := "SIP/2.0 200 OK\r\nContent-Length : 3\r\n\r\nabc"
	for _, c := range []struct {
		in   string
		kind Kind
		n    int
		err  error
	}{
		{"", Incomplete, 0, nil},
		{"\r", Incomplete, 0, nil},
		{"\r\n", Pong, 2, nil},
		{"\r\n\r\nSIP", Ping, 4, nil},
		{body[:len(body)-1], Incomplete, 0, nil},
		{body + "more", Complete, len(body), nil},
		{"A B C\r\nX: y\r\n\r\n", Complete, 15, nil},
		{"SIP/2.0 200 OK\r\nl: x\r\n\r\n", Incomplete, 0, ErrLength},
		{strings.Repeat("x", MaxMessage+1), Incomplete, 0, ErrTooLong},
	} {
		kind, n, err := Split([]byte(c.in))
		if kind != c.kind || n != c.n || !errors.Is(err, c.err) {
			t.Errorf("Split(%.40q) = %v %d %v, want %v %d %v", c.in, kind, n, err, c.kind, c.n, c.err)
		}
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	r := Register{URI: "sip:b", Transport: "UDP", SentBy: "127.0.0.1:5", Branch: "z9hG4bK1", AOR: "sip:a@b", FromTag: "t", CallID: "c",
		CSeq: 3, Contact: "sip:a@127.0.0.1:5", ContactParams: ";reg-id=1", ContactExpiry: true, HeaderExpiry: true, Expires: 60,
		Supported: "path", UserAgent: "u", Authorization: []string{"Authorization: Digest x=1"}}
	m, err := Parse(AppendRegister(nil, &r))
	if err != nil {
		t.Fatal(err)
	}
	if m.Method != "REGISTER" || m.Branch != "z9hG4bK1" || m.CSeq != 3 || m.Expires != 60 || m.Contacts[0].Expires != 60 || m.Authorization != "Digest x=1" {
		t.Errorf("read back %+v", m)
	}
	answer := AppendAnswer(nil, &m, 200, "OK", "srv", "Expires: 30")
	a, err := Parse(answer)
	if err != nil || a.Status != 200 || a.Branch != m.Branch || a.To != "<sip:a@b>;tag=srv" || a.Expires != 30 {
		t.Errorf("answer %q read as %+v, %v", answer, a, err)
	}
	if kind, n, _ := Split(answer); kind != Complete || n != len(answer) {
		t.Errorf("answer not framed: %v %d", kind, n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(ok200))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, n, err := Split(b)
		if kind != Incomplete && (n <= 0 || n > len(b)) {
			t.Fatalf("Split took %d of %d (%v)", n, len(b), err)
		}
		_, _ = Parse(b)
	})
}

func BenchmarkParse200(b *testing.B) {
	b.ReportAllocs()
	raw := []byte(ok200)
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}
