package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"rollcall/test/harness"
)

// measureMemory prints the memory per binding of each copy and per idle TCP connection.
func measureMemory(ctx context.Context, p plan) error {
	users := harness.Users(p.bindings)
	kamailio, err := harness.StartKamailio(ctx, p.dir, p.ports, kamailioWorker, nil)
	if err != nil {
		return err
	}
	defer kamailio.Stop()
	pids, err := kamailio.Pids()
	if err != nil {
		return err
	}
	begin := time.Now()
	pool, status, err := startPool(ctx, p, 3, false, users)
	if err != nil {
		return err
	}
	defer pool.Stop()
	fmt.Printf("\n%d users provisioned and the pool complete after %s.\n", p.bindings, time.Since(begin).Round(100*time.Millisecond))
	lay, err := layOf(status, pool)
	if err != nil {
		return err
	}
	roles := []role{{colKamailio, pids}, {colPrimary, lay.pids[0]}, {colSecondary, lay.pids[1]}, {colTertiary, lay.pids[2]}, {colBus, lay.bus}}

	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetTitle("Memory, bytes (growth of resident memory, its shared pages divided)")
	t.AppendHeader(table.Row{"", colKamailio, colPrimary, colSecondary, colTertiary, colBus})

	if err := pause(ctx, p.settle); err != nil {
		return err
	}
	before, err := memories(roles)
	if err != nil {
		return err
	}
	for _, target := range []string{kamailio.Target, lay.primary} {
		if err := registerAll(ctx, target, users); err != nil {
			return err
		}
	}
	after, err := memories(roles)
	if err != nil {
		return err
	}
	t.AppendRow(perUnit(fmt.Sprintf("per binding, %d, at once", p.bindings), before, after, p.bindings))
	if err := pause(ctx, p.settle); err != nil {
		return err
	}
	if after, err = memories(roles); err != nil {
		return err
	}
	t.AppendRow(perUnit(fmt.Sprintf("per binding, after %s", p.settle), before, after, p.bindings))

	before = after
	for _, target := range []string{kamailio.Target, lay.primary} {
		conns, err := idleConnections(target, p.connections)
		if err != nil {
			return err
		}
		defer closeAll(conns)
	}
	if err := pause(ctx, 2*time.Second); err != nil {
		return err
	}
	if after, err = memories(roles[:2]); err != nil {
		return err
	}
	t.AppendRow(perUnit(fmt.Sprintf("per idle TCP connection, %d", p.connections), before[:2], after, p.connections))
	t.Render()
	return nil
}

func memories(roles []role) ([]int64, error) {
	all := make([]int64, len(roles))
	for i, r := range roles {
		var err error
		if all[i], err = harness.Memory(r.pids...); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return all, nil
}

func perUnit(name string, before, after []int64, n int) table.Row {
	row := table.Row{name}
	for i := range after {
		row = append(row, (after[i]-before[i])/int64(n))
	}
	return row
}

func registerAll(ctx context.Context, target string, users []harness.User) error {
	phones, err := harness.NewPhones("memory", users)
	if err != nil {
		return err
	}
	defer phones.Close()
	return phones.Each(64, func(ph *harness.Phone) error { return ph.MustRegister(ctx, target, 3600) })
}

// idleConnections opens connections that have carried one request each.
func idleConnections(target string, n int) ([]net.Conn, error) {
	conns := make([]net.Conn, 0, n)
	buf := make([]byte, 4096)
	for i := range n {
		// Source addresses are spread so that ports don't run out.
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}, Timeout: 5 * time.Second}
		c, err := dialer.Dial("tcp", target)
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("connection %d to %s: %w", i+1, target, err)
		}
		conns = append(conns, c)
		fmt.Fprintf(c, "OPTIONS sip:%s SIP/2.0\r\nVia: SIP/2.0/TCP %s;branch=z9hG4bK-%d;rport\r\nMax-Forwards: 70\r\nFrom: <sip:cost@%s>;tag=c%d\r\n"+
			"To: <sip:%s>\r\nCall-ID: cost-%d\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n",
			harness.Domain, c.LocalAddr(), i, harness.Domain, i, harness.Domain, i)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(buf); err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("connection %d to %s: no answer to OPTIONS: %w", i+1, target, err)
		}
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}
