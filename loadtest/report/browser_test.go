package report

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rollcall/test/harness"
)

// A real browser draws the page. STORM_ARTEFACTS names a directory that keeps the picture.
func TestPageInARealBrowser(t *testing.T) {
	harness.Require(t, "chromium")
	dir := os.Getenv("STORM_ARTEFACTS")
	if dir == "" {
		dir = t.TempDir()
	}
	if err := sample(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "report.html")
	shot := filepath.Join(dir, "report.png")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Every name but the file is unknown to this browser: a request that leaves the page would fail, and show in the picture.
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir="+t.TempDir(), "--window-size=1100,2600", "--screenshot="+shot, (&url.URL{Scheme: "file", Path: page}).String())
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := os.Stat(shot)
	if err != nil || s.Size() < 20_000 {
		t.Errorf("the picture is missing or nearly empty: %v", err)
	}
}
