package natsbus

import (
	"errors"
	"testing"

	"rollcall/bus"
)

func TestParseAck(t *testing.T) {
	for _, c := range []struct {
		ack  string
		want uint64 // 0: an error
		is   error
	}{
		{ack: `{"stream":"rollcall_bindings","seq":7}`, want: 7},
		{ack: `{"stream":"rollcall_bindings","seq":18446744073709551615}`, want: 1<<64 - 1},
		{ack: `{"stream":"x","seq":7,"duplicate":true}`, want: 7},
		{ack: `{"stream":"x", "seq": 7}`, want: 7},
		{ack: `{"type":"t","stream":"x","domain":"d","seq":9}`, want: 9},
		{ack: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"x","seq":0}`, is: bus.ErrConflict},
		{ack: `{"stream":"x","seq":7,"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`, is: bus.ErrConflict},
		{ack: `{"error":{"code":503,"err_code":10008,"description":"temporarily unavailable"},"stream":"","seq":0}`, is: bus.ErrUnavailable},
		{ack: `{"stream":"x","seq":0}`},
		{ack: `{"stream":"x","seq":}`},
		{ack: `{"stream":"x","seq":99999999999999999999}`},
		{ack: `{"stream":"`},
		{ack: ``},
	} {
		got, err := parseAck([]byte(c.ack))
		if got != c.want || (err == nil) != (c.want != 0) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %d, %v", c.ack, got, err)
		}
	}
}
