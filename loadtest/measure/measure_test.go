package measure

import (
	"encoding/json"
	"testing"
	"time"
)

func TestExactIsNearestRank(t *testing.T) {
	var v []time.Duration
	for i := 1; i <= 1000; i++ {
		v = append(v, time.Duration(i)*time.Millisecond)
	}
	if got, want := Exact(v), (Stats{1000, 1, 500, 900, 990, 999, 1000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := Exact(v[:1]), (Stats{1, 1, 1, 1, 1, 1, 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := Exact(nil); got != (Stats{}) {
		t.Errorf("%+v", got)
	}
}

// Histograms split over two processes give what one would have given.
func TestHistogramsMergeOverTheirExchangeForm(t *testing.T) {
	var one, merged Hist
	parts := [2]Hist{}
	for i := range 10_000 {
		d := time.Duration(i*i) * time.Microsecond / 100
		one.Record(d)
		parts[i%2].Record(d)
	}
	for i := range parts {
		b, err := json.Marshal(&parts[i])
		if err != nil {
			t.Fatal(err)
		}
		var back Hist
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		merged.Merge(&back)
	}
	if one.Stats() != merged.Stats() || one.Count() != 10_000 {
		t.Errorf("%+v, want %+v", merged.Stats(), one.Stats())
	}
	if p := one.Stats().P50; p < 249.5 || p > 250.5 {
		t.Errorf("p50 %v, want 250 within 0.1 %%", p)
	}
	var empty, back Hist
	b, _ := json.Marshal(&empty)
	if err := json.Unmarshal(b, &back); err != nil || back.Count() != 0 {
		t.Errorf("an empty histogram: %s %v", b, err)
	}
}

func TestValuesOutsideTheRangeCountAtItsEnds(t *testing.T) {
	var h Hist
	h.Record(-time.Second)
	h.Record(100 * time.Hour)
	if s := h.Stats(); s.Count != 2 || s.Min != 0 || s.Max != float64((100*time.Hour)/time.Millisecond) {
		t.Errorf("%+v", s)
	}
}

func TestRateOfAWindow(t *testing.T) {
	var w Window
	w.begin(2 * time.Second)
	w.begin(time.Second)
	w.Merge(Window{Begun: true, From: 3 * time.Second, To: 6 * time.Second})
	if w.Rate(10) != 2 {
		t.Errorf("%v", w.Rate(10))
	}
	if (Window{}).Rate(5) != 0 {
		t.Error("an empty window has a rate")
	}
}
