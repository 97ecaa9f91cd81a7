package registrar

import (
	"encoding/xml"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelWatcher is a watcher who does with documents what RFC 3680 §5.2 says.
type modelWatcher struct {
	version  int
	heard    bool
	contacts map[string]string // id → URI of active ones
}

func (w *modelWatcher) take(t *rapid.T, body []byte, lost bool) {
	var doc reginfo
	if err := xml.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	v := int(doc.Version)
	switch {
	case !w.heard && v != 0 && !lost:
		t.Fatalf("the first version is %d", v)
	case w.heard && v != w.version+1 && !lost:
		t.Fatalf("version %d after %d", v, w.version)
	case w.heard && v <= w.version:
		t.Fatalf("version %d after %d: it goes back", v, w.version)
	case doc.State == "partial" && (!w.heard || v != w.version+1):
		t.Fatalf("a hole before version %d, which is partial", v)
	}
	w.version, w.heard = v, true
	if doc.State == "full" {
		w.contacts = map[string]string{}
	}
	for _, c := range doc.Registration.Contacts {
		if c.State == "active" {
			w.contacts[c.ID] = c.URI
		} else {
			delete(w.contacts, c.ID)
		}
	}
}

// TestWatcherKnowsTheBindings plays random changes, slow deliveries and losses of the
// primary, and checks that versions are whole and that the watcher ends up with what is stored.
func TestWatcherKnowsTheBindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, cseq := benchNow, uint32(1)
		var set Set
		var waiting *Notice // what has been stored and has not left
		w := modelWatcher{contacts: map[string]string{}}
		lost := false // a number may have been given to what never left
		store := func(d Decision) {
			if !d.Write {
				return
			}
			owed := d.Owed(set, func(s Subscription) bool { return waiting != nil && waiting.Subscription.Notified == s.Notified })
			data, err := EncodeSet(d.Next)
			if err != nil {
				t.Fatal(err)
			}
			if set, err = DecodeSet(data); err != nil {
				t.Fatal(err)
			}
			for _, n := range owed {
				if waiting != nil {
					n = waiting.Merge(n)
				}
				waiting = &n
			}
		}
		deliver := func() {
			if waiting == nil {
				return
			}
			body, err := waiting.Document("sip:alice@example.test", now)
			if err != nil {
				t.Fatal(err)
			}
			w.take(t, body, lost)
			waiting, lost = nil, false
		}
		req, sub := watch(1, "7200")
		d, _ := DecideSubscribe(set, req, sub, now, DefaultSubscribePolicy())
		store(d)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 70, 400}).Draw(t, "pause")) * time.Second)
			cseq++
			switch rapid.SampledFrom([]string{"register", "register", "expire", "drop", "deliver", "deliver", "refresh", "crash"}).Draw(t, "step") {
			case "register":
				r := benchRequest(cseq)
				r.Contacts = nil
				for range rapid.IntRange(1, 3).Draw(t, "contacts") {
					r.Contacts = append(r.Contacts, Contact{URI: fmt.Sprintf("sip:%d@h", rapid.IntRange(1, 4).Draw(t, "contact")), Q: -1,
						Expires: ExpiresIn{Given: true, Valid: true, Seconds: rapid.SampledFrom([]uint32{0, 60, 600}).Draw(t, "expires")}})
				}
				store(Decide(set, r, now, DefaultPolicy()))
			case "expire":
				next, changes := set.Expire(now, DefaultPolicy().Grace)
				store(Decision{Next: next, Changes: changes, Write: len(changes) > 0})
			case "drop":
				uri := fmt.Sprintf("sip:%d@h", rapid.IntRange(1, 4).Draw(t, "dropped"))
				next, changes := set.Drop(func(b Binding) bool { return b.URI == uri }, Deactivated, now)
				store(Decision{Next: next, Changes: changes, Write: len(changes) > 0})
			case "deliver":
				deliver()
			case "refresh":
				req, sub := inDialog(cseq, "7200")
				d, _ := DecideSubscribe(set, req, sub, now, DefaultSubscribePolicy())
				store(d)
			case "crash": // what waits is lost; the promoted copy makes it good
				lost = lost || waiting != nil
				waiting = nil
				store(Renotify(set, "ours1"))
			}
		}
		deliver()
		want := map[string]string{}
		for i := range set.Bindings {
			want[contactID(&set.Bindings[i])] = set.Bindings[i].URI
		}
		if !maps.Equal(want, w.contacts) {
			t.Fatalf("stored are %v, the watcher knows %v", want, w.contacts)
		}
	})
}
