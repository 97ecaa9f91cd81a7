package supervisor

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "rollcall")
	if _, err := FindPool(t.Context(), path); err == nil || err.Error() != "no pool is running at "+path+": start one with 'rollcall up'" {
		t.Errorf("before: %v", err)
	}
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Pool{Pid: os.Getpid(), Started: time.Now().UTC(), SIP: "127.0.0.1:5060", Link: Link{URL: "nats://" + listening(t), Token: "hush"}}
	if err := d.WritePool(want); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(path, poolFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if got, err := FindPool(t.Context(), path); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), "is running at "+path+" already (pid ") {
		t.Errorf("second pool: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := FindPool(t.Context(), path); err == nil || !strings.HasPrefix(err.Error(), "no pool is running at ") {
		t.Errorf("after: %v", err)
	}
}

// A pool that was killed leaves its word behind: nobody believes it, and a new one may start.
func TestDirOfAKilledPool(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WritePool(Pool{Pid: 1}); err != nil {
		t.Fatal(err)
	}
	d.lock.Close() // as the kernel does
	if _, err := FindPool(t.Context(), path); err == nil || !strings.HasPrefix(err.Error(), "no pool is running at ") {
		t.Errorf("%v", err)
	}
	again, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// listening returns an address where somebody listens until the end of the test.
func listening(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// A pool that starts where another one was killed: nobody is sent to the dead bus, but
// waits for the new one, and not for long.
func TestFindPoolThatIsStarting(t *testing.T) {
	path := t.TempDir()
	dead, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.WritePool(Pool{Pid: 1, Link: Link{URL: "nats://127.0.0.1:1"}}); err != nil {
		t.Fatal(err)
	}
	dead.lock.Close()
	next, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	start := time.Now()
	if _, err := FindPool(t.Context(), path); err == nil || !strings.Contains(err.Error(), "is still starting: try again") {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took < standsWithin {
		t.Errorf("waited only %v", took)
	}
	if err := next.WritePool(Pool{Pid: 2, Link: Link{URL: "nats://127.0.0.1:1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := FindPool(t.Context(), path); err == nil || !strings.Contains(err.Error(), "has no bus at nats://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
	found := make(chan Pool, 1)
	go func() {
		p, _ := FindPool(t.Context(), path)
		found <- p
	}()
	want := Pool{Pid: 3, Link: Link{URL: "nats://" + listening(t)}}
	if err := next.WritePool(want); err != nil {
		t.Fatal(err)
	}
	if got := <-found; got != want {
		t.Errorf("%+v", got)
	}
}

func TestTempDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := OpenDir(Temp)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Errorf("%s is still there", d.Path)
	}
	if _, err := FindPool(t.Context(), Temp); err == nil {
		t.Error("found a pool at :temp:")
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	if d, err := DefaultDir(); err != nil || d != "/state/rollcall" {
		t.Error(d, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/x")
	if d, err := DefaultDir(); err != nil || d != "/home/x/.local/state/rollcall" {
		t.Error(d, err)
	}
}

func TestAddresses(t *testing.T) {
	a, err := AddressesOf("127.0.0.1:5060", 3)
	if err != nil || strings.Join(a.Own, " ") != "127.0.0.1:5071 127.0.0.1:5072 127.0.0.1:5073" {
		t.Error(a, err)
	}
	if a, err := AddressesOf("[::1]:5060", 1); err != nil || a.Own[0] != "[::1]:5071" {
		t.Error(a, err)
	}
	for _, bad := range []string{"5060", "127.0.0.1:0", "127.0.0.1:65530", "127.0.0.1:sip"} {
		if _, err := AddressesOf(bad, 3); err == nil {
			t.Errorf("%s passed", bad)
		}
	}
}

// A taken port is told with its address and the flag, for TCP and UDP alike.
func TestCheckPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for _, taken := range []string{l.Addr().String(), u.LocalAddr().String()} {
		err := Addresses{Shared: taken}.Check()
		if err == nil || !strings.HasPrefix(err.Error(), taken+" is in use: ") || !strings.Contains(err.Error(), "--sip") {
			t.Errorf("%s: %v", taken, err)
		}
	}
}

func TestReachable(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0:5060": "127.0.0.1:5060", ":5060": "127.0.0.1:5060", "[::]:5060": "127.0.0.1:5060", "10.0.0.1:5060": "10.0.0.1:5060",
	} {
		if got := reachable(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
