package loadtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rollcall/loadtest/behaviour"
	"rollcall/loadtest/report"
	"rollcall/loadtest/scenario"
)

// RateSearch looks for the highest rate at which every registration (or re-registration)
// succeeds: the Registration Rate and Re-registration Rate of RFC 7501, found as RFC 7502
// has it, by trials at rising rates and then between the last that held and the first that did not.
type RateSearch struct {
	Again     bool          // re-registrations instead of registrations
	From      float64       // first rate tried, per second
	Max       float64       // highest
	Tolerance float64       // relative width at which the search ends
	Threshold time.Duration // an answer later than this is a failure
	Trial     func(Trial)   // called after each trial
}

// Trial is one run of a search.
type Trial struct {
	Asked     float64 `json:"asked_per_s"`
	Reached   float64 `json:"reached_per_s"`
	Failures  int     `json:"failures"`
	P99       float64 `json:"p99_ms"`
	Tainted   bool    `json:"tainted"` // the generator was at its limit
	Sustained bool    `json:"sustained"`
}

// RateResult of a search.
type RateResult struct {
	Rate   float64 `json:"rate_per_s"` // highest sustained; 0: none was
	Limit  string  `json:"limit"`      // what ended the search: registrar, generator, max
	Trials []Trial `json:"trials"`
}

// maxTrials bounds a search.
const maxTrials = 24

// search finds the highest sustained rate by doubling and then halving the distance. It is
// pure but for try.
func search(from, top, tolerance float64, try func(rate float64) (Trial, error)) (RateResult, error) {
	r := RateResult{Limit: "max"}
	low, high := 0.0, 0.0 // highest sustained, lowest not
	rate := min(from, top)
	for range maxTrials {
		t, err := try(rate)
		if err != nil {
			return r, err
		}
		r.Trials = append(r.Trials, t)
		if t.Sustained {
			low = rate
			r.Rate = t.Reached
		} else {
			high = rate
			r.Limit = "registrar"
			if t.Tainted && t.Failures == 0 {
				r.Limit = "generator"
			}
		}
		switch {
		case high == 0 && low >= top:
			return r, nil
		case high == 0:
			rate = min(2*low, top)
		case high-low <= tolerance*high || high < 1:
			return r, nil
		default:
			rate = (low + high) / 2
		}
	}
	return r, nil
}

// SearchRate runs a search with the clients and targets of a completed scenario.
func SearchRate(ctx context.Context, sc *scenario.Scenario, rs RateSearch, o Options) (res RateResult, err error) {
	if o.Self == "" {
		if o.Self, err = executable(); err != nil {
			return res, err
		}
	}
	base := *sc
	base.Events, base.FailIf, base.Until = nil, nil, ""
	base.Behaviours = []*behaviour.Behaviour{{Name: "benchmark", UserAgent: "rollcall-storm (benchmark)",
		Retry: []behaviour.Span{{Min: time.Hour, Max: time.Hour}}, Nonce: "reuse", Unregister: true}}
	base.Mix = map[string]int{"benchmark": 1}
	base.Unregister = true
	base.Timeout = scenario.Duration(rs.Threshold)
	base.Ramp.Wait = scenario.Duration(rs.Threshold + time.Second)
	if base.Pool != nil {
		p, err := startPool(ctx, o.Self, sc, "")
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		if base.Targets, err = p.addresses(ctx, sc); err != nil {
			return res, err
		}
		base.Pool = nil
	}
	return search(rs.From, rs.Max, rs.Tolerance, func(rate float64) (Trial, error) {
		t, err := trial(ctx, base, rs, rate, o)
		if err == nil && rs.Trial != nil {
			rs.Trial(t)
		}
		return t, err
	})
}

// trial runs all clients once at a rate.
func trial(ctx context.Context, sc scenario.Scenario, rs RateSearch, rate float64, o Options) (Trial, error) {
	sc.Ramp.Rate, sc.Duration = rate, scenario.Duration(100*time.Millisecond)
	if rs.Again {
		sc.Ramp.Rate, sc.RenewRate = min(rate, rs.From), rate
		sc.Duration = scenario.Duration(time.Duration(float64(sc.Clients)/rate*float64(time.Second)) + rs.Threshold + 200*time.Millisecond)
	}
	rep, err := Run(ctx, &sc, o)
	if err != nil {
		return Trial{}, err
	}
	if ctx.Err() != nil {
		return Trial{}, errors.New("interrupted")
	}
	return judgeTrial(rep, rs, rate)
}

// judgeTrial says whether a rate was sustained: every attempt succeeded, and the rate asked for was reached within 5 %.
func judgeTrial(rep *report.Report, rs RateSearch, rate float64) (Trial, error) {
	t := Trial{Asked: rate, Tainted: rep.Generator.Tainted}
	var ok int
	if rs.Again {
		if len(rep.Phases) < 2 {
			return t, fmt.Errorf("the clients could not be registered before the trial: %v", rep.Errors)
		}
		ok, t.Reached, t.P99 = rep.Attempts.AgainOK, rep.Phases[1].ReRate, rep.ReRegister.P99
	} else {
		ok, t.Reached, t.P99 = rep.Attempts.FirstOK, rep.RegistrationRate, rep.Register.P99
	}
	for _, n := range rep.Failures {
		t.Failures += n
	}
	t.Failures = max(t.Failures, rep.Clients-ok)
	t.Sustained = t.Failures == 0 && t.Reached >= 0.95*rate
	return t, nil
}
