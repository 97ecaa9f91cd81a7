package frontend

import (
	"log/slog"
	"strings"
	"testing"

	"rollcall/registrar"
	"rollcall/registrar/sipfront"
)

// A second process with the name of a Front End that runs refuses to start, and the pool doesn't notice.
func TestSameNameTwiceIsRefused(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	before := p.await("two up", formed(2))
	f, err := New(Config{
		Name: "fe1", Boot: "twin", Domains: []string{"example.test"}, Policy: registrar.DefaultPolicy(), Health: "127.0.0.1:0",
		Groups: 6, Listen: []sipfront.Listen{{Transport: "udp", Addr: "127.0.0.1:0"}},
	}, Deps{Bus: p.connect("twin"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "fe1 runs already") {
		t.Errorf("the twin ended with %v", err)
	}
	if after := p.placement(); after.Epoch != before.Epoch {
		t.Errorf("the epoch went from %d to %d", before.Epoch, after.Epoch)
	}
}
