package main

import (
	"testing"
	"time"

	"rollcall/test/harness"
)

func TestCountAt(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	samples := []harness.Sample{{At: at(0), OK: 100}, {At: at(1), OK: 200}, {At: at(2), OK: 600}}
	for _, c := range []struct{ second, want float64 }{{-1, 100}, {0, 100}, {0.5, 150}, {1, 200}, {1.25, 300}, {2, 600}, {3, 600}} {
		if got := countAt(samples, at(c.second)); got != c.want {
			t.Errorf("at %v s: got %v, want %v", c.second, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("%v: got %v, want %v", c.values, got, c.want)
		}
	}
}
