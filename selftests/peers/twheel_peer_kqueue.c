// SPDX-License-Identifier: GPL-2.0
/*
 * The timers of kqueue, EVFILT_TIMER, made with a keyed wheel: the checks of libkqueue's tests
 * and FreeBSD's, and the rules of kqueue(2). ident is the key. EV_ADD is ARM, which makes a timer
 * or replaces it; EV_DELETE is CANCEL by key; and EV_DISABLE is REARM by key to the end of time,
 * which keeps the key.
 *
 * All use the virtual clock, except tests of the time of day. A wheel does not store udata: a
 * table finds it by the ident of an event.
 */
#include "twheel_keyed.h"

#define IDENT		3ULL
#define MANY		1000

/* Flags of kqueue; their values do not matter. */
#define EV_ONESHOT	(1U << 0)
#define NOTE_ABSOLUTE	(1U << 1)

FIXTURE(kqueue) {
	int fd;
};

FIXTURE_SETUP(kqueue)
{
	self->fd = key_virtual(O_NONBLOCK, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(kqueue)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/*
 * EV_ADD: periodic unless EV_ONESHOT is set. Returns the verdict, which kevent() does not report.
 */
static int ev_add(int fd, __u64 ident, __u32 flags, __u64 data_ns)
{
	struct twheel_arm arm = {
		.user_data = ident,
		.expires_ns = data_ns,
		.interval_ns = flags & (EV_ONESHOT | NOTE_ABSOLUTE) ? 0 : data_ns,
		.flags = flags & NOTE_ABSOLUTE ? TWHEEL_ARM_ABSOLUTE : 0,
	};

	return key_arm_entry(fd, &arm);
}

static int ev_delete(int fd, __u64 ident)
{
	return key_cancel(fd, ident);
}

/* If an event was not read, it does not come. */
static int ev_disable(int fd, __u64 ident)
{
	return key_rearm(fd, ident, TWHEEL_TIME_NEVER, 0);
}

static __u64 now_ns(int fd)
{
	struct twheel_info info;

	return tw_info(fd, &info) ? 0 : info.now_ns;
}

/* Let time go on. */
static void pass(struct __test_metadata *_metadata, int fd, __u64 ns)
{
	ASSERT_EQ(0, tw_advance(fd, now_ns(fd) + ns));
}

/* kevent() returns one event, of this ident and with this count as its data. */
static void expect_event(struct __test_metadata *_metadata, int fd, __u64 ident, __u64 data,
			 int line)
{
	struct twheel_event events[2];

	ASSERT_EQ(1, tw_read(fd, events, 2))
		TH_LOG("line %d", line);
	EXPECT_EQ(ident, events[0].user_data)
		TH_LOG("line %d", line);
	EXPECT_EQ(data, events[0].count)
		TH_LOG("line %d", line);
}

#define EXPECT_KEVENT(fd, ident, data)	expect_event(_metadata, fd, ident, data, __LINE__)

/* ---- EV_ADD, EV_DELETE ----------------------------------------------------- */

TEST_F(kqueue, timer_that_was_deleted_never_comes)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, 0, 1000 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, IDENT));
	pass(_metadata, self->fd, TW_HOUR);
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(kqueue, delete_of_an_ident_that_was_never_added_says_enoent)
{
	EXPECT_EQ(-ENOENT, ev_delete(self->fd, 999));
}

TEST_F(kqueue, delete_drops_an_event_that_fired)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, 50 * TW_MS));
	pass(_metadata, self->fd, 150 * TW_MS);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, ev_delete(self->fd, IDENT));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(-ENOENT, ev_delete(self->fd, IDENT));
}

TEST_F(kqueue, one_shot_comes_once_and_is_deleted_then)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, 500 * TW_MS));
	pass(_metadata, self->fd, 500 * TW_MS - 1);
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, 1);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	pass(_metadata, self->fd, 3 * TW_SEC);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(-ENOENT, ev_delete(self->fd, IDENT));
}

TEST_F(kqueue, periodic_timer_comes_each_period)
{
	int i;

	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, 0, 1000 * TW_MS));
	for (i = 0; i < 10; i++) {
		EXPECT_NO_EVENT(self->fd);
		pass(_metadata, self->fd, 1000 * TW_MS);
		EXPECT_KEVENT(self->fd, IDENT, 1);
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, IDENT));
	pass(_metadata, self->fd, TW_MIN);
	EXPECT_NO_EVENT(self->fd);
}

/* This is EV_CLEAR, which kqueue sets for all timers. */
TEST_F(kqueue, data_counts_the_periods_since_the_event_was_read_last)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, 0, 50 * TW_MS));
	pass(_metadata, self->fd, 500 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 10);
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, 49 * TW_MS);
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
}

TEST_F(kqueue, idents_of_two_queues_are_not_the_same)
{
	int fd = key_virtual(O_NONBLOCK, 0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, 50 * TW_MS));
	ASSERT_EQ(TWHEEL_CREATED, ev_add(fd, IDENT, EV_ONESHOT, 50 * TW_MS));
	pass(_metadata, self->fd, 50 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	EXPECT_NO_EVENT(fd);
	pass(_metadata, fd, 50 * TW_MS);
	EXPECT_KEVENT(fd, IDENT, 1);
	close(fd);
}

/*
 * If a distance is negative, it is refused, as by kqueue; if a timer is beyond the end of time, it
 * never comes.
 */
TEST_F(kqueue, huge_data_never_come_and_negative_ones_are_refused)
{
	EXPECT_EQ(-EINVAL, ev_add(self->fd, 4, EV_ONESHOT, -5ULL));
	EXPECT_EQ(-EINVAL, ev_add(self->fd, 4, 0, -5ULL));
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, 1, EV_ONESHOT, TWHEEL_TIME_NEVER));
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, 2, EV_ONESHOT, TWHEEL_TIME_NEVER / 2));
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, 3, 0, TWHEEL_TIME_NEVER));
	pass(_metadata, self->fd, 100 * TW_DAY);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, 1));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, 2));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, 3));
}

/* kqueue has NOTE_SECONDS, none, NOTE_USECONDS, NOTE_NSECONDS: here all are nanoseconds. */
TEST_F(kqueue, units_are_the_callers_own)
{
	const __u64 units_ns[] = { TW_SEC, TW_MS, TW_US, 1 };
	int i;

	for (i = 0; i < ARRAY_SIZE(units_ns); i++) {
		__u64 data = 5 * TW_SEC / units_ns[i];

		ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, data * units_ns[i]));
		pass(_metadata, self->fd, 5 * TW_SEC - 1);
		EXPECT_NO_EVENT(self->fd);
		pass(_metadata, self->fd, 1);
		EXPECT_KEVENT(self->fd, IDENT, 1);
	}
}

/* ---- EV_ADD of a timer that is there ----------------------------------------- */

TEST_F(kqueue, adding_again_changes_the_period_and_counts_from_then)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, 0, 1000 * TW_MS));
	pass(_metadata, self->fd, 1000 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, 0, 500 * TW_MS));
	pass(_metadata, self->fd, 1200 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 2);

	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, 0, 2000 * TW_MS));
	pass(_metadata, self->fd, 2000 * TW_MS - 1);
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, 1);
	EXPECT_KEVENT(self->fd, IDENT, 1);
}

TEST_F(kqueue, adding_again_with_less_comes_earlier_and_once)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, TW_SEC));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, EV_ONESHOT, TW_MS));
	pass(_metadata, self->fd, TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	pass(_metadata, self->fd, 2 * TW_SEC);
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(kqueue, adding_again_with_the_same_starts_over)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, 10 * TW_MS));
	pass(_metadata, self->fd, 6 * TW_MS);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, EV_ONESHOT, 10 * TW_MS));
	pass(_metadata, self->fd, 10 * TW_MS - 1);
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, 1);
	EXPECT_KEVENT(self->fd, IDENT, 1);
}

/* The old event never comes, and ARM reports that there was one. */
TEST_F(kqueue, adding_a_fired_timer_again_starts_over)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, TW_MS));
	pass(_metadata, self->fd, 2 * TW_MS);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, ev_add(self->fd, IDENT, EV_ONESHOT, TW_MS));
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	pass(_metadata, self->fd, 2 * TW_MS);
	EXPECT_NO_EVENT(self->fd);
}

/*
 * Add again after half of the time to one and a half, by microseconds: only the second event
 * comes.
 */
TEST_F(kqueue, adding_again_at_any_time_comes_once_and_not_early)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_US, .flags = TWHEEL_SETUP_KEYED,
	};
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);

	ASSERT_LE(0, fd);
	for (i = 0; i < MANY; i++) {
		__u64 pause_ns = (500 + i) * TW_US;

		ASSERT_EQ(TWHEEL_CREATED, ev_add(fd, IDENT, EV_ONESHOT, TW_MS));
		pass(_metadata, fd, pause_ns);
		ASSERT_EQ(pause_ns < TW_MS ? TWHEEL_WAS_PENDING : TWHEEL_WAS_UNREAD,
			  ev_add(fd, IDENT, EV_ONESHOT, TW_MS));
		pass(_metadata, fd, TW_MS - 1);
		EXPECT_NO_EVENT(fd);
		pass(_metadata, fd, 1);
		EXPECT_KEVENT(fd, IDENT, 1);
		pass(_metadata, fd, 2 * TW_MS);
		EXPECT_NO_EVENT(fd);
	}
	close(fd);
}

/* kqueue refuses this (libkqueue: WITH_NATIVE_KQUEUE_BUGS). */
TEST_F(kqueue, adding_again_makes_a_periodic_timer_a_one_shot)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, 0, 1000 * TW_MS));
	pass(_metadata, self->fd, 1000 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, EV_ONESHOT, 500 * TW_MS));
	pass(_metadata, self->fd, 1000 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	EXPECT_EQ(-ENOENT, ev_delete(self->fd, IDENT));
}

/* A table by ident is written at each EV_ADD: the element added last is found. */
TEST_F(kqueue, ident_leads_to_the_udata_that_was_given_last)
{
	const char *udata[4] = {};
	struct twheel_event event;

	udata[IDENT] = "first";
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, TW_HOUR));
	udata[IDENT] = "second";
	ASSERT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, EV_ONESHOT, 50 * TW_MS));
	pass(_metadata, self->fd, 50 * TW_MS);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_STREQ("second", udata[event.user_data]);
}

/* As with EV_RECEIPT, each change of a list has its result, and no change stops the rest. */
TEST_F(kqueue, each_change_of_a_list_has_a_receipt)
{
	struct twheel_cancel deletes[3] = { { .id = 1 }, { .id = 999 }, { .id = 2 } };

	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, 1, EV_ONESHOT, TW_SEC));
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, 2, EV_ONESHOT, TW_MS));
	pass(_metadata, self->fd, TW_MS);
	EXPECT_EQ(2, key_cancel_vec(self->fd, deletes, 3));
	EXPECT_EQ(TWHEEL_WAS_PENDING, deletes[0].result);
	EXPECT_EQ(-ENOENT, deletes[1].result);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, deletes[2].result);
}

/* ---- EV_DISABLE, EV_ENABLE, EV_DISPATCH --------------------------------------- */

TEST_F(kqueue, disabled_timer_waits_until_it_is_enabled)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, 2000 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_disable(self->fd, IDENT));
	pass(_metadata, self->fd, TW_HOUR);
	EXPECT_NO_EVENT(self->fd);
	/* The timer exists all the time. */
	EXPECT_EQ(-EEXIST, key_arm(self->fd, IDENT, TW_MS, TWHEEL_ARM_IF_ABSENT));
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, EV_ONESHOT, 2000 * TW_MS));
	pass(_metadata, self->fd, 2000 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
}

TEST_F(kqueue, disable_drops_an_event_that_fired_and_keeps_the_timer)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, EV_ONESHOT, 50 * TW_MS));
	pass(_metadata, self->fd, 150 * TW_MS);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, ev_disable(self->fd, IDENT));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, IDENT));
}

TEST_F(kqueue, disable_of_an_absent_timer_says_enoent)
{
	EXPECT_EQ(-ENOENT, ev_disable(self->fd, IDENT));
}

/* As with EV_DISPATCH, the reader of the event disables the timer. */
TEST_F(kqueue, dispatched_timer_is_silent_until_it_is_enabled)
{
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, 0, 200 * TW_MS));
	pass(_metadata, self->fd, 200 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_disable(self->fd, IDENT));
	pass(_metadata, self->fd, 500 * TW_MS);
	EXPECT_NO_EVENT(self->fd);

	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(self->fd, IDENT, 0, 200 * TW_MS));
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, 1100 * TW_MS);
	EXPECT_KEVENT(self->fd, IDENT, 5);
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_delete(self->fd, IDENT));
	pass(_metadata, self->fd, 500 * TW_MS);
	EXPECT_NO_EVENT(self->fd);
}

/* ---- NOTE_ABSOLUTE, NOTE_ABSTIME ------------------------------------------------ */

TEST_F(kqueue, absolute_timer_comes_at_that_time_and_once)
{
	pass(_metadata, self->fd, TW_DAY);
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, NOTE_ABSOLUTE, TW_DAY + 3 * TW_SEC));
	pass(_metadata, self->fd, 3 * TW_SEC - 1);
	EXPECT_NO_EVENT(self->fd);
	pass(_metadata, self->fd, 1);
	EXPECT_KEVENT(self->fd, IDENT, 1);
	pass(_metadata, self->fd, 3 * TW_SEC);
	EXPECT_NO_EVENT(self->fd);
}

/* FreeBSD refused that with EINVAL for some time. */
TEST_F(kqueue, absolute_timer_in_the_past_comes_at_once)
{
	pass(_metadata, self->fd, TW_DAY);
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT, NOTE_ABSOLUTE, TW_DAY - 5 * TW_SEC));
	ASSERT_EQ(TWHEEL_CREATED, ev_add(self->fd, IDENT + 1, NOTE_ABSOLUTE, 0));
	pass(_metadata, self->fd, 0);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, ev_delete(self->fd, IDENT + 1));
	EXPECT_KEVENT(self->fd, IDENT, 1);
}

/* If a wheel is on the time of day, it takes no relative times: each time is absolute. */
TEST_F(kqueue, adding_again_makes_a_relative_timer_absolute)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_BOOTTIME, .tick_ns = TW_MS, .flags = TWHEEL_SETUP_KEYED,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event event;
	__u64 deadline_ns;

	ASSERT_LE(0, fd);
	ASSERT_EQ(TWHEEL_CREATED, ev_add(fd, IDENT, EV_ONESHOT, TW_HOUR));
	EXPECT_NO_EVENT(fd);
	deadline_ns = tw_now(CLOCK_BOOTTIME) + 200 * TW_MS;
	EXPECT_EQ(TWHEEL_WAS_PENDING, ev_add(fd, IDENT, NOTE_ABSOLUTE, deadline_ns));
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(IDENT, event.user_data);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_LE(deadline_ns, tw_now(CLOCK_BOOTTIME));
	close(fd);
}

TEST_HARNESS_MAIN
