#!/usr/bin/env bash
# The everyday tests, in one command: installs what they need, checks the form of
# the code, and runs every test with the race detector. From anywhere.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v go >/dev/null || {
	echo "test: no Go here: install Go 1.26 or later from https://go.dev/dl" >&2
	exit 1
}
# In CI a missing peer is a failure; elsewhere the tests that need it skip and say so.
scripts/install-peers.sh || [ "${CI:-}" != true ] || exit 1

echo "== gofmt"
unformatted=$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 -r gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'test: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
echo "== go vet"
go vet ./...
echo "== staticcheck"
go tool staticcheck ./...
echo "== go test -race"
# The system tests start pools of their own and measure nothing; two packages at a
# time keep them from starving one another on a small machine.
# -count=1: the tests with real processes build the program themselves, which the cache does not see.
exec go test -race -count=1 -p 2 -timeout 15m "$@" ./...
