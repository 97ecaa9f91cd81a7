package natsbus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"rollcall/bus"
)

const (
	dialTimeout   = 2 * time.Second
	redialMin     = 50 * time.Millisecond
	redialMax     = 250 * time.Millisecond
	pingEvery     = time.Second // with two unanswered, the connection is lost
	pingsMax      = 2
	complainEvery = 10 * time.Second
)

// link is one connection to the bus, restored for as long as it is open.
type link struct {
	nc  *nats.Conn
	mux *mux
	log *slog.Logger

	complaints rate.Sometimes
	closed     sync.Once

	mu      sync.Mutex
	closing bool
	session context.Context // ends when the next connection is made
	renew   context.CancelFunc
}

// connect makes a connection, and tries until ctx ends if the bus can't be reached.
func connect(ctx context.Context, o Options, suffix string, log *slog.Logger) (*link, error) {
	l := &link{log: log, complaints: rate.Sometimes{Interval: complainEvery}}
	l.session, l.renew = context.WithCancel(context.Background())
	opts := append(o.natsOptions(),
		nats.Name(o.Name+suffix),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { l.lost(err) }),
		nats.ReconnectHandler(l.restored),
		nats.ErrorHandler(l.complain),
	)
	for {
		nc, err := nats.Connect(strings.Join(o.URLs, ","), opts...)
		if err == nil {
			l.nc = nc
			break
		}
		if !passing(err) {
			return nil, fmt.Errorf("connect to the bus at %s: %w", o.addresses(), err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the bus at %s: %w: %w", o.addresses(), bus.ErrUnavailable, err)
		case <-time.After(redialDelay(0)):
		}
	}
	mux, err := newMux(l.nc)
	if err != nil {
		l.close()
		return nil, err
	}
	l.mu.Lock()
	l.mux = mux
	l.mu.Unlock()
	return l, nil
}

// passing reports whether another attempt to connect may succeed by itself.
func passing(err error) bool {
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.As(err, &verify), errors.As(err, &authority), errors.As(err, &host):
		return false
	}
	// Bad URLs, unreadable credentials and the like fail before the network is tried.
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || isNetError(err)
}

func (o Options) natsOptions() []nats.Option {
	opts := []nats.Option{
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(redialDelay),
		nats.IgnoreAuthErrorAbort(),
		// What can't be sent now must fail now: the caller has already told the client so.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsMax),
	}
	if o.CredsFile != "" {
		opts = append(opts, nats.UserCredentials(o.CredsFile))
	}
	if o.User != "" {
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	}
	if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.TLS.CAFile != "" {
		opts = append(opts, nats.RootCAs(o.TLS.CAFile))
	}
	if o.TLS.CertFile != "" || o.TLS.KeyFile != "" {
		opts = append(opts, nats.ClientCert(o.TLS.CertFile, o.TLS.KeyFile))
	}
	return opts
}

// addresses are the URLs without passwords, for people.
func (o Options) addresses() string {
	var list []string
	for _, s := range o.URLs {
		u, err := url.Parse(s)
		if err != nil {
			list = append(list, "(malformed URL)")
			continue
		}
		u.User = nil
		list = append(list, u.String())
	}
	return strings.Join(list, ", ")
}

func redialDelay(int) time.Duration { return redialMin + rand.N(redialMax-redialMin) }

func (l *link) connected() bool { return l.nc.IsConnected() }

func (l *link) lost(err error) {
	l.mu.Lock()
	closing, mux := l.closing, l.mux
	l.mu.Unlock()
	if mux != nil {
		mux.failAll()
	}
	if !closing {
		l.log.Warn("bus lost", "err", err)
	}
}

func (l *link) restored(nc *nats.Conn) {
	l.mu.Lock()
	renew := l.renew
	l.session, l.renew = context.WithCancel(context.Background())
	l.mu.Unlock()
	renew()
	l.log.Info("bus restored", "url", nc.ConnectedUrlRedacted())
}

// thisSession returns the context that ends at the next reconnection.
func (l *link) thisSession() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// complain logs what nats.go reports by the way, for example that a receiver is too slow.
func (l *link) complain(_ *nats.Conn, sub *nats.Subscription, err error) {
	l.complaints.Do(func() {
		subject := ""
		if sub != nil {
			subject = sub.Subject
		}
		l.log.Warn("bus complains", "subject", subject, "err", err)
	})
}

func (l *link) close() { l.closed.Do(l.closeOnce) }

func (l *link) closeOnce() {
	l.mu.Lock()
	l.closing = true
	renew := l.renew
	l.mu.Unlock()
	renew()
	l.nc.Close()
	if l.mux != nil {
		l.mux.close()
	}
}
