#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# mutations.sh [list|check|PATTERN...]: break the library on purpose, in one place at a time, and
# check that a test fails; `make mutants', which does so with the module, calls it. Prints TAP. If
# no test fails, the tests have a gap. If a program runs out of time, there is no verdict. PATTERN
# matches names, like those of files. `list' prints all mutations, and `check' those that cannot
# be made. OUTPUT is the folder for builds, 1 GB at most. SANITIZE is that of the Makefile;
# without sanitizers it is faster, but a few mutations are not found.

unset CDPATH
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
output=${OUTPUT:-$here/build/mutations}
nr=0
failed=0
names=("$@")
# The time limit of a program, in seconds. If a test hangs, its own limit ends it, which is a
# quarter of $test_limits: no test begins so late that the program's limit ends it first.
limit=90
test_limits=120

wheel_programs=(twheel_lib_random twheel_lib twheel_lib_callbacks twheel_lib_turns
	twheel_lib_descriptor twheel_lib_review twheel_lib_shared twheel_lib_clocks
	twheel_lib_options)
[ -z "${SANITIZE-default}" ] || wheel_programs+=(twheel_lib_shared_tsan)
table_programs=(twheel_lib_table twheel_lib_table_shared twheel_lib_review)
device_programs=(twheel_lib_client)
tcp_programs=(twheel_lib_tcp)
cxx_programs=(twheel_lib_cxx)

asked_for()
{
	local name

	[ ${#names[@]} != 0 ] || return 0
	for name in "${names[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 != $name ]] || return 0
	done
	return 1
}

# The session of the program that runs.
session=

# End the program. Each of its tests has a process group of its own, and a mutation may make it run
# for ever.
end_session()
{
	local stat pid sid

	[ -n "$session" ] || return 0
	for stat in /proc/[0-9]*/stat; do
		{ read -r pid _ _ _ _ sid _ <"$stat"; } 2>/dev/null || continue
		[ "$sid" != "$session" ] || kill -KILL "$pid" 2>/dev/null || true
	done
	session=
}
trap end_session EXIT

# run_program PROGRAM: set `what' to its first test that fails, or `late' if it runs out of time.
# If it crashes, it has not reached its plan, which is a failure too.
run_program()
{
	local line fd status=0

	exec {fd}< <(OUTPUT=$output TW_MILLION=100000 TW_ROUNDS=${ROUNDS:-60} vm_timeout=$test_limits \
		exec setsid timeout $limit bash "$here/run.sh" "$1" 2>&1)
	session=$!
	while IFS= read -r line <&"$fd"; do
		[[ $line =~ ^not\ ok\ [0-9]+\ (.*)$ ]] || continue
		what=${BASH_REMATCH[1]}
		# One failure is enough.
		break
	done
	exec {fd}<&-
	[ -n "$what" ] || wait "$session" || status=$?
	end_session
	[ -n "$what" ] || [ $status != 124 ] || late=$1
}

# first_failure PROGRAM...: set `what' to the first test that fails, if any, and `late' to a
# program that ran out of time.
first_failure()
{
	local program

	what='' late=''
	for program; do
		make -s -C "$here" LIB="$output/tree/lib" OUTPUT="$output" CFLAGS='-O1' \
			${SANITIZE+SANITIZE="$SANITIZE"} \
			"$output/$program" \
			>"$output/build.log" 2>&1 || {
			what="the compiler"
			return
		}
		run_program "$program"
		[ -z "$what" ] || return
	done
}

# Copy the library, to break the copy.
copy_library()
{
	rm -rf "$output"
	mkdir -p "$output/tree"
	cp -pr "$top/lib" "$top/uapi" "$top/dkms.conf" "$output/tree/"
}

# times FILE TEXT: print how often the file contains the text.
times()
{
	TEXT=$2 perl -0ne '$n += () = /\Q$ENV{TEXT}\E/g; END { print $n }' "$1"
}

# verdict ok|'not ok' TEXT
verdict()
{
	nr=$((nr + 1))
	[ "$1" = ok ] || failed=1
	echo "$1 $nr $2"
}

# mutation NAME FILE FROM TO: replace FROM, which the file must contain exactly once, by TO.
mutation()
{
	local name=$1 file=$output/tree/lib/$2 what late nr_times programs=("${wheel_programs[@]}")

	[[ $2 != @(table.c|twheel/table.h) ]] || programs=("${table_programs[@]}")
	[[ $2 != @(device.c|twheel/device.h) ]] || programs=("${device_programs[@]}")
	[[ $2 != tcp.c ]] || programs=("${tcp_programs[@]}")
	[[ $2 != twheel.hpp ]] || programs=("${cxx_programs[@]}")

	case ${names[0]:-} in
	list)
		echo "$name"
		return
		;;
	check)
		nr_times=$(times "$top/lib/$2" "$3")
		[ "$nr_times" = 1 ] || {
			failed=1
			echo "$name: its text is in lib/$2 $nr_times times, not once"
		}
		return
		;;
	esac
	asked_for "$name" || return 0
	copy_library
	nr_times=$(times "$file" "$3")
	if [ "$nr_times" != 1 ]; then
		verdict 'not ok' "$name: its text is in lib/$2 $nr_times times, not once"
		return
	fi
	FROM=$3 TO=$4 perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$file"
	first_failure "${programs[@]}"
	if [ -n "$what" ]; then
		verdict ok "$name: found by $what"
	elif [ -n "$late" ]; then
		verdict 'not ok' "$name: no verdict: $late takes more than $limit s"
	else
		verdict 'not ok' "$name: no test fails"
	fi
}

# First make sure that all tests pass on the unbroken library.
begin()
{
	local what late

	[[ ${names[0]:-} != @(list|check) ]] || return 0
	echo "TAP version 13"
	copy_library
	first_failure "${wheel_programs[@]}" twheel_lib_table twheel_lib_table_shared \
		"${device_programs[@]}" "${tcp_programs[@]}" "${cxx_programs[@]}"
	[ -z "$what$late" ] || {
		verdict 'not ok' "the library as it is: ${what:-$late takes more than $limit s}"
		echo "1..$nr"
		exit 1
	}
	verdict ok "the library as it is: all tests pass"
}

# These mistakes are missing here, since they change only the time that a program takes:
# - a slot with more than LOOKS timers is not searched for its first timer, and the slot does not
#   remember that it has more
# - a dispatch that finds nothing due turns the wheel
# - _twheel_mark() notes the list of the first timer: in another list it is not the first, so
#   the list would be searched for it
# - the slot of an upper level that contains base begins after base: it has LOOKS timers at most,
#   since a fuller one has a dispatch at its beginning, which moves them down; and all of so few
#   timers are searched
# - if slots of two levels begin together, the upper one comes first: within a grain, timers
#   have no order
begin

mutation inline_stop_leaves_the_timer_pending twheel.h \
	'	t->deadline = 0;
	*pprev = next;' \
	'	*pprev = next;'
mutation inline_stop_leaves_a_wrong_link_behind twheel.h \
	'	*pprev = next;
	next->pprev = pprev;' \
	'	*pprev = next;'
mutation inline_start_links_the_next_one_wrongly twheel.h \
	'	next->pprev = &t->next;
	if (_TWHEEL_UNLIKELY(key' \
	'	if (_TWHEEL_UNLIKELY(key'
mutation inline_start_does_not_mark_an_earlier_deadline twheel.h \
	'	if (_TWHEEL_UNLIKELY(key < w->next))
		_twheel_mark(wheel, slot, key);' \
	''
mutation inline_start_does_not_mark_a_slot twheel.h \
	'		_twheel_mark(wheel, slot, key);
		return;' \
	'		return;'
mutation inline_restart_to_earlier_is_a_store twheel.h \
	'	else if (_TWHEEL_SIGNED(key) >= _TWHEEL_SIGNED(t->deadline))
' \
	'	else if (_TWHEEL_SIGNED(key) + 1000 >= _TWHEEL_SIGNED(t->deadline))
'
mutation restart_of_a_pending_timer_links_it_twice twheel.h \
	'	else
		_twheel_restart(w, t, key);
' \
	'	else
		_twheel_insert(w, t, key);
'
mutation inline_start_at_takes_the_past_for_the_future twheel.h \
	'	uint64_t key = deadline_ns ^ _TWHEEL_KEY;

	if (_TWHEEL_UNLIKELY(key <= _TWHEEL_HEAD(w)->now))
' \
	'	uint64_t key = deadline_ns ^ _TWHEEL_KEY;

	if (_TWHEEL_HEAD(w)->now == UINT64_MAX)
'
mutation inline_start_takes_the_end_of_time_for_a_time twheel.h \
	'it is due now. */
	if (_TWHEEL_UNLIKELY(key <= _TWHEEL_HEAD(w)->now))
' \
	'it is due now. */
	if (_TWHEEL_HEAD(w)->now == UINT64_MAX || !delay_ns)
'
mutation inline_stop_takes_no_lock twheel.h \
	'	if (_TWHEEL_UNLIKELY(_TWHEEL_ADDRESS(w) & _TWHEEL_SHARED_BIT))
		return _twheel_stop_slow(w, t);
' \
	'	(void)w;
'
mutation idle_timer_is_stopped_by_a_look_at_the_wheel twheel.h \
	'_TWHEEL_UNLIKELY(_TWHEEL_ADDRESS(w) & _TWHEEL_SHARED_BIT)' \
	'_TWHEEL_UNLIKELY(_TWHEEL_HEAD(w)->shared)'
mutation wheel_is_where_the_memory_begins timers.c \
	'	if (shared != !!((uintptr_t)memory & _TWHEEL_SHARED_BIT))' \
	'	if (0)'
mutation end_of_time_is_said_as_a_deadline twheel.h \
	'	if (!t->deadline || t->deadline == _TWHEEL_KEY - 1)' \
	'	if (!t->deadline)'
mutation idle_timer_has_a_deadline twheel.h \
	'	if (!t->deadline || t->deadline == _TWHEEL_KEY - 1)' \
	'	if (t->deadline == _TWHEEL_KEY - 1)'
mutation mark_forgets_the_slot wheel.c \
	'	w->occupied[i / 64] |= 1ULL << i % 64;
' \
	''
mutation mark_forgets_the_level wheel.c \
	'	w->levels |= 1U << level;
' \
	''
mutation mark_forgets_where_the_level_begins wheel.c \
	'	w->begin[level] = min64(w->begin[level], key >> shift << shift);
' \
	''
mutation mark_forgets_the_first_deadline wheel.c \
	'		w->head.next = key;
		w->first = slot;
		w->earliest = *slot;
' \
	'		w->first = slot;
		w->earliest = *slot;
'
mutation mark_forgets_the_first_timer wheel.c \
	'		w->head.next = key;
		w->first = slot;
		w->earliest = *slot;
' \
	'		w->head.next = key;
		w->first = slot;
'
mutation mark_gives_a_slot_no_end wheel.c \
	'		(*slot)->next = &w->end;
' \
	''
mutation timer_that_has_passed_is_put_into_a_slot wheel.c \
	'	if (key_of(t) <= passed)' \
	'	if (0)'
mutation placed_timer_becomes_a_one_shot wheel.c \
	'	t->deadline = deadline;
}' \
	'	(void)deadline;
}'
mutation move_down_does_not_mark wheel.c \
	'			_twheel_mark(w, to, key_of(t));' \
	'			(void)0;'
mutation move_down_leaves_the_rest_unlinked wheel.c \
	'	*slot = t;
	t->pprev = slot;
	w->budget' \
	'	*slot = t;
	w->budget'
mutation move_down_loses_the_rest wheel.c \
	'	*slot = t;
	t->pprev = slot;
	w->budget' \
	'	*slot = &w->end;
	w->budget'
mutation move_down_knows_no_limit wheel.c \
	'for (; t != &w->end && left; t = next, left--)' \
	'for (; t != &w->end; t = next, left--)'
mutation move_down_puts_far_ones_into_the_level_below wheel.c \
	'		if (unlikely(at - base >= SLOTS)) {' \
	'		if (0) {'
mutation ring_of_slots_is_not_closed wheel.c \
	'	for (; at < end; at++) {' \
	'	for (; at < end - 64; at++) {'
mutation slot_where_base_is_keeps_its_mark wheel.c \
	'end = at + SLOTS;' \
	'end = (w->head.base >> shift) + SLOTS;'
mutation slots_before_base_come_first wheel.c \
	'	for (; at < end; at++) {' \
	'	for (at &= ~63ULL; at < end; at++) {'
mutation empty_slot_keeps_its_mark wheel.c \
	'		map[at % SLOTS / 64] &= ~(1ULL << at % 64);
' \
	''
mutation empty_slot_keeps_its_end wheel.c \
	'		slots[at % SLOTS] = NULL;
		map' \
	'		map'
mutation next_slot_does_not_note_the_beginning wheel.c \
	'			w->begin[level] = max64(at << shift, w->head.base + 1);
' \
	''
mutation turn_goes_beyond_the_target wheel.c \
	'		if (begin > w->target) {' \
	'		if (begin > w->target + w->edge_ns) {'
mutation slot_is_called_to_its_end wheel.c \
	'w->due_by = min64(end, w->target);' \
	'w->due_by = end;'
mutation later_ones_of_a_slot_are_called_with_it wheel.c \
	'			if (end <= w->target)
' \
	'			if (1)
'
mutation timer_at_the_edge_stays_in_its_slot wheel.c \
	'move_by(w, slot, &w->list[DUE], w->target);' \
	'move_by(w, slot, &w->list[DUE], w->target - 1);'
mutation timer_at_the_beginning_of_a_slot_waits wheel.c \
	'w->head.base = begin - 1;' \
	'w->head.base = begin;'
mutation turn_knows_no_budget wheel.c \
	'move_down(w, level, slot, w->budget);' \
	'move_down(w, level, slot, 1 << 30);'
mutation nothing_is_moved_ahead wheel.c \
	'		if (!is_empty(w, *slot))
			move_down' \
	'		if (0)
			move_down'
mutation all_is_moved_ahead wheel.c \
	'#define AHEAD		128' \
	'#define AHEAD		(1 << 30)'
mutation milliseconds_overflow twheel.h \
	'ms > TWHEEL_NEVER / TWHEEL_MSEC' \
	'false'
mutation milliseconds_are_rounded_down twheel.h \
	'left_ns = until_ns - now_ns - 1;' \
	'left_ns = until_ns - now_ns - TWHEEL_MSEC;'
mutation milliseconds_are_cut_off twheel.h \
	'if (left_ns >= INT32_MAX * TWHEEL_MSEC)' \
	'if (false)'
mutation start_by_a_deadline_reads_the_clock timers.c \
	'if (!is_immediate(w))' \
	'if (true)'
mutation start_in_a_shared_wheel_notes_no_time timers.c \
	'		w->clock_ns = now_ns;' \
	'		;'
mutation start_after_the_clock_was_set_back_counts_from_before timers.c \
	'		now_ns = loop_turn_ns(w);
	timers_start' \
	'		now_ns = w->clock_ns;
	timers_start'
mutation only_one_is_moved_for_two_that_are_called wheel.c \
	'called + (uint64_t)called / 2' \
	'called / 2'
mutation last_quarter_is_as_the_others wheel.c \
	'(last_quarter ?' \
	'(0 ?'
mutation crowded_slot_wakes_nobody_before_it_begins wheel.c \
	'max64(begin - lead_of(w, level), w->head.base + 1) : begin;' \
	'begin : begin;'
mutation crowded_slot_wakes_the_loop_without_a_pause wheel.c \
	'max64(begin - lead_of(w, level), w->head.base + 1)' \
	'begin - lead_of(w, level)'
mutation crowded_slot_waits_for_an_earlier_deadline wheel.c \
	'(slot = next_slot(w, level)) && crowd_begin(w, level) < w->head.next)' \
	'(slot = next_slot(w, level)) && w->begin[level] < w->head.next)'
mutation first_deadline_is_searched_for_in_no_slot wheel.c \
	'#define LOOKS		32' \
	'#define LOOKS		2'
mutation end_of_time_is_searched_for_ever wheel.c \
	'first = min64(key_of(t), NO_KEY - 1);' \
	'first = key_of(t);'
mutation first_timer_is_not_the_first_of_its_slot wheel.c \
	'		push(slot, earliest);' \
	'		push(&(*slot)->next, earliest);'
mutation restarted_timer_counts_as_the_first wheel.c \
	'			unlink_timer(t);
			wheel_place(w, t, w->head.base);
			w->stats.moved++;' \
	'			w->stats.moved++;'
mutation any_deadline_before_the_next_edge_but_one_is_the_first wheel.c \
	'edge = w->target + w->edge_ns;' \
	'edge = w->target + 2 * w->edge_ns;'
mutation fixed_delay_that_does_not_return_wakes_nobody wheel.c \
	'		w->head.next = min64(w->head.next, key_of(t));
		w->first = &w->list[IN_CALLBACK];' \
	'		w->first = &w->list[IN_CALLBACK];'
mutation loop_wakes_up_for_nothing_after_a_limit wheel.c \
	'if (w->head.base < w->target && w->head.next != NO_KEY) {' \
	'if (w->head.base < w->target) {'
mutation loop_does_not_wake_up_for_what_a_limit_left wheel.c \
	'	if (w->head.base < w->target && w->head.next != NO_KEY) {
		w->at_once = true;
		w->first = NULL;
	}
' \
	''
mutation loop_does_not_wake_up_for_what_is_due wheel.h \
	'	if (!w->at_once && (w->head.next' \
	'	w->at_once = false;
	if (!w->at_once && (w->head.next'
mutation slot_that_has_come_up_is_not_searched wheel.h \
	'(w->head.next <= w->target || !first_is_known(w))' \
	'!first_is_known(w)'
mutation start_that_has_passed_forgets_the_first_slot wheel.c \
	'		w->at_once = true;
	} else {' \
	'		w->at_once = true;
		w->first = NULL;
	} else {'
mutation dispatch_of_what_has_passed_forgets_the_first_slot loop.c \
	'		w->due_by = w->passed_by;
' \
	'		w->due_by = w->passed_by;
		w->first = NULL;
'
mutation running_timer_does_not_become_the_first loop.c \
	'		w->head.next = min64(w->head.next, key_of(t));
		w->first = NULL;
' \
	''
mutation running_timer_does_not_wake_a_loop_that_knows_the_first loop.c \
	'		w->head.next = min64(w->head.next, key_of(t));
		w->first = NULL;
' \
	'		w->head.next = min64(w->head.next, key_of(t));
'
mutation clock_that_goes_back_leaves_base wheel.c \
	'	w->head.base = edge;
' \
	''
mutation clock_that_goes_back_leaves_base_between_two_edges wheel.c \
	'	w->head.base = edge;
' \
	'	w->head.base = w->clock_ns | KEY;
'
mutation clock_that_goes_back_leaves_what_was_due_before_its_edge wheel.c \
	'	w->due_by = min64(w->due_by, edge);
' \
	'	w->due_by = min64(w->due_by, w->clock_ns | KEY);
'
mutation clock_that_goes_back_leaves_the_target wheel.c \
	'	w->target = edge;
' \
	''
mutation clock_that_goes_back_calls_what_was_due wheel.c \
	'	w->due_by = min64(w->due_by, edge);
' \
	''
mutation clock_that_goes_back_leaves_slots wheel.c \
	'			w->slot[i] = NULL;
		}
	}
	forget' \
	'		}
	}
	forget'
mutation clock_that_goes_back_leaves_marks wheel.c \
	'	forget_slots(w);
	w->head.base = edge;' \
	'	w->head.base = edge;'
mutation list_that_is_taken_stays wheel.h \
	'	*from = &w->end;
' \
	''
mutation each_forgets_those_that_are_due wheel.c \
	'i < LISTS ? w->list[i] :' \
	'i == DUE ? NULL : i < LISTS ? w->list[i] :'
mutation each_forgets_those_that_had_passed wheel.c \
	'i < LISTS ? w->list[i] :' \
	'i == PASSED_NEXT ? NULL : i < LISTS ? w->list[i] :'
mutation budget_is_no_limit wheel.h \
	'#define WHEEL_BUDGET	4096' \
	'#define WHEEL_BUDGET	(1 << 30)'
mutation clock_is_read_at_each_start wheel.h \
	'	return w->head.now != NO_KEY ? w->clock_ns : loop_update(w);' \
	'	return loop_update(w);'
mutation clock_is_read_once_for_ever loop.c \
	'	if (w->head.now != NO_KEY)
		w->head.now = NO_KEY;' \
	''
mutation clock_that_goes_back_is_not_seen loop.c \
	'if (unlikely((w->clock_ns | KEY) < w->passed_by))' \
	'if (0)'
mutation clock_that_is_set_back_after_a_dispatch_in_vain_goes_unseen loop.c \
	'		w->passed_by = edge;
' \
	''
mutation last_edge_is_the_next wheel.h \
	'return (w->clock_ns - w->clock_ns % w->edge_ns) | KEY;' \
	'return (w->clock_ns - w->clock_ns % w->edge_ns + w->edge_ns) | KEY;'
mutation edge_before_is_taken_for_the_last_one wheel.h \
	'return passed < w->edge_ns ?' \
	'return passed < 2 * w->edge_ns ?'
mutation edge_after_the_target_is_the_last_one_for_ever wheel.h \
	'likely(passed < 2 * w->edge_ns)' \
	'passed < END_NS'
mutation next_is_a_tick_late loop.c \
	'^ KEY) + w->edge_ns - 1;' \
	'^ KEY) + w->edge_ns;'
mutation next_says_what_was_stopped loop.c \
	'	if (unlikely(w->at_once) || !first_is_known(w))
		wheel_find_next(w);' \
	''
mutation next_says_what_was_stopped_beside_others wheel.h \
	'(w->earliest ? *w->first == w->earliest : !is_empty(w, *w->first))' \
	'!is_empty(w, *w->first)'
mutation next_forgets_what_has_passed wheel.c \
	'		push(&w->list[PASSED_NEXT], t);
		w->at_once = true;' \
	'		push(&w->list[PASSED_NEXT], t);'
mutation next_says_what_had_passed_and_was_stopped loop.c \
	'	if (unlikely(w->at_once) || !first_is_known(w))' \
	'	if (!first_is_known(w))'
mutation next_takes_the_last_edge_for_never loop.c \
	'return ns < END_NS ?' \
	'return ns < END_NS - w->edge_ns ?'
mutation descriptor_forgets_that_setting_failed loop.c \
	'ret ? TWHEEL_NEVER : ns;' \
	'ns;'
mutation descriptor_is_not_set_for_an_earlier_deadline loop.c \
	'w->readable || ns < w->set_ns || (ns' \
	'w->readable || (ns'
mutation descriptor_stays_set_after_the_last_stop loop.c \
	' || (ns == TWHEEL_NEVER && w->set_ns != ns) ||' \
	' ||'
mutation descriptor_stays_readable_in_vain loop.c \
	' ||
	    (ns > w->clock_ns && w->set_ns <= w->clock_ns))' \
	')'
mutation descriptor_may_be_0_to_2 loop.c \
	'if (fd >= 0 && fd <= 2) {' \
	'if (0) {'
mutation descriptor_goes_through_exec loop.c \
	'TFD_NONBLOCK | TFD_CLOEXEC' \
	'TFD_NONBLOCK'
mutation descriptor_is_not_set_when_it_is_made loop.c \
	'		loop_set_fd(w);
		/* As if' \
	'		/* As if'
mutation clock_that_is_ahead_is_read_first loop.c \
	'		ahead = loop_clock(CLOCK_REALTIME);
		ahead = loop_clock(CLOCK_TAI) - ahead;' \
	'		ahead = loop_clock(CLOCK_TAI);
		ahead = ahead - loop_clock(CLOCK_REALTIME) + TWHEEL_SEC / 2;'
mutation callers_clock_sets_the_descriptor_by_time loop.c \
	'		return ns <= w->clock_ns;
' \
	'		return max64(ns, 1);
'
mutation wake_is_forgotten_if_nobody_waits loop.c \
	'	__atomic_store_n(&w->woken, true, __ATOMIC_SEQ_CST);
' \
	''
mutation wake_does_not_set_the_descriptor loop.c \
	'		ring(w, fd);
		__atomic_store_n(&w->rung, true, __ATOMIC_SEQ_CST);
' \
	'		__atomic_store_n(&w->rung, true, __ATOMIC_SEQ_CST);
'
mutation wake_takes_the_lock loop.c \
	'	__atomic_store_n(&w->woken, true, __ATOMIC_SEQ_CST);
' \
	'	lock(w);
	__atomic_store_n(&w->woken, true, __ATOMIC_SEQ_CST);
	unlock(w);
'
mutation wake_changes_errno loop.c \
	'	errno = error;
' \
	'	(void)error;
'
mutation start_after_a_wake_takes_it_back loop.c \
	'	if (unlikely(__atomic_load_n(&w->rung, __ATOMIC_SEQ_CST)))
		ring(w, w->fd);
' \
	''
mutation wake_before_the_descriptor_is_not_seen_by_it loop.c \
	'		if (fd >= 0 && __atomic_load_n(&w->woken, __ATOMIC_SEQ_CST)) {' \
	'		if (0) {'
mutation wake_makes_the_descriptor_readable_for_ever loop.c \
	'(rung || w->clock_ns' \
	'((rung && !w->fd) || w->clock_ns'
mutation lateness_is_a_bit_off loop.c \
	'(w->clock_ns - deadline) << 1 | 1' \
	'(w->clock_ns - deadline) | 1'
mutation fixed_delay_counts_from_the_call loop.c \
	'	end_period(w, t, moved);' \
	'	(void)end_period; (void)moved;'
mutation fixed_delay_is_forgotten_if_it_moves loop.c \
	't != called && t != moved' \
	't != called && (void *)moved != w'
mutation fixed_delay_counts_from_its_deadline loop.c \
	'time_add(loop_update(w), t->interval_ns & ~FIXED_DELAY)' \
	'time_add(t->deadline, t->interval_ns & ~FIXED_DELAY)'
mutation phase_is_lost loop.c \
	'time_add(ns, w->periods * interval_ns)' \
	'time_add(now_ns, interval_ns)'
mutation last_period_is_in_the_past loop.c \
	'time_add(ns, w->periods * interval_ns)' \
	'time_add(ns, min64(w->periods, END_NS / interval_ns) * interval_ns)'
mutation periods_are_counted_from_the_dispatch loop.c \
	'w->options.clock == TWHEEL_CALLER ? w->clock_ns : loop_read(w)' \
	'w->passed_by ^ KEY'
mutation periods_stay_after_the_callback loop.c \
	'	w->periods = 1;
	end_period' \
	'	end_period'
mutation periods_stay_after_a_jump loop.c \
	'	w->periods = 1;
	w->stats' \
	'	w->stats'
mutation callback_that_is_left_is_never_over loop.c \
	'		if (pass->calling)
			call_is_over(pass);
' \
	''
mutation callback_that_is_left_takes_the_lock_along loop.c \
	'		unlock(w);
		free_closed(w);
	}' \
	'		free_closed(w);
	}'
mutation waiter_stops_its_timer_too_late loop.c \
	'			waiter->was_pending |= stop_timer(t);
' \
	'			(void)stop_timer;
'
mutation waiter_loses_a_timer_that_moves timers.c \
	'			waiter->t = to;
' \
	'			;
'
mutation periodic_timer_from_0_on_is_a_one_shot wheel.h \
	'(likely(t->deadline != KEY) || t->interval_ns)' \
	'likely(t->deadline != KEY)'
mutation one_shot_of_0_is_periodic wheel.h \
	'(likely(t->deadline != KEY) || t->interval_ns)' \
	'1'
mutation one_shot_pends_in_its_callback loop.c \
	'			t->deadline = 0;
			t->callback' \
	'			t->callback'
mutation new_starts_come_before_what_was_left loop.c \
	'		begins = !is_unfinished(w);' \
	'		begins = true;'
mutation what_is_due_waits_for_what_was_stopped loop.c \
	'	} while (!begins && left == max && !is_unfinished(w));' \
	'	} while (0);'
mutation started_in_this_dispatch_is_called_in_it wheel.c \
	'	if (w->head.base < w->target || w->list[PASSED_NOW] == &w->end)
		return false;' \
	'	if (w->head.base >= w->target)
		move_by(w, &w->list[PASSED_NEXT], &w->list[PASSED_NOW], NO_KEY);
	if (w->head.base < w->target || w->list[PASSED_NOW] == &w->end)
		return false;'
mutation ready_ones_are_due_by_any_time wheel.c \
	'w->due_by = w->passed_by;' \
	'w->due_by = NO_KEY;'
mutation running_timer_is_called_before_its_delay loop.c \
	'&w->list[PASSED_NOW], w->target);' \
	'&w->list[PASSED_NOW], NO_KEY);'
mutation running_timer_does_not_wait_for_its_edge loop.c \
	'&w->list[PASSED_NOW], w->target);' \
	'&w->list[PASSED_NOW], w->passed_by);'
mutation running_timer_is_never_called loop.c \
	'&w->list[PASSED_NOW], w->target);' \
	'&w->list[PASSED_NOW], 0);'
mutation restarted_timer_is_called_at_once loop.c \
	'if (unlikely((deadline | KEY) > w->due_by)) {' \
	'if (0) {'
mutation limit_is_off_by_one loop.c \
	'		if (unlikely(!left))
			break;
		left--;' \
	'		if (unlikely(left-- == (unsigned int)-1))
			break;'
mutation dispatch_returns_at_once_before_a_tick loop.c \
	'	if (edge >= w->head.next ||' \
	'	if (edge > w->head.next ||'
mutation dispatch_forgets_what_has_passed loop.c \
	' || w->at_once)
		return edge;' \
	')
		return edge;'
mutation first_is_not_found_after_a_dispatch loop.c \
	'	wheel_look_ahead(w, max - left);
	wheel_find_next(w);' \
	'	wheel_look_ahead(w, max - left);'
mutation immediate_wheel_sets_nothing_after_a_dispatch loop.c \
	'	if (is_immediate(w))
		loop_set_fd(w);
	pass.has_returned' \
	'	pass.has_returned'
mutation two_threads_dispatch loop.c \
	'is_elsewhere(w) ? -EBUSY :' \
	''
mutation shared_wheel_stays_busy loop.c \
	'	w->callbacks = pass->nr;
' \
	''
mutation callback_beyond_the_sixteenth_is_unknown loop.c \
	'	*pass->calling = t;' \
	'	if (pass->nr < CALLBACKS_MAX)
		*pass->calling = t;'
mutation callback_is_unknown_after_those_in_it loop.c \
	'	*pass->calling = pass->outer;' \
	'	*pass->calling = NULL;'
mutation callback_that_has_returned_is_known loop.c \
	'	*pass->calling = pass->outer;
	pass->calling = NULL;
	w->callbacks = pass->nr;
' \
	''
mutation dispatch_calls_what_is_due_by_the_clock loop.c \
	'	w->target = edge;
	w->passed_by = w->clock_ns' \
	'	w->target = w->clock_ns | KEY;
	(void)edge;
	w->passed_by = w->clock_ns'
mutation wake_before_a_dispatch_is_slept_over loop.c \
	'if (!__atomic_load_n(&w->woken, __ATOMIC_RELAXED))' \
	'if (1)'
mutation wait_goes_on_after_a_wake loop.c \
	'} while (!ret && !woken && loop' \
	'} while (!ret && loop'
mutation wait_never_ends loop.c \
	'!woken && loop_clock(id) < end_ns)' \
	'!woken)'
mutation advance_goes_back loop.c \
	'if (to_ns < w->clock_ns || to_ns >= NEVER)' \
	'if (to_ns >= NEVER)'
mutation advance_goes_to_the_end_of_time loop.c \
	'to_ns >= NEVER)' \
	'to_ns >= END_NS)'
mutation wait_that_fails_takes_a_wake_along loop.c \
	'		if (woken && ret < 0)
			__atomic_store_n(&w->woken, true, __ATOMIC_RELAXED);
' \
	''
mutation first_of_a_slot_is_not_looked_at wheel.c \
	'(!earliest || first > edge)' \
	'first > edge'
mutation cancelled_thread_takes_the_lock_along timers.c \
	'PTHREAD_CANCEL_DISABLE' \
	'PTHREAD_CANCEL_ENABLE'
mutation advance_does_not_set_the_descriptor loop.c \
	'return w->fd < 0 ? 0 : settime(w, loop_wake_ns(w));' \
	'return 0;'
mutation restart_of_a_periodic_timer_is_a_store twheel.h \
	'	else if (_TWHEEL_SIGNED(key) >= _TWHEEL_SIGNED(t->deadline))
' \
	'	else if ((key | _TWHEEL_KEY) >= (t->deadline | _TWHEEL_KEY))
'
mutation restart_into_the_past_is_a_store timers.c \
	'if (!interval_ns && ns > w->clock_ns && ns < END_NS) {' \
	'if (!interval_ns && (t->deadline || ns > w->clock_ns) && ns < END_NS) {'
mutation immediate_start_sets_nothing timers.c \
	'	if (unlikely(w->head.next < next || w->at_once) && is_immediate(w) && !w->readable)
		loop_set_fd(w);' \
	'	(void)next;'
mutation immediate_start_that_has_passed_sets_nothing timers.c \
	'unlikely(w->head.next < next || w->at_once)' \
	'unlikely(w->head.next < next)'
mutation periodic_timer_from_0_on_begins_at_1 timers.c \
	'min64(deadline_ns, END_NS)' \
	'min64(max64(deadline_ns, 1), END_NS)'
mutation interval_may_be_below_a_tick timers.c \
	'min64(max64(interval_ns, w->options.tick_ns), NEVER - 1)' \
	'min64(max64(interval_ns, 1), NEVER - 1)'
mutation stop_sync_does_not_wait timers.c \
	'is_elsewhere(w) && loop_callback_of(w, t)' \
	'0'
mutation stop_sync_waits_for_any_callback timers.c \
	'is_elsewhere(w) && loop_callback_of(w, t)' \
	'is_elsewhere(w)'
mutation waiter_in_stop_sync_is_not_woken loop.c \
	'			pthread_cond_broadcast(&w->returned);' \
	'			;'
mutation moved_timer_leaves_its_list timers.c \
	'		*to->pprev = to;
' \
	''
mutation moved_timer_leaves_the_link_of_the_next timers.c \
	'		to->next->pprev = &to->next;
		from->deadline' \
	'		from->deadline'
mutation timer_pends_where_it_was_moved_from timers.c \
	'		from->deadline = 0;
	}' \
	'	}'
mutation move_onto_itself_ends_the_timer timers.c \
	'if (to->deadline && to != from) {' \
	'if (to->deadline) {'
mutation stop_all_keeps_the_deadlines timers.c \
	'	t->deadline = NEVER;
	push(&w->list[STOPPING], t);' \
	'	push(&w->list[STOPPING], t);'
mutation stats_write_beyond_what_they_may timers.c \
	'	memset(stats, 0, size);
' \
	'	memset(stats, 0, sizeof(*stats));
'
mutation options_of_a_later_library_are_taken timers.c \
	'return -E2BIG;' \
	'return 0;'
mutation reserved_option_is_taken timers.c \
	'|| to->reserved ||' \
	'||'
mutation slack_is_rounded_up timers.c \
	'(1 + o.slack_ns / o.tick_ns)' \
	'(1 + (o.slack_ns + o.tick_ns - 1) / o.tick_ns)'
mutation limit_that_is_just_enough_leaves_something loop.c \
	'			call_specially(w, t, pass);
		}
' \
	'			call_specially(w, t, pass);
		}
		if (!left)
			break;
'
mutation wheel_that_is_closed_in_a_callback_is_freed_there timers.c \
	'	if (!w->dispatched)
		free(w->memory);' \
	'	free(w->memory);'
mutation wheel_that_is_closed_in_a_callback_stays loop.c \
	'	if (called > 0 && unlikely(w->closed))
		free_closed(w);
' \
	''
mutation inner_dispatch_frees_a_wheel_that_is_closed loop.c \
	'if (w->closed && !w->dispatched)' \
	'if (w->closed)'
mutation wheel_is_not_dispatched_after_a_nested_dispatch loop.c \
	'w->dispatched = pass->dispatched;' \
	'w->dispatched = false;'
mutation wheel_stays_dispatched_after_a_dispatch loop.c \
	'	w->dispatched = pass->dispatched;
' \
	''
mutation periods_are_those_of_the_inner_dispatch loop.c \
	'	w->periods = pass->periods;
' \
	''
mutation closed_wheel_sets_the_descriptor_that_it_had timers.c \
	'	w->fd = -1;
	w->closed' \
	'	w->closed'
mutation close_leaves_the_memory timers.c \
	'	if (!w->dispatched)
		free(w->memory);' \
	'	;'
mutation close_leaves_timers_pending timers.c \
	'	twheel_stop_all(w, NULL, NULL);
' \
	''
mutation close_leaves_the_descriptor timers.c \
	'	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->closed' \
	'	w->fd = -1;
	w->closed'
mutation child_waits_for_the_callback_of_another_thread timers.c \
	'	if (is_elsewhere(w))
		w->callbacks = 0;
' \
	''
mutation change_beyond_the_last_number_is_made table.c \
	'		if (c->number >= table->nr) {
			c->result = -ERANGE;' \
	'		if (c->number > table->nr) {
			c->result = -ERANGE;'
mutation deadline_from_now_on_counts_from_0 table.c \
	'flags & TWHEEL_TABLE_AFTER ? now_ns : 0;' \
	'0 * now_ns;'
mutation start_wakes_no_sleeper table.c \
	'		ret = loop_set_fd(w);
	return ret < 0' \
	'		ret = 0;
	return ret < 0'
mutation any_flags_of_a_call_are_taken table.c \
	'flags & ~TWHEEL_TABLE_AFTER ||' \
	''
mutation deadline_of_an_unread_number_is_said table.c \
	'state == TWHEEL_TABLE_PENDING ? deadline : TWHEEL_TABLE_NEVER;' \
	'deadline;'
mutation unread_number_stays_in_its_list table.c \
	'		if (c->result == TWHEEL_TABLE_UNREAD || is_stop(c))
			stop_timer(t);' \
	'		if (is_stop(c))
			stop_timer(t);'
mutation state_goes_by_the_clock_instead_of_the_edge table.c \
	'	edge = last_edge(w);
	from_ns' \
	'	edge = now_ns | KEY;
	from_ns'
mutation number_past_its_deadline_waits_for_an_edge table.c \
	'			timers_start(w, t, 0, 0);' \
	'			timers_start(w, t, deadline_ns, 0);'
mutation array_ends_at_a_bad_number table.c \
	'			c->result = -ERANGE;
			continue;' \
	'			c->result = -ERANGE;
			break;'
mutation fetch_ends_with_its_first_dispatch table.c \
	'while ((uint32_t)got < nr && loop_wake_ns(w) <= w->clock_ns);' \
	'while (0);'
mutation fetch_leaves_the_descriptor table.c \
	'	ret = loop_set_fd(w);
	loop_end_turn(w);
	return got ? got : ret;' \
	'	ret = 0;
	loop_end_turn(w);
	return got ? got : ret;'
mutation fetch_of_no_numbers_is_taken table.c \
	'	if (!nr)
		return -EINVAL;
	if (nr > INT32_MAX)' \
	'	if (nr > INT32_MAX)'
mutation table_of_no_numbers_is_made table.c \
	'if (!nr || nr > NUMBERS_MAX' \
	'if (nr > NUMBERS_MAX'
mutation reserved_option_of_a_table_is_taken table.c \
	' || o.reserved ||
' \
	' ||
'
mutation table_in_the_process_takes_a_descriptor table.c \
	'(o.backend == TWHEEL_TABLE_PROCESS && (o.flags || o.fd))' \
	'(o.backend == TWHEEL_TABLE_PROCESS && o.flags)'
mutation delay_is_taken_on_a_clock_that_can_be_set table.c \
	' || (flags && table->settable))' \
	')'
mutation state_of_a_number_beyond_the_last_is_said table.c \
	'	if (number >= table->nr)
		return -ERANGE;' \
	'	if (number > table->nr)
		return -ERANGE;'
mutation now_of_a_table_is_that_of_the_last_turn table.c \
	'return twheel_update(table->wheel);' \
	'return table->wheel->clock_ns;'
mutation tai_of_a_table_is_no_settable_clock table.c \
	'new->settable = can_be_set(o.clock);' \
	'new->settable = o.clock == TWHEEL_TABLE_REALTIME;'
mutation table_has_another_never twheel/table.h \
	'#define TWHEEL_TABLE_NEVER	UINT64_MAX' \
	'#define TWHEEL_TABLE_NEVER	((uint64_t)INT64_MAX)'
mutation table_has_another_state twheel/table.h \
	'#define TWHEEL_TABLE_UNREAD	2' \
	'#define TWHEEL_TABLE_UNREAD	3'
mutation table_has_another_clock twheel/table.h \
	'#define TWHEEL_TABLE_TAI	3U' \
	'#define TWHEEL_TABLE_TAI	5U'
mutation table_options_have_another_order twheel/table.h \
	'	uint32_t backend;
	uint32_t flags;' \
	'	uint32_t flags;
	uint32_t backend;'
mutation table_change_has_another_order twheel/table.h \
	'	uint32_t number;
	int32_t result;' \
	'	int32_t result;
	uint32_t number;'
mutation table_options_are_longer twheel/table.h \
	'	uint32_t reserved;
};' \
	'	uint32_t reserved;
	uint64_t more;
};'
mutation silence_is_longer_by_a_jiffy tcp.c \
	'NSEC_PER_MSEC - excess_ns();' \
	'NSEC_PER_MSEC;'
mutation silence_below_a_jiffy_is_an_error tcp.c \
	'return silence_ns > 0 ? silence_ns : 0;' \
	'return silence_ns;'
mutation earliest_of_several_counts tcp.c \
	'least = UINT32_MAX;' \
	'least = 0;'
mutation received_and_sent_are_exchanged tcp.c \
	'info->tcpi_last_data_recv, info->tcpi_last_data_sent,' \
	'info->tcpi_last_data_sent, info->tcpi_last_data_recv,'
mutation answers_are_those_that_were_sent tcp.c \
	'info->tcpi_last_ack_recv' \
	'info->tcpi_last_ack_sent'
mutation socket_that_listens_has_stamps tcp.c \
	' && info->tcpi_state != TCP_LISTEN' \
	''
mutation socket_that_connects_has_stamps tcp.c \
	' &&
		info->tcpi_state != TCP_SYN_SENT' \
	''
mutation socket_that_was_reset_has_stamps tcp.c \
	'info->tcpi_state != TCP_CLOSE && ' \
	''
mutation nothing_is_asked_for tcp.c \
	'if (!what || what & ~KNOWN)' \
	'if (what & ~KNOWN)'
mutation unknown_bits_are_taken tcp.c \
	'if (!what || what & ~KNOWN)' \
	'if (!what)'
mutation other_sockets_have_no_errno tcp.c \
	'		return -errno;' \
	'		return -1;'
mutation device_says_no_errno device.c \
	'return ret < 0 ? -errno : ret;' \
	'return ret;'
mutation device_is_set_up_without_the_setup device.c \
	'setup ? setup : &usual' \
	'&usual'
mutation wheel_that_was_set_up_is_not_adopted device.c \
	'if (ret && ret != -EBUSY &&' \
	'if (ret &&'
mutation drained_wheel_is_not_adopted device.c \
	' && ret != -ESHUTDOWN &&' \
	' &&'
mutation another_driver_is_taken_for_the_device device.c \
	'		return -ENOTTY;
	return 0;' \
	'		return 0;
	return 0;'
mutation descriptor_0_to_2_is_kept device.c \
	'if (fd > STDERR_FILENO)' \
	'if (fd >= 0)'
mutation exec_keeps_the_descriptor device.c \
	'fcntl(fd, F_SETFD, FD_CLOEXEC)' \
	'fcntl(fd, F_SETFD, 0)'
mutation device_that_fails_leaves_its_memory device.c \
	'		free(new);
		return ret;' \
	'		return ret;'
mutation open_that_fails_leaves_the_descriptor device.c \
	'	if (ret < 0)
		close(fd);
	return ret;' \
	'	return ret;'
mutation close_leaves_the_table_mapped device.c \
	'	if (d->table)
		munmap(d->table, (size_t)d->info.refresh_size);
' \
	''
mutation vector_is_longer_than_the_module_takes device.c \
	'nr < d->info.max_vector ? nr : d->info.max_vector' \
	'nr'
mutation driver_that_says_nothing_is_asked_for_ever device.c \
	'(!vector.nr_done || vector.nr_done > vector.nr)' \
	'vector.nr_done > vector.nr'
mutation driver_that_says_too_much_is_believed device.c \
	'(!vector.nr_done || vector.nr_done > vector.nr)' \
	'!vector.nr_done'
mutation rest_of_a_call_that_fails_has_no_result device.c \
	'		memcpy(element + result, &ret, sizeof(ret));' \
	'		;'
mutation call_that_was_stopped_does_not_go_on device.c \
	'		element += vector.nr_done * size;
	}' \
	'		element += vector.nr_done * size;
		ret = -EINTR;
		break;
	}'
mutation batch_of_no_elements_is_made device.c \
	'if (!capacity || capacity' \
	'if (capacity'
mutation batch_is_longer_than_a_vector device.c \
	'capacity > d->info.max_vector || each' \
	'each'
mutation full_batch_takes_one_more device.c \
	'b->nr == b->capacity ||' \
	'b->nr > b->capacity ||'
mutation batch_takes_an_element_that_is_too_long device.c \
	' || size > b->size)' \
	')'
mutation element_of_a_batch_is_not_cleared device.c \
	'	memset(element, 0, size);
' \
	''
mutation element_that_was_not_submitted_has_a_result device.c \
	'= -EINPROGRESS;' \
	'= 0;'
mutation run_of_a_batch_has_two_flags device.c \
	'		       e[nr].flags == e->flags && ' \
	'		       '
mutation run_of_a_batch_has_two_sizes device.c \
	' && e[nr].size == e->size)' \
	')'
mutation run_of_a_batch_has_two_commands device.c \
	'++b->submitted < b->nr && e[nr].command == e->command &&' \
	'++b->submitted < b->nr &&'
mutation batch_submits_again_what_it_has_submitted device.c \
	'	while (b->submitted < b->nr) {' \
	'	b->submitted = 0;
	while (b->submitted < b->nr) {'
mutation reset_leaves_what_was_submitted device.c \
	'	b->submitted = 0;
	b->end' \
	'	b->end'
mutation result_beyond_the_last_is_said device.c \
	'index < b->nr ? *(__s32 *)' \
	'index <= b->nr ? *(__s32 *)'
mutation read_fetches_more_than_there_is_room_for device.c \
	'(nr < max ? nr : max) * length' \
	'max * length'
mutation part_of_an_event_is_taken_for_one device.c \
	'	if ((size_t)bytes % length)
		return -EIO;' \
	''
mutation event_that_is_longer_overwrites_the_next device.c \
	'		       size < length ? size : length);
	return (int)' \
	'		       length);
	return (int)'
mutation event_that_is_shorter_is_not_cleared device.c \
	'memcpy(memset((unsigned char *)events + i * size, 0, size), buffer' \
	'memcpy((unsigned char *)events + i * size, buffer'
mutation id_beyond_the_last_is_said device.c \
	'index < b->nr ? *b' \
	'index <= b->nr ? *b'
mutation reader_of_no_events_is_made device.c \
	'if (!nr || nr > EVENTS_MAX)' \
	'if (nr > EVENTS_MAX)'
mutation event_of_a_reader_overwrites_what_follows device.c \
	'r->next, size < length ? size : length);' \
	'r->next, length);'
mutation reader_says_no_error device.c \
	'		if (ret <= 0)
			return ret;' \
	'		if (ret <= 0)
			return 0;'
mutation reader_hands_out_the_first_event_for_ever device.c \
	'	r->next += length;
' \
	''
mutation table_is_mapped_each_time device.c \
	'	if (!known) {' \
	'	if (1) {'
mutation cancel_goes_by_key twheel/device.h \
	'	return _twheel_device_vector(d, TWHEEL_IOC_CANCEL, 0, cancels,' \
	'	return _twheel_device_vector(d, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, cancels,'
mutation cancel_of_a_key_goes_by_id twheel/device.h \
	'TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, cancels,' \
	'TWHEEL_IOC_CANCEL, 0, cancels,'
mutation query_of_a_key_goes_by_id twheel/device.h \
	'	_twheel_device_vector(d, TWHEEL_IOC_QUERY, TWHEEL_VECTOR_BY_KEY, status' \
	'	_twheel_device_vector(d, TWHEEL_IOC_QUERY, 0, status'
mutation batch_arms_without_user_data twheel/device.h \
	'		arm->user_data = user_data;' \
	'		(void)user_data;'
mutation batch_moves_to_no_deadline twheel/device.h \
	'				  offsetof(struct twheel_arm, id), id).arm;

	if (arm)
		arm->expires_ns = expires_ns;' \
	'				  offsetof(struct twheel_arm, id), id).arm;

	(void)expires_ns;'
mutation batch_moves_the_key_by_id twheel/device.h \
	'_twheel_batch_add(b, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY,' \
	'_twheel_batch_add(b, TWHEEL_IOC_REARM, 0,'
mutation batch_cancels_the_key_by_id twheel/device.h \
	'_twheel_batch_add(b, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY,' \
	'_twheel_batch_add(b, TWHEEL_IOC_CANCEL, 0,'
mutation batch_has_room_for_the_shorter_element twheel/device.h \
	'sizeof(struct twheel_arm) > sizeof(struct twheel_cancel) ?' \
	'sizeof(struct twheel_arm) < sizeof(struct twheel_cancel) ?'
mutation deadline_of_a_word_is_rounded_down twheel/device.h \
	'(deadline_ns + (1ULL << shift) - 1) >> shift' \
	'deadline_ns >> shift'
mutation stale_refresh_is_stored twheel/device.h \
	'			return 0;
	} while' \
	'			break;
	} while'
mutation refresh_after_an_older_generation_stores_nothing twheel/device.h \
	'- 1 < TWHEEL_REFRESH_GEN_MASK >> 1)' \
	'- 1 < TWHEEL_REFRESH_GEN_MASK)'
mutation refresh_forgets_the_generation twheel/device.h \
	'&old, deadline | gen, 1' \
	'&old, deadline, 1'
mutation blind_refresh_forgets_the_generation twheel/device.h \
	'deadline | (id >> 32 & TWHEEL_REFRESH_GEN_MASK), __ATOMIC' \
	'deadline, __ATOMIC'
mutation child_keeps_the_parents_descriptor timers.c \
	'	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->woken' \
	'	w->woken'
mutation cxx_destructor_leaves_the_timer_pending twheel.hpp \
	'			twheel_stop_sync(w, this);
		else
			twheel_stop(w, this);
' \
	'			twheel_stop_sync(w, this);
'
mutation cxx_destructor_in_a_shared_wheel_does_not_wait twheel.hpp \
	'			twheel_stop_sync(w, this);
		else' \
	'			twheel_stop(w, this);
		else'
mutation cxx_move_leaves_the_timer_behind twheel.hpp \
	'		if (is_shared() || from.pending())
			twheel_timer_move(w, this, &from);' \
	'		(void)0;'
mutation cxx_move_asks_a_wheel_that_is_closed twheel.hpp \
	'if (is_shared() || from.pending())' \
	'if (from.w)'
mutation cxx_callback_in_a_shared_wheel_is_not_moved twheel.hpp \
	'if (is_shared() || from.pending())' \
	'if (from.pending())'
mutation cxx_assignment_does_not_stop twheel.hpp \
	'			this->~timer();
			new (this)' \
	'			new (this)'
mutation cxx_assignment_to_itself_destroys twheel.hpp \
	'		if (this != &from) {' \
	'		if (this) {'
mutation cxx_wheel_is_not_closed twheel.hpp \
	'	~wheel() { twheel_close(w); }' \
	'	~wheel() {}'
mutation cxx_wheel_that_moves_stays twheel.hpp \
	'std::exchange(w, nullptr)' \
	'w'
mutation cxx_assigned_wheel_is_lost twheel.hpp \
	'		wheel old(std::move(from));

		std::swap(w, old.w);' \
	'		w = from.release();'
mutation cxx_never_is_a_time twheel.hpp \
	'	if (time == never)
		return TWHEEL_NEVER;
' \
	''
mutation cxx_negative_time_is_late twheel.hpp \
	'return time.count() < 0 ? 0 : static_cast' \
	'return static_cast'
mutation cxx_time_past_the_end_is_negative twheel.hpp \
	'ns > INT64_MAX ? never : nanoseconds' \
	'nanoseconds'
mutation cxx_signal_is_an_error twheel.hpp \
	'result == -EINTR ? 0 : checked' \
	'checked'
mutation cxx_error_is_lost twheel.hpp \
	'	throw std::system_error(-result, std::generic_category(), function);' \
	'	return static_cast<int>(function != nullptr);'
mutation cxx_member_finds_another_object twheel.hpp \
	'reinterpret_cast<char *>(this) - offset;' \
	'reinterpret_cast<char *>(this) + offset;'

[[ ${names[0]:-} = @(list|check) ]] || echo "1..$nr"
exit $failed
