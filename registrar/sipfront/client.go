package sipfront

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"rollcall/registrar"
)

// The errors of Send. They come wrapped with the flow.
var (
	// ErrNotHere: the flow is at another Front End, or was at this one before it was started anew.
	ErrNotHere = errors.New("the flow is not at this Front End")
	// ErrFlowGone: the connection is closed, or the UDP flow has no registration any more.
	ErrFlowGone = errors.New("the flow is gone")
	// ErrNoAnswer: no final answer within 64·T1, 32 s (RFC 3261 §17.1.2.2, timer F).
	ErrNoAnswer = errors.New("the client does not answer")
	// ErrBusy: MaxSends requests have no answer yet.
	ErrBusy = errors.New("too many requests to clients at once")
)

const (
	timerT1 = 500 * time.Millisecond
	timerT2 = 4 * time.Second
	timerF  = 64 * timerT1
)

// sends is the table of own requests without a final answer.
type sends struct {
	mu       sync.Mutex
	max      int
	byBranch map[string]*sending
}

// sending is a non-INVITE client transaction (RFC 3261 §17.1.2).
type sending struct {
	peer        peer
	method      string
	final       chan int
	provisional chan struct{}
	lost        chan struct{} // the connection is gone
}

func (t *sends) add(branch string, x *sending) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byBranch) >= t.max {
		return false
	}
	t.byBranch[branch] = x
	return true
}

func (t *sends) remove(branch string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byBranch, branch)
}

func (t *sends) get(branch string) *sending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byBranch[branch]
}

// lost ends the requests on a connection.
func (t *sends) lost(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for branch, x := range t.byBranch {
		if x.peer.conn == c {
			close(x.lost)
			delete(t.byBranch, branch)
		}
	}
}

// Send asks a client something outside a dialog, over a flow of this Front End,
// and returns the status of its final answer. headers may say To, From, Call-ID,
// Contact, Content-Type and so on; what a request must have is added. The Request-URI
// is To's, and without a To the client's address: see SendTo. It never dials.
func (s *Server) Send(ctx context.Context, flow registrar.Flow, method string, headers []registrar.Header, body []byte) (status int, err error) {
	uri := "sip:" + flow.Remote
	for _, h := range headers {
		if strings.EqualFold(h.Name, "To") {
			if a, err := registrar.ParseAddress(h.Value); err == nil {
				uri = a.URI
			}
		}
	}
	return s.SendTo(ctx, flow, method, uri, headers, body)
}

// SendTo is Send with a Request-URI: the client's Contact, as most clients want it.
func (s *Server) SendTo(ctx context.Context, flow registrar.Flow, method, uri string, headers []registrar.Header, body []byte) (status int, err error) {
	x := &sending{
		method: method, final: make(chan int, 1), provisional: make(chan struct{}, 1), lost: make(chan struct{}),
	}
	if x.peer, err = s.peerOf(flow); err == nil {
		branch := s.newBranch(rand.Text())
		request := s.request(flow, branch, method, uri, headers, body)
		if !s.sends.add(branch, x) {
			err = ErrBusy
		} else {
			status, err = s.transact(ctx, x, request)
			s.sends.remove(branch)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s to %s %s: %w", method, flow.Transport, flow.Remote, err)
	}
	return status, nil
}

// peerOf finds a flow in our own tables.
func (s *Server) peerOf(flow registrar.Flow) (peer, error) {
	if flow.FrontEnd != s.cfg.FrontEnd || flow.Boot != s.cfg.Boot {
		return peer{}, ErrNotHere
	}
	if flow.Stream() {
		if c := s.streams.get(flow.ID); c != nil {
			return peer{conn: c}, nil
		}
		return peer{}, ErrFlowGone
	}
	k, socket, ok := s.keptKey(flow)
	if !ok || !s.kept.has(k, time.Now()) {
		return peer{}, ErrFlowGone
	}
	return peer{socket: socket, source: k.remote}, nil
}

// transact sends, over UDP again and again, and waits for the final answer.
func (s *Server) transact(ctx context.Context, x *sending, request []byte) (int, error) {
	s.count.sent.Add(1)
	if x.peer.conn != nil {
		x.peer.conn.write(request)
		if s.streams.get(x.peer.conn.flow.ID) == nil { // gone before x was in the table
			return 0, ErrFlowGone
		}
	} else if err := x.peer.socket.write(request, x.peer.source); err != nil {
		return 0, err
	}
	interval := timerT1
	timerE := time.NewTimer(interval)
	defer timerE.Stop()
	giveUp := time.NewTimer(timerF)
	defer giveUp.Stop()
	for {
		select {
		case status := <-x.final:
			return status, nil
		case <-x.provisional:
			interval = timerT2
		case <-timerE.C:
			if x.peer.conn == nil {
				_ = x.peer.socket.write(request, x.peer.source) // as if it were lost on the way
				interval = min(2*interval, timerT2)
				timerE.Reset(interval)
			}
		case <-giveUp.C:
			return 0, ErrNoAnswer
		case <-x.lost:
			return 0, ErrFlowGone
		case <-s.ctx.Done():
			return 0, ErrFlowGone
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// response finds the request that a response belongs to (RFC 3261 §17.1.3). It
// must come from where the request went: a branch can be guessed by others.
func (s *Server) response(p peer, m *message) {
	x := s.sends.get(m.via.branch)
	_, method, ok := cutCSeq(m.cseq.value)
	if x == nil && ok && s.astray(p, m, method) {
		return
	}
	if x == nil || !ok || method != x.method || p != x.peer {
		s.count.drop(DropResponse)
		return
	}
	x.answered(m.status)
}

// answered takes a response of its client.
func (x *sending) answered(status int) {
	if status < 200 {
		select {
		case x.provisional <- struct{}{}:
		default:
		}
		return
	}
	select {
	case x.final <- status:
	default: // a retransmission of it
	}
}

// request writes a request as RFC 3261 §8.1.1 wants it.
func (s *Server) request(flow registrar.Flow, branch, method, uri string, headers []registrar.Header, body []byte) []byte {
	b := make([]byte, 0, 512+len(body))
	b = append(b, method...)
	b = append(b, ' ')
	b = append(appendText(b, uri), " SIP/2.0\r\n"...)
	b = appendField(b, "Via", "SIP/2.0/"+strings.ToUpper(flow.Transport)+" "+flow.Local+";branch="+branch+";rport")
	b = appendField(b, "Max-Forwards", "70")
	for _, must := range [...]registrar.Header{
		{Name: "From", Value: "<sip:" + flow.Local + ">;tag=" + rand.Text()},
		{Name: "To", Value: "<" + uri + ">"},
		{Name: "Call-ID", Value: rand.Text()},
		{Name: "CSeq", Value: "1 " + method},
		{Name: "User-Agent", Value: s.cfg.Version},
	} {
		given := false
		for _, h := range headers {
			given = given || strings.EqualFold(h.Name, must.Name)
		}
		if !given {
			b = appendField(b, must.Name, must.Value)
		}
	}
	for _, h := range headers {
		b = appendField(b, h.Name, h.Value)
	}
	b = appendField(b, "Content-Length", strconv.Itoa(len(body)))
	return append(append(b, "\r\n"...), body...)
}
