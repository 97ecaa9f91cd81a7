#!/usr/bin/env bash
# How long from `kill -9` of a Front End of an idle pool of three until every
# survivor acts on the new placement: each run, the median and the 90th percentile.
#   scripts/failover-timing.sh [--runs 20]
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./test/failover "$@"
