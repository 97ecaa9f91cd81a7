package control

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
	"rollcall/routing"
)

// A connection goes with its process; UDP goes on wherever somebody listens at the same address.
func TestLost(t *testing.T) {
	here := func(boot string, sip ...string) answer {
		return answer{status: &FrontEndStatus{Boot: boot, SIP: sip}}
	}
	p := routing.NewPlacement(nil)
	p.Members["frozen"] = routing.Member{Name: "frozen", State: routing.Down}
	p.Members["slow"] = routing.Member{Name: "slow", State: routing.Up}
	answers := map[routing.FrontEnd]answer{
		"fe1": here("b1", "udp:127.0.0.1:5071", "tcp:127.0.0.1:5071", "udp:127.0.0.1:5060"),
		"fe2": {gone: true}, "frozen": {}, "slow": {},
		"fe4": here("b4", "udp:0.0.0.0:5074", "udp:[::]:5076"),
	}
	for _, c := range []struct {
		what string
		flow registrar.Flow
		lost bool
	}{
		{"a connection to the same process", registrar.Flow{FrontEnd: "fe1", Boot: "b1", Transport: "tcp"}, false},
		{"a connection to the process before", registrar.Flow{FrontEnd: "fe1", Boot: "b0", Transport: "tcp"}, true},
		{"a connection, its process not known", registrar.Flow{FrontEnd: "fe1", Transport: "tcp"}, false},
		{"a connection to one that is gone", registrar.Flow{FrontEnd: "fe2", Boot: "b2", Transport: "tcp"}, true},
		{"a connection to one that is silent, and down for the others", registrar.Flow{FrontEnd: "frozen", Transport: "ws"}, true},
		{"a connection to one that is silent", registrar.Flow{FrontEnd: "slow", Transport: "tcp"}, false},
		{"UDP to one that was started again", registrar.Flow{FrontEnd: "fe1", Boot: "b0", Transport: "udp", Local: "127.0.0.1:5071"}, false},
		{"UDP to the own address of one that is gone", registrar.Flow{FrontEnd: "fe2", Transport: "udp", Local: "127.0.0.1:5072"}, true},
		{"UDP to the shared address of one that is gone", registrar.Flow{FrontEnd: "fe2", Transport: "udp", Local: "127.0.0.1:5060"}, false},
		{"UDP where another listens everywhere", registrar.Flow{FrontEnd: "fe2", Transport: "udp", Local: "192.0.2.1:5074"}, false},
		{"the same over IPv6", registrar.Flow{FrontEnd: "fe2", Transport: "udp", Local: "[2001:db8::1]:5076"}, false},
		{"no flow", registrar.Flow{}, false},
	} {
		if got := lost(c.flow, p, answers); got != c.lost {
			t.Errorf("%s: lost is %v", c.what, got)
		}
	}
}

// The primary's answer does not tell which process had the flow: the stored record does.
func TestExplainMarksLostFlows(t *testing.T) {
	b := connect(t)
	placed(t, b)
	put(t, b.Users(), "sip:alice@example.test", []byte(`{"group":"g01"}`))
	set := registrar.Set{}
	x := NewExplanation("sip:alice@example.test", "g01", 3, routing.Copies{Primary: "fe1"})
	for i, boot := range []string{"now", "before"} {
		flow := registrar.Flow{FrontEnd: "fe1", Boot: boot, Transport: "tcp", Remote: "192.0.2.1:1"}
		uri := "sip:" + boot + "@192.0.2.1"
		set.Bindings = append(set.Bindings, registrar.Binding{Contact: registrar.Contact{URI: uri}, CallID: "c", CSeq: uint32(i), Expires: time.Now().Add(time.Hour), Flow: flow})
		x.Bindings = append(x.Bindings, Binding{Contact: uri, CallID: "c", CSeq: uint32(i), Flow: flow})
	}
	data, err := registrar.EncodeSet(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Bindings().Append(t.Context(), bus.Record{Group: "g01", User: "sip:alice@example.test", Data: data}, 0); err != nil {
		t.Fatal(err)
	}
	serve := func(verb string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Serve(t.Context(), "fe1", verb, func(r bus.Request) { _ = r.Respond(data) }); err != nil {
			t.Fatal(err)
		}
	}
	serve(VerbExplain, x)
	serve(VerbStatus, FrontEndStatus{Name: "fe1", State: routing.Up, Boot: "now"})
	got, err := Explain(t.Context(), b, "sip:alice@example.test")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Bindings) != 2 || got.Bindings[0].Lost || !got.Bindings[1].Lost {
		t.Errorf("%+v", got.Bindings)
	}
	out, _ := json.Marshal(got.Bindings)
	if strings.Count(string(out), `"lost":true`) != 1 || strings.Count(string(out), `"lost"`) != 1 {
		t.Errorf("%s", out)
	}
}

// All times of an event are written alike: microseconds, UTC.
func TestTimelineJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 123_456_789, time.FixedZone("", 3600))
	e := Event{Type: EventPlacement, Moves: []Move{{Group: "g01"}}, Timeline: Timeline{Decided: at, Stored: at.Truncate(time.Second)}}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"timeline":{"decided":"2026-01-02T03:04:05.123456Z","stored":"2026-01-02T03:04:05.000000Z"}`; !strings.Contains(string(data), want) {
		t.Errorf("%s\nwant %s", data, want)
	}
	if strings.Contains(string(data), "why") {
		t.Errorf("an empty why: %s", data)
	}
	var back Event
	if err := json.Unmarshal(data, &back); err != nil || !back.Timeline.Decided.Equal(at.Truncate(time.Microsecond)) {
		t.Errorf("%v, %v", back.Timeline, err)
	}
	if data, _ := json.Marshal(Event{Type: EventFlow}); strings.Contains(string(data), "timeline") {
		t.Errorf("%s", data)
	}
}
