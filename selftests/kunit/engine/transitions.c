// SPDX-License-Identifier: GPL-2.0
/*
 * The table of transitions: from each state there is, the outcome of each deed
 *
 * The suites of cancel, rearm, events, pass and query take their parameters from here.
 * So do the races that are lost: a timeout changes between look and commit.
 */

/**
 * struct outcome - what a deed does to a timeout, and what it says
 * @phase: the phase afterwards
 * @keeps: flags that stay as they were
 * @adds: flags that are set
 * @same: state and counts stay as they are
 * @placed: the sequence number counts up
 * @said: what the deed returns
 * @delta: how the counts change
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
	EXPIRES, WAITS, REPEATS, STALE, DROPS,
	/* came from the inbox */
	ENTERS, BURIED,
};

/* "BOTH": the timeout has an unread event and is pending at the same time. */
static const struct outcome outcomes[] = {
	[SAME]		= { .same = true },
	[GONE]		= { .same = true, .said = -ENOENT },
	[SHUT]		= { .same = true, .said = -ESHUTDOWN },

	[DIES]		= { PHASE_DEAD, .said = TWHEEL_WAS_PENDING, .delta = {
			    [LIVE] = -1, [PENDING] = -1, [CANCELLED] = 1 } },
	[ENDS]		= { PHASE_FREE, .adds = STATE_ENTRY,
			    .said = TWHEEL_WAS_PENDING, .delta = {
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

	[EXPIRES]	= { PHASE_UNREAD, .keeps = STATE_LIFE, .delta = {
			    [UNREAD] = 1, [PENDING] = -1, [EXPIRATIONS] = 1,
			    [ROOM] = -1 } },
	[WAITS]		= { PHASE_UNREAD, .keeps = STATE_LIFE, .delta = {
			    [UNREAD] = 1, [PENDING] = -1, [EXPIRATIONS] = 1 } },
	[REPEATS]	= { PHASE_UNREAD, .keeps = STATE_LIFE, .delta = {
			    [UNREAD] = 1, [EXPIRATIONS] = 1 } },

	[STALE]		= { .same = true, .delta = { [ROOM] = -1 } },
	[DROPS]		= { PHASE_FREE, .delta = { [ROOM] = -1 } },

	[ENTERS]	= { PHASE_ARMED, .keeps = STATE_LIFE | STATE_OVERDUE,
			    .placed = true, .delta = { [INBOX] = -1 } },
	[BURIED]	= { PHASE_FREE, .delta = {
			    [INBOX] = -1, [ROOM] = -1, [PLACES] = 1 } },
};

/**
 * struct start - a state to start from, and the outcome of each deed
 * @name: the name of the case
 * @state: phase and flags
 * @repeats: the limit that the timeout is armed with
 * @fired: with STATE_DRAINED: whether the timeout expires before the drain
 * @to: the outcome of cancelling, of re-arming to a later time and to the past, of
 *	reading, draining, expiring at its deadline, and of emptying the inbox
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
/* A slack of one tick.  The first tick after the deadline is one of those it leaves. */
#define SL	BIT_ULL(STATE_SLACK_SHIFT)

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
/* The entry of the timeout may still come up. */
#define AFTER_DRAINED(x) { REVOKES, SHUT, SHUT, OUT, SAME, x, SAME }
#define AFTER_DEAD	{ GONE, GONE, GONE, SAME, SAME, SAME, BURIED }
#define AFTER_FREE(x)	{ GONE, GONE, GONE, SAME, SAME, x, SAME }

static const struct start starts[] = {
	{ "queued one-shot",		Q,		0, 0, AFTER_QUEUED },
	{ "queued overdue one-shot",	Q | OV,		0, 0, AFTER_QUEUED },
	{ "queued periodic",		Q | PE,		0, 0, AFTER_QUEUED },
	{ "queued overdue periodic",	Q | PE | OV,	0, 0, AFTER_QUEUED },
	{ "queued limited",		Q | LI,		2, 0, AFTER_QUEUED },
	{ "queued fixed delay",		Q | FD,		0, 0, AFTER_QUEUED },
	{ "queued limited fixed delay",	Q | FL,		2, 0, AFTER_QUEUED },
	{ "queued one-shot with slack",	Q | SL,		0, 0, AFTER_QUEUED },
	{ "queued periodic with slack",	Q | PE | SL,	0, 0, AFTER_QUEUED },
	{ "armed one-shot",		A,		0, 0, AFTER_ARMED(EXPIRES) },
	{ "armed overdue one-shot",	A | OV,		0, 0, AFTER_ARMED(EXPIRES) },
	{ "armed periodic",		A | PE,		0, 0, AFTER_ARMED(REPEATS) },
	{ "armed overdue periodic",	A | PE | OV,	0, 0, AFTER_ARMED(REPEATS) },
	{ "armed limited",		A | LI,		2, 0, AFTER_ARMED(REPEATS) },
	{ "armed limited to one",	A | LI,		1, 0, AFTER_ARMED(WAITS) },
	{ "armed fixed delay",		A | FD,		0, 0, AFTER_ARMED(WAITS) },
	{ "armed overdue fixed delay",	A | FD | OV,	0, 0, AFTER_ARMED(WAITS) },
	{ "armed limited fixed delay",	A | FL,		2, 0, AFTER_ARMED(WAITS) },
	{ "armed one-shot with slack",	A | SL,		0, 0, AFTER_ARMED(EXPIRES) },
	{ "armed overdue with slack",	A | OV | SL,	0, 0, AFTER_ARMED(EXPIRES) },
	{ "armed periodic with slack",	A | PE | SL,	0, 0, AFTER_ARMED(REPEATS) },
	{ "armed fixed delay with slack", A | FD | SL,	0, 0, AFTER_ARMED(WAITS) },
	{ "unread one-shot with slack",	U | SL,		0, 0, AFTER_EXPIRED },
	{ "unread periodic with slack",	U | PE | SL,	0, 0, AFTER_BOTH },
	{ "waiting fixed delay with slack", U | FD | SL, 0, 0, AFTER_WAITING },
	{ "drained one-shot with slack", X | SL,	0, 0, AFTER_DRAINED(STALE) },
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
	{ "free, its entry stale",	PHASE_FREE,	0, 0, AFTER_FREE(STALE) },
	{ "free with an entry",	PHASE_FREE | STATE_ENTRY, 0, 0, AFTER_FREE(DROPS) },
};

static void start_name(const struct start *start, char *name)
{
	strscpy(name, start->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(start, starts, start_name);

/* Brings a new timeout into the state @start, by calls and passes alone. */
static struct twheel_timeout *bring(struct kunit *test,
				    const struct start *start, u64 *id)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how = arm_of(start->state, start->repeats);
	enum twheel_phase phase = state_phase(start->state);
	bool drained = phase == PHASE_UNREAD && start->state & STATE_DRAINED;
	struct twheel_timeout *t;

	t = arm(test, &how);
	*id = how.id;
	if (phase != PHASE_QUEUED && phase != PHASE_DEAD)
		enter(tw);
	if (drained ? start->fired : phase == PHASE_UNREAD)
		expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	if (drained)
		drain(tw);
	/* A timeout that moves earlier leaves its entry behind. */
	if (start->state == PHASE_FREE)
		rearm(tw, how.id, &(struct twheel_arm){ .expires_ns = DELAY_NS - 1 });
	if (phase == PHASE_DEAD || phase == PHASE_FREE)
		cancel(tw, how.id);
	if (start->state == PHASE_FREE)
		enter(tw);
	work_take(tw);
	KUNIT_ASSERT_EQ(test, shape_of(timeout_state(t)), start->state);
	audit(test);
	return t;
}

/* Does one thing to a timeout, and returns what the call says. */
typedef int (*deed)(struct twheel *tw, struct twheel_timeout *t, u64 id);

/* Checks one deed to a timeout in one state against the table of outcomes. */
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
			(!to->same && to->phase == PHASE_FREE && !state_is_free(state)));
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

/**
 * struct loss - a change between look and commit
 * @start: the state that the look sees
 * @meanwhile: what another thread does to the timeout then
 */
struct loss {
	struct start start;
	deed meanwhile;
};

/* Ends the timeout, and arms others until its place is in use again. */
static int deed_take_over(struct twheel *tw, struct twheel_timeout *t, u64 id)
{
	int said = cancel(tw, id);

	while (!state_is_live(timeout_state(t))) {
		struct twheel_arm how = arm_of(0, 0);
		struct twheel_arming arming = {};

		if (twheel_arm_prepare(tw, &how, 1, &arming) || how.result < 0 ||
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

/* Runs between look and commit. Neither state nor counts may change after it. */
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
