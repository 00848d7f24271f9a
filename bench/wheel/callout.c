// SPDX-License-Identifier: GPL-2.0
/*
 * callout.c - the floor: one level of 2^18 slots of a millisecond, lists of timers
 */
#include "bench.h"

#define NS_PER_MS	1000000ULL
#define SLOTS		(1U << 18)

struct timer {
	struct timer *next, **pprev;
	uint64_t tick;
	void (*expired)(struct timer *timer);
};

static struct timer **slots, *timers;
static uint64_t tick = START_NS / NS_PER_MS;
static uint32_t nr_pending;

static void expired(struct timer *timer)
{
	(void)timer;
	nr_expired++;
}

static void make(uint32_t nr)
{
	slots = allocate(SLOTS * sizeof(*slots));
	timers = allocate(nr * sizeof(*timers));
	while (nr--)
		timers[nr].expired = expired;
}

static void take_out(struct timer *timer)
{
	*timer->pprev = timer->next;
	if (timer->next)
		timer->next->pprev = timer->pprev;
	timer->pprev = NULL;
	nr_pending--;
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint64_t now = clock_ns / NS_PER_MS;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct timer *timer = &timers[who[i]], **slot;

		if (timer->pprev)
			take_out(timer);
		timer->tick = now + due_ms[i];
		slot = &slots[timer->tick % SLOTS];
		timer->next = *slot;
		if (timer->next)
			timer->next->pprev = &timer->next;
		timer->pprev = slot;
		*slot = timer;
		nr_pending++;
	}
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		take_out(&timers[who[i]]);
}

static bool step(void)
{
	struct timer *timer, *next;

	if (!nr_pending)
		return false;
	for (timer = slots[tick % SLOTS]; timer; timer = next) {
		next = timer->next;
		if (timer->tick == tick) {
			take_out(timer);
			timer->expired(timer);
		}
	}
	tick++;
	return true;
}

static void run(void)
{
	while (step())
		;
	clock_ns = tick * NS_PER_MS;
}

const struct structure callout_structure = {
	.name	= "callout, one level",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= insert,
	.run	= run,
	.step	= step,
};
