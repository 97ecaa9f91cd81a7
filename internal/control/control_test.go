package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/bus"
	"rollcall/bus/membus"
	"rollcall/registrar"
	"rollcall/routing"
)

func timeline(t *testing.T, ms ...int) Timeline {
	t.Helper()
	at := func(i int) time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, ms[i]*int(time.Millisecond), time.UTC)
	}
	return Timeline{LastSign: at(0), Suspected: at(1), Decided: at(2), Stored: at(3)}
}

func connect(t *testing.T) bus.Bus {
	t.Helper()
	b := membus.New(membus.Options{}).Connect("test")
	t.Cleanup(func() { b.Close() })
	return b
}

func put(t *testing.T, table bus.Table, key string, value any) {
	t.Helper()
	data, ok := value.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Put(t.Context(), bus.Write{Key: key, Value: data}); err != nil {
		t.Fatal(err)
	}
}

// Many processes come at once: all get the settings of one of them, with one key.
func TestEnsureSettingsAtOnce(t *testing.T) {
	b := connect(t)
	var mu sync.Mutex
	keys := map[string]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := EnsureSettings(t.Context(), b.Pool(), Settings{Groups: 7})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			keys[string(s.Key)]++
		})
	}
	all.Wait()
	if len(keys) != 1 {
		t.Errorf("%d different keys", len(keys))
	}
	for k := range keys {
		if len(k) != 32 {
			t.Errorf("a key of %d bytes", len(k))
		}
	}
}

func TestEnsureSettings(t *testing.T) {
	b := connect(t)
	first, err := EnsureSettings(t.Context(), b.Pool(), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultSettings()
	want.Key = first.Key
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		want  Settings
		wrong string
	}{
		{Settings{Groups: 3}, "keep --groups 60, or start afresh with another --data"},
		{Settings{Realm: "other"}, "start afresh"},
		{Settings{Auth: "basic"}, "choose digest or off"},
		{Settings{Domains: []string{"a.test", "a.test"}}, "twice"},
		{Settings{Algorithms: []string{"MD4"}}, "MD4"},
	} {
		_, err := EnsureSettings(t.Context(), b.Pool(), c.want)
		if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v: %v", c.want, err)
		}
		if fixed := c.want.Groups != 0 || c.want.Realm != ""; errors.Is(err, ErrFixed) != fixed {
			t.Errorf("%v: ErrFixed is %v", err, !fixed)
		}
	}
	changed, err := EnsureSettings(t.Context(), b.Pool(), Settings{Groups: 60, Domains: []string{"a.test", "b.test"}, Auth: AuthOff, Expect: 5})
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadSettings(t.Context(), b.Pool())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(changed, again); d != "" {
		t.Error(d)
	}
	if again.Auth != AuthOff || len(again.Domains) != 2 || again.Expect != 5 || string(again.Key) != string(first.Key) {
		t.Errorf("%v", again)
	}
	if s := fmt.Sprintf("%v %+v %#v", again, again, again); strings.Contains(s, string(first.Key)) || strings.Contains(s, "Key") {
		t.Error("the key is shown")
	}
}

func TestReadSettingsOfNoPool(t *testing.T) {
	b := connect(t)
	if _, err := ReadSettings(t.Context(), b.Pool()); !errors.Is(err, bus.ErrNotFound) {
		t.Error(err)
	}
	put(t, b.Pool(), SettingsKey, []byte(`{"groups":0}`))
	if _, err := ReadSettings(t.Context(), b.Pool()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

// placed puts a placement into the pool table: fe1 answers, fe2 is silent, fe3 is gone.
func placed(t *testing.T, b bus.Bus) {
	t.Helper()
	p := routing.NewPlacement([]routing.Group{"g01", "g02", "g03"})
	for _, name := range []routing.FrontEnd{"fe1", "fe2", "fe3"} {
		p.Members[name] = routing.Member{Name: name, State: routing.Up}
		put(t, b.Pool(), MemberKey(name), MemberInfo{Name: name, Pid: 7, Boot: "old", SIP: []string{"udp:" + string(name)}})
	}
	p.Groups["g01"] = routing.Copies{Primary: "fe1", Secondary: "fe2", Tertiary: "fe3"}
	p.Groups["g02"] = routing.Copies{Primary: "fe3", Secondary: "fe1"}
	data, err := routing.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	put(t, b.Pool(), PlacementKey, data)
	put(t, b.Pool(), MemberKey("fe0"), []byte("not JSON"))
}

// A member that answers tells itself; one that is silent is as the others saw it; one that is gone is down.
func TestReadStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{}).Connect("test")
		defer b.Close()
		placed(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answers := FrontEndStatus{Name: "fe1", State: routing.Draining, Pid: 99, Boot: "new", SIP: []string{"udp:x"}, Flows: 4,
			Groups: map[routing.Group]GroupCount{"g01": {Bindings: 5, Users: 6, Ready: true}}}
		data, _ := json.Marshal(answers)
		if err := b.Serve(ctx, "fe1", VerbStatus, func(r bus.Request) { _ = r.Respond(data) }); err != nil {
			t.Fatal(err)
		}
		if err := b.Serve(ctx, "fe2", VerbStatus, func(bus.Request) {}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s, err := ReadStatus(ctx, b, []routing.Group{"g01", "g02", "g03", "g04"})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > answerWithin {
			t.Errorf("took %v", took)
		}
		if s.Epoch == 0 {
			t.Error("no epoch")
		}
		want := Status{Epoch: s.Epoch,
			FrontEnds: []FrontEnd{
				{Name: "fe0", State: routing.Down, SIP: []string{}, Silent: true},
				{Name: "fe1", State: routing.Draining, Pid: 99, Boot: "new", SIP: []string{"udp:x"}, Primaries: 1, Secondaries: 1, Bindings: 5, Flows: 4},
				{Name: "fe2", State: routing.Up, Pid: 7, Boot: "old", SIP: []string{"udp:fe2"}, Secondaries: 1, Silent: true},
				{Name: "fe3", State: routing.Down, Boot: "old", SIP: []string{"udp:fe3"}, Primaries: 1, Tertiaries: 1, Silent: true}, // no pid: it may be another's
			},
			Groups: []Group{
				{ID: "g01", Primary: fe("fe1"), Secondary: fe("fe2"), Tertiary: fe("fe3"), Users: 6, Bindings: 5},
				{ID: "g02", Primary: fe("fe3"), Secondary: fe("fe1"), Uncounted: true},
				{ID: "g03", Uncounted: true}, {ID: "g04", Uncounted: true},
			}}
		if d := cmp.Diff(want, s); d != "" {
			t.Error(d)
		}
	})
}

// The contract of `status --json`: absent copies are null, no list is null.
func TestStatusJSON(t *testing.T) {
	b := connect(t)
	s, err := ReadStatus(t.Context(), b, []routing.Group{"g01"})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(s)
	if want := `{"epoch":0,"frontends":[],"groups":[{"id":"g01","primary":null,"secondary":null,"tertiary":null,"users":0,"bindings":0,"uncounted":true}]}`; string(data) != want {
		t.Errorf("%s\nwant %s", data, want)
	}
}

func TestExplain(t *testing.T) {
	b := connect(t)
	placed(t, b)
	put(t, b.Users(), "sip:alice@example.test", []byte(`{"group":"g01"}`))
	put(t, b.Users(), "sip:bob@example.test", []byte(`{"group":"g02"}`))
	answer := NewExplanation("sip:alice@example.test", "g01", 3, routing.Copies{Primary: "fe1"})
	answer.Why = "first placement"
	data, _ := json.Marshal(answer)
	if err := b.Serve(t.Context(), "fe1", VerbExplain, func(r bus.Request) { _ = r.Respond(data) }); err != nil {
		t.Fatal(err)
	}
	x, err := Explain(t.Context(), b, "sip:alice@example.test")
	if err != nil || cmp.Diff(answer, x) != "" {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := Explain(t.Context(), b, "sip:nobody@example.test"); !errors.Is(err, bus.ErrNotFound) {
		t.Error(err)
	}

	// bob's primary is gone: what is stored is shown all the same, and said to be that.
	now := time.Now()
	set, err := registrar.EncodeSet(registrar.Set{Bindings: []registrar.Binding{
		{Contact: registrar.Contact{URI: "sip:bob@192.0.2.1"}, CallID: "c", CSeq: 4, Expires: now.Add(90 * time.Second), Flow: registrar.Flow{FrontEnd: "fe3", Transport: "tcp"}},
		{Contact: registrar.Contact{URI: "sip:bob@192.0.2.2"}, CallID: "d", CSeq: 1, Expires: now.Add(-time.Hour)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Bindings().Append(t.Context(), bus.Record{Group: "g02", User: "sip:bob@example.test", Data: set}, 0); err != nil {
		t.Fatal(err)
	}
	x, err = Explain(t.Context(), b, "sip:bob@example.test")
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Bindings) != 1 || x.Bindings[0].Contact != "sip:bob@192.0.2.1" || x.Bindings[0].ExpiresIn < 80 || x.Bindings[0].ExpiresIn > 90 ||
		!x.Bindings[0].Lost || *x.Primary != "fe3" || x.Tertiary != nil || !strings.Contains(x.Why, "fe3 is primary by epoch") || !strings.Contains(x.Why, "read from the log") {
		t.Errorf("%+v", x)
	}
}

func TestWatch(t *testing.T) {
	b := connect(t)
	got := make(chan Event, 4)
	if err := Watch(t.Context(), b, func(e Event) { got <- e }); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"not JSON", "{}", `{"type":"flow","frontend":"fe1","change":"opened","later":1}`} {
		if err := b.Emit("flow", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case e := <-got:
		if e.Type != EventFlow || e.FrontEnd != "fe1" || e.Change != "opened" {
			t.Errorf("%+v", e)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
}
