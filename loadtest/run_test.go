package loadtest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/loadtest/report"
	"rollcall/loadtest/scenario"
	"rollcall/loadtest/scripted"
)

// TestMain lets the test binary be the worker process that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "be-a-worker" {
		if err := ServeWorker(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func complete(t *testing.T, sc *scenario.Scenario) *scenario.Scenario {
	t.Helper()
	if err := sc.Complete(); err != nil {
		t.Fatal(err)
	}
	return sc
}

func event(t *testing.T, verb, s string) scenario.Event {
	t.Helper()
	e, err := scenario.ParseEvent(verb, s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A whole run in virtual time: 100 clients at 50 a second, half of them cut 5 s after the ramp. Every figure
// of the report is known beforehand.
func TestReportOfARunInVirtualTimeIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &scripted.Registrar{Realm: "example.test", Password: func(u string) string { return "pw" }, Delay: 10 * time.Millisecond}
		network := scripted.NewNetwork()
		network.Put("10.9.9.9:5060", r)
		sc, err := scenario.Read(strings.NewReader(`
targets: ["10.9.9.9:5060"]
clients: 100
password: pw
ramp: {rate: 40}
duration: 10s
behaviours: [{name: fixed, rst: 1s, retry: [1s], nonce: reuse}]
mix: {fixed: 1}
events: [{at: 5s, cut: 50%}]
`))
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Run(t.Context(), complete(t, sc), Options{Dialer: network})
		if err != nil {
			t.Fatal(err)
		}
		network.Wait()
		// First attempts at 0, 25, … 2475 ms; each takes 401 and 200, 10 ms each; the ramp's end is seen at 2.6 s.
		// Half by the golden ratio are 51 of the first hundred.
		if rep.Registered != 100 || rep.Gaps.Started != 51 || rep.Gaps.Closed != 51 || rep.Gap.Min != 1010 || rep.Gap.Max != 1010 ||
			rep.FirstAttempt.P50 != 1000 || rep.Recovery.P99 != 10 || rep.Register.P50 != 20 || rep.ReRegister.Max != 10 {
			t.Errorf("gaps %+v %+v, register %+v", rep.Gaps, rep.Gap, rep.Register)
		}
		if rep.RegistrationRate != 100/2.495 || rep.Responses["401"] != 100 || rep.Responses["200"] != 151 || rep.Attempts.Registers != 251 {
			t.Errorf("rate %v, responses %v, attempts %+v", rep.RegistrationRate, rep.Responses, rep.Attempts)
		}
		if rep.RampEnd != 2.6 || rep.Length != 12.6 || len(rep.Events) != 1 || rep.Events[0].At != 7.6 || len(rep.Errors) != 0 || rep.Generator.Tainted {
			t.Errorf("ramp end %v, length %v, events %+v, errors %v, generator %+v", rep.RampEnd, rep.Length, rep.Events, rep.Errors, rep.Generator)
		}
		names := ""
		for _, p := range rep.Phases {
			names += p.Name + " "
		}
		if names != "ramp steady after cut 50% " || rep.Phases[2].Gap.Count != 51 || rep.Phases[0].Register.Count != 100 {
			t.Errorf("phases %s %+v", names, rep.Phases)
		}
	})
}

// size is the number of clients of the tests with real sockets: 200, or what STORM_CLIENTS says.
func size() int {
	n := 200
	_, _ = fmt.Sscanf(os.Getenv("STORM_CLIENTS"), "%d", &n)
	return n
}

// Every transport over real sockets against a scripted registrar with digest: all register, the registrar
// drops all connections, all come back. STORM_CLIENTS=2000 runs the long form.
func TestEveryTransportSurvivesADrop(t *testing.T) {
	cert, _, err := scripted.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, ca, cert)
	for _, transport := range []string{"udp", "tcp", "tls", "ws", "wss"} {
		t.Run(transport, func(t *testing.T) {
			r := &scripted.Registrar{Realm: "example.test", Password: func(u string) string { return "pw" }}
			l, err := scripted.Listen(transport, r, cert)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			n := size()
			until := "back >= 100%"
			if transport == "udp" {
				until = "registered >= 100%"
			}
			sc := complete(t, &scenario.Scenario{Targets: []string{l.Addr}, Transport: transport, Clients: n, Password: "pw", Until: until,
				Ramp: scenario.Ramp{Rate: 1000}, Duration: scenario.Duration(time.Minute), TLS: scenario.TLS{CA: ca}, Unregister: true,
				T1: scenario.Duration(10 * time.Second)}) // a busy machine must not make UDP clients send again
			dropped := false
			rep, err := Run(t.Context(), sc, Options{Progress: func(p Progress) {
				if p.Phase == "steady" && !dropped {
					dropped = true
					if transport != "udp" {
						r.Drop(true)
					}
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			gaps := n
			if transport == "udp" {
				gaps = 0
			}
			if rep.Registered != n || rep.Gaps.Closed != gaps || rep.Gaps.Open != 0 || len(rep.Odd) != 0 || len(rep.Errors) != 0 ||
				len(rep.Failures) != 0 && !rep.Generator.Tainted { // a machine that has too much to do may let a handshake time out
				t.Errorf("registered %d, gaps %+v, failures %v, odd %v, errors %v", rep.Registered, rep.Gaps, rep.Failures, rep.Odd, rep.Errors)
			}
			if s := r.Stats(); s.BadCredentials != 0 || s.Removed != n {
				t.Errorf("the registrar saw %d bad credentials, %d removals", s.BadCredentials, s.Removed)
			}
			t.Logf("%d clients: register p99 %.1f ms, gap p50 %.1f p99 %.1f ms, lag p99 %.2f ms", n, rep.Register.P99, rep.Gap.P50, rep.Gap.P99, rep.Generator.LagP99)
		})
	}
}

func writePEM(t *testing.T, path string, cert tls.Certificate) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Two worker processes give one report, and their histograms are merged.
func TestWorkerProcessesMakeOneReport(t *testing.T) {
	r := &scripted.Registrar{Realm: "example.test", Password: func(u string) string { return "pw" }}
	l, err := scripted.Listen("tcp", r, tls.Certificate{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sc := complete(t, &scenario.Scenario{Targets: []string{l.Addr}, Clients: 300, Password: "pw", Workers: 2, Until: "back >= 100%",
		Ramp: scenario.Ramp{Rate: 1000}, Duration: scenario.Duration(time.Minute), Events: []scenario.Event{event(t, "cut", "100%@0s")}})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), sc, Options{Self: self, Worker: []string{"be-a-worker"}})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Registered != 300 || rep.Gaps.Closed != 300 || rep.Register.Count != 300 || rep.Generator.Workers != 2 || rep.Generator.CPUShare <= 0 {
		t.Errorf("registered %d, gaps %+v, register %+v, generator %+v", rep.Registered, rep.Gaps, rep.Register, rep.Generator)
	}
	dir := t.TempDir()
	if err := rep.Write(dir); err != nil {
		t.Fatal(err)
	}
	csv, err := os.ReadFile(filepath.Join(dir, "gaps.csv"))
	if err != nil || strings.Count(string(csv), "\n") != 301 {
		t.Errorf("gaps.csv has %d lines, %v", strings.Count(string(csv), "\n"), err)
	}
	if _, err := report.Load(filepath.Join(dir, "report.json")); err != nil {
		t.Error(err)
	}
}

// A worker that cannot start says why.
func TestWorkerErrorsReachThePerson(t *testing.T) {
	sc := complete(t, &scenario.Scenario{Targets: []string{"127.0.0.1:1"}, Clients: 2, Workers: 1, TLS: scenario.TLS{CA: "/nowhere/ca.pem"}})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), sc, Options{Self: self, Worker: []string{"be-a-worker"}}); err == nil || !strings.Contains(err.Error(), "/nowhere/ca.pem") {
		t.Errorf("%v", err)
	}
}

// An idle TCP client costs at most 12 KB of its process: the difference between a worker with few and one with
// many, so that what a process costs by itself does not count.
func TestMemoryOfAnIdleTCPClient(t *testing.T) {
	if raceDetector {
		t.Skip("SKIPPED: the race detector's memory is not the program's; scripts/test-long.sh measures without it")
	}
	r := &scripted.Registrar{Realm: "example.test", Password: func(u string) string { return "pw" }}
	l, err := scripted.Listen("tcp", r, tls.Certificate{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	few, many := 3*size(), 15*size()
	per := float64(workerKB(t, l.Addr, many)-workerKB(t, l.Addr, few)) / float64(many-few)
	t.Logf("%.1f KB for each idle TCP client, between %d and %d of them", per, few, many)
	if per > 12 {
		t.Errorf("%.1f KB an idle client, want at most 12", per)
	}
}

// workerKB is the resident memory of a worker process with n registered TCP clients.
func workerKB(t *testing.T, target string, n int) int {
	t.Helper()
	sc := complete(t, &scenario.Scenario{Targets: []string{target}, Clients: n, Password: "pw", Ramp: scenario.Ramp{Rate: 4000}, Workers: 1})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCrew(1, []string{self, "be-a-worker"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.close() }()
	_, err = c.all(t.Context(), func(int) request {
		return request{Op: "start", Share: &share{Scenario: sc, Password: "pw", Targets: []string{target}, Count: n, Start: time.Now(), Width: time.Second}}
	})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		live, _, err := c.live(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if live.Bound == n {
			return residentKB(t, c.workers[0].(*process).cmd.Process.Pid)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d registered", live.Bound, n)
		}
	}
}

func residentKB(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "VmRSS:")
	kb := 0
	_, _ = fmt.Sscanf(after, "%d", &kb)
	return kb
}

// The scenario reaches a worker as it is.
func TestScenarioSurvivesItsJSON(t *testing.T) {
	sc, err := scenario.Load("../configs/storms/office.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(complete(t, sc))
	if err != nil {
		t.Fatal(err)
	}
	back := &scenario.Scenario{}
	if err := json.Unmarshal(b, back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(b) {
		t.Errorf("%s\n%s\n%v", b, again, err)
	}
}
