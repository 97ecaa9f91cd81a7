package simnet

import (
	"net"
	"net/netip"
	"slices"
)

// listener takes connections; it implements net.Listener.
type listener struct {
	host   *Host
	at     netip.AddrPort
	shared bool
	wake   chan struct{} // of size 1: there is something to accept
	done   chan struct{} // closes with the listener

	// Guarded by net.mu.
	closed  bool
	backlog []*conn
}

func (n *Network) pickListenerLocked(from, to netip.AddrPort) *listener {
	return pick(n.listeners[to], from)
}

// offer puts a connection into the backlog; when there is no room, or no listener any more, it is reset.
func (l *listener) offer(c *conn) {
	n := l.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.closed || len(l.backlog) >= n.opts.QueueMax {
		c.resetLocked(net.ErrClosed)
		return
	}
	l.backlog = append(l.backlog, c)
	notify(l.wake)
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.take()
		if err != nil {
			return nil, opError("accept", "tcp", l.at, err)
		}
		if c != nil {
			return c, nil
		}
		select {
		case <-l.wake:
		case <-l.done:
		}
	}
}

func (l *listener) take() (*conn, error) {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	if len(l.backlog) == 0 {
		return nil, nil
	}
	c := l.backlog[0]
	if l.backlog = l.backlog[1:]; len(l.backlog) > 0 {
		notify(l.wake)
	}
	return c, nil
}

// Close implements net.Listener. Connections that were not accepted are reset.
func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return opError("close", "tcp", l.at, net.ErrClosed)
	}
	l.closeLocked()
	return nil
}

func (l *listener) closeLocked() {
	n := l.host.net
	l.closed = true
	close(l.done)
	for _, c := range l.backlog {
		c.resetLocked(net.ErrClosed)
	}
	l.backlog = nil
	delete(l.host.listeners, l)
	n.listeners[l.at] = slices.DeleteFunc(n.listeners[l.at], func(o *listener) bool { return o == l })
	if len(n.listeners[l.at]) == 0 {
		delete(n.listeners, l.at)
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }
