package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"rollcall/internal/control"
	"rollcall/loadtest/scenario"
	"rollcall/registrar"
)

// execWait bounds a command line of an event.
const execWait = time.Minute

// act does one event. What cannot be done is an error of the run, which goes on.
func (r *run) act(ctx context.Context, e scenario.Event) {
	phase := "after " + e.String()
	var err error
	switch e.Verb {
	case "exec":
		err = r.begin(ctx, phase, e.String())
		r.background(func() error { return r.exec(ctx, e.Arg) })
		if err == nil && e.TakesServer() {
			err = r.mark(ctx, nil, nil)
		}
	case "cut":
		if err = r.begin(ctx, phase, e.String()); err == nil {
			err = r.crew.same(ctx, request{Op: "cut", Cut: e.Share})
		}
	default:
		err = r.signal(ctx, e, phase)
	}
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", e, err))
	}
}

// begin starts a phase of the measurement at this moment, and notes what is done.
func (r *run) begin(ctx context.Context, phase, what string) error {
	r.marked = r.now()
	r.observer.did(r.marked, what, "")
	return r.crew.same(ctx, request{Op: "begin", Name: phase, At: r.marked})
}

// signal sends a Front End, or all, the signal of the event.
func (r *run) signal(ctx context.Context, e scenario.Event, phase string) error {
	st, err := r.pool.status(ctx)
	if err != nil {
		return err
	}
	var hit []control.FrontEnd
	var names []string
	for _, fe := range st.FrontEnds {
		if (e.Arg == "all" || string(fe.Name) == e.Arg) && fe.Pid > 1 && fe.State != "down" {
			hit = append(hit, fe)
			names = append(names, string(fe.Name))
		}
	}
	if len(hit) == 0 {
		return fmt.Errorf("no Front End %q is running; rollcall status shows them", e.Arg)
	}
	sig, ok := signalOf(e.Verb)
	if !ok {
		return fmt.Errorf("no signal does %q", e.Verb)
	}
	if err := r.begin(ctx, phase, e.String()); err != nil {
		return err
	}
	r.marked = r.now()
	var errs []error
	for _, fe := range hit {
		if err := syscall.Kill(fe.Pid, sig); err != nil {
			errs = append(errs, fmt.Errorf("%s (pid %d): %w", fe.Name, fe.Pid, err))
		}
	}
	if e.Verb == "pause" && e.For > 0 {
		r.background(func() error { return r.resume(ctx, hit, e) })
	}
	if e.TakesServer() {
		errs = append(errs, r.mark(ctx, names, st))
	}
	return errors.Join(errs...)
}

// signalOf returns the signal of an event. SIGTERM makes a Front End drain before it ends.
func signalOf(verb string) (sig syscall.Signal, ok bool) {
	switch verb {
	case "kill":
		return syscall.SIGKILL, true
	case "stop", "restart", "drain":
		return syscall.SIGTERM, true
	case "pause":
		return syscall.SIGSTOP, true
	case "resume":
		return syscall.SIGCONT, true
	}
	return 0, false
}

// resume lets paused Front Ends go on, after the time of the event or when the run ends.
func (r *run) resume(ctx context.Context, fes []control.FrontEnd, e scenario.Event) error {
	select {
	case <-time.After(e.For.D()):
	case <-ctx.Done():
	case <-r.over:
	}
	var errs []error
	for _, fe := range fes {
		errs = append(errs, syscall.Kill(fe.Pid, syscall.SIGCONT))
	}
	r.observer.did(r.now(), "resume "+e.Arg, "")
	return errors.Join(errs...)
}

// mark tells connectionless clients that their server was taken away at r.marked: those of
// these Front Ends, if the pool lets it be known, or else all.
func (r *run) mark(ctx context.Context, fes []string, st *control.Status) error {
	if r.sc.Transport != "udp" {
		return nil
	}
	req := request{Op: "mark", At: r.marked, All: true}
	if st != nil {
		hit, known := r.observer.clientsOf(fes, st, func(i int) registrar.AOR {
			user, _ := r.credentials(i)
			return registrar.AOR("sip:" + user + "@" + r.sc.Domain)
		}, r.sc.Clients)
		// Nearly all places must be known to tell them apart; the pool's events are not guaranteed to arrive.
		if known*10 >= r.sc.Clients*9 {
			req.All, req.Clients = false, hit
			r.notes = append(r.notes, fmt.Sprintf("%d UDP clients had their primary, or the Front End that took their REGISTERs, taken away, by the pool's own "+
				"events; the other %d count no gap (of %d the place is not known).", len(hit), r.sc.Clients-len(hit), r.sc.Clients-known))
		}
	}
	if req.All {
		r.notes = append(r.notes, "Which clients belonged to the server taken away is not known: all UDP clients count a gap.")
	}
	return r.crew.same(ctx, req)
}

func (r *run) exec(ctx context.Context, line string) error {
	ctx, cancel := context.WithTimeout(ctx, execWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("exec %s: %w: %s", line, err, strings.TrimSpace(out.String()))
	}
	return nil
}
