package loadtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"rollcall/internal/control"
	"rollcall/loadtest/scenario"
)

// pool is a throw-away pool: `rollcall up` as a child, with its data in a directory that goes with it.
type pool struct {
	self string
	dir  string
	sip  string
	cmd  *exec.Cmd
	log  io.WriteCloser
	last *tail
	done chan struct{} // closed when the child has ended
	err  error         // why it ended; read after done
}

// startPool starts a pool with the users of the scenario and waits until it serves. Its output goes to logPath.
func startPool(ctx context.Context, self string, sc *scenario.Scenario, logPath string) (*pool, error) {
	dir, err := os.MkdirTemp("", "rollcall-storm-")
	if err != nil {
		return nil, err
	}
	p := &pool{self: self, dir: dir, last: &tail{}, done: make(chan struct{})}
	if err := p.start(ctx, sc, logPath); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *pool) start(ctx context.Context, sc *scenario.Scenario, logPath string) error {
	users := filepath.Join(p.dir, "users.csv")
	if err := writeUsers(users, sc); err != nil {
		return err
	}
	sip, http, err := freePorts(sc.Pool.FrontEnds)
	if err != nil {
		return err
	}
	p.sip = sip
	args := []string{"up", "--data", filepath.Join(p.dir, "data"), "--sip", sip, "--http", http, "--users", users,
		"--frontends", fmt.Sprint(sc.Pool.FrontEnds), "--domain", sc.Domain}
	p.cmd = exec.Command(p.self, append(args, sc.Pool.Args...)...)
	var out io.Writer = p.last
	if logPath != "" {
		f, err := os.Create(logPath)
		if err != nil {
			return err
		}
		p.log = f
		out = io.MultiWriter(p.last, f)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// Ctrl-C is for the storm, which stops its pool in order; and the pool ends should the storm be killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig is sent when the parent's thread ends: this one lives as long as the child.
		runtime.LockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	return p.ready(ctx, sc)
}

// ready waits until all Front Ends are up, every group has a primary and the users are known.
func (p *pool) ready(ctx context.Context, sc *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(sc.Clients)*time.Millisecond)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	why := errors.New("no status yet")
	for {
		select {
		case <-p.done:
			return fmt.Errorf("pool: `rollcall up` ended: %s", p.last.last())
		case <-ctx.Done():
			return fmt.Errorf("pool: not ready in time (%w): %s", why, p.last.last())
		case <-tick.C:
		}
		st, err := p.status(ctx)
		if err == nil {
			err = serves(st, sc)
		}
		if err == nil {
			return nil
		}
		why = err
	}
}

// serves says what a pool still lacks to serve the scenario.
func serves(st *control.Status, sc *scenario.Scenario) error {
	up, users := 0, 0
	for _, fe := range st.FrontEnds {
		if fe.State == "up" {
			up++
		}
	}
	for _, g := range st.Groups {
		if g.Primary == nil {
			return fmt.Errorf("group %s has no primary", g.ID)
		}
		users += g.Users
	}
	if up < sc.Pool.FrontEnds || len(st.Groups) == 0 {
		return fmt.Errorf("%d of %d Front Ends up, %d groups", up, sc.Pool.FrontEnds, len(st.Groups))
	}
	if users > 0 && users < sc.Clients {
		return fmt.Errorf("%d of %d users provisioned", users, sc.Clients)
	}
	return nil
}

// status asks the pool.
func (p *pool) status(ctx context.Context) (*control.Status, error) {
	out, err := p.client(ctx, "status", "--json")
	if err != nil {
		return nil, err
	}
	st := &control.Status{}
	if err := json.Unmarshal(out, st); err != nil {
		return nil, fmt.Errorf("rollcall status --json: %w", err)
	}
	return st, nil
}

// client runs a client command of the same program and returns what it prints.
func (p *pool) client(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.self, append(args, "--data", filepath.Join(p.dir, "data"))...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("rollcall %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}

// stop ends the pool in order, and by force after 15 s, and removes its data.
func (p *pool) stop() error {
	var errs []error
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended already
		select {
		case <-p.done:
		case <-time.After(15 * time.Second):
			errs = append(errs, errors.New("pool: `rollcall up` did not end within 15 s and was killed"))
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
	if p.log != nil {
		errs = append(errs, p.log.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// addresses that clients connect to.
func (p *pool) addresses(ctx context.Context, sc *scenario.Scenario) ([]string, error) {
	if !sc.Pool.Own {
		return []string{p.sip}, nil
	}
	st, err := p.status(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, fe := range st.FrontEnds {
		for _, a := range fe.SIP {
			if addr, ok := strings.CutPrefix(a, sc.Transport+":"); ok {
				out = append(out, addr)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no Front End has an own address for %s", sc.Transport)
	}
	return out, nil
}

func writeUsers(path string, sc *scenario.Scenario) error {
	get, err := sc.Credentials()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range sc.Clients {
		user, password := get(i)
		_, _ = fmt.Fprintf(w, "%s,%s\n", user, password) // Flush returns the error
	}
	return errors.Join(w.Flush(), f.Close())
}

// freePorts finds a pool address whose own port and the ports of n Front Ends (+10+i) are
// free for UDP and TCP, below the ephemeral range, and a port for HTTP.
func freePorts(n int) (sip, http string, err error) {
	for range 200 {
		base := 20_000 + rand.IntN(11_000)
		ports := []int{base, base + 9}
		for i := 1; i <= n; i++ {
			ports = append(ports, base+10+i)
		}
		if allFree(ports) {
			return fmt.Sprintf("127.0.0.1:%d", base), fmt.Sprintf("127.0.0.1:%d", base+9), nil
		}
	}
	return "", "", errors.New("no free ports for a pool between 20000 and 31000 on 127.0.0.1")
}

func allFree(ports []int) bool {
	for _, port := range ports {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return false
		}
		_ = l.Close()
		u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return false
		}
		_ = u.Close()
	}
	return true
}

// watch follows the pool's events until ctx ends: `rollcall watch --json` as a child.
func (p *pool) watch(ctx context.Context, fn func(control.Event)) (wait func(), err error) {
	cmd := exec.CommandContext(ctx, p.self, "watch", "--json", "--data", filepath.Join(p.dir, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 3 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("rollcall watch: %w", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		sc := bufio.NewScanner(out)
		sc.Buffer(nil, 8<<20) // a placement event lists every move
		for sc.Scan() {
			var e control.Event
			if json.Unmarshal(sc.Bytes(), &e) == nil {
				fn(e)
			}
		}
		_ = cmd.Wait() // it ends by our signal
	})
	return wg.Wait, nil
}
