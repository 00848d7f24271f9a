// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls of every kind, in vectors, on timeouts of every kind, against a sorted array
 * that knows the result of each call, the counters of INFO, and the order of all events. On a
 * keyed wheel, the array is a map of keys. Half of the runs store deadlines into the refresh
 * table as well.
 *
 * All on the virtual clock.  Each run has a seed of its own, which it prints;
 * TW_SEED=number in the environment runs that one again.
 */
#include "twheel_chance.h"
#include "twheel_keyed.h"

#include <sys/mman.h>

#define PLACES		1500
#define STEPS		400
#define MIXTURE		96
#define TABLE_BYTES	(64 * sysconf(_SC_PAGESIZE))

/* The state that one timeout must have. */
struct item {
	__u64 id;			/* 0: the place is free */
	__u64 stale_id;			/* id of the timeout that had the place before, if any */
	__u64 user_data;
	__u64 deadline_ns;		/* the next deadline, or the last one of a spent timeout */
	__u64 interval_ns;
	__u64 event_deadline_ns;
	__u64 fired_ns;
	/* if an event is unread: when it expired, and in which tick */
	__u64 pass;
	__u64 edge_ns;
	__u64 uncounted;		/* periods that INFO counts when it is read */
	__u64 slack_ticks;		/* the slack in force */
	__u32 flags;
	__u32 repeats_left;
	__u32 count;
	__u32 deliveries;
	bool limited;
	bool pending;
	bool overdue;
	bool touched;			/* a vector in the making already has it */
};

static struct model {
	int fd;
	__u64 tick_ns;
	__u64 now_ns;
	bool keyed;			/* item[i] is the one with the key key_of(i) */
	void *table;			/* the refresh table, if deadlines are stored there */
	int max_pending;
	int max_exponent;		/* deadlines and steps are up to 2^ that */
	__u64 serial;
	__u64 pass;
	/* the pass and the edge of the event that was read last */
	__u64 read_pass;
	__u64 read_edge_ns;
	struct item item[PLACES];
	int sorted[PLACES];		/* pending timeouts, by edge */
	int nr_sorted;
	unsigned long ops;
	struct twheel_info info;	/* the counters that INFO must show */
} model;

/* The distance between the edges that its slack leaves. */
static __u64 stride_of(const struct item *t)
{
	return (t->slack_ticks + 1) * model.tick_ns;
}

/* A timeout that was due when armed comes before all others. */
static __u64 edge_of(const struct item *t)
{
	return t->overdue ? 0 : tw_round_up(t->deadline_ns, stride_of(t));
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

/* Its event was read or revoked: update the item. */
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
	t->stale_id = t->id;
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
	t->slack_ticks = 0;
	while (2 * t->slack_ticks + 1 <= arm->slack_ticks)
		t->slack_ticks = 2 * t->slack_ticks + 1;
	t->overdue = t->deadline_ns <= model.now_ns;
	sorted_add(t);
}

/* Return how often it expires now, without a loop over periods. */
static __u64 item_periods(const struct item *t)
{
	__u64 until_ns = t->overdue ? model.now_ns :
			 model.now_ns / stride_of(t) * stride_of(t);
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
		t->fired_ns = tw_round_up(t->event_deadline_ns, stride_of(t));
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

/* Return whether the timeout ends when its event is read. */
static bool item_is_over(const struct item *t)
{
	return !t->interval_ns || (t->limited && !t->repeats_left);
}

static void item_read(struct item *t)
{
	bool over = item_is_over(t);

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

/* Return a distance: mostly near, sometimes far; each power of two is as likely as the next. */
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
		/* Some deadlines are in the past. */
		if (!random_below(16))
			arm->expires_ns = random_between(0, model.now_ns + 1);
	}
	if (!random_below(4))
		arm->slack_ticks = random_between(1, (1ULL << random_below(16)) - 1);
	if (random_below(4))
		return;
	arm->interval_ns = 1 + random_distance_ns();
	if (random_below(2))
		arm->repeats = 1 + random_below(5);
	if (random_below(2))
		arm->flags |= TWHEEL_ARM_FIXED_DELAY;
}

/* Every second key has the value of an id, which sooner or later names another timeout. */
static __u64 key_of(int place)
{
	if (place % 2)
		return (place * 0x9e3779b97f4a7c15ULL) | 1ULL << 63;
	return (__u64)(1 + place / 2 % 4) << 32 | (PLACES - place);
}

static __u64 arm_deadline_ns(const struct twheel_arm *arm)
{
	return arm->expires_ns + (arm->flags & TWHEEL_ARM_ABSOLUTE ? 0 : model.now_ns);
}

/* The deadline that a bound is compared with, and that an upsert reports. */
static __u64 was_deadline_ns(const struct item *t)
{
	return t->count ? t->event_deadline_ns : t->deadline_ns;
}

static bool is_out_of_bounds(const struct item *t, const struct twheel_arm *arm)
{
	__u64 deadline_ns = arm_deadline_ns(arm), was_ns = was_deadline_ns(t);

	return (arm->flags & TWHEEL_ARM_ONLY_LATER && deadline_ns <= was_ns) ||
	       (arm->flags & TWHEEL_ARM_ONLY_EARLIER && deadline_ns >= was_ns);
}

static __u32 random_bound(void)
{
	switch (random_below(8)) {
	case 0:
		return TWHEEL_ARM_ONLY_LATER;
	case 1:
		return TWHEEL_ARM_ONLY_EARLIER;
	default:
		return 0;
	}
}

/* If a timeout was due when armed, it expires at the next turn: have one now. */
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
		/* If a limit has no interval, it is refused, and takes no place. */
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
		if (model.info.live == model.max_pending) {
			ASSERT_EQ(-EAGAIN, arms[i].result);
			continue;
		}
		ASSERT_EQ(TWHEEL_CREATED, arms[i].result);
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

/* The result of CANCEL or REARM of this timeout; its event is revoked. */
static void expect_verdict(struct __test_metadata *_metadata, struct item *t, __s32 result)
{
	if (!t->id) {
		ASSERT_EQ(-ENOENT, result);
		return;
	}
	ASSERT_EQ(t->count ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING, result);
}

/* If the place is free, take an id that no timeout has. */
static __u64 name_of(const struct item *t, bool by_key)
{
	if (by_key)
		return t->user_data;
	return t->id ?: model.keyed ? ++model.serial : t->user_data;
}

/* Do to a timeout that is there what REARM does, or ARM of its key. */
static void item_replace(struct item *t, const struct twheel_arm *arm)
{
	if (t->count)
		item_settle(t);
	if (t->pending)
		sorted_del(t);
	item_begin(t, arm);
	model.info.rearmed++;
}

static __s32 upsert_error(const struct item *t, const struct twheel_arm *arm)
{
	if (arm->repeats && !arm->interval_ns)
		return -EINVAL;
	if (t->id && arm->flags & TWHEEL_ARM_IF_ABSENT)
		return -EEXIST;
	if (t->id)
		return is_out_of_bounds(t, arm) ? -ERANGE : 0;
	if (arm->flags & TWHEEL_ARM_IF_PRESENT)
		return -ENOENT;
	return model.info.live == model.max_pending ? -EAGAIN : 0;
}

/* Make vectors in which some keys come again and again, with any condition. */
static int random_upserts(struct twheel_arm *arms, int *which, int nr)
{
	int i, n, few = 1 + random_below(64);

	for (i = 0, n = 0; i < nr; i++) {
		struct item *t;

		which[n] = random_below(random_below(2) ? PLACES : few);
		t = &model.item[which[n]];
		/* The kthread may have moved it into the wheel before it comes again. */
		if (t->touched)
			continue;
		random_arm(&arms[n]);
		arms[n].user_data = key_of(which[n]);
		arms[n].flags |= random_bound();
		if (!random_below(8))
			arms[n].flags |= random_below(2) ? TWHEEL_ARM_IF_ABSENT :
							   TWHEEL_ARM_IF_PRESENT;
		if (!random_below(32) && !arms[n].interval_ns)
			arms[n].repeats = 1;
		t->touched = arm_deadline_ns(&arms[n]) <= model.now_ns;
		n++;
	}
	return n;
}

static void do_upsert(struct __test_metadata *_metadata)
{
	struct twheel_arm arms[MIXTURE];
	int i, ret, won = 0, which[MIXTURE], nr;

	nr = random_upserts(arms, which, random_below(MIXTURE + 1));
	ret = key_arm_vec(model.fd, arms, nr);
	for (i = 0; i < nr; i++) {
		struct item *t = &model.item[which[i]];
		__s32 error = upsert_error(t, &arms[i]);

		t->touched = false;
		if (error) {
			ASSERT_EQ(error, arms[i].result);
			ASSERT_EQ(0, arms[i].id);
			continue;
		}
		won++;
		if (t->id) {
			expect_verdict(_metadata, t, arms[i].result);
			ASSERT_EQ(t->id, arms[i].id);
			ASSERT_EQ(was_deadline_ns(t), arms[i].was_deadline_ns);
			item_replace(t, &arms[i]);
			continue;
		}
		ASSERT_EQ(TWHEEL_CREATED, arms[i].result);
		ASSERT_EQ(0, arms[i].was_deadline_ns);
		t->id = arms[i].id;
		item_begin(t, &arms[i]);
		model.info.live++;
		model.info.armed++;
	}
	ASSERT_EQ(won, ret);
	model.ops += nr;
	settle(_metadata);
}

static void do_rearm(struct __test_metadata *_metadata)
{
	bool by_key = model.keyed && random_below(2);
	struct twheel_arm arms[MIXTURE];
	struct item *moved[MIXTURE];
	int i, n, nr = random_below(MIXTURE + 1);

	for (i = 0, n = 0; i < nr; i++) {
		struct item *t = item_any();

		/* If a timeout is in a vector twice, its result depends on the kthread. */
		if (t->touched)
			continue;
		random_arm(&arms[n]);
		t->touched = true;
		moved[n] = t;
		arms[n].flags |= random_bound();
		arms[n++].id = name_of(t, by_key);
	}
	ASSERT_LE(0, by_key ? key_rearm_vec(model.fd, arms, n) : tw_rearm_vec(model.fd, arms, n));
	for (i = 0; i < n; i++) {
		struct item *t = moved[i];

		t->touched = false;
		if (t->id && is_out_of_bounds(t, &arms[i])) {
			ASSERT_EQ(-ERANGE, arms[i].result);
			continue;
		}
		expect_verdict(_metadata, t, arms[i].result);
		if (t->id)
			item_replace(t, &arms[i]);
	}
	model.ops += n;
	settle(_metadata);
}

static void do_cancel(struct __test_metadata *_metadata)
{
	bool by_key = model.keyed && random_below(2);
	struct twheel_cancel cancels[MIXTURE] = {};
	struct item *gone[MIXTURE];
	int i, nr = random_below(MIXTURE + 1);

	for (i = 0; i < nr; i++) {
		gone[i] = item_any();
		cancels[i].id = name_of(gone[i], by_key);
	}
	ASSERT_LE(0, by_key ? key_cancel_vec(model.fd, cancels, nr) :
			      tw_cancel_vec(model.fd, cancels, nr));
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
	ASSERT_EQ(t->id, row->id);
	ASSERT_EQ(t->user_data, row->user_data);
	ASSERT_EQ(t->deadline_ns, row->deadline_ns);
	ASSERT_EQ(ahead ? t->deadline_ns - model.now_ns : 0, row->left_ns);
	ASSERT_EQ(t->interval_ns, row->interval_ns);
	ASSERT_EQ(t->flags | (t->count && item_is_over(t) ? TWHEEL_STATUS_LAST_EVENT : 0),
		  row->flags);
	ASSERT_EQ(t->repeats_left, row->repeats_left);
	ASSERT_EQ(t->count, row->count);
	ASSERT_EQ(t->deliveries, row->deliveries);
	ASSERT_EQ(t->slack_ticks, row->slack_ticks);
}

static void do_query(struct __test_metadata *_metadata)
{
	bool by_key = model.keyed && random_below(2);
	struct twheel_status rows[MIXTURE];
	struct item *asked[MIXTURE];
	int i, nr = random_below(MIXTURE + 1);

	for (i = 0; i < nr; i++) {
		asked[i] = item_any();
		rows[i].id = by_key ? asked[i]->user_data : asked[i]->id;
	}
	ASSERT_LE(0, by_key ? key_query_vec(model.fd, rows, nr) :
			      tw_query_vec(model.fd, rows, nr));
	for (i = 0; i < nr; i++) {
		if (!asked[i]->id) {
			ASSERT_EQ(-ENOENT, rows[i].result);
			continue;
		}
		expect_status(_metadata, asked[i], &rows[i]);
	}
	model.ops += nr;
}

/*
 * Store a deadline later than the one in force: an earlier one may count or not, depending on when
 * the kernel has read the word. The store moves a pending one-shot; if the id is stale, it moves
 * nothing.
 */
static void do_store(struct __test_metadata *_metadata)
{
	__u32 shift = tw_shift(model.tick_ns);
	int i, nr = random_below(MIXTURE + 1);

	for (i = 0; i < nr; i++) {
		struct item *t = item_any();
		__u64 deadline_ns = t->deadline_ns + random_distance_ns();

		if (t->stale_id && !random_below(4))
			ASSERT_LE(0, tw_refresh(model.table, t->stale_id, deadline_ns, shift));
		if (!t->id || tw_refreshed_ns(deadline_ns, shift) <= t->deadline_ns)
			continue;
		ASSERT_EQ(1, tw_refresh(model.table, t->id, deadline_ns, shift));
		if (!t->pending || t->interval_ns)
			continue;
		sorted_del(t);
		t->deadline_ns = tw_refreshed_ns(deadline_ns, shift);
		sorted_add(t);
	}
	model.ops += nr;
}

/* Advance to any time, or just before or just to the next edge. */
static void do_advance(struct __test_metadata *_metadata)
{
	__u64 to_ns = model.now_ns + random_distance_ns();
	int how = random_below(4);

	if (model.nr_sorted && how < 2)
		to_ns = edge_of(&model.item[model.sorted[0]]) - how;
	/* The edge may be less than a nanosecond away. */
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

/* Events come in the order of passes, and within a pass in that of ticks. */
static void expect_order(struct __test_metadata *_metadata, const struct item *t)
{
	ASSERT_LE(model.read_pass, t->pass);
	/* If a timeout was due when armed, it belongs to no tick. */
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
		ASSERT_EQ(item_is_over(t) ? TWHEEL_EVENT_ENDED : 0, events[i].flags);
		expect_order(_metadata, t);
		item_read(t);
		model.ops++;
	}
}

static void expect_counts(struct __test_metadata *_metadata)
{
	__u64 next_ns = model.nr_sorted ? edge_of(&model.item[model.sorted[0]]) : TWHEEL_TIME_NEVER;
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

FIXTURE(random_calls) {
};

TW_VIRTUAL_VARIANTS(random_calls);

FIXTURE_SETUP(random_calls)
{
	seed_begin(_metadata);
}

FIXTURE_TEARDOWN(random_calls)
{
	EXPECT_ACCOUNTS(model.fd);
	if (model.table)
		munmap(model.table, TABLE_BYTES);
	close(model.fd);
}

static void begin(struct __test_metadata *_metadata, struct twheel_setup setup)
{
	int i;

	setup.max_pending = model.max_pending;
	model.fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, model.fd);
	model.tick_ns = setup.tick_ns;
	/*
	 * If there is one level, each pass visits everything once a round, and the end of time is
	 * only two million of the longest ticks away.
	 */
	model.max_exponent = setup.flags & TWHEEL_SETUP_ONE_LEVEL ? 9 :
			     setup.tick_ns == TWHEEL_TICK_MAX_NS ? 12 : 20;
	for (i = 0; i < PLACES && model.keyed; i++)
		model.item[i].user_data = key_of(i);
}

/* The table may be mapped when timeouts are there; here it is mapped before. */
static void begin_storing(struct __test_metadata *_metadata)
{
	model.table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, model.fd, 0);
	ASSERT_NE(MAP_FAILED, model.table);
}

static void run(struct __test_metadata *_metadata,
		void (* const calls[])(struct __test_metadata *_metadata), int nr)
{
	int step;

	for (step = 0; step < STEPS; step++) {
		calls[random_below(nr)](_metadata);
		expect_counts(_metadata);
	}
	EXPECT_LT(10000, model.ops);
	TH_LOG("%lu operations: %llu armed, %llu read, %llu rearmed, %llu cancelled, %llu revoked",
	       model.ops, model.info.armed, model.info.delivered, model.info.rearmed,
	       model.info.cancelled, model.info.revoked);
}

/* The oracle is only a sorted array. */
TEST_F_TIMEOUT(random_calls, calls_of_every_kind_agree_with_a_sorted_array, 120)
{
	void (* const calls[])(struct __test_metadata *_metadata) = {
		do_arm, do_arm, do_arm, do_rearm, do_rearm, do_cancel, do_query,
		do_advance, do_advance, do_read, do_read,
	};

	model.max_pending = PLACES;
	begin(_metadata, variant->setup);
	run(_metadata, calls, ARRAY_SIZE(calls));
}

/* Each stored deadline is in force until there is a later one, or another schedule. */
TEST_F_TIMEOUT(random_calls, calls_and_stores_agree_with_a_sorted_array, 120)
{
	void (* const calls[])(struct __test_metadata *_metadata) = {
		do_arm, do_arm, do_arm, do_rearm, do_rearm, do_cancel, do_query,
		do_advance, do_advance, do_read, do_read, do_store, do_store, do_store,
	};

	model.max_pending = PLACES;
	begin(_metadata, variant->setup);
	begin_storing(_metadata);
	run(_metadata, calls, ARRAY_SIZE(calls));
}

/* The oracle also has a map; the wheel has places for a quarter of the keys. */
TEST_F_TIMEOUT(random_calls, calls_by_key_and_by_id_agree_with_a_map, 120)
{
	void (* const calls[])(struct __test_metadata *_metadata) = {
		do_upsert, do_upsert, do_upsert, do_rearm, do_cancel, do_query,
		do_advance, do_advance, do_read, do_read,
	};
	struct twheel_setup setup = variant->setup;

	model.keyed = true;
	model.max_pending = PLACES / 4;
	setup.flags |= TWHEEL_SETUP_KEYED;
	begin(_metadata, setup);
	run(_metadata, calls, ARRAY_SIZE(calls));
}

/* The same with stores. */
TEST_F_TIMEOUT(random_calls, calls_by_key_and_by_id_and_stores_agree_with_a_map, 120)
{
	void (* const calls[])(struct __test_metadata *_metadata) = {
		do_upsert, do_upsert, do_upsert, do_rearm, do_cancel, do_query,
		do_advance, do_advance, do_read, do_read, do_store, do_store, do_store,
	};
	struct twheel_setup setup = variant->setup;

	model.keyed = true;
	model.max_pending = PLACES / 4;
	setup.flags |= TWHEEL_SETUP_KEYED;
	begin(_metadata, setup);
	begin_storing(_metadata);
	run(_metadata, calls, ARRAY_SIZE(calls));
}

TEST_HARNESS_MAIN
