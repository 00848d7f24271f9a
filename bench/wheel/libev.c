// SPDX-License-Identifier: GPL-2.0
/*
 * libev.c - libev's timers: a heap of four children a node, each with a copy of
 * its time
 */
#include <ev.h>

#include "bench.h"

#define MS_PER_SEC	1000.

static struct ev_loop *loop;
static ev_timer *timers;

static void expired(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)l;
	(void)timer;
	(void)events;
	nr_expired++;
}

static void make(uint32_t nr)
{
	uint32_t i;

	loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	if (!loop)
		fail("ev_loop_new");
	timers = allocate(nr * sizeof(*timers));
	for (i = 0; i < nr; i++)
		ev_timer_init(&timers[i], expired, 0, 0);
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		ev_timer *timer = &timers[who[i]];

		ev_timer_set(timer, due_ms[i] / MS_PER_SEC, 0.);
		ev_timer_start(loop, timer);
	}
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		ev_timer_stop(loop, &timers[who[i]]);
}

/* Move timers as its manual advises; the repeat is only an argument of ev_timer_again(). */
static void move(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		ev_timer *timer = &timers[who[i]];

		timer->repeat = due_ms[i] / MS_PER_SEC;
		ev_timer_again(loop, timer);
		timer->repeat = 0.;
	}
}

/* Its cached time has to follow the clock before another timer is started. */
static void run(void)
{
	ev_run(loop, 0);
	ev_now_update(loop);
}

static bool step(void)
{
	return ev_run(loop, EVRUN_ONCE);
}

const struct structure libev_structure = {
	.name	= "libev",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= move,
	.run	= run,
	.step	= step,
};
