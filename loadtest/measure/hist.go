// Package measure keeps what a run measures: histograms, counters by phase, the gaps
// one by one, and the curve over time. Recorders of several shards and processes
// merge into one.
package measure

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Hist is a histogram of durations from 1 µs to 1 h within 0.1 %, with exact minimum
// and maximum. The zero value is empty and ready. It is not safe for concurrent use.
type Hist struct {
	h        *hdrhistogram.Histogram
	min, max time.Duration
}

const hour = int64(time.Hour / time.Microsecond)

func (h *Hist) init() {
	if h.h == nil {
		h.h = hdrhistogram.New(1, hour, 3)
		h.min = math.MaxInt64
	}
}

// Record adds one value; outside the range it counts as the nearest end.
func (h *Hist) Record(d time.Duration) {
	h.init()
	d = max(d, 0)
	h.min, h.max = min(h.min, d), max(h.max, d)
	_ = h.h.RecordValue(min(max(int64(d/time.Microsecond), 1), hour)) // within the range, so without error
}

// Merge adds all values of o.
func (h *Hist) Merge(o *Hist) {
	if o == nil || o.h == nil {
		return
	}
	h.init()
	h.h.Merge(o.h)
	h.min, h.max = min(h.min, o.min), max(h.max, o.max)
}

// Count of values.
func (h *Hist) Count() int64 {
	if h.h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// Stats of the values.
func (h *Hist) Stats() Stats {
	if h.Count() == 0 {
		return Stats{}
	}
	at := func(q float64) float64 {
		return min(max(float64(h.h.ValueAtQuantile(q))/1000, ms(h.min)), ms(h.max))
	}
	return Stats{Count: h.Count(), Min: ms(h.min), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: ms(h.max)}
}

type histJSON struct {
	HDR string        `json:"hdr,omitempty"` // HdrHistogram V2, compressed, base64; in µs
	Min time.Duration `json:"min_ns"`
	Max time.Duration `json:"max_ns"`
}

// MarshalJSON writes the histogram in HdrHistogram's own exchange form.
func (h *Hist) MarshalJSON() ([]byte, error) {
	if h.h == nil {
		return []byte("{}"), nil
	}
	b, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, err
	}
	return json.Marshal(histJSON{string(b), h.min, h.max})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Hist) UnmarshalJSON(b []byte) error {
	var j histJSON
	if err := json.Unmarshal(b, &j); err != nil || j.HDR == "" {
		return err
	}
	d, err := hdrhistogram.Decode([]byte(j.HDR))
	if err != nil {
		return err
	}
	h.init()
	h.h.Merge(d)
	h.min, h.max = j.Min, j.Max
	return nil
}

// Stats are the figures of a distribution, in milliseconds.
type Stats struct {
	Count int64   `json:"count"`
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Exact computes the figures of values kept one by one: the percentile is the smallest
// value that at least that share of all values does not exceed (nearest rank).
func Exact(values []time.Duration) Stats {
	n := len(values)
	if n == 0 {
		return Stats{}
	}
	v := slices.Clone(values)
	slices.Sort(v)
	at := func(q float64) float64 { return ms(v[min(max(int(math.Ceil(q*float64(n)-1e-9)), 1), n)-1]) }
	return Stats{Count: int64(n), Min: ms(v[0]), P50: at(.5), P90: at(.9), P99: at(.99), P999: at(.999), Max: ms(v[n-1])}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
