// SPDX-License-Identifier: GPL-2.0
/*
 * ENOSPC: all wheels together, and those of one user, take as much memory as max_memory_kb and
 * max_user_memory_kb say, and then no more.  If a call is refused, it changes nothing; if timeouts
 * or wheels end, there is room again.
 *
 * The program loads and unloads the module itself, with the smallest limits;
 * TWHEEL_KO names the file.
 */
#include "twheel_module.h"
#include "twheel_namespace.h"

#include <pthread.h>
#include <sys/mman.h>

FIXTURE(enospc) {
};

FIXTURE_SETUP(enospc)
{
	/* If a test failed, it has left the module. */
	tw_unload_soon();
	ASSERT_NE(0, access(TW_PARAMETERS, F_OK));
}

FIXTURE_TEARDOWN(enospc)
{
	tw_unload_soon();
}

/* The smallest limits, which one user may use up, and more timeouts than fit into them. */
#define LIMITED		"max_memory_kb=256 max_user_memory_kb=256"
#define TIMEOUTS	(256 * 1024 / 40)

/* Arm until one is refused with ENOSPC; return how many were armed. */
static int fill(struct __test_metadata *_metadata, int fd, __u64 *ids)
{
	int nr = 0, ret;

	while (!(ret = tw_arm_in(fd, TW_HOUR, &ids[nr]))) {
		nr++;
		ASSERT_GE(TIMEOUTS, nr);
	}
	EXPECT_EQ(-ENOSPC, ret);
	return nr;
}

static int open_virtual(struct __test_metadata *_metadata)
{
	int fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);

	ASSERT_LE(0, fd);
	return fd;
}

TEST_F(enospc, wheels_together_take_max_memory_and_then_say_enospc)
{
	int i, fds[3], nr, total = 0;
	__u64 ids[TIMEOUTS + 1], id;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	for (i = 0; i < 3; i++) {
		fds[i] = open_virtual(_metadata);
	}
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, tw_arm_in(fds[0], TW_HOUR, &id));
		ASSERT_EQ(0, tw_arm_in(fds[1], TW_HOUR, &id));
		total += 2;
	}
	nr = fill(_metadata, fds[2], ids);
	total += nr;
	/* A wheel itself takes some 40 kB. */
	EXPECT_LE(700, total);
	for (i = 0; i < 3; i++) {
		EXPECT_ACCOUNTS(fds[i]);
		close(fds[i]);
	}
}

/* Each wheel takes four kilobytes, so that some sixty fill the limit. */
TEST_F(enospc, wheel_that_is_never_armed_takes_memory_of_its_user)
{
	int i, fds[200];

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	for (i = 0; i < (int)ARRAY_SIZE(fds) && (fds[i] = tw_open(O_CLOEXEC)) >= 0; i++)
		;
	ASSERT_GT(ARRAY_SIZE(fds), i)
		TH_LOG("%d wheels were opened", i);
	EXPECT_EQ(-ENOSPC, fds[i]);
	EXPECT_LT(10, i);
	/* REOPEN opens the device as well. */
	EXPECT_EQ(-ENOSPC, tw_reopen(fds[0], O_RDWR | O_CLOEXEC));
	while (i--)
		close(fds[i]);
}

TEST_F(enospc, refused_call_changes_nothing)
{
	const struct twheel_record record = { .op = TWHEEL_OP_ARM, .expires_ns = TW_HOUR };
	struct twheel_arm with_slack = { .expires_ns = TW_HOUR, .slack_ticks = 1 };
	struct twheel_info before, after;
	__u64 ids[TIMEOUTS + 1], id;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = open_virtual(_metadata);
	fill(_metadata, fd, ids);
	ASSERT_EQ(0, tw_info(fd, &before));
	EXPECT_EQ(-ENOSPC, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_info(fd, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(after)));
	EXPECT_EQ(-ENOSPC, tw_write(fd, &record, 1));
	with_slack.id = ids[0];
	EXPECT_EQ(0, tw_rearm_vec(fd, &with_slack, 1));
	EXPECT_EQ(-ENOSPC, with_slack.result);
	/* There is a place, and no memory for it: poll() says nothing about that. */
	EXPECT_EQ(POLLOUT, tw_poll(fd, POLLOUT, 0));
	/* The timeouts that are there work as before. */
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, ids[0], 0, 2 * TW_HOUR, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, ids[0]));
	close(fd);
}

TEST_F(enospc, refresh_table_for_which_there_is_no_memory_says_enospc)
{
	size_t page = sysconf(_SC_PAGESIZE);
	__u64 ids[TIMEOUTS + 1];
	void *table;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = open_virtual(_metadata);
	fill(_metadata, fd, ids);
	errno = 0;
	table = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT_EQ(MAP_FAILED, table);
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, ids[0]));
	close(fd);
}

/* The slots take 8 MB. */
TEST_F(enospc, slots_of_a_wide_wheel_count_as_memory)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.slots = TWHEEL_SLOTS_MAX,
	};
	__u64 id;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOSPC, tw_setup_full(fd, &setup));
	/* If a SETUP is refused, the wheel is as it was. */
	setup.slots = 1024;
	EXPECT_EQ(0, tw_setup_full(fd, &setup));
	EXPECT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* If a program goes on without another SETUP, its wheel is as if there had been none. */
TEST_F(enospc, refused_setup_leaves_none_of_its_values)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = 5 * TW_MS,
		.slots = TWHEEL_SLOTS_MAX,
		.flags = TWHEEL_SETUP_ONE_LEVEL | TWHEEL_SETUP_KEYED,
		.slack_ns = 7 * TW_MS,
		.event_size = TWHEEL_EVENT_SIZE_MIN + 8,
		.max_pending = 3,
	};
	struct twheel_info before, after;
	__u64 id;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &before));
	EXPECT_EQ(-ENOSPC, tw_setup_full(fd, &setup));
	/* Check before INFO, which gives a wheel that has not started the present defaults. */
	EXPECT_EQ(-EOPNOTSUPP, tw_advance(fd, TW_MS));
	ASSERT_EQ(0, tw_info(fd, &after));
	/* The clock goes on. */
	EXPECT_LE(before.now_ns, after.now_ns);
	after.now_ns = before.now_ns;
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(after)));
	EXPECT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_info(fd, &after));
	EXPECT_EQ(before.clock, after.clock);
	EXPECT_EQ(before.tick_ns, after.tick_ns);
	EXPECT_EQ(before.slots, after.slots);
	EXPECT_EQ(before.setup_flags, after.setup_flags);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* Only a SETUP that succeeds makes the clock that of its caller's time namespace. */
TEST_F(enospc, refused_setup_does_not_choose_the_time_namespace)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.slots = TWHEEL_SLOTS_MAX,
	};
	int fd, ret = tw_namespace_for_children("monotonic", 100000);
	pid_t pid;

	if (ret)
		SKIP(return, "no time namespaces: %s", strerror(-ret));
	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, fd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (tw_setup_full(fd, &setup) != -ENOSPC)
			_exit(1);
		_exit(tw_clock_is_ours(fd, CLOCK_MONOTONIC) ? 0 : 2);
	}
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_TRUE(tw_clock_is_ours(fd, CLOCK_MONOTONIC));
	close(fd);
}

TEST_F(enospc, closing_one_wheel_makes_room_in_another)
{
	__u64 ids[TIMEOUTS + 1], id;
	int full, other, ret;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	full = open_virtual(_metadata);
	other = open_virtual(_metadata);
	fill(_metadata, full, ids);
	ASSERT_EQ(-ENOSPC, tw_arm_in(other, TW_HOUR, &id));
	close(full);
	/* Its memory may stay in use for a grace period. */
	TW_WAIT_FOR((ret = tw_arm_in(other, TW_HOUR, &id)) != -ENOSPC, TW_MS);
	EXPECT_EQ(0, ret);
	close(other);
}

#define OTHER_UID	12345

/* Open wheels and arm until ENOSPC; return how many timeouts were armed, or another -errno. */
static int take(void)
{
	int fd, nr = 0;
	__u64 id;

	while ((fd = tw_open(O_NONBLOCK | O_CLOEXEC)) >= 0) {
		while (!tw_arm_in(fd, TW_HOUR, &id))
			nr++;
	}
	return fd == -ENOSPC ? nr : fd;
}

/* Take the share of a user, and also the memory that is free after a grace period. */
static bool take_all(void)
{
	int nr, total = 0;

	do {
		nr = take();
		total += nr;
		tw_sleep(100 * TW_MS);
	} while (nr > 0);
	return !nr && total >= 900;
}

/* If a user takes all the memory of a user, the other half is left for another one. */
TEST_F(enospc, share_of_one_user_leaves_enough_for_another)
{
	__u64 ids[TIMEOUTS + 1];
	int hold[2], done[2], fd;
	char c = 0;
	pid_t pid;

	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=512"));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	ASSERT_EQ(0, pipe(hold));
	ASSERT_EQ(0, pipe(done));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgid(OTHER_UID) || setuid(OTHER_UID))
			_exit(1);
		c = take_all();
		if (write(done[1], &c, 1) != 1 || read(hold[0], &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(1, read(done[0], &c, 1));
	EXPECT_EQ(1, c);
	fd = open_virtual(_metadata);
	EXPECT_LE(900, fill(_metadata, fd, ids));
	close(fd);
	ASSERT_EQ(1, write(hold[1], &c, 1));
	EXPECT_EQ(0, tw_reap(pid));
}

static bool gets_nothing(void)
{
	int fd = tw_open(O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd == -ENOSPC;
}

enum { TAKE_ALL, GET_NOTHING, GET_NOTHING_OTHERWISE };

/* Try as another user of the container, or in a namespace within it. */
static bool gets_nothing_otherwise(void)
{
	uid_t uid;

	for (uid = 1; uid < 10; uid++) {
		if (setresuid(uid, 0, 0) || !gets_nothing())
			return false;
	}
	return !setresuid(0, 0, 0) && !unshare(CLONE_NEWUSER) && gets_nothing();
}

static bool container_step(char what)
{
	switch (what) {
	case TAKE_ALL:
		return take_all();
	case GET_NOTHING:
		return gets_nothing();
	default:
		return gets_nothing_otherwise();
	}
}

/* If one container takes its share, with any of its users, neither the other nor root loses any. */
TEST_F(enospc, containers_of_root_have_a_share_each)
{
	struct tw_container one, two;
	__u64 ids[TIMEOUTS + 1];
	int fd;

	if (!tw_has_user_namespaces())
		SKIP(return, "no user namespaces");
	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=1024 max_user_memory_kb=256"));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	ASSERT_EQ(0, tw_container_start(&one, 0, container_step));
	ASSERT_EQ(0, tw_container_start(&two, 0, container_step));
	EXPECT_TRUE(tw_container_step(&one, TAKE_ALL));
	EXPECT_TRUE(tw_container_step(&one, GET_NOTHING_OTHERWISE));
	EXPECT_TRUE(tw_container_step(&two, TAKE_ALL));
	fd = open_virtual(_metadata);
	EXPECT_LE(900, fill(_metadata, fd, ids));
	close(fd);
	EXPECT_EQ(0, tw_container_end(&one));
	EXPECT_EQ(0, tw_container_end(&two));
}

/* Any user may make namespaces, but they are no way around the limit. */
TEST_F(enospc, namespaces_of_one_user_have_one_share)
{
	struct tw_container one, two, another;

	if (!tw_has_user_namespaces())
		SKIP(return, "no user namespaces");
	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=1024 max_user_memory_kb=256"));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	ASSERT_EQ(0, tw_container_start(&one, OTHER_UID, container_step));
	EXPECT_TRUE(tw_container_step(&one, TAKE_ALL));
	EXPECT_TRUE(tw_container_step(&one, GET_NOTHING));
	ASSERT_EQ(0, tw_container_start(&two, OTHER_UID, container_step));
	EXPECT_TRUE(tw_container_step(&two, GET_NOTHING));
	ASSERT_EQ(0, setresuid(OTHER_UID, 0, 0));
	EXPECT_TRUE(gets_nothing());
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_EQ(0, tw_container_start(&another, OTHER_UID + 1, container_step));
	EXPECT_TRUE(tw_container_step(&another, TAKE_ALL));
	EXPECT_EQ(0, tw_container_end(&one));
	EXPECT_EQ(0, tw_container_end(&two));
	EXPECT_EQ(0, tw_container_end(&another));
}

/* More users than there is memory for, one after the other.  A user is whoever opens. */
TEST_F(enospc, users_who_have_gone_take_no_memory)
{
	int i, fd;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	for (i = 1; i <= 2000; i++) {
		ASSERT_EQ(0, setresuid(OTHER_UID + i, 0, 0));
		TW_WAIT_FOR((fd = tw_open(O_NONBLOCK)) != -ENOSPC, TW_MS);
		EXPECT_LE(0, fd)
			TH_LOG("user %d", i);
		close(fd);
		if (fd < 0)
			break;
	}
	ASSERT_EQ(0, setresuid(0, 0, 0));
}

/* The limit is not reached any more: neither cancelled timeouts nor read events count. */
TEST_F(enospc, cancelled_timeouts_make_room_again)
{
	__u64 ids[TIMEOUTS + 1], id;
	int fd, i, nr;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = open_virtual(_metadata);
	nr = fill(_metadata, fd, ids);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, ids[i]));
	}
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id))
			TH_LOG("%d of %d", i, nr);
	}
	close(fd);
}

/* More than the limit that is set later. */
#define MANY		12000

TEST_F(enospc, lowered_limit_takes_nothing_away_and_gives_no_more)
{
	static const char * const limits[] = { "max_memory_kb", "max_user_memory_kb" };
	static struct twheel_event events[MANY + 1000];
	int i, k, fd, nr;
	__u64 id;

	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=8192 max_user_memory_kb=8192"));
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		fd = open_virtual(_metadata);
		for (nr = 0; nr < MANY; nr++)
			ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
		ASSERT_EQ(0, tw_write_parameter(limits[i], "256"));
		EXPECT_EQ(-ENOSPC, tw_open(O_NONBLOCK));
		/* The places that were made belong to the wheel. */
		for (k = -1; nr < MANY + 1000; nr++) {
			k = tw_arm_in(fd, TW_HOUR, &id);
			if (k)
				break;
		}
		EXPECT_EQ(-ENOSPC, k);
		ASSERT_EQ(0, tw_advance(fd, TW_HOUR));
		EXPECT_EQ(nr, tw_read(fd, events, MANY + 1000));
		/* The places are free again, and still belong to the wheel. */
		ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
		ASSERT_EQ(0, tw_write_parameter(limits[i], "8192"));
		for (nr = 1; nr < MANY + 1000; nr++)
			ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
		close(fd);
	}
}

static struct {
	_Atomic bool ends;
	_Atomic int taken, refused, wrong;
} crowd;

/* Open wheels, fill and empty them, and close them. */
static void *crowd_run(void *unused)
{
	static const int some = 2000;
	__u64 ids[some];
	int fd, i, nr, ret;

	while (!crowd.ends) {
		fd = tw_open(O_NONBLOCK | O_CLOEXEC);
		if (fd < 0) {
			crowd.refused++;
			crowd.wrong += fd != -ENOSPC;
			continue;
		}
		for (nr = 0; nr < some; nr++) {
			ret = tw_arm_in(fd, TW_HOUR, &ids[nr]);
			if (ret) {
				crowd.refused++;
				crowd.wrong += ret != -ENOSPC;
				break;
			}
		}
		crowd.taken += nr;
		for (i = 0; i < nr; i++)
			crowd.wrong += tw_cancel1(fd, ids[i]) != TWHEEL_WAS_PENDING;
		close(fd);
	}
	return unused;
}

/* Return how many timeouts one wheel can hold now. */
static int room(void)
{
	int fd = tw_open(O_NONBLOCK | O_CLOEXEC), nr = 0;
	__u64 id;

	while (fd >= 0 && !tw_arm_in(fd, TW_HOUR, &id))
		nr++;
	if (fd >= 0)
		close(fd);
	return nr;
}

/* All memory that was charged is given back, whatever the limits are at that time. */
TEST_F(enospc, limits_may_be_written_while_wheels_come_and_go)
{
	static const char * const limits[] = { "max_memory_kb", "max_user_memory_kb" };
	pthread_t threads[3];
	int i, nr;
	__u64 end;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	nr = room();
	EXPECT_LE(900, nr);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, crowd_run, NULL));
	end = tw_now(CLOCK_MONOTONIC) + TW_SEC / 2;
	for (i = 0; tw_now(CLOCK_MONOTONIC) < end; i++) {
		EXPECT_EQ(0, tw_write_parameter(limits[i % 2], i % 3 ? "256" : "8192"));
		tw_sleep(TW_MS);
	}
	crowd.ends = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	EXPECT_LT(0, crowd.taken);
	EXPECT_LT(0, crowd.refused);
	EXPECT_EQ(0, crowd.wrong);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, tw_write_parameter(limits[i], "256"));
	/* There is as much room as before, once grace periods are over. */
	EXPECT_TRUE(TW_WAIT_FOR(room() == nr, 10 * TW_MS));
}

TEST_F(enospc, read_events_make_room_again)
{
	struct twheel_event events[TIMEOUTS];
	__u64 ids[TIMEOUTS + 1], id;
	int fd, i, nr;

	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	fd = open_virtual(_metadata);
	nr = fill(_metadata, fd, ids);
	ASSERT_EQ(0, tw_advance(fd, TW_HOUR));
	ASSERT_EQ(nr, tw_read(fd, events, TIMEOUTS));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id))
			TH_LOG("%d of %d", i, nr);
	}
	close(fd);
}

TEST_HARNESS_MAIN
