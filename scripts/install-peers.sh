#!/usr/bin/env bash
# Installs the real peers that the tests drive: SIPp, baresip, Linphone's console,
# Kamailio and sipsak, and Chromium, which draws the reports; as Debian packages them.
# Does nothing, quickly, when all are there.
set -euo pipefail

# program:package
peers=(sipp:sip-tester baresip:baresip-core linphonec:linphone-cli kamailio:kamailio sipsak:sipsak chromium:chromium)

missing() {
	local peer
	for peer in "${peers[@]}"; do
		PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "${peer%%:*}" >/dev/null || echo "${peer##*:}"
	done
}

fail() {
	echo "install-peers: $*" >&2
	exit 1
}

mapfile -t packages < <(missing)
if [ "${#packages[@]}" -eq 0 ]; then
	exit 0
fi

command -v apt-get >/dev/null ||
	fail "missing ${packages[*]}, and there is no apt-get here: install the programs that they hold by hand"
[ "$(id -u)" -eq 0 ] ||
	fail "missing ${packages[*]}: run 'sudo apt-get install --no-install-recommends ${packages[*]}'"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
echo "install-peers: installing ${packages[*]}"

# Kamailio's package would start the service; the tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	trap 'rm -f "$log" "$policy"' EXIT
fi

for attempt in 1 2 3; do
	if apt-get update >"$log" 2>&1 &&
		apt-get install -y --no-install-recommends "${packages[@]}" >"$log" 2>&1 </dev/null; then
		break
	fi
	[ "$attempt" -lt 3 ] || fail "apt-get could not install ${packages[*]}: $(grep -E '^(E|Err)' "$log" | tail -1)"
	sleep $((attempt * 5))
done

mapfile -t packages < <(missing)
[ "${#packages[@]}" -eq 0 ] || fail "apt-get said nothing, and ${packages[*]} is still missing"
