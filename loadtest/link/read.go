package link

import (
	"bytes"

	"rollcall/loadtest/sipwire"
)

// Sizes of a connection's buffer, in bytes. A stream starts small, as most answers fit
// and ten thousands of them wait at once, and grows up to sipwire.MaxMessage.
const (
	streamBuffer  = 1 << 10
	messageBuffer = 8 << 10
)

// Piece is what came over a connection.
type Piece struct {
	Kind    sipwire.Kind    // Ping, Pong or Complete
	Message sipwire.Message // of Complete, when Err is nil
	Err     error           // what came is no SIP message
}

// Read cuts what c brings into pieces and hands them to fn until the connection ends or
// fn returns false; the error is the reason, nil in the second case. A stream that has lost its framing ends
// with the error of sipwire.Split, after a piece with the same Err.
func Read(c Conn, fn func(Piece) bool) error {
	if c.Messages() {
		return readMessages(c, fn)
	}
	buf, n := make([]byte, streamBuffer), 0
	for {
		got, err := c.Read(buf[n:])
		n += got
		used, splitErr := pieces(buf[:n], fn)
		if splitErr != nil || used < 0 {
			return splitErr
		}
		n = copy(buf, buf[used:n])
		if err != nil {
			return err
		}
		switch {
		case n == len(buf):
			buf = append(buf, make([]byte, len(buf))...)
		case n == 0 && len(buf) > 4*streamBuffer:
			buf = make([]byte, streamBuffer)
		}
	}
}

// pieces hands the whole pieces at the head of b over; used is negative when fn wants no more.
func pieces(b []byte, fn func(Piece) bool) (used int, err error) {
	for {
		kind, n, err := sipwire.Split(b[used:])
		if err != nil {
			fn(Piece{Kind: sipwire.Complete, Err: err})
			return used, err
		}
		if kind == sipwire.Incomplete {
			return used, nil
		}
		if !fn(piece(kind, b[used:used+n])) {
			return -1, nil
		}
		used += n
	}
}

func piece(kind sipwire.Kind, b []byte) Piece {
	p := Piece{Kind: kind}
	if kind == sipwire.Complete {
		p.Message, p.Err = sipwire.Parse(b)
	}
	return p
}

func readMessages(c Conn, fn func(Piece) bool) error {
	buf := make([]byte, messageBuffer)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		kind := sipwire.Complete
		switch blank := bytes.TrimRight(buf[:n], "\r\n"); {
		case len(blank) == 0 && n == 4:
			kind = sipwire.Ping
		case len(blank) == 0:
			kind = sipwire.Pong
		}
		if !fn(piece(kind, buf[:n])) {
			return nil
		}
	}
}
