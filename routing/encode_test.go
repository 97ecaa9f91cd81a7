package routing

import (
	"strings"
	"testing"
)

func TestEncodeSize(t *testing.T) {
	p := PlanFor(NewPlacement(GroupNames(10_000)), pool(100)).Next
	data, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 256<<10 {
		t.Errorf("10,000 groups on 100 front ends take %d bytes in the bus", len(data))
	}
}

func TestEncodeRefuses(t *testing.T) {
	p := NewPlacement(GroupNames(1))
	p.Groups["g01"] = Copies{Primary: "fe9"}
	if _, err := Encode(p); err == nil || !strings.Contains(err.Error(), "fe9") {
		t.Errorf("a copy on nobody: %v", err)
	}
	p = PlanFor(NewPlacement(GroupNames(1)), pool(3)).Next
	p.Groups["g01"] = Copies{Primary: "fe001", Tertiary: "fe002"}
	if _, err := Encode(p); err == nil || !strings.Contains(err.Error(), "gap") {
		t.Errorf("a gap: %v", err)
	}
}

const oneGroup = `{"v":1,"members":[{"name":"a","state":"up"},{"name":"b","state":"up"}],"groups":["g"],"primary":[0],"secondary":[1],"tertiary":[-1]}`

func TestDecodeRefuses(t *testing.T) {
	if _, err := Decode([]byte(oneGroup)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ old, new, say string }{
		{`{"v":1`, `{"v":2`, "version 2"},
		{`"primary":[0]`, `"primary":[2]`, "number 2 of 2"},
		{`"primary":[0]`, `"primary":[-2]`, "number -2"},
		{`"primary":[0]`, `"primary":[1]`, "different front ends"},
		{`"primary":[0]`, `"primary":[-1]`, "gap"},
		{`"primary":[0]`, `"primary":[0,0]`, "2 primaries"},
		{`"primary":[0]`, `"primary":["a"]`, "decode placement"},
		{`"groups":["g"]`, `"groups":[""]`, "no id"},
		{`"name":"b"`, `"name":"a"`, "twice"},
		{`"name":"b"`, `"name":""`, "no name"},
		{`"name":"b","state":"up"`, `"name":"b","state":"tired"`, "tired"},
		{oneGroup, `{"v":1,"members":[],"groups":["g","g"],"primary":[-1,-1],"secondary":[-1,-1],"tertiary":[-1,-1]}`, "twice"},
		{oneGroup, ``, "decode placement"},
		{oneGroup, `null`, "version 0"},
	} {
		data := strings.Replace(oneGroup, row.old, row.new, 1)
		if _, err := Decode([]byte(data)); err == nil || !strings.Contains(err.Error(), row.say) {
			t.Errorf("%s: %v, want %q in it", data, err, row.say)
		}
	}
}

// FuzzDecode: never a panic; and what is accepted can be written, read, drawn,
// measured and planned from.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(oneGroup))
	data, err := Encode(PlanFor(NewPlacement(GroupNames(5)), pool(4)).Next)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"v":1,"members":[{"name":"a","state":"down"}],"groups":["g"],"primary":[0],"secondary":[-1],"tertiary":[-1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(p)
		if err != nil {
			t.Fatalf("accepted, and can't be written: %v", err)
		}
		if q, err := Decode(again); err != nil || !q.Equal(p) {
			t.Fatalf("comes back otherwise (%v): %s", err, again)
		}
		_ = p.Describe()
		_ = p.Balance()
		members := make([]Member, 0, len(p.Members))
		for _, fe := range p.SortedMembers() {
			members = append(members, p.Members[fe])
		}
		if err := PlanFor(p, members).Next.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
