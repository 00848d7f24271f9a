// SPDX-License-Identifier: GPL-2.0
/*
 * DRAIN: a wheel takes no new timeouts, and hands out all the others once. Events from before
 * come as usual, and the rest is flagged; then read() returns 0 for ever.
 */
#include "twheel_outcomes.h"
#include "twheel_outside.h"

#include <pthread.h>

#define NOW_NS	(20 * TW_MS)

FIXTURE(drain) {
	int fd;
	__u64 unread;
	__u64 pending;
	__u64 never;
	__u64 periodic_unread;
	__u64 periodic_pending;
	__u64 spent;
	__u64 delay_unread;
};

static __u64 arm(struct __test_metadata *_metadata, int fd, __u32 flags, __u64 deadline_ns,
		 __u64 interval_ns, __u32 repeats)
{
	struct twheel_arm arm = {
		.flags = TWHEEL_ARM_ABSOLUTE | flags,
		.expires_ns = deadline_ns,
		.interval_ns = interval_ns,
		.repeats = repeats,
		.user_data = deadline_ns + 1,
	};

	ASSERT_EQ(0, tw_arm_entry(fd, &arm));
	return arm.id;
}

/* One timeout of each kind, at 20 ms: three are pending, and four have an unread event. */
FIXTURE_SETUP(drain)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	self->unread = arm(_metadata, self->fd, 0, 10 * TW_MS, 0, 0);
	self->pending = arm(_metadata, self->fd, 0, 30 * TW_MS, 0, 0);
	self->never = arm(_metadata, self->fd, 0, TWHEEL_TIME_NEVER, 0, 0);
	self->periodic_unread = arm(_metadata, self->fd, 0, 5 * TW_MS, 5 * TW_MS, 0);
	self->periodic_pending = arm(_metadata, self->fd, 0, 40 * TW_MS, 5 * TW_MS, 0);
	self->spent = arm(_metadata, self->fd, 0, 6 * TW_MS, 5 * TW_MS, 2);
	self->delay_unread = arm(_metadata, self->fd, TWHEEL_ARM_FIXED_DELAY, 7 * TW_MS,
				 5 * TW_MS, 0);
	ASSERT_EQ(0, tw_advance(self->fd, NOW_NS));
}

FIXTURE_TEARDOWN(drain)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

#define TIMEOUTS	7

/* Read all events and ASSERT that each timeout comes once, and then the end. */
static void read_all(struct __test_metadata *_metadata, int fd,
		     struct twheel_event events[TIMEOUTS])
{
	struct twheel_event end;
	int i, j;

	ASSERT_EQ(TIMEOUTS, tw_read(fd, events, TIMEOUTS));
	for (i = 0; i < TIMEOUTS; i++) {
		for (j = 0; j < i; j++) {
			ASSERT_NE(events[i].id, events[j].id);
		}
	}
	ASSERT_EQ(0, tw_read(fd, &end, 1));
}

static struct twheel_event *find(struct twheel_event events[TIMEOUTS], __u64 id)
{
	static struct twheel_event none;
	int i;

	for (i = 0; i < TIMEOUTS; i++)
		if (events[i].id == id)
			return &events[i];
	return &none;
}

/* Drain the wheel, read all, and return the event of one timeout. */
static struct twheel_event drain_and_find(struct __test_metadata *_metadata, int fd, __u64 id)
{
	struct twheel_event events[TIMEOUTS];

	ASSERT_EQ(0, tw_drain(fd));
	read_all(_metadata, fd, events);
	return *find(events, id);
}

/* ---- events after a drain ------------------------------------------------ */

TEST_F(drain, each_timeout_is_handed_out_once_and_then_comes_the_end)
{
	struct twheel_event events[TIMEOUTS];

	ASSERT_EQ(0, tw_drain(self->fd));
	read_all(_metadata, self->fd, events);
}

TEST_F(drain, an_expired_timeout_is_read_as_usual)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->unread);

	EXPECT_EQ(self->unread, event.id);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
	EXPECT_EQ(1, event.count);
	EXPECT_EQ(10 * TW_MS, event.deadline_ns);
	EXPECT_EQ(NOW_NS, event.fired_ns);
	EXPECT_EQ(10 * TW_MS + 1, event.user_data);
}

TEST_F(drain, a_spent_timeout_with_an_unread_event_is_read_as_usual)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->spent);

	EXPECT_EQ(self->spent, event.id);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
	EXPECT_EQ(2, event.count);
	EXPECT_EQ(11 * TW_MS, event.deadline_ns);
}

TEST_F(drain, a_pending_timeout_is_flagged_with_the_deadline_still_to_come)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->pending);

	EXPECT_EQ(self->pending, event.id);
	EXPECT_EQ(TW_DRAINED, event.flags);
	EXPECT_EQ(0, event.count);
	EXPECT_EQ(30 * TW_MS, event.deadline_ns);
	EXPECT_EQ(NOW_NS, event.fired_ns);
	EXPECT_EQ(30 * TW_MS + 1, event.user_data);
}

TEST_F(drain, a_timeout_that_never_expires_is_flagged)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->never);

	EXPECT_EQ(self->never, event.id);
	EXPECT_EQ(TW_DRAINED, event.flags);
	EXPECT_EQ(0, event.count);
	EXPECT_EQ(TWHEEL_TIME_NEVER, event.deadline_ns);
}

TEST_F(drain, a_periodic_timeout_with_an_unread_event_is_flagged_with_its_count)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->periodic_unread);

	EXPECT_EQ(self->periodic_unread, event.id);
	EXPECT_EQ(TW_DRAINED, event.flags);
	EXPECT_EQ(4, event.count);
	EXPECT_EQ(20 * TW_MS, event.deadline_ns);
}

TEST_F(drain, a_periodic_timeout_without_an_unread_event_is_flagged)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->periodic_pending);

	EXPECT_EQ(self->periodic_pending, event.id);
	EXPECT_EQ(TW_DRAINED, event.flags);
	EXPECT_EQ(0, event.count);
	EXPECT_EQ(40 * TW_MS, event.deadline_ns);
}

TEST_F(drain, a_fixed_delay_with_an_unread_event_is_flagged_with_its_count)
{
	struct twheel_event event = drain_and_find(_metadata, self->fd, self->delay_unread);

	EXPECT_EQ(self->delay_unread, event.id);
	EXPECT_EQ(TW_DRAINED, event.flags);
	EXPECT_EQ(1, event.count);
	EXPECT_EQ(7 * TW_MS, event.deadline_ns);
}

TEST_F(drain, read_returns_zero_again_and_again_at_the_end)
{
	struct twheel_event events[TIMEOUTS];
	int i;

	ASSERT_EQ(0, tw_drain(self->fd));
	read_all(_metadata, self->fd, events);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, tw_read(self->fd, events, TIMEOUTS));
	}
}

TEST_F(drain, empty_wheel_is_at_its_end_at_once)
{
	int fd = tw_virtual(O_NONBLOCK, TW_MS);
	struct twheel_event event;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_drain(fd));
	EXPECT_EQ(0, tw_read(fd, &event, 1));
	close(fd);
}

TEST_F(drain, wheel_that_was_never_set_up_can_be_drained)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_drain(fd));
	EXPECT_EQ(-ESHUTDOWN, tw_arm_in(fd, TW_MS, &id));
	EXPECT_EQ(0, tw_read(fd, &event, 1));
	close(fd);
}

static void *drain_aside(void *arg)
{
	return (void *)(long)tw_drain(*(int *)arg);
}

/* DRAIN of so many timeouts takes a while. */
TEST(info_says_draining_from_the_first_eshutdown_on)
{
	static struct twheel_arm arms[65536];
	int i, ret, fd = tw_virtual(O_NONBLOCK, TW_MS);
	struct twheel_info info = { .size = sizeof(info) };
	pthread_t thread;
	void *drained;
	__u64 id;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(arms); i++)
		arms[i].expires_ns = TW_HOUR;
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(fd, arms, ARRAY_SIZE(arms)));
	}
	ASSERT_EQ(0, tw_ioctl(fd, TWHEEL_IOC_INFO, &info));
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
	ASSERT_EQ(0, pthread_create(&thread, NULL, drain_aside, &fd));
	do {
		ret = tw_arm_in(fd, TW_HOUR, &id);
	} while (!ret);
	EXPECT_EQ(-ESHUTDOWN, ret);
	ASSERT_EQ(0, tw_ioctl(fd, TWHEEL_IOC_INFO, &info));
	EXPECT_TRUE(info.state == TWHEEL_WHEEL_DRAINING || info.state == TWHEEL_WHEEL_DRAINED)
		TH_LOG("state %u", info.state);
	ASSERT_EQ(0, pthread_join(thread, &drained));
	EXPECT_EQ(NULL, drained);
	ASSERT_EQ(0, tw_ioctl(fd, TWHEEL_IOC_INFO, &info));
	EXPECT_EQ(TWHEEL_WHEEL_DRAINED, info.state);
	close(fd);
}

TEST_F(drain, setup_of_a_wheel_that_was_never_set_up_says_eshutdown_and_starts_nothing)
{
	int fd = tw_open(O_NONBLOCK);
	struct tw_snapshot before;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_drain(fd));
	ASSERT_EQ(0, tw_snapshot(fd, &before));
	EXPECT_EQ(TWHEEL_WHEEL_DRAINED, before.info.state);
	EXPECT_EQ(0, tw_fdinfo_number(fd, "levels"));
	EXPECT_EQ(-ESHUTDOWN, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 2 * TW_MS, 5));
	EXPECT_UNCHANGED(fd, &before);
	close(fd);
}

/* If the call armed nothing, no element may look armed. */
TEST_F(drain, arm_on_a_wheel_that_was_never_set_up_reports_no_success)
{
	struct twheel_arm arms[3] = {};
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_drain(fd));
	EXPECT_EQ(-ESHUTDOWN, tw_arm_vec(fd, arms, 3));
	EXPECT_EQ(-ESHUTDOWN, arms[0].result);
	EXPECT_EQ((__s32)TW_POISON32, arms[1].result);
	EXPECT_EQ((__s32)TW_POISON32, arms[2].result);
	close(fd);
}

TEST_F(drain, drain_hands_out_thousands)
{
	struct twheel_arm arms[1000] = {};
	struct twheel_event events[1000];
	int fd = tw_virtual(O_NONBLOCK, TW_MS);
	__u64 seed = 6, sum = 0, i, batch;
	int nr, total = 0;

	ASSERT_LE(0, fd);
	for (batch = 0; batch < 5; batch++) {
		for (i = 0; i < 1000; i++) {
			arms[i].expires_ns = tw_random(&seed) * TW_MS + TW_MS;
			arms[i].user_data = batch * 1000 + i;
		}
		ASSERT_EQ(1000, tw_arm_vec(fd, arms, 1000));
	}
	ASSERT_EQ(0, tw_drain(fd));
	while ((nr = tw_read(fd, events, 1000)) > 0) {
		total += nr;
		while (nr--) {
			EXPECT_EQ(TW_DRAINED, events[nr].flags);
			sum += events[nr].user_data;
		}
	}
	EXPECT_EQ(0, nr);
	EXPECT_EQ(5000, total);
	EXPECT_EQ(4999 * 5000 / 2, sum);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- calls that are refused after a drain -------------------------------- */

TEST_F(drain, arm_says_eshutdown_as_a_whole_and_changes_nothing)
{
	struct twheel_arm arms[3] = {};
	struct tw_snapshot before;
	int i;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ESHUTDOWN, tw_arm_vec(self->fd, arms, 3));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ((__s32)TW_POISON32, arms[i].result);
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(drain, rearm_says_eshutdown_as_a_whole_and_changes_nothing)
{
	struct twheel_arm arms[2] = {
		{ .id = self->pending, .expires_ns = TW_MS },
		{ .id = self->unread, .expires_ns = TW_MS },
	};
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ESHUTDOWN, tw_rearm_vec(self->fd, arms, 2));
	EXPECT_EQ((__s32)TW_POISON32, arms[0].result);
	EXPECT_EQ((__s32)TW_POISON32, arms[1].result);
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(drain, advance_says_eshutdown_and_the_clock_stands)
{
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(NOW_NS, before.info.now_ns);
	EXPECT_EQ(-ESHUTDOWN, tw_advance(self->fd, TW_DAY));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(drain, drain_is_idempotent)
{
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(0, tw_drain(self->fd));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(drain, drain_is_idempotent_after_the_end)
{
	struct twheel_event events[TIMEOUTS];

	ASSERT_EQ(0, tw_drain(self->fd));
	read_all(_metadata, self->fd, events);
	EXPECT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(0, tw_read(self->fd, events, TIMEOUTS));
}

/* ---- CANCEL, QUERY, LIST and INFO after a drain -------------------------- */

TEST_F(drain, cancel_of_a_drained_timeout_says_unread_and_its_event_never_comes)
{
	struct twheel_event events[TIMEOUTS];

	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->pending));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->periodic_unread));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->unread));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, self->pending));
	ASSERT_EQ(TIMEOUTS - 3, tw_read(self->fd, events, TIMEOUTS));
	EXPECT_EQ(0, tw_read(self->fd, events, TIMEOUTS));
}

TEST_F(drain, cancel_of_a_timeout_that_was_handed_out_says_enoent)
{
	struct twheel_event events[TIMEOUTS];

	ASSERT_EQ(0, tw_drain(self->fd));
	read_all(_metadata, self->fd, events);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, self->pending));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, self->periodic_unread));
}

TEST_F(drain, query_of_a_timeout_that_was_pending_says_drained)
{
	struct twheel_status status;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_query1(self->fd, self->pending, &status));
	EXPECT_EQ(TWHEEL_STATE_DRAINED, status.state);
	EXPECT_EQ(30 * TW_MS, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
	EXPECT_EQ(0, status.count);
	ASSERT_EQ(0, tw_query1(self->fd, self->periodic_unread, &status));
	EXPECT_EQ(TWHEEL_STATE_DRAINED, status.state);
	EXPECT_EQ(4, status.count);
	EXPECT_EQ(0, status.left_ns);
}

TEST_F(drain, query_of_an_expired_timeout_still_says_expired)
{
	struct twheel_status status;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_query1(self->fd, self->unread, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	ASSERT_EQ(0, tw_query1(self->fd, self->spent, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
}

TEST_F(drain, list_shows_all_that_is_left_and_nothing_after)
{
	struct twheel_status rows[TIMEOUTS];
	struct twheel_event events[TIMEOUTS];

	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(TIMEOUTS, tw_list_all(self->fd, rows, TIMEOUTS, TIMEOUTS));
	read_all(_metadata, self->fd, events);
	EXPECT_EQ(0, tw_list_all(self->fd, rows, TIMEOUTS, TIMEOUTS));
}

TEST_F(drain, gauges_say_all_is_unread_and_nothing_pends)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.pending);
	EXPECT_EQ(TIMEOUTS, info.unread);
	EXPECT_EQ(TIMEOUTS, info.live);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(drain, counters_distinguish_completed_from_drained)
{
	struct twheel_event events[TIMEOUTS];
	struct twheel_info before, after;

	ASSERT_EQ(0, tw_info(self->fd, &before));
	ASSERT_EQ(0, tw_drain(self->fd));
	read_all(_metadata, self->fd, events);
	ASSERT_EQ(0, tw_info(self->fd, &after));
	/* The one-shot and the spent timeout are not flagged. */
	EXPECT_EQ(2, after.completed);
	EXPECT_EQ(TIMEOUTS - 2, after.drained);
	EXPECT_EQ(TIMEOUTS, after.delivered);
	EXPECT_EQ(0, after.live);
	EXPECT_EQ(0, after.unread);
	/* A drained timeout has not expired. */
	EXPECT_EQ(before.expirations, after.expirations);
}

/* An event is delivered when it is read, whatever its flags. */
TEST_F(drain, delivered_counts_ended_timeouts_and_events_of_those_that_went_on)
{
	const int lived_on = 2;		/* the periodic one, and that of fixed delay */
	struct twheel_event events[TIMEOUTS];
	struct twheel_info info;

	ASSERT_EQ(4, tw_read(self->fd, events, TIMEOUTS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.completed);
	EXPECT_EQ(0, info.drained);
	EXPECT_EQ(2 + lived_on, info.delivered);
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(TIMEOUTS - 2, tw_read(self->fd, events, TIMEOUTS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.completed);
	EXPECT_EQ(TIMEOUTS - 2, info.drained);
	EXPECT_EQ(info.completed + info.drained + lived_on, info.delivered);
}

/* ---- poll and blocked callers -------------------------------------------- */

TEST_F(drain, poll_says_hup_for_ever_and_in_while_something_is_left)
{
	const short all = POLLIN | POLLOUT;
	struct twheel_event events[TIMEOUTS];

	EXPECT_EQ(POLLIN | POLLOUT, tw_poll(self->fd, all, 0));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(POLLIN | POLLHUP, tw_poll(self->fd, all, 0));
	ASSERT_EQ(1, tw_read(self->fd, events, 1));
	EXPECT_EQ(POLLIN | POLLHUP, tw_poll(self->fd, all, 0));
	ASSERT_EQ(TIMEOUTS - 1, tw_read(self->fd, events, TIMEOUTS));
	EXPECT_EQ(POLLHUP, tw_poll(self->fd, all, 0));
	ASSERT_EQ(0, tw_read(self->fd, events, 1));
	EXPECT_EQ(POLLHUP, tw_poll(self->fd, all, 0));
}

/* A child makes one blocking call; if that returns what it must, the child exits with 0. */
static void expect_drain_wakes(struct __test_metadata *_metadata, int fd, bool by_poll)
{
	struct twheel_event event;
	pid_t pid;

	ASSERT_LE(0, fd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid && by_poll)
		_exit(tw_poll(fd, POLLIN, -1) == POLLHUP ? 0 : 1);
	if (!pid)
		_exit(tw_read(fd, &event, 1) == 0 ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	EXPECT_EQ(0, tw_drain(fd));
	EXPECT_EQ(0, tw_reap(pid));
	close(fd);
}

TEST_F(drain, drain_wakes_a_blocked_reader_with_the_end)
{
	expect_drain_wakes(_metadata, tw_virtual(0, TW_MS), false);
}

TEST_F(drain, drain_wakes_a_sleeping_poller_with_hup)
{
	expect_drain_wakes(_metadata, tw_virtual(0, TW_MS), true);
}

/* There is no kthread that could wake them. */
TEST_F(drain, drain_wakes_the_blocked_reader_of_a_wheel_never_armed)
{
	expect_drain_wakes(_metadata, tw_open(0), false);
}

TEST_F(drain, drain_wakes_the_sleeping_poller_of_a_wheel_never_armed)
{
	expect_drain_wakes(_metadata, tw_open(0), true);
}

TEST_F(drain, drain_gives_a_blocked_reader_the_timeouts_left)
{
	int fd = tw_virtual(0, TW_MS);
	struct twheel_event event;
	pid_t pid;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, TW_HOUR, &id));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_read(fd, &event, 1) == 1 && event.id == id &&
		      event.flags == TW_DRAINED ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	EXPECT_EQ(0, tw_drain(fd));
	EXPECT_EQ(0, tw_reap(pid));
	close(fd);
}

/* If the last event is revoked, that is the end, too. */
TEST_F(drain, revoking_the_last_event_is_the_end)
{
	int fd = tw_virtual(O_NONBLOCK, TW_MS);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_drain(fd));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(fd, id));
	EXPECT_EQ(POLLHUP, tw_poll(fd, POLLIN | POLLOUT, 0));
	EXPECT_EQ(0, tw_read(fd, &event, 1));
	close(fd);
}

#define LONGEST		65536
#define NEAR		TW_HOUR

static struct twheel_arm longest[LONGEST];

/* A thread that waits for another one, waits for some time, and drains the wheel. */
struct drainer {
	int fd;
	int ret;
	struct tw_meeting start;
	__u64 delay_ns;
};

static void *drain_later(void *arg)
{
	struct drainer *drainer = arg;

	tw_meet(&drainer->start, 2);
	tw_spin(drainer->delay_ns);
	drainer->ret = tw_drain(drainer->fd);
	return NULL;
}

/* Make a wheel, and prepare one-shots at NEAR in longest[]. */
static int open_for_longest(struct __test_metadata *_metadata)
{
	int i, fd = tw_virtual(O_NONBLOCK, TW_MS);

	ASSERT_LE(0, fd);
	for (i = 0; i < LONGEST; i++)
		longest[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = NEAR,
			.user_data = i,
			.id = TW_POISON64,
		};
	return fd;
}

/* Do the same, and arm them. */
static int open_with_longest(struct __test_metadata *_metadata)
{
	int fd = open_for_longest(_metadata);

	ASSERT_EQ(LONGEST, tw_arm_vec(fd, longest, LONGEST));
	return fd;
}

static struct tw_outcome polled[] = {
	TW_OUTCOME("neither OUT nor HUP", TW_A_FEW),
};

/* Poll while another thread drains LONGEST timeouts. */
static void watch_drain(struct __test_metadata *_metadata)
{
	struct drainer drainer = {};
	struct twheel_info info;
	pthread_t thread;
	int armed, nr = LONGEST;
	short revents;
	__u64 id;

	drainer.fd = open_with_longest(_metadata);
	ASSERT_EQ(0, pthread_create(&thread, NULL, drain_later, &drainer));
	tw_meet(&drainer.start, 2);
	do {
		armed = tw_arm_at(drainer.fd, TW_DAY, &id);
		ASSERT_TRUE(armed == 0 || armed == -ESHUTDOWN);
		nr += !armed;
		revents = tw_poll(drainer.fd, POLLIN | POLLOUT, 0);
		if (armed == -ESHUTDOWN) {
			ASSERT_EQ(0, revents & POLLOUT);
			tw_saw(&polled[0], !(revents & POLLHUP));
		}
	} while (!(revents & POLLHUP));
	ASSERT_EQ(POLLIN | POLLHUP, revents);
	ASSERT_EQ(0, tw_info(drainer.fd, &info));
	ASSERT_EQ(nr, info.unread);
	ASSERT_EQ(0, info.pending);
	ASSERT_EQ(-ESHUTDOWN, tw_arm_at(drainer.fd, TW_DAY, &id));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, drainer.ret);
	EXPECT_ACCOUNTS(drainer.fd);
	close(drainer.fd);
}

TEST_F_TIMEOUT(drain, poll_says_neither_out_nor_hup_until_all_that_is_left_can_be_read, 100)
{
	struct tw_race race = TW_RACE(polled, 0);

	while (tw_race_goes_on(&race))
		watch_drain(_metadata);
	EXPECT_RACE(&race);
}

/* ---- calls that are under way -------------------------------------------- */

#define MOVED		(2 * TW_HOUR)

enum { WHOLE, CUT_SHORT, REFUSED };

static struct tw_outcome calls[] = {
	[WHOLE]		= TW_OUTCOME("done before the wheel was drained", 1),
	[CUT_SHORT]	= TW_OUTCOME("cut short", TW_A_FEW),
	[REFUSED]	= TW_OUTCOME("refused", 1),
};

/*
 * Return the result of a call with all of longest[] while another thread drains the wheel. The
 * drain begins this long after the call, or before it if that is negative.
 */
static int beside_drain(struct __test_metadata *_metadata, int fd, unsigned long cmd,
			__s64 delay_ns, __u32 *nr_done)
{
	struct drainer drainer = { .fd = fd, .delay_ns = delay_ns > 0 ? delay_ns : 0 };
	pthread_t thread;
	int ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, drain_later, &drainer));
	tw_meet(&drainer.start, 2);
	tw_spin(delay_ns < 0 ? -delay_ns : 0);
	ret = tw_vector_done(fd, cmd, longest, sizeof(longest[0]), LONGEST, nr_done);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, drainer.ret);
	tw_saw(&calls[ret < 0 ? REFUSED : ret < LONGEST ? CUT_SHORT : WHOLE], 1);
	return ret;
}

/*
 * The timeouts below nr_done are at deadline_ns, and the others, of nr, at NEAR; there are no
 * more.
 */
static void expect_drained(struct __test_metadata *_metadata, int fd, __u32 nr, __u32 nr_done,
			   __u64 deadline_ns)
{
	static struct twheel_event events[1024];
	__u32 total = 0;
	int i, got;

	while ((got = tw_read(fd, events, ARRAY_SIZE(events))) > 0) {
		for (i = 0; i < got; i++) {
			__u32 who = events[i].user_data;

			ASSERT_GT(nr, who);
			ASSERT_EQ(longest[who].id, events[i].id);
			ASSERT_EQ(who < nr_done ? deadline_ns : NEAR, events[i].deadline_ns)
				TH_LOG("timeout %u, of %u attempted", who, nr_done);
		}
		total += got;
	}
	ASSERT_EQ(0, got);
	EXPECT_EQ(nr, total);
}

/* If an element was not attempted, it says so, even in an array of zeroes. */
static void arm_beside_drain(struct __test_metadata *_metadata, __s64 delay_ns)
{
	int i, ret, fd = open_for_longest(_metadata);
	__u32 nr_done;

	ret = beside_drain(_metadata, fd, TWHEEL_IOC_ARM, delay_ns, &nr_done);
	if (ret == -ESHUTDOWN) {
		EXPECT_EQ(0, nr_done);
		ret = 0;
	} else {
		ASSERT_EQ(nr_done, ret);
		for (i = 0; i < LONGEST; i++) {
			ASSERT_EQ(i < nr_done ? TWHEEL_CREATED : -ESHUTDOWN, longest[i].result)
				TH_LOG("element %d, %u attempted", i, nr_done);
			ASSERT_EQ(i < nr_done, longest[i].id != 0);
		}
	}
	expect_drained(_metadata, fd, ret, ret, NEAR);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* In the array each element says that it succeeded, as the last call left it. */
static void rearm_beside_drain(struct __test_metadata *_metadata, __s64 delay_ns)
{
	int i, ret, fd = open_with_longest(_metadata);
	__u32 nr_done;

	for (i = 0; i < LONGEST; i++) {
		longest[i].expires_ns = MOVED;
		longest[i].result = TWHEEL_WAS_PENDING;
	}
	ret = beside_drain(_metadata, fd, TWHEEL_IOC_REARM, delay_ns, &nr_done);
	if (ret == -ESHUTDOWN) {
		EXPECT_EQ(0, nr_done);
		ret = 0;
	} else {
		ASSERT_EQ(nr_done, ret);
		for (i = 0; i < LONGEST; i++) {
			ASSERT_EQ(i < nr_done ? TWHEEL_WAS_PENDING : -ESHUTDOWN,
				  longest[i].result)
				TH_LOG("element %d, %u attempted", i, nr_done);
		}
	}
	expect_drained(_metadata, fd, LONGEST, ret, MOVED);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

static __u64 call_ns(struct __test_metadata *_metadata, unsigned long cmd)
{
	int fd = open_for_longest(_metadata);
	__u64 start_ns;

	start_ns = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(LONGEST, tw_arm_vec(fd, longest, LONGEST));
	if (cmd == TWHEEL_IOC_REARM) {
		start_ns = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(LONGEST, tw_rearm_vec(fd, longest, LONGEST));
	}
	start_ns = tw_now(CLOCK_MONOTONIC) - start_ns;
	close(fd);
	return start_ns;
}

/* How long a call takes if nothing disturbs it: the shortest of several. */
static __u64 duration_ns(struct __test_metadata *_metadata, unsigned long cmd)
{
	__u64 shortest_ns = call_ns(_metadata, cmd), ns;
	int i;

	for (i = 0; i < 4; i++) {
		ns = call_ns(_metadata, cmd);
		if (ns < shortest_ns)
			shortest_ns = ns;
	}
	return shortest_ns;
}

/* Let the drain begin before the call, twice during it, and after its end, in turn. */
static void cut_short(struct __test_metadata *_metadata, unsigned long cmd,
		      void (*attempt)(struct __test_metadata *_metadata, __s64 delay_ns))
{
	__s64 span_ns = duration_ns(_metadata, cmd), delay_ns;
	struct tw_race race = TW_RACE(calls, 0);
	__u64 seed = 11;

	while (tw_race_goes_on(&race)) {
		delay_ns = tw_random(&seed) % span_ns;
		if (race.rounds % 4 == 3)
			delay_ns += race.rounds * span_ns / 4;
		if (race.rounds % 4 == 0)
			delay_ns = -delay_ns;
		attempt(_metadata, delay_ns);
	}
	TH_LOG("a call takes %llu us", span_ns / TW_US);
	EXPECT_RACE(&race);
}

TEST_F_TIMEOUT(drain, arm_of_the_longest_vector_says_where_it_was_cut_short, 100)
{
	cut_short(_metadata, TWHEEL_IOC_ARM, arm_beside_drain);
}

TEST_F_TIMEOUT(drain, rearm_of_the_longest_vector_says_where_it_was_cut_short, 100)
{
	cut_short(_metadata, TWHEEL_IOC_REARM, rearm_beside_drain);
}

TEST_HARNESS_MAIN
