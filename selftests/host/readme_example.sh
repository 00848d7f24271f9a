#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The C program in README.md compiles as it stands there; it then runs in the
# guest. It is the ```c block after the line <!-- test: readme-example -->, or
# all of these, one after the other.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"

source=$build/readme_example.c
program=$build/readme_example

compile()
{
	awk '
	/^<!-- test: readme-example -->/ { armed = 1 }
	/^```/ && inside                 { inside = 0; next }
	/^```c$/ && armed                { inside = 1; armed = 0; next }
	inside' "$top/README.md" >"$source" || return
	[ -s "$source" ] || return
	gcc -std=gnu11 -O2 -Wall -Wextra -Werror -I"$top/uapi" -static -pthread \
		"$source" -o "$program"
}

mkdir -p "$build"
rm -f "$program"
echo "TAP version 13"
echo "1..2"
if compile; then
	echo "ok 1 the program in README.md compiles"
else
	echo "not ok 1 the program in README.md compiles"
fi
if cmp -s "$source" "$top/examples/hello.c"; then
	echo "ok 2 the program in README.md is examples/hello.c"
else
	echo "not ok 2 the program in README.md is examples/hello.c"
fi
