package natsbus

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	serverReadyWait   = 20 * time.Second
	serverMemoryMax   = 256 << 20
	serverStoreMax    = 16 << 30
	serverSyncDefault = time.Second
)

// ServerOptions of an embedded bus.
type ServerOptions struct {
	Dir  string // holds what is stored, and a lock; made if missing
	Host string // 127.0.0.1 if empty
	Port int    // 0: any free one

	// With a Token, or a User and Password, nobody else may connect.
	Token    string
	User     string
	Password string

	// What is stored is written to the file at once, and forced to the disk every
	// SyncInterval (1 s if 0), or before each acknowledgement with SyncAlways. So a killed
	// process loses nothing; a host that loses power loses up to an interval, unless
	// other servers hold replicas.
	SyncInterval time.Duration
	SyncAlways   bool

	Cluster Cluster

	Log *slog.Logger // nil: silent
}

// Cluster makes the server one of several. Each has the same Name, a ServerName of its
// own, and the cluster addresses (nats://HOST:PORT) of the others as Routes.
type Cluster struct {
	Name       string // "rollcall" if empty
	ServerName string
	Host       string // the server's Host if empty
	Port       int    // 0: not in a cluster
	Routes     []string
}

// Server is an embedded bus in this process. It keeps at most 256 MB of streams in
// memory (ours are on disk) and 16 GB on disk, and touches no signals.
type Server struct {
	server *server.Server
	opts   ServerOptions
	lock   *os.File

	shutdown sync.Once
}

// StartServer runs a server until Shutdown. A directory serves one process at a time.
func StartServer(o ServerOptions) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := runServer(o)
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Server{server: s, opts: o, lock: lock}, nil
}

func (o *ServerOptions) complete() error {
	if o.Dir == "" {
		return errors.New("the bus needs a directory for what it stores")
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.SyncInterval <= 0 {
		o.SyncInterval = serverSyncDefault
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Cluster.Port == 0 {
		return nil
	}
	if o.Cluster.ServerName == "" {
		return errors.New("a bus in a cluster needs a server name of its own")
	}
	if o.Cluster.Name == "" {
		o.Cluster.Name = DefaultNamespace
	}
	if o.Cluster.Host == "" {
		o.Cluster.Host = o.Host
	}
	return nil
}

// lockDir makes dir and takes it for this process, until the returned file is closed.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the bus: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the bus: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another process runs a bus in %s: stop it, or use another directory", dir)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

func runServer(o ServerOptions) (*server.Server, error) {
	for _, a := range []struct {
		host string
		port int
	}{{o.Host, o.Port}, {o.Cluster.Host, o.Cluster.Port}} {
		if err := checkPort(a.host, a.port); err != nil {
			return nil, err
		}
	}
	opts, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	log := &serverLog{log: o.Log}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if !s.ReadyForConnections(serverReadyWait) {
		s.Shutdown()
		s.WaitForShutdown()
		if fatal := log.fatal(); fatal != "" {
			return nil, fmt.Errorf("bus: %s", fatal)
		}
		return nil, fmt.Errorf("bus at %s is not ready after %v", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)), serverReadyWait)
	}
	return s, nil
}

// checkPort finds a taken port early: the server itself only logs it.
func checkPort(host string, port int) error {
	if port == 0 {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d at %s is in use: stop who uses it, or choose another for the bus", port, host)
	}
	if err != nil {
		return fmt.Errorf("listen for the bus: %w", err)
	}
	return l.Close()
}

func (o ServerOptions) serverOptions() (*server.Options, error) {
	opts := &server.Options{
		Host:                   o.Host,
		Port:                   o.Port,
		Authorization:          o.Token,
		Username:               o.User,
		Password:               o.Password,
		JetStream:              true,
		StoreDir:               o.Dir,
		JetStreamMaxMemory:     serverMemoryMax,
		JetStreamMaxStore:      serverStoreMax,
		SyncInterval:           o.SyncInterval,
		SyncAlways:             o.SyncAlways,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	}
	if o.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if o.Cluster.Port == 0 {
		return opts, nil
	}
	opts.ServerName = o.Cluster.ServerName
	opts.Cluster = server.ClusterOpts{Name: o.Cluster.Name, Host: o.Cluster.Host, Port: o.Cluster.Port}
	for _, r := range o.Cluster.Routes {
		u, err := url.Parse(r)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("route %q of the bus: nats://HOST:PORT is needed", r)
		}
		opts.Routes = append(opts.Routes, u)
	}
	return opts, nil
}

// ClientURL is the address for Options.URLs, without credentials.
func (s *Server) ClientURL() string {
	host := s.opts.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(s.Port()))
}

// Port is the port that clients connect to.
func (s *Server) Port() int { return s.server.Addr().(*net.TCPAddr).Port }

// Shutdown stops the server and waits until all is on disk. It may be called again.
func (s *Server) Shutdown() {
	s.shutdown.Do(func() {
		s.server.Shutdown()
		s.server.WaitForShutdown()
		s.lock.Close()
	})
}

// serverLog passes the server's log on, and remembers why it can't run.
type serverLog struct {
	log *slog.Logger

	mu        sync.Mutex
	lastFatal string
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastFatal
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	l.lastFatal = fmt.Sprintf(format, v...)
	l.mu.Unlock()
	l.Errorf(format, v...)
}

func (l *serverLog) Errorf(format string, v ...any) { l.log.Error("bus: " + fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any)  { l.log.Warn("bus: " + fmt.Sprintf(format, v...)) }
func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("bus: " + fmt.Sprintf(format, v...))
}
func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}
