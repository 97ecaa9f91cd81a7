package frontend

import (
	"regexp"
	"strings"
	"testing"

	"rollcall/registrar"
	"rollcall/routing"
)

func TestDirect(t *testing.T) {
	placed := routing.Copies{Primary: "fe1", Secondary: "fe2", Tertiary: "fe3"}
	follows := Directing{Redirect: true, Agents: []*regexp.Regexp{regexp.MustCompile(`^Linphone`)}}
	linphone := registrar.Request{UserAgent: "Linphone/5.1", RequestURI: "sip:example.test"}
	with := func(change func(*registrar.Request)) *registrar.Request { r := linphone; change(&r); return &r }

	for _, c := range []struct {
		name   string
		d      Directing
		copies routing.Copies
		me     routing.FrontEnd
		ready  bool
		req    *registrar.Request
		want   direction
	}{
		{"the primary serves", follows, placed, "fe1", true, &linphone, serve},
		{"a primary that has not read the log holds", follows, placed, "fe1", false, &linphone, hold},
		{"without a primary it is held", follows, routing.Copies{}, "fe1", true, &linphone, hold},
		{"relay is the default", Directing{}, placed, "fe2", false, &linphone, relay},
		{"a client that follows is redirected", follows, placed, "fe2", false, &linphone, redirect},
		{"from a Front End without a copy as well", follows, placed, "fe4", false, &linphone, redirect},
		{"an unknown client is relayed", follows, placed, "fe2", false,
			with(func(r *registrar.Request) { r.UserAgent = "PJSUA v2.17" }), relay},
		{"an authenticated one is relayed", follows, placed, "fe2", false,
			with(func(r *registrar.Request) { r.Authorization = []string{"Digest x"} }), relay},
		{"one that was redirected here is never redirected again", follows, placed, "fe2", false,
			with(func(r *registrar.Request) { r.RequestURI = "sip:127.0.0.1:5071;transport=tcp;Rollcall-Directed" }), relay},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.d.direct(c.copies, c.me, c.ready, c.req); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestRedirectionNamesThePrimaryFirst(t *testing.T) {
	r := redirection("tcp", "127.0.0.1:5071", "127.0.0.1:5072")
	if r.Status != 302 || len(r.Headers) != 2 {
		t.Fatalf("got %+v", r)
	}
	for i, want := range []string{"<sip:127.0.0.1:5071;transport=tcp;rollcall-directed>;q=1.0", "<sip:127.0.0.1:5072;transport=tcp;rollcall-directed>;q=0.5"} {
		if r.Headers[i].Name != "Contact" || r.Headers[i].Value != want {
			t.Errorf("contact %d: got %+v, want %s", i, r.Headers[i], want)
		}
		if !strings.Contains(r.Headers[i].Value, directed) {
			t.Errorf("contact %d carries no mark", i)
		}
	}
}
