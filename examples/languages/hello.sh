#!/bin/sh
# SPDX-License-Identifier: 0BSD
#
# The smallest program in shell: records by printf and dd, an event by dd and od. It is for
# little-endian machines. ../raw/twheel.sh makes records of any numbers.
set -eu

# Without the module, root would make a file of that name.
[ -c /dev/twheel ] || { echo "there is no /dev/twheel: load the module" >&2; exit 1; }
exec 3<>/dev/twheel

# struct twheel_setup_record: TWHEEL_OP_SETUP, TWHEEL_CLOCK_MONOTONIC, a tick of 1000000 ns.
# dd collects the bytes of a record and writes them at once.
printf '\4\0\0\0\0\0\0\0\1\1\0\0\0\0\0\0\100\102\17\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' |
	dd obs=40 >&3 2>/dev/null

# struct twheel_record: TWHEEL_OP_ARM, the key 42, 100000000 ns from now.
printf '\1\0\0\0\0\0\0\0\52\0\0\0\0\0\0\0\0\341\365\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' |
	dd obs=40 >&3 2>/dev/null

# struct twheel_event: id, user_data, deadline_ns, fired_ns, count and flags.
# shellcheck disable=SC2046 # words
set -- $(dd bs=40 count=1 <&3 2>/dev/null | od -A n -v -t u8)
echo "timeout $2 has expired, $((($4 - $3) / 1000)) us after its deadline"
