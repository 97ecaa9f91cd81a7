package sipfront

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/emiago/sipgo/sip"
)

func seeds(f *testing.F) {
	for _, c := range wireCases() {
		f.Add([]byte(register("alice", 1, c.edits...)))
	}
	f.Add([]byte("\r\n\r\n" + register("alice", 1) + "\r\n" + register("bob", 1)))
	f.Add([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\n\r\n"))
}

// FuzzParse: nothing panics; what is taken has what the Handler relies on, and what
// is answered is a response that can be read itself and carries no more lines than it should.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, answer, err := Parse(raw, flow("udp"))
		if (in == nil) == (err == nil) {
			t.Fatal(in, err)
		}
		if err == nil {
			r := in.Request
			if r.AOR == "" || r.From == "" || r.CallID == "" || r.CSeq >= 1<<31 || !strings.HasPrefix(string(r.AOR), "sip:") {
				t.Fatalf("%+v", r)
			}
			answer = in.Render((&refusal{status: 200, reason: "OK"}).reply())
		}
		if answer == nil {
			return
		}
		m, err := split(answer)
		if err != nil || m.status == 0 || m.fault != "" {
			t.Fatalf("answer %q: %v, %+v", answer, err, m)
		}
		if n, ok := m.contentLength(); m.length.n != 1 || n != 0 || !ok || bytes.Count(answer, []byte("\r\n\r\n")) != 1 {
			t.Fatalf("answer %q", answer)
		}
	})
}

// FuzzStream: however a stream is cut, the framer gives the same frames, and it holds no more than its bounds.
func FuzzStream(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames := func(size int) (list []string) {
			fr := framer{maxHeader: 1000, maxBody: 500}
			broken := false
			for chunk := range slices.Chunk(stream, max(size, 1)) {
				if broken {
					break
				}
				fr.feed(chunk, func(x frame) {
					switch x.kind {
					case framePing:
						list = append(list, "ping")
					case frameMessage:
						list = append(list, string(x.raw))
					case frameBroken:
						broken = true
					}
				})
				if len(fr.pending) > 1000+500+max(size, 1) {
					t.Fatalf("holds %d bytes", len(fr.pending))
				}
			}
			return list
		}
		whole := frames(len(stream))
		for _, size := range []int{1, 7, 64} {
			if got := frames(size); !slices.Equal(got, whole) {
				t.Fatalf("in pieces of %d:\n%q\nat once:\n%q", size, got, whole)
			}
		}
	})
}

// FuzzHeaderLines: what we let through to sipgo it reads, field by field, as the lines
// say; and a section without faults is one that sipgo reads as well without our help.
func FuzzHeaderLines(f *testing.F) {
	f.Add([]byte("A: b\r\n c\r\nD : e\r\n"))
	f.Add([]byte("A b: c\r\nE: f\n: x\r\n y\r\nG:\r\n"))
	f.Add([]byte(" A: b\r\nC: d\re\r\n"))
	f.Fuzz(func(t *testing.T, section []byte) {
		fit, fault := headerLines(section)
		fields, err := splitFields(fit)
		if err != nil {
			t.Fatalf("%q made %q: %v", section, fit, err)
		}
		for _, h := range fields {
			if !isToken([]byte(h.Name())) || strings.ContainsAny(h.Value(), "\r\n") {
				t.Fatalf("%q: %q", h.Name(), h.Value())
			}
		}
		if fault == "" {
			msg, _, err := sip.NewParser(sip.WithHeadersParsers(nil)).ParseHeaders(append([]byte("X sip:x SIP/2.0\r\n"), append(section, "\r\n"...)...), false)
			if err != nil || len(msg.(*sip.Request).Headers()) != len(fields) {
				t.Fatalf("sipgo alone: %v", err)
			}
		}
	})
}
