package sipwire

import (
	"bytes"
	"errors"
	"strconv"
)

// Kind of what stands at the head of a stream.
type Kind uint8

const (
	// Incomplete: more bytes are needed.
	Incomplete Kind = iota
	// Ping is a double CRLF (RFC 5626 §4.4.1), to be answered with a Pong.
	Ping
	// Pong is a single CRLF.
	Pong
	// Complete is a whole message.
	Complete
)

// MaxMessage is the longest message that is accepted, in bytes.
const MaxMessage = 64 << 10

// ErrTooLong: the stream holds no end of a message within MaxMessage bytes.
var ErrTooLong = errors.New("message longer than 65536 bytes")

// ErrLength: a Content-Length that is no number.
var ErrLength = errors.New("Content-Length is not a number")

var (
	crlf     = []byte("\r\n")
	crlfcrlf = []byte("\r\n\r\n")
)

// Split says what stands at the head of b and how many bytes it takes.
func Split(b []byte) (Kind, int, error) {
	if len(b) == 0 {
		return Incomplete, 0, nil
	}
	if bytes.HasPrefix(b, crlfcrlf) {
		return Ping, 4, nil
	}
	if bytes.HasPrefix(b, crlf) {
		return Pong, 2, nil
	}
	end := bytes.Index(b, crlfcrlf)
	if end < 0 {
		if len(b) > MaxMessage {
			return Incomplete, 0, ErrTooLong
		}
		return Incomplete, 0, nil
	}
	body, err := contentLength(b[:end+2])
	if err != nil {
		return Incomplete, 0, err
	}
	n := end + 4 + body
	if n > MaxMessage {
		return Incomplete, 0, ErrTooLong
	}
	if len(b) < n {
		return Incomplete, 0, nil
	}
	return Complete, n, nil
}

// contentLength finds Content-Length in a header block; absent means 0.
func contentLength(head []byte) (int, error) {
	for len(head) > 0 {
		line := head
		if i := bytes.Index(head, crlf); i >= 0 {
			line, head = head[:i], head[i+2:]
		} else {
			head = nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		name = bytes.TrimRight(name, " \t")
		if !(len(name) == 1 && (name[0] == 'l' || name[0] == 'L')) && !bytes.EqualFold(name, []byte("Content-Length")) {
			continue
		}
		n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
		if err != nil || n < 0 {
			return 0, ErrLength
		}
		return n, nil
	}
	return 0, nil
}
