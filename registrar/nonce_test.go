package registrar

import (
	"testing"
	"time"
)

// Whatever Front End issued the nonce, every other one takes it, in one round trip.
func TestNonceOfAnotherFrontEnd(t *testing.T) {
	fe1, fe2 := newDoorman(t), newDoorman(t)
	n := fe1.nonce()
	fe2.now = fe2.now.Add(-5 * time.Second) // its clock is behind
	if reply, ok := fe2.attempt(2, n, MD5, "auth", 1); !ok {
		t.Errorf("%+v", reply)
	}
	for i := range n {
		c := byte('A')
		if n[i] == c {
			c = 'B'
		}
		if _, ours := fe1.a.readNonce(n[:i]+string(c)+n[i+1:], "example.test"); ours {
			t.Fatalf("changed at byte %d and still ours", i)
		}
	}
	if _, ours := fe1.a.readNonce(n, "example.net"); ours {
		t.Error("good for another realm")
	}
}

func TestCase37NoncesDiffer(t *testing.T) {
	d := newDoorman(t)
	seen := map[string]bool{}
	for range 100 {
		seen[d.nonce()] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different nonces of 100 within a second", len(seen))
	}
}

func TestNonceCount(t *testing.T) {
	for _, c := range []struct {
		policy NCPolicy
		ok     bool
		stale  string
	}{{"", false, "true"}, {NCStale, false, "true"}, {NCStrict, false, ""}, {NCOff, true, ""}} {
		t.Run(string(c.policy), func(t *testing.T) {
			d := newDoorman(t)
			d.a.NC = c.policy
			n := d.nonce()
			for nc := 1; nc <= 3; nc++ {
				if reply, ok := d.attempt(uint32(nc+1), n, MD5, "auth", nc); !ok {
					t.Fatalf("nc %d: %+v", nc, reply)
				}
			}
			if reply, ok := d.attempt(4, n, MD5, "auth", 3); !ok {
				t.Errorf("a retransmission is refused: %+v", reply)
			}
			reply, ok := d.attempt(5, n, MD5, "auth", 1) // SIP.js, for ever
			if ok != c.ok || (!ok && d.challenged(reply)["stale"] != c.stale) {
				t.Errorf("%v, %+v", ok, reply)
			}
			if !ok {
				if reply, ok = d.attempt(6, d.challenged(reply)["nonce"], MD5, "auth", 1); !ok {
					t.Errorf("fresh nonce: %+v", reply)
				}
			}
		})
	}
	t.Run("what is remembered is bounded, without a gap", testNonceMemory)
}

// A nonce that is no longer remembered by itself is used up all the same.
func testNonceMemory(t *testing.T) {
	d := newDoorman(t)
	unused := d.nonce()
	used := d.nonce()
	if reply, ok := d.attempt(2, used, MD5, "auth", 1); !ok {
		t.Fatalf("%+v", reply)
	}
	cseq := uint32(3)
	for range 3 * maxNonces {
		d.now = d.now.Add(time.Second)
		if reply, ok := d.attempt(cseq, d.nonce(), MD5, "auth", 1); !ok {
			t.Fatalf("%+v", reply)
		}
		cseq++
	}
	if len(d.set.Nonces) > maxNonces+1 {
		t.Errorf("%d nonces", len(d.set.Nonces))
	}
	for _, n := range []string{used, unused} {
		if reply, ok := d.attempt(cseq, n, MD5, "auth", 1); ok || d.challenged(reply)["stale"] != "true" {
			t.Errorf("%v, %+v", ok, reply)
		}
	}
	if reply, ok := d.attempt(cseq, d.nonce(), MD5, "auth", 1); !ok {
		t.Errorf("%+v", reply)
	}
	d.now = d.now.Add(DefaultNonceLife)
	if reply, ok := d.attempt(cseq+1, d.nonce(), MD5, "auth", 1); !ok || len(d.set.Nonces) != 1 {
		t.Errorf("after their life: %+v, %+v", reply, d.set.Nonces)
	}
}

// A recorded REGISTER does not work twice, not even when its user has gone since.
func TestReplay(t *testing.T) {
	d := newDoorman(t)
	req := d.request("c", 2, "<sip:a@h>;expires=60")
	req.Authorization = []string{answer(t, "alice", "secret", MD5, d.nonce(), "auth", 1, req)}
	if reply, ok := d.try(req); !ok {
		t.Fatalf("%+v", reply)
	}
	d.now = d.now.Add(time.Hour)
	d.set, _ = d.set.Expire(d.now, d.policy.Grace)
	if d.set.Until(0).Before(d.now) {
		t.Fatal("the record would be gone")
	}
	if reply, ok := d.try(req); ok || d.challenged(reply)["stale"] != "true" {
		t.Errorf("%v, %+v", ok, reply)
	}
}

// All devices of a user come back within one second, as after a failover: each takes
// a challenge and answers it; later each refreshes with the nonce it has.
func TestDevicesThatComeBackTogether(t *testing.T) {
	const devices = maxNonces
	a := &Authenticator{Realm: "example.test", Key: []byte("0123456789abcdef")}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var seen []NonceUse
	held := make([]NonceUse, devices)
	for i := range held {
		now := start.Add(time.Duration(i) * 7 * time.Millisecond)
		text, err := a.newNonce("example.test", now)
		if err != nil {
			t.Fatal(err)
		}
		n, ours := a.readNonce(text, "example.test")
		if !ours || !n.issued.Equal(now) {
			t.Fatalf("nonce of %v reads as %v, ours %v", now, n.issued, ours)
		}
		held[i] = NonceUse{ID: n.id, NC: 1, Until: n.issued.Add(DefaultNonceLife)}
		if usedUp(seen, held[i]) {
			t.Errorf("device %d: its fresh nonce counts as used", i)
		}
		seen = useNonce(seen, held[i], now)
	}
	for i := range held {
		again := held[i]
		again.NC = 2
		if usedUp(seen, again) {
			t.Errorf("device %d: its nonce is used up after one use", i)
		}
		if !usedUp(seen, held[i]) {
			t.Errorf("device %d: a replay passes", i)
		}
	}
}
