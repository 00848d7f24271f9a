/* SPDX-License-Identifier: GPL-2.0 */
/*
 * If a race never happened, it proves nothing.  So a test of a race names the outcomes that it has
 * to see, and counts them.  It goes on round after round until its usual time is over and each
 * outcome has come often enough.  If one does not come, the test fails: it says which, and how
 * often the others came.
 *
 *	static struct tw_outcome seen[] = {
 *		[CANCELLED]	= TW_OUTCOME("cancelled in time", TW_A_FEW),
 *		[EXPIRED]	= TW_OUTCOME("expired first", TW_A_FEW),
 *		[ROBBED]	= TW_OUTCOME("found nothing to read", 0),	only reported
 *	};
 *	struct tw_race race = TW_RACE(seen, tw_race_seconds());
 *
 *	while (tw_race_goes_on(&race))
 *		...					tw_saw(&seen[CANCELLED], 1);
 *	EXPECT_RACE(&race);
 *
 * If there is one processor, no outcome is required: one that needs two threads at a time may not
 * come.
 */
#ifndef TWHEEL_OUTCOMES_H
#define TWHEEL_OUTCOMES_H

#include "twheel_test.h"

#include <sched.h>
#include <stdatomic.h>

/* If an outcome came only once, it may be a mistake of the test's own. */
#define TW_A_FEW		3

/*
 * How long a race goes on beyond its usual time, seconds, while an outcome is missing, in a
 * program of TW_USUAL_LIMIT_S. It grows as the limits of single tests do.
 */
#define TW_RACE_PATIENCE_S	30

/* A race leaves this much of the program's time to later tests. */
#define TW_RACE_LEAVES_S	10

struct tw_outcome {
	const char *name;
	unsigned int least;		/* 0: not required */
	_Atomic __u64 count;
};

#define TW_OUTCOME(its_name, at_least)	{ .name = (its_name), .least = (at_least) }

struct tw_race {
	struct tw_outcome *outcomes;
	int nr;
	/* The race lasts this long at least, and has this many rounds. */
	__u64 usual_ns;
	unsigned int usual_rounds;
	__u64 begin_ns;
	unsigned int rounds;
};

#define TW_RACE(its_outcomes, usual_s) {				\
	.outcomes = (its_outcomes),					\
	.nr = ARRAY_SIZE(its_outcomes),					\
	.usual_ns = (usual_s) * TW_SEC,					\
}

/* How long a race usually lasts. */
static inline double tw_race_seconds(void)
{
	return tw_setting("TW_RACE_SECONDS", 2);
}

/* Any thread may call this. */
static inline void tw_saw(struct tw_outcome *outcome, __u64 nr)
{
	atomic_fetch_add_explicit(&outcome->count, nr, memory_order_relaxed);
}

static inline bool tw_outcome_came(const struct tw_outcome *outcome)
{
	return outcome->count >= outcome->least || sysconf(_SC_NPROCESSORS_ONLN) < 2;
}

static inline bool tw_race_has_seen_all(const struct tw_race *race)
{
	int i;

	for (i = 0; i < race->nr; i++)
		if (!tw_outcome_came(&race->outcomes[i]))
			return false;
	return true;
}

/* Return whether there is another round; there always is a first one. */
static inline bool tw_race_goes_on(struct tw_race *race)
{
	__u64 now_ns = tw_now(CLOCK_MONOTONIC), patience_ns, spent_ns;

	if (!race->rounds++) {
		race->begin_ns = now_ns;
		return true;
	}
	spent_ns = now_ns - race->begin_ns;
	if (spent_ns < race->usual_ns || race->rounds <= race->usual_rounds)
		return true;
	patience_ns = TW_RACE_PATIENCE_S * TW_SEC * tw_program_limit_s() / TW_USUAL_LIMIT_S;
	if (!tw_race_has_seen_all(race) && spent_ns < race->usual_ns + patience_ns &&
	    tw_program_left_s() > TW_RACE_LEAVES_S)
		return true;
	race->rounds--;
	return false;
}

/*
 * The time at which the round that begins now has to end, if it does not end by itself: the end of
 * the usual time or, if that is later, half a second from now.
 */
static inline __u64 tw_race_round_end_ns(const struct tw_race *race)
{
	__u64 usual_ns = race->begin_ns + race->usual_ns;
	__u64 while_ns = tw_now(CLOCK_MONOTONIC) + TW_SEC / 2;

	return usual_ns > while_ns ? usual_ns : while_ns;
}

static inline void tw_expect_race(struct __test_metadata *_metadata, const struct tw_race *race,
				  int line)
{
	char text[1024];
	int i, len = 0;

	for (i = 0; i < race->nr && len < (int)sizeof(text); i++)
		if (race->outcomes[i].least || race->outcomes[i].count)
			len += snprintf(text + len, sizeof(text) - len, "%s%llu %s",
					len ? ", " : "", (__u64)race->outcomes[i].count,
					race->outcomes[i].name);
	TH_LOG("%u rounds: %s", race->rounds, text);
	for (i = 0; i < race->nr; i++) {
		EXPECT_TRUE(tw_outcome_came(&race->outcomes[i])) {
			TH_LOG("line %d: the race did not happen: \"%s\" has to come %u times, and came %llu times in %u rounds",
			       line, race->outcomes[i].name, race->outcomes[i].least,
			       (__u64)race->outcomes[i].count, race->rounds);
		}
	}
}

#define EXPECT_RACE(race)	tw_expect_race(_metadata, race, __LINE__)

/* ---- at one and the same time --------------------------------------------- */

/* A place where threads wait for each other, any number of times: all zero at first. */
struct tw_meeting {
	_Atomic unsigned int came;
};

/* Wait until nr threads have come here; all of them return within a moment. */
static inline void tw_meet(struct tw_meeting *meeting, unsigned int nr)
{
	unsigned int all = (meeting->came++ / nr + 1) * nr, spins = 0;

	/* If there is only one processor, the others need it. */
	while (meeting->came < all)
		if (++spins % 1000 == 0)
			sched_yield();
}

/* Let time pass without a sleep, which would take too long. */
static inline void tw_spin(__u64 ns)
{
	__u64 end_ns = tw_now(CLOCK_MONOTONIC) + ns;

	while (tw_now(CLOCK_MONOTONIC) < end_ns)
		;
}

#endif /* TWHEEL_OUTCOMES_H */
