#!/usr/bin/env bash
# What a REGISTER costs: CPU per request of the primary Front End, a relaying one,
# each copy and the bus, next to Kamailio under the same SIPp load in the same run;
# memory per binding and per idle TCP connection.
#   scripts/cost.sh [--short]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-peers.sh
exec go run ./test/cost "$@"
