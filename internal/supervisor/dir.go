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

// Pool is what the file pool.json in the data directory of a running pool says.
type Pool struct {
	Pid     int       `json:"pid"`
	Started time.Time `json:"started"`
	SIP     string    `json:"sip"`
	HTTP    string    `json:"http,omitempty"`
	Link    Link      `json:"bus"`
}

// FindPool returns how to reach the pool that runs at a data directory ("": DefaultDir).
func FindPool(path string) (Pool, error) {
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
	none := fmt.Errorf("no pool is running at %s: start one with 'rollcall up'", path)
	p, err := readPool(path)
	if errors.Is(err, os.ErrNotExist) {
		return Pool{}, none
	}
	if err != nil {
		return Pool{}, err
	}
	// What a killed pool left behind is not locked any more.
	lock, err := os.Open(filepath.Join(path, lockFile))
	if err != nil {
		return Pool{}, none
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return Pool{}, none
	}
	return p, nil
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
