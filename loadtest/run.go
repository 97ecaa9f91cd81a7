package loadtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"rollcall/loadtest/engine"
	"rollcall/loadtest/link"
	"rollcall/loadtest/report"
	"rollcall/loadtest/scenario"
)

// Options of Run that are not part of the scenario.
type Options struct {
	Self      string         // this program, for the pool and for worker processes; os.Executable when empty
	Worker    []string       // arguments that make Self a worker; "storm worker" when empty
	Dialer    link.Dialer    // instead of the network, without worker processes
	Resolver  *net.Resolver  // for names in targets
	Dir       string         // for the pool's log; "" keeps none
	Arguments []string       // of the command line, for the report
	Progress  func(Progress) // called about five times a second, from one goroutine
}

// Progress of a run.
type Progress struct {
	At      time.Duration // since the first client
	Phase   string
	Clients int
	Live    engine.Live
	OKRate  float64 // 200s a second, since the last call
	End     time.Duration
	Event   string // what was just done
}

const (
	progressEvery = 200 * time.Millisecond
	maxSteps      = 3000 // of the curve over time
	untilAfter    = time.Second
)

// run is one run of a scenario.
type run struct {
	sc          *scenario.Scenario
	o           Options
	pool        *pool
	crew        *crew
	observer    *observer
	credentials func(i int) (string, string)
	start       time.Time
	targets     []string
	marked      time.Duration // of the newest event
	phase       string
	last        engine.Live
	lastAt      time.Duration
	notes       []string
	over        chan struct{} // closed when the clients are done
	finish      func()        // closes it and waits for the jobs

	jobs   sync.WaitGroup
	mu     sync.Mutex
	errors []string
}

// Run runs a completed scenario and returns its report. An error means that there is
// nothing to report; what went wrong on the way is in the report's Errors.
func Run(ctx context.Context, sc *scenario.Scenario, o Options) (rep *report.Report, err error) {
	if o.Self == "" {
		if o.Self, err = executable(); err != nil {
			return nil, err
		}
	}
	if len(o.Worker) == 0 {
		o.Worker = []string{"storm", "worker"}
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	r := &run{sc: sc, o: o, phase: "starting", over: make(chan struct{})}
	r.finish = sync.OnceFunc(func() { close(r.over); r.jobs.Wait() })
	if r.credentials, err = sc.Credentials(); err != nil {
		return nil, err
	}
	if sc.Pool != nil {
		logPath := ""
		if o.Dir != "" {
			logPath = filepath.Join(o.Dir, "pool.log")
		}
		if r.pool, err = startPool(ctx, o.Self, sc, logPath); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.pool.stop()) }()
	}
	return r.clients(ctx)
}

// clients starts the clients, sees the events through and collects.
func (r *run) clients(ctx context.Context) (rep *report.Report, err error) {
	if err := r.resolve(ctx); err != nil {
		return nil, err
	}
	workers := r.sc.Workers
	if r.o.Dialer != nil {
		workers = 0
	}
	r.crew, err = newCrew(workers, append([]string{r.o.Self}, r.o.Worker...), r.o.Dialer)
	if err != nil {
		return nil, err
	}
	defer func() {
		r.finish()
		err = errors.Join(err, r.crew.close())
	}()
	r.observer = newObserver(r.sc.Transport == "udp")
	watchCtx, stopWatch := context.WithCancel(ctx)
	defer stopWatch()
	if r.pool != nil {
		wait, err := r.pool.watch(watchCtx, r.observer.pool)
		if err != nil {
			return nil, err
		}
		defer wait()
		defer stopWatch()
		select { // it has no way to say that it hears: give it a moment, as registrations missed are places not known
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	_, before, err := r.startCPU(ctx)
	if err != nil {
		return nil, err
	}
	rampEnd, err := r.ramp(ctx)
	if err == nil {
		err = r.steady(ctx, rampEnd)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	if errors.Is(err, context.Canceled) {
		r.fail(errors.New("interrupted: the figures cover what had happened until then"))
	}
	return r.collect(context.WithoutCancel(ctx), rampEnd, before)
}

func (r *run) resolve(ctx context.Context) error {
	given := r.sc.Targets
	if r.pool != nil {
		var err error
		if given, err = r.pool.addresses(ctx, r.sc); err != nil {
			return err
		}
	}
	var err error
	r.targets, err = resolve(ctx, r.o.Resolver, r.sc.Transport, given)
	return err
}

// startCPU starts the shares, and returns the CPU time used before the first client.
func (r *run) startCPU(ctx context.Context) (engine.Live, time.Duration, error) {
	total := time.Duration(float64(r.sc.Clients)/r.sc.Ramp.Rate*float64(time.Second)) + r.sc.Ramp.Wait.D() + r.sc.Duration.D()
	width := max(100*time.Millisecond, (total / maxSteps).Round(100*time.Millisecond))
	own := sources(r.sc.Sources, r.targets, r.sc.Clients, scenario.PerWorker)
	// Worker processes get a moment to build their phones before the first client's turn.
	r.start = time.Now()
	if r.crew.processes {
		r.start = r.start.Add(500*time.Millisecond + time.Duration(r.sc.Clients)*20*time.Microsecond)
	}
	r.observer.begin(r.start)
	n := len(r.crew.workers)
	_, err := r.crew.all(ctx, func(k int) request {
		first, next := r.sc.Clients*k/n, r.sc.Clients*(k+1)/n
		return request{Op: "start", Share: &share{Scenario: r.sc, Password: r.sc.Password, Targets: r.targets, Sources: own,
			First: first, Count: next - first, Start: r.start, Width: width}}
	})
	if err != nil {
		return engine.Live{}, 0, err
	}
	return r.crew.live(ctx)
}

func (r *run) now() time.Duration { return time.Since(r.start) }

// ramp waits until every client was registered once, at most for the ramp's time and its wait; it sees
// to the events that count from its start.
func (r *run) ramp(ctx context.Context) (end time.Duration, err error) {
	r.phase = "ramp"
	limit := r.sc.Ramp.Start(r.sc.Clients-1, r.sc.Clients) + r.sc.Ramp.Wait.D()
	var events []scenario.Event
	for _, e := range r.sc.Events {
		if e.Ramp {
			events = append(events, e)
		}
	}
	err = r.loop(ctx, events, 0, func(l engine.Live, _ int) bool { return l.Untried == 0 || r.now() >= limit }, limit)
	if err != nil {
		return r.now(), err
	}
	if r.last.Untried > 0 {
		r.fail(fmt.Errorf("%d of %d clients were not registered when the ramp's time was over (%v); the run goes on without them",
			r.last.Untried, r.sc.Clients, limit.Round(time.Second)))
	}
	end = r.now()
	r.phase = "steady"
	if err := r.crew.same(ctx, request{Op: "begin", Name: "steady", At: end}); err != nil || r.sc.RenewRate == 0 {
		return end, err
	}
	return end, r.crew.same(ctx, request{Op: "renew", At: end + 100*time.Millisecond, Rate: r.sc.RenewRate})
}

// steady sees the events through until the end of the run.
func (r *run) steady(ctx context.Context, rampEnd time.Duration) error {
	var events []scenario.Event
	for _, e := range r.sc.Events {
		if !e.Ramp || e.Time.D() > rampEnd {
			events = append(events, e)
		}
	}
	end := rampEnd + r.sc.Duration.D()
	until, err := r.until()
	if err != nil {
		return err
	}
	return r.loop(ctx, events, rampEnd, func(l engine.Live, waiting int) bool {
		// Not at once after an event: what it takes away is not noticed in the same moment.
		return r.now() >= end || waiting == 0 && r.now() >= r.marked+untilAfter && until(l)
	}, end)
}

// until is the condition that ends the run early.
func (r *run) until() (func(engine.Live) bool, error) {
	if r.sc.Until == "" {
		return func(engine.Live) bool { return false }, nil
	}
	c, err := scenario.ParseCondition(r.sc.Until)
	return func(l engine.Live) bool { return r.holds(c, l) }, err
}

func (r *run) holds(c scenario.Condition, l engine.Live) bool {
	return c.Holds(r.sc.Clients, func(name string) int {
		return map[string]int{"registered": l.Bound, "gaps_open": l.Gaps, "back": l.GapsClosed}[name]
	})
}

// loop asks the workers, does the events that are due, and reports, until done.
func (r *run) loop(ctx context.Context, events []scenario.Event, rampEnd time.Duration, done func(l engine.Live, waiting int) bool, end time.Duration) error {
	held := make([]time.Duration, len(events)) // since when a condition holds; 0: not yet
	fired, waiting := make([]bool, len(events)), len(events)
	for {
		live, _, err := r.crew.live(ctx)
		if err != nil {
			return err
		}
		r.progress(live, end, "")
		next, acted := min(end, r.now()+progressEvery), false
		for i, e := range events {
			if fired[i] {
				continue
			}
			due := e.Due(rampEnd)
			if e.When != "" {
				due = r.condition(e, live, &held[i])
			}
			if due <= r.now() {
				fired[i], acted = true, true
				waiting--
				r.phase = "after " + e.String()
				r.act(ctx, e)
				r.progress(live, end, e.String())
				continue
			}
			next = min(next, due)
		}
		if acted {
			continue // the state known is that of before
		}
		if done(live, waiting) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-time.After(max(next-r.now(), time.Millisecond)):
		}
	}
}

// condition says when an event with a condition is due; never while it does not hold for the first time.
func (r *run) condition(e scenario.Event, l engine.Live, held *time.Duration) time.Duration {
	if *held == 0 {
		if !r.holds(e.Cond, l) {
			return time.Duration(1<<63 - 1)
		}
		*held = r.now()
	}
	return *held + e.After.D()
}

func (r *run) progress(l engine.Live, end time.Duration, event string) {
	now := r.now()
	p := Progress{At: now, Phase: r.phase, Clients: r.sc.Clients, Live: l, End: end, Event: event}
	if d := now - r.lastAt; d > 0 && event == "" {
		p.OKRate = float64(l.OK-r.last.OK) / d.Seconds()
	}
	if event == "" {
		r.last, r.lastAt = l, now
	}
	if r.o.Progress != nil {
		r.o.Progress(p)
	}
}

// background runs a job that an event started; the run waits for it.
func (r *run) background(job func() error) {
	r.jobs.Go(func() {
		if err := job(); err != nil {
			r.fail(err)
		}
	})
}

// fail notes an error for the report.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errors) < 100 {
		r.errors = append(r.errors, err.Error())
	}
}

// collect takes the measurements, ends the clients and makes the report.
func (r *run) collect(ctx context.Context, rampEnd, before time.Duration) (*report.Report, error) {
	live, cpu, err := r.crew.live(ctx)
	if err != nil {
		return nil, err
	}
	length := r.now()
	data, err := r.crew.freeze(ctx)
	if err != nil {
		return nil, err
	}
	r.finish()
	quit := request{Op: "quit", At: 3 * time.Second}
	if r.sc.Unregister { // at the rate at which they came, over all workers
		quit.Rate = r.sc.Ramp.Rate / float64(len(r.crew.workers))
		quit.At += time.Duration(float64(r.sc.Clients) / r.sc.Ramp.Rate * float64(time.Second))
	}
	if err := r.crew.same(ctx, quit); err != nil {
		return nil, err
	}
	events, dropped := r.observer.sorted()
	if dropped > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d events beyond %d are not in the report.", dropped, maxEvents))
	}
	workers := 0
	if r.crew.processes {
		workers = len(r.crew.workers)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return report.Build(&report.Input{Data: data, Scenario: r.sc, CPU: cpu - before, CPUs: runtime.NumCPU(), Workers: workers,
		RampEnd: rampEnd, Length: length, Bound: live.Bound, Events: events, Targets: r.targets, Arguments: r.o.Arguments,
		Started: r.start, Notes: r.notes, Errors: r.errors}), nil
}
