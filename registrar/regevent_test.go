package registrar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func watch(cseq uint32, expires string) (*Request, *Subscribe) {
	contacts, _, err := ParseContacts([]string{"<sip:alice@192.0.2.10:5060;transport=tcp>"})
	if err != nil {
		panic(err)
	}
	req := &Request{
		Method: "SUBSCRIBE", RequestURI: "sip:alice@example.test", Domain: "example.test",
		AOR: "sip:alice@example.test", From: "sip:alice@example.test", CallID: "watch@192.0.2.10", CSeq: cseq,
		Branch: fmt.Sprintf("z9hG4bKw%d", cseq), Contacts: contacts,
		Flow: Flow{FrontEnd: "fe1", Boot: "b7", Transport: "tcp", Local: "192.0.2.1:5060", Remote: "192.0.2.10:51234", ID: 7},
	}
	if expires != "" {
		req.Expires = ParseExpires(expires)
	}
	return req, &Subscribe{
		Event: "reg", From: "<sip:alice@example.test>;tag=w", FromTag: "w", To: "<sip:alice@example.test>", Tag: "ours1",
		RecordRoutes: []string{"<sip:p2.example.test;lr>", "<sip:p1.example.test;lr>"},
	}
}

func inDialog(cseq uint32, expires string) (*Request, *Subscribe) {
	req, sub := watch(cseq, expires)
	sub.To, sub.ToTag, sub.RecordRoutes = sub.To+";tag=ours1", "ours1", nil
	return req, sub
}

func noneWaits(Subscription) bool { return false }

// subscribed is a user with one binding and one watcher who was told everything.
func subscribed(t *testing.T) Set {
	t.Helper()
	set := Decide(Set{}, benchRequest(1), benchNow, DefaultPolicy()).Next
	req, sub := watch(1, "600")
	d, _ := DecideSubscribe(set, req, sub, benchNow, DefaultSubscribePolicy())
	if d.Reply.Status != 200 || !d.Write {
		t.Fatal(d.Reply)
	}
	if owed := d.Owed(set, noneWaits); len(owed) != 1 || !owed[0].Full || owed[0].Subscription.Notified != 1 {
		t.Fatalf("%+v", owed)
	}
	return d.Next
}

// Each SUBSCRIBE by itself and in its dialog: RFC 6665 §4.2.1, RFC 3680 §4.
func TestDecideSubscribe(t *testing.T) {
	set := subscribed(t)
	in := func(change func(*Request, *Subscribe), cseq uint32, expires string) func() (*Request, *Subscribe) {
		return func() (*Request, *Subscribe) {
			req, sub := inDialog(cseq, expires)
			if change != nil {
				change(req, sub)
			}
			return req, sub
		}
	}
	first := func(cseq uint32, expires string) func() (*Request, *Subscribe) {
		return func() (*Request, *Subscribe) { return watch(cseq, expires) }
	}
	for _, c := range []struct {
		name    string
		cur     Set
		ask     func() (*Request, *Subscribe)
		status  int
		headers string // "Name: value" that must be there
		write   bool
		left    int // subscriptions afterwards
	}{
		{"new", Set{}, first(1, "600"), 200, "Expires: 600", true, 1},
		{"the default of the package", Set{}, first(1, ""), 200, "Expires: 3761", true, 1},
		{"malformed Expires counts as the default", Set{}, first(1, "x"), 200, "Expires: 3761", true, 1},
		{"lowered to the longest", Set{}, first(1, "4294967295"), 200, "Expires: 7200", true, 1},
		{"too brief", Set{}, first(1, "59"), 423, "Min-Expires: 60", false, 0},
		{"fetch", Set{}, first(1, "0"), 200, "Expires: 0", false, 0},
		{"a Contact of ours", Set{}, first(1, "600"), 200, "Contact: <sip:192.0.2.1:5060;transport=tcp>", true, 1},
		{"route set", Set{}, first(1, "600"), 200, "Record-Route: <sip:p1.example.test;lr>", true, 1},
		{"Allow-Events", Set{}, first(1, "600"), 200, "Allow-Events: reg", true, 1},
		{"retransmission of the first", set, first(1, "600"), 200, "Expires: 600", false, 1},
		{"the first by another way", set, func() (*Request, *Subscribe) {
			req, sub := watch(1, "600")
			req.Branch = "z9hG4bKother"
			return req, sub
		}, 482, "", false, 1},
		{"begun again with the same Call-ID", set, func() (*Request, *Subscribe) {
			req, sub := watch(5, "600")
			sub.Tag = "ours5"
			return req, sub
		}, 200, "Expires: 600", true, 1},
		{"refresh", set, in(nil, 2, "900"), 200, "Expires: 900", true, 1},
		{"refresh, too brief", set, in(nil, 2, "1"), 423, "Min-Expires: 60", false, 1},
		{"out of order", set, in(func(r *Request, _ *Subscribe) { r.Branch = "z9hG4bKlate" }, 1, "900"), 500, "", false, 1},
		{"unsubscribe", set, in(nil, 2, "0"), 200, "Expires: 0", true, 0},
		{"unknown tag", set, in(func(_ *Request, s *Subscribe) { s.ToTag = "other" }, 2, "900"), 481, "", false, 1},
		{"unknown Call-ID", set, in(func(r *Request, _ *Subscribe) { r.CallID = "other" }, 2, "900"), 481, "", false, 1},
		{"another watcher's tag", set, in(func(_ *Request, s *Subscribe) { s.FromTag = "other" }, 2, "900"), 481, "", false, 1},
		{"another event id", set, in(func(_ *Request, s *Subscribe) { s.EventID = "2" }, 2, "900"), 481, "", false, 1},
		{"dialog without a subscription", Set{}, in(nil, 2, "900"), 481, "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, sub := c.ask()
			if refusal := CheckSubscribe(req, sub); refusal != nil {
				t.Fatal(refusal)
			}
			before := cmp.Diff(c.cur, Set{})
			d, _ := DecideSubscribe(c.cur, req, sub, benchNow, DefaultSubscribePolicy())
			if d.Reply.Status != c.status || d.Write != c.write || len(d.Next.Subscriptions) != c.left {
				t.Fatalf("%v, write %v, %d subscriptions", d.Reply, d.Write, len(d.Next.Subscriptions))
			}
			if name, value, _ := strings.Cut(c.headers, ": "); c.headers != "" && !strings.Contains(strings.Join(values(d.Reply, name), "\n"), value) {
				t.Errorf("no %q in %v", c.headers, d.Reply.Headers)
			}
			if before != cmp.Diff(c.cur, Set{}) {
				t.Error("the set given was changed")
			}
		})
	}
	late := benchNow.Add(611 * time.Second) // 600 s and the grace are over
	req, sub := inDialog(2, "900")
	if d, _ := DecideSubscribe(set, req, sub, late, DefaultSubscribePolicy()); d.Reply.Status != 481 {
		t.Errorf("after its end: %v", d.Reply)
	}
}

func TestCheckSubscribe(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Request, *Subscribe)
		status int
		header Header
	}{
		{"another package", func(_ *Request, s *Subscribe) { s.Event = "presence" }, 489, Header{"Allow-Events", "reg"}},
		{"a template of ours", func(_ *Request, s *Subscribe) { s.Event = "reg.winfo" }, 489, Header{"Allow-Events", "reg"}},
		{"no package", func(_ *Request, s *Subscribe) { s.Event = "" }, 489, Header{"Allow-Events", "reg"}},
		{"unknown extension", func(r *Request, _ *Subscribe) { r.Require = []string{"eventlist"} }, 420, Header{"Unsupported", "eventlist"}},
		{"no Contact", func(r *Request, _ *Subscribe) { r.Contacts = nil }, 400, Header{}},
		{"Contact: *", func(r *Request, _ *Subscribe) { r.Contacts, r.Star = nil, true }, 400, Header{}},
		{"no From tag", func(_ *Request, s *Subscribe) { s.FromTag = "" }, 400, Header{}},
		{"other documents", func(_ *Request, s *Subscribe) { s.Accept = []string{"application/pidf+xml"} }, 406, Header{"Accept", ReginfoType}},
		{"an empty Accept", func(_ *Request, s *Subscribe) { s.Accept = []string{} }, 406, Header{"Accept", ReginfoType}},
		{"ours among others", func(_ *Request, s *Subscribe) { s.Accept = []string{"text/plain", ReginfoType} }, 0, Header{}},
		{"any", func(_ *Request, s *Subscribe) { s.Accept = []string{"*/*"} }, 0, Header{}},
	} {
		req, sub := watch(1, "600")
		c.change(req, sub)
		reply := CheckSubscribe(req, sub)
		if reply == nil && c.status == 0 {
			continue
		}
		if reply == nil || reply.Status != c.status || c.header.Name != "" && (len(reply.Headers) != 1 || reply.Headers[0] != c.header) {
			t.Errorf("%s: %v", c.name, reply)
		}
	}
}

// The subscriptions to a user are bounded; what a client has left behind gives way to what it begins anew.
func TestSubscriptionsPerUser(t *testing.T) {
	p, set := DefaultSubscribePolicy(), Set{}
	ask := func(n int, target string) Decision {
		req, sub := watch(1, "600")
		req.CallID, sub.Tag, req.Contacts[0].URI = fmt.Sprint("call", n), fmt.Sprint("tag", n), target
		d, _ := DecideSubscribe(set, req, sub, benchNow, p)
		set = d.Next
		return d
	}
	for n := range p.PerUser {
		if d := ask(n, fmt.Sprintf("sip:w%d@h", n)); d.Reply.Status != 200 {
			t.Fatal(d.Reply)
		}
	}
	if d := ask(100, "sip:new@h"); d.Reply.Status != 403 || d.Write {
		t.Error(d.Reply)
	}
	if d := ask(101, "sip:w3@h"); d.Reply.Status != 200 || len(d.Next.Subscriptions) != p.PerUser {
		t.Error(d.Reply, len(d.Next.Subscriptions))
	}
	if _, left := set.FindSubscription("tag3"); left {
		t.Error("the one left behind is still there")
	}
	req, sub := watch(9, "600")
	sub.Tag, req.CallID, req.Contacts[0].URI = "long", "long", "sip:"+strings.Repeat("x", 3000)+"@h"
	if d, _ := DecideSubscribe(Set{}, req, sub, benchNow, p); d.Reply.Status != 403 || d.Write {
		t.Error("too long:", d.Reply.Status)
	}
}

// Everything that changes the bindings keeps the subscriptions, and is worth one NOTIFY each;
// a query and a retransmission are worth none.
func TestOwed(t *testing.T) {
	cur := subscribed(t)
	step := func(what string, d Decision, notified uint32, full bool, kinds ...ChangeKind) {
		t.Helper()
		owed := d.Owed(cur, noneWaits)
		cur = d.Next
		if !d.Write || len(owed) == 0 {
			t.Fatalf("%s: %v %v", what, d.Write, owed)
		}
		n := owed[0]
		var got []ChangeKind
		for _, c := range n.Changes {
			got = append(got, c.Kind)
		}
		if n.Subscription.Notified != notified || n.Full != full || n.Ended != "" || cmp.Diff(kinds, got) != "" {
			t.Errorf("%s: number %d full %v %v %s", what, n.Subscription.Notified, n.Full, got, n.Ended)
		}
		if s, _ := cur.FindSubscription("ours1"); s.Notified != notified {
			t.Errorf("%s: stored is %d", what, s.Notified)
		}
	}
	at := benchNow.Add(time.Second)
	p := DefaultPolicy()
	step("refresh", Decide(cur, benchRequest(2), at, p), 2, false, Refreshed)
	if d := Decide(cur, benchRequest(2), at, p); d.Write || len(d.Owed(cur, noneWaits)) != 0 {
		t.Error("a retransmission owes a NOTIFY")
	}
	step("taken over", Renotify(cur, "ours1"), 3, true)
	next, changes := cur.Drop(func(Binding) bool { return true }, Deactivated, at)
	step("deactivated", Decision{Next: next, Changes: changes, Write: true}, 4, false, Deactivated)
	step("registered", Decide(cur, benchRequest(9), at, p), 5, false, Created)
	next, changes = cur.Expire(at.Add(700*time.Second-11*time.Second), p.Grace)
	d := Decision{Next: next, Changes: changes, Write: true}
	owed := d.Owed(cur, noneWaits)
	if len(owed) != 1 || owed[0].Ended != EndTimeout || owed[0].Full || len(owed[0].Changes) != 1 || owed[0].Changes[0].Kind != Expired || owed[0].Subscription.Notified != 6 || len(d.Next.Subscriptions) != 0 {
		t.Errorf("the end of its time: %+v", owed)
	}
	d = Decision{Next: cur.DropSubscriptions(func(Subscription) bool { return true }), Write: true, End: NoNotice}
	if owed := d.Owed(cur, noneWaits); len(owed) != 0 {
		t.Errorf("a watcher out of reach is told %+v", owed)
	}
	if d := Renotify(cur, "nobody"); d.Write {
		t.Error("a subscription that is not there was renewed")
	}
}

// While a NOTIFY has not left, what happens is told by the same one: versions leave no hole.
func TestMerge(t *testing.T) {
	cur := subscribed(t)
	p := DefaultPolicy()
	other := benchRequest(2)
	other.CallID, other.Contacts = "other", []Contact{{URI: "sip:alice@192.0.2.11", Q: 500}}
	d := Decide(cur, other, benchNow.Add(time.Second), p)
	waiting := d.Owed(cur, noneWaits)[0]
	cur = d.Next
	again := benchRequest(2)
	again.CallID, again.CSeq, again.Contacts = "other", 3, other.Contacts
	d = Decide(cur, again, benchNow.Add(2*time.Second), p)
	merged := waiting.Merge(d.Owed(cur, func(s Subscription) bool { return s.Notified == 2 })[0])
	if merged.Full || merged.Subscription.Notified != 2 || len(merged.Changes) != 1 || merged.Changes[0].Kind != Created || merged.Changes[0].Binding.CSeq != 3 {
		t.Errorf("%+v", merged)
	}
	if s, _ := d.Next.FindSubscription("ours1"); s.Notified != 2 {
		t.Errorf("stored is %d", s.Notified)
	}
	if full := merged.Merge(Notice{Full: true}); !full.Full || full.Changes != nil {
		t.Errorf("%+v", full)
	}
	many := Notice{}
	for i := range maxNoticeChanges + 1 {
		many.Changes = append(many.Changes, Change{Refreshed, Binding{Created: benchNow.Add(time.Duration(i) * time.Millisecond)}})
	}
	if merged.Merge(many); !merged.Merge(many).Full {
		t.Error("so many changes are told one by one")
	}
}

// Several contacts of one REGISTER have names of their own, which they keep.
func TestContactIDs(t *testing.T) {
	req := benchRequest(1)
	req.Contacts = []Contact{{URI: "sip:a@h", Q: -1}, {URI: "sip:b@h", Q: -1}, {URI: "sip:c@h", Q: -1}}
	set := Decide(Set{}, req, benchNow, DefaultPolicy()).Next
	ids := map[string]string{}
	for i := range set.Bindings {
		ids[contactID(&set.Bindings[i])] = set.Bindings[i].URI
	}
	if len(ids) != 3 {
		t.Fatal(ids)
	}
	req.CSeq, req.Branch = 2, "z9hG4bKnext"
	set = Decide(set, req, benchNow.Add(time.Minute), DefaultPolicy()).Next
	for i := range set.Bindings {
		if b := &set.Bindings[i]; ids[contactID(b)] != b.URI {
			t.Errorf("%s is now %s", b.URI, contactID(b))
		}
	}
}

func TestSubscriptionsStored(t *testing.T) {
	want := fullSet()
	want.Subscriptions = subscribed(t).Subscriptions
	want.Subscriptions[0].EventID = "7"
	for _, set := range []Set{want, {Subscriptions: want.Subscriptions}} {
		data, err := EncodeSet(set)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeSet(data)
		if d := cmp.Diff(set, got); err != nil || d != "" {
			t.Fatal(err, d)
		}
		n, first, last, err := PeekSet(data)
		if err != nil || n != len(set.Bindings) || first.IsZero() || !last.Equal(want.Subscriptions[0].Expires) || !HasSubscriptions(data) {
			t.Errorf("%d %v %v %v %v", n, first, last, err, HasSubscriptions(data))
		}
		if until := set.Until(10 * time.Second); !until.Equal(benchNow.Add(610 * time.Second)) {
			t.Errorf("kept until %v", until)
		}
	}
	if data, _ := EncodeSet(fullSet()); HasSubscriptions(data) || HasSubscriptions(nil) {
		t.Error("a set without subscriptions has some")
	}
}

// A SUBSCRIBE that comes twice, since its answer was lost, is no replay of its nonce count.
func TestRepeatedSubscribeIsNoReplay(t *testing.T) {
	a := &Authenticator{Key: []byte("0123456789abcdef0123456789abcdef"), NC: NCStrict}
	ha1, err := HA1s([]string{MD5}, "sip:alice@example.test", "example.test", "secret")
	if err != nil {
		t.Fatal(err)
	}
	find := func(AOR) (map[string]string, bool) { return ha1, true }
	n, err := a.newNonce("example.test", benchNow)
	if err != nil {
		t.Fatal(err)
	}
	req, sub := watch(1, "600")
	req.Authorization = []string{answer(t, "alice", "secret", MD5, n, "auth", 1, req)}
	_, use, reply, ok := a.AuthenticateWith(Set{}, req, find, benchNow)
	if !ok {
		t.Fatal(reply)
	}
	req.Nonce = use
	d, _ := DecideSubscribe(Set{}, req, sub, benchNow, DefaultSubscribePolicy())
	if _, _, reply, ok := a.AuthenticateWith(d.Next, req, find, benchNow); !ok {
		t.Error("the same again:", reply)
	}
	req.Branch = "z9hG4bKreplayed"
	if _, _, _, ok := a.AuthenticateWith(d.Next, req, find, benchNow); ok {
		t.Error("played again under another branch, and accepted")
	}
}
