package harness

import (
	"os"
	"strings"
)

// T is what Require needs of a test.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Require makes sure that programs are installed. A missing one fails the test in CI, and
// skips it, loudly, elsewhere.
func Require(t T, programs ...string) {
	t.Helper()
	missing := Missing(programs...)
	if len(missing) == 0 {
		return
	}
	const say = "NOT TESTED: %s not installed; scripts/install-peers.sh installs what the tests need"
	if os.Getenv("CI") == "true" {
		t.Fatalf(say, strings.Join(missing, ", "))
	}
	t.Skipf(say, strings.Join(missing, ", "))
}
