package system

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"rollcall/test/harness"
)

// The bus is killed and started again under load. While it is gone nothing is acknowledged; afterwards
// everything goes on by itself, nothing acknowledged is lost, and nothing removed comes back.
func TestBusRestartedUnderLoad(t *testing.T) {
	users := harness.Users(howMany() / 4)
	parts, err := harness.StartParts(t.Context(), harness.PoolOptions{
		Binary: binary, Dir: t.TempDir(), Ports: ports, FrontEnds: 3, Users: users,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := parts.Stop(); err != nil {
			t.Error(err)
		}
	})
	phones := registered(t, &parts.Pool, users)

	for _, gone := range []time.Duration{0, 3 * time.Second} {
		load := keepRefreshing(t, phones, parts.SIP)
		time.Sleep(time.Second)
		if err := parts.Up.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(gone)
		if err := parts.StartBus(); err != nil {
			t.Fatal(err)
		}
		if _, err := parts.Ready(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		load.pass(t, time.Minute)
		// A Front End that has lost the bus for long refuses: what it took could not be stored.
		checkAnswers(t, load.end(), 503)
		checkKept(t, &parts.Pool, phones)
		refreshAll(t, &parts.Pool, phones, parts.SIP)
	}
}

// While there is no bus, no REGISTER is acknowledged, and a refusal says when to come again.
func TestNoBusNoAcknowledgement(t *testing.T) {
	t.Parallel()
	users := harness.Users(12)
	parts, err := harness.StartParts(t.Context(), harness.PoolOptions{
		Binary: binary, Dir: t.TempDir(), Ports: ports, FrontEnds: 3, Users: users,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := parts.Stop(); err != nil {
			t.Error(err)
		}
	})
	phones := registered(t, &parts.Pool, users)
	if err := parts.Up.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := phones.Each(len(users), func(p *harness.Phone) error {
		a, err := p.Register(t.Context(), parts.SIP, grant)
		switch {
		case errors.Is(err, harness.ErrNoAnswer):
			return nil
		case err != nil:
			return err
		case a.Status != 503 || a.Header("Retry-After") == "" || a.Header("Retry-After") == "0":
			return fmt.Errorf("answered %d %s, Retry-After %q", a.Status, a.Reason, a.Header("Retry-After"))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := parts.StartBus(); err != nil {
		t.Fatal(err)
	}
	if _, err := parts.Ready(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := phones.Each(4, func(p *harness.Phone) error { return p.Kept(t.Context(), parts.SIP) }); err != nil {
		t.Error(err)
	}
	refreshAll(t, &parts.Pool, phones, parts.SIP)
}
