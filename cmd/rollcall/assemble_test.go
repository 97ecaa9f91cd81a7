package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/config"
	"rollcall/internal/control"
)

// What the file says of bearer tokens, GRUUs and registering for others reaches the Front End.
func TestAssemble(t *testing.T) {
	s := control.DefaultSettings()
	s.Key = make([]byte, 32)
	cfg, err := assemble(config.Default(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Policy.GRUU == nil || cfg.Auth.Bearer != nil || cfg.Auth.MayRegister != nil || cfg.FlowGrace != 0 || !slices.Contains(cfg.SIP.Supported, "gruu") {
		t.Errorf("by default: %+v", cfg)
	}

	dir := t.TempDir()
	keys := filepath.Join(dir, "jwks.json")
	file := filepath.Join(dir, "rollcall.yaml")
	for name, text := range map[string]string{
		keys: `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, // RFC 8037 appendix A.2
		file: "registrar: {gruu: false, flow_grace: 2s, watchers: [ops], third_party: [{user: gw, for: 'sip:.*@example[.]test'}]}\n" +
			"bearer: {offer: first, jwks_file: " + keys + ", issuer: i, audience: a, authz_server: 'https://x', scope: sip}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err = assemble(c, s, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Watchers) != 1 || cfg.Watchers[0] != "sip:ops@example.test" {
		t.Errorf("watchers: %v", cfg.Watchers)
	}
	a := cfg.Auth
	if cfg.Policy.GRUU != nil || cfg.FlowGrace != 2*time.Second || slices.Contains(cfg.SIP.Supported, "gruu") || !a.MayRegister("sip:gw@example.test", "sip:x@example.test") ||
		strings.Join(a.Schemes, " ") != "Bearer Digest" || a.Bearer.Server != "https://x" || a.Bearer.Scope != "sip" {
		t.Errorf("%+v", cfg)
	}
	if _, err := a.Bearer.Check("a.b.c", time.Now()); err == nil {
		t.Error("noise is a token")
	}
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	if _, err := assemble(c, s, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), keys) {
		t.Errorf("without the key file: %v", err)
	}
}
