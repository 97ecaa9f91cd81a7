// Package sim runs a whole pool in one process in virtual time: real Front Ends
// and their real SIP side on a fake network (internal/simnet) and the bus in
// memory (bus/membus), with simulated phones and seeded faults. After each step
// it checks what the pool promises (see model.go, observer.go, settle.go).
//
// A Pool lives in one testing/synctest bubble. What it does follows from its
// seed; the order of goroutines within one instant does not, so replay a seed
// with -cpu 1.
package sim
