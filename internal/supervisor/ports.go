package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// ownPorts is the distance from the pool address's port to that of Front End 0, which doesn't exist: fe1 has +11.
const ownPorts = 10

// Addresses are where a pool on one machine listens for SIP.
type Addresses struct {
	Shared string   // the pool address, host:port
	Own    []string // of each Front End, host:port
}

// AddressesOf lays the Front Ends' own addresses out beside the pool address: port +10+n for the n-th.
func AddressesOf(shared string, frontEnds int) (Addresses, error) {
	host, text, err := net.SplitHostPort(shared)
	if err != nil {
		return Addresses{}, fmt.Errorf("SIP address %q: not host:port", shared)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port+ownPorts+frontEnds > 65535 {
		return Addresses{}, fmt.Errorf("SIP address %s: choose a port from 1 to %d: the Front Ends take the %d ports from +%d",
			shared, 65535-ownPorts-frontEnds, frontEnds, ownPorts+1)
	}
	a := Addresses{Shared: shared}
	for n := 1; n <= frontEnds; n++ {
		a.Own = append(a.Own, net.JoinHostPort(host, strconv.Itoa(port+ownPorts+n)))
	}
	return a, nil
}

// Check reports whether all addresses are free. The pool address must not be shared with
// strangers, although the Front Ends share it with each other (SO_REUSEPORT): so
// it is tried here without that. A pool that was killed a moment ago is given a moment to go.
func (a Addresses) Check() error {
	for _, address := range append([]string{a.Shared}, a.Own...) {
		var err error
		for end := time.Now().Add(time.Second); ; time.Sleep(50 * time.Millisecond) {
			if err = tryPort(address); err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
				break
			}
		}
		if err != nil {
			return portError("--sip", address, err)
		}
	}
	return nil
}

// tryPort listens for a moment over TCP and UDP.
func tryPort(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return p.Close()
}

// portError says in a line why an address cannot be listened on.
func portError(flag, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: another pool runs there? Stop it, or choose other addresses with %s", address, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s is not allowed for this user: choose a port from 1024 with %s", address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine: choose another one with %s", address, flag)
	}
	return fmt.Errorf("%s: %w: choose another address with %s", address, err, flag)
}

// reachable is the address that a phone on this machine uses for one that listens everywhere.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
