// Package scripted is a registrar for tests of the load tester: it does what a script
// says, over an in-memory network in virtual time or over real sockets. It is written
// apart from the tester's own rules, so that the two check one another.
package scripted
