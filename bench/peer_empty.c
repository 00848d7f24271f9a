// SPDX-License-Identifier: GPL-2.0
/*
 * Only remembers deadlines: its cost is that of the benchmark's own loops, and is subtracted from
 * the others.
 */
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct empty {
	int fd;			/* the descriptor that a loop with turns polls, or -1 */
	uint64_t *deadline_of;
};

static void *open_empty(const struct setup *setup)
{
	struct empty *e = get_memory(1, sizeof(*e));

	e->deadline_of = get_memory(setup->nr, sizeof(*e->deadline_of));
	e->fd = setup->turns ? eventfd(0, EFD_CLOEXEC) : -1;
	return e;
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	uint64_t *deadline_of = ((struct empty *)self)->deadline_of;
	uint32_t i;

	for (i = 0; i < nr; i++)
		deadline_of[who[i]] = deadline_ns[i];
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	uint64_t *deadline_of = ((struct empty *)self)->deadline_of;
	uint32_t i;

	for (i = 0; i < nr; i++)
		deadline_of[who[i]] = 0;
}

static void wait(void *self, bool sleep)
{
	struct pollfd pfd = { .fd = ((struct empty *)self)->fd, .events = POLLIN };

	if (sleep && pfd.fd < 0)
		pause();
	if (pfd.fd >= 0 && poll(&pfd, 1, sleep ? -1 : 0) < 0)
		err(1, "poll");
}

static void watch(void *self, int fd)
{
	struct empty *e = self;

	close(e->fd);
	e->fd = fd;
}

const struct peer peer_empty = {
	.name = "empty",
	.usage = "the loop alone",
	.workloads = DOES_OPS | DOES(MIX) | DOES(IDLE) | DOES_DAEMON | DOES(WAKEUPS) | DOES(SHARED),
	.reads_clock = true,
	.has_lock = true,
	.open = open_empty,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait,
	.watch = watch,
};
