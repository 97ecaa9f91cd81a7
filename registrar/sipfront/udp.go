package sipfront

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"time"

	"rollcall/registrar"

	"github.com/pion/stun/v3"
)

// packetSocket is one UDP address.
type packetSocket struct {
	s     *Server
	pc    net.PacketConn
	udp   *net.UDPConn // pc, when it is the system's: its addresses cost no allocation
	local string
}

// maxDatagram is the longest that UDP carries.
const maxDatagram = 65535

// run reads until the socket is closed.
func (p *packetSocket) run() {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := p.read(buf)
		switch {
		case errors.Is(err, net.ErrClosed) || p.s.ctx.Err() != nil:
			return
		case err != nil: // an ICMP error, or memory is short: nothing that lasts
			time.Sleep(time.Millisecond)
		case from.IsValid():
			p.s.datagram(p, from, buf[:n])
		default:
			p.s.count.drop(DropNotSIP)
		}
	}
}

func (p *packetSocket) read(buf []byte) (int, netip.AddrPort, error) {
	if p.udp != nil {
		n, from, err := p.udp.ReadFromUDPAddrPort(buf)
		return n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), err
	}
	n, addr, err := p.pc.ReadFrom(buf)
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	from, _ := netip.ParseAddrPort(addr.String())
	return n, from, nil
}

func (p *packetSocket) write(b []byte, to netip.AddrPort) error {
	var err error
	if p.udp != nil {
		_, err = p.udp.WriteToUDPAddrPort(b, to)
	} else {
		_, err = p.pc.WriteTo(b, net.UDPAddrFromAddrPort(to))
	}
	if err != nil {
		p.s.count.drop(DropWrite)
	}
	return err
}

// datagram handles one datagram; data is valid until it returns.
func (s *Server) datagram(p *packetSocket, from netip.AddrPort, data []byte) {
	defer s.recovered(func() {})
	if len(data) == 0 || len(bytes.Trim(data, "\r\n\x00")) == 0 {
		// CRLF as a keep-alive keeps a NAT's mapping; over UDP it has no answer (RFC 5626 §3.5).
		s.count.pings.Add(1)
		return
	}
	if stun.IsMessage(data) {
		s.stun(p, from, data)
		return
	}
	raw := bytes.Clone(data) // the Handler may keep it for long
	end := headEnd(raw, 0)
	if end < 0 {
		end = len(raw)
	}
	m, err := split(raw[:min(end, s.cfg.MaxHeader)])
	if err != nil {
		s.count.drop(DropNotSIP)
		return
	}
	m.origin = registrar.Flow{
		FrontEnd: s.cfg.FrontEnd, Boot: s.cfg.Boot, Transport: "udp", Local: p.local, Remote: from.String(),
	}
	pr := peer{socket: p, source: from}
	if m.takeBody(raw[end:]); end > s.cfg.MaxHeader || len(m.body) > s.cfg.MaxBody {
		if m.status == 0 && m.method != "ACK" {
			s.count.requests.Add(1)
			s.refuse(pr, m, &refusal{413, "Request Entity Too Large"})
		}
		return
	}
	s.message(pr, m, raw)
}

// stun answers a Binding request with the address it came from (RFC 5389 §7.3.1; RFC 5626 §3.5.2).
func (s *Server) stun(p *packetSocket, from netip.AddrPort, data []byte) {
	request := &stun.Message{Raw: bytes.Clone(data)}
	if request.Decode() != nil || request.Type != stun.BindingRequest {
		s.count.drop(DropNotSIP)
		return
	}
	s.count.pings.Add(1)
	answer, err := stun.Build(request, stun.BindingSuccess,
		&stun.XORMappedAddress{IP: from.Addr().AsSlice(), Port: int(from.Port())}, stun.Fingerprint)
	if err == nil {
		_ = p.write(answer.Raw, from) // counted
	}
}

// registerUDP hands a REGISTER to the Handler, unless it is waiting there already.
func (s *Server) registerUDP(p peer, m *message, raw []byte) {
	key := requestKey{p.source, m.via.branch, m.callID.value, m.cseq.value}
	if trying, ok := s.inflight.seen(key); ok {
		s.count.drop(DropRetransmission)
		if trying != nil { // RFC 3261 §17.2.2: the provisional answer again
			s.send(p, m, trying)
		}
		return
	}
	in := s.admit(p, m, raw)
	if in == nil {
		return
	}
	s.inflight.add(key, &waiting{since: time.Now(), socket: p.socket, msg: m})
	answer := func(response []byte) {
		s.inflight.remove(key) // before the answer: what comes after it deserves one again
		s.finish(p, in, response)
	}
	if !s.promptly(in, answer) {
		s.workers.run(func() { answer(s.register(s.ctx, in)) })
	}
}

// promptly lets the Handler answer on this goroutine, if it can.
func (s *Server) promptly(in *Inbound, answer func(response []byte)) (taken bool) {
	if s.prompt == nil || in.Subscribe != nil {
		return false
	}
	defer s.recovered(func() {
		answer(in.Render(registrar.Reply{Status: 500, Reason: "Server Internal Error"}))
		taken = true
	})
	return s.prompt.RegisterPromptly(s.ctx, in, answer)
}

// sweep sends 100 Trying for what waits long, until the server closes. One
// ticker for all: a timer for each request would cost more than the request.
func (s *Server) sweep() {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-t.C:
			s.pace.measure(s.count.refused.Load(), int(s.inflight.n.Load()), s.cfg.RetryAfterMax)
			render := func(m *message) []byte {
				return m.render(registrar.Reply{Status: 100, Reason: "Trying"}, s.cfg.Version)
			}
			for _, w := range s.inflight.overdue(now.Add(-s.cfg.TryingAfter), render) {
				s.count.trying.Add(1)
				source, _ := netip.ParseAddrPort(w.msg.origin.Remote)
				s.send(peer{socket: w.socket, source: source}, w.msg, w.trying)
			}
		}
	}
}
