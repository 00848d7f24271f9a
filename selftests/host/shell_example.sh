#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The lines of shell in README.md, after <!-- test: shell-example -->, are those of
# examples/twheel.sh, which then runs in the guest, by busybox' ash.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"

example=$top/examples/twheel.sh

rm -f "$build/shell_example"
mkdir -p "$build"
cp "$example" "$build/shell_example"
lines=$(awk '
	/^<!-- test: shell-example -->/ { armed = 1 }
	/^```/ && inside                { exit }
	inside
	/^```sh$/ && armed              { inside = 1 }' "$top/README.md")

echo "TAP version 13"
echo "1..1"
if [ -n "$lines" ] && [[ $(<"$example") = *$'\n'"$lines"$'\n'* ]]; then
	echo "ok 1 the lines in README.md are of examples/twheel.sh"
else
	echo "not ok 1 the lines in README.md are of examples/twheel.sh"
fi
