package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// tail is a slog.Handler that keeps the newest lines, stamped with virtual time.
type tail struct {
	start time.Time
	with  string
	to    *tail // who keeps the lines of this one; nil: itself

	mu    sync.Mutex // guards lines
	lines []string
}

const tailMax = 400

func (t *tail) note(line string) {
	if t.to != nil {
		t.to.note(line)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) >= 2*tailMax {
		t.lines = append([]string(nil), t.lines[len(t.lines)-tailMax:]...)
	}
	t.lines = append(t.lines, fmt.Sprintf("%12.6f %s", time.Since(t.start).Seconds(), line))
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-tailMax):], "\n")
}

// Enabled implements slog.Handler.
func (t *tail) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (t *tail) Handle(_ context.Context, r slog.Record) error {
	line := t.with + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	t.note(line)
	return nil
}

// WithAttrs implements slog.Handler.
func (t *tail) WithAttrs(attrs []slog.Attr) slog.Handler {
	to, with := t, t.with
	if t.to != nil {
		to = t.to
	}
	for _, a := range attrs {
		with += a.Value.String() + ": "
	}
	return &tail{start: t.start, with: with, to: to}
}

// WithGroup implements slog.Handler; Front Ends use no groups.
func (t *tail) WithGroup(string) slog.Handler { return t }
