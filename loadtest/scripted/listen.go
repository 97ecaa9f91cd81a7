package scripted

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"rollcall/loadtest/link"
)

// Listener serves a registrar on a real socket of the loopback interface.
type Listener struct {
	Addr  string
	close func()
	wg    sync.WaitGroup
	r     *Registrar
}

// Close stops listening, ends all connections and waits.
func (l *Listener) Close() {
	l.close()
	l.r.Drop(false)
	l.wg.Wait()
}

// Listen serves r over transport on a free port of 127.0.0.1; cert is for tls and wss.
func Listen(transport string, r *Registrar, cert tls.Certificate) (*Listener, error) {
	if transport == "udp" {
		return listenUDP(r)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Listener{Addr: ln.Addr().String(), r: r, close: func() { _ = ln.Close() }}
	l.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.serve(transport, c, cert) })
		}
	})
	return l, nil
}

func (l *Listener) serve(transport string, base net.Conn, cert tls.Certificate) {
	c := base
	_ = base.SetDeadline(time.Now().Add(10 * time.Second))
	if transport == "tls" || transport == "wss" {
		c = tls.Server(base, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	if transport == "ws" || transport == "wss" {
		up := ws.Upgrader{Protocol: func(p []byte) bool { return string(p) == "sip" }}
		if _, err := up.Upgrade(c); err != nil {
			_ = base.Close()
			return
		}
		_ = base.SetDeadline(time.Time{})
		l.r.Serve(link.NewWS(c, base, c, ws.StateServerSide))
		return
	}
	if t, ok := c.(*tls.Conn); ok {
		if err := t.Handshake(); err != nil {
			_ = base.Close()
			return
		}
	}
	_ = base.SetDeadline(time.Time{})
	l.r.Serve(&stream{c, base})
}

// stream is TCP or TLS, seen by the registrar.
type stream struct {
	net.Conn
	base net.Conn
}

func (s *stream) Messages() bool { return false }
func (s *stream) Reset() {
	if t, ok := s.base.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = s.base.Close()
}

// udpPeer is one remote address of the UDP socket.
type udpPeer struct {
	*memConn
	socket *net.UDPConn
}

func (p *udpPeer) Write(b []byte) (int, error) { return p.socket.WriteToUDPAddrPort(b, p.remote) }

func listenUDP(r *Registrar) (*Listener, error) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	_ = socket.SetReadBuffer(4 << 20)
	l := &Listener{Addr: socket.LocalAddr().String(), r: r, close: func() { _ = socket.Close() }}
	peers := map[netip.AddrPort]*half{}
	l.wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := socket.ReadFromUDPAddrPort(buf)
			if err != nil {
				for _, in := range peers {
					in.finish(net.ErrClosed, false)
				}
				return
			}
			in := peers[from]
			if in == nil {
				in = newHalf()
				peers[from] = in
				conn := &udpPeer{&memConn{in: in, out: newHalf(), remote: from, messages: true}, socket}
				l.wg.Go(func() { r.Serve(conn) })
			}
			_ = in.put(buf[:n])
		}
	})
	return l, nil
}

// Certificate makes a self-signed one for 127.0.0.1 and localhost.
func Certificate() (tls.Certificate, *x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool, nil
}
