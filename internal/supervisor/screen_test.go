package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rollcall/internal/config"
	"rollcall/internal/control"
	"rollcall/routing"
)

func healthy() control.Status {
	fe := routing.FrontEnd("fe1")
	return control.Status{
		Epoch:     3,
		FrontEnds: []control.FrontEnd{{Name: "fe1", State: routing.Up, Primaries: 1, Bindings: 7, Flows: 2, SIP: []string{}}},
		Groups:    []control.Group{{ID: "g01", Primary: &fe, Users: 5, Bindings: 7}},
	}
}

// Not on a terminal, the pool is shown as a line for each change and none for no change.
func TestScreenPlain(t *testing.T) {
	var out strings.Builder
	s := newScreen(Options{Out: &out}, nil)
	s.show(healthy())
	s.show(healthy())
	s.say("%s started", "fe1")
	changed := healthy()
	changed.Epoch = 4
	s.show(changed)
	s.trouble(errors.New("no bus"))
	s.trouble(errors.New("no bus"))
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, line[len("15:04:05.000 "):])
	}
	want := "epoch 3 · fe1 up 1/0/0\nfe1 started\nepoch 4 · fe1 up 1/0/0\nno status: no bus\n"
	if strings.Join(got, "") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, ""), want)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("control characters without a terminal")
	}
}

// On a terminal the second picture goes over the first one, whatever the size of both.
func TestScreenTerminal(t *testing.T) {
	var out strings.Builder
	rows := 40
	s := newScreen(Options{Out: &out, Terminal: true, Size: func() (int, int) { return 60, rows }}, nil)
	s.show(healthy())
	first := strings.Count(out.String(), "\n")
	out.Reset()
	s.show(healthy())
	if out.String() != "" {
		t.Errorf("drawn again without a change: %q", out.String())
	}
	rows = 6
	s.show(healthy())
	if !strings.HasPrefix(out.String(), fmt.Sprintf("\x1b[%dA\r\x1b[J", first)) {
		t.Errorf("%d lines before; second picture %q", first, out.String())
	}
	if n := strings.Count(out.String(), "\n"); n != 5 || !strings.Contains(out.String(), "lines more") {
		t.Errorf("%d lines on 6 rows", n)
	}
	for range 2 * maxNotices {
		s.say("something")
	}
	if len(s.notices) != maxNotices {
		t.Errorf("%d notices are kept", len(s.notices))
	}
}

func TestFit(t *testing.T) {
	got := fit([]string{"äöü-long", "b", "c", "d"}, 5, 4)
	if strings.Join(got, "|") != "äöü-…|b|… 2 …" {
		t.Errorf("%q", got)
	}
}

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

func TestHTTP(t *testing.T) {
	state := healthy()
	var err error
	h := handler(func(context.Context) (control.Status, error) { return state, err })
	if code, body := get(t, h, "/healthz"); code != 200 || body != "ok\n" {
		t.Error(code, body)
	}
	if code, body := get(t, h, "/status"); code != 200 || !strings.Contains(body, `"secondary": null`) {
		t.Error(code, body)
	}
	code, body := get(t, h, "/metrics")
	for _, want := range []string{
		"rollcall_placement_epoch 3\n", "rollcall_users 5\n", "rollcall_groups_without_primary 0\n", "rollcall_groups_without_secondary 1\n",
		`rollcall_frontend_state{frontend="fe1",state="up"} 1`, `rollcall_frontend_state{frontend="fe1",state="down"} 0`,
		`rollcall_frontend_copies{frontend="fe1",role="primary"} 1`, `rollcall_frontend_bindings{frontend="fe1"} 7`,
		`rollcall_frontend_flows{frontend="fe1"} 2`, "rollcall_status_up 1\n",
	} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d, no %s", code, want)
		}
	}
	for _, spoil := range []func(){
		func() { state.FrontEnds[0].State = routing.Down },
		func() { state.Groups[0].Primary = nil },
		func() { state.Epoch = 0 },
		func() { err = errors.New("bus unavailable") },
	} {
		spoil()
		if code, body := get(t, h, "/healthz"); code != 503 || strings.Count(body, "\n") != 1 {
			t.Error(code, body)
		}
	}
	if code, _ := get(t, h, "/status"); code != 503 {
		t.Error(code)
	}
	if _, body := get(t, h, "/metrics"); !strings.Contains(body, "rollcall_status_up 0\n") || strings.Contains(body, "rollcall_users") {
		t.Error(body)
	}
	if code, _ := get(t, h, "/nothing"); code != 404 {
		t.Error(code)
	}
}

func TestServeHTTPStops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- serveHTTP(ctx, l, func(context.Context) (control.Status, error) { return healthy(), nil })
	}()
	r, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil || r.StatusCode != 200 {
		t.Fatal(err)
	}
	r.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A Front End gets what it was handed, and its context ends when its supervisor's end of the pipe does.
func TestHandover(t *testing.T) {
	h := Handover{Link: Link{URL: "nats://127.0.0.1:1", Token: "hush"}, Config: config.Default()}
	h.Config.Pool.Redirect = []string{"^Linphone"}
	line, err := h.encode()
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	go w.Write(line)
	got, ctx, err := ReadHandover(t.Context(), r)
	if err != nil || got.Link != h.Link || got.Config.Liveness != h.Config.Liveness || got.Config.Pool.Redirect[0] != "^Linphone" {
		t.Fatalf("%+v %v", got, err)
	}
	select {
	case <-ctx.Done():
		t.Error("ended too early")
	default:
	}
	w.Close()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("the end of the input was not noticed")
	}
	for _, bad := range []string{"", "no line end", "not JSON\n", strings.Repeat("x", 2*maxHandover)} {
		if _, _, err := ReadHandover(t.Context(), strings.NewReader(bad)); err == nil {
			t.Errorf("%.20q passed", bad)
		}
	}
	h.Config.Pool.Redirect = []string{strings.Repeat("x", maxHandover)}
	if _, err := h.encode(); err == nil {
		t.Error("a handover that no pipe holds passed")
	}
}

func TestGuide(t *testing.T) {
	a, err := AddressesOf("0.0.0.0:5060", 2)
	if err != nil {
		t.Fatal(err)
	}
	g := guide{settings: control.DefaultSettings(), addresses: a, made: []credentials{{"alice", "secret"}}, users: 1, http: "127.0.0.1:8080", dataFlag: " --data /d"}
	for _, want := range []string{"127.0.0.1:5060", "127.0.0.1:5071 127.0.0.1:5072", "alice    password  secret", "shown this once", "status --data /d", "not started again", "from elsewhere"} {
		if !strings.Contains(g.String(), want) {
			t.Errorf("no %q in\n%s", want, g)
		}
	}
	g.made, g.users, g.restart = nil, 12, 5*time.Second
	if s := g.String(); !strings.Contains(s, "12, with the passwords they had") || !strings.Contains(s, "started again after 5s") || strings.Contains(s, "secret") {
		t.Error(s)
	}
	g.users, g.addresses.Shared = 0, "[::1]:5060"
	if s := g.String(); !strings.Contains(s, "none yet: 'rollcall user add NAME --data /d' adds one") || strings.Contains(s, "elsewhere") {
		t.Error(s)
	}
	g.settings.Auth = control.AuthOff
	if s := g.String(); !strings.Contains(s, "any name you like") {
		t.Error(s)
	}
}
