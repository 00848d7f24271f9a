// SPDX-License-Identifier: GPL-2.0
/*
 * The engine's state transitions, one by one
 *
 * The engine is compiled into this file as it is, see engine_parts.h.  What it asks of others is answered here: the device is a stub, so
 * nothing is registered, and a wheel is served by a worker that has no thread.
 * What is queued for it stays queued, and a pass takes place when, and only
 * when, the test makes one.  The clock is the virtual one.
 *
 * Each case has a wheel of its own, and when it ends all that must agree in a
 * wheel at rest is counted: see audit().
 */
/* Before its headers, as it will say itself. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

/*
 * Its birth and death are called by the suite, which may be run again when the
 * module has long been loaded.
 */
#undef __init
#define __init
#undef __exit
#define __exit
#undef module_init
#define module_init(...)		static_assert(true)
#undef module_exit
#define module_exit(...)		static_assert(true)
#undef MODULE_DESCRIPTION
#define MODULE_DESCRIPTION(...)	static_assert(true)
#undef MODULE_LICENSE
#define MODULE_LICENSE(...)	static_assert(true)
#undef MODULE_VERSION
#define MODULE_VERSION(...)	static_assert(true)

/* Memory for pages, while there is any. */
static bool no_memory;

static unsigned long page_alloc(gfp_t flags)
{
	return no_memory ? 0 : __get_free_page(flags | __GFP_ZERO);
}

#undef get_zeroed_page
#define get_zeroed_page	page_alloc

/* Entries that were put into a wheel, for whatever reason. */
static u64 nr_inserted;

#include "twheel_wheel.h"
#define twheel_wheel_insert(w, entry) \
	(nr_inserted++, twheel_wheel_insert(w, entry))

#include "engine_parts.h"

/* What the engine does within RCU; here nothing is freed in between. */

static struct twheel_page *look_at_page(struct twheel *tw, u32 nr)
{
	struct twheel_page *page;

	rcu_read_lock();
	page = page_at(&tw->arena, nr);
	rcu_read_unlock();
	return page;
}

static void *look_at_words(struct twheel *tw, u32 nr)
{
	void *words;

	rcu_read_lock();
	words = pages_at(&tw->words.pages, nr);
	rcu_read_unlock();
	return words;
}

static u64 *word_of(struct twheel *tw, u64 id)
{
	u64 *word;

	rcu_read_lock();
	word = word_at(&tw->words, (u32)id);
	rcu_read_unlock();
	return word;
}

static struct twheel_timeout *look_at(struct twheel *tw, u32 index)
{
	struct twheel_timeout *t;

	rcu_read_lock();
	t = timeout_at(&tw->arena, index);
	rcu_read_unlock();
	return t;
}

static struct twheel_timeout *look_by_id(struct twheel *tw, u64 id, u64 *state)
{
	struct twheel_timeout *t;

	rcu_read_lock();
	t = timeout_by_id(&tw->arena, id, state);
	rcu_read_unlock();
	return t;
}

/* What registering the device is to say. */
static int chardev_errno;
static int chardev_registered;

int twheel_chardev_register(void)
{
	if (!chardev_errno)
		chardev_registered++;
	return chardev_errno;
}

void twheel_chardev_unregister(void)
{
	chardev_registered--;
}

#define TICK_NS		1000000ULL
#define START_NS	(1000 * TICK_NS)
/* A deadline that is on no edge. */
#define DELAY_NS	(5 * TICK_NS + 1)
#define PERIOD_NS	(10 * TICK_NS)
#define MAX_PENDING	20000

/* The worker without a thread, and the queue for it. */
static struct kthread_worker nobody;
static struct twheel_queue nobodys;

/* Every combination of flags: STATE_FLAGS is five bits side by side. */
#define FLAGS_SHIFT	3
#define NR_FLAGS	32

static_assert(STATE_FLAGS == (NR_FLAGS - 1) << FLAGS_SHIFT);

/* Making things happen */

static u64 shape_of(u64 state)
{
	return state & (STATE_PHASE | STATE_FLAGS);
}

/* Whether a turn was asked for; what was asked for is taken. */
static bool work_take(struct twheel *tw)
{
	bool queued;

	spin_lock_irq(&nobodys.lock);
	queued = !list_empty(&tw->wake.turn.node);
	list_del_init(&tw->wake.turn.node);
	raw_spin_lock(&nobody.lock);
	list_del_init(&nobodys.work.node);
	raw_spin_unlock(&nobody.lock);
	spin_unlock_irq(&nobodys.lock);
	return queued;
}

/* A whole pass; returns how many turns it took. */
static unsigned int pass(struct twheel *tw)
{
	unsigned int turns = 0;

	do {
		work_take(tw);
		turns++;
	} while (twheel_pass_turn(&tw->wake.turn, U64_MAX));
	return turns;
}

/* Only what a pass begins with: what is in the inbox enters the wheel. */
static void enter(struct twheel *tw)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };

	pass_begin(tw);
	inbox_drain(tw, &budget);
	spin_lock(&tw->wake.lock);
	tw->wake.passing = false;
	spin_unlock(&tw->wake.lock);
	tw->pass.begun = false;
}

/* Only what comes next: what is due at @now_ns expires. */
static void expire_at(struct twheel *tw, u64 now_ns)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };

	tw->clock.virtual_now_ns = max(tw->clock.virtual_now_ns, now_ns);
	tw->pass.now_ns = tw->clock.virtual_now_ns;
	expire(tw, &budget);
}

/* What DRAIN does, but for waiting. */
static void drain(struct twheel *tw)
{
	WRITE_ONCE(tw->control.draining, true);
	tw->wake.drain_wanted = true;
	pass(tw);
}

static struct twheel_arm arm_of(u64 state, u32 repeats)
{
	return (struct twheel_arm) {
		.expires_ns	= state & STATE_OVERDUE ? 0 : DELAY_NS,
		.interval_ns	= state & STATE_PERIODIC ? PERIOD_NS : 0,
		.user_data	= 0x1122334455667788ULL,
		.flags		= state & STATE_FIXED_DELAY ?
				  TWHEEL_ARM_FIXED_DELAY : 0,
		.repeats	= state & STATE_LIMITED ? repeats : 0,
	};
}

static struct twheel_timeout *arm(struct kunit *test, struct twheel_arm *arm)
{
	struct twheel *tw = test->priv;
	struct twheel_arming arming;

	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, arm, 1, &arming), 0);
	KUNIT_ASSERT_EQ(test, arm->result, 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 1), 0);
	return look_at(tw, (u32)arm->id);
}

static struct twheel_timeout *arm_like(struct kunit *test, u64 state)
{
	struct twheel_arm how = arm_of(state, 2);

	return arm(test, &how);
}

/* Many at a time; @ids as long, if they are wanted. */
static void arm_many(struct kunit *test, unsigned int nr, u64 *ids)
{
	struct twheel_arm how[TWHEEL_BATCH];
	struct twheel *tw = test->priv;
	struct twheel_arming arming;
	unsigned int i, n;

	for (; nr; nr -= n) {
		n = min(nr, TWHEEL_BATCH);
		for (i = 0; i < n; i++)
			how[i] = arm_of(0, 0);
		KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, n, &arming), 0);
		KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, n), 0);
		for (i = 0; ids && i < n; i++)
			*ids++ = how[i].id;
	}
}

static u64 id_of(const struct twheel_timeout *t)
{
	return timeout_id(t, timeout_state(t));
}

/* Returns the verdict, -EBUSY when commit found it changed. */
static int cancel(struct twheel *tw, u64 id)
{
	struct twheel_cancel cancel = { .id = id };
	unsigned int nr_ok = 0;
	struct twheel_look look;

	twheel_cancel_look(tw, &cancel, &look, 1);
	if (cancel.result > 0 &&
	    twheel_cancel_commit(tw, &cancel, &look, 1, &nr_ok) != 1)
		return -EBUSY;
	return cancel.result;
}

static int rearm(struct twheel *tw, u64 id, struct twheel_arm *arm)
{
	struct twheel_rearming rearming;
	unsigned int nr_ok = 0;
	int err;

	arm->id = id;
	arm->result = 0;
	err = twheel_rearm_prepare(tw, arm, &rearming, 1);
	if (err)
		return err;
	err = twheel_rearm_commit(tw, arm, &rearming, 1, &nr_ok);
	return err == 1 ? arm->result : -EBUSY;
}

/* Returns how many were read, which is one at the most. */
static int read_one(struct twheel *tw, struct twheel_event *event)
{
	struct twheel_event ignored;
	struct twheel_look look;
	int nr = twheel_events_look(tw, event ?: &ignored, &look, 1);

	return nr ? twheel_events_commit(tw, event ?: &ignored, &look, nr) : 0;
}

/* Counting */

enum tally {
	LIVE, PENDING, UNREAD, INBOX, ROOM, PLACES, RETIRED, ACCEPTED, CANCELLED,
	REVOKED, COMPLETED, DRAINED, DELIVERED, EXPIRATIONS, REARMED, NR_TALLIES,
};

static const char * const tally_name[] = {
	"live", "pending", "unread", "inbox", "room", "free places", "retired",
	"armed", "cancelled", "revoked", "completed", "drained", "delivered",
	"expirations", "rearmed",
};

static_assert(ARRAY_SIZE(tally_name) == NR_TALLIES);

static int llist_length(const struct llist_node *node)
{
	int nr = 0;

	for (; node; node = node->next)
		nr++;
	return nr;
}

static void tally_take(struct twheel *tw, s64 tally[NR_TALLIES])
{
	struct twheel_info info;

	twheel_get_info(tw, &info);
	tally[LIVE] = info.live;
	tally[PENDING] = info.pending;
	tally[UNREAD] = info.unread;
	tally[INBOX] = atomic_read(&tw->inbox.len);
	tally[ROOM] = atomic_long_read(&tw->room.used);
	tally[PLACES] = llist_length(tw->arena.free) + llist_length(tw->arena.freed.first);
	tally[RETIRED] = atomic_read(&tw->arena.nr_retired);
	tally[ACCEPTED] = info.armed;
	tally[CANCELLED] = info.cancelled;
	tally[REVOKED] = info.revoked;
	tally[COMPLETED] = info.completed;
	tally[DRAINED] = info.drained;
	tally[DELIVERED] = info.delivered;
	tally[EXPIRATIONS] = info.expirations;
	tally[REARMED] = info.rearmed;
}

/* What has changed since @before must be @delta, nothing else. */
static void expect_delta(struct kunit *test, const s64 before[NR_TALLIES],
			 const s8 delta[NR_TALLIES])
{
	s64 after[NR_TALLIES];
	int i;

	tally_take(test->priv, after);
	for (i = 0; i < NR_TALLIES; i++)
		KUNIT_EXPECT_EQ_MSG(test, after[i] - before[i], (s64)delta[i],
				    "%s", tally_name[i]);
}

/**
 * struct census - what all places of a wheel are doing
 * @phase: how many are in each phase
 * @live: pending or to be read
 * @keeping: not in the wheel, but with room there
 * @retired: free, their generations used up
 */
struct census {
	int phase[STATE_PHASE + 1];
	int live;
	int keeping;
	int retired;
};

static void census_count(struct census *census, u64 state)
{
	enum twheel_phase phase = state_phase(state);

	census->phase[phase]++;
	census->live += phase == PHASE_QUEUED || phase == PHASE_ARMED ||
			phase == PHASE_UNREAD;
	census->keeping += phase == PHASE_UNREAD && state & STATE_PERIODIC &&
			   !(state & STATE_DRAINED);
	census->retired += phase == PHASE_FREE && !state_gen(state);
}

static struct census census_take(struct twheel *tw)
{
	struct census census = {};
	struct twheel_page *page;
	u32 nr, i;

	for (nr = 0; nr < tw->arena.places.nr; nr++) {
		page = look_at_page(tw, nr);
		for (i = 0; page && i < PLACES_PER_PAGE; i++)
			census_count(&census, timeout_state(&page->timeout[i]));
	}
	return census;
}

/* Both ways along the ready list; returns its length. */
static int audit_ready(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 link, prev = 0;
	int nr = 0;

	link = tw->events.first ? timeout_index(tw->events.first) + 1 : 0;
	for (; link; nr++) {
		struct twheel_timeout *t = look_at(tw, link - 1);

		KUNIT_ASSERT_NOT_NULL(test, t);
		KUNIT_ASSERT_TRUE(test, state_is_unread(timeout_state(t)));
		KUNIT_ASSERT_EQ(test, t->prev, prev);
		KUNIT_ASSERT_LT(test, nr, 100000);
		prev = link;
		link = t->next;
	}
	KUNIT_EXPECT_EQ(test, tw->events.last_link, prev);
	KUNIT_EXPECT_PTR_EQ(test, tw->events.last,
			    prev ? look_at(tw, prev - 1) : NULL);
	return nr;
}

/* All that must agree when nobody is in the middle of anything. */
static void audit(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct census census = census_take(tw);
	s64 tally[NR_TALLIES];
	int nr_ready = audit_ready(test);

	tally_take(tw, tally);
	KUNIT_EXPECT_EQ(test, tally[UNREAD], (s64)nr_ready);
	KUNIT_EXPECT_EQ(test, tally[UNREAD], (s64)census.phase[PHASE_UNREAD]);
	KUNIT_EXPECT_EQ(test, tally[LIVE], (s64)census.live);
	/* G3 */
	KUNIT_EXPECT_EQ(test, tally[ACCEPTED],
			tally[LIVE] + tally[COMPLETED] + tally[CANCELLED] +
			tally[REVOKED] + tally[DRAINED]);
	KUNIT_EXPECT_EQ(test, tally[INBOX],
			(s64)llist_length(tw->inbox.list.first));
	KUNIT_EXPECT_EQ(test, tally[INBOX], (s64)census.phase[PHASE_QUEUED] +
			census.phase[PHASE_DEAD]);
	/* G4: an entry in the wheel, on its way there, or promised. */
	KUNIT_EXPECT_EQ(test, tally[ROOM], (s64)tw->wheel.nr_entries +
			tally[INBOX] + census.keeping);
	KUNIT_EXPECT_LE(test, tally[ROOM], (s64)tw->room.provided);
	KUNIT_EXPECT_EQ(test, tally[RETIRED], (s64)census.retired);
	KUNIT_EXPECT_EQ(test, tally[PLACES], (s64)census.phase[PHASE_FREE] -
			census.retired);
}

static const struct twheel_setup usual_setup = {
	.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TICK_NS, .slots = 64,
	.max_pending = MAX_PENDING,
};

static struct twheel *wheel_make(struct kunit *test,
				 const struct twheel_setup *setup)
{
	struct twheel *tw = twheel_create();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	test->priv = tw;
	KUNIT_ASSERT_EQ(test, twheel_configure(tw, setup), 0);
	tw->wake.turn.queue = &nobodys;
	return tw;
}

static int engine_case_init(struct kunit *test)
{
	struct twheel *tw = wheel_make(test, &usual_setup);

	tw->clock.virtual_now_ns = START_NS;
	pass(tw);
	work_take(tw);
	return 0;
}

static void engine_case_exit(struct kunit *test)
{
	struct twheel *tw = test->priv;

	if (!tw)
		return;
	audit(test);
	/* Nobody would take a turn, and be done with it. */
	work_take(tw);
	twheel_destroy(tw);
}

/* Another wheel in place of that which every case is given. */
static struct twheel *wheel_remake(struct kunit *test,
				   const struct twheel_setup *setup)
{
	engine_case_exit(test);
	test->priv = NULL;
	return wheel_make(test, setup);
}

/* One that differs in a single thing from what is usual. */
#define wheel_with(test, what, value)					\
({									\
	struct twheel_setup __setup = usual_setup;			\
									\
	__setup.what = value;						\
	wheel_remake(test, &__setup);					\
})

/* Transitions: from each state there is, each thing that can be done */

/**
 * struct outcome - what comes of it
 * @phase: the phase afterwards
 * @keeps: flags that stay as they were
 * @adds: flags that are set
 * @same: state and counts stay as they are
 * @placed: the sequence number counts up
 * @said: what the call says
 * @delta: what changes in the counts
 */
struct outcome {
	enum twheel_phase phase;
	u64 keeps;
	u64 adds;
	bool same;
	bool placed;
	int said;
	s8 delta[NR_TALLIES];
};

enum outcome_name {
	SAME, GONE, SHUT,
	/* cancelled */
	DIES, ENDS, REVOKES, REVOKES_ROOM, REVOKES_BOTH,
	/* re-armed */
	RENEWS, STAYS, LEAVES, LEAVES_UNREAD, LEAVES_ROOM, LEAVES_BOTH,
	/* read */
	REQUEUES, GOES_ON, COMPLETES, COMPLETES_ROOM, OUT,
	/* drained */
	DRAINS, DRAINS_ROOM, DRAINS_BOTH,
	/* expired */
	EXPIRES, WAITS, REPEATS, STALE,
	/* came from the inbox */
	ENTERS, BURIED,
};

/* "BOTH": of a timeout that has an unread event and is pending at the same time. */
static const struct outcome outcomes[] = {
	[SAME]		= { .same = true },
	[GONE]		= { .same = true, .said = -ENOENT },
	[SHUT]		= { .same = true, .said = -ESHUTDOWN },

	[DIES]		= { PHASE_DEAD, .said = TWHEEL_WAS_PENDING, .delta = {
			    [LIVE] = -1, [PENDING] = -1, [CANCELLED] = 1 } },
	[ENDS]		= { PHASE_FREE, .said = TWHEEL_WAS_PENDING, .delta = {
			    [LIVE] = -1, [PENDING] = -1, [CANCELLED] = 1,
			    [PLACES] = 1 } },
	[REVOKES]	= { PHASE_FREE, .said = TWHEEL_WAS_UNREAD, .delta = {
			    [LIVE] = -1, [REVOKED] = 1, [PLACES] = 1,
			    [UNREAD] = -1 } },
	[REVOKES_ROOM]	= { PHASE_FREE, .said = TWHEEL_WAS_UNREAD, .delta = {
			    [LIVE] = -1, [REVOKED] = 1, [PLACES] = 1,
			    [UNREAD] = -1, [ROOM] = -1 } },
	[REVOKES_BOTH]	= { PHASE_FREE, .said = TWHEEL_WAS_UNREAD, .delta = {
			    [LIVE] = -1, [REVOKED] = 1, [PLACES] = 1,
			    [UNREAD] = -1, [PENDING] = -1, [ROOM] = -1 } },

	[RENEWS]	= { PHASE_QUEUED, .said = TWHEEL_WAS_PENDING, .delta = {
			    [REARMED] = 1 } },
	[STAYS]		= { PHASE_ARMED, .said = TWHEEL_WAS_PENDING, .delta = {
			    [REARMED] = 1 } },
	[LEAVES]	= { PHASE_QUEUED, .said = TWHEEL_WAS_PENDING, .delta = {
			    [REARMED] = 1, [INBOX] = 1, [ROOM] = 1 } },
	[LEAVES_UNREAD]	= { PHASE_QUEUED, .said = TWHEEL_WAS_UNREAD, .delta = {
			    [REARMED] = 1, [INBOX] = 1, [ROOM] = 1,
			    [UNREAD] = -1, [PENDING] = 1 } },
	[LEAVES_ROOM]	= { PHASE_QUEUED, .said = TWHEEL_WAS_UNREAD, .delta = {
			    [REARMED] = 1, [INBOX] = 1, [UNREAD] = -1,
			    [PENDING] = 1 } },
	[LEAVES_BOTH]	= { PHASE_QUEUED, .said = TWHEEL_WAS_UNREAD, .delta = {
			    [REARMED] = 1, [INBOX] = 1, [UNREAD] = -1 } },

	[REQUEUES]	= { PHASE_QUEUED, .keeps = STATE_LIFE, .said = 1, .delta = {
			    [UNREAD] = -1, [PENDING] = 1, [DELIVERED] = 1,
			    [INBOX] = 1 } },
	[GOES_ON]	= { PHASE_QUEUED, .keeps = STATE_LIFE, .said = 1, .delta = {
			    [UNREAD] = -1, [DELIVERED] = 1, [INBOX] = 1 } },
	[COMPLETES]	= { PHASE_FREE, .said = 1, .delta = {
			    [UNREAD] = -1, [DELIVERED] = 1,
			    [LIVE] = -1, [COMPLETED] = 1, [PLACES] = 1 } },
	[COMPLETES_ROOM] = { PHASE_FREE, .said = 1, .delta = {
			    [UNREAD] = -1, [DELIVERED] = 1,
			    [LIVE] = -1, [COMPLETED] = 1, [PLACES] = 1,
			    [ROOM] = -1 } },
	[OUT]		= { PHASE_FREE, .said = 1, .delta = {
			    [UNREAD] = -1, [DELIVERED] = 1,
			    [LIVE] = -1, [DRAINED] = 1, [PLACES] = 1 } },

	[DRAINS]	= { PHASE_UNREAD, .keeps = STATE_LIFE,
			    .adds = STATE_DRAINED, .delta = {
			    [UNREAD] = 1, [PENDING] = -1 } },
	[DRAINS_ROOM]	= { PHASE_UNREAD, .keeps = STATE_LIFE,
			    .adds = STATE_DRAINED, .delta = {
			    [ROOM] = -1 } },
	[DRAINS_BOTH]	= { PHASE_UNREAD, .keeps = STATE_LIFE,
			    .adds = STATE_DRAINED, .delta = {
			    [ROOM] = -1, [PENDING] = -1 } },

	[EXPIRES]	= { PHASE_UNREAD, .delta = {
			    [UNREAD] = 1, [PENDING] = -1, [EXPIRATIONS] = 1,
			    [ROOM] = -1 } },
	[WAITS]		= { PHASE_UNREAD, .keeps = STATE_LIFE, .delta = {
			    [UNREAD] = 1, [PENDING] = -1, [EXPIRATIONS] = 1 } },
	[REPEATS]	= { PHASE_UNREAD, .keeps = STATE_LIFE, .delta = {
			    [UNREAD] = 1, [EXPIRATIONS] = 1 } },

	[STALE]		= { .same = true, .delta = { [ROOM] = -1 } },

	[ENTERS]	= { PHASE_ARMED, .keeps = STATE_LIFE | STATE_OVERDUE,
			    .placed = true, .delta = { [INBOX] = -1 } },
	[BURIED]	= { PHASE_FREE, .delta = {
			    [INBOX] = -1, [ROOM] = -1, [PLACES] = 1 } },
};

/**
 * struct start - a state to start from, and what comes of it
 * @name: what it is called
 * @state: phase and flags
 * @repeats: the limit it was armed with
 * @fired: of those that are drained: whether it had expired before
 * @to: what comes of cancelling, re-arming to a later time and to now, reading,
 *	draining, expiring at its deadline, and of emptying the inbox
 */
struct start {
	const char *name;
	u64 state;
	u32 repeats;
	bool fired;
	struct {
		enum outcome_name cancel, later, past, read, drain, expire,
				  enter;
	} to;
};

#define Q	PHASE_QUEUED
#define A	PHASE_ARMED
#define U	PHASE_UNREAD
#define X	(U | STATE_DRAINED)
#define OV	STATE_OVERDUE
#define PE	STATE_PERIODIC
#define LI	(STATE_PERIODIC | STATE_LIMITED)
#define FD	(STATE_PERIODIC | STATE_FIXED_DELAY)
#define FL	(FD | STATE_LIMITED)

#define AFTER_QUEUED	{ DIES, RENEWS, RENEWS, SAME, SAME, SAME, ENTERS }
#define AFTER_ARMED(x)	{ ENDS, STAYS, LEAVES, SAME, DRAINS, x, SAME }
#define AFTER_EXPIRED	{ REVOKES, LEAVES_UNREAD, LEAVES_UNREAD, COMPLETES, \
			  SAME, SAME, SAME }
#define AFTER_BOTH	{ REVOKES_BOTH, LEAVES_BOTH, LEAVES_BOTH, GOES_ON, \
			  DRAINS_BOTH, SAME, SAME }
#define AFTER_WAITING	{ REVOKES_ROOM, LEAVES_ROOM, LEAVES_ROOM, REQUEUES, \
			  DRAINS_ROOM, SAME, SAME }
#define AFTER_LAST	{ REVOKES_ROOM, LEAVES_ROOM, LEAVES_ROOM, \
			  COMPLETES_ROOM, SAME, SAME, SAME }
/* Its entry may still come up. */
#define AFTER_DRAINED(x) { REVOKES, SHUT, SHUT, OUT, SAME, x, SAME }
#define AFTER_DEAD	{ GONE, GONE, GONE, SAME, SAME, SAME, BURIED }
#define AFTER_FREE	{ GONE, GONE, GONE, SAME, SAME, STALE, SAME }

static const struct start starts[] = {
	{ "queued one-shot",		Q,		0, 0, AFTER_QUEUED },
	{ "queued overdue one-shot",	Q | OV,		0, 0, AFTER_QUEUED },
	{ "queued periodic",		Q | PE,		0, 0, AFTER_QUEUED },
	{ "queued overdue periodic",	Q | PE | OV,	0, 0, AFTER_QUEUED },
	{ "queued limited",		Q | LI,		2, 0, AFTER_QUEUED },
	{ "queued fixed delay",		Q | FD,		0, 0, AFTER_QUEUED },
	{ "queued limited fixed delay",	Q | FL,		2, 0, AFTER_QUEUED },
	{ "armed one-shot",		A,		0, 0, AFTER_ARMED(EXPIRES) },
	{ "armed overdue one-shot",	A | OV,		0, 0, AFTER_ARMED(EXPIRES) },
	{ "armed periodic",		A | PE,		0, 0, AFTER_ARMED(REPEATS) },
	{ "armed overdue periodic",	A | PE | OV,	0, 0, AFTER_ARMED(REPEATS) },
	{ "armed limited",		A | LI,		2, 0, AFTER_ARMED(REPEATS) },
	{ "armed limited to one",	A | LI,		1, 0, AFTER_ARMED(WAITS) },
	{ "armed fixed delay",		A | FD,		0, 0, AFTER_ARMED(WAITS) },
	{ "armed overdue fixed delay",	A | FD | OV,	0, 0, AFTER_ARMED(WAITS) },
	{ "armed limited fixed delay",	A | FL,		2, 0, AFTER_ARMED(WAITS) },
	{ "unread one-shot",		U,		0, 0, AFTER_EXPIRED },
	{ "unread periodic",		U | PE,		0, 0, AFTER_BOTH },
	{ "unread limited",		U | LI,		3, 0, AFTER_BOTH },
	{ "unread limited, none left",	U | LI,		1, 0, AFTER_LAST },
	{ "waiting fixed delay",	U | FD,		0, 0, AFTER_WAITING },
	{ "waiting limited fixed delay", U | FL,	2, 0, AFTER_WAITING },
	{ "spent limited fixed delay",	U | FL,		1, 0, AFTER_LAST },
	{ "drained one-shot",		X,		0, 0, AFTER_DRAINED(STALE) },
	{ "drained periodic",		X | PE,		0, 0, AFTER_DRAINED(STALE) },
	{ "drained unread periodic",	X | PE,		0, 1, AFTER_DRAINED(SAME) },
	{ "drained limited",		X | LI,		2, 0, AFTER_DRAINED(STALE) },
	{ "drained fixed delay",	X | FD,		0, 0, AFTER_DRAINED(STALE) },
	{ "drained waiting fixed delay", X | FD,	0, 1, AFTER_DRAINED(SAME) },
	{ "drained limited fixed delay", X | FL,	2, 1, AFTER_DRAINED(SAME) },
	{ "dead",			PHASE_DEAD,	0, 0, AFTER_DEAD },
	{ "free",			PHASE_FREE,	0, 0, AFTER_FREE },
};

static void start_name(const struct start *start, char *name)
{
	strscpy(name, start->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(start, starts, start_name);

/* Bring a timeout to where it is to start from, by the ways there are. */
static struct twheel_timeout *bring(struct kunit *test,
				    const struct start *start, u64 *id)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how = arm_of(start->state, start->repeats);
	enum twheel_phase phase = state_phase(start->state);
	bool drained = start->state & STATE_DRAINED;
	struct twheel_timeout *t = arm(test, &how);

	*id = how.id;
	if (phase != PHASE_QUEUED && phase != PHASE_DEAD)
		enter(tw);
	if (drained ? start->fired : phase == PHASE_UNREAD)
		expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	if (drained)
		drain(tw);
	if (phase == PHASE_DEAD || phase == PHASE_FREE)
		cancel(tw, how.id);
	work_take(tw);
	KUNIT_ASSERT_EQ(test, shape_of(timeout_state(t)), start->state);
	audit(test);
	return t;
}

/* Do one thing to it; returns what that says. */
typedef int (*deed)(struct twheel *tw, struct twheel_timeout *t, u64 id);

static void expect_outcome(struct kunit *test, deed deed,
			   enum outcome_name name, u64 adds)
{
	const struct start *start = test->param_value;
	const struct outcome *to = &outcomes[name];
	struct twheel *tw = test->priv;
	s64 before[NR_TALLIES];
	u64 id, state, expected;
	struct twheel_timeout *t = bring(test, start, &id);

	state = timeout_state(t);
	tally_take(tw, before);
	KUNIT_EXPECT_EQ(test, deed(tw, t, id), to->said);
	expect_delta(test, before, to->delta);
	if (to->same)
		expected = start->state;
	else
		expected = to->phase | to->adds | adds |
			   (start->state & to->keeps);
	KUNIT_EXPECT_EQ(test, shape_of(timeout_state(t)), expected);
	/* G8: with the end, and with it alone, comes the next generation. */
	KUNIT_EXPECT_EQ(test, state_gen(timeout_state(t)), state_gen(state) +
			(!to->same && to->phase == PHASE_FREE));
	KUNIT_EXPECT_EQ(test, state_seq(timeout_state(t)),
			state_seq(state) + to->placed);
	audit(test);
}

static int deed_cancel(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	return cancel(tw, id);
}

static int deed_rearm_later(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	return rearm(tw, id, &(struct twheel_arm) {
		.expires_ns = 1000 * TICK_NS });
}

static int deed_rearm_past(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	return rearm(tw, id, &(struct twheel_arm) {
		.flags = TWHEEL_ARM_ABSOLUTE });
}

static int deed_read(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	return read_one(tw, NULL);
}

static int deed_drain(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	spin_lock(&tw->events.lock);
	timeout_drain(tw, t, twheel_now(&tw->clock));
	spin_unlock(&tw->events.lock);
	return 0;
}

static int deed_expire(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	expire_at(tw, t->deadline_ns + TICK_NS);
	return 0;
}

static int deed_enter(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	enter(tw);
	return 0;
}

static void cancel_ends_what_lives_and_says_what_it_was(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_cancel, start->to.cancel, 0);
}

static void rearm_to_a_later_time_leaves_the_entry_where_it_is(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_rearm_later, start->to.later, 0);
}

static void rearm_to_the_past_goes_through_the_inbox(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_rearm_past, start->to.past,
		       start->to.past == GONE || start->to.past == SHUT ?
		       0 : STATE_OVERDUE);
}

static void read_takes_the_event_and_what_ended_with_it(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_read, start->to.read, 0);
}

static void drain_makes_an_event_of_what_is_left(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_drain, start->to.drain, 0);
}

static void expiry_makes_one_event_and_goes_on_as_the_life_says(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_expire, start->to.expire, 0);
}

static void the_inbox_lets_in_what_lives_and_frees_what_is_dead(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_enter, start->to.enter, 0);
}

/* The state word */

/* Generations and sequence numbers that are about to carry. */
static const u32 gens[] = { 0, 1, 2, 0x7fffffff, 0x80000000, U32_MAX - 1, U32_MAX };
static const u32 seqs[] = { 0, 1, 0x7ffff, 0x80000, 0xffffe, 0xfffff };

static u64 state_of(u32 gen, u32 seq, u64 shape)
{
	return (u64)gen << 32 | (u64)seq << 12 | shape;
}

typedef void (*state_check)(struct kunit *test, u64 state, u32 gen, u32 seq);

/* Calls @check with every state word there can be, but for gens and seqs. */
static void check_all_states(struct kunit *test, state_check check)
{
	unsigned int g, s, flags, phase;

	for (g = 0; g < ARRAY_SIZE(gens); g++)
		for (s = 0; s < ARRAY_SIZE(seqs); s++)
			for (flags = 0; flags < NR_FLAGS; flags++)
				for (phase = 0; phase <= STATE_PHASE; phase++)
					check(test, state_of(gens[g], seqs[s],
							     flags << FLAGS_SHIFT |
							     phase),
					      gens[g], seqs[s]);
}

static void check_fields(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	KUNIT_ASSERT_EQ(test, state_gen(state), gen);
	KUNIT_ASSERT_EQ(test, state_seq(state), seq);
	KUNIT_ASSERT_EQ(test, (u64)state_phase(state), state & 7);
}

static void the_fields_of_the_state_word_stand_apart(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, STATE_PHASE & STATE_FLAGS, 0ULL);
	KUNIT_EXPECT_EQ(test, (STATE_PHASE | STATE_FLAGS) & STATE_SEQ, 0ULL);
	KUNIT_EXPECT_EQ(test, STATE_SEQ & STATE_GEN, 0ULL);
	KUNIT_EXPECT_EQ(test, hweight64(STATE_SEQ), 20UL);
	check_all_states(test, check_fields);
}

static void check_next(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	u64 flags = (state * 5) & STATE_FLAGS;

	KUNIT_ASSERT_EQ(test, state_next(state, PHASE_UNREAD, flags),
			state_of(gen, seq, PHASE_UNREAD | flags));
	KUNIT_ASSERT_EQ(test, state_new(state, flags),
			state_of(gen, seq, PHASE_NEW | flags));
	KUNIT_ASSERT_EQ(test, state_published(state),
			state_of(gen, seq, PHASE_QUEUED | (state & STATE_FLAGS)));
	KUNIT_ASSERT_EQ(test, state_requeued(state, flags),
			state_of(gen, seq, PHASE_QUEUED | flags));
	KUNIT_ASSERT_EQ(test, state_deferred(state, flags),
			state_of(gen, seq, PHASE_ARMED | flags));
	KUNIT_ASSERT_EQ(test, state_rearming(state),
			state_of(gen, seq, PHASE_REARMING));
	KUNIT_ASSERT_EQ(test, state_dead(state), state_of(gen, seq, PHASE_DEAD));
}

/* What becomes of the flags of the life that goes on. */
static void check_life(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	u64 life = state & (BIT(4) | BIT(5) | BIT(6));

	KUNIT_ASSERT_EQ(test, state_unread(state),
			state_of(gen, seq, PHASE_UNREAD | life));
	KUNIT_ASSERT_EQ(test, state_drained(state),
			state_of(gen, seq, PHASE_UNREAD | life | BIT(3)));
	KUNIT_ASSERT_EQ(test, state_continued(state, false),
			state_of(gen, seq, PHASE_QUEUED | life));
	KUNIT_ASSERT_EQ(test, state_continued(state, true),
			state_of(gen, seq, PHASE_QUEUED | life | BIT(7)));
	KUNIT_ASSERT_EQ(test, state_not_overdue(state), state & ~BIT_ULL(7));
}

static void the_flags_of_a_life_last_as_long_as_it(struct kunit *test)
{
	check_all_states(test, check_life);
	KUNIT_EXPECT_EQ(test, flags_once(false), 0ULL);
	KUNIT_EXPECT_EQ(test, flags_once(true), BIT_ULL(7));
	KUNIT_EXPECT_EQ(test, flags_periodic(false, false, false), BIT_ULL(4));
	KUNIT_EXPECT_EQ(test, flags_periodic(true, false, false), BIT_ULL(4) | BIT_ULL(7));
	KUNIT_EXPECT_EQ(test, flags_periodic(false, true, false), BIT_ULL(4) | BIT_ULL(5));
	KUNIT_EXPECT_EQ(test, flags_periodic(false, false, true), BIT_ULL(4) | BIT_ULL(6));
}

static void the_next_state_is_of_the_same_life(struct kunit *test)
{
	check_all_states(test, check_next);
}

static void check_placed(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	KUNIT_ASSERT_EQ(test, state_placed(state),
			state_of(gen, seq == 0xfffff ? 0 : seq + 1,
				 PHASE_ARMED | (state & STATE_FLAGS)));
}

static void a_place_in_the_wheel_counts_the_sequence_number_up(struct kunit *test)
{
	check_all_states(test, check_placed);
}

static void check_freed(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	KUNIT_ASSERT_EQ(test, state_freed(state),
			state_of(gen == U32_MAX ? 0 : gen + 1, seq, PHASE_FREE));
}

static void freeing_counts_the_generation_up_and_clears_the_flags(struct kunit *test)
{
	check_all_states(test, check_freed);
}

static void check_predicates(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	bool queued = (state & 7) == PHASE_QUEUED;
	bool armed = (state & 7) == PHASE_ARMED;
	bool unread = (state & 7) == PHASE_UNREAD;
	bool periodic = state & BIT(4), drained = state & BIT(3);

	KUNIT_ASSERT_EQ(test, state_is_pending(state), queued || armed);
	KUNIT_ASSERT_EQ(test, state_is_live(state), queued || armed || unread);
	KUNIT_ASSERT_EQ(test, state_is_free(state), (state & 7) == PHASE_FREE);
	KUNIT_ASSERT_EQ(test, state_is_new(state), (state & 7) == PHASE_NEW);
	KUNIT_ASSERT_EQ(test, state_is_queued(state), queued);
	KUNIT_ASSERT_EQ(test, state_is_armed(state), armed);
	KUNIT_ASSERT_EQ(test, state_is_unread(state), unread);
	KUNIT_ASSERT_EQ(test, state_is_rearming(state), (state & 7) == PHASE_REARMING);
	KUNIT_ASSERT_EQ(test, state_is_plain_unread(state), unread && !periodic && !drained);
	KUNIT_ASSERT_EQ(test, state_is_periodic(state), periodic);
	KUNIT_ASSERT_EQ(test, state_is_fixed_delay(state), !!(state & BIT(5)));
	KUNIT_ASSERT_EQ(test, state_is_limited(state), !!(state & BIT(6)));
	KUNIT_ASSERT_EQ(test, state_is_overdue(state), !!(state & BIT(7)));
	KUNIT_ASSERT_EQ(test, state_is_drained(state), drained);
	KUNIT_ASSERT_EQ(test, state_keeps_room(state),
			unread && periodic && !drained);
	KUNIT_ASSERT_EQ(test, state_verdict(state) == TWHEEL_WAS_UNREAD,
			unread);
}

static void the_predicates_agree_with_the_banner(struct kunit *test)
{
	check_all_states(test, check_predicates);
}

static void a_change_is_made_from_the_state_seen_and_no_other(struct kunit *test)
{
	struct twheel_timeout t = {};
	u64 seen = state_of(5, 9, PHASE_ARMED | STATE_PERIODIC);
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		atomic64_set(&t.state, seen ^ BIT_ULL(bit));
		KUNIT_ASSERT_FALSE(test, state_change(&t, seen, 1));
		KUNIT_ASSERT_EQ(test, (u64)atomic64_read(&t.state),
				seen ^ BIT_ULL(bit));
	}
	atomic64_set(&t.state, seen);
	KUNIT_ASSERT_TRUE(test, state_change(&t, seen, 1));
	KUNIT_ASSERT_EQ(test, (u64)atomic64_read(&t.state), 1ULL);
}

/* Ids */

/* What is tried on it is not meant to be found when the case ends. */
static struct twheel_timeout *some_place(struct kunit *test, u64 *rest)
{
	struct twheel_timeout *t = arm_like(test, 0);
	struct twheel *tw = test->priv;

	enter(tw);
	*rest = timeout_state(t);
	return t;
}

static void an_id_is_found_where_something_lives_and_nowhere_else(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest, state, seen;
	struct twheel_timeout *t = some_place(test, &rest);
	unsigned int shape;
	bool found;

	for (shape = 0; shape < NR_FLAGS << FLAGS_SHIFT; shape++) {
		state = state_of(77, 5, shape);
		atomic64_set(&t->state, state);
		found = (shape & 7) == PHASE_QUEUED ||
			(shape & 7) == PHASE_ARMED ||
			(shape & 7) == PHASE_UNREAD ||
			(shape & 7) == PHASE_REARMING;
		KUNIT_ASSERT_EQ(test, look_by_id(tw, id_of(t), &seen) == t,
				found);
		if (found)
			KUNIT_ASSERT_EQ(test, seen, state);
		else
			KUNIT_ASSERT_NULL(test, look_by_id(tw, id_of(t), &seen));
	}
	atomic64_set(&t->state, rest);
}

static void an_id_of_any_other_generation_names_nothing(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest, seen, id;
	struct twheel_timeout *t = some_place(test, &rest);
	unsigned int bit;

	id = id_of(t);
	KUNIT_ASSERT_PTR_EQ(test, look_by_id(tw, id, &seen), t);
	for (bit = 32; bit < 64; bit++) {
		KUNIT_ASSERT_NULL(test, look_by_id(tw, id ^ BIT_ULL(bit),
						   &seen));
		KUNIT_ASSERT_EQ(test, cancel(tw, id ^ BIT_ULL(bit)), -ENOENT);
		KUNIT_ASSERT_EQ(test, rearm(tw, id ^ BIT_ULL(bit),
					    &(struct twheel_arm) {}), -ENOENT);
	}
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), rest);
}

static void an_index_and_its_place_name_each_other(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 index, nr = 3 * PLACES_PER_PAGE + 1;
	u64 state;

	for (index = 0; index < nr; index++)
		arm_like(test, 0);
	KUNIT_ASSERT_EQ(test, tw->arena.places.nr, 4U);
	for (index = 0; index < 4 * PLACES_PER_PAGE; index++) {
		struct twheel_timeout *t = look_at(tw, index);

		KUNIT_ASSERT_NOT_NULL(test, t);
		KUNIT_ASSERT_EQ(test, timeout_index(t), index);
		KUNIT_ASSERT_EQ(test, timeout_slot(t),
				(u32)(index % PLACES_PER_PAGE));
	}
	KUNIT_EXPECT_NULL(test, look_at(tw, 4 * PLACES_PER_PAGE));
	KUNIT_EXPECT_NULL(test, look_at(tw, U32_MAX));
	KUNIT_EXPECT_NULL(test, look_by_id(tw, U64_MAX, &state));
	KUNIT_EXPECT_NULL(test, look_by_id(tw, 0, &state));
}

static void the_first_id_of_a_place_is_not_0(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 index;

	arm_like(test, 0);
	for (index = 0; index < PLACES_PER_PAGE; index++)
		KUNIT_ASSERT_EQ(test, state_gen(timeout_state(look_at(tw, index))),
				1U);
}

/* Time */

static const u64 ticks_ns[] = {
	TWHEEL_TICK_MIN_NS, 1001, 65537, TICK_NS, 4294967296ULL, 4294967297ULL,
	TWHEEL_TICK_MAX_NS,
};

static void tick_name(const u64 *tick_ns, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "tick of %llu ns", *tick_ns);
}

KUNIT_ARRAY_PARAM(tick, ticks_ns, tick_name);

/* The first tick that is not before the deadline. */
static void expect_rounded_up(struct kunit *test, u64 deadline_ns)
{
	struct twheel *tw = test->priv;
	u64 tick = deadline_tick(&tw->clock, deadline_ns);

	/* No product passes 2^64: neither a tick nor 2^63 does. */
	KUNIT_ASSERT_GE(test, tick * tw->clock.tick_ns, deadline_ns);
	if (tick)
		KUNIT_ASSERT_LT(test, (tick - 1) * tw->clock.tick_ns, deadline_ns);
	KUNIT_ASSERT_LT(test, tick, tw->clock.max_tick);
}

static void a_deadline_is_rounded_up_to_its_tick(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	u64 edge, last = div64_u64(TWHEEL_TIME_NEVER - 1, *tick_ns);
	unsigned int bit;

	wheel_with(test, tick_ns, *tick_ns);
	expect_rounded_up(test, 0);
	expect_rounded_up(test, 1);
	for (bit = 0; bit < 63; bit++) {
		edge = min(BIT_ULL(bit), last) * *tick_ns;
		expect_rounded_up(test, edge - 1);
		expect_rounded_up(test, edge);
		expect_rounded_up(test, min(edge + 1, TWHEEL_TIME_NEVER - 1));
	}
	expect_rounded_up(test, TWHEEL_TIME_NEVER - 1);
}

static void the_end_of_time_has_a_tick_that_no_clock_reaches(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct twheel *tw;

	tw = wheel_with(test, tick_ns, *tick_ns);
	KUNIT_EXPECT_GT(test, tw->clock.max_tick,
			div64_u64(TWHEEL_TIME_NEVER, *tick_ns));
	KUNIT_EXPECT_EQ(test, deadline_tick(&tw->clock, TWHEEL_TIME_NEVER), tw->clock.max_tick);
	KUNIT_EXPECT_EQ(test, deadline_tick(&tw->clock, U64_MAX), tw->clock.max_tick);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, tw->clock.max_tick), WAKE_NEVER);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, tw->clock.max_tick - 1), WAKE_NEVER);
	/* The one before is a time that can be slept until. */
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, tw->clock.max_tick - 2),
			(tw->clock.max_tick - 2) * *tick_ns);
	KUNIT_EXPECT_LE(test, tick_edge_ns(&tw->clock, tw->clock.max_tick - 2),
			TWHEEL_TIME_NEVER);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, 1), *tick_ns);
}

static void the_clock_may_stand_at_the_end_of_time(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct twheel_arm last = {
		.expires_ns = TWHEEL_TIME_NEVER - 1, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct twheel_arm never = {
		.expires_ns = TWHEEL_TIME_NEVER, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct twheel *tw;

	tw = wheel_with(test, tick_ns, *tick_ns);
	arm(test, &never);
	arm(test, &last);
	pass(tw);
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	tw->clock.virtual_now_ns = TWHEEL_TIME_NEVER;
	pass(tw);
	/* Its tick may end after time does; the other has none. */
	KUNIT_EXPECT_LE(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, state_phase(timeout_state(look_at(tw, (u32)never.id))),
			PHASE_ARMED);
}

/* Shown as it will be: there is no other time in a tick that no clock reaches. */
static void the_next_expiry_is_one_that_comes(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	u64 deadline_ns, last_ns = TWHEEL_TIME_NEVER -
				   TWHEEL_TIME_NEVER % *tick_ns;
	const u64 deadlines_ns[] = {
		TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - 1, last_ns + 1, last_ns,
		last_ns - 1, last_ns - *tick_ns,
	};
	struct twheel_info info;
	struct twheel *tw;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deadlines_ns); i++) {
		tw = wheel_with(test, tick_ns, *tick_ns);
		deadline_ns = deadlines_ns[i];
		arm(test, &(struct twheel_arm) {
			.expires_ns = deadline_ns, .flags = TWHEEL_ARM_ABSOLUTE });
		pass(tw);
		twheel_get_info(tw, &info);
		tw->clock.virtual_now_ns = TWHEEL_TIME_NEVER;
		pass(tw);
		KUNIT_EXPECT_EQ_MSG(test, tw->events.nr_unread,
				    (u32)(info.next_expiry_ns <= TWHEEL_TIME_NEVER),
				    "%llu", deadline_ns);
		if (!tw->events.nr_unread)
			KUNIT_EXPECT_EQ(test, info.next_expiry_ns,
					TWHEEL_NO_EXPIRY);
		KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)(deadline_ns <= last_ns));
	}
}

static void times_add_up_to_the_end_of_time_at_the_most(struct kunit *test)
{
	const u64 end = TWHEEL_TIME_NEVER;
	static const struct { u64 a, b, sum; } rows[] = {
		{ 0, 0, 0 }, { 1, 2, 3 },
		{ end - 1, 0, end - 1 }, { 0, end - 1, end - 1 },
		{ end - 2, 1, end - 1 }, { end - 1, 1, end },
		{ end - 1, 2, end }, { 2, end - 1, end }, { end, 0, end },
		{ 0, end, end }, { end, end, end }, { U64_MAX, 0, end },
		{ 0, U64_MAX, end }, { U64_MAX, U64_MAX, end },
		{ 1, U64_MAX, end }, { end + 1, U64_MAX - end, end },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, time_add(rows[i].a, rows[i].b),
				    rows[i].sum, "%llu + %llu", rows[i].a,
				    rows[i].b);
}

static void periods_are_counted_as_if_one_by_one(struct kunit *test)
{
	u64 deadline, interval, until;

	for (interval = 1; interval < 12; interval++) {
		for (deadline = 0; deadline < 15; deadline++) {
			u64 next = deadline, nr = 0;

			for (until = deadline; until < 60; until++) {
				for (; next <= until; next += interval)
					nr++;
				KUNIT_ASSERT_EQ(test, periods_passed(deadline,
								     interval,
								     until), nr);
			}
		}
	}
	KUNIT_EXPECT_EQ(test, periods_passed(0, 1, U64_MAX - 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, periods_passed(0, TWHEEL_TIME_NEVER,
					     TWHEEL_TIME_NEVER - 1), 1ULL);
	KUNIT_EXPECT_EQ(test, periods_passed(1, 4294967297ULL,
					     1 + 4294967297ULL * 1000003),
			1000004ULL);
}

/* What is asked for */

static void what_is_malformed_is_refused(struct kunit *test)
{
	static const struct { struct twheel_arm arm; int says; } rows[] = {
		{ {}, 0 },
		{ { .expires_ns = U64_MAX, .interval_ns = U64_MAX,
		    .flags = 3, .repeats = U32_MAX }, 0 },
		{ { .interval_ns = 1 }, 0 },
		{ { .flags = TWHEEL_ARM_ABSOLUTE }, 0 },
		{ { .flags = TWHEEL_ARM_FIXED_DELAY }, -EINVAL },
		{ { .flags = TWHEEL_ARM_FIXED_DELAY, .interval_ns = 1 }, 0 },
		{ { .repeats = 1 }, -EINVAL },
		{ { .repeats = 1, .interval_ns = 1 }, 0 },
		{ { .reserved = 1 }, -EINVAL },
		{ { .reserved = 0x80000000 }, -EINVAL },
	};
	struct twheel_arm unknown = { .interval_ns = 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, life_check(&rows[i].arm),
				    rows[i].says, "row %u", i);
	for (i = 2; i < 32; i++) {
		unknown.flags = BIT(i);
		KUNIT_EXPECT_EQ(test, life_check(&unknown), -EINVAL);
	}
}

static void a_life_is_what_was_asked_for_within_bounds(struct kunit *test)
{
	const u64 now = START_NS, end = TWHEEL_TIME_NEVER;
	static const struct {
		struct twheel_arm arm;
		struct life life;
	} rows[] = {
		{ { .expires_ns = 5 }, { 0, now + 5, 0, 0 } },
		{ { .expires_ns = 0 }, { STATE_OVERDUE, now, 0, 0 } },
		{ { .expires_ns = end - now - 1 }, { 0, end - 1, 0, 0 } },
		{ { .expires_ns = end - now }, { 0, end, 0, 0 } },
		{ { .expires_ns = U64_MAX }, { 0, end, 0, 0 } },
		{ { .flags = 1 }, { STATE_OVERDUE, 0, 0, 0 } },
		{ { .flags = 1, .expires_ns = now }, { STATE_OVERDUE, now, 0, 0 } },
		{ { .flags = 1, .expires_ns = now + 1 }, { 0, now + 1, 0, 0 } },
		{ { .flags = 1, .expires_ns = end }, { 0, end, 0, 0 } },
		{ { .flags = 1, .expires_ns = U64_MAX }, { 0, end, 0, 0 } },
		{ { .expires_ns = 5, .interval_ns = 1 },
		  { PE, now + 5, TICK_NS, 0 } },
		{ { .expires_ns = 5, .interval_ns = TICK_NS },
		  { PE, now + 5, TICK_NS, 0 } },
		{ { .expires_ns = 5, .interval_ns = TICK_NS + 1 },
		  { PE, now + 5, TICK_NS + 1, 0 } },
		{ { .expires_ns = 5, .interval_ns = U64_MAX },
		  { PE, now + 5, end, 0 } },
		{ { .expires_ns = 5, .interval_ns = PERIOD_NS, .flags = 2 },
		  { FD, now + 5, PERIOD_NS, 0 } },
		{ { .expires_ns = 5, .interval_ns = PERIOD_NS, .repeats = 7 },
		  { LI, now + 5, PERIOD_NS, 7 } },
		{ { .flags = 3, .interval_ns = 1, .repeats = U32_MAX },
		  { FL | OV, 0, TICK_NS, U32_MAX } },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct life life = life_of(test->priv, &rows[i].arm, now);

		KUNIT_EXPECT_EQ_MSG(test, life.flags, rows[i].life.flags,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, life.deadline_ns,
				    rows[i].life.deadline_ns, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, life.interval_ns,
				    rows[i].life.interval_ns, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, life.repeats, rows[i].life.repeats,
				    "row %u", i);
	}
}

/* Places, room and limits */

static void places_are_counted_exactly(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, 10);
	unsigned int held, nr;

	for (held = 0; held <= 10; held++) {
		for (nr = 0; nr < 15; nr++) {
			unsigned int got;

			atomic_set(&tw->arena.live, held);
			got = live_take(&tw->arena, nr);
			KUNIT_ASSERT_EQ(test, got, min(nr, 10 - held));
			KUNIT_ASSERT_EQ(test, atomic_read(&tw->arena.live),
					(int)(held + got));
			KUNIT_ASSERT_EQ(test, twheel_has_room(tw),
					held + got < 10);
			twheel_live_give(tw, got);
			KUNIT_ASSERT_EQ(test, atomic_read(&tw->arena.live), (int)held);
		}
	}
	atomic_set(&tw->arena.live, 0);
}

static void over_the_limit_an_entry_says_eagain_and_nothing_is_taken(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, 3);
	struct twheel_arm how[5] = {};
	struct twheel_arming arming;
	s64 before[NR_TALLIES];
	unsigned int i;

	for (i = 0; i < 5; i++)
		how[i].expires_ns = DELAY_NS;
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 5, &arming), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, how[i].result, i < 3 ? 0 : -EAGAIN);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 3), 0);
	audit(test);
	tally_take(tw, before);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 5, &arming), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, how[i].result, -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit(tw, &arming, 0), 0);
	expect_delta(test, before, (s8[NR_TALLIES]) {});
}

static void what_is_prepared_and_not_committed_leaves_no_trace(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how[4];
	struct twheel_arming arming;
	s64 before[NR_TALLIES];
	unsigned int i;
	u64 seen;

	arm_like(test, 0);
	tally_take(tw, before);
	for (i = 0; i < 4; i++)
		how[i] = arm_of(PE, 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 4, &arming), 0);
	for (i = 0; i < 4; i++) {
		struct twheel_timeout *t = look_at(tw, (u32)how[i].id);

		KUNIT_EXPECT_EQ(test, shape_of(timeout_state(t)), PHASE_NEW | PE);
		KUNIT_EXPECT_EQ(test, cancel(tw, how[i].id), -ENOENT);
	}
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 1), 0);
	expect_delta(test, before, (s8[NR_TALLIES]) {
		[LIVE] = 1, [PENDING] = 1, [ACCEPTED] = 1, [INBOX] = 1,
		[ROOM] = 1, [PLACES] = -1 });
	/* The ids that were reported are not given out again. */
	for (i = 1; i < 4; i++)
		KUNIT_EXPECT_EQ(test, state_gen(timeout_state(look_at(tw, (u32)how[i].id))),
				(u32)(how[i].id >> 32) + 1);
	KUNIT_EXPECT_NOT_NULL(test, look_by_id(tw, how[0].id, &seen));
}

static void a_batch_with_bad_entries_arms_the_good_ones(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how[6];
	struct twheel_arming arming;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		how[i] = arm_of(0, 0);
		how[i].user_data = i;
		how[i].reserved = i % 2;
	}
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 6, &arming), 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 3), 0);
	for (i = 0; i < 6; i++) {
		KUNIT_EXPECT_EQ(test, how[i].result, i % 2 ? -EINVAL : 0);
		if (!(i % 2))
			KUNIT_EXPECT_EQ(test, look_at(tw, (u32)how[i].id)->user_data,
					(u64)i);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 3);
}

/* Whatever is promised, the chunks for it are there or on their way. */
static void room_is_backed_by_chunks(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int nr, total = 0;

	for (nr = 1; nr < 400; nr += nr / 2 + 1) {
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, nr), 0);
		total += nr;
		KUNIT_ASSERT_EQ(test, atomic_long_read(&tw->room.used), (long)total);
		KUNIT_ASSERT_GE(test, tw->room.provided, (long)total);
		KUNIT_ASSERT_GE(test, tw->room.nr_chunk_pages,
				twheel_wheel_pages_for(&tw->wheel, tw->room.provided));
	}
	twheel_gifts_accept(tw);
	KUNIT_EXPECT_EQ(test, tw->wheel.nr_free,
			tw->room.nr_chunk_pages * TWHEEL_CHUNKS_PER_PAGE);
	room_give(&tw->room, total);
}

/*
 * 2^30 timeouts, with as many stale entries beside them as a sweep allows and what
 * a few callers ask for at the same time: no memory, but the same sums.
 */
static void room_is_counted_right_up_to_the_largest_wheel(struct kunit *test)
{
	const u64 most = 2ULL << 30;
	struct twheel *tw = test->priv;
	u64 had = tw->room.nr_chunk_pages;
	long was = tw->room.provided;
	u64 used;

	/* As if they were there; none is touched. */
	tw->room.nr_chunk_pages = 1ULL << 40;
	for (used = most - 200; used < 2 * most + 200; used += 50) {
		if (used == most + 200)
			used = 2 * most - 200;
		atomic_long_set(&tw->room.used, used - 50);
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 50), 0);
		KUNIT_ASSERT_EQ(test, (u64)atomic_long_read(&tw->room.used), used);
		KUNIT_ASSERT_GE(test, tw->room.provided, (long)used);
		KUNIT_ASSERT_GE(test, twheel_wheel_pages_for(&tw->wheel, tw->room.provided),
				used / TWHEEL_CHUNK_ENTRIES / TWHEEL_CHUNKS_PER_PAGE);
		KUNIT_EXPECT_EQ(test, room_is_wasted(&tw->room, &tw->arena, 0), true);
	}
	atomic_long_set(&tw->room.used, 0);
	tw->room.provided = was;
	tw->room.nr_chunk_pages = had;
}

/* With most of it in use already; see above. */
static void the_last_places_of_the_largest_wheel_are_counted_exactly(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 limit = tw->arena.max_pending;

	tw->arena.max_pending = BIT(30);
	atomic_set(&tw->arena.live, BIT(30) - 40);
	KUNIT_EXPECT_EQ(test, live_take(&tw->arena, 32), 32U);
	KUNIT_EXPECT_EQ(test, live_take(&tw->arena, 32), 8U);
	KUNIT_EXPECT_EQ(test, live_take(&tw->arena, 1), 0U);
	KUNIT_EXPECT_FALSE(test, twheel_has_room(tw));
	twheel_live_give(tw, 1);
	KUNIT_EXPECT_TRUE(test, twheel_has_room(tw));
	KUNIT_EXPECT_FALSE(test, room_is_wasted(&tw->room, &tw->arena, 0));
	KUNIT_EXPECT_FALSE(test, memory_is_wasted(&tw->shrink, &tw->arena, &tw->room));
	atomic_set(&tw->arena.live, 0);
	tw->arena.max_pending = limit;
}

/* The ways in which a place becomes free. */
enum ending_way { CANCEL_YOUNG, CANCEL_ARMED, REVOKE, READ_IT, READ_DRAINED, NR_WAYS };

static void end_it(struct twheel *tw, u64 id, enum ending_way way)
{
	if (way != CANCEL_YOUNG)
		enter(tw);
	if (way == REVOKE || way == READ_IT)
		expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	if (way == READ_DRAINED)
		drain(tw);
	if (way == READ_IT || way == READ_DRAINED)
		read_one(tw, NULL);
	else
		cancel(tw, id);
	enter(tw);
}

static void a_place_whose_generations_are_used_up_retires(struct kunit *test)
{
	enum ending_way way;

	for (way = 0; way < NR_WAYS; way++) {
		struct twheel *tw = wheel_remake(test, &usual_setup);
		struct twheel_timeout *t;
		s64 before[NR_TALLIES], after[NR_TALLIES];

		tw->clock.virtual_now_ns = START_NS;
		pass(tw);
		t = arm_like(test, 0);
		atomic64_set(&t->state, timeout_state(t) | STATE_GEN);
		tally_take(tw, before);
		end_it(tw, id_of(t), way);
		tally_take(tw, after);
		/* Its state is that of no id. */
		KUNIT_EXPECT_EQ(test, state_gen(timeout_state(t)), 0U);
		KUNIT_EXPECT_EQ(test, shape_of(timeout_state(t)), PHASE_FREE);
		KUNIT_EXPECT_EQ(test, after[LIVE], 0LL);
		KUNIT_EXPECT_EQ_MSG(test, after[RETIRED], 1LL, "way %d", way);
		KUNIT_EXPECT_EQ(test, after[PLACES], before[PLACES]);
		audit(test);
	}
}

static void no_id_is_given_out_twice_not_even_the_last_ones(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, 1);
	u32 *gen = kunit_kcalloc(test, PLACES_PER_PAGE, sizeof(*gen),
				 GFP_KERNEL);
	unsigned int i;
	u32 index;
	u64 id;

	KUNIT_ASSERT_NOT_NULL(test, gen);
	/* One page, each place of which has four generations left. */
	end_it(tw, id_of(arm_like(test, 0)), CANCEL_YOUNG);
	for (i = 0; i < PLACES_PER_PAGE; i++)
		atomic64_set(&look_at(tw, i)->state,
			     state_of(U32_MAX - 3, 0xfffff, PHASE_FREE));
	for (i = 0; i < 4 * PLACES_PER_PAGE; i++) {
		id = id_of(arm_like(test, 0));
		index = (u32)id;
		KUNIT_ASSERT_LT(test, index, (u32)PLACES_PER_PAGE);
		KUNIT_ASSERT_GT(test, (u32)(id >> 32), gen[index]);
		gen[index] = id >> 32;
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), -ENOENT);
		enter(tw);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), -ENOENT);
	}
	/* All have retired, and the limit is still one: another page it is. */
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.nr_retired), (int)PLACES_PER_PAGE);
	KUNIT_EXPECT_GE(test, timeout_index(arm_like(test, 0)),
			(u32)PLACES_PER_PAGE);
	KUNIT_EXPECT_EQ(test, tw->arena.places.nr, 2U);
}

/* Sequence numbers */

static void a_sequence_number_that_comes_round_leaves_the_generation(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	u64 id = id_of(t);
	int i;

	atomic64_set(&t->state, timeout_state(t) | STATE_SEQ);
	enter(tw);
	KUNIT_EXPECT_EQ(test, state_seq(timeout_state(t)), 0U);
	KUNIT_EXPECT_EQ(test, id_of(t), id);
	/* Likewise where a period does. */
	for (i = 0; i < 3; i++) {
		expire_at(tw, t->deadline_ns + TICK_NS);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
		KUNIT_ASSERT_EQ(test, state_phase(timeout_state(t)), PHASE_QUEUED);
		atomic64_set(&t->state, timeout_state(t) | STATE_SEQ);
		enter(tw);
		KUNIT_EXPECT_EQ(test, state_seq(timeout_state(t)), 0U);
		KUNIT_EXPECT_EQ(test, id_of(t), id);
	}
}

static bool lives(struct twheel *tw, const struct twheel_entry *entry)
{
	bool lives;

	spin_lock(&tw->events.lock);
	lives = entry_lives(entry, entry_timeout(&tw->arena, entry));
	spin_unlock(&tw->events.lock);
	return lives;
}

static void an_entry_of_any_other_sequence_number_is_stale(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest;
	struct twheel_timeout *t = some_place(test, &rest);
	struct twheel_entry entry = {
		.tick = deadline_tick(&tw->clock, t->deadline_ns),
		.index = timeout_index(t),
	};
	struct expiry x = { .now_ns = t->deadline_ns + TICK_NS };
	unsigned int bit;

	x.edge_ns = entry.tick * TICK_NS;
	for (bit = 0; bit < 20; bit++) {
		entry.seq = state_seq(rest) ^ BIT(bit);
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 1), 0);
		expire_batch(tw, &entry, 1, &x);
		KUNIT_ASSERT_EQ(test, x.nr_room, 1U);
		KUNIT_ASSERT_EQ(test, x.nr_events, 0U);
		KUNIT_ASSERT_EQ(test, (u64)timeout_state(t), rest);
		KUNIT_ASSERT_FALSE(test, lives(tw, &entry));
	}
}

/* Its number or not: what is not ARMED does not expire, whatever it is. */
static void an_entry_of_what_is_not_armed_is_stale(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest;
	struct twheel_timeout *t = some_place(test, &rest);
	struct twheel_entry entry = { .index = timeout_index(t), .seq = 5 };
	struct expiry x = { .now_ns = START_NS, .edge_ns = START_NS };
	unsigned int shape;

	for (shape = 0; shape < NR_FLAGS << FLAGS_SHIFT; shape++) {
		u64 state = state_of(9, 5, shape);

		atomic64_set(&t->state, state);
		KUNIT_ASSERT_EQ(test, lives(tw, &entry),
				(shape & 7) == PHASE_ARMED);
		if ((shape & 7) == PHASE_ARMED)
			continue;
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 1), 0);
		expire_batch(tw, &entry, 1, &x);
		KUNIT_ASSERT_EQ(test, x.nr_room, 1U);
		KUNIT_ASSERT_EQ(test, x.nr_events, 0U);
		KUNIT_ASSERT_EQ(test, (u64)timeout_state(t), state);
	}
	atomic64_set(&t->state, rest);
}

/* Races that are lost: it changes after it was looked at */

/**
 * struct loss - what came in between
 * @start: how it was looked at
 * @meanwhile: what somebody else did then
 */
struct loss {
	struct start start;
	deed meanwhile;
};

/* It ends, and its place is given to others until it is in use again. */
static int deed_take_over(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	int said = cancel(tw, id);

	while (!state_is_live(timeout_state(t))) {
		struct twheel_arm how = arm_of(0, 0);
		struct twheel_arming arming;

		if (twheel_arm_prepare(tw, &how, 1, &arming) || how.result ||
		    twheel_arm_commit(tw, &arming, 1))
			return -EIO;
	}
	enter(tw);
	return said;
}

static const struct loss losses[] = {
	{ { "it enters the wheel", Q },			deed_enter },
	{ { "it is cancelled young", Q },		deed_cancel },
	{ { "it is cancelled", A },			deed_cancel },
	{ { "its place is another's", A },		deed_take_over },
	{ { "it is moved earlier", A },			deed_rearm_past },
	{ { "it expires", A },				deed_expire },
	{ { "its period passes", A | PE },		deed_expire },
	{ { "it is drained", A },			deed_drain },
	{ { "its event is read", U },			deed_read },
	{ { "its event is revoked", U },		deed_cancel },
	{ { "its event's place is another's", U },	deed_take_over },
	{ { "it is re-armed", U },			deed_rearm_later },
	{ { "its period is read", U | PE },	deed_read },
	{ { "its period is drained", U | PE },	deed_drain },
	{ { "its delay begins", U | FD },		deed_read },
	{ { "its delay is drained", U | FD },		deed_drain },
};

static void loss_name(const struct loss *loss, char *name)
{
	strscpy(name, loss->start.name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(loss, losses, loss_name);

/* Between look and commit; the state and the counts are to stay as they are. */
static u64 lose(struct kunit *test, struct twheel_timeout *t, u64 id,
		s64 before[NR_TALLIES])
{
	const struct loss *loss = test->param_value;
	u64 seen = timeout_state(t);

	KUNIT_ASSERT_GE(test, loss->meanwhile(test->priv, t, id), 0);
	KUNIT_ASSERT_NE(test, (u64)timeout_state(t), seen);
	tally_take(test->priv, before);
	return timeout_state(t);
}

static const s8 nothing[NR_TALLIES];

static void a_cancel_that_was_overtaken_touches_nothing(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_cancel cancel = {};
	s64 before[NR_TALLIES];
	struct twheel_timeout *t;
	struct twheel_look look;
	unsigned int nr_ok = 0;
	u64 state;

	t = bring(test, &loss->start, &cancel.id);
	twheel_cancel_look(tw, &cancel, &look, 1);
	KUNIT_ASSERT_GT(test, cancel.result, 0);
	state = lose(test, t, cancel.id, before);
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, &cancel, &look, 1, &nr_ok),
			0U);
	KUNIT_EXPECT_EQ(test, nr_ok, 0U);
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	expect_delta(test, before, nothing);
}

static void a_rearm_that_was_overtaken_touches_nothing(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_arm how = { .expires_ns = 77 * TICK_NS };
	struct twheel_rearming rearming;
	s64 before[NR_TALLIES];
	struct twheel_timeout *t;
	u64 state, deadline_ns;
	unsigned int nr_room, nr_ok = 0;

	t = bring(test, &loss->start, &how.id);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_ASSERT_GT(test, how.result, 0);
	nr_room = rearming.nr_room;
	state = lose(test, t, how.id, before);
	deadline_ns = t->deadline_ns;
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok),
			0);
	KUNIT_EXPECT_EQ(test, nr_ok, 0U);
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
	/* The room that was taken for it was counted before. */
	expect_delta(test, before, (s8[NR_TALLIES]) { [ROOM] = -nr_room });
}

static void a_read_that_was_overtaken_takes_nothing(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_event event;
	s64 before[NR_TALLIES];
	struct twheel_timeout *t;
	struct twheel_look look;
	unsigned int nr;
	u64 state, id;

	t = bring(test, &loss->start, &id);
	nr = twheel_events_look(tw, &event, &look, 1);
	KUNIT_ASSERT_EQ(test, nr, (unsigned int)state_is_unread(loss->start.state));
	if (!nr)
		return;
	state = lose(test, t, id, before);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	expect_delta(test, before, nothing);
}

static void an_expiry_that_a_cancel_overtook_makes_no_event(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *once = arm_like(test, 0);
	struct twheel_timeout *periodic = arm_like(test, LI);
	struct expiry x = { .now_ns = START_NS + 100 * PERIOD_NS };
	s64 before[NR_TALLIES];
	u64 seen[2], nr = 1, deadline_ns;
	bool won[2];

	enter(tw);
	seen[0] = timeout_state(once);
	seen[1] = timeout_state(periodic);
	deadline_ns = periodic->deadline_ns;
	cancel(tw, id_of(once));
	cancel(tw, id_of(periodic));
	tally_take(tw, before);
	spin_lock(&tw->events.lock);
	won[0] = timeout_expire_once(tw, once, timeout_index(once), seen[0], &x,
				     once->deadline_ns);
	won[1] = timeout_expire_periodic(tw, periodic, seen[1], &x, x.now_ns, &nr);
	spin_unlock(&tw->events.lock);
	KUNIT_EXPECT_FALSE(test, won[0]);
	KUNIT_EXPECT_FALSE(test, won[1]);
	KUNIT_EXPECT_EQ(test, x.nr_events, 0U);
	KUNIT_EXPECT_EQ(test, periodic->deadline_ns, deadline_ns);
	KUNIT_EXPECT_EQ(test, timeout_periodic(periodic)->repeats_left[timeout_slot(periodic)],
			2U);
	expect_delta(test, before, nothing);
}

static void a_new_life_begins_from_the_state_seen_and_no_other(struct kunit *test)
{
	const struct life life = { .deadline_ns = 77 };
	struct twheel *tw = test->priv;
	u64 rest, deadline_ns;
	struct twheel_timeout *t = some_place(test, &rest);
	bool won, to_inbox;
	unsigned int bit;

	deadline_ns = t->deadline_ns;
	for (bit = 0; bit < 64; bit++) {
		spin_lock(&tw->events.lock);
		won = timeout_rearm(tw, t, rest ^ BIT_ULL(bit), &life, &to_inbox);
		spin_unlock(&tw->events.lock);
		KUNIT_ASSERT_FALSE(test, won);
		KUNIT_ASSERT_EQ(test, (u64)timeout_state(t), rest);
		KUNIT_ASSERT_EQ(test, t->deadline_ns, deadline_ns);
	}
}

/* The short way is for what is as it was seen, waits in the wheel, and moves later. */
static void nothing_else_is_deferred(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 state, deadline_ns = t->deadline_ns;
	unsigned int bit;

	spin_lock(&tw->events.lock);
	KUNIT_EXPECT_FALSE(test, timeout_defer(tw, t, timeout_state(t), deadline_ns + 1));
	spin_unlock(&tw->events.lock);
	enter(tw);
	state = timeout_state(t);
	spin_lock(&tw->events.lock);
	for (bit = 0; bit < 64; bit++)
		KUNIT_EXPECT_FALSE(test, timeout_defer(tw, t, state ^ BIT_ULL(bit),
						       deadline_ns + 1));
	KUNIT_EXPECT_FALSE(test, timeout_defer(tw, t, state, deadline_ns - 1));
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
	KUNIT_EXPECT_TRUE(test, timeout_defer(tw, t, state, deadline_ns));
	KUNIT_EXPECT_TRUE(test, timeout_defer(tw, t, state, deadline_ns + 1));
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns + 1);
	spin_unlock(&tw->events.lock);
}

/* A sequence number may have come round; the count has not. */
static void an_event_that_grew_is_not_taken_whatever_its_state_says(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_event event;
	struct twheel_look look;

	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	tw->events.changes++;
	timeout_periodic(t)->count[timeout_slot(t)]++;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	timeout_periodic(t)->count[timeout_slot(t)]--;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
}

/* Its last periods pass while it is copied, and a drain writes them down. */
static void an_event_that_a_drain_completed_is_looked_at_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;

	arm_like(test, LI);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	tw->clock.virtual_now_ns += 5 * PERIOD_NS;
	drain(tw);
	/* G4: the second expiration is not lost. */
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, event.flags, 0U);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2ULL);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* Four that pend, the third of which is gone before commit. */
static void a_batch_of_cancels_stops_at_the_first_that_was_overtaken(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_cancel cancels[4] = {};
	struct twheel_look look;
	unsigned int nr_ok = 0;
	int i;

	for (i = 0; i < 4; i++)
		cancels[i].id = id_of(arm_like(test, 0));
	enter(tw);
	twheel_cancel_look(tw, cancels, &look, 4);
	cancel(tw, cancels[2].id);
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, cancels, &look, 4, &nr_ok),
			2U);
	KUNIT_EXPECT_EQ(test, nr_ok, 2U);
	audit(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 1);
	twheel_cancel_look(tw, cancels + 2, &look, 2);
	KUNIT_EXPECT_EQ(test, cancels[2].result, -ENOENT);
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, cancels + 2, &look, 2,
						   &nr_ok), 2U);
	KUNIT_EXPECT_EQ(test, nr_ok, 3U);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 0);
}

/*
 * Pages were freed between look and commit, so that what was found is not to be
 * trusted: here it is no timeout at all.
 */
static void what_was_found_before_pages_were_freed_is_looked_up_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_cancel cancels[1] = {};
	struct twheel_rearming rearming;
	struct twheel_arm how = { .expires_ns = 77 * TICK_NS };
	struct twheel_timeout *t = arm_like(test, 0);
	struct twheel_look look;
	unsigned int nr_ok = 0;

	enter(tw);
	how.id = id_of(t);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_ASSERT_PTR_EQ(test, rearming.look.timeout[0], t);
	tw->arena.nr_removed++;
	rearming.look.timeout[0] = NULL;
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok),
			1);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + 77 * TICK_NS);

	cancels[0].id = how.id;
	twheel_cancel_look(tw, cancels, &look, 1);
	KUNIT_ASSERT_PTR_EQ(test, look.timeout[0], t);
	tw->arena.nr_removed++;
	look.timeout[0] = NULL;
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, cancels, &look, 1, &nr_ok),
			1U);
	KUNIT_EXPECT_EQ(test, nr_ok, 2U);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 0);
}

/* From now on there is neither room nor memory for any.  Returns what was taken. */
static unsigned int room_exhaust(struct kunit *test)
{
	unsigned int nr = 0;

	no_memory = true;
	while (!twheel_room_take(test->priv, 1))
		KUNIT_ASSERT_LT(test, ++nr, 100000U);
	return nr;
}

/* Those in the inbox and those that move later need no entry; all others do. */
static void only_what_needs_room_fails_for_want_of_it(struct kunit *test)
{
	struct twheel_arm how[TWHEEL_BATCH] = {};
	struct twheel_rearming rearming;
	struct twheel *tw = test->priv;
	unsigned int i, taken, nr_ok = 0;
	long used;
	u64 ids[TWHEEL_BATCH];

	arm_many(test, TWHEEL_BATCH - 1, ids);
	enter(tw);
	arm_many(test, 1, &ids[TWHEEL_BATCH - 1]);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	taken = room_exhaust(test);
	used = atomic_long_read(&tw->room.used);
	for (i = 0; i < TWHEEL_BATCH; i++) {
		how[i].id = ids[i];
		how[i].expires_ns = DELAY_NS + (i % 3 ? 1 : -1);
	}
	/* A little comes back. */
	room_give(&tw->room, 4);
	taken -= 4;
	KUNIT_EXPECT_EQ(test, twheel_rearm_prepare(tw, how, &rearming,
						   TWHEEL_BATCH), 0);
	KUNIT_EXPECT_EQ(test, rearming.nr_room, 4U);
	for (i = 0; i < TWHEEL_BATCH; i++)
		KUNIT_EXPECT_EQ_MSG(test, how[i].result,
				    i % 3 || i < 12 || i == TWHEEL_BATCH - 1 ?
				    TWHEEL_WAS_PENDING : -ENOMEM, "entry %u", i);
	/* The last one has come into the wheel: for want of room the kthread was asked. */
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming,
						  TWHEEL_BATCH, &nr_ok),
			TWHEEL_BATCH - 1);
	KUNIT_EXPECT_EQ(test, nr_ok, 24U);
	KUNIT_EXPECT_EQ(test, rearm(tw, ids[TWHEEL_BATCH - 1],
				    &how[TWHEEL_BATCH - 1]), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), used);
	no_memory = false;
	KUNIT_EXPECT_EQ(test, rearm(tw, ids[12], &how[12]), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
	room_give(&tw->room, taken);
}

/* All that there are in a batch, the last one too. */
static void a_whole_batch_may_go_without_room(struct kunit *test)
{
	/* What comes after the batch is not to be written. */
	struct twheel_arm how[TWHEEL_BATCH + 1] = {};
	struct twheel_rearming rearming;
	struct twheel *tw = test->priv;
	unsigned int i, room, taken, nr_ok;
	u64 ids[TWHEEL_BATCH];

	arm_many(test, TWHEEL_BATCH, ids);
	enter(tw);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	taken = room_exhaust(test);
	for (room = 0; room <= 3; room += 3) {
		room_give(&tw->room, room);
		taken -= room;
		for (i = 0; i < TWHEEL_BATCH; i++)
			how[i] = (struct twheel_arm) {
				.id = ids[i], .expires_ns = DELAY_NS - 1 - room };
		how[TWHEEL_BATCH].result = 77;
		KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, how, &rearming,
							   TWHEEL_BATCH), 0);
		for (i = 0; i < TWHEEL_BATCH; i++)
			KUNIT_EXPECT_EQ_MSG(test, how[i].result, i < room ?
					    TWHEEL_WAS_PENDING : -ENOMEM,
					    "entry %u", i);
		KUNIT_EXPECT_EQ(test, how[TWHEEL_BATCH].result, 77);
		nr_ok = 0;
		KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming,
							  TWHEEL_BATCH, &nr_ok),
				TWHEEL_BATCH);
		KUNIT_EXPECT_EQ(test, nr_ok, room);
	}
	no_memory = false;
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
	room_give(&tw->room, taken);
}

/* It was to keep its entry, but that has moved since. */
static void what_needs_room_after_all_is_looked_at_again(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = 20 * TICK_NS };
	struct twheel_arm later = { .expires_ns = 30 * TICK_NS };
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	struct twheel_rearming rearming;
	unsigned int nr_ok = 0;
	s64 before[NR_TALLIES];

	enter(tw);
	/* Otherwise room is taken for all of them. */
	tw->room.provided = atomic_long_read(&tw->room.used);
	tw->room.short_of = true;
	how.id = id_of(t);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_EXPECT_EQ(test, rearming.nr_room, 0U);
	KUNIT_ASSERT_EQ(test, rearm(tw, how.id, &later), TWHEEL_WAS_PENDING);
	tally_take(tw, before);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok),
			0);
	expect_delta(test, before, nothing);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + 30 * TICK_NS);
	KUNIT_EXPECT_EQ(test, rearm(tw, how.id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + 20 * TICK_NS);
}

static void a_batch_of_rearms_stops_at_the_first_that_was_overtaken(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_rearming rearming;
	struct twheel_arm how[4] = {};
	unsigned int nr_ok = 0;
	int i;

	for (i = 0; i < 4; i++)
		how[i].id = id_of(arm_like(test, 0));
	enter(tw);
	how[0].expires_ns = 2 * DELAY_NS;
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, how, &rearming, 4), 0);
	cancel(tw, how[2].id);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming, 4, &nr_ok),
			2);
	KUNIT_EXPECT_EQ(test, nr_ok, 2U);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, state_phase(timeout_state(look_at(tw, (u32)how[i].id))),
				i == 1 ? PHASE_QUEUED :
				i == 2 ? PHASE_FREE : PHASE_ARMED);
}

static void a_batch_of_events_stops_at_the_first_that_was_overtaken(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event events[4];
	struct twheel_look look;
	int i;

	for (i = 0; i < 4; i++)
		arm_like(test, 0);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, events, &look, 4), 4U);
	cancel(tw, events[2].id);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, events, &look, 4), 2U);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, tw->events.delivered, 2ULL);
	KUNIT_EXPECT_EQ(test, tw->events.revoked, 1ULL);
}

static void what_is_armed_beside_a_drain_is_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how[3];
	struct twheel_arming arming;
	struct twheel_rearming rearming;
	s64 before[NR_TALLIES];
	unsigned int nr_ok = 0;
	int i;

	how[0] = arm_of(0, 0);
	arm(test, &how[0]);
	enter(tw);
	tally_take(tw, before);
	for (i = 1; i < 3; i++)
		how[i] = arm_of(PE, 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how + 1, 2, &arming), 0);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, how, &rearming, 1), 0);
	WRITE_ONCE(tw->control.draining, true);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit(tw, &arming, 2), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming, 1, &nr_ok),
			-ESHUTDOWN);
	expect_delta(test, before, nothing);
	KUNIT_EXPECT_EQ(test, twheel_arm_prepare(tw, how + 1, 2, &arming),
			-ESHUTDOWN);
	expect_delta(test, before, nothing);
}

static void a_fixed_delay_read_beside_a_drain_ends_with_it(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;

	arm_like(test, FD);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.flags, 0U);
	WRITE_ONCE(tw->control.draining, true);
	/* What it was told would be wrong: no period follows. */
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_DRAINED);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.drained_out, 1ULL);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* Events */

/* Four in the list, taken out of it in every order there is. */
static void the_ready_list_holds_in_every_order_of_taking(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int order, i;

	for (order = 0; order < 24; order++) {
		u64 ids[4], id;
		unsigned int rest = order;

		for (i = 0; i < 4; i++)
			ids[i] = id_of(arm_like(test, 0));
		enter(tw);
		expire_at(tw, tw->clock.virtual_now_ns + DELAY_NS + TICK_NS);
		audit(test);
		for (i = 4; i; i--) {
			swap(ids[rest % i], ids[i - 1]);
			rest /= i;
			id = ids[i - 1];
			KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_UNREAD);
			KUNIT_ASSERT_EQ(test, (unsigned int)audit_ready(test),
					i - 1);
		}
		KUNIT_ASSERT_NULL(test, tw->events.first);
	}
}

static void events_come_in_the_order_of_their_ticks(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	u64 last_ns = 0;
	unsigned int i;

	/* 7 and 50 have no common factor: each deadline once, in disorder. */
	for (i = 0; i < 50; i++)
		arm(test, &(struct twheel_arm) {
			.expires_ns = (1 + i * 7 % 50) * TICK_NS });
	tw->clock.virtual_now_ns += 100 * TICK_NS;
	pass(tw);
	for (i = 0; i < 50; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_ASSERT_GT(test, event.deadline_ns, last_ns);
		last_ns = event.deadline_ns;
	}
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 0);
}

static void an_event_tells_whose_it_is_and_when_it_was(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_event event;
	const u64 fired_ns = START_NS + DELAY_NS + 2 * PERIOD_NS + TICK_NS;

	enter(tw);
	expire_at(tw, fired_ns);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.id, id_of(t));
	KUNIT_EXPECT_EQ(test, event.user_data, 0x1122334455667788ULL);
	/* Of three expirations the latest one. */
	KUNIT_EXPECT_EQ(test, event.count, 3U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns,
			START_NS + DELAY_NS + 2 * PERIOD_NS);
	KUNIT_EXPECT_EQ(test, event.fired_ns, fired_ns);
	KUNIT_EXPECT_EQ(test, event.flags, 0U);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + DELAY_NS + 3 * PERIOD_NS);
	/* And it begins anew. */
	enter(tw);
	expire_at(tw, t->deadline_ns + TICK_NS);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
}

static void any_number_of_periods_passes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	const u64 nr = BIT_ULL(40) + 5;
	struct twheel_event event;

	t = arm(test, &(struct twheel_arm) {
		.expires_ns = TICK_NS, .interval_ns = TICK_NS });
	enter(tw);
	expire_at(tw, START_NS + nr * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, nr);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + nr * TICK_NS);
	/* The count of the event saturates, and so it stays. */
	expire_at(tw, START_NS + 2 * nr * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, nr);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2 * nr);
	KUNIT_EXPECT_EQ(test, event.count, U32_MAX);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + 2 * nr * TICK_NS);
}

/* Those that were not looked at are not lost, and not late either. */
static void periods_that_pass_while_an_event_is_copied_are_in_the_next(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_event event;
	struct twheel_look look;

	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + PERIOD_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	tw->clock.virtual_now_ns += 3 * PERIOD_NS;
	KUNIT_ASSERT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2ULL);
	KUNIT_EXPECT_EQ(test, shape_of(timeout_state(t)), PHASE_QUEUED | PE | OV);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NOW);
	pass(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 3U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS + 4 * PERIOD_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 5ULL);
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, PERIOD_NS + TICK_NS);
}

/* A way to end an unread periodic timeout, and what the periods since make of it. */
static void periods_of_an_unread_event_are_counted_when_it_is_settled(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_status status = {};
	struct twheel_info info;
	struct twheel_event event;
	struct twheel_timeout *t;
	u64 at_ns = START_NS + DELAY_NS;

	/* Three have passed, of which nobody was told: nothing was done for them. */
	t = arm_like(test, PE);
	enter(tw);
	expire_at(tw, at_ns + TICK_NS);
	tw->clock.virtual_now_ns = at_ns + 3 * PERIOD_NS + TICK_NS;
	status.id = id_of(t);
	twheel_query(tw, &status, 1);
	KUNIT_EXPECT_EQ(test, status.count, 4U);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, at_ns + 4 * PERIOD_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.expirations, 1ULL);
	KUNIT_EXPECT_EQ(test, info.pending, 1ULL);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns,
			deadline_tick(&tw->clock, at_ns + 4 * PERIOD_NS) * TICK_NS);
	/* The edge of the tick, not the deadline, is when a period counts. */
	tw->clock.virtual_now_ns = at_ns + 4 * PERIOD_NS;
	twheel_query(tw, &status, 1);
	KUNIT_EXPECT_EQ(test, status.count, 4U);
	KUNIT_EXPECT_EQ(test, cancel(tw, id_of(t)), TWHEEL_WAS_UNREAD);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 4ULL);
	audit(test);

	/* A clock that was set back takes none away that was counted. */
	t = arm_like(test, PE);
	enter(tw);
	at_ns = t->deadline_ns;
	expire_at(tw, at_ns + TICK_NS);
	tw->clock.virtual_now_ns = START_NS;
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, at_ns + PERIOD_NS);
	KUNIT_EXPECT_EQ(test, cancel(tw, id_of(t)), TWHEEL_WAS_PENDING);
	pass(tw);
	audit(test);
}

static void a_limit_that_is_reached_unread_ends_with_the_read(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, LI);
	struct twheel_status status = { .id = id_of(t) };
	struct twheel_event event;
	struct twheel_info info;

	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	tw->clock.virtual_now_ns += 100 * PERIOD_NS;
	twheel_query(tw, &status, 1);
	KUNIT_EXPECT_EQ(test, status.count, 2U);
	KUNIT_EXPECT_EQ(test, status.repeats_left, 0U);
	KUNIT_EXPECT_EQ(test, status.left_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, START_NS + DELAY_NS + PERIOD_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.pending, 0ULL);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, TWHEEL_NO_EXPIRY);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, event.fired_ns,
			deadline_tick(&tw->clock, START_NS + DELAY_NS + PERIOD_NS) * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, (int)state_phase(timeout_state(t)), (int)PHASE_FREE);
}

/* What had passed by then is in the event, which is flagged unless it was the last. */
static void a_drained_event_counts_the_periods_that_passed_unread(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	int i;

	arm_like(test, PE);
	arm_like(test, LI);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	tw->clock.virtual_now_ns += 4 * PERIOD_NS;
	drain(tw);
	tw->clock.virtual_now_ns += 4 * PERIOD_NS;
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.count,
				event.flags & TWHEEL_EVENT_DRAINED ? 5U : 2U);
	}
	KUNIT_EXPECT_EQ(test, tw->events.drained_out, 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 7ULL);
}

static void a_limit_bounds_what_passes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	u32 repeats;

	for (repeats = 1; repeats < 8; repeats++) {
		u64 begun_ns = tw->clock.virtual_now_ns, before = tw->events.expirations;

		arm(test, &(struct twheel_arm) {
			.expires_ns = TICK_NS, .interval_ns = PERIOD_NS,
			.repeats = repeats });
		enter(tw);
		/* Three at once, and then what is left. */
		expire_at(tw, begun_ns + TICK_NS + 2 * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, tw->events.expirations - before,
				min(repeats, 3ULL));
		expire_at(tw, begun_ns + TICK_NS + 100 * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_ASSERT_EQ(test, tw->events.expirations - before, (u64)repeats);
		KUNIT_ASSERT_EQ(test, event.count, repeats);
		KUNIT_ASSERT_EQ(test, event.deadline_ns, begun_ns + TICK_NS +
				(repeats - 1) * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, atomic_read(&tw->arena.live), 0);
	}
}

static void nothing_expires_before_its_tick(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	u64 deadline_ns, edge_ns, distance;

	for (distance = 1; distance < 3 * TICK_NS; distance += TICK_NS / 7) {
		u64 now_ns = tw->clock.virtual_now_ns + 12345;

		tw->clock.virtual_now_ns = now_ns;
		t = arm(test, &(struct twheel_arm) { .expires_ns = distance });
		enter(tw);
		deadline_ns = now_ns + distance;
		KUNIT_ASSERT_EQ(test, t->deadline_ns, deadline_ns);
		edge_ns = DIV64_U64_ROUND_UP(deadline_ns, TICK_NS) * TICK_NS;
		expire_at(tw, edge_ns - 1);
		KUNIT_ASSERT_EQ(test, tw->events.nr_unread, 0U);
		expire_at(tw, edge_ns);
		KUNIT_ASSERT_EQ(test, tw->events.nr_unread, 1U);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	}
}

/* Refreshed, it comes up early, as often as it was: and it is put back. */
static void what_was_moved_later_waits_for_its_new_tick(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 id = id_of(t), first_ns = t->deadline_ns + TICK_NS;

	enter(tw);
	rearm(tw, id, &(struct twheel_arm) { .expires_ns = 10 * DELAY_NS });
	expire_at(tw, first_ns);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_EQ(test, state_phase(timeout_state(t)), PHASE_ARMED);
	audit(test);
	expire_at(tw, START_NS + 10 * DELAY_NS - 1);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	expire_at(tw, START_NS + 10 * DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/* As settimeofday() may, between ARM and the kthread's next pass. */
static void what_was_overdue_until_the_clock_was_set_back_waits_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;

	tw->wheel.rewinds = true;
	arm(test, &(struct twheel_arm) {
		.expires_ns = START_NS - TICK_NS / 2,
		.flags = TWHEEL_ARM_ABSOLUTE });
	enter(tw);
	tw->clock.virtual_now_ns = START_NS - TICK_NS + 1;
	expire_at(tw, 0);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	audit(test);
	expire_at(tw, START_NS - 1);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	expire_at(tw, START_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.fired_ns, START_NS);
}

/* G5: neither emptying the slots nor filling them is done in one go. */
static void a_clock_set_back_is_followed_by_turns(struct kunit *test)
{
	const unsigned int nr = 18000;
	struct twheel *tw = wheel_with(test, slots, 1 << 15);
	unsigned int i;

	tw->wheel.rewinds = true;
	tw->clock.virtual_now_ns = START_NS;
	pass(tw);
	for (i = 0; i < nr; i++) {
		arm(test, &(struct twheel_arm) {
			.expires_ns = START_NS + (i + 2) * TICK_NS,
			.flags = TWHEEL_ARM_ABSOLUTE });
		if (i % TURN_BUDGET == 0)
			pass(tw);
	}
	pass(tw);
	tw->clock.virtual_now_ns = START_NS / 2;
	/* MOVES_PER_DUE slots or entries for each of the budget. */
	KUNIT_EXPECT_EQ(test, pass(tw), 2 * nr / (4U * TURN_BUDGET) + 1);
	audit(test);
	/* While it is under way: once more, and an expiry before all others. */
	tw->clock.virtual_now_ns = START_NS;
	pass(tw);
	tw->clock.virtual_now_ns = START_NS / 2;
	work_take(tw);
	twheel_pass_turn(&tw->wake.turn, U64_MAX);
	KUNIT_ASSERT_TRUE(test, tw->pass.begun);
	arm(test, &(struct twheel_arm) {
		.expires_ns = START_NS / 2, .flags = TWHEEL_ARM_ABSOLUTE });
	tw->clock.virtual_now_ns = START_NS / 4;
	pass(tw);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS / 2);
	tw->clock.virtual_now_ns = START_NS / 2;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	audit(test);
	tw->clock.virtual_now_ns = START_NS + (nr + 1) * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr + 1);
}

static void lateness_counts_from_the_deadline_but_not_of_the_overdue(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm(test, &(struct twheel_arm) {
		.expires_ns = 5, .flags = TWHEEL_ARM_ABSOLUTE });
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, 0ULL);
	arm_like(test, 0);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + 3 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, 3 * TICK_NS);
}

static void query_tells_what_a_timeout_is_doing(struct kunit *test)
{
	const struct start *start = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_status status = {};
	bool waits, gone, fired;

	bring(test, start, &status.id);
	twheel_query(tw, &status, 1);
	waits = state_phase(start->state) == PHASE_QUEUED ||
		state_phase(start->state) == PHASE_ARMED;
	gone = !waits && state_phase(start->state) != PHASE_UNREAD;
	KUNIT_ASSERT_EQ(test, status.result, gone ? -ENOENT : 0);
	if (gone)
		return;
	KUNIT_EXPECT_EQ(test, status.state,
			start->state & STATE_DRAINED ? TWHEEL_STATE_DRAINED :
			!waits ? TWHEEL_STATE_EXPIRED :
			TWHEEL_STATE_PENDING);
	/* With a fixed rate it waits while its event is unread. */
	if (start->to.read == GOES_ON)
		waits = true;
	KUNIT_EXPECT_EQ(test, status.left_ns,
			!waits || status.deadline_ns < tw->clock.virtual_now_ns ? 0 :
			status.deadline_ns - tw->clock.virtual_now_ns);
	KUNIT_EXPECT_EQ(test, status.interval_ns,
			start->state & PE ? PERIOD_NS : 0);
	KUNIT_EXPECT_EQ(test, status.flags,
			start->state & STATE_FIXED_DELAY ?
			TWHEEL_ARM_FIXED_DELAY : 0);
	/* Brought to where they are, none has expired more than once. */
	fired = start->state & STATE_DRAINED ? start->fired :
		state_is_unread(start->state);
	KUNIT_EXPECT_EQ(test, status.count, (u32)fired);
	KUNIT_EXPECT_EQ(test, status.repeats_left,
			start->repeats ? start->repeats - status.count : 0);
}

/* When to run */

static void what_is_far_wakes_nobody_and_sets_the_alarm(struct kunit *test)
{
	struct twheel *tw = test->priv;
	const u64 edge_ns = START_NS + 6 * TICK_NS;

	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	arm_like(test, 0);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, edge_ns);
	arm(test, &(struct twheel_arm) { .expires_ns = 2 * DELAY_NS });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, edge_ns);
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	/* A pass finds the same again, in the wheel. */
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

static void what_is_overdue_wakes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id;

	arm_like(test, OV);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	id = id_of(arm_like(test, 0));
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	rearm(tw, id, &(struct twheel_arm) { .flags = TWHEEL_ARM_ABSOLUTE });
	KUNIT_EXPECT_TRUE(test, work_take(tw));
}

static void what_comes_during_a_pass_is_looked_at_when_it_ends(struct kunit *test)
{
	struct twheel *tw = test->priv;

	pass_begin(tw);
	arm_like(test, OV);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass_end(tw, false);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/* The wheel's clock is ahead of the machine's, or behind, by its time namespace. */
static void an_alarm_is_set_on_the_clock_of_the_machine(struct kunit *test)
{
	struct twheel *tw = test->priv;

	tw->wake.at_ns = 1000 * NSEC_PER_SEC;
	tw->clock.offset_ns = 900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), 100 * (ktime_t)NSEC_PER_SEC);
	tw->clock.offset_ns = -900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), 1900 * (ktime_t)NSEC_PER_SEC);
	/* Beyond what the machine's clock reaches. */
	tw->wake.at_ns = TWHEEL_TIME_NEVER - 1;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), KTIME_MAX);
	tw->wake.at_ns = WAKE_NEVER;
	tw->clock.offset_ns = 0;
}

static void a_real_clock_is_slept_on_and_let_go_when_nothing_pends(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, clock, TWHEEL_CLOCK_MONOTONIC);
	struct twheel_timeout *t;

	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->wake.timer));
	t = arm(test, &(struct twheel_arm) { .expires_ns = 3600 * NSEC_PER_SEC });
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&tw->wake.timer));
	KUNIT_EXPECT_EQ(test, (u64)hrtimer_get_expires_ns(&tw->wake.timer),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	/* Moved earlier, so is the alarm. */
	rearm(tw, id_of(t), &(struct twheel_arm) {
		.expires_ns = 1800 * NSEC_PER_SEC });
	KUNIT_EXPECT_EQ(test, (u64)hrtimer_get_expires_ns(&tw->wake.timer),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	/* G6 */
	cancel(tw, id_of(t));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->wake.timer));
}

static void a_full_inbox_is_emptied_turn_by_turn(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, INBOX_WATERMARK - 1, NULL);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	arm_many(test, 1, NULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	/* G2: a turn takes TURN_BUDGET of them. */
	KUNIT_EXPECT_EQ(test, pass(tw), (unsigned int)INBOX_WATERMARK / TURN_BUDGET);
	KUNIT_EXPECT_EQ(test, tw->wheel.nr_entries, (u64)INBOX_WATERMARK);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), 0);
	/* They expire, by turns as well, and give their room back. */
	tw->clock.virtual_now_ns += 100 * TICK_NS;
	KUNIT_EXPECT_GT(test, pass(tw), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)INBOX_WATERMARK);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

static void entries_of_the_cancelled_are_swept(struct kunit *test)
{
	const unsigned int nr = SWEEP_SLACK + 500;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i, passes = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	arm_many(test, nr, ids);
	pass(tw);
	/* One in a thousand lives on. */
	for (i = 0; i < nr; i++)
		if (i % 1000)
			cancel(tw, ids[i]);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	do {
		pass(tw);
		KUNIT_ASSERT_LT(test, ++passes, 100U);
	} while (work_take(tw));
	KUNIT_EXPECT_LE(test, atomic_long_read(&tw->room.used),
			7L + SWEEP_SLACK);
	audit(test);
	tw->clock.virtual_now_ns += 10 * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr / 1000 + 1);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

static void chunks_that_nobody_needs_are_freed(struct kunit *test)
{
	const unsigned int nr = 2 * SWEEP_SLACK + 100;
	struct twheel *tw = wheel_with(test, flags, TWHEEL_SETUP_ONE_LEVEL);
	u64 chunks;

	KUNIT_ASSERT_EQ(test, twheel_room_take(tw, nr), 0);
	twheel_gifts_accept(tw);
	chunks = tw->room.nr_chunk_pages;
	/* Needed, they stay. */
	KUNIT_EXPECT_FALSE(test, twheel_room_shrink(tw));
	KUNIT_EXPECT_EQ(test, tw->room.nr_chunk_pages, chunks);
	room_give(&tw->room, nr - 1);
	while (twheel_room_shrink(tw))
		;
	KUNIT_EXPECT_LT(test, tw->room.nr_chunk_pages, chunks);
	KUNIT_EXPECT_GE(test, tw->room.provided, 1L);
	KUNIT_EXPECT_GE(test, tw->room.nr_chunk_pages,
			twheel_wheel_pages_for(&tw->wheel, tw->room.provided));
	KUNIT_EXPECT_EQ(test, tw->wheel.nr_free,
			tw->room.nr_chunk_pages * TWHEEL_CHUNKS_PER_PAGE);
	room_give(&tw->room, 1);
}

/* In the wheel, a tick apart, the first one 10 ticks ahead. */
static void row_arm(struct kunit *test, unsigned int nr, u64 *ids)
{
	struct twheel *tw = test->priv;
	unsigned int i;

	for (i = 0; i < nr; i++)
		ids[i] = id_of(arm(test, &(struct twheel_arm) {
			.expires_ns = (10 + i) * TICK_NS }));
	pass(tw);
	KUNIT_ASSERT_EQ(test, tw->wake.at_ns, START_NS + 10 * TICK_NS);
}

/* More than one level reaches. */
#define ROW	200

static void slots_of_the_cancelled_are_cleared_ahead_of_time(struct kunit *test)
{
	static u64 ids[ROW];
	struct twheel *tw = test->priv;
	unsigned int i;

	row_arm(test, ROW, ids);
	for (i = 0; i < ROW - 1; i++)
		cancel(tw, ids[i]);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass(tw);
	/* One slot is all there is, of 32 ticks: it is for the last one. */
	KUNIT_EXPECT_LE(test, atomic_long_read(&tw->room.used), 32L);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	KUNIT_EXPECT_GT(test, tw->wake.at_ns, START_NS + 100 * TICK_NS);
	KUNIT_EXPECT_LE(test, tw->wake.at_ns, START_NS + (9 + ROW) * TICK_NS);
	cancel(tw, ids[ROW - 1]);
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
}

static void slots_of_what_was_moved_later_are_cleared_ahead_of_time(struct kunit *test)
{
	static u64 ids[ROW];
	struct twheel *tw = test->priv;
	u64 last_ns = START_NS + 10000 * TICK_NS;
	unsigned int i;

	row_arm(test, ROW, ids);
	for (i = 0; i < ROW; i++)
		rearm(tw, ids[i], &(struct twheel_arm) {
			.expires_ns = last_ns, .flags = TWHEEL_ARM_ABSOLUTE });
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), (long)ROW);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	KUNIT_EXPECT_GT(test, tw->wake.at_ns, START_NS + 1000 * TICK_NS);
	audit(test);
	tw->clock.virtual_now_ns = last_ns - 1;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	tw->clock.virtual_now_ns = last_ns;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)ROW);
}

/* What lives is what the alarm is set for, whatever is in its slot besides. */
static void what_lives_stays_where_it_is(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 inserted, ids[20];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = id_of(arm_like(test, 0));
	pass(tw);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		if (i != 13)
			cancel(tw, ids[i]);
	inserted = nr_inserted;
	for (i = 0; i < 3; i++) {
		pass(tw);
		KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + 6 * TICK_NS);
		KUNIT_EXPECT_EQ(test, nr_inserted, inserted);
		audit(test);
	}
	tw->clock.virtual_now_ns += 6 * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/* G2: the inbox, and what is due, do not wait until all is looked at. */
static void looking_ahead_goes_by_turns(struct kunit *test)
{
	const unsigned int nr = 3 * TURN_BUDGET;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i, passes = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	/* As many live: it is not for a sweep. */
	arm_many(test, nr, ids);
	pass(tw);
	for (i = 0; i < nr; i++)
		rearm(tw, ids[i], &(struct twheel_arm) {
			.expires_ns = 1000 * TICK_NS });
	do {
		KUNIT_EXPECT_EQ(test, pass(tw), 1U);
		if (++passes == 2)
			arm_like(test, OV);
		KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)(passes > 2));
		KUNIT_ASSERT_LT(test, passes, 10U);
	} while (work_take(tw));
	KUNIT_EXPECT_GE(test, passes, 3U);
	KUNIT_EXPECT_GT(test, tw->wake.at_ns, START_NS + 100 * TICK_NS);
}

/*
 * G7: idle connections, each refreshed much more often than it is long, beside
 * passes in each tick.  What a pass is for must not matter.
 */
#define LENGTH	300
#define ROUNDS	4

static u64 moves_of_idle_connections(struct kunit *test, u64 *ids,
				     unsigned int nr, u64 beside_ns)
{
	struct twheel *tw = test->priv;
	unsigned int tick, i = 0;
	u64 moves = 0;

	for (tick = 0; tick < ROUNDS * LENGTH; tick++) {
		u64 inserted;
		unsigned int k;

		/* All of them in a tenth of their length. */
		for (k = 0; k < nr / (LENGTH / 10); k++, i++)
			rearm(tw, ids[i % nr], &(struct twheel_arm) {
				.expires_ns = LENGTH * TICK_NS });
		if (beside_ns != WAKE_NEVER)
			arm(test, &(struct twheel_arm) { .expires_ns = beside_ns });
		inserted = nr_inserted;
		pass(tw);
		moves += nr_inserted - inserted - (beside_ns != WAKE_NEVER);
		while (read_one(tw, NULL))
			;
		tw->clock.virtual_now_ns += TICK_NS;
	}
	return moves;
}

static void a_refreshed_timeout_moves_twice_in_its_length_at_most(struct kunit *test)
{
	static const u64 beside_ns[] = {
		WAKE_NEVER, 0, 1, TICK_NS, 7 * TICK_NS, LENGTH / 3 * TICK_NS,
	};
	static u64 ids[LENGTH];
	struct twheel *tw = test->priv;
	unsigned int i;
	u64 moves;

	/* One that is there all the time, and is never moved. */
	arm(test, &(struct twheel_arm) {
		.expires_ns = 100 * ROUNDS * LENGTH * TICK_NS });
	for (i = 0; i < LENGTH; i++)
		ids[i] = id_of(arm(test, &(struct twheel_arm) {
			.expires_ns = LENGTH * TICK_NS }));
	pass(tw);
	for (i = 0; i < ARRAY_SIZE(beside_ns); i++) {
		moves = moves_of_idle_connections(test, ids, LENGTH, beside_ns[i]);
		KUNIT_EXPECT_LE_MSG(test, moves, (u64)2 * (ROUNDS + 1) * LENGTH,
				    "beside %llu ns", beside_ns[i]);
		kunit_info(test, "%llu moves of %u in %u lengths beside %lld ns\n",
			   moves, LENGTH, ROUNDS, (s64)beside_ns[i]);
	}
	for (i = 0; i < LENGTH; i++)
		KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
}

/*
 * G6: entries that are left alone, since they would move by little, wake the
 * kthread no more often than the time to the first live one can be halved.
 */
static void wake_ups_in_vain_are_few_before_the_first_is_due(struct kunit *test)
{
	const unsigned int nr = 4000;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	u64 first_ns = START_NS + (nr + 10) * TICK_NS;
	unsigned int i, woken = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	row_arm(test, nr, ids);
	for (i = 0; i < nr; i++)
		rearm(tw, ids[i], &(struct twheel_arm) {
			.expires_ns = first_ns, .flags = TWHEEL_ARM_ABSOLUTE });
	while (!tw->events.nr_unread) {
		/* Levels are emptied on the way: of these there are three. */
		KUNIT_ASSERT_LT(test, woken++, 13U + 20);
		KUNIT_ASSERT_LE(test, tw->wake.at_ns, first_ns);
		tw->clock.virtual_now_ns = max(tw->clock.virtual_now_ns, tw->wake.at_ns);
		pass(tw);
	}
	KUNIT_EXPECT_EQ(test, tw->clock.virtual_now_ns, first_ns);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr);
	kunit_info(test, "%u wake-ups\n", woken);
}

/* The whole, with a thread */

static void advance_and_drain_return_when_it_can_all_be_read(struct kunit *test)
{
	struct twheel *tw = wheel_remake(test, &usual_setup);
	unsigned int i;

	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	for (i = 0; i < 100; i++)
		arm(test, &(struct twheel_arm) { .expires_ns = i * TICK_NS });
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, 49 * TICK_NS), 0);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 50U);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, 48 * TICK_NS), -EINVAL);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, BIT_ULL(63)), -EINVAL);
	KUNIT_EXPECT_EQ(test, tw->clock.virtual_now_ns, 49 * TICK_NS);
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 100U);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, 50 * TICK_NS), -ESHUTDOWN);
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 50ULL);
	KUNIT_EXPECT_EQ(test, tw->events.drained_out, 50ULL);
}

/* From now on whoever sleeps for long is interrupted: nobody is to do so. */
static void fatal_signal_send(void)
{
	spin_lock_irq(&current->sighand->siglock);
	sigaddset(&current->pending.signal, SIGKILL);
	set_thread_flag(TIF_SIGPENDING);
	spin_unlock_irq(&current->sighand->siglock);
}

static void fatal_signal_forget(void)
{
	flush_signals(current);
}

/* Arm one, and its result. */
static int arm_result(struct twheel *tw, u64 *id)
{
	struct twheel_arm how = arm_of(0, 0);
	struct twheel_arming arming;
	int err;

	err = twheel_arm_prepare(tw, &how, 1, &arming);
	if (!err && !how.result)
		err = twheel_arm_commit(tw, &arming, 1);
	*id = how.id;
	return err ?: how.result;
}

/*
 * The thread is away, so that what was cancelled young stays in the inbox.  It is
 * waited for when as many places as there may be are used up by these.
 */
static void arming_beside_a_busy_thread_waits_for_it_last_of_all(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, PLACES_PER_PAGE);
	const unsigned int most = arena_limit(&tw->arena) / PLACES_PER_PAGE *
				  PLACES_PER_PAGE;
	unsigned int i;
	u32 nr_pages;
	u64 id;

	fatal_signal_send();
	for (i = 0; i < most; i++) {
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
	}
	for (i = 0; arm_result(tw, &id) == 0; i++) {
		KUNIT_ASSERT_LT(test, i, (unsigned int)PLACES_PER_PAGE);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
	}
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), -EINTR);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 0);
	fatal_signal_forget();

	nr_pages = tw->arena.places.nr;
	work_take(tw);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	for (i = 0; i < 3 * PLACES_PER_PAGE; i++) {
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
	}
	KUNIT_EXPECT_EQ(test, tw->arena.places.nr, nr_pages);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, 0), 0);
}

/* A part of twheel_arena_shrink().  False if it is over. */
static bool shrink_some(struct twheel *tw)
{
	struct budget budget = { .entries = 20 * SHRINK_STEP, .end_ns = U64_MAX };

	twheel_arena_shrink(tw, &budget);
	/* Who is to go on with it later. */
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	return tw->shrink.running;
}

/* All of it, in turns. */
static void shrink(struct kunit *test)
{
	struct twheel *tw = test->priv;

	tw->shrink.due = true;
	pass(tw);
	KUNIT_EXPECT_FALSE(test, tw->shrink.running);
	rcu_barrier();
}

static void expect_little_is_left(struct kunit *test)
{
	struct twheel *tw = test->priv;

	KUNIT_EXPECT_LE(test, arena_size(&tw->arena),
			(u64)FREE_SLACK / 2 + PLACES_PER_PAGE);
}

/* MAX_PENDING of them in the wheel; to be freed by kunit_kfree(). */
static u64 *arm_all(struct kunit *test)
{
	u64 *ids = kunit_kcalloc(test, MAX_PENDING, sizeof(*ids), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ids);
	arm_many(test, MAX_PENDING, ids);
	return ids;
}

static void pages_of_a_burst_are_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	shrink(test);
	expect_little_is_left(test);
	audit(test);
	/* And once more, where pages were freed. */
	arm_many(test, MAX_PENDING, NULL);
	audit(test);
}

static void pages_of_the_cancelled_young_are_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	shrink(test);
	expect_little_is_left(test);
}

/* They hold the mutex, and perhaps for long: it is tried again. */
static void pages_are_given_back_when_nobody_is_adding_any_more(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	u64 size = arena_size(&tw->arena);
	unsigned int i;

	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	mutex_lock(&tw->arena.mutex);
	for (i = 0; i < 100; i++)
		shrink_some(tw);
	mutex_unlock(&tw->arena.mutex);
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
	KUNIT_EXPECT_TRUE(test, tw->shrink.wanted);
	shrink(test);
	expect_little_is_left(test);
}

/* In every turn of it all of max_pending may be armed. */
static void places_are_there_while_pages_are_looked_for(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id, *ids = arm_all(test);
	u64 size = arena_size(&tw->arena);
	unsigned int i, nr = 0;
	bool more = true;

	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		if (i * 7919U % 10 < 6)
			cancel(tw, ids[i]);
	fatal_signal_send();
	while (atomic_read(&tw->arena.live) < MAX_PENDING) {
		if (more && nr++ % 1000 == 0)
			more = shrink_some(tw);
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
	}
	fatal_signal_forget();
	work_take(tw);
	/* No page was free as a whole, and no place away. */
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
	shrink(test);
}

/*
 * Between its being picked and its places being found somebody takes one.  It is
 * kept, with all of them, and looked at again when that one is free.
 */
static void a_page_that_is_used_again_is_kept(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	u64 id, size = arena_size(&tw->arena);
	unsigned int i;

	pass(tw);
	/* What was cancelled last is used first, and the first pages are picked. */
	for (i = MAX_PENDING; i-- > 0;)
		cancel(tw, ids[i]);
	for (i = 0; i < 1000 && tw->shrink.step.phase <= SHRINK_PICKS; i++)
		shrink_some(tw);
	for (i = 0; i < 300; i++)
		KUNIT_ASSERT_EQ(test, arm_result(tw, &ids[i]), 0);
	while (shrink_some(tw))
		;
	rcu_barrier();
	KUNIT_EXPECT_TRUE(test, tw->shrink.step.in_vain);
	KUNIT_EXPECT_LT(test, arena_size(&tw->arena), size);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 300);
	for (i = 0; i < 300; i++)
		KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), 0);
	pass(tw);
	audit(test);
	shrink(test);
	expect_little_is_left(test);
}

/**
 * struct holder - someone who holds a mutex
 * @work: he
 * @mutex: it
 * @holds: he has it
 * @done: he may let go
 */
struct holder {
	struct kthread_work work;
	struct mutex *mutex;		/* any of a wheel's */
	struct completion holds;
	struct completion done;
};

static void hold(struct kthread_work *work)
{
	struct holder *holder = container_of(work, struct holder, work);

	mutex_lock(holder->mutex);
	complete(&holder->holds);
	/* For ever, as far as who waits can tell. */
	wait_for_completion_timeout(&holder->done, 3 * HZ);
	mutex_unlock(holder->mutex);
}

static void expect_killable(struct kunit *test, struct mutex *mutex)
{
	struct holder holder = { .mutex = mutex };
	u64 id;

	init_completion(&holder.holds);
	init_completion(&holder.done);
	kthread_init_work(&holder.work, hold);
	kthread_queue_work(workers[0], &holder.work);
	wait_for_completion(&holder.holds);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, arm_result(test->priv, &id), -EINTR);
	fatal_signal_forget();
	complete(&holder.done);
	kthread_flush_worker(workers[0]);
}

static void a_fatal_signal_ends_waiting_for_who_allocates(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id;

	expect_killable(test, &tw->room.mutex);
	expect_killable(test, &tw->arena.mutex);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), 0);
}

/* What is there then is of use to who maps it next. */
static void a_fatal_signal_ends_making_a_large_table(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i;
	u32 nr;

	arm_all(test);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -EINTR);
	KUNIT_EXPECT_LT(test, tw->words.pages.nr, 3U);
	KUNIT_EXPECT_FALSE(test, tw->words.made);
	fatal_signal_forget();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	nr = DIV_ROUND_UP(arena_size(&tw->arena), WORDS_PER_PAGE);
	KUNIT_EXPECT_EQ(test, tw->words.pages.nr, nr);
	for (i = 0; i < MAX_PENDING; i++) {
		u64 word;

		rcu_read_lock();
		word = *word_at(&tw->words, i);
		rcu_read_unlock();
		KUNIT_ASSERT_EQ(test, word, 1ULL);
	}
	pass(tw);
}

/* Set-up and the module */

static void a_set_up_outside_the_limits_is_refused(struct kunit *test)
{
	static const struct { struct twheel_setup setup; int says; } rows[] = {
		{ {}, 0 },
		{ { .clock = TWHEEL_CLOCK_VIRTUAL }, 0 },
		{ { .clock = TWHEEL_CLOCK_VIRTUAL + 1 }, -EINVAL },
		{ { .clock = U32_MAX }, -EINVAL },
		{ { .tick_ns = TWHEEL_TICK_MIN_NS }, 0 },
		{ { .tick_ns = TWHEEL_TICK_MIN_NS - 1 }, -EINVAL },
		{ { .tick_ns = TWHEEL_TICK_MAX_NS }, 0 },
		{ { .tick_ns = TWHEEL_TICK_MAX_NS + 1 }, -EINVAL },
		{ { .slots = TWHEEL_SLOTS_MIN }, 0 },
		{ { .slots = TWHEEL_SLOTS_MIN - 1 }, -EINVAL },
		{ { .slots = TWHEEL_SLOTS_MAX }, 0 },
		{ { .slots = TWHEEL_SLOTS_MAX + 1 }, -EINVAL },
		{ { .max_pending = 16777216 }, 0 },
		{ { .max_pending = 16777217 }, -EINVAL },
		{ { .flags = TWHEEL_SETUP_ONE_LEVEL }, 0 },
		{ { .flags = TWHEEL_SETUP_ONE_LEVEL << 1 }, -EINVAL },
		{ { .flags = BIT(31) }, -EINVAL },
		{ { .reserved = 1 }, -EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, setup_check(&rows[i].setup),
				    rows[i].says, "row %u", i);
	KUNIT_EXPECT_EQ(test, twheel_configure(test->priv, &rows[0].setup),
			-EBUSY);
}

#define EXPECT_PARAMETER(test, name, value, good)			\
do {									\
	typeof(name) *parameter = &(name);				\
	const typeof(name) was = *parameter;				\
									\
	*parameter = value;						\
	KUNIT_EXPECT_EQ(test, parameters_check(), (good) ? 0 : -EINVAL);	\
	*parameter = was;						\
} while (0)

static void module_parameters_outside_their_range_are_refused(struct kunit *test)
{
	EXPECT_PARAMETER(test, default_tick_us, 0, false);
	EXPECT_PARAMETER(test, default_tick_us, 1, true);
	EXPECT_PARAMETER(test, default_tick_us, 3600000000U, true);
	EXPECT_PARAMETER(test, default_tick_us, 3600000001U, false);
	EXPECT_PARAMETER(test, max_pending_limit, 0, false);
	EXPECT_PARAMETER(test, max_pending_limit, BIT(30), true);
	EXPECT_PARAMETER(test, max_pending_limit, BIT(30) + 1, false);
	EXPECT_PARAMETER(test, max_memory_kb, 255, false);
	EXPECT_PARAMETER(test, max_memory_kb, 256, true);
	EXPECT_PARAMETER(test, max_memory_kb, ULONG_MAX, true);
	EXPECT_PARAMETER(test, max_user_memory_kb, 127, false);
	EXPECT_PARAMETER(test, max_user_memory_kb, 128, true);
	EXPECT_PARAMETER(test, max_user_memory_kb, ULONG_MAX, true);
	EXPECT_PARAMETER(test, kthreads, 64, true);
	EXPECT_PARAMETER(test, kthreads, 65, false);
	EXPECT_PARAMETER(test, kthread_nice, -21, false);
	EXPECT_PARAMETER(test, kthread_nice, 19, true);
	EXPECT_PARAMETER(test, kthread_nice, 20, false);
}

/* Nobody has a wheel when the module is loaded. */
static void a_device_that_cannot_be_registered_leaves_nothing(struct kunit *test)
{
	engine_case_exit(test);
	test->priv = NULL;
	KUNIT_EXPECT_EQ(test, twheel_charged(), 0L);
	KUNIT_EXPECT_EQ(test, chardev_registered, 1);
	twheel_module_exit();
	KUNIT_EXPECT_EQ(test, chardev_registered, 0);
	chardev_errno = -EBUSY;
	KUNIT_EXPECT_EQ(test, twheel_module_init(), -EBUSY);
	chardev_errno = 0;
	KUNIT_EXPECT_EQ(test, nr_workers, 0U);
	KUNIT_ASSERT_EQ(test, twheel_module_init(), 0);
	KUNIT_EXPECT_EQ(test, nr_workers, min(num_online_cpus(), 4U));
	KUNIT_EXPECT_EQ(test, chardev_registered, 1);
}

static size_t table_bytes(const struct twheel_pages *pages)
{
	struct twheel_table *table = rcu_dereference_raw(pages->table);

	return table ? table->size : 0;
}

/* What a wheel was charged is what it has. */
static void expect_charged_for_all(struct kunit *test)
{
	struct twheel *tw = test->priv;
	size_t slots = 0, bytes = WHEEL_SIZE + tw->room.nr_chunk_pages * PAGE_SIZE;
	u32 nr;

	for (nr = 0; nr < tw->wheel.nr_levels; nr++) {
		u32 nr_slots = tw->wheel.level[nr].mask + 1;

		slots += nr_slots * sizeof(void *) +
			 BITS_TO_LONGS(nr_slots) * sizeof(long);
	}
	bytes += PAGE_ALIGN(slots) + table_bytes(&tw->arena.places) +
		 table_bytes(&tw->words.pages) + (tw->words.hole ? PAGE_SIZE : 0);
	for (nr = 0; nr < tw->words.pages.nr; nr++)
		if (look_at_words(tw, nr))
			bytes += PAGE_SIZE;
	for (nr = 0; nr < tw->arena.places.nr; nr++) {
		struct twheel_page *page = look_at_page(tw, nr);
		struct twheel_page *beside = look_at_page(tw, nr ^ 1);

		if (!page)
			continue;
		bytes += PAGE_SIZE;
		/* Of two that share one, the first pays. */
		if (page->periodic && !(nr & 1 && beside && beside->periodic))
			bytes += PAGE_SIZE;
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), (long)bytes);
}

static void all_memory_is_charged_and_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	/* Beside the wheel, the user takes a little. */
	long beside = twheel_charged() - atomic_long_read(&tw->memory.charged);
	struct twheel_timeout *t;
	unsigned int i;
	u64 *ids;

	KUNIT_EXPECT_GT(test, beside, 0L);
	expect_charged_for_all(test);
	t = arm_like(test, STATE_PERIODIC);
	expect_charged_for_all(test);
	KUNIT_EXPECT_EQ(test, cancel(tw, id_of(t)), TWHEEL_WAS_PENDING);
	ids = arm_all(test);
	expect_charged_for_all(test);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	expect_charged_for_all(test);
	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	shrink(test);
	flush_work(&tw->words.work);
	tw->clock.virtual_now_ns += 10 * TICK_NS;
	pass(tw);
	expect_charged_for_all(test);
	KUNIT_EXPECT_EQ(test, twheel_charged() - atomic_long_read(&tw->memory.charged), beside);
}

/* Two pages of places that are side by side share a page for what is periodic. */
static void what_is_periodic_goes_with_the_last_page_that_needs_it(struct kunit *test)
{
	struct twheel_periodic_page *both;
	struct twheel *tw = test->priv;
	struct twheel_page *page[2];
	long charged;
	u64 *ids;
	u32 i;

	ids = arm_all(test);
	for (i = 0; i < 2; i++) {
		page[i] = look_at_page(tw, i);
		KUNIT_ASSERT_NOT_NULL(test, page[i]);
	}
	charged = atomic_long_read(&tw->memory.charged);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, twheel_periodic_provide(tw, i * PLACES_PER_PAGE), 0);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
				charged + (long)PAGE_SIZE);
	}
	both = periodic_page(page[0]->periodic);
	KUNIT_EXPECT_PTR_EQ(test, page[0]->periodic, &both->half[0]);
	KUNIT_EXPECT_PTR_EQ(test, page[1]->periodic, &both->half[1]);
	/* One that is far from them has its own. */
	KUNIT_ASSERT_EQ(test, twheel_periodic_provide(tw, 5 * PLACES_PER_PAGE), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
			charged + 2 * (long)PAGE_SIZE);
	KUNIT_EXPECT_FALSE(test, periodic_remove(page[1]));
	KUNIT_EXPECT_TRUE(test, periodic_remove(page[0]));
	both->nr_halves = 2;
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink(test);
	expect_charged_for_all(test);
}

/* What RCU has yet to free is there, and counted. */
static void memory_is_charged_until_it_is_free(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	long charged;
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink_begin(tw);
	while (tw->shrink.step.phase != SHRINK_FREES)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	charged = atomic_long_read(&tw->memory.charged);
	rcu_read_lock();
	while (tw->shrink.step.phase == SHRINK_FREES)
		KUNIT_EXPECT_TRUE(test, shrink_step(tw));
	KUNIT_EXPECT_GT(test, tw->arena.nr_removed, 0UL);
	KUNIT_EXPECT_GT(test, atomic_read(&tw->arena.nr_leaving), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), charged);
	rcu_read_unlock();
	rcu_barrier();
	shrink(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.nr_leaving), 0);
	KUNIT_EXPECT_LT(test, atomic_long_read(&tw->memory.charged), charged);
	expect_charged_for_all(test);
}

/* While they are given back, others come: these are looked for when they are free. */
static void a_burst_beside_giving_back_is_given_back_too(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	for (i = 100; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink_begin(tw);
	KUNIT_EXPECT_EQ(test, tw->shrink.below, 50U);
	while (tw->shrink.step.phase != SHRINK_FREES)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	mutex_lock(&tw->arena.mutex);
	KUNIT_ASSERT_EQ(test, arena_grow(tw), 0);
	mutex_unlock(&tw->arena.mutex);
	shrink(test);
	KUNIT_EXPECT_FALSE(test, tw->shrink.step.in_vain);
	KUNIT_EXPECT_EQ(test, tw->shrink.below, U32_MAX);
}

/* What a user sees of the refresh table at a page's number. */
static void *words_seen_by_users(struct twheel *tw, unsigned long nr)
{
	struct page *page = twheel_words_lock(tw, nr);
	void *words;

	if (!page)
		return NULL;
	words = page_address(page);
	unlock_page(page);
	put_page(page);
	return words;
}

static void words_go_with_their_places_and_come_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 nr, left = 0, nr_pages;
	unsigned int i;
	u64 *ids;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	ids = arm_all(test);
	nr_pages = tw->words.pages.nr;
	KUNIT_ASSERT_GT(test, nr_pages, 3U);
	for (nr = 0; nr < nr_pages; nr++)
		KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
				    look_at_words(tw, nr));
	KUNIT_EXPECT_NULL(test, words_seen_by_users(tw, nr_pages));
	KUNIT_EXPECT_NULL(test, words_seen_by_users(tw, ULONG_MAX));
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink(test);
	flush_work(&tw->words.work);
	for (nr = 0; nr < nr_pages; nr++) {
		bool wanted;

		mutex_lock(&tw->arena.mutex);
		wanted = words_are_wanted(tw, nr);
		mutex_unlock(&tw->arena.mutex);
		KUNIT_EXPECT_EQ(test, wanted, !!look_at_words(tw, nr));
		left += wanted;
		if (!wanted)
			KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
					    tw->words.hole);
	}
	KUNIT_EXPECT_LT(test, left, nr_pages);
	/* The end stays where it was: who has an old id does not get a signal. */
	KUNIT_EXPECT_EQ(test, tw->words.pages.nr, nr_pages);
	expect_charged_for_all(test);

	arm_many(test, MAX_PENDING, ids);
	for (nr = 0; nr < nr_pages; nr++) {
		KUNIT_EXPECT_NOT_NULL(test, look_at_words(tw, nr));
		KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
				    look_at_words(tw, nr));
	}
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]),
				ids[i] >> 32 & TWHEEL_REFRESH_GEN_MASK);
	expect_charged_for_all(test);
}

/* Where a fatal signal ended it, places may come where there were none. */
static void a_table_that_was_not_finished_is_finished_later(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i;
	u64 *ids;

	ids = arm_all(test);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink(test);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	/* As if it had ended at the last page. */
	tw->words.made = false;
	arm_many(test, MAX_PENDING, ids);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]),
				ids[i] >> 32 & TWHEEL_REFRESH_GEN_MASK);
}

static void a_table_that_cannot_be_finished_is_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;
	long charged;

	charged = atomic_long_read(&tw->memory.charged);
	twheel_limit_memory(LONG_MAX, twheel_charged() + 8 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -ENOSPC);
	KUNIT_EXPECT_GT(test, tw->words.pages.nr, 2U);
	flush_work(&tw->words.work);
	/* The table of its pages, and one that users would see in their place. */
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
			charged + 2 * (long)PAGE_SIZE);
	expect_charged_for_all(test);
	limits_init();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]),
				ids[i] >> 32 & TWHEEL_REFRESH_GEN_MASK);
	expect_charged_for_all(test);
}

/* However much it had, and whatever it was used for. */
static void an_emptied_wheel_keeps_little(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int round, i;
	long before;
	u64 *ids;

	before = atomic_long_read(&tw->memory.charged);
	ids = arm_all(test);
	pass(tw);
	for (round = 0; round < 20; round++) {
		struct twheel_arm how = arm_of(0, 0);

		/* Each leaves a stale entry in a slot of its own. */
		for (i = 0; i < 32; i++) {
			how.id = ids[i];
			how.expires_ns = (5000 - 200 * round) * TICK_NS + i * TICK_NS;
			rearm(tw, ids[i], &how);
		}
		pass(tw);
	}
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	KUNIT_EXPECT_TRUE(test, tw->shrink.wanted);
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	do {
		shrink(test);
	} while (work_take(tw));
	KUNIT_EXPECT_LE(test, atomic_long_read(&tw->memory.charged),
			before + 10 * (long)PAGE_SIZE);
	KUNIT_EXPECT_FALSE(test, tw->shrink.wanted);
	expect_charged_for_all(test);
}

/* Of every kind of memory, in the order in which a wheel comes to need it. */
static void a_limit_of_memory_says_enospc_and_takes_nothing(struct kunit *test)
{
	const size_t big = MAX_PENDING * sizeof(struct twheel_timeout);
	struct twheel *tw = test->priv;
	struct twheel_arm how;
	s64 before[NR_TALLIES];
	long charged = twheel_charged(), all, each;
	u64 id;
	int i;

	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	for (i = 0; i < 2; i++) {
		/* The user's, and everybody's. */
		all = i ? charged + big : charged;
		each = i ? charged : charged + big;
		tally_take(tw, before);
		twheel_limit_memory(all, each);
		KUNIT_EXPECT_EQ(test, arm_result(tw, &id), -ENOSPC);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(twheel_create()), -ENOSPC);
		expect_delta(test, before, nothing);
		KUNIT_EXPECT_EQ(test, tw->arena.places.nr, 0U);
		KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	}
	twheel_limit_memory(charged + big, charged + big);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), 0);

	charged = twheel_charged();
	twheel_limit_memory(charged, charged + big);
	how = arm_of(STATE_PERIODIC, 0);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), -ENOSPC);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -ENOSPC);
	/* What is there is no worse for it. */
	how = arm_of(0, 0);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	limits_init();
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
}

/* At the limit; what is in the inbox and what is stale is of use to who arms. */
static void the_room_of_the_cancelled_is_fetched_where_there_is_no_memory(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int round, i, n = 0;
	u64 ids[400];

	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	twheel_limit_memory(twheel_charged() + 8 * PAGE_SIZE, LONG_MAX);
	while (n < ARRAY_SIZE(ids) && !arm_result(tw, &ids[n]))
		n++;
	KUNIT_ASSERT_LT(test, n, (unsigned int)ARRAY_SIZE(ids));
	for (round = 0; round < 4; round++) {
		/* Young, and in the wheel. */
		if (round % 2)
			KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
		for (i = 0; i < n; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
		for (i = 0; i < n; i++)
			KUNIT_ASSERT_EQ(test, arm_result(tw, &ids[i]), 0);
	}
	limits_init();
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
}

static struct kunit_case engine_cases[] = {
	KUNIT_CASE_PARAM(cancel_ends_what_lives_and_says_what_it_was,
			 start_gen_params),
	KUNIT_CASE_PARAM(rearm_to_a_later_time_leaves_the_entry_where_it_is,
			 start_gen_params),
	KUNIT_CASE_PARAM(rearm_to_the_past_goes_through_the_inbox,
			 start_gen_params),
	KUNIT_CASE_PARAM(read_takes_the_event_and_what_ended_with_it,
			 start_gen_params),
	KUNIT_CASE_PARAM(drain_makes_an_event_of_what_is_left, start_gen_params),
	KUNIT_CASE_PARAM(expiry_makes_one_event_and_goes_on_as_the_life_says,
			 start_gen_params),
	KUNIT_CASE_PARAM(the_inbox_lets_in_what_lives_and_frees_what_is_dead,
			 start_gen_params),
	KUNIT_CASE(the_fields_of_the_state_word_stand_apart),
	KUNIT_CASE(the_next_state_is_of_the_same_life),
	KUNIT_CASE(the_flags_of_a_life_last_as_long_as_it),
	KUNIT_CASE(a_place_in_the_wheel_counts_the_sequence_number_up),
	KUNIT_CASE(freeing_counts_the_generation_up_and_clears_the_flags),
	KUNIT_CASE(the_predicates_agree_with_the_banner),
	KUNIT_CASE(a_change_is_made_from_the_state_seen_and_no_other),
	KUNIT_CASE(an_id_is_found_where_something_lives_and_nowhere_else),
	KUNIT_CASE(an_id_of_any_other_generation_names_nothing),
	KUNIT_CASE(an_index_and_its_place_name_each_other),
	KUNIT_CASE(the_first_id_of_a_place_is_not_0),
	KUNIT_CASE_PARAM(a_deadline_is_rounded_up_to_its_tick, tick_gen_params),
	KUNIT_CASE_PARAM(the_end_of_time_has_a_tick_that_no_clock_reaches,
			 tick_gen_params),
	KUNIT_CASE_PARAM(the_clock_may_stand_at_the_end_of_time, tick_gen_params),
	KUNIT_CASE_PARAM(the_next_expiry_is_one_that_comes, tick_gen_params),
	KUNIT_CASE(times_add_up_to_the_end_of_time_at_the_most),
	KUNIT_CASE(periods_are_counted_as_if_one_by_one),
	KUNIT_CASE(what_is_malformed_is_refused),
	KUNIT_CASE(a_life_is_what_was_asked_for_within_bounds),
	KUNIT_CASE(places_are_counted_exactly),
	KUNIT_CASE(over_the_limit_an_entry_says_eagain_and_nothing_is_taken),
	KUNIT_CASE(what_is_prepared_and_not_committed_leaves_no_trace),
	KUNIT_CASE(a_batch_with_bad_entries_arms_the_good_ones),
	KUNIT_CASE(room_is_backed_by_chunks),
	KUNIT_CASE(room_is_counted_right_up_to_the_largest_wheel),
	KUNIT_CASE(the_last_places_of_the_largest_wheel_are_counted_exactly),
	KUNIT_CASE(a_place_whose_generations_are_used_up_retires),
	KUNIT_CASE(no_id_is_given_out_twice_not_even_the_last_ones),
	KUNIT_CASE(a_sequence_number_that_comes_round_leaves_the_generation),
	KUNIT_CASE(an_entry_of_any_other_sequence_number_is_stale),
	KUNIT_CASE(an_entry_of_what_is_not_armed_is_stale),
	KUNIT_CASE_PARAM(a_cancel_that_was_overtaken_touches_nothing,
			 loss_gen_params),
	KUNIT_CASE_PARAM(a_rearm_that_was_overtaken_touches_nothing,
			 loss_gen_params),
	KUNIT_CASE_PARAM(a_read_that_was_overtaken_takes_nothing,
			 loss_gen_params),
	KUNIT_CASE(an_expiry_that_a_cancel_overtook_makes_no_event),
	KUNIT_CASE(a_new_life_begins_from_the_state_seen_and_no_other),
	KUNIT_CASE(nothing_else_is_deferred),
	KUNIT_CASE(an_event_that_grew_is_not_taken_whatever_its_state_says),
	KUNIT_CASE(an_event_that_a_drain_completed_is_looked_at_again),
	KUNIT_CASE(a_batch_of_cancels_stops_at_the_first_that_was_overtaken),
	KUNIT_CASE(what_was_found_before_pages_were_freed_is_looked_up_again),
	KUNIT_CASE(only_what_needs_room_fails_for_want_of_it),
	KUNIT_CASE(a_whole_batch_may_go_without_room),
	KUNIT_CASE(what_needs_room_after_all_is_looked_at_again),
	KUNIT_CASE(a_batch_of_rearms_stops_at_the_first_that_was_overtaken),
	KUNIT_CASE(a_batch_of_events_stops_at_the_first_that_was_overtaken),
	KUNIT_CASE(what_is_armed_beside_a_drain_is_given_back),
	KUNIT_CASE(a_fixed_delay_read_beside_a_drain_ends_with_it),
	KUNIT_CASE(the_ready_list_holds_in_every_order_of_taking),
	KUNIT_CASE(events_come_in_the_order_of_their_ticks),
	KUNIT_CASE(an_event_tells_whose_it_is_and_when_it_was),
	KUNIT_CASE(any_number_of_periods_passes_at_once),
	KUNIT_CASE(periods_that_pass_while_an_event_is_copied_are_in_the_next),
	KUNIT_CASE(periods_of_an_unread_event_are_counted_when_it_is_settled),
	KUNIT_CASE(a_limit_that_is_reached_unread_ends_with_the_read),
	KUNIT_CASE(a_drained_event_counts_the_periods_that_passed_unread),
	KUNIT_CASE(a_limit_bounds_what_passes_at_once),
	KUNIT_CASE(nothing_expires_before_its_tick),
	KUNIT_CASE(what_was_moved_later_waits_for_its_new_tick),
	KUNIT_CASE(what_was_overdue_until_the_clock_was_set_back_waits_again),
	KUNIT_CASE(a_clock_set_back_is_followed_by_turns),
	KUNIT_CASE(lateness_counts_from_the_deadline_but_not_of_the_overdue),
	KUNIT_CASE_PARAM(query_tells_what_a_timeout_is_doing, start_gen_params),
	KUNIT_CASE(what_is_far_wakes_nobody_and_sets_the_alarm),
	KUNIT_CASE(what_is_overdue_wakes_at_once),
	KUNIT_CASE(what_comes_during_a_pass_is_looked_at_when_it_ends),
	KUNIT_CASE(an_alarm_is_set_on_the_clock_of_the_machine),
	KUNIT_CASE(a_real_clock_is_slept_on_and_let_go_when_nothing_pends),
	KUNIT_CASE(a_full_inbox_is_emptied_turn_by_turn),
	KUNIT_CASE(entries_of_the_cancelled_are_swept),
	KUNIT_CASE(chunks_that_nobody_needs_are_freed),
	KUNIT_CASE(slots_of_the_cancelled_are_cleared_ahead_of_time),
	KUNIT_CASE(slots_of_what_was_moved_later_are_cleared_ahead_of_time),
	KUNIT_CASE(what_lives_stays_where_it_is),
	KUNIT_CASE(looking_ahead_goes_by_turns),
	KUNIT_CASE(a_refreshed_timeout_moves_twice_in_its_length_at_most),
	KUNIT_CASE(wake_ups_in_vain_are_few_before_the_first_is_due),
	KUNIT_CASE(advance_and_drain_return_when_it_can_all_be_read),
	KUNIT_CASE(arming_beside_a_busy_thread_waits_for_it_last_of_all),
	KUNIT_CASE(pages_of_a_burst_are_given_back),
	KUNIT_CASE(pages_of_the_cancelled_young_are_given_back),
	KUNIT_CASE(pages_are_given_back_when_nobody_is_adding_any_more),
	KUNIT_CASE(places_are_there_while_pages_are_looked_for),
	KUNIT_CASE(a_page_that_is_used_again_is_kept),
	KUNIT_CASE(a_fatal_signal_ends_waiting_for_who_allocates),
	KUNIT_CASE(a_fatal_signal_ends_making_a_large_table),
	KUNIT_CASE(a_set_up_outside_the_limits_is_refused),
	KUNIT_CASE(module_parameters_outside_their_range_are_refused),
	KUNIT_CASE(a_device_that_cannot_be_registered_leaves_nothing),
	KUNIT_CASE(all_memory_is_charged_and_given_back),
	KUNIT_CASE(what_is_periodic_goes_with_the_last_page_that_needs_it),
	KUNIT_CASE(memory_is_charged_until_it_is_free),
	KUNIT_CASE(a_burst_beside_giving_back_is_given_back_too),
	KUNIT_CASE(words_go_with_their_places_and_come_again),
	KUNIT_CASE(a_table_that_was_not_finished_is_finished_later),
	KUNIT_CASE(a_table_that_cannot_be_finished_is_given_back),
	KUNIT_CASE(an_emptied_wheel_keeps_little),
	KUNIT_CASE(a_limit_of_memory_says_enospc_and_takes_nothing),
	KUNIT_CASE(the_room_of_the_cancelled_is_fetched_where_there_is_no_memory),
	{}
};

static int engine_suite_init(struct kunit_suite *suite)
{
	kthread_init_worker(&nobody);
	spin_lock_init(&nobodys.lock);
	INIT_LIST_HEAD(&nobodys.turns);
	nobodys.worker = &nobody;
	kthread_init_work(&nobodys.work, NULL);
	return twheel_module_init();
}

static void engine_suite_exit(struct kunit_suite *suite)
{
	twheel_module_exit();
}

static struct kunit_suite engine_suite = {
	.name = "twheel_engine",
	.suite_init = engine_suite_init,
	.suite_exit = engine_suite_exit,
	.init = engine_case_init,
	.exit = engine_case_exit,
	.test_cases = engine_cases,
};

kunit_test_suite(engine_suite);
