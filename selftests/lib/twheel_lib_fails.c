// SPDX-License-Identifier: GPL-2.0
/*
 * What libtwheel does when memory is short and calls fail: the n-th of them, for each n.
 * Nothing crashes, leaks or is lost; who is refused is told so, once.
 */
#include "twheel_lib_test.h"
#include "lib_calls.h"
#include "lib_seeded.h"

#include <stdarg.h>

#define TIMERS	3000

struct told {
	struct twheel_timer timer;
	int expired;
	int refused;
	int status;
};

static struct told told[TIMERS];

static void on_expiry(struct twheel *w, struct twheel_timer *t, int status)
{
	struct told *it = twheel_container_of(t, struct told, timer);

	(void)w;
	it->status = status;
	if (status)
		it->refused++;
	else
		it->expired++;
}

static void told_init(void)
{
	int i;

	memset(told, 0, sizeof(told));
	for (i = 0; i < TIMERS; i++)
		twheel_timer_init(&told[i].timer, on_expiry);
}

static struct world *world;
static __u64 first_seed;

void die(const char *fmt, ...)
{
	va_list args;

	lib_unwatch();
	fprintf(stderr, "# TW_SEED=%llu TW_ROUNDS=1, step %llu, %lu failed: ",
		(unsigned long long)first_seed, world ? (unsigned long long)world->steps : 0,
		lib_calls.refused);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(KSFT_FAIL);
}

FIXTURE(failing) {
};

LIB_VARIANTS(failing);

FIXTURE_SETUP(failing)
{
	LIB_SKIP_WITHOUT_BACKEND();
	told_init();
}

FIXTURE_TEARDOWN(failing)
{
	lib_unwatch();
	EXPECT_NO_LEAK();
}

/* The descriptors that there are. */
static int nr_fds(void)
{
	int fd, nr = 0;

	for (fd = 0; fd < 64; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

static bool is_one_of(int err, const int *errs, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (err == errs[i])
			return true;
	return false;
}

TEST_F(failing, open_says_why_and_leaves_nothing_behind)
{
	static const int errs[] = { -ENOMEM, -EMFILE, -EOPNOTSUPP };
	int fds = nr_fds(), ret;
	struct twheel *w;
	unsigned long n;

	for (n = 1; ; n++) {
		w = (void *)TW_POISON64;
		lib_watch(n, false);
		ret = lib_open(&w, variant->backend, TWHEEL_CLOCK_VIRTUAL, TW_MS);
		lib_unwatch();
		if (!lib_calls.refused)
			break;
		/* A kernel that has none need not be asked: only forks are concerned. */
		if (!ret && !strcmp(lib_calls.name, "madvise")) {
			twheel_close(w);
			continue;
		}
		ASSERT_TRUE(is_one_of(ret, errs, ARRAY_SIZE(errs)))
			TH_LOG("%s: %d", lib_calls.name, ret);
		EXPECT_EQ(NULL, w);
		EXPECT_EQ(fds, nr_fds())
			TH_LOG("%s", lib_calls.name);
		ASSERT_EQ(0, lib_leaks())
			TH_LOG("%s", lib_calls.name);
	}
	EXPECT_LT(3, n);
	ASSERT_EQ(0, ret);
	twheel_close(w);
	EXPECT_EQ(fds, nr_fds());
}

/* A device that cannot be had for any reason is no reason to fail. */
TEST_F(failing, open_falls_back_when_the_device_fails)
{
	struct twheel *w;
	unsigned long n;
	int ret;

	if (variant->backend != TWHEEL_DEVICE)
		SKIP(return, "there is nothing to fall back to");
	for (n = 1; ; n++) {
		lib_watch(n, false);
		ret = lib_open(&w, TWHEEL_AUTO, TWHEEL_CLOCK_VIRTUAL, TW_MS);
		lib_unwatch();
		if (!lib_calls.refused)
			break;
		if (!strcmp(lib_calls.name, "open") || !strcmp(lib_calls.name, "ioctl")) {
			ASSERT_EQ(0, ret);
			EXPECT_EQ(TWHEEL_LOCAL, twheel_backend(w));
		}
		if (!ret)
			twheel_close(w);
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(TWHEEL_DEVICE, twheel_backend(w));
	twheel_close(w);
}

/*
 * Starts many, lets the n-th call fail, and after that none: each timer is told once, or
 * expires once.
 */
static void fail_once(struct __test_metadata *_metadata, __u32 backend, unsigned long n,
		      bool and_after)
{
	int i, refused = 0, expired = 0;
	unsigned int flushed;
	struct twheel *w;

	told_init();
	ASSERT_EQ(0, lib_open(&w, backend, TWHEEL_CLOCK_VIRTUAL, TW_MS));
	twheel_now(w);
	lib_watch(n, and_after);
	for (i = 0; i < TIMERS; i++)
		twheel_start(w, &told[i].timer, (1 + i % 1000) * TW_MS * (i % 3 ? 1 : 100));
	flushed = twheel_flush(w);
	/* And with what is parked, and given up. */
	for (i = 0; i < TIMERS; i += 2)
		twheel_stop(w, &told[i].timer);
	for (i = 0; i < TIMERS; i += 4)
		twheel_start(w, &told[i].timer, (1 + i % 1000) * TW_MS);
	for (i = 0; i < TIMERS; i += 4)
		twheel_start(w, &told[i].timer, TW_MS);
	flushed += twheel_flush(w);
	lib_unwatch();
	for (i = 0; i < TIMERS; i++) {
		refused += told[i].refused;
		if (told[i].refused)
			ASSERT_EQ(-ENOMEM, told[i].status);
	}
	EXPECT_EQ(flushed, refused);
	EXPECT_EQ(refused, lib_stats(w).refused);
	/* One time at most for each start. */
	for (i = 0; i < TIMERS; i++)
		ASSERT_GE(i % 4 ? 1 : 2, told[i].refused);
	/* Later calls work: all that is pending comes, and can be started again. */
	for (i = 0; i < TIMERS; i++)
		if (!twheel_timer_pending(&told[i].timer))
			twheel_start(w, &told[i].timer, TW_SEC);
	ASSERT_EQ(0, twheel_flush(w));
	ASSERT_EQ(0, twheel_advance(w, 1000 * TW_SEC));
	while ((i = twheel_dispatch(w, 0)) > 0)
		expired += i;
	EXPECT_EQ(0, i);
	EXPECT_EQ(TIMERS, expired);
	for (i = 0; i < TIMERS; i++) {
		ASSERT_EQ(1, told[i].expired)
			TH_LOG("timer %d, call %lu (%s)", i, n, lib_calls.name);
		ASSERT_FALSE(twheel_timer_pending(&told[i].timer));
	}
	EXPECT_EQ(0, lib_stats(w).noted);
	EXPECT_EQ(0, lib_stats(w).places)
		TH_LOG("call %lu (%s)", n, lib_calls.name);
	twheel_close(w);
}

TEST_F_TIMEOUT(failing, each_call_in_turn_is_told_once_and_nothing_is_lost, 100)
{
	unsigned long n;

	for (n = 1; n == 1 || lib_calls.refused; n++)
		fail_once(_metadata, variant->backend, n, false);
	TH_LOG("%lu calls", n - 2);
	EXPECT_LT(5, n);
}

TEST_F_TIMEOUT(failing, each_call_from_one_on_is_told_once_and_nothing_is_lost, 100)
{
	unsigned long n;

	for (n = 1; n == 1 || lib_calls.refused; n++)
		fail_once(_metadata, variant->backend, n, true);
	EXPECT_LT(5, n);
}

/* A read that fails for a while delays, and loses nothing. */
TEST_F(failing, dispatch_that_cannot_read_can_be_repeated)
{
	int i, expired = 0, ret;
	struct twheel *w;
	unsigned long n;

	ASSERT_EQ(0, lib_open(&w, variant->backend, TWHEEL_CLOCK_VIRTUAL, TW_MS));
	for (i = 0; i < TIMERS; i++)
		twheel_start(w, &told[i].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(w, TW_SEC));
	for (n = 1; n < 100; n++) {
		lib_watch(n, false);
		ret = twheel_dispatch(w, 700);
		lib_unwatch();
		ASSERT_LE(0, ret);
		expired += ret;
	}
	EXPECT_EQ(TIMERS, expired);
	for (i = 0; i < TIMERS; i++)
		ASSERT_EQ(1, told[i].expired);
	twheel_close(w);
}

/* The random test, with one call in a hundred that fails. */
TEST_F_TIMEOUT(failing, random_calls_agree_with_a_plain_list, 110)
{
	int round, step, rounds = tw_setting("TW_ROUNDS", 20);
	__u64 seed0 = tw_setting("TW_SEED", 1);
	unsigned long failed = 0;

	for (round = 0; round < rounds; round++) {
		struct shape shape;

		first_seed = seed0 + round;
		seed = first_seed * 0x9e3779b97f4a7c15ULL;
		shape = random_shape(variant->backend);
		shape.may_lack_memory = true;
		world = world_make(&shape);
		for (step = 0; step < 400; step++) {
			lib_watch(below(3) ? 0 : 1 + below(4), below(2));
			world_step(world);
			lib_unwatch();
			failed += lib_calls.refused;
		}
		world_drain(world);
		world_free(world);
		world = NULL;
	}
	TH_LOG("%lu failed", failed);
	EXPECT_LT(rounds, failed);
}

/* ---- limits --------------------------------------------------------------- */

static int open_small(struct twheel **w, __u32 backend, __u32 max_timers)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.backend = backend,
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.max_timers = max_timers,
	};

	return twheel_open(w, &options);
}

TEST_F(failing, as_many_timers_as_allowed_are_armed_and_the_others_told_eagain)
{
	int i, refused = 0;
	struct twheel *w;

	ASSERT_EQ(0, open_small(&w, variant->backend, 1000));
	for (i = 0; i < TIMERS; i++)
		twheel_start(w, &told[i].timer, TW_SEC);
	EXPECT_EQ(TIMERS - 1000, twheel_flush(w));
	for (i = 0; i < TIMERS; i++) {
		refused += told[i].refused;
		EXPECT_EQ(told[i].refused ? -EAGAIN : 0, told[i].status);
		EXPECT_EQ(!told[i].refused, twheel_timer_pending(&told[i].timer));
	}
	EXPECT_EQ(TIMERS - 1000, refused);
	EXPECT_EQ(1000, lib_stats(w).places);
	ASSERT_EQ(0, twheel_advance(w, 2 * TW_SEC));
	EXPECT_EQ(1000, twheel_dispatch(w, 0));
	twheel_close(w);
}

/* Of another length, and later than what is parked, and with some that have run out. */
TEST_F(failing, parked_places_make_room_before_a_timer_is_refused)
{
	struct twheel *w;
	int i, round;

	ASSERT_EQ(0, open_small(&w, variant->backend, 400));
	for (round = 0; round < 30; round++) {
		for (i = 0; i < 400; i++)
			twheel_start(w, &told[i].timer, TW_MS << round % 20);
		ASSERT_EQ(0, twheel_flush(w));
		if (round % 3 == 2) {
			ASSERT_EQ(0, twheel_advance(w, twheel_now(w) + TW_MS * 20));
			ASSERT_LE(0, twheel_dispatch(w, 0));
		}
		for (i = 0; i < 400; i++)
			twheel_stop(w, &told[i].timer);
	}
	twheel_close(w);
}

static void closes_and_frees(struct twheel *w, struct twheel_timer *t, int status)
{
	static struct twheel_timer *array;

	/* The first call says where they are. */
	if (!array) {
		array = t;
		return;
	}
	(void)status;
	twheel_close(w);
	free(array);
	array = NULL;
}

TEST_F(failing, close_in_the_callback_of_a_refused_timer_is_the_end_of_all)
{
	struct twheel_timer *t = malloc(100 * sizeof(*t));
	struct twheel *w;
	int i;

	closes_and_frees(NULL, t, 0);
	ASSERT_EQ(0, open_small(&w, variant->backend, 1));
	for (i = 0; i < 100; i++) {
		twheel_timer_init(&t[i], closes_and_frees);
		twheel_start(w, &t[i], TW_SEC);
	}
	EXPECT_EQ(1, twheel_flush(w));
}

static void starts_itself(struct twheel *w, struct twheel_timer *t, int status)
{
	struct told *it = twheel_container_of(t, struct told, timer);

	if (status)
		it->refused++;
	else
		it->expired++;
	if (status)
		twheel_start(w, t, TW_SEC);
}

TEST_F(failing, what_the_callback_of_a_refused_timer_starts_waits_for_the_next_flush)
{
	struct twheel *w;
	int i;

	ASSERT_EQ(0, open_small(&w, variant->backend, 1));
	for (i = 0; i < 3; i++) {
		twheel_timer_init(&told[i].timer, starts_itself);
		twheel_start(w, &told[i].timer, TW_SEC);
	}
	EXPECT_EQ(2, twheel_flush(w));
	EXPECT_EQ(2, lib_stats(w).noted);
	EXPECT_EQ(2, twheel_flush(w));
	EXPECT_EQ(4, told[0].refused + told[1].refused + told[2].refused);
	for (i = 0; i < 3; i++)
		twheel_stop(w, &told[i].timer);
	EXPECT_EQ(0, twheel_flush(w));
	twheel_close(w);
}

TEST_F(failing, periodic_timer_that_is_refused_is_not_pending)
{
	struct twheel *w;

	ASSERT_EQ(0, open_small(&w, variant->backend, 1));
	twheel_start_every(w, &told[0].timer, TW_MS);
	EXPECT_EQ(0, twheel_flush(w));
	ASSERT_EQ(0, twheel_advance(w, 10 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(w, 0));
	/* Another takes the place that it had. */
	twheel_stop(w, &told[0].timer);
	twheel_start(w, &told[1].timer, TW_SEC);
	twheel_start_every(w, &told[0].timer, TW_MS);
	EXPECT_EQ(1, twheel_flush(w));
	EXPECT_EQ(1, told[0].refused + told[1].refused);
	EXPECT_EQ(1, twheel_timer_pending(&told[0].timer) + twheel_timer_pending(&told[1].timer));
	ASSERT_EQ(0, twheel_advance(w, 2 * TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(w, 0));
	twheel_close(w);
}

TEST_HARNESS_MAIN
