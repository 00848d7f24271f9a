// SPDX-License-Identifier: GPL-2.0
/*
 * Races.  The oracle is G3: each timeout has exactly one outcome, and at the
 * end the counters of INFO agree with what the threads saw, one by one.
 *
 * A race is a plan: it says which roles run beside each other, how far ahead the deadlines are, and
 * which outcomes must come.  It is run in rounds, each with a new wheel, for TW_RACE_SECONDS (2),
 * or until each of these outcomes has come.  Every timeout has a line in a ledger, and user_data is
 * its number there.  Threads do not assert: they note the line of the first error in race.bad.
 */
#include "twheel_outcomes.h"

#include <pthread.h>
#include <sys/mman.h>

#define LINES		(1 << 15)
#define BATCH		32
#define LONG_VECTOR	1024		/* the kernel does it in many steps */
#define WINDOW		256		/* how far behind the armers the other roles act */
#define ROLES		5
#define STABLE		128		/* timeouts that LIST has to show */
#define FAR		TW_HOUR
#define SHORT		(50 * TW_US)

/* The outcomes of a timeout, and of a call. */
enum outcome {
	NONE,
	DELIVERED,
	CANCELLED,
	REVOKED,
	DRAINED,
	PERIODS_MET,
	REFRESHED,
	REFRESHED_TOO_LATE,
	DRAINED_REFRESHED,
	DRAINED_BEFORE_REFRESH,
	REARMED_PENDING,
	REARMED_UNREAD,
	ARM_CUT_SHORT,
	REARM_CUT_SHORT,
	ARM_REFUSED,
	REARM_REFUSED,
	/* The timeout was there when a thread chose it, and was gone when it called. */
	CANCEL_BEATEN,
	REARM_BEATEN,
	/* poll() reported an event, and another reader took it. */
	READ_BEATEN,
	ADVANCE_BEATEN,
	LISTED_EXPIRED,
	LISTED_TWICE,
	NR_OUTCOMES,
};

static struct tw_outcome outcomes[] = {
	[NONE]			= TW_OUTCOME("armed", 0),
	[DELIVERED]		= TW_OUTCOME("delivered", 0),
	[CANCELLED]		= TW_OUTCOME("cancelled", 0),
	[REVOKED]		= TW_OUTCOME("revoked", 0),
	[DRAINED]		= TW_OUTCOME("drained", 0),
	[PERIODS_MET]		= TW_OUTCOME("several periods in one event", 0),
	[REFRESHED]		= TW_OUTCOME("refreshed in time", 0),
	[REFRESHED_TOO_LATE]	= TW_OUTCOME("refreshed too late", 0),
	[DRAINED_REFRESHED]	= TW_OUTCOME("drained with the refreshed deadline", 0),
	[DRAINED_BEFORE_REFRESH] = TW_OUTCOME("drained before it was refreshed", 0),
	[REARMED_PENDING]	= TW_OUTCOME("re-armed while pending", 0),
	[REARMED_UNREAD]	= TW_OUTCOME("re-armed while unread", 0),
	[ARM_CUT_SHORT]		= TW_OUTCOME("ARM cut short", 0),
	[REARM_CUT_SHORT]	= TW_OUTCOME("REARM cut short", 0),
	[ARM_REFUSED]		= TW_OUTCOME("ARM refused", 0),
	[REARM_REFUSED]		= TW_OUTCOME("REARM refused", 0),
	[CANCEL_BEATEN]		= TW_OUTCOME("CANCEL came second", 0),
	[REARM_BEATEN]		= TW_OUTCOME("REARM came second", 0),
	[READ_BEATEN]		= TW_OUTCOME("read came second", 0),
	[ADVANCE_BEATEN]	= TW_OUTCOME("ADVANCE came second", 0),
	[LISTED_EXPIRED]	= TW_OUTCOME("expired in LIST", 0),
	[LISTED_TWICE]		= TW_OUTCOME("moved and twice in LIST", 0),
};

struct plan {
	void *(*roles[ROLES])(void *);
	__u32 clock;
	__u64 near_ns;			/* distances of deadlines: from here on */
	__u64 spread_ns;		/* ... and over this much */
	__u64 interval_ns;
	__u32 flags;			/* TWHEEL_ARM_*, of an armer */
	int lines;			/* fewer than LINES, if not 0 */
	int vector;			/* elements of ARM and REARM, BATCH if 0 */
	__u64 pause_ns;			/* of an armer, between two batches */
	bool drain_amid;
	bool stable;			/* the first STABLE lines are not changed */
	bool table;			/* the refresh table is mapped */
	bool stores;			/* nothing expires: no store comes too late */
	bool sums;			/* nothing is revoked: each expiration is read */
	double part;			/* share of the usual time, if not 0 */
	enum outcome must_see[NR_OUTCOMES];
};

/* All that is known of one timeout. */
struct line {
	_Atomic __u64 id;		/* 0: not armed (yet) */
	_Atomic __u64 event_id;
	_Atomic __u64 event_deadline_ns;
	__u64 deadline_ns;		/* set by the last REARM, or 0; only one rearmer */
	__u64 stored_ns;		/* deadline of the last store, or 0; only one storer */
	__u64 shown_ns;			/* the deadline that QUERY showed after a store, or 0 */
	_Atomic __u64 taken_back;	/* race.sequence when CANCEL had returned */
	_Atomic __u32 delivered;
	_Atomic __u32 cancelled;
	_Atomic __u32 revoked;
	_Atomic __u32 drained;
};

static struct {
	const struct plan *plan;
	int fd;
	__u64 *table;
	__u64 table_size;
	__u32 shift;			/* shift of the deadlines in it */
	int first;			/* lines below are stable */
	int lines;
	int vector;
	_Atomic int claimed;		/* lines that armers have taken */
	_Atomic int arming;		/* armers that still run */
	_Atomic int seeds;
	_Atomic bool stop;
	_Atomic int bad;
	_Atomic __u64 sequence;
	_Atomic __u64 rearmed;
	_Atomic __u64 counted;		/* the counts of all events that were read, added up */
	struct line line[LINES];
} race;

static void saw(enum outcome outcome)
{
	tw_saw(&outcomes[outcome], 1);
}

#define CHECK(condition) do {						\
	int __none = 0;							\
	if (!(condition))						\
		atomic_compare_exchange_strong(&race.bad, &__none, __LINE__); \
} while (0)

static __u64 new_seed(void)
{
	return 7919 * ++race.seeds;
}

/*
 * Return a line that was armed not long ago, or NULL. Half of the picks are of the latest lines;
 * some may be any line, so that roles also meet timeouts that were drained.
 */
static struct line *pick(__u64 *seed)
{
	int chance = tw_random(seed) % 8;
	int window = race.plan->drain_amid && !chance ? LINES : chance % 2 ? WINDOW : 2 * BATCH;
	int claimed = race.claimed;
	int end = claimed < race.lines ? claimed : race.lines;
	int start = end - window > race.first ? end - window : race.first;
	struct line *line;

	if (end <= start)
		return NULL;
	line = &race.line[start + tw_random(seed) % (end - start)];
	return line->id ? line : NULL;
}

/* If its outcome is known, all calls say ENOENT from now on. */
static bool is_over(struct line *line)
{
	return line->cancelled || line->revoked || line->drained ||
	       (line->delivered && !race.plan->interval_ns);
}

static __u64 distance(__u64 *seed)
{
	return race.plan->near_ns + tw_random(seed) % (race.plan->spread_ns ?: 1);
}

/* ---- roles --------------------------------------------------------------- */

static void note_armed(int first, const struct twheel_arm *arms, int nr, int ret)
{
	int i, armed = 0;

	for (i = 0; i < nr; i++) {
		if (arms[i].result == -ESHUTDOWN && race.plan->drain_amid)
			continue;
		CHECK(arms[i].result == TWHEEL_CREATED);
		CHECK(arms[i].id && arms[i].id != TW_POISON64);
		race.line[first + i].id = arms[i].id;
		armed++;
	}
	CHECK(armed == ret);
	if (armed < nr)
		saw(ARM_CUT_SHORT);
}

static void *armer(void *arg)
{
	__u64 seed = new_seed();
	struct twheel_arm arms[LONG_VECTOR];
	int first, i, ret;

	(void)arg;
	while (!race.stop) {
		first = atomic_fetch_add(&race.claimed, race.vector);
		if (first + race.vector > race.lines)
			break;
		for (i = 0; i < race.vector; i++)
			arms[i] = (struct twheel_arm){
				.expires_ns = distance(&seed),
				.interval_ns = race.plan->interval_ns,
				.flags = race.plan->flags,
				.user_data = first + i,
			};
		ret = tw_arm_vec(race.fd, arms, race.vector);
		if (ret == -ESHUTDOWN) {
			CHECK(race.plan->drain_amid);
			saw(ARM_REFUSED);
			break;
		}
		note_armed(first, arms, race.vector, ret);
		if (race.plan->pause_ns)
			tw_sleep(race.plan->pause_ns);
	}
	race.arming--;
	return NULL;
}

/* Pick some lines that are armed; return how many. */
static int pick_some(struct line *lines[], int max, __u64 *seed)
{
	int i, nr = 0;

	for (i = 0; i < max; i++) {
		lines[nr] = pick(seed);
		nr += !!lines[nr];
	}
	return nr;
}

/* Whether the vector has this line before. */
static bool comes_again(struct line *const lines[], int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (lines[i] == lines[nr])
			return true;
	return false;
}

static void *canceller(void *arg)
{
	__u64 seed = new_seed();
	struct twheel_cancel cancels[BATCH];
	struct line *lines[BATCH];
	bool over[BATCH];
	int i, nr, ret, won;

	(void)arg;
	while (!race.stop) {
		nr = pick_some(lines, BATCH, &seed);
		for (i = 0; i < nr; i++) {
			over[i] = is_over(lines[i]);
			cancels[i] = (struct twheel_cancel){ .id = lines[i]->id };
		}
		ret = tw_cancel_vec(race.fd, cancels, nr);
		for (i = 0, won = 0; i < nr; i++) {
			if (cancels[i].result == -ENOENT) {
				if (!over[i] && !comes_again(lines, i))
					saw(CANCEL_BEATEN);
				continue;
			}
			won++;
			CHECK(!over[i]);
			lines[i]->taken_back = ++race.sequence;
			if (cancels[i].result == TWHEEL_WAS_PENDING)
				lines[i]->cancelled++;
			else if (cancels[i].result == TWHEEL_WAS_UNREAD)
				lines[i]->revoked++;
			else
				CHECK(false);
		}
		CHECK(ret == won);
	}
	return NULL;
}

static void rearm(struct line *line, __u64 distance_ns)
{
	__u64 deadline_ns = tw_now(CLOCK_MONOTONIC) + distance_ns;
	bool over = is_over(line);
	int ret = tw_rearm1(race.fd, line->id, TWHEEL_ARM_ABSOLUTE, deadline_ns, 0);

	if (ret == -ENOENT) {
		if (!over)
			saw(REARM_BEATEN);
		return;
	}
	CHECK(!over);
	CHECK(ret == TWHEEL_WAS_PENDING || ret == TWHEEL_WAS_UNREAD);
	saw(ret == TWHEEL_WAS_PENDING ? REARMED_PENDING : REARMED_UNREAD);
	line->deadline_ns = deadline_ns;
	race.rearmed++;
}

static void *rearmer(void *arg)
{
	__u64 seed = new_seed();

	(void)arg;
	while (!race.stop) {
		struct line *line = pick(&seed);

		if (line)
			rearm(line, distance(&seed));
	}
	return NULL;
}

/* Whatever happens in between, the results must be true. */
static void *rearmer_of_many(void *arg)
{
	__u64 seed = new_seed();
	struct twheel_arm arms[LONG_VECTOR];
	struct line *lines[LONG_VECTOR];
	int i, nr, ret, won;
	bool cut;

	(void)arg;
	while (!race.stop) {
		nr = pick_some(lines, race.vector, &seed);
		for (i = 0; i < nr; i++) {
			arms[i] = (struct twheel_arm){
				.id = lines[i]->id,
				.expires_ns = tw_now(CLOCK_MONOTONIC) + FAR + i,
				.flags = TWHEEL_ARM_ABSOLUTE,
			};
		}
		ret = tw_rearm_vec(race.fd, arms, nr);
		for (i = 0, won = 0, cut = false; i < nr; i++) {
			cut |= arms[i].result == -ESHUTDOWN;
			if (arms[i].result <= 0)
				continue;
			saw(arms[i].result == TWHEEL_WAS_PENDING ? REARMED_PENDING :
			    REARMED_UNREAD);
			lines[i]->deadline_ns = arms[i].expires_ns;
			won++;
		}
		CHECK(won == (ret < 0 ? 0 : ret));
		CHECK(ret >= 0 || ret == -ESHUTDOWN);
		if (ret < 0)
			saw(REARM_REFUSED);
		else if (cut)
			saw(REARM_CUT_SHORT);
		race.rearmed += won;
	}
	return NULL;
}

/*
 * Store to timeouts that pend, have expired or are long gone. If QUERY has shown a deadline, only a
 * later store may move the timeout.
 */
static void *storer(void *arg)
{
	__u64 seed = new_seed();
	struct twheel_status row;

	(void)arg;
	while (!race.stop) {
		struct line *line = pick(&seed);
		__u64 id, deadline_ns;

		if (!line)
			continue;
		id = line->id;
		deadline_ns = tw_refreshed_ns(tw_now(CLOCK_MONOTONIC) +
					      race.plan->near_ns + race.plan->spread_ns,
					      race.shift);
		if (tw_refresh(race.table, id, deadline_ns, race.shift))
			line->stored_ns = deadline_ns;
		if (tw_query1(race.fd, id, &row) == 0)
			line->shown_ns = row.deadline_ns;
	}
	return NULL;
}

/* Map the table again and again, and store to words that ARM may just have made. */
static void *mapper(void *arg)
{
	__u64 seed = new_seed();
	struct twheel_info info;
	__u64 *table;
	int i;

	(void)arg;
	CHECK(!tw_info(race.fd, &info));
	while (!race.stop) {
		table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     race.fd, 0);
		CHECK(table != MAP_FAILED);
		for (i = 0; i < BATCH && table != MAP_FAILED; i++) {
			__u64 deadline_ns = tw_refreshed_ns(tw_now(CLOCK_MONOTONIC) + 2 * FAR,
							    info.refresh_shift);
			struct line *line = pick(&seed);

			if (!line)
				continue;
			CHECK(tw_refresh(table, line->id, deadline_ns, info.refresh_shift));
			line->stored_ns = deadline_ns;
		}
		if (table != MAP_FAILED)
			munmap(table, info.refresh_size);
	}
	return NULL;
}

static void note_event(const struct twheel_event *event, __u64 sequence)
{
	struct line *line;

	if (event->user_data >= LINES) {
		CHECK(false);
		return;
	}
	line = &race.line[event->user_data];
	line->event_id = event->id;
	line->event_deadline_ns = event->deadline_ns;
	race.counted += event->count;
	/* If a read began after CANCEL had returned, it does not get the event. */
	CHECK(!line->taken_back || line->taken_back > sequence);
	if (event->flags & TWHEEL_EVENT_DRAINED) {
		line->drained++;
		return;
	}
	CHECK(event->count > 0);
	CHECK(event->fired_ns >= event->deadline_ns);
	if (event->count > 1)
		saw(PERIODS_MET);
	line->delivered++;
}

/* Read up to nr, on the fast path and on the slow path in turn; return the result of tw_read(). */
static int read_some(int nr)
{
	static _Thread_local unsigned int turn;
	struct twheel_event events[BATCH];
	__u64 sequence = race.sequence;
	int i, ret = tw_read_by(turn++ % 2 ? read : tw_read_pieces, race.fd, events, nr);

	for (i = 0; i < ret; i++)
		note_event(&events[i], sequence);
	return ret;
}

static void read_until_stop(int nr)
{
	bool told = false;
	int ret;

	while (!race.stop) {
		ret = read_some(nr);
		CHECK(ret > 0 || ret == -EAGAIN || (!ret && race.plan->drain_amid));
		if (ret == -EAGAIN && told)
			saw(READ_BEATEN);
		told = ret <= 0 && tw_poll(race.fd, POLLIN, 1) == POLLIN;
	}
}

static void *reader(void *arg)
{
	(void)arg;
	read_until_stop(BATCH);
	return NULL;
}

static void *slow_reader(void *arg)
{
	(void)arg;
	read_until_stop(1);
	return NULL;
}

static void *advancer(void *arg)
{
	struct twheel_info info;
	__u64 seed = new_seed();

	(void)arg;
	while (!race.stop) {
		__u64 to_ns;
		int ret;

		CHECK(!tw_info(race.fd, &info));
		/* If the step is short, it is soon behind the other thread's. */
		to_ns = info.now_ns + tw_random(&seed) % (200 * TW_US);
		ret = tw_advance(race.fd, to_ns);
		/* EINVAL: the other thread was faster. */
		CHECK(ret == 0 || ret == -EINVAL);
		if (ret)
			saw(ADVANCE_BEATEN);
		CHECK(!tw_info(race.fd, &info));
		CHECK(info.now_ns >= to_ns);
	}
	return NULL;
}

/* Re-arm the second half of the stable ones. */
static void *mover(void *arg)
{
	__u64 seed = new_seed();

	(void)arg;
	while (!race.stop)
		rearm(&race.line[STABLE / 2 + tw_random(&seed) % (STABLE / 2)],
		      FAR + tw_random(&seed) * 1000ULL);
	return NULL;
}

static void walk(void)
{
	struct twheel_status rows[BATCH];
	int seen[STABLE] = {};
	__u64 cursor = 0;
	int i, nr;

	while ((nr = tw_list(race.fd, &cursor, rows, BATCH)) > 0) {
		for (i = 0; i < nr; i++) {
			CHECK(rows[i].id && rows[i].user_data < LINES);
			CHECK(rows[i].result == 0);
			CHECK(rows[i].state == TWHEEL_STATE_PENDING ||
			      rows[i].state == TWHEEL_STATE_EXPIRED);
			if (rows[i].state == TWHEEL_STATE_EXPIRED)
				saw(LISTED_EXPIRED);
			if (rows[i].user_data < STABLE)
				seen[rows[i].user_data]++;
		}
	}
	CHECK(nr == 0);
	for (i = 0; i < STABLE / 2; i++)
		CHECK(seen[i] == 1);
	for (; i < STABLE; i++) {
		CHECK(seen[i] >= 1);
		if (seen[i] > 1)
			saw(LISTED_TWICE);
	}
}

static void *observer(void *arg)
{
	__u64 seed = new_seed();

	(void)arg;
	while (!race.stop) {
		int who = tw_random(&seed) % STABLE;
		struct twheel_status row;
		struct twheel_info info;

		walk();
		CHECK(tw_query1(race.fd, race.line[who].id, &row) == 0);
		CHECK(row.state == TWHEEL_STATE_PENDING && row.user_data == who);
		CHECK(tw_info(race.fd, &info) == 0);
		CHECK(info.live >= STABLE && info.live <= info.max_pending);
	}
	return NULL;
}

/* ---- rounds -------------------------------------------------------------- */

/* Start a thread on one processor after the other, if there are several. */
static pthread_t spawn(struct __test_metadata *_metadata, void *(*role)(void *), int nr)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(nr % cpus, &set);
	ASSERT_EQ(0, pthread_create(&thread, NULL, role, NULL));
	pthread_setaffinity_np(thread, sizeof(set), &set);
	return thread;
}

static void prepare(struct __test_metadata *_metadata, const struct plan *plan)
{
	const struct twheel_setup setup = {
		.clock = plan->clock,
		.tick_ns = 100 * TW_US,
		.max_pending = LINES,
	};
	int i;
	__u64 id;

	memset(&race, 0, sizeof(race));
	race.plan = plan;
	race.lines = plan->lines ?: LINES;
	race.vector = plan->vector ?: BATCH;
	race.fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
	ASSERT_LE(0, race.fd);
	if (plan->table) {
		struct twheel_info info;

		ASSERT_EQ(0, tw_info(race.fd, &info));
		race.table_size = info.refresh_size;
		race.shift = info.refresh_shift;
		race.table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED,
				  race.fd, 0);
		ASSERT_NE(MAP_FAILED, race.table);
	}
	if (!plan->stable)
		return;
	for (i = 0; i < STABLE; i++) {
		ASSERT_EQ(0, tw_arm1(race.fd, 0, FAR, 0, i, &id));
		race.line[i].id = id;
	}
	race.first = STABLE;
	race.claimed = STABLE;
}

/* Run the roles until the ledger is full or the time is over. */
static void run_roles(struct __test_metadata *_metadata, const struct tw_race *rounds)
{
	const struct plan *plan = race.plan;
	int i, nr, round = rounds->rounds - 1;
	__u64 end_ns = tw_race_round_end_ns(rounds);
	pthread_t threads[ROLES];

	race.seeds = 100 * round;
	for (i = 0; i < ROLES; i++)
		race.arming += plan->roles[i] == armer;
	for (nr = 0; nr < ROLES && plan->roles[nr]; nr++)
		threads[nr] = spawn(_metadata, plan->roles[nr], nr);
	if (plan->drain_amid) {
		tw_sleep(round * 777 % 20000 * TW_US);
		ASSERT_EQ(0, tw_drain(race.fd));
		/* Let the other roles meet timeouts that were drained. */
		tw_sleep(2 * TW_MS);
	}
	while (race.arming && tw_now(CLOCK_MONOTONIC) < end_ns)
		tw_sleep(TW_MS);
	race.stop = true;
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(0, race.bad)
		TH_LOG("a thread found line %d not true", race.bad);
}

/* When ADVANCE returns, no timeout is overdue. */
static void check_nothing_is_overdue(struct __test_metadata *_metadata)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(race.fd, &info));
	ASSERT_EQ(0, tw_advance(race.fd, info.now_ns));
	ASSERT_EQ(0, tw_info(race.fd, &info));
	ASSERT_LT(info.now_ns, info.next_expiry_ns);
}

/* Note whether the last store to its word came in time for its event. */
static void note_refresh(const struct line *line)
{
	bool in_time = line->event_deadline_ns == line->stored_ns;

	if (!line->stored_ns || !line->event_id)
		return;
	if (line->drained)
		saw(in_time ? DRAINED_REFRESHED : DRAINED_BEFORE_REFRESH);
	else
		saw(in_time ? REFRESHED : REFRESHED_TOO_LATE);
}

/* Check that each line has one outcome, and that INFO has counted the same. */
static void settle(struct __test_metadata *_metadata)
{
	__u64 armed = 0, delivered = 0, cancelled = 0, revoked = 0, drained = 0;
	bool periodic = race.plan->interval_ns;
	struct twheel_info info;
	int i;

	ASSERT_EQ(0, tw_drain(race.fd));
	while ((i = read_some(BATCH)) > 0)
		;
	ASSERT_EQ(0, i);
	ASSERT_EQ(0, race.bad);
	for (i = 0; i < LINES; i++) {
		struct line *line = &race.line[i];
		int ends = line->cancelled + line->revoked + line->drained +
			   (periodic ? 0 : line->delivered);

		ASSERT_EQ(!!line->id, ends)
			TH_LOG("%d: delivered %u, cancelled %u, revoked %u, drained %u", i,
			       line->delivered, line->cancelled, line->revoked, line->drained);
		if (line->event_id)
			ASSERT_EQ(line->id, line->event_id);
		if (line->event_id && line->deadline_ns)
			ASSERT_EQ(line->deadline_ns, line->event_deadline_ns);
		if (line->event_id)
			ASSERT_LE(line->shown_ns, line->event_deadline_ns);
		note_refresh(line);
		if (race.plan->stores && line->stored_ns)
			ASSERT_EQ(line->stored_ns, line->event_deadline_ns);
		armed += !!line->id;
		delivered += line->delivered;
		cancelled += line->cancelled;
		revoked += line->revoked;
		drained += line->drained;
	}
	ASSERT_EQ(0, tw_info(race.fd, &info));
	ASSERT_EQ(armed, info.armed);
	ASSERT_EQ(0, info.live);
	ASSERT_EQ(0, info.pending);
	ASSERT_EQ(0, info.unread);
	ASSERT_EQ(delivered + drained, info.delivered);
	ASSERT_EQ(periodic ? 0 : delivered, info.completed);
	ASSERT_EQ(cancelled, info.cancelled);
	ASSERT_EQ(revoked, info.revoked);
	ASSERT_EQ(drained, info.drained);
	ASSERT_EQ(race.rearmed, info.rearmed);
	if (race.plan->sums)
		ASSERT_EQ(race.counted, info.expirations);
	tw_saw(&outcomes[NONE], armed);
	tw_saw(&outcomes[DELIVERED], delivered);
	tw_saw(&outcomes[CANCELLED], cancelled);
	tw_saw(&outcomes[REVOKED], revoked);
	tw_saw(&outcomes[DRAINED], drained);
}

static void run(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct tw_race rounds = TW_RACE(outcomes, tw_race_seconds() * (plan->part ?: 1));
	int i;

	for (i = 0; plan->must_see[i]; i++)
		outcomes[plan->must_see[i]].least = TW_A_FEW;
	while (tw_race_goes_on(&rounds)) {
		prepare(_metadata, plan);
		run_roles(_metadata, &rounds);
		if (plan->clock == TWHEEL_CLOCK_VIRTUAL)
			check_nothing_is_overdue(_metadata);
		settle(_metadata);
		if (plan->table)
			munmap(race.table, race.table_size);
		close(race.fd);
	}
	EXPECT_RACE(&rounds);
}

/* ---- the races ----------------------------------------------------------- */

#define RACE_OF(sentence, ...)						\
TEST_F_TIMEOUT(race, sentence, 100)					\
{									\
	static const struct plan plan = { __VA_ARGS__ };		\
	run(_metadata, &plan);						\
}

FIXTURE(race) {
};

FIXTURE_SETUP(race)
{
}

FIXTURE_TEARDOWN(race)
{
}

RACE_OF(cancel_against_expiry,
	.roles = { armer, canceller, reader }, .spread_ns = 2 * TW_MS, .pause_ns = SHORT,
	.must_see = { CANCELLED, REVOKED, CANCEL_BEATEN, DELIVERED })

RACE_OF(cancel_against_cancel,
	.roles = { armer, canceller, canceller }, .near_ns = FAR, .pause_ns = SHORT,
	.must_see = { CANCELLED, CANCEL_BEATEN })

RACE_OF(cancel_against_read_of_an_expired_one,
	.roles = { armer, slow_reader, canceller }, .pause_ns = SHORT,
	.must_see = { REVOKED, CANCEL_BEATEN, DELIVERED })

RACE_OF(rearm_against_expiry,
	.roles = { armer, rearmer, reader }, .spread_ns = 2 * TW_MS, .pause_ns = SHORT,
	.must_see = { REARMED_PENDING, REARMED_UNREAD, REARM_BEATEN, DELIVERED })

RACE_OF(rearm_against_cancel,
	.roles = { armer, rearmer, canceller }, .near_ns = FAR, .pause_ns = SHORT,
	.must_see = { REARMED_PENDING, REARM_BEATEN, CANCELLED })

RACE_OF(rearm_against_cancel_against_expiry,
	.roles = { armer, rearmer, canceller, reader }, .spread_ns = TW_MS, .pause_ns = SHORT,
	.must_see = { REARMED_PENDING, REARMED_UNREAD, REARM_BEATEN, CANCELLED, REVOKED,
		      CANCEL_BEATEN, DELIVERED })

RACE_OF(refresh_against_expiry,
	.roles = { armer, storer, reader }, .near_ns = TW_MS, .spread_ns = 2 * TW_MS,
	.pause_ns = SHORT, .table = true,
	.must_see = { REFRESHED, REFRESHED_TOO_LATE })

RACE_OF(refresh_against_cancel_against_expiry,
	.roles = { armer, storer, canceller, reader }, .spread_ns = 2 * TW_MS,
	.pause_ns = SHORT, .table = true,
	.must_see = { REFRESHED, REFRESHED_TOO_LATE, CANCELLED, REVOKED })

RACE_OF(refresh_against_drain,
	.roles = { armer, storer, reader }, .spread_ns = 100 * TW_MS, .pause_ns = SHORT,
	.table = true, .drain_amid = true,
	.must_see = { DRAINED_REFRESHED, DRAINED_BEFORE_REFRESH, DELIVERED })

RACE_OF(arm_against_drain,
	.roles = { armer, armer, reader }, .spread_ns = 100 * TW_MS, .vector = LONG_VECTOR,
	.drain_amid = true,
	.must_see = { ARM_CUT_SHORT, ARM_REFUSED, DELIVERED, DRAINED })

RACE_OF(cancel_against_drain,
	.roles = { armer, canceller, canceller, reader }, .spread_ns = 100 * TW_MS,
	.drain_amid = true,
	.must_see = { CANCELLED, REVOKED, CANCEL_BEATEN, DELIVERED, DRAINED })

/* Nothing expires: if a timeout is revoked, it has been drained. */
RACE_OF(rearm_of_many_against_cancel_against_drain,
	.roles = { armer, rearmer_of_many, canceller, canceller }, .near_ns = FAR,
	.vector = LONG_VECTOR, .drain_amid = true,
	.must_see = { REARMED_PENDING, REARM_CUT_SHORT, REARM_REFUSED, CANCELLED, REVOKED,
		      CANCEL_BEATEN, DRAINED })

RACE_OF(three_readers_against_two_armers,
	.roles = { armer, armer, reader, reader, slow_reader }, .spread_ns = 2 * TW_MS,
	.must_see = { DELIVERED, READ_BEATEN })

RACE_OF(periodic_against_cancel_against_read,
	.roles = { armer, canceller, reader }, .spread_ns = TW_MS,
	.interval_ns = TW_MS, .lines = 1024, .pause_ns = TW_MS,
	.must_see = { DELIVERED, PERIODS_MET, CANCELLED, REVOKED })

RACE_OF(periodic_against_read_loses_no_expiration,
	.roles = { armer, reader, slow_reader }, .spread_ns = TW_MS, .interval_ns = TW_MS,
	.lines = 1024, .pause_ns = TW_MS, .sums = true, .part = 0.25,
	.must_see = { DELIVERED, PERIODS_MET })

RACE_OF(fixed_delay_against_cancel_against_read,
	.roles = { armer, canceller, reader }, .spread_ns = TW_MS,
	.interval_ns = TW_MS, .flags = TWHEEL_ARM_FIXED_DELAY, .lines = 1024,
	.pause_ns = TW_MS, .part = 0.25,
	.must_see = { DELIVERED, CANCELLED, REVOKED })

RACE_OF(fixed_delay_against_read_against_drain,
	.roles = { armer, reader, slow_reader }, .spread_ns = TW_MS,
	.interval_ns = TW_MS, .flags = TWHEEL_ARM_FIXED_DELAY, .lines = 1024,
	.pause_ns = TW_MS, .drain_amid = true, .sums = true, .part = 0.25,
	.must_see = { DELIVERED, DRAINED })

RACE_OF(mmap_against_arm,
	.roles = { armer, armer, mapper }, .near_ns = FAR, .stores = true, .part = 0.25,
	.must_see = { DRAINED_REFRESHED })

RACE_OF(list_query_and_info_beside_changes,
	.roles = { armer, canceller, mover, observer, reader },
	.spread_ns = 20 * TW_MS, .pause_ns = SHORT, .stable = true,
	.must_see = { LISTED_EXPIRED, REARMED_PENDING, CANCELLED, REVOKED, DELIVERED })

RACE_OF(advance_against_advance,
	.roles = { armer, advancer, advancer, reader },
	.clock = TWHEEL_CLOCK_VIRTUAL, .spread_ns = 5 * TW_MS, .pause_ns = SHORT,
	.must_see = { ADVANCE_BEATEN, DELIVERED })

/* ---- the first ARM ------------------------------------------------------------ */

#define KEY	7

enum { ARM_FIRST, SETUP_FIRST, ARMED_BOTH };

static struct tw_outcome firsts[] = {
	[ARM_FIRST]	= TW_OUTCOME("ARM started the wheel", TW_A_FEW),
	[SETUP_FIRST]	= TW_OUTCOME("SETUP did", TW_A_FEW),
	[ARMED_BOTH]	= TW_OUTCOME("two that armed", TW_A_FEW),
};

/* The first call of a thread on a new wheel, and its result. */
static struct {
	struct tw_meeting meeting;
	int fd;
	bool arms;		/* or sets the wheel up as a keyed one */
	__u64 late_ns;		/* it comes this much later than the other one */
	bool over;
	int ret;
} first;

static int first_arm(int fd)
{
	struct twheel_arm arms[2] = {
		{ .expires_ns = FAR, .user_data = KEY }, { .expires_ns = FAR, .user_data = KEY },
	};

	return tw_arm_vec(fd, arms, 2);
}

static int first_setup(int fd)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_BOOTTIME, .flags = TWHEEL_SETUP_KEYED,
	};

	return tw_setup_full(fd, &setup);
}

static void *first_caller(void *arg)
{
	(void)arg;
	for (;;) {
		tw_meet(&first.meeting, 2);
		if (first.over)
			return NULL;
		tw_spin(first.late_ns);
		first.ret = first.arms ? first_arm(first.fd) : first_setup(first.fd);
		tw_meet(&first.meeting, 2);
	}
}

/* Whether no call finds a timeout: nobody has armed these ids, but SETUP may be under way. */
static bool nothing_is_there(int fd)
{
	struct twheel_arm moves[2] = {
		{ .id = 1, .expires_ns = FAR }, { .id = 2, .expires_ns = FAR },
	};
	struct twheel_cancel cancels[2] = { { .id = 1 }, { .id = 2 } };
	struct twheel_status rows[2] = { { .id = 1 }, { .id = 2 } };

	return !tw_rearm_vec(fd, moves, 2) && moves[1].result == -ENOENT &&
	       !tw_cancel_vec(fd, cancels, 2) && cancels[1].result == -ENOENT &&
	       !tw_query_vec(fd, rows, 2) && rows[1].result == -ENOENT;
}

/* If nobody has set up a wheel, it starts once, and as one of the two wants it. */
static void first_round(struct __test_metadata *_metadata, bool arms, bool writes,
			__u64 *seed)
{
	const struct twheel_record records[2] = {
		{ .op = TWHEEL_OP_ARM, .key = KEY, .expires_ns = FAR },
		{ .op = TWHEEL_OP_ARM, .key = KEY, .expires_ns = FAR },
	};
	struct twheel_info info;
	__u64 late_ns = tw_random(seed) % (20 * TW_US);
	bool keyed;
	int ret;

	first.late_ns = tw_random(seed) % (20 * TW_US);
	first.fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, first.fd);
	first.arms = arms;
	tw_meet(&first.meeting, 2);
	if (!arms)
		EXPECT_TRUE(nothing_is_there(first.fd));
	tw_spin(late_ns);
	ret = writes ? tw_write(first.fd, records, 2) : first_arm(first.fd);
	tw_meet(&first.meeting, 2);
	EXPECT_EQ(2, ret);
	keyed = !arms && !first.ret;
	EXPECT_EQ(arms ? 2 : keyed ? 0 : -EBUSY, first.ret);
	ASSERT_EQ(0, tw_info(first.fd, &info));
	EXPECT_EQ(keyed ? TWHEEL_CLOCK_BOOTTIME : TWHEEL_CLOCK_MONOTONIC, info.clock);
	EXPECT_EQ(keyed ? TWHEEL_SETUP_KEYED : 0, info.setup_flags);
	EXPECT_EQ(arms ? 4 : keyed ? 1 : 2, info.live);
	EXPECT_EQ(info.live, info.armed);
	tw_saw(&firsts[arms ? ARMED_BOTH : keyed ? SETUP_FIRST : ARM_FIRST], 1);
	close(first.fd);
}

TEST_F_TIMEOUT(race, first_arm_against_setup_against_arm, 100)
{
	struct tw_race rounds = TW_RACE(firsts, tw_race_seconds() / 4);
	pthread_t thread;
	__u64 seed = 3;

	memset(&first, 0, sizeof(first));
	ASSERT_EQ(0, pthread_create(&thread, NULL, first_caller, NULL));
	while (tw_race_goes_on(&rounds))
		first_round(_metadata, rounds.rounds % 3 == 0, rounds.rounds % 3 == 1, &seed);
	first.over = true;
	tw_meet(&first.meeting, 2);
	pthread_join(thread, NULL);
	EXPECT_RACE(&rounds);
}

TEST_HARNESS_MAIN
