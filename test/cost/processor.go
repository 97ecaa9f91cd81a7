package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// The columns of the table, in order.
const (
	colKamailio    = "Kamailio"
	colPrimary     = "primary FE"
	colSecondary   = "copy (secondary)"
	colTertiary    = "copy (tertiary)"
	colBus         = "bus"
	colRelaying    = "relaying FE"
	colRelayedTo   = "primary FE behind it"
	kamailioWorker = 4
)

var columns = [...]string{colKamailio, colPrimary, colSecondary, colTertiary, colBus, colRelaying, colRelayedTo}

// measureProcessor prints the table of processor time per registration.
func measureProcessor(ctx context.Context, p plan) error {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetTitle("Processor time per registration, µs (median of %d windows of %s, %d/s wanted over UDP)", p.repeats, p.window, p.rate)
	header := table.Row{"", "reached/s ¹", "faltered ²"}
	for _, c := range columns {
		header = append(header, c)
	}
	t.AppendHeader(header)
	for _, m := range modes {
		if !strings.Contains(m.name, p.userFilter) {
			continue
		}
		found, err := measureMode(ctx, p, m)
		if err != nil {
			return err
		}
		line := table.Row{m.name, found.reached(), found.tainted()}
		for _, c := range columns {
			line = append(line, microseconds(median(found.micros[c])))
		}
		t.AppendRow(line)
	}
	t.Render()
	fmt.Println("¹ At Kamailio / at the primary / at the relaying FE. ² Requests that SIPp repeated + users that it gave up, at each of them.")
	fmt.Println("A registration is one 200 OK: one REGISTER, or two with its 401. The relaying FE holds no copy. Kamailio keeps its")
	fmt.Println("bindings in memory and replicates nothing; the pool has stored each one, and three copies have it, when it answers.")
	return nil
}

// findings of one mode: all readings by column, and the rates by what was loaded.
type findings struct {
	micros   map[string][]float64
	rates    [3][]float64 // Kamailio, primary, relaying
	repeated [3]int
	failed   [3]int
}

func (f *findings) add(which int, r reading) {
	f.rates[which] = append(f.rates[which], r.perSecond)
	f.repeated[which] += r.repeated
	f.failed[which] += r.failed
	for name, v := range r.micros {
		f.micros[name] = append(f.micros[name], v)
	}
}

func (f *findings) reached() string {
	return fmt.Sprintf("%.0f / %.0f / %.0f", median(f.rates[0]), median(f.rates[1]), median(f.rates[2]))
}

// tainted is how often the load itself faltered.
func (f *findings) tainted() string {
	return fmt.Sprintf("%d+%d / %d+%d / %d+%d", f.repeated[0], f.failed[0], f.repeated[1], f.failed[1], f.repeated[2], f.failed[2])
}

func microseconds(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.1f", v)
}

// measureMode measures Kamailio, the primary and a relaying Front End in turn, in the same run.
func measureMode(ctx context.Context, p plan, m mode) (*findings, error) {
	users := harness.Users(usersOfLoad)
	var ports []int
	for range p.generators {
		port, err := p.ports.One()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	var passwords []harness.User
	if m.auth {
		passwords = users
	}
	kamailio, err := harness.StartKamailio(ctx, p.dir, p.ports, kamailioWorker, passwords)
	if err != nil {
		return nil, err
	}
	defer kamailio.Stop()
	pids, err := kamailio.Pids()
	if err != nil {
		return nil, err
	}
	pool, status, err := startPool(ctx, p, 4, m.auth, users)
	if err != nil {
		return nil, err
	}
	defer pool.Stop()
	lay, err := layOf(status, pool)
	if err != nil {
		return nil, err
	}

	f := &findings{micros: map[string][]float64{}}
	for range p.repeats {
		for which, side := range []struct {
			target string
			roles  []role
		}{
			{kamailio.Target, []role{{colKamailio, pids}}},
			{lay.primary, []role{{colPrimary, lay.pids[0]}, {colSecondary, lay.pids[1]}, {colTertiary, lay.pids[2]}, {colBus, lay.bus}}},
			{lay.outside, []role{{colRelaying, lay.pids[3]}, {colRelayedTo, lay.pids[0]}}},
		} {
			r, err := measure(ctx, p, m, side.target, users, ports, side.roles)
			if err != nil {
				return nil, err
			}
			f.add(which, r)
		}
	}
	return f, nil
}

// startPool starts a pool with one routing group, so that one Front End is primary of all users.
func startPool(ctx context.Context, p plan, frontEnds int, auth bool, users []harness.User) (*harness.Pool, control.Status, error) {
	dir, err := os.MkdirTemp(p.dir, "pool-")
	if err != nil {
		return nil, control.Status{}, err
	}
	how := "off"
	if auth {
		how = "digest"
	}
	pool, err := harness.StartPool(harness.PoolOptions{
		Binary: p.binary, Dir: dir, Ports: p.ports, FrontEnds: frontEnds, Groups: 1, Auth: how, Users: users,
	})
	if err != nil {
		return nil, control.Status{}, err
	}
	status, err := pool.Ready(ctx, 2*time.Minute)
	if err != nil {
		_ = pool.Stop()
		return nil, control.Status{}, err
	}
	return pool, status, nil
}

// lay is who does what in a pool of one group.
type lay struct {
	primary string   // its own UDP address
	outside string   // that of a Front End without a copy
	pids    [4][]int // primary, secondary, tertiary, without a copy
	bus     []int
}

func layOf(s control.Status, pool *harness.Pool) (lay, error) {
	l := lay{bus: []int{pool.Up.Pid()}}
	if len(s.Groups) != 1 {
		return l, fmt.Errorf("the pool has %d groups, not 1", len(s.Groups))
	}
	g := s.Groups[0]
	for _, fe := range s.FrontEnds {
		udp, err := pool.Own(fe, "udp")
		if err != nil {
			return l, err
		}
		switch fe.Name {
		case is(g.Primary):
			l.primary, l.pids[0] = udp, []int{fe.Pid}
		case is(g.Secondary):
			l.pids[1] = []int{fe.Pid}
		case is(g.Tertiary):
			l.pids[2] = []int{fe.Pid}
		default:
			l.outside, l.pids[3] = udp, []int{fe.Pid}
		}
	}
	return l, nil
}

func is(fe *routing.FrontEnd) routing.FrontEnd {
	if fe == nil {
		return ""
	}
	return *fe
}
