// SPDX-License-Identifier: GPL-2.0
/*
 * libevent.c - libevent's timers: a binary heap of pointers, and its "common
 * timeouts", a queue for each duration that many timers have in common
 *
 * The queues are for few durations and there may be 256 of them, so deadlines
 * are rounded up to quarters of a second for them: less than all others do.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "bench.h"

#define COMMON_MS	250
#define NR_COMMON	240

static struct event_base *base;
static struct event *timers;
static const struct timeval *common[NR_COMMON + 1];

static void expired(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)arg;
	nr_expired++;
}

static struct timeval duration(uint32_t ms)
{
	return (struct timeval){ ms / 1000, ms % 1000 * 1000 };
}

static void make(uint32_t nr)
{
	struct event_config *config = event_config_new();
	uint32_t i;

	if (!config || event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK))
		fail("event_config_new");
	base = event_base_new_with_config(config);
	if (!base)
		fail("event_base_new");
	timers = allocate(nr * sizeof(*timers));
	for (i = 0; i < nr; i++)
		if (evtimer_assign(&timers[i], base, expired, NULL))
			fail("evtimer_assign");
}

/* If a timer pends, adding it moves it. */
static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct timeval tv = duration(due_ms[i]);

		event_add(&timers[who[i]], &tv);
	}
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		event_del(&timers[who[i]]);
}

static void run(void)
{
	event_base_dispatch(base);
}

static bool step(void)
{
	return !event_base_loop(base, EVLOOP_ONCE);
}

static void make_common(uint32_t nr)
{
	uint32_t i;

	make(nr);
	for (i = 1; i <= NR_COMMON; i++) {
		struct timeval tv = duration(i * COMMON_MS);

		common[i] = event_base_init_common_timeout(base, &tv);
		if (!common[i])
			fail("event_base_init_common_timeout");
	}
}

/* If a deadline is beyond the longest duration, that duration is used. */
static void insert_common(const uint32_t *who, const uint32_t *due_ms,
			  uint32_t nr)
{
	uint32_t i, c;

	for (i = 0; i < nr; i++) {
		c = (due_ms[i] + COMMON_MS - 1) / COMMON_MS;
		event_add(&timers[who[i]],
			  common[c < NR_COMMON ? c : NR_COMMON]);
	}
}

const struct structure libevent_structure = {
	.name	= "libevent",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= insert,
	.run	= run,
	.step	= step,
};

const struct structure libevent_common_structure = {
	.name	= "libevent, common",
	.make	= make_common,
	.insert	= insert_common,
	.remove	= remove_timers,
	.move	= insert_common,
	.run	= run,
};
