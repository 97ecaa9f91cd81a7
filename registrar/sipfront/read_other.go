//go:build !unix

package sipfront

import (
	"net"
	"syscall"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func (c *conn) readRaw() (*[]byte, int, error) { panic("not reached: rawConn is nil") }
