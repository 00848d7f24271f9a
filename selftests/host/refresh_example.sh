#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples compile; examples/refresh and examples/online then run in the guest.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"

rm -f "$build/refresh_example" "$build/online_example"
echo "TAP version 13"
echo "1..1"
if make -s -C "$top/examples" OUTPUT="$build/examples" LDFLAGS=-static &&
	cp "$build/examples/refresh" "$build/refresh_example" &&
	cp "$build/examples/online" "$build/online_example"; then
	echo "ok 1 the examples compile"
else
	echo "not ok 1 the examples compile"
fi
