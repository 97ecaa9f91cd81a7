// Package supervisor is what `rollcall up` does: it starts a bus and the Front Ends
// of one machine, each a process of its own, keeps them running, shows who holds
// what, and stops everything in good order. It leaves word in the data directory of how to
// reach the pool, and reads that for the commands that ask or change it.
//
// A Front End never outlives its supervisor: the kernel kills it when the supervisor
// dies, and it stops by itself when its standard input ends.
package supervisor
