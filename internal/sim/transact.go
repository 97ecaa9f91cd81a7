package sim

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"
)

// The timers of a non-INVITE client transaction (RFC 3261 §17.1.2).
const (
	timerT1 = 500 * time.Millisecond
	timerT2 = 4 * time.Second
	timerF  = 64 * timerT1
)

var errNoAnswer = errors.New("no answer within 32 s")

// dialTimeout is how long a phone waits for a connection.
const dialTimeout = 5 * time.Second

// transact sends a request and returns its final answer. Over UDP it is sent again by timer E.
func (ph *Phone) transact(req request) (response, error) {
	end := time.Now().Add(timerF)
	if ph.transport == "tcp" {
		if err := ph.connect(); err != nil {
			return response{}, err
		}
		_ = ph.conn.SetDeadline(end)
		if _, err := ph.conn.Write(req.bytes()); err != nil {
			ph.hangUp()
			return response{}, err
		}
		return ph.await(req, end, time.Time{})
	}
	wait := timerT1
	for time.Now().Before(end) {
		if _, err := ph.socket.WriteTo(req.bytes(), net.UDPAddrFromAddrPort(ph.server())); err != nil {
			return response{}, err
		}
		again := time.Now().Add(wait)
		r, err := ph.await(req, end, again)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return r, err
		}
		if wait = min(2*wait, timerT2); r.status == 100 {
			wait = timerT2 // proceeding
		}
	}
	return response{}, errNoAnswer
}

// await reads until the final answer to req, or until again (if not zero), or end. With
// os.ErrDeadlineExceeded it returns the newest provisional answer.
func (ph *Phone) await(req request, end, again time.Time) (response, error) {
	var provisional response
	for {
		until := end
		if !again.IsZero() && again.Before(end) {
			until = again
		}
		text, err := ph.receive(until)
		if errors.Is(err, os.ErrDeadlineExceeded) && again.IsZero() {
			err = errNoAnswer
		}
		if err != nil {
			if ph.transport == "tcp" {
				ph.hangUp()
			}
			return provisional, err
		}
		r, err := readResponse(text)
		if err != nil || r.callID != req.callID || r.cseq != req.cseq || r.branch != req.branch {
			continue // a late answer to an earlier request, or something else
		}
		if r.status < 200 {
			provisional = r
			continue
		}
		return r, nil
	}
}

// receive returns the next message that arrives before until.
func (ph *Phone) receive(until time.Time) (string, error) {
	if ph.transport == "tcp" {
		return ph.receiveStream(until)
	}
	if err := ph.socket.SetReadDeadline(until); err != nil {
		return "", err
	}
	var buf [2048]byte
	n, _, err := ph.socket.ReadFrom(buf[:])
	return string(buf[:n]), err
}

func (ph *Phone) receiveStream(until time.Time) (string, error) {
	if err := ph.conn.SetReadDeadline(until); err != nil {
		return "", err
	}
	for {
		if text, rest, ok := strings.Cut(ph.pending, "\r\n\r\n"); ok {
			ph.pending = rest
			return text + "\r\n\r\n", nil
		}
		var buf [2048]byte
		n, err := ph.conn.Read(buf[:])
		if err != nil {
			return "", err
		}
		ph.pending += string(buf[:n])
	}
}

// connect opens the connection if there is none.
func (ph *Phone) connect() error {
	if ph.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ph.pool.ctx, dialTimeout)
	defer cancel()
	c, err := ph.host.Dial(ctx, ph.server().String())
	if err != nil {
		return err
	}
	ph.conn, ph.pending = c, ""
	return nil
}

func (ph *Phone) hangUp() {
	if ph.conn != nil {
		ph.conn.Close()
		ph.conn, ph.pending = nil, ""
	}
}
