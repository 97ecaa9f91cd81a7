package supervisor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
)

const (
	lookEvery   = time.Second            // at the pool, when nothing is heard
	lookNotMore = 100 * time.Millisecond // often than this, whatever is heard
	maxNotices  = 6                      // kept below the matrix
)

// screen shows the pool: on a terminal the matrix, drawn over itself, and below it the newest
// notices; elsewhere a plain line for each change.
type screen struct {
	out      io.Writer
	terminal bool
	size     func() (columns, rows int)
	status   func(context.Context) (control.Status, error)

	mu      sync.Mutex // guards what follows, and writing to out
	notices []string
	drawn   int    // lines to go back before drawing again
	last    string // plain line or picture written last
	wake    chan struct{}
}

func newScreen(o Options, status func(context.Context) (control.Status, error)) *screen {
	return &screen{out: o.Out, terminal: o.Terminal, size: o.Size, status: status, wake: make(chan struct{}, 1)}
}

// say shows a notice.
func (s *screen) say(format string, args ...any) {
	line := time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	s.mu.Lock()
	if s.terminal {
		s.notices = append(s.notices, line)
		if len(s.notices) > maxNotices {
			s.notices = s.notices[1:]
		}
	} else {
		fmt.Fprintln(s.out, line)
	}
	s.mu.Unlock()
	s.look()
}

// look makes run look at the pool soon.
func (s *screen) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run shows the pool until ctx ends.
func (s *screen) run(ctx context.Context, b bus.Bus) error {
	err := control.Watch(ctx, b, func(e control.Event) {
		switch e.Type {
		case control.EventPlacement:
			if e.Phase == "decided" {
				s.say("%s: epoch %d: %s", e.FrontEnd, e.Epoch, e.Cause)
			}
			s.look()
		case control.EventFrontEnd:
			s.look()
		}
	}, control.EventPlacement, control.EventFrontEnd)
	if err != nil {
		return err
	}
	for {
		if status, err := s.status(ctx); err == nil {
			s.show(status)
		} else if ctx.Err() == nil {
			s.trouble(err)
		}
		if !pause(ctx, lookNotMore) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-time.After(lookEvery):
		}
	}
}

func (s *screen) show(status control.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		if line := plainLine(status); line != s.last {
			s.last = line
			fmt.Fprintln(s.out, time.Now().Format("15:04:05.000 ")+line)
		}
		return
	}
	columns, rows := s.size()
	text := control.RenderStatus(status, control.Layout{Width: columns})
	lines := append(strings.Split(strings.TrimRight(text, "\n"), "\n"), "")
	lines = append(lines, s.notices...)
	s.draw(fit(lines, columns, rows))
}

func (s *screen) trouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := "no status: " + err.Error()
	if s.terminal {
		columns, rows := s.size()
		s.draw(fit([]string{line}, columns, rows))
		return
	}
	if line == s.last {
		return
	}
	s.last = line
	fmt.Fprintln(s.out, time.Now().Format("15:04:05.000 ")+line)
}

// draw replaces what was drawn before: up, clear to the end of the screen, write.
func (s *screen) draw(lines []string) {
	picture := strings.Join(lines, "\n")
	if picture == s.last {
		return
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	b.WriteString("\x1b[J")
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	s.drawn, s.last = len(lines), picture
	_, _ = io.WriteString(s.out, b.String())
}

// fit cuts lines to the size of the terminal: a line that wraps, or scrolls away, could not be drawn over.
func fit(lines []string, columns, rows int) []string {
	if rows > 2 && len(lines) > rows-1 {
		left := len(lines) - (rows - 2)
		lines = append(lines[:rows-2:rows-2], fmt.Sprintf("… %d lines more: 'rollcall status' shows all", left))
	}
	for i, line := range lines {
		if runes := []rune(line); columns > 1 && len(runes) > columns {
			lines[i] = string(runes[:columns-1]) + "…"
		}
	}
	return lines
}

// plainLine is a status in one line.
func plainLine(s control.Status) string {
	parts := []string{fmt.Sprintf("epoch %d", s.Epoch)}
	for _, fe := range s.FrontEnds {
		parts = append(parts, fmt.Sprintf("%s %s %d/%d/%d", fe.Name, fe.State, fe.Primaries, fe.Secondaries, fe.Tertiaries))
	}
	return strings.Join(parts, " · ")
}

// pause waits; it reports false when ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
