// SPDX-License-Identifier: GPL-2.0
/*
 * The last close against everything: threads make every call there is on a descriptor that another
 * thread closes. A call either works or says EBADF, and afterwards no wheel is left. Each call has
 * to do both, and some have to be under way at the close: then the wheel ends with them.
 */
#include "twheel_outcomes.h"
#include "twheel_outside.h"

#include <pthread.h>

#define THREADS		4
#define BATCH		16

enum call {
	ARM, REARM, CANCEL, QUERY, LIST, INFO, READ, POLL, ADVANCE,
	NR_CALLS,
};

#define CLOSED		NR_CALLS
#define UNDER_WAY	(2 * NR_CALLS)

static struct tw_outcome outcomes[] = {
	[ARM] = TW_OUTCOME("ARM worked", TW_A_FEW),
	[REARM] = TW_OUTCOME("REARM worked", TW_A_FEW),
	[CANCEL] = TW_OUTCOME("CANCEL worked", TW_A_FEW),
	[QUERY] = TW_OUTCOME("QUERY worked", TW_A_FEW),
	[LIST] = TW_OUTCOME("LIST worked", TW_A_FEW),
	[INFO] = TW_OUTCOME("INFO worked", TW_A_FEW),
	[READ] = TW_OUTCOME("read worked", TW_A_FEW),
	[POLL] = TW_OUTCOME("poll worked", TW_A_FEW),
	[ADVANCE] = TW_OUTCOME("ADVANCE worked", TW_A_FEW),
	[CLOSED + ARM] = TW_OUTCOME("ARM said EBADF", 1),
	[CLOSED + REARM] = TW_OUTCOME("REARM said EBADF", 1),
	[CLOSED + CANCEL] = TW_OUTCOME("CANCEL said EBADF", 1),
	[CLOSED + QUERY] = TW_OUTCOME("QUERY said EBADF", 1),
	[CLOSED + LIST] = TW_OUTCOME("LIST said EBADF", 1),
	[CLOSED + INFO] = TW_OUTCOME("INFO said EBADF", 1),
	[CLOSED + READ] = TW_OUTCOME("read said EBADF", 1),
	[CLOSED + POLL] = TW_OUTCOME("poll said EBADF", 1),
	[CLOSED + ADVANCE] = TW_OUTCOME("ADVANCE said EBADF", 1),
	[UNDER_WAY] = TW_OUTCOME("was under way during the close", TW_A_FEW),
};

static struct {
	int fd;
	__u32 clock;
	_Atomic int running;
	_Atomic bool closed;
	_Atomic __u64 id;		/* a timeout that was armed lately */
	_Atomic int bad;		/* an errno that must not come */
	pthread_t threads[THREADS];
} all;

static int arm_batch(__u64 *seed)
{
	struct twheel_arm arms[BATCH];
	int i, ret;

	for (i = 0; i < BATCH; i++)
		arms[i] = (struct twheel_arm){
			.expires_ns = tw_random(seed) % (2 * TW_MS),
			.interval_ns = i % 4 ? 0 : TW_MS,
		};
	ret = tw_arm_vec(all.fd, arms, BATCH);
	if (ret > 0)
		all.id = arms[0].id;
	return ret;
}

static int poll_once(void)
{
	int ret = tw_poll(all.fd, POLLIN, 1);

	return ret > 0 && (ret & POLLNVAL) ? -EBADF : ret;
}

/* Make one call, and return its result. */
static int make_call(enum call call, __u64 *seed)
{
	struct twheel_status rows[BATCH] = {};
	struct twheel_event events[BATCH];
	struct twheel_info info;
	__u64 cursor = 0;
	int ret;

	switch (call) {
	case REARM:
		return tw_rearm1(all.fd, all.id, 0, tw_random(seed) % TW_MS, 0);
	case CANCEL:
		return tw_cancel1(all.fd, all.id);
	case QUERY:
		return tw_query1(all.fd, all.id, &rows[0]);
	case LIST:
		return tw_list(all.fd, &cursor, rows, BATCH);
	case INFO:
		return tw_info(all.fd, &info);
	case READ:
		return tw_read(all.fd, events, BATCH);
	case POLL:
		return poll_once();
	case ADVANCE:
		ret = tw_info(all.fd, &info);
		return ret ? ret : tw_advance(all.fd, info.now_ns + TW_MS);
	default:
		return arm_batch(seed);
	}
}

/* If another thread ended the timeout, or has moved the clock, that is no error of the call. */
static bool is_allowed(int ret)
{
	return ret == -ENOENT || ret == -EAGAIN ||
	       (ret == -EINVAL && all.clock == TWHEEL_CLOCK_VIRTUAL);
}

static void *caller(void *arg)
{
	__u64 seed = (uintptr_t)arg;
	int ret;

	all.running++;
	do {
		enum call call = tw_random(&seed) % (NR_CALLS + 1) % NR_CALLS;
		bool closed = all.closed;

		if (call == ADVANCE && all.clock != TWHEEL_CLOCK_VIRTUAL)
			call = ARM;
		ret = make_call(call, &seed);
		if (ret >= 0)
			tw_saw(&outcomes[call], 1);
		else if (ret == -EBADF)
			tw_saw(&outcomes[CLOSED + call], 1);
		else if (!is_allowed(ret))
			all.bad = ret;
		if (ret != -EBADF && !closed && all.closed)
			tw_saw(&outcomes[UNDER_WAY], 1);
	} while (ret != -EBADF);
	return NULL;
}

FIXTURE(race_close) {
	int base;
};

FIXTURE_VARIANT(race_close) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(race_close, monotonic) { .clock = TWHEEL_CLOCK_MONOTONIC };
FIXTURE_VARIANT_ADD(race_close, virtual) { .clock = TWHEEL_CLOCK_VIRTUAL };

FIXTURE_SETUP(race_close)
{
	self->base = tw_wheels_open();
	ASSERT_LE(0, self->base);
}

FIXTURE_TEARDOWN(race_close)
{
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

TEST_F_TIMEOUT(race_close, every_call_works_or_says_ebadf, 100)
{
	struct tw_race race = TW_RACE(outcomes, tw_race_seconds());
	__u64 seed = 1;
	uintptr_t i;

	all.clock = variant->clock;
	if (all.clock != TWHEEL_CLOCK_VIRTUAL) {
		outcomes[ADVANCE].least = 0;
		outcomes[CLOSED + ADVANCE].least = 0;
	}
	while (tw_race_goes_on(&race)) {
		all.running = 0;
		all.closed = false;
		all.fd = tw_open(O_NONBLOCK | O_CLOEXEC);
		ASSERT_LE(0, all.fd);
		ASSERT_EQ(0, tw_setup(all.fd, all.clock, 100 * TW_US, 10000));
		for (i = 0; i < THREADS; i++)
			ASSERT_EQ(0, pthread_create(&all.threads[i], NULL, caller,
						    (void *)(race.rounds * THREADS + i)));
		while (all.running < THREADS)
			sched_yield();
		tw_sleep(tw_random(&seed) % (10 * TW_MS));
		close(all.fd);
		all.closed = true;
		/* The number may be used again only when all threads have ended. */
		for (i = 0; i < THREADS; i++)
			pthread_join(all.threads[i], NULL);
		ASSERT_EQ(0, all.bad);
	}
	EXPECT_RACE(&race);
}

TEST_HARNESS_MAIN
