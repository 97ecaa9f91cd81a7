package sipfront

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rollcall/registrar"
)

// The answer to a request may be read by another Front End at the same UDP address, which passes it on.
func TestAnswerAstray(t *testing.T) {
	strays := make(chan Astray, 8)
	elsewhere := open(t, newAnswerer(nil), func(c *Config) {
		c.FrontEnd, c.Astray = "fe2", func(a Astray) { strays <- a }
	})
	s := open(t, newAnswerer(nil), nil)
	c := dial(t, s, "udp")
	flow := registrar.Flow{FrontEnd: "fe1", Boot: "boot1", Transport: "udp", Local: c.RemoteAddr().String(), Remote: c.LocalAddr().String()}
	s.Keep(flow, time.Now().Add(time.Hour))
	status := make(chan string, 1)
	go func() {
		code, err := s.Send(t.Context(), flow, "NOTIFY", nil, nil)
		status <- fmt.Sprint(code, err)
	}()
	request := (&reader{c: c}).next(t)
	answer := "SIP/2.0 200 OK\r\nVia: " + field(request, "Via") + "\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>;tag=2\r\nCall-ID: x\r\nCSeq: 1 NOTIFY\r\nContent-Length: 0\r\n\r\n"
	write(t, dial(t, elsewhere, "udp"), answer)
	stray := <-strays
	if stray.FrontEnd != "fe1" || stray.Method != "NOTIFY" || stray.Status != 200 || !strings.Contains(request, stray.Branch) {
		t.Fatalf("%+v", stray)
	}
	forged := stray // it came from elsewhere than the request went
	s.Answered(forged)
	select {
	case got := <-status:
		t.Fatalf("a forged answer counted: %s", got)
	case <-time.After(50 * time.Millisecond):
	}
	stray.Flow.Local, stray.Flow.Remote = flow.Local, flow.Remote
	s.Answered(stray)
	if got := <-status; got != "200 <nil>" {
		t.Error(got)
	}
	if n := s.Stats().Drops["response"]; n != 1 {
		t.Errorf("%d responses dropped", n)
	}
}

func TestSenderOf(t *testing.T) {
	s := New(Config{FrontEnd: "fe-1 é"}, newBare())
	defer s.Close()
	if name, ok := senderOf(s.newBranch("x")); !ok || name != "fe-1 é" {
		t.Error(name, ok)
	}
	for _, b := range []string{"", "z9hG4bK", "z9hG4bK-x", "z9hG4bKzz-x", "z9hG4bK776asdhds"} {
		if name, ok := senderOf(b); ok {
			t.Errorf("%q is of %q", b, name)
		}
	}
}
