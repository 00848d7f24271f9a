// SPDX-License-Identifier: GPL-2.0
/*
 * The table of transitions: for each state, the outcome of each action
 *
 * The suites of cancel, rearm, read, expire and query take their parameters from here.
 */

/**
 * struct outcome - the effect of an action on a timeout, and its result
 * @state: STATE_* afterwards
 * @said: the result of the action
 * @delta: how the counts change
 */
struct outcome {
	u64 state;
	int said;
	s8 delta[NR_TALLIES];
};

enum outcome_name {
	SAME, SHUT,
	/* cancelled */
	ENDS, REVOKES, REVOKES_BOTH,
	/* re-armed to later */
	RENEWS, RETURNS, RETURNS_BOTH,
	/* re-armed to the past */
	FIRES, FIRES_UNREAD, FIRES_BOTH,
	/* read */
	WAITS_AGAIN, GOES_ON, COMPLETES, OUT,
	/* drained */
	DRAINS, DRAINS_BOTH,
	/* expired */
	EXPIRES, REPEATS,
};

/* "BOTH": the timeout has an unread event and is pending at the same time. */
static const struct outcome outcomes[] = {
	[SHUT]		= { .said = -ESHUTDOWN },

	[ENDS]		= { STATE_FREE, TWHEEL_WAS_PENDING, {
			    [LIVE] = -1, [PENDING] = -1, [CANCELLED] = 1, [PLACES] = -1 } },
	[REVOKES]	= { STATE_FREE, TWHEEL_WAS_UNREAD, {
			    [LIVE] = -1, [UNREAD] = -1, [REVOKED] = 1, [PLACES] = -1 } },
	[REVOKES_BOTH]	= { STATE_FREE, TWHEEL_WAS_UNREAD, {
			    [LIVE] = -1, [UNREAD] = -1, [REVOKED] = 1, [PLACES] = -1,
			    [PENDING] = -1 } },

	[RENEWS]	= { STATE_PENDING, TWHEEL_WAS_PENDING, { [REARMED] = 1 } },
	[RETURNS]	= { STATE_PENDING, TWHEEL_WAS_UNREAD, {
			    [REARMED] = 1, [UNREAD] = -1, [PENDING] = 1 } },
	[RETURNS_BOTH]	= { STATE_PENDING, TWHEEL_WAS_UNREAD, {
			    [REARMED] = 1, [UNREAD] = -1 } },

	[FIRES]		= { STATE_UNREAD, TWHEEL_WAS_PENDING, {
			    [REARMED] = 1, [UNREAD] = 1, [PENDING] = -1, [EXPIRATIONS] = 1 } },
	[FIRES_UNREAD]	= { STATE_UNREAD, TWHEEL_WAS_UNREAD, {
			    [REARMED] = 1, [EXPIRATIONS] = 1 } },
	[FIRES_BOTH]	= { STATE_UNREAD, TWHEEL_WAS_UNREAD, {
			    [REARMED] = 1, [EXPIRATIONS] = 1, [PENDING] = -1 } },

	[WAITS_AGAIN]	= { STATE_PENDING, 1, {
			    [UNREAD] = -1, [PENDING] = 1, [DELIVERED] = 1 } },
	[GOES_ON]	= { STATE_PENDING, 1, { [UNREAD] = -1, [DELIVERED] = 1 } },
	[COMPLETES]	= { STATE_FREE, 1, {
			    [UNREAD] = -1, [DELIVERED] = 1, [LIVE] = -1, [COMPLETED] = 1,
			    [PLACES] = -1 } },
	[OUT]		= { STATE_FREE, 1, {
			    [UNREAD] = -1, [DELIVERED] = 1, [LIVE] = -1, [DRAINED] = 1,
			    [PLACES] = -1 } },

	[DRAINS]	= { STATE_UNREAD, 0, { [UNREAD] = 1, [PENDING] = -1 } },
	[DRAINS_BOTH]	= { STATE_UNREAD, 0, { [PENDING] = -1 } },

	[EXPIRES]	= { STATE_UNREAD, 0, {
			    [UNREAD] = 1, [PENDING] = -1, [EXPIRATIONS] = 1 } },
	[REPEATS]	= { STATE_UNREAD, 0, { [UNREAD] = 1, [EXPIRATIONS] = 1 } },
};

/**
 * struct start - a state to start from, and the outcome of each action
 * @name: the name of the case
 * @kind: the kind of timeout
 * @repeats: the limit that the timeout is armed with
 * @fires: if it expires
 * @drains: if it is drained then
 * @to: the outcome of cancelling, of re-arming to a later time and to the past, of
 *	reading, draining, and expiring at its deadline
 */
struct start {
	const char *name;
	u32 kind;
	u32 repeats;
	bool fires;
	bool drains;
	struct {
		enum outcome_name cancel, later, past, read, drain, expire;
	} to;
};

#define AFTER_ARMED(x)	{ ENDS, RENEWS, FIRES, SAME, DRAINS, x }
#define AFTER_EXPIRED	{ REVOKES, RETURNS, FIRES_UNREAD, COMPLETES, SAME, SAME }
#define AFTER_BOTH	{ REVOKES_BOTH, RETURNS_BOTH, FIRES_BOTH, GOES_ON, DRAINS_BOTH, SAME }
#define AFTER_WAITING	{ REVOKES, RETURNS, FIRES_UNREAD, WAITS_AGAIN, SAME, SAME }
#define AFTER_DRAINED	{ REVOKES, SHUT, SHUT, OUT, SAME, SAME }

static const struct start starts[] = {
	{ "one-shot",			0,	0, 0, 0, AFTER_ARMED(EXPIRES) },
	{ "one-shot with slack",	SL,	0, 0, 0, AFTER_ARMED(EXPIRES) },
	{ "periodic",			PE,	0, 0, 0, AFTER_ARMED(REPEATS) },
	{ "periodic with slack",	PE | SL, 0, 0, 0, AFTER_ARMED(REPEATS) },
	{ "limited",			LI,	2, 0, 0, AFTER_ARMED(REPEATS) },
	{ "limited to one",		LI,	1, 0, 0, AFTER_ARMED(EXPIRES) },
	{ "fixed delay",		FD,	0, 0, 0, AFTER_ARMED(EXPIRES) },
	{ "fixed delay with slack",	FD | SL, 0, 0, 0, AFTER_ARMED(EXPIRES) },
	{ "limited fixed delay",	FD | LI, 2, 0, 0, AFTER_ARMED(EXPIRES) },
	{ "unread one-shot",		0,	0, 1, 0, AFTER_EXPIRED },
	{ "overdue one-shot",		OV,	0, 1, 0, AFTER_EXPIRED },
	{ "overdue one-shot with slack", OV | SL, 0, 1, 0, AFTER_EXPIRED },
	{ "overdue periodic",		OV | PE, 0, 1, 0, AFTER_BOTH },
	{ "overdue fixed delay",	OV | FD, 0, 1, 0, AFTER_WAITING },
	{ "unread one-shot with slack",	SL,	0, 1, 0, AFTER_EXPIRED },
	{ "unread periodic",		PE,	0, 1, 0, AFTER_BOTH },
	{ "unread periodic with slack",	PE | SL, 0, 1, 0, AFTER_BOTH },
	{ "unread limited",		LI,	3, 1, 0, AFTER_BOTH },
	{ "unread limited, none left",	LI,	1, 1, 0, AFTER_EXPIRED },
	{ "waiting fixed delay",	FD,	0, 1, 0, AFTER_WAITING },
	{ "waiting fixed delay with slack", FD | SL, 0, 1, 0, AFTER_WAITING },
	{ "waiting limited fixed delay", FD | LI, 2, 1, 0, AFTER_WAITING },
	{ "spent limited fixed delay",	FD | LI, 1, 1, 0, AFTER_EXPIRED },
	{ "drained one-shot",		0,	0, 0, 1, AFTER_DRAINED },
	{ "drained one-shot with slack", SL,	0, 0, 1, AFTER_DRAINED },
	{ "drained periodic",		PE,	0, 0, 1, AFTER_DRAINED },
	{ "drained unread periodic",	PE,	0, 1, 1, AFTER_DRAINED },
	{ "drained limited",		LI,	2, 0, 1, AFTER_DRAINED },
	{ "drained fixed delay",	FD,	0, 0, 1, AFTER_DRAINED },
	{ "drained waiting fixed delay", FD,	0, 1, 1, AFTER_DRAINED },
};

static void start_name(const struct start *start, char *name)
{
	strscpy(name, start->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(start, starts, start_name);

/* Bring a new timeout into the state @start, by calls and passes alone. */
static struct twheel_timeout *bring(struct kunit *test, const struct start *start, u64 *id)
{
	struct twheel_arm how = arm_of(start->kind, start->repeats);
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm(test, &how);

	*id = how.id;
	if (start->fires)
		expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	if (start->drains)
		drain(tw);
	turn_take(tw);
	KUNIT_ASSERT_EQ(test, state_of(t),
			start->fires || start->drains ? STATE_UNREAD : STATE_PENDING);
	KUNIT_ASSERT_EQ(test, timeout_is_drained(t), start->drains);
	audit(test);
	return t;
}

/* Do one action to a timeout, and return the result of the call. */
typedef int (*action)(struct tw_ctx *tw, struct twheel_timeout *t, u64 id);

/* Check one action on a timeout in one state against the table of outcomes. */
static struct twheel_timeout *expect_outcome(struct kunit *test, action act,
					     enum outcome_name name)
{
	const struct outcome *to = &outcomes[name];
	struct tw_ctx *tw = test->priv;
	s64 before[NR_TALLIES];
	u64 id, state;
	struct twheel_timeout *t = bring(test, test->param_value, &id);

	state = name == SAME || name == SHUT ? state_of(t) : to->state;
	tally_take(tw, before);
	KUNIT_EXPECT_EQ(test, act(tw, t, id), to->said);
	expect_delta(test, before, to->delta);
	KUNIT_EXPECT_EQ(test, state_of(t), state);
	/* G8: if the timeout ends, the next generation comes, and only then. */
	KUNIT_EXPECT_EQ(test, timeout_gen(t), (u32)(id >> GEN_SHIFT) + !state);
	audit(test);
	return t;
}

static int action_cancel(struct tw_ctx *tw, struct twheel_timeout *t, u64 id)
{
	return cancel(tw, id);
}

static int action_rearm_later(struct tw_ctx *tw, struct twheel_timeout *t, u64 id)
{
	return rearm_to(tw, id, .expires_ns = 1000 * TICK_NS);
}

static int action_rearm_past(struct tw_ctx *tw, struct twheel_timeout *t, u64 id)
{
	return rearm_to(tw, id, .flags = TWHEEL_ARM_ABSOLUTE);
}

static int action_read(struct tw_ctx *tw, struct twheel_timeout *t, u64 id)
{
	return read_one(tw, NULL);
}

static int action_drain(struct tw_ctx *tw, struct twheel_timeout *t, u64 id)
{
	twheel_lock(tw);
	timeout_drain(tw, t, time_of(tw));
	twheel_unlock(tw);
	return 0;
}

static int action_expire(struct tw_ctx *tw, struct twheel_timeout *t, u64 id)
{
	expire_at(tw, timeout_known_ns(t) + TICK_NS);
	return 0;
}
