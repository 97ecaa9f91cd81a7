package frontend

import (
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
)

// record encodes a set of one binding per expiry given.
func record(t *testing.T, user string, p bus.Position, expires ...time.Time) bus.Record {
	t.Helper()
	var s registrar.Set
	for _, e := range expires {
		s.Bindings = append(s.Bindings, registrar.Binding{Contact: registrar.Contact{URI: "sip:x@192.0.2.1", Q: -1}, CallID: "c", CSeq: 1, Expires: e})
	}
	data, err := registrar.EncodeSet(s)
	if err != nil {
		t.Fatal(err)
	}
	return bus.Record{Group: "g1", User: user, Position: p, Data: data}
}

func TestCopyTakesOnlyNewerRecords(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newHotCopy("g1")
	newer := record(t, "u", 7, now.Add(time.Hour), now.Add(2*time.Hour))
	for _, r := range []bus.Record{record(t, "u", 5, now.Add(time.Hour)), newer, record(t, "u", 6)} {
		if err := c.apply(r, now); err != nil {
			t.Fatal(err)
		}
	}
	data, p := c.get("u")
	if p != 7 || string(data) != string(newer.Data) {
		t.Errorf("the copy has position %d, want 7 and its data", p)
	}
	if users, bindings := c.counts(); users != 1 || bindings != 2 {
		t.Errorf("counts %d users, %d bindings; want 1 and 2", users, bindings)
	}
	c.forget("u", 6)
	if _, p := c.get("u"); p != 7 {
		t.Error("an older loss removed a newer record")
	}
	c.forget("u", 7)
	if users, bindings := c.counts(); users != 0 || bindings != 0 {
		t.Errorf("after forget: %d users, %d bindings", users, bindings)
	}
}

func TestCopySaysWhenItReachedAPosition(t *testing.T) {
	c := newHotCopy("g1")
	reached := c.reach(9)
	for p := bus.Position(8); p <= 9; p++ {
		select {
		case <-reached:
			t.Fatalf("said to have reached 9 before position %d", p)
		default:
		}
		if err := c.apply(record(t, "u", p), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	<-c.reach(3)
}

func TestCopyFindsWhatIsDue(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	grace := 10 * time.Second
	c := newHotCopy("g1")
	for user, expires := range map[string]time.Time{
		"live": now.Add(time.Minute), "in grace": now.Add(-9 * time.Second), "due": now.Add(-grace), "long gone": now.Add(-time.Hour),
	} {
		if err := c.apply(record(t, user, 1, expires), now); err != nil {
			t.Fatal(err)
		}
	}
	if due := c.due(now, grace, 10); len(due) != 1 || due[0] != "due" {
		t.Errorf("due: %v", due)
	}
	if users, _ := c.counts(); users != 3 {
		t.Errorf("%d users are kept, want 3: the log has dropped the one long gone", users)
	}
	if due := c.due(now.Add(time.Hour), grace, 0); len(due) != 0 {
		t.Errorf("the limit was ignored: %v", due)
	}
}

func TestRecordTTLCoversBindingsAndRemovals(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := registrar.Set{Bindings: []registrar.Binding{{Expires: now.Add(time.Hour)}}, Removed: []registrar.Removal{{Until: now.Add(32 * time.Second)}}}
	if got, want := recordTTL(s, now, 10*time.Second), time.Hour+10*time.Second+recordMargin; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	s.Bindings = nil
	if got, want := recordTTL(s, now, 10*time.Second), 32*time.Second+recordMargin; got != want {
		t.Errorf("without bindings: got %v, want %v", got, want)
	}
	if got := recordTTL(registrar.Set{}, now, 0); got < time.Second {
		t.Errorf("an empty set is kept %v", got)
	}
}
