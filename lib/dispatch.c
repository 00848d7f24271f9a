// SPDX-License-Identifier: MIT
/*
 * twheel_dispatch(): reads events, and calls callbacks; twheel_wait(), which sleeps before
 */
#include <errno.h>
#include <poll.h>

#include "front.h"

/*
 * The event of a place that a timer has: the timer is due, unless it was moved to a time
 * that had not come.
 */
static inline bool owned_ended(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			       const struct twheel_event *event)
{
	if (unlikely(t->interval_ns))
		deadline_ns = t->deadline_ns;
	if (unlikely(event->flags & TWHEEL_EVENT_DRAINED)) {
		t->flags |= DRAINED;
	} else if (unlikely(event->fired_ns < deadline_ns || deadline_ns == TWHEEL_TIME_NEVER)) {
		w->stats.rearmed++;
		note(w, t, deadline_ns);
		return false;
	}
	t->deadline_ns = deadline_ns;
	t->place = (struct twheel_place *)&twheel_due;
	list_add_tail(&w->due, t);
	return true;
}

/* The place of an event is gone from now on; says whether a timer is due. */
static inline bool place_ended(struct twheel *w, struct twheel_place *place,
			       const struct twheel_event *event)
{
	struct twheel_timer *t = place->owner;
	uint64_t deadline_ns;

	if (unlikely(place->ref != ref_of(event->id)))
		return false;
	w->nr_armed--;
	if (unlikely(!t || is_linked(place))) {
		/* It stays where it is: in its stack, or among the given up. */
		w->stats.vain++;
		place->bound = NO_BOUND;
		return false;
	}
	deadline_ns = grains_to_ns(w, place->bound);
	place_free(w, place);
	return owned_ended(w, t, deadline_ns, event);
}

/* Read events until there is none, or so many timers are due. */
static int read_events(struct twheel *w, unsigned int max)
{
	unsigned int due = 0;
	uint32_t room;
	int i, nr;

	do {
		room = max - due < BATCH ? max - due : BATCH;
		w->stats.calls++;
		nr = w->backend->read(w, w->event, room);
		if (nr < 0)
			return nr;
		for (i = 0; i < nr; i++)
			if (likely(w->event[i].user_data < w->nr_used))
				due += place_ended(w, &w->place[w->event[i].user_data],
						   &w->event[i]);
	} while ((uint32_t)nr == room && due < max);
	return 0;
}

/* Start a periodic timer anew, and count the periods that have passed. */
static void next_period(struct twheel *w, struct twheel_timer *t)
{
	uint64_t now_ns = twheel_now(w), interval_ns = t->interval_ns, periods = 1;
	unsigned int flags = t->flags;

	if (flags & TWHEEL_FIXED_DELAY) {
		twheel_start_periodic(w, t, time_add(now_ns, interval_ns), interval_ns, flags);
	} else {
		if (now_ns > t->deadline_ns)
			periods += (now_ns - t->deadline_ns) / interval_ns;
		twheel_start_periodic(w, t, time_add(t->deadline_ns, periods * interval_ns),
				      interval_ns, flags);
	}
	t->count = periods < UINT32_MAX ? periods : UINT32_MAX;
}

static void expire(struct twheel *w, struct twheel_timer *t)
{
	bool drained = t->flags & DRAINED;

	list_del(t);
	set_idle(t);
	t->count = 1;
	if (drained)
		make_one_shot(w, t);
	else if (t->interval_ns)
		next_period(w, t);
	w->stats.expired++;
	t->callback(w, t, drained ? -ESHUTDOWN : 0);
}

EXPORT int twheel_dispatch(struct twheel *w, unsigned int max)
{
	unsigned int nr = 0;
	int ret;

	if (w->closed)
		return 0;
	w->depth++;
	if (!max)
		max = INT32_MAX;
	/* All that has ended is known as such before the first callback starts anything. */
	ret = list_empty(&w->due) ? read_events(w, max) : 0;
	twheel_update(w);
	while (nr < max && !w->closed && !list_empty(&w->due)) {
		expire(w, w->due.next);
		nr++;
	}
	leave(w);
	return nr || !ret ? (int)nr : ret;
}

/* Sleep until the descriptor is readable, or until a time of CLOCK_MONOTONIC. */
static int sleep_until(const struct twheel *w, uint64_t end_ns)
{
	struct pollfd pollfd = { .fd = w->fd, .events = POLLIN };
	uint64_t now_ns = twheel_clock_now(TWHEEL_CLOCK_MONOTONIC);
	uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	struct timespec left = {
		.tv_sec = left_ns / TWHEEL_SEC,
		.tv_nsec = left_ns % TWHEEL_SEC,
	};
	int ret = ppoll(&pollfd, 1, end_ns < TWHEEL_TIME_NEVER ? &left : NULL, NULL);

	if (ret < 0)
		return -errno;
	/* Otherwise it would say so for ever. */
	if (ret && !(pollfd.revents & POLLIN))
		return pollfd.revents & POLLHUP ? -ESHUTDOWN : -EIO;
	return ret;
}

EXPORT int twheel_wait(struct twheel *w, uint64_t timeout_ns)
{
	uint64_t end_ns = time_add(twheel_clock_now(TWHEEL_CLOCK_MONOTONIC), timeout_ns);
	unsigned int refused;
	bool due;
	int ret;

	do {
		if (!twheel_flush_within(w, &refused))
			return refused;
		due = !list_empty(&w->due);
		ret = sleep_until(w, refused || due ? 0 : end_ns);
		if (ret > 0 || (!ret && due))
			ret = twheel_dispatch(w, 0);
	} while (!ret && !refused && twheel_clock_now(TWHEEL_CLOCK_MONOTONIC) < end_ns);
	return ret > 0 || !refused ? ret + (int)refused : (int)refused;
}
