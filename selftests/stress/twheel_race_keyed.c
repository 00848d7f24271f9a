// SPDX-License-Identifier: GPL-2.0
/*
 * Races for keys.  Many threads replace the timeouts of a few keys while these expire, are
 * cancelled by key and by id, and are read.  Each thread keeps a log of its calls: the arguments,
 * the results, and when the call began and ended, counted by one sequence for all. After each round
 * the logs are compared:
 *
 * - No two timeouts of a key live at once.  A timeout has lived for certain from the end
 *   of the call that created it to the beginning of the call that ended it, or that saw
 *   it last; these times of a key's timeouts do not overlap.
 * - Each timeout that was created has ended once: an event was read, or CANCEL gave a verdict. Each
 *   id was given out once, and if a call names an id, its timeout had been created and had not
 *   ended.
 * - Each deadline is a number of its own, and ends in one way: the next call that replaced the
 *   timeout returned it, or an event carried it, or CANCEL took the timeout back. None comes twice,
 *   and none that nobody has set.
 * - If a call says ENOENT, there was a moment in the call at which nothing had the key; if it says
 *   EEXIST or ERANGE, there was one at which a timeout had it.
 * - INFO has counted the same.
 *
 * A race is a plan, run in rounds, each with a new wheel, for TW_RACE_SECONDS (2), or until each
 * outcome that it has to see has come.  Threads do not assert: they note the line of the first
 * error in race.bad.
 */
#include "twheel_keyed.h"
#include "twheel_outcomes.h"

#include <pthread.h>

#define KEYS		64
#define THREADS		16
#define LOG		(1 << 14)	/* records of a thread in a round */
#define BATCH		8
#define FAR		TW_HOUR
#define ROUND		(TW_SEC / 2)
#define FOREVER		(~0ULL)

/* A deadline has the number of its thread and of its record in its low bits. */
#define TOKEN_BITS	18

enum outcome {
	CREATED,
	WAS_PENDING,
	WAS_UNREAD,
	REPLACED_AT_ONCE,
	CREATED_AT_THE_END,
	EXISTED,
	ABSENT,
	OUT_OF_BOUNDS,
	REARMED_BY_KEY,
	REARM_FOUND_NOTHING,
	CANCELLED_BY_KEY,
	REVOKED_BY_KEY,
	CANCELLED_BY_ID,
	ID_WAS_STALE,
	CANCEL_FOUND_NOTHING,
	DELIVERED,
	DRAINED,
	REFUSED,
	CUT_SHORT,
	QUERIED,
	LISTED,
	NR_OUTCOMES,
};

static struct tw_outcome outcomes[] = {
	[CREATED]		= TW_OUTCOME("created", 0),
	[WAS_PENDING]		= TW_OUTCOME("replaced while pending", 0),
	[WAS_UNREAD]		= TW_OUTCOME("replaced while unread", 0),
	[REPLACED_AT_ONCE]	= TW_OUTCOME("replaced before the call that set it was over", 0),
	[CREATED_AT_THE_END]	= TW_OUTCOME("created while the one before was ended", 0),
	[EXISTED]		= TW_OUTCOME("EEXIST", 0),
	[ABSENT]		= TW_OUTCOME("IF_PRESENT found nothing", 0),
	[OUT_OF_BOUNDS]		= TW_OUTCOME("ERANGE", 0),
	[REARMED_BY_KEY]	= TW_OUTCOME("re-armed by key", 0),
	[REARM_FOUND_NOTHING]	= TW_OUTCOME("REARM found nothing", 0),
	[CANCELLED_BY_KEY]	= TW_OUTCOME("cancelled by key", 0),
	[REVOKED_BY_KEY]	= TW_OUTCOME("revoked by key", 0),
	[CANCELLED_BY_ID]	= TW_OUTCOME("cancelled by id", 0),
	[ID_WAS_STALE]		= TW_OUTCOME("CANCEL by id came too late", 0),
	[CANCEL_FOUND_NOTHING]	= TW_OUTCOME("CANCEL by key found nothing", 0),
	[DELIVERED]		= TW_OUTCOME("delivered", 0),
	[DRAINED]		= TW_OUTCOME("drained", 0),
	[REFUSED]		= TW_OUTCOME("ARM refused", 0),
	[CUT_SHORT]		= TW_OUTCOME("ARM cut short", 0),
	[QUERIED]		= TW_OUTCOME("queried", 0),
	[LISTED]		= TW_OUTCOME("listed", 0),
};

enum what { ARM, REARM_KEY, CANCEL_KEY, CANCEL_ID, QUERY_KEY, ROW, EVENT };

/* One element of one call. */
struct record {
	enum what what;
	__s32 result;		/* result of the call; for an event, its flags */
	__u64 key;
	__u64 id;		/* 0: unknown */
	__u64 set_ns;		/* the deadline that it should have */
	__u64 was_ns;		/* the deadline that it had, TW_POISON64 if it was not returned */
	__u64 begin;		/* beginning of the call, in race.sequence */
	__u64 end;
	__u64 now_ns;		/* when the call was over */
};

struct log {
	int thread;
	void *(*role)(void *log);
	int nr;
	__u64 seed;
	struct record record[LOG];
};

struct plan {
	int upserters;
	int keys;
	bool drain_amid;
	enum outcome must_see[NR_OUTCOMES];
};

static struct {
	const struct plan *plan;
	int fd;
	pthread_barrier_t start;
	_Atomic bool stop;
	_Atomic bool refused;		/* ARM: DRAIN has begun */
	_Atomic int bad;
	_Atomic __u64 sequence;
	_Atomic __u64 last_id[KEYS];	/* the last id that ARM has returned */
	struct log log[THREADS];
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

static bool goes_on(const struct log *log)
{
	return !race.stop && log->nr < LOG - 4 * KEYS;
}

static __u64 any_key(struct log *log)
{
	return tw_random(&log->seed) % race.plan->keys;
}

/* Most deadlines are short, some have passed, and some are so far that they never expire. */
static __u64 any_deadline(struct log *log, int nr)
{
	__u64 distance_ns = tw_random(&log->seed) % (3 * TW_MS);
	__u64 deadline_ns;

	if (!(tw_random(&log->seed) % 4))
		distance_ns = FAR + tw_random(&log->seed);
	deadline_ns = tw_now(CLOCK_MONOTONIC) + distance_ns;
	return (deadline_ns >> TOKEN_BITS << TOKEN_BITS) | log->thread << 14 | nr;
}

/* Give the last nr records the time of their call. */
static void note(struct log *log, int nr, __u64 begin)
{
	__u64 end = ++race.sequence, now_ns = tw_now(CLOCK_MONOTONIC);
	int i;

	for (i = log->nr; i < log->nr + nr; i++) {
		log->record[i].begin = begin;
		log->record[i].end = end;
		log->record[i].now_ns = now_ns;
	}
	log->nr += nr;
}

/* ---- roles --------------------------------------------------------------- */

static __u32 any_condition(struct log *log)
{
	const __u32 flags[] = {
		TWHEEL_ARM_IF_ABSENT, TWHEEL_ARM_IF_PRESENT,
		TWHEEL_ARM_ONLY_LATER, TWHEEL_ARM_ONLY_EARLIER,
	};
	int which = tw_random(&log->seed) % 16;

	return which < ARRAY_SIZE(flags) ? flags[which] : 0;
}

static void note_arm(struct record *record, const struct twheel_arm *arm)
{
	*record = (struct record){
		.what = ARM, .result = arm->result, .key = arm->user_data, .id = arm->id,
		.set_ns = arm->expires_ns, .was_ns = arm->was_deadline_ns,
	};
	switch (arm->result) {
	case TWHEEL_CREATED:
		CHECK(!arm->was_deadline_ns);
		saw(CREATED);
		break;
	case TWHEEL_WAS_PENDING:
		saw(WAS_PENDING);
		break;
	case TWHEEL_WAS_UNREAD:
		saw(WAS_UNREAD);
		break;
	case -EEXIST:
		CHECK(arm->flags & TWHEEL_ARM_IF_ABSENT);
		saw(EXISTED);
		break;
	case -ENOENT:
		CHECK(arm->flags & TWHEEL_ARM_IF_PRESENT);
		saw(ABSENT);
		break;
	case -ERANGE:
		CHECK(arm->flags & (TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_ONLY_EARLIER));
		saw(OUT_OF_BOUNDS);
		break;
	case -ESHUTDOWN:
		CHECK(race.plan->drain_amid);
		saw(CUT_SHORT);
		return;
	default:
		CHECK(false);
	}
	CHECK(arm->result > 0 ? arm->id && arm->id != TW_POISON64 : !arm->id);
	if (arm->result > 0)
		race.last_id[arm->user_data] = arm->id;
}

static void *upserter(void *arg)
{
	struct twheel_arm arms[BATCH];
	struct log *log = arg;

	while (goes_on(log)) {
		/* Half of the calls have one element. */
		int nr = tw_random(&log->seed) % 2 ? 1 : 2 + tw_random(&log->seed) % (BATCH - 1);
		int i, ret, won = 0;
		__u64 begin;

		for (i = 0; i < nr; i++)
			arms[i] = (struct twheel_arm){
				.user_data = any_key(log),
				.expires_ns = any_deadline(log, log->nr + i),
				.flags = TWHEEL_ARM_ABSOLUTE | any_condition(log),
			};
		begin = ++race.sequence;
		ret = key_arm_vec(race.fd, arms, nr);
		if (ret == -ESHUTDOWN) {
			CHECK(race.plan->drain_amid);
			saw(REFUSED);
			race.refused = true;
			break;
		}
		for (i = 0; i < nr; i++) {
			note_arm(&log->record[log->nr + i], &arms[i]);
			won += arms[i].result > 0;
		}
		CHECK(ret == won);
		note(log, nr, begin);
	}
	return NULL;
}

static void *rearmer(void *arg)
{
	struct log *log = arg;

	while (goes_on(log)) {
		struct twheel_arm arm = {
			.id = any_key(log),
			.user_data = TW_POISON64,
			.expires_ns = any_deadline(log, log->nr),
			.flags = TWHEEL_ARM_ABSOLUTE,
		};
		__u64 begin = ++race.sequence, key = arm.id;
		int ret = key_rearm_vec(race.fd, &arm, 1);

		if (ret == -ESHUTDOWN) {
			CHECK(race.plan->drain_amid);
			break;
		}
		ret = tw_one_result(ret, arm.result);
		CHECK(ret == TWHEEL_WAS_PENDING || ret == TWHEEL_WAS_UNREAD || ret == -ENOENT);
		saw(ret > 0 ? REARMED_BY_KEY : REARM_FOUND_NOTHING);
		log->record[log->nr] = (struct record){
			.what = REARM_KEY, .result = ret, .key = key,
			.set_ns = arm.expires_ns, .was_ns = arm.was_deadline_ns,
		};
		note(log, 1, begin);
	}
	return NULL;
}

/* Cancel by key, and by an id that may be an older timeout's. */
static void *canceller(void *arg)
{
	struct log *log = arg;

	while (goes_on(log)) {
		bool by_key = tw_random(&log->seed) % 2;
		__u64 key = any_key(log), id = race.last_id[key], begin;
		int ret;

		if (!by_key && !id)
			continue;
		begin = ++race.sequence;
		ret = by_key ? key_cancel(race.fd, key) : tw_cancel1(race.fd, id);
		CHECK(ret == TWHEEL_WAS_PENDING || ret == TWHEEL_WAS_UNREAD || ret == -ENOENT);
		if (ret < 0)
			saw(by_key ? CANCEL_FOUND_NOTHING : ID_WAS_STALE);
		else if (!by_key)
			saw(CANCELLED_BY_ID);
		else
			saw(ret == TWHEEL_WAS_PENDING ? CANCELLED_BY_KEY : REVOKED_BY_KEY);
		log->record[log->nr] = (struct record){
			.what = by_key ? CANCEL_KEY : CANCEL_ID, .result = ret, .key = key,
			.id = by_key ? 0 : id,
		};
		note(log, 1, begin);
		/*
		 * If ARM is refused, leave drained timeouts for a reader, too: no others come after
		 * them.
		 */
		if (race.refused)
			tw_sleep(TW_MS);
		else
			tw_spin(20 * TW_US);
	}
	return NULL;
}

static void note_row(struct log *log, enum what what, const struct twheel_status *row, __u64 key,
		     int at)
{
	CHECK(row->state == TWHEEL_STATE_PENDING || row->state == TWHEEL_STATE_EXPIRED ||
	      (row->state == TWHEEL_STATE_DRAINED && race.plan->drain_amid));
	CHECK(row->user_data == key && key < race.plan->keys);
	saw(what == ROW ? LISTED : QUERIED);
	log->record[log->nr + at] = (struct record){
		.what = what, .key = key, .id = row->id, .was_ns = row->deadline_ns,
	};
}

/* Query single keys, and list all timeouts. */
static void *observer(void *arg)
{
	struct twheel_status rows[2 * KEYS];
	struct log *log = arg;

	while (goes_on(log)) {
		__u64 key = any_key(log), cursor = 0, begin = ++race.sequence;
		int i, nr = key_query(race.fd, key, rows);

		CHECK(!nr || nr == -ENOENT);
		if (nr)
			log->record[log->nr] = (struct record){
				.what = QUERY_KEY, .result = nr, .key = key,
			};
		else
			note_row(log, QUERY_KEY, rows, key, 0);
		note(log, 1, begin);
		if (tw_random(&log->seed) % 16)
			continue;
		begin = ++race.sequence;
		nr = tw_list(race.fd, &cursor, rows, ARRAY_SIZE(rows));
		CHECK(nr >= 0);
		for (i = 0; i < nr; i++)
			note_row(log, ROW, &rows[i], rows[i].user_data, i);
		note(log, nr < 0 ? 0 : nr, begin);
	}
	return NULL;
}

/*
 * Read up to nr events, on the fast path and on the slow path in turn; return the result of
 * tw_read().
 */
static int read_some(struct log *log, int nr)
{
	struct twheel_event events[BATCH];
	__u64 begin = ++race.sequence;
	int i, ret = tw_read_by(begin % 2 ? read : tw_read_pieces, race.fd, events, nr);

	for (i = 0; i < ret; i++) {
		bool drained = events[i].flags & TWHEEL_EVENT_DRAINED;

		CHECK(events[i].user_data < race.plan->keys);
		CHECK(events[i].flags & TWHEEL_EVENT_ENDED);
		CHECK(drained || events[i].fired_ns >= events[i].deadline_ns);
		CHECK(drained || events[i].count == 1);
		saw(drained ? DRAINED : DELIVERED);
		log->record[log->nr + i] = (struct record){
			.what = EVENT, .result = drained, .key = events[i].user_data,
			.id = events[i].id, .was_ns = events[i].deadline_ns,
		};
	}
	if (ret > 0)
		note(log, ret, begin);
	return ret;
}

static void *reader(void *arg)
{
	struct log *log = arg;

	while (goes_on(log)) {
		int ret = read_some(log, 1 + tw_random(&log->seed) % BATCH);

		CHECK(ret > 0 || ret == -EAGAIN || (!ret && race.plan->drain_amid));
		if (ret <= 0)
			tw_poll(race.fd, POLLIN, 1);
	}
	return NULL;
}

/* ---- checks of the logs --------------------------------------------------- */

/* A timeout from its creation to its end. */
struct life {
	__u64 id;
	__u64 key;
	__u64 created_begin;
	__u64 created_end;
	__u64 alive_until;	/* it lived until here for certain */
	__u64 ended_by;		/* the latest that it can have lived */
	int ends;
};

/* A deadline that a call has set. */
struct token {
	__u64 deadline_ns;
	__u64 id;		/* 0: set by key */
	__u64 key;
	__u64 begin;
	__u64 end;
	bool used;
};

struct books {
	__u64 created, ended, set, used, cancelled, untold;
};

static struct life *lives;
static struct token *tokens;
static int nr_lives, nr_tokens;
static struct life *life_of_key[KEYS];	/* those of each key, by the end of their creation */
static int nr_lives_of_key[KEYS];
static struct books books[KEYS];

static int compare_lives(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_creations(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->created_end < y->created_end ? -1 : x->created_end > y->created_end;
}

static int compare_tokens(const void *a, const void *b)
{
	const struct token *x = a, *y = b;

	return x->deadline_ns < y->deadline_ns ? -1 : x->deadline_ns > y->deadline_ns;
}

static struct life *find_life(__u64 id)
{
	const struct life wanted = { .id = id };

	return bsearch(&wanted, lives, nr_lives, sizeof(*lives), compare_lives);
}

static struct token *find_token(__u64 deadline_ns)
{
	const struct token wanted = { .deadline_ns = deadline_ns };

	return bsearch(&wanted, tokens, nr_tokens, sizeof(*tokens), compare_tokens);
}

typedef void record_look(struct __test_metadata *_metadata, const struct record *record);

static void look_at_each_record(struct __test_metadata *_metadata, record_look *look)
{
	int i, j;

	for (i = 0; i < THREADS; i++)
		for (j = 0; j < race.log[i].nr; j++)
			look(_metadata, &race.log[i].record[j]);
}

/* If it ended before the call that created it was over, it has not lived for certain. */
static bool has_lived_for_certain(const struct life *life)
{
	return life->created_end < life->alive_until;
}

/* Return whether the record set a deadline. */
static bool sets(const struct record *record)
{
	return (record->what == ARM || record->what == REARM_KEY) && record->result > 0;
}

static bool cancels(const struct record *record)
{
	return (record->what == CANCEL_KEY || record->what == CANCEL_ID) && record->result > 0;
}

static void collect(struct __test_metadata *_metadata, const struct record *record)
{
	struct books *its = &books[record->key];

	(void)_metadata;
	if (sets(record)) {
		tokens[nr_tokens++] = (struct token){
			.deadline_ns = record->set_ns, .id = record->id, .key = record->key,
			.begin = record->begin, .end = record->end,
		};
		its->set++;
	}
	if (record->what == ARM && record->result == TWHEEL_CREATED) {
		lives[nr_lives++] = (struct life){
			.id = record->id, .key = record->key, .created_begin = record->begin,
			.created_end = record->end, .ended_by = FOREVER,
		};
		its->created++;
	}
	its->cancelled += cancels(record);
	its->ended += cancels(record) || record->what == EVENT;
}

/* Check that the timeout with this id is one of this key, which the call saw. */
static void sighted(struct __test_metadata *_metadata, const struct record *record)
{
	struct life *life;
	bool ends = record->what == EVENT || record->what == CANCEL_ID;

	if (!record->id || record->result < 0)
		return;
	life = find_life(record->id);
	ASSERT_NE(NULL, life)
		TH_LOG("call %d of key %llu: id %#llx was never created", record->what,
		       record->key, record->id);
	ASSERT_EQ(record->key, life->key)
		TH_LOG("id %#llx of key %llu", record->id, record->key);
	/* It must have been created before. */
	ASSERT_LT(life->created_begin, record->end);
	if (record->begin > life->alive_until)
		life->alive_until = record->begin;
	if (!ends)
		return;
	ASSERT_EQ(0, life->ends)
		TH_LOG("id %#llx of key %llu has ended twice", record->id, record->key);
	life->ends++;
	life->ended_by = record->end;
}

/* Note that the deadline in the record has come: it must not come again. */
static void use_token(struct __test_metadata *_metadata, const struct record *record)
{
	bool looks = record->what == ROW || record->what == QUERY_KEY;
	struct token *token;

	if (record->result < 0 || record->what == CANCEL_KEY || record->what == CANCEL_ID ||
	    (record->what == ARM && record->result == TWHEEL_CREATED))
		return;
	if (record->was_ns == TW_POISON64) {
		ASSERT_EQ(REARM_KEY, record->what);
		books[record->key].untold++;
		return;
	}
	token = find_token(record->was_ns);
	ASSERT_NE(NULL, token)
		TH_LOG("call %d of key %llu: nobody has set the deadline %llu", record->what,
		       record->key, record->was_ns);
	ASSERT_EQ(record->key, token->key);
	ASSERT_LT(token->begin, record->end);
	if (token->id && record->id)
		ASSERT_EQ(token->id, record->id);
	if (looks)
		return;
	ASSERT_FALSE(token->used)
		TH_LOG("call %d of key %llu: the deadline %llu was told before", record->what,
		       record->key, record->was_ns);
	token->used = true;
	books[record->key].used++;
	if (record->begin < token->end && record->what != EVENT)
		saw(REPLACED_AT_ONCE);
	/* G1 never early: if a timeout is unread, it has expired. */
	if ((record->what == EVENT && !record->result) || record->result == TWHEEL_WAS_UNREAD)
		ASSERT_LE(record->was_ns, record->now_ns);
}

/* Return how many timeouts of the key had been created when the call began. */
static int creations_before(__u64 key, __u64 begin)
{
	int low = 0, high = nr_lives_of_key[key];

	while (low < high) {
		int middle = (low + high) / 2;

		if (life_of_key[key][middle].created_end < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return whether a timeout may have had the key at some moment of the call. */
static bool may_have_been_there(const struct record *record)
{
	int i, nr = nr_lives_of_key[record->key];
	struct life *life = life_of_key[record->key];

	for (i = 0; i < nr; i++)
		if (life[i].created_begin < record->end && life[i].ended_by > record->begin)
			return true;
	return false;
}

/* Lives are sorted by their keys and creations here. */
static void presence(struct __test_metadata *_metadata, const struct record *record)
{
	bool by_key = record->what != CANCEL_ID && record->what != EVENT && record->what != ROW;
	int i;

	if (!by_key)
		return;
	if (record->result != -ENOENT) {
		if (record->result == TWHEEL_CREATED && record->what == ARM)
			return;
		if (record->result == -ESHUTDOWN)
			return;
		ASSERT_TRUE(may_have_been_there(record))
			TH_LOG("call %d of key %llu found something", record->what, record->key);
		return;
	}
	for (i = creations_before(record->key, record->begin) - 1; i >= 0; i--) {
		const struct life *life = &life_of_key[record->key][i];

		if (!has_lived_for_certain(life))
			continue;
		/* If there were others before, they had ended when it began. */
		ASSERT_LT(life->alive_until, record->end)
			TH_LOG("call %d of key %llu found nothing", record->what, record->key);
		break;
	}
}

/* No timeout was there for certain while another one was. */
static void expect_one_at_a_time(struct __test_metadata *_metadata, struct life *life, int nr)
{
	const struct life *last = NULL;
	int i;

	for (i = 0; i < nr; i++) {
		if (!has_lived_for_certain(&life[i]))
			continue;
		if (last) {
			ASSERT_LT(last->alive_until, life[i].created_end)
				TH_LOG("key %llu lived as %#llx and as %#llx at once", last->key,
				       last->id, life[i].id);
		}
		last = &life[i];
	}
}

/* If one was there that was created later, it had ended. */
static void bound_ends(struct life *life, int nr)
{
	int i, j;

	for (i = 0; i < nr; i++) {
		for (j = i + 1; j < nr; j++)
			if (life[j].created_begin > life[i].created_end)
				break;
		if (j == nr)
			continue;
		if (life[j].created_begin < life[i].ended_by && life[i].ended_by != FOREVER)
			saw(CREATED_AT_THE_END);
		if (life[j].created_end < life[i].ended_by)
			life[i].ended_by = life[j].created_end;
	}
}

static void expect_lives_in_turn(struct __test_metadata *_metadata)
{
	int i;

	qsort(lives, nr_lives, sizeof(*lives), compare_creations);
	memset(nr_lives_of_key, 0, sizeof(nr_lives_of_key));
	for (i = 0; i < nr_lives; i++)
		if (!nr_lives_of_key[lives[i].key]++)
			life_of_key[lives[i].key] = &lives[i];
	for (i = 0; i < KEYS; i++) {
		expect_one_at_a_time(_metadata, life_of_key[i], nr_lives_of_key[i]);
		bound_ends(life_of_key[i], nr_lives_of_key[i]);
	}
}

static void expect_logs_to_agree(struct __test_metadata *_metadata)
{
	int i;

	nr_lives = 0;
	nr_tokens = 0;
	memset(books, 0, sizeof(books));
	look_at_each_record(_metadata, collect);
	qsort(lives, nr_lives, sizeof(*lives), compare_lives);
	qsort(tokens, nr_tokens, sizeof(*tokens), compare_tokens);
	for (i = 0; i + 1 < nr_lives; i++)
		ASSERT_NE(lives[i].id, lives[i + 1].id);
	for (i = 0; i + 1 < nr_tokens; i++)
		ASSERT_NE(tokens[i].deadline_ns, tokens[i + 1].deadline_ns);
	look_at_each_record(_metadata, sighted);
	look_at_each_record(_metadata, use_token);
	expect_lives_in_turn(_metadata);
	look_at_each_record(_metadata, presence);
}

/* ---- rounds -------------------------------------------------------------- */

/*
 * None begins before all are there: otherwise, on a slow kernel, those that run would delay the
 * start of the others for longer than a round lasts.
 */
static void *play(void *arg)
{
	struct log *log = arg;

	pthread_barrier_wait(&race.start);
	return log->role(log);
}

/* Start a thread on one processor after the other, if there are several. */
static pthread_t spawn(struct __test_metadata *_metadata, void *(*role)(void *), int nr)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(nr % cpus, &set);
	race.log[nr].role = role;
	ASSERT_EQ(0, pthread_create(&thread, NULL, play, &race.log[nr]));
	pthread_setaffinity_np(thread, sizeof(set), &set);
	return thread;
}

static void prepare(struct __test_metadata *_metadata, const struct plan *plan, int round)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = 100 * TW_US,
		.max_pending = 16 * KEYS,
		.flags = TWHEEL_SETUP_KEYED,
	};
	int i;

	race.plan = plan;
	race.stop = false;
	race.refused = false;
	race.sequence = 0;
	for (i = 0; i < KEYS; i++)
		race.last_id[i] = 0;
	for (i = 0; i < THREADS; i++) {
		race.log[i].thread = i;
		race.log[i].nr = 0;
		race.log[i].seed = 7919 * (THREADS * round + i + 1);
	}
	race.fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
	ASSERT_LE(0, race.fd);
}

static void run_roles(struct __test_metadata *_metadata, const struct tw_race *rounds)
{
	void *(* const others[])(void *) = { reader, reader, canceller, rearmer, observer };
	pthread_t threads[THREADS];
	int i, nr = 0;

	ASSERT_EQ(0, pthread_barrier_init(&race.start, NULL,
					  ARRAY_SIZE(others) + race.plan->upserters + 1));
	for (i = 0; i < ARRAY_SIZE(others); i++, nr++)
		threads[nr] = spawn(_metadata, others[i], nr);
	for (i = 0; i < race.plan->upserters; i++, nr++)
		threads[nr] = spawn(_metadata, upserter, nr);
	pthread_barrier_wait(&race.start);
	if (race.plan->drain_amid) {
		tw_sleep(rounds->rounds * 777 % 20000 * TW_US);
		ASSERT_EQ(0, tw_drain(race.fd));
		tw_sleep(2 * TW_MS);
	} else {
		tw_sleep(ROUND);
	}
	race.stop = true;
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&race.start);
	ASSERT_EQ(0, race.bad)
		TH_LOG("a thread found line %d not true", race.bad);
}

/* LIST and QUERY must show the same timeouts, one of a key at most. */
static int expect_rest(struct __test_metadata *_metadata)
{
	struct twheel_status rows[2 * KEYS], row;
	bool seen[KEYS] = {};
	int i, nr, live = 0;

	nr = tw_list_all(race.fd, rows, ARRAY_SIZE(rows), 7);
	ASSERT_LE(0, nr);
	for (i = 0; i < nr; i++) {
		__u64 key = rows[i].user_data;

		ASSERT_TRUE(key < race.plan->keys && !seen[key])
			TH_LOG("key %llu", key);
		seen[key] = true;
	}
	for (i = 0; i < race.plan->keys; i++) {
		int ret = key_query(race.fd, i, &row);

		ASSERT_EQ(seen[i] ? 0 : -ENOENT, ret)
			TH_LOG("key %d", i);
		live += !ret;
	}
	for (i = 0; i < nr; i++)
		ASSERT_EQ(rows[i].id, key_id(race.fd, rows[i].user_data));
	return live;
}

static void expect_books(struct __test_metadata *_metadata)
{
	__u64 created = 0, set = 0, ended = 0;
	struct twheel_info info;
	int i;

	for (i = 0; i < race.plan->keys; i++) {
		const struct books *its = &books[i];

		ASSERT_EQ(its->created, its->ended)
			TH_LOG("key %d", i);
		/* If a deadline was not returned to anybody, its timeout was taken back. */
		ASSERT_EQ(its->set, its->used + its->untold + its->cancelled)
			TH_LOG("key %d: of %llu deadlines %llu were told, %llu cancelled", i,
			       its->set, its->used, its->cancelled);
		created += its->created;
		set += its->set;
		ended += its->ended;
	}
	ASSERT_EQ(0, tw_info(race.fd, &info));
	ASSERT_EQ(created, info.armed);
	ASSERT_EQ(set - created, info.rearmed);
	ASSERT_EQ(ended, info.completed + info.cancelled + info.revoked + info.drained);
	ASSERT_EQ(0, info.live);
	ASSERT_EQ(0, info.pending);
	ASSERT_EQ(0, info.unread);
}

static void settle(struct __test_metadata *_metadata)
{
	/* The first one is a reader's, and all readers have ended. */
	struct log *log = &race.log[0];
	int nr, live = expect_rest(_metadata);

	ASSERT_EQ(0, tw_drain(race.fd));
	while ((nr = read_some(log, BATCH)) > 0)
		live -= nr;
	ASSERT_EQ(0, nr);
	ASSERT_EQ(0, live);
	ASSERT_EQ(0, race.bad);
	expect_logs_to_agree(_metadata);
	expect_books(_metadata);
}

static void run(struct __test_metadata *_metadata, const struct plan *plan)
{
	struct tw_race rounds = TW_RACE(outcomes, tw_race_seconds());
	int i;

	lives = calloc(THREADS * LOG, sizeof(*lives));
	tokens = calloc(THREADS * LOG, sizeof(*tokens));
	ASSERT_TRUE(lives && tokens);
	for (i = 0; i < NR_OUTCOMES && plan->must_see[i] != NR_OUTCOMES; i++)
		outcomes[plan->must_see[i]].least = TW_A_FEW;
	while (tw_race_goes_on(&rounds)) {
		prepare(_metadata, plan, rounds.rounds);
		run_roles(_metadata, &rounds);
		settle(_metadata);
		close(race.fd);
	}
	EXPECT_RACE(&rounds);
}

/* ---- the races ----------------------------------------------------------- */

#define RACE_OF(sentence, ...)						\
TEST_F_TIMEOUT(race_keyed, sentence, 100)				\
{									\
	static const struct plan plan = { __VA_ARGS__ };		\
	run(_metadata, &plan);						\
}

FIXTURE(race_keyed) {
};

FIXTURE_SETUP(race_keyed)
{
}

FIXTURE_TEARDOWN(race_keyed)
{
}

RACE_OF(upserts_of_64_keys_by_eight_threads_against_all,
	.upserters = 8, .keys = KEYS,
	.must_see = { CREATED, WAS_PENDING, WAS_UNREAD, EXISTED, ABSENT, OUT_OF_BOUNDS,
		      REARMED_BY_KEY, REARM_FOUND_NOTHING, CANCELLED_BY_KEY, REVOKED_BY_KEY,
		      CANCELLED_BY_ID, ID_WAS_STALE, CANCEL_FOUND_NOTHING, DELIVERED, QUERIED,
		      LISTED, NR_OUTCOMES })

/* Each call meets another one. */
RACE_OF(upserts_of_two_keys_by_eight_threads_against_all,
	.upserters = 8, .keys = 2,
	.must_see = { CREATED, WAS_PENDING, WAS_UNREAD, REPLACED_AT_ONCE, CREATED_AT_THE_END,
		      CANCELLED_BY_KEY, CANCELLED_BY_ID, ID_WAS_STALE, CANCEL_FOUND_NOTHING,
		      NR_OUTCOMES })

RACE_OF(upserts_against_drain,
	.upserters = 8, .keys = KEYS, .drain_amid = true,
	.must_see = { CREATED, WAS_PENDING, REFUSED, DRAINED, DELIVERED, NR_OUTCOMES })

TEST_HARNESS_MAIN
