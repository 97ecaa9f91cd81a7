package routing

import "testing"

// The aim: 10,000 groups on 100 Front Ends planned in under 100 ms.
func BenchmarkPlan(b *testing.B) {
	empty := NewPlacement(GroupNames(10_000))
	up, failed, back := pool(100), pool(100), pool(100)
	failed[41].State = Down
	back[41].Boot = "boot2"
	formed := PlanFor(empty, up).Next
	oneLess := PlanFor(formed, failed).Next
	for _, bench := range []struct {
		name    string
		cur     Placement
		members []Member
	}{
		{"formation", empty, up},
		{"failure", formed, failed},
		{"return", oneLess, back},
		{"restart", formed, back},
		{"nothing", formed, up},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				PlanFor(bench.cur, bench.members)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	formed := PlanFor(NewPlacement(GroupNames(10_000)), pool(100)).Next
	for b.Loop() {
		data, err := Encode(formed)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(data)), "bytes")
	}
}
