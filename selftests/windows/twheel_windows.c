// SPDX-License-Identifier: GPL-2.0
/*
 * What happens between two steps of one thread, done wholly by another: a test holds a
 * thread in a window of the module (engine/window.h), has another one do its part, and
 * lets the first one go on.
 *
 * The names of tests say what must hold.  An order that is wrong in the module is seen in
 * each run, and not by luck.
 */
#include "windows.h"

#include <signal.h>
#include <sys/mman.h>

FIXTURE(windows) {
	int fd;			/* a virtual wheel, non-blocking */
};

FIXTURE_SETUP(windows)
{
	if (window_say("all", "off"))
		SKIP(return, "a module without windows");
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(windows)
{
	window_say("all", "off");
	close(self->fd);
}

/* A wheel on the monotonic clock. */
static int real_wheel(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS };

	return tw_open_setup(O_NONBLOCK, &setup);
}

/* ---- readers and pollers ------------------------------------------------- */

TEST_F(windows, event_between_queueing_and_looking_ends_poll)
{
	struct side poll = { .fd = self->fd, .run = side_poll, .wanted = POLLIN };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	HOLD("poll_queued");
	START(&poll);
	AWAIT_HELD("poll_queued");
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	RELEASE("poll_queued");
	FINISH(&poll);
	EXPECT_EQ(POLLIN, poll.ret);
}

TEST_F(windows, poll_beside_drain_tells_no_hup_without_in)
{
	struct side poll = { .fd = self->fd, .run = side_poll, .wanted = POLLIN | POLLOUT };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	HOLD("poll_drained");
	START(&poll);
	AWAIT_HELD("poll_drained");
	ASSERT_EQ(0, tw_drain(self->fd));
	RELEASE("poll_drained");
	FINISH(&poll);
	EXPECT_EQ(POLLIN, poll.ret & (POLLIN | POLLHUP));
}

/* What is drained goes by steps. */
TEST_F(windows, read_beside_drain_gets_the_last_event)
{
	struct side read = { .fd = self->fd, .run = side_read_directly };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	HOLD("read_drained");
	START(&read);
	AWAIT_HELD("read_drained");
	ASSERT_EQ(0, tw_drain(self->fd));
	RELEASE("read_drained");
	FINISH(&read);
	ASSERT_EQ(1, read.ret);
	EXPECT_EQ(id, read.events[0].id);
}

static void ignore_signal(int sig)
{
	(void)sig;
}

/* EINTR is for those who wait.  An event that is not read in one step is read all the same. */
TEST_F(windows, nonblocking_read_beside_a_signal_gets_what_is_there)
{
	const struct sigaction action = { .sa_handler = ignore_signal };
	struct side read = { .fd = self->fd, .run = side_read_directly };
	__u64 id;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, tw_arm1(self->fd, 0, 10 * TW_MS, 10 * TW_MS, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	HOLD("read_drained");
	START(&read);
	AWAIT_HELD("read_drained");
	ASSERT_EQ(0, pthread_kill(read.thread, SIGUSR1));
	RELEASE("read_drained");
	FINISH(&read);
	ASSERT_EQ(1, read.ret);
	EXPECT_EQ(id, read.events[0].id);
}

/* A reader that has copied an event, and sleeps in a page fault say, has not taken it yet. */
TEST_F(windows, event_that_one_reader_has_copied_is_taken_by_another)
{
	struct side first = { .fd = self->fd, .run = side_read, .nr = 2 };
	struct twheel_event got;
	__u64 ids[2];

	ASSERT_EQ(2, arm_many(self->fd, 10 * TW_MS, 2, ids));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	HOLD("read_copied");
	START(&first);
	AWAIT_HELD("read_copied");
	ASSERT_EQ(1, tw_read(self->fd, &got, 1));
	RELEASE("read_copied");
	FINISH(&first);
	ASSERT_EQ(1, first.ret);
	EXPECT_EQ(ids[0] ^ ids[1], got.id ^ first.events[0].id);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_ACCOUNTS(self->fd);
}

/* Both may wait, and the first one does when all is gone that it has copied. */
TEST_F(windows, reader_waits_whose_events_were_all_taken_by_another)
{
	int fd = tw_virtual(0, TW_MS);
	struct side first = { .fd = fd, .run = side_read, .nr = 2 }, second = first;

	ASSERT_LE(0, fd);
	ASSERT_EQ(2, arm_many(fd, 10 * TW_MS, 2, NULL));
	ASSERT_EQ(0, tw_advance(fd, 20 * TW_MS));
	HOLD("read_copied");
	START(&first);
	AWAIT_HELD("read_copied");
	START(&second);
	FINISH(&second);
	EXPECT_EQ(2, second.ret);
	RELEASE("read_copied");
	AWAIT_ASLEEP(&first);
	ASSERT_EQ(0, tw_drain(fd));
	FINISH(&first);
	EXPECT_EQ(0, first.ret);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F(windows, event_revoked_while_it_is_copied_is_not_read)
{
	struct side read = { .fd = self->fd, .run = side_read };
	__u64 ids[2];

	ASSERT_EQ(2, arm_many(self->fd, 10 * TW_MS, 2, ids));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	HOLD("read_copied");
	START(&read);
	AWAIT_HELD("read_copied");
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, ids[0]));
	RELEASE("read_copied");
	FINISH(&read);
	ASSERT_EQ(1, read.ret);
	EXPECT_EQ(ids[1], read.events[0].id);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(windows, reader_gets_events_of_their_size_beside_setup)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .event_size = 64,
	};
	struct side read = { .fd = tw_open(O_NONBLOCK), .run = side_read };
	__u64 id;

	ASSERT_LE(0, read.fd);
	HOLD("events_counted");
	START(&read);
	AWAIT_HELD("events_counted");
	ASSERT_EQ(0, tw_setup_full(read.fd, &setup));
	ASSERT_EQ(0, tw_arm_in(read.fd, 0, &id));
	ASSERT_EQ(0, tw_advance(read.fd, 0));
	RELEASE("events_counted");
	FINISH(&read);
	EXPECT_EQ(-EAGAIN, read.ret);
	close(read.fd);
}

TEST_F(windows, poller_for_out_is_woken_when_there_is_room)
{
	int fd = tw_virtual_for(O_NONBLOCK, 1);
	struct side poll = { .fd = fd, .run = side_poll, .wanted = POLLOUT };
	struct side cancel = { .fd = fd, .run = side_cancel };

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &cancel.id));
	START(&poll);
	AWAIT_ASLEEP(&poll);
	HOLD("live_given");
	START(&cancel);
	AWAIT_HELD("live_given");
	tw_sleep(A_WHILE);
	RELEASE("live_given");
	FINISH(&cancel);
	FINISH(&poll);
	EXPECT_EQ(POLLOUT, poll.ret);
	close(fd);
}

/* ---- the inbox and the alarm --------------------------------------------- */

static void rearm_before_the_inbox(struct __test_metadata *_metadata,
				   int (*run)(struct side *side))
{
	int fd = real_wheel();
	struct side arm = { .fd = fd, .run = run, .arm.expires_ns = TW_HOUR };
	int passes;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	HOLD("arm_published");
	START(&arm);
	AWAIT_HELD("arm_published");
	passes = window_see("pass_counted").hits;
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, arm.arm.id, 0, 0, 0));
	AWAIT_HITS("pass_counted", passes + 1);
	RELEASE("arm_published");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

TEST_F(windows, timeout_rearmed_before_the_inbox_expires)
{
	rearm_before_the_inbox(_metadata, side_arm);
}

TEST_F(windows, timeout_armed_directly_and_rearmed_before_the_inbox_expires)
{
	rearm_before_the_inbox(_metadata, side_arm_directly);
}

TEST_F(windows, rearm_is_counted_before_it_sees_the_alarm)
{
	int fd = real_wheel();
	struct side arm = { .fd = fd, .run = side_arm, .arm.expires_ns = TW_HOUR };
	struct side rearm = { .fd = fd, .run = side_rearm };

	ASSERT_LE(0, fd);
	HOLD("arm_published");
	START(&arm);
	AWAIT_HELD("arm_published");
	rearm.arm.id = arm.arm.id;
	HOLD("rearm_counted");
	START(&rearm);
	AWAIT_HELD("rearm_counted");
	tw_sleep(A_WHILE);
	RELEASE("arm_published");
	FINISH(&arm);
	tw_sleep(A_WHILE);
	RELEASE("rearm_counted");
	FINISH(&rearm);
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

static void cancel_before_the_inbox(struct __test_metadata *_metadata, int fd,
				    int (*run)(struct side *side))
{
	struct side arm = { .fd = fd, .run = run, .arm.expires_ns = 10 * TW_MS };
	struct twheel_event *events = calloc(PAGE_PLACES + 2, sizeof(*events));
	__u64 *ids = calloc(PAGE_PLACES + 1, sizeof(*ids));
	struct twheel_status status;
	int i, nr;

	/* The wheel has started. */
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &ids[0]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, ids[0]));
	HOLD("arm_published");
	START(&arm);
	AWAIT_HELD("arm_published");
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, arm.arm.id));
	ASSERT_EQ(PAGE_PLACES, arm_many(fd, 30 * TW_MS, PAGE_PLACES, ids));
	RELEASE("arm_published");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	ASSERT_EQ(0, tw_advance(fd, 20 * TW_MS));
	EXPECT_NO_EVENT(fd);
	EXPECT_EQ(-ENOENT, tw_query1(fd, arm.arm.id, &status));
	/* Nor does it take others along. */
	for (i = 0; i < PAGE_PLACES; i++) {
		ASSERT_EQ(0, tw_query1(fd, ids[i], &status));
		ASSERT_EQ(TWHEEL_STATE_PENDING, status.state);
	}
	ASSERT_EQ(0, tw_arm_at(fd, 30 * TW_MS, &ids[PAGE_PLACES]));
	ASSERT_EQ(0, tw_advance(fd, 30 * TW_MS));
	ASSERT_EQ(PAGE_PLACES + 1, read_all(fd, events, PAGE_PLACES + 2));
	for (i = 0; i <= PAGE_PLACES; i++) {
		for (nr = 0; nr <= PAGE_PLACES && events[nr].id != ids[i]; nr++)
			;
		ASSERT_GE(PAGE_PLACES, nr)
			TH_LOG("timeout %d does not expire", i);
	}
	EXPECT_ACCOUNTS(fd);
	free(events);
	free(ids);
}

TEST_F(windows, timeout_cancelled_before_the_inbox_is_gone)
{
	cancel_before_the_inbox(_metadata, self->fd, side_arm);
}

TEST_F(windows, timeout_armed_directly_and_cancelled_before_the_inbox_is_gone)
{
	cancel_before_the_inbox(_metadata, self->fd, side_arm_directly);
}

TEST_F(windows, timeout_armed_before_the_inbox_is_emptied_expires)
{
	int fd = real_wheel(), nr = 0;
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	HOLD("pass_noted");
	ASSERT_EQ(0, tw_arm_in(fd, 20 * TW_MS, &id));
	AWAIT_HELD("pass_noted");
	ASSERT_EQ(0, tw_arm_in(fd, 20 * TW_MS, &id));
	RELEASE("pass_noted");
	while (nr < 2 && event_comes(fd)) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		nr++;
	}
	EXPECT_EQ(2, nr);
	close(fd);
}

TEST_F(windows, timeout_added_during_a_pass_expires)
{
	int fd = real_wheel();
	struct side arm = { .fd = fd, .run = side_arm, .arm.expires_ns = 300 * TW_MS };
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, 250 * TW_MS, &id));
	HOLD("arm_added");
	START(&arm);
	AWAIT_HELD("arm_added");
	ASSERT_TRUE(event_comes(fd));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	RELEASE("arm_added");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

TEST_F(windows, timeout_armed_at_the_end_of_a_turn_expires)
{
	int fd = real_wheel(), nr = 0;
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	HOLD("pass_counted");
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	AWAIT_HELD("pass_counted");
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	RELEASE("pass_counted");
	while (nr < 2 && event_comes(fd)) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		nr++;
	}
	EXPECT_EQ(2, nr);
	close(fd);
}

/* So many come with new chunks while a pass is held that begins. */
static void arm_beside_pass(struct __test_metadata *_metadata, int fd, const char *window)
{
	struct side advance = { .fd = fd, .run = side_advance, .at_ns = TW_MS };
	const int nr = 20000;
	struct twheel_event *events = calloc(nr + 1, sizeof(*events));

	HOLD(window);
	START(&advance);
	AWAIT_HELD(window);
	ASSERT_EQ(nr, arm_many(fd, 10 * TW_MS, nr, NULL));
	RELEASE(window);
	FINISH(&advance);
	EXPECT_EQ(0, advance.ret);
	ASSERT_EQ(0, tw_advance(fd, 20 * TW_MS));
	EXPECT_EQ(nr, read_all(fd, events, nr + 1));
	EXPECT_ACCOUNTS(fd);
	free(events);
}

TEST_F(windows, chunks_come_for_all_that_is_in_the_inbox)
{
	arm_beside_pass(_metadata, self->fd, "pass_emptied");
}

TEST_F(windows, chunks_come_for_all_that_the_pass_finds_in_the_inbox)
{
	arm_beside_pass(_metadata, self->fd, "pass_noted");
}

/* Of two, the one that arrives first is cancelled, or the other one; in no promised order. */
TEST_F(windows, link_of_an_arrival_is_read_first)
{
	struct twheel_event event;
	__u64 ids[2], base_ns;
	int i;

	for (i = 0; i < 2; i++) {
		struct side advance = { .fd = self->fd, .run = side_advance };

		base_ns = i * 100 * TW_MS;
		ASSERT_EQ(0, tw_advance(self->fd, base_ns));
		ASSERT_EQ(2, arm_many(self->fd, base_ns + 10 * TW_MS, 2, ids));
		advance.at_ns = base_ns + TW_MS;
		HOLD("pass_link");
		START(&advance);
		AWAIT_HELD("pass_link");
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
		RELEASE("pass_link");
		FINISH(&advance);
		ASSERT_EQ(0, tw_advance(self->fd, base_ns + 20 * TW_MS));
		ASSERT_ONE_EVENT(self->fd, &event, ids[!i]);
		EXPECT_ACCOUNTS(self->fd);
	}
}

TEST_F(windows, timeout_cancelled_in_the_inbox_does_not_enter_the_wheel)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = TW_MS };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	HOLD("pass_enters");
	START(&advance);
	AWAIT_HELD("pass_enters");
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	RELEASE("pass_enters");
	FINISH(&advance);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_ACCOUNTS(self->fd);
}

/* They reach the wheel in one batch, after it has passed the ticks of all of them. */
TEST_F(windows, what_is_armed_while_its_ticks_pass_expires_in_their_order)
{
	static const __u64 at_ms[] = { 63, 20, 40, 10 }, in_order_ms[] = { 10, 20, 40, 63 };
	struct twheel_arm arms[4] = {};
	struct side arm = { .fd = self->fd, .run = side_arm_vec, .arms = arms, .nr = 4 };
	struct twheel_event events[4];
	struct twheel_info info;
	int i;

	for (i = 0; i < 4; i++) {
		arms[i].flags = TWHEEL_ARM_ABSOLUTE;
		arms[i].expires_ns = at_ms[i] * TW_MS;
	}
	HOLD("arm_published");
	START(&arm);
	AWAIT_HELD("arm_published");
	ASSERT_EQ(0, tw_advance(self->fd, 64 * TW_MS));
	RELEASE("arm_published");
	FINISH(&arm);
	ASSERT_EQ(4, arm.ret);
	ASSERT_EQ(0, tw_advance(self->fd, 64 * TW_MS));
	ASSERT_EQ(4, tw_read(self->fd, events, 4));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(in_order_ms[i] * TW_MS, events[i].deadline_ns);
	/* 54, 44, 24 and 1 ticks late. */
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(54 * TW_MS, info.max_late_ns);
	EXPECT_EQ(2, info.late_ticks[6]);
	EXPECT_EQ(1, info.late_ticks[5]);
	EXPECT_EQ(1, info.late_ticks[1]);
}

/* ---- a pass beside CANCEL and waiters ------------------------------------ */

static void cancel_beside_expiry(struct __test_metadata *_metadata, int fd,
				 struct twheel_arm arm)
{
	struct side advance = { .fd = fd, .run = side_advance, .at_ns = 20 * TW_MS };
	struct twheel_info info;

	arm.expires_ns = 10 * TW_MS;
	ASSERT_EQ(0, tw_arm_entry(fd, &arm));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	HOLD("pass_expires");
	START(&advance);
	AWAIT_HELD("pass_expires");
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, arm.id));
	RELEASE("pass_expires");
	FINISH(&advance);
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, info.live);
	EXPECT_EQ(0, info.expirations);
	EXPECT_ACCOUNTS(fd);
}

TEST_F(windows, timeout_cancelled_as_it_expires_has_no_event)
{
	cancel_beside_expiry(_metadata, self->fd, (struct twheel_arm){});
}

TEST_F(windows, timeout_with_slack_cancelled_as_it_expires_has_no_event)
{
	cancel_beside_expiry(_metadata, self->fd, (struct twheel_arm){ .slack_ticks = 1 });
}

TEST_F(windows, periodic_timeout_cancelled_as_it_expires_has_no_event)
{
	cancel_beside_expiry(_metadata, self->fd,
			     (struct twheel_arm){ .interval_ns = 5 * TW_MS });
}

/* Arms three timeouts that expire together, in the next tick; their ids in the order of arming. */
static void three_of_a_tick(struct __test_metadata *_metadata, int fd, __u64 at_ns, __u64 *ids)
{
	ASSERT_EQ(3, arm_many(fd, at_ns, 3, ids));
	ASSERT_EQ(0, tw_advance(fd, at_ns - TW_MS));
}

/* The second one to expire is known from others before, which came in the same order. */
TEST_F(windows, timeout_cancelled_as_it_expires_with_others_has_no_event)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = 20 * TW_MS };
	struct twheel_event events[4];
	__u64 ids[3], second;
	int i;

	three_of_a_tick(_metadata, self->fd, 10 * TW_MS, ids);
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(3, tw_read(self->fd, events, 4));
	for (i = 0; ids[i] != events[1].id; i++)
		ASSERT_GT(2, i);
	three_of_a_tick(_metadata, self->fd, 20 * TW_MS, ids);
	second = ids[i];
	HOLD("pass_expires");
	START(&advance);
	AWAIT_HELD("pass_expires");
	HOLD("pass_expires");
	AWAIT_HELD("pass_expires");
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, second));
	RELEASE("pass_expires");
	FINISH(&advance);
	ASSERT_EQ(2, tw_read(self->fd, events, 4));
	for (i = 0; i < 2; i++)
		EXPECT_NE(second, events[i].id);
	EXPECT_ACCOUNTS(self->fd);
}

/* Of the first page of places, one is free, and the wheel has its entry, at 10 ms. */
static void leave_entry(struct __test_metadata *_metadata, int fd)
{
	__u64 ids[PAGE_PLACES], id;

	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &id));
	ASSERT_EQ(PAGE_PLACES - 1, arm_many(fd, TW_HOUR, PAGE_PLACES - 1, ids));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
}

/* It is pending, and expires at 500 ms. */
static void expect_pending(struct __test_metadata *_metadata, int fd, __u64 id)
{
	struct twheel_status status;
	struct twheel_event event;

	ASSERT_EQ(0, tw_query1(fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(500 * TW_MS, status.deadline_ns);
	ASSERT_EQ(0, tw_advance(fd, 499 * TW_MS));
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_advance(fd, 500 * TW_MS));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_ACCOUNTS(fd);
}

static void lose_entry_meanwhile(struct __test_metadata *_metadata, int fd,
				 int (*run)(struct side *side))
{
	struct side arm = {
		.fd = fd, .run = run,
		.arm = { .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = 500 * TW_MS },
	};

	leave_entry(_metadata, fd);
	HOLD("arm_keeps");
	START(&arm);
	AWAIT_HELD("arm_keeps");
	ASSERT_EQ(0, tw_advance(fd, 20 * TW_MS));
	RELEASE("arm_keeps");
	FINISH(&arm);
	ASSERT_EQ(0, arm.ret);
	expect_pending(_metadata, fd, arm.arm.id);
}

TEST_F(windows, timeout_expires_whose_place_loses_its_entry_meanwhile)
{
	lose_entry_meanwhile(_metadata, self->fd, side_arm);
}

TEST_F(windows, timeout_armed_directly_expires_whose_place_loses_its_entry_meanwhile)
{
	lose_entry_meanwhile(_metadata, self->fd, side_arm_directly);
}

TEST_F(windows, timeout_expires_that_is_armed_as_the_entry_of_its_place_comes_up)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = 20 * TW_MS };
	__u64 id;

	leave_entry(_metadata, self->fd);
	HOLD("pass_claims");
	START(&advance);
	AWAIT_HELD("pass_claims");
	EXPECT_EQ(0, tw_arm_at(self->fd, 500 * TW_MS, &id));
	RELEASE("pass_claims");
	FINISH(&advance);
	expect_pending(_metadata, self->fd, id);
}

static void replace_beside_expiry(struct __test_metadata *_metadata, int fd, __u32 slack_ticks)
{
	struct side advance = { .fd = fd, .run = side_advance, .at_ns = 20 * TW_MS };
	struct twheel_arm arm = { .expires_ns = 10 * TW_MS, .slack_ticks = slack_ticks };
	__u64 ids[PAGE_PLACES], id;

	ASSERT_EQ(0, tw_arm_entry(fd, &arm));
	ASSERT_EQ(PAGE_PLACES - 1, arm_many(fd, TW_HOUR, PAGE_PLACES - 1, ids));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	HOLD("pass_expires");
	START(&advance);
	AWAIT_HELD("pass_expires");
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, arm.id));
	EXPECT_EQ(0, tw_arm_at(fd, 500 * TW_MS, &id));
	RELEASE("pass_expires");
	FINISH(&advance);
	expect_pending(_metadata, fd, id);
}

TEST_F(windows, timeout_expires_that_is_armed_in_place_of_one_that_was_about_to)
{
	replace_beside_expiry(_metadata, self->fd, 0);
}

TEST_F(windows, timeout_expires_that_is_armed_in_place_of_one_with_slack_that_was_about_to)
{
	replace_beside_expiry(_metadata, self->fd, 1);
}

TEST_F(windows, timeout_cancelled_as_it_is_drained_has_no_event)
{
	struct side drain = { .fd = self->fd, .run = side_drain };
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	HOLD("pass_drains");
	START(&drain);
	AWAIT_HELD("pass_drains");
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	RELEASE("pass_drains");
	FINISH(&drain);
	EXPECT_EQ(0, drain.ret);
	EXPECT_EQ(0, tw_read(self->fd, &event, 1));
	EXPECT_ACCOUNTS(self->fd);
}

/* The one free place is that of a timeout that is cancelled while its fields change. */
static void cancel_beside_change(struct __test_metadata *_metadata, int fd, struct side *side,
				 const char *window, __u64 id)
{
	struct twheel_status status;
	struct twheel_info info;
	__u64 ids[PAGE_PLACES], next;

	ASSERT_EQ(PAGE_PLACES - 1, arm_many(fd, TW_HOUR, PAGE_PLACES - 1, ids));
	ASSERT_EQ(0, window_say(window, "delay 300000 1"));
	START(side);
	AWAIT_INSIDE(window);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	ASSERT_EQ(0, tw_arm_at(fd, 100 * TW_MS, &next));
	FINISH(side);
	ASSERT_EQ(0, tw_query1(fd, next, &status));
	EXPECT_EQ(100 * TW_MS, status.deadline_ns);
	EXPECT_EQ(-ENOENT, tw_query1(fd, id, &status));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(PAGE_PLACES, info.live);
	EXPECT_ACCOUNTS(fd);
}

TEST_F(windows, cancel_waits_while_rearm_changes_a_timeout)
{
	struct side rearm = {
		.fd = self->fd, .run = side_rearm, .arm.expires_ns = 500 * TW_MS,
	};
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	rearm.arm.id = id;
	cancel_beside_change(_metadata, self->fd, &rearm, "rearm_owned", id);
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
}

TEST_F(windows, cancel_waits_while_a_pass_writes_a_refreshed_deadline)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = 11 * TW_MS };
	void *table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
			   self->fd, 0);
	__u64 id;

	ASSERT_NE(MAP_FAILED, table);
	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_refresh(table, id, 12 * TW_MS, tw_shift(TW_MS)));
	cancel_beside_change(_metadata, self->fd, &advance, "pass_postpones", id);
	EXPECT_EQ(0, advance.ret);
}

/* A timeout is in the middle of being moved from 10 ms to 500 ms. */
static void start_slow_rearm(struct __test_metadata *_metadata, int fd, struct side *rearm)
{
	*rearm = (struct side){
		.fd = fd, .run = side_rearm,
		.arm = { .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = 500 * TW_MS },
	};
	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &rearm->arm.id));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	ASSERT_EQ(0, window_say("rearm_owned", "delay 300000 1"));
	START(rearm);
	AWAIT_INSIDE("rearm_owned");
}

TEST_F(windows, info_waits_while_rearm_changes_a_timeout)
{
	struct twheel_info info;
	struct side rearm;

	start_slow_rearm(_metadata, self->fd, &rearm);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	FINISH(&rearm);
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
	EXPECT_EQ(500 * TW_MS, info.next_expiry_ns);
}

TEST_F(windows, query_waits_while_rearm_changes_a_timeout)
{
	struct twheel_status status;
	struct side rearm;

	start_slow_rearm(_metadata, self->fd, &rearm);
	ASSERT_EQ(0, tw_query1(self->fd, rearm.arm.id, &status));
	FINISH(&rearm);
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
	EXPECT_EQ(500 * TW_MS, status.deadline_ns);
}

TEST_F(windows, reader_is_woken_when_its_event_is_there)
{
	const struct twheel_setup setup = { .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS };
	int fd = tw_open_setup(0, &setup);
	struct side read = { .fd = fd, .run = side_read };
	struct side advance = { .fd = fd, .run = side_advance, .at_ns = 20 * TW_MS };
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	START(&read);
	AWAIT_ASLEEP(&read);
	HOLD("pass_expired");
	START(&advance);
	AWAIT_HELD("pass_expired");
	tw_sleep(A_WHILE);
	RELEASE("pass_expired");
	FINISH(&advance);
	FINISH(&read);
	EXPECT_EQ(1, read.ret);
	close(fd);
}

/*
 * The softirq has woken it to make the pass.  If it is held up, the kthread makes the pass in
 * its place, and wakes nobody who was asked.
 */
TEST_F(windows, reader_that_was_asked_and_is_late_gets_the_event)
{
	const struct twheel_setup setup = { .tick_ns = 10 * TW_MS };
	struct side read = { .fd = tw_open_setup(0, &setup), .run = side_read_directly };
	int passes = window_see("pass_counted").hits;
	__u64 id;

	ASSERT_LE(0, read.fd);
	START_APART(&read);
	/* It looks before it queues, and once more before it sleeps. */
	AWAIT_HITS("wait_unasked", 2);
	AWAIT_ASLEEP(&read);
	HOLD("wait_unasked");
	ASSERT_EQ(0, tw_arm_in(read.fd, 20 * TW_MS, &id));
	AWAIT_HITS("pass_counted", passes + 1);
	RELEASE("wait_unasked");
	FINISH(&read);
	ASSERT_EQ(1, read.ret);
	EXPECT_EQ(id, read.events[0].id);
	close(read.fd);
}

TEST_F(windows, calls_that_need_the_lock_go_on_while_waiters_are_woken)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = 20 * TW_MS };
	struct side query = { .fd = self->fd, .run = side_query };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_HOUR, &query.id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	HOLD("pass_expired");
	START(&advance);
	AWAIT_HELD("pass_expired");
	START(&query);
	EXPECT_TRUE(TW_WAIT_FOR(query.done, 2 * TW_MS));
	EXPECT_EQ(1, window_see("pass_expired").held);
	RELEASE("pass_expired");
	FINISH(&query);
	FINISH(&advance);
	EXPECT_EQ(0, query.ret);
}

TEST_F(windows, reader_is_woken_when_the_wheel_is_drained)
{
	const struct twheel_setup setup = { .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS };
	int fd = tw_open_setup(0, &setup);
	struct side read = { .fd = fd, .run = side_read };
	struct side drain = { .fd = fd, .run = side_drain };

	ASSERT_LE(0, fd);
	START(&read);
	AWAIT_ASLEEP(&read);
	HOLD("pass_drained");
	START(&drain);
	AWAIT_HELD("pass_drained");
	tw_sleep(A_WHILE);
	RELEASE("pass_drained");
	FINISH(&drain);
	FINISH(&read);
	EXPECT_EQ(0, read.ret);
	close(fd);
}

TEST_F(windows, advance_is_woken_when_its_pass_counts)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = TW_MS };

	HOLD("pass_counted");
	START(&advance);
	AWAIT_HELD("pass_counted");
	tw_sleep(A_WHILE);
	RELEASE("pass_counted");
	FINISH(&advance);
	EXPECT_EQ(0, advance.ret);
}

TEST_F(windows, wheel_is_drained_when_its_last_event_is_there)
{
	struct side drain = { .fd = self->fd, .run = side_drain };
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	HOLD("pass_empty");
	START(&drain);
	AWAIT_HELD("pass_empty");
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
	RELEASE("pass_empty");
	FINISH(&drain);
	EXPECT_EQ(0, drain.ret);
	EXPECT_EQ(0, tw_read(self->fd, &event, 1));
}

/* ---- an entry that was told, and is not done yet --------------------------- */

/* A timeout that is due at 10 ms, in the wheel.  No other place of its page is free. */
static __u64 arm_in_last_place(struct __test_metadata *_metadata, int fd)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &id));
	ASSERT_EQ(PAGE_PLACES - 1, arm_many(fd, TW_HOUR, PAGE_PLACES - 1, NULL));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	return id;
}

/* Has a cancel held between telling and doing. */
static void start_told_cancel(struct __test_metadata *_metadata, int fd, struct side *cancel)
{
	struct twheel_status status;

	*cancel = (struct side){
		.fd = fd, .run = side_cancel_directly,
		.cancel.id = arm_in_last_place(_metadata, fd),
	};
	HOLD("cancel_direct");
	START_APART(cancel);
	AWAIT_HELD("cancel_direct");
	EXPECT_EQ(TWHEEL_WAS_PENDING, __atomic_load_n(&cancel->cancel.result, __ATOMIC_RELAXED));
	EXPECT_EQ(0, tw_query1(fd, cancel->cancel.id, &status));
}

TEST_F(windows, cancel_that_was_told_revokes_what_expired_meanwhile)
{
	struct twheel_event event;
	struct side cancel;

	start_told_cancel(_metadata, self->fd, &cancel);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	RELEASE("cancel_direct");
	FINISH(&cancel);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, cancel.ret);
	EXPECT_EQ(-EAGAIN, tw_read(self->fd, &event, 1));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(windows, cancel_that_was_told_ends_nothing_twice)
{
	struct twheel_status status;
	struct side cancel;
	__u64 next;

	start_told_cancel(_metadata, self->fd, &cancel);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, cancel.cancel.id));
	/* It has the place. */
	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &next));
	EXPECT_EQ((__u32)cancel.cancel.id, (__u32)next);
	RELEASE("cancel_direct");
	FINISH(&cancel);
	EXPECT_EQ(-ENOENT, cancel.ret);
	EXPECT_EQ(0, tw_query1(self->fd, next, &status));
	EXPECT_ACCOUNTS(self->fd);
}

static void rearm_beside_cancel(struct __test_metadata *_metadata, int fd, __u64 deadline_ns)
{
	struct side rearm = {
		.fd = fd, .run = side_rearm_directly,
		.arm = { .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = deadline_ns },
	};
	struct twheel_status status;
	__u64 next, id = arm_in_last_place(_metadata, fd);

	rearm.arm.id = id;
	HOLD("rearm_direct");
	START_APART(&rearm);
	AWAIT_HELD("rearm_direct");
	EXPECT_EQ(TWHEEL_WAS_PENDING, __atomic_load_n(&rearm.arm.result, __ATOMIC_RELAXED));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &next));
	EXPECT_EQ((__u32)id, (__u32)next);
	RELEASE("rearm_direct");
	FINISH(&rearm);
	EXPECT_EQ(-ENOENT, rearm.ret);
	ASSERT_EQ(0, tw_query1(fd, next, &status));
	EXPECT_EQ(10 * TW_MS, status.deadline_ns);
	EXPECT_ACCOUNTS(fd);
}

TEST_F(windows, rearm_that_was_told_moves_nothing_that_was_cancelled_meanwhile)
{
	rearm_beside_cancel(_metadata, self->fd, 500 * TW_MS);
}

TEST_F(windows, rearm_to_earlier_that_was_told_moves_nothing_that_was_cancelled_meanwhile)
{
	rearm_beside_cancel(_metadata, self->fd, 5 * TW_MS);
}

/* ---- DRAIN beside calls that have seen that there is none ---------------- */

/* Has DRAIN come while a call is held, and counts the events of a timeout that come of it. */
static int drain_beside(struct __test_metadata *_metadata, struct side *side, const char *window,
			const __u64 *its_id)
{
	struct side drain = { .fd = side->fd, .run = side_drain };
	struct twheel_event events[2000];
	int i, nr, nr_found = 0;
	__u64 id;

	HOLD(window);
	START(side);
	AWAIT_HELD(window);
	START(&drain);
	ASSERT_TRUE(TW_WAIT_FOR(tw_arm_in(side->fd, TW_HOUR, &id) == -ESHUTDOWN ||
				drain.done, TW_MS));
	tw_sleep(A_WHILE);
	RELEASE(window);
	FINISH(side);
	FINISH(&drain);
	EXPECT_EQ(0, drain.ret);
	nr = read_all(side->fd, events, 2000);
	for (i = 0; i < nr; i++)
		nr_found += events[i].id == *its_id;
	return nr_found;
}

#define EXPECT_NONE_LEFT(fd) do {					\
	struct twheel_info __info;					\
	ASSERT_EQ(0, tw_info(fd, &__info));				\
	EXPECT_EQ(0, __info.live);					\
	EXPECT_ACCOUNTS(fd);						\
} while (0)

static void drain_beside_arm(struct __test_metadata *_metadata, int fd,
			     int (*run)(struct side *side), const char *window)
{
	struct side arm = { .fd = fd, .run = run, .arm.expires_ns = 10 * TW_MS };
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	EXPECT_EQ(1, drain_beside(_metadata, &arm, window, &arm.arm.id));
	EXPECT_EQ(0, arm.ret);
	EXPECT_NONE_LEFT(fd);
}

TEST_F(windows, drain_finds_what_arm_is_about_to_publish)
{
	drain_beside_arm(_metadata, self->fd, side_arm, "arm_checked");
}

TEST_F(windows, drain_finds_what_arm_has_yet_to_add_to_the_inbox)
{
	drain_beside_arm(_metadata, self->fd, side_arm, "arm_published");
}

TEST_F(windows, drain_finds_what_arm_is_about_to_publish_directly)
{
	drain_beside_arm(_metadata, self->fd, side_arm_directly, "arm_checked");
}

TEST_F(windows, drain_finds_what_arm_has_told_directly)
{
	drain_beside_arm(_metadata, self->fd, side_arm_directly, "arm_direct");
}

TEST_F(windows, drain_finds_what_arm_has_yet_to_add_to_the_inbox_directly)
{
	drain_beside_arm(_metadata, self->fd, side_arm_directly, "arm_published");
}

TEST_F(windows, drain_finds_what_rearm_is_about_to_move)
{
	struct side rearm = { .fd = self->fd, .run = side_rearm, .arm.expires_ns = 5 * TW_MS };

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &rearm.arm.id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(1, drain_beside(_metadata, &rearm, "rearm_checked", &rearm.arm.id));
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
	EXPECT_NONE_LEFT(self->fd);
}

static void drain_beside_rearm(struct __test_metadata *_metadata, int fd, __u64 expires_ns)
{
	struct side rearm = {
		.fd = fd, .run = side_rearm_directly, .arm.expires_ns = expires_ns,
	};

	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &rearm.arm.id));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	EXPECT_EQ(1, drain_beside(_metadata, &rearm, "rearm_direct", &rearm.arm.id));
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
	EXPECT_NONE_LEFT(fd);
}

TEST_F(windows, drain_finds_what_rearm_is_about_to_move_directly)
{
	drain_beside_rearm(_metadata, self->fd, 20 * TW_MS);
}

TEST_F(windows, drain_finds_what_rearm_is_about_to_requeue_directly)
{
	drain_beside_rearm(_metadata, self->fd, 5 * TW_MS);
}

/* DRAIN waits for an ARM that is held, and no other call is accepted any more. */
TEST_F(windows, rearm_directly_is_refused_from_the_beginning_of_a_drain)
{
	struct side arm = { .fd = self->fd, .run = side_arm, .arm.expires_ns = TW_HOUR };
	struct side drain = { .fd = self->fd, .run = side_drain };
	struct twheel_arm rearm = { .expires_ns = TW_HOUR };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &rearm.id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	HOLD("arm_checked");
	START_APART(&arm);
	AWAIT_HELD("arm_checked");
	START(&drain);
	ASSERT_TRUE(TW_WAIT_FOR(tw_arm_in(self->fd, TW_HOUR, &id) == -ESHUTDOWN, TW_MS));
	EXPECT_EQ(-ESHUTDOWN, tw_rearm_entry(self->fd, &rearm));
	RELEASE("arm_checked");
	FINISH(&arm);
	FINISH(&drain);
	EXPECT_ACCOUNTS(self->fd);
}

/* The call has told that it moves a timeout, and then may move nothing any more. */
TEST_F(windows, rearm_that_was_told_says_so_when_drain_keeps_it_from_that)
{
	struct side rearm = {
		.fd = self->fd, .run = side_rearm_directly, .arm.expires_ns = 20 * TW_MS,
	};
	struct side drain = { .fd = self->fd, .run = side_drain };
	__u64 id;

	rearm.arm.id = arm_in_last_place(_metadata, self->fd);
	HOLD("rearm_direct");
	START_APART(&rearm);
	AWAIT_HELD("rearm_direct");
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, rearm.arm.id));
	START(&drain);
	ASSERT_TRUE(TW_WAIT_FOR(tw_arm_in(self->fd, TW_HOUR, &id) == -ESHUTDOWN, TW_MS));
	RELEASE("rearm_direct");
	FINISH(&rearm);
	FINISH(&drain);
	EXPECT_EQ(-ESHUTDOWN, rearm.ret);
	EXPECT_EQ(-ESHUTDOWN, rearm.arm.result);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(windows, drain_finds_what_read_is_about_to_continue)
{
	struct side read = { .fd = self->fd, .run = side_read, .nr = 1 };
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_FIXED_DELAY, 10 * TW_MS, 10 * TW_MS, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_LE(1, drain_beside(_metadata, &read, "read_checked", &id));
	EXPECT_EQ(1, read.ret);
	EXPECT_NONE_LEFT(self->fd);
}

/*
 * The look was before DRAIN.  The pass that drains has emptied the inbox when the reader
 * comes to the commit: what goes there now stays there.
 */
TEST_F(windows, read_that_looked_before_a_drain_continues_nothing)
{
	struct side read = { .fd = self->fd, .run = side_read, .nr = 1 };
	struct side drain = { .fd = self->fd, .run = side_drain };
	struct twheel_event events[4] = {};
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, 10 * TW_MS, 10 * TW_MS, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	HOLD("read_copied");
	START(&read);
	AWAIT_HELD("read_copied");
	HOLD("pass_emptied");
	START(&drain);
	AWAIT_HELD("pass_emptied");
	RELEASE("read_copied");
	tw_sleep(A_WHILE);
	RELEASE("pass_emptied");
	FINISH(&drain);
	FINISH(&read);
	EXPECT_EQ(0, drain.ret);
	ASSERT_EQ(1, read.ret);
	EXPECT_EQ(id, read.events[0].id);
	EXPECT_EQ(TW_DRAINED, read.events[0].flags);
	EXPECT_EQ(0, read_all(self->fd, events, 4));
	EXPECT_NONE_LEFT(self->fd);
}

/* ---- what becomes visible, and in which order ---------------------------- */

TEST_F(windows, wheel_is_complete_when_others_see_it_started)
{
	int fd = tw_open(O_NONBLOCK);
	struct side first = { .fd = fd, .run = side_arm, .arm.expires_ns = 10 * TW_MS };
	struct side second = first;
	struct twheel_event event;
	int nr = 0;

	ASSERT_LE(0, fd);
	HOLD("start");
	START(&first);
	AWAIT_HELD("start");
	START(&second);
	tw_sleep(A_WHILE);
	RELEASE("start");
	FINISH(&first);
	FINISH(&second);
	EXPECT_EQ(0, first.ret);
	EXPECT_EQ(0, second.ret);
	while (nr < 2 && event_comes(fd)) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		nr++;
	}
	EXPECT_EQ(2, nr);
	close(fd);
}

TEST_F(windows, new_page_is_found_by_those_who_get_its_places)
{
	struct side first = { .fd = self->fd, .run = side_arm, .arm.expires_ns = 10 * TW_MS };
	struct side second = first;
	struct twheel_event events[4];
	struct twheel_status status;

	HOLD("arena_grown");
	START(&first);
	AWAIT_HELD("arena_grown");
	START(&second);
	tw_sleep(A_WHILE);
	if (second.done && !second.ret) {
		EXPECT_EQ(0, tw_query1(self->fd, second.arm.id, &status));
	}
	RELEASE("arena_grown");
	FINISH(&first);
	FINISH(&second);
	EXPECT_EQ(0, first.ret);
	EXPECT_EQ(0, second.ret);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_EQ(2, read_all(self->fd, events, 4));
}

/* The first table of pages is full; then a larger one takes its place. */
TEST_F(windows, ids_are_found_while_a_larger_table_takes_over)
{
	const int full = (sysconf(_SC_PAGESIZE) - 24) / sizeof(void *) * PAGE_PLACES;
	struct side cancel = { .fd = self->fd, .run = side_cancel };
	struct side arm = { .fd = self->fd, .run = side_arm, .arm.expires_ns = TW_HOUR };
	__u64 *ids = calloc(full, sizeof(*ids));
	struct twheel_status status;

	ASSERT_EQ(full, arm_many(self->fd, TW_HOUR, full, ids));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	cancel.id = ids[0];
	HOLD("table_found");
	START(&cancel);
	AWAIT_HELD("table_found");
	HOLD("table_filled");
	START(&arm);
	AWAIT_HELD("table_filled");
	EXPECT_EQ(0, tw_query1(self->fd, ids[full - 1], &status));
	RELEASE("table_filled");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	tw_sleep(A_WHILE);
	RELEASE("table_found");
	FINISH(&cancel);
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancel.ret);
	free(ids);
}

TEST_F(windows, page_gets_its_periodic_fields_once)
{
	struct side arm = {
		.fd = self->fd, .run = side_arm,
		.arm = { .expires_ns = 10 * TW_MS, .interval_ns = 10 * TW_MS },
	};
	struct twheel_arm other = {
		.expires_ns = 10 * TW_MS, .interval_ns = 7 * TW_MS, .repeats = 5,
	};
	struct twheel_status status;

	HOLD("periodic_none");
	START(&arm);
	AWAIT_HELD("periodic_none");
	ASSERT_EQ(0, tw_arm_entry(self->fd, &other));
	RELEASE("periodic_none");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	ASSERT_EQ(0, tw_query1(self->fd, other.id, &status));
	EXPECT_EQ(7 * TW_MS, status.interval_ns);
	EXPECT_EQ(5, status.repeats_left);
	ASSERT_EQ(0, tw_query1(self->fd, arm.arm.id, &status));
	EXPECT_EQ(10 * TW_MS, status.interval_ns);
}

/* ---- keys ---------------------------------------------------------------- */

/* Another key needs a place, where the only one that may be free had the one that ends. */
static void arm_beside_ending(struct __test_metadata *_metadata, const char *window)
{
	int fd = key_virtual(O_NONBLOCK, 0);
	struct side cancel = { .fd = fd, .run = side_cancel };
	struct twheel_arm arm = { .expires_ns = TW_HOUR, .user_data = 1 };
	struct twheel_info info;
	__u64 ids[PAGE_PLACES];

	ASSERT_LE(0, fd);
	ASSERT_EQ(PAGE_PLACES, arm_many(fd, TW_HOUR, PAGE_PLACES, ids));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	cancel.id = ids[0];
	HOLD(window);
	START(&cancel);
	AWAIT_HELD(window);
	ASSERT_EQ(0, tw_arm_entry(fd, &arm));
	RELEASE(window);
	FINISH(&cancel);
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancel.ret);
	ASSERT_EQ(1, tw_arm_vec(fd, &arm, 1));
	EXPECT_EQ(TWHEEL_WAS_PENDING, arm.result);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(PAGE_PLACES, info.live);
	close(fd);
}

TEST_F(windows, key_is_out_of_the_index_before_its_place_is_free)
{
	arm_beside_ending(_metadata, "keys_given");
}

TEST_F(windows, place_is_not_free_before_its_key_is_out_of_the_index)
{
	arm_beside_ending(_metadata, "keys_ended");
}

TEST_F(windows, key_that_is_being_given_up_can_be_taken)
{
	int fd = key_virtual(O_NONBLOCK, 0);
	struct side cancel = { .fd = fd, .run = side_cancel };
	struct side write = {
		.fd = fd, .run = side_write,
		.record = { .op = TWHEEL_OP_ARM, .key = 1, .expires_ns = TW_HOUR },
	};
	struct twheel_arm arm;
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(fd, 1, TW_HOUR, 0, &arm));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	cancel.id = arm.id;
	HOLD("keys_ended");
	START(&cancel);
	AWAIT_HELD("keys_ended");
	/* It holds a lock that the other one is to wait for. */
	ASSERT_EQ(0, window_say("keys_found", "delay 300000 1"));
	START_APART(&write);
	AWAIT_INSIDE("keys_found");
	RELEASE("keys_ended");
	FINISH(&cancel);
	FINISH(&write);
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancel.ret);
	EXPECT_EQ(1, write.ret);
	/* And it is the new timeout's from then on. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm(fd, 1, 2 * TW_HOUR, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1, info.live);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F(windows, keys_that_end_after_they_were_looked_up_are_armed_anew)
{
	int fd = key_virtual(O_NONBLOCK, 0), i;
	struct twheel_arm arms[3];
	struct side arm = { .fd = fd, .run = side_arm_keys, .arms = arms, .nr = 3 };
	struct twheel_info info;
	__u64 ids[3];

	ASSERT_LE(0, fd);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm_at(fd, i, TW_HOUR, 0, &arms[i]));
		ids[i] = arms[i].id;
		arms[i].expires_ns = 2 * TW_HOUR;
	}
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	HOLD("keys_looked");
	START(&arm);
	AWAIT_HELD("keys_looked");
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(fd, 1));
	RELEASE("keys_looked");
	FINISH(&arm);
	EXPECT_EQ(3, arm.ret);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(i == 1 ? TWHEEL_CREATED : TWHEEL_WAS_PENDING, arms[i].result);
		EXPECT_EQ(i == 1, arms[i].id != ids[i]);
		EXPECT_EQ(arms[i].id, key_id(fd, i));
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(3, info.live);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F(windows, key_that_ends_after_it_was_looked_up_is_written_anew)
{
	int fd = key_virtual(O_NONBLOCK, 0);
	struct side write = {
		.fd = fd, .run = side_write,
		.record = { .op = TWHEEL_OP_ARM, .key = 1, .expires_ns = TW_HOUR },
	};
	struct twheel_arm arm;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(fd, 1, TW_HOUR, 0, &arm));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	HOLD("keys_looked");
	START(&write);
	AWAIT_HELD("keys_looked");
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(fd, 1));
	RELEASE("keys_looked");
	FINISH(&write);
	EXPECT_EQ(1, write.ret);
	id = key_id(fd, 1);
	EXPECT_NE(0, id);
	EXPECT_NE(arm.id, id);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* It would find the key that another thread has armed, and move its timeout. */
TEST_F(windows, writer_that_is_killed_does_not_look_again)
{
	const struct twheel_record record = {
		.op = TWHEEL_OP_ARM, .key = 1, .expires_ns = 2 * TW_HOUR,
	};
	int fd = key_virtual(O_NONBLOCK, 0);
	struct twheel_status status;
	struct twheel_arm arm;
	pid_t pid;

	ASSERT_LE(0, fd);
	HOLD("keys_looked");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		tw_write(fd, &record, 1);
		_exit(0);
	}
	AWAIT_HELD("keys_looked");
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(fd, 1, TW_HOUR, 0, &arm));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	RELEASE("keys_looked");
	EXPECT_EQ(128 + SIGKILL, tw_reap(pid));
	ASSERT_EQ(0, tw_query1(fd, arm.id, &status));
	EXPECT_EQ(TW_HOUR, status.deadline_ns);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- giving memory back, and the mapped table ---------------------------- */

#define BURST		5000

/* Arms a burst of timeouts, all of which are in the wheel then. */
static void burst(struct __test_metadata *_metadata, int fd, __u64 *ids, int nr)
{
	ASSERT_EQ(nr, arm_many(fd, TW_HOUR, nr, ids));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
}

TEST_F(windows, page_stays_while_cancel_uses_it)
{
	struct side cancel = { .fd = self->fd, .run = side_cancel };
	__u64 *ids = calloc(BURST, sizeof(*ids));

	burst(_metadata, self->fd, ids, BURST);
	cancel.id = ids[0];
	HOLD("cancel_good");
	START(&cancel);
	AWAIT_HELD("cancel_good");
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_HITS("shrink_removed", 1);
	tw_sleep(A_WHILE);
	EXPECT_EQ(0, window_see("shrink_frees").hits);
	RELEASE("cancel_good");
	FINISH(&cancel);
	EXPECT_EQ(-ENOENT, cancel.ret);
	AWAIT_HITS("shrink_frees", 1);
	EXPECT_ACCOUNTS(self->fd);
	free(ids);
}

TEST_F(windows, page_removed_after_the_look_began_is_noticed)
{
	struct side cancel = { .fd = self->fd, .run = side_cancel };
	__u64 *ids = calloc(BURST, sizeof(*ids));

	burst(_metadata, self->fd, ids, BURST);
	cancel.id = ids[0];
	HOLD("look_begun");
	START(&cancel);
	AWAIT_HELD("look_begun");
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_HITS("shrink_removed", 1);
	HOLD("cancel_told");
	RELEASE("look_begun");
	ASSERT_TRUE(TW_WAIT_FOR(window_see("cancel_told").held || cancel.done, TW_MS));
	AWAIT_HITS("shrink_frees", 1);
	tw_sleep(A_WHILE);
	RELEASE("cancel_told");
	FINISH(&cancel);
	EXPECT_EQ(-ENOENT, cancel.ret);
	EXPECT_ACCOUNTS(self->fd);
	free(ids);
}

/* Each page is removed, and freed, by itself. */
TEST_F(windows, page_freed_while_rearm_provides_for_periods_is_noticed)
{
	struct side rearm = {
		.fd = self->fd, .run = side_rearm,
		.arm = {
			.flags = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_LATER,
			.expires_ns = 2 * TW_HOUR, .interval_ns = TW_SEC,
		},
	};
	__u64 *ids = calloc(BURST, sizeof(*ids));

	burst(_metadata, self->fd, ids, BURST);
	rearm.arm.id = ids[BURST / 2];
	HOLD("periodic_none");
	START(&rearm);
	AWAIT_HELD("periodic_none");
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_HITS("shrink_ended", 1);
	AWAIT("shrink_frees",
	      window_see("shrink_frees").hits == window_see("shrink_removed").hits);
	RELEASE("periodic_none");
	FINISH(&rearm);
	EXPECT_EQ(-ENOENT, rearm.ret);
	EXPECT_ACCOUNTS(self->fd);
	free(ids);
}

TEST_F(windows, wheel_stays_while_its_pages_are_freed)
{
	__u64 *ids = calloc(BURST, sizeof(*ids));

	burst(_metadata, self->fd, ids, BURST);
	ASSERT_EQ(0, window_say("shrink_frees", "delay 200000 1"));
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_INSIDE("shrink_frees");
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, window_see("shrink_frees").inside);
	free(ids);
}

#define MORE	12000

TEST_F(windows, memory_of_pages_added_as_shrinking_begins_is_given_back)
{
	long long bytes = fdinfo_number(self->fd, "bytes");
	__u64 *ids = calloc(MORE, sizeof(*ids));

	burst(_metadata, self->fd, ids, BURST);
	HOLD("shrink_begun");
	ASSERT_EQ(BURST - 10, cancel_many(self->fd, ids, BURST - 10));
	AWAIT_HELD("shrink_begun");
	ASSERT_EQ(MORE, arm_many(self->fd, TW_HOUR, MORE, ids));
	ASSERT_EQ(MORE, cancel_many(self->fd, ids, MORE));
	RELEASE("shrink_begun");
	EXPECT_TRUE(TW_WAIT_FOR(fdinfo_number(self->fd, "bytes") < bytes + 200000, 20 * TW_MS)) {
		TH_LOG("bytes: %lld, then %lld", bytes, fdinfo_number(self->fd, "bytes"));
	}
	free(ids);
}

TEST_F(windows, memory_wasted_as_shrinking_ends_is_given_back)
{
	long long bytes = fdinfo_number(self->fd, "bytes");
	__u64 *ids = calloc(MORE, sizeof(*ids));

	burst(_metadata, self->fd, ids, MORE);
	HOLD("shrink_ended");
	ASSERT_EQ(8000, cancel_many(self->fd, ids, 8000));
	AWAIT_HELD("shrink_ended");
	ASSERT_EQ(MORE - 8010, cancel_many(self->fd, ids + 8000, MORE - 8010));
	RELEASE("shrink_ended");
	EXPECT_TRUE(TW_WAIT_FOR(fdinfo_number(self->fd, "bytes") < bytes + 120000, 20 * TW_MS)) {
		TH_LOG("bytes: %lld, then %lld", bytes, fdinfo_number(self->fd, "bytes"));
	}
	free(ids);
}

/* The one timeout that lives is the first that the sweep comes upon. */
TEST_F(windows, sweep_waits_while_rearm_changes_a_timeout)
{
	struct side rearm = {
		.fd = self->fd, .run = side_rearm,
		.arm = { .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = 20 * TW_MS },
	};
	__u64 *ids = calloc(BURST, sizeof(*ids));
	struct twheel_event event;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &rearm.arm.id));
	burst(_metadata, self->fd, ids, BURST);
	HOLD("sweep_taken");
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_HELD("sweep_taken");
	ASSERT_EQ(0, window_say("rearm_owned", "delay 300000 1"));
	START_APART(&rearm);
	AWAIT_INSIDE("rearm_owned");
	RELEASE("sweep_taken");
	FINISH(&rearm);
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.ret);
	ASSERT_EQ(0, tw_advance(self->fd, 30 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, rearm.arm.id);
	EXPECT_ACCOUNTS(self->fd);
	free(ids);
}

/* Waits until no more timeouts are armed. */
static void await_still(int fd)
{
	long long before, live = -1;

	do {
		before = live;
		tw_sleep(A_WHILE);
		live = fdinfo_number(fd, "live");
	} while (live != before);
}

static int side_arm_many(struct side *side)
{
	return arm_many(side->fd, side->at_ns, side->nr, NULL);
}

/* With few slots there are hardly more chunks than the entries fill. */
TEST_F(windows, room_taken_as_it_is_lowered_has_its_chunks)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS,
		.flags = TWHEEL_SETUP_ONE_LEVEL, .slots = 128,
	};
	const int nr = 20000, more = 19500;
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct side advance = { .fd = fd, .run = side_advance, .at_ns = 20 * TW_MS };
	struct side arm = { .fd = fd, .run = side_arm_many, .at_ns = 30 * TW_MS, .nr = more };
	struct twheel_event *events = calloc(nr + more + 1, sizeof(*events));

	ASSERT_LE(0, fd);
	ASSERT_EQ(nr, arm_many(fd, 10 * TW_MS, nr, NULL));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	HOLD("room_lowered");
	START(&advance);
	AWAIT_HELD("room_lowered");
	START(&arm);
	/* It has all the room that it gets, and waits for the rest, if it is to wait. */
	AWAIT("room_lowered", fdinfo_number(fd, "live") > nr);
	await_still(fd);
	RELEASE("room_lowered");
	FINISH(&advance);
	FINISH(&arm);
	EXPECT_EQ(more, arm.ret);
	ASSERT_EQ(0, tw_advance(fd, 40 * TW_MS));
	EXPECT_EQ(nr + more, read_all(fd, events, nr + more + 1));
	EXPECT_ACCOUNTS(fd);
	free(events);
	close(fd);
}

/* A table whose first page of words was given back: its user sees a hole there. */
static __u64 *table_with_hole(struct __test_metadata *_metadata, int fd)
{
	__u64 *ids = calloc(BURST, sizeof(*ids));
	__u64 *table;
	int hits;

	table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT_NE(MAP_FAILED, table);
	burst(_metadata, fd, ids, BURST);
	hits = window_see("words_set").hits;
	EXPECT_EQ(BURST, cancel_many(fd, ids, BURST));
	EXPECT_TRUE(TW_WAIT_FOR(window_see("words_set").hits > hits &&
				!window_see("words_set").inside, 20 * TW_MS));
	free(ids);
	return table;
}

static int side_touch(struct side *side)
{
	return *(volatile __u64 *)(uintptr_t)side->at_ns & 0;
}

/* What is stored in the table counts for a timeout that has its word in the first page. */
static void expect_refreshable(struct __test_metadata *_metadata, int fd, void *table)
{
	const int max = 4096;
	struct twheel_status *rows = calloc(max, sizeof(*rows)), status;
	int i, nr = tw_list_all(fd, rows, max, 256);

	ASSERT_LT(0, nr);
	for (i = 0; i < nr; i++)
		if ((__u32)rows[i].id < sysconf(_SC_PAGESIZE) / sizeof(__u64))
			break;
	ASSERT_LT(i, nr);
	ASSERT_EQ(1, tw_refresh(table, rows[i].id, 2 * TW_HOUR, tw_shift(TW_MS)));
	ASSERT_EQ(0, tw_query1(fd, rows[i].id, &status));
	EXPECT_EQ(tw_refreshed_ns(2 * TW_HOUR, tw_shift(TW_MS)), status.deadline_ns);
	free(rows);
}

#define SOME		32

/* Arms some and again some, until a page of words is put where the hole is. */
static int side_fill_hole(struct side *side)
{
	int hits = window_see("words_set").hits, ret = SOME;

	while (ret == SOME && window_see("words_set").hits == hits)
		ret = arm_many(side->fd, TW_HOUR, SOME, NULL);
	return ret;
}

TEST_F(windows, page_of_words_is_mapped_as_soon_as_it_is_set)
{
	__u64 *table = table_with_hole(_metadata, self->fd);
	struct side fill = { .fd = self->fd, .run = side_fill_hole };

	HOLD("words_set");
	START(&fill);
	AWAIT_HELD("words_set");
	(void)*(volatile __u64 *)table;
	RELEASE("words_set");
	FINISH(&fill);
	ASSERT_EQ(SOME, fill.ret);
	ASSERT_EQ(SOME, arm_many(self->fd, TW_HOUR, SOME, NULL));
	expect_refreshable(_metadata, self->fd, table);
}

/*
 * A thread that is held in a page fault holds mmap_lock: no other can be started then, as
 * it needs a stack.
 */
static int side_fill_hole_beside_a_fault(struct side *side)
{
	if (!TW_WAIT_FOR(window_see("words_locked").held, TW_MS))
		return -ETIMEDOUT;
	return side_fill_hole(side);
}

TEST_F(windows, page_of_words_waits_for_a_fault_that_maps_the_hole)
{
	__u64 *table = table_with_hole(_metadata, self->fd);
	struct side fill = { .fd = self->fd, .run = side_fill_hole_beside_a_fault };
	struct side touch = { .run = side_touch, .at_ns = (uintptr_t)table };

	HOLD("words_locked");
	START(&fill);
	AWAIT_ASLEEP(&fill);
	START(&touch);
	AWAIT_HELD("words_locked");
	await_still(self->fd);
	RELEASE("words_locked");
	FINISH(&touch);
	FINISH(&fill);
	ASSERT_EQ(SOME, fill.ret);
	ASSERT_EQ(SOME, arm_many(self->fd, TW_HOUR, SOME, NULL));
	expect_refreshable(_metadata, self->fd, table);
}

TEST_F(windows, fault_that_has_found_the_hole_maps_the_page_that_came)
{
	__u64 *table = table_with_hole(_metadata, self->fd);
	struct side touch = { .run = side_touch, .at_ns = (uintptr_t)table };
	struct side fill = { .fd = self->fd };

	HOLD("words_found");
	START(&touch);
	AWAIT_HELD("words_found");
	ASSERT_EQ(SOME, side_fill_hole(&fill));
	RELEASE("words_found");
	FINISH(&touch);
	ASSERT_EQ(SOME, arm_many(self->fd, TW_HOUR, SOME, NULL));
	expect_refreshable(_metadata, self->fd, table);
}

/* A page may be freed between two look-ups: then the count was read before both. */
TEST_F(windows, batch_reads_the_count_of_removed_pages_once_and_first)
{
	struct large_cancel cancels[3] = {};
	struct large_rearm rearms[3] = {};
	__u64 ids[3];
	int i, hits;

	ASSERT_EQ(3, arm_many(self->fd, TW_HOUR, 3, ids));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	for (i = 0; i < 3; i++) {
		cancels[i].cancel.id = ids[i];
		rearms[i].arm = (struct twheel_arm){ .id = ids[i], .expires_ns = 2 * TW_HOUR };
	}
	hits = window_see("look_begun").hits;
	ASSERT_EQ(3, tw_vector(self->fd, TWHEEL_IOC_REARM, rearms, sizeof(rearms[0]), 3));
	EXPECT_EQ(hits + 1, window_see("look_begun").hits);
	ASSERT_EQ(3, tw_vector(self->fd, TWHEEL_IOC_CANCEL, cancels, sizeof(cancels[0]), 3));
	EXPECT_EQ(hits + 2, window_see("look_begun").hits);
}

/* What has mapped the table holds the file. */
TEST_F(windows, wheel_stays_while_its_words_are_freed)
{
	__u64 *ids = calloc(BURST, sizeof(*ids));
	void *table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, self->fd, 0);

	ASSERT_NE(MAP_FAILED, table);
	ASSERT_EQ(0, munmap(table, sysconf(_SC_PAGESIZE)));
	burst(_metadata, self->fd, ids, BURST);
	ASSERT_EQ(0, window_say("words_set", "delay 200000 1"));
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_INSIDE("words_set");
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, window_see("words_set").inside);
	free(ids);
}

/* Its user's end would wait for that as well; but another wheel of the user is open. */
TEST_F(windows, wheel_stays_until_its_turn_is_over)
{
	int fd = real_wheel();
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, window_say("turn", "delay 500000 1"));
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	AWAIT_INSIDE("turn");
	close(fd);
	EXPECT_EQ(0, window_see("turn").inside);
}

TEST_F(windows, alarm_is_not_set_after_the_last_close)
{
	int fd = real_wheel();
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, 300 * TW_MS, &id));
	ASSERT_EQ(0, window_say("alarm", "delay 50000 1"));
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	AWAIT_INSIDE("alarm");
	close(fd);
	tw_sleep(400 * TW_MS);
}

TEST_HARNESS_MAIN
