#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the module's wheel and the library on a big-endian machine: the tests are compiled for
# s390x, and qemu emulates a process. s390x has no runtime for the sanitizers, so UBSAN traps.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../vm/lib/common.sh"
. "$(dirname "$0")/../vm/lib/cross.sh"

out=$build/s390x
# Emulation makes a test ten times as slow, so tests with random input run fewer rounds.
export LIMIT=600 ROUNDS=20
nr=0
status=0

# on_s390x FOLDER ARGUMENT...: build and run the tests in that folder of selftests.
on_s390x()
{
	local folder=$1
	shift

	make -C "$top/selftests/$folder" OUTPUT="$out/$folder" CC="$(cross_compiler s390x)" \
		AR="$(cross_target s390x)-ar" EMULATOR=qemu-s390x \
		SANITIZE='-static -fsanitize=undefined -fsanitize-undefined-trap-on-error' \
		"$@" run
}

# numbered NAME: pass a TAP stream on, with test numbers that continue the stream before it.
numbered()
{
	local line planned='' seen=0

	while IFS= read -r line; do
		if [[ $line =~ ^(ok|not\ ok)\ [0-9]+\ (.*)$ ]]; then
			nr=$((nr + 1))
			seen=$((seen + 1))
			echo "${BASH_REMATCH[1]} $nr $1: ${BASH_REMATCH[2]}"
		elif [[ $line =~ ^1\.\.([0-9]+)$ ]]; then
			planned=${BASH_REMATCH[1]}
		elif [ "$line" != 'TAP version 13' ]; then
			echo "$line"
		fi
	done
	[ "$seen" = "$planned" ] && return
	nr=$((nr + 1))
	status=1
	echo "not ok $nr $1: reaches its plan (planned ${planned:-none}, seen $seen)"
}

use_cross s390x
echo "TAP version 13"
numbered wheel < <(on_s390x wheel 2>&1)
wait $! || status=1
# A process under qemu has no TCP_INFO, so leave out twheel_lib_tcp.
numbered lib < <(on_s390x lib PROGRAMS='twheel_lib twheel_lib_[!t]* twheel_lib_t[!c]*' 2>&1)
wait $! || status=1
echo "1..$nr"
exit $status
