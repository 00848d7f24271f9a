// SPDX-License-Identifier: GPL-2.0
/*
 * A POSIX timer for each timeout, made once; their signals are read from a signalfd,
 * many at a time.
 */
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct posix {
	int fd;
	int watched;		/* or -1 */
	uint32_t nr;		/* of timers that were made */
	timer_t *timer;
	struct signalfd_siginfo info[BATCH];
};

static void *open_posix(const struct setup *setup)
{
	struct posix *p = get_memory(1, sizeof(*p));
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (p->fd < 0)
		err(1, "signalfd");
	p->watched = -1;
	p->timer = get_memory(setup->nr, sizeof(*p->timer));
	return p;
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct posix *p = self;
	uint32_t i;

	for (i = first; i < first + nr; i++) {
		struct sigevent event = {
			.sigev_notify = SIGEV_SIGNAL,
			.sigev_signo = SIGRTMIN,
			.sigev_value.sival_int = i,
		};

		if (timer_create(CLOCK_MONOTONIC, &event, &p->timer[i]))
			err(1, "timer %u", i);
	}
	p->nr = first + nr;
}

static void set(timer_t timer, uint64_t deadline_ns)
{
	const struct itimerspec spec = {
		.it_value = to_timespec(deadline_ns),
	};

	if (timer_settime(timer, TIMER_ABSTIME, &spec, NULL))
		err(1, "timer_settime");
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct posix *p = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		set(p->timer[who[i]], deadline_ns[i]);
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct posix *p = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		set(p->timer[who[i]], 0);
}

static void wait(void *self, bool sleep)
{
	struct posix *p = self;
	struct pollfd pfd[2] = {
		{ .fd = p->fd, .events = POLLIN },
		{ .fd = p->watched, .events = POLLIN },
	};
	nfds_t nr = p->watched < 0 ? 1 : 2;
	ssize_t got, i;

	if (sleep && poll(pfd, nr, -1) < 0)
		err(1, "poll");
	do {
		got = read(p->fd, p->info, sizeof(p->info));
		if (got < 0 && errno != EAGAIN)
			err(1, "read");
		for (i = 0; i < got / (ssize_t)sizeof(p->info[0]); i++)
			expired(p->info[i].ssi_int);
	} while (got == sizeof(p->info));
}

static void watch(void *self, int fd)
{
	((struct posix *)self)->watched = fd;
}

/* Take the signals: the next peer in this process must not get them. */
static void close_posix(void *self)
{
	struct posix *p = self;
	uint32_t i;

	for (i = 0; i < p->nr; i++)
		timer_delete(p->timer[i]);
	close(p->fd);
}

const struct peer peer_posix = {
	.name = "posix-timer",
	.usage = "one each, made once; signalfd, 256 a read",
	.workloads = DOES_ALL | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	/* A timer is found in a list, which grows with their number. */
	.max = 100000,
	.has_lock = true,
	.open = open_posix,
	.create = create,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait,
	.watch = watch,
	.close = close_posix,
};
