#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# mutations.sh [NAME...]: breaks the library on purpose, in one place at a time, and shows
# that a test fails. It prints TAP; where none fails, the tests have a gap. What only the
# device shows is left out, and so are checks of what cannot happen here: an event or a
# CANCEL for an older generation of a place.
# OUTPUT says where to build, 1 GB at most; KSFT_DIR as in the Makefile.

unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
top=$here/../..
output=${OUTPUT:-$here/build/mutations}
nr=0
failed=0
names=("$@")

asked_for()
{
	local name

	[ ${#names[@]} != 0 ] || return 0
	for name in "${names[@]}"; do
		[ "$name" != "$1" ] || return 0
	done
	return 1
}

# The first test that fails, or nothing. A crash or a hang of a program is one, too.
first_failure()
{
	local program what

	for program in twheel_lib_random twheel_lib twheel_lib_fails twheel_lib_clocks; do
		make -s -C "$here" LIB="$output/tree/lib" OUTPUT="$output" CFLAGS='-O0' \
			${KSFT_DIR:+KSFT_DIR="$KSFT_DIR"} "$output/$program" \
			>"$output/build.log" 2>&1 || {
			echo "the compiler"
			return
		}
		what=$(OUTPUT=$output TW_MILLION=20000 TW_ROUNDS=40 vm_timeout=60 \
			bash "$here/run.sh" "$program" 2>&1 |
			sed -n 's/^not ok [0-9]* //p' | head -n 1)
		if [ -n "$what" ]; then
			echo "$what"
			return
		fi
	done
}

# mutation NAME FILE FROM TO: where FROM stands once in the file, TO stands then. "front" is
# any of the files that are no back end.
mutation()
{
	local name=$1 file=$2 what files

	asked_for "$name" || return 0
	rm -rf "$output/tree"
	mkdir -p "$output/tree"
	cp -pr "$top/lib" "$top/uapi" "$top/include" "$top/twheel_wheel.c" "$top/dkms.conf" "$output/tree/"
	nr=$((nr + 1))
	files=("$output/tree/lib/$file")
	[ "$file" != front ] || files=("$output"/tree/lib/{timers,places,flush,dispatch,wheel}.c \
		"$output/tree/lib/front.h")
	if ! FROM=$3 TO=$4 perl -0pi -e '
		$n += () = /\Q$ENV{FROM}\E/g;
		s/\Q$ENV{FROM}\E/$ENV{TO}/;
		END { die "not there once, but $n times\n" if $n != 1; }' \
		"${files[@]}" 2>"$output/perl.log" || [ -s "$output/perl.log" ]; then
		failed=1
		echo "not ok $nr $name: $(<"$output/perl.log")"
		return
	fi
	touch "${files[@]}"
	what=$(first_failure)
	if [ -n "$what" ]; then
		echo "ok $nr $name: found by $what"
	else
		failed=1
		echo "not ok $nr $name: no test fails"
	fi
}

mkdir -p "$output"
echo "TAP version 13"

# A place is owned, parked, or gone.
mutation event_does_not_end_its_place front \
	'	deadline_ns = grains_to_ns(w, place->bound);
	place_free(w, place);' \
	'	deadline_ns = grains_to_ns(w, place->bound);'
mutation parked_place_that_has_run_out_is_taken front \
	'		w->stats.vain++;
		place->bound = NO_BOUND;' \
	'		w->stats.vain++;'
mutation stopped_timer_stays_the_owner front \
	'	place->owner = NULL;
	if (w->head.top[length] == w->head.end[length])' \
	'	if (w->head.top[length] == w->head.end[length])'
mutation inline_stop_leaves_the_owner twheel.h \
	'	place->owner = NULL;
	t->place = (struct twheel_place *)&twheel_idle;' \
	'	t->place = (struct twheel_place *)&twheel_idle;'
mutation inline_start_names_no_owner twheel.h \
	'	place->owner = t;
	t->place = place;
	t->length' \
	'	t->place = place;
	t->length'
mutation place_is_taken_and_stays_parked twheel.h \
	'	place = *w->top[length]--;' \
	'	place = *w->top[length];'
mutation places_that_ran_out_are_not_purged front \
	'			if ((*++from)->bound == NO_BOUND)
				place_free(w, *from);' \
	'			if ((*++from)->bound == NO_BOUND)
				(void)0;'

# The bound is never below what the kernel can have.
mutation store_forgets_the_bound twheel.h \
	'	place->bound = deadline;
	__atomic_store_n' \
	'	__atomic_store_n'
mutation place_with_a_later_bound_is_taken twheel.h \
	'deadline < (*w->top[length])->bound, 0)' \
	'deadline < (*w->top[length])->bound - 1000, 0)'
mutation restart_to_earlier_is_a_store front \
	'	if (deadline >= t->place->bound) {
		store(w, t->place, deadline);
		return true;' \
	'	if (deadline >= t->place->bound / 2) {
		store(w, t->place, deadline);
		return true;'
mutation inline_restart_to_earlier_is_a_store twheel.h \
	'	if (__builtin_expect(deadline >= place->bound, 1)) {' \
	'	if (__builtin_expect(deadline >= place->bound - 2, 1)) {'

# A word is stored only through a place that has not been read as ended.
mutation word_has_no_generation twheel.h \
	'(__extension__ (unsigned __int128)deadline) << 64 | ref)' \
	'(__extension__ (unsigned __int128)deadline) << 64)'

# A timer is idle, noted, or owner of one place.
mutation noted_timer_stays_noted_when_stopped front \
	'	if (is_owner(t))
		disown(w, t);
	else
		unlink_timer(w, t);
	return true;' \
	'	if (is_owner(t))
		disown(w, t);
	else
		set_idle(t);
	return true;'
mutation noted_timer_is_noted_twice front \
	'	if (!is_owner(t)) {
		unlink_timer(w, t);
		return false;' \
	'	if (!is_owner(t)) {
		return false;'
mutation due_timer_is_not_idle_in_its_callback front \
	'	list_del(t);
	set_idle(t);
	t->count = 1;' \
	'	list_del(t);
	t->count = 1;'
mutation moved_timer_leaves_its_owner front \
	'		to->place->owner = to;' \
	'		(void)0;'
mutation moved_timer_leaves_its_list front \
	'		to->next->prev = to;
		to->prev->next = to;' \
	'		to->next->prev = to;'
mutation timer_that_was_moved_is_called front \
	'unlikely(event->fired_ns < deadline_ns || deadline_ns == TWHEEL_TIME_NEVER)' \
	'0'
mutation timer_that_was_moved_is_lost front \
	'		w->stats.rearmed++;
		note(w, t, deadline_ns);' \
	'		w->stats.rearmed++;
		set_idle(t);'
mutation deadline_is_rounded_down front \
	'	return grains_to_ns(w, grains_up(w, deadline_ns));' \
	'	return time_min(deadline_ns & ~w->head.grain_mask, TWHEEL_TIME_NEVER);'
mutation phase_is_lost front \
	'time_add(t->deadline_ns, periods * interval_ns)' \
	'time_add(now_ns, interval_ns)'
mutation count_is_one_short front \
	'			periods += (now_ns - t->deadline_ns) / interval_ns;' \
	'			periods += (now_ns - t->deadline_ns - 1) / interval_ns;'
mutation fixed_delay_keeps_its_phase front \
	'time_add(now_ns, interval_ns), interval_ns, flags)' \
	'time_add(t->deadline_ns, interval_ns), interval_ns, flags)'
mutation callback_comes_before_its_period front \
	'	else if (t->interval_ns)
		next_period(w, t);
	w->stats.expired++;
	t->callback(w, t, drained ? -ESHUTDOWN : 0);' \
	'	w->stats.expired++;
	t->callback(w, t, drained ? -ESHUTDOWN : 0);
	if (!drained && t->interval_ns)
		next_period(w, t);'
mutation dispatch_reads_beyond_its_limit front \
	'		room = max - due < BATCH ? max - due : BATCH;' \
	'		room = BATCH;'
mutation events_in_vain_count_as_callbacks front \
	'				due += place_ended(' \
	'				due += 1 | place_ended('
mutation callbacks_go_on_after_close front \
	'	while (nr < max && !w->closed && ' \
	'	while (nr < max && '
mutation refused_are_touched_after_close front \
	'	while (!list_empty(refused) && !w->closed) {' \
	'	while (!list_empty(refused)) {'
mutation refused_timer_is_not_told front \
	'		w->stats.refused++;
		t->callback(w, t, err);' \
	'		w->stats.refused++;
		(void)err;'
mutation parked_places_make_no_room front \
	'		wanted += t->count == EAGAIN;' \
	'		wanted += 0;'
mutation parked_places_are_never_given_up front \
	'		if (parked > kept)
			stack_cut' \
	'		if (0)
			stack_cut'
mutation given_up_places_are_not_cancelled front \
	'		twheel_trim(w);
		twheel_cancel_given_up(w);' \
	'		twheel_trim(w);'
mutation slack_is_left_out local.c \
	'	tick = (tick + w->slack_ticks) & ~(uint64_t)w->slack_ticks;' \
	''
mutation local_tick_is_rounded_down local.c \
	'deadline_ns / w->tick_ns + (deadline_ns % w->tick_ns != 0)' \
	'deadline_ns / w->tick_ns'
mutation local_ignores_the_words local.c \
	'	if ((int64_t)ahead <= 0 || ahead & TWHEEL_REFRESH_GEN_MASK)' \
	'	if (1 || (int64_t)ahead <= 0 || ahead & TWHEEL_REFRESH_GEN_MASK)'
mutation local_limit_is_off_by_one local.c \
	'	if (local->nr_live == w->max_timers)' \
	'	if (local->nr_live == w->max_timers + 1)'
mutation local_descriptor_stays_readable local.c \
	'	/* The timerfd may have fired: set it anew in any case. */
	local->wake_ns = 0;
	wake_set(w);' \
	''
mutation local_does_not_wake_for_what_is_armed local.c \
	'		arm[i].result = arm_one(w, &arm[i], now_ns);
	wake_set(w);' \
	'		arm[i].result = arm_one(w, &arm[i], now_ns);'

echo "1..$nr"
exit $failed
