#!/usr/bin/env bash
# The long tests. Without --short: 10,000 users through kill -9 and restarts, 20
# failovers timed, and the cost table at full length (about half an hour). With
# --short: the same programs in their short forms (a few minutes).
set -euo pipefail
cd "$(dirname "$0")/.."

short=false
case "${1:-}" in
--short) short=true ;;
"") ;;
*)
	echo "usage: scripts/test-long.sh [--short]" >&2
	exit 2
	;;
esac
scripts/install-peers.sh || [ "${CI:-}" != true ] || exit 1

# storm N: every client that lost its connection must be back, and the report be written.
storm() {
	out=$(mktemp -d)
	go run ./cmd/rollcall storm --pool --frontends 3 --users "$1" --transport tcp --kill fe2@5s --duration 15s --out "$out" \
		--fail-if "registered_end < $1"
	ls "$out"/report.json "$out"/report.html "$out"/gaps.csv
	rm -r "$out"
}

echo "== memory, without the race detector"
go test -count=1 -run Memory -v ./loadtest

if $short; then
	echo "== failover timing, 3 runs"
	scripts/failover-timing.sh --runs 3
	echo "== cost table, short"
	scripts/cost.sh --short
	echo "== a storm: 1,000 TCP clients lose a Front End"
	storm 1000
	echo "== fuzzing, short"
	scripts/fuzz.sh --short
else
	echo "== system tests at full length"
	ROLLCALL_LONG=1 go test -count=1 -timeout 40m -v ./test/system
	echo "== the simulator at full length"
	ROLLCALL_LONG=1 go test -count=1 -timeout 60m ./internal/sim -storms 200
	echo "== system tests against a binary with the race detector"
	ROLLCALL_RACE=1 go test -count=1 -timeout 20m ./test/system
	echo "== failover timing, 20 runs"
	scripts/failover-timing.sh --runs 20
	echo "== cost table"
	scripts/cost.sh
	echo "== a storm: 5,000 TCP clients lose a Front End"
	storm 5000
fi
