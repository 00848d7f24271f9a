#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test.sh needs | build DIR | test DIR | device DIR: the commands of all bindings' tests. node-gyp
# would fetch the headers of Node from the network, so call the compiler directly.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# The headers come with Node, or in Debian's libnode-dev.
headers()
{
	local folder

	for folder in ${NODE_INCLUDE:+"$NODE_INCLUDE"} "$(dirname "$(readlink -f "$(type -P node)")")/../include/node" \
		/usr/include/node; do
		[ ! -e "$folder/node_api.h" ] || { echo "$folder"; return; }
	done
}

needs()
{
	[[ $(type -P cc) ]] || echo "a C compiler (Debian: build-essential)"
	if [[ ! $(type -P node) ]]; then
		echo "node (Debian: nodejs)"
	elif ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; then
		echo "node 18"
	elif [ -z "$(headers)" ]; then
		echo "node_api.h (Debian: libnode-dev)"
	elif ! echo '#include <uv.h>' | cc -I"$(headers)" -E -xc - >/dev/null 2>&1; then
		echo "uv.h (Debian: libuv1-dev)"
	fi
}

build()
{
	mkdir -p "$1/build/Release"
	cp -r "$here"/{index.js,index.d.ts,package.json,acceptance.js,bench.js,test} "$1"
	cc -O2 -g -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -I"$(headers)" -I"$TWHEEL_LIB/include" \
		-o "$1/build/Release/twheel.node" "$here/src/addon.c" "$TWHEEL_LIB/lib/libtwheel.a" -lm -pthread
}

# Print node's TAP without the lines for files, and run the acceptance program.
run()
{
	local line nr=0 status=0 said

	echo "TAP version 13"
	# The virtual machine has no /dev/fd.
	node --test --test-reporter=tap test >said 2>&1 || true
	while IFS= read -r line; do
		if [[ $line =~ ^\ *(ok|not\ ok)\ [0-9]+\ -\ (.*)$ ]] && [[ ${BASH_REMATCH[2]} != *.test.js ]]; then
			[ "${BASH_REMATCH[1]}" = ok ] || status=1
			echo "${BASH_REMATCH[1]} $((++nr)) ${BASH_REMATCH[2]}"
		elif [[ ! $line =~ ^(TAP|1\.\.|\ *(#|---|\.\.\.|duration_ms|type:)) ]]; then
			echo "# $line"
		fi
	done <said
	[ $nr -gt 0 ] || status=1
	if said=$(node acceptance.js "$@" 2>&1); then
		echo "ok $((++nr)) acceptance: $said"
	else
		status=1
		echo "not ok $((++nr)) acceptance: $said"
	fi
	echo "1..$nr"
	return $status
}

case ${1:-} in
needs) needs ;;
build) build "$2" ;;
test) cd "$2" && run ;;
device) cd "$2" && TWHEEL_DEVICE=1 run --device ;;
*)
	sed -n '4,5s/^# //p' "$0" >&2
	exit 2
	;;
esac
