package natsbus

import "testing"

func TestParseDelivery(t *testing.T) {
	want := delivery{stream: 42, consumer: 7, pending: 3}
	for _, reply := range []string{
		"$JS.ACK.rollcall_bindings.x1y2.1.42.7.1700000000000000000.3",
		"$JS.ACK.hub.ACCHASH.rollcall_bindings.x1y2.1.42.7.1700000000000000000.3",
		"$JS.ACK._.ACCHASH.rollcall_bindings.x1y2.1.42.7.1700000000000000000.3.token",
	} {
		if d, err := parseDelivery(reply); err != nil || d != want {
			t.Errorf("%s: got %+v, %v", reply, d, err)
		}
	}
	for _, reply := range []string{
		"", "_INBOX.x", "$JS.ACK.s.c.1.42.7.17", "$JS.ACK.s.c.1.x.7.17.3", "$JS.ACK.s.c.1.42..17.3",
		"$JS.ACK.s.c.1.42.7.17.", "$JS.ACK.a.s.c.1.42.7.17.3",
	} {
		if d, err := parseDelivery(reply); err == nil {
			t.Errorf("%q: got %+v, not an error", reply, d)
		}
	}
}
