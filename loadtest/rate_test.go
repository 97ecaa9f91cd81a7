package loadtest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/loadtest/scenario"
	"rollcall/loadtest/scripted"
)

func TestSearchEndsBetweenTheLastThatHeldAndTheFirstThatDidNot(t *testing.T) {
	for _, c := range []struct{ capacity, top, low, high float64 }{
		{1000, 100_000, 950, 1000}, {137, 100_000, 125, 137}, {1e9, 5000, 5000, 5000}, {30, 1000, 25, 30}, {0, 1000, 0, 0},
	} {
		n := 0
		r, err := search(100, c.top, 0.05, func(rate float64) (Trial, error) {
			n++
			return Trial{Asked: rate, Reached: rate, Sustained: rate <= c.capacity}, nil
		})
		if err != nil || r.Rate < c.low || r.Rate > c.high || n > maxTrials {
			t.Errorf("capacity %g: %+v after %d trials, %v", c.capacity, r.Rate, n, err)
		}
	}
	boom := errors.New("boom")
	if _, err := search(1, 2, .1, func(float64) (Trial, error) { return Trial{}, boom }); !errors.Is(err, boom) {
		t.Errorf("an error of a trial: %v", err)
	}
	r, _ := search(100, 200, .1, func(rate float64) (Trial, error) { return Trial{Tainted: true, Sustained: false}, nil })
	if r.Limit != "generator" {
		t.Errorf("limit %q when the generator was short", r.Limit)
	}
}

// A registrar that serves one REGISTER each 4 ms sustains 250 a second, no more; the search finds it, in virtual
// time, for registrations and re-registrations.
func TestSearchFindsTheCapacityOfARegistrar(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var free time.Duration // when the registrar has served all that came
			r := &scripted.Registrar{Script: func(q scripted.Request) []scripted.Step {
				now := time.Since(start)
				free = max(free, now) + 4*time.Millisecond
				return []scripted.Step{{After: free - now, Status: 200}}
			}}
			network := scripted.NewNetwork()
			network.Put("10.9.9.9:5060", r)
			sc := complete(t, &scenario.Scenario{Targets: []string{"10.9.9.9:5060"}, Clients: 500})
			res, err := SearchRate(t.Context(), sc, RateSearch{Again: again, From: 100, Max: 10_000, Tolerance: 0.05, Threshold: 500 * time.Millisecond}, Options{Dialer: network})
			if err != nil {
				t.Fatal(err)
			}
			// A burst of 500 may queue for the threshold: a little above 250 still holds.
			if res.Rate < 235 || res.Rate > 270 || res.Limit != "registrar" {
				t.Errorf("again=%v: %+v", again, res)
			}
			network.Wait()
		})
	}
}
