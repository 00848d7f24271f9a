// SPDX-License-Identifier: GPL-2.0
/*
 * What wahern/timeout's test-timeout.c checks of its wheel, asked of the device:
 * random timeouts and random steps of the clock against an array that is kept
 * sorted, and nothing cleverer than that.
 *
 *   there                        here
 *   check_randomized cfg1        near_ones
 *   check_randomized cfg2        relative_ones
 *   check_randomized cfg2b       relative_ones_of_which_the_rest_comes_at_the_end
 *   check_randomized cfg2c       relative_ones_closed_with_the_rest_pending
 *   check_randomized cfg3        far_ones
 *   check_randomized cfg3b       farther_ones
 *   check_randomized cfg4        ones_of_which_some_are_cancelled
 *   check_intervals icfg1-3      periods_of_primes and the two that follow it
 *   check_open_close             limits.c: setup_reads_back_...
 *   check_misc                   versions of a library: INFO has features
 *   timeouts_check()             is inside the wheel; INFO is asked instead
 *
 * The last test goes beyond: all calls, all kinds of timeouts, in vectors.
 *
 * All on the virtual clock.  Each run has a seed of its own, which it prints;
 * TW_SEED=number in the environment runs that one again.
 */
#include "twheel_test.h"

#include <sys/random.h>

/* ---- chance -------------------------------------------------------------- */

static __u64 seed;

static void seed_begin(struct __test_metadata *_metadata)
{
	const char *wanted = getenv("TW_SEED");

	if (wanted)
		seed = strtoull(wanted, NULL, 0);
	else
		ASSERT_EQ(sizeof(seed), getrandom(&seed, sizeof(seed), 0));
	TH_LOG("TW_SEED=%#llx", seed);
}

static __u32 random_below(__u32 end)
{
	return tw_random(&seed) % end;
}

/* min <= what is returned < max, as long as they differ. */
static __u64 random_between(__u64 min, __u64 max)
{
	__u64 high = tw_random(&seed);

	return max <= min ? min : min + (high << 32 | tw_random(&seed)) % (max - min);
}

/* ---- one-shots ----------------------------------------------------------- */

#define MAX_TIMEOUTS	10000
#define VECTOR		256

/* All in ticks. */
struct plan {
	__u64 min;		/* deadlines, from */
	__u64 max;		/* and below */
	__u64 start;		/* the clock when they are armed */
	__u64 end;		/* no step is begun after it */
	__u64 max_step;
	int nr;
	int cancels;		/* tried after each step */
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
/* The oracle: numbers of all timeouts by their edges, and how far time is. */
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

/* Of few slots or many, so that each way through the levels is gone. */
static void round_begin(struct __test_metadata *_metadata, const struct plan *plan)
{
	static const __u32 slots[] = { TWHEEL_SLOTS_MIN, 32, 1024 };
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.slots = slots[random_below(ARRAY_SIZE(slots))],
	};

	/* Far deadlines in microseconds just fit below the end of time. */
	this = (struct round){ .tick_ns = plan->end > 1ULL << 30 ? TW_US : 1234 };
	setup.tick_ns = this.tick_ns;
	/* With one level, all that pends is looked at once a round. */
	if (plan->end <= 1000 && random_below(2))
		setup.flags = TWHEEL_SETUP_ONE_LEVEL;
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
			/* Anywhere within the tick that ends there. */
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
 * Reads all there is: it is what lies between first_sorted and end, in order.
 * What was due when armed did not wait for the rest, and is in none.
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

/* What INFO says is what the array says. */
static void expect_next(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct twheel_info info;
	int i = first_sorted;

	while (i < plan->nr && timeouts[sorted[i]].state == ENDED)
		i++;
	ASSERT_EQ(0, tw_info(this.fd, &info));
	ASSERT_EQ(i < plan->nr ? timeouts[sorted[i]].edge_ns : TWHEEL_NO_EXPIRY,
		  info.next_expiry_ns);
	ASSERT_EQ(plan->nr - this.completed - this.cancelled - this.revoked, info.live);
	ASSERT_EQ(0, info.unread);
	ASSERT_EQ(this.completed, info.completed);
	ASSERT_EQ(this.cancelled, info.cancelled);
	ASSERT_EQ(this.revoked, info.revoked);
}

/* Any of them, among these what has ended and what was cancelled just now. */
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
	/* What was due when it was armed. */
	ASSERT_EQ(0, tw_advance(this.fd, this.now_ns));
	expect_due(_metadata, first_after(plan, this.now_ns));
	expect_next(_metadata, plan);

	while (this.now_ns < plan->end * this.tick_ns) {
		this.now_ns += random_between(1, plan->max_step) * this.tick_ns;
		/* An edge is not reached before it is. */
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
TEST_F_TIMEOUT(check_randomized, what_comes_is_what_a_sorted_array_says, 120)
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

/* ---- periods ------------------------------------------------------------- */

#define MAX_PERIODS	25

struct periods {
	int nr;
	__u64 start;
	__u64 end;
	__u64 ticks[MAX_PERIODS];
};

static const struct periods primes = {
	.nr = 25, .start = 50, .end = 1322,
	.ticks = {
		2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67,
		71, 73, 79, 83, 89, 97,
	},
};

static const struct periods divisors = {
	.nr = 4, .start = 50, .end = 2800, .ticks = { 1, 7, 191, 1337 },
};

static const struct periods multiples = {
	.nr = 10, .start = 49, .end = 2533,
	.ticks = { 5, 10, 15, 20, 25, 30, 35, 40, 45, 50 },
};

FIXTURE(check_intervals) {
	int fd;
	__u64 fired[MAX_PERIODS];
};

FIXTURE_SETUP(check_intervals)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(check_intervals)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Reads what came at now: each of them is on time, and counts for itself. */
static void expect_on_time(struct __test_metadata *_metadata, int fd, const struct periods *periods,
			   __u64 *fired, __u64 now)
{
	struct twheel_event events[MAX_PERIODS + 1];
	int i, nr = tw_read(fd, events, MAX_PERIODS + 1);

	/* INFO said that one would expire here. */
	ASSERT_LT(0, nr);
	for (i = 0; i < nr; i++) {
		ASSERT_GT(periods->nr, events[i].user_data);
		EXPECT_EQ(0, (now - periods->start) % periods->ticks[events[i].user_data])
			TH_LOG("at %llu, period %llu", now, periods->ticks[events[i].user_data]);
		EXPECT_EQ(now * TW_MS, events[i].deadline_ns);
		EXPECT_EQ(1, events[i].count);
		fired[events[i].user_data]++;
	}
}

/* From one expiry to the next, as INFO tells it. */
static void run_periods(struct __test_metadata *_metadata, int fd, const struct periods *periods,
			__u64 *fired)
{
	struct twheel_info info;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_advance(fd, periods->start * TW_MS));
	for (i = 0; i < periods->nr; i++) {
		ASSERT_EQ(0, tw_arm1(fd, 0, periods->ticks[i] * TW_MS, periods->ticks[i] * TW_MS,
				     i, &id));
	}
	for (;;) {
		ASSERT_EQ(0, tw_info(fd, &info));
		ASSERT_EQ(periods->nr, info.pending);
		ASSERT_LT(info.now_ns, info.next_expiry_ns);
		if (info.next_expiry_ns > periods->end * TW_MS)
			break;
		ASSERT_EQ(0, tw_advance(fd, info.next_expiry_ns));
		expect_on_time(_metadata, fd, periods, fired, info.next_expiry_ns / TW_MS);
	}
	for (i = 0; i < periods->nr; i++) {
		EXPECT_EQ((periods->end - periods->start) / periods->ticks[i], fired[i])
			TH_LOG("period %llu", periods->ticks[i]);
	}
}

/* check_intervals(), icfg1 */
TEST_F_TIMEOUT(check_intervals, periods_of_primes_expire_as_often_as_they_divide_the_time, 60)
{
	run_periods(_metadata, self->fd, &primes, self->fired);
}

/* check_intervals(), icfg2, with the array it was meant for */
TEST_F_TIMEOUT(check_intervals, periods_that_divide_each_other_meet_and_part, 60)
{
	run_periods(_metadata, self->fd, &divisors, self->fired);
}

/* check_intervals(), icfg3, with the array it was meant for */
TEST_F_TIMEOUT(check_intervals, periods_with_a_common_divisor_keep_their_phase, 60)
{
	run_periods(_metadata, self->fd, &multiples, self->fired);
}

/* ---- all together -------------------------------------------------------- */

#define PLACES		1500
#define STEPS		400
#define MIXTURE		96

/* What the device is to know of one timeout. */
struct item {
	__u64 id;			/* 0: nobody lives here */
	__u64 user_data;
	__u64 deadline_ns;		/* to come, or when spent the last one */
	__u64 interval_ns;
	__u64 event_deadline_ns;
	__u64 fired_ns;
	/* of an unread event: when it came, and of which tick */
	__u64 pass;
	__u64 edge_ns;
	__u64 uncounted;		/* periods that INFO counts when it is read */
	__u32 flags;
	__u32 repeats_left;
	__u32 count;
	__u32 deliveries;
	bool limited;
	bool pending;
	bool overdue;
	bool touched;			/* by the vector that is being made */
};

static struct model {
	int fd;
	__u64 tick_ns;
	__u64 now_ns;
	int max_exponent;		/* deadlines and steps are up to 2^ that */
	__u64 serial;
	__u64 pass;
	/* of the event that was read last */
	__u64 read_pass;
	__u64 read_edge_ns;
	struct item item[PLACES];
	int sorted[PLACES];		/* what pends, by edge */
	int nr_sorted;
	unsigned long ops;
	struct twheel_info info;	/* what INFO ought to count */
} model;

/* What was due when armed comes before all else. */
static __u64 edge_of(const struct item *t)
{
	return t->overdue ? 0 : tw_round_up(t->deadline_ns, model.tick_ns);
}

/* The first place in the array whose edge is not before this one. */
static int sorted_find(__u64 edge_ns)
{
	int low = 0, high = model.nr_sorted;

	while (low < high) {
		int middle = (low + high) / 2;

		if (edge_of(&model.item[model.sorted[middle]]) < edge_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void sorted_add(struct item *t)
{
	int at = sorted_find(edge_of(t));

	memmove(&model.sorted[at + 1], &model.sorted[at],
		(model.nr_sorted - at) * sizeof(model.sorted[0]));
	model.sorted[at] = t - model.item;
	model.nr_sorted++;
	t->pending = true;
}

static void sorted_del(struct item *t)
{
	int at = sorted_find(edge_of(t));

	while (&model.item[model.sorted[at]] != t)
		at++;
	model.nr_sorted--;
	memmove(&model.sorted[at], &model.sorted[at + 1],
		(model.nr_sorted - at) * sizeof(model.sorted[0]));
	t->pending = false;
}

/* Its event is read, or revoked. */
static void item_settle(struct item *t)
{
	model.info.unread--;
	model.info.expirations += t->uncounted;
	t->uncounted = 0;
	t->count = 0;
}

static void item_end(struct item *t)
{
	if (t->pending)
		sorted_del(t);
	model.info.live--;
	t->id = 0;
}

static void item_begin(struct item *t, const struct twheel_arm *arm)
{
	bool absolute = arm->flags & TWHEEL_ARM_ABSOLUTE;

	t->deadline_ns = arm->expires_ns + (absolute ? 0 : model.now_ns);
	t->interval_ns = arm->interval_ns;
	if (t->interval_ns && t->interval_ns < model.tick_ns)
		t->interval_ns = model.tick_ns;
	t->flags = arm->flags & TWHEEL_ARM_FIXED_DELAY;
	t->repeats_left = arm->repeats;
	t->limited = arm->repeats;
	t->deliveries = 0;
	t->overdue = t->deadline_ns <= model.now_ns;
	sorted_add(t);
}

/* How often it expires now, without a loop per period. */
static __u64 item_periods(const struct item *t)
{
	__u64 until_ns = t->overdue ? model.now_ns : model.now_ns / model.tick_ns * model.tick_ns;
	__u64 nr = 1;

	if (t->interval_ns && !t->flags)
		nr = (until_ns - t->deadline_ns) / t->interval_ns + 1;
	return t->limited && nr > t->repeats_left ? t->repeats_left : nr;
}

static void item_expire(struct item *t)
{
	__u64 nr = item_periods(t);

	t->event_deadline_ns = t->deadline_ns + (nr - 1) * t->interval_ns;
	if (!t->count) {
		t->pass = model.pass;
		t->edge_ns = edge_of(t);
		t->fired_ns = model.now_ns;
		model.info.unread++;
		model.info.expirations += nr;
	} else {
		t->fired_ns = tw_round_up(t->event_deadline_ns, model.tick_ns);
		t->uncounted += nr;
	}
	sorted_del(t);
	t->count = t->count + nr > ~0U ? ~0U : t->count + nr;
	t->repeats_left -= t->limited ? nr : 0;
	t->deadline_ns = t->event_deadline_ns;
	t->overdue = false;
	if (t->interval_ns && !t->flags && (!t->limited || t->repeats_left)) {
		t->deadline_ns += t->interval_ns;
		sorted_add(t);
	}
}

static void model_advance(__u64 to_ns)
{
	model.now_ns = to_ns;
	model.pass++;
	while (model.nr_sorted) {
		struct item *t = &model.item[model.sorted[0]];

		if (edge_of(t) > to_ns)
			break;
		item_expire(t);
	}
}

/* Its event was read. */
static void item_read(struct item *t)
{
	bool over = !t->interval_ns || (t->limited && !t->repeats_left);

	item_settle(t);
	t->deliveries++;
	model.info.delivered++;
	if (over) {
		model.info.completed++;
		item_end(t);
	} else if (t->flags) {
		t->deadline_ns = model.now_ns + t->interval_ns;
		sorted_add(t);
	}
}

static struct item *item_any(void)
{
	return &model.item[random_below(PLACES)];
}

/* Mostly near, at times far: each power of two as often as the next. */
static __u64 random_distance_ns(void)
{
	__u64 ticks = random_between(0, 1ULL << random_below(model.max_exponent + 1));

	return ticks * model.tick_ns + random_below(2) * random_between(0, model.tick_ns);
}

static void random_arm(struct twheel_arm *arm)
{
	*arm = (struct twheel_arm){ .expires_ns = random_distance_ns() };
	if (random_below(2)) {
		arm->flags = TWHEEL_ARM_ABSOLUTE;
		arm->expires_ns += model.now_ns;
		/* Or in the past. */
		if (!random_below(16))
			arm->expires_ns = random_between(0, model.now_ns + 1);
	}
	if (random_below(4))
		return;
	arm->interval_ns = 1 + random_distance_ns();
	if (random_below(2))
		arm->repeats = 1 + random_below(5);
	if (random_below(2))
		arm->flags |= TWHEEL_ARM_FIXED_DELAY;
}

/* What was due when armed comes at the next turn: let it be now. */
static void settle(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, tw_advance(model.fd, model.now_ns));
	model_advance(model.now_ns);
}

static void do_arm(struct __test_metadata *_metadata)
{
	struct twheel_arm arms[MIXTURE];
	int i, place = 0, nr = random_below(MIXTURE + 1);

	for (i = 0; i < nr; i++) {
		random_arm(&arms[i]);
		arms[i].user_data = ++model.serial;
		/* A limit without an interval is refused, and takes no place. */
		if (!random_below(32) && !arms[i].interval_ns)
			arms[i].repeats = 1;
	}
	ASSERT_LE(0, tw_arm_vec(model.fd, arms, nr));
	for (i = 0; i < nr; i++) {
		struct item *t;

		if (arms[i].repeats && !arms[i].interval_ns) {
			ASSERT_EQ(-EINVAL, arms[i].result);
			continue;
		}
		if (model.info.live == PLACES) {
			ASSERT_EQ(-EAGAIN, arms[i].result);
			continue;
		}
		ASSERT_EQ(0, arms[i].result);
		while (model.item[place].id)
			place++;
		t = &model.item[place];
		t->id = arms[i].id;
		t->user_data = arms[i].user_data;
		item_begin(t, &arms[i]);
		model.info.live++;
		model.info.armed++;
	}
	model.ops += nr;
	settle(_metadata);
}

/* What CANCEL and REARM say of it, and what becomes of its event. */
static void expect_verdict(struct __test_metadata *_metadata, struct item *t, __s32 result)
{
	if (!t->id) {
		ASSERT_EQ(-ENOENT, result);
		return;
	}
	ASSERT_EQ(t->count ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING, result);
}

static void do_rearm(struct __test_metadata *_metadata)
{
	struct twheel_arm arms[MIXTURE];
	struct item *moved[MIXTURE];
	int i, n, nr = random_below(MIXTURE + 1);

	for (i = 0, n = 0; i < nr; i++) {
		struct item *t = item_any();

		/* Twice in a vector depends on who is faster. */
		if (t->touched)
			continue;
		random_arm(&arms[n]);
		t->touched = true;
		moved[n] = t;
		arms[n++].id = t->id ?: t->user_data;
	}
	ASSERT_LE(0, tw_rearm_vec(model.fd, arms, n));
	for (i = 0; i < n; i++) {
		struct item *t = moved[i];

		expect_verdict(_metadata, t, arms[i].result);
		t->touched = false;
		if (!t->id)
			continue;
		if (t->count)
			item_settle(t);
		if (t->pending)
			sorted_del(t);
		item_begin(t, &arms[i]);
		model.info.rearmed++;
	}
	model.ops += n;
	settle(_metadata);
}

static void do_cancel(struct __test_metadata *_metadata)
{
	struct twheel_cancel cancels[MIXTURE] = {};
	struct item *gone[MIXTURE];
	int i, nr = random_below(MIXTURE + 1);

	for (i = 0; i < nr; i++) {
		gone[i] = item_any();
		/* Where nobody lives, an id that nobody has. */
		cancels[i].id = gone[i]->id ?: gone[i]->user_data;
	}
	ASSERT_LE(0, tw_cancel_vec(model.fd, cancels, nr));
	for (i = 0; i < nr; i++) {
		expect_verdict(_metadata, gone[i], cancels[i].result);
		if (!gone[i]->id)
			continue;
		if (gone[i]->count) {
			item_settle(gone[i]);
			model.info.revoked++;
		} else {
			model.info.cancelled++;
		}
		item_end(gone[i]);
	}
	model.ops += nr;
}

static void expect_status(struct __test_metadata *_metadata, const struct item *t,
			  const struct twheel_status *row)
{
	bool ahead = t->pending && t->deadline_ns > model.now_ns;

	ASSERT_EQ(0, row->result);
	ASSERT_EQ(t->count ? TWHEEL_STATE_EXPIRED : TWHEEL_STATE_PENDING, row->state);
	ASSERT_EQ(t->user_data, row->user_data);
	ASSERT_EQ(t->deadline_ns, row->deadline_ns);
	ASSERT_EQ(ahead ? t->deadline_ns - model.now_ns : 0, row->left_ns);
	ASSERT_EQ(t->interval_ns, row->interval_ns);
	ASSERT_EQ(t->flags, row->flags);
	ASSERT_EQ(t->repeats_left, row->repeats_left);
	ASSERT_EQ(t->count, row->count);
	ASSERT_EQ(t->deliveries, row->deliveries);
}

static void do_query(struct __test_metadata *_metadata)
{
	struct twheel_status rows[MIXTURE];
	struct item *asked[MIXTURE];
	int i, nr = random_below(MIXTURE + 1);

	for (i = 0; i < nr; i++) {
		asked[i] = item_any();
		rows[i].id = asked[i]->id;
	}
	ASSERT_LE(0, tw_query_vec(model.fd, rows, nr));
	for (i = 0; i < nr; i++) {
		if (!asked[i]->id) {
			ASSERT_EQ(-ENOENT, rows[i].result);
			continue;
		}
		expect_status(_metadata, asked[i], &rows[i]);
	}
	model.ops += nr;
}

/* Somewhere, or just before or just at the next edge there is. */
static void do_advance(struct __test_metadata *_metadata)
{
	__u64 to_ns = model.now_ns + random_distance_ns();
	int how = random_below(4);

	if (model.nr_sorted && how < 2)
		to_ns = edge_of(&model.item[model.sorted[0]]) - how;
	/* The edge may be nearer than a nanosecond. */
	if (to_ns < model.now_ns)
		to_ns = model.now_ns;
	ASSERT_EQ(0, tw_advance(model.fd, to_ns));
	model_advance(to_ns);
}

static struct item *item_of_event(__u64 id)
{
	int i;

	for (i = 0; i < PLACES; i++)
		if (model.item[i].id == id)
			return &model.item[i];
	return NULL;
}

/* Events come in the order of passes, and within one of ticks. */
static void expect_order(struct __test_metadata *_metadata, const struct item *t)
{
	ASSERT_LE(model.read_pass, t->pass);
	/* What was due when armed is of no tick. */
	ASSERT_TRUE(model.read_pass < t->pass || !t->edge_ns || model.read_edge_ns <= t->edge_ns);
	model.read_pass = t->pass;
	model.read_edge_ns = t->edge_ns;
}

static void do_read(struct __test_metadata *_metadata)
{
	struct twheel_event events[MIXTURE];
	int i, nr, wanted = 1 + random_below(MIXTURE);
	int expected = wanted < model.info.unread ? wanted : model.info.unread;

	nr = tw_read(model.fd, events, wanted);
	ASSERT_EQ(expected ?: -EAGAIN, nr);
	for (i = 0; i < nr; i++) {
		struct item *t = item_of_event(events[i].id);

		ASSERT_NE(NULL, t);
		ASSERT_LT(0, t->count);
		ASSERT_EQ(t->user_data, events[i].user_data);
		ASSERT_EQ(t->event_deadline_ns, events[i].deadline_ns);
		ASSERT_EQ(t->fired_ns, events[i].fired_ns);
		ASSERT_EQ(t->count, events[i].count);
		ASSERT_EQ(0, events[i].flags);
		expect_order(_metadata, t);
		item_read(t);
		model.ops++;
	}
}

static void expect_counts(struct __test_metadata *_metadata)
{
	__u64 next_ns = model.nr_sorted ? edge_of(&model.item[model.sorted[0]]) : TWHEEL_NO_EXPIRY;
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(model.fd, &info));
	ASSERT_EQ(model.now_ns, info.now_ns);
	ASSERT_EQ(next_ns, info.next_expiry_ns);
	ASSERT_EQ(model.nr_sorted, info.pending);
	ASSERT_EQ(model.info.live, info.live);
	ASSERT_EQ(model.info.unread, info.unread);
	ASSERT_EQ(model.info.armed, info.armed);
	ASSERT_EQ(model.info.rearmed, info.rearmed);
	ASSERT_EQ(model.info.expirations, info.expirations);
	ASSERT_EQ(model.info.delivered, info.delivered);
	ASSERT_EQ(model.info.completed, info.completed);
	ASSERT_EQ(model.info.cancelled, info.cancelled);
	ASSERT_EQ(model.info.revoked, info.revoked);
}

FIXTURE(mixture) {
};

TW_VIRTUAL_VARIANTS(mixture);

FIXTURE_SETUP(mixture)
{
	struct twheel_setup setup = variant->setup;

	seed_begin(_metadata);
	setup.max_pending = PLACES;
	model.fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, model.fd);
	model.tick_ns = setup.tick_ns;
	/*
	 * One level looks at everything once a round, and the end of time is
	 * only two million of the longest ticks away.
	 */
	model.max_exponent = setup.flags & TWHEEL_SETUP_ONE_LEVEL ? 9 :
			     setup.tick_ns == TWHEEL_TICK_MAX_NS ? 12 : 20;
}

FIXTURE_TEARDOWN(mixture)
{
	EXPECT_ACCOUNTS(model.fd);
	close(model.fd);
}

/* Beyond check_randomized(): every call, every kind, against the same oracle. */
TEST_F_TIMEOUT(mixture, of_all_calls_agrees_with_a_sorted_array, 120)
{
	void (* const calls[])(struct __test_metadata *_metadata) = {
		do_arm, do_arm, do_arm, do_rearm, do_rearm, do_cancel, do_query,
		do_advance, do_advance, do_read, do_read,
	};
	int step;

	for (step = 0; step < STEPS; step++) {
		calls[random_below(ARRAY_SIZE(calls))](_metadata);
		expect_counts(_metadata);
	}
	EXPECT_LT(10000, model.ops);
	TH_LOG("%lu operations: %llu armed, %llu read, %llu rearmed, %llu cancelled, %llu revoked",
	       model.ops, model.info.armed, model.info.delivered, model.info.rearmed,
	       model.info.cancelled, model.info.revoked);
}

TEST_HARNESS_MAIN
