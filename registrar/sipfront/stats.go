package sipfront

import "sync/atomic"

// Drop is why something received got no answer.
type Drop int

// The reasons.
const (
	DropNotSIP         Drop = iota // not SIP, or without a Via to answer to
	DropRetransmission             // of a request that is still being answered
	DropResponse                   // a response to nothing that was sent
	DropACK                        // an ACK is never answered
	DropConn                       // a connection above MaxConns
	DropWrite                      // an answer that could not be written
	DropPanic                      // a fault of ours
	DropKept                       // a UDP flow above MaxKept
	drops
)

// String is the reason as a metric's label.
func (d Drop) String() string {
	return [...]string{"not_sip", "retransmission", "response", "ack", "conn", "write", "panic", "kept"}[d]
}

// Stats is what a Server has counted since it was made.
type Stats struct {
	Requests   uint64            // SIP requests received, of any method and validity
	Registers  uint64            // that reached the Handler
	Subscribes uint64            // likewise
	Malformed  uint64            // answered with 4xx or 505 because of their form
	Refused    uint64            // answered with 503 at admission
	Trying     uint64            // 100 sent
	Pings      uint64            // keep-alives: CRLF and STUN
	Sent       uint64            // own requests
	InFlight   int               // requests now at the Handler
	Responses  map[int]uint64    // by status
	Drops      map[string]uint64 // by reason
	Streams    int               // open connections
	UDPKept    int               // UDP flows with a registration
	AcceptErrs uint64            // failed accepts, such as too many open files
}

// counters are the fields behind Stats.
type counters struct {
	requests, registers, subscribes, malformed, refused, trying, pings, sent, acceptErrs atomic.Uint64
	responses                                                                            [700]atomic.Uint64
	drops                                                                                [drops]atomic.Uint64
}

func (c *counters) drop(why Drop) { c.drops[why].Add(1) }

// answered counts a response by the status in its first line.
func (c *counters) answered(response []byte) {
	if code := statusOf(response); code > 0 {
		c.responses[code].Add(1)
	}
}

// statusOf reads the code of "SIP/2.0 200 OK", 0 when there is none.
func statusOf(response []byte) int {
	const at = len("SIP/2.0 ")
	if len(response) < at+3 {
		return 0
	}
	code := 0
	for _, d := range response[at : at+3] {
		if d < '0' || d > '9' {
			return 0
		}
		code = code*10 + int(d-'0')
	}
	if code < 100 || code > 699 {
		return 0
	}
	return code
}
