package system

import (
	"syscall"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// grant is long enough that nothing expires within a test.
const grant = 1800

// newPhones makes phones that are closed at the end of the test.
func newPhones(t *testing.T, tag string, users []harness.User) *harness.Phones {
	t.Helper()
	phones, err := harness.NewPhones(tag, users)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(phones.Close)
	return phones
}

// registered makes phones and registers them all at the pool address.
func registered(t *testing.T, pool *harness.Pool, users []harness.User) *harness.Phones {
	t.Helper()
	phones := newPhones(t, "sys", users)
	refreshAll(t, pool, phones, pool.SIP)
	return phones
}

// refreshAll: every phone gets a 200 at this address.
func refreshAll(t *testing.T, pool *harness.Pool, phones *harness.Phones, target string) {
	t.Helper()
	if err := phones.Each(32, func(p *harness.Phone) error { return p.MustRegister(t.Context(), target, grant) }); err != nil {
		t.Errorf("refresh at %s: %v", target, err)
	}
}

// ownUDP is the own UDP address of the n-th Front End of a status, counted from 0.
func ownUDP(t *testing.T, pool *harness.Pool, s control.Status, n int) string {
	t.Helper()
	addr, err := pool.Own(s.FrontEnds[n], "udp")
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// freeze stops a Front End's process for at least a time and lets it go on.
func freeze(t *testing.T, pool *harness.Pool, name routing.FrontEnd, d time.Duration, meanwhile func()) {
	t.Helper()
	s, err := pool.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fe, err := harness.FrontEnd(s, name)
	if err != nil {
		t.Fatal(err)
	}
	at, err := pool.Signal(t.Context(), name, syscall.SIGSTOP)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		time.Sleep(time.Until(at.Add(d)))
		// By pid: what is frozen cannot answer for its status.
		if err := syscall.Kill(fe.Pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}()
	meanwhile()
}
