package control

import (
	"fmt"

	"rollcall/routing"
)

// totals are what a summary tells of a pool.
type totals struct {
	up, users, bindings int
	uncounted           int // groups whose primary did not answer
	lost                int // groups with no copy at a Front End that is there
	leaderless          int // groups that have such a copy, but not the primary
	single              int // groups with one such copy
}

func totalsOf(s Status) totals {
	var t totals
	there := map[routing.FrontEnd]bool{}
	for _, fe := range s.FrontEnds {
		there[fe.Name] = fe.State != routing.Down
		if fe.State == routing.Up {
			t.up++
		}
	}
	for _, g := range s.Groups {
		t.users += g.Users
		t.bindings += g.Bindings
		if g.Uncounted {
			t.uncounted++
		}
		copies := 0
		for _, fe := range []*routing.FrontEnd{g.Primary, g.Secondary, g.Tertiary} {
			if fe != nil && there[*fe] {
				copies++
			}
		}
		switch {
		case copies == 0:
			t.lost++
		case g.Primary == nil || !there[*g.Primary]:
			t.leaderless++
		case copies == 1:
			t.single++
		}
	}
	return t
}

// summary is the line that says whether all is well, and what is below it when it isn't.
func summary(s Status) string {
	t := totalsOf(s)
	line := fmt.Sprintf("epoch %d · %d of %d Front Ends up · %s · %s", s.Epoch, t.up, len(s.FrontEnds), count(len(s.Groups), "group"), t.counts(len(s.Groups)))
	switch {
	case s.Epoch == 0:
		line += "\nThe pool has not placed its groups yet: it waits for its Front Ends."
	case t.up == 0 && len(s.FrontEnds) > 0 && t.lost == len(s.Groups):
		line += "\nNo Front End answers: users and bindings unknown, nobody is served.\nWhat was registered is stored: start a Front End."
	case t.lost > 0:
		line += fmt.Sprintf("\n%s without any copy: nobody serves their users. Start another Front End.", count(t.lost, "group"))
	case t.leaderless > 0:
		line += fmt.Sprintf("\n%s without a primary: another copy is about to be promoted.", count(t.leaderless, "group"))
	case t.single > 0:
		line += fmt.Sprintf("\n%s with one copy only: start another Front End.", count(t.single, "group"))
	}
	if t.uncounted > 0 && t.uncounted < len(s.Groups) {
		line += fmt.Sprintf("\n%s not counted: no primary answers for them.", count(t.uncounted, "group"))
	}
	return line
}

// counts are users and bindings, as far as they are known.
func (t totals) counts(groups int) string {
	switch {
	case t.uncounted > 0 && t.uncounted == groups:
		return "? users · ? bindings"
	case t.uncounted > 0:
		return fmt.Sprintf("%d+ users · %d+ bindings", t.users, t.bindings)
	}
	return fmt.Sprintf("%s · %s", count(t.users, "user"), count(t.bindings, "binding"))
}

// number is a question mark when it is not known.
func number(n int, unknown bool) string {
	if unknown {
		return "?"
	}
	return fmt.Sprint(n)
}
