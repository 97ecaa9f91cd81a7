package main

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var results []result
	for i := 20; i >= 1; i-- {
		results = append(results, result{seen: time.Duration(i) * time.Millisecond})
	}
	for _, c := range []struct {
		rank float64
		want time.Duration
	}{{0.5, 10 * time.Millisecond}, {0.9, 18 * time.Millisecond}, {1, 20 * time.Millisecond}} {
		if got := quantile(results, c.rank, func(r result) time.Duration { return r.seen }); got != c.want {
			t.Errorf("rank %v: got %v, want %v", c.rank, got, c.want)
		}
	}
}
