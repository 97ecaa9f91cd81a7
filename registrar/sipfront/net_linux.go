package sipfront

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// udpBuffer rides out a burst of some thousand REGISTERs while this process waits for a processor.
	udpBuffer = 4 << 20
	// userTimeout bounds how long sent bytes may stay unacknowledged: keep-alive probes pause meanwhile.
	userTimeoutMillis = 60_000
)

type control = func(network, address string, c syscall.RawConn) error

func packetControl(shared bool) control {
	return func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd int) error {
			// The kernel silently grants less when its limit is lower.
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, udpBuffer)
			return reusePort(fd, shared)
		})
	}
}

func streamControl(shared bool) control {
	return func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeoutMillis); err != nil {
				return err
			}
			return reusePort(fd, shared)
		})
	}
}

func reusePort(fd int, shared bool) error {
	if !shared {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

func onSocket(c syscall.RawConn, set func(fd int) error) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = set(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}
