// SPDX-License-Identifier: GPL-2.0
/*
 * Steps of the realtime clock: a step forwards expires the timeouts that are now due, a step
 * backwards expires nothing twice and nothing early, and the other clocks are not affected. These
 * tests also make other changes of the machine's time: of its speed, of its source, and the end of
 * 32 bits of seconds.
 *
 * These tests need CAP_SYS_TIME and a machine that may have a wrong time for a while; each test
 * puts the time right again.
 */
#include "set_back.h"
#include "twheel_outcomes.h"

#include <pthread.h>
#include <sys/timex.h>

FIXTURE(realtime_step) {
	int fd;
	/* CLOCK_REALTIME less CLOCK_MONOTONIC, before any step */
	__u64 offset_ns;
};

/* Set CLOCK_REALTIME; return 0 or -errno. */
static int set_realtime(__u64 now_ns)
{
	struct timespec ts = tw_to_timespec(now_ns);

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

/* If a step is as long as this, no stall of the machine is mistaken for it. */
static int step_realtime(__s64 by_ns)
{
	return set_realtime(tw_now(CLOCK_REALTIME) + by_ns);
}

FIXTURE_SETUP(realtime_step)
{
	self->offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	/* If the machine has no battery, its clock stands at 1970: leave room for steps back. */
	ASSERT_EQ(0, set_realtime(tw_now(CLOCK_REALTIME) + 10000 * TW_DAY));
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_REALTIME, TW_MS, 0));
}

/* The parent runs this even if an assertion has ended the test. */
FIXTURE_TEARDOWN_PARENT(realtime_step)
{
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + self->offset_ns));
}

TEST_F(realtime_step, a_step_forwards_expires_timeouts_that_are_now_due)
{
	struct twheel_event event;
	__u64 due, later;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, TW_HOUR, &due));
	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, 3 * TW_HOUR, &later));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(due, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, later));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(realtime_step, a_step_forwards_counts_each_period)
{
	__u64 first_ns = tw_now(CLOCK_REALTIME) + TW_MIN;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, first_ns, TW_MIN, 0, &id));
	ASSERT_EQ(0, set_realtime(first_ns + 99 * TW_MIN + TW_SEC));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(100, event.count);
	EXPECT_EQ(first_ns + 99 * TW_MIN, event.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_F(realtime_step, a_step_backwards_expires_nothing_early)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, 3 * TW_SEC, &id));
	ASSERT_EQ(0, step_realtime(-(__s64)TW_HOUR));
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 4000));
	ASSERT_EQ(0, step_realtime(TW_HOUR));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
}

TEST_F(realtime_step, a_step_backwards_expires_nothing_twice)
{
	struct twheel_event event;
	__u64 one_shot, periodic;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, 0, &one_shot));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, tw_now(CLOCK_REALTIME), TW_MIN, 0,
			     &periodic));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, step_realtime(-(__s64)(10 * TW_SEC)));
	/* Both deadlines are in the future again, and the test does not wait for them. */
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 12000));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, one_shot));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, periodic));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(realtime_step, a_timeout_armed_after_a_step_backwards_expires_in_its_time)
{
	struct twheel_event event;
	__u64 id, far;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, 0, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, TW_DAY, &far));
	ASSERT_EQ(0, step_realtime(-(__s64)TW_HOUR));
	expect_two_in_their_time(_metadata, self->fd, CLOCK_REALTIME);
	ASSERT_EQ(0, tw_arm_at(self->fd, 1, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
}

TEST_F(realtime_step, a_step_wakes_a_sleeping_poller)
{
	struct twheel_event event;
	pid_t pid;
	__u64 id;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_REALTIME, TW_HOUR, &id));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_poll(self->fd, POLLIN, -1) == POLLIN ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	EXPECT_EQ(0, tw_reap(pid));
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

TEST_F(realtime_step, a_step_does_not_touch_a_monotonic_wheel)
{
	int fd = tw_open(O_NONBLOCK);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	EXPECT_EQ(0, tw_poll(fd, POLLIN, 500));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	close(fd);
}

TEST_F(realtime_step, a_step_moves_a_tai_wheel_too)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_TAI, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_ahead(fd, CLOCK_TAI, TW_HOUR, &id));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	close(fd);
}

/* A leap of the offset moves CLOCK_TAI and no other clock. */
TEST_F(realtime_step, a_change_of_the_tai_offset_expires_timeouts_that_are_now_due)
{
	struct timex tai = { .modes = ADJ_TAI, .constant = 1000 };
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_TAI, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_ahead(fd, CLOCK_TAI, 500 * TW_SEC, &id));
	ASSERT_LE(0, adjtimex(&tai));
	EXPECT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	tai.constant = 0;
	ASSERT_LE(0, adjtimex(&tai));
	EXPECT_EQ(id, event.id);
	close(fd);
}

/* The clock steps at random in both directions, while timeouts come and go. */
TEST_F(realtime_step, many_steps_lose_nothing_and_fire_nothing_twice)
{
	struct twheel_event events[64];
	bool seen[200] = {};
	int i, nr, left = 200;
	__u64 seed = 5, id;

	for (i = 0; i < 200; i++) {
		__u64 distance_ns = tw_random(&seed) % (4 * TW_SEC);

		ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE,
				     tw_now(CLOCK_REALTIME) + distance_ns, 0, i, &id));
		if (i % 10 == 9) {
			ASSERT_EQ(0, step_realtime((i / 10 % 2 ? -1 : 1) * (__s64)TW_SEC));
		}
	}
	while (left) {
		ASSERT_LT(0, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
		nr = tw_read(self->fd, events, 64);
		ASSERT_LT(0, nr);
		left -= nr;
		while (nr--) {
			EXPECT_LE(events[nr].deadline_ns, events[nr].fired_ns);
			ASSERT_GT(200, events[nr].user_data);
			ASSERT_FALSE(seen[events[nr].user_data]);
			seen[events[nr].user_data] = true;
		}
	}
	EXPECT_NO_EVENT(self->fd);
	EXPECT_ACCOUNTS(self->fd);
}

/* ---- changes of a timeout's kind -------------------------------------------- */
enum { WAS_PENDING, WAS_UNREAD, STEPPED };

static struct tw_outcome outcomes[] = {
	[WAS_PENDING]	= TW_OUTCOME("re-armed while pending", TW_A_FEW),
	[WAS_UNREAD]	= TW_OUTCOME("re-armed while unread", TW_A_FEW),
	[STEPPED]	= TW_OUTCOME("steps of the clock", TW_A_FEW),
};

static struct contest {
	int fd;
	__u64 id;
	_Atomic bool stop;
	_Atomic int bad;
} contest;

/* The changes that REARM makes; each is valid for a REALTIME clock. */
static const struct {
	__u32 flags;
	bool ahead;		/* its deadline counts from the present time */
	__u64 expires_ns;
	__u64 interval_ns;
} kinds[] = {
	{ 0, true, TW_HOUR, 0 },
	{ 0, false, TWHEEL_TIME_NEVER, 0 },
	{ 0, true, 0, 0 },
	{ 0, true, TW_MS, TW_MS },
	{ TWHEEL_ARM_FIXED_DELAY, true, 0, TW_HOUR },
	{ 0, false, 1, TW_DAY },
};

static void *change_kind(void *arg)
{
	__u64 seed = (uintptr_t)arg;

	while (!contest.stop) {
		int i = tw_random(&seed) % ARRAY_SIZE(kinds);
		__u64 from_ns = kinds[i].ahead ? tw_now(CLOCK_REALTIME) : 0;
		int ret = tw_rearm1(contest.fd, contest.id, TWHEEL_ARM_ABSOLUTE | kinds[i].flags,
				    from_ns + kinds[i].expires_ns, kinds[i].interval_ns);

		/* Its events stay unread, so it never ends. */
		if (ret == TWHEEL_WAS_PENDING)
			tw_saw(&outcomes[WAS_PENDING], 1);
		else if (ret == TWHEEL_WAS_UNREAD)
			tw_saw(&outcomes[WAS_UNREAD], 1);
		else
			contest.bad = ret;
	}
	return NULL;
}

/*
 * timerfd had a bug of this kind (CVE-2017-10661): two threads change the kind of a timeout and
 * whether steps of the clock affect it, while a third thread steps the clock.
 */
TEST(changes_of_kind_against_each_other_and_the_clock_leave_one_timeout)
{
	__u64 offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	struct tw_race race = TW_RACE(outcomes, 1);
	struct twheel_info info;
	pthread_t thread[2];
	__u64 now_ns;
	int i;

	contest.fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, contest.fd);
	ASSERT_EQ(0, tw_setup(contest.fd, TWHEEL_CLOCK_REALTIME, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_ahead(contest.fd, CLOCK_REALTIME, TW_HOUR, &contest.id));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, change_kind, (void *)(i + 1L)));
	while (tw_race_goes_on(&race)) {
		now_ns = tw_now(CLOCK_MONOTONIC) + offset_ns;
		tw_saw(&outcomes[STEPPED], !set_realtime(now_ns + race.rounds % 2 * TW_DAY));
		tw_sleep(TW_MS);
	}
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + offset_ns));
	contest.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);

	EXPECT_EQ(0, (int)contest.bad);
	EXPECT_ACCOUNTS(contest.fd);
	ASSERT_EQ(0, tw_info(contest.fd, &info));
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(outcomes[WAS_PENDING].count + outcomes[WAS_UNREAD].count, info.rearmed);
	EXPECT_RACE(&race);
	/* The timeout can still be re-armed. */
	ASSERT_LT(0, tw_rearm1(contest.fd, contest.id, TWHEEL_ARM_ABSOLUTE, 1, 0));
	EXPECT_EQ(POLLIN, tw_poll(contest.fd, POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(contest.fd, contest.id));
	EXPECT_EQ(0, tw_poll(contest.fd, POLLIN, 20));
	close(contest.fd);
}

/* ---- other changes of the machine's time ----------------------------------- */

#define SOURCES	"/sys/devices/system/clocksource/clocksource0/"

/* The machine's time is changed, and put right again after each test. */
FIXTURE(clocks) {
	__u64 offset_ns;	/* CLOCK_REALTIME less CLOCK_MONOTONIC */
	char source[32];
};

static ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return len < 0 ? -errno : 0;
}

static int set_skew(long ppm)
{
	struct timex timex = { .modes = ADJ_FREQUENCY, .freq = ppm << 16 };

	return adjtimex(&timex);
}

FIXTURE_SETUP(clocks)
{
	self->offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	read_text(SOURCES "current_clocksource", self->source, sizeof(self->source));
}

/* The parent runs this even if an assertion has ended the test. */
FIXTURE_TEARDOWN_PARENT(clocks)
{
	EXPECT_LE(0, set_skew(0));
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + self->offset_ns));
	write_text(SOURCES "current_clocksource", self->source);
}

static const struct {
	__u32 clock;
	clockid_t clockid;
} clocks[] = {
	{ TWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC }, { TWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
	{ TWHEEL_CLOCK_REALTIME, CLOCK_REALTIME }, { TWHEEL_CLOCK_TAI, CLOCK_TAI },
};

/* Timeouts up to 100 ms ahead expire on each clock, by the time of that clock. */
static void expect_on_no_clock_early(struct __test_metadata *_metadata)
{
	struct twheel_event event;
	int i, j;
	__u64 id;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = tw_open(O_NONBLOCK);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_setup(fd, clocks[i].clock, TW_MS, 0));
		for (j = 1; j <= 10; j++)
			ASSERT_EQ(0, tw_arm_ahead(fd, clocks[i].clockid, j * 5 * TW_MS, &id));
		for (j = 1; j <= 10; j++) {
			ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
			EXPECT_LE(event.deadline_ns, event.fired_ns);
			EXPECT_LE(event.deadline_ns, tw_now(clocks[i].clockid));
		}
		EXPECT_ACCOUNTS(fd);
		close(fd);
	}
}

/* 500 ppm is the kernel's maximum. */
TEST_F(clocks, no_skew_of_the_clock_makes_a_timeout_early)
{
	ASSERT_LE(0, set_skew(500));
	expect_on_no_clock_early(_metadata);
	ASSERT_LE(0, set_skew(-500));
	expect_on_no_clock_early(_metadata);
}

TEST_F(clocks, no_change_of_the_clock_source_makes_a_timeout_early)
{
	char sources[256], *source, *rest = sources;
	int nr = 0;

	/* Each name is followed by a blank. */
	if (read_text(SOURCES "available_clocksource", sources, sizeof(sources)) < 0 ||
	    strchr(sources, ' ') == strrchr(sources, ' '))
		SKIP(return, "this machine has no two clock sources");
	while ((source = strtok_r(rest, "\n ", &rest))) {
		ASSERT_EQ(0, write_text(SOURCES "current_clocksource", source));
		expect_on_no_clock_early(_metadata);
		nr++;
	}
	EXPECT_LT(1, nr);
}

TEST_F(clocks, the_end_of_32_bits_of_seconds_is_a_second_as_any_other)
{
	const __u64 end_ns = (1ULL << 31) * TW_SEC;
	int i, fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_REALTIME, TW_MS, 0));
	ASSERT_EQ(0, set_realtime(end_ns - 100 * TW_MS));
	for (i = -5; i <= 5; i++)
		ASSERT_EQ(0, tw_arm_at(fd, end_ns + i * 10 * TW_MS, &id));
	for (i = -5; i <= 5; i++) {
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		EXPECT_EQ(end_ns + i * 10 * TW_MS, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		EXPECT_LE(event.fired_ns, tw_now(CLOCK_REALTIME));
	}
	EXPECT_NO_EVENT(fd);
	close(fd);
}

TEST_HARNESS_MAIN
