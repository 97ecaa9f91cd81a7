package harness_test

import (
	"context"
	"testing"
	"time"

	"rollcall/test/harness"
)

// The scenarios and the phones are checked against a registrar that is not ours, so that
// a failure with ours says something of ours.
func TestPeersAgainstKamailio(t *testing.T) {
	harness.Require(t, "sipp", "kamailio")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, ports, users := t.TempDir(), &harness.Ports{}, harness.Users(40)

	kamailio, err := harness.StartKamailio(ctx, dir, ports, 2, users)
	if err != nil {
		t.Fatal(err)
	}
	defer kamailio.Stop()

	for _, scenario := range []string{"register-auth", "refresh-auth", "refresh-auth-cached"} {
		for _, transport := range []string{"udp", "tcp"} {
			t.Run(scenario+"/"+transport, func(t *testing.T) {
				s := harness.SIPp{Scenario: scenario, Target: kamailio.Target, Transport: transport, Users: users,
					Rate: 100, Pause: 100 * time.Millisecond, Dir: dir, Ports: ports}
				if scenario != "register-auth" {
					s.Refreshes = 2
				}
				counts, err := s.Run(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if counts.OK != len(users) {
					t.Errorf("%d calls ended well, want %d", counts.OK, len(users))
				}
			})
		}
	}
	t.Run("phones", func(t *testing.T) { checkPhones(ctx, t, kamailio.Target, users) })
	t.Run("wrong password", func(t *testing.T) {
		phones, err := harness.NewPhones("wrong", []harness.User{{Name: users[0].Name, Password: "no"}})
		if err != nil {
			t.Fatal(err)
		}
		defer phones.Close()
		if a, err := phones.All()[0].Register(ctx, kamailio.Target, 600); err != nil || a.Status != 401 {
			t.Errorf("got %d, %v; want 401", a.Status, err)
		}
	})
}

func checkPhones(ctx context.Context, t *testing.T, target string, users []harness.User) {
	phones, err := harness.NewPhones("test", users)
	if err != nil {
		t.Fatal(err)
	}
	defer phones.Close()
	for range 2 {
		if err := phones.Each(8, func(p *harness.Phone) error { return p.MustRegister(ctx, target, 600) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := phones.Each(8, func(p *harness.Phone) error {
		if p.Acked.CSeq == 0 {
			t.Error("a 200 was not noted")
		}
		return p.Listed(ctx, target)
	}); err != nil {
		t.Error(err)
	}
	// What was never promised must be missed: the check is able to fail.
	lost := phones.All()[0]
	lost.Contact = "sip:elsewhere@127.0.0.1:9"
	if err := lost.Listed(ctx, target); err == nil {
		t.Error("a contact that the registrar does not have passed for listed")
	}
	// Kamailio takes an equal CSeq for a retransmission and accepts it; the check must say so.
	if err := phones.All()[1].Remembered(ctx, target); err == nil {
		t.Error("a CSeq that was accepted a second time passed for refused")
	}
}
