package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Temp as a data directory means a new one that is removed at the end.
const Temp = ":temp:"

const (
	lockFile = "lock"
	poolFile = "pool.json"
)

// DefaultDir is the data directory when none is given: rollcall under
// $XDG_STATE_HOME, or under ~/.local/state.
func DefaultDir() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "rollcall"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no data directory: %w: give one with --data DIR", err)
	}
	return filepath.Join(home, ".local", "state", "rollcall"), nil
}

// Dir is the data directory of a running pool, locked against a second one.
type Dir struct {
	Path string
	temp bool
	lock *os.File
}

// OpenDir creates the directory if it must and locks it. Path may be Temp, or "" for DefaultDir.
func OpenDir(path string) (*Dir, error) {
	d := &Dir{Path: path}
	var err error
	switch path {
	case Temp:
		d.temp = true
		d.Path, err = os.MkdirTemp("", "rollcall-")
	case "":
		d.Path, err = DefaultDir()
	}
	if err != nil {
		return nil, err
	}
	if d.Path, err = filepath.Abs(d.Path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w: give another one with --data DIR", err)
	}
	if d.lock, err = os.OpenFile(d.file(lockFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("data directory: %w: give another one with --data DIR", err)
	}
	if err := d.take(); err != nil {
		d.lock.Close()
		return nil, err
	}
	// What a killed pool left behind would send everybody to a bus that is not there any more.
	if err := os.Remove(d.file(poolFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.lock.Close()
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return d, nil
}

// take locks the directory. A client that looks whether a pool runs holds the lock for a moment,
// and a pool that was killed lets go of it a moment after.
func (d *Dir) take() error {
	for try := 0; ; try++ {
		err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", d.Path, err)
		case try >= 10:
			who := ""
			if link, err := readPool(d.Path); err == nil {
				who = fmt.Sprintf(" (pid %d)", link.Pid)
			}
			return fmt.Errorf("a pool is running at %s already%s: stop it, or start this one with another --data", d.Path, who)
		default:
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// WritePool leaves word of how to reach the pool, readable for the user only.
func (d *Dir) WritePool(p Pool) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	next := d.file(poolFile + ".next")
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("leave word of how to reach the pool: %w", err)
	}
	return os.Rename(next, d.file(poolFile))
}

// Close takes the word back, unlocks the directory, and removes a temporary one.
func (d *Dir) Close() error {
	err := os.Remove(d.file(poolFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if d.temp {
		err = errors.Join(err, os.RemoveAll(d.Path))
	}
	return errors.Join(err, d.lock.Close())
}

func (d *Dir) file(name string) string { return filepath.Join(d.Path, name) }
