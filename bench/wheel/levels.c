// SPDX-License-Identifier: GPL-2.0
/*
 * levels.c - a hierarchical wheel as it is usually written: levels of 64 slots of a power of 64
 * milliseconds, lists with a head and a tail, and a map of the slots that are not empty
 *
 * The level is that of the highest bit in which the tick differs from the present one.  A timer
 * that is moved leaves its slot and enters another one at once.
 */
#include "bench.h"

#define NS_PER_MS	1000000ULL
#define BITS		6
#define SLOTS		(1U << BITS)
#define LEVELS		5

struct timer {
	struct timer *next, **pprev;
	struct slot *slot;
	uint64_t tick;
	void (*expired)(struct timer *timer);
};

struct slot {
	struct timer *first, **last;
};

static struct slot slots[LEVELS * SLOTS];
static uint64_t occupied[LEVELS];
static uint64_t tick = START_NS / NS_PER_MS;
static struct timer *timers;
static uint32_t nr_pending;

static void expired(struct timer *timer)
{
	(void)timer;
	nr_expired++;
}

static void make(uint32_t nr)
{
	unsigned int i;

	for (i = 0; i < LEVELS * SLOTS; i++)
		slots[i].last = &slots[i].first;
	timers = allocate(nr * sizeof(*timers));
	while (nr--)
		timers[nr].expired = expired;
}

static void take_out(struct timer *timer)
{
	struct slot *slot = timer->slot;
	uint32_t i;

	*timer->pprev = timer->next;
	if (timer->next)
		timer->next->pprev = timer->pprev;
	else
		slot->last = timer->pprev;
	timer->slot = NULL;
	if (slot->first)
		return;
	i = slot - slots;
	occupied[i / SLOTS] &= ~(1ULL << i % SLOTS);
}

static void put(struct timer *timer)
{
	uint64_t differs = timer->tick ^ tick;
	unsigned int level = differs ? (63 - __builtin_clzll(differs)) / BITS : 0;
	unsigned int i = timer->tick >> level * BITS & (SLOTS - 1);
	struct slot *slot = &slots[level * SLOTS + i];

	timer->slot = slot;
	timer->next = NULL;
	timer->pprev = slot->last;
	*slot->last = timer;
	slot->last = &timer->next;
	occupied[level] |= 1ULL << i;
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint64_t now = clock_ns / NS_PER_MS;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct timer *timer = &timers[who[i]];

		if (timer->slot)
			take_out(timer);
		else
			nr_pending++;
		timer->tick = now + due_ms[i];
		put(timer);
	}
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		take_out(&timers[who[i]]);
	nr_pending -= nr;
}

/* The timers of a slot are due, or go to a lower level. */
static void empty(struct slot *slot)
{
	struct timer *timer;

	while ((timer = slot->first)) {
		take_out(timer);
		if (timer->tick > tick) {
			put(timer);
			continue;
		}
		nr_pending--;
		timer->expired(timer);
	}
}

static bool step(void)
{
	unsigned int level, i;

	if (!nr_pending)
		return false;
	for (level = 0; level < LEVELS; level++) {
		uint64_t now = tick >> level * BITS;
		uint64_t later = occupied[level] & ~1ULL << now % SLOTS;

		if (!later)
			continue;
		i = __builtin_ctzll(later);
		tick = ((now & ~(uint64_t)(SLOTS - 1)) + i) << level * BITS;
		empty(&slots[level * SLOTS + i]);
		return true;
	}
	fail("timers are lost");
}

static void run(void)
{
	while (step())
		;
	clock_ns = tick * NS_PER_MS;
}

const struct structure levels_structure = {
	.name	= "levels of 64",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= insert,
	.run	= run,
	.step	= step,
};
