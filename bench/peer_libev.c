// SPDX-License-Identifier: GPL-2.0
/*
 * libev's ev_timer, by ev_timer_again(), as its documentation advises for timeouts
 * that are moved often: a timer that runs is moved within the heap.  The loop's
 * time is brought up to date once for each batch.
 */
#include "bench.h"

#ifdef HAVE_LIBEV
#include <err.h>
#include <ev.h>

struct libev {
	struct ev_loop *loop;
	ev_timer *timer;
	ev_io watched;
	struct setup setup;
};

static void *open_libev(const struct setup *setup)
{
	struct libev *l = get_memory(1, sizeof(*l));

	l->loop = ev_loop_new(EVBACKEND_EPOLL);
	if (!l->loop)
		errx(1, "ev_loop_new");
	l->setup = *setup;
	ev_set_userdata(l->loop, l);
	return l;
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct libev *l = ev_userdata(loop);

	(void)events;
	ev_timer_stop(loop, timer);
	expired(timer - l->timer);
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct libev *l = self;
	uint32_t i;

	if (!first)
		l->timer = get_memory(l->setup.nr, sizeof(*l->timer));
	for (i = first; i < first + nr; i++)
		ev_init(&l->timer[i], on_timer);
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct libev *l = self;
	uint64_t now = l->setup.shared ? 0 : now_ns();
	uint32_t i;

	/* In a loop with turns, the loop updates its time itself. */
	if (!l->setup.turns || l->setup.shared)
		ev_now_update(l->loop);
	for (i = 0; i < nr; i++) {
		int64_t left_ns = deadline_ns[i] - now;

		/* 0 would stop it. */
		l->timer[who[i]].repeat = (left_ns > 0 ? left_ns : 1) / 1e9;
		ev_timer_again(l->loop, &l->timer[who[i]]);
	}
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct libev *l = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		ev_timer_stop(l->loop, &l->timer[who[i]]);
}

static void wait_loop(void *self, bool sleep)
{
	ev_run(((struct libev *)self)->loop, sleep ? EVRUN_ONCE : EVRUN_NOWAIT);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)io;
	(void)events;
}

static void watch(void *self, int fd)
{
	struct libev *l = self;

	ev_io_init(&l->watched, on_readable, fd, EV_READ);
	ev_io_start(l->loop, &l->watched);
}

const struct peer peer_libev = {
	.name = "libev",
	.usage = "ev_timer_again(), the loop's cached time",
	.workloads = DOES_ALL | DOES(SCALE) | DOES(WAKEUPS) | DOES(DISPATCH) |
		     DOES(WHEELS) | DOES(SHARED),
	.timer_size = sizeof(ev_timer),
	.reads_clock = true,
	.open = open_libev,
	.create = create,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait_loop,
	.watch = watch,
};
#else
ABSENT_PEER(peer_libev, "libev", "built without libev");
#endif
