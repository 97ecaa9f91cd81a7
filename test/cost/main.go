// Command cost measures what a REGISTER costs: processor time per registration of
// the primary Front End, a relaying one, each copy and the bus, next to Kamailio under the
// same SIPp load in the same run; memory per binding and per idle TCP connection.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"rollcall/test/harness"
)

// plan is how long and how hard to measure.
type plan struct {
	repeats       int
	warm, window  time.Duration
	rate          int // registrations per second
	generators    int // SIPp processes; one reaches 1,000 to 1,250 per second
	bindings      int
	connections   int
	settle        time.Duration // for garbage to be collected and returned
	dir, binary   string
	ports         *harness.Ports
	userFilter    string
	skipProcessor bool
	skipMemory    bool
}

func main() {
	p := plan{repeats: 3, warm: 3 * time.Second, window: 15 * time.Second, bindings: 100_000, connections: 5_000,
		settle: 150 * time.Second, generators: 4, ports: &harness.Ports{}}
	short := flag.Bool("short", false, "one short repeat, 20,000 bindings, 1,000 connections")
	flag.IntVar(&p.rate, "rate", 4000, "registrations per second")
	flag.IntVar(&p.repeats, "repeats", p.repeats, "repeats of each measurement; the median counts")
	flag.StringVar(&p.userFilter, "only", "", "only the modes with this in their name")
	flag.BoolVar(&p.skipMemory, "no-memory", false, "measure processor time only")
	flag.BoolVar(&p.skipProcessor, "no-cpu", false, "measure memory only")
	flag.Parse()
	if *short {
		p.repeats, p.warm, p.window = 1, 2*time.Second, 4*time.Second
		p.bindings, p.connections, p.settle = 20_000, 1_000, 5*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan) error {
	if missing := harness.Missing("sipp", "kamailio"); len(missing) > 0 {
		return fmt.Errorf("%s not installed: run scripts/install-peers.sh", strings.Join(missing, ", "))
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "rollcall-cost-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	if p.binary, err = harness.Build(p.dir); err != nil {
		return err
	}
	fmt.Printf("%d processors, %s, %s; load of SIPp on the same machine, nothing pinned.\n",
		runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly))
	if !p.skipProcessor {
		if err := measureProcessor(ctx, p); err != nil {
			return err
		}
	}
	if !p.skipMemory {
		return measureMemory(ctx, p)
	}
	return nil
}
