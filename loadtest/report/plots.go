package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // registers the format "svg"

	"rollcall/loadtest/phone"
)

// The colours of the plots, told apart by the colour-blind too.
func blue() color.Color   { return color.RGBA{0x1f, 0x5f, 0xa8, 0xff} }
func orange() color.Color { return color.RGBA{0xd9, 0x6c, 0x06, 0xff} }
func red() color.Color    { return color.RGBA{0xb3, 0x1b, 0x1b, 0xff} }
func grey() color.Color   { return color.RGBA{0x77, 0x77, 0x77, 0xff} }

const plotWidth, plotHeight = 9.2 * vg.Inch, 3 * vg.Inch

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	sans := func(f *font.Font, size vg.Length) { f.Variant, f.Size = "Sans", size }
	p.X.Label.Text, p.Y.Label.Text = x, y
	sans(&p.X.Label.TextStyle.Font, 11)
	sans(&p.Y.Label.TextStyle.Font, 11)
	sans(&p.X.Tick.Label.Font, 10)
	sans(&p.Y.Tick.Label.Font, 10)
	sans(&p.Legend.TextStyle.Font, 10)
	p.Legend.Top = true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe6}, color.Gray{0xe6}
	p.Add(grid)
	return p
}

// svg draws p as an element to be put into a page.
func svg(p *plot.Plot) (string, error) {
	w, err := p.WriterTo(plotWidth, plotHeight, "svg")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return "", err
	}
	s := b.String()
	if i := strings.Index(s, "<svg"); i >= 0 {
		s = s[i:]
	}
	return s, nil
}

func line(xy plotter.XYs, c color.Color, width vg.Length) (*plotter.Line, error) {
	l, err := plotter.NewLine(xy)
	if err != nil {
		return nil, err
	}
	l.Color, l.Width = c, width
	return l, nil
}

// marks draws the events that someone caused as upright lines.
func (r *Report) marks(p *plot.Plot, top float64) error {
	for _, e := range r.Events {
		c, width := grey(), vg.Points(0.8)
		if e.Source == "storm" {
			c, width = red(), vg.Points(1.4)
		} else if !strings.HasPrefix(e.What, "placement decided") && !strings.HasPrefix(e.What, "placement ready") {
			continue
		}
		l, err := line(plotter.XYs{{X: e.At, Y: 0}, {X: e.At, Y: top}}, c, width)
		if err != nil {
			return err
		}
		l.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(l)
	}
	return nil
}

func (r *Report) plotRegistered() (string, error) {
	p := newPlot("seconds since the first client", "clients registered")
	xy := plotter.XYs{{X: 0, Y: 0}}
	top := 1.0
	for i, n := range r.Series.Registered {
		xy = append(xy, plotter.XY{X: float64(i+1) * r.Series.Step, Y: float64(n)})
		top = max(top, float64(n))
	}
	l, err := line(xy, blue(), vg.Points(1.8))
	if err != nil {
		return "", err
	}
	p.Add(l)
	p.Y.Min, p.Y.Max = 0, top*1.05
	if err := r.marks(p, top*1.05); err != nil {
		return "", err
	}
	return svg(p)
}

func (r *Report) plotRates() (string, error) {
	p := newPlot("seconds since the first client", "per second")
	per := max(int(math.Round(1/r.Series.Step)), 1) // steps in a second
	top := 1.0
	for _, s := range []struct {
		name   string
		values []int
		c      color.Color
	}{{"attempts", r.Series.Attempts, orange()}, {"200 OK", r.Series.OK, blue()}, {"failures", r.Series.Failed, red()}} {
		var xy plotter.XYs
		for i := 0; i < len(s.values); i += per {
			n := 0
			for _, v := range s.values[i:min(i+per, len(s.values))] {
				n += v
			}
			xy = append(xy, plotter.XY{X: (float64(i) + float64(per)/2) * r.Series.Step, Y: float64(n)})
			top = max(top, float64(n))
		}
		if len(xy) == 0 {
			continue
		}
		l, err := line(xy, s.c, vg.Points(1.5))
		if err != nil {
			return "", err
		}
		l.StepStyle = plotter.MidStep
		p.Add(l)
		p.Legend.Add(s.name, l)
	}
	p.Y.Min, p.Y.Max = 0, top*1.05
	if err := r.marks(p, top*1.05); err != nil {
		return "", err
	}
	return svg(p)
}

// closedGaps in milliseconds, sorted.
func (r *Report) closedGaps() []float64 {
	var v []float64
	for _, g := range r.rows {
		if g.Back != phone.Never {
			v = append(v, float64((g.Back-g.Lost).Microseconds())/1000)
		}
	}
	slices.Sort(v)
	return v
}

func (r *Report) plotGapHistogram() (string, error) {
	v := r.closedGaps()
	if len(v) == 0 {
		return "", nil
	}
	p := newPlot("gap, ms", "clients")
	h, err := plotter.NewHist(plotter.Values(v), 50)
	if err != nil {
		return "", err
	}
	if v[0] == v[len(v)-1] { // all alike: a histogram without width would not be seen
		h.Bins = []plotter.HistogramBin{{Min: v[0] - 0.5, Max: v[0] + 0.5, Weight: float64(len(v))}}
		h.Width = 1
	}
	h.FillColor, h.LineStyle.Color = blue(), color.White
	p.Add(h)
	p.X.Min = 0
	return svg(p)
}

func (r *Report) plotGapCDF() (string, error) {
	v := r.closedGaps()
	if len(v) == 0 {
		return "", nil
	}
	p := newPlot("gap, ms", "% of clients back")
	xy := plotter.XYs{{X: 0, Y: 0}}
	step := max(len(v)/1000, 1) // a thousand points are enough for the eye
	for i := 0; i < len(v); i += step {
		xy = append(xy, plotter.XY{X: v[i], Y: 100 * float64(i+1) / float64(len(v))})
	}
	xy = append(xy, plotter.XY{X: v[len(v)-1], Y: 100})
	l, err := line(xy, blue(), vg.Points(1.8))
	if err != nil {
		return "", err
	}
	l.StepStyle = plotter.PostStep
	p.Add(l)
	p.Y.Min, p.Y.Max = 0, 100
	return svg(p)
}

func (r *Report) plotCodes() (string, error) {
	codes := make([]string, 0, len(r.Responses))
	for c := range r.Responses {
		codes = append(codes, c)
	}
	if len(codes) == 0 {
		return "", nil
	}
	slices.Sort(codes)
	values := make(plotter.Values, len(codes))
	for i, c := range codes {
		values[i] = float64(r.Responses[c])
	}
	p := newPlot("response code", "answers")
	bars, err := plotter.NewBarChart(values, vg.Points(36))
	if err != nil {
		return "", err
	}
	bars.Color, bars.LineStyle.Width = blue(), 0
	p.Add(bars)
	labels := make([]string, len(codes))
	for i, c := range codes {
		labels[i] = fmt.Sprintf("%s (%d)", c, r.Responses[c])
	}
	p.NominalX(labels...)
	p.Y.Min = 0
	return svg(p)
}
