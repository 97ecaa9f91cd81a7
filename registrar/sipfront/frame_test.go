package sipfront

import (
	"strings"
	"testing"
)

// A header section that never ends costs no more memory than the bound.
func TestEndlessHeaderIsBounded(t *testing.T) {
	f := framer{maxHeader: 1000, maxBody: 1000}
	f.feed([]byte("REGISTER sip:example.test SIP/2.0\r\n"), func(frame) { t.Fatal("a frame") })
	broken := 0
	for range 300 {
		f.feed([]byte("X: y\r\n"), func(fr frame) {
			if fr.kind == frameBroken {
				broken++
			}
		})
		if broken > 0 {
			break
		}
		if cap(f.pending) > 4000 {
			t.Fatalf("holds %d bytes", cap(f.pending))
		}
	}
	if broken != 1 || f.pending != nil {
		t.Errorf("broken %d times, %d bytes held", broken, len(f.pending))
	}
}

// Every way to cut a stream of messages and pings in two gives the same frames, and nothing is held in the end.
func TestFramerCutAnywhere(t *testing.T) {
	stream := "\r\n" + register("alice", 1) + "\r\n\r\n" + register("bob", 1, "Content-Length: 0 => l : 4") + "\r\n\r\n" + register("carol", 1)
	frames := func(cuts ...int) (list []string) {
		f := framer{maxHeader: 2000, maxBody: 100}
		got := func(fr frame) {
			if fr.kind == framePing {
				list = append(list, "ping")
			} else {
				list = append(list, fr.msg.callID.value+" "+string(fr.raw[fr.head:]))
			}
		}
		start := 0
		for _, cut := range append(cuts, len(stream)) {
			f.feed([]byte(stream[start:cut]), got)
			start = cut
		}
		if f.partial() {
			t.Fatalf("cuts %v: %q is left", cuts, f.pending)
		}
		return list
	}
	want := strings.Join(frames(), "|")
	if want != "call-alice@192.0.2.10 |ping|call-bob@192.0.2.10 \r\n\r\n|call-carol@192.0.2.10 " {
		t.Fatalf("%q", want)
	}
	for i := 1; i < len(stream); i++ {
		if got := strings.Join(frames(i), "|"); got != want {
			t.Fatalf("cut at %d: %q", i, got)
		}
		if i+1 < len(stream) {
			if got := strings.Join(frames(i, i+1), "|"); got != want {
				t.Fatalf("cut around %d: %q", i, got)
			}
		}
	}
}
