// Package sipfront speaks SIP with clients: it owns the listeners and the
// connections, lets only valid REGISTERs through to the Handler, and answers or
// drops everything else itself. It also sends requests to clients, over the flow
// that they opened and never by dialling.
//
// It decides nothing about registrations: that is package registrar.
//
// REGISTER over UDP is answered without a server transaction (RFC 3261 §8.2.7):
// what a retransmission needs is in the stored binding. Messages are split
// in wire.go; sipgo's parser is what the fuzz tests compare it with.
package sipfront
