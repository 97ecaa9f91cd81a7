//go:build !linux

package sipfront

import (
	"errors"
	"syscall"
)

type control = func(network, address string, c syscall.RawConn) error

func packetControl(shared bool) control {
	return func(_, _ string, _ syscall.RawConn) error {
		if shared {
			return errors.New("an address shared by several Front Ends needs Linux")
		}
		return nil
	}
}

func streamControl(shared bool) control { return packetControl(shared) }
