// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel.c - the library's wheel, in a loop that sleeps until twheel_next()
 */
#include "bench.h"
#include "twheel.h"

#define NS_PER_MS	1000000ULL

static struct twheel *w;
static struct twheel_timer *timers;

static void expired(struct twheel *its_wheel, struct twheel_timer *timer)
{
	(void)its_wheel;
	(void)timer;
	nr_expired++;
}

static void make(uint32_t nr)
{
	uint32_t i;

	if (twheel_open(&w, NULL))
		fail("twheel_open");
	timers = allocate(nr * sizeof(*timers));
	for (i = 0; i < nr; i++)
		twheel_timer_init(&timers[i], expired);
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		twheel_start(w, &timers[who[i]], due_ms[i] * NS_PER_MS);
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		twheel_stop(w, &timers[who[i]]);
}

static bool step(void)
{
	uint64_t next_ns = twheel_next(w);

	if (next_ns == TWHEEL_NEVER)
		return false;
	if (next_ns > clock_ns)
		clock_ns = next_ns;
	twheel_dispatch(w, 0);
	return true;
}

static void run(void)
{
	while (step())
		;
}

const struct structure libtwheel_structure = {
	.name	= "libtwheel",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= insert,
	.run	= run,
	.step	= step,
};
