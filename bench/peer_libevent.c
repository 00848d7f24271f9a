// SPDX-License-Identifier: GPL-2.0
/*
 * libevent's timers.  If all have the same distance, they are a common timeout, which is a list and
 * not the heap.  Work is done in a callback of the loop, as in a server, since the loop's time is
 * cached only there.
 */
#include "bench.h"

#ifdef HAVE_LIBEVENT
#include <err.h>
#include <event2/event.h>
#include <event2/event_struct.h>

struct work {
	const uint32_t *who;
	const uint64_t *deadline_ns;
	uint32_t nr;
};

struct libevent {
	struct event_base *base;
	struct event *timer;
	struct event job, watched;
	struct work work;
	const struct timeval *common, *other;
	struct setup setup;
};

static struct timeval timeval_of(uint64_t ns)
{
	/* Round up, so that none is early. */
	uint64_t us = (ns + US - 1) / US;

	return (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
}

static void do_arm(evutil_socket_t fd, short what, void *arg)
{
	struct libevent *l = arg;
	uint64_t now = now_ns();
	uint32_t i;

	(void)fd;
	(void)what;
	for (i = 0; i < l->work.nr; i++) {
		int64_t left_ns = l->work.deadline_ns[i] - now;
		struct timeval left = timeval_of(left_ns > 0 ? left_ns : 0);

		event_add(&l->timer[l->work.who[i]], &left);
	}
}

/* Each deadline is the present plus the common distance. */
static void do_arm_common(evutil_socket_t fd, short what, void *arg)
{
	struct libevent *l = arg;
	uint32_t i;

	(void)fd;
	(void)what;
	for (i = 0; i < l->work.nr; i++)
		event_add(&l->timer[l->work.who[i]], l->common);
}

static const struct timeval *common_timeout(struct libevent *l, uint64_t ns)
{
	struct timeval same = timeval_of(ns);

	return ns ? event_base_init_common_timeout(l->base, &same) : NULL;
}

static void *open_libevent(const struct setup *setup)
{
	struct libevent *l = get_memory(1, sizeof(*l));
	struct event_config *config = event_config_new();

	/* Use no lock of libevent's: there is one thread, or our mutex. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	l->base = event_base_new_with_config(config);
	if (!l->base)
		errx(1, "event_base_new");
	event_config_free(config);
	l->setup = *setup;
	l->common = common_timeout(l, setup->same_ns);
	l->other = common_timeout(l, setup->other_ns);
	return l;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	expired((uintptr_t)arg);
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct libevent *l = self;
	uint32_t i;

	if (!first)
		l->timer = get_memory(l->setup.nr, sizeof(*l->timer));
	for (i = first; i < first + nr; i++)
		evtimer_assign(&l->timer[i], l->base, on_timer, (void *)(uintptr_t)i);
}

static void in_loop(struct libevent *l, event_callback_fn fn, struct work work)
{
	l->work = work;
	event_assign(&l->job, l->base, -1, 0, fn, l);
	event_active(&l->job, EV_TIMEOUT, 0);
	event_base_loop(l->base, EVLOOP_NONBLOCK);
}

struct turn {
	void (*fn)(void *arg);
	void *arg;
};

static void do_turn(evutil_socket_t fd, short what, void *arg)
{
	const struct turn *turn = arg;

	(void)fd;
	(void)what;
	turn->fn(turn->arg);
}

/* We are in a callback of the loop already. */
static void run_turn(void *self, void (*fn)(void *arg), void *arg)
{
	struct libevent *l = self;
	struct turn turn = { fn, arg };

	event_assign(&l->job, l->base, -1, 0, do_turn, &turn);
	event_active(&l->job, EV_TIMEOUT, 0);
	event_base_loop(l->base, EVLOOP_NONBLOCK);
}

static void add_common(struct libevent *l, const uint32_t *who, uint32_t nr)
{
	const struct timeval *common = length_of(&l->setup, who[0]) == l->setup.same_ns ?
		l->common : l->other;
	uint32_t i;

	for (i = 0; i < nr; i++)
		event_add(&l->timer[who[i]], common);
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct libevent *l = self;

	if (l->setup.turns)
		add_common(l, who, nr);
	else
		in_loop(l, do_arm, (struct work){ who, deadline_ns, nr });
}

static void refresh(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct libevent *l = self;

	if (l->setup.turns)
		add_common(l, who, nr);
	else
		in_loop(l, l->common ? do_arm_common : do_arm,
			(struct work){ who, deadline_ns, nr });
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct libevent *l = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		event_del(&l->timer[who[i]]);
}

static void wait_loop(void *self, bool sleep)
{
	event_base_loop(((struct libevent *)self)->base, sleep ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void watch(void *self, int fd)
{
	struct libevent *l = self;

	if (event_assign(&l->watched, l->base, fd, EV_READ | EV_PERSIST, on_readable, NULL) ||
	    event_add(&l->watched, NULL))
		errx(1, "event_add");
}

const struct peer peer_libevent = {
	.name = "libevent",
	.usage = "event_add() from a callback; the same distance is a common timeout",
	.workloads = DOES_ALL | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	.timer_size = sizeof(struct event),
	.reads_clock = true,
	.open = open_libevent,
	.create = create,
	.arm = arm,
	.refresh = refresh,
	.cancel = cancel,
	.wait = wait_loop,
	.watch = watch,
	.turn = run_turn,
};
#else
ABSENT_PEER(peer_libevent, "libevent", "built without libevent");
#endif
