// Package simnet is a network inside one process: datagrams, streams and hosts
// with addresses, delays and faults, for the simulator. A Host is a frontend.Net
// of one process.
//
// It runs in a testing/synctest bubble: nothing waits while it holds a lock, and
// time is the plain time package. Delays and losses are drawn by hashing (seed,
// from, to, sequence number), never from a shared generator, so that they don't
// depend on the order in which goroutines run.
package simnet

import (
	"net/netip"
	"sync"
	"time"
)

// Any stands for every host or zone in SetLink.
const Any = ""

// Link is what one host's packets to another go through.
type Link struct {
	Cut       bool          // nothing arrives
	Loss      float64       // share of packets lost, 0 to 1; a stream sends them again
	Duplicate float64       // share of datagrams that arrive twice
	Reorder   float64       // share of datagrams held back, so that later ones overtake
	Delay     time.Duration // of every packet
	Jitter    time.Duration // more, up to this
}

// Options of a Network.
type Options struct {
	Seed    uint64
	Default Link // where SetLink said nothing
	// QueueMax bounds the datagrams that wait in one socket, and the connections that wait
	// to be accepted; what comes on top is lost, as in a kernel. 2048 if 0.
	QueueMax int
	// WindowMax bounds the bytes of a connection that its peer has not read. 256 KiB if 0.
	WindowMax int
}

// Network carries packets between hosts.
type Network struct {
	opts Options

	mu        sync.Mutex // guards all below, and the state of every host, socket and connection
	links     map[[2]string]Link
	machines  map[netip.Addr]*Host // who is or was at an address
	packets   map[netip.AddrPort][]*packetSocket
	listeners map[netip.AddrPort][]*listener
	frozen    map[string]time.Time // until when, by host
}

// New returns a network without hosts.
func New(opts Options) *Network {
	if opts.QueueMax <= 0 {
		opts.QueueMax = 2048
	}
	if opts.WindowMax <= 0 {
		opts.WindowMax = 256 << 10
	}
	return &Network{opts: opts, links: map[[2]string]Link{}, machines: map[netip.Addr]*Host{},
		packets: map[netip.AddrPort][]*packetSocket{}, listeners: map[netip.AddrPort][]*listener{},
		frozen: map[string]time.Time{}}
}

// SetLink says what packets from one host or zone to another go through from now
// on. Names of hosts count before those of zones, and zones before Any.
func (n *Network) SetLink(from, to string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]string{from, to}] = l
}

// ResetLink takes back what SetLink said of this pair.
func (n *Network) ResetLink(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.links, [2]string{from, to})
}

// Cut cuts both ways between two hosts or zones; Mend mends what it cut.
func (n *Network) Cut(a, b string) {
	n.SetLink(a, b, Link{Cut: true})
	n.SetLink(b, a, Link{Cut: true})
}

// Mend takes back what Cut or SetLink said of both ways between a and b.
func (n *Network) Mend(a, b string) {
	n.ResetLink(a, b)
	n.ResetLink(b, a)
}

// Freeze stops a host for d, as SIGSTOP does: its kernel still takes connections and
// what fits into its buffers, nothing gets to the process or comes from it
// until then, and all of it afterwards. The process's goroutines run on.
func (n *Network) Freeze(host string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen[host] = time.Now().Add(d)
}

func (n *Network) linkLocked(from, to *Host) Link {
	if len(n.links) == 0 {
		return n.opts.Default
	}
	for _, f := range [...]string{from.name, from.zone, Any} {
		for _, t := range [...]string{to.name, to.zone, Any} {
			if l, ok := n.links[[2]string{f, t}]; ok {
				return l
			}
		}
	}
	return n.opts.Default
}

// thawLocked returns how much longer a host stands still.
func (n *Network) thawLocked(h *Host) time.Duration {
	until, ok := n.frozen[h.name]
	if !ok {
		return 0
	}
	left := time.Until(until)
	if left <= 0 {
		delete(n.frozen, h.name)
		return 0
	}
	return left
}
