package system

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// Real peers register with digest over UDP and TCP through the pool address and through every Front End's own
// address, each with users whose primary is each of the Front Ends. What counts is what the pool says of it afterwards.
func TestRegister(t *testing.T) {
	t.Parallel()
	harness.Require(t, "sipp", "baresip", "linphonec")
	users := harness.Users(240)
	pool, status := startPool(t, harness.PoolOptions{Users: users})
	next := byPrimary(t, pool, users)

	for _, transport := range []string{"udp", "tcp"} {
		targets := map[routing.FrontEnd]string{"": pool.SIP} // "": the pool address
		for _, fe := range status.FrontEnds {
			own, err := pool.Own(fe, transport)
			if err != nil {
				t.Fatal(err)
			}
			targets[fe.Name] = own
		}
		for at, target := range targets {
			name := transport + "/" + string(at)
			if at == "" {
				name = transport + "/pool"
			}
			t.Run(name, func(t *testing.T) {
				where := place{pool: pool, target: target, transport: transport, at: at}
				var perPrimary []harness.User
				for _, fe := range status.FrontEnds {
					perPrimary = append(perPrimary, next(fe.Name), next(fe.Name), next(fe.Name))
					where.softphone(t, "baresip", next(fe.Name), harness.Softphone.Baresip)
					where.softphone(t, "linphone", next(fe.Name), harness.Softphone.Linphone)
				}
				where.sipp(t, perPrimary)
			})
		}
	}
}

// byPrimary hands out users that were not used before, by their primary.
func byPrimary(t *testing.T, pool *harness.Pool, users []harness.User) func(routing.FrontEnd) harness.User {
	primaries, err := pool.Primaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := map[routing.FrontEnd][]harness.User{}
	for _, u := range users {
		left[primaries[u.Name]] = append(left[primaries[u.Name]], u)
	}
	return func(fe routing.FrontEnd) harness.User {
		if len(left[fe]) == 0 {
			t.Fatalf("no user left whose primary is %s", fe)
		}
		u := left[fe][0]
		left[fe] = left[fe][1:]
		return u
	}
}

// place is where clients register: an address and a transport.
type place struct {
	pool      *harness.Pool
	target    string
	transport string
	at        routing.FrontEnd // that has this address for itself; "" for the pool address
}

func (w place) softphone(t *testing.T, name string, user harness.User, start func(harness.Softphone) (*harness.Process, error)) {
	t.Helper()
	phone, err := start(harness.Softphone{
		Target: w.target, Transport: w.transport, User: user, Expires: 120, Dir: t.TempDir(), Ports: ports,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Kill()
	eventually(t, 20*time.Second, name+" as "+user.Name+" registers", func(ctx context.Context) error {
		return w.explained(ctx, user)
	})
}

func (w place) sipp(t *testing.T, users []harness.User) {
	t.Helper()
	run, err := harness.SIPp{
		Scenario: "register-auth", Target: w.target, Transport: w.transport, Users: users, Rate: 100,
		Pause: 2 * time.Second, Dir: t.TempDir(), Ports: ports,
	}.Start()
	if err != nil {
		t.Fatal(err)
	}
	// The calls hold their connection for a while after the 200.
	eventually(t, 20*time.Second, "sipp's users are registered", func(ctx context.Context) error {
		for _, u := range users {
			if err := w.explained(ctx, u); err != nil {
				return fmt.Errorf("%s: %w", u.Name, err)
			}
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := run.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// explained says what is missing for the user to have one binding, with a flow of this place.
func (w place) explained(ctx context.Context, user harness.User) error {
	e, err := w.pool.Explain(ctx, user.Name)
	if err != nil {
		return err
	}
	if len(e.Bindings) != 1 {
		return fmt.Errorf("%d bindings", len(e.Bindings))
	}
	return w.fits(e.Bindings[0])
}

func (w place) fits(b control.Binding) error {
	switch {
	case b.Flow.Transport != w.transport:
		return fmt.Errorf("flow over %s, want %s", b.Flow.Transport, w.transport)
	case w.at != "" && b.Flow.FrontEnd != string(w.at):
		return fmt.Errorf("flow at %s, want %s", b.Flow.FrontEnd, w.at)
	case b.CallID == "" || b.CSeq == 0 || b.Contact == "" || b.Flow.Remote == "" || b.ExpiresIn < 30:
		return fmt.Errorf("incomplete binding %+v", b)
	}
	return nil
}

// A wrong password gets no further than the challenge, whoever is asked, and binds nothing.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	pool, status := startPool(t, harness.PoolOptions{Users: harness.Users(6)})
	wrong := harness.Users(6)
	for i := range wrong {
		wrong[i].Password += "x"
	}
	phones := newPhones(t, "wrong", wrong)
	for n := range status.FrontEnds {
		target := ownUDP(t, pool, status, n)
		if err := phones.Each(4, func(p *harness.Phone) error {
			a, err := p.Register(t.Context(), target, grant)
			if err == nil && a.Status != 401 {
				err = fmt.Errorf("answered %d %s", a.Status, a.Reason)
			}
			return err
		}); err != nil {
			t.Errorf("at %s: %v", target, err)
		}
	}
	for _, u := range wrong {
		e, err := pool.Explain(t.Context(), u.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Bindings) != 0 {
			t.Errorf("%s has bindings: %+v", u.Name, e.Bindings)
		}
	}
}
