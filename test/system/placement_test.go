package system

import (
	"fmt"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// The worked example, with real processes: four Front Ends, three groups, nine copies. A Front End that holds
// a primary is killed: each survivor then holds exactly one primary, one secondary and one
// tertiary. It returns: primaries stay, the three secondaries move to it, copies stand 3/2/2/2.
func TestWorkedExample(t *testing.T) {
	t.Parallel()
	pool, before := startPool(t, harness.PoolOptions{FrontEnds: 4, Groups: 3, Args: []string{"--restart-after", "3s"}})
	victim := *before.Groups[0].Primary
	if _, err := pool.Kill(t.Context(), victim); err != nil {
		t.Fatal(err)
	}

	failed, err := pool.WaitFor(t.Context(), 10*time.Second, "one copy of each kind at each survivor", func(s control.Status) error {
		if err := down(s, victim); err != nil {
			return err
		}
		for _, fe := range s.FrontEnds {
			if fe.Name != victim && copiesOf(fe) != (counts{1, 1, 1}) {
				return fmt.Errorf("%s holds %+v", fe.Name, copiesOf(fe))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed.Epoch <= before.Epoch {
		t.Errorf("the epoch went from %d to %d", before.Epoch, failed.Epoch)
	}
	checkPrimariesKept(t, before, failed, victim)

	back, err := pool.WaitFor(t.Context(), 20*time.Second, string(victim)+" back with three secondaries", func(s control.Status) error {
		for _, fe := range s.FrontEnds {
			if fe.State != routing.Up {
				return fmt.Errorf("%s is %s", fe.Name, fe.State)
			}
			c := copiesOf(fe)
			if fe.Name == victim && c != (counts{0, 3, 0}) || fe.Name != victim && (c.primaries != 1 || c.primaries+c.secondaries+c.tertiaries != 2) {
				return fmt.Errorf("%s holds %+v", fe.Name, c)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range back.Groups {
		if !is(g.Primary, *failed.Groups[i].Primary) {
			t.Errorf("group %s: the primary moved from %s when %s came back", g.ID, *failed.Groups[i].Primary, victim)
		}
	}
}

// checkPrimariesKept: no group moved whose primary lives, and the dead one's groups went to their secondaries.
func checkPrimariesKept(t *testing.T, before, after control.Status, victim routing.FrontEnd) {
	t.Helper()
	for i, g := range before.Groups {
		want := *g.Primary
		if want == victim {
			want = *g.Secondary
		}
		if !is(after.Groups[i].Primary, want) {
			t.Errorf("group %s: primary %v after the failure of %s, want %s", g.ID, after.Groups[i].Primary, victim, want)
		}
	}
}

// A Front End that is stopped for longer than it takes to be judged, and then goes on, must not disturb:
// it no longer is primary of anything, and neither says so nor acts so.
func TestFrozenFrontEndReturns(t *testing.T) {
	t.Parallel()
	pool, before := startPool(t, harness.PoolOptions{Users: harness.Users(60)})
	phones := registered(t, pool, harness.Users(60))
	victim := before.FrontEnds[0].Name

	freeze(t, pool, victim, 3*time.Second, func() {
		if _, err := pool.WaitFor(t.Context(), 30*time.Second, "the frozen one replaced", func(s control.Status) error {
			for _, g := range s.Groups {
				if is(g.Primary, victim) {
					return fmt.Errorf("%s is still primary of %s", victim, g.ID)
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		// The survivors serve everybody meanwhile. A Front End that is frozen keeps its share of the pool
		// address, so the phones use a survivor's own.
		refreshAll(t, pool, phones, ownUDP(t, pool, before, 1))
	})

	after, err := pool.Ready(t.Context(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range after.Groups {
		if is(g.Primary, victim) {
			t.Errorf("group %s moved back to %s", g.ID, victim)
		}
	}
	for n := range before.FrontEnds {
		target := ownUDP(t, pool, before, n)
		if err := phones.Each(16, func(p *harness.Phone) error { return p.Kept(t.Context(), target) }); err != nil {
			t.Errorf("asked at %s: %v", before.FrontEnds[n].Name, err)
		}
		refreshAll(t, pool, phones, target)
	}
}

// After the whole pool was down nobody is connected, so primaries are placed freely, and evenly: the
// first Front End to be back must not get them all.
func TestPrimariesEvenAfterWholePool(t *testing.T) {
	t.Parallel()
	pool, before := startPool(t, harness.PoolOptions{})
	if err := pool.Up.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.WaitFor(t.Context(), 20*time.Second, "even primaries", func(s control.Status) error {
		for i, fe := range s.FrontEnds {
			if fe.State != routing.Up || fe.Boot == before.FrontEnds[i].Boot {
				return fmt.Errorf("%s is %s", fe.Name, fe.State)
			}
			if want := len(s.Groups) / len(s.FrontEnds); fe.Primaries != want {
				return fmt.Errorf("%s has %d primaries of %d, want %d", fe.Name, fe.Primaries, len(s.Groups), want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
