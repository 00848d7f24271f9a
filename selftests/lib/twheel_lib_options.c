// SPDX-License-Identifier: GPL-2.0
/* Options that twheel_open() takes and refuses, and the cost of a wheel and its timers. */
#include "twheel_lib_test.h"

#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

FIXTURE(options) {
	struct twheel_options options;
};

FIXTURE_SETUP(options)
{
	self->options = (struct twheel_options){ .size = sizeof(self->options) };
}

FIXTURE_TEARDOWN(options)
{
	EXPECT_NO_LEAK();
}

/* Return the result of twheel_open(); nothing is open afterwards. */
static int try_open(const struct twheel_options *options)
{
	struct twheel *w = (struct twheel *)TW_POISON;
	int ret = twheel_open(&w, options);

	if (ret && w)
		return TW_BROKEN;
	if (!ret)
		twheel_close(w);
	return ret;
}

TEST_F(options, options_outside_their_range_are_einval)
{
	struct twheel_options options = self->options;

	EXPECT_EQ(0, try_open(&options));
	options.tick_ns = 999;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.tick_ns = 1000;
	EXPECT_EQ(0, try_open(&options));
	options.tick_ns = TW_HOUR + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.tick_ns = TW_HOUR;
	EXPECT_EQ(0, try_open(&options));
	options.slack_ns = TW_HOUR + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.slack_ns = TW_HOUR;
	EXPECT_EQ(0, try_open(&options));
	options.clock = TWHEEL_CALLER + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.clock = TWHEEL_CALLER;
	EXPECT_EQ(0, try_open(&options));
	options.flags = TWHEEL_MEASURE << 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.flags = TWHEEL_SHARED | TWHEEL_IMMEDIATE | TWHEEL_MEASURE;
	EXPECT_EQ(0, try_open(&options));
	options.reserved = 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
}

TEST_F(options, options_that_are_shorter_than_the_first_ones_are_einval)
{
	self->options.size = sizeof(self->options) - 1;
	EXPECT_EQ(-EINVAL, try_open(&self->options));
	self->options.size = 0;
	EXPECT_EQ(-EINVAL, try_open(&self->options));
}

TEST_F(options, options_of_a_later_library_are_e2big_if_they_are_not_zero)
{
	struct {
		struct twheel_options options;
		__u64 more[8];
	} later = { .options = self->options };

	later.options.size = sizeof(later);
	EXPECT_EQ(0, try_open(&later.options));
	later.more[7] = 1;
	EXPECT_EQ(-E2BIG, try_open(&later.options));
}

TEST_F(options, options_that_are_0_or_none_mean_a_tick_of_1_ms_on_the_monotonic_clock)
{
	const struct twheel_options *choices[] = { NULL, &self->options };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(choices); i++) {
		struct mark m;
		struct twheel *w;
		__u64 now_ns;

		mark_init(&m);
		ASSERT_EQ(0, twheel_open(&w, choices[i]));
		now_ns = twheel_now(w);
		EXPECT_GE(tw_now(CLOCK_MONOTONIC), now_ns);
		EXPECT_LE(tw_now(CLOCK_MONOTONIC), now_ns + TW_MIN);
		twheel_start(w, &m.timer, TW_HOUR + 1);
		EXPECT_EQ(tw_round_up(twheel_timer_deadline(&m.timer), TW_MS), twheel_next(w));
		twheel_close(w);
	}
}

TEST_F(options, options_have_a_pointer_of_the_programs)
{
	struct twheel *w;

	self->options.data = self;
	ASSERT_EQ(0, twheel_open(&w, &self->options));
	EXPECT_EQ((void *)self, twheel_data(w));
	twheel_close(w);
}

TEST_F(options, version_of_the_library_is_that_of_the_header)
{
	char version[32];

	snprintf(version, sizeof(version), "%d.%d.%d", TWHEEL_VERSION_MAJOR,
		 TWHEEL_VERSION_MINOR, TWHEEL_VERSION_PATCH);
	EXPECT_STREQ(version, twheel_version());
}

/* ---- memory ------------------------------------------------------------------- */

static long kb_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	size_t length = strlen(name);
	char line[256];
	long kb = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			kb = atol(line + length + 1);
	if (file)
		fclose(file);
	return kb;
}

/*
 * The memory in the page tables: the kernel's own count lacks pages that a processor has not added.
 */
static long memory_kb(void)
{
	return kb_of("/proc/self/smaps_rollup", "Anonymous");
}

static long mapped_kb(void)
{
	return kb_of("/proc/self/status", "VmSize");
}

TEST_F(options, timer_has_40_bytes_on_a_64_bit_machine_and_no_more_than_32_on_others)
{
	if (sizeof(void *) == 8)
		EXPECT_EQ(40, sizeof(struct twheel_timer));
	EXPECT_GE(sizeof(void *) == 8 ? 40 : 32, sizeof(struct twheel_timer));
}

TEST_F(options, million_timers_take_no_memory_beside_the_callers)
{
	int i, nr = tw_setting("TW_MILLION", 1000000);
	struct mark *m = calloc(nr, sizeof(*m));
	struct twheel *w;
	long before_kb;

	ASSERT_NE(NULL, m);
	for (i = 0; i < nr; i++)
		mark_init(&m[i]);
	ASSERT_EQ(0, twheel_open(&w, &self->options));
	before_kb = memory_kb();
	for (i = 0; i < nr; i++)
		twheel_start(w, &m[i].timer, 30 * TW_SEC + i * 29 * TW_US);
	/* The wheel's memory, and the additions of the system and a sanitizer: a byte for four. */
	EXPECT_GE(24 + nr / 4096, memory_kb() - before_kb);
	twheel_close(w);
	free(m);
}

/* The sanitizer for addresses keeps freed memory for a while, and adds to each allocation. */
#ifdef __SANITIZE_ADDRESS__
#define KEEPS_WHAT_IS_FREED	true
#define SHADOW_KB	12
#else
#define KEEPS_WHAT_IS_FREED	false
#define SHADOW_KB	0
#endif

/* Count pages that are shared with nobody, and those that are only mapped. */
TEST_F(options, wheel_with_ten_timers_takes_20_kb)
{
	enum { WHEELS = 200 };
	static struct twheel *w[WHEELS];
	static struct mark m[WHEELS][10];
	long before_kb;
	int i, k;

	for (i = 0; i < WHEELS; i++)
		for (k = 0; k < 10; k++)
			mark_init(&m[i][k]);
	before_kb = memory_kb();
	for (i = 0; i < WHEELS; i++) {
		ASSERT_EQ(0, twheel_open(&w[i], &self->options));
		for (k = 0; k < 10; k++)
			twheel_start(w[i], &m[i][k].timer, TW_SEC + 3 * k * TW_SEC);
		twheel_next(w[i]);
	}
	TH_LOG("%ld bytes a wheel", (memory_kb() - before_kb) * 1024 / WHEELS);
	EXPECT_GE(WHEELS * (20 + SHADOW_KB) + 256, memory_kb() - before_kb);
	for (i = 0; i < WHEELS; i++)
		twheel_close(w[i]);
}

TEST_F(options, two_thousand_wheels_are_open_and_nothing_is_left_of_them)
{
	enum { WHEELS = 2000 };
	static struct twheel *w[WHEELS];
	static struct mark m[WHEELS];
	long size_kb = mapped_kb(), rss_kb = memory_kb(), first_kb = 0;
	struct rlimit limit;
	int i, round;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < WHEELS; i++) {
			ASSERT_EQ(0, twheel_open(&w[i], &self->options));
			mark_init(&m[i]);
			twheel_start(w[i], &m[i].timer, TW_SEC);
			if (i < (int)limit.rlim_cur - 32)
				ASSERT_LE(0, twheel_fd(w[i]));
		}
		if (!round) {
			first_kb = mapped_kb();
			EXPECT_GE(WHEELS * (20 + SHADOW_KB) + 1024, memory_kb() - rss_kb);
			EXPECT_GE(WHEELS * (24 + SHADOW_KB) + 1024, first_kb - size_kb);
		}
		for (i = 0; i < WHEELS; i++)
			twheel_close(w[i]);
	}
	/* If an allocator does not return memory to the kernel, it uses it again. */
	if (!KEEPS_WHAT_IS_FREED)
		EXPECT_GE(1024, mapped_kb() - first_kb);
}

static int mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	int nr = 0, c;

	while (file && (c = getc(file)) != EOF)
		nr += c == '\n';
	if (file)
		fclose(file);
	return nr;
}

/* A process may have 65,530 mappings: if it has all of them, it cannot return the memory. */
TEST_F(options, closing_every_second_of_many_wheels_makes_no_mappings)
{
	enum { WHEELS = 400 };
	static struct twheel *w[WHEELS];
	int i, before;

	for (i = 0; i < WHEELS; i++)
		ASSERT_EQ(0, twheel_open(&w[i], &self->options));
	before = mappings();
	for (i = 0; i < WHEELS; i += 2)
		twheel_close(w[i]);
	EXPECT_GE(before + WHEELS / 8, mappings());
	for (i = 1; i < WHEELS; i += 2)
		twheel_close(w[i]);
}

/* If a program has to be on time, it locks its memory: then no reservation becomes resident. */
TEST_F(options, wheel_in_locked_memory_takes_20_kb)
{
	struct twheel *w;
	struct mark m;
	long before_kb;

	mark_init(&m);
	if (mlockall(MCL_FUTURE))
		SKIP(return, "no mlockall");
	/* Do all steps once before: an emulator translates code when it first runs. */
	ASSERT_EQ(0, twheel_open(&w, &self->options));
	twheel_start(w, &m.timer, TW_SEC);
	twheel_close(w);
	mark_init(&m);
	memory_kb();
	before_kb = memory_kb();
	ASSERT_EQ(0, twheel_open(&w, &self->options));
	twheel_start(w, &m.timer, TW_SEC);
	EXPECT_GE(24, memory_kb() - before_kb);
	twheel_close(w);
	munlockall();
}

TEST_F(options, user_with_a_small_memlock_limit_opens_a_wheel_in_locked_memory)
{
	const struct rlimit limit = { 64 << 10, 64 << 10 };
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		struct twheel *w;

		setrlimit(RLIMIT_MEMLOCK, &limit);
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534) || mlockall(MCL_FUTURE))
			_exit(77);
		_exit(-twheel_open(&w, &self->options));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP(return, "another user cannot be had");
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
