package loadtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcall/loadtest/scenario"
	"rollcall/test/harness"
)

// program builds rollcall, which is the pool of the tests.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollcall")
	if out, err := exec.Command("go", "build", "-o", path, "rollcall/cmd/rollcall").CombinedOutput(); err != nil {
		t.Fatalf("build rollcall: %v\n%s", err, out)
	}
	return path
}

// A throw-away pool of real processes, one of its Front Ends killed: all come back, each lost connection is a
// gap, the pool's own events are on the same time axis, and nothing is left over.
func TestKillInAThrowAwayPool(t *testing.T) {
	self := program(t)
	dir := t.TempDir()
	sc := complete(t, &scenario.Scenario{Pool: &scenario.Pool{FrontEnds: 3}, Clients: 150, Ramp: scenario.Ramp{Rate: 500},
		Duration: scenario.Duration(30 * time.Second), Until: "registered >= 100%", Events: []scenario.Event{event(t, "kill", "fe2@500ms")}})
	rep, err := Run(t.Context(), sc, Options{Self: self, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Registered != 150 || rep.Gaps.Started == 0 || rep.Gaps.Closed != rep.Gaps.Started || len(rep.Errors) != 0 {
		t.Errorf("registered %d, gaps %+v, errors %v", rep.Registered, rep.Gaps, rep.Errors)
	}
	var killed, decided float64
	for _, e := range rep.Events {
		switch {
		case e.What == "kill fe2":
			killed = e.At
		case strings.HasPrefix(e.What, "placement decided") && decided == 0 && killed > 0:
			decided = e.At
		}
	}
	if killed == 0 || decided < killed {
		t.Errorf("killed at %v, decided at %v: %+v", killed, decided, rep.Events)
	}
	if left := running(t, self); left != "" {
		t.Errorf("left over:\n%s", left)
	}
	if s, err := os.Stat(filepath.Join(dir, "pool.log")); err != nil || s.Size() == 0 {
		t.Errorf("pool.log: %v", err)
	}
}

// running lists the processes of a program.
func running(t *testing.T, program string) string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, d := range dirs {
		if exe, err := os.Readlink(d + "/exe"); err == nil && exe == program {
			line, _ := os.ReadFile(d + "/cmdline")
			fmt.Fprintf(&out, "%s %s\n", d, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out.String()
}

// A pool that cannot start says why, in one line.
func TestPoolThatCannotStartSaysWhy(t *testing.T) {
	sc := complete(t, &scenario.Scenario{Pool: &scenario.Pool{}, Clients: 1})
	_, err := Run(t.Context(), sc, Options{Self: "/bin/false"})
	if err == nil || !strings.Contains(err.Error(), "`rollcall up` ended") {
		t.Errorf("%v", err)
	}
}

// Two Kamailios behind one list of addresses, one of them killed by a command line: the tool is not for
// Rollcall alone.
func TestAnyRegistrarKamailio(t *testing.T) {
	harness.Require(t, "kamailio")
	sip, _, err := freePorts(3) // two ports of the range it found free
	if err != nil {
		t.Fatal(err)
	}
	host, port := sip[:strings.LastIndexByte(sip, ':')], 0
	_, _ = fmt.Sscanf(sip[strings.LastIndexByte(sip, ':')+1:], "%d", &port)
	first, second := fmt.Sprintf("%s:%d", host, port), fmt.Sprintf("%s:%d", host, port+11)
	kamailio(t, first)
	victim := kamailio(t, second)
	sc := complete(t, &scenario.Scenario{Targets: []string{first, second}, Clients: 200, UserFormat: "u%d", Password: "secret", Ramp: scenario.Ramp{Rate: 400},
		Duration: scenario.Duration(30 * time.Second), Until: "back >= 50%", Events: []scenario.Event{event(t, "exec", fmt.Sprintf("kill -9 -%d@300ms", victim))}})
	rep, err := Run(t.Context(), sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Registered != 200 || rep.Gaps.Closed != 100 || rep.Gaps.Open != 0 || len(rep.Errors) != 0 {
		t.Errorf("registered %d, gaps %+v, failures %v, errors %v", rep.Registered, rep.Gaps, rep.Failures, rep.Errors)
	}
	t.Logf("gap p50 %.1f ms, p99 %.1f ms", rep.Gap.P50, rep.Gap.P99)
}

// kamailio starts one in a process group of its own, and returns the group.
func kamailio(t *testing.T, addr string) int {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "kamailio", "-DD", "-E", "-f", "testdata/kamailio.cfg", "-Y", dir,
		"-P", filepath.Join(dir, "pid"), "-m", "64", "-M", "8", "-l", "tcp:"+addr, "-l", "udp:"+addr)
	group(cmd)
	out := &tail{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killGroup(cmd.Process.Pid)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(15 * time.Second); !listens(addr); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("kamailio does not listen at %s: %s", addr, out.last())
		}
	}
	return cmd.Process.Pid
}
