package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"rollcall/test/harness"
)

// mode is a way to register, with the scenario of test/sipp that does it.
type mode struct {
	name     string
	scenario string
	auth     bool
}

var modes = [...]mode{
	{"no authentication", "refresh", false},
	{"digest, nonce reused", "refresh-auth-cached", true},
	{"digest, each with its 401", "refresh-auth", true},
}

// usersOfLoad: every user refreshes once a second at 4,000 a second.
const usersOfLoad = 4000

// load is several SIPps with one share of the users each.
type load struct {
	runs []*harness.SIPpRun
}

// startLoad starts the SIPps. They keep their local ports over all measurements, so that a user
// has the same Contact each time and not one more.
func startLoad(p plan, m mode, target string, users []harness.User, ports []int) (*load, error) {
	l := &load{}
	share := len(users) / p.generators
	rate := p.rate / p.generators
	for i := range p.generators {
		r, err := harness.SIPp{
			Scenario: m.scenario, Target: target, Transport: "udp", Users: users[i*share : (i+1)*share],
			Rate: rate, Pause: time.Second * time.Duration(share) / time.Duration(rate), Refreshes: 1_000_000,
			Dir: p.dir, Port: ports[i], Ports: p.ports,
		}.Start()
		if err != nil {
			l.stop()
			return nil, err
		}
		l.runs = append(l.runs, r)
	}
	return l, nil
}

func (l *load) stop() {
	for _, r := range l.runs {
		_ = r.Kill()
	}
}

// role is a part whose processor time is counted apart.
type role struct {
	name string
	pids []int
}

// reading is one measurement: the rate reached, and microseconds per registration of each role.
type reading struct {
	perSecond float64
	micros    map[string]float64
	repeated  int // requests that SIPp sent again
	failed    int // users that SIPp gave up
}

// failedMost is the share of users that may fail before a measurement doesn't count. SIPp gives a user
// up when it is itself too slow and answers come while it waits for something else.
const failedMost = 0.02

// counts adds up what the SIPps say of the calls.
func (l *load) counts(users int) (harness.SIPpCounts, error) {
	var sum harness.SIPpCounts
	for _, r := range l.runs {
		c, err := r.Progress()
		if err != nil {
			return sum, err
		}
		sum.Failed += c.Failed
		sum.Retransmissions += c.Retransmissions
		if float64(sum.Failed) > failedMost*float64(users) {
			return sum, fmt.Errorf("%d of %d users failed: %s", sum.Failed, users, r.Complaint())
		}
	}
	return sum, nil
}

// measure loads the target and reads the roles' processor time over the window.
func measure(ctx context.Context, p plan, m mode, target string, users []harness.User, ports []int, roles []role) (reading, error) {
	l, err := startLoad(p, m, target, users, ports)
	if err != nil {
		return reading{}, err
	}
	defer l.stop()
	// The calls start within the first pause; the window begins after it.
	ramp := time.Second * time.Duration(len(users)) / time.Duration(p.rate)
	if err := pause(ctx, ramp+p.warm); err != nil {
		return reading{}, err
	}
	before, start, err := processorTimes(roles)
	if err != nil {
		return reading{}, err
	}
	if err := pause(ctx, p.window); err != nil {
		return reading{}, err
	}
	after, end, err := processorTimes(roles)
	if err != nil {
		return reading{}, err
	}
	// SIPp writes its counts once a second.
	if err := pause(ctx, 1500*time.Millisecond); err != nil {
		return reading{}, err
	}
	done, err := l.registrations(start, end)
	if err != nil {
		return reading{}, fmt.Errorf("%s at %s: %w", m.name, target, err)
	}
	counts, err := l.counts(len(users))
	if err != nil {
		return reading{}, fmt.Errorf("%s at %s: %w", m.name, target, err)
	}
	r := reading{perSecond: done / end.Sub(start).Seconds(), micros: map[string]float64{}, repeated: counts.Retransmissions, failed: counts.Failed}
	for i, role := range roles {
		r.micros[role.name] = float64((after[i] - before[i]).Microseconds()) / done
	}
	return r, nil
}

func processorTimes(roles []role) ([]time.Duration, time.Time, error) {
	times := make([]time.Duration, len(roles))
	for i, r := range roles {
		var err error
		if times[i], err = harness.CPU(r.pids...); err != nil {
			return nil, time.Time{}, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return times, time.Now(), nil
}

// registrations is the number of 200s between two moments, from SIPp's counts of each second.
func (l *load) registrations(start, end time.Time) (float64, error) {
	var sum float64
	for _, r := range l.runs {
		samples, err := r.Samples()
		if err != nil {
			return 0, err
		}
		if len(samples) < 2 || samples[len(samples)-1].At.Before(end) {
			return 0, errors.New("sipp's counts end before the window does: the machine is overloaded, lower --rate")
		}
		sum += countAt(samples, end) - countAt(samples, start)
	}
	if sum < 1 {
		return 0, errors.New("nothing was registered in the window")
	}
	return sum, nil
}

// countAt interpolates between the samples around a moment.
func countAt(samples []harness.Sample, at time.Time) float64 {
	i, _ := slices.BinarySearchFunc(samples, at, func(s harness.Sample, t time.Time) int { return s.At.Compare(t) })
	if i == 0 {
		return float64(samples[0].OK)
	}
	if i == len(samples) {
		return float64(samples[i-1].OK)
	}
	a, b := samples[i-1], samples[i]
	part := float64(at.Sub(a.At)) / float64(b.At.Sub(a.At))
	return float64(a.OK) + part*float64(b.OK-a.OK)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// median of the values; NaN for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
