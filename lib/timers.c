// SPDX-License-Identifier: MIT
/*
 * timers.c - what a program does with wheels and timers: open and close, start and stop
 *
 * The functions that are inline leave shared wheels to the _slow ones: now is never known there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The functions that are inline in programs are made here, for other languages. */
#define _TWHEEL_FUNCTION	__attribute__((__visibility__("default")))
#include "wheel.h"

#define TICK_MAX_NS	(3600 * TWHEEL_SEC)

#define STRING(x)	#x
#define VERSION(major, minor, patch)	STRING(major) "." STRING(minor) "." STRING(patch)

EXPORT const char *twheel_version(void)
{
	return VERSION(TWHEEL_VERSION_MAJOR, TWHEEL_VERSION_MINOR, TWHEEL_VERSION_PATCH);
}

void timers_start(struct twheel *w, struct twheel_timer *t, uint64_t ns, uint64_t interval_ns)
{
	uint64_t next = w->head.next;

	if (!interval_ns && ns > w->clock_ns && ns < END_NS) {
		_twheel_start_key(w, t, ns | KEY);
	} else {
		stop_timer(t);
		t->interval_ns = interval_ns;
		loop_place(w, t, ns);
	}
	/* If the descriptor is readable, somebody dispatches, who sets it in the end. */
	if (unlikely(w->head.next < next || w->at_once) && is_immediate(w) && !w->readable)
		loop_set_fd(w);
}

EXPORT void _twheel_start_slow(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	/* Threads do not wait for each other's reading of the clock. */
	uint64_t now_ns = w->head.shared ? loop_read(w) : 0;

	LOCKED(w);
	if (now_ns > w->clock_ns)
		w->clock_ns = now_ns;
	else
		now_ns = loop_turn_ns(w);
	timers_start(w, t, time_add(now_ns, delay_ns), 0);
}

EXPORT void _twheel_start_at_slow(struct twheel *w, struct twheel_timer *t, uint64_t key)
{
	LOCKED(w);
	/* The first start of a turn reads the clock. */
	if (!is_immediate(w))
		loop_turn_ns(w);
	timers_start(w, t, min64(key ^ KEY, END_NS), 0);
}

/* The timer pends, for later than this key, or again and again. */
EXPORT void _twheel_restart(struct twheel *w, struct twheel_timer *t, uint64_t key)
{
	unlink_timer(t);
	_twheel_insert(w, t, key);
}

EXPORT void twheel_start_periodic(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
				  uint64_t interval_ns, unsigned int flags)
{
	interval_ns = min64(max64(interval_ns, w->options.tick_ns), NEVER - 1);
	if (flags & TWHEEL_FIXED_DELAY)
		interval_ns |= FIXED_DELAY;
	LOCKED(w);
	loop_turn_ns(w);
	timers_start(w, t, min64(deadline_ns, END_NS), interval_ns);
}

EXPORT void twheel_start_every(struct twheel *w, struct twheel_timer *t, uint64_t interval_ns)
{
	interval_ns = max64(interval_ns, w->options.tick_ns);
	twheel_start_periodic(w, t, time_add(twheel_now(w), interval_ns), interval_ns, 0);
}

EXPORT APART bool _twheel_stop_slow(struct twheel *w, struct twheel_timer *t)
{
	LOCKED(w);
	return stop_timer(t);
}

EXPORT bool twheel_stop_sync(struct twheel *w, struct twheel_timer *t)
{
	struct waiter waiter = { .t = t };
	int state;

	LOCKED(w);
	waiter.was_pending = stop_timer(t);
	if (is_elsewhere(w) && loop_callback_of(w, t)) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		waiter.next = w->waiters;
		w->waiters = &waiter;
		while (waiter.t)
			pthread_cond_wait(&w->returned, &w->lock);
		pthread_setcancelstate(state, NULL);
	}
	return waiter.was_pending;
}

EXPORT size_t twheel_timer_size(void)
{
	return sizeof(struct twheel_timer);
}

EXPORT void twheel_timer_move(struct twheel *w, struct twheel_timer *to, struct twheel_timer *from)
{
	struct twheel_timer **callback;
	struct waiter *waiter;

	LOCKED(w);
	*to = *from;
	while (to != from && (callback = loop_callback_of(w, from)))
		*callback = to;
	for (waiter = w->waiters; waiter; waiter = waiter->next)
		if (waiter->t == from)
			waiter->t = to;
	if (to->deadline && to != from) {
		*to->pprev = to;
		to->next->pprev = &to->next;
		from->deadline = 0;
	}
}

EXPORT void twheel_each(struct twheel *w, twheel_visitor *fn, void *arg)
{
	LOCKED(w);
	wheel_each(w, fn, arg);
}

static void gather(struct twheel *w, struct twheel_timer *t, void *arg)
{
	(void)arg;
	unlink_timer(t);
	t->deadline = NEVER;
	push(&w->list[STOPPING], t);
}

/* Timers wait in STOPPING, and may be started from there.  If fn throws, the rest never expire. */
EXPORT size_t twheel_stop_all(struct twheel *w, twheel_visitor *fn, void *arg)
{
	struct twheel_timer *t;
	size_t nr = 0;

	lock(w);
	/* The walk begins with STOPPING, which is empty then. */
	wheel_each(w, gather, NULL);
	while ((t = w->list[STOPPING]) != &w->end) {
		stop_timer(t);
		nr++;
		if (!fn)
			continue;
		unlock(w);
		fn(w, t, arg);
		lock(w);
	}
	unlock(w);
	return nr;
}

static void count(struct twheel *w, struct twheel_timer *t, void *arg)
{
	(void)w;
	(void)t;
	++*(uint64_t *)arg;
}

EXPORT void twheel_get_stats(struct twheel *w, struct twheel_stats *stats, size_t size)
{
	struct twheel_stats now;
	unsigned int i;

	LOCKED(w);
	now = w->stats;
	for (i = 0; i < TWHEEL_LATE_BUCKETS; i++)
		now.called += now.late[i];
	wheel_each(w, count, &now.pending);
	memset(stats, 0, size);
	memcpy(stats, &now, min64(size, sizeof(now)));
}

/*
 * Copy options, which begin with their size and grow at their end: beyond the size that is known
 * here, that of the first release, they have to be 0.  NULL is for all 0.
 */
int options_copy(void *to, size_t known, const void *from)
{
	const unsigned char *bytes = from;
	uint32_t size, i;

	memset(to, 0, known);
	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < known)
		return -EINVAL;
	for (i = (uint32_t)known; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(to, from, known);
	return 0;
}

static int options_get(struct twheel_options *to, const struct twheel_options *from)
{
	int ret = options_copy(to, sizeof(*to), from);

	if (ret)
		return ret;
	if (!to->tick_ns)
		to->tick_ns = TWHEEL_MSEC;
	if (to->clock > TWHEEL_CALLER || to->reserved ||
	    (ONLY_POSIX && (to->clock == TWHEEL_BOOTTIME || to->clock == TWHEEL_TAI)) ||
	    to->flags & ~(TWHEEL_SHARED | TWHEEL_IMMEDIATE | TWHEEL_MEASURE) ||
	    to->tick_ns < TWHEEL_USEC || to->tick_ns > TICK_MAX_NS || to->slack_ns > TICK_MAX_NS)
		return -EINVAL;
	return 0;
}

/* Memory of zeros for a wheel, at an address that says whether it is shared. */
static struct twheel *get_memory(bool shared)
{
	unsigned char *memory = calloc(1, sizeof(struct twheel) + _TWHEEL_SHARED_BIT);
	struct twheel *w = (void *)memory;

	if (!w)
		return NULL;
	if (shared != !!((uintptr_t)memory & _TWHEEL_SHARED_BIT))
		w = (void *)(memory + _TWHEEL_SHARED_BIT);
	w->memory = memory;
	w->head.shared = shared;
	return w;
}

static void make_locks(struct twheel *w)
{
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->returned, NULL);
}

EXPORT int twheel_open(struct twheel **out, const struct twheel_options *options)
{
	struct twheel_options o;
	struct twheel *w;
	int ret;

	*out = NULL;
	ret = options_get(&o, options);
	if (ret)
		return ret;
	w = get_memory(o.flags & TWHEEL_SHARED);
	if (!w)
		return -ENOMEM;
	w->options = o;
	w->edge_ns = o.tick_ns * (1 + o.slack_ns / o.tick_ns);
	w->fd = -1;
	w->periods = 1;
	wheel_init(w);
	make_locks(w);
	loop_update(w);
	w->head.base = w->clock_ns | KEY;
	w->passed_by = w->head.base;
	w->target = last_edge(w);
	loop_end_turn(w);
	*out = w;
	return 0;
}

EXPORT void twheel_close(struct twheel *w)
{
	if (!w)
		return;
	/* Nobody else uses it; in the child after fork() its lock may be held for ever. */
	w->head.shared = false;
	twheel_stop_all(w, NULL, NULL);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->closed = true;
	if (!w->dispatched)
		free(w->memory);
}

EXPORT void twheel_after_fork(struct twheel *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->woken = false;
	w->rung = false;
	/* The callbacks of another thread never return here. */
	if (is_elsewhere(w))
		w->callbacks = 0;
	w->waiters = NULL;
	make_locks(w);
}

EXPORT void *twheel_data(const struct twheel *w)
{
	return w->options.data;
}
