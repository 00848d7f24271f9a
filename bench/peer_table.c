// SPDX-License-Identifier: GPL-2.0
/*
 * Timeouts by number, of <twheel/table.h>: an array of 256 changes a call, in the process and
 * on the device.  twheel-keyed makes the same calls of the device by itself.
 */
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../lib/twheel/table.h"

struct table {
	struct twheel_table *table;
	uint32_t nobody;		/* a number for settle() */
	int watched;			/* or -1 */
	bool shared;
	struct twheel_table_change change[BATCH];
	uint32_t number[BATCH];
};

static void *open_table(const struct setup *setup, uint32_t backend)
{
	struct table *t = get_memory(1, sizeof(*t));
	const struct twheel_table_options options = {
		.size = sizeof(options), .backend = backend,
	};
	int error = twheel_table_open(&t->table, setup->nr + 1, &options);

	if (error)
		errx(1, "twheel_table_open: %s", strerror(-error));
	t->nobody = setup->nr;
	t->watched = -1;
	t->shared = setup->shared;
	return t;
}

static void *open_in_process(const struct setup *setup)
{
	return open_table(setup, TWHEEL_TABLE_PROCESS);
}

static void *open_on_device(const struct setup *setup)
{
	return open_table(setup, TWHEEL_TABLE_DEVICE);
}

static const char *no_device(void)
{
	return access("/dev/twheel", R_OK | W_OK) ? "no /dev/twheel" : NULL;
}

static void apply(struct table *t, uint32_t nr)
{
	if (twheel_table_apply(t->table, t->change, nr, 0) != (int32_t)nr)
		errx(1, "twheel_table_apply");
}

/* With several threads, each start is a call of its own: they share no array. */
static void start_one(struct table *t, uint32_t who, uint64_t delay_ns)
{
	if (twheel_table_start_after(t->table, who, delay_ns) < 0)
		errx(1, "twheel_table_start_after");
}

static void stop_one(struct table *t, uint32_t who)
{
	if (twheel_table_stop(t->table, who) < 0)
		errx(1, "twheel_table_stop");
}

/* Use each number once: that allocates its memory. */
static void create(void *self, uint32_t first, uint32_t nr)
{
	struct table *t = self;
	uint32_t i;

	for (i = first; i < first + nr; i++) {
		start_one(t, i, 3600 * SEC);
		stop_one(t, i);
	}
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct table *t = self;
	uint32_t i;

	if (t->shared) {
		start_one(t, who[0], deadline_ns[0]);
		return;
	}
	for (i = 0; i < nr; i++) {
		t->change[i].number = who[i];
		t->change[i].deadline_ns = deadline_ns[i];
	}
	apply(t, nr);
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct table *t = self;
	uint32_t i;

	if (t->shared) {
		stop_one(t, who[0]);
		return;
	}
	for (i = 0; i < nr; i++) {
		t->change[i].number = who[i];
		t->change[i].deadline_ns = TWHEEL_TABLE_NEVER;
	}
	apply(t, nr);
}

/* Sleep until a number has expired, or the descriptor that is watched is readable. */
static void sleep_in_poll(struct table *t)
{
	struct pollfd pfd[2] = {
		{ .fd = twheel_table_fd(t->table), .events = POLLIN },
		{ .fd = t->watched, .events = POLLIN },
	};

	if (pfd[0].fd < 0 || poll(pfd, 2, -1) < 0)
		err(1, "poll");
}

static void wait(void *self, bool sleep)
{
	struct table *t = self;
	uint64_t timeout_ns = sleep ? TWHEEL_TABLE_NEVER : 0;
	int32_t got, i;

	if (sleep && t->watched >= 0) {
		sleep_in_poll(t);
		timeout_ns = 0;
	}
	do {
		got = twheel_table_expired(t->table, t->number, BATCH, timeout_ns);
		if (got < 0)
			errx(1, "twheel_table_expired: %s", strerror(-got));
		for (i = 0; i < got; i++)
			expired(t->number[i]);
		timeout_ns = 0;
	} while (got == BATCH);
}

static void watch(void *self, int fd)
{
	((struct table *)self)->watched = fd;
}

/* As that of twheel: wait until the kthread has handled all earlier calls. */
static void settle(void *self)
{
	struct table *t = self;

	if (twheel_table_start(t->table, t->nobody, 0) < 0 ||
	    twheel_table_expired(t->table, t->number, 1, TWHEEL_TABLE_NEVER) != 1)
		errx(1, "settle");
	if (t->number[0] != t->nobody)
		errx(1, "something expired too soon");
	sleep_until(now_ns() + 10 * MS);
}

static void close_table(void *self)
{
	twheel_table_close(((struct table *)self)->table);
}

#define TABLE_PEER							\
	.workloads = DOES_ALL | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED), \
	.reads_clock = true,						\
	.has_lock = true,						\
	.arm = arm, .refresh = arm, .cancel = cancel, .wait = wait,	\
	.watch = watch, .close = close_table

const struct peer peer_table = {
	TABLE_PEER,
	.name = "table",
	.usage = "numbers of a twheel_table in the process, 256 a call",
	.open = open_in_process,
	.create = create,
};

const struct peer peer_table_device = {
	TABLE_PEER,
	.name = "table-device",
	.usage = "the same on the device",
	.absent = no_device,
	.open = open_on_device,
	.settle = settle,
};
