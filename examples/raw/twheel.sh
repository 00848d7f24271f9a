#!/bin/sh
# SPDX-License-Identifier: 0BSD
#
# twheel.sh - timeouts in a shell script, with printf, dd and od
#
# Users are online for three seconds from their last sign of life. Of users 10 and 11, the
# first gives a sign after a second, and the other one signs off. User 13, who may stay for
# one second, comes. It prints who is offline, and how late the kernel said so.

set -eu

# Values of <linux/twheel.h>
ARM=1 CANCEL=3 SETUP=4
KEYED=2 ABSENT_OK=65536
CLOCK_MONOTONIC=257

# put VALUE BYTES: adds a number to $record, as printf writes it, lowest byte first.
put()
{
	value=$1 bytes=$2
	while [ "$bytes" -gt 0 ]; do
		record="$record\\$((value >> 6 & 3))$((value >> 3 & 7))$((value & 7))"
		value=$((value >> 8)) bytes=$((bytes - 1))
	done
}

# send OP FLAGS KEY EXPIRES_NS: writes a struct twheel_record. All its bytes have to come by
# one write(). The printf of bash writes at each byte 10 what it has so far; dd collects 40
# bytes and writes these at once.
send()
{
	record=
	put "$1" 4		# op
	put "$2" 4		# flags
	put "$3" 8		# key; of SETUP, the clock
	put "$4" 8		# expires_ns; of SETUP, the tick
	put 0 16		# interval_ns, repeats, slack_ticks: none
	# shellcheck disable=SC2059 # the record is the format
	printf "$record" | dd obs=40 >&3 2>/dev/null || {
		echo "a record was refused" >&2
		exit 1
	}
}

# receive: waits for an event, a struct twheel_event, and sets id, key, deadline, fired.
receive()
{
	# shellcheck disable=SC2046 # words
	set -- $(dd bs=40 count=1 <&3 2>/dev/null | od -A n -v -t u8)
	key=$2 deadline=$3 fired=$4
}

# Without the module, root would make a file of that name.
[ -c /dev/twheel ] || { echo "there is no /dev/twheel: load the module" >&2; exit 1; }
exec 3<>/dev/twheel
send $SETUP $KEYED $CLOCK_MONOTONIC 1000000	# a tick of 1 ms

send $ARM 0 10 3000000000		# user 10 is offline in three seconds
send $ARM 0 11 3000000000
sleep 1
send $ARM 0 10 3000000000		# a sign of life: the key is there, and moves
send $CANCEL $ABSENT_OK 11 0		# signs off, or has been offline for long
send $ARM 0 13 1000000000

for expected in 13 10; do
	receive
	echo "user $key is offline, told after $(((fired - deadline) / 1000)) us"
	[ "$key" = $expected ] || {
		echo "it should have been user $expected" >&2
		exit 1
	}
done
