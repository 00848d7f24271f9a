// SPDX-License-Identifier: GPL-2.0
/*
 * A test holds a thread at a sync point of the module (engine/syncpoint.h), between two of its
 * steps, has another thread make a whole call, and lets the first one go on.
 *
 * The names of tests say what must hold. If an order is wrong in the module, each run shows it, and
 * not only by luck.
 */
#include "twheel_outside.h"
#include "syncpoints.h"

#include <signal.h>
#include <sys/mman.h>

FIXTURE(syncpoints) {
	int fd;			/* a virtual wheel, non-blocking */
};

FIXTURE_SETUP(syncpoints)
{
	if (syncpoint_say("all", "off"))
		SKIP(return, "a module without sync points");
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(syncpoints)
{
	syncpoint_say("all", "off");
	close(self->fd);
}

/* Make a wheel on the monotonic clock. */
static int real_wheel(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS };

	return tw_open_setup(O_NONBLOCK, &setup);
}

/*
 * Wait in user space until the main thread holds a wheel's lock, at the sync point. The next call
 * of this thread finds the lock taken, and other threads no longer wait at the sync point.
 */
static int await_lock_taken(void)
{
	if (!TW_WAIT_FOR(syncpoint_see("locked").inside, TW_MS))
		return -ETIMEDOUT;
	return syncpoint_say("locked", "off");
}

/* Hold a wheel's lock for this long, and keep one of the two processors from all else. */
static void hold_lock(struct __test_metadata *_metadata, int fd, const char *delay)
{
	struct twheel_status status;

	ASSERT_EQ(0, stay_on_processor(0));
	ASSERT_EQ(0, syncpoint_say("locked", delay));
	ASSERT_EQ(-ENOENT, tw_query1(fd, 1, &status));
	ASSERT_EQ(0, syncpoint_say("locked", "off"));
}

#define A_BIT		"delay 500000 1"

/* ---- readers and pollers ------------------------------------------------- */

TEST_F(syncpoints, event_between_queueing_and_checking_ends_poll)
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

TEST_F(syncpoints, poll_beside_drain_reports_no_hup_without_in)
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

/* Drained timeouts are read on the slow path. */
TEST_F(syncpoints, read_beside_drain_gets_the_last_event)
{
	struct side read = { .fd = self->fd, .run = side_read };
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

/* EINTR is for readers that wait. */
TEST_F(syncpoints, nonblocking_read_beside_a_signal_gets_the_events_that_are_there)
{
	const struct sigaction action = { .sa_handler = ignore_signal };
	struct side read = { .fd = self->fd, .run = side_read };
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

TEST_F(syncpoints, reader_gets_events_of_their_size_beside_setup)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .event_size = 64,
	};
	struct side read = { .fd = tw_open(O_NONBLOCK), .run = side_read_bytes };
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
	/* The reader has found no event before SETUP, and checks once more. */
	EXPECT_EQ(setup.event_size, read.ret);
	EXPECT_EQ(id, read.events[0].id);
	close(read.fd);
}

TEST_F(syncpoints, poller_for_out_is_woken_when_there_is_room)
{
	int fd = tw_virtual_for(O_NONBLOCK, 1);
	struct side poll = { .fd = fd, .run = side_poll, .wanted = POLLOUT };
	struct side cancel = { .fd = fd, .run = side_cancel };

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &cancel.id));
	START(&poll);
	AWAIT_ASLEEP(&poll);
	HOLD("places_freed");
	START(&cancel);
	AWAIT_HELD("places_freed");
	tw_sleep(A_WHILE);
	RELEASE("places_freed");
	FINISH(&cancel);
	FINISH(&poll);
	EXPECT_EQ(POLLOUT, poll.ret);
	close(fd);
}

TEST_F(syncpoints, reader_is_woken_when_its_event_is_there)
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
	HOLD("events_added");
	START(&advance);
	AWAIT_HELD("events_added");
	tw_sleep(A_WHILE);
	RELEASE("events_added");
	FINISH(&advance);
	FINISH(&read);
	EXPECT_EQ(1, read.ret);
	close(fd);
}

TEST_F(syncpoints, calls_that_need_the_lock_go_on_while_waiters_are_woken)
{
	struct side advance = { .fd = self->fd, .run = side_advance, .at_ns = 20 * TW_MS };
	struct side query = { .fd = self->fd, .run = side_query };
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_HOUR, &query.id));
	HOLD("events_added");
	START(&advance);
	AWAIT_HELD("events_added");
	START(&query);
	EXPECT_TRUE(TW_WAIT_FOR(query.done, 2 * TW_MS));
	EXPECT_EQ(1, syncpoint_see("events_added").held);
	RELEASE("events_added");
	FINISH(&query);
	FINISH(&advance);
	EXPECT_EQ(0, query.ret);
}

TEST_F(syncpoints, reader_is_woken_when_the_wheel_is_drained)
{
	const struct twheel_setup setup = { .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS };
	int fd = tw_open_setup(0, &setup);
	struct side read = { .fd = fd, .run = side_read };
	struct side drain = { .fd = fd, .run = side_drain };

	ASSERT_LE(0, fd);
	START(&read);
	AWAIT_ASLEEP(&read);
	HOLD("events_added");
	START(&drain);
	AWAIT_HELD("events_added");
	tw_sleep(A_WHILE);
	RELEASE("events_added");
	FINISH(&drain);
	FINISH(&read);
	EXPECT_EQ(0, read.ret);
	close(fd);
}

/* ---- the inbox ----------------------------------------------------------- */

static int side_arm_beside_lock(struct side *side)
{
	int ret = await_lock_taken();

	if (!ret)
		ret = side_arm(side);
	side->at_ns = tw_now(CLOCK_MONOTONIC);
	return ret;
}

/* No later call has to take the lock for that. */
TEST_F(syncpoints, timeout_armed_while_the_lock_is_taken_expires)
{
	int fd = real_wheel();
	struct side arm = { .fd = fd, .run = side_arm_beside_lock, .arm.expires_ns = 20 * TW_MS };
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	START_APART(&arm);
	hold_lock(_metadata, fd, A_BIT);
	/* If the call had waited for the lock, it would not be done. */
	EXPECT_TRUE(arm.done);
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

TEST_F(syncpoints, timeout_added_before_the_lock_is_tried_expires)
{
	int fd = real_wheel();
	struct side arm = { .fd = fd, .run = side_arm_beside_lock, .arm.expires_ns = 20 * TW_MS };
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	HOLD("arm_added");
	START_APART(&arm);
	hold_lock(_metadata, fd, A_BIT);
	AWAIT_HELD("arm_added");
	RELEASE("arm_added");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

TEST_F(syncpoints, timeout_armed_before_the_inbox_is_checked_expires)
{
	int fd = real_wheel();
	struct side query = { .fd = fd, .run = side_query };
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &query.id));
	HOLD("unlocked");
	START_APART(&query);
	AWAIT_HELD("unlocked");
	ASSERT_EQ(0, tw_arm_in(fd, 20 * TW_MS, &id));
	RELEASE("unlocked");
	FINISH(&query);
	EXPECT_EQ(0, query.ret);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

static int side_arm_beside_lock_and_read(struct side *side)
{
	int ret = side_arm_beside_lock(side);

	return ret ? ret : side_read(side);
}

/* The ARM leaves its timeout to the thread that has the lock, and the read finds the event. */
TEST_F(syncpoints, read_after_an_arm_of_a_past_deadline_beside_the_lock_finds_its_event)
{
	int fd = real_wheel();
	struct side arm = {
		.fd = fd, .run = side_arm_beside_lock_and_read,
		.arm = { .expires_ns = 1, .flags = TWHEEL_ARM_ABSOLUTE },
	};
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	START_APART(&arm);
	hold_lock(_metadata, fd, A_BIT);
	FINISH(&arm);
	EXPECT_EQ(1, arm.ret);
	EXPECT_EQ(1, arm.events[0].deadline_ns);
	close(fd);
}

/* Never leave the processor, until the test asks for it. */
static int side_hog(struct side *side)
{
	const struct sched_param fifo = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		return -errno;
	side->has_begun = 1;
	if (stay_on_processor(1))
		return -errno;
	while (!side->may_end)
		;
	return 0;
}

/* G2: if the holder of the lock is preempted by another thread, no timeout is late. */
TEST_F(syncpoints, timeout_armed_while_a_starving_thread_has_the_lock_expires)
{
	int fd = real_wheel();
	struct side query = { .fd = fd, .run = side_query };
	struct side hog = { .run = side_hog };
	bool comes;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &query.id));
	ASSERT_EQ(0, tw_let_realtime_starve(true));
	HOLD("locked");
	START_APART(&query);
	AWAIT_HELD("locked");
	START(&hog);
	ASSERT_TRUE(TW_WAIT_FOR(hog.has_begun, TW_MS));
	tw_sleep(A_WHILE);
	ASSERT_EQ(0, tw_arm_in(fd, 20 * TW_MS, &id));
	RELEASE("locked");
	comes = event_comes(fd);
	hog.may_end = 1;
	FINISH(&hog);
	FINISH(&query);
	ASSERT_EQ(0, tw_let_realtime_starve(false));
	EXPECT_EQ(0, hog.ret);
	EXPECT_EQ(0, query.ret);
	EXPECT_TRUE(comes);
	close(fd);
}

TEST_F(syncpoints, timeouts_whose_ticks_pass_before_they_are_submitted_are_events)
{
	static const __u64 at_ms[] = { 63, 20, 40, 10 };
	struct twheel_arm arms[4] = {};
	struct side arm = { .fd = self->fd, .run = side_arm_vec, .arms = arms, .nr = 4 };
	struct twheel_event events[4];
	struct twheel_info info;
	__u64 sum = 0;
	int i;

	for (i = 0; i < 4; i++) {
		arms[i].flags = TWHEEL_ARM_ABSOLUTE;
		arms[i].expires_ns = at_ms[i] * TW_MS;
	}
	HOLD("arm_copied");
	START(&arm);
	AWAIT_HELD("arm_copied");
	ASSERT_EQ(0, tw_advance(self->fd, 64 * TW_MS));
	RELEASE("arm_copied");
	FINISH(&arm);
	ASSERT_EQ(4, arm.ret);
	ASSERT_EQ(4, tw_read(self->fd, events, 4));
	for (i = 0; i < 4; i++) {
		sum += events[i].deadline_ns;
		EXPECT_EQ(64 * TW_MS, events[i].fired_ns);
	}
	EXPECT_EQ((63 + 20 + 40 + 10) * TW_MS, sum);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(4, info.expirations);
	EXPECT_ACCOUNTS(self->fd);
}

/* ---- the alarm ------------------------------------------------------------ */

/* This is more than the softirq takes in one step. */
#define CROWD		200

static int read_in_time(int fd, int nr)
{
	struct twheel_event events[CROWD];
	int got = 0, ret;

	while (got < nr && event_comes(fd)) {
		ret = tw_read(fd, events, CROWD);
		if (ret < 0)
			return ret;
		got += ret;
	}
	return got;
}

TEST_F(syncpoints, timeout_whose_alarm_finds_the_lock_taken_expires)
{
	int fd = real_wheel();
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, 50 * TW_MS, &id));
	hold_lock(_metadata, fd, A_BIT);
	EXPECT_TRUE(event_comes(fd));
	close(fd);
}

static int side_arm_crowd(struct side *side)
{
	__u64 id;
	int err = tw_arm_at(side->fd, side->at_ns + TW_SEC, &id);

	return err ? err : arm_many(side->fd, side->at_ns, CROWD, NULL);
}

/*
 * Let the alarm of many timeouts ring on the other processor, and its first step be done. One more
 * timeout is due a second later.
 */
static int begin_slow_pass(struct __test_metadata *_metadata)
{
	struct side arm = {
		.fd = real_wheel(), .run = side_arm_crowd,
		.at_ns = tw_now(CLOCK_MONOTONIC) + 300 * TW_MS,
	};

	EXPECT_LE(0, arm.fd);
	START_APART(&arm);
	FINISH(&arm);
	EXPECT_EQ(CROWD, arm.ret);
	ASSERT_EQ(0, syncpoint_say("unlocked", "delay 200000 1"));
	AWAIT_INSIDE("unlocked");
	return arm.fd;
}

TEST_F(syncpoints, timeouts_whose_pass_loses_the_lock_expire)
{
	int fd = begin_slow_pass(_metadata);

	hold_lock(_metadata, fd, A_BIT);
	ASSERT_EQ(0, syncpoint_say("unlocked", "off"));
	EXPECT_EQ(CROWD + 1, read_in_time(fd, CROWD + 1));
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* The ARM has already set the alarm again. */
TEST_F(syncpoints, timeouts_expire_beside_one_that_is_armed_during_their_pass)
{
	int fd = begin_slow_pass(_metadata);
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, syncpoint_say("unlocked", "off"));
	EXPECT_EQ(CROWD + 1, read_in_time(fd, CROWD + 1));
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- DRAIN beside ARM ---------------------------------------------------- */

static void begin_drain(struct __test_metadata *_metadata, struct side *drain)
{
	START(drain);
	ASSERT_TRUE(TW_WAIT_FOR(tw_rearm1(drain->fd, 1, 0, TW_HOUR, 0) == -ESHUTDOWN, TW_MS));
	tw_sleep(A_WHILE);
}

static void expect_none_left(struct __test_metadata *_metadata, int fd)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, info.live);
	EXPECT_ACCOUNTS(fd);
}

TEST_F(syncpoints, drain_finds_what_arm_is_about_to_add_to_the_inbox)
{
	struct side arm = {
		.fd = self->fd, .run = side_arm_beside_lock, .arm.expires_ns = 10 * TW_MS,
	};
	struct side drain = { .fd = self->fd, .run = side_drain };
	struct twheel_event events[2];
	int i, nr, nr_found = 0;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	HOLD("arm_checked");
	START_APART(&arm);
	hold_lock(_metadata, self->fd, A_BIT);
	AWAIT_HELD("arm_checked");
	begin_drain(_metadata, &drain);
	RELEASE("arm_checked");
	FINISH(&arm);
	FINISH(&drain);
	EXPECT_EQ(0, arm.ret);
	EXPECT_EQ(0, drain.ret);
	nr = read_all(self->fd, events, 2);
	for (i = 0; i < nr; i++)
		nr_found += events[i].id == arm.arm.id;
	EXPECT_EQ(1, nr_found);
	expect_none_left(_metadata, self->fd);
}

/* The id that was copied out names nothing, and the element says so. */
TEST_F(syncpoints, arm_that_copied_an_id_out_takes_it_back_when_drain_comes_first)
{
	struct side arm = { .fd = self->fd, .run = side_arm, .arm.expires_ns = 10 * TW_MS };
	struct side drain = { .fd = self->fd, .run = side_drain };
	struct twheel_status status;
	__u64 id, told;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	HOLD("arm_copied");
	START(&arm);
	AWAIT_HELD("arm_copied");
	told = __atomic_load_n(&arm.arm.id, __ATOMIC_RELAXED);
	EXPECT_NE(0, told);
	begin_drain(_metadata, &drain);
	RELEASE("arm_copied");
	FINISH(&arm);
	FINISH(&drain);
	EXPECT_EQ(-ESHUTDOWN, arm.ret);
	EXPECT_EQ(0, arm.arm.id);
	EXPECT_EQ(-ESHUTDOWN, arm.arm.result);
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, told, &status));
	EXPECT_EQ(1, read_all(self->fd, drain.events, 4));
	EXPECT_EQ(id, drain.events[0].id);
	expect_none_left(_metadata, self->fd);
}

/* ---- the order in which things become visible ---------------------------- */

TEST_F(syncpoints, wheel_is_complete_when_others_see_it_started)
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

TEST_F(syncpoints, new_page_is_found_by_threads_that_get_its_places)
{
	struct side first = { .fd = self->fd, .run = side_arm, .arm.expires_ns = 10 * TW_MS };
	struct side second = first;
	struct twheel_event events[4];
	struct twheel_status status;

	HOLD("page_added");
	START(&first);
	AWAIT_HELD("page_added");
	START(&second);
	tw_sleep(A_WHILE);
	if (second.done && !second.ret) {
		EXPECT_EQ(0, tw_query1(self->fd, second.arm.id, &status));
	}
	RELEASE("page_added");
	FINISH(&first);
	FINISH(&second);
	EXPECT_EQ(0, first.ret);
	EXPECT_EQ(0, second.ret);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_EQ(2, read_all(self->fd, events, 4));
}

TEST_F(syncpoints, page_gets_its_periodic_fields_once)
{
	struct side arm = {
		.fd = self->fd, .run = side_arm,
		.arm = { .expires_ns = 10 * TW_MS, .interval_ns = 10 * TW_MS },
	};
	struct twheel_arm other = {
		.expires_ns = 10 * TW_MS, .interval_ns = 7 * TW_MS, .repeats = 5,
	};
	struct twheel_status status;

	HOLD("extra_none");
	START(&arm);
	AWAIT_HELD("extra_none");
	ASSERT_EQ(0, tw_arm_entry(self->fd, &other));
	RELEASE("extra_none");
	FINISH(&arm);
	EXPECT_EQ(0, arm.ret);
	ASSERT_EQ(0, tw_query1(self->fd, other.id, &status));
	EXPECT_EQ(7 * TW_MS, status.interval_ns);
	EXPECT_EQ(5, status.repeats_left);
	ASSERT_EQ(0, tw_query1(self->fd, arm.arm.id, &status));
	EXPECT_EQ(10 * TW_MS, status.interval_ns);
}

/* ---- giving memory back, and the mapped table ---------------------------- */

#define BURST		5000

/* Each page is removed and freed on its own. */
TEST_F(syncpoints, page_freed_while_rearm_provides_for_periods_is_noticed)
{
	struct side rearm = {
		.fd = self->fd, .run = side_rearm,
		.arm = {
			.flags = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_LATER,
			.expires_ns = 2 * TW_HOUR, .interval_ns = TW_SEC,
		},
	};
	__u64 *ids = calloc(BURST, sizeof(*ids));
	long long bytes;

	ASSERT_EQ(BURST, arm_many(self->fd, TW_HOUR, BURST, ids));
	rearm.arm.id = ids[BURST / 2];
	HOLD("extra_none");
	START(&rearm);
	AWAIT_HELD("extra_none");
	bytes = tw_fdinfo_number(self->fd, "bytes");
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	ASSERT_TRUE(TW_WAIT_FOR(tw_fdinfo_number(self->fd, "bytes") < bytes / 4, 20 * TW_MS));
	RELEASE("extra_none");
	FINISH(&rearm);
	EXPECT_EQ(-ENOENT, rearm.ret);
	EXPECT_ACCOUNTS(self->fd);
	free(ids);
}

/* Make a table whose first page of words was given back: its user sees a hole there. */
static __u64 *table_with_hole(struct __test_metadata *_metadata, int fd)
{
	__u64 *ids = calloc(BURST, sizeof(*ids));
	__u64 *table, id;
	int i, hits;

	table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT_NE(MAP_FAILED, table);
	EXPECT_EQ(BURST, arm_many(fd, TW_HOUR, BURST, ids));
	/* The pages that become free last are given back, except for some. */
	for (i = 0; i < BURST / 2; i++) {
		id = ids[i];
		ids[i] = ids[BURST - 1 - i];
		ids[BURST - 1 - i] = id;
	}
	hits = syncpoint_see("words_set").hits;
	EXPECT_EQ(BURST, cancel_many(fd, ids, BURST));
	EXPECT_TRUE(TW_WAIT_FOR(syncpoint_see("words_set").hits > hits &&
				!syncpoint_see("words_set").inside, 20 * TW_MS));
	free(ids);
	return table;
}

static int side_touch(struct side *side)
{
	return *(volatile __u64 *)(uintptr_t)side->at_ns & 0;
}

/* Expect that a store into the table counts for a timeout that has its word in the first page. */
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

/* Arm some timeouts again and again, until a page of words fills the hole. */
static int side_fill_hole(struct side *side)
{
	int hits = syncpoint_see("words_set").hits, ret = SOME;

	while (ret == SOME && syncpoint_see("words_set").hits == hits)
		ret = arm_many(side->fd, TW_HOUR, SOME, NULL);
	return ret;
}

TEST_F(syncpoints, page_of_words_is_mapped_as_soon_as_it_is_set)
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
 * If a thread is held in a page fault, it holds mmap_lock: no other can be started then, since it
 * needs a stack.
 */
static int side_fill_hole_beside_a_fault(struct side *side)
{
	if (!TW_WAIT_FOR(syncpoint_see("words_locked").held, TW_MS))
		return -ETIMEDOUT;
	return side_fill_hole(side);
}

TEST_F(syncpoints, page_of_words_waits_for_a_fault_that_maps_the_hole)
{
	__u64 *table = table_with_hole(_metadata, self->fd);
	struct side fill = { .fd = self->fd, .run = side_fill_hole_beside_a_fault };
	struct side touch = { .run = side_touch, .at_ns = (uintptr_t)table };

	HOLD("words_locked");
	START(&fill);
	AWAIT_ASLEEP(&fill);
	START(&touch);
	AWAIT_HELD("words_locked");
	tw_sleep(A_WHILE);
	RELEASE("words_locked");
	FINISH(&touch);
	FINISH(&fill);
	ASSERT_EQ(SOME, fill.ret);
	ASSERT_EQ(SOME, arm_many(self->fd, TW_HOUR, SOME, NULL));
	expect_refreshable(_metadata, self->fd, table);
}

TEST_F(syncpoints, fault_that_has_found_the_hole_maps_the_page_that_came)
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

/* The table is made after ARM has looked for the place of its word. */
TEST_F(syncpoints, timeout_armed_before_the_table_is_made_can_be_refreshed)
{
	struct side arm = { .fd = self->fd, .run = side_arm, .arm.expires_ns = TW_HOUR };
	void *table;

	HOLD("arm_copied");
	START(&arm);
	AWAIT_HELD("arm_copied");
	table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, table);
	RELEASE("arm_copied");
	FINISH(&arm);
	ASSERT_EQ(0, arm.ret);
	expect_refreshable(_metadata, self->fd, table);
}

/* A mapping of the table holds the file. */
TEST_F(syncpoints, wheel_stays_while_its_words_are_freed)
{
	__u64 *ids = calloc(BURST, sizeof(*ids));
	void *table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, self->fd, 0);

	ASSERT_NE(MAP_FAILED, table);
	ASSERT_EQ(0, munmap(table, sysconf(_SC_PAGESIZE)));
	ASSERT_EQ(BURST, arm_many(self->fd, TW_HOUR, BURST, ids));
	ASSERT_EQ(0, syncpoint_say("words_set", "delay 200000 1"));
	ASSERT_EQ(BURST, cancel_many(self->fd, ids, BURST));
	AWAIT_INSIDE("words_set");
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, syncpoint_see("words_set").inside);
	free(ids);
}

/* ---- the last close ------------------------------------------------------ */

/*
 * The kthread makes the pass, since the lock is taken when the alarm rings.  The end of its user
 * would wait for that as well, so another wheel of the user is open.
 */
TEST_F(syncpoints, wheel_stays_until_its_turn_is_over)
{
	bool inside = false;
	int i, fd, tries;
	__u64 id, now_ns;

	/* If the machine is busy, the alarm may ring too late, and the softirq makes the pass. */
	for (tries = 0; tries < 5 && !inside; tries++) {
		fd = real_wheel();
		ASSERT_LE(0, fd);
		now_ns = tw_now(CLOCK_MONOTONIC);
		EXPECT_EQ(0, tw_arm_at(fd, now_ns + 2 * TW_SEC, &id));
		EXPECT_EQ(CROWD, arm_many(fd, now_ns + 50 * TW_MS, CROWD, NULL));
		EXPECT_EQ(0, syncpoint_say("events_added", A_BIT));
		hold_lock(_metadata, fd, A_BIT);
		for (i = 0; i < 500 && !inside; i++) {
			inside = syncpoint_see("events_added").inside > 0;
			tw_sleep(2 * TW_MS);
		}
		close(fd);
		EXPECT_EQ(0, syncpoint_see("events_added").inside);
	}
	EXPECT_TRUE(inside);
}

TEST_F(syncpoints, alarm_is_not_set_after_the_last_close)
{
	struct twheel_status status;
	int fd = real_wheel();
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, stay_on_processor(0));
	ASSERT_EQ(0, tw_arm_in(fd, 3 * TW_SEC, &id));
	ASSERT_EQ(0, tw_arm_in(fd, 300 * TW_MS, &id));
	/*
	 * QUERY has the lock when the alarm rings, so the kthread has it next: in a step after
	 * which it sets the alarm.
	 */
	ASSERT_EQ(0, syncpoint_say("locked", A_BIT));
	ASSERT_EQ(-ENOENT, tw_query1(fd, 1, &status));
	ASSERT_TRUE(TW_WAIT_FOR(syncpoint_see("locked").inside > 0, 2 * TW_MS));
	close(fd);
	tw_sleep(3 * TW_SEC);
}

TEST_F(syncpoints, wheel_stays_until_its_alarm_has_rung)
{
	struct side arm = { .fd = real_wheel(), .run = side_arm, .arm.expires_ns = 50 * TW_MS };

	ASSERT_LE(0, arm.fd);
	ASSERT_EQ(0, syncpoint_say("events_added", A_BIT));
	START_APART(&arm);
	FINISH(&arm);
	AWAIT_INSIDE("events_added");
	close(arm.fd);
	EXPECT_EQ(0, syncpoint_see("events_added").inside);
}

TEST_HARNESS_MAIN
