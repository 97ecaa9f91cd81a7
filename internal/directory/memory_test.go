package directory

import (
	"runtime"
	"testing"

	"rollcall/bus"
	"rollcall/registrar"
)

// BenchmarkMemory reports what a user costs in memory, with all HA1s and with those of one algorithm.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name string
		keep []string
	}{{"all", nil}, {"MD5", []string{registrar.MD5}}} {
		b.Run(c.name, func(b *testing.B) {
			const users = 50_000
			for range b.N {
				before := heapInUse()
				table := New(groupsOf(60), nil)
				if c.keep != nil {
					table.KeepOnly(c.keep)
				}
				for i := range users {
					u := user(i)
					u.Group = "g01"
					ha1, err := names.HA1s("sip:x@example.test", string(u.AOR))
					if err != nil {
						b.Fatal(err)
					}
					u.HA1 = ha1
					value, err := Encode(u)
					if err != nil {
						b.Fatal(err)
					}
					table.changed(bus.Entry{Key: string(u.AOR), Value: value, Revision: bus.Revision(i + 1)})
				}
				b.ReportMetric(float64(heapInUse()-before)/users, "B/user")
				runtime.KeepAlive(table)
			}
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
