package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rollcall/bus"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/routing"
)

// Explain tells where a user is served, why, and what is registered. It asks the
// primary; when none answers it reads the log itself, and says so in Why. Errors:
// bus.ErrNotFound for a user who is not provisioned, bus.ErrUnavailable.
func Explain(ctx context.Context, b bus.Bus, a registrar.AOR) (Explanation, error) {
	e, err := b.Users().Get(ctx, string(a))
	if err != nil {
		return Explanation{}, fmt.Errorf("user %s: %w", a, err)
	}
	user, err := directory.Decode(a, e.Value)
	if err != nil {
		return Explanation{}, err
	}
	placement, err := ReadPlacement(ctx, b.Pool())
	if err != nil {
		return Explanation{}, err
	}
	x, err := explainAs(ctx, b, user, placement)
	if err != nil {
		return Explanation{}, err
	}
	if err := markLost(ctx, b, user, placement, x.Bindings); err != nil {
		return Explanation{}, fmt.Errorf("user %s: %w", a, err)
	}
	return x, nil
}

// explainAs is the primary's explanation, or that of the log.
func explainAs(ctx context.Context, b bus.Bus, user directory.User, p routing.Placement) (Explanation, error) {
	primary := p.Groups[user.Group].Primary
	if primary != "" {
		x, err := askToExplain(ctx, b, primary, user.AOR)
		if err == nil {
			return x, nil
		}
		if ctx.Err() != nil || errors.Is(err, bus.ErrUnavailable) {
			return Explanation{}, fmt.Errorf("user %s: ask %s: %w", user.AOR, primary, err)
		}
	}
	return explainFromLog(ctx, b, user, p)
}

func askToExplain(ctx context.Context, b bus.Bus, fe routing.FrontEnd, a registrar.AOR) (Explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	data, err := b.Request(ctx, string(fe), VerbExplain, []byte(a))
	if err != nil {
		return Explanation{}, err
	}
	var x Explanation
	if err := json.Unmarshal(data, &x); err != nil {
		return Explanation{}, err
	}
	if x.AOR != a {
		return Explanation{}, fmt.Errorf("%s answered for %q", fe, x.AOR)
	}
	if x.Bindings == nil {
		x.Bindings = []Binding{}
	}
	return x, nil
}

// explainFromLog reads what the bus has stored, which is all that is certain without a primary.
func explainFromLog(ctx context.Context, b bus.Bus, user directory.User, p routing.Placement) (Explanation, error) {
	copies := p.Groups[user.Group]
	x := NewExplanation(user.AOR, user.Group, p.Epoch, copies)
	switch {
	case p.Epoch == 0:
		x.Why = "the pool has not placed its groups yet"
	case copies.Primary == "":
		x.Why = "no Front End is left to be primary"
	default:
		x.Why = fmt.Sprintf("%s is primary by epoch %d, but does not answer", copies.Primary, p.Epoch)
	}
	x.Why += "; the bindings are read from the log"
	record, err := b.Bindings().Last(ctx, string(user.Group), string(user.AOR))
	if errors.Is(err, bus.ErrNotFound) {
		return x, nil
	}
	if err != nil {
		return Explanation{}, fmt.Errorf("user %s: read the log: %w", user.AOR, err)
	}
	set, err := registrar.DecodeSet(record.Data)
	if err != nil {
		return Explanation{}, fmt.Errorf("user %s: %w", user.AOR, err)
	}
	now := time.Now()
	x.Bindings = BindingsOf(set.Live(now, registrar.DefaultPolicy().Grace), now)
	return x, nil
}

// NewExplanation returns an explanation without a reason and bindings.
func NewExplanation(a registrar.AOR, g routing.Group, epoch routing.Epoch, c routing.Copies) Explanation {
	return Explanation{
		AOR: a, Group: g, Epoch: epoch,
		Primary: absent(c.Primary), Secondary: absent(c.Secondary), Tertiary: absent(c.Tertiary),
		Bindings: []Binding{},
	}
}

// BindingsOf returns bindings as they are explained. One that is kept past its expiry has 0 s left.
func BindingsOf(bindings []registrar.Binding, now time.Time) []Binding {
	all := make([]Binding, 0, len(bindings))
	for _, b := range bindings {
		left := max(0, b.Expires.Sub(now))
		all = append(all, Binding{
			Contact: b.URI, ExpiresIn: int((left + time.Second - 1) / time.Second),
			CallID: b.CallID, CSeq: b.CSeq, UserAgent: b.UserAgent, Path: b.Path, Flow: b.Flow,
		})
	}
	return all
}
