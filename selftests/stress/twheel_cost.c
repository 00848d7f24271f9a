// SPDX-License-Identifier: GPL-2.0
/*
 * Costs, compared with themselves in the same run. G7: arming, moving and cancelling cost the same
 * with a million pending as with a thousand, and so do fdinfo and INFO, unless INFO is asked to
 * walk. G5: if a hundred thousand are due, the softirq callback takes no longer than if one is. The
 * limits are wide, since the machine may be an emulator under load; they are made to catch a factor
 * of hundreds.
 */
#include "twheel_outside.h"

#define VECTOR		500
#define SAMPLES		9
#define FEW		1000
#define MANY_DUE	50000
#define FEW_CALLBACKS	5
#define MANY_CALLBACKS	25
#define MAX_RATIO	8

static int compare_u64(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

static __u64 median(__u64 *samples, int nr)
{
	qsort(samples, nr, sizeof(*samples), compare_u64);
	return samples[nr / 2];
}

/* ---- G7 ------------------------------------------------------------------ */

FIXTURE(cost) {
	int fd;
	__u64 seed;
	__u32 pending;
	__u32 many;
	struct twheel_arm arms[VECTOR];
	struct twheel_cancel cancels[VECTOR];
};

FIXTURE_SETUP(cost)
{
	self->seed = 1;
	self->pending = 0;
	self->many = tw_setting("TW_MILLION", 1000000);
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, 2 * self->many));
}

FIXTURE_TEARDOWN(cost)
{
	close(self->fd);
}

/* Choose deadlines of one to eleven minutes from now: nothing expires during the test. */
static void choose_deadlines(struct twheel_arm *arms, __u64 *seed)
{
	int i;

	for (i = 0; i < VECTOR; i++) {
		arms[i].expires_ns = TW_MIN + tw_random(seed) % (600 * 1000) * TW_MS;
		arms[i].flags = 0;
	}
}

static void fill(struct __test_metadata *_metadata, int fd, __u64 *seed, __u32 nr)
{
	static struct twheel_arm arms[VECTOR];
	__u32 i;

	for (i = 0; i < nr; i += VECTOR) {
		choose_deadlines(arms, seed);
		ASSERT_EQ(VECTOR, tw_arm_vec(fd, arms, VECTOR));
	}
}

/* The time of one vector of each call, nanoseconds. */
struct cost {
	__u64 arm_ns[SAMPLES];
	__u64 rearm_ns[SAMPLES];
	__u64 cancel_ns[SAMPLES];
};

static void measure(struct __test_metadata *_metadata, int fd, __u64 *seed, struct cost *cost)
{
	static struct twheel_arm arms[VECTOR];
	static struct twheel_cancel cancels[VECTOR];
	__u64 t0, t1, t2, t3;
	int i, s;

	for (s = 0; s < SAMPLES; s++) {
		choose_deadlines(arms, seed);
		t0 = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(VECTOR, tw_arm_vec(fd, arms, VECTOR));
		t1 = tw_now(CLOCK_MONOTONIC);
		choose_deadlines(arms, seed);
		t2 = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(VECTOR, tw_rearm_vec(fd, arms, VECTOR));
		t3 = tw_now(CLOCK_MONOTONIC);
		cost->arm_ns[s] = t1 - t0;
		cost->rearm_ns[s] = t3 - t2;
		for (i = 0; i < VECTOR; i++)
			cancels[i] = (struct twheel_cancel){ .id = arms[i].id };
		t0 = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(VECTOR, tw_cancel_vec(fd, cancels, VECTOR));
		cost->cancel_ns[s] = tw_now(CLOCK_MONOTONIC) - t0;
	}
}

TEST_F_TIMEOUT(cost, cost_does_not_grow_with_what_pends, 120)
{
	struct cost few, many;
	__u64 f, m;

	fill(_metadata, self->fd, &self->seed, FEW);
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	measure(_metadata, self->fd, &self->seed, &few);
	fill(_metadata, self->fd, &self->seed, self->many - FEW);
	/* If the thread still had timeouts to sort in, it would run beside us. */
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	measure(_metadata, self->fd, &self->seed, &many);

	f = median(few.arm_ns, SAMPLES);
	m = median(many.arm_ns, SAMPLES);
	TH_LOG("arm: %llu and %llu ns each", f / VECTOR, m / VECTOR);
	EXPECT_GT(MAX_RATIO * f, m);
	f = median(few.rearm_ns, SAMPLES);
	m = median(many.rearm_ns, SAMPLES);
	TH_LOG("re-arm: %llu and %llu ns each", f / VECTOR, m / VECTOR);
	EXPECT_GT(MAX_RATIO * f, m);
	f = median(few.cancel_ns, SAMPLES);
	m = median(many.cancel_ns, SAMPLES);
	TH_LOG("cancel: %llu and %llu ns each", f / VECTOR, m / VECTOR);
	EXPECT_GT(MAX_RATIO * f, m);
}

#define NR_LOOKS	20
#define FDINFO_KEY	"alarm_ns:\t"

/* Return the time of some calls of INFO with these flags, or of as many reads of fdinfo. */
static __u64 look_ns(struct __test_metadata *_metadata, int fd, __u32 flags, int fdinfo)
{
	struct twheel_info info = { .size = sizeof(info), .flags = flags };
	__u64 samples[SAMPLES], t0;
	char text[4096];
	int i, s;

	for (s = 0; s < SAMPLES; s++) {
		t0 = tw_now(CLOCK_MONOTONIC);
		for (i = 0; i < NR_LOOKS; i++) {
			int ret = fdinfo < 0 ? tw_ioctl(fd, TWHEEL_IOC_INFO, &info) :
					       pread(fdinfo, text, sizeof(text), 0);

			ASSERT_LE(0, ret);
		}
		samples[s] = tw_now(CLOCK_MONOTONIC) - t0;
	}
	return median(samples, SAMPLES);
}

/*
 * If there was a walk over a hundred times as many timeouts, it would take a hundred times as long.
 */
TEST_F_TIMEOUT(cost, cost_of_info_and_fdinfo_does_not_grow_with_what_pends, 120)
{
	char path[64], text[4096] = "";
	__u64 few_ns[2], many_ns[2], walk_ns[2];
	int i, fdinfo[2] = { -1 };

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	fdinfo[1] = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fdinfo[1]);
	fill(_metadata, self->fd, &self->seed, FEW);
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	for (i = 0; i < 2; i++)
		few_ns[i] = look_ns(_metadata, self->fd, 0, fdinfo[i]);
	walk_ns[0] = look_ns(_metadata, self->fd, TWHEEL_INFO_WALK, -1);
	fill(_metadata, self->fd, &self->seed, 99 * FEW);
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	for (i = 0; i < 2; i++) {
		many_ns[i] = look_ns(_metadata, self->fd, 0, fdinfo[i]);
		TH_LOG("%s: %llu and %llu ns", i ? "fdinfo" : "INFO", few_ns[i] / NR_LOOKS,
		       many_ns[i] / NR_LOOKS);
		EXPECT_GT(MAX_RATIO * few_ns[i], many_ns[i]);
	}
	/* This is that walk. */
	walk_ns[1] = look_ns(_metadata, self->fd, TWHEEL_INFO_WALK, -1);
	TH_LOG("INFO with the walk: %llu and %llu ns", walk_ns[0] / NR_LOOKS,
	       walk_ns[1] / NR_LOOKS);
	EXPECT_LT(MAX_RATIO * walk_ns[0], walk_ns[1]);
	/* A walk takes about as long for each of many as for each of few. */
	EXPECT_GT(100 * MAX_RATIO * walk_ns[0], walk_ns[1]);
	/* Check that fdinfo was this wheel's. */
	ASSERT_LT(0, pread(fdinfo[1], text, sizeof(text) - 1, 0));
	EXPECT_NE(NULL, strstr(text, FDINFO_KEY));
	close(fdinfo[1]);
}

/* ---- G5 ------------------------------------------------------------------ */

/* "... 12.345678: hrtimer_expire_...", in microseconds; -1 if it is not one. */
static long long line_time_us(const char *line, const char *event)
{
	const char *at = strstr(line, event);
	unsigned long long s, us;

	if (!at)
		return -1;
	for (at -= 3; at > line && *at != ' '; at--)
		;
	return sscanf(at, " %llu.%6llu:", &s, &us) == 2 ? s * 1000000 + us : -1;
}

/* Return how long our callback ran the last time, in microseconds; -1 if it never ran. */
static long long callback_us(void)
{
	long long us, entry_us = -1, took_us = -1;
	char line[512], hrtimer[64] = "?";
	FILE *file = tw_trace_stop();

	while (file && fgets(line, sizeof(line), file)) {
		us = line_time_us(line, "hrtimer_expire_entry:");
		if (us >= 0 && strstr(line, "[twheel]")) {
			entry_us = us;
			if (sscanf(strstr(line, "hrtimer="), "%63s", hrtimer) != 1)
				break;
		}
		us = line_time_us(line, "hrtimer_expire_exit:");
		if (us >= 0 && entry_us >= 0 && strstr(line, hrtimer)) {
			took_us = us - entry_us;
			entry_us = -1;
		}
	}
	if (file)
		fclose(file);
	return took_us;
}

/* Arm so many for one moment; if that had come before all were armed, return false. */
static bool arm_for(struct __test_metadata *_metadata, int fd, __u32 due, __u64 lead_ns)
{
	static struct twheel_arm arms[VECTOR];
	__u64 deadline_ns = tw_now(CLOCK_MONOTONIC) + lead_ns;
	__u32 i, j, n;

	for (i = 0; i < due; i += n) {
		n = due - i < VECTOR ? due - i : VECTOR;
		memset(arms, 0, sizeof(arms));
		for (j = 0; j < n; j++) {
			arms[j].flags = TWHEEL_ARM_ABSOLUTE;
			arms[j].expires_ns = deadline_ns;
		}
		ASSERT_EQ(n, tw_arm_vec(fd, arms, n));
	}
	return tw_now(CLOCK_MONOTONIC) + TW_SEC / 10 < deadline_ns;
}

static void read_all(struct __test_metadata *_metadata, int fd, __u32 due)
{
	static struct twheel_event events[VECTOR];
	int got;

	for (; due; due -= got) {
		ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
		got = tw_read(fd, events, VECTOR);
		ASSERT_LT(0, got);
	}
}

/*
 * The callback's time with so many due at once: the least of some samples.  If it is above the
 * limit, take more, since a busy host can hold up some in a row.
 */
static __u64 callback_least_us(struct __test_metadata *_metadata, int fd, __u32 due,
			       __u64 limit_us)
{
	__u64 least_us = ~0ULL, lead_ns = TW_SEC / 2;
	unsigned int s = 0;

	while (s < FEW_CALLBACKS || (least_us > limit_us && s < MANY_CALLBACKS)) {
		long long us;

		/* If the kernel is slow, it needs longer to arm them. */
		while (!arm_for(_metadata, fd, due, lead_ns)) {
			read_all(_metadata, fd, due);
			lead_ns *= 2;
		}
		ASSERT_EQ(0, tw_trace_start());
		read_all(_metadata, fd, due);
		us = callback_us();
		/* If the machine is busy, it may have expired before it was watched. */
		if (us < 0) {
			lead_ns *= 2;
			ASSERT_GT(20 * TW_SEC, lead_ns)
				TH_LOG("our hrtimer was not seen to expire");
			continue;
		}
		if ((__u64)us < least_us)
			least_us = us;
		s++;
	}
	return least_us;
}

FIXTURE(softirq) {
	int fd;
};

FIXTURE_SETUP(softirq)
{
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(softirq)
{
	close(self->fd);
}

TEST_F_TIMEOUT(softirq, work_does_not_grow_with_what_is_due, 120)
{
	int ret = tw_trace_start();
	__u64 one, many, limit_us;

	if (ret)
		SKIP(return, "hrtimers cannot be traced: %s", strerror(-ret));
	one = callback_least_us(_metadata, self->fd, 1, ~0ULL);
	limit_us = MAX_RATIO * (one + 10);
	many = callback_least_us(_metadata, self->fd, MANY_DUE, limit_us);
	TH_LOG("the callback took %llu us with one due, %llu us with %u", one, many, MANY_DUE);
	EXPECT_GE(limit_us, many);
}

TEST_HARNESS_MAIN
