// SPDX-License-Identifier: GPL-2.0
/*
 * clock.c - simulated time for event loops that know nothing of it
 *
 * These functions replace the C library's in the whole program.  If a loop sleeps in epoll until
 * its next timer is due, the clock is set to that time at once: neither the sleep nor the system
 * call is measured.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

#include "bench.h"

#define NS_PER_SEC	1000000000ULL
#define NS_PER_MS	1000000ULL

/* Each sleep ends a little late, as libev's timers are due only after their time has passed. */
#define LATE_NS		1000ULL

uint64_t clock_ns = START_NS;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = clock_ns / NS_PER_SEC;
	ts->tv_nsec = clock_ns % NS_PER_SEC;
	return 0;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	(void)zone;
	tv->tv_sec = clock_ns / NS_PER_SEC;
	tv->tv_usec = clock_ns % NS_PER_SEC / 1000;
	return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
	(void)fd;
	(void)events;
	(void)max;
	if (timeout_ms < 0)
		fail("a loop waits for ever");
	clock_ns += timeout_ms * NS_PER_MS + LATE_NS;
	return 0;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout_ms,
		const sigset_t *mask)
{
	(void)mask;
	return epoll_wait(fd, events, max, timeout_ms);
}

uint64_t cpu_ns(void)
{
	static int (*real)(clockid_t clock, struct timespec *ts);
	struct timespec ts;

	if (!real)
		real = dlsym(RTLD_NEXT, "clock_gettime");
	if (!real || real(CLOCK_PROCESS_CPUTIME_ID, &ts))
		fail("clock_gettime");
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}
