// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes that shipped in other timer systems, one or more systems each, and
 * where it is seen that the device does not make them.  Where no other file
 * does, a test below does.
 *
 *    1 a deadline on a tick's edge, or a whole span of the wheel ahead (Akka,
 *      Agrona, folly): arm.c deadlines_around_the_span_of_each_level_are_exact
 *    2 a delay that is no multiple of the tick is lost (Agrona): arm.c
 *      deadline_between_edges_expires_on_the_next_edge
 *    3 arming into the slot that is being worked on (folly): arm.c
 *      arming_into_the_slot_in_hand_does_not_expire_a_round_early
 *    4 a delay of zero, armed whenever it comes, loops for ever (libuv): here
 *    5 cancelling a sibling that is on the run list (folly, Netty): cancel.c
 *      siblings_of_the_same_tick_are_not_touched, peer_netty.c
 *      siblings_cancelled_while_their_tick_is_delivered_are_counted_once
 *    6 what pends is counted twice or never when cancel meets expiry (Netty): as 5;
 *      race.c cancel_against_expiry
 *    7 leaving a slot early because the rest was later (Netty 4.1.85): here
 *    8 a deadline moved earlier, or into the past, wakes nobody (tokio): poll.c
 *      a_rearm_to_earlier_wakes_in_time, a_rearm_into_the_past_wakes_at_once
 *    9 a deadline moved later wakes for nothing (msquic): poll.c
 *      a_rearm_to_later_wakes_nobody; peer_delayqueue.c, each script
 *   10 arming against stopping (Netty): race.c arm_against_drain
 *   11 one tick at a time after a stall (Agrona): arm.c
 *      events_after_a_stall_come_in_the_order_of_ticks; for who reads: here
 *   12 counters that wrap (Akka, RabbitMQ, tokio): arm.c
 *      deadlines_around_32_and_36_bits_of_milliseconds_are_exact,
 *      last_edge_before_the_end_of_time_is_reached
 *   13 a stale id reaches the next owner of its place (Agrona): stale.c, cancel.c
 *   14 two of the same key (liburing): here
 *   15 a count of periods that goes negative (CVE-2018-12896): periodic.c
 *      count_that_grows_past_32_bits_..., peer_ltp.c more_periods_than_...
 *   16 changes of what a step of the clock means, two at a time (CVE-2017-10661):
 *      peer_ltp.c changes_of_kind_against_each_other_and_the_clock_...
 *   17 its owner forks, execs, dies or closes in the middle: lifecycle.c, close.c,
 *      race_close.c
 *   18 a blocked reader that nobody wakes, when the wheel is drained:
 *      read_blocking.c is_woken_by_drain_and_says_0; when it is emptied: here
 *   19 ticking while idle (all but a few): idle.c
 *   20 the locks of expiry and those of epoll in two orders: here, where lockdep
 *      is on, and as a deadlock elsewhere
 *   21 what is cancelled stays in memory until it is due (grpc-java, Hystrix): here
 */
#include "twheel_outside.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* For those that may take more than the usual half a minute. */
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

/* 4: as often as it was armed, and never twice in one read */
TEST(a_zero_armed_whenever_it_comes_comes_once_for_each_time)
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

/*
 * 7: timeouts of many rounds in one slot, the later ones often in front.  With
 * one level they are all looked at each time, and those of now are among them.
 */
TEST(what_is_due_is_found_behind_what_is_later_in_the_same_slot)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .slots = WHEEL_SLOTS,
		.flags = TWHEEL_SETUP_ONE_LEVEL,
	};
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event events[4];
	__u64 id, deadline_ns;

	ASSERT_LE(0, fd);
	for (i = 0; i < ROUNDS_AHEAD; i++) {
		/* The farthest first, and then through all of them in leaps. */
		int round = (ROUNDS_AHEAD - 1 + i * 17) % ROUNDS_AHEAD;

		deadline_ns = (3 + round * WHEEL_SLOTS) * TW_MS;
		ASSERT_EQ(0, tw_arm_at(fd, deadline_ns, &id));
		ASSERT_EQ(0, tw_arm_at(fd, deadline_ns, &id));
	}
	for (i = 0; i < ROUNDS_AHEAD; i++) {
		deadline_ns = (3 + i * WHEEL_SLOTS) * TW_MS;
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

/* ---- 11 ------------------------------------------------------------------ */

#define STALLED		3000

/* 11: one read after a stall brings all of it, and not one tick's share */
TEST(who_stalled_reads_all_that_came_meanwhile_at_once)
{
	static struct twheel_event events[STALLED + 1];
	static struct twheel_arm arms[STALLED];
	int i, tries, fd = tw_open(O_NONBLOCK);
	static bool seen[STALLED];
	struct twheel_info info;
	__u64 now_ns;

	ASSERT_LE(0, fd);
	now_ns = tw_now(CLOCK_MONOTONIC);
	for (i = 0; i < STALLED; i++)
		arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			/* 300 ticks from now on, in no order */
			.expires_ns = now_ns + (i * 7919ULL % STALLED) * 100 * TW_US,
			.user_data = i,
		};
	ASSERT_EQ(STALLED, tw_arm_vec(fd, arms, STALLED));
	for (tries = 0; tries < TW_PATIENCE_MS / 10; tries++) {
		tw_sleep(10 * TW_MS);
		ASSERT_EQ(0, tw_info(fd, &info));
		if (info.unread == STALLED)
			break;
	}
	ASSERT_EQ(STALLED, tw_read(fd, events, STALLED + 1));
	for (i = 0; i < STALLED; i++) {
		ASSERT_GT(STALLED, events[i].user_data);
		ASSERT_FALSE(seen[events[i].user_data]);
		seen[events[i].user_data] = true;
	}
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- 14 ------------------------------------------------------------------ */

/* 14: user_data is no key; the id is */
TEST(those_with_the_same_user_data_are_told_apart_by_their_ids)
{
	int i, fd = tw_virtual(O_NONBLOCK, TW_MS);
	struct twheel_status status;
	struct twheel_event event;
	__u64 ids[4];

	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, tw_arm1(fd, 0, (i + 1) * TW_MS, 0, 42, &ids[i]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, ids[2]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, ids[0], 0, 10 * TW_MS, 0));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(i == 2 ? -ENOENT : 0, tw_query1(fd, ids[i], &status));
		if (i == 2)
			continue;
		EXPECT_EQ(i ? (i + 1) * TW_MS : 10 * TW_MS, status.deadline_ns);
		EXPECT_EQ(42, status.user_data);
	}
	ASSERT_EQ(0, tw_advance(fd, 2 * TW_MS));
	ASSERT_ONE_EVENT(fd, &event, ids[1]);
	ASSERT_EQ(0, tw_advance(fd, 4 * TW_MS));
	ASSERT_ONE_EVENT(fd, &event, ids[3]);
	ASSERT_EQ(0, tw_advance(fd, 10 * TW_MS));
	ASSERT_ONE_EVENT(fd, &event, ids[0]);
	EXPECT_EQ(42, event.user_data);
	close(fd);
}

/* ---- 18 ------------------------------------------------------------------ */

/* 18: empty is not over: it sleeps on, and hears of what is armed next */
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

static struct tangle {
	int fd;
	int inner;		/* watches the wheel */
	int outer;		/* watches inner, and the wheel too */
	_Atomic bool stop;
	_Atomic unsigned long done[TANGLE_THREADS];
} tangle;

static void tangle_arm(__u64 *seed)
{
	__u64 id;

	if (!tw_arm_in(tangle.fd, tw_random(seed) % (2 * TW_MS), &id) && tw_random(seed) % 2)
		tw_cancel1(tangle.fd, id);
}

static void tangle_read(__u64 *seed)
{
	struct twheel_event events[8];

	tw_read(tangle.fd, events, 1 + tw_random(seed) % 8);
}

static void tangle_wait(__u64 *seed)
{
	struct epoll_event events[2];

	epoll_wait(tw_random(seed) % 2 ? tangle.inner : tangle.outer, events, 2, 1);
}

static void tangle_watch(__u64 *seed)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	int ep = tw_random(seed) % 2 ? tangle.inner : tangle.outer;

	if (tw_random(seed) % 2)
		event.events |= EPOLLET;
	epoll_ctl(ep, EPOLL_CTL_DEL, tangle.fd, NULL);
	epoll_ctl(ep, EPOLL_CTL_ADD, tangle.fd, &event);
	epoll_ctl(ep, EPOLL_CTL_MOD, tangle.fd, &event);
}

static void tangle_close(__u64 *seed)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = tw_open(O_NONBLOCK);
	__u64 id;

	if (fd < 0)
		return;
	epoll_ctl(tangle.inner, EPOLL_CTL_ADD, fd, &event);
	tw_arm_in(fd, tw_random(seed) % TW_MS, &id);
	if (tw_random(seed) % 2)
		tw_drain(fd);
	close(fd);
}

static void *tangle_run(void *arg)
{
	void (* const what[TANGLE_THREADS])(__u64 *seed) = {
		tangle_arm, tangle_read, tangle_wait, tangle_watch, tangle_close,
	};
	int me = (intptr_t)arg;
	__u64 seed = me;

	while (!tangle.stop) {
		what[me](&seed);
		tangle.done[me]++;
	}
	return NULL;
}

/* 20: all that takes epoll's locks, beside all that takes the wheel's */
TEST_F_TIMEOUT(traps, expiry_and_epoll_do_not_lock_each_other_out, 60)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	pthread_t thread[TANGLE_THREADS];
	int i, tries;

	tangle.fd = tw_open(O_NONBLOCK);
	tangle.inner = epoll_create1(EPOLL_CLOEXEC);
	tangle.outer = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_EQ(0, tw_setup(tangle.fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, 64));
	ASSERT_EQ(0, epoll_ctl(tangle.inner, EPOLL_CTL_ADD, tangle.fd, &event));
	ASSERT_EQ(0, epoll_ctl(tangle.outer, EPOLL_CTL_ADD, tangle.inner, &event));
	for (i = 0; i < TANGLE_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, tangle_run, (void *)(intptr_t)i));
	tw_sleep(TW_SEC);
	for (i = 0; i < TANGLE_THREADS; i++)
		for (tries = 0; tries < TW_PATIENCE_MS && !tangle.done[i]; tries++)
			tw_sleep(TW_MS);
	tangle.stop = true;
	for (i = 0; i < TANGLE_THREADS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_LT(0, (unsigned long)tangle.done[i])
			TH_LOG("thread %d", i);
	}
	close(tangle.outer);
	close(tangle.inner);
	/* Nothing was left undone: what pends still comes. */
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

/* All for a day ahead, and all taken back, as a server's timeouts are. */
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
	/* Into the wheel with them: there they would be until they are due. */
	tw_advance(fd, 0);
	for (first = 0; first < CROWD; first += VECTOR)
		if (tw_cancel_vec(fd, &cancels[first], VECTOR) != VECTOR)
			return -EIO;
	tw_advance(fd, 0);
	return 0;
}

/* 21: after a hundred crowds the wheel is no larger than after a few */
TEST_F_TIMEOUT(traps, what_was_cancelled_does_not_stay_until_it_was_due, 60)
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
	/* One crowd of stale entries is 240 kB at the least.  RCU frees in its own time. */
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
