package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"rollcall/internal/control"
)

// Watch is a running `rollcall watch --json`.
type Watch struct {
	process *Process
	events  chan control.Event
	broken  chan error // one error: a line that is no event
}

// Watch starts to listen to the pool's events. Up to 100,000 wait to be read; more are lost.
func (p *Pool) Watch() (*Watch, error) {
	r, w := io.Pipe()
	process, err := Start(Spec{Path: p.Binary, Args: append([]string{"watch", "--json"}, p.reach...), Stdout: w})
	if err != nil {
		return nil, err
	}
	watch := &Watch{process: process, events: make(chan control.Event, 100_000), broken: make(chan error, 1)}
	go func() {
		<-process.Exited()
		w.Close()
	}()
	go watch.read(r)
	return watch, nil
}

func (w *Watch) read(r io.Reader) {
	defer close(w.events)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e control.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			select {
			case w.broken <- fmt.Errorf("watch: %w in %q", err, lines.Text()):
			default:
			}
			continue
		}
		select {
		case w.events <- e:
		default:
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line too long must not block the program
}

// Next returns the next event that fits, within a time.
func (w *Watch) Next(ctx context.Context, within time.Duration, what string, fits func(control.Event) bool) (control.Event, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return control.Event{}, fmt.Errorf("watch for %s: it ended: %s", what, lastLines(w.process.Output(), 5))
			}
			if fits(e) {
				return e, nil
			}
		case err := <-w.broken:
			return control.Event{}, err
		case <-timer.C:
			return control.Event{}, fmt.Errorf("watch for %s: no such event within %s", what, within)
		case <-ctx.Done():
			return control.Event{}, ctx.Err()
		}
	}
}

// Close stops listening.
func (w *Watch) Close() error { return w.process.Stop(5 * time.Second) }

// Drain forgets the events that have arrived so far.
func (w *Watch) Drain() {
	for {
		select {
		case _, ok := <-w.events:
			if !ok {
				return
			}
		default:
			return
		}
	}
}
