/* SPDX-License-Identifier: 0BSD */
/*
 * The timers of kqueue, EVFILT_TIMER, on a table of libtwheel: copy kqueue.h and kqueue.c into a
 * program that has kevent() for its timers only.
 *
 * It is as kqueue(2) says, with these details:
 * - A queue is a struct and has a limit of timers, above which EV_ADD says ENOMEM.  Its
 *   descriptor is kqueue_fd(), for poll() and epoll beside sockets.
 * - EV_ADD of an ident that is there replaces the timer, which starts over, and drops an event
 *   that was not received.  It enables the timer, unless it has EV_DISABLE.
 * - EV_DISABLE stops the timer, and drops its event.  EV_ENABLE starts it over: libkqueue does so
 *   on Linux, too.
 * - NOTE_ABSTIME is the time of day, once: it has EV_ONESHOT.  If the clock is set later, the
 *   timer does not follow.
 * - Timers have EV_CLEAR: data is how many periods have ended since the event came last.
 * - Periods of 0 are 1 ns.  A timer never expires early, and is 1 us late at most, plus the time
 *   that the program takes.
 * - Any thread may call kevent() at any time.  After fork(), the child may only close the queue.
 */
#ifndef KQUEUE_H
#define KQUEUE_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EVFILT_TIMER	(-7)

/* The action. */
#define EV_ADD		0x0001
#define EV_DELETE	0x0002
#define EV_ENABLE	0x0004
#define EV_DISABLE	0x0008

/* The mode of the timer. */
#define EV_ONESHOT	0x0010		/* delete it when its event comes */
#define EV_CLEAR	0x0020
#define EV_RECEIPT	0x0040		/* each change has its result in the eventlist */
#define EV_DISPATCH	0x0080		/* disable it when its event comes */

/* In the eventlist: data is an errno, or 0 for a receipt. */
#define EV_ERROR	0x4000

/* The unit of data; if none is given, milliseconds. */
#define NOTE_SECONDS	0x0001
#define NOTE_MSECONDS	0x0002
#define NOTE_USECONDS	0x0004
#define NOTE_NSECONDS	0x0008
#define NOTE_ABSTIME	0x0010
#define NOTE_ABSOLUTE	NOTE_ABSTIME

struct kevent {
	uintptr_t ident;
	int16_t filter;
	uint16_t flags;
	uint32_t fflags;
	int64_t data;
	void *udata;
};

static inline void EV_SET(struct kevent *kev, uintptr_t ident, int16_t filter, uint16_t flags,
			  uint32_t fflags, int64_t data, void *udata)
{
	kev->ident = ident;
	kev->filter = filter;
	kev->flags = flags;
	kev->fflags = fflags;
	kev->data = data;
	kev->udata = udata;
}

struct kqueue;

/* A queue for this many timers, up to 2^30; NULL and errno if there is no memory. */
struct kqueue *kqueue_open(uint32_t max);

void kqueue_close(struct kqueue *kq);

/*
 * The descriptor is readable when kevent() has an event, or may have; -1 and errno if there is
 * none.
 */
int kqueue_fd(struct kqueue *kq);

/*
 * Make changes, and then wait for events: for ever if timeout is NULL.  If a change fails, or has a
 * receipt, its result is in the eventlist, and no event is waited for.  Returns how many events
 * there are, or -1 and errno: EINTR, or that of a change if there is no room for its result.
 */
int kevent(struct kqueue *kq, const struct kevent *changelist, int nchanges,
	   struct kevent *eventlist, int nevents, const struct timespec *timeout);

#ifdef __cplusplus
}
#endif

#endif /* KQUEUE_H */
