package harness_test

import (
	"context"
	"testing"
	"time"

	"rollcall/test/harness"
)

// The recipes for the softphones are checked against a registrar that is not ours.
func TestSoftphonesAgainstKamailio(t *testing.T) {
	harness.Require(t, "baresip", "linphonec", "kamailio")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, ports, users := t.TempDir(), &harness.Ports{}, harness.Users(4)
	kamailio, err := harness.StartKamailio(ctx, dir, ports, 2, users)
	if err != nil {
		t.Fatal(err)
	}
	defer kamailio.Stop()
	observers, err := harness.NewPhones("observer", users)
	if err != nil {
		t.Fatal(err)
	}
	defer observers.Close()

	for i, c := range []struct {
		name, transport string
		start           func(harness.Softphone) (*harness.Process, error)
	}{
		{"baresip", "udp", harness.Softphone.Baresip},
		{"baresip", "tcp", harness.Softphone.Baresip},
		{"linphone", "udp", harness.Softphone.Linphone},
		{"linphone", "tcp", harness.Softphone.Linphone},
	} {
		t.Run(c.name+"/"+c.transport, func(t *testing.T) {
			phone, err := c.start(harness.Softphone{Target: kamailio.Target, Transport: c.transport, User: users[i], Expires: 60, Dir: dir, Ports: ports})
			if err != nil {
				t.Fatal(err)
			}
			defer phone.Kill()
			for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				a, err := observers.All()[i].Query(ctx, kamailio.Target)
				if err != nil {
					t.Fatal(err)
				}
				if len(a.Contacts()) == 1 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("not registered after 15 s; its output:\n%s", phone.Output())
				}
			}
		})
	}
}
