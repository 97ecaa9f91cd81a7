package control

import (
	"fmt"
	"strings"
	"time"

	"rollcall/routing"
)

// RenderEvent draws an event as one line, a placement's moves on lines of their own below.
func RenderEvent(e Event) string {
	at := e.Time
	if t, err := time.Parse(TimeFormat, e.Time); err == nil {
		at = t.Format("15:04:05.000")
	}
	line := fmt.Sprintf("%s %-5s %-12s ", at, e.FrontEnd, e.Type)
	switch e.Type {
	case EventPlacement:
		return line + renderPlacementEvent(e)
	case EventFrontEnd:
		line += fmt.Sprintf("%s is %s", e.Subject, e.State)
	case EventRegistration:
		line += fmt.Sprintf("%-12s %s %s", e.Change, e.AOR, e.Contact)
		if e.Expires > 0 {
			line += fmt.Sprintf(" for %d s", e.Expires)
		}
	case EventFlow:
		line += e.Change
	}
	if e.Flow != nil {
		line += fmt.Sprintf(" over %s from %s at %s", e.Flow.Transport, e.Flow.Remote, e.Flow.FrontEnd)
	}
	if why := join("; ", e.Cause, e.Reason); why != "" {
		line += " (" + why + ")"
	}
	return strings.TrimRight(line, " ")
}

func renderPlacementEvent(e Event) string {
	line := fmt.Sprintf("%-8s epoch %d", e.Phase, e.Epoch)
	if e.Cause != "" {
		line += ": " + e.Cause
	}
	if took := renderTimeline(e.Timeline); took != "" {
		line += " [" + took + "]"
	}
	for _, m := range e.Moves {
		line += fmt.Sprintf("\n    %s %s → %s", m.Group, renderCopies(m.From), renderCopies(m.To))
		if m.Why != "" {
			line += "  " + m.Why
		}
	}
	return line
}

// renderCopies draws copies in order: "fe1/fe2/fe3".
func renderCopies(c routing.Copies) string {
	return dash(c.Primary) + "/" + dash(c.Secondary) + "/" + dash(c.Tertiary)
}

// renderTimeline gives each step's distance from the first one known.
func renderTimeline(t Timeline) string {
	var start time.Time
	var parts []string
	for _, step := range []struct {
		name string
		at   time.Time
	}{
		{"last sign", t.LastSign}, {"suspected", t.Suspected}, {"decided", t.Decided},
		{"stored", t.Stored}, {"seen", t.Seen}, {"ready", t.Ready},
	} {
		switch {
		case step.at.IsZero():
		case start.IsZero():
			start = step.at
			parts = append(parts, step.name)
		default:
			parts = append(parts, fmt.Sprintf("%s +%.1f ms", step.name, step.at.Sub(start).Seconds()*1000))
		}
	}
	if len(parts) < 2 {
		return ""
	}
	return strings.Join(parts, ", ")
}

// RenderExplanation answers for people where a user is served, and why.
func RenderExplanation(x Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is in routing group %s (epoch %d).\n", x.AOR, x.Group, x.Epoch)
	fmt.Fprintf(&b, "  primary    %s\n  secondary  %s\n  tertiary   %s\n", dash(value(x.Primary)), dash(value(x.Secondary)), dash(value(x.Tertiary)))
	if x.Why != "" {
		fmt.Fprintf(&b, "  why        %s\n", x.Why)
	}
	if len(x.Bindings) == 0 {
		b.WriteString("\nNo bindings: no phone of this user is registered.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "\n%s:\n", count(len(x.Bindings), "binding"))
	for _, c := range x.Bindings {
		fmt.Fprintf(&b, "  %s\n    expires in %d s · Call-ID %s · CSeq %d\n", c.Contact, c.ExpiresIn, c.CallID, c.CSeq)
		fmt.Fprintf(&b, "    over %s from %s, %s\n", c.Flow.Transport, c.Flow.Remote, renderFlow(c))
		if c.UserAgent != "" {
			fmt.Fprintf(&b, "    %s\n", c.UserAgent)
		}
		for _, p := range c.Path {
			fmt.Fprintf(&b, "    Path %s\n", p)
		}
	}
	return b.String()
}

// renderFlow says whether a client can still be reached the way it came.
func renderFlow(c Binding) string {
	switch {
	case c.Lost && c.Flow.Stream():
		return fmt.Sprintf("was connected to %s: that connection is gone until the phone comes back", c.Flow.FrontEnd)
	case c.Lost:
		return fmt.Sprintf("came to %s, which is down", c.Flow.FrontEnd)
	case c.Flow.Stream():
		return "connected to " + c.Flow.FrontEnd
	}
	return "came to " + c.Flow.FrontEnd
}

// join joins the parts that are there.
func join(separator string, parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, separator)
}
