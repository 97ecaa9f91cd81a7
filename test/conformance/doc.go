// Package conformance holds the rules that Rollcall keeps, each with the tests that
// prove it, and writes them as docs/CONFORMANCE.md. Its own tests fail when a test
// that a rule names doesn't exist, when a rule has none, and when the document is not
// up to date. It decides nothing about SIP; package wire below it sends the messages.
package conformance

//go:generate go run ./gen
