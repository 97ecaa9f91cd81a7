package harness

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports hands out ports of 127.0.0.1 that are free for UDP and TCP, each only once. They lie
// below the range from which the kernel takes ports for outgoing connections.
type Ports struct {
	mu   sync.Mutex
	used map[int]bool
}

const (
	portFirst = 10000
	portLast  = 32000
)

// Pool returns a base port such that the base, base+11 up to base+10+frontEnds, and one port more for
// HTTP (base+1) are free.
func (p *Ports) Pool(frontEnds int) (base int, err error) {
	offsets := []int{0, 1}
	for n := 1; n <= frontEnds; n++ {
		offsets = append(offsets, 10+n)
	}
	return p.take(offsets)
}

// One returns one free port.
func (p *Ports) One() (int, error) { return p.take([]int{0}) }

func (p *Ports) take(offsets []int) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[int]bool{}
	}
	for range 200 {
		base := portFirst + rand.IntN(portLast-portFirst)
		if p.allFree(base, offsets) {
			for _, o := range offsets {
				p.used[base+o] = true
			}
			return base, nil
		}
	}
	return 0, errors.New("no free ports on 127.0.0.1 after 200 tries")
}

func (p *Ports) allFree(base int, offsets []int) bool {
	for _, o := range offsets {
		if p.used[base+o] || !free(base+o) {
			return false
		}
	}
	return true
}

func free(port int) bool {
	addr := local(port)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
