package sipfront

import (
	"context"
	"net"
	"time"
)

// Net is where listeners come from: the operating system, or a fake network.
type Net interface {
	// ListenPacket and Listen bind host:port; shared lets several processes bind the same one.
	ListenPacket(ctx context.Context, addr string, shared bool) (net.PacketConn, error)
	Listen(ctx context.Context, addr string, shared bool) (net.Listener, error)
}

// SystemNet is the network of the operating system.
func SystemNet() Net { return systemNet{} }

type systemNet struct{}

func (systemNet) ListenPacket(ctx context.Context, addr string, shared bool) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: packetControl(shared)}
	return lc.ListenPacket(ctx, "udp", addr)
}

// Listen turns on TCP keep-alive, so that a client which vanished without a
// FIN is noticed after about a minute.
func (systemNet) Listen(ctx context.Context, addr string, shared bool) (net.Listener, error) {
	lc := net.ListenConfig{
		Control: streamControl(shared),
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
		},
	}
	return lc.Listen(ctx, "tcp", addr)
}
