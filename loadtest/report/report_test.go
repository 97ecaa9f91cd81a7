package report

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"rollcall/loadtest/measure"
	"rollcall/loadtest/phone"
	"rollcall/loadtest/scenario"
)

// sample is a run of three clients: one was gone for 1.5 s, one tries still, one never tried.
func sample(t *testing.T) *Report {
	t.Helper()
	sc := &scenario.Scenario{Targets: []string{"127.0.0.1:5060"}, Clients: 3, About: "<script>alert(1)</script>"}
	if err := sc.Complete(); err != nil {
		t.Fatal(err)
	}
	s := time.Second
	r := measure.NewRecorder("ramp", 100*time.Millisecond)
	for i := range 3 {
		at := time.Duration(i) * 100 * time.Millisecond
		r.Fact(&phone.Fact{Kind: phone.FactAttempt}, at)
		r.Fact(&phone.Fact{Kind: phone.FactResponse, Code: 200}, at+50*time.Millisecond)
		r.Fact(&phone.Fact{Kind: phone.FactOK, Dur: 50 * time.Millisecond}, at+50*time.Millisecond)
		r.Fact(&phone.Fact{Kind: phone.FactBound}, at+50*time.Millisecond)
	}
	r.Begin("after kill fe2", 2*s)
	r.Fact(&phone.Fact{Kind: phone.FactGapOpen}, 2*s)
	r.Fact(&phone.Fact{Kind: phone.FactGapClosed, Gap: phone.Gap{Client: 0, Cause: "rst", Lost: 2 * s, First: 3 * s, Back: 3500 * time.Millisecond, Attempts: 1}}, 3500*time.Millisecond)
	r.AddGap(phone.Gap{Client: 1, Cause: "rst", Lost: 2 * s, First: 3 * s, Back: phone.Never, Attempts: 2})
	r.AddGap(phone.Gap{Client: 2, Cause: "server", Lost: 2 * s, First: phone.Never, Back: phone.Never})
	r.Phases[1].To = 5 * s
	r.Lag(30 * time.Millisecond)
	return Build(&Input{Data: r.Data, Scenario: sc, CPU: s, CPUs: 2, RampEnd: s, Length: 5 * s, Bound: 2,
		Events: []Event{{At: 2, Source: "storm", What: "kill fe2"}, {At: 2.05, Source: "fe1", What: "placement decided, epoch 2"}}})
}

func TestBuild(t *testing.T) {
	r := sample(t)
	if r.Gaps.Started != 3 || r.Gaps.Closed != 1 || r.Gaps.Open != 1 || r.Gaps.Unobserved != 1 || r.Gap.P99 != 1500 || r.FirstAttempt.Max != 1000 || r.Recovery.Min != 500 {
		t.Errorf("gaps %+v %+v %+v", r.Gaps, r.Gap, r.FirstAttempt)
	}
	if r.RegistrationRate != 3/0.25 || r.RegisteredMax != 3 || r.Registered != 2 || r.Phases[1].Gap.Count != 1 {
		t.Errorf("rate %v, max %d, phases %+v", r.RegistrationRate, r.RegisteredMax, r.Phases)
	}
	if g := r.Generator; !g.Tainted || g.CPUShare != 0.1 || !strings.Contains(g.Why, `30 ms in the phase "after kill fe2"`) || r.Phases[0].Tainted || !r.Phases[1].Tainted {
		t.Errorf("%+v", g)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "2 gaps had not ended") {
		t.Errorf("notes %v", r.Notes)
	}
}

// report.json has the names that the contract gives.
func TestJSONHasTheNamesOfTheContract(t *testing.T) {
	var b bytes.Buffer
	if err := sample(t).writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"clients", "registered_end", "gap_ms", "register_ms", "registration_rate_per_s", "reregistration_rate_per_s", "responses", "generator", "events"} {
		if _, ok := m[path]; !ok {
			t.Errorf("report.json has no %s", path)
		}
	}
	for _, k := range []string{"count", "min", "p50", "p90", "p99", "p999", "max"} {
		if _, ok := m["gap_ms"].(map[string]any)[k]; !ok {
			t.Errorf("gap_ms has no %s", k)
		}
	}
	for _, k := range []string{"lag_ms_p99", "cpu_share", "tainted"} {
		if _, ok := m["generator"].(map[string]any)[k]; !ok {
			t.Errorf("generator has no %s", k)
		}
	}
}

func TestFailIf(t *testing.T) {
	for cond, want := range map[string]bool{
		"gap.p99 > 2s": false, "gap.p99 > 1s": true, "gap_ms.p99>=1500": true, "gap.p99 == 1500ms": true, "registered_end < clients": true,
		"generator.tainted": true, "responses.200 != 3": false, "responses.503 > 0": false, "gaps.open > 0": true, "failures > 0": false,
		"responses == 3": true, "length_s > 4s": true, "gaps.by_cause.rst == 2": true,
	} {
		c, err := ParseCondition(cond)
		if err != nil {
			t.Errorf("%s: %v", cond, err)
			continue
		}
		if held, err := sample(t).Judge([]Condition{c}); err != nil || held != want {
			t.Errorf("%s: %v %v, want %v", cond, held, err, want)
		}
	}
	for _, bad := range []string{"", "gap.p98 > 1s", "gap > 1", "1 > 0", "gap.p99 > soon", "nonsense"} {
		if _, err := ParseCondition(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// The page asks for nothing from elsewhere, draws its plots within, and shows no text as markup.
func TestHTMLNeedsNothingElse(t *testing.T) {
	var b bytes.Buffer
	if err := sample(t).HTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<svg"); n != 5 {
		t.Errorf("%d plots, want 5", n)
	}
	for _, re := range []string{`(?i)(src|href)\s*=`, `(?i)url\(\s*['"]?http`, `@import`, `<script`, `<\?xml`} {
		if m := regexp.MustCompile(re).FindString(strings.ReplaceAll(page, "xlink:href", "")); m != "" {
			t.Errorf("the page has %q", m)
		}
	}
	for _, want := range []string{"kill fe2", "1.50 s", "any phase &gt; 20", "&lt;script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestGapsCSV(t *testing.T) {
	var b bytes.Buffer
	if err := sample(t).writeGaps(&b); err != nil {
		t.Fatal(err)
	}
	want := `client,cause,lost_s,first_attempt_ms,gap_ms,recovery_ms,attempts,state
0,rst,2.000000,1000.000,1500.000,500.000,1,back
1,rst,2.000000,1000.000,,,2,open
2,server,2.000000,,,,0,unobserved
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

func TestCompareSaysWhatChanged(t *testing.T) {
	a, b := sample(t), sample(t)
	b.Gap.P99, b.Machine.CPUs = 3000, 64
	var out bytes.Buffer
	if err := Compare(&out, "a", a, "b", b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+100.0 %", "machines differ", "a is tainted", "b is tainted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
