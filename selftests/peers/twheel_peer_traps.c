// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes of released versions of other timer systems, which no test of a single rule would find.
 * Documentation/peers.rst lists all of them, with the tests that show that the device does not make
 * them; the numbers are those of that list.
 */
#include "twheel_outcomes.h"
#include "twheel_outside.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* These tests may take more than the default of half a minute. */
FIXTURE(traps) {
};

FIXTURE_SETUP(traps)
{
}

FIXTURE_TEARDOWN(traps)
{
}

/* ---- 4 ------------------------------------------------------------------- */

#define LOOPERS		64
#define LOOPS		100

/* 4: it comes as often as it was armed, and never twice in one read */
TEST(a_delay_of_zero_armed_again_comes_once_each_time)
{
	int i, nr, seen[LOOPERS], left = LOOPERS * LOOPS, fd = tw_open(O_NONBLOCK);
	struct twheel_event events[2 * LOOPERS];
	struct twheel_arm arms[2 * LOOPERS];
	int times[LOOPERS] = {}, again, round = 0;

	ASSERT_LE(0, fd);
	memset(seen, 0xff, sizeof(seen));
	for (i = 0; i < LOOPERS; i++)
		arms[i] = (struct twheel_arm){ .user_data = i };
	ASSERT_EQ(LOOPERS, tw_arm_vec(fd, arms, LOOPERS));
	for (; left; round++) {
		ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
		nr = tw_read(fd, events, 2 * LOOPERS);
		ASSERT_LT(0, nr);
		ASSERT_GE(LOOPERS, nr);
		for (i = 0, again = 0; i < nr; i++) {
			int who = events[i].user_data;

			ASSERT_NE(round, seen[who]);
			seen[who] = round;
			if (++times[who] < LOOPS)
				arms[again++] = (struct twheel_arm){ .user_data = who };
		}
		left -= nr;
		ASSERT_EQ(again, tw_arm_vec(fd, arms, again));
	}
	EXPECT_EQ(0, tw_poll(fd, POLLIN, 20));
	for (i = 0; i < LOOPERS; i++)
		EXPECT_EQ(LOOPS, times[i]);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- 7 ------------------------------------------------------------------- */

#define ROUNDS_AHEAD	24
#define WHEEL_SLOTS	8
#define WHEEL_TICK_NS	(TWHEEL_ROUND_MIN_NS / WHEEL_SLOTS)

/*
 * 7: timeouts of many rounds are in one slot, the later ones often in front. If there is one level,
 * all are visited each time, and the due ones are among them.
 */
TEST(a_due_timeout_is_found_behind_a_later_one_in_the_same_slot)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = WHEEL_TICK_NS, .slots = WHEEL_SLOTS,
		.flags = TWHEEL_SETUP_ONE_LEVEL,
	};
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event events[4];
	__u64 id, deadline_ns;

	ASSERT_LE(0, fd);
	for (i = 0; i < ROUNDS_AHEAD; i++) {
		/* Begin with the farthest one, and then go through all of them in leaps. */
		int round = (ROUNDS_AHEAD - 1 + i * 17) % ROUNDS_AHEAD;

		deadline_ns = (3 + round * WHEEL_SLOTS) * WHEEL_TICK_NS;
		ASSERT_EQ(0, tw_arm_at(fd, deadline_ns, &id));
		ASSERT_EQ(0, tw_arm_at(fd, deadline_ns, &id));
	}
	for (i = 0; i < ROUNDS_AHEAD; i++) {
		deadline_ns = (3 + i * WHEEL_SLOTS) * WHEEL_TICK_NS;
		ASSERT_EQ(0, tw_advance(fd, deadline_ns - 1));
		EXPECT_NO_EVENT(fd);
		ASSERT_EQ(0, tw_advance(fd, deadline_ns));
		ASSERT_EQ(2, tw_read(fd, events, 4));
		EXPECT_EQ(deadline_ns, events[0].deadline_ns);
		EXPECT_EQ(deadline_ns, events[1].deadline_ns);
	}
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- 18 ------------------------------------------------------------------ */

/*
 * 18: an empty wheel is not at its end: the reader sleeps on, and is woken for a timeout armed
 * later
 */
TEST(a_reader_of_a_wheel_that_was_emptied_sleeps_until_the_next_expiry)
{
	int fd = tw_open(0);
	struct twheel_event event;
	pid_t child;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(tw_read(fd, &event, 1) == 1 && event.user_data == 5 ? 0 : 1);
	}
	ASSERT_EQ(0, tw_wait_asleep(child));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	tw_sleep(50 * TW_MS);
	EXPECT_EQ(0, waitpid(child, NULL, WNOHANG));
	ASSERT_EQ(0, tw_arm1(fd, 0, TW_MS, 0, 5, &id));
	EXPECT_EQ(0, tw_reap(child));
	close(fd);
}

/* ---- 20 ------------------------------------------------------------------ */

#define TANGLE_THREADS	5

static struct tw_outcome tangled[TANGLE_THREADS] = {
	TW_OUTCOME("armed", TW_A_FEW),
	TW_OUTCOME("read", TW_A_FEW),
	TW_OUTCOME("was reported by epoll", TW_A_FEW),
	TW_OUTCOME("watched again", TW_A_FEW),
	TW_OUTCOME("closed a wheel that was watched", TW_A_FEW),
};

static struct tangle {
	int fd;
	int inner;		/* watches the wheel */
	int outer;		/* watches inner, and the wheel too */
	_Atomic bool stop;
} tangle;

/* Each of these returns whether it did what its name says. */
static bool tangle_arm(__u64 *seed)
{
	__u64 id;
	int ret = tw_arm_in(tangle.fd, tw_random(seed) % (2 * TW_MS), &id);

	if (!ret && tw_random(seed) % 2)
		tw_cancel1(tangle.fd, id);
	return !ret;
}

static bool tangle_read(__u64 *seed)
{
	struct twheel_event events[8];

	return tw_read(tangle.fd, events, 1 + tw_random(seed) % 8) > 0;
}

static bool tangle_wait(__u64 *seed)
{
	struct epoll_event events[2];

	return epoll_wait(tw_random(seed) % 2 ? tangle.inner : tangle.outer, events, 2, 1) > 0;
}

static bool tangle_watch(__u64 *seed)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	int ep = tw_random(seed) % 2 ? tangle.inner : tangle.outer;

	if (tw_random(seed) % 2)
		event.events |= EPOLLET;
	epoll_ctl(ep, EPOLL_CTL_DEL, tangle.fd, NULL);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, tangle.fd, &event))
		return false;
	return !epoll_ctl(ep, EPOLL_CTL_MOD, tangle.fd, &event);
}

static bool tangle_close(__u64 *seed)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = tw_open(O_NONBLOCK);
	bool watched;
	__u64 id;

	if (fd < 0)
		return false;
	watched = !epoll_ctl(tangle.inner, EPOLL_CTL_ADD, fd, &event);
	tw_arm_in(fd, tw_random(seed) % TW_MS, &id);
	if (tw_random(seed) % 2)
		tw_drain(fd);
	close(fd);
	return watched;
}

static void *tangle_run(void *arg)
{
	bool (* const what[TANGLE_THREADS])(__u64 *seed) = {
		tangle_arm, tangle_read, tangle_wait, tangle_watch, tangle_close,
	};
	int me = (intptr_t)arg;
	__u64 seed = me;

	while (!tangle.stop)
		tw_saw(&tangled[me], what[me](&seed));
	return NULL;
}

/* 20: make all calls that take epoll's locks beside all that take the wheel's */
TEST_F_TIMEOUT(traps, expiry_and_epoll_do_not_lock_each_other_out, 60)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct tw_race race = TW_RACE(tangled, 1);
	pthread_t thread[TANGLE_THREADS];
	int i;

	tangle.fd = tw_open(O_NONBLOCK);
	tangle.inner = epoll_create1(EPOLL_CLOEXEC);
	tangle.outer = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_EQ(0, tw_setup(tangle.fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, 64));
	ASSERT_EQ(0, epoll_ctl(tangle.inner, EPOLL_CTL_ADD, tangle.fd, &event));
	ASSERT_EQ(0, epoll_ctl(tangle.outer, EPOLL_CTL_ADD, tangle.inner, &event));
	for (i = 0; i < TANGLE_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, tangle_run, (void *)(intptr_t)i));
	while (tw_race_goes_on(&race))
		tw_sleep(10 * TW_MS);
	tangle.stop = true;
	for (i = 0; i < TANGLE_THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_RACE(&race);
	close(tangle.outer);
	close(tangle.inner);
	/* Nothing was left undone: pending timeouts still expire. */
	while (tw_poll(tangle.fd, POLLIN, 20) == POLLIN)
		tangle_read(&(__u64){ 1 });
	EXPECT_ACCOUNTS(tangle.fd);
	close(tangle.fd);
}

/* ---- 21 ------------------------------------------------------------------ */

#define CGROUP		"/sys/fs/cgroup/twheel_peer_traps"
#define CROWD		20000
#define VECTOR		1000

static long charged_bytes(void)
{
	FILE *file = fopen(CGROUP "/memory.current", "re");
	long bytes = -1;

	if (file && fscanf(file, "%ld", &bytes) != 1)
		bytes = -1;
	if (file)
		fclose(file);
	return bytes;
}

/* Arm all for a day ahead, and cancel them all, as a server does. */
static int come_and_go(int fd)
{
	static struct twheel_cancel cancels[CROWD];
	static struct twheel_arm arms[VECTOR];
	int i, first;

	for (first = 0; first < CROWD; first += VECTOR) {
		for (i = 0; i < VECTOR; i++)
			arms[i] = (struct twheel_arm){ .expires_ns = TW_DAY + i * TW_SEC };
		if (tw_arm_vec(fd, arms, VECTOR) != VECTOR)
			return -EIO;
		for (i = 0; i < VECTOR; i++)
			cancels[first + i] = (struct twheel_cancel){ .id = arms[i].id };
	}
	/* Move them into the wheel: if they stayed there, it would be until they are due. */
	tw_advance(fd, 0);
	for (first = 0; first < CROWD; first += VECTOR)
		if (tw_cancel_vec(fd, &cancels[first], VECTOR) != VECTOR)
			return -EIO;
	tw_advance(fd, 0);
	return 0;
}

/* 21: after a hundred crowds the wheel is no larger than after a few */
TEST_F_TIMEOUT(traps, a_cancelled_timeout_does_not_stay_until_it_was_due, 60)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .max_pending = CROWD,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_info info;
	long before = 0, after;
	int round, tries = 0;

	ASSERT_LE(0, fd);
	if (tw_kernel_notes_allocations())
		SKIP(return, "what is freed stays charged to whoever had it");
	mkdir(CGROUP, 0755);
	if (charged_bytes() < 0 || tw_write_text(CGROUP "/cgroup.procs", "0")) {
		rmdir(CGROUP);
		SKIP(return, "no cgroup with a memory controller can be made");
	}
	for (round = 0; round < 40; round++) {
		EXPECT_EQ(0, come_and_go(fd));
		if (round == 3)
			before = charged_bytes();
	}
	/* One crowd of stale entries takes at least 240 kB. RCU frees with a delay. */
	while ((after = charged_bytes()) > before + before / 2 + (1 << 20) &&
	       ++tries < TW_PATIENCE_MS / 10)
		tw_sleep(10 * TW_MS);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, info.live);
	TH_LOG("%ld kB after 4 crowds, %ld kB after 40", before / 1024, after / 1024);
	EXPECT_GE(before + before / 2 + (1 << 20), after);
	tw_write_text("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(CGROUP);
	close(fd);
}

TEST_HARNESS_MAIN
