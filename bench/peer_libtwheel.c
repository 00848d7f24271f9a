// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel, with its wheel in the kernel and in the process.  Where a workload is a loop
 * with turns, the library is flushed once a turn, as in a daemon; in the others each batch
 * is flushed, as if it were a turn.
 */
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../lib/twheel.h"

struct libtwheel {
	struct twheel *w;
	struct twheel_timer *timer;
	struct setup setup;
	bool settled;
};

/* The timer does not know the peer, and there is one peer in a thread. */
static __thread struct libtwheel *ours;

static const char *absent(void)
{
	return access("/dev/twheel", R_OK | W_OK) ? "no /dev/twheel" : NULL;
}

static void *open_with(const struct setup *setup, enum twheel_backend backend)
{
	struct libtwheel *l = get_memory(1, sizeof(*l));
	const struct twheel_options options = {
		.size = sizeof(options),
		.backend = backend,
		.tick_ns = MS,
		/* One more for settle(). */
		.max_timers = setup->nr + 1,
	};
	int error = twheel_open(&l->w, &options);

	if (error)
		errx(1, "twheel_open: %s", strerror(-error));
	l->setup = *setup;
	return l;
}

static void *open_device(const struct setup *setup)
{
	return open_with(setup, TWHEEL_DEVICE);
}

static void *open_local(const struct setup *setup)
{
	return open_with(setup, TWHEEL_LOCAL);
}

static void on_timer(struct twheel *w, struct twheel_timer *t, int status)
{
	(void)w;
	if (status)
		errx(1, "a timer was refused: %s", strerror(-status));
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

static void flush(struct libtwheel *l)
{
	ours = l;
	if (twheel_flush(l->w))
		errx(1, "twheel_flush");
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
	uint64_t now_ns;
	uint32_t i;

	if (l->setup.turns) {
		start_lengths(l, who, nr);
		return;
	}
	now_ns = twheel_now(w);
	for (i = 0; i < nr; i++)
		twheel_start(w, &timer[who[i]],
			     deadline_ns[i] > now_ns ? deadline_ns[i] - now_ns : 0);
	flush(l);
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
		flush(l);
}

static void wait(void *self, bool sleep)
{
	struct libtwheel *l = self;
	struct pollfd pfd = { .fd = twheel_fd(l->w), .events = POLLIN };

	flush(l);
	if (poll(&pfd, 1, sleep ? -1 : 0) < 0)
		err(1, "poll");
	if (pfd.revents && twheel_dispatch(l->w, 0) < 0)
		errx(1, "twheel_dispatch");
}

static void on_settled(struct twheel *w, struct twheel_timer *t, int status)
{
	(void)w;
	(void)t;
	if (status)
		errx(1, "a timer was refused: %s", strerror(-status));
	ours->settled = true;
}

/* As the peer twheel does: one that is due at once, and then time for the kthread. */
static void settle(void *self)
{
	struct libtwheel *l = self;
	struct twheel_timer due;

	twheel_timer_init(&due, on_settled);
	l->settled = false;
	twheel_start(l->w, &due, 0);
	while (!l->settled)
		wait(l, true);
	sleep_until(now_ns() + 10 * MS);
}

static void tally(void *self, struct tally *tally)
{
	struct libtwheel *l = self;
	struct twheel_stats stats;

	twheel_stats(l->w, &stats, sizeof(stats));
	tally->vain = stats.vain;
	tally->rearmed = stats.rearmed;
	tally->calls = stats.calls;
}

static void close_libtwheel(void *self)
{
	twheel_close(((struct libtwheel *)self)->w);
}

#define LIBTWHEEL_PEER							\
	.workloads = DOES_ALL | DOES(SCALE),				\
	.timer_size = sizeof(struct twheel_timer),			\
	.create = create, .arm = arm, .refresh = arm, .cancel = cancel,	\
	.wait = wait, .tally = tally, .close = close_libtwheel

const struct peer peer_libtwheel = {
	LIBTWHEEL_PEER,
	.name = "libtwheel",
	.usage = "tick 1 ms, the wheel of /dev/twheel, a flush each batch or turn",
	.absent = absent,
	.open = open_device,
	.settle = settle,
};

const struct peer peer_libtwheel_local = {
	LIBTWHEEL_PEER,
	.name = "libtwheel-local",
	.usage = "the same, the wheel in the process",
	.open = open_local,
};
