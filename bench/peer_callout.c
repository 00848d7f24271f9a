// SPDX-License-Identifier: GPL-2.0
/*
 * The floor: a wheel of one level, of linked timers, as callout wheels of kernels are.  It has 2^18
 * slots of a tick of 1 ms, and scans each slot that it passes.  Its loop sleeps until the next slot
 * that is not empty, which it finds by scanning the slots, a second ahead at most.  It has one
 * thread, one clock, and nothing but one-shots.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SLOTS		(1U << 18)
#define AHEAD_TICKS	1000

struct timer {
	struct timer *next, **pprev;
	uint64_t tick;
};

struct callout {
	struct timer *slot[SLOTS];
	struct timer *timer;
	struct setup setup;
	uint64_t tick;		/* all slots up to here have been scanned */
	int fd;			/* never readable */
};

static void *open_callout(const struct setup *setup)
{
	struct callout *c = get_memory(1, sizeof(*c));

	c->setup = *setup;
	c->tick = now_ns() / MS;
	c->fd = eventfd(0, EFD_CLOEXEC);
	if (c->fd < 0)
		err(1, "eventfd");
	return c;
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct callout *c = self;

	(void)nr;
	if (!first)
		c->timer = get_memory(c->setup.nr, sizeof(*c->timer));
}

static void take_out(struct timer *t)
{
	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	t->pprev = NULL;
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct callout *c = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct timer *t = &c->timer[who[i]], **slot;
		uint64_t tick = (deadline_ns[i] + MS - 1) / MS;

		if (t->pprev)
			take_out(t);
		t->tick = tick > c->tick ? tick : c->tick + 1;
		slot = &c->slot[t->tick % SLOTS];
		t->next = *slot;
		if (t->next)
			t->next->pprev = &t->next;
		t->pprev = slot;
		*slot = t;
	}
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct callout *c = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (c->timer[who[i]].pprev)
			take_out(&c->timer[who[i]]);
}

static void pass_slot(struct callout *c, uint64_t tick)
{
	struct timer *t, *next;

	for (t = c->slot[tick % SLOTS]; t; t = next) {
		next = t->next;
		if (t->tick == tick) {
			take_out(t);
			expired(t - c->timer);
		}
	}
}

static uint64_t wake_ns(const struct callout *c)
{
	uint64_t tick = c->tick + 1;

	while (tick < c->tick + AHEAD_TICKS && !c->slot[tick % SLOTS])
		tick++;
	return tick * MS;
}

static void wait(void *self, bool sleep)
{
	struct callout *c = self;
	struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
	uint64_t wake = sleep ? wake_ns(c) : 0, now = sleep ? now_ns() : 0;
	const struct timespec timeout = to_timespec(wake > now ? wake - now : 0);

	if (sleep && c->setup.in_time)
		sleep_until(wake);
	else if (ppoll(&pfd, 1, &timeout, NULL) < 0)
		err(1, "ppoll");
	for (now = now_ns() / MS; c->tick < now; )
		pass_slot(c, ++c->tick);
}

/* The descriptor replaces the one that is never readable. */
static void watch(void *self, int fd)
{
	struct callout *c = self;

	close(c->fd);
	c->fd = fd;
}

static void close_callout(void *self)
{
	close(((struct callout *)self)->fd);
}

const struct peer peer_callout = {
	.name = "callout",
	.usage = "one level of 2^18 linked slots of 1 ms, the floor",
	.workloads = DOES_ALL | DOES(SCALE) | DOES(WAKEUPS) | DOES(DISPATCH) |
		     DOES(WHEELS) | DOES(SHARED),
	.is_structure = true,
	.timer_size = sizeof(struct timer),
	.open = open_callout,
	.create = create,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait,
	.watch = watch,
	.close = close_callout,
};
