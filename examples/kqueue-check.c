// SPDX-License-Identifier: 0BSD
/*
 * Checks what kqueue.h says of its timers.  If the machine is busy, events are late, which is no
 * failure.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "kqueue.h"

#define MS		1000000LL
#define IDENT		3
#define MANY		10000
#define LOST_AFTER_S	60

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct kqueue *kq;
static const struct timespec at_once;

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* Make one change; return its errno, or 0. */
static int change(uintptr_t ident, uint16_t flags, uint32_t fflags, int64_t data, void *udata)
{
	struct kevent kev;

	EV_SET(&kev, ident, EVFILT_TIMER, flags, fflags, data, udata);
	return kevent(kq, &kev, 1, NULL, 0, NULL) < 0 ? errno : 0;
}

static int add(uint16_t flags, int64_t data)
{
	return change(IDENT, EV_ADD | flags, 0, data, NULL);
}

static int command(uint16_t flags)
{
	return change(IDENT, flags, 0, 0, NULL);
}

/* The next event of the timer; if it is another timer's, data is 0. */
static struct kevent next_event(void)
{
	struct kevent event = { 0 };

	if (kevent(kq, NULL, 0, &event, 1, NULL) != 1 || event.filter != EVFILT_TIMER)
		event.data = 0;
	return event;
}

static bool no_event(void)
{
	struct kevent event;

	return kevent(kq, NULL, 0, &event, 1, &at_once) == 0;
}

static bool one_shot_comes_once_and_is_deleted(void)
{
	int64_t began = now_ns(CLOCK_MONOTONIC);

	return !add(EV_ONESHOT, 30) && next_event().data == 1 &&
	       now_ns(CLOCK_MONOTONIC) - began >= 30 * MS && no_event() &&
	       command(EV_DELETE) == ENOENT;
}

/* The timer was added between two times, and its event came between two others. */
static bool data_is_how_many_periods_have_ended(void)
{
	int64_t after, before, since, until, ended = 0;
	int i;

	before = now_ns(CLOCK_MONOTONIC);
	if (add(0, 10))
		return false;
	after = now_ns(CLOCK_MONOTONIC);
	for (i = 0; i < 3; i++) {
		pause_ms(i * 25);
		since = now_ns(CLOCK_MONOTONIC);
		ended += next_event().data;
		until = now_ns(CLOCK_MONOTONIC);
		if (ended > (until - before) / (10 * MS) || ended < (since - after) / (10 * MS))
			return false;
	}
	/* A period of 0 counts, too. */
	return !add(0, 0) && next_event().data >= 1 && !command(EV_DELETE);
}

static bool added_again_it_starts_over(void)
{
	static int first, second;
	struct kevent event;
	int64_t began;

	if (change(IDENT, EV_ADD, 0, 5, &first))
		return false;
	pause_ms(10);
	began = now_ns(CLOCK_MONOTONIC);
	if (change(IDENT, EV_ADD | EV_ONESHOT, NOTE_USECONDS, 30000, &second))
		return false;
	event = next_event();
	return now_ns(CLOCK_MONOTONIC) - began >= 30 * MS &&
	       event.ident == IDENT && event.udata == &second && event.fflags == NOTE_USECONDS &&
	       event.flags == (EV_ONESHOT | EV_CLEAR) && event.data == 1 &&
	       command(EV_DELETE) == ENOENT;
}

static bool deleted_timer_never_comes(void)
{
	if (command(EV_DELETE) != ENOENT || add(0, 5))
		return false;
	pause_ms(10);
	return !command(EV_DELETE) && no_event() && command(EV_DELETE) == ENOENT;
}

static bool disabled_timer_starts_over_when_it_is_enabled(void)
{
	int64_t began;

	if (command(EV_DISABLE) != ENOENT || command(EV_ENABLE) != ENOENT || add(0, 40))
		return false;
	pause_ms(50);
	if (command(EV_DISABLE) || command(EV_DISABLE) || !no_event())
		return false;
	pause_ms(50);
	if (!no_event())
		return false;
	began = now_ns(CLOCK_MONOTONIC);
	if (command(EV_ENABLE))
		return false;
	pause_ms(20);
	/* It is already enabled, and goes on. */
	if (command(EV_ENABLE) || next_event().data < 1)
		return false;
	return now_ns(CLOCK_MONOTONIC) - began >= 40 * MS && !command(EV_DELETE);
}

static bool timer_may_be_added_disabled(void)
{
	if (add(EV_DISABLE, 5))
		return false;
	pause_ms(10);
	/* Adding it again enables it. */
	return no_event() && !add(EV_ONESHOT, 5) && next_event().data == 1;
}

static bool dispatched_timer_is_silent_until_it_is_enabled(void)
{
	if (add(EV_DISPATCH, 5) || next_event().data < 1)
		return false;
	pause_ms(20);
	return no_event() && !command(EV_ENABLE) && next_event().data >= 1 && no_event() &&
	       !command(EV_DELETE);
}

static bool units_are_those_of_fflags(void)
{
	static const struct {
		uint32_t fflags;
		int64_t data, ns;
	} units[] = {
		{ 0, 20, 20 * MS },
		{ NOTE_MSECONDS, 40, 40 * MS },
		{ NOTE_USECONDS, 60000, 60 * MS },
		{ NOTE_NSECONDS, 80000000, 80 * MS },
		{ NOTE_SECONDS, 1, 1000 * MS },
	};
	int64_t began = now_ns(CLOCK_MONOTONIC);
	uintptr_t i;

	for (i = 0; i < 5; i++)
		if (change(i, EV_ADD | EV_ONESHOT, units[i].fflags, units[i].data, NULL))
			return false;
	for (i = 0; i < 5; i++)
		if (next_event().ident != i || now_ns(CLOCK_MONOTONIC) - began < units[i].ns)
			return false;
	return no_event();
}

static bool absolute_timer_comes_at_its_time_of_day(void)
{
	int64_t time = now_ns(CLOCK_REALTIME) + 30 * MS;

	return !change(1, EV_ADD, NOTE_ABSTIME | NOTE_NSECONDS, time, NULL) &&
	       next_event().data == 1 && now_ns(CLOCK_REALTIME) >= time &&
	       /* If a time has passed, its event comes at once. */
	       !change(1, EV_ADD, NOTE_ABSTIME | NOTE_SECONDS, 1, NULL) &&
	       next_event().data == 1 && no_event() &&
	       change(1, EV_DELETE, 0, 0, NULL) == ENOENT;
}

static bool bad_changes_are_refused(void)
{
	struct kevent kev;

	EV_SET(&kev, IDENT, EVFILT_TIMER - 1, EV_ADD, 0, 1, NULL);
	return kevent(kq, &kev, 1, NULL, 0, NULL) == -1 && errno == EINVAL &&
	       add(0, -1) == EINVAL &&
	       change(IDENT, EV_ADD, NOTE_SECONDS | NOTE_NSECONDS, 1, NULL) == EINVAL &&
	       change(IDENT, EV_ADD, 0x8000, 1, NULL) == EINVAL && command(EV_DELETE) == ENOENT;
}

static bool huge_times_never_come(void)
{
	/* In nanoseconds, the second one is half a millisecond more than 2^64. */
	if (change(IDENT, EV_ADD, NOTE_SECONDS, INT64_MAX, NULL) ||
	    change(1, EV_ADD, NOTE_MSECONDS, 18446744073710, NULL))
		return false;
	pause_ms(5);
	return no_event() && !command(EV_DELETE) && !change(1, EV_DELETE, 0, 0, NULL);
}

static bool changes_have_their_results_in_the_eventlist(void)
{
	struct kevent list[4];

	EV_SET(&list[0], 1, EVFILT_TIMER, EV_ADD, 0, 0, NULL);
	EV_SET(&list[1], 2, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
	EV_SET(&list[2], 1, EVFILT_TIMER, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
	EV_SET(&list[3], 1, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
	/* There is no room for the last result: the changes before it have been made. */
	if (kevent(kq, list, 4, list, 2, NULL) != -1 || errno != ENOENT)
		return false;
	EV_SET(&list[2], 1, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
	return list[0].ident == 2 && list[0].flags == EV_ERROR && list[0].data == ENOENT &&
	       list[1].ident == 1 && list[1].flags == EV_ERROR && list[1].data == 0 &&
	       kevent(kq, &list[2], 1, list, 4, NULL) == 1 && list[0].data == ENOENT;
}

static bool wait_ends_in_time(void)
{
	const struct timespec timeout = { 0, 20 * MS };
	int64_t began = now_ns(CLOCK_MONOTONIC);
	struct kevent event;

	return add(0, 3600000) == 0 && kevent(kq, NULL, 0, &event, 1, &timeout) == 0 &&
	       now_ns(CLOCK_MONOTONIC) - began >= 20 * MS && !command(EV_DELETE);
}

static bool descriptor_is_readable_when_there_is_an_event(void)
{
	struct pollfd pollfd = { .fd = kqueue_fd(kq), .events = POLLIN };

	return !add(EV_ONESHOT, 20) && poll(&pollfd, 1, -1) == 1 && next_event().data == 1;
}

static void *add_later(void *error)
{
	pause_ms(20);
	*(int *)error = add(EV_ONESHOT, 1);
	return NULL;
}

static bool other_thread_wakes_a_wait_without_end(void)
{
	pthread_t thread;
	int error = 0;
	bool came;

	if (pthread_create(&thread, NULL, add_later, &error))
		return false;
	came = next_event().data == 1;
	pthread_join(thread, NULL);
	return came && !error;
}

/* Idents are often addresses.  Half of the timers are deleted, and all others come once. */
static bool all_timers_come_once(void)
{
	bool came[MANY] = { false };
	struct kevent events[1000];
	int nr, i, left = MANY / 2;

	for (i = 0; i < MANY; i++)
		if (change((uintptr_t)&came[i], EV_ADD | EV_ONESHOT, 0, i % 50, &came[i]))
			return false;
	if (change(IDENT, EV_ADD, 0, 1, NULL) != ENOMEM)
		return false;
	/* Many have expired by now: their events are dropped. */
	pause_ms(25);
	for (i = 0; i < MANY; i += 2)
		if (change((uintptr_t)&came[i], EV_DELETE, 0, 0, NULL))
			return false;
	while (left > 0) {
		nr = kevent(kq, NULL, 0, events, 1000, NULL);
		for (i = 0; i < nr; i++) {
			bool *its = events[i].udata;

			if (*its || (its - came) % 2 == 0 || events[i].ident != (uintptr_t)its)
				return false;
			*its = true;
		}
		left -= nr;
	}
	return !left && no_event();
}

/* The second time, numbers have come back, either by an event or by a delete. */
static bool as_many_timers_as_there_is_room_for_come_once(void)
{
	return all_timers_come_once() && all_timers_come_once();
}

int main(void)
{
	static const struct {
		const char *name;
		bool (*holds)(void);
	} checks[] = {
#define CHECK(name)	{ #name, name }
		CHECK(one_shot_comes_once_and_is_deleted),
		CHECK(data_is_how_many_periods_have_ended),
		CHECK(added_again_it_starts_over),
		CHECK(deleted_timer_never_comes),
		CHECK(disabled_timer_starts_over_when_it_is_enabled),
		CHECK(timer_may_be_added_disabled),
		CHECK(dispatched_timer_is_silent_until_it_is_enabled),
		CHECK(units_are_those_of_fflags),
		CHECK(absolute_timer_comes_at_its_time_of_day),
		CHECK(bad_changes_are_refused),
		CHECK(huge_times_never_come),
		CHECK(changes_have_their_results_in_the_eventlist),
		CHECK(wait_ends_in_time),
		CHECK(descriptor_is_readable_when_there_is_an_event),
		CHECK(other_thread_wakes_a_wait_without_end),
		CHECK(as_many_timers_as_there_is_room_for_come_once),
	};
	unsigned int i, failed = 0;

	/* If an event was lost, the wait for it never ends. */
	alarm(LOST_AFTER_S);
	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		bool holds;

		kq = kqueue_open(MANY);
		if (!kq)
			err(1, "kqueue_open");
		holds = checks[i].holds();
		printf("%s: %s\n", checks[i].name, holds ? "yes" : "NO");
		failed += !holds;
		kqueue_close(kq);
	}
	return failed != 0;
}
