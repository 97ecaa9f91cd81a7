package sipfront

import (
	"context"
	"log/slog"
	"time"

	"rollcall/registrar"
)

// Listen is one address to serve.
type Listen struct {
	Transport string // "udp" or "tcp"
	Addr      string // host:port; port 0 lets the system choose
	Shared    bool   // other Front Ends of this machine listen there too (SO_REUSEPORT)
}

// Config is what a Server needs to know. The zero value of each limit means its default.
type Config struct {
	FrontEnd string // this Front End's name, as it stands in flows
	Boot     string // this process's boot id, as it stands in flows
	Listen   []Listen
	Net      Net          // where listeners come from; nil: SystemNet
	Log      *slog.Logger // nil: silent
	Version  string       // said in Server and User-Agent
	// Astray is told of responses to what other Front Ends sent from a shared address; nil: they are dropped. It must not block.
	Astray func(Astray)
	// Supported option tags (RFC 3261 §20.37), as told in answer to OPTIONS.
	Supported []string

	MaxInFlight     int // requests that wait for the Handler; above it 503 (default 8192)
	MaxConnInFlight int // requests of one connection; above it the connection isn't read (default 256)
	MaxConns        int // open connections; above it the newest is refused (default 16384)
	MaxKept         int // UDP flows with a registration; above it the newest isn't kept (default 1,000,000)
	MaxSends        int // own requests without a final answer yet; above it ErrBusy (default 1024)
	MaxHeader       int // bytes of start line and header fields (default 16 KiB)
	MaxBody         int // bytes of a body (default 16 KiB)

	// RetryAfterMax bounds the Retry-After of an admission refusal (default 30 s).
	// Each client gets its own, of 1 s up to what the measured pace makes of the backlog.
	RetryAfterMax time.Duration
	// TryingAfter is how long a REGISTER over UDP waits before it gets a 100 (RFC 4320 §4.1; default 3.5 s).
	TryingAfter time.Duration
	// FirstMessage is how long a new connection may stay without a byte (default 30 s).
	FirstMessage time.Duration
	// HalfMessage is how long a message may take from its first byte to its last (default 10 s).
	HalfMessage time.Duration
	// WriteTimeout is how long a client may refuse to take an answer (default 10 s).
	WriteTimeout time.Duration
}

func (c Config) withDefaults() Config {
	positive := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	lasting := func(t *time.Duration, d time.Duration) {
		if *t <= 0 {
			*t = d
		}
	}
	positive(&c.MaxInFlight, 8192)
	positive(&c.MaxConnInFlight, 256)
	positive(&c.MaxConns, 16384)
	positive(&c.MaxKept, 1_000_000)
	positive(&c.MaxSends, 1024)
	positive(&c.MaxHeader, 16<<10)
	positive(&c.MaxBody, 16<<10)
	lasting(&c.RetryAfterMax, 30*time.Second)
	lasting(&c.TryingAfter, 3500*time.Millisecond)
	lasting(&c.FirstMessage, 30*time.Second)
	lasting(&c.HalfMessage, 10*time.Second)
	lasting(&c.WriteTimeout, 10*time.Second)
	if c.Net == nil {
		c.Net = SystemNet()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Version == "" {
		c.Version = "Rollcall"
	}
	if c.Supported == nil {
		c.Supported = []string{"path"}
	}
	return c
}

// Handler is what stands behind the wire.
type Handler interface {
	// Register answers one valid REGISTER with the complete response: in.Render, or
	// the bytes that another Front End rendered. nil gives no answer. It is called on
	// its own goroutine and may block; of one connection, the requests for one AOR
	// come one after the other, in the order of arrival. ctx ends when the server
	// closes or the connection is gone.
	Register(ctx context.Context, in *Inbound) []byte
	// Subscribe does the same for a SUBSCRIBE, whatever its package.
	Subscribe(ctx context.Context, in *Inbound) []byte
	// FlowOpened and FlowClosed tell of connections, not of UDP. Both are called
	// from the connection's goroutine and must not block. A Register may still be
	// running when its flow closes: see Server.HasFlow.
	FlowOpened(registrar.Flow)
	FlowClosed(registrar.Flow)
}

// Prompt is for a Handler that can answer most REGISTERs without waiting, and so without a
// goroutine for each.
type Prompt interface {
	// RegisterPromptly is called for a REGISTER over UDP from the goroutine that read it, and must
	// not block. True: it will call answer, or has, once and from any goroutine. False: it did nothing, and
	// Register is called. Close does not wait for answers that are still owed.
	RegisterPromptly(ctx context.Context, in *Inbound, answer func(response []byte)) bool
}
