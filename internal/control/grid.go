package control

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// grid is a table without lines, cut to a width.
type grid struct {
	head []string
	left []int // columns aligned to the left; the others to the right
	rows []table.Row
}

func (g *grid) add(cells ...string) {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		row[i] = c
	}
	g.rows = append(g.rows, row)
}

// draw wraps the last column, which is the only long one, so that lines fit.
func (g *grid) draw(width int) string {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	head := make(table.Row, len(g.head))
	used := 0
	configs := make([]table.ColumnConfig, len(g.head))
	for i, h := range g.head {
		head[i] = h
		configs[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if i < len(g.head)-1 {
			used += g.columnWidth(i) + 2
		}
	}
	for _, i := range g.left {
		configs[i].Align, configs[i].AlignHeader = text.AlignLeft, text.AlignLeft
	}
	last := &configs[len(configs)-1]
	last.WidthMax, last.WidthMaxEnforcer = max(12, width-used), text.WrapSoft
	w.SetColumnConfigs(configs)
	w.AppendHeader(head)
	w.AppendRows(g.rows)
	lines := strings.Split(w.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (g *grid) columnWidth(i int) int {
	widest := text.StringWidth(g.head[i])
	for _, row := range g.rows {
		widest = max(widest, text.StringWidth(row[i].(string)))
	}
	return widest
}
