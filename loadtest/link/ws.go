package link

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/gobwas/ws"
)

// wsConn carries one SIP message in each WebSocket message (RFC 7118 §5).
type wsConn struct {
	net.Conn
	base  net.Conn
	r     io.Reader
	state ws.State

	mu sync.Mutex // guards writing: answers to pings and messages must not interleave
}

// NewWS lays WebSocket framing over c, whose handshake is done; r reads c, with what the
// handshake left over. base is the connection below TLS.
func NewWS(c, base net.Conn, r io.Reader, state ws.State) Conn {
	return &wsConn{Conn: c, base: base, r: r, state: state}
}

func (w *wsConn) Messages() bool { return true }
func (w *wsConn) Reset()         { reset(w.Conn, w.base) }

// Read returns one message, put together from its fragments. Pings are answered; a close is answered and is the end.
func (w *wsConn) Read(p []byte) (int, error) {
	n := 0
	for {
		h, err := ws.ReadHeader(w.r)
		if err != nil {
			return 0, err
		}
		if h.OpCode.IsControl() {
			if err := w.control(h); err != nil {
				return 0, err
			}
			continue
		}
		if h.Length > int64(len(p)-n) {
			return 0, fmt.Errorf("WebSocket message longer than %d bytes", len(p))
		}
		part := p[n : n+int(h.Length)]
		if _, err := io.ReadFull(w.r, part); err != nil {
			return 0, err
		}
		if h.Masked {
			ws.Cipher(part, h.Mask, 0)
		}
		n += len(part)
		if h.Fin && n > 0 {
			return n, nil
		}
	}
}

func (w *wsConn) control(h ws.Header) error {
	if h.Length > ws.MaxControlFramePayloadSize {
		return ws.ErrProtocolControlPayloadOverflow
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(w.r, payload); err != nil {
		return err
	}
	if h.Masked {
		ws.Cipher(payload, h.Mask, 0)
	}
	switch h.OpCode {
	case ws.OpPing:
		return w.frame(ws.NewPongFrame(payload))
	case ws.OpClose:
		_ = w.frame(ws.NewCloseFrame(payload)) // as a courtesy: the connection ends either way
		return io.EOF
	}
	return nil
}

// Write sends p as one text message.
func (w *wsConn) Write(p []byte) (int, error) {
	if err := w.frame(ws.NewTextFrame(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *wsConn) frame(f ws.Frame) error {
	if w.state == ws.StateClientSide {
		f = ws.MaskFrame(f) // copies the payload
	}
	b, err := ws.CompileFrame(f)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.Conn.Write(b)
	return err
}
