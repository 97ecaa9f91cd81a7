// Package sipwire reads and writes the few SIP messages that a simulated
// softphone needs: it splits streams into messages, reads responses and requests
// into a flat struct, and writes REGISTER and answers.
//
// It decides nothing and keeps nothing. It is not a general SIP parser: what it
// does not need it does not look at, and what it cannot read is an error, which
// the load tester counts as a malformed answer.
package sipwire
