package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain makes the test binary its own helper processes.
func TestMain(m *testing.M) {
	switch os.Getenv("ROLLCALL_TEST_HELPER") {
	case "":
		os.Exit(m.Run())
	case "child": // says what it was handed, then lives until its input ends
		in := bufio.NewReader(os.Stdin)
		line, _ := in.ReadString('\n')
		fmt.Printf("handed %s", line)
		_, _ = io.Copy(io.Discard, in)
	case "stubborn": // ignores the end of its input
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("stubborn")
		select {}
	case "failing":
		fmt.Println("no bus at nats://nowhere")
		os.Exit(7)
	case "supervisor": // keeps two children, one of them stubborn, until it is killed
		k := &Keeper{StopWithin: time.Second, Started: func(name string, pid int) { fmt.Printf("%s %d\n", name, pid) }}
		k.Open()
		var both sync.WaitGroup
		for _, kind := range []string{"child", "stubborn"} {
			both.Go(func() { _ = k.Keep(context.Background(), command(kind, os.Args[1])) })
		}
		both.Wait()
	}
}

// command runs this test binary as a helper.
func command(kind, dir string) Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Command{
		Name: kind, Path: "/usr/bin/env", Args: []string{"ROLLCALL_TEST_HELPER=" + kind, self},
		Handover: []byte("hello\n"), Log: filepath.Join(dir, kind+".log"),
	}
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never happened: " + what)
		}
	}
}

// alive reports whether a process runs; one that waits to be reaped doesn't.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// A killed process is started again, and stopped with the keeper.
func TestKeeperRestarts(t *testing.T) {
	dir := t.TempDir()
	pids, ends := make(chan int, 8), make(chan string, 8)
	k := &Keeper{
		RestartAfter: 10 * time.Millisecond, StopWithin: 10 * time.Second,
		Started: func(_ string, pid int) { pids <- pid },
		Ended:   func(_ string, _ int, why string) { ends <- why },
	}
	k.Open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Keep(ctx, command("child", dir)) }()
	first := <-pids
	within(t, "the child has its handover", func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "child.log"))
		return string(data) == "handed hello\n"
	})
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if why := <-ends; why != "killed by signal killed" {
		t.Errorf("ended: %s", why)
	}
	second := <-pids
	if second == first || !alive(second) {
		t.Errorf("pids %d, then %d", first, second)
	}
	start := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	k.Close()
	if alive(second) {
		t.Error("the process outlived its keeper")
	}
	if took := time.Since(start); took > 9*time.Second {
		t.Errorf("the process had to be killed: %v", took)
	}
}

// With a pause of 0 a dead process stays dead; what it said last is told.
func TestKeeperLeavesItDead(t *testing.T) {
	ends, starts := make(chan string, 8), make(chan int, 8)
	k := &Keeper{
		Started: func(_ string, pid int) { starts <- pid },
		Ended:   func(_ string, _ int, why string) { ends <- why },
	}
	k.Open()
	defer k.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Keep(ctx, command("failing", t.TempDir())) }()
	if why := <-ends; !strings.Contains(why, "exit code 7") || !strings.HasSuffix(why, "no bus at nats://nowhere") {
		t.Errorf("ended: %s", why)
	}
	select {
	case err := <-done:
		t.Errorf("gave up: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := <-done; err != nil || len(starts) != 1 {
		t.Errorf("%d starts, %v", len(starts), err)
	}
}

// A process that doesn't stop by itself is killed.
func TestKeeperKillsTheStubborn(t *testing.T) {
	dir := t.TempDir()
	pids := make(chan int, 1)
	k := &Keeper{StopWithin: 50 * time.Millisecond, Started: func(_ string, pid int) { pids <- pid }}
	k.Open()
	defer k.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Keep(ctx, command("stubborn", dir)) }()
	pid := <-pids
	within(t, "it runs", func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "stubborn.log"))
		return len(data) > 0
	})
	cancel()
	if err := <-done; err != nil || alive(pid) {
		t.Errorf("alive: %v, %v", alive(pid), err)
	}
}

func TestKeeperCannotStart(t *testing.T) {
	k := &Keeper{}
	k.Open()
	defer k.Close()
	err := k.Keep(t.Context(), Command{Name: "fe1", Path: "/nonexistent", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.HasPrefix(err.Error(), "start fe1: ") {
		t.Error(err)
	}
}

// No orphan is left when the supervisor is killed with -9, however stubborn the child.
func TestNoOrphans(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	supervisor := exec.Command(self, t.TempDir())
	supervisor.Env = append(os.Environ(), "ROLLCALL_TEST_HELPER=supervisor")
	out, err := supervisor.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
		_, text, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		pids = append(pids, pid)
	}
	// Long enough for the Go runtime to retire idle threads, had the children been started on one.
	for range 3 {
		time.Sleep(20 * time.Millisecond)
		for _, pid := range pids {
			if !alive(pid) {
				t.Fatal("a child died before its supervisor")
			}
		}
	}
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait()
	for _, pid := range pids {
		within(t, "the child is gone", func() bool { return !alive(pid) })
	}
}

func TestLargeLogIsMovedAside(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fe1.log")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, maxLog+1); err != nil {
		t.Fatal(err)
	}
	f, err := openLog(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if _, old := os.Stat(name + ".old"); err != nil || old != nil || info.Size() != 0 {
		t.Errorf("size %d, %v, %v", info.Size(), err, old)
	}
}
