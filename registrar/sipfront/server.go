package sipfront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"rollcall/registrar"

	"golang.org/x/time/rate"
)

// Server is one Front End's side towards the clients. Its goroutines: one for
// each UDP socket (packetSocket.run), listener (accept) and connection
// (conn.run), one for 100 Trying (sweep), and the workers that call the Handler.
// Close waits for all of them.
type Server struct {
	cfg    Config
	h      Handler
	prompt Prompt // h, if it can; else nil
	count  counters
	logs   *rate.Limiter // bounds what is logged about faults

	// Set by Open.
	ctx       context.Context
	cancel    context.CancelFunc
	packets   []*packetSocket
	listeners []net.Listener
	addresses []string

	closing  sync.Once
	wg       sync.WaitGroup // all goroutines but the workers
	workers  *workers
	inflight inflight
	streams  streams
	kept     kept
	sends    sends
	pace     pace
	chunks   sync.Pool // *[]byte to read connections into
}

// New makes a Server; Open starts it.
func New(cfg Config, h Handler) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, h: h,
		logs:     rate.NewLimiter(1, 5),
		workers:  newWorkers(),
		inflight: inflight{max: int64(cfg.MaxInFlight), udp: map[requestKey]*waiting{}},
		streams:  streams{byID: map[uint64]*conn{}},
		kept:     kept{max: cfg.MaxKept, until: map[keptKey]int64{}},
		sends:    sends{max: cfg.MaxSends, byBranch: map[string]*sending{}},
	}
	s.prompt, _ = h.(Prompt)
	s.chunks.New = func() any { b := make([]byte, 4096); return &b }
	s.pace.spread.Store(spread(0, 0, cfg.RetryAfterMax))
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Open binds all addresses and serves. It fails as a whole, with one line that
// names the address. ctx bounds the binding only; Close ends the serving.
func (s *Server) Open(ctx context.Context) error {
	var own, shared []string
	for _, l := range s.cfg.Listen {
		local, err := s.bind(ctx, l)
		if err != nil {
			s.closeListeners()
			return bindError(l, err)
		}
		if address := l.Transport + ":" + local; l.Shared {
			shared = append(shared, address)
		} else {
			own = append(own, address)
		}
	}
	s.addresses = append(own, shared...)
	for _, p := range s.packets {
		s.wg.Go(p.run)
	}
	for _, l := range s.listeners {
		s.wg.Go(func() { s.accept(l) })
	}
	s.wg.Go(s.sweep)
	return nil
}

func (s *Server) bind(ctx context.Context, l Listen) (local string, err error) {
	switch l.Transport {
	case "udp":
		pc, err := s.cfg.Net.ListenPacket(ctx, l.Addr, l.Shared)
		if err != nil {
			return "", err
		}
		local = pc.LocalAddr().String()
		udp, _ := pc.(*net.UDPConn)
		s.packets = append(s.packets, &packetSocket{s: s, pc: pc, udp: udp, local: local})
	case "tcp":
		ln, err := s.cfg.Net.Listen(ctx, l.Addr, l.Shared)
		if err != nil {
			return "", err
		}
		local = ln.Addr().String()
		s.listeners = append(s.listeners, ln)
	default:
		return "", errors.New("transport is neither udp nor tcp")
	}
	return local, nil
}

func bindError(l Listen, err error) error {
	where := l.Transport + ":" + l.Addr
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("can't listen on %s: another program has it; stop that or choose another port: %w", where, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("can't listen on %s: this machine has no such address: %w", where, syscall.EADDRNOTAVAIL)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("can't listen on %s: not permitted; choose a port above 1023: %w", where, syscall.EACCES)
	}
	return fmt.Errorf("can't listen on %s: %w", where, err)
}

func (s *Server) closeListeners() {
	for _, p := range s.packets {
		_ = p.pc.Close()
	}
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// Close closes listeners and connections and waits for every goroutine, the Handler's included.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.cancel()
		s.closeListeners()
		for _, c := range s.streams.shut() {
			c.close(false)
		}
		s.wg.Wait()
		s.workers.close()
	})
	return nil
}

// Addresses are those served, as "udp:127.0.0.1:5071": this Front End's own first, then the shared ones.
func (s *Server) Addresses() []string { return s.addresses }

// peer is who is to be answered, and how.
type peer struct {
	socket *packetSocket // of a datagram, which came
	source netip.AddrPort
	conn   *conn // or of a connection
}

// send writes an answer to m.
func (s *Server) send(p peer, m *message, response []byte) {
	s.count.answered(response)
	if p.conn != nil {
		p.conn.write(response)
		return
	}
	_ = p.socket.write(response, m.via.answerTo(p.source)) // counted
}

func (s *Server) reply(p peer, m *message, r registrar.Reply) {
	s.send(p, m, m.render(r, s.cfg.Version))
}

// message handles one message that has a Via: the rules of RFC 3261 §8.2 in their order.
func (s *Server) message(p peer, m *message, raw []byte) {
	if m.status > 0 {
		s.response(p, m)
		return
	}
	s.count.requests.Add(1)
	if m.method == "ACK" {
		s.count.drop(DropACK)
		return
	}
	if handled(m.method) {
		if p.conn != nil {
			s.registerStream(p, m, raw)
		} else {
			s.registerUDP(p, m, raw)
		}
		return
	}
	if _, refused := m.check(); refused != nil {
		s.refuse(p, m, refused)
		return
	}
	if m.method == "OPTIONS" {
		s.reply(p, m, s.options(m))
		return
	}
	s.reply(p, m, (&refusal{405, "Method Not Allowed"}).reply())
}

func (s *Server) refuse(p peer, m *message, r *refusal) {
	if r.status != 501 {
		s.count.malformed.Add(1)
	}
	s.reply(p, m, r.reply())
}

// admit validates a request for the Handler and takes a place in flight for it. It answers
// itself, and returns nil, when the request is invalid or there is no place:
// overload is judged first, as it must be cheap to say no then.
func (s *Server) admit(p peer, m *message, raw []byte) *Inbound {
	if !s.inflight.enter() {
		s.count.refused.Add(1)
		s.reply(p, m, s.overload(m))
		return nil
	}
	var in *Inbound
	defer func() {
		if in == nil { // after a panic too
			s.inflight.leave()
		}
	}()
	parts, refused := m.check()
	if refused == nil {
		in, refused = m.inbound(parts, raw, s.cfg.Version)
	}
	if refused != nil {
		s.refuse(p, m, refused)
		return nil
	}
	if in.Subscribe != nil {
		s.count.subscribes.Add(1)
	} else {
		s.count.registers.Add(1)
	}
	return in
}

// register calls the Handler and returns its answer, nil for none.
func (s *Server) register(ctx context.Context, in *Inbound) (response []byte) {
	defer s.recovered(func() {
		response = in.Render(registrar.Reply{Status: 500, Reason: "Server Internal Error"})
	})
	if in.Subscribe != nil {
		return s.h.Subscribe(ctx, in)
	}
	return s.h.Register(ctx, in)
}

// finish gives the answer to a REGISTER.
func (s *Server) finish(p peer, in *Inbound, response []byte) {
	if response != nil {
		s.send(p, in.msg, response)
	}
	s.pace.finished.Add(1)
	s.inflight.leave()
}

// recovered, deferred, turns a panic into a count, a log line and what then does.
func (s *Server) recovered(then func()) {
	if fault := recover(); fault != nil {
		s.count.drop(DropPanic)
		if s.logs.Allow() {
			s.cfg.Log.Error("request failed by a fault of this program; please report it",
				"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
		}
		then()
	}
}

// Stats is what was counted so far.
func (s *Server) Stats() Stats {
	c := &s.count
	st := Stats{
		Requests: c.requests.Load(), Registers: c.registers.Load(), Subscribes: c.subscribes.Load(), Malformed: c.malformed.Load(),
		Refused: c.refused.Load(), Trying: c.trying.Load(), Pings: c.pings.Load(), Sent: c.sent.Load(),
		AcceptErrs: c.acceptErrs.Load(), InFlight: int(s.inflight.n.Load()),
		Streams: s.streams.len(), UDPKept: s.kept.count(time.Now()),
		Responses: map[int]uint64{}, Drops: map[string]uint64{},
	}
	for code := range c.responses {
		if n := c.responses[code].Load(); n > 0 {
			st.Responses[code] = n
		}
	}
	for d := range drops {
		st.Drops[d.String()] = c.drops[d].Load()
	}
	return st
}
