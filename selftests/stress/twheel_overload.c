// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel has more work than the machine can do. Other calls on it, and other wheels, still have
 * their turn (G2), and it can be stopped.
 */
#include "twheel_outcomes.h"

#include <pthread.h>

#define VECTOR		500

FIXTURE(overload) {
	int fd;
	int nr;
};

/*
 * There are hundreds of thousands of periods in a millisecond; if the kernel is slow, fewer will
 * do.
 */
FIXTURE_SETUP(overload)
{
	static struct twheel_arm arms[VECTOR];
	int i, j;

	self->nr = (int)tw_setting("TW_MILLION", 1000000) / 5 / VECTOR * VECTOR;
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < self->nr; i += VECTOR) {
		for (j = 0; j < VECTOR; j++) {
			arms[j] = (struct twheel_arm){
				.expires_ns = TW_MS,
				.interval_ns = TW_MS,
				.user_data = 1,
			};
		}
		ASSERT_EQ(VECTOR, tw_arm_vec(self->fd, arms, VECTOR));
	}
	tw_sleep(TW_SEC);
}

FIXTURE_TEARDOWN(overload)
{
	close(self->fd);
}

TEST_F_TIMEOUT(overload, overload_does_not_keep_a_new_timeout_from_expiring, 60)
{
	struct twheel_status row;
	__u64 id, until_ns;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	until_ns = tw_now(CLOCK_MONOTONIC) + TW_PATIENCE_MS * TW_MS;
	do {
		tw_sleep(TW_MS);
		ASSERT_EQ(0, tw_query1(self->fd, id, &row));
	} while (row.state == TWHEEL_STATE_PENDING && tw_now(CLOCK_MONOTONIC) < until_ns);
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, row.state);
}

TEST_F_TIMEOUT(overload, overload_does_not_keep_drain_and_info_from_returning, 60)
{
	static struct twheel_event events[VECTOR];
	struct twheel_info info;
	int i, nr, total = 0;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, tw_drain(self->fd));
	while ((nr = tw_read(self->fd, events, VECTOR)) > 0) {
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(TW_DRAINED, events[i].flags);
		}
		total += nr;
	}
	EXPECT_EQ(0, nr);
	EXPECT_EQ(self->nr, total);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F_TIMEOUT(overload, overload_does_not_keep_other_wheels_from_their_turns, 60)
{
	struct twheel_event event;
	int i, fd;
	__u64 id;

	/* There are more wheels than threads, so some share the busy one. */
	for (i = 0; i < 8; i++) {
		fd = tw_open(O_NONBLOCK | O_CLOEXEC);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_arm_in(fd, 10 * TW_MS, &id));
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		EXPECT_EQ(id, event.id);
		TH_LOG("late by %llu us", (event.fired_ns - event.deadline_ns) / TW_US);
		close(fd);
	}
}

/* ---- ids that do not exist, and ids that are busy ------------------------- */

FIXTURE(fresh) {
	int fd;
};

FIXTURE_SETUP(fresh)
{
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(fresh)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(fresh, rearm_of_what_never_was_takes_and_gives_no_room)
{
	static struct twheel_arm arms[VECTOR];
	struct twheel_event event;
	__u64 id;
	int i;

	for (i = 0; i < VECTOR; i++)
		arms[i].id = i;
	ASSERT_EQ(0, tw_rearm_vec(self->fd, arms, VECTOR));
	for (i = 0; i < VECTOR; i++) {
		ASSERT_EQ(-ENOENT, arms[i].result);
	}
	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
}

static struct tw_outcome rearms[] = {
	TW_OUTCOME("re-armed by the first one", TW_A_FEW),
	TW_OUTCOME("by the second one", TW_A_FEW),
	TW_OUTCOME("by the other one meanwhile", TW_A_FEW),
};

static struct {
	int fd;
	__u64 id;
	_Atomic bool stop;
	_Atomic unsigned int done;
	_Atomic unsigned int bad;
} contest;

static void *rearm_on_and_on(void *arg)
{
	unsigned int me = (uintptr_t)arg, done = contest.done;
	__u64 n = 0;

	/* Move it earlier and later in turn, always far ahead. */
	while (!contest.stop) {
		if (tw_rearm1(contest.fd, contest.id, 0, (1 + n++ % 2) * TW_HOUR, 0) !=
		    TWHEEL_WAS_PENDING)
			contest.bad++;
		tw_saw(&rearms[me], 1);
		tw_saw(&rearms[2], contest.done != done);
		done = ++contest.done;
	}
	return NULL;
}

TEST_F_TIMEOUT(fresh, two_that_rearm_one_id_never_hear_that_it_is_gone, 60)
{
	struct tw_race race = TW_RACE(rearms, 3);
	pthread_t threads[2];
	uintptr_t i;

	contest.fd = self->fd;
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &contest.id));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, rearm_on_and_on, (void *)i));
	while (tw_race_goes_on(&race))
		tw_sleep(10 * TW_MS);
	contest.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, (unsigned int)contest.bad);
	EXPECT_RACE(&race);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, contest.id));
}

TEST_HARNESS_MAIN
