#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Have spin prove the model of the state word, in parts that fit into memory,
# and have it find each of the mistakes that the model can be built with. TAP.
#
#	OUTPUT  where the products go, and stay; otherwise a scratch directory
#	ONLY    a pattern: only the parts and the mistakes whose names match
#	JOBS    how many at a time (default: 2), each in up to 3.5 GB
#
# What fails can be looked at, step by step: sh OUTPUT/NAME/replay

unset CDPATH
model=$(dirname "$(readlink -f "$0")")/twheel.pml

# name | how the model is built (NAME=value, or WITH_NAME), the longest first
proofs()
{
	cat <<-END
	fixed_rate  | CANCEL REARM FIXED_RATE OPS=3 DELAY_MAX=1
	fixed_delay | CANCEL REARM FIXED_DELAY OPS=3 DELAY_MAX=1
	one_shot    | CANCEL REARM FAULTS ONE_SHOT OPS=3
	drain_rate  | CANCEL REARM DRAIN FIXED_RATE OPS=2 DELAY_MAX=1
	drain_delay | CANCEL REARM DRAIN FIXED_DELAY OPS=2 DELAY_MAX=1
	drain_once  | CANCEL REARM FAULTS DRAIN ONE_SHOT OPS=2
	close       | CANCEL REARM CLOSE ONE_SHOT FIXED_RATE FIXED_DELAY OPS=2
	query       | CANCEL QUERY ONE_SHOT OPS=4 TIME_END=1 DELAY_MAX=1
	query_rate  | CANCEL QUERY FIXED_RATE LIMITED_RATE OPS=2 TIME_END=3 DELAY_MAX=1
	two_places  | CANCEL REARM ONE_SHOT PLACES=2 OPS=3 TIME_END=1 DELAY_MAX=1
	sweep       | REARM SWEEP ONE_SHOT PLACES=2 OPS=3 TIME_END=1 DELAY_MAX=1
	entries     | CANCEL SWEEP ONE_SHOT PLACES=2 OPS=4 TIME_END=1
	limited     | CANCEL REARM LIMITED_RATE LIMITED_DELAY OPS=2 TIME_END=3
	drain_limit | CANCEL DRAIN LIMITED_RATE LIMITED_DELAY OPS=2 TIME_END=3 DELAY_MAX=1
	periods     | CANCEL FIXED_RATE LIMITED_RATE OPS=2 TIME_END=5 REPEATS=3 DELAY_MAX=1
	mixed       | CANCEL REARM ONE_SHOT FIXED_RATE FIXED_DELAY LIMITED_RATE LIMITED_DELAY OPS=2
	END
}

# BREAK_name | the mistake | how the model is built
breaks()
{
	cat <<-END
	EXPIRE_STORE | a store instead of compare-and-swap in timeout_expire_once() | CANCEL ONE_SHOT OPS=2
	ENTER_STORE | a store instead of compare-and-swap in timeout_enter() | CANCEL ONE_SHOT OPS=2
	DRAIN_STORE | a store instead of compare-and-swap in timeout_drain() | CANCEL DRAIN ONE_SHOT OPS=2
	NO_REARMING | a comparison and a later store, without REARMING, in timeout_rearm() | CANCEL REARM ONE_SHOT OPS=3 TIME_END=1
	REARM_UNLOCKED | timeout_rearm() without the lock | CANCEL REARM ONE_SHOT OPS=2
	LOOK_REARMING | timeout_look() not waiting for what is REARMING | CANCEL REARM ONE_SHOT OPS=3 TIME_END=1
	CANCEL_UNREAD_UNLOCKED | cancel_unread() without the lock | CANCEL REARM ONE_SHOT OPS=2
	CANCEL_UNREAD_UNCHECKED | cancel_unread() not comparing the state | CANCEL REARM ONE_SHOT OPS=2
	FREE_QUEUED | cancel_pending() freeing what is QUEUED instead of making it DEAD | CANCEL ONE_SHOT OPS=2
	GENERATION_STUCK | state_freed() keeping the generation | CANCEL ONE_SHOT OPS=2
	QUERY_UNCHECKED | timeout_status() not looking at the generation again | CANCEL QUERY ONE_SHOT OPS=4 TIME_END=1 DELAY_MAX=1
	SEQ_STUCK | state_placed() keeping the sequence number | REARM FIXED_RATE OPS=2
	ENTRY_SEQ | timeout_expire() not comparing the sequence number | REARM FIXED_RATE OPS=3 DELAY_MAX=1
	MOVED_LATER | timeout_expire() not looking whether the timeout was moved later | REARM ONE_SHOT OPS=2
	STALE_ROOM | entry_expire() keeping the room of what is stale | REARM ONE_SHOT PLACES=2 OPS=3
	KEEP_ROOM | timeout_expire() giving back the room of a fixed rate | FIXED_RATE OPS=1
	UNREAD_IN_WHEEL | timeout_expire_periodic() leaving a fixed rate in the wheel | FIXED_RATE OPS=1
	READ_UNSETTLED | twheel_events_commit() not settling the periods that were read | FIXED_RATE OPS=1
	SETTLE_NOW | twheel_events_commit() settling periods that passed since they were looked at | FIXED_RATE OPS=1
	PHASE_LOST | event_continue() going on from now with a fixed rate | FIXED_RATE OPS=1
	EVENT_COUNT | event_is_same() not comparing the count | DRAIN LIMITED_RATE OPS=1
	SETTLE_UNCOUNTED | periods_settle() not counting it in ready_changes | DRAIN LIMITED_RATE OPS=1
	DRAIN_UNSETTLED | timeout_drain() not settling the periods that have passed | DRAIN FIXED_RATE OPS=1
	TAKE_FIRST | an event taken before it is copied to the user | ONE_SHOT OPS=1
	READ_UNCHECKED | twheel_events_commit() not looking at ready_changes | CANCEL FIXED_RATE OPS=2
	READ_DRAINING | twheel_events_commit() re-arming a fixed delay while draining | DRAIN FIXED_DELAY OPS=1
	NO_REQUEUED | twheel_arm_commit() not looking at nr_requeued | REARM ONE_SHOT OPS=2
	DEFER_EARLIER | timeout_move() that keeps an entry that comes up too late | REARM ONE_SHOT PLACES=2 OPS=3
	INBOX_UNLOCKED | twheel_rearm_commit() adding to the inbox after the lock | REARM ONE_SHOT OPS=3 TIME_END=1
	KEEP_EARLIER | entry_will_do() not comparing the times | CANCEL ONE_SHOT PLACES=2 OPS=4 TIME_END=1
	POSTPONE_UNTOLD | timeout_postpone() not telling the timeout of its entry | CANCEL REARM ONE_SHOT OPS=3
	POSTPONE_UNCHECKED | timeout_postpone() of a timeout that was cancelled | CANCEL REARM ONE_SHOT OPS=4
	KEEP_STORE | a store instead of compare-and-swap in arm_publish(), of a place with an entry | CANCEL ONE_SHOT OPS=3
	KEEP_ROOM_TWICE | arm_commit() keeping the room of what has an entry | CANCEL ONE_SHOT OPS=3
	CLAIM_FORGETS | entry_claim() not telling the place | CANCEL ONE_SHOT OPS=3
	EXPIRE_ONE_LOOK | entry_expire() dropping what another thread has changed | CANCEL ONE_SHOT OPS=3
	WAKE_ORDER | pass_begin() taking the inbox before it sets wake_ns | CANCEL REARM ONE_SHOT OPS=2
	PASS_END | pass_end() forgetting the wake_ns that was set meanwhile | ONE_SHOT OPS=2 PLACES=2
	PASSES_DONE | pass_end() finishing what was asked for during the pass | DRAIN ONE_SHOT OPS=1
	NO_GRACE | twheel_drain() without synchronize_rcu() | DRAIN ONE_SHOT OPS=1
	DRAINED_EARLY | drained set before drain_pages() | DRAIN ONE_SHOT OPS=1
	DRAINED_LATE | twheel_fop_read_iter() looking at drained after the events | CANCEL REARM DRAIN ONE_SHOT OPS=2
	SWEEP_UNLOCKED | sweep() looking at states without the lock | REARM SWEEP ONE_SHOT PLACES=2 OPS=3
	CLOSING | twheel_stop() not setting closing | CLOSE FIXED_RATE OPS=1
	CANCEL_WORK | twheel_stop() not waiting for the turn in hand | CLOSE FIXED_RATE OPS=1
	END
}

# In a directory of its own: build NAME "HOW IT IS BUILT" makes ./pan.
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
	# COLLAPSE takes a third of the memory.  With one place, gcc warns of the code
	# for a second one.
	spin "${defs[@]}" -a "$model" > log 2>&1 &&
		${CC:-cc} -w -O2 -DSAFETY -DNOFAIR -DCOLLAPSE -DMEMLIM=3500 -o pan pan.c >> log 2>&1
}

# -E: the kthread and the reader wait for ever; the judge sees to deadlocks.
search()
{
	nice ./pan -E -m100000 -w24 >> log 2>&1
}

# All of it was seen, up to the end of the judge, and nothing was wrong.
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

# In one write, since others report at the same time.
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
	report "$verdict" "$1: exactly one outcome, nothing lost, stale ids harmless (${states:-no} states)"
}

find_break()
{
	local verdict='not ok'

	build "break_$1" "BREAK_$1 $3" && search
	is_found && verdict=ok
	report "$verdict" "$2 is found"
}

# Wait until one more may run.
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
