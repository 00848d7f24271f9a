/* SPDX-License-Identifier: MIT */
/*
 * posix.h - what only Linux has: timerfd, ppoll() and two clocks
 *
 * Elsewhere, or if TWHEEL_POSIX is defined, there is no descriptor and not these clocks.
 */
#ifndef _TWHEEL_POSIX_H
#define _TWHEEL_POSIX_H

#if defined(__linux__) && !defined(TWHEEL_POSIX)

#include <poll.h>
#include <sys/timerfd.h>

#define HAS_CLOCKS_OF_LINUX	true

#else

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#define HAS_CLOCKS_OF_LINUX	false
#undef CLOCK_BOOTTIME
#undef CLOCK_TAI
#define CLOCK_BOOTTIME		CLOCK_MONOTONIC
#define CLOCK_TAI		CLOCK_REALTIME

#define TFD_NONBLOCK		0
#define TFD_CLOEXEC		0
#define TFD_TIMER_ABSTIME	0
#define TFD_TIMER_CANCEL_ON_SET	0

static inline int timerfd_create(clockid_t id, int flags)
{
	(void)id;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

/* They are for a descriptor, and so never called. */
static inline int timerfd_settime(int fd, int flags, const struct itimerspec *when, void *old)
{
	(void)when;
	(void)old;
	return timerfd_create((clockid_t)fd, flags);
}

static inline int posix_poll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
			     const sigset_t *mask)
{
	(void)timeout;
	(void)mask;
	return poll(fds, nr, 0);
}

#define ppoll	posix_poll

#endif

#endif /* _TWHEEL_POSIX_H */
