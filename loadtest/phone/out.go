package phone

import "time"

// ActKind is what a phone wants done.
type ActKind uint8

// The actions.
const (
	Dial  ActKind = iota // connect to Target; a new connection replaces the old one when it is there
	Send                 // Data over the connection
	Close                // the connection, orderly
	Reset                // the connection, with a reset
)

// Act is one action.
type Act struct {
	Kind   ActKind
	Target string
	Data   []byte // valid until the next Handle with the same Out
}

// FactKind is what a phone has to say to the measurer.
type FactKind uint8

// The facts.
const (
	FactAttempt       FactKind = iota // a registration attempt began. Re: it was registered before
	FactSent                          // a REGISTER left. Re: as a retransmission
	FactResponse                      // Code
	FactOdd                           // an answer that is not what was waited for. Word: late, duplicate, stray, malformed, not-listed
	FactOK                            // registered. Dur: first REGISTER of the attempt to 200. Re: it was registered before
	FactFailed                        // an attempt failed. Code, or 0 and Word: timeout, refused, closed, credentials, …
	FactConnected                     // Dur: it took
	FactConnectFailed                 // Word
	FactLost                          // the connection. Word: fin, rst, icmp, cut, pong, stalled
	FactBound                         // one more is registered
	FactUnbound                       // one fewer is registered
	FactGapOpen                       // Word: cause
	FactGapClosed                     // Gap
	FactParked                        // gave up
	FactRequest                       // a request was answered. Word: method
	FactUnregistered                  // in order
)

// Fact is one thing to be measured.
type Fact struct {
	Kind FactKind
	Re   bool
	Code int
	Dur  time.Duration
	Word string
	Gap  Gap
}

// Gap is the time in which one client was gone.
type Gap struct {
	Client   int
	Cause    string        // fin, rst, icmp, cut, pong, stalled, server, expired, no-answer
	Lost     time.Duration // when it began
	First    time.Duration // when the first attempt to return began; Never: there was none
	Back     time.Duration // the 200; Never: not back
	Attempts int
}

// Out collects what a phone wants done and what it has to say. Reset it between events.
type Out struct {
	Acts  []Act
	Facts []Fact
	buf   []byte
}

// Reset empties o and keeps its memory.
func (o *Out) Reset() { o.Acts, o.Facts, o.buf = o.Acts[:0], o.Facts[:0], o.buf[:0] }

func (o *Out) fact(f Fact)        { o.Facts = append(o.Facts, f) }
func (o *Out) send(b []byte)      { o.Acts = append(o.Acts, Act{Kind: Send, Data: b}) }
func (o *Out) dial(target string) { o.Acts = append(o.Acts, Act{Kind: Dial, Target: target}) }

func (o *Out) close(reset bool) {
	kind := Close
	if reset {
		kind = Reset
	}
	o.Acts = append(o.Acts, Act{Kind: kind})
}
