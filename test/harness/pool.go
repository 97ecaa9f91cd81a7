package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
)

// Domain that all pools of tests serve.
const Domain = "example.test"

// User is a name and a password.
type User struct{ Name, Password string }

// Users makes n users: u00000, u00001, … with passwords of their own.
func Users(n int) []User {
	users := make([]User, n)
	for i := range users {
		users[i] = User{Name: fmt.Sprintf("u%05d", i), Password: fmt.Sprintf("secret-%d", i)}
	}
	return users
}

// PoolOptions says what pool to start; zero values mean the defaults of `rollcall up`.
type PoolOptions struct {
	Binary    string
	Dir       string // for the pool's data and the users file
	Ports     *Ports
	FrontEnds int // 3 when 0
	Groups    int
	Auth      string // "digest" or "off"
	Users     []User
	Args      []string // further flags of `rollcall up`
}

// Pool is a running `rollcall up`.
type Pool struct {
	Binary    string
	SIP       string // the pool address, host:port
	HTTP      string
	Data      string
	FrontEnds int
	Up        *Process // without it the pool is over: `rollcall up`, or the bus of Parts
	args      []string
	reach     []string // how the client commands find it
}

// StartPool starts `rollcall up` and returns at once; see Ready.
func StartPool(o PoolOptions) (*Pool, error) {
	if o.FrontEnds == 0 {
		o.FrontEnds = 3
	}
	base, err := o.Ports.Pool(o.FrontEnds)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		Binary: o.Binary, SIP: local(base), HTTP: local(base + 1),
		Data: filepath.Join(o.Dir, "data"), FrontEnds: o.FrontEnds,
	}
	p.reach = []string{"--data", p.Data}
	p.args = []string{"up", "--frontends", strconv.Itoa(o.FrontEnds), "--sip", p.SIP, "--http", p.HTTP,
		"--data", p.Data, "--domain", Domain}
	if o.Groups > 0 {
		p.args = append(p.args, "--groups", strconv.Itoa(o.Groups))
	}
	if o.Auth != "" {
		p.args = append(p.args, "--auth", o.Auth)
	}
	if len(o.Users) > 0 {
		file := filepath.Join(o.Dir, "users.csv")
		if err := WriteUsers(file, o.Users); err != nil {
			return nil, err
		}
		p.args = append(p.args, "--users", file)
	}
	p.args = append(p.args, o.Args...)
	return p, p.Start()
}

// Start starts the pool's processes again with the same ports and data after Up has ended.
func (p *Pool) Start() error {
	up, err := Start(Spec{Path: p.Binary, Args: p.args})
	if err != nil {
		return err
	}
	p.Up = up
	return nil
}

// Stop ends the pool as Ctrl-C does; an exit code other than 0 is an error.
func (p *Pool) Stop() error {
	select {
	case <-p.Up.Exited():
		return nil
	default:
	}
	if err := p.Up.Stop(20 * time.Second); err != nil {
		return err
	}
	if code := p.Up.ExitCode(); code != 0 {
		return fmt.Errorf("rollcall up ended with exit code %d; its last output:\n%s", code, lastLines(p.Up.Output(), 20))
	}
	return nil
}

// WriteUsers writes a users file for --users: CSV of user,password.
func WriteUsers(file string, users []User) error {
	var b bytes.Buffer
	for _, u := range users {
		fmt.Fprintf(&b, "%s@%s,%s\n", u.Name, Domain, u.Password)
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// Run runs a client command against the pool and returns its standard output.
func (p *Pool) Run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.Binary, append(args, p.reach...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("rollcall %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}

// Status is `rollcall status --json`.
func (p *Pool) Status(ctx context.Context) (control.Status, error) {
	var s control.Status
	return s, p.ask(ctx, &s, "status", "--json")
}

// Explain is `rollcall explain USER --json`.
func (p *Pool) Explain(ctx context.Context, user string) (control.Explanation, error) {
	var e control.Explanation
	return e, p.ask(ctx, &e, "explain", user+"@"+Domain, "--json")
}

func (p *Pool) ask(ctx context.Context, into any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := p.Run(ctx, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("rollcall %s: %w in %q", strings.Join(args, " "), err, out)
	}
	return nil
}

// WaitFor asks for the status until check has no complaint, and fails with the last complaint when
// the time is over or `rollcall up` has ended.
func (p *Pool) WaitFor(ctx context.Context, within time.Duration, what string, check func(control.Status) error) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	complaint := errors.New("not asked yet")
	for {
		s, err := p.Status(ctx)
		if err == nil {
			err = check(s)
		}
		if err == nil {
			return s, nil
		}
		if ctx.Err() == nil {
			complaint = err
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("%s: not within %s: %w", what, within, complaint)
		case <-p.Up.Exited():
			return s, fmt.Errorf("%s: rollcall up has ended (exit code %d):\n%s", what, p.Up.ExitCode(), lastLines(p.Up.Output(), 20))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Ready waits until every Front End is up and every group has all the copies it can have.
func (p *Pool) Ready(ctx context.Context, within time.Duration) (control.Status, error) {
	return p.WaitFor(ctx, within, "pool ready", func(s control.Status) error { return complete(s, p.FrontEnds) })
}

func complete(s control.Status, frontEnds int) error {
	if len(s.FrontEnds) != frontEnds {
		return fmt.Errorf("%d of %d Front Ends known", len(s.FrontEnds), frontEnds)
	}
	for _, fe := range s.FrontEnds {
		if fe.State != routing.Up {
			return fmt.Errorf("%s is %s", fe.Name, fe.State)
		}
	}
	if len(s.Groups) == 0 {
		return errors.New("no groups placed")
	}
	for _, g := range s.Groups {
		if g.Primary == nil || frontEnds > 1 && g.Secondary == nil || frontEnds > 2 && g.Tertiary == nil {
			return fmt.Errorf("group %s lacks a copy", g.ID)
		}
	}
	return nil
}

// FrontEnd finds one Front End in a status.
func FrontEnd(s control.Status, name routing.FrontEnd) (control.FrontEnd, error) {
	for _, fe := range s.FrontEnds {
		if fe.Name == name {
			return fe, nil
		}
	}
	return control.FrontEnd{}, fmt.Errorf("no Front End %s in the status", name)
}

// Own is a Front End's own host:port for a transport, which it does not share with the others.
func (p *Pool) Own(fe control.FrontEnd, transport string) (string, error) {
	for _, a := range fe.SIP {
		if rest, ok := strings.CutPrefix(a, transport+":"); ok && rest != p.SIP {
			return rest, nil
		}
	}
	return "", fmt.Errorf("%s has no %s address of its own in %v", fe.Name, transport, fe.SIP)
}

// Primaries says which Front End is primary of each user, by the user's name.
func (p *Pool) Primaries(ctx context.Context) (map[string]routing.FrontEnd, error) {
	s, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	primary := map[routing.Group]routing.FrontEnd{}
	for _, g := range s.Groups {
		if g.Primary != nil {
			primary[g.ID] = *g.Primary
		}
	}
	out, err := p.Run(ctx, "user", "list", "--json", "--limit", "0")
	if err != nil {
		return nil, err
	}
	users := map[string]routing.FrontEnd{}
	for line := range bytes.Lines(out) {
		var u struct {
			AOR   string        `json:"aor"`
			Group routing.Group `json:"group"`
		}
		if err := json.Unmarshal(line, &u); err != nil {
			return nil, fmt.Errorf("rollcall user list: %w in %q", err, line)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(u.AOR, "sip:"), "@")
		users[name] = primary[u.Group]
	}
	return users, nil
}

// Kill ends a Front End's process as kill -9 does and returns the moment just before.
func (p *Pool) Kill(ctx context.Context, name routing.FrontEnd) (time.Time, error) {
	return p.Signal(ctx, name, syscall.SIGKILL)
}

// Signal sends a signal to a Front End's process and returns the moment just before.
func (p *Pool) Signal(ctx context.Context, name routing.FrontEnd, sig syscall.Signal) (time.Time, error) {
	s, err := p.Status(ctx)
	if err != nil {
		return time.Time{}, err
	}
	fe, err := FrontEnd(s, name)
	if err != nil {
		return time.Time{}, err
	}
	if err := p.owns(fe.Pid); err != nil {
		return time.Time{}, fmt.Errorf("signal %s: %w", name, err)
	}
	at := time.Now()
	if err := syscall.Kill(fe.Pid, sig); err != nil {
		return at, fmt.Errorf("signal %s (pid %d): %w", name, fe.Pid, err)
	}
	return at, nil
}

// owns makes sure that a pid is a process of this very program before it is sent a signal.
func (p *Pool) owns(pid int) error {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Errorf("pid %d: %w", pid, err)
	}
	if exe != p.Binary {
		return fmt.Errorf("pid %d is %s, not %s", pid, exe, p.Binary)
	}
	return nil
}

// Logs are what the pool's processes wrote: `rollcall up` itself and each log file in its data directory, by name.
func (p *Pool) Logs() (map[string]string, error) {
	logs := map[string]string{"up": p.Up.Output()}
	files, err := filepath.Glob(filepath.Join(p.Data, "*.log"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		logs[filepath.Base(f)] = string(text)
	}
	return logs, nil
}
