// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of wahern/timeout's test-timeout.c, made on the device: random timeouts and random
 * steps of the clock, compared with a sorted array. (twheel_random.c has random calls of all
 * kinds, in vectors, and periods.)
 *
 * All use the virtual clock. Each run has a seed of its own, which it prints; TW_SEED=number in
 * the environment runs that one again.
 */
#include "twheel_chance.h"

/* ---- one-shots ----------------------------------------------------------- */

#define MAX_TIMEOUTS	10000
#define VECTOR		256

/* All values are in ticks. */
struct plan {
	__u64 min;		/* deadlines, from */
	__u64 max;		/* exclusive */
	__u64 start;		/* the clock when they are armed */
	__u64 end;		/* no step begins after it */
	__u64 max_step;
	int nr;
	int cancels;		/* how many are tried after each step */
	int rounds;
	bool relative;
	enum { CLOSE, LET_COME, CANCEL } rest;
};

struct one_shot {
	__u64 id;
	__u64 deadline_ns;
	__u64 edge_ns;
	enum { PENDING, ENDED } state;
};

static struct one_shot timeouts[MAX_TIMEOUTS];
/* The oracle: numbers of all timeouts by their edges, and the present time. */
static int sorted[MAX_TIMEOUTS];
static int first_sorted;

static struct round {
	int fd;
	__u64 tick_ns;
	__u64 now_ns;
	__u64 armed_ns;		/* the clock when they were armed */
	int completed;
	int revoked;
	int cancelled;
} this;

static int compare_edges(const void *a, const void *b)
{
	const struct one_shot *x = &timeouts[*(const int *)a];
	const struct one_shot *y = &timeouts[*(const int *)b];

	return (x->edge_ns > y->edge_ns) - (x->edge_ns < y->edge_ns);
}

/* Choose few slots or many, so that timeouts take each way through the levels. */
static void round_begin(struct __test_metadata *_metadata, const struct plan *plan)
{
	static const __u32 slots[] = { TWHEEL_SLOTS_MIN, 32, 1024 };
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.slots = slots[random_below(ARRAY_SIZE(slots))],
	};

	/* Far deadlines in microseconds just fit below the end of time. */
	this = (struct round){ .tick_ns = plan->end > 1ULL << 30 ? TW_US : 1234 };
	/* If there is one level, each pending timeout is visited once a round. */
	if (plan->end <= 1000 && random_below(2)) {
		setup.flags = TWHEEL_SETUP_ONE_LEVEL;
		this.tick_ns += TWHEEL_ROUND_MIN_NS / setup.slots;
	}
	setup.tick_ns = this.tick_ns;
	this.fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, this.fd);
	this.armed_ns = plan->start * this.tick_ns;
	this.now_ns = this.armed_ns;
	ASSERT_EQ(0, tw_advance(this.fd, this.now_ns));
}

static void round_arm(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct twheel_arm arms[VECTOR];
	int i, j, nr;

	for (i = 0; i < plan->nr; i += nr) {
		nr = 1 + random_below(VECTOR);
		if (nr > plan->nr - i)
			nr = plan->nr - i;
		for (j = 0; j < nr; j++) {
			struct one_shot *t = &timeouts[i + j];

			t->state = PENDING;
			t->edge_ns = random_between(plan->min, plan->max) * this.tick_ns;
			/* Choose a time within the tick that ends there. */
			t->deadline_ns = t->edge_ns - random_below(this.tick_ns);
			sorted[i + j] = i + j;
			arms[j] = (struct twheel_arm){
				.flags = plan->relative ? 0 : TWHEEL_ARM_ABSOLUTE,
				.expires_ns = t->deadline_ns - (plan->relative ? this.now_ns : 0),
				.user_data = i + j,
			};
		}
		ASSERT_EQ(nr, tw_arm_vec(this.fd, arms, nr));
		for (j = 0; j < nr; j++)
			timeouts[i + j].id = arms[j].id;
	}
	qsort(sorted, plan->nr, sizeof(sorted[0]), compare_edges);
	first_sorted = 0;
}

/*
 * Read all events: they must be those from first_sorted to end, in order. If timeouts were due when
 * armed, they did not wait for the others, and have no order.
 */
static void expect_due(struct __test_metadata *_metadata, int end)
{
	struct twheel_event events[64];
	__u64 previous_ns = 0;
	int i, nr, left = 0;

	for (i = first_sorted; i < end; i++)
		left += timeouts[sorted[i]].state == PENDING;
	while ((nr = tw_read(this.fd, events, 1 + random_below(64))) > 0) {
		for (i = 0; i < nr; i++) {
			struct one_shot *t = &timeouts[events[i].user_data];

			ASSERT_GT(MAX_TIMEOUTS, events[i].user_data);
			ASSERT_EQ(t->id, events[i].id);
			ASSERT_EQ(PENDING, t->state);
			ASSERT_EQ(t->deadline_ns, events[i].deadline_ns);
			ASSERT_LE(t->edge_ns, this.now_ns);
			ASSERT_LE(previous_ns, t->edge_ns);
			ASSERT_EQ(this.now_ns, events[i].fired_ns);
			ASSERT_EQ(1, events[i].count);
			if (t->edge_ns > this.armed_ns)
				previous_ns = t->edge_ns;
			t->state = ENDED;
		}
		this.completed += nr;
		left -= nr;
	}
	ASSERT_EQ(-EAGAIN, nr);
	ASSERT_EQ(0, left);
	first_sorted = end;
}

/* Check that INFO agrees with the array. */
static void expect_next(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct twheel_info info;
	int i = first_sorted;

	while (i < plan->nr && timeouts[sorted[i]].state == ENDED)
		i++;
	ASSERT_EQ(0, tw_info(this.fd, &info));
	ASSERT_EQ(i < plan->nr ? timeouts[sorted[i]].edge_ns : TWHEEL_TIME_NEVER,
		  info.next_expiry_ns);
	ASSERT_EQ(plan->nr - this.completed - this.cancelled - this.revoked, info.live);
	ASSERT_EQ(0, info.unread);
	ASSERT_EQ(this.completed, info.completed);
	ASSERT_EQ(this.cancelled, info.cancelled);
	ASSERT_EQ(this.revoked, info.revoked);
}

/* Cancel any of them, also timeouts that have ended, and the one that was just cancelled. */
static void cancel_some(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct twheel_cancel cancels[VECTOR] = {};
	int which[VECTOR];
	int i;

	ASSERT_GE(VECTOR, plan->cancels);
	for (i = 0; i < plan->cancels; i++) {
		which[i] = random_below(plan->nr);
		cancels[i].id = timeouts[which[i]].id;
	}
	ASSERT_LE(0, tw_cancel_vec(this.fd, cancels, plan->cancels));
	for (i = 0; i < plan->cancels; i++) {
		struct one_shot *t = &timeouts[which[i]];

		if (t->state == ENDED) {
			ASSERT_EQ(-ENOENT, cancels[i].result);
		} else if (t->edge_ns <= this.now_ns) {
			ASSERT_EQ(TWHEEL_WAS_UNREAD, cancels[i].result);
			this.revoked++;
		} else {
			ASSERT_EQ(TWHEEL_WAS_PENDING, cancels[i].result);
			this.cancelled++;
		}
		t->state = ENDED;
	}
}

static int first_after(const struct plan *plan, __u64 now_ns)
{
	int i = first_sorted;

	while (i < plan->nr && timeouts[sorted[i]].edge_ns <= now_ns)
		i++;
	return i;
}

static void round_run(struct __test_metadata *_metadata, const struct plan *plan)
{
	/* These were due when armed. */
	ASSERT_EQ(0, tw_advance(this.fd, this.now_ns));
	expect_due(_metadata, first_after(plan, this.now_ns));
	expect_next(_metadata, plan);

	while (this.now_ns < plan->end * this.tick_ns) {
		this.now_ns += random_between(1, plan->max_step) * this.tick_ns;
		/* No edge is reached before its time. */
		if (random_below(2))
			this.now_ns -= random_below(this.tick_ns);
		ASSERT_EQ(0, tw_advance(this.fd, this.now_ns));
		if (plan->cancels)
			cancel_some(_metadata, plan);
		expect_due(_metadata, first_after(plan, this.now_ns));
		expect_next(_metadata, plan);
	}
}

static void round_end(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct twheel_cancel cancel = {};
	int i;

	for (i = 0; plan->rest == CANCEL && i < plan->nr; i++) {
		if (timeouts[i].state == ENDED)
			continue;
		cancel.id = timeouts[i].id;
		ASSERT_EQ(1, tw_cancel_vec(this.fd, &cancel, 1));
		ASSERT_EQ(TWHEEL_WAS_PENDING, cancel.result);
		timeouts[i].state = ENDED;
		this.cancelled++;
	}
	if (plan->rest != CLOSE) {
		this.now_ns = TWHEEL_TIME_NEVER;
		ASSERT_EQ(0, tw_advance(this.fd, this.now_ns));
		expect_due(_metadata, plan->nr);
		expect_next(_metadata, plan);
	}
	EXPECT_ACCOUNTS(this.fd);
	close(this.fd);
}

FIXTURE(check_randomized) {
};

FIXTURE_VARIANT(check_randomized) {
	struct plan plan;
};

FIXTURE_VARIANT_ADD(check_randomized, near_ones) {
	.plan = {
		.min = 1, .max = 100, .start = 5, .end = 1000, .max_step = 10,
		.nr = 1000, .rounds = 3, .rest = CANCEL,
	},
};

FIXTURE_VARIANT_ADD(check_randomized, relative_ones) {
	.plan = {
		.min = 20, .max = 1000, .start = 10, .end = 100, .max_step = 5,
		.nr = 1000, .rounds = 3, .relative = true, .rest = CANCEL,
	},
};

FIXTURE_VARIANT_ADD(check_randomized, relative_ones_of_which_the_rest_comes_at_the_end) {
	.plan = {
		.min = 20, .max = 1000, .start = 10, .end = 100, .max_step = 5,
		.nr = 1000, .rounds = 3, .relative = true, .rest = LET_COME,
	},
};

FIXTURE_VARIANT_ADD(check_randomized, relative_ones_closed_with_the_rest_pending) {
	.plan = {
		.min = 20, .max = 1000, .start = 10, .end = 100, .max_step = 5,
		.nr = 1000, .rounds = 3, .relative = true, .rest = CLOSE,
	},
};

FIXTURE_VARIANT_ADD(check_randomized, far_ones) {
	.plan = {
		.min = 2000, .max = 1ULL << 50, .start = 100, .end = 1ULL << 49,
		.max_step = 1ULL << 41, .nr = 1000, .rounds = 2, .rest = CANCEL,
	},
};

FIXTURE_VARIANT_ADD(check_randomized, farther_ones) {
	.plan = {
		.min = 1ULL << 50, .max = 1ULL << 52, .start = 100, .end = 1ULL << 52,
		.max_step = 1ULL << 46, .nr = 1000, .rounds = 3, .rest = CANCEL,
	},
};

FIXTURE_VARIANT_ADD(check_randomized, ones_of_which_some_are_cancelled) {
	.plan = {
		.min = 2000, .max = 1ULL << 30, .start = 100, .end = 1ULL << 26,
		.max_step = 1ULL << 19, .nr = 10000, .cancels = 12, .rounds = 1,
		.rest = CANCEL,
	},
};

FIXTURE_SETUP(check_randomized)
{
	seed_begin(_metadata);
}

FIXTURE_TEARDOWN(check_randomized)
{
}

/* check_randomized() */
TEST_F_TIMEOUT(check_randomized, expiries_agree_with_a_sorted_array, 120)
{
	const struct plan *plan = &variant->plan;
	int i;

	for (i = 0; i < plan->rounds; i++) {
		round_begin(_metadata, plan);
		round_arm(_metadata, plan);
		round_run(_metadata, plan);
		round_end(_metadata, plan);
	}
}

TEST_HARNESS_MAIN
