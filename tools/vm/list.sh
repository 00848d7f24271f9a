#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make list: print the names of all tests.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/names.sh"

# group HEADING NAME...
group()
{
	echo "$1"
	shift
	printf '%s\n' "$@" | fmt -w 78 | sed 's/^/  /'
	echo
}

mapfile -t names < <(host_names)
group 'make test, on this machine:' "${names[@]}"
mapfile -t names < <(guest_names usual)
group 'make test, test-debug, test-race, test-rt, test-arm64, in the virtual machine:' "${names[@]}"
mapfile -t names < <(guest_names debug)
group 'make test-debug:' "${names[@]}"
mapfile -t names < <(guest_names syncpoints)
group 'make test-debug, test-race:' "${names[@]}"
mapfile -t names < <(check_names)
group 'make check:' "${names[@]}"
echo 'TESTS="NAME PATTERN* ..." chooses among them, for instance'
echo '  make test KERNELS=6.12 TESTS="twheel_arm *race*"'
