package simnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// Host is the network as one process on one machine sees it; it implements
// frontend.Net. A process that starts again is a new Host of the same name.
type Host struct {
	net        *Network
	name, zone string
	ip         netip.Addr

	// Guarded by net.mu.
	killed    bool
	port      uint16 // the last one that was chosen by itself
	sockets   map[*packetSocket]bool
	listeners map[*listener]bool
	conns     map[*conn]bool
}

// firstPort is where ports that nobody asked for begin.
const firstPort = 32768

// Host adds a host at an address.
func (n *Network) Host(name, zone string, ip netip.Addr) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &Host{net: n, name: name, zone: zone, ip: ip, port: firstPort,
		sockets: map[*packetSocket]bool{}, listeners: map[*listener]bool{}, conns: map[*conn]bool{}}
	n.machines[ip] = h
	return h
}

// Kill ends the process: its sockets vanish, its connections are reset, and what it still tries fails.
func (h *Host) Kill() {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	h.killed = true
	for s := range h.sockets {
		s.closeLocked()
	}
	for l := range h.listeners {
		l.closeLocked()
	}
	for c := range h.conns {
		c.resetLocked(net.ErrClosed)
	}
}

// ListenPacket binds a datagram socket; see sipfront.Net.
func (h *Host) ListenPacket(_ context.Context, addr string, shared bool) (net.PacketConn, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := h.bindLocked(addr, func(a netip.AddrPort) bool { return len(n.packets[a]) > 0 && !(shared && n.packets[a][0].shared) })
	if err != nil {
		return nil, opError("listen", "udp", nil, err)
	}
	s := newPacketSocket(h, at, shared)
	n.packets[at] = append(n.packets[at], s)
	h.sockets[s] = true
	return s, nil
}

// Listen binds a stream listener; see sipfront.Net.
func (h *Host) Listen(_ context.Context, addr string, shared bool) (net.Listener, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := h.bindLocked(addr, func(a netip.AddrPort) bool {
		return len(n.listeners[a]) > 0 && !(shared && n.listeners[a][0].shared)
	})
	if err != nil {
		return nil, opError("listen", "tcp", nil, err)
	}
	l := &listener{host: h, at: at, shared: shared, wake: make(chan struct{}, 1), done: make(chan struct{})}
	n.listeners[at] = append(n.listeners[at], l)
	h.listeners[l] = true
	return l, nil
}

// bindLocked reads an address to bind; an empty host is this one's address, and port 0 lets it choose.
func (h *Host) bindLocked(addr string, taken func(netip.AddrPort) bool) (netip.AddrPort, error) {
	if h.killed {
		return netip.AddrPort{}, net.ErrClosed
	}
	at, err := h.parse(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if at.Port() == 0 {
		return h.choosePortLocked(at.Addr(), taken)
	}
	if taken(at) {
		return netip.AddrPort{}, os.NewSyscallError("bind", syscall.EADDRINUSE)
	}
	h.net.machines[at.Addr()] = h
	return at, nil
}

func (h *Host) choosePortLocked(ip netip.Addr, taken func(netip.AddrPort) bool) (netip.AddrPort, error) {
	for range 1 << 15 {
		if h.port++; h.port < firstPort {
			h.port = firstPort
		}
		if at := netip.AddrPortFrom(ip, h.port); !taken(at) {
			return at, nil
		}
	}
	return netip.AddrPort{}, os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)
}

func (h *Host) parse(addr string) (netip.AddrPort, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		addr = net.JoinHostPort(h.ip.String(), addr[1:])
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: addresses are numbers here: %w", addr, err)
	}
	return at, nil
}

// synRetry and synTries: a SYN that got lost is sent again after 1 s, 2 s, 4 s, ...
const (
	synRetry = time.Second
	synTries = 6
)

// Dial connects to a listener. Nobody there: ECONNREFUSED. No way there: silence until ctx ends.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	to, err := h.parse(addr)
	if err != nil {
		return nil, opError("dial", "tcp", nil, err)
	}
	n := h.net
	n.mu.Lock()
	from, err := netip.AddrPort{}, error(net.ErrClosed)
	if !h.killed {
		from, err = h.choosePortLocked(h.ip, func(netip.AddrPort) bool { return false })
	}
	n.mu.Unlock()
	if err != nil {
		return nil, opError("dial", "tcp", nil, err)
	}
	for try := range synTries {
		c, wait, err := n.connect(h, from, to, uint64(try))
		if err := sleep(ctx, wait); err != nil {
			if c != nil {
				c.Close()
			}
			return nil, opError("dial", "tcp", to, err)
		}
		if err != nil || c != nil {
			if err != nil {
				return nil, opError("dial", "tcp", to, err)
			}
			return c, nil
		}
		if err := sleep(ctx, synRetry<<try); err != nil {
			return nil, opError("dial", "tcp", to, err)
		}
	}
	return nil, opError("dial", "tcp", to, syscall.ETIMEDOUT)
}

// connect sends one SYN. It returns a connection or a refusal, and how long the answer
// takes; neither means that the SYN or its answer was lost.
func (n *Network) connect(h *Host, from, to netip.AddrPort, try uint64) (*conn, time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.killed {
		return nil, 0, net.ErrClosed
	}
	luck := draw(n.opts.Seed, from, to, 1<<32|try)
	l := n.pickListenerLocked(from, to)
	if l == nil {
		target := n.machines[to.Addr()]
		if target == nil {
			return nil, 0, nil
		}
		there, back := n.linkLocked(h, target), n.linkLocked(target, h)
		if there.Cut || back.Cut || luck.hits(there.Loss) || luck.next().hits(back.Loss) {
			return nil, 0, nil
		}
		return nil, there.delay(luck) + back.delay(luck.next()), syscall.ECONNREFUSED
	}
	there, back := n.linkLocked(h, l.host), n.linkLocked(l.host, h)
	if there.Cut || back.Cut || luck.hits(there.Loss) || luck.next().hits(back.Loss) {
		return nil, 0, nil
	}
	arrives := there.delay(luck)
	client, server := newConnsLocked(h, l.host, from, to)
	time.AfterFunc(arrives+n.thawLocked(l.host), func() { l.offer(server) })
	return client, arrives + back.delay(luck.next()), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// opError has the shape that callers know from package net.
func opError(op, network string, at any, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = os.ErrDeadlineExceeded
	}
	e := &net.OpError{Op: op, Net: network, Err: err}
	if a, ok := at.(netip.AddrPort); ok {
		e.Addr = net.TCPAddrFromAddrPort(a)
	}
	return e
}
