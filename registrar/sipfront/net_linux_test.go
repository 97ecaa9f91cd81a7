package sipfront

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Row 48. The system probes an idle connection, and gives up on unacknowledged bytes.
func TestKeepAliveIsOn(t *testing.T) {
	s := open(t, newAnswerer(nil), nil)
	r := &reader{c: dial(t, s, "tcp")}
	write(t, r.c, register("alice", 1))
	wantStatus(t, r.next(t), 200)
	for _, c := range s.streams.all() {
		_ = c.raw.Control(func(fd uintptr) {
			for _, o := range []struct{ level, option, want int }{
				{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
				{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 30},
				{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 10},
				{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
				{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeoutMillis},
			} {
				if got, err := unix.GetsockoptInt(int(fd), o.level, o.option); err != nil || got != o.want {
					t.Errorf("option %d is %d, %v; want %d", o.option, got, err, o.want)
				}
			}
		})
	}
}
