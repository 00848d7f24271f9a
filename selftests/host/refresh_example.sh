#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples compile; examples/refresh then runs in the guest.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"

program=$build/refresh_example

rm -f "$program"
echo "TAP version 13"
echo "1..1"
if make -s -C "$top/examples" OUTPUT="$build/examples" LDFLAGS=-static &&
	cp "$build/examples/refresh" "$program"; then
	echo "ok 1 the examples compile"
else
	echo "not ok 1 the examples compile"
fi
