package simnet

import (
	"net/netip"
	"time"
)

// chance draws what happens to one packet.
type chance uint64

// draw is the same for the same seed, addresses and number, whenever it is asked for.
func draw(seed uint64, from, to netip.AddrPort, number uint64) chance {
	h := mix(seed ^ 0x9e3779b97f4a7c15)
	h = mix(h ^ addressBits(from))
	h = mix(h ^ addressBits(to)<<1)
	return chance(mix(h ^ number))
}

// next is another draw for the same packet.
func (c chance) next() chance { return chance(mix(uint64(c) + 0x9e3779b97f4a7c15)) }

// hits reports true with this probability.
func (c chance) hits(share float64) bool {
	return share > 0 && float64(c>>11)/(1<<53) < share
}

// within returns something from 0 up to d.
func (c chance) within(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(uint64(c) % uint64(d))
}

// apart keeps packets with equal delays from arriving in the same instant, where their order would be nobody's.
const apart = 50 * time.Microsecond

// delay is how long a packet is on its way.
func (l Link) delay(c chance) time.Duration { return l.Delay + c.within(l.Jitter+apart) }

func addressBits(a netip.AddrPort) uint64 {
	b := a.Addr().As16()
	h := uint64(a.Port())
	for _, x := range b {
		h = (h ^ uint64(x)) * 1099511628211
	}
	return h
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
