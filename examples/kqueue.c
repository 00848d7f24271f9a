// SPDX-License-Identifier: 0BSD
/* The timers of kqueue on a table: see kqueue.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include <twheel/table.h>

#include "kqueue.h"

#define SEC		1000000000ULL
#define NEVER		TWHEEL_TABLE_NEVER
#define TICK_NS		1000U
#define UNITS		(NOTE_SECONDS | NOTE_MSECONDS | NOTE_USECONDS | NOTE_NSECONDS)
#define KEPT_FLAGS	(EV_ONESHOT | EV_RECEIPT | EV_DISPATCH | EV_DISABLE)
#define AT_A_TIME	256		/* events of a call */

/* A timer; its number in the table is its place in the array. */
struct knote {
	struct kevent kev;		/* as it was added; EV_DISABLE while it is disabled */
	uint64_t deadline_ns;
	struct knote *next;		/* in its bucket, or in the list of unused ones */
};

struct kqueue {
	struct twheel_table *table;
	pthread_mutex_t lock;		/* guards all below; each fetch and its events are one */
	struct knote *knotes;
	struct knote **buckets;		/* by ident; as many as there are numbers */
	struct knote *unused;
	uint32_t nr_used;		/* no number from here on has been used */
};

struct kqueue *kqueue_open(uint32_t max)
{
	const struct twheel_table_options options = {
		.size = sizeof(options), .tick_ns = TICK_NS,
	};
	struct kqueue *kq = calloc(1, sizeof(*kq));
	int ret = -ENOMEM;

	if (kq) {
		pthread_mutex_init(&kq->lock, NULL);
		kq->knotes = calloc(max, sizeof(*kq->knotes));
		kq->buckets = calloc(max, sizeof(*kq->buckets));
		if (kq->knotes && kq->buckets)
			ret = twheel_table_open(&kq->table, max, &options);
	}
	if (!ret)
		return kq;
	kqueue_close(kq);
	errno = -ret;
	return NULL;
}

void kqueue_close(struct kqueue *kq)
{
	if (!kq)
		return;
	twheel_table_close(kq->table);
	pthread_mutex_destroy(&kq->lock);
	free(kq->knotes);
	free(kq->buckets);
	free(kq);
}

int kqueue_fd(struct kqueue *kq)
{
	int fd = twheel_table_fd(kq->table);

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

/* Find the link to the timer, or the place where it has to be put. */
static struct knote **find(struct kqueue *kq, uintptr_t ident)
{
	uint64_t hash = ident * 0x9e3779b97f4a7c15ULL >> 32;
	struct knote **link = &kq->buckets[hash % twheel_table_nr(kq->table)];

	while (*link && (*link)->kev.ident != ident)
		link = &(*link)->next;
	return link;
}

static uint64_t from_timespec(const struct timespec *t)
{
	return (uint64_t)t->tv_sec < NEVER / SEC ? t->tv_sec * SEC + t->tv_nsec : NEVER;
}

static uint64_t add_ns(uint64_t a, uint64_t b)
{
	return b < NEVER - a ? a + b : NEVER;
}

/* Returns 0 if more than one unit was given. */
static uint64_t unit_ns(uint32_t fflags)
{
	switch (fflags & UNITS) {
	case NOTE_SECONDS:
		return SEC;
	case 0:
	case NOTE_MSECONDS:
		return SEC / 1000;
	case NOTE_USECONDS:
		return 1000;
	case NOTE_NSECONDS:
		return 1;
	default:
		return 0;
	}
}

static uint64_t data_ns(const struct kevent *kev)
{
	uint64_t unit = unit_ns(kev->fflags), data = kev->data;

	return data < NEVER / unit ? data * unit : NEVER;
}

static uint64_t period_ns(const struct kevent *kev)
{
	return kev->data ? data_ns(kev) : 1;
}

/* Convert a time of day to the table's clock, which is read last so that no timer is early. */
static uint64_t from_abstime(struct kqueue *kq, uint64_t abstime_ns)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = from_timespec(&now);
	return abstime_ns <= now_ns ? 0 :
				      add_ns(twheel_table_now(kq->table), abstime_ns - now_ns);
}

static int set(struct kqueue *kq, struct knote *kn, uint64_t deadline_ns)
{
	int ret;

	kn->deadline_ns = deadline_ns;
	ret = twheel_table_start(kq->table, kn - kq->knotes, deadline_ns);
	return ret < 0 ? ret : 0;
}

/* If a timer is disabled, it has no deadline. */
static int start(struct kqueue *kq, struct knote *kn)
{
	if (kn->kev.flags & EV_DISABLE)
		return set(kq, kn, NEVER);
	if (kn->kev.fflags & NOTE_ABSTIME)
		return set(kq, kn, from_abstime(kq, data_ns(&kn->kev)));
	return set(kq, kn, add_ns(twheel_table_now(kq->table), period_ns(&kn->kev)));
}

static struct knote *get_unused(struct kqueue *kq)
{
	struct knote *kn = kq->unused;

	if (kn)
		kq->unused = kn->next;
	else if (kq->nr_used < twheel_table_nr(kq->table))
		kn = &kq->knotes[kq->nr_used++];
	else
		return NULL;
	kn->next = NULL;
	return kn;
}

static int add(struct kqueue *kq, struct knote **link, const struct kevent *kev)
{
	if (kev->data < 0 || kev->fflags & ~(UNITS | NOTE_ABSTIME) || !unit_ns(kev->fflags))
		return -EINVAL;
	if (!*link)
		*link = get_unused(kq);
	if (!*link)
		return -ENOMEM;
	(*link)->kev = *kev;
	(*link)->kev.flags = (kev->flags & KEPT_FLAGS) | EV_CLEAR;
	if (kev->fflags & NOTE_ABSTIME)
		(*link)->kev.flags |= EV_ONESHOT;
	return start(kq, *link);
}

static int delete(struct kqueue *kq, struct knote **link)
{
	struct knote *kn = *link;

	*link = kn->next;
	kn->next = kq->unused;
	kq->unused = kn;
	return set(kq, kn, NEVER);
}

static int change(struct kqueue *kq, const struct kevent *kev)
{
	struct knote **link = find(kq, kev->ident);

	if (kev->filter != EVFILT_TIMER)
		return -EINVAL;
	if (kev->flags & EV_ADD)
		return add(kq, link, kev);
	if (!*link)
		return -ENOENT;
	if (kev->flags & EV_DELETE)
		return delete(kq, link);
	if (!(kev->flags & ((*link)->kev.flags & EV_DISABLE ? EV_ENABLE : EV_DISABLE)))
		return 0;
	(*link)->kev.flags ^= EV_DISABLE;
	return start(kq, *link);
}

static void deliver(struct kqueue *kq, struct knote *kn, struct kevent *event)
{
	uint64_t period = period_ns(&kn->kev);

	*event = kn->kev;
	event->data = 1;
	if (kn->kev.flags & EV_ONESHOT) {
		delete(kq, find(kq, kn->kev.ident));
		return;
	}
	event->data += (twheel_table_now(kq->table) - kn->deadline_ns) / period;
	if (kn->kev.flags & EV_DISPATCH)
		kn->kev.flags |= EV_DISABLE;
	else
		set(kq, kn, kn->deadline_ns + event->data * period);
}

static int fetch(struct kqueue *kq, struct kevent *eventlist, int nevents)
{
	uint32_t numbers[AT_A_TIME];
	int nr, i;

	pthread_mutex_lock(&kq->lock);
	nr = twheel_table_expired(kq->table, numbers, nevents < AT_A_TIME ? nevents : AT_A_TIME, 0);
	for (i = 0; i < nr; i++)
		deliver(kq, &kq->knotes[numbers[i]], &eventlist[i]);
	pthread_mutex_unlock(&kq->lock);
	return nr;
}

static int wait_for_events(struct kqueue *kq, struct kevent *eventlist, int nevents,
			   const struct timespec *timeout)
{
	struct pollfd pollfd = { .fd = kqueue_fd(kq), .events = POLLIN };
	uint64_t end_ns = NEVER, now_ns = twheel_table_now(kq->table);
	struct timespec left;
	int nr;

	if (timeout)
		end_ns = add_ns(now_ns, from_timespec(timeout));
	while (pollfd.fd >= 0) {
		nr = fetch(kq, eventlist, nevents);
		if (nr < 0)
			errno = -nr;
		now_ns = twheel_table_now(kq->table);
		if (nr || now_ns >= end_ns)
			return nr < 0 ? -1 : nr;
		left = (struct timespec){ (end_ns - now_ns) / SEC, (end_ns - now_ns) % SEC };
		if (ppoll(&pollfd, 1, timeout ? &left : NULL, NULL) < 0)
			return -1;
	}
	return -1;
}

int kevent(struct kqueue *kq, const struct kevent *changelist, int nchanges,
	   struct kevent *eventlist, int nevents, const struct timespec *timeout)
{
	int ret = 0, nr = 0, i;

	pthread_mutex_lock(&kq->lock);
	for (i = 0; i < nchanges; i++) {
		/* Both lists may be one array. */
		struct kevent kev = changelist[i];

		ret = change(kq, &kev);
		if (nr >= nevents && ret < 0)
			break;
		if (nr >= nevents || !(ret < 0 || kev.flags & EV_RECEIPT))
			continue;
		kev.flags = EV_ERROR;
		kev.data = -ret;
		eventlist[nr++] = kev;
	}
	pthread_mutex_unlock(&kq->lock);
	if (i < nchanges) {
		errno = -ret;
		return -1;
	}
	return nr || nevents <= 0 ? nr : wait_for_events(kq, eventlist, nevents, timeout);
}
