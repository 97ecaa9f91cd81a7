// Command failover times promotions: from `kill -9` of a Front End of an idle pool
// of three until each survivor acts on the new placement, by the pool's own events.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

const frontEnds = 3

func main() {
	runs := flag.Int("runs", 20, "how many Front Ends to kill, one after the other")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int) error {
	if runs < 1 {
		return errors.New("--runs must be at least 1")
	}
	dir, err := os.MkdirTemp("", "rollcall-failover-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := harness.Build(dir)
	if err != nil {
		return err
	}
	pool, err := harness.StartPool(harness.PoolOptions{
		Binary: binary, Dir: filepath.Clean(dir), Ports: &harness.Ports{}, FrontEnds: frontEnds, Args: []string{"--restart-after", "500ms"},
	})
	if err != nil {
		return err
	}
	var results []result
	err = func() error {
		if _, err := pool.Ready(ctx, time.Minute); err != nil {
			return err
		}
		watch, err := pool.Watch()
		if err != nil {
			return err
		}
		defer watch.Close()
		fmt.Printf("%4s  %-6s %12s %12s %12s\n", "run", "killed", "decided", "seen by all", "ready")
		for i := range runs {
			r, err := once(ctx, pool, watch)
			if err != nil {
				return fmt.Errorf("run %d: %w", i+1, err)
			}
			fmt.Printf("%4d  %-6s %12s %12s %12s\n", i+1, r.killed, ms(r.decided), ms(r.seen), ms(r.ready))
			results = append(results, r)
		}
		return nil
	}()
	if err := errors.Join(err, pool.Stop()); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		rank float64
	}{{"median", 0.5}, {"p90", 0.9}, {"max", 1}} {
		fmt.Printf("%-12s %12s %12s %12s\n", p.name,
			ms(quantile(results, p.rank, func(r result) time.Duration { return r.decided })),
			ms(quantile(results, p.rank, func(r result) time.Duration { return r.seen })),
			ms(quantile(results, p.rank, func(r result) time.Duration { return r.ready })))
	}
	return nil
}

// result of one kill; times since the kill.
type result struct {
	killed  routing.FrontEnd
	decided time.Duration // the placement that replaces it was stored
	seen    time.Duration // the last survivor acts on it
	ready   time.Duration // the last survivor serves the groups that it took over
}

// once kills the Front End with the most primaries and follows the events until both survivors have seen the new
// placement; then it waits for the killed one to be back.
func once(ctx context.Context, pool *harness.Pool, watch *harness.Watch) (result, error) {
	status, err := pool.Ready(ctx, time.Minute)
	if err != nil {
		return result{}, err
	}
	// What a return sets off must be over.
	if err := sleep(ctx, time.Second); err != nil {
		return result{}, err
	}
	watch.Drain()
	victim := slices.MaxFunc(status.FrontEnds, func(a, b control.FrontEnd) int { return a.Primaries - b.Primaries })
	killed, err := pool.Kill(ctx, victim.Name)
	if err != nil {
		return result{}, err
	}
	r := result{killed: victim.Name}
	seen := map[routing.FrontEnd]bool{}     // survivors that act on the new placement
	promoted := map[routing.FrontEnd]bool{} // survivors that took groups over; true when they serve them
	for len(seen) < frontEnds-1 || slices.Contains(slices.Collect(maps.Values(promoted)), false) {
		e, err := watch.Next(ctx, 10*time.Second, fmt.Sprintf("the placement without %s (seen by %d of %d)", victim.Name, len(seen), frontEnds-1),
			func(e control.Event) bool {
				return e.Type == control.EventPlacement && e.Epoch > status.Epoch && e.FrontEnd != victim.Name
			})
		if err != nil {
			return result{}, err
		}
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			return result{}, fmt.Errorf("time of an event: %w", err)
		}
		after := at.Sub(killed)
		switch {
		case e.Phase == "decided" && r.decided == 0:
			r.decided = after
		case e.Phase == "seen" && !seen[e.FrontEnd]:
			seen[e.FrontEnd] = true
			r.seen = max(r.seen, after)
			if !promoted[e.FrontEnd] && slices.ContainsFunc(e.Moves, func(m control.Move) bool {
				return m.To.Primary == e.FrontEnd && m.From.Primary != e.FrontEnd
			}) {
				promoted[e.FrontEnd] = false
			}
		case e.Phase == "ready" && !promoted[e.FrontEnd]:
			promoted[e.FrontEnd] = true
			r.ready = max(r.ready, after)
		}
	}
	return r, nil
}

func quantile(results []result, rank float64, of func(result) time.Duration) time.Duration {
	all := make([]time.Duration, len(results))
	for i, r := range results {
		all[i] = of(r)
	}
	slices.Sort(all)
	// Nearest rank: the smallest value that at least this share does not exceed.
	i := int(rank*float64(len(all))+0.999999) - 1
	return all[max(0, min(i, len(all)-1))]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
