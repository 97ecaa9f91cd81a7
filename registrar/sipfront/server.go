package sipfront

import (
	"context"
	"time"

	"rollcall/registrar"
)

// Server is one Front End's side towards the clients.
type Server struct {
	cfg Config
	h   Handler
}

// New makes a Server; Open starts it.
func New(cfg Config, h Handler) *Server { return &Server{cfg: cfg.withDefaults(), h: h} }

// Open binds all addresses and serves. It fails as a whole, with one line that names the address.
// ctx bounds the binding only; Close ends the serving.
func (s *Server) Open(ctx context.Context) error { return nil }

// Close closes listeners and connections and waits for every goroutine, the Handler's included.
func (s *Server) Close() error { return nil }

// Addresses are those served, as "udp:127.0.0.1:5071": this Front End's own first, then the shared ones.
func (s *Server) Addresses() []string { return nil }

// Flows counts open connections and UDP flows with a registration.
func (s *Server) Flows() int { return 0 }

// Keep notes that a UDP flow has a registration until then; the zero time forgets it.
func (s *Server) Keep(flow registrar.Flow, until time.Time) {}

// HasFlow reports whether the flow can be sent over: an open connection, or a kept UDP flow.
func (s *Server) HasFlow(flow registrar.Flow) bool { return false }

// CloseFlow closes one connection, with a reset if asked. It reports whether it was open.
func (s *Server) CloseFlow(id uint64, reset bool) bool { return false }

// CloseFlows closes the connections that are open now, one each pause, and returns when all are.
func (s *Server) CloseFlows(pause time.Duration, reset bool) {}

// Send asks a client something outside a dialog and returns the status of its final answer.
func (s *Server) Send(ctx context.Context, flow registrar.Flow, method string, headers []registrar.Header, body []byte) (status int, err error) {
	return 0, nil
}

// Stats is what was counted so far.
func (s *Server) Stats() Stats { return Stats{} }
