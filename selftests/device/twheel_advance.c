// SPDX-License-Identifier: GPL-2.0
/*
 * ADVANCE: it alone moves the virtual clock, exactly to the time it is given and never back; and
 * it moves no other clock.
 */
#include "twheel_outcomes.h"

#include <signal.h>
#include <sys/time.h>

FIXTURE(advance) {
	int fd;
};

FIXTURE_SETUP(advance)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(advance)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(advance, only_advance_moves_the_virtual_clock_which_starts_at_zero)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.now_ns);
	tw_sleep(20 * TW_MS);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.now_ns);
}

TEST_F(advance, advance_moves_the_clock_exactly)
{
	const __u64 to_ns[] = { 0, 1, TW_MS, TW_MS, TW_DAY + 7, TWHEEL_TIME_NEVER };
	struct twheel_info info;
	int i;

	for (i = 0; i < ARRAY_SIZE(to_ns); i++) {
		ASSERT_EQ(0, tw_advance(self->fd, to_ns[i]));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(to_ns[i], info.now_ns);
	}
}

TEST_F(advance, advance_backwards_or_past_the_end_says_einval_and_moves_nothing)
{
	const __u64 to_ns[] = { 0, TW_SEC - 1, TWHEEL_TIME_NEVER + 1, ~0ULL };
	struct tw_snapshot before;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MIN, &id));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(to_ns); i++) {
		EXPECT_EQ(-EINVAL, tw_advance(self->fd, to_ns[i]))
			TH_LOG("to %llu", to_ns[i]);
		EXPECT_UNCHANGED(self->fd, &before);
	}
}

/* Send a signal every now and then, which only interrupts. */
static void on_signal(int signal __attribute__((unused)))
{
}

static void signal_every(__u64 interval_ns, int sa_flags)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = sa_flags };
	const struct itimerval every = {
		.it_interval = { .tv_usec = interval_ns / TW_US },
		.it_value = { .tv_usec = interval_ns / TW_US },
	};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

/*
 * Repeat ADVANCE after each signal until it succeeds; then all timeouts that are due can be read
 * once. Return how often it was interrupted.
 */
static int advance_beside_signals(struct __test_metadata *_metadata, int fd, __u64 to_ns,
				  __u64 interval_ns, int sa_flags)
{
	const int many = (int)tw_setting("TW_MILLION", 1000000) / 10000 * 1000;
	struct twheel_event events[1000];
	struct twheel_arm arms[1000] = {};
	int i, ret, interrupted = 0;
	struct twheel_info info;

	for (i = 0; i < 1000; i++)
		arms[i].expires_ns = (i + 1) * TW_MS;
	for (i = 0; i < many; i += 1000) {
		ASSERT_EQ(1000, tw_arm_vec(fd, arms, 1000));
	}
	signal_every(interval_ns, sa_flags);
	while ((ret = tw_advance(fd, to_ns)) == -EINTR) {
		/* The clock has moved nevertheless. */
		ASSERT_EQ(0, tw_info(fd, &info));
		ASSERT_EQ(to_ns, info.now_ns);
		interrupted++;
	}
	signal_every(0, 0);
	ASSERT_EQ(0, ret);
	for (i = 0; i < many; i += 1000) {
		ASSERT_EQ(1000, tw_read(fd, events, 1000));
	}
	EXPECT_NO_EVENT(fd);
	return interrupted;
}

TEST_F_TIMEOUT(advance, an_advance_that_a_signal_interrupts_can_be_repeated, 100)
{
	struct tw_outcome outcomes[] = { TW_OUTCOME("interrupted", 1) };
	struct tw_race race = TW_RACE(outcomes, 0);
	int nr;

	/* Signals come more often if ADVANCE is soon over. */
	while (tw_race_goes_on(&race)) {
		nr = advance_beside_signals(_metadata, self->fd, race.rounds * TW_SEC,
					    2 * TW_MS / (race.rounds % 8 + 1) + TW_US, 0);
		tw_saw(&outcomes[0], nr);
	}
	EXPECT_RACE(&race);
}

/* If one call is interrupted, signals do come while ADVANCE waits. */
TEST_F_TIMEOUT(advance, advance_goes_on_after_a_handler_with_sa_restart, 100)
{
	struct tw_outcome outcomes[] = { TW_OUTCOME("interrupted", TW_A_FEW) };
	struct tw_race race = TW_RACE(outcomes, 0);

	while (tw_race_goes_on(&race)) {
		__u64 interval_ns = 2 * TW_MS / (race.rounds % 8 + 1) + TW_US;
		__u64 to_ns = 2 * race.rounds * TW_SEC;

		tw_saw(&outcomes[0], advance_beside_signals(_metadata, self->fd, to_ns,
							    interval_ns, 0));
		EXPECT_EQ(0, advance_beside_signals(_metadata, self->fd, to_ns + TW_SEC,
						    interval_ns, SA_RESTART));
	}
	EXPECT_RACE(&race);
}

/* ---- other clocks -------------------------------------------------------- */

FIXTURE(advance_of) {
	int fd;
};

FIXTURE_VARIANT(advance_of) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(advance_of, monotonic) {
	.clock = TWHEEL_CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(advance_of, boottime) {
	.clock = TWHEEL_CLOCK_BOOTTIME,
};

FIXTURE_VARIANT_ADD(advance_of, realtime) {
	.clock = TWHEEL_CLOCK_REALTIME,
};

FIXTURE_VARIANT_ADD(advance_of, tai) {
	.clock = TWHEEL_CLOCK_TAI,
};

FIXTURE_SETUP(advance_of)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, variant->clock, TW_MS, 0));
}

FIXTURE_TEARDOWN(advance_of)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(advance_of, advance_of_a_real_clock_says_eopnotsupp_and_expires_nothing)
{
	__u64 id;

	EXPECT_EQ(-EOPNOTSUPP, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	ASSERT_EQ(0, tw_arm_at(self->fd, TWHEEL_TIME_NEVER - 1, &id));
	EXPECT_EQ(-EOPNOTSUPP, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST(advance_of_a_wheel_that_was_never_set_up_says_eopnotsupp)
{
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EOPNOTSUPP, tw_advance(fd, TW_SEC));
	close(fd);
}

TEST_HARNESS_MAIN
