package system

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/test/harness"
)

// Ctrl-C ends the pool with exit code 0 and leaves no process behind; what was registered is there after a new start.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	pool, status := startPool(t, harness.PoolOptions{Users: harness.Users(20)})
	phones := registered(t, pool, harness.Users(20))
	tree, err := harness.Tree(pool.Up.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(status.FrontEnds); len(tree) < want {
		t.Fatalf("%d processes, want at least %d", len(tree), want)
	}

	if err := pool.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range tree {
		if harness.Alive(pid) {
			t.Errorf("process %d of the pool is still there", pid)
		}
	}
	if err := pool.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Ready(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := phones.Each(8, func(p *harness.Phone) error { return p.Kept(t.Context(), pool.SIP) }); err != nil {
		t.Error(err)
	}
}

// Front Ends do not outlive the process that started them, not even when it is killed with -9. A pool
// can be started again at once, and has what it had acknowledged.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	pool, status := startPool(t, harness.PoolOptions{Users: harness.Users(20)})
	phones := registered(t, pool, harness.Users(20))
	if err := pool.Up.Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Second)
	for _, fe := range status.FrontEnds {
		for harness.Alive(fe.Pid) {
			if time.Now().After(deadline) {
				t.Fatalf("%s (pid %d) is still there 2 s after its supervisor was killed", fe.Name, fe.Pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if err := pool.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Ready(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := phones.Each(8, func(p *harness.Phone) error { return p.Kept(t.Context(), pool.SIP) }); err != nil {
		t.Error(err)
	}
}

// A second pool on the same ports, or with the same data, fails with one clear line, and the first one goes on.
func TestSecondUp(t *testing.T) {
	t.Parallel()
	pool, _ := startPool(t, harness.PoolOptions{Users: harness.Users(2)})
	free, err := ports.Pool(3)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"same ports": {"up", "--sip", pool.SIP, "--http", "", "--data", ":temp:"},
		"same data":  {"up", "--sip", fmt.Sprintf("127.0.0.1:%d", free), "--http", "", "--data", pool.Data},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), binary, args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
			out, err := cmd.Output()
			if err == nil {
				t.Fatalf("it ended with exit code 0 and said %s", out)
			}
			said := strings.TrimSpace(stderr.String())
			if said == "" || strings.Contains(said, "\n") || strings.Contains(said, "Usage:") {
				t.Errorf("not one line on standard error: %q", said)
			}
		})
	}
	registered(t, pool, harness.Users(2))
}

// A throw-away pool takes its data with it.
func TestThrowAway(t *testing.T) {
	t.Parallel()
	base, err := ports.Pool(3)
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	up, err := harness.Start(harness.Spec{
		Path: binary, Args: []string{"up", "--sip", fmt.Sprintf("127.0.0.1:%d", base), "--http", "", "--data", ":temp:"},
		Env: []string{"TMPDIR=" + tmp},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Kill()
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(up.Output(), "/"+"rollcall-") {
		if time.Now().After(deadline) {
			t.Fatalf("it does not say where its data is:\n%s", up.Output())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := up.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if code := up.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A Front End that dies is started again after a pause, with a new process, and keeps its name.
func TestRestartAfter(t *testing.T) {
	t.Parallel()
	pool, before := startPool(t, harness.PoolOptions{Args: []string{"--restart-after", "1s"}})
	victim := before.FrontEnds[1]
	if _, err := pool.Kill(t.Context(), victim.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.WaitFor(t.Context(), 20*time.Second, "a new process", func(s control.Status) error {
		fe, err := harness.FrontEnd(s, victim.Name)
		if err == nil && (fe.Pid == victim.Pid || fe.Boot == victim.Boot || fe.State != "up") {
			err = fmt.Errorf("%s is %s, pid %d", fe.Name, fe.State, fe.Pid)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pool.Data); err != nil {
		t.Error(err)
	}
}
