package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/internal/supervisor"
	"rollcall/routing"
)

// TestMain makes the test binary the real program, too: 'up' starts it as Front Ends.
func TestMain(m *testing.M) {
	if os.Getenv("ROLLCALL_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// call runs a command in this process.
func call(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, console{in: strings.NewReader(stdin), out: &o, err: &e})
	return code, o.String(), e.String()
}

// must runs a command that has to succeed, and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := call(t, "", args...)
	if code != 0 {
		t.Fatalf("rollcall %s: exit %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

// upProcess is a running 'rollcall up'.
type upProcess struct {
	cmd  *exec.Cmd
	data string
	sip  string
	out  lockedBuffer
	errs lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// freeAddress finds a pool address whose Front Ends' ports are free, too.
func freeAddress(t *testing.T, frontEnds int) string {
	t.Helper()
	for range 100 {
		sip := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if a, err := supervisor.AddressesOf(sip, frontEnds); err == nil && a.Check() == nil {
			return sip
		}
	}
	t.Fatal("no free ports")
	return ""
}

func startUp(t *testing.T, data, sip string, args ...string) *upProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &upProcess{data: data, sip: sip}
	// On a busy machine a process may be silent for seconds. That isn't what is tested here; a
	// killed one is noticed at once all the same.
	file := filepath.Join(t.TempDir(), "calm.yaml")
	calm := "liveness: {down_after: 30s, reconnect_grace: 30s, fence_after: 30s, ping_timeout: 5s}\n"
	if err := os.WriteFile(file, []byte(calm), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"up", "--config", file, "--data", data, "--sip", sip, "--http", "127.0.0.1:0", "--frontends", "3", "--groups", "6"}, args...)
	u.cmd = exec.Command(self, args...)
	u.cmd.Env = append(os.Environ(), "ROLLCALL_TEST_MAIN=1")
	u.cmd.Stdout, u.cmd.Stderr = &u.out, &u.errs
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = u.cmd.Process.Kill()
		_ = u.cmd.Wait()
		if t.Failed() {
			t.Logf("up said:\n%s%s", u.out.String(), u.errs.String())
		}
	})
	return u
}

// status is what `status --json` says; empty while there is no pool.
func (u *upProcess) status(t *testing.T) control.Status {
	t.Helper()
	var s control.Status
	if code, out, _ := call(t, "", "status", "--json", "--data", u.data); code == 0 {
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (u *upProcess) await(t *testing.T, what string, ok func(control.Status) bool) control.Status {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		s := u.status(t)
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("never happened: %s; the pool is\n%s", what, control.RenderStatus(s, control.Layout{}))
		}
	}
}

func (u *upProcess) awaitAllUp(t *testing.T) control.Status {
	t.Helper()
	return u.await(t, "all Front Ends up and all groups placed", func(s control.Status) bool {
		for _, fe := range s.FrontEnds {
			if fe.State != routing.Up {
				return false
			}
		}
		for _, g := range s.Groups {
			if g.Tertiary == nil {
				return false
			}
		}
		return len(s.FrontEnds) == 3 && len(s.Groups) == 6
	})
}

func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	return err != nil || rest == "" || rest[0] == 'Z'
}

// The life of a pool: users, a second 'up', a killed Front End that comes back, Ctrl-C.
func TestUp(t *testing.T) {
	data, sip := t.TempDir(), freeAddress(t, 3)
	u := startUp(t, data, sip, "--restart-after", "300ms")
	s := u.awaitAllUp(t)
	if s.FrontEnds[0].SIP[0] != "udp:"+ownAddress(t, sip, 1) {
		t.Errorf("fe1 listens on %v", s.FrontEnds[0].SIP)
	}
	for _, want := range []string{"alice", "bob", sip, "example.test", "password"} {
		if !strings.Contains(u.out.String(), want) {
			t.Errorf("up doesn't say %q", want)
		}
	}

	t.Run("users", func(t *testing.T) { testUsers(t, data) })
	t.Run("second up", func(t *testing.T) { testSecondUp(t, data, sip) })
	t.Run("http", func(t *testing.T) { testHTTP(t, data) })

	victim := s.FrontEnds[1]
	if err := syscall.Kill(victim.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s = u.await(t, "fe2 is back without primaries, and all groups have three copies", func(s control.Status) bool {
		if len(s.FrontEnds) != 3 || s.FrontEnds[1].Boot == victim.Boot || s.FrontEnds[1].State != routing.Up {
			return false
		}
		for _, g := range s.Groups {
			if g.Tertiary == nil {
				return false
			}
		}
		return true
	})
	if fe := s.FrontEnds[1]; fe.Primaries != 0 || fe.Secondaries+fe.Tertiaries == 0 || fe.Pid == victim.Pid {
		t.Errorf("the returned Front End: %+v", fe)
	}

	if err := u.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	for _, fe := range s.FrontEnds {
		if !gone(fe.Pid) {
			t.Errorf("%s (pid %d) is still there", fe.Name, fe.Pid)
		}
	}
	code, _, errs := call(t, "", "status", "--data", data)
	if want := "rollcall: no pool is running at " + data + ": start one with 'rollcall up'\n"; code != exitFailed || errs != want {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func ownAddress(t *testing.T, sip string, n int) string {
	t.Helper()
	a, err := supervisor.AddressesOf(sip, n)
	if err != nil {
		t.Fatal(err)
	}
	return a.Own[n-1]
}

func testUsers(t *testing.T, data string) {
	out := must(t, "user", "add", "carol", "--data", data)
	if !strings.Contains(out, "sip:carol@example.test is in routing group g") || !strings.Contains(out, "password: ") {
		t.Error(out)
	}
	code, _, errs := call(t, "", "user", "add", "carol", "--data", data)
	if code != exitFailed || !strings.Contains(errs, "exists already") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d: %s", code, errs)
	}
	code, _, errs = call(t, "new secret\n", "user", "passwd", "carol@example.test", "--password-stdin", "--data", data)
	if code != exitFine {
		t.Error(errs)
	}
	file := filepath.Join(t.TempDir(), "users.csv")
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, "u%d,secret%d\n", i, i)
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "user", "import", file, "--data", data); !strings.HasPrefix(out, "1000 users: 1000 added, 0 updated, 0 as they were") {
		t.Error(out)
	}
	if out := must(t, "user", "import", file, "--data", data); !strings.HasPrefix(out, "1000 users: 0 added, 0 updated, 1000 as they were") {
		t.Error(out)
	}
	if out := must(t, "user", "list", "--data", data); strings.Count(out, "\n") != 1003 || !strings.Contains(out, "sip:carol@example.test") {
		t.Errorf("%d users listed", strings.Count(out, "\n"))
	}
	out = must(t, "user", "show", "carol", "--json", "--data", data)
	var shown shownUser
	if err := json.Unmarshal([]byte(out), &shown); err != nil || fmt.Sprint(shown.Digest) != "[MD5 SHA-256 SHA-512-256]" || shown.Group == "" {
		t.Errorf("%s %v", out, err)
	}
	out = must(t, "explain", "carol", "--json", "--data", data)
	var x control.Explanation
	if err := json.Unmarshal([]byte(out), &x); err != nil || x.AOR != "sip:carol@example.test" || string(x.Group) != shown.Group ||
		x.Primary == nil || !strings.Contains(out, `"bindings": []`) {
		t.Errorf("%s %v", out, err)
	}
	code, out, errs = call(t, "", "user", "rm", "u998", "nobody", "u999", "--data", data)
	if code != exitFailed || out != "sip:u998@example.test is removed\nsip:u999@example.test is removed\n" ||
		!strings.HasPrefix(errs, "rollcall: there is no user nobody: ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	testBadImports(t, data)
	must(t, "user", "rm", "carol", "--data", data)
	for _, args := range [][]string{{"user", "show", "carol"}, {"explain", "carol"}, {"user", "rm", "carol"}} {
		code, _, errs := call(t, "", append(args, "--data", data)...)
		if code != exitFailed || !strings.HasPrefix(errs, "rollcall: there is no user carol: ") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}

// What a file has wrong is one line and exit code 1, and nobody is stored.
func testBadImports(t *testing.T, data string) {
	before := must(t, "user", "list", "--data", data)
	for in, want := range map[string]string{"": ": no users in it: a line is", "x1,a\nx2,b\nx1,c\n": ":3: sip:x1@example.test stands in line 1 already"} {
		file := filepath.Join(t.TempDir(), "bad.csv")
		if err := os.WriteFile(file, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := call(t, "", "user", "import", file, "--data", data)
		if code != exitFailed || !strings.HasPrefix(errs, "rollcall: "+file+want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit %d: %s", in, code, errs)
		}
	}
	if after := must(t, "user", "list", "--data", data); after != before {
		t.Error("a bad file changed the users")
	}
}

// A second pool fails with one line, at the same directory or the same ports.
func testSecondUp(t *testing.T, data, sip string) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "--data", data}, "rollcall: a pool is running at " + data + " already (pid "},
		{[]string{"up", "--data", ":temp:", "--sip", sip}, "rollcall: " + sip + " is in use: "},
	} {
		code, out, errs := call(t, "", c.args...)
		if code != exitFailed || out != "" || !strings.HasPrefix(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, out %q, err %q", c.args, code, out, errs)
		}
	}
}

func testHTTP(t *testing.T, data string) {
	pool, err := supervisor.FindPool(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/status": `"name": "fe1"`, "/metrics": `rollcall_frontend_copies{frontend="fe1",role="primary"} 2`} {
		r, err := http.Get("http://" + pool.HTTP + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, body)
		}
	}
}

// A pool whose supervisor is killed with -9 leaves no Front End behind, and stands again
// with its users and registrations at the same place.
func TestUpKilledAndStartedAgain(t *testing.T) {
	data, sip := t.TempDir(), freeAddress(t, 3)
	u := startUp(t, data, sip, "--auth", "off")
	s := u.awaitAllUp(t)
	if answer := register(t, ownAddress(t, sip, 2), "dave"); !strings.HasPrefix(answer, "SIP/2.0 200 ") {
		t.Fatalf("REGISTER got\n%s", answer)
	}
	if err := u.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = u.cmd.Wait()
	for _, fe := range s.FrontEnds {
		for end := time.Now().Add(10 * time.Second); !gone(fe.Pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s (pid %d) is an orphan", fe.Name, fe.Pid)
			}
		}
	}
	if code, _, errs := call(t, "", "status", "--data", data); code != exitFailed || !strings.Contains(errs, "no pool is running") {
		t.Errorf("exit %d: %s", code, errs)
	}

	u = startUp(t, data, sip)
	u.awaitAllUp(t)
	var x control.Explanation
	out := must(t, "explain", "dave", "--json", "--data", data)
	if err := json.Unmarshal([]byte(out), &x); err != nil || len(x.Bindings) != 1 || x.Bindings[0].Contact != "sip:dave@127.0.0.1:9" ||
		x.Bindings[0].Flow.FrontEnd != "fe2" {
		t.Errorf("%s %v", out, err)
	}
	if answer := register(t, sip, "erin"); !strings.HasPrefix(answer, "SIP/2.0 200 ") {
		t.Errorf("--auth off was not kept: REGISTER got\n%s", answer)
	}
	code, _, errs := call(t, "", "up", "--data", data, "--groups", "7")
	if code != exitFailed || !strings.Contains(errs, "already") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	code, _, errs = call(t, "", "up", "--data", data, "--sip", sip, "--http", "", "--groups", "7") // stopped now
	if code != exitFailed || !strings.Contains(errs, "keep --groups 6") || strings.Count(errs, "\n") != 1 {
		t.Errorf("other --groups: exit %d: %s", code, errs)
	}
}

// register sends one REGISTER over UDP, again each second as a phone would, and returns the final answer.
func register(t *testing.T, server, user string) string {
	t.Helper()
	c, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	message := strings.ReplaceAll(fmt.Sprintf(`REGISTER sip:example.test SIP/2.0
Via: SIP/2.0/UDP %[2]s;branch=z9hG4bK%[1]s;rport
Max-Forwards: 70
From: <sip:%[1]s@example.test>;tag=1
To: <sip:%[1]s@example.test>
Call-ID: %[1]s@test
CSeq: 1 REGISTER
Contact: <sip:%[1]s@127.0.0.1:9>
Expires: 600
Content-Length: 0

`, user, c.LocalAddr()), "\n", "\r\n")
	buffer := make([]byte, 4096)
	for range 20 {
		if _, err := c.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
		for {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			n, err := c.Read(buffer)
			if err != nil {
				break
			}
			if answer := string(buffer[:n]); !strings.HasPrefix(answer, "SIP/2.0 1") {
				return answer
			}
		}
	}
	return "no answer"
}

// watch prints events as they happen, and ends with its context.
func TestWatch(t *testing.T) {
	data, sip := t.TempDir(), freeAddress(t, 3)
	u := startUp(t, data, sip, "--auth", "off")
	u.awaitAllUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs lockedBuffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"watch", "--json", "--type", "registration", "--data", data}, console{in: strings.NewReader(""), out: &out, err: &errs})
	}()
	for i := 0; !strings.Contains(out.String(), `"change":"created"`); i++ { // until watch listens
		if i > 50 {
			t.Fatalf("no event seen; %s", errs.String())
		}
		register(t, sip, fmt.Sprintf("user%d", i))
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if code := <-done; code != exitFine {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		var e control.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, err := time.Parse(control.TimeFormat, e.Time); err != nil || e.Type != "registration" || e.FrontEnd == "" || e.AOR == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// watch outlives its pool: it says that it has stopped, and that it is back, and goes on.
func TestWatchOverARestart(t *testing.T) {
	data, sip := t.TempDir(), freeAddress(t, 3)
	u := startUp(t, data, sip, "--auth", "off")
	u.awaitAllUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs lockedBuffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"watch", "--type", "registration", "--data", data}, console{in: strings.NewReader(""), out: &out, err: &errs})
	}()
	awaitEvent := func(prefix string) {
		t.Helper()
		for i := 0; !strings.Contains(out.String(), "sip:"+prefix); i++ {
			if i > 50 {
				t.Fatalf("no event seen; %s", errs.String())
			}
			register(t, sip, fmt.Sprintf("%s%d", prefix, i))
			time.Sleep(20 * time.Millisecond)
		}
	}
	awaitNote := func(note string) {
		t.Helper()
		for end := time.Now().Add(40 * time.Second); strings.Count(errs.String(), note) != 1; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q is not said once: %s", note, errs.String())
			}
		}
	}
	awaitEvent("before")
	if err := u.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = u.cmd.Wait()
	awaitNote("the pool has stopped; waiting for it")
	startUp(t, data, sip, "--auth", "off").awaitAllUp(t)
	awaitNote("the pool is back")
	awaitEvent("after")
	cancel()
	if code := <-done; code != exitFine {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// When nobody is left and nobody comes back, up says so once, and status knows what it doesn't know.
func TestNobodyLeft(t *testing.T) {
	data := t.TempDir()
	u := startUp(t, data, freeAddress(t, 3), "--restart-after", "0")
	for _, fe := range u.awaitAllUp(t).FrontEnds {
		if err := syscall.Kill(fe.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s := u.await(t, "all Front Ends down, without a pid, and no group counted", func(s control.Status) bool {
		for _, fe := range s.FrontEnds {
			if fe.State != routing.Down || fe.Pid != 0 || !fe.Silent {
				return false
			}
		}
		for _, g := range s.Groups {
			if !g.Uncounted {
				return false
			}
		}
		return len(s.FrontEnds) == 3
	})
	if text := control.RenderStatus(s, control.Layout{}); !strings.Contains(text, "? users · ? bindings\nNo Front End answers") {
		t.Error(text)
	}
	for end := time.Now().Add(20 * time.Second); strings.Count(u.out.String(), "no Front End is left, and none is started again") != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("up doesn't say once that nobody is left")
		}
	}
}
