// SPDX-License-Identifier: GPL-2.0
/*
 * The last close ends a wheel: with any pending timeouts, from any process, and while another
 * thread is in a call. The module's reference count shows that a wheel is gone.
 */
#include "twheel_outcomes.h"
#include "twheel_outside.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BATCH		256

/* Arm nr timeouts a millisecond apart from now on. Return 0, or the errno that failed. */
static int arm_many(int fd, int nr, __u64 first_ns)
{
	struct twheel_arm arms[BATCH];
	int i, n, ret;

	for (; nr > 0; nr -= n) {
		n = nr < BATCH ? nr : BATCH;
		for (i = 0; i < n; i++)
			arms[i] = (struct twheel_arm){
				.expires_ns = first_ns + (nr - i) * TW_MS,
			};
		ret = tw_arm_vec(fd, arms, n);
		if (ret != n)
			return ret < 0 ? ret : arms[ret].result;
	}
	return 0;
}

FIXTURE(close) {
	int base;			/* wheels that are not the test's */
};

FIXTURE_SETUP(close)
{
	self->base = tw_wheels_open();
	ASSERT_LE(0, self->base);
}

FIXTURE_TEARDOWN(close)
{
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

TEST_F(close, close_ends_the_wheel)
{
	int fd = tw_open(O_CLOEXEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(self->base + 1, tw_wheels_open());
	close(fd);
	EXPECT_EQ(self->base, tw_wheels_open());
}

TEST_F_TIMEOUT(close, close_frees_100000_pending_timeouts, 120)
{
	int fd = tw_open(O_CLOEXEC);
	__u64 start_ns;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, arm_many(fd, 100000, TW_HOUR));
	start_ns = tw_now(CLOCK_MONOTONIC);
	close(fd);
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
	TH_LOG("closed within %llu ms", (tw_now(CLOCK_MONOTONIC) - start_ns) / TW_MS);
}

static struct twheel_event burst[3000];

/* Some have expired by then, some have not, and the kthread may be busy with them. */
TEST_F_TIMEOUT(close, a_wheel_can_be_closed_amid_expiries, 100)
{
	struct tw_outcome amid[] = { TW_OUTCOME("closed amid expiries", TW_A_FEW) };
	struct tw_race race = TW_RACE(amid, 0);
	struct twheel_info info;

	race.usual_rounds = 20;
	while (tw_race_goes_on(&race)) {
		int fd = tw_open(O_CLOEXEC);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm_many(fd, 2000, 0));
		tw_sleep(race.rounds % 20 * 5 * TW_MS);
		ASSERT_EQ(0, tw_info(fd, &info));
		tw_saw(&amid[0], info.unread && info.pending);
		close(fd);
	}
	EXPECT_RACE(&race);
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

/*
 * A wheel gives the memory of a burst back after a second. If the wheel is closed before, that work
 * is cancelled; other users of its memory notice nothing.
 */
TEST_F_TIMEOUT(close, a_wheel_can_be_closed_before_the_memory_of_a_burst_is_given_back, 60)
{
	int i, fd;

	for (i = 0; i < 20; i++) {
		int nr = 0, ret;

		fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm_many(fd, ARRAY_SIZE(burst), 0));
		ASSERT_EQ(0, tw_advance(fd, TW_HOUR));
		while ((ret = tw_read(fd, burst, ARRAY_SIZE(burst))) > 0)
			nr += ret;
		ASSERT_EQ(ARRAY_SIZE(burst), nr);
		close(fd);
	}
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
	for (i = 0; i < 12; i++) {
		fd = tw_open(O_CLOEXEC);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm_many(fd, 3000, TW_HOUR));
		tw_sleep(100 * TW_MS);
		close(fd);
	}
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

/* Alarms that are about to ring do not ring any more. */
TEST_F_TIMEOUT(close, a_wheel_can_be_closed_just_before_an_alarm, 60)
{
	int i, fd;
	__u64 id;

	for (i = 0; i < 300; i++) {
		fd = tw_open(O_CLOEXEC);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_arm_in(fd, i % 10 * TW_MS / 2, &id));
		close(fd);
	}
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

TEST_F_TIMEOUT(close, the_death_of_a_process_closes_its_wheel, 60)
{
	struct twheel_event event;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		int fd = tw_open(0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd < 0 || arm_many(fd, 10000, TW_HOUR))
			_exit(1);
		tw_read(fd, &event, 1);
		_exit(2);
	}
	ASSERT_EQ(self->base + 1, tw_wait_wheels_open(self->base + 1));
	ASSERT_EQ(0, tw_wait_asleep(child));
	kill(child, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, tw_reap(child));
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

TEST_F_TIMEOUT(close, a_thousand_closes_leave_nothing, 120)
{
	__u64 id;
	int i;

	for (i = 0; i < 1000; i++) {
		int fd = tw_open(O_CLOEXEC);

		ASSERT_LE(0, fd);
		/* Every second one is started. */
		if (i % 2)
			ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
		close(fd);
	}
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

/* ---- from another thread ------------------------------------------------- */

enum blocked_in { IN_READ, IN_POLL, IN_ADVANCE };

static struct {
	enum blocked_in where;
	int fd;
	int ret;
	_Atomic pid_t tid;
	struct tw_meeting start;
} blocked;

static void *blocked_run(void *arg)
{
	struct twheel_event event;

	(void)arg;
	blocked.tid = syscall(SYS_gettid);
	tw_meet(&blocked.start, 2);
	switch (blocked.where) {
	case IN_READ:
		blocked.ret = tw_read(blocked.fd, &event, 1);
		break;
	case IN_POLL:
		blocked.ret = tw_poll(blocked.fd, POLLIN, TW_PATIENCE_MS);
		break;
	case IN_ADVANCE:
		blocked.ret = tw_advance(blocked.fd, TW_HOUR);
		break;
	}
	return NULL;
}

/*
 * Close fd while a thread is in a call on it, asleep or just begun; return the result of the
 * call.
 */
static int close_beneath(struct __test_metadata *_metadata, enum blocked_in where, int fd,
			 __u64 moment_ns)
{
	pthread_t thread;

	blocked.where = where;
	blocked.fd = fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, blocked_run, NULL));
	tw_meet(&blocked.start, 2);
	if (moment_ns)
		tw_spin(moment_ns);
	else
		ASSERT_EQ(0, tw_wait_asleep(blocked.tid));
	close(fd);
	pthread_join(thread, NULL);
	return blocked.ret;
}

/* If a call is under way, it keeps the file until it returns, as with any file. */
TEST_F_TIMEOUT(close, close_lets_a_blocked_read_finish, 60)
{
	int fd = tw_open(O_CLOEXEC);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_SEC, &id));
	EXPECT_EQ(1, close_beneath(_metadata, IN_READ, fd, 0));
}

/* When poll() is woken, it gets the file from the descriptor again. */
TEST_F_TIMEOUT(close, poll_says_nval_for_a_closed_descriptor, 60)
{
	int fd = tw_open(O_CLOEXEC);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_SEC, &id));
	EXPECT_EQ(POLLNVAL, close_beneath(_metadata, IN_POLL, fd, 0));
}

TEST_F_TIMEOUT(close, close_lets_an_advance_finish, 60)
{
	struct tw_outcome said[] = {
		TW_OUTCOME("it finished", TW_A_FEW),
		/* The descriptor was closed before the call had begun. */
		TW_OUTCOME("it said EBADF", 0),
	};
	struct tw_race race = TW_RACE(said, 0);
	__u64 seed = 1;

	while (tw_race_goes_on(&race)) {
		int ret, fd = tw_virtual(O_CLOEXEC, TW_MS);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, arm_many(fd, 20000, 0));
		/* ADVANCE takes some milliseconds. */
		ret = close_beneath(_metadata, IN_ADVANCE, fd,
				    1 + tw_random(&seed) % (2 * TW_MS));
		ASSERT_TRUE(ret == 0 || ret == -EBADF);
		tw_saw(&said[ret ? 1 : 0], 1);
	}
	EXPECT_RACE(&race);
}

TEST_HARNESS_MAIN
