// SPDX-License-Identifier: GPL-2.0
/*
 * Timeouts that become due while the machine sleeps, on clocks that go on during the sleep and on
 * the one that stands still.
 *
 * The machine really sleeps (S3), and its RTC wakes it. That takes a kernel that supports it, an
 * RTC with an alarm, and root. If one of them is missing, all tests are skipped. No test judges
 * how long something took: each compares with the time by which CLOCK_BOOTTIME went further than
 * CLOCK_MONOTONIC.
 */
#include "twheel_outside.h"

#define ALARM		"/sys/class/rtc/rtc0/wakealarm"
#define POWER_STATE	"/sys/power/state"
#define MEM_SLEEP	"/sys/power/mem_sleep"

/*
 * Seconds until the alarm. It has to ring after the machine has fallen asleep, or nothing would
 * wake it. If the machine is slow, it needs a moment to fall asleep.
 */
#define ALARM_S		"+4"

/*
 * A timeout this far ahead is due while the machine sleeps, with a wide margin on either side for
 * the alarm's whole seconds and for a slow machine.
 */
#define ASLEEP_NS	(3 * TW_SEC / 2)

/* Margin of the sleep: the persistent clock may know whole seconds only. */
#define LEAST_SLEEP_NS	(TW_SEC)

#define CROWD		5000

static bool file_says(const char *path, const char *word)
{
	FILE *file = fopen(path, "re");
	char text[128] = "";
	bool found;

	if (!file)
		return false;
	found = fgets(text, sizeof(text), file) && strstr(text, word);
	fclose(file);
	return found;
}

/*
 * Sleep with S3 and no other state: from the state that this kernel calls s2idle, not every RTC
 * wakes the machine. If the machine did not fall asleep, return -errno, otherwise 0.
 */
static int machine_sleep(void)
{
	int ret = tw_write_text(MEM_SLEEP, "deep");

	if (!ret)
		ret = tw_write_text(ALARM, "0");
	if (!ret)
		ret = tw_write_text(ALARM, ALARM_S);
	return ret ? ret : tw_write_text(POWER_STATE, "mem");
}

/* Return how much longer the machine has been up than awake. */
static __u64 slept_ns(void)
{
	__u64 awake_ns = tw_now(CLOCK_MONOTONIC);

	return tw_now(CLOCK_BOOTTIME) - awake_ns;
}

/* ---- wheels across a sleep ----------------------------------------------- */

FIXTURE(suspend) {
	int boottime;
	int monotonic;
	/* when the machine went to sleep, on CLOCK_MONOTONIC */
	__u64 awake_ns;
	/* how long it then slept */
	__u64 slept_ns;
};

static int open_wheel(__u32 clock)
{
	const struct twheel_setup setup = { .clock = clock, .tick_ns = TW_MS };

	return tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
}

FIXTURE_SETUP(suspend)
{
	if (!file_says(POWER_STATE, "mem") || !file_says(MEM_SLEEP, "deep"))
		SKIP(return, "this kernel cannot suspend the machine to memory");
	if (!access("/sys/kernel/debug/kcsan", F_OK))
		SKIP(return, "with KCSAN the kernel does not come back from that");
	if (access(ALARM, W_OK))
		SKIP(return, "there is no RTC that could wake the machine");
	self->boottime = open_wheel(TWHEEL_CLOCK_BOOTTIME);
	ASSERT_LE(0, self->boottime);
	self->monotonic = open_wheel(TWHEEL_CLOCK_MONOTONIC);
	ASSERT_LE(0, self->monotonic);
}

FIXTURE_TEARDOWN(suspend)
{
	EXPECT_ACCOUNTS(self->boottime);
	EXPECT_ACCOUNTS(self->monotonic);
	close(self->boottime);
	close(self->monotonic);
}

static void sleep_now(struct __test_metadata *_metadata, FIXTURE_DATA(suspend) *self)
{
	__u64 before_ns = slept_ns();

	self->awake_ns = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, machine_sleep());
	self->slept_ns = slept_ns() - before_ns;
	TH_LOG("slept %llu ms, with %llu ms awake around it", self->slept_ns / TW_MS,
	       (tw_now(CLOCK_MONOTONIC) - self->awake_ns) / TW_MS);
	ASSERT_LE(LEAST_SLEEP_NS, self->slept_ns);
}

/* On clocks that go on during the sleep, it expires on waking. */
TEST_F_TIMEOUT(suspend, a_timeout_due_during_sleep_expires_on_waking, 60)
{
	const __u32 clocks[] = {
		TWHEEL_CLOCK_BOOTTIME, TWHEEL_CLOCK_REALTIME, TWHEEL_CLOCK_TAI,
	};
	const clockid_t clockids[] = { CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_TAI };
	struct twheel_event event;
	int i, fds[ARRAY_SIZE(clocks)];
	__u64 ids[ARRAY_SIZE(clocks)];

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		fds[i] = open_wheel(clocks[i]);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, tw_arm_ahead(fds[i], clockids[i], ASLEEP_NS, &ids[i]));
	}
	sleep_now(_metadata, self);
	if (tw_now(CLOCK_MONOTONIC) - self->awake_ns >= ASLEEP_NS)
		SKIP(return, "so slow a machine that all would be due without the sleep");
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		ASSERT_EQ(1, tw_wait_event(fds[i], &event, TW_PATIENCE_MS));
		/* If it did not, the timeout would have to wait for the same time awake. */
		EXPECT_GT(self->slept_ns, event.fired_ns - event.deadline_ns)
			TH_LOG("clock %u", clocks[i]);
		EXPECT_EQ(ids[i], event.id);
		EXPECT_EQ(1, event.count);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		EXPECT_LE(event.fired_ns, tw_now(clockids[i]));
		EXPECT_NO_EVENT(fds[i]);
		EXPECT_ACCOUNTS(fds[i]);
		close(fds[i]);
	}
}

TEST_F_TIMEOUT(suspend, a_monotonic_timeout_does_not_count_the_sleep, 60)
{
	struct twheel_event event;
	__u64 armed_ns, id;

	armed_ns = tw_now(CLOCK_BOOTTIME);
	ASSERT_EQ(0, tw_arm_in(self->monotonic, ASLEEP_NS, &id));
	sleep_now(_metadata, self);
	ASSERT_EQ(1, tw_wait_event(self->monotonic, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_LE(event.deadline_ns, tw_now(CLOCK_MONOTONIC));
	/* On CLOCK_BOOTTIME, which goes on, it is late by the sleep. */
	EXPECT_LE(armed_ns + ASLEEP_NS + self->slept_ns, tw_now(CLOCK_BOOTTIME));
}

/* The hrtimer's clock has moved; the hrtimer must not go by the distance that it knew before. */
TEST_F_TIMEOUT(suspend, a_boottime_timeout_due_after_the_sleep_is_not_delayed_by_it, 60)
{
	/* The alarm is 4 seconds ahead at the most. */
	const __u64 distance_ns = 6 * TW_SEC;
	struct twheel_event event;
	__u64 id, due_ns;

	ASSERT_EQ(0, tw_arm_in(self->boottime, distance_ns, &id));
	sleep_now(_metadata, self);
	/* If the machine is slow, it may take longer than that to sleep and to wake. */
	due_ns = tw_now(CLOCK_BOOTTIME);
	ASSERT_EQ(1, tw_wait_event(self->boottime, &event, TW_PATIENCE_MS));
	if (due_ns < event.deadline_ns)
		due_ns = event.deadline_ns;
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_LE(event.deadline_ns, tw_now(CLOCK_BOOTTIME));
	EXPECT_GT(due_ns + self->slept_ns, event.fired_ns);
}

TEST_F_TIMEOUT(suspend, periods_passed_asleep_are_counted_on_boottime_only, 60)
{
	const __u64 interval_ns = 100 * TW_MS;
	struct twheel_event boottime, monotonic;
	struct twheel_status row = {};
	__u64 id, other, passed_ns;
	int tries;

	ASSERT_EQ(0, tw_arm1(self->boottime, 0, interval_ns, interval_ns, 0, &id));
	ASSERT_EQ(0, tw_arm1(self->monotonic, 0, interval_ns, interval_ns, 0, &other));
	passed_ns = tw_now(CLOCK_MONOTONIC);
	sleep_now(_metadata, self);
	/* Read until all timeouts that were due when the clocks went on have expired. */
	for (tries = 0; tries < TW_PATIENCE_MS / 500; tries++) {
		tw_sleep(5 * interval_ns);
		ASSERT_EQ(0, tw_query1(self->boottime, id, &row));
		if ((tw_now(CLOCK_MONOTONIC) - passed_ns + self->slept_ns) / interval_ns <=
		    row.count + 3)
			break;
	}
	ASSERT_EQ(1, tw_wait_event(self->boottime, &boottime, TW_PATIENCE_MS));
	ASSERT_EQ(1, tw_wait_event(self->monotonic, &monotonic, TW_PATIENCE_MS));
	passed_ns = tw_now(CLOCK_MONOTONIC) - passed_ns;
	TH_LOG("%u periods on boottime, %u on monotonic", boottime.count, monotonic.count);
	EXPECT_LE(self->slept_ns / interval_ns, boottime.count);
	EXPECT_LE((passed_ns + self->slept_ns) / interval_ns + 1, boottime.count + 5);
	EXPECT_GE((passed_ns + self->slept_ns) / interval_ns + 1, boottime.count);
	EXPECT_GE(passed_ns / interval_ns + 1, monotonic.count);
	EXPECT_LE(boottime.deadline_ns, boottime.fired_ns);
	EXPECT_LE(monotonic.deadline_ns, monotonic.fired_ns);
}

/* ---- many timeouts ------------------------------------------------------- */

static struct twheel_arm arms[CROWD];

/* The deadlines are spread from now until well after the sleep. */
static void arm_crowd(struct __test_metadata *_metadata, int fd, __u64 *seed)
{
	int i;

	memset(arms, 0, sizeof(arms));
	for (i = 0; i < CROWD; i++) {
		arms[i].expires_ns = tw_random(seed) % 6000 * TW_MS;
		arms[i].user_data = i;
	}
	ASSERT_EQ(CROWD, tw_arm_vec(fd, arms, CROWD));
}

static void read_crowd(struct __test_metadata *_metadata, int fd, clockid_t clockid)
{
	struct twheel_event events[256];
	bool seen[CROWD] = {};
	int i, nr, left = CROWD;

	while (left) {
		__u64 now_ns;

		ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS))
			TH_LOG("%d did not come", left);
		nr = tw_read(fd, events, 256);
		ASSERT_LT(0, nr);
		now_ns = tw_now(clockid);
		for (i = 0; i < nr; i++) {
			ASSERT_LE(events[i].deadline_ns, events[i].fired_ns);
			ASSERT_LE(events[i].fired_ns, now_ns);
			ASSERT_GT(CROWD, events[i].user_data);
			ASSERT_FALSE(seen[events[i].user_data]);
			seen[events[i].user_data] = true;
		}
		left -= nr;
	}
	EXPECT_NO_EVENT(fd);
}

TEST_F_TIMEOUT(suspend, none_of_many_timeouts_is_lost_or_early, 60)
{
	__u64 seed = 1;

	arm_crowd(_metadata, self->boottime, &seed);
	arm_crowd(_metadata, self->monotonic, &seed);
	sleep_now(_metadata, self);
	read_crowd(_metadata, self->boottime, CLOCK_BOOTTIME);
	read_crowd(_metadata, self->monotonic, CLOCK_MONOTONIC);
}

/* ---- waiters during the sleep -------------------------------------------- */

/*
 * If the machine falls asleep, waiting threads are frozen as by a signal, and wait on when it is
 * awake again.
 */
TEST_F_TIMEOUT(suspend, a_blocked_reader_and_a_poller_wait_on, 60)
{
	int flags = fcntl(self->boottime, F_GETFL);
	struct twheel_event event;
	pid_t reader, poller;
	__u64 id;

	ASSERT_EQ(0, fcntl(self->boottime, F_SETFL, flags & ~O_NONBLOCK));
	ASSERT_EQ(0, tw_arm_in(self->boottime, ASLEEP_NS, &id));
	ASSERT_EQ(0, tw_arm_in(self->monotonic, ASLEEP_NS, &id));
	reader = fork();
	ASSERT_LE(0, reader);
	if (!reader)
		_exit(tw_read(self->boottime, &event, 1) == 1 &&
		      event.deadline_ns <= event.fired_ns ? 0 : 1);
	poller = fork();
	ASSERT_LE(0, poller);
	if (!poller)
		_exit(tw_poll(self->monotonic, POLLIN, -1) == POLLIN ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(reader));
	ASSERT_EQ(0, tw_wait_asleep(poller));
	sleep_now(_metadata, self);
	EXPECT_EQ(0, tw_reap(reader));
	EXPECT_EQ(0, tw_reap(poller));
}

TEST_F_TIMEOUT(suspend, a_timeout_armed_after_the_sleep_expires_in_its_time, 60)
{
	struct twheel_event event;
	__u64 id, far;

	ASSERT_EQ(0, tw_arm_in(self->boottime, TW_HOUR, &far));
	ASSERT_EQ(0, tw_arm_in(self->monotonic, TW_HOUR, &far));
	sleep_now(_metadata, self);
	ASSERT_EQ(0, tw_arm_in(self->boottime, 20 * TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(self->boottime, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	ASSERT_EQ(0, tw_arm_in(self->monotonic, 20 * TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(self->monotonic, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_NO_EVENT(self->boottime);
	EXPECT_NO_EVENT(self->monotonic);
}

TEST_HARNESS_MAIN
