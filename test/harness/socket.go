package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrNoAnswer: nobody answered within the time of RFC 3261's timer F, or the caller's.
var ErrNoAnswer = errors.New("no final answer")

// Timers of a non-INVITE transaction over UDP (RFC 3261 §17.1.2).
const (
	timerT1 = 500 * time.Millisecond
	timerT2 = 4 * time.Second
	timerF  = 32 * time.Second
)

// socket sends requests over UDP and gives each answer to who waits for its branch.
type socket struct {
	conn    *net.UDPConn
	done    chan struct{}
	mu      sync.Mutex
	waiting map[string]chan Answer // by branch; guarded by mu
}

func openSocket() (*socket, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open a phone's socket: %w", err)
	}
	_ = conn.SetReadBuffer(4 << 20) // a smaller buffer costs retransmissions, nothing else
	s := &socket{conn: conn, done: make(chan struct{}), waiting: map[string]chan Answer{}}
	go s.read()
	return s, nil
}

func (s *socket) close() {
	s.conn.Close()
	<-s.done
}

func (s *socket) addr() string { return s.conn.LocalAddr().String() }

func (s *socket) read() {
	defer close(s.done)
	buf := make([]byte, 65536)
	for {
		n, _, err := s.conn.ReadFromUDP(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a refused datagram; the retransmission goes on
		}
		a, err := parseAnswer(buf[:n])
		if err != nil {
			continue
		}
		s.mu.Lock()
		waiter := s.waiting[a.branch()]
		s.mu.Unlock()
		if waiter != nil {
			select {
			case waiter <- a:
			default: // a repeated answer
			}
		}
	}
}

// request sends a request, repeats it as RFC 3261 says, and returns the final answer.
func (s *socket) request(ctx context.Context, to *net.UDPAddr, branch string, message []byte) (Answer, error) {
	answers := make(chan Answer, 4)
	s.mu.Lock()
	s.waiting[branch] = answers
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, branch)
		s.mu.Unlock()
	}()

	over := time.NewTimer(timerF)
	defer over.Stop()
	wait := timerT1
	repeat := time.NewTimer(0)
	defer repeat.Stop()
	for {
		select {
		case <-repeat.C:
			if _, err := s.conn.WriteToUDP(message, to); errors.Is(err, net.ErrClosed) {
				return Answer{}, err
			}
			repeat.Reset(wait)
			wait = min(2*wait, timerT2)
		case a := <-answers:
			if a.Status >= 200 {
				return a, nil
			}
			wait = timerT2 // provisional: §17.1.2.2
		case <-over.C:
			return Answer{}, ErrNoAnswer
		case <-ctx.Done():
			return Answer{}, fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
		}
	}
}
