package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// standsWithin is how long a pool that is just starting, or just dying, is waited for.
	standsWithin = 2 * time.Second
	findEvery    = 50 * time.Millisecond
)

// ErrNoPool is what FindPool answers when none runs there.
var ErrNoPool = errors.New("no pool is running")

// Pool is what the file pool.json in the data directory of a running pool says.
type Pool struct {
	Pid     int       `json:"pid"`
	Started time.Time `json:"started"`
	SIP     string    `json:"sip"`
	HTTP    string    `json:"http,omitempty"`
	Link    Link      `json:"bus"`
}

// FindPool returns how to reach the pool that runs at a data directory ("": DefaultDir). One that
// is starting is waited for, up to two seconds. Errors: ErrNoPool.
func FindPool(ctx context.Context, path string) (Pool, error) {
	var err error
	if path == "" {
		if path, err = DefaultDir(); err != nil {
			return Pool{}, err
		}
	}
	if path == Temp {
		return Pool{}, errors.New("--data :temp: is a new directory each time: give the one that 'rollcall up' printed")
	}
	if path, err = filepath.Abs(path); err != nil {
		return Pool{}, err
	}
	for end := time.Now().Add(standsWithin); ; {
		// The lock first: what is read while somebody holds it is not what a killed pool left behind.
		if !locked(path) {
			return Pool{}, fmt.Errorf("%w at %s: start one with 'rollcall up'", ErrNoPool, path)
		}
		p, err := readPool(path)
		switch {
		case err == nil && !p.Link.refused(ctx):
			return p, nil
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return Pool{}, err
		case time.Now().After(end) && err == nil:
			return Pool{}, fmt.Errorf("the pool at %s (pid %d) has no bus at %s: if it does not stop by itself, kill it and start it again", path, p.Pid, p.Link.URL)
		case time.Now().After(end):
			return Pool{}, fmt.Errorf("the pool at %s is still starting: try again in a moment", path)
		}
		if !pause(ctx, findEvery) {
			return Pool{}, ctx.Err()
		}
	}
}

// locked reports whether a pool holds the directory.
func locked(path string) bool {
	lock, err := os.Open(filepath.Join(path, lockFile))
	if err != nil {
		return false
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

func readPool(path string) (Pool, error) {
	data, err := os.ReadFile(filepath.Join(path, poolFile))
	if err != nil {
		return Pool{}, err
	}
	var p Pool
	if err := json.Unmarshal(data, &p); err != nil {
		return Pool{}, fmt.Errorf("%s is damaged: %w: stop the pool and start it again", filepath.Join(path, poolFile), err)
	}
	return p, nil
}

// refused reports whether certainly nobody listens at the bus's only address. Opening a
// connection would go on trying for a while.
func (l Link) refused(ctx context.Context) bool {
	u, err := url.Parse(l.URL)
	if err != nil || u.Port() == "" {
		return false // several, or none that can be tried
	}
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
