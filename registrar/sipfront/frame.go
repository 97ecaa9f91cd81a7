package sipfront

// framer cuts a stream into messages and keep-alives (RFC 3261 §7.5, §18.3; RFC
// 5626 §3.5.1). It does no I/O. What it holds is bounded by maxHeader and maxBody
// and one read; between messages it holds nothing.
type framer struct {
	maxHeader, maxBody int

	pending []byte // the beginning of a message
	scanned int    // bytes of it without an end of the header
	need    int    // its whole length, once the header is there
	half    bool   // a CRLF was the last thing
}

type frameKind int

const (
	frameNone    frameKind = iota // more bytes are needed
	framePing                     // CRLF CRLF, to be answered with CRLF
	frameMessage                  // msg and raw
	frameBroken                   // the stream can't be followed: refuse msg, if there is one, and close
)

type frame struct {
	kind frameKind
	msg  *message
	head int    // bytes before the body
	raw  []byte // valid until the next feed
	why  *refusal
}

// feed takes what was read and calls got for each frame. After frameBroken it must not be called again.
func (f *framer) feed(chunk []byte, got func(frame)) {
	data := chunk
	if len(f.pending) > 0 {
		f.pending = append(f.pending, chunk...)
		data = f.pending
	}
	used := 0
	for used < len(data) {
		fr, n := f.next(data[used:])
		used += n
		if fr.kind == frameNone {
			break
		}
		got(fr)
		if fr.kind == frameBroken {
			f.pending = nil
			return
		}
	}
	switch rest := data[used:]; {
	case len(rest) == 0:
		f.pending = nil
	case used > 0 || len(f.pending) == 0:
		f.pending = append([]byte(nil), rest...)
	}
}

// partial reports whether a message has begun.
func (f *framer) partial() bool { return len(f.pending) > 0 }

// next reads one frame off data, which is not empty, and returns how many bytes are done with.
func (f *framer) next(data []byte) (frame, int) {
	used := 0
	if f.scanned == 0 {
		for used < len(data) && data[used] == '\r' {
			if used+1 == len(data) {
				return frame{}, used
			}
			if data[used+1] != '\n' {
				return frame{kind: frameBroken}, used
			}
			used += 2
			if f.half = !f.half; !f.half {
				return frame{kind: framePing}, used
			}
		}
		if used == len(data) {
			return frame{}, used
		}
		f.half = false
		if !isTokenByte(data[used]) { // TLS, or anything else that is not SIP
			return frame{kind: frameBroken}, used
		}
	}
	fr, n := f.message(data[used:])
	return fr, used + n
}

// message reads the message at the start of data.
func (f *framer) message(data []byte) (frame, int) {
	if len(data) < f.need {
		return frame{}, 0
	}
	end := headEnd(data, max(0, min(f.scanned-3, len(data))))
	if end < 0 && len(data) <= f.maxHeader {
		f.scanned = len(data)
		return frame{}, 0
	}
	if end < 0 || end > f.maxHeader {
		m, _ := split(data[:f.maxHeader])
		return frame{kind: frameBroken, msg: m, why: &refusal{413, "Request Entity Too Large: header"}}, len(data)
	}
	m, err := split(data[:end])
	if err != nil {
		return frame{kind: frameBroken}, len(data)
	}
	n, ok := m.contentLength()
	switch {
	case !ok:
		return frame{kind: frameBroken, msg: m, why: bad("Malformed Content-Length")}, len(data)
	case n < 0:
		return frame{kind: frameBroken, msg: m, why: bad("Missing Content-Length")}, len(data)
	case n > f.maxBody:
		return frame{kind: frameBroken, msg: m, why: &refusal{413, "Request Entity Too Large: body"}}, len(data)
	}
	total := end + n
	if len(data) < total {
		f.scanned, f.need = end-1, total // the end of the header is found again, and no later one
		return frame{}, 0
	}
	f.scanned, f.need = 0, 0
	return frame{kind: frameMessage, msg: m, head: end, raw: data[:total]}, total
}
