// Package link connects simulated softphones to a registrar: UDP, TCP, TLS, WS and
// WSS behind one interface, and what a connection brings cut into messages.
package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/gobwas/ws"
)

// Conn is one connection. Read returns some bytes of a stream, or one whole message of
// a message transport (UDP, WS, WSS). Write takes one whole message.
type Conn interface {
	net.Conn
	// Reset closes the connection without farewell (RST where there is such a thing).
	Reset()
	// Messages reports whether Read returns whole messages.
	Messages() bool
}

// Dialer makes connections.
type Dialer interface {
	// Dial connects over transport (udp, tcp, tls, ws, wss) from the address local ("" for any) to target (host:port).
	Dial(ctx context.Context, transport, local, target string) (Conn, error)
}

// Net dials over the network.
type Net struct {
	TLS    *tls.Config // for TLS and WSS; ServerName defaults to the target's host
	WSPath string      // of the WebSocket request; "/" when empty
}

// Dial implements Dialer.
func (n *Net) Dial(ctx context.Context, transport, local, target string) (Conn, error) {
	if transport == "udp" {
		d := net.Dialer{}
		if local != "" {
			d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(local)}
		}
		c, err := d.DialContext(ctx, "udp", target)
		if err != nil {
			return nil, err
		}
		return &plain{Conn: c, messages: true}, nil
	}
	d := net.Dialer{KeepAlive: -1}
	if local != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(local)}
	}
	base, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	c, err := n.upgrade(ctx, transport, target, base)
	if err != nil {
		_ = base.Close()
		return nil, err
	}
	return c, nil
}

// upgrade lays TLS and WebSocket over a stream.
func (n *Net) upgrade(ctx context.Context, transport, target string, base net.Conn) (Conn, error) {
	var c net.Conn = base
	if transport == "tls" || transport == "wss" {
		cfg := n.TLS.Clone()
		if cfg == nil {
			cfg = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(target)
		}
		t := tls.Client(base, cfg)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		c = t
	}
	if transport == "ws" || transport == "wss" {
		if deadline, ok := ctx.Deadline(); ok {
			_ = c.SetDeadline(deadline)
		}
		path := n.WSPath
		if path == "" {
			path = "/"
		}
		br, hs, err := ws.Dialer{Protocols: []string{"sip"}}.Upgrade(c, &url.URL{Scheme: "ws", Host: target, Path: path})
		if err != nil {
			return nil, fmt.Errorf("WebSocket upgrade: %w", err)
		}
		if hs.Protocol != "sip" {
			return nil, errors.New(`WebSocket upgrade: the server did not choose the subprotocol "sip" (RFC 7118 §4)`)
		}
		_ = c.SetDeadline(time.Time{})
		var r io.Reader = c
		if br != nil {
			r = br
		}
		return NewWS(c, base, r, ws.StateClientSide), nil
	}
	return &plain{Conn: c, base: base}, nil
}

// plain is UDP, TCP or TLS.
type plain struct {
	net.Conn
	base     net.Conn // below TLS; nil for UDP
	messages bool
}

func (p *plain) Messages() bool { return p.messages }
func (p *plain) Reset()         { reset(p.Conn, p.base) }

func reset(c, base net.Conn) {
	if t, ok := base.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
		_ = base.Close()
		return
	}
	_ = c.Close()
}

// Why names an error for the report: fin, rst, icmp, refused, timeout, unreachable, tls, or other.
func Why(err error) string {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "fin"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "rst"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "timeout"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "no files left"
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		return "no ports left"
	case errors.As(err, &certificate):
		return "certificate"
	}
	return "other"
}
