//go:build unix

package sipfront

import (
	"io"
	"net"
	"syscall"
)

// rawConn is for waiting until a connection can be read without holding a
// buffer meanwhile: of ten thousand connections nearly all are idle.
func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// readRaw reads as nc.Read does, into a buffer taken when there is something to read.
func (c *conn) readRaw() (buf *[]byte, n int, err error) {
	waited := c.raw.Read(func(fd uintptr) bool {
		buf = c.s.chunks.Get().(*[]byte)
		for {
			if n, err = syscall.Read(int(fd), *buf); err != syscall.EINTR {
				break
			}
		}
		if err == syscall.EAGAIN {
			c.s.chunks.Put(buf)
			buf, n = nil, 0
			return false
		}
		return true
	})
	switch {
	case waited != nil:
		return buf, 0, waited
	case err != nil:
		return buf, 0, err
	case n == 0:
		return buf, 0, io.EOF
	}
	return buf, n, nil
}
