// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of a wheel: how many timeouts it holds (max_pending, EAGAIN), and how long
 * a vector is (max_vector, E2BIG).  (The module's limits, ENOSPC, are in
 * twheel_enospc_module.c.)
 */
#include "twheel_test.h"

#include <sys/resource.h>

FIXTURE(limits) {
	int fd;
};

FIXTURE_SETUP(limits)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(limits)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* ---- max_pending --------------------------------------------------------- */

#define PLACES	5

FIXTURE(places) {
	int fd;
	__u64 ids[PLACES];
};

/* A full wheel: one due at each millisecond. */
FIXTURE_SETUP(places)
{
	int i;

	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, PLACES));
	for (i = 0; i < PLACES; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, (i + 1) * TW_MS, &self->ids[i]));
	}
}

FIXTURE_TEARDOWN(places)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Exactly this many can be armed now; leave them armed. */
static void expect_room(struct __test_metadata *_metadata, int fd, int room)
{
	struct twheel_arm arms[PLACES + 2] = {};
	int i;

	for (i = 0; i < PLACES + 2; i++) {
		arms[i].expires_ns = TW_HOUR;
		/* ARM writes the result, and does not read it. */
		arms[i].result = i % 3 - 1;
	}
	EXPECT_EQ(!!room * POLLOUT, tw_poll(fd, POLLOUT, 0));
	EXPECT_EQ(room, tw_arm_vec(fd, arms, PLACES + 2));
	for (i = 0; i < PLACES + 2; i++) {
		EXPECT_EQ(i < room ? TWHEEL_CREATED : -EAGAIN, arms[i].result)
			TH_LOG("element %d, with room for %d", i, room);
	}
	EXPECT_EQ(0, tw_poll(fd, POLLOUT, 0));
}

TEST_F(places, arm_beyond_max_pending_says_eagain_and_changes_nothing)
{
	struct tw_snapshot before;
	__u64 id;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EAGAIN, tw_arm_in(self->fd, TW_MS, &id));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(places, full_wheel_has_no_room)
{
	expect_room(_metadata, self->fd, 0);
}

TEST_F(places, cancelled_timeouts_free_their_places_at_once)
{
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[1]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[3]));
	expect_room(_metadata, self->fd, 2);
}

TEST_F(places, unread_events_hold_their_places)
{
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	expect_room(_metadata, self->fd, 0);
}

TEST_F(places, read_events_free_their_places)
{
	struct twheel_event events[3];

	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_EQ(3, tw_read(self->fd, events, 3));
	expect_room(_metadata, self->fd, 3);
}

TEST_F(places, revoked_events_free_their_places)
{
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->ids[0]));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->ids[4]));
	expect_room(_metadata, self->fd, 2);
}

TEST_F(places, periodic_timeout_keeps_its_place_when_its_event_is_read)
{
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->ids[0], 0, 100, TW_MS / 2));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[1]));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->ids[0]);
	expect_room(_metadata, self->fd, 1);
}

TEST_F(places, rearming_needs_no_free_place)
{
	struct twheel_arm arms[PLACES] = {};
	int i;

	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	for (i = 0; i < PLACES; i++) {
		arms[i].id = self->ids[i];
		arms[i].expires_ns = TW_SEC;
	}
	EXPECT_EQ(PLACES, tw_rearm_vec(self->fd, arms, PLACES));
	expect_room(_metadata, self->fd, 0);
}

TEST_F(places, vector_arms_as_many_as_there_is_room_for)
{
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[2]));
	expect_room(_metadata, self->fd, 1);
}

TEST_F(places, places_stay_exact_over_many_rounds)
{
	struct twheel_event events[PLACES];
	struct twheel_arm arms[PLACES + 1];
	int i, round;

	for (round = 1; round <= 200; round++) {
		ASSERT_EQ(0, tw_advance(self->fd, round * TW_SEC));
		ASSERT_EQ(PLACES, tw_read(self->fd, events, PLACES));
		memset(arms, 0, sizeof(arms));
		for (i = 0; i <= PLACES; i++)
			arms[i].expires_ns = (i + 1) * TW_MS;
		ASSERT_EQ(PLACES, tw_arm_vec(self->fd, arms, PLACES + 1));
		ASSERT_EQ(-EAGAIN, arms[PLACES].result);
	}
}

/* A process sleeps until there is room; each way in which a place gets free wakes it. */
static pid_t fork_waiter(struct __test_metadata *_metadata, int fd)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_poll(fd, POLLOUT, -1) == POLLOUT ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	return pid;
}

TEST_F(places, cancelling_wakes_a_thread_that_waits_for_room)
{
	pid_t pid = fork_waiter(_metadata, self->fd);

	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[0]));
	EXPECT_EQ(0, tw_reap(pid));
}

TEST_F(places, reading_wakes_a_thread_that_waits_for_room)
{
	pid_t pid = fork_waiter(_metadata, self->fd);
	struct twheel_event event;

	EXPECT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(0, tw_reap(pid));
}

/* How often this process has slept so far, for any reason. */
static long sleeps(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		return -1;
	return usage.ru_nvcsw;
}

/*
 * If a timeout is cancelled in the inbox, it keeps its place until the kthread takes the inbox: ARM
 * must not wait for that. This thread may sleep a few times, if the kthread holds a mutex, or if it
 * does not run until this thread has used up the 33,768 places of such a wheel.
 */
TEST_F_TIMEOUT(limits, arming_where_places_are_free_does_not_wait_for_the_kthread, 60)
{
	const int few = 20;
	long slept;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, 1000));
	for (i = 0; i < 900; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	}
	slept = sleeps();
	ASSERT_LE(0, slept);
	for (i = 0; i < 100000; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	}
	slept = sleeps() - slept;
	EXPECT_GE(few, slept);
	printf("# slept %ld times in %d rounds\n", slept, i);
}

/* ---- vectors ------------------------------------------------------------- */

static const unsigned long vector_cmds[] = {
	TWHEEL_IOC_ARM, TWHEEL_IOC_REARM, TWHEEL_IOC_CANCEL, TWHEEL_IOC_QUERY,
};

static const __u32 entry_sizes[] = {
	sizeof(struct twheel_arm), sizeof(struct twheel_arm),
	sizeof(struct twheel_cancel), sizeof(struct twheel_status),
};

TEST_F(places, vector_of_none_succeeds_with_zero)
{
	struct tw_snapshot before;
	int i;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(vector_cmds); i++) {
		EXPECT_EQ(0, tw_vector(self->fd, vector_cmds[i], NULL, entry_sizes[i], 0))
			TH_LOG("command %#lx", vector_cmds[i]);
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(places, vector_longer_than_max_vector_says_e2big_and_does_nothing)
{
	struct tw_snapshot before;
	void *entries;
	int i;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	entries = calloc(before.info.max_vector + 1, sizeof(struct twheel_status));
	ASSERT_NE(NULL, entries);
	/* The element would succeed if the call did it. */
	*(struct twheel_cancel *)entries = (struct twheel_cancel){ .id = self->ids[0] };
	for (i = 0; i < ARRAY_SIZE(vector_cmds); i++) {
		EXPECT_EQ(-E2BIG, tw_vector(self->fd, vector_cmds[i], entries, entry_sizes[i],
					    before.info.max_vector + 1))
			TH_LOG("command %#lx", vector_cmds[i]);
		EXPECT_EQ(-E2BIG, tw_vector(self->fd, vector_cmds[i], entries, entry_sizes[i],
					    ~0U))
			TH_LOG("command %#lx", vector_cmds[i]);
	}
	EXPECT_UNCHANGED(self->fd, &before);
	free(entries);
}

/* This takes half a minute on a busy machine with KASAN. */
TEST_F_TIMEOUT(limits, vector_of_max_vector_is_taken_whole, 120)
{
	struct twheel_arm *arms;
	struct twheel_info info;
	__u32 i, nr;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	nr = info.max_vector < info.max_pending ? info.max_vector : info.max_pending;
	arms = calloc(info.max_vector, sizeof(*arms));
	ASSERT_NE(NULL, arms);
	for (i = 0; i < info.max_vector; i++)
		arms[i].expires_ns = TW_HOUR;
	EXPECT_EQ(nr, tw_arm_vec(self->fd, arms, info.max_vector));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(nr, info.live);
	free(arms);
}

TEST_HARNESS_MAIN
