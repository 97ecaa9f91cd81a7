// Package system tests whole pools: the rollcall program as separate processes,
// killed and stopped for real, with real SIP peers. Each test starts pools of its own.
package system

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// What TestMain prepares and no test changes.
var (
	binary string
	ports  = &harness.Ports{}
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rollcall-system-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "system tests:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = harness.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "system tests:", err)
		return 1
	}
	return m.Run()
}

// long reports whether the tests run at the length of the acceptance.
func long() bool { return os.Getenv("ROLLCALL_LONG") == "1" }

// startPool starts a pool that is stopped, cleanly, at the end of the test.
func startPool(t *testing.T, o harness.PoolOptions) (*harness.Pool, control.Status) {
	t.Helper()
	o.Binary, o.Dir, o.Ports = binary, t.TempDir(), ports
	pool, err := harness.StartPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("rollcall up said:\n%s", pool.Up.Output())
		}
		checkRaces(t, pool)
	})
	status, err := pool.Ready(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return pool, status
}

// checkRaces fails the test if a process that was built with the race detector found a race.
func checkRaces(t *testing.T, pool *harness.Pool) {
	t.Helper()
	logs, err := pool.Logs()
	if err != nil {
		t.Error(err)
	}
	for name, text := range logs {
		if i := strings.Index(text, "WARNING: DATA RACE"); i >= 0 {
			t.Errorf("%s: %s", name, text[i:min(len(text), i+4000)])
		}
		if i := strings.Index(text, "panic: "); i >= 0 {
			t.Errorf("%s: %s", name, text[i:min(len(text), i+4000)])
		}
	}
}

// counts are the copies that a Front End holds.
type counts struct{ primaries, secondaries, tertiaries int }

func copiesOf(fe control.FrontEnd) counts {
	return counts{fe.Primaries, fe.Secondaries, fe.Tertiaries}
}

// is reports whether a copy is at a Front End.
func is(copy *routing.FrontEnd, fe routing.FrontEnd) bool { return copy != nil && *copy == fe }

// down says that a Front End must be down and hold nothing.
func down(s control.Status, name routing.FrontEnd) error {
	fe, err := harness.FrontEnd(s, name)
	if err != nil {
		return err
	}
	if fe.State != routing.Down || copiesOf(fe) != (counts{}) {
		return fmt.Errorf("%s is %s and holds %+v", name, fe.State, copiesOf(fe))
	}
	return nil
}

// eventually tries until there is no complaint, and fails the test with the last one.
func eventually(t *testing.T, within time.Duration, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	complaint := errors.New("not tried yet")
	for ctx.Err() == nil {
		err := try(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			complaint = err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s: not within %s: %v", what, within, complaint)
}
