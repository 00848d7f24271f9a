// SPDX-License-Identifier: GPL-2.0
/*
 * Turns end (G2, G5): two wheels that one kthread serves have tens of thousands of timeouts each,
 * which expire at the same time.  They take turns: sorted by fired_ns, the events of the two come
 * in many pieces, and not first all of the one and then all of the other.  That depends neither on
 * the speed of the machine nor on its load.  If it stalls between the two alarms, one wheel may be
 * done before the other begins, so the best of a few tries counts.  The KUnit suites test the turns
 * of the kthread's other loops.
 */
#include "twheel_outside.h"

#define WHEELS		2
/* Ten turns handle this many timeouts. */
#define NR		40960
#define VECTOR		512
/* If one wheel came after the other, there would be two pieces. */
#define LEAST_PIECES	6
#define TRIES		4
#define LONGEST_LEAD_NS	(16 * TW_SEC)

static struct wheel {
	int fd;
	__u64 fired_ns[NR];
} wheels[WHEELS];

FIXTURE(turns) {
};

FIXTURE_SETUP(turns)
{
}

FIXTURE_TEARDOWN(turns)
{
}

static int open_wheel(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS };

	return tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
}

/* Open wheels that the same kthread serves; others are closed again. */
static void open_wheels(struct __test_metadata *_metadata)
{
	int other[64], nr = 0;
	pid_t pid;

	wheels[0].fd = open_wheel();
	ASSERT_LE(0, wheels[0].fd);
	pid = tw_kthread_of(wheels[0].fd);
	ASSERT_LT(0, pid);
	for (;;) {
		wheels[1].fd = open_wheel();
		ASSERT_LE(0, wheels[1].fd);
		if (tw_kthread_of(wheels[1].fd) == pid)
			break;
		ASSERT_GT(ARRAY_SIZE(other), nr);
		other[nr++] = wheels[1].fd;
	}
	while (nr)
		close(other[--nr]);
}

static void arm_wheels(struct __test_metadata *_metadata, __u64 deadline_ns)
{
	static struct twheel_arm arms[VECTOR];
	int i, j, w;

	for (w = 0; w < WHEELS; w++) {
		for (i = 0; i < NR; i += VECTOR) {
			for (j = 0; j < VECTOR; j++)
				arms[j] = (struct twheel_arm){
					.flags = TWHEEL_ARM_ABSOLUTE,
					.expires_ns = deadline_ns,
				};
			ASSERT_EQ(VECTOR, tw_arm_vec(wheels[w].fd, arms, VECTOR));
		}
	}
}

static bool all_unread(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	return !tw_ioctl(fd, TWHEEL_IOC_INFO, &info) && info.unread == NR;
}

static void read_wheels(struct __test_metadata *_metadata)
{
	static struct twheel_event events[VECTOR];
	int i, nr, got, w;

	for (w = 0; w < WHEELS; w++) {
		ASSERT_TRUE(TW_WAIT_FOR(all_unread(wheels[w].fd), 10 * TW_MS));
		for (got = 0; got < NR; got += nr) {
			nr = tw_read(wheels[w].fd, events, VECTOR);
			ASSERT_LT(0, nr);
			for (i = 0; i < nr; i++)
				wheels[w].fired_ns[got + i] = events[i].fired_ns;
		}
		ASSERT_EQ(NR, got);
		EXPECT_ACCOUNTS(wheels[w].fd);
	}
}

/* Return in how many pieces the events of the two wheels come. */
static int count_pieces(void)
{
	int i = 0, j = 0, nr = 0, last = -1, next;

	while (i < NR || j < NR) {
		next = i == NR || (j < NR && wheels[1].fired_ns[j] < wheels[0].fired_ns[i]);
		nr += next != last;
		last = next;
		if (next)
			j++;
		else
			i++;
	}
	return nr;
}

/* Return whether all was armed in time. */
static bool try_turns(struct __test_metadata *_metadata, __u64 lead_ns)
{
	__u64 deadline_ns;

	open_wheels(_metadata);
	deadline_ns = tw_now(CLOCK_MONOTONIC) + lead_ns;
	arm_wheels(_metadata, deadline_ns);
	if (tw_now(CLOCK_MONOTONIC) >= deadline_ns && lead_ns < LONGEST_LEAD_NS)
		return false;
	tw_sleep_until(deadline_ns);
	read_wheels(_metadata);
	return true;
}

TEST_F_TIMEOUT(turns, turns_of_expiry_alternate_between_two_wheels, 100)
{
	int nr, best = 0, try;
	__u64 lead_ns = TW_SEC / 2;
	bool in_time;

	for (try = 0; try < TRIES && best < LEAST_PIECES; try += in_time) {
		in_time = try_turns(_metadata, lead_ns);
		if (!in_time)
			lead_ns *= 2;
		nr = in_time ? count_pieces() : 0;
		best = nr > best ? nr : best;
		close(wheels[0].fd);
		close(wheels[1].fd);
	}
	TH_LOG("%d pieces", best);
	EXPECT_LE(LEAST_PIECES, best);
}

TEST_HARNESS_MAIN
