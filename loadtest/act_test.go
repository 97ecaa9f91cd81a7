package loadtest

import (
	"syscall"
	"testing"

	"rollcall/loadtest/scenario"
)

// Every event but exec and cut, which have their own ways, is a signal to a process; a drain is the
// planned one, and takes no server away from clients without a connection.
func TestSignalOf(t *testing.T) {
	for verb, want := range map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGTERM, "restart": syscall.SIGTERM,
		"drain": syscall.SIGTERM, "pause": syscall.SIGSTOP, "resume": syscall.SIGCONT} {
		e, err := scenario.ParseEvent(verb, "fe2@5s")
		if err != nil {
			t.Fatal(err)
		}
		if sig, ok := signalOf(e.Verb); !ok || sig != want {
			t.Errorf("%s: %v, want %v", verb, sig, want)
		}
		if e.TakesServer() != (verb != "drain" && verb != "resume") {
			t.Errorf("%s: TakesServer is %v", verb, e.TakesServer())
		}
	}
	if _, ok := signalOf("exec"); ok {
		t.Error("exec is no signal")
	}
}
