package sipfront

import (
	"strings"
	"testing"
)

// Start lines: the method's case and the version must survive, blanks are faults,
// and what is no SIP at all can't be answered.
func TestStartLine(t *testing.T) {
	for _, c := range []struct {
		line, method, uri, version string
		status                     int
		fault, dead                bool
	}{
		{line: "REGISTER sip:example.test SIP/2.0", method: "REGISTER", uri: "sip:example.test", version: "SIP/2.0"},
		{line: "register sip:example.test SIP/2.0", method: "register", uri: "sip:example.test", version: "SIP/2.0"},
		{line: "REGISTER sip:example.test SIP/7.0", method: "REGISTER", uri: "sip:example.test", version: "SIP/7.0"},
		{line: "REGISTER sip:example.test sip/2.0", method: "REGISTER", uri: "sip:example.test", version: "sip/2.0"},
		{line: "OPTIONS mailto:x SIP/2.0", method: "OPTIONS", uri: "mailto:x", version: "SIP/2.0"},
		{line: "REGISTER  sip:example.test SIP/2.0", method: "REGISTER", uri: " sip:example.test", version: "SIP/2.0", fault: true},
		{line: "REGISTER sip:a b SIP/2.0", method: "REGISTER", uri: "sip:a b", version: "SIP/2.0", fault: true},
		{line: "REGISTER <sip:example.test> SIP/2.0", method: "REGISTER", uri: "<sip:example.test>", version: "SIP/2.0", fault: true},
		{line: "REGISTER sip:example.test SIP/2.0  ", method: "REGISTER", version: "SIP/2.0", uri: "sip:example.test SIP/2.0 ", fault: true},
		{line: "REGISTER SIP/2.0", method: "REGISTER", version: "SIP/2.0", fault: true},
		{line: "SIP/2.0 200 OK", status: 200},
		{line: "SIP/2.0 200", status: 200},
		{line: "SIP/2.0 4294967301 better not", dead: true},
		{line: "SIP/2.0 99 low", dead: true},
		{line: "SIP/2.0", dead: true},
		{line: "GET / HTTP/1.1", dead: true},
		{line: "REGISTER", dead: true},
		{line: " REGISTER sip:x SIP/2.0", dead: true},
		{line: "", dead: true},
	} {
		l, err := readStartLine(c.line)
		if (err != nil) != c.dead {
			t.Errorf("%q: error %v", c.line, err)
			continue
		}
		if l.method != c.method || l.uri != c.uri || l.version != c.version || l.status != c.status || (l.fault != "") != c.fault {
			t.Errorf("%q: %+v", c.line, l)
		}
	}
}

// Lines that are no header fields don't hide the Via behind them, and are never silently passed over.
func TestBadLinesLeaveTheViaReadable(t *testing.T) {
	const start = "REGISTER sip:example.test SIP/2.0\r\n"
	const via = "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n"
	for name, lines := range map[string]string{
		"no colon":            "gibberish\r\n" + via,
		"blank in the name":   "Call ID: 1\r\n" + via,
		"no name":             ": x\r\n" + via,
		"leading blank":       " Subject: x\r\n" + via,
		"bare LF":             "Subject: a\n" + via,
		"LF inside a value":   "Subject: a\nTo: b\r\n" + via,
		"bare CR":             "Subject: a\rb\r\n" + via,
		"after a folded line": "Bad Name: 1\r\n and more\r\n" + via,
	} {
		m, err := split([]byte(start + lines + "\r\n"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.fault == "" || m.via.host != "192.0.2.1" {
			t.Errorf("%s: fault %q, via %+v", name, m.fault, m.via)
		}
	}
	if m, err := split([]byte(start + via)); err != nil || m.fault == "" {
		t.Errorf("without the empty line: %+v, %v", m, err)
	}
}

// Folding (RFC 3261 §7.3.1) gives one line; blanks before the colon are legal.
func TestFolding(t *testing.T) {
	m, err := split([]byte("REGISTER sip:example.test SIP/2.0\r\n" +
		"v  :  SIP / 2.0 / UDP\r\n\t192.0.2.1 \r\n ; branch = z9hG4bK1\r\nTO :\r\n <sip:a@b> ;\r\n  tag  = x\r\n\r\n"))
	if err != nil || m.fault != "" {
		t.Fatal(err, m.fault)
	}
	if m.via.branch != "z9hG4bK1" || m.to.value != "<sip:a@b> ; tag  = x" || m.toTag != tagPresent {
		t.Errorf("%+v", m)
	}
	if strings.ContainsAny(m.vias[0], "\r\n") {
		t.Errorf("line break in %q", m.vias[0])
	}
}

// What we echo can't break out of its header field, even if something slipped through.
func TestRenderedTextStaysOnItsLine(t *testing.T) {
	if got := string(appendField(nil, "Contact", "a\r\nEvil: 1\nb")); got != "Contact: a  Evil: 1 b\r\n" {
		t.Errorf("%q", got)
	}
}
