package sipfront

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// fakeNet is a network of one UDP address and one TCP address, for bubbles of synctest.
type fakeNet struct {
	packets *fakePackets
	conns   *fakeListener
}

func newFakeNet() *fakeNet {
	return &fakeNet{
		packets: &fakePackets{in: make(chan packet, 64), out: make(chan packet, 64), done: make(chan struct{})},
		conns:   &fakeListener{queue: make(chan net.Conn), done: make(chan struct{})},
	}
}

func (n *fakeNet) ListenPacket(context.Context, string, bool) (net.PacketConn, error) {
	return n.packets, nil
}
func (n *fakeNet) Listen(context.Context, string, bool) (net.Listener, error) { return n.conns, nil }

func (n *fakeNet) listen() []Listen {
	return []Listen{{Transport: "udp", Addr: "10.0.0.1:5060"}, {Transport: "tcp", Addr: "10.0.0.1:5060"}}
}

var fakeLocal = net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:5060"))

type packet struct {
	data string
	addr net.Addr
}

// fakePackets is the server's UDP socket; the test puts into in and takes from out.
type fakePackets struct {
	in, out chan packet
	once    sync.Once
	done    chan struct{}
}

func (p *fakePackets) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case d := <-p.in:
		return copy(b, d.data), d.addr, nil
	case <-p.done:
		return 0, nil, net.ErrClosed
	}
}

func (p *fakePackets) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case p.out <- packet{string(b), to}:
		return len(b), nil
	case <-p.done:
		return 0, net.ErrClosed
	default:
		return 0, errors.New("nobody takes what the server sends")
	}
}

func (p *fakePackets) Close() error                     { p.once.Do(func() { close(p.done) }); return nil }
func (p *fakePackets) LocalAddr() net.Addr              { return fakeLocal }
func (p *fakePackets) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (p *fakePackets) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (p *fakePackets) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type fakeListener struct {
	queue chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *fakeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *fakeListener) Addr() net.Addr { return fakeLocal }

// dial connects a client to the server through a pipe.
func (n *fakeNet) dial() net.Conn {
	client, server := net.Pipe()
	n.conns.queue <- server
	return client
}
