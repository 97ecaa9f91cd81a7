package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"rollcall/loadtest"
	"rollcall/loadtest/phone"
	"rollcall/loadtest/scenario"
)

// screen shows a run as it goes: in place on a terminal, as plain lines elsewhere.
type screen struct {
	w        io.Writer
	quiet    bool
	terminal bool
	columns  int
	drawn    int // lines of the picture on the terminal
	lastLine time.Duration
	curve    []int // registered clients, one value each time
}

const (
	plainEvery = 2 * time.Second
	maxCurve   = 600
)

func newScreen(w io.Writer, quiet bool) *screen {
	s := &screen{w: w, quiet: quiet, columns: 80, lastLine: -plainEvery}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.terminal = true
		if c, _, err := term.GetSize(int(f.Fd())); err == nil && c > 20 {
			s.columns = c
		}
	}
	return s
}

// begin says what will run.
func (s *screen) begin(sc *scenario.Scenario) {
	if s.quiet {
		return
	}
	where := strings.Join(sc.Targets, ", ")
	if sc.Pool != nil {
		where = fmt.Sprintf("a throw-away pool of %d Front Ends", sc.Pool.FrontEnds)
	}
	fmt.Fprintf(s.w, "%s: %d clients over %s against %s\n", sc.Name, sc.Clients, strings.ToUpper(sc.Transport), where)
}

// progress takes the state of the run in; it is called from one goroutine.
func (s *screen) progress(p loadtest.Progress) {
	if s.quiet {
		return
	}
	if p.Event != "" {
		s.wipe()
		fmt.Fprintf(s.w, "%7.1f s  >> %s\n", p.At.Seconds(), p.Event)
		return
	}
	if len(s.curve) < maxCurve {
		s.curve = append(s.curve, p.Live.Bound)
	} else {
		s.curve = append(s.curve[1:], p.Live.Bound)
	}
	if s.terminal {
		s.draw(p)
		return
	}
	if p.At-s.lastLine >= plainEvery {
		s.lastLine = p.At
		fmt.Fprintln(s.w, plainLine(p))
	}
}

func plainLine(p loadtest.Progress) string {
	return fmt.Sprintf("%7.1f s  %-22s registered %d/%d  gaps open %d, back %d  200s %.0f/s  failed %d  register p99 %.1f ms  lag p99 %.1f ms",
		p.At.Seconds(), p.Phase, p.Live.Bound, p.Clients, p.Live.Gaps, p.Live.GapsClosed, p.OKRate, p.Live.Failed, p.Live.P99, p.Live.LagP99)
}

func (s *screen) draw(p loadtest.Progress) {
	s.wipe()
	l := p.Live
	var states []string
	for st, n := range l.States {
		if n > 0 {
			states = append(states, fmt.Sprintf("%s %d", phone.State(st), n))
		}
	}
	lines := []string{
		fmt.Sprintf("%6.1f / %.1f s  %s", p.At.Seconds(), p.End.Seconds(), p.Phase),
		fmt.Sprintf("registered %d of %d   %s", l.Bound, p.Clients, Sparkline(s.curve, max(s.columns-40, 10), p.Clients)),
		strings.Join(states, "  "),
		fmt.Sprintf("200s %.0f/s  failed %d  lost %d  gaps open %d, back %d  register p99 %.1f ms  own lag p99 %.1f ms",
			p.OKRate, l.Failed, l.Lost, l.Gaps, l.GapsClosed, l.P99, l.LagP99),
	}
	for _, line := range lines {
		if r := []rune(line); len(r) >= s.columns {
			line = string(r[:s.columns-1])
		}
		fmt.Fprintln(s.w, line)
	}
	s.drawn = len(lines)
}

// wipe takes the picture off the terminal.
func (s *screen) wipe() {
	if s.drawn > 0 {
		fmt.Fprintf(s.w, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *screen) end() { s.wipe() }

// Sparkline draws values against top in so many columns; several values in a column show their lowest, so that no dip is lost.
func Sparkline(values []int, columns, top int) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	if len(values) == 0 || top <= 0 {
		return ""
	}
	n := min(columns, len(values))
	var b strings.Builder
	for c := range n {
		low := values[len(values)*c/n]
		for _, v := range values[len(values)*c/n : len(values)*(c+1)/n] {
			low = min(low, v)
		}
		b.WriteRune(bars[min(max(low*(len(bars)-1)/top, 0), len(bars)-1)])
	}
	return b.String()
}
