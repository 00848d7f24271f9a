// SPDX-License-Identifier: GPL-2.0
/*
 * libuv.c - libuv's timers: a binary heap of linked nodes
 */
#include <uv.h>

#include "bench.h"

static uv_loop_t loop;
static uv_timer_t *timers;

static void expired(uv_timer_t *timer)
{
	(void)timer;
	nr_expired++;
}

static void make(uint32_t nr)
{
	uint32_t i;

	if (uv_loop_init(&loop))
		fail("uv_loop_init");
	timers = allocate(nr * sizeof(*timers));
	for (i = 0; i < nr; i++)
		if (uv_timer_init(&loop, &timers[i]))
			fail("uv_timer_init");
}

/* If a timer pends, starting it moves it, as uv_timer_again() would. */
static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		uv_timer_start(&timers[who[i]], expired, due_ms[i], 0);
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		uv_timer_stop(&timers[who[i]]);
}

static void run(void)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_update_time(&loop);
}

static bool step(void)
{
	return uv_run(&loop, UV_RUN_ONCE);
}

const struct structure libuv_structure = {
	.name	= "libuv",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= insert,
	.run	= run,
	.step	= step,
};
