package registrar

import "time"

// Live returns the bindings that have not expired: Expires + grace is after now.
func (s Set) Live(now time.Time, grace time.Duration) []Binding {
	if !s.anyExpired(now, grace) {
		return s.Bindings
	}
	var live []Binding
	for _, b := range s.Bindings {
		if b.live(now, grace) {
			live = append(live, b)
		}
	}
	return live
}

func (b *Binding) live(now time.Time, grace time.Duration) bool {
	return b.Expires.Add(grace).After(now)
}

func (s Set) anyExpired(now time.Time, grace time.Duration) bool {
	for i := range s.Bindings {
		if !s.Bindings[i].live(now, grace) {
			return true
		}
	}
	return false
}

// Expire leaves out what has had its time: expired bindings and subscriptions, old removals
// and nonces. Only bindings make changes. s itself stays as it is.
func (s Set) Expire(now time.Time, grace time.Duration) (next Set, changes []Change) {
	next = s
	if s.anyExpired(now, grace) {
		next, changes = s.Drop(func(b Binding) bool { return !b.live(now, grace) }, Expired, now)
	}
	next = next.dropExpired(now, grace)
	next.Removed = recentRemovals(s.Removed, now)
	next.Nonces = recentNonces(s.Nonces, now)
	return next, changes
}

// Drop removes the bindings that match, for a reason that is not their REGISTER's:
// a connection that closed, an operator. s itself stays as it is.
func (s Set) Drop(match func(Binding) bool, kind ChangeKind, now time.Time) (Set, []Change) {
	next := Set{Removed: recentRemovals(s.Removed, now), Nonces: recentNonces(s.Nonces, now), Subscriptions: s.Subscriptions}
	var changes []Change
	for _, b := range s.Bindings {
		if match(b) {
			changes = append(changes, Change{Kind: kind, Binding: b})
		} else {
			next.Bindings = append(next.Bindings, b)
		}
	}
	return next, changes
}

// Until is when nothing in the set matters any longer: the time to keep its record for.
// A set without bindings still keeps a late REGISTER from undoing its removal, and a
// recorded one from being played again.
func (s Set) Until(grace time.Duration) time.Time {
	var until time.Time
	for i := range s.Bindings {
		if t := s.Bindings[i].Expires.Add(grace); t.After(until) {
			until = t
		}
	}
	for i := range s.Removed {
		if s.Removed[i].Until.After(until) {
			until = s.Removed[i].Until
		}
	}
	for i := range s.Nonces {
		if s.Nonces[i].Until.After(until) {
			until = s.Nonces[i].Until
		}
	}
	for i := range s.Subscriptions {
		if t := s.Subscriptions[i].Expires.Add(grace); t.After(until) {
			until = t
		}
	}
	return until
}

// recentRemovals and recentNonces return what is still to be remembered; the slice is s itself if all is.
func recentRemovals(s []Removal, now time.Time) []Removal {
	return recent(s, func(r *Removal) bool { return r.Until.After(now) })
}

func recentNonces(s []NonceUse, now time.Time) []NonceUse {
	return recent(s, func(n *NonceUse) bool { return n.Until.After(now) })
}

func recent[T any](s []T, counts func(*T) bool) []T {
	old := 0
	for i := range s {
		if !counts(&s[i]) {
			old++
		}
	}
	if old == 0 {
		return s[:len(s):len(s)]
	}
	var rest []T
	for i := range s {
		if counts(&s[i]) {
			rest = append(rest, s[i])
		}
	}
	return rest
}

// newest keeps the last n elements.
func newest[T any](s []T, n int) []T {
	if len(s) > n {
		return s[len(s)-n:]
	}
	return s
}
