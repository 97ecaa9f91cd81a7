package frontend

import (
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
)

func owedNotice(tag string, number uint32, full bool, kinds ...registrar.ChangeKind) registrar.Notice {
	n := registrar.Notice{Subscription: registrar.Subscription{Tag: tag, Notified: number}, Full: full}
	for i, k := range kinds {
		n.Changes = append(n.Changes, registrar.Change{Kind: k, Binding: registrar.Binding{Created: time.Unix(int64(i+1), 0)}})
	}
	return n
}

// A watcher has one NOTIFY under way and one that waits, which takes in all that happens.
func TestNoticesGather(t *testing.T) {
	n, own, w := newNotices(), newHotCopy("g"), watcher{"sip:a@h", "t"}
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 1, false, registrar.Created)})
	if !n.waiting(w.user, registrar.Subscription{Tag: "t", Notified: 1}) || n.waiting(w.user, registrar.Subscription{Tag: "t", Notified: 2}) {
		t.Error("what waits is not known by its number")
	}
	if got := n.take(); len(got) != 1 || got[0] != w {
		t.Fatal(got)
	}
	first, _ := n.claim(w)
	if n.waiting(w.user, registrar.Subscription{Tag: "t", Notified: 1}) {
		t.Error("it left and waits")
	}
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 2, false, registrar.Refreshed)})
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 2, false, registrar.Refreshed, registrar.Unregistered)})
	if got := n.take(); len(got) != 0 {
		t.Error("two at once:", got)
	}
	second, ok := n.claim(w)
	if !ok || first.Subscription.Notified != 1 || second.Subscription.Notified != 2 || len(second.Changes) != 2 || second.Full {
		t.Errorf("%+v", second)
	}
	if _, ok := n.claim(w); ok || len(n.boxes) != 0 {
		t.Error("a box is left behind")
	}
}

// After a failure the next NOTIFY tells everything, and the watcher is left alone for a while; but a
// SUBSCRIBE of his shows that he is back.
func TestNoticesRest(t *testing.T) {
	n, own, w := newNotices(), newHotCopy("g"), watcher{"sip:a@h", "t"}
	now := time.Unix(1000, 0)
	take := func(at time.Time) []watcher {
		n.rested(at)
		return n.take()
	}
	busyAgain := func(number uint32) {
		t.Helper()
		n.put(own, w.user, []registrar.Notice{owedNotice("t", number, false, registrar.Refreshed)})
		n.take()
		n.claim(w)
		n.rest(w, now.Add(time.Minute))
	}
	busyAgain(1)
	if got := take(now.Add(59 * time.Second)); len(got) != 0 {
		t.Error("told while he rests")
	}
	if got := take(now.Add(time.Minute)); len(got) != 1 {
		t.Fatal("never told again")
	}
	if _, toMake := n.look(w); !toMake {
		t.Error("what was lost is not made good")
	}
	n.rest(w, now.Add(time.Minute))
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 2, false, registrar.Unregistered)})
	if len(take(now)) != 0 {
		t.Error("a change wakes a watcher who does not answer")
	}
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 2, true)})
	if len(take(now)) != 1 {
		t.Fatal("a SUBSCRIBE does not wake him")
	}
	if got, ok := n.claim(w); !ok || !got.Full || got.Changes != nil {
		t.Errorf("%+v", got)
	}
	if n.failed(w) != 1 || n.failed(w) != 2 {
		t.Error("failures are not counted")
	}
	if n.arrived(w); n.failed(w) != 1 {
		t.Error("they are not in a row")
	}
}

// A number that somebody else gave stands for changes that are not known here.
func TestNoticesAfterAnotherPrimary(t *testing.T) {
	n, own, w := newNotices(), newHotCopy("g"), watcher{"sip:a@h", "t"}
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 2, false, registrar.Created)})
	n.put(own, w.user, []registrar.Notice{owedNotice("t", 4, false, registrar.Refreshed)})
	n.take()
	if got, _ := n.claim(w); !got.Full || got.Subscription.Notified != 4 {
		t.Errorf("%+v", got)
	}
}

// A copy finds those who are watched, and when the first subscription ends, without a binding too.
func TestCopyOfTheWatched(t *testing.T) {
	c := newHotCopy("g")
	now := time.Unix(1000, 0)
	set := registrar.Set{Subscriptions: []registrar.Subscription{{Tag: "t", Expires: now.Add(time.Minute)}}}
	for user, s := range map[string]registrar.Set{"sip:a@h": set, "sip:b@h": {}} {
		data, err := registrar.EncodeSet(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.apply(bus.Record{Group: "g", User: user, Position: 1, Data: data}, now); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.subscribed(); len(got) != 1 || got["sip:a@h"] == nil {
		t.Errorf("%d watched", len(got))
	}
	grace := 10 * time.Second
	if due := c.due(now.Add(60*time.Second), grace, 10); len(due) != 0 {
		t.Errorf("within the grace: %v", due)
	}
	if due := c.due(now.Add(70*time.Second), grace, 10); len(due) != 1 || due[0] != "sip:a@h" {
		t.Errorf("due: %v", due)
	}
}
