// SPDX-License-Identifier: MIT
/*
 * twheel_flush(): arms what was started, and cancels what is given up, by vectors
 */
#include <errno.h>

#include "front.h"

/*
 * Never early: the deadline is rounded up, to a grain, as those that are stored.  What has
 * passed is passed already, and is not to wait for a tick.
 */
static uint64_t arm_ns(const struct twheel *w, uint64_t deadline_ns)
{
	if (unlikely(deadline_ns <= w->now_ns && deadline_ns < TWHEEL_TIME_NEVER))
		return deadline_ns;
	return grains_to_ns(w, grains_up(w, deadline_ns));
}

/* What has passed is known to the back end by its exact deadline, and is not stored for. */
static grains_t armed_bound(const struct twheel *w, uint64_t expires_ns)
{
	if (expires_ns > w->now_ns || expires_ns == TWHEEL_TIME_NEVER)
		return grains_up(w, expires_ns);
	return expires_ns >> w->head.grain_shift;
}

/* There is no place, since none that was given up can be cancelled. */
static COLD void refuse_all(struct twheel_timer *list, struct twheel_timer *refused)
{
	while (!list_empty(list)) {
		struct twheel_timer *t = list->next;

		list_del(t);
		t->count = EAGAIN;
		list_add_tail(refused, t);
	}
}

/*
 * Arm a place for each of the first timers of a list, BATCH at most, and take them off.
 * Those that are refused go to @refused, with the errno in their count.
 */
static void arm_some(struct twheel *w, struct twheel_timer *list, struct twheel_timer *refused)
{
	struct twheel_timer *t, *next;
	uint32_t i, nr, nr_armed = 0;

	for (nr = 0, t = list->next; nr < BATCH && t != list; nr++, t = t->next) {
		struct twheel_place *place = twheel_place_new(w);

		if (unlikely(!place))
			break;
		w->arm[nr].expires_ns = arm_ns(w, t->deadline_ns);
		w->arm[nr].user_data = place - w->place;
	}
	if (unlikely(!nr)) {
		refuse_all(list, refused);
		return;
	}
	w->stats.calls++;
	w->backend->arm(w, w->arm, nr);
	for (i = 0, t = list->next; i < nr; i++, t = next) {
		struct twheel_place *place = &w->place[w->arm[i].user_data];

		next = t->next;
		if (unlikely(w->arm[i].result < 0)) {
			place_free(w, place);
			t->count = -w->arm[i].result;
			list_add_tail(refused, t);
			continue;
		}
		nr_armed++;
		place->ref = ref_of(w->arm[i].id);
		place->bound = t->interval_ns ? NO_BOUND : armed_bound(w, w->arm[i].expires_ns);
		place->owner = t;
		t->place = place;
	}
	list->next = t;
	t->prev = list;
	w->stats.noted -= nr_armed;
	w->stats.armed += nr_armed;
	w->nr_armed += nr_armed;
}

static void arm_all(struct twheel *w, struct twheel_timer *list, struct twheel_timer *refused)
{
	while (!list_empty(list))
		arm_some(w, list, refused);
}

/* Where the limit is reached, parked places are given up for those that were refused. */
static void arm_again(struct twheel *w, struct twheel_timer *refused)
{
	struct twheel_timer again, *t, *next;
	size_t wanted = 0, room;

	for (t = refused->next; t != refused; t = t->next)
		wanted += t->count == EAGAIN;
	if (!wanted)
		return;
	room = twheel_relieve(w, wanted);
	list_init(&again);
	for (t = refused->next; t != refused && room; t = next) {
		next = t->next;
		if (t->count != EAGAIN)
			continue;
		list_del(t);
		list_add_tail(&again, t);
		room--;
	}
	arm_all(w, &again, refused);
}

/* Tell the timers that were refused. */
static unsigned int tell_refused(struct twheel *w, struct twheel_timer *refused)
{
	unsigned int nr = 0;

	while (!list_empty(refused) && !w->closed) {
		struct twheel_timer *t = refused->next;
		int err = -(int)t->count;

		unlink_timer(w, t);
		make_one_shot(w, t);
		t->count = 0;
		nr++;
		w->stats.refused++;
		t->callback(w, t, err);
	}
	return nr;
}

static __attribute__((noinline)) unsigned int flush(struct twheel *w)
{
	struct twheel_timer list, refused;
	bool many = w->head.work & WORK_TRIM;
	unsigned int nr;

	w->head.work = 0;
	twheel_cancel_given_up(w);
	if (many) {
		/* It counts what is in use: without what was given up. */
		twheel_trim(w);
		twheel_cancel_given_up(w);
	}
	if (list_empty(&w->notes))
		return 0;
	twheel_stacks_provide(w);
	w->depth++;
	list_take_all(&list, &w->notes);
	list_init(&refused);
	arm_all(w, &list, &refused);
	if (!list_empty(&refused))
		arm_again(w, &refused);
	nr = tell_refused(w, &refused);
	leave(w);
	return nr;
}

EXPORT unsigned int twheel_flush(struct twheel *w)
{
	if (w->clock != TWHEEL_CLOCK_VIRTUAL)
		w->head.now_up = STALE;
	return unlikely(w->head.work) ? flush(w) : 0;
}

/* Flush; returns false if a callback has closed the wheel, which is gone then. */
bool twheel_flush_within(struct twheel *w, unsigned int *refused)
{
	bool closed;

	w->depth++;
	*refused = twheel_flush(w);
	closed = w->closed;
	leave(w);
	return !closed;
}
