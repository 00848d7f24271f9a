// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel: a loop that sleeps until a time, and one that watches the descriptor.  If a workload
 * is a loop with turns, the wheel's turn ends once in each, as in a daemon; otherwise each batch is
 * a turn.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../lib/twheel.h"

struct libtwheel {
	struct twheel *w;
	struct twheel_timer *timer;
	struct setup setup;
	int fd;		/* of the wheel, or one that is never readable */
	int watched;	/* or -1 */
	bool by_fd;
};

/* A timer has no pointer to its peer, and each thread has only one. */
static __thread struct libtwheel *ours;

static struct libtwheel *open_with(const struct setup *setup, bool by_fd)
{
	struct libtwheel *l = get_memory(1, sizeof(*l));
	const struct twheel_options options = {
		.size = sizeof(options),
		.flags = setup->shared ? TWHEEL_SHARED : 0,
	};
	int error = twheel_open(&l->w, &options);

	if (error)
		errx(1, "twheel_open: %s", strerror(-error));
	l->setup = *setup;
	l->by_fd = by_fd;
	l->watched = -1;
	l->fd = by_fd ? twheel_fd(l->w) : eventfd(0, EFD_CLOEXEC);
	if (l->fd < 0)
		errx(1, "no descriptor");
	return l;
}

static void *open_by_time(const struct setup *setup)
{
	return open_with(setup, false);
}

static void *open_by_fd(const struct setup *setup)
{
	return open_with(setup, true);
}

static void on_timer(struct twheel *w, struct twheel_timer *t)
{
	(void)w;
	expired(t - ours->timer);
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct libtwheel *l = self;
	uint32_t i;

	if (!first)
		l->timer = get_memory(l->setup.nr, sizeof(*l->timer));
	for (i = first; i < first + nr; i++)
		twheel_timer_init(&l->timer[i], on_timer);
}

/* Return when to wake up, if the loop sleeps until a time. */
static uint64_t end_turn(struct libtwheel *l)
{
	ours = l;
	if (!l->by_fd)
		return twheel_next(l->w);
	if (twheel_flush(l->w))
		errx(1, "twheel_flush");
	return TWHEEL_NEVER;
}

static void start_lengths(struct libtwheel *l, const uint32_t *who, uint32_t nr)
{
	uint64_t length_ns = length_of(&l->setup, who[0]);
	struct twheel_timer *timer = l->timer;
	struct twheel *w = l->w;
	uint32_t i;

	for (i = 0; i < nr; i++)
		twheel_start(w, &timer[who[i]], length_ns);
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct libtwheel *l = self;
	struct twheel_timer *timer = l->timer;
	struct twheel *w = l->w;
	uint32_t i;

	if (l->setup.turns) {
		start_lengths(l, who, nr);
		return;
	}
	twheel_now(w);
	for (i = 0; i < nr; i++)
		twheel_start_at(w, &timer[who[i]], deadline_ns[i]);
	end_turn(l);
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct libtwheel *l = self;
	struct twheel_timer *timer = l->timer;
	struct twheel *w = l->w;
	uint32_t i;

	for (i = 0; i < nr; i++)
		twheel_stop(w, &timer[who[i]]);
	if (!l->setup.turns)
		end_turn(l);
}

static void wait(void *self, bool sleep)
{
	struct libtwheel *l = self;
	struct pollfd pfd[2] = {
		{ .fd = l->fd, .events = POLLIN },
		{ .fd = l->watched, .events = POLLIN },
	};
	nfds_t nr = l->watched < 0 ? 1 : 2;
	uint64_t wake_ns = end_turn(l), now;
	struct timespec timeout = { 0 };

	if (sleep && l->setup.in_time && !l->by_fd) {
		sleep_until(wake_ns);
		twheel_dispatch(l->w, 0);
		return;
	}
	if (sleep && wake_ns != TWHEEL_NEVER) {
		now = now_ns();
		timeout = to_timespec(wake_ns > now ? wake_ns - now : 0);
	}
	if (ppoll(pfd, nr, sleep && wake_ns == TWHEEL_NEVER ? NULL : &timeout, NULL) < 0)
		err(1, "ppoll");
	if (!l->by_fd || pfd[0].revents)
		twheel_dispatch(l->w, 0);
}

static void watch(void *self, int fd)
{
	((struct libtwheel *)self)->watched = fd;
}

static void tally(void *self, struct tally *tally)
{
	struct libtwheel *l = self;
	struct twheel_stats stats;

	twheel_get_stats(l->w, &stats, sizeof(stats));
	tally->vain = stats.vain;
	tally->rearmed = stats.moved;
	tally->calls = stats.settings;
}

static void close_libtwheel(void *self)
{
	struct libtwheel *l = self;

	/* The timers go when the process ends. */
	if (!l->by_fd)
		close(l->fd);
	twheel_close(l->w);
}

#define LIBTWHEEL_WORKLOADS \
	(DOES_ALL | DOES(SCALE) | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS))

#define LIBTWHEEL_PEER							\
	.timer_size = sizeof(struct twheel_timer),			\
	.reads_clock = true,						\
	.has_lock = true,						\
	.create = create, .arm = arm, .refresh = arm, .cancel = cancel,	\
	.wait = wait, .watch = watch, .tally = tally, .close = close_libtwheel

const struct peer peer_libtwheel = {
	LIBTWHEEL_PEER,
	.name = "libtwheel",
	.usage = "tick 1 ms, in a loop that sleeps until twheel_next()",
	.workloads = LIBTWHEEL_WORKLOADS | DOES(SHARED),
	.open = open_by_time,
};

const struct peer peer_libtwheel_fd = {
	LIBTWHEEL_PEER,
	.name = "libtwheel-fd",
	.usage = "the same, in a loop that watches twheel_fd()",
	.workloads = LIBTWHEEL_WORKLOADS,
	.open = open_by_fd,
};
