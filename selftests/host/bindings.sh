#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the bindings to other languages in the process. `make test-bindings' tests them on the
# device too.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/bindings.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/bindings_test
mapfile -t names < <(cd "$top/bindings" && printf '%s\n' */test.sh)

fresh_tree()
{
	rm -rf "$work/product"
	mkdir -p "$work/product"
}

# test.sh reports a failure by a line, not by its exit status.
build_and_test()
{
	binding "$1" build "$work/product"
	binding "$1" test "$work/product" >"$work/said"
	cat "$work/said"
	! grep '^not ok' "$work/said" || return
	grep '^ok' "$work/said"
}

rm -rf "$work"
mkdir -p "$work"
library_for_bindings "$work/twheel"
echo "TAP version 13"
echo "1..${#names[@]}"
for name in "${names[@]%/*}"; do
	what="the binding for $name builds, and its tests in the process pass"
	lacks=$(binding_lacks "$name")
	if [ -n "$lacks" ]; then
		verdict ok "$what # SKIP this machine lacks: $lacks"
	else
		holds "$what" build_and_test "$name"
	fi
done
