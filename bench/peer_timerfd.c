// SPDX-License-Identifier: GPL-2.0
/*
 * A timerfd for each timeout, in one epoll set.  They are made once and used again.  They are
 * edge-triggered, so that none has to be read: to set one again also arms it for its next edge.
 */
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The descriptor that is watched, which is no timeout. */
#define WATCHED		UINT32_MAX

struct timerfds {
	int epoll;
	int *fd;
	struct epoll_event event[BATCH];
};

static void *open_timerfds(const struct setup *setup)
{
	struct timerfds *t = get_memory(1, sizeof(*t));

	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll < 0)
		err(1, "epoll_create1");
	t->fd = get_memory(setup->nr, sizeof(*t->fd));
	return t;
}

/* Set the slack of the thread: it applies to every sleep, and so to epoll_wait(). */
static void *open_slack(const struct setup *setup)
{
	if (prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0))
		err(1, "PR_SET_TIMERSLACK");
	return open_timerfds(setup);
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct timerfds *t = self;
	uint32_t i;

	for (i = first; i < first + nr; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = i };

		t->fd[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (t->fd[i] < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->fd[i], &event))
			err(1, "timerfd %u", i);
	}
}

static void set(int fd, uint64_t deadline_ns)
{
	const struct itimerspec spec = {
		.it_value = to_timespec(deadline_ns),
	};

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL))
		err(1, "timerfd_settime");
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct timerfds *t = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		set(t->fd[who[i]], deadline_ns[i]);
}

/* Round up to ticks of a millisecond, as a wheel does. */
static void arm_1ms(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct timerfds *t = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		set(t->fd[who[i]], (deadline_ns[i] + MS - 1) / MS * MS);
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct timerfds *t = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		set(t->fd[who[i]], 0);
}

static void wait(void *self, bool sleep)
{
	struct timerfds *t = self;
	int got, i;

	do {
		got = epoll_wait(t->epoll, t->event, BATCH, sleep ? -1 : 0);
		if (got < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < got; i++)
			if (t->event[i].data.u32 != WATCHED)
				expired(t->event[i].data.u32);
		sleep = false;
	} while (got == BATCH);
}

static void watch(void *self, int fd)
{
	struct timerfds *t = self;
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = WATCHED };

	if (epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

static void close_timerfds(void *self)
{
	/* The timerfds are closed when the process ends. */
	close(((struct timerfds *)self)->epoll);
}

#define TIMERFD_PEER							\
	.create = create, .cancel = cancel, .wait = wait, .watch = watch,\
	.close = close_timerfds

const struct peer peer_timerfd = {
	TIMERFD_PEER,
	.name = "timerfd",
	.usage = "one each, made once; epoll, edge-triggered",
	.workloads = DOES_ALL | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	.has_lock = true,
	.open = open_timerfds,
	.arm = arm,
	.refresh = arm,
};

const struct peer peer_timerfd_1ms = {
	TIMERFD_PEER,
	.name = "timerfd-1ms",
	.usage = "the same, deadlines rounded up to milliseconds",
	.workloads = DOES(EXPIRE) | DOES(LATE),
	.open = open_timerfds,
	.arm = arm_1ms,
	.refresh = arm_1ms,
};

const struct peer peer_timerfd_slack = {
	TIMERFD_PEER,
	.name = "timerfd-slack",
	.usage = "the same with PR_SET_TIMERSLACK, 15 ms",
	.workloads = DOES(EXPIRE),
	.max = 10000,
	.open = open_slack,
	.arm = arm,
	.refresh = arm,
};
