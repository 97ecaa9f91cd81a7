package control

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"unicode/utf8"

	"rollcall/routing"
)

// Layout says how much room a rendering has.
type Layout struct {
	Width  int  // columns; 0 means 80
	Groups bool // one line for each group, however many there are
}

// fewGroups is how many groups get a line each without being asked for.
const fewGroups = 16

// RenderStatus draws a status for people: a summary, the Front Ends, and the matrix of who
// holds which copies (P primary, S secondary, T tertiary). Many groups are drawn
// together when their copies are in the same places.
func RenderStatus(s Status, l Layout) string {
	if l.Width <= 0 {
		l.Width = 80
	}
	var b strings.Builder
	b.WriteString(summary(s))
	b.WriteString("\n\n")
	b.WriteString(renderFrontEnds(s.FrontEnds, l.Width))
	if len(s.Groups) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	if l.Groups || len(s.Groups) <= fewGroups {
		b.WriteString(renderMatrix(s, groupLines(s.Groups), l.Width))
	} else {
		b.WriteString(renderMatrix(s, patternLines(s.Groups), l.Width))
	}
	return b.String()
}

func renderFrontEnds(fes []FrontEnd, width int) string {
	t := grid{head: []string{"FRONT END", "STATE", "PRI", "SEC", "TER", "BINDINGS", "FLOWS", "PID", "SIP"}, left: []int{0, 1, 8}}
	pool := poolAddresses(fes)
	for _, fe := range fes {
		pid := "-"
		if fe.Pid != 0 && fe.State != routing.Down {
			pid = fmt.Sprint(fe.Pid)
		}
		t.add(string(fe.Name), string(fe.State), fmt.Sprint(fe.Primaries), fmt.Sprint(fe.Secondaries), fmt.Sprint(fe.Tertiaries),
			number(fe.Bindings, fe.Silent), number(fe.Flows, fe.Silent), pid, sipShort(fe.SIP, pool))
	}
	text := t.draw(width)
	if len(pool) > 0 {
		text += "and together at " + sipShort(pool, nil) + "\n"
	}
	return text
}

// poolAddresses returns the addresses that several Front Ends share.
func poolAddresses(fes []FrontEnd) []string {
	var shared []string
	seen := map[string]int{}
	for _, fe := range fes {
		for _, s := range fe.SIP {
			if seen[s]++; seen[s] == 2 {
				shared = append(shared, s)
			}
		}
	}
	return shared
}

// sipShort joins the transports of each address, those in without left out: "127.0.0.1:5071 udp,tcp".
func sipShort(sip, without []string) string {
	var order []string
	transports := map[string][]string{}
	for _, s := range sip {
		if slices.Contains(without, s) {
			continue
		}
		transport, address, ok := strings.Cut(s, ":")
		if _, _, err := net.SplitHostPort(address); !ok || err != nil {
			transport, address = "", s
		}
		if _, seen := transports[address]; !seen {
			order = append(order, address)
		}
		transports[address] = append(transports[address], transport)
	}
	for i, a := range order {
		order[i] = strings.TrimSpace(a + " " + strings.Join(transports[a], ","))
	}
	return strings.Join(order, ", ")
}

// matrixLine is one row of the matrix: a group, or all groups that have their copies in the same places.
type matrixLine struct {
	ids             []routing.Group
	copies          routing.Copies
	users, bindings int
	uncounted       bool
}

func groupLines(groups []Group) []matrixLine {
	lines := make([]matrixLine, 0, len(groups))
	for _, g := range groups {
		lines = append(lines, matrixLine{[]routing.Group{g.ID}, copiesOf(g), g.Users, g.Bindings, g.Uncounted})
	}
	return lines
}

// patternLines puts groups with the same copies into one line, in order of their first group.
func patternLines(groups []Group) []matrixLine {
	var lines []matrixLine
	at := map[routing.Copies]int{}
	for _, g := range groups {
		c := copiesOf(g)
		i, ok := at[c]
		if !ok {
			i = len(lines)
			at[c] = i
			lines = append(lines, matrixLine{copies: c})
		}
		lines[i].ids = append(lines[i].ids, g.ID)
		lines[i].users += g.Users
		lines[i].bindings += g.Bindings
		lines[i].uncounted = lines[i].uncounted || g.Uncounted
	}
	return lines
}

// renderMatrix has a column for each Front End, or, when those don't fit, one for each kind of copy.
func renderMatrix(s Status, lines []matrixLine, width int) string {
	columns := 0
	for _, fe := range s.FrontEnds {
		columns += utf8.RuneCountInString(string(fe.Name)) + 2
	}
	wide := columns+36 <= width
	many := len(lines) < len(s.Groups)
	var t grid
	if !many {
		t.head, t.left = []string{"GROUP"}, []int{0}
	}
	if wide {
		for _, fe := range s.FrontEnds {
			t.head = append(t.head, string(fe.Name))
		}
	} else {
		first := len(t.head)
		t.head = append(t.head, "PRIMARY", "SECONDARY", "TERTIARY")
		t.left = append(t.left, first, first+1, first+2)
	}
	t.head = append(t.head, "USERS", "BINDINGS")
	if many {
		t.head = append(t.head, "GROUPS", "")
		t.left = append(t.left, len(t.head)-1)
	}
	for _, line := range lines {
		t.add(line.cells(s.FrontEnds, wide, many)...)
	}
	return t.draw(width)
}

// cells are a line's, in the order of renderMatrix's columns.
func (l matrixLine) cells(fes []FrontEnd, wide, many bool) []string {
	var cells []string
	if !many {
		cells = append(cells, string(l.ids[0]))
	}
	if wide {
		for _, fe := range fes {
			cells = append(cells, letter(l.copies, fe.Name))
		}
	} else {
		cells = append(cells, dash(l.copies.Primary), dash(l.copies.Secondary), dash(l.copies.Tertiary))
	}
	cells = append(cells, number(l.users, l.uncounted), number(l.bindings, l.uncounted))
	if many {
		cells = append(cells, fmt.Sprint(len(l.ids)), ranges(l.ids))
	}
	return cells
}

func letter(c routing.Copies, fe routing.FrontEnd) string {
	switch c.Role(fe) {
	case routing.RolePrimary:
		return "P"
	case routing.RoleSecondary:
		return "S"
	case routing.RoleTertiary:
		return "T"
	}
	return "·"
}

func dash(fe routing.FrontEnd) string {
	if fe == "" {
		return "-"
	}
	return string(fe)
}

func copiesOf(g Group) routing.Copies {
	return routing.Copies{Primary: value(g.Primary), Secondary: value(g.Secondary), Tertiary: value(g.Tertiary)}
}

func value(fe *routing.FrontEnd) routing.FrontEnd {
	if fe == nil {
		return ""
	}
	return *fe
}

// ranges joins ids, consecutive numbers as "g03–g07".
func ranges(ids []routing.Group) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && follows(string(ids[j]), string(ids[j+1])) {
			j++
		}
		switch {
		case j >= i+2:
			parts = append(parts, fmt.Sprintf("%s–%s", ids[i], ids[j]))
		default:
			for k := i; k <= j; k++ {
				parts = append(parts, string(ids[k]))
			}
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}

// follows reports whether b is a with its last number one higher.
func follows(a, b string) bool {
	var x, y int
	if _, err := fmt.Sscanf(a, "g%d", &x); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(b, "g%d", &y); err != nil {
		return false
	}
	return y == x+1
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
