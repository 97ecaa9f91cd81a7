package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Condition that makes a run fail: "gap.p99 > 2s", "registered_end < clients", "generator.tainted".
type Condition struct {
	Text        string
	left, right operand
	op          string // "" for a bare yes or no
}

type operand struct {
	path   string
	number float64
	ms     bool // a time, in milliseconds
}

// Verdict on a condition.
type Verdict struct {
	Condition string  `json:"condition"`
	Held      bool    `json:"held"`
	Value     float64 `json:"value"` // of the left side
}

// ParseCondition reads a condition and checks its names against the form of report.json.
func ParseCondition(s string) (Condition, error) {
	c := Condition{Text: strings.TrimSpace(s)}
	left, right := c.Text, ""
	for _, op := range []string{"<=", ">=", "==", "!=", "<", ">"} {
		if l, r, ok := strings.Cut(c.Text, op); ok {
			left, right, c.op = strings.TrimSpace(l), strings.TrimSpace(r), op
			break
		}
	}
	var err error
	if c.left, err = parseOperand(left); err != nil {
		return c, fmt.Errorf("--fail-if %q: %w", s, err)
	}
	if c.op != "" {
		if c.right, err = parseOperand(right); err != nil {
			return c, fmt.Errorf("--fail-if %q: %w", s, err)
		}
	}
	if c.left.path == "" {
		return c, fmt.Errorf("--fail-if %q: the left side is a name of report.json, as in gap.p99 > 2s", s)
	}
	return c, nil
}

func parseOperand(s string) (operand, error) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return operand{number: v}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return operand{number: float64(d) / float64(time.Millisecond), ms: true}, nil
	}
	o := operand{path: s}
	empty, err := (&Report{}).tree()
	if err != nil {
		return o, err
	}
	_, err = lookup(empty, s)
	return o, err
}

// tree is the report as its JSON.
func (r *Report) tree() (map[string]any, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var t map[string]any
	return t, json.Unmarshal(b, &t)
}

// counters are the objects whose names come from what happens, so that any name is right and an absent one is 0.
func counters() []string {
	return []string{"failures", "connect_failures", "responses", "odd_answers", "lost_connections", "requests_answered", "by_cause"}
}

// lookup finds a name such as gap.p99 (or gap_ms.p99), responses.503, generator.tainted. Of a
// counter as a whole, the sum counts.
func lookup(t map[string]any, path string) (float64, error) {
	var at any = t
	open := false
	for name := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok && !(open && at == nil) {
			return 0, fmt.Errorf("report.json has no %q", path)
		}
		next, ok := m[name]
		if !ok {
			if next, ok = m[name+"_ms"]; ok {
				name += "_ms"
			}
		}
		if !ok && open {
			return 0, nil
		}
		if !ok {
			return 0, fmt.Errorf("report.json has no %q", path)
		}
		open = slices.Contains(counters(), name)
		at = next
	}
	switch v := at.(type) {
	case float64:
		return v, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case nil, map[string]any:
		m, _ := v.(map[string]any)
		if !open {
			break
		}
		sum := 0.0
		for _, n := range m {
			f, _ := n.(float64)
			sum += f
		}
		return sum, nil
	}
	return 0, fmt.Errorf("report.json: %q is no number", path)
}

// Judge evaluates conditions and keeps the verdicts in the report; it reports whether any held.
func (r *Report) Judge(conditions []Condition) (bool, error) {
	t, err := r.tree()
	if err != nil {
		return false, err
	}
	any := false
	for _, c := range conditions {
		left, err := lookup(t, c.left.path)
		if err != nil {
			return false, fmt.Errorf("--fail-if %q: %w", c.Text, err)
		}
		right := c.right.number
		if c.right.path != "" {
			if right, err = lookup(t, c.right.path); err != nil {
				return false, fmt.Errorf("--fail-if %q: %w", c.Text, err)
			}
		}
		if c.right.ms && strings.HasSuffix(c.left.path, "_s") && !strings.HasSuffix(c.left.path, "per_s") {
			right /= 1000 // a name that ends in seconds
		}
		held := holds(left, c.op, right)
		r.FailIf = append(r.FailIf, Verdict{c.Text, held, left})
		any = any || held
	}
	return any, nil
}

func holds(l float64, op string, r float64) bool {
	switch op {
	case "<":
		return l < r
	case ">":
		return l > r
	case "<=":
		return l <= r
	case ">=":
		return l >= r
	case "==":
		return l == r
	case "!=":
		return l != r
	}
	return l != 0
}
