package wire

import (
	"testing"
	"time"

	"rollcall/test/harness"
)

// A client that registered at fe1 reconnects to fe2 after fe1 was killed, and gets its 200 in one round trip
// with the nonce that it has, whoever was the primary of its user.
func TestNonceOutlivesItsFrontEnd(t *testing.T) {
	t.Parallel()
	users := harness.Users(60)
	own, err := harness.StartPool(harness.PoolOptions{
		Binary: pool.Binary, Dir: t.TempDir(), Ports: pool.ports, Users: users, Args: []string{"--restart-after", "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	status, err := own.Ready(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	fe1, fe2 := status.FrontEnds[0], status.FrontEnds[1]
	var clients []*client
	for n, u := range users {
		transport := []string{"udp", "tcp"}[n%2]
		addr, err := own.Own(fe1, transport)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, transport, addr, u).login()
		c.send(c.register(), 200)
		clients = append(clients, c)
	}
	if _, err := own.Kill(t.Context(), fe1.Name); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		addr, err := own.Own(fe2, c.transport)
		if err != nil {
			t.Fatal(err)
		}
		again := c.as(c.transport, addr)
		a := again.send(again.register("Expires: 600 => Expires: 700"), 200) // a challenge would be a 401
		again.lasts(a, "sip:a@192.0.2.1", 700)
	}
}
