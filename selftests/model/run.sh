#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Let spin prove the model of the lock and of the code beside it, in parts that fit into memory,
# and find each mistake that can be built into the model. Prints TAP.
#
#	OUTPUT  the folder for products, which are kept; by default a temporary one
#	ONLY    a pattern: only the parts and the mistakes whose names match
#	JOBS    how many at a time (default: 2), each in up to 3.5 GB
#
# To replay a failure step by step: sh OUTPUT/NAME/replay

unset CDPATH
model=$(dirname "$(readlink -f "$0")")/twheel.pml

# name | options of the build (NAME=value, or WITH_NAME), the longest first
proofs()
{
	cat <<-END
	two     | NR=2
	drain   | NR=1 HOLDER DRAIN
	holder  | NR=1 HOLDER
	hogs    | NR=1 HOLDER HOGS
	END
}

# BREAK_name | the mistake | options of the build
breaks()
{
	cat <<-END
	LOOK_FIRST | twheel_unlock_quietly() looking at the inbox before it releases the lock | NR=1 HOLDER
	TRY_FIRST | arm_queue() trying the lock before it adds to the inbox | NR=1 HOLDER
	MISSED | alarm_missed() asking the kthread only | NR=1 HOLDER HOGS
	BARRED | alarm_leave() asking the kthread only | NR=1 HOGS
	LOOK_UNQUEUED | a waiter looking before it queues | NR=1
	NO_GRACE | twheel_drain() without synchronize_rcu() | NR=1 HOLDER DRAIN
	DRAIN_UNSEEN | arm_insert_unlock() not looking whether the wheel is draining | NR=1 DRAIN
	DRAINED_LATE | twheel_fop_read_iter() looking at drained after the events | NR=1 DRAIN
	LOST_LOCK | alarm_work() not asking the kthread when it loses the lock | NR=2
	REST_LEFT | alarm_work() not asking the kthread to do the rest | NR=2
	END
}

# build NAME "OPTIONS": build ./pan in a folder of its own.
build()
{
	local word defs=()

	for word in $2; do
		case $word in
		BREAK_* | *=*) defs+=("-D$word") ;;
		*) defs+=("-DWITH_$word") ;;
		esac
	done
	mkdir -p "$OUTPUT/$1" && cd "$OUTPUT/$1" || return
	rm -f pan ./*.trail
	echo "cd '$PWD' && spin -p -g -k twheel.pml.trail ${defs[*]} '$model'" > replay
	# COLLAPSE needs a third of the memory.
	spin "${defs[@]}" -a "$model" > log 2>&1 &&
		${CC:-cc} -w -O2 -DSAFETY -DNOFAIR -DCOLLAPSE -DMEMLIM=3500 -o pan pan.c >> log 2>&1
}

# -E ignores invalid end states: the kthread and the reader wait for ever. The judge finds
# deadlocks.
search()
{
	nice ./pan -E -m100000 -w24 >> log 2>&1
}

# spin has seen all states, up to the end of the judge, and found no error.
is_proved()
{
	grep -q '^State-vector.* errors: 0$' log &&
		! sed -n '/^unreached in init/,$p' log | grep -q -e '-end-' &&
		! grep -q -e 'Search not completed' -e 'search depth too small' log
}

is_found()
{
	grep -q '^pan:1: assertion violated' log && [ -e twheel.pml.trail ]
}

# Print it in one write, since other jobs print at the same time.
report()
{
	local text="$1 - $2"

	[ "$1" = ok ] || text+=$'\n'$(tail -n 20 log | cut -c -100 | sed 's/^/# /')
	echo "$text"
}

prove()
{
	local verdict='not ok' states

	build "$1" "$2" && search && is_proved && verdict=ok
	states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log)
	report "$verdict" "$1: exactly one outcome, nothing lost (${states:-no} states)"
}

find_break()
{
	local verdict='not ok'

	build "break_$1" "BREAK_$1 $3" && search
	is_found && verdict=ok
	report "$verdict" "$2 is found"
}

# Wait until another job may run.
next_job()
{
	[ "$(jobs -pr | wc -l)" -lt "$JOBS" ] || wait -n
}

run_all()
{
	local name what how

	while IFS='|' read -r name how; do
		name=${name// /}
		# shellcheck disable=SC2053 # a pattern
		[[ $name == $ONLY ]] || continue
		next_job
		prove "$name" "$how" &
	done < <(proofs)
	while IFS='|' read -r name what how; do
		name=${name// /}
		# shellcheck disable=SC2053 # a pattern
		[[ $name == $ONLY ]] || continue
		next_job
		find_break "$name" "$(xargs <<< "$what")" "$how" &
	done < <(breaks)
	wait
}

number_lines()
{
	local line number=0 failed=0

	while IFS= read -r line; do
		case $line in
		ok*) echo "ok $((++number))${line#ok}" ;;
		not*) echo "not ok $((++number))${line#not ok}"; failed=1 ;;
		*) echo "$line" ;;
		esac
	done
	echo "1..$number"
	[ $failed = 0 ] && [ $number -gt 0 ]
}

JOBS=${JOBS:-2}
ONLY=${ONLY:-*}
if ! command -v spin > /dev/null; then
	echo 'Bail out! There is no spin (Debian: apt install spin).'
	exit 1
fi
if [ -z "${OUTPUT:-}" ]; then
	OUTPUT=$(mktemp -d) || exit
	trap 'rm -rf "$OUTPUT"' EXIT
fi
mkdir -p "$OUTPUT" && OUTPUT=$(readlink -f "$OUTPUT") || exit

echo 'TAP version 13'
run_all | number_lines
