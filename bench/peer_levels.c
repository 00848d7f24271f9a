// SPDX-License-Identifier: GPL-2.0
/*
 * A hierarchical wheel as it is usually written, after timeout.c and its like: five levels of 64
 * slots, each 64 times as wide as one of the level below, of linked timers, and a map of the
 * slots that are not empty.  The level is that of the highest bit in which the tick differs from
 * the present one.  When a slot of an upper level is reached, all of its timers are moved down.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BITS		6
#define SLOTS		(1U << BITS)
#define LEVELS		5

#define NEVER		UINT64_MAX

struct timer {
	struct timer *next, **pprev;
	struct slot *slot;
	uint64_t tick;
};

struct slot {
	struct timer *first, **last;
};

struct levels {
	struct slot slot[LEVELS * SLOTS];
	uint64_t occupied[LEVELS];
	uint64_t tick;		/* all slots up to here have been called */
	struct timer *timer;
	uint32_t nr;
	int fd;			/* never readable */
	bool in_time;
};

static void *open_levels(const struct setup *setup)
{
	struct levels *l = get_memory(1, sizeof(*l));
	uint32_t i;

	for (i = 0; i < LEVELS * SLOTS; i++)
		l->slot[i].last = &l->slot[i].first;
	l->tick = now_ns() / MS;
	l->nr = setup->nr;
	l->in_time = setup->in_time;
	l->fd = eventfd(0, EFD_CLOEXEC);
	if (l->fd < 0)
		err(1, "eventfd");
	return l;
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct levels *l = self;

	(void)nr;
	if (!first)
		l->timer = get_memory(l->nr, sizeof(*l->timer));
}

static void take_out(struct levels *l, struct timer *t)
{
	struct slot *slot = t->slot;
	uint32_t i;

	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	else
		slot->last = t->pprev;
	t->slot = NULL;
	if (slot->first)
		return;
	i = slot - l->slot;
	l->occupied[i / SLOTS] &= ~(1ULL << i % SLOTS);
}

static void put(struct levels *l, struct timer *t)
{
	uint64_t differs = t->tick ^ l->tick;
	unsigned int level = differs ? (63 - __builtin_clzll(differs)) / BITS : 0;
	unsigned int i = t->tick >> level * BITS & (SLOTS - 1);
	struct slot *slot = &l->slot[level * SLOTS + i];

	t->slot = slot;
	t->next = NULL;
	t->pprev = slot->last;
	*slot->last = t;
	slot->last = &t->next;
	l->occupied[level] |= 1ULL << i;
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct levels *l = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct timer *t = &l->timer[who[i]];
		uint64_t tick = (deadline_ns[i] + MS - 1) / MS;

		if (t->slot)
			take_out(l, t);
		t->tick = tick > l->tick ? tick : l->tick + 1;
		put(l, t);
	}
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct levels *l = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (l->timer[who[i]].slot)
			take_out(l, &l->timer[who[i]]);
}

/* The tick at which the next slot that is not empty begins. */
static uint64_t next_tick(struct levels *l, struct slot **slot)
{
	unsigned int level, i;

	for (level = 0; level < LEVELS; level++) {
		uint64_t now = l->tick >> level * BITS;
		uint64_t later = l->occupied[level] & ~1ULL << now % SLOTS;

		if (!later)
			continue;
		i = __builtin_ctzll(later);
		*slot = &l->slot[level * SLOTS + i];
		return ((now & ~(uint64_t)(SLOTS - 1)) + i) << level * BITS;
	}
	return NEVER;
}

/* The timers of a slot are due, or go to a lower level. */
static void empty(struct levels *l, struct slot *slot)
{
	struct timer *t;

	while ((t = slot->first)) {
		take_out(l, t);
		if (t->tick > l->tick)
			put(l, t);
		else
			expired(t - l->timer);
	}
}

static void pass(struct levels *l, uint64_t now)
{
	struct slot *slot;
	uint64_t tick;

	while ((tick = next_tick(l, &slot)) <= now) {
		l->tick = tick;
		empty(l, slot);
	}
	if (now > l->tick)
		l->tick = now;
}

static void wait(void *self, bool sleep)
{
	struct levels *l = self;
	struct pollfd pfd = { .fd = l->fd, .events = POLLIN };
	struct timespec timeout = { 0 };
	uint64_t tick = NEVER, now;
	struct slot *slot;

	if (sleep) {
		tick = next_tick(l, &slot);
		now = now_ns();
		if (tick != NEVER && tick * MS > now)
			timeout = to_timespec(tick * MS - now);
	}
	if (sleep && l->in_time)
		sleep_until(tick * MS);
	else if (ppoll(&pfd, 1, sleep && tick == NEVER ? NULL : &timeout, NULL) < 0)
		err(1, "ppoll");
	pass(l, now_ns() / MS);
}

/* The descriptor replaces the one that is never readable. */
static void watch(void *self, int fd)
{
	struct levels *l = self;

	close(l->fd);
	l->fd = fd;
}

static void close_levels(void *self)
{
	close(((struct levels *)self)->fd);
}

const struct peer peer_levels = {
	.name = "levels",
	.usage = "a hierarchical wheel as usual: five levels of 64 linked slots, 1 ms",
	.workloads = DOES_ALL | DOES(SCALE) | DOES(WAKEUPS) | DOES(DISPATCH) |
		     DOES(WHEELS) | DOES(SHARED),
	.is_structure = true,
	.timer_size = sizeof(struct timer),
	.open = open_levels,
	.create = create,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait,
	.watch = watch,
	.close = close_levels,
};
