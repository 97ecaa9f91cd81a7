package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"rollcall/loadtest/measure"
	"rollcall/loadtest/phone"
)

// Write puts report.json, report.html and gaps.csv into dir, which is made if need be.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"report.json": r.writeJSON, "report.html": r.HTML, "gaps.csv": r.writeGaps} {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

func (r *Report) writeGaps(w io.Writer) error {
	if _, err := fmt.Fprintln(w, "client,cause,lost_s,first_attempt_ms,gap_ms,recovery_ms,attempts,state"); err != nil {
		return err
	}
	rows := slices.Clone(r.rows)
	slices.SortFunc(rows, func(a, b phone.Gap) int { return cmp.Or(cmp.Compare(a.Lost, b.Lost), cmp.Compare(a.Client, b.Client)) })
	for _, g := range rows {
		first, gap, recovery, state := "", "", "", "unobserved"
		if g.First != phone.Never {
			first, state = msText(float64((g.First-g.Lost).Microseconds())/1000), "open"
		}
		if g.Back != phone.Never {
			gap, recovery, state = msText(float64((g.Back-g.Lost).Microseconds())/1000), msText(float64((g.Back-g.First).Microseconds())/1000), "back"
		}
		if _, err := fmt.Fprintf(w, "%d,%s,%.6f,%s,%s,%s,%d,%s\n", g.Client, g.Cause, g.Lost.Seconds(), first, gap, recovery, g.Attempts, state); err != nil {
			return err
		}
	}
	return nil
}

func msText(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// Summary writes what a person wants to know at the end of a run.
func (r *Report) Summary(w io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateRows = false
	t.AppendHeader(table.Row{"ms", "count", "min", "p50", "p90", "p99", "p99.9", "max"})
	for _, row := range []struct {
		name string
		s    measure.Stats
	}{{"gap: loss → 200 OK", r.Gap}, {"  loss → first attempt", r.FirstAttempt}, {"  first attempt → 200 OK", r.Recovery},
		{"first registration", r.Register}, {"re-registration", r.ReRegister}, {"connect", r.Connect}} {
		s := row.s
		t.AppendRow(table.Row{row.name, s.Count, round(s.Min), round(s.P50), round(s.P90), round(s.P99), round(s.P999), round(s.Max)})
	}
	right := []table.ColumnConfig{}
	for i := 2; i <= 8; i++ {
		right = append(right, table.ColumnConfig{Number: i, Align: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d clients registered at the end; %d gaps, %d closed, %d open, %d unobserved\n%s\n",
		r.Registered, r.Clients, r.Gaps.Started, r.Gaps.Closed, r.Gaps.Open, r.Gaps.Unobserved, t.Render())
	fmt.Fprintf(&b, "registrations %.0f/s, re-registrations %.0f/s; answers %s; failures %s\n",
		r.RegistrationRate, r.ReregistrationRate, counts(r.Responses), counts(r.Failures))
	fmt.Fprintf(&b, "generator: lag p99 %.1f ms, %.0f %% of the machine's CPU, %d worker processes%s\n",
		r.Generator.LagP99, 100*r.Generator.CPUShare, r.Generator.Workers, map[bool]string{true: "  TAINTED: " + r.Generator.Why}[r.Generator.Tainted])
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "error: %s\n", e)
	}
	for _, v := range r.FailIf {
		fmt.Fprintf(&b, "fail-if %s: %s (%g)\n", v.Condition, map[bool]string{true: "HELD", false: "no"}[v.Held], v.Value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func round(v float64) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// counts writes a counter: "200×1000 401×3".
func counts(m map[string]int) string {
	if len(m) == 0 {
		return "none"
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s×%d", k, m[k])
	}
	return b.String()
}

// Compare writes two runs side by side.
func Compare(w io.Writer, nameA string, a *Report, nameB string, b *Report) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"", nameA, nameB, "change"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight}})
	row := func(name string, x, y float64) { t.AppendRow(table.Row{name, round(x), round(y), change(x, y)}) }
	whole := func(name string, x, y int) { t.AppendRow(table.Row{name, x, y, change(float64(x), float64(y))}) }
	whole("clients", a.Clients, b.Clients)
	whole("registered at the end", a.Registered, b.Registered)
	whole("gaps", a.Gaps.Started, b.Gaps.Started)
	whole("gaps open", a.Gaps.Open, b.Gaps.Open)
	for _, s := range []struct {
		name string
		x, y measure.Stats
	}{{"gap", a.Gap, b.Gap}, {"first attempt", a.FirstAttempt, b.FirstAttempt}, {"recovery", a.Recovery, b.Recovery},
		{"register", a.Register, b.Register}, {"re-register", a.ReRegister, b.ReRegister}} {
		row(s.name+" p50 ms", s.x.P50, s.y.P50)
		row(s.name+" p99 ms", s.x.P99, s.y.P99)
		row(s.name+" max ms", s.x.Max, s.y.Max)
	}
	row("registrations/s", a.RegistrationRate, b.RegistrationRate)
	row("re-registrations/s", a.ReregistrationRate, b.ReregistrationRate)
	row("generator lag p99 ms", a.Generator.LagP99, b.Generator.LagP99)
	row("generator CPU %", 100*a.Generator.CPUShare, 100*b.Generator.CPUShare)
	out := t.Render() + "\n"
	for _, x := range []struct {
		name string
		r    *Report
	}{{nameA, a}, {nameB, b}} {
		if x.r.Generator.Tainted {
			out += fmt.Sprintf("%s is tainted: %s\n", x.name, x.r.Generator.Why)
		}
	}
	if a.Machine.CPU != b.Machine.CPU || a.Machine.CPUs != b.Machine.CPUs {
		out += "The machines differ: compare with care.\n"
	}
	if a.Scenario != nil && b.Scenario != nil && (a.Scenario.Transport != b.Scenario.Transport || a.Clients != b.Clients) {
		out += "The scenarios differ in transport or clients.\n"
	}
	_, err := io.WriteString(w, out)
	return err
}

func change(x, y float64) string {
	switch {
	case x == y:
		return "="
	case x == 0:
		return "new"
	}
	return fmt.Sprintf("%+.1f %%", 100*(y-x)/x)
}
