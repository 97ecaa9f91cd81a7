package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"rollcall/loadtest/measure"
)

//go:embed page.html
var pageHTML string // never written

// maxEventRows bounds the table of events in the page; report.json has them all.
const maxEventRows = 200

type named struct {
	Name string
	S    measure.Stats
}

// HTML writes the report as one page that needs nothing else: style and plots are within.
func (r *Report) HTML(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"ms": round, "time": human, "counts": counts, "upper": strings.ToUpper, "add": func(a, b int) int { return a + b },
	}).Parse(pageHTML)
	if err != nil {
		return err
	}
	spec, err := json.MarshalIndent(r.Scenario, "", "  ")
	if err != nil {
		return err
	}
	d := struct {
		R                                        *Report
		Registered, Rates, Histogram, CDF, Codes template.HTML
		Times                                    []named
		Events                                   []Event
		EventsLeft                               int
		CPU                                      float64
		GB                                       int64
		Scenario                                 string
	}{R: r, CPU: 100 * r.Generator.CPUShare, GB: r.Machine.Memory >> 30, Scenario: string(spec),
		Times: []named{{"gap: loss → 200 OK", r.Gap}, {"– loss → first attempt", r.FirstAttempt}, {"– first attempt → 200 OK", r.Recovery},
			{"first registration", r.Register}, {"re-registration", r.ReRegister}, {"connect", r.Connect}}}
	for _, p := range []struct {
		to   *template.HTML
		draw func() (string, error)
	}{{&d.Registered, r.plotRegistered}, {&d.Rates, r.plotRates}, {&d.Histogram, r.plotGapHistogram}, {&d.CDF, r.plotGapCDF}, {&d.Codes, r.plotCodes}} {
		s, err := p.draw()
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		*p.to = template.HTML(s) // drawn by us, from numbers and response codes only
	}
	d.Events = r.Events[:min(len(r.Events), maxEventRows)]
	d.EventsLeft = len(r.Events) - len(d.Events)
	return page.Execute(w, d)
}

// human writes milliseconds for the eye: "480 µs", "12.3 ms", "1.20 s".
func human(ms float64) string {
	switch {
	case ms == 0:
		return "0"
	case ms < 1:
		return fmt.Sprintf("%.0f µs", ms*1000)
	case ms < 1000:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.2f s", ms/1000)
}
