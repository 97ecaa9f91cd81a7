package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Command is a child process to be kept running.
type Command struct {
	Name string
	Path string
	Args []string
	// Handover is written to its standard input, which then stays open: at its end the
	// child knows that the supervisor is gone. Secrets go this way, never by Args.
	Handover []byte
	Log      string // file for its output, appended to
}

// maxLog is the size at which a log is moved aside when its process starts, in bytes.
const maxLog = 16 << 20

// Keeper keeps processes running: it starts them, starts them again when they end,
// and stops them. None outlives it, not even when the supervisor is killed.
type Keeper struct {
	RestartAfter time.Duration // pause before an ended process is started again; 0: never
	StopWithin   time.Duration // what a process has to stop by itself before it is killed
	// Started and Ended are called from the goroutine of that process; both may be nil.
	Started func(name string, pid int)
	Ended   func(name string, pid int, why string)

	thread *thread
}

// Open must be called before Keep, Close when all Keeps have returned.
func (k *Keeper) Open()  { k.thread = newThread() }
func (k *Keeper) Close() { k.thread.close() }

// Keep runs one command until ctx ends. It returns an error only if the command
// cannot be started at all.
func (k *Keeper) Keep(ctx context.Context, c Command) error {
	for {
		p, err := k.start(c)
		if err != nil {
			return fmt.Errorf("start %s: %w", c.Name, err)
		}
		if k.Started != nil {
			k.Started(c.Name, p.cmd.Process.Pid)
		}
		stopped, err := p.await(ctx, k.StopWithin)
		if stopped {
			return nil
		}
		if k.Ended != nil {
			k.Ended(c.Name, p.cmd.Process.Pid, describeExit(err, c.Log))
		}
		if k.RestartAfter <= 0 {
			<-ctx.Done()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(k.RestartAfter):
		}
	}
}

// process is one run of a command.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   *os.File
	ended chan error
}

func (k *Keeper) start(c Command) (*process, error) {
	log, err := openLog(c.Log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	// Its own process group: Ctrl-C at the terminal reaches the supervisor only, which stops
	// the children in good order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		k.thread.do(func() { err = cmd.Start() })
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, log: log, ended: make(chan error, 1)}
	go func() { // ends with the process; await receives from it
		p.ended <- cmd.Wait()
	}()
	// A pipe holds 64 KiB and a handover is far smaller, so this doesn't wait for the child. A
	// child that is dead already is noticed by await.
	stdin.Write(c.Handover)
	return p, nil
}

// await returns how the process ended by itself, or stops it when ctx ends.
func (p *process) await(ctx context.Context, within time.Duration) (stopped bool, err error) {
	defer p.log.Close()
	select {
	case err := <-p.ended:
		return false, err
	case <-ctx.Done():
	}
	p.stdin.Close() // not SIGTERM, which would make it leave the pool in good order: the pool itself ends
	select {
	case <-p.ended:
	case <-time.After(within):
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the group that was made for it
		<-p.ended
	}
	return true, nil
}

// describeExit says how a process ended; of one that failed, what it said last.
func describeExit(err error, log string) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "ended by itself"
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return "killed by signal " + status.Signal().String()
		}
		return fmt.Sprintf("failed with exit code %d%s", exit.ExitCode(), lastLine(log))
	}
	return err.Error()
}

// openLog opens a log to append to. One that has grown large is moved aside first.
func openLog(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
		if err := os.Rename(name, name+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// lastLine returns what a process said last, to be added to how it ended.
func lastLine(log string) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	const tail = 2048
	if info, err := f.Stat(); err == nil && info.Size() > tail {
		f.Seek(-tail, io.SeekEnd)
	}
	data, err := io.ReadAll(io.LimitReader(f, tail))
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	last := strings.TrimSpace(string(lines[len(lines)-1]))
	if err != nil || last == "" {
		return ""
	}
	return fmt.Sprintf("; last line of %s: %s", log, last)
}
