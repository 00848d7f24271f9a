// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel that is asked for more than the machine can do: what others ask of
 * it, and other wheels, still have their turn (G2), and it can be stopped.
 */
#include "twheel_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define VECTOR		500

FIXTURE(overload) {
	int fd;
	int nr;
};

/* Hundreds of thousands of periods a millisecond; of slow kernels less will do. */
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

TEST_F_TIMEOUT(overload, does_not_keep_a_new_timeout_from_expiring, 60)
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

TEST_F_TIMEOUT(overload, does_not_keep_drain_and_info_from_returning, 60)
{
	static struct twheel_event events[VECTOR];
	struct twheel_info info;
	int i, nr, total = 0;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, tw_drain(self->fd));
	while ((nr = tw_read(self->fd, events, VECTOR)) > 0) {
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(TWHEEL_EVENT_DRAINED, events[i].flags);
		}
		total += nr;
	}
	EXPECT_EQ(0, nr);
	EXPECT_EQ(self->nr, total);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F_TIMEOUT(overload, does_not_keep_other_wheels_from_their_turns, 60)
{
	struct twheel_event event;
	int i, fd;
	__u64 id;

	/* More of them than there are threads: some share the busy one. */
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

struct rearmer {
	pthread_t thread;
	int fd;
	__u64 id;
	atomic_bool *stop;
	atomic_long pending;
	long others;
};

static void *rearm_on_and_on(void *arg)
{
	struct rearmer *r = arg;
	__u64 n = 0;

	/* Earlier and later in turns, always far ahead. */
	while (!atomic_load(r->stop)) {
		if (tw_rearm1(r->fd, r->id, 0, (1 + n++ % 2) * TW_HOUR, 0) == TWHEEL_WAS_PENDING)
			r->pending++;
		else
			r->others++;
	}
	return NULL;
}

TEST_F_TIMEOUT(fresh, two_that_rearm_one_id_never_hear_that_it_is_gone, 60)
{
	struct rearmer r[2] = {};
	atomic_bool stop = false;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	for (i = 0; i < 2; i++) {
		r[i].fd = self->fd;
		r[i].id = id;
		r[i].stop = &stop;
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL, rearm_on_and_on, &r[i]));
	}
	tw_sleep(3 * TW_SEC);
	/* On a busy machine a thread may begin later than that. */
	TW_WAIT_FOR(r[0].pending && r[1].pending, TW_MS);
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_LT(0, atomic_load(&r[i].pending));
		EXPECT_EQ(0, r[i].others);
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_HARNESS_MAIN
