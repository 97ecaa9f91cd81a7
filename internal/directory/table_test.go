package directory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/bus"
	"rollcall/bus/membus"
	"rollcall/registrar"
	"rollcall/routing"
)

const md5a = "0123456789abcdef0123456789abcdef"
const md5b = "fedcba9876543210fedcba9876543210"

// groupsOf returns the groups g00, g01, …
func groupsOf(n int) []routing.Group {
	var all []routing.Group
	for i := range n {
		all = append(all, routing.Group(fmt.Sprintf("g%02d", i)))
	}
	return all
}

func user(i int) User {
	return User{AOR: registrar.AOR(fmt.Sprintf("sip:u%d@example.test", i)), HA1: map[string]string{registrar.MD5: md5a}}
}

// followed returns a table that has caught up with users.
func followed(t *testing.T, users bus.Table, groups int) *Table {
	t.Helper()
	table := New(groupsOf(groups), users)
	if err := table.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-table.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("the table didn't catch up")
	}
	return table
}

// eventually waits until ok, for what reaches a table by its watch.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never happened: " + what)
		}
	}
}

func newUsers(t *testing.T) bus.Table {
	t.Helper()
	b := membus.New(membus.Options{}).Connect("test")
	t.Cleanup(func() { b.Close() })
	return b.Users()
}

// Users provisioned at once, in one process, end up even over the groups.
func TestProvisionSpreads(t *testing.T) {
	table := followed(t, newUsers(t), 7)
	var all sync.WaitGroup
	for i := range 700 {
		all.Go(func() {
			u, err := table.Provision(t.Context(), user(i))
			if err != nil {
				t.Error(err)
			}
			if seen, ok := table.Lookup(u.AOR); !ok || seen.Group != u.Group || u.Group == "" {
				t.Errorf("%s: provisioned in %q, Lookup says %q, %v", u.AOR, u.Group, seen.Group, ok)
			}
		})
	}
	all.Wait()
	for g, n := range table.Counts() {
		if n != 100 {
			t.Errorf("group %s has %d users, want 100", g, n)
		}
	}
	if table.Len() != 700 {
		t.Errorf("Len is %d", table.Len())
	}
}

func TestProvisionTakesTheEmptiestThenTheLowestID(t *testing.T) {
	table := followed(t, newUsers(t), 3)
	var got []routing.Group
	for i := range 4 {
		u, err := table.Provision(t.Context(), user(i))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u.Group)
	}
	if err := table.Remove(t.Context(), user(1).AOR); err != nil {
		t.Fatal(err)
	}
	u, err := table.Provision(t.Context(), user(9))
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(append(got, u.Group)); s != "[g00 g01 g02 g00 g01]" {
		t.Error(s)
	}
}

// Two processes provision the same users: one wins, both then know the same.
func TestProvisionTwoProcesses(t *testing.T) {
	users := newUsers(t)
	one, two := followed(t, users, 5), followed(t, users, 5)
	var wins [2]int
	var both sync.WaitGroup
	for p, table := range []*Table{one, two} {
		both.Go(func() {
			for i := range 200 {
				u, err := table.Provision(t.Context(), user(i))
				if err == nil {
					wins[p]++
				} else if !errors.Is(err, ErrExists) {
					t.Error(err)
				}
				if u.Group == "" {
					t.Errorf("%s has no group", user(i).AOR)
				}
			}
		})
	}
	both.Wait()
	if wins[0]+wins[1] != 200 {
		t.Errorf("%d + %d provisions succeeded, want 200", wins[0], wins[1])
	}
	eventually(t, "both tables say the same", func() bool {
		for i := range 200 {
			a, _ := one.Lookup(user(i).AOR)
			b, _ := two.Lookup(user(i).AOR)
			if a.Group != b.Group || a.Group == "" {
				return false
			}
		}
		return fmt.Sprint(one.Counts()) == fmt.Sprint(two.Counts())
	})
	sum := 0
	for _, n := range one.Counts() {
		sum += n
	}
	if sum != 200 || one.Len() != 200 {
		t.Errorf("counts sum to %d, Len is %d, want 200", sum, one.Len())
	}
}

func TestUpdateKeepsGroupAndUnknownFields(t *testing.T) {
	users := newUsers(t)
	a := registrar.AOR("sip:alice@example.test")
	_, err := users.Put(t.Context(), bus.Write{Key: string(a),
		Value: []byte(`{"group":"g01","ha1":{"MD5":"` + md5a + `"},"later":{"x":1}}`)})
	if err != nil {
		t.Fatal(err)
	}
	table := followed(t, users, 3)
	err = table.Update(t.Context(), a, func(u *User) {
		u.Group, u.AOR, u.MaxContacts = "g02", "sip:mallory@example.test", 3
		u.HA1[registrar.MD5] = md5b
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := users.Get(t.Context(), string(a))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"group":"g01","ha1":{"MD5":"` + md5b + `"},"later":{"x":1},"max_contacts":3}`
	if string(e.Value) != want {
		t.Errorf("stored %s\nwant   %s", e.Value, want)
	}
	if u, _ := table.Lookup(a); u.Group != "g01" || u.HA1[registrar.MD5] != md5b {
		t.Errorf("Lookup says %+v", u)
	}
	if err := table.Update(t.Context(), "sip:nobody@example.test", func(*User) {}); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("update of nobody: %v", err)
	}
}

// Every increment of two processes counts: the loser of a race decides again.
func TestUpdateRace(t *testing.T) {
	users := newUsers(t)
	one, two := followed(t, users, 1), followed(t, users, 1)
	if _, err := one.Provision(t.Context(), user(1)); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for _, table := range []*Table{one, two} {
		both.Go(func() {
			for range 50 {
				for {
					err := table.Update(t.Context(), user(1).AOR, func(u *User) { u.MaxContacts++ })
					if err == nil {
						break
					}
					if !errors.Is(err, bus.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	both.Wait()
	if u, err := one.Get(t.Context(), user(1).AOR); err != nil || u.MaxContacts != 100 {
		t.Errorf("%d increments survived of 100 (%v)", u.MaxContacts, err)
	}
}

func TestRemove(t *testing.T) {
	users := newUsers(t)
	one, two := followed(t, users, 2), followed(t, users, 2)
	if _, err := one.Provision(t.Context(), user(1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other process sees the user", func() bool { return two.Len() == 1 })
	if err := one.Remove(t.Context(), user(1).AOR); err != nil {
		t.Fatal(err)
	}
	if _, ok := one.Lookup(user(1).AOR); ok || one.Len() != 0 {
		t.Error("removed, and still there")
	}
	eventually(t, "the other process sees the removal", func() bool { return two.Len() == 0 })
	if err := one.Remove(t.Context(), user(1).AOR); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("second removal: %v", err)
	}
	if _, err := one.Provision(t.Context(), user(1)); err != nil {
		t.Errorf("provision after removal: %v", err)
	}
}

// Whoever asks is told of each removal once, after the table has stopped finding the user.
func TestOnRemove(t *testing.T) {
	table := New(groupsOf(2), newUsers(t))
	a := registrar.AOR("sip:alice@example.test")
	var told []string
	table.OnRemove(func(u User) {
		now, _ := table.Lookup(a)
		told = append(told, string(u.AOR)+" "+string(u.Group)+", now "+string(now.Group))
	})
	entry := func(r bus.Revision, value string) {
		e := bus.Entry{Key: string(a), Revision: r}
		if value != "" {
			e.Value = []byte(value)
		}
		table.changed(e)
	}
	entry(1, "")                // never known
	entry(2, `{"group":"g00"}`) // provisioned
	entry(3, `{"group":"g00","max_contacts":3}`)
	entry(4, "{") // damaged is not removed
	entry(5, `{"group":"g00"}`)
	entry(6, "")
	entry(6, "") // told again by the bus
	entry(7, `{"group":"g00"}`)
	entry(9, `{"group":"g01"}`) // 8, the removal, was not told
	want := []string{"sip:alice@example.test g00, now ", "sip:alice@example.test g00, now g01"}
	if !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

// An entry that was on its way when this process removed the user doesn't bring him back.
func TestLateEntryAfterRemove(t *testing.T) {
	table := New(groupsOf(2), newUsers(t))
	a := registrar.AOR("sip:alice@example.test")
	value := []byte(`{"group":"g00"}`)
	table.changed(bus.Entry{Key: string(a), Value: value, Revision: 3})
	table.forget(a, 5)
	table.changed(bus.Entry{Key: string(a), Value: value, Revision: 4})
	if _, ok := table.Lookup(a); ok || table.Len() != 0 {
		t.Error("the removed user is back")
	}
	table.changed(bus.Entry{Key: string(a), Revision: 5})
	if len(table.of(a).rows) != 0 {
		t.Error("the removal is remembered for ever")
	}
	table.changed(bus.Entry{Key: string(a), Value: value, Revision: 6})
	if _, ok := table.Lookup(a); !ok || table.Counts()["g00"] != 1 {
		t.Error("the user created again is not there")
	}
}

func TestDamagedEntryIsNoUser(t *testing.T) {
	table := New(groupsOf(1), newUsers(t))
	table.changed(bus.Entry{Key: "sip:a@b", Value: []byte(`{"group":"g00"}`), Revision: 1})
	table.changed(bus.Entry{Key: "sip:a@b", Value: []byte(`{"group":"g00","ha1":{"MD5":"secret"}}`), Revision: 2})
	err := table.Damaged()
	if table.Len() != 0 || err == nil || !strings.Contains(err.Error(), "sip:a@b") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%d users; %v", table.Len(), err)
	}
}

func TestWritesNeedTheTable(t *testing.T) {
	table := New(groupsOf(1), newUsers(t))
	if _, err := table.Provision(t.Context(), user(1)); err == nil {
		t.Error("provisioned without knowing how full the groups are")
	}
}

func seq(users ...User) iter.Seq2[User, error] {
	return func(yield func(User, error) bool) {
		for _, u := range users {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func TestImport(t *testing.T) {
	users := newUsers(t)
	table := followed(t, users, 10)
	before, err := table.Provision(t.Context(), user(500))
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Update(t.Context(), before.AOR, func(u *User) { u.MaxContacts = 2 }); err != nil {
		t.Fatal(err)
	}
	var in []User
	for i := range 1000 {
		u := user(i)
		u.HA1 = map[string]string{registrar.MD5: md5b}
		in = append(in, u)
	}
	twice := user(3) // once more, with other HA1s: the last one counts
	in = append(in, twice)
	last := 0
	added, updated, err := table.Import(t.Context(), seq(in...), func(n int) { last = n })
	if err != nil || added != 999 || updated != 2 || last != 1001 {
		t.Errorf("added %d, updated %d, progress %d, %v; want 999, 2, 1001", added, updated, last, err)
	}
	for g, n := range table.Counts() {
		if n != 100 {
			t.Errorf("group %s has %d users, want 100", g, n)
		}
	}
	if u, _ := table.Lookup(before.AOR); u.Group != before.Group || u.HA1[registrar.MD5] != md5b || u.MaxContacts != 2 {
		t.Errorf("existing user is now %+v, was %+v", u, before)
	}
	if u, _ := table.Lookup(twice.AOR); u.HA1[registrar.MD5] != md5a {
		t.Errorf("a user who came twice is not as he came last")
	}
	added, updated, err = table.Import(t.Context(), seq(in[:1000]...), nil)
	if err != nil || added != 0 || updated != 1 {
		t.Errorf("again: added %d, updated %d, %v; want 0, 1", added, updated, err)
	}
}

// A table that lags behind what others store imports all the same.
func TestImportOverOthersWrites(t *testing.T) {
	users := newUsers(t)
	table := followed(t, users, 4)
	other := followed(t, users, 4)
	for i := range 50 {
		if _, err := other.Provision(t.Context(), user(i)); err != nil {
			t.Fatal(err)
		}
	}
	var in []User
	for i := range 100 {
		u := user(i)
		u.HA1 = map[string]string{registrar.MD5: md5b}
		in = append(in, u)
	}
	added, updated, err := table.Import(t.Context(), seq(in...), nil)
	if err != nil || added != 50 || updated != 50 {
		t.Errorf("added %d, updated %d, %v", added, updated, err)
	}
	eventually(t, "the other process has the new HA1s", func() bool {
		for i := range 100 {
			if u, _ := other.Lookup(user(i).AOR); u.HA1[registrar.MD5] != md5b {
				return false
			}
		}
		return true
	})
}

func TestImportKeepsFieldsOfANewerVersion(t *testing.T) {
	users := newUsers(t)
	u := user(1)
	if _, err := users.Put(t.Context(), bus.Write{Key: string(u.AOR), Value: []byte(`{"group":"g01","later":true}`)}); err != nil {
		t.Fatal(err)
	}
	table := followed(t, users, 2)
	if _, updated, err := table.Import(t.Context(), seq(u), nil); err != nil || updated != 1 {
		t.Errorf("updated %d, %v", updated, err)
	}
	e, _ := users.Get(t.Context(), string(u.AOR))
	if want := `{"group":"g01","ha1":{"MD5":"` + md5a + `"},"later":true}`; string(e.Value) != want {
		t.Errorf("stored %s, want %s", e.Value, want)
	}
}

// Acknowledgements that are lost on the way don't stop an import, and everybody is stored once.
func TestImportWithLostAcknowledgements(t *testing.T) {
	var n atomic.Int64
	var in []User
	for i := range 60 {
		in = append(in, user(i))
	}
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{LoseAck: func(string, string) bool { return n.Add(1)%7 == 0 }}).Connect("test")
		defer b.Close()
		table := followed(t, b.Users(), 6)
		if _, _, err := table.Import(t.Context(), seq(in...), nil); err != nil {
			t.Fatal(err)
		}
		entries, err := b.Users().List(t.Context(), "")
		if err != nil || len(entries) != 60 || table.Len() != 60 {
			t.Errorf("%d stored, %d in the table, %v", len(entries), table.Len(), err)
		}
	})
}

// An error in the input stops the import; what came before is stored, nothing after.
func TestImportStopsAtAnError(t *testing.T) {
	table := followed(t, newUsers(t), 4)
	bad := errors.New("users.csv:4: no comma")
	in := func(yield func(User, error) bool) {
		for i := range 10 {
			if i == 3 {
				if !yield(User{}, bad) {
					return
				}
				continue
			}
			if !yield(user(i), nil) {
				return
			}
		}
	}
	added, _, err := table.Import(t.Context(), in, nil)
	if !errors.Is(err, bad) || added != 3 || table.Len() != 3 {
		t.Errorf("added %d, table has %d, %v", added, table.Len(), err)
	}
	if n := len(table.groups.reserved); n != 0 {
		t.Errorf("%d reservations left", n)
	}
}

// A write the bus refuses names its user.
func TestImportNamesTheUser(t *testing.T) {
	table := followed(t, newUsers(t), 4)
	u := user(1)
	u.HA1 = map[string]string{registrar.MD5: "not hexadecimal"}
	_, _, err := table.Import(t.Context(), seq(user(0), u), nil)
	if err == nil || !strings.Contains(err.Error(), string(u.AOR)) || strings.Contains(err.Error(), "not hexadecimal\"") {
		t.Error(err)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	table := New(groupsOf(4), newUsers(t))
	for i := range 1000 {
		u := user(i)
		u.Group = "g00"
		table.store(u, bus.Revision(i+1))
	}
	a := user(77).AOR
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := table.Lookup(a); !ok {
			t.Error("not there")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAll(t *testing.T) {
	table := followed(t, newUsers(t), 4)
	for i := range 300 {
		if _, err := table.Provision(context.Background(), user(i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[registrar.AOR]bool{}
	for u := range table.All {
		seen[u.AOR] = true
	}
	if len(seen) != 300 {
		t.Errorf("%d users seen of 300", len(seen))
	}
}

func BenchmarkLookup(b *testing.B) {
	table := New(groupsOf(60), nil)
	for i := range 100_000 {
		u := user(i)
		u.Group = "g00"
		table.store(u, bus.Revision(i+1))
	}
	a := user(77_777).AOR
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			table.Lookup(a)
		}
	})
}
