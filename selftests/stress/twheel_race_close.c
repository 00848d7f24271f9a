// SPDX-License-Identifier: GPL-2.0
/*
 * The last close against everything: threads make every call there is on a
 * descriptor that is closed beneath them.  A call either works or says EBADF,
 * and afterwards no wheel is left.
 */
#include "twheel_outside.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS		4
#define BATCH		16

static struct {
	int fd;
	__u32 clock;
	_Atomic int running;
	_Atomic __u64 id;		/* one that was armed lately */
	_Atomic int bad;		/* an errno nobody expects */
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

/* One call; what it says. */
static int one_call(__u64 *seed)
{
	struct twheel_status rows[BATCH] = {};
	struct twheel_event events[BATCH];
	struct twheel_info info;
	__u64 cursor = 0;

	switch (tw_random(seed) % 10) {
	default:
		return arm_batch(seed);
	case 1:
		return tw_rearm1(all.fd, all.id, 0, tw_random(seed) % TW_MS, 0);
	case 2:
		return tw_cancel1(all.fd, all.id);
	case 3:
		return tw_query1(all.fd, all.id, &rows[0]);
	case 4:
		return tw_list(all.fd, &cursor, rows, BATCH);
	case 5:
		return tw_info(all.fd, &info);
	case 6:
		return tw_read(all.fd, events, BATCH);
	case 7:
		return poll_once();
	case 8:
		if (all.clock != TWHEEL_CLOCK_VIRTUAL || tw_info(all.fd, &info))
			return 0;
		return tw_advance(all.fd, info.now_ns + TW_MS);
	}
}

static void *caller(void *arg)
{
	__u64 seed = (uintptr_t)arg;
	int ret;

	all.running++;
	do {
		ret = one_call(&seed);
		/* EINVAL: another thread has moved the virtual clock farther. */
		if (ret < 0 && ret != -EBADF && ret != -ENOENT && ret != -EAGAIN &&
		    !(ret == -EINVAL && all.clock == TWHEEL_CLOCK_VIRTUAL))
			all.bad = ret;
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
	__u64 end_ns = tw_now(CLOCK_MONOTONIC) + tw_setting("TW_RACE_SECONDS", 2) * TW_SEC;
	__u64 seed = 1;
	uintptr_t i;
	int rounds;

	all.clock = variant->clock;
	for (rounds = 0; tw_now(CLOCK_MONOTONIC) < end_ns; rounds++) {
		all.running = 0;
		all.fd = tw_open(O_NONBLOCK | O_CLOEXEC);
		ASSERT_LE(0, all.fd);
		ASSERT_EQ(0, tw_setup(all.fd, all.clock, 100 * TW_US, 10000));
		for (i = 0; i < THREADS; i++)
			ASSERT_EQ(0, pthread_create(&all.threads[i], NULL, caller,
						    (void *)(rounds * THREADS + i + 1)));
		while (all.running < THREADS)
			sched_yield();
		tw_sleep(tw_random(&seed) % (10 * TW_MS));
		close(all.fd);
		/* Not before all are gone may the number be used again. */
		for (i = 0; i < THREADS; i++)
			pthread_join(all.threads[i], NULL);
		ASSERT_EQ(0, all.bad);
	}
	TH_LOG("%d rounds", rounds);
}

TEST_HARNESS_MAIN
