package loadtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"rollcall/loadtest/engine"
	"rollcall/loadtest/link"
	"rollcall/loadtest/measure"
)

// request is what the coordinator asks of a worker; each gets one reply. Between
// processes both are lines of JSON.
type request struct {
	Op      string        `json:"op"` // start, live, begin, cut, mark, renew, freeze, quit
	Share   *share        `json:"share,omitempty"`
	Name    string        `json:"name,omitempty"`
	At      time.Duration `json:"at,omitempty"` // of quit: how long it may take
	Cut     float64       `json:"cut,omitempty"`
	Rate    float64       `json:"rate,omitempty"`
	All     bool          `json:"all,omitempty"`
	Clients []int         `json:"clients,omitempty"`
}

type reply struct {
	Error string        `json:"error,omitempty"`
	Live  *engine.Live  `json:"live,omitempty"`
	Data  *measure.Data `json:"data,omitempty"`
	CPU   time.Duration `json:"cpu_ns,omitempty"` // of the process so far
}

// worker runs a share of the clients.
type worker interface {
	do(ctx context.Context, r request) (reply, error)
	close() error
}

// local runs a share in this process.
type local struct {
	dialer link.Dialer
	e      *engine.Engine
	stop   context.CancelFunc
	ended  chan struct{}
}

func (l *local) do(ctx context.Context, r request) (reply, error) {
	if r.Op == "start" {
		e, err := r.Share.engine(l.dialer)
		if err != nil {
			return reply{}, err
		}
		run, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.e, l.stop, l.ended = e, stop, make(chan struct{})
		go func() { e.Run(run); close(l.ended) }()
		return reply{}, nil
	}
	if l.e == nil {
		return reply{}, fmt.Errorf("%s before start", r.Op)
	}
	out := reply{}
	switch r.Op {
	case "live":
		live := l.e.Live()
		out.Live = &live
	case "begin":
		l.e.Begin(r.Name, r.At)
	case "cut":
		l.e.Cut(r.Cut)
	case "renew":
		l.e.Renew(r.At, r.Rate)
	case "mark":
		l.e.Mark(affected(r), r.At)
	case "freeze":
		d := l.e.Freeze()
		out.Data = &d
	case "quit":
		l.e.Quit(r.Rate)
		l.e.Drain(ctx, r.At)
	default:
		return out, fmt.Errorf("unknown request %q", r.Op)
	}
	out.CPU = cpuTime()
	return out, nil
}

func affected(r request) map[int]bool {
	if r.All {
		return nil
	}
	m := make(map[int]bool, len(r.Clients))
	for _, i := range r.Clients {
		m[i] = true
	}
	return m
}

func (l *local) close() error {
	if l.stop != nil {
		l.stop()
		<-l.ended
	}
	return nil
}

// cpuTime of this process, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ServeWorker is a worker process: it answers requests from r on w until r ends.
func ServeWorker(ctx context.Context, r io.Reader, w io.Writer) error {
	// Nearly all of the heap lives as long as the clients: collecting earlier costs little and keeps a client small.
	debug.SetGCPercent(50)
	l := &local{}
	defer func() { _ = l.close() }()
	in, out := json.NewDecoder(bufio.NewReader(r)), json.NewEncoder(w)
	for {
		var req request
		if err := in.Decode(&req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("storm worker: %w", err)
		}
		rep, err := l.do(ctx, req)
		if err != nil {
			rep.Error = err.Error()
		}
		if err := out.Encode(rep); err != nil {
			return fmt.Errorf("storm worker: %w", err)
		}
	}
}

// process runs a share in a process of its own, which ends when its standard input does.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *tail
	mu     sync.Mutex // one request at a time
}

func startProcess(argv []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), stderr: &tail{}}
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the coordinator, which ends its workers in order
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, json.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("worker process: %w", err)
	}
	return p, nil
}

func (p *process) do(_ context.Context, r request) (reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rep reply
	b, err := json.Marshal(r)
	if err == nil {
		_, err = p.in.Write(append(b, '\n'))
	}
	if err == nil {
		err = p.out.Decode(&rep)
	}
	if err != nil {
		return rep, fmt.Errorf("worker process %d ended (%w): %s", p.cmd.Process.Pid, err, p.stderr.last())
	}
	if rep.Error != "" {
		return rep, errors.New(rep.Error)
	}
	return rep, nil
}

// close ends the process: by the end of its input, and by force after 5 s.
func (p *process) close() error {
	_ = p.in.Close()
	force := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer force.Stop()
	return p.cmd.Wait()
}

// tail keeps the last lines that a process wrote.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - 2048; n > 0 {
		t.buf = t.buf[n:]
	}
	return len(b), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}

// crew is all workers of a run.
type crew struct {
	workers   []worker
	processes bool
}

// newCrew starts the workers: none beyond this process, or n processes.
func newCrew(n int, argv []string, dialer link.Dialer) (*crew, error) {
	if n == 0 {
		return &crew{workers: []worker{&local{dialer: dialer}}}, nil
	}
	c := &crew{processes: true}
	for range n {
		p, err := startProcess(argv)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.workers = append(c.workers, p)
	}
	return c, nil
}

// all asks every worker at the same time; the request may differ by the worker's number.
func (c *crew) all(ctx context.Context, ask func(k int) request) ([]reply, error) {
	replies := make([]reply, len(c.workers))
	g, ctx := errgroup.WithContext(ctx)
	for k, w := range c.workers {
		g.Go(func() error {
			var err error
			replies[k], err = w.do(ctx, ask(k))
			return err
		})
	}
	return replies, g.Wait()
}

func (c *crew) same(ctx context.Context, r request) error {
	_, err := c.all(ctx, func(int) request { return r })
	return err
}

// live adds up the states of all workers, and their CPU time.
func (c *crew) live(ctx context.Context) (engine.Live, time.Duration, error) {
	replies, err := c.all(ctx, func(int) request { return request{Op: "live"} })
	if err != nil {
		return engine.Live{}, 0, err
	}
	var l engine.Live
	var cpu time.Duration
	for _, r := range replies {
		l.Add(*r.Live)
		cpu += r.CPU
	}
	if c.processes {
		cpu += cpuTime()
	}
	return l, cpu, nil
}

// freeze merges what all workers measured.
func (c *crew) freeze(ctx context.Context) (measure.Data, error) {
	replies, err := c.all(ctx, func(int) request { return request{Op: "freeze"} })
	if err != nil {
		return measure.Data{}, err
	}
	var d measure.Data
	for _, r := range replies {
		d.Merge(r.Data)
	}
	return d, nil
}

func (c *crew) close() error {
	var errs []error
	for _, w := range c.workers {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}

// executable is this program, to start others of its kind.
func executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find this program's own file: %w", err)
	}
	return self, nil
}
