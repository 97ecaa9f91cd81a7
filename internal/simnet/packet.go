package simnet

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"time"
)

// mtuMax is the most that a datagram can carry over IPv4.
const mtuMax = 65507

// reorderBy is how far a datagram that is held back falls behind, at most.
const reorderBy = 20 * time.Millisecond

// packetSocket is a UDP socket; it implements net.PacketConn.
type packetSocket struct {
	host   *Host
	at     netip.AddrPort
	shared bool
	wake   chan struct{} // of size 1: there is something to read
	done   chan struct{} // closes with the socket

	// Guarded by net.mu.
	closed bool
	queue  []datagram
	sent   map[netip.AddrPort]uint64 // numbers the datagrams to each address; dies with the socket
	read   deadline
}

type datagram struct {
	from, to netip.AddrPort
	data     []byte
}

func newPacketSocket(h *Host, at netip.AddrPort, shared bool) *packetSocket {
	s := &packetSocket{host: h, at: at, shared: shared, wake: make(chan struct{}, 1), done: make(chan struct{}), sent: map[netip.AddrPort]uint64{}}
	s.read.set(time.Time{})
	return s
}

// WriteTo implements net.PacketConn. It never waits.
func (s *packetSocket) WriteTo(b []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.UDPAddr)
	if !ok {
		return 0, opError("write", "udp", nil, os.ErrInvalid)
	}
	return s.WriteToUDPAddrPort(b, to.AddrPort())
}

// WriteToUDPAddrPort is like net.UDPConn's.
func (s *packetSocket) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if len(b) > mtuMax {
		return 0, opError("write", "udp", to, os.ErrInvalid)
	}
	n := s.host.net
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.closed {
		return 0, opError("write", "udp", to, net.ErrClosed)
	}
	s.sent[to]++
	n.launchLocked(s.host, datagram{s.at, to, slices.Clone(b)}, draw(n.opts.Seed, s.at, to, s.sent[to]))
	return len(b), nil
}

// launchLocked sends one datagram on its way, or two, or none.
func (n *Network) launchLocked(from *Host, d datagram, luck chance) {
	target := n.pickSocketLocked(d)
	if target == nil {
		return
	}
	link := n.linkLocked(from, target.host)
	if link.Cut || luck.hits(link.Loss) {
		return
	}
	copies := 1
	if luck = luck.next(); luck.hits(link.Duplicate) {
		copies = 2
	}
	for range copies {
		luck = luck.next()
		delay := n.thawLocked(from) + link.delay(luck)
		if luck = luck.next(); luck.hits(link.Reorder) {
			delay += luck.next().within(reorderBy)
		}
		arrives := luck
		time.AfterFunc(delay, func() { n.land(from, d, arrives) })
	}
}

// land puts a datagram into the socket that has the address now.
func (n *Network) land(from *Host, d datagram, luck chance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.pickSocketLocked(d)
	if s == nil || n.linkLocked(from, s.host).Cut {
		return
	}
	if thaw := n.thawLocked(s.host); thaw > 0 {
		time.AfterFunc(thaw+luck.within(apart), func() { n.land(from, d, luck) })
		return
	}
	if len(s.queue) >= n.opts.QueueMax {
		return
	}
	s.queue = append(s.queue, d)
	notify(s.wake)
}

// pickSocketLocked chooses among sockets that share an address by the sender's address, as SO_REUSEPORT does.
func (n *Network) pickSocketLocked(d datagram) *packetSocket {
	return pick(n.packets[d.to], d.from)
}

func pick[T any](among []*T, from netip.AddrPort) *T {
	if len(among) == 0 {
		return nil
	}
	return among[mix(addressBits(from))%uint64(len(among))]
}

// ReadFrom implements net.PacketConn.
func (s *packetSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.ReadFromUDPAddrPort(b)
	if err != nil {
		return n, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// ReadFromUDPAddrPort is like net.UDPConn's.
func (s *packetSocket) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		d, ok, expired, err := s.take()
		if err != nil {
			return 0, netip.AddrPort{}, opError("read", "udp", s.at, err)
		}
		if ok {
			return copy(b, d.data), d.from, nil
		}
		select {
		case <-s.wake:
		case <-s.done:
		case <-expired:
			return 0, netip.AddrPort{}, opError("read", "udp", s.at, os.ErrDeadlineExceeded)
		}
	}
}

func (s *packetSocket) take() (d datagram, ok bool, expired <-chan struct{}, err error) {
	n := s.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case s.closed:
		return d, false, nil, net.ErrClosed
	case isClosed(s.read.expired):
		return d, false, nil, os.ErrDeadlineExceeded
	case len(s.queue) == 0:
		return d, false, s.read.expired, nil
	}
	d = s.queue[0]
	if s.queue = s.queue[1:]; len(s.queue) > 0 {
		notify(s.wake) // for another reader
	} else {
		s.queue = nil
	}
	return d, true, nil, nil
}

// Close implements net.PacketConn.
func (s *packetSocket) Close() error {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	if s.closed {
		return opError("close", "udp", s.at, net.ErrClosed)
	}
	s.closeLocked()
	return nil
}

func (s *packetSocket) closeLocked() {
	n := s.host.net
	s.closed = true
	s.queue, s.sent = nil, nil
	s.read.stop()
	close(s.done)
	delete(s.host.sockets, s)
	n.packets[s.at] = slices.DeleteFunc(n.packets[s.at], func(o *packetSocket) bool { return o == s })
	if len(n.packets[s.at]) == 0 {
		delete(n.packets, s.at)
	}
}

// LocalAddr implements net.PacketConn.
func (s *packetSocket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(s.at) }

// SetReadDeadline implements net.PacketConn.
func (s *packetSocket) SetReadDeadline(t time.Time) error {
	s.host.net.mu.Lock()
	defer s.host.net.mu.Unlock()
	if s.closed {
		return opError("set", "udp", s.at, net.ErrClosed)
	}
	s.read.set(t)
	notify(s.wake) // who waits looks at the new one
	return nil
}

// SetDeadline implements net.PacketConn; writing never waits.
func (s *packetSocket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn; writing never waits.
func (s *packetSocket) SetWriteDeadline(time.Time) error { return nil }

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
