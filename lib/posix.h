/* SPDX-License-Identifier: MIT */
/*
 * posix.h - what only Linux has: timerfd, ppoll() and two clocks
 *
 * Elsewhere, or if TWHEEL_POSIX is defined, there is no descriptor and not these clocks.
 */
#ifndef _TWHEEL_POSIX_H
#define _TWHEEL_POSIX_H

#include <time.h>

#if defined(__linux__) && !defined(TWHEEL_POSIX)

#include <fcntl.h>
#include <poll.h>
#include <sys/timerfd.h>

#define ONLY_POSIX	0

#else

#define ONLY_POSIX	1

#undef CLOCK_BOOTTIME
#undef CLOCK_TAI
#define CLOCK_BOOTTIME		CLOCK_MONOTONIC
#define CLOCK_TAI		CLOCK_REALTIME

#define TFD_TIMER_ABSTIME	0
#define TFD_TIMER_CANCEL_ON_SET	0

/* It is for a descriptor, and so never called. */
#define timerfd_settime(fd, flags, when, old)	\
	((void)(fd), (void)(flags), (void)(when), (void)(old), -1)

#endif

#endif /* _TWHEEL_POSIX_H */
