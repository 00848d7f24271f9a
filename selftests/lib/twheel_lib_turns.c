// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel by time, on the caller's clock: when a loop has to wake up, how much one dispatch does,
 * a wheel's statistics, and its end.
 */
#include "twheel_lib_test.h"
#include "lib_moved.h"

#define MANY	1000
/* The most timers that a dispatch moves to other slots, also if it is one of many in a row. */
#define MOVED	4500
#define MOVED_IN_A_ROW	1000

FIXTURE(turns) {
	struct twheel *w;
	struct mark mark[MANY];
};

FIXTURE_SETUP(turns)
{
	int i;

	for (i = 0; i < MANY; i++)
		mark_init(&self->mark[i]);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
}

FIXTURE_TEARDOWN(turns)
{
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

/* ---- next ------------------------------------------------------------------- */

TEST_F(turns, descriptor_is_there_if_the_system_has_a_timerfd)
{
#ifdef TWHEEL_POSIX
	struct twheel *w;

	EXPECT_EQ(-ENOSYS, twheel_fd(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(-ENOSYS, twheel_fd(self->w));
	EXPECT_EQ(TW_SEC, twheel_next(self->w));
	twheel_wake(self->w);
	EXPECT_EQ(0, twheel_wait(self->w, TW_SEC));
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(-EINVAL, lib_open(&w, TWHEEL_BOOTTIME, 0, TW_MS));
	EXPECT_EQ(-EINVAL, lib_open(&w, TWHEEL_TAI, 0, TW_MS));
	ASSERT_EQ(0, lib_open(&w, TWHEEL_REALTIME, TWHEEL_SHARED, TW_MS));
	twheel_start(w, &self->mark[0].timer, TW_HOUR);
	EXPECT_EQ(-ENOSYS, twheel_wait(w, TW_MS));
	EXPECT_TRUE(twheel_stop(w, &self->mark[0].timer));
	twheel_close(w);
#else
	EXPECT_LE(0, twheel_fd(self->w));
#endif
}

TEST_F(turns, next_is_the_edge_of_the_first_deadline)
{
	__u64 seed = 1, first_ns = TWHEEL_NEVER;
	int i;

	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	for (i = 0; i < 30; i++) {
		__u64 ns = 1 + ((__u64)tw_random(&seed) << 20);

		if (ns < first_ns)
			first_ns = ns;
		twheel_start(self->w, &self->mark[i].timer, ns);
		ASSERT_EQ(tw_round_up(first_ns, TW_MS), twheel_next(self->w));
	}
	/* From each timer to the next there is one step. */
	for (i = 30; i; i -= twheel_dispatch(self->w, 0)) {
		ASSERT_LT(twheel_now(self->w), twheel_next(self->w));
		ASSERT_EQ(0, twheel_advance(self->w, twheel_next(self->w) - 1));
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
		ASSERT_EQ(0, twheel_advance(self->w, twheel_next(self->w)));
	}
	EXPECT_EQ(0, lib_stats(self->w).vain);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

TEST_F(turns, next_leads_to_the_first_of_a_full_slot_with_few_wakeups_in_vain)
{
	int i, steps;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_HOUR + i * TW_SEC);
	for (steps = 0; steps < 5 && !self->mark[0].called; steps++)
		ASSERT_LE(0, lib_step(self->w, twheel_next(self->w)));
	EXPECT_EQ(TW_HOUR, self->mark[0].at_ns);
	EXPECT_GE(4, lib_stats(self->w).vain);
}

/* A dispatch moves timers on before their slot comes up, almost once around the ring. */
TEST_F(turns, next_knows_a_timer_that_was_moved_before_its_slot_came_up)
{
	const __u64 slot_ns = 1ULL << 26, grain_ns = 1ULL << 19;
	int at, offset;

	for (at = 0; at < 128; at += 5) {
		for (offset = 0; offset < 128; offset += 7) {
			struct mark *now = &self->mark[0], *then = &self->mark[1];
			__u64 deadline_ns = 11 * slot_ns + offset * grain_ns + 5;
			struct twheel *w;

			ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, TW_MS));
			twheel_start_at(w, &now->timer, 10 * slot_ns + at * grain_ns);
			twheel_start_at(w, &then->timer, deadline_ns);
			ASSERT_EQ(1, lib_step(w, twheel_next(w)));
			ASSERT_EQ(tw_round_up(deadline_ns, TW_MS), twheel_next(w));
			ASSERT_EQ(1, lib_step(w, twheel_next(w)));
			twheel_close(w);
		}
	}
}

TEST_F(turns, loop_does_not_wake_up_after_the_last_stop)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, 1 + (TW_MS << i % 30));
	for (i = 0; i < MANY; i++) {
		EXPECT_NE(TWHEEL_NEVER, twheel_next(self->w));
		twheel_stop(self->w, &self->mark[i].timer);
	}
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	/* The same holds if some have expired, and if a limit has cut a dispatch off. */
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, 1 + (TW_MS << i % 30));
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	ASSERT_EQ(9, twheel_dispatch(self->w, 9));
	for (i = 0; i < MANY; i++)
		twheel_stop(self->w, &self->mark[i].timer);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

TEST_F(turns, loop_that_starts_and_stops_100_timers_a_second_never_wakes_up_in_vain)
{
	int second, i;

	/* For an hour, start requests of 30 s that are answered within 100 ms. */
	for (second = 0; second < 3600; second++) {
		__u64 now_ns = second * TW_SEC;

		for (i = 0; i < 100; i++) {
			ASSERT_EQ(0, twheel_advance(self->w, now_ns + i * 10 * TW_MS));
			twheel_start(self->w, &self->mark[i].timer, 30 * TW_SEC);
			twheel_stop(self->w, &self->mark[(i + 90) % 100].timer);
			ASSERT_LT(twheel_now(self->w) + 10 * TW_MS, twheel_next(self->w));
		}
		for (i = 90; i < 100; i++)
			twheel_stop(self->w, &self->mark[i].timer);
		ASSERT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	}
	EXPECT_EQ(0, lib_stats(self->w).dispatches);
}

TEST_F(turns, next_knows_a_timer_that_was_restarted_for_a_nanosecond_earlier)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS + 1);
	EXPECT_EQ(2 * TW_MS, twheel_next(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	EXPECT_EQ(TW_MS, twheel_next(self->w));
	ASSERT_EQ(1, lib_step(self->w, TW_MS));
}

TEST_F(turns, next_is_exact_after_a_limit_that_was_just_enough)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, 30 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 20 * TW_MS));
	ASSERT_EQ(1, twheel_dispatch(self->w, 1));
	EXPECT_EQ(30 * TW_MS, twheel_next(self->w));
	ASSERT_EQ(0, twheel_advance(self->w, 30 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, lib_stats(self->w).vain);
}

/* If a tick is 1 ms, 2^63 ns are no whole number of ticks. */
TEST_F(turns, next_is_the_last_edge_there_is_and_beyond_it_never)
{
	const __u64 last_ns = (1ULL << 63) - (1ULL << 63) % TW_MS;

	twheel_start_at(self->w, &self->mark[0].timer, last_ns + 1);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	twheel_start_at(self->w, &self->mark[1].timer, last_ns);
	EXPECT_EQ(last_ns, twheel_next(self->w));
	ASSERT_EQ(0, lib_step(self->w, last_ns - 1));
	EXPECT_EQ(last_ns, twheel_next(self->w));
	ASSERT_EQ(1, lib_step(self->w, last_ns));
	EXPECT_EQ(1, self->mark[1].called);
	ASSERT_EQ(0, lib_step(self->w, (1ULL << 63) - 2));
}

/* 3577 ns divide 2^63 - 1. */
TEST_F(turns, dispatch_ends_just_before_the_end_of_time_though_that_is_an_edge)
{
	const __u64 end_ns = (1ULL << 63) - 1;
	struct twheel *w;

	ASSERT_EQ(0, end_ns % 3577);
	ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, 3577));
	EXPECT_EQ(-EINVAL, twheel_advance(w, end_ns));
	EXPECT_EQ(0, lib_step(w, end_ns - 1));
	twheel_start_at(w, &self->mark[0].timer, end_ns);
	twheel_start_at(w, &self->mark[1].timer, TWHEEL_NEVER);
	EXPECT_EQ(0, twheel_dispatch(w, 0));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(w));
	twheel_close(w);
}

/* A ring of 256 slots of half a tick: the third one ends before the second tick. */
TEST_F(turns, slot_that_was_called_is_seen_when_it_comes_round_again)
{
	const __u64 grain_ns = 1 << 19, in_slot_ns = 2 * grain_ns + 1;

	twheel_start_at(self->w, &self->mark[0].timer, in_slot_ns);
	ASSERT_EQ(1, lib_step(self->w, 2 * TW_MS));
	ASSERT_EQ(0, lib_step(self->w, 200 * grain_ns));
	twheel_start_at(self->w, &self->mark[0].timer, in_slot_ns + 256 * grain_ns);
	twheel_start_at(self->w, &self->mark[1].timer, in_slot_ns + 256 * grain_ns);
	ASSERT_EQ(2, lib_step(self->w, 260 * grain_ns));
}

TEST_F(turns, periodic_timer_that_has_no_next_period_never_expires_again)
{
	const __u64 interval_ns = 3ULL << 61;

	twheel_start_periodic(self->w, &self->mark[0].timer, interval_ns, interval_ns, 0);
	twheel_start_periodic(self->w, &self->mark[1].timer, TW_MS, interval_ns, 0);
	ASSERT_EQ(2, lib_step(self->w, (1ULL << 63) - 2));
	EXPECT_EQ(1, self->mark[0].periods);
	EXPECT_EQ(2, self->mark[1].periods);
	EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&self->mark[0].timer));
	EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&self->mark[1].timer));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

static volatile int looks;

/* This is called if the wheel reads a timer whose page is closed. */
static void on_look(int signal, siginfo_t *info, void *context)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)info->si_addr & -page);

	(void)signal;
	(void)context;
	looks++;
	if (mprotect(start, page, PROT_READ | PROT_WRITE) < 0)
		_exit(KSFT_FAIL);
}

/* The timers of the first slot have a page each. */
TEST_F(turns, starts_that_have_passed_look_at_no_timer_of_the_first_slot)
{
	const struct sigaction action = { .sa_sigaction = on_look, .sa_flags = SA_SIGINFO };
	const size_t page = sysconf(_SC_PAGESIZE);
	const int nr = 30;
	struct mark *passed = self->mark;
	char *pages = mmap(NULL, nr * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i, turn;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, sigaction(SIGSEGV, &action, NULL));
	for (i = 0; i < nr; i++) {
		struct mark *m = (struct mark *)(pages + i * page);

		mark_init(m);
		twheel_start(self->w, &m->timer, TW_MIN + 1 + i);
	}
	EXPECT_EQ(TW_MIN + TW_MS, twheel_next(self->w));
	ASSERT_EQ(0, mprotect(pages, nr * page, PROT_NONE));
	for (turn = 0; turn < 20; turn++) {
		__u64 now_ns = twheel_now(self->w);

		twheel_start(self->w, &passed[0].timer, 0);
		twheel_start_at(self->w, &passed[1].timer, now_ns / 2);
		twheel_start(self->w, &passed[2].timer, 0);
		EXPECT_EQ(now_ns, twheel_next(self->w));
		EXPECT_TRUE(twheel_stop(self->w, &passed[2].timer));
		EXPECT_EQ(now_ns, twheel_next(self->w));
		EXPECT_EQ(2, lib_step(self->w, now_ns + 3 * TW_MS / 2));
		EXPECT_EQ(TW_MIN + TW_MS, twheel_next(self->w));
		/* All timers that had passed are stopped again. */
		twheel_start(self->w, &passed[2].timer, 0);
		EXPECT_TRUE(twheel_stop(self->w, &passed[2].timer));
		EXPECT_EQ(TW_MIN + TW_MS, twheel_next(self->w));
	}
	EXPECT_EQ(0, looks);
	ASSERT_EQ(0, mprotect(pages, nr * page, PROT_READ | PROT_WRITE));
	/* If an earlier one is started, it is the first, also while another one has passed. */
	twheel_start(self->w, &passed[0].timer, 0);
	twheel_start(self->w, &passed[1].timer, TW_SEC);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(tw_round_up(twheel_now(self->w) + TW_SEC, TW_MS), twheel_next(self->w));
	EXPECT_EQ(nr + 1, lib_step(self->w, TW_MIN + TW_MS));
	ASSERT_EQ(0, munmap(pages, nr * page));
}

/* ---- one dispatch ------------------------------------------------------------- */

/* If timers are not due, a dispatch does not take long for them: it moves a bounded number. */
TEST_F_TIMEOUT(turns, dispatch_with_a_million_timers_over_an_hour_moves_few, 100)
{
	int i, nr = tw_setting("TW_MILLION", 1000000), left = nr;
	struct mark *m = calloc(nr, sizeof(*m));
	__u64 before, worst = 0, late_ns = 0;
	__u64 seed = 1;

	ASSERT_NE(NULL, m);
	for (i = 0; i < nr; i++) {
		mark_init(&m[i]);
		twheel_start(self->w, &m[i].timer, ((__u64)tw_random(&seed) << 10) % TW_HOUR);
		m[i].data = (void *)(uintptr_t)(twheel_timer_deadline(&m[i].timer) / TW_MS);
	}
	while (left) {
		__u64 next_ns = twheel_next(self->w);
		int ret;

		if (next_ns > twheel_now(self->w))
			ASSERT_EQ(0, twheel_advance(self->w, next_ns));
		before = lib_moved(self->w);
		ret = twheel_dispatch(self->w, 0);
		ASSERT_LE(0, ret);
		left -= ret;
		if (lib_moved(self->w) - before > worst)
			worst = lib_moved(self->w) - before;
	}
	for (i = 0; i < nr; i++) {
		__u64 ns = m[i].at_ns - (uintptr_t)m[i].data * TW_MS;

		ASSERT_EQ(1, m[i].called);
		if (ns > late_ns)
			late_ns = ns;
	}
	TH_LOG("%llu moved by one dispatch at most", worst);
	EXPECT_LT(100, worst);
	EXPECT_GE(MOVED_IN_A_ROW, worst);
	EXPECT_GE(2 * TW_MS, late_ns);
	free(m);
}

/*
 * A crowd of timers that expire within a time; the loop sleeps until twheel_next(), and dispatches.
 */
struct crowd {
	struct mark *mark;
	int nr, left;
	int again;		/* dispatches that had to go on at the same time */
	__u64 worst;		/* the most timers that one has moved which called some */
};

/* The width of a slot of level 1. */
#define SLOT_NS	(1ULL << 26)

static void crowd_start(struct twheel *w, struct crowd *crowd, int nr, __u64 at_ns, __u64 span_ns)
{
	int i;

	for (i = 0; i < nr; i++) {
		struct mark *m = &crowd->mark[crowd->nr++];

		mark_init(m);
		twheel_start_at(w, &m->timer, at_ns + span_ns / nr * i);
	}
	crowd->left += nr;
}

static void crowd_expire(struct twheel *w, struct crowd *crowd)
{
	while (crowd->left > 0) {
		__u64 next_ns = twheel_next(w), before = lib_moved(w);
		int ret;

		if (next_ns > twheel_now(w))
			twheel_advance(w, next_ns);
		else
			crowd->again++;
		ret = twheel_dispatch(w, 0);
		crowd->left -= ret;
		if (ret && lib_moved(w) - before > crowd->worst)
			crowd->worst = lib_moved(w) - before;
	}
}

#define CROWD	300000

FIXTURE(crowds) {
	struct twheel *w;
	struct crowd crowd;
};

FIXTURE_SETUP(crowds)
{
	self->crowd = (struct crowd){ .mark = calloc(CROWD, sizeof(struct mark)) };
	ASSERT_NE(NULL, self->crowd.mark);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
}

FIXTURE_TEARDOWN(crowds)
{
	twheel_close(self->w);
	free(self->crowd.mark);
	EXPECT_NO_LEAK();
}

FIXTURE_VARIANT(crowds) {
	__u64 ahead_ns;
};

FIXTURE_VARIANT_ADD(crowds, of_level_1) { .ahead_ns = 3 * TW_SEC };
FIXTURE_VARIANT_ADD(crowds, of_level_2) { .ahead_ns = 20 * TW_SEC };
FIXTURE_VARIANT_ADD(crowds, of_level_3) { .ahead_ns = 2 * TW_HOUR };

/* Nothing wakes the loop in the time before. */
TEST_F(crowds, crowd_that_begins_all_of_a_sudden_is_sorted_before_it_is_due)
{
	__u64 at_ns = tw_round_up(variant->ahead_ns, SLOT_NS);

	crowd_start(self->w, &self->crowd, 60000, at_ns, SLOT_NS);
	crowd_expire(self->w, &self->crowd);
	EXPECT_EQ(0, self->crowd.again);
	/* A dispatch moves 4,096 from each level to the one below. */
	EXPECT_GE(3 * (60000 / 4096 + 2), lib_stats(self->w).vain);
}

TEST_F(crowds, crowd_after_a_few_that_wake_the_loop_is_sorted_before_it_is_due)
{
	__u64 at_ns = tw_round_up(variant->ahead_ns, SLOT_NS);

	crowd_start(self->w, &self->crowd, 67 * 3, at_ns, 3 * SLOT_NS);
	crowd_start(self->w, &self->crowd, 60000, at_ns + 3 * SLOT_NS, SLOT_NS);
	crowd_expire(self->w, &self->crowd);
	EXPECT_EQ(0, self->crowd.again);
}

/* In each tick 200 expire.  Only the last 300 ticks count, when the beginning is over. */
TEST_F(crowds, dispatch_moves_as_many_as_three_for_two_that_expire)
{
	__u64 at_ns = tw_round_up(variant->ahead_ns, SLOT_NS);

	crowd_start(self->w, &self->crowd, 1500 * 200, at_ns, 1500 * TW_MS);
	self->crowd.left -= 300 * 200;
	crowd_expire(self->w, &self->crowd);
	self->crowd.left += 300 * 200;
	self->crowd.worst = 0;
	crowd_expire(self->w, &self->crowd);
	EXPECT_EQ(0, self->crowd.again);
	EXPECT_GE(200 * 3 / 2 + 3, self->crowd.worst);
}

/* Both would have one place in the ring of slots, but the first is too far away for it. */
TEST_F(turns, timer_is_in_time_beside_one_that_was_restarted_for_much_later)
{
	const __u64 ring_ns = 256ULL << 19;
	struct mark *m = self->mark;
	int i;

	for (i = 1; i < 200; i += 11) {
		__u64 now_ns = twheel_now(self->w), early_ns = now_ns + TW_SEC + 30 * TW_MS;

		twheel_start_at(self->w, &m[0].timer, now_ns + TW_SEC);
		twheel_start_at(self->w, &m[0].timer, early_ns + i * ring_ns);
		ASSERT_EQ(0, lib_step(self->w, now_ns + TW_SEC));
		twheel_start_at(self->w, &m[1].timer, early_ns);
		EXPECT_EQ(tw_round_up(early_ns, TW_MS), twheel_next(self->w));
		EXPECT_EQ(1, lib_step(self->w, tw_round_up(early_ns, TW_MS)));
		EXPECT_TRUE(twheel_stop(self->w, &m[0].timer));
	}
}

TEST_F(turns, timers_restarted_for_much_later_are_moved_there_at_once)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_SEC);
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_HOUR);
	for (i = 0; i < 3 && twheel_next(self->w) < 2 * TW_SEC; i++)
		ASSERT_EQ(0, lib_step(self->w, twheel_next(self->w)));
	EXPECT_EQ(1, lib_stats(self->w).dispatches);
	EXPECT_EQ(MANY, lib_stats(self->w).moved);
}

/* The edge of a tick cuts its slot in two. */
TEST_F(turns, timer_that_is_not_due_stays_in_a_slot_that_is_called)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, TW_MS + 1);
	ASSERT_EQ(1, lib_step(self->w, TW_MS));
	EXPECT_EQ(1, self->mark[0].called);
	EXPECT_EQ(0, lib_stats(self->w).moved);
	ASSERT_EQ(1, lib_step(self->w, 2 * TW_MS));
}

TEST_F(turns, dispatch_that_moves_no_more_leaves_the_rest_for_the_next)
{
	int i, nr = 20000, turns;
	struct mark *m = calloc(nr, sizeof(*m));

	/* All are in one slot that has to be emptied at once. */
	for (i = 0; i < nr; i++) {
		mark_init(&m[i]);
		twheel_start(self->w, &m[i].timer, TW_HOUR + i * TW_US);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_HOUR + TW_SEC));
	for (turns = 0; turns < 100 && twheel_next(self->w) <= twheel_now(self->w); turns++) {
		__u64 before = lib_moved(self->w);

		ASSERT_LE(0, twheel_dispatch(self->w, 0));
		ASSERT_GE(MOVED, lib_moved(self->w) - before);
	}
	EXPECT_LT(1, turns);
	EXPECT_EQ(nr, marks_called(m, nr));
	free(m);
}

/* The rest of the slot begins with a timer of the next tick, which is not due. */
TEST_F(turns, dispatch_that_moves_no_more_leaves_a_timer_that_is_due_behind_one_that_is_not)
{
	const __u64 now_ns = TW_HOUR + TW_MS;
	struct mark *m = calloc(4096, sizeof(*m));
	int i;

	ASSERT_NE(NULL, m);
	twheel_start_at(self->w, &self->mark[0].timer, now_ns - 1);
	twheel_start_at(self->w, &self->mark[1].timer, now_ns + 1);
	for (i = 0; i < 4096; i++) {
		mark_init(&m[i]);
		twheel_start_at(self->w, &m[i].timer, now_ns + TW_MIN);
	}
	ASSERT_EQ(0, lib_step(self->w, now_ns));
	EXPECT_EQ(now_ns, twheel_next(self->w));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[0].called);
	EXPECT_EQ(now_ns + TW_MS, twheel_next(self->w));
	twheel_stop_all(self->w, NULL, NULL);
	free(m);
}

/* A limit has ended the dispatch before, and no timer of its turn is left. */
TEST_F(turns, dispatch_calls_what_is_due_now_if_the_rest_of_the_one_before_was_stopped)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, 5 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 20 * TW_MS));
	ASSERT_EQ(1, twheel_dispatch(self->w, 1));
	EXPECT_LE(twheel_next(self->w), twheel_now(self->w));
	twheel_stop(self->w, &self->mark[1].timer);
	twheel_start(self->w, &self->mark[2].timer, 10 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 30 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[2].called);
}

static void dispatches(struct twheel *w, struct mark *m)
{
	twheel_start(w, &m->others->timer, 0);
	m->nr_others = twheel_dispatch(w, 0);
}

TEST_F(turns, dispatch_in_a_callback_calls_what_is_due_now_if_nothing_is_left)
{
	self->mark[0].does = dispatches;
	self->mark[0].others = &self->mark[1];
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	EXPECT_EQ(1, lib_step(self->w, 20 * TW_MS));
	EXPECT_EQ(1, self->mark[0].nr_others);
	EXPECT_EQ(1, self->mark[1].called);
}

TEST_F(turns, dispatch_in_a_callback_goes_on_with_what_is_left)
{
	self->mark[0].does = dispatches;
	self->mark[0].others = &self->mark[2];
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, 5 * TW_MS);
	EXPECT_EQ(1, lib_step(self->w, 20 * TW_MS));
	EXPECT_EQ(1, self->mark[0].nr_others);
	EXPECT_EQ(1, self->mark[1].called);
	EXPECT_EQ(0, self->mark[2].called);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

/* ---- timers that pend ----------------------------------------------------------- */

static void count(struct twheel *w, struct twheel_timer *t, void *arg)
{
	struct mark *m = twheel_container_of(t, struct mark, timer);
	int *nr = arg;

	(void)w;
	m->nr_others++;
	++*nr;
}

static void count_and_stop(struct twheel *w, struct twheel_timer *t, void *arg)
{
	count(w, t, arg);
	twheel_stop(w, t);
}

static void start_of_all_kinds(struct twheel *w, struct mark *m, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		if (i % 4 == 0)
			twheel_start_every(w, &m[i].timer, TW_MS << i % 20);
		else if (i % 4 == 1)
			twheel_start(w, &m[i].timer, TWHEEL_NEVER);
		else if (i % 4 == 2)
			twheel_start(w, &m[i].timer, 0);
		else
			twheel_start(w, &m[i].timer, TW_MS << i % 30);
	}
}

TEST_F(turns, each_visits_every_timer_that_pends_once)
{
	int i, nr = 0;

	start_of_all_kinds(self->w, self->mark, MANY / 2);
	twheel_each(self->w, count, &nr);
	EXPECT_EQ(MANY / 2, nr);
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(i < MANY / 2, self->mark[i].nr_others);
}

TEST_F(turns, visitor_may_stop_the_timer_that_it_is_called_for)
{
	int nr = 0;

	start_of_all_kinds(self->w, self->mark, MANY);
	twheel_each(self->w, count_and_stop, &nr);
	EXPECT_EQ(MANY, nr);
	EXPECT_EQ(0, lib_stats(self->w).pending);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

TEST_F(turns, stop_all_leaves_every_timer_idle)
{
	int i;

	start_of_all_kinds(self->w, self->mark, MANY);
	EXPECT_EQ(MANY, twheel_stop_all(self->w, NULL, NULL));
	EXPECT_EQ(0, twheel_stop_all(self->w, NULL, NULL));
	for (i = 0; i < MANY; i++)
		ASSERT_FALSE(twheel_timer_pending(&self->mark[i].timer));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	ASSERT_EQ(0, lib_step(self->w, TW_DAY));
}

static void free_it(struct twheel *w, struct twheel_timer *t, void *arg)
{
	int *nr = arg;

	(void)w;
	free(twheel_container_of(t, struct mark, timer));
	++*nr;
}

TEST_F(turns, visitor_of_stop_all_may_free_the_timer)
{
	int i, nr = 0;

	for (i = 0; i < MANY; i++) {
		struct mark *m = malloc(sizeof(*m));

		mark_init(m);
		start_of_all_kinds(self->w, m, 1);
		twheel_start(self->w, &m->timer, (TW_MS << i % 30) - 1);
	}
	EXPECT_EQ(MANY, twheel_stop_all(self->w, free_it, &nr));
	EXPECT_EQ(MANY, nr);
}

static void restart_the_next(struct twheel *w, struct twheel_timer *t, void *arg)
{
	struct mark *m = twheel_container_of(t, struct mark, timer), *first = arg;

	m->nr_others++;
	/* Start one for later, and one for now; each was stopped, or is about to be. */
	twheel_start(w, &first[(m - first + 1) % MANY].timer, TW_DAY);
	twheel_start(w, &first[(m - first + 500) % MANY].timer, 0);
}

TEST_F(turns, timers_that_a_visitor_of_stop_all_starts_pend_and_are_not_stopped_again)
{
	int i, pending = 0;

	start_of_all_kinds(self->w, self->mark, MANY);
	twheel_stop_all(self->w, restart_the_next, self->mark);
	for (i = 0; i < MANY; i++) {
		ASSERT_GE(1, self->mark[i].nr_others);
		pending += twheel_timer_pending(&self->mark[i].timer);
	}
	EXPECT_LT(MANY / 2, pending);
	EXPECT_EQ(pending, lib_stats(self->w).pending);
	ASSERT_EQ(pending, lib_step(self->w, 2 * TW_DAY));
}

/* ---- statistics --------------------------------------------------------------- */

TEST_F(turns, stats_count_what_was_called_and_how_late)
{
	struct twheel_stats stats;

	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, TW_MS - 1);
	twheel_start(self->w, &self->mark[2].timer, TW_MS - 1024);
	ASSERT_EQ(3, lib_step(self->w, TW_MS));
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, TW_HOUR);
	ASSERT_EQ(1, lib_step(self->w, TW_HOUR));
	twheel_start(self->w, &self->mark[2].timer, TW_SEC);
	twheel_start(self->w, &self->mark[3].timer, TW_SEC);
	twheel_stop(self->w, &self->mark[2].timer);
	stats = lib_stats(self->w);
	EXPECT_EQ(2, stats.pending);
	EXPECT_EQ(4, stats.called);
	EXPECT_EQ(2, stats.dispatches);
	EXPECT_EQ(0, stats.vain);
	EXPECT_EQ(0, stats.settings);
	EXPECT_EQ(0, stats.slowest_ns);
	EXPECT_EQ(1, stats.late[0]);
	EXPECT_EQ(1, stats.late[1]);
	EXPECT_EQ(1, stats.late[11]);
	/* It is an hour less 2 ms: 2^41 ns and more. */
	EXPECT_EQ(1, stats.late[42]);
}

TEST_F(turns, dispatch_that_calls_nothing_is_counted_as_one_in_vain)
{
	ASSERT_EQ(0, lib_step(self->w, TW_MS));
	EXPECT_EQ(0, lib_stats(self->w).dispatches);
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	ASSERT_EQ(0, lib_step(self->w, 5 * TW_MS));
	EXPECT_EQ(1, lib_stats(self->w).dispatches);
	EXPECT_EQ(1, lib_stats(self->w).vain);
	EXPECT_LE(1, lib_stats(self->w).moved);
}

TEST_F(turns, stats_write_no_more_than_they_may_and_zeros_beyond_what_is_known)
{
	struct {
		struct twheel_stats stats;
		__u64 more[2];
	} s;

	memset(&s, TW_POISON, sizeof(s));
	twheel_get_stats(self->w, &s.stats, offsetof(struct twheel_stats, dispatches));
	EXPECT_EQ(0, s.stats.called);
	EXPECT_EQ(TW_POISON64, s.stats.dispatches);
	twheel_get_stats(self->w, &s.stats, sizeof(s.stats) + sizeof(s.more[0]));
	EXPECT_EQ(0, s.stats.dispatches);
	EXPECT_EQ(0, s.more[0]);
	EXPECT_EQ(TW_POISON64, s.more[1]);
}

static void takes_long(struct twheel *w, struct mark *m)
{
	(void)w;
	(void)m;
	tw_sleep(3 * TW_MS);
}

TEST_F(turns, slowest_callback_is_measured_if_that_was_asked_for)
{
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, TWHEEL_MEASURE, TW_MS));
	self->mark[0].does = takes_long;
	twheel_start(w, &self->mark[0].timer, TW_MS);
	twheel_start(w, &self->mark[1].timer, TW_MS);
	ASSERT_EQ(2, lib_step(w, TW_MS));
	EXPECT_LE(3 * TW_MS, lib_stats(w).slowest_ns);
	EXPECT_GT(10 * TW_SEC, lib_stats(w).slowest_ns);
	twheel_close(w);
}

/* ---- the caller's clock ----------------------------------------------------------- */

TEST_F(turns, advance_to_the_past_or_beyond_all_time_is_einval_and_moves_nothing)
{
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	ASSERT_EQ(0, twheel_advance(self->w, TW_MS));
	EXPECT_EQ(-EINVAL, twheel_advance(self->w, TW_MS - 1));
	EXPECT_EQ(-EINVAL, twheel_advance(self->w, (1ULL << 63) - 1));
	EXPECT_EQ(-EINVAL, twheel_advance(self->w, 1ULL << 63));
	EXPECT_EQ(-EINVAL, twheel_advance(self->w, TWHEEL_NEVER));
	EXPECT_EQ(TW_MS, twheel_now(self->w));
	EXPECT_EQ(TW_MS, twheel_update(self->w));
	ASSERT_EQ(0, twheel_advance(self->w, TW_MS));
}

/* ---- the end --------------------------------------------------------------------- */

TEST_F(turns, close_leaves_every_timer_idle_and_calls_nothing)
{
	int i;

	start_of_all_kinds(self->w, self->mark, MANY);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	ASSERT_EQ(3, twheel_dispatch(self->w, 3));
	twheel_close(self->w);
	EXPECT_EQ(3, marks_called(self->mark, MANY));
	for (i = 0; i < MANY; i++)
		ASSERT_FALSE(twheel_timer_pending(&self->mark[i].timer));
	/* After that they can be started in another one. */
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	ASSERT_EQ(MANY, lib_step(self->w, TW_MS));
}

TEST_F(turns, close_of_nothing_is_nothing)
{
	twheel_close(NULL);
}

TEST_HARNESS_MAIN
