#!/usr/bin/env bash
# Fuzzes every fuzz target of the module, one after the other, two workers each, and
# prints what came of it. What breaks a target is kept in its testdata/fuzz folder.
#   scripts/fuzz.sh [SECONDS]    per target; 600 without a number
#   scripts/fuzz.sh --short      5 seconds per target
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=600
case "${1:-}" in
--short) seconds=5 ;;
"") ;;
*[!0-9]* | 0)
	echo "usage: scripts/fuzz.sh [SECONDS per target | --short]" >&2
	exit 2
	;;
*) seconds=$1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
found=0
row='%-46s %12s %15s  %s\n'
table="$work/table"
# shellcheck disable=SC2059
printf "$row" target executions "new interesting" result >"$table"

# The packages are asked for their targets: a list kept by hand would grow old.
for package in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
	targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz') || {
		echo "$package: no targets, though its tests have a func Fuzz" >&2
		failed=1
		continue
	}
	for target in $targets; do
		found=$((found + 1))
		echo "== ${package#./} $target, $seconds s"
		result=ok
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" -parallel 2 "$package" >"$work/log" 2>&1 || {
			result=FAILED
			failed=1
			cat "$work/log"
		}
		last=$(grep 'execs:' "$work/log" | tail -n 1 || true)
		executions=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' <<<"$last")
		interesting=$(sed -n 's/.*new interesting: \([0-9]*\).*/\1/p' <<<"$last")
		if [ "$result" = ok ] && [ -z "$executions" ]; then
			result="ok, but too short for more than the corpus"
		fi
		# shellcheck disable=SC2059
		printf "$row" "${package#./} $target" "${executions:--}" "${interesting:--}" "$result" >>"$table"
	done
done

echo
cat "$table"
if [ "$found" -eq 0 ]; then
	echo "no fuzz targets found" >&2
	exit 1
fi
exit "$failed"
