package routing

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Describe draws the placement as text: who holds how much, then each group's
// copies. The same placement gives the same text.
func (p Placement) Describe() string {
	var b strings.Builder
	b.WriteString(p.Summary())
	if len(p.Groups) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "group\tprimary\tsecondary\ttertiary")
	for _, g := range p.SortedGroups() {
		c := p.Groups[g]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g, dash(c.Primary), dash(c.Secondary), dash(c.Tertiary))
	}
	w.Flush() // a strings.Builder never fails
	return b.String()
}

// Summary is the first part of Describe: one line for each member.
func (p Placement) Summary() string {
	type counts [3]int
	n := map[FrontEnd]counts{}
	zoned := false
	for _, c := range p.Groups {
		for i, fe := range c.List() {
			k := n[fe]
			k[i]++
			n[fe] = k
		}
	}
	for _, m := range p.Members {
		zoned = zoned || m.Zone != ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(&b, "epoch %d, %d groups\n", p.Epoch, len(p.Groups))
	header := "front end\tstate\tprimaries\tsecondaries\ttertiaries\tcopies"
	if zoned {
		header += "\tzone"
	}
	fmt.Fprintln(w, header)
	for _, fe := range p.SortedMembers() {
		m, k := p.Members[fe], n[fe]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d", fe, m.State, k[0], k[1], k[2], k[0]+k[1]+k[2])
		if zoned {
			fmt.Fprintf(w, "\t%s", m.Zone)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}

func dash(fe FrontEnd) string {
	if fe == "" {
		return "-"
	}
	return string(fe)
}
