package control

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"rollcall/registrar"
	"rollcall/routing"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func fe(name routing.FrontEnd) *routing.FrontEnd { return &name }

// statusOf lays groups out round robin over Front Ends.
func statusOf(fes, groups int) Status {
	s := Status{Epoch: 12}
	name := func(i int) routing.FrontEnd { return routing.FrontEnd(fmt.Sprintf("fe%d", i%fes+1)) }
	count := map[routing.FrontEnd]*FrontEnd{}
	for i := range fes {
		own := fmt.Sprintf("127.0.0.1:%d", 5071+i)
		s.FrontEnds = append(s.FrontEnds, FrontEnd{Name: name(i), State: routing.Up, Pid: 4000 + i, Boot: "b",
			SIP: []string{"udp:" + own, "tcp:" + own, "udp:127.0.0.1:5060", "tcp:127.0.0.1:5060"}, Flows: 3 * i})
	}
	for i := range s.FrontEnds {
		count[s.FrontEnds[i].Name] = &s.FrontEnds[i]
	}
	for i, id := range routing.GroupNames(groups) {
		g := Group{ID: id, Users: 10 + i%3, Bindings: i % 5}
		if fes > 0 {
			g.Primary = fe(name(i))
			count[name(i)].Primaries++
			count[name(i)].Bindings += g.Bindings
		}
		if fes > 1 {
			g.Secondary = fe(name(i + 1))
			count[name(i+1)].Secondaries++
		}
		if fes > 2 {
			g.Tertiary = fe(name(i + 2))
			count[name(i+2)].Tertiaries++
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}

func TestRenderStatus(t *testing.T) {
	down := statusOf(4, 3)
	down.FrontEnds[2].State, down.FrontEnds[2].Primaries = routing.Down, 0
	down.Groups[2].Primary, down.Groups[2].Secondary, down.Groups[2].Tertiary = fe("fe4"), fe("fe1"), nil
	orphaned := statusOf(2, 3)
	orphaned.Groups[1] = Group{ID: "g02", Uncounted: true}
	dead := statusOf(2, 3) // the placement is that of the last survivor
	promoting := statusOf(3, 3)
	for i := range dead.FrontEnds {
		dead.FrontEnds[i].State, dead.FrontEnds[i].Pid, dead.FrontEnds[i].Flows, dead.FrontEnds[i].Bindings, dead.FrontEnds[i].Silent = routing.Down, 0, 0, 0, true
	}
	for i := range dead.Groups {
		dead.Groups[i].Secondary, dead.Groups[i].Users, dead.Groups[i].Bindings, dead.Groups[i].Uncounted = nil, 0, 0, true
	}
	promoting.FrontEnds[0] = FrontEnd{Name: "fe1", State: routing.Down, SIP: promoting.FrontEnds[0].SIP, Primaries: 1, Secondaries: 1, Tertiaries: 1, Silent: true}
	promoting.Groups[0].Users, promoting.Groups[0].Uncounted = 0, true
	waiting := Status{FrontEnds: []FrontEnd{{Name: "fe1", State: routing.Joining, Pid: 7, SIP: []string{}}}, Groups: []Group{{ID: "g01"}, {ID: "g02"}}}
	for _, c := range []struct {
		name   string
		status Status
		layout Layout
	}{
		{"status-worked-example", down, Layout{}},
		{"status-60-groups", statusOf(3, 60), Layout{}},
		{"status-60-groups-each", statusOf(3, 60), Layout{Groups: true}},
		{"status-20-frontends", statusOf(20, 100), Layout{}},
		{"status-one-copy", statusOf(1, 3), Layout{}},
		{"status-orphans", orphaned, Layout{}},
		{"status-all-dead", dead, Layout{}},
		{"status-promoting", promoting, Layout{}},
		{"status-waiting", waiting, Layout{}},
		{"status-empty", Status{}, Layout{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := RenderStatus(c.status, c.layout)
			golden(t, c.name, got)
			for line := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

func TestRenderExplanation(t *testing.T) {
	x := NewExplanation("sip:alice@example.test", "g07", 12, routing.Copies{Primary: "fe1", Secondary: "fe2"})
	x.Why = "fe3 is down: secondary fe1 promoted (epoch 12)"
	golden(t, "explain-unregistered", RenderExplanation(x))
	x.Bindings = []Binding{
		{Contact: "sip:alice@192.0.2.1:5060", ExpiresIn: 598, CallID: "a84b4c76e66710", CSeq: 314, UserAgent: "Linphone/5",
			Path: []string{"<sip:proxy.example.test;lr>"}, Flow: registrar.Flow{FrontEnd: "fe2", Transport: "tcp", Remote: "192.0.2.1:40000"}},
		{Contact: "sip:alice@192.0.2.2", ExpiresIn: 1, CallID: "x", CSeq: 1, Flow: registrar.Flow{FrontEnd: "fe1", Transport: "udp", Remote: "192.0.2.2:5060"}},
		{Contact: "sip:alice@192.0.2.3", ExpiresIn: 9, CallID: "y", CSeq: 2, Lost: true, Flow: registrar.Flow{FrontEnd: "fe3", Transport: "tcp", Remote: "192.0.2.3:40001"}},
		{Contact: "sip:alice@192.0.2.4", ExpiresIn: 9, CallID: "z", CSeq: 3, Lost: true, Flow: registrar.Flow{FrontEnd: "fe3", Transport: "udp", Remote: "192.0.2.4:5060"}},
	}
	golden(t, "explain-registered", RenderExplanation(x))
}

func TestRenderEvents(t *testing.T) {
	at := func(ms int) string { return fmt.Sprintf("2026-01-02T03:04:05.%03d000Z", ms) }
	flow := &registrar.Flow{FrontEnd: "fe2", Transport: "tcp", Remote: "192.0.2.1:40000"}
	var b strings.Builder
	for _, e := range []Event{
		{Type: EventPlacement, Time: at(1), FrontEnd: "fe1", Epoch: 13, Phase: "decided", Cause: "fe3 is down: nobody there, health port refuses",
			Moves:    []Move{{Group: "g01", From: routing.Copies{Primary: "fe3", Secondary: "fe1", Tertiary: "fe2"}, To: routing.Copies{Primary: "fe1", Secondary: "fe2"}, Why: "secondary fe1 promoted"}},
			Timeline: timeline(t, 0, 1, 2, 4)},
		{Type: EventPlacement, Time: at(5), FrontEnd: "fe2", Epoch: 13, Phase: "ready"},
		{Type: EventFrontEnd, Time: at(6), FrontEnd: "fe1", Subject: "fe3", State: routing.Down, Cause: "nobody there"},
		{Type: EventRegistration, Time: at(7), FrontEnd: "fe1", Change: "created", AOR: "sip:alice@example.test", Contact: "sip:a@192.0.2.1", Expires: 600, Flow: flow},
		{Type: EventFlow, Time: at(8), FrontEnd: "fe2", Change: "closed", Flow: flow, Reason: "reset by the client"},
		{Type: "later", Time: "whenever", FrontEnd: "fe1"},
	} {
		b.WriteString(RenderEvent(e) + "\n")
	}
	golden(t, "events", b.String())
}

func TestRanges(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"g01":                     "g01",
		"g01 g02":                 "g01 g02",
		"g01 g02 g03 g05":         "g01–g03 g05",
		"g09 g10 g11 x g12 other": "g09–g11 x g12 other",
	} {
		var ids []routing.Group
		for _, id := range strings.Fields(in) {
			ids = append(ids, routing.Group(id))
		}
		if got := ranges(ids); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
