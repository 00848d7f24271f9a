// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of TAI's offset and leap seconds, for wheels on CLOCK_TAI and CLOCK_REALTIME.
 *
 * A change of the offset moves CLOCK_TAI and no other clock. A leap second does the reverse:
 * CLOCK_REALTIME steps, and CLOCK_TAI goes on. (twheel_clock_steps.c tests steps of the time of
 * day.) These tests need CAP_SYS_TIME and a machine that may have a wrong time for a while.
 */
#include "set_back.h"

#include <sys/timex.h>

#define LONG_AGO_S	1000
#define CROWD		300

/* Arm a timeout that is due, so that the wheel checks whether others are due. */
#define NUDGE		CROWD

/* Call adjtimex() to set one thing. Return the state of the clock, or -errno. */
static int adjust(unsigned int mode, int status, long constant)
{
	struct timex timex = { .modes = mode, .status = status, .constant = constant };
	int ret = adjtimex(&timex);

	return ret < 0 ? -errno : ret;
}

/* Set the offset of TAI; return 0 or -errno. */
static int set_tai_offset(long seconds)
{
	int ret = adjust(ADJ_TAI, 0, seconds);

	return ret < 0 ? ret : 0;
}

static int set_realtime(__u64 now_ns)
{
	struct timespec ts = tw_to_timespec(now_ns);

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

static int open_wheel(__u32 clock)
{
	const struct twheel_setup setup = { .clock = clock, .tick_ns = TW_MS };

	return tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
}

/* ---- the offset ---------------------------------------------------------- */

FIXTURE(tai) {
	int fd;
};

FIXTURE_SETUP(tai)
{
	int ret = set_tai_offset(LONG_AGO_S);

	if (ret == -EPERM)
		SKIP(return, "the clock cannot be set: %s", strerror(-ret));
	ASSERT_EQ(0, ret);
	self->fd = open_wheel(TWHEEL_CLOCK_TAI);
	ASSERT_LE(0, self->fd);
}

/* The parent runs this even if an assertion has ended the test. */
FIXTURE_TEARDOWN_PARENT(tai)
{
	set_tai_offset(0);
}

TEST_F(tai, an_offset_set_forwards_expires_timeouts_now_due_and_no_others)
{
	struct twheel_event event;
	__u64 due, later;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, 500 * TW_SEC, &due));
	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, 5000 * TW_SEC, &later));
	ASSERT_EQ(0, set_tai_offset(2 * LONG_AGO_S));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(due, event.id);
	EXPECT_EQ(1, event.count);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_LE(event.fired_ns, tw_now(CLOCK_TAI));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, later));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(tai, an_offset_set_backwards_expires_nothing_early)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, 3 * TW_SEC, &id));
	ASSERT_EQ(0, set_tai_offset(0));
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 4000));
	ASSERT_EQ(0, set_tai_offset(LONG_AGO_S));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(tai, an_offset_set_backwards_expires_nothing_twice)
{
	struct twheel_event event;
	__u64 one_shot, periodic, far;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, 0, &one_shot));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, tw_now(CLOCK_TAI), TW_HOUR, 0,
			     &periodic));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, TW_DAY, &far));
	/* Both deadlines are a second in the future again, and the test does not wait for them. */
	ASSERT_EQ(0, set_tai_offset(LONG_AGO_S - 1));
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 2000));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, one_shot));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, periodic));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, far));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(tai, a_timeout_armed_after_an_offset_set_backwards_expires_in_its_time)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, 0, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, set_tai_offset(0));
	expect_two_in_their_time(_metadata, self->fd, CLOCK_TAI);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(tai, an_offset_set_forwards_counts_each_period)
{
	__u64 id, first_ns = tw_now(CLOCK_TAI) + 10 * TW_SEC;
	struct twheel_event event;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, first_ns, 100 * TW_SEC, 0, &id));
	ASSERT_EQ(0, set_tai_offset(LONG_AGO_S + 951));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(10, event.count);
	EXPECT_EQ(first_ns + 900 * TW_SEC, event.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(tai, the_offset_does_not_touch_the_other_clocks)
{
	const __u32 clocks[] = {
		TWHEEL_CLOCK_REALTIME, TWHEEL_CLOCK_MONOTONIC, TWHEEL_CLOCK_BOOTTIME,
	};
	const clockid_t clockids[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	__u64 ids[ARRAY_SIZE(clocks)];
	int i, fds[ARRAY_SIZE(clocks)];

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		fds[i] = open_wheel(clocks[i]);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, tw_arm_ahead(fds[i], clockids[i], 500 * TW_SEC, &ids[i]));
	}
	ASSERT_EQ(0, set_tai_offset(2 * LONG_AGO_S));
	tw_sleep(300 * TW_MS);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		EXPECT_NO_EVENT(fds[i]);
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fds[i], ids[i]));
		close(fds[i]);
	}
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(tai, an_offset_set_forwards_wakes_a_sleeping_poller)
{
	struct twheel_event event;
	pid_t pid;
	__u64 id;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, CLOCK_TAI, 500 * TW_SEC, &id));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_poll(self->fd, POLLIN, -1) == POLLIN ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	ASSERT_EQ(0, set_tai_offset(2 * LONG_AGO_S));
	EXPECT_EQ(0, tw_reap(pid));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_ACCOUNTS(self->fd);
}

/* ---- many timeouts ------------------------------------------------------- */

/*
 * Arm one timeout every so often. The clock shows the times between again_from_ns and again_to_ns
 * twice: if a timeout is due there, nothing says when it is early.
 */
struct crowd {
	clockid_t clockid;
	__u64 again_from_ns;
	__u64 again_to_ns;
	bool seen[CROWD];
	__u64 deadline_ns[CROWD];
	int left;
	int nudges;
};

static void check_event(struct __test_metadata *_metadata, struct crowd *crowd,
			const struct twheel_event *event, __u64 now_ns)
{
	__u64 deadline_ns = event->deadline_ns;

	if (event->user_data == NUDGE) {
		crowd->nudges--;
		return;
	}
	ASSERT_GT(CROWD, event->user_data);
	crowd->left--;
	ASSERT_FALSE(crowd->seen[event->user_data])
		TH_LOG("%llu came twice", event->user_data);
	crowd->seen[event->user_data] = true;
	EXPECT_EQ(crowd->deadline_ns[event->user_data], deadline_ns);
	EXPECT_EQ(1, event->count);
	EXPECT_LE(deadline_ns, event->fired_ns);
	if (deadline_ns < crowd->again_from_ns || deadline_ns > crowd->again_to_ns) {
		EXPECT_LE(deadline_ns, now_ns);
	}
}

static void read_some(struct __test_metadata *_metadata, int fd, struct crowd *crowd)
{
	struct twheel_event events[64];
	int i, nr = tw_read(fd, events, 64);
	__u64 now_ns = tw_now(crowd->clockid);

	ASSERT_LT(0, nr);
	for (i = 0; i < nr; i++)
		check_event(_metadata, crowd, &events[i], now_ns);
}

/*
 * Read until all events have come. The wheel has to read its clock all the time, even if nothing is
 * due while the clock shows a time for the second time.
 */
static void read_all(struct __test_metadata *_metadata, int fd, struct crowd *crowd)
{
	__u64 id, until_ns = tw_now(CLOCK_MONOTONIC) + 2 * TW_PATIENCE_MS * TW_MS;

	while (crowd->left || crowd->nudges) {
		ASSERT_GT(until_ns, tw_now(CLOCK_MONOTONIC))
			TH_LOG("%d did not come", crowd->left);
		if (crowd->left) {
			ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, 1, 0, NUDGE, &id));
			crowd->nudges++;
		}
		ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
		read_some(_metadata, fd, crowd);
		tw_sleep(5 * TW_MS);
	}
	EXPECT_NO_EVENT(fd);
}

static void arm_crowd(struct __test_metadata *_metadata, int fd, clockid_t clockid,
		      __u64 every_ns, struct crowd *crowd)
{
	__u64 id, now_ns = tw_now(clockid);
	int i;

	memset(crowd, 0, sizeof(*crowd));
	crowd->clockid = clockid;
	crowd->left = CROWD;
	for (i = 0; i < CROWD; i++) {
		crowd->deadline_ns[i] = now_ns + i * every_ns;
		ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, crowd->deadline_ns[i], 0, i, &id));
	}
}

TEST_F_TIMEOUT(tai, many_changes_of_the_offset_lose_nothing_and_fire_nothing_twice, 60)
{
	const int offsets_s[] = { 1, -1, 2, 0, 1, -2, 0 };
	struct crowd crowd;
	int i;

	arm_crowd(_metadata, self->fd, CLOCK_TAI, 10 * TW_MS, &crowd);
	crowd.again_to_ns = TWHEEL_TIME_NEVER;
	for (i = 0; i < ARRAY_SIZE(offsets_s); i++) {
		ASSERT_EQ(0, set_tai_offset(LONG_AGO_S + offsets_s[i]));
		tw_sleep(150 * TW_MS);
		if (tw_poll(self->fd, POLLIN, 0) == POLLIN)
			read_some(_metadata, self->fd, &crowd);
	}
	read_all(_metadata, self->fd, &crowd);
	EXPECT_ACCOUNTS(self->fd);
}

/* ---- leap seconds -------------------------------------------------------- */

/*
 * The day ends about two seconds after the fixture is ready. At midnight, a leap second is inserted
 * by a step of one second back, or the day's last second is left out.
 */
FIXTURE(leap) {
	int realtime;
	int tai;
	__u64 midnight_ns;
	/* CLOCK_REALTIME less CLOCK_MONOTONIC, before */
	__u64 offset_ns;
};

FIXTURE_VARIANT(leap) {
	int status;
	int state;
	__s64 step_ns;
};

FIXTURE_VARIANT_ADD(leap, inserted) {
	.status = STA_INS,
	.state = TIME_INS,
	.step_ns = -(__s64)TW_SEC,
};

FIXTURE_VARIANT_ADD(leap, deleted) {
	.status = STA_DEL,
	.state = TIME_DEL,
	.step_ns = TW_SEC,
};

/* The kernel forgets a leap second only if the PLL is switched off. */
static void leap_forget(void)
{
	adjust(ADJ_STATUS, STA_PLL, 0);
	adjust(ADJ_STATUS, 0, 0);
}

FIXTURE_SETUP(leap)
{
	int i, ret;

	self->offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	self->midnight_ns = 20000 * TW_DAY;
	ret = set_realtime(self->midnight_ns - 3 * TW_SEC);
	if (ret == -EPERM)
		SKIP(return, "the clock cannot be set: %s", strerror(-ret));
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, set_tai_offset(37));
	leap_forget();
	/* If the clock is unsynchronised, it does not show its state: set the maximum error. */
	ASSERT_LE(0, adjust(ADJ_STATUS | ADJ_MAXERROR, variant->status, 0));
	/* The kernel applies it at the next full second. */
	for (i = 0; i < 200 && adjust(0, 0, 0) != variant->state; i++)
		tw_sleep(10 * TW_MS);
	ASSERT_EQ(variant->state, adjust(0, 0, 0));
	self->realtime = open_wheel(TWHEEL_CLOCK_REALTIME);
	ASSERT_LE(0, self->realtime);
	self->tai = open_wheel(TWHEEL_CLOCK_TAI);
	ASSERT_LE(0, self->tai);
}

FIXTURE_TEARDOWN_PARENT(leap)
{
	leap_forget();
	set_tai_offset(0);
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + self->offset_ns));
}

/* Return how far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC. */
static __s64 realtime_offset_ns(void)
{
	__u64 monotonic_ns = tw_now(CLOCK_MONOTONIC);

	return tw_now(CLOCK_REALTIME) - monotonic_ns;
}

/* The step was made; less than half a second is drift. */
static bool is_stepped(__s64 before_ns, __s64 by_ns)
{
	__s64 off_ns = realtime_offset_ns() - before_ns - by_ns;

	return off_ns > -(__s64)TW_SEC / 2 && off_ns < (__s64)TW_SEC / 2;
}

/* The kernel steps back for an inserted second within a tick or a few after midnight. */
TEST_F_TIMEOUT(leap, realtime_wheel_fires_each_once_and_none_early, 60)
{
	__s64 before_ns = realtime_offset_ns();
	struct crowd crowd;

	arm_crowd(_metadata, self->realtime, CLOCK_REALTIME, 15 * TW_MS, &crowd);
	if (variant->step_ns < 0) {
		crowd.again_from_ns = self->midnight_ns - TW_SEC;
		crowd.again_to_ns = self->midnight_ns + 100 * TW_MS;
	}
	read_all(_metadata, self->realtime, &crowd);
	EXPECT_TRUE(is_stepped(before_ns, variant->step_ns))
		TH_LOG("the leap second did not come");
	EXPECT_ACCOUNTS(self->realtime);
}

TEST_F_TIMEOUT(leap, tai_wheel_goes_on_without_a_gap, 60)
{
	__s64 before_ns = realtime_offset_ns();
	__u64 armed_ns, id;
	struct twheel_event event;
	struct crowd crowd;

	armed_ns = tw_now(CLOCK_MONOTONIC);
	arm_crowd(_metadata, self->tai, CLOCK_TAI, 15 * TW_MS, &crowd);
	read_all(_metadata, self->tai, &crowd);
	EXPECT_LE(armed_ns + (CROWD - 1) * 15 * TW_MS - TW_MS, tw_now(CLOCK_MONOTONIC));
	EXPECT_TRUE(is_stepped(before_ns, variant->step_ns))
		TH_LOG("the leap second did not come");
	/* If a timeout is armed after the leap second, it is not early either. */
	ASSERT_EQ(0, tw_arm_ahead(self->tai, CLOCK_TAI, 20 * TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(self->tai, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_ACCOUNTS(self->tai);
}

TEST_HARNESS_MAIN
