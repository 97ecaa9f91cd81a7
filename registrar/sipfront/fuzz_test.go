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

// FuzzReadFields: no field can break out of its line, and a section without faults says to
// sipgo's parser what it says to us.
func FuzzReadFields(f *testing.F) {
	f.Add("A: b\r\n c\r\nD : e\r\n")
	f.Add("A b: c\r\nE: f\n: x\r\n y\r\nG:\r\n")
	f.Add(" A: b\r\nC: d\re\r\n")
	parser := sip.NewParser(sip.WithHeadersParsers(nil))
	f.Fuzz(func(t *testing.T, section string) {
		var names, values []string
		fault := readFields(section, func(name, value string) {
			if !isToken(name) || strings.ContainsAny(value, "\r\n") || value != strings.Trim(value, " \t") {
				t.Fatalf("%q: %q", name, value)
			}
			names, values = append(names, name), append(values, value)
		})
		if fault != "" {
			return
		}
		msg, _, err := parser.ParseHeaders([]byte("X sip:x SIP/2.0\r\n"+section+"\r\n"), false)
		if err != nil {
			t.Fatalf("sipgo: %v", err)
		}
		fields := msg.(*sip.Request).Headers()
		if len(fields) != len(names) {
			t.Fatalf("%d fields, sipgo reads %d", len(names), len(fields))
		}
		for i, h := range fields {
			if h.Name() != names[i] || strings.Join(strings.Fields(h.Value()), " ") != strings.Join(strings.Fields(values[i]), " ") {
				t.Errorf("field %d is %q: %q, sipgo reads %q: %q", i, names[i], values[i], h.Name(), h.Value())
			}
		}
	})
}
