// Package harness runs the real thing for tests and measurements: the rollcall
// program as separate processes, and the peers that talk to it (SIPp, baresip,
// Linphone, Kamailio, and UDP phones of its own). It knows nothing of testing.T:
// everything returns errors, so that programs can use it too.
package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// outputKept bounds what is remembered of a process's output: the newest bytes.
const outputKept = 256 << 10

// Spec says what to run. Stdin is always an open pipe: softphones end on EOF.
type Spec struct {
	Path   string
	Args   []string
	Env    []string // added to the environment
	Dir    string
	Stdout io.Writer // nil: remembered for Output, like stderr
}

// Process is a running program. It is killed when the process that started it dies.
type Process struct {
	Name  string
	Stdin io.WriteCloser
	cmd   *exec.Cmd
	out   *tail
	done  chan struct{}
}

// Start runs a program.
func Start(s Spec) (*Process, error) {
	p := &Process{Name: filepath.Base(s.Path), out: &tail{}, done: make(chan struct{})}
	p.cmd = exec.Command(s.Path, s.Args...)
	p.cmd.Env = append(os.Environ(), s.Env...)
	p.cmd.Dir = s.Dir
	p.cmd.Stderr = p.out
	p.cmd.Stdout = s.Stdout
	if s.Stdout == nil {
		p.cmd.Stdout = p.out
	}
	// A grandchild may hold the output open after its parent is gone.
	p.cmd.WaitDelay = 2 * time.Second
	// A group of its own, so that a Ctrl-C meant for the test does not reach it first.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var err error
	if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

// Pid of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended and its output is complete.
func (p *Process) Exited() <-chan struct{} { return p.done }

// ExitCode of an ended process; -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Output is what the process wrote, the newest 256 KiB of it.
func (p *Process) Output() string { return p.out.String() }

// Signal sends a signal. A process that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop asks the process to end as Ctrl-C does, and kills it when patience is over, which is an error.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
	}
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
	return fmt.Errorf("%s (pid %d) did not end within %s of SIGINT and was killed; its last output:\n%s",
		p.Name, p.Pid(), patience, lastLines(p.Output(), 20))
}

// Kill ends the process at once, as kill -9 does, and waits for it.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", p.Name, err)
	}
	<-p.done
	return nil
}

// Alive reports whether a process with this pid exists and is no zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// "pid (name) S ..."; the name may hold anything but ends at the last ')'.
	i := bytes.LastIndexByte(stat, ')')
	return i > 0 && i+2 < len(stat) && stat[i+2] != 'Z'
}

// tail remembers the newest bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - outputKept; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

func lastLines(s string, n int) string {
	end := len(s)
	for i := end - 1; i >= 0; i-- {
		if s[i] == '\n' && i != end-1 {
			if n--; n == 0 {
				return s[i+1:]
			}
		}
	}
	return s
}
