// SPDX-License-Identifier: GPL-2.0
/*
 * libuv's timers: milliseconds, so deadlines are rounded up to these.  The loop's
 * time is brought up to date once for each batch.
 */
#include "bench.h"

#ifdef HAVE_LIBUV
#include <err.h>
#include <uv.h>

struct libuv {
	uv_loop_t loop;
	uv_timer_t *timer;
	uv_poll_t watched;
	uint32_t nr;
	bool turns;
	bool shared;
};

static void *open_libuv(const struct setup *setup)
{
	struct libuv *l = get_memory(1, sizeof(*l));

	if (uv_loop_init(&l->loop))
		errx(1, "uv_loop_init");
	l->nr = setup->nr;
	l->turns = setup->turns;
	l->shared = setup->shared;
	return l;
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct libuv *l = self;
	uint32_t i;

	if (!first)
		l->timer = get_memory(l->nr, sizeof(*l->timer));
	for (i = first; i < first + nr; i++)
		uv_timer_init(&l->loop, &l->timer[i]);
}

static void on_timer(uv_timer_t *timer)
{
	struct libuv *l = (struct libuv *)timer->loop;

	expired(timer - l->timer);
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct libuv *l = self;
	uint64_t now_ms;
	uint32_t i;

	/* Its time is CLOCK_MONOTONIC, cut to milliseconds; a loop with turns updates it itself. */
	if (!l->turns || l->shared)
		uv_update_time(&l->loop);
	now_ms = l->shared ? 0 : uv_now(&l->loop);
	for (i = 0; i < nr; i++) {
		uint64_t ms = (deadline_ns[i] + MS - 1) / MS;

		uv_timer_start(&l->timer[who[i]], on_timer, ms > now_ms ? ms - now_ms : 0, 0);
	}
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct libuv *l = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		uv_timer_stop(&l->timer[who[i]]);
}

static void wait_loop(void *self, bool sleep)
{
	uv_run(&((struct libuv *)self)->loop, sleep ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
}

static void watch(void *self, int fd)
{
	struct libuv *l = self;

	if (uv_poll_init(&l->loop, &l->watched, fd) ||
	    uv_poll_start(&l->watched, UV_READABLE, on_readable))
		errx(1, "uv_poll_start");
}

const struct peer peer_libuv = {
	.name = "libuv",
	.usage = "uv_timer_start(), the loop's cached time",
	.workloads = DOES_ALL | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	.timer_size = sizeof(uv_timer_t),
	.wheel_size = sizeof(uv_loop_t),
	.reads_clock = true,
	.open = open_libuv,
	.create = create,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait_loop,
	.watch = watch,
};
#else
ABSENT_PEER(peer_libuv, "libuv", "built without libuv");
#endif
