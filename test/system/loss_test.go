package system

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// howMany users: 10,000 at full length.
func howMany() int {
	if long() {
		return 10_000
	}
	return 1_000
}

// A Front End is killed while all users refresh, some of them with SIPp: nobody is refused, no
// acknowledged binding is lost, no acknowledged removal comes back, and every user can refresh right after.
func TestNothingLostWhenOneIsKilled(t *testing.T) {
	harness.Require(t, "sipp")
	users := harness.Users(howMany())
	pool, _ := startPool(t, harness.PoolOptions{Users: users, Args: []string{"--restart-after", "3s"}})
	sipps := len(users) / 5
	phones := registered(t, pool, users[sipps:])

	sipp, err := harness.SIPp{
		Scenario: "refresh-auth-cached", Target: pool.SIP, Transport: "udp", Users: users[:sipps], Rate: sipps / 2,
		Pause: time.Second, Refreshes: 8, Dir: t.TempDir(), Ports: ports,
	}.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer sipp.Kill()
	load := keepRefreshing(t, phones, pool.SIP)
	time.Sleep(3 * time.Second) // into the middle of it; nothing is decided by this
	// All of SIPp's datagrams come from one socket, and so to one Front End: that one is killed.
	e, err := pool.Explain(t.Context(), users[0].Name)
	if err != nil || len(e.Bindings) == 0 {
		t.Fatalf("sipp has not registered %s: %+v %v", users[0].Name, e, err)
	}
	if _, err := pool.Kill(t.Context(), routing.FrontEnd(e.Bindings[0].Flow.FrontEnd)); err != nil {
		t.Fatal(err)
	}
	load.pass(t, time.Minute)
	checkAnswers(t, load.end())

	checkKept(t, pool, phones)
	refreshAll(t, pool, phones, pool.SIP)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if counts, err := sipp.Wait(ctx); err != nil {
		t.Error(err)
	} else {
		t.Logf("sipp: %+v", counts)
	}
	after, err := pool.Ready(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	checkCounts(t, after, len(users))
}

// All Front Ends are killed at once while all users refresh. When they are back, everything acknowledged is there.
func TestNothingLostWhenAllAreKilled(t *testing.T) {
	users := harness.Users(howMany())
	pool, before := startPool(t, harness.PoolOptions{Users: users, Args: []string{"--restart-after", "1s"}})
	phones := registered(t, pool, users)
	load := keepRefreshing(t, phones, pool.SIP)
	time.Sleep(time.Second)
	for _, fe := range before.FrontEnds {
		if _, err := pool.Kill(t.Context(), fe.Name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.WaitFor(t.Context(), time.Minute, "three new processes", func(s control.Status) error {
		for i, fe := range s.FrontEnds {
			if fe.Pid == before.FrontEnds[i].Pid || fe.State != "up" {
				return fmt.Errorf("%s is %s, pid %d", fe.Name, fe.State, fe.Pid)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	load.pass(t, time.Minute)
	checkAnswers(t, load.end())
	checkKept(t, pool, phones)
	refreshAll(t, pool, phones, pool.SIP)
}

// checkKept asks the pool for every phone's acknowledged binding, over the wire at the pool address, and for some of
// them with `rollcall explain`.
func checkKept(t *testing.T, pool *harness.Pool, phones *harness.Phones) {
	t.Helper()
	if err := phones.Each(32, func(p *harness.Phone) error { return p.Kept(t.Context(), pool.SIP) }); err != nil {
		t.Error(err)
	}
	every := max(1, len(phones.All())/100)
	for i, p := range phones.All() {
		if i%every != 0 || p.Acked.CSeq == 0 {
			continue
		}
		e, err := pool.Explain(t.Context(), p.User.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := explains(e, p); err != nil {
			t.Errorf("explain %s: %v", p.User.Name, err)
		}
	}
}

// explains checks an explanation against what the phone was promised.
func explains(e control.Explanation, p *harness.Phone) error {
	for _, b := range e.Bindings {
		if b.CallID != p.CallID {
			continue
		}
		if p.Acked.Expires == 0 {
			return fmt.Errorf("removed binding came back: %+v", b)
		}
		if b.CSeq < p.Acked.CSeq || b.CSeq > p.Sent {
			return fmt.Errorf("CSeq %d; %d was acknowledged and %d sent", b.CSeq, p.Acked.CSeq, p.Sent)
		}
		return nil
	}
	if p.Acked.Expires == 0 {
		return nil
	}
	return fmt.Errorf("acknowledged binding lost (CSeq %d): %+v", p.Acked.CSeq, e.Bindings)
}

// checkCounts: the status counts one binding for each user.
func checkCounts(t *testing.T, s control.Status, want int) {
	t.Helper()
	users, bindings := 0, 0
	for _, g := range s.Groups {
		users += g.Users
		bindings += g.Bindings
	}
	if users != want || bindings != want {
		t.Errorf("the status counts %d users and %d bindings, want %d of each", users, bindings, want)
	}
}
