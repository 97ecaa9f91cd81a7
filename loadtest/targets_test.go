package loadtest

import (
	"net"
	"slices"
	"testing"
)

func TestTargetsAreAddresses(t *testing.T) {
	r := &net.Resolver{}
	for _, c := range []struct {
		transport string
		in, want  []string
	}{
		{"tcp", []string{"192.0.2.1:5070", " 192.0.2.2 "}, []string{"192.0.2.1:5070", "192.0.2.2:5060"}},
		{"tls", []string{"[2001:db8::1]"}, []string{"[2001:db8::1]:5061"}},
		{"wss", []string{"192.0.2.1"}, []string{"192.0.2.1:443"}},
		{"udp", []string{"[::1]:5"}, []string{"[::1]:5"}},
	} {
		got, err := resolve(t.Context(), r, c.transport, c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v %v, want %v", c.transport, c.in, got, err, c.want)
		}
	}
	if _, err := resolve(t.Context(), r, "tcp", []string{":5060"}); err == nil {
		t.Error("a target without a host was taken")
	}
}

// On loopback an address serves ten thousand clients; elsewhere the system chooses.
func TestSourcesAreSpread(t *testing.T) {
	if got := sources(nil, []string{"127.0.0.1:1"}, 30_000, 10_000); !slices.Equal(got, []string{"127.0.1.1", "127.0.1.2", "127.0.1.3"}) {
		t.Errorf("%v", got)
	}
	if got := sources(nil, []string{"127.0.0.1:1"}, 10_000, 10_000); got != nil {
		t.Errorf("%v", got)
	}
	if got := sources(nil, []string{"192.0.2.1:1"}, 30_000, 10_000); got != nil {
		t.Errorf("%v", got)
	}
	if got := sources([]string{"10.0.0.1"}, []string{"127.0.0.1:1"}, 1, 10_000); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("%v", got)
	}
}
