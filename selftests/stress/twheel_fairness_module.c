// SPDX-License-Identifier: GPL-2.0
/*
 * Users take turns (G2): one kthread serves 64 wheels of a hostile user, who has as much work for
 * it as there can be, and one wheel of another user.  That user's timeouts are hardly later than
 * beside processes which merely burn processor time: as many of them as run in the attack, and one
 * for the kthread, but none if the hostile user sleeps.
 *
 * The program loads and unloads the module itself, with a single kthread; TWHEEL_KO
 * names the file.  TW_MILLION, 1000000 unless it is set, scales the attacks.
 */
#include "twheel_module.h"
#include "twheel_outside.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define HOSTILE_UID	65534
#define OTHER_UID	1000

#define WHEELS		64
#define PER_WHEEL	4096
#define VECTOR		512
#define SAMPLES		300
/* How far ahead the other user's timeouts are armed. */
#define AHEAD_NS	(2 * TW_MS)

/* If an emulated processor stands still for a while, a try fails: the best of so many counts. */
#define TRIES		4

/* Shared by all processes. */
static struct shared {
	atomic_int ready;
	atomic_int failed;
	atomic_bool stop;
	__u32 late_us[SAMPLES];
} *shared;

static void must(bool condition)
{
	if (condition)
		return;
	atomic_store(&shared->failed, errno ?: -1);
	_exit(1);
}

static int compare_u32(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return (x > y) - (x < y);
}

/*
 * Wait for a child as long as it takes; return its status, as waitpid() has it.  Three hundred
 * timeouts, or closing 64 wheels, may take a slow kernel longer than TW_PATIENCE_MS, which is for
 * one thing.  The limit is that of the test.
 */
static int wait_for(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* ---- the other user ------------------------------------------------------ */

static void other_user(void)
{
	struct twheel_event event;
	int i, fd;
	__u64 id;

	must(!setgid(OTHER_UID) && !setuid(OTHER_UID));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	must(fd >= 0);
	for (i = 0; i < SAMPLES; i++) {
		__u64 edge_ns = tw_round_up(tw_now(CLOCK_MONOTONIC) + AHEAD_NS, TW_MS);

		must(!tw_arm_at(fd, edge_ns, &id));
		must(tw_wait_event(fd, &event, TW_PATIENCE_MS) == 1);
		must(event.id == id && event.fired_ns >= edge_ns);
		shared->late_us[i] = (event.fired_ns - edge_ns) / TW_US;
	}
}

/* Return a lateness that 99 of 100 timeouts of the other user do not exceed, microseconds. */
static __u32 other_user_p99(struct __test_metadata *_metadata)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		other_user();
		_exit(0);
	}
	ASSERT_EQ(0, wait_for(pid))
		TH_LOG("%s", strerror(atomic_load(&shared->failed)));
	qsort(shared->late_us, SAMPLES, sizeof(shared->late_us[0]), compare_u32);
	return shared->late_us[SAMPLES - 1 - SAMPLES / 100];
}

/* ---- the hostile one ----------------------------------------------------- */

static void burn(void)
{
	atomic_fetch_add(&shared->ready, 1);
	while (!atomic_load(&shared->stop))
		;
}

static __u32 per_wheel(void)
{
	return PER_WHEEL * tw_setting("TW_MILLION", 1000000) / 1000000;
}

static void arm_wheel(int fd, __u64 deadline_ns, __u64 interval_ns)
{
	static struct twheel_arm arms[VECTOR];
	__u32 i, done, n;

	for (done = 0; done < per_wheel(); done += n) {
		n = per_wheel() - done < VECTOR ? per_wheel() - done : VECTOR;
		for (i = 0; i < n; i++)
			arms[i] = (struct twheel_arm){
				.expires_ns = deadline_ns,
				.interval_ns = interval_ns,
				.flags = TWHEEL_ARM_ABSOLUTE,
			};
		must(tw_arm_vec(fd, arms, n) == (int)n);
	}
}

static int open_wheel(__u64 tick_ns)
{
	const struct twheel_setup setup = { .tick_ns = tick_ns };
	int fd = tw_open_setup(O_NONBLOCK, &setup);

	must(fd >= 0);
	return fd;
}

/* Let periods pass, as short as can be, which nobody reads. */
static void unread_periods(void)
{
	int i;

	for (i = 0; i < WHEELS; i++)
		arm_wheel(open_wheel(TWHEEL_TICK_MIN_NS), 0, TWHEEL_TICK_MIN_NS);
	atomic_fetch_add(&shared->ready, 1);
	while (!atomic_load(&shared->stop))
		tw_sleep(TW_MS);
}

/* Empty wheels, and arm timeouts that are due at once, again and again. */
static void read_periods(void)
{
	static struct twheel_event events[VECTOR];
	int i, fds[WHEELS];

	for (i = 0; i < WHEELS; i++) {
		fds[i] = open_wheel(TWHEEL_TICK_MIN_NS);
		arm_wheel(fds[i], 0, TWHEEL_TICK_MIN_NS);
	}
	atomic_fetch_add(&shared->ready, 1);
	for (i = 0; !atomic_load(&shared->stop); i = (i + 1) % WHEELS)
		tw_read(fds[i], events, VECTOR);
}

/* Let all timeouts be due at once; those that nobody reads are re-armed at the next moment. */
static void all_due_at_once(void)
{
	static struct twheel_arm arms[WHEELS][VECTOR];
	int i, j, fds[WHEELS];

	for (i = 0; i < WHEELS; i++) {
		fds[i] = open_wheel(TW_MS);
		arm_wheel(fds[i], 0, 0);
		for (j = 0; j < VECTOR; j++)
			must(!tw_arm_in(fds[i], 0, &arms[i][j].id));
	}
	atomic_fetch_add(&shared->ready, 1);
	while (!atomic_load(&shared->stop))
		for (i = 0; i < WHEELS && !atomic_load(&shared->stop); i++)
			must(tw_rearm_vec(fds[i], arms[i], VECTOR) == VECTOR);
}

FIXTURE(fairness) {
	pid_t pids[2];
};

FIXTURE_VARIANT(fairness) {
	void (*attack)(void);
	int nr_burners;
};

FIXTURE_VARIANT_ADD(fairness, unread_periods) {
	.attack = unread_periods,
};

FIXTURE_VARIANT_ADD(fairness, read_periods) {
	.attack = read_periods,
	.nr_burners = 2,
};

FIXTURE_VARIANT_ADD(fairness, all_due_at_once) {
	.attack = all_due_at_once,
	.nr_burners = 2,
};

FIXTURE_SETUP(fairness)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	/* If a test failed, it has left the module. */
	tw_unload_soon();
	ASSERT_EQ(0, tw_load_and_wait("kthreads=1"));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
}

FIXTURE_TEARDOWN(fairness)
{
	tw_unload_soon();
	munmap(shared, sizeof(*shared));
}

/* Start so many processes of the hostile user, each of which does the same. */
static void hostile_start(struct __test_metadata *_metadata, FIXTURE_DATA(fairness) *self,
			  void (*attack)(void), int nr)
{
	int i;

	atomic_store(&shared->ready, 0);
	atomic_store(&shared->stop, false);
	for (i = 0; i < nr; i++) {
		self->pids[i] = fork();
		ASSERT_LE(0, self->pids[i]);
		if (self->pids[i])
			continue;
		must(!setgid(HOSTILE_UID) && !setuid(HOSTILE_UID));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		attack();
		_exit(0);
	}
	for (i = 0; i < 4 * TW_PATIENCE_MS / 10 && atomic_load(&shared->ready) < nr &&
	     !atomic_load(&shared->failed); i++)
		tw_sleep(10 * TW_MS);
	ASSERT_EQ(nr, atomic_load(&shared->ready))
		TH_LOG("the attack: %s", strerror(atomic_load(&shared->failed)));
}

static void hostile_stop(struct __test_metadata *_metadata, FIXTURE_DATA(fairness) *self, int nr)
{
	int i;

	atomic_store(&shared->stop, true);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, wait_for(self->pids[i]))
			TH_LOG("the attack: %s", strerror(atomic_load(&shared->failed)));
	}
}

/* If the lateness is 5 ms more than three times that beside mere load, the module is to blame. */
TEST_F_TIMEOUT(fairness, another_user_waits_for_a_turn_and_not_for_64_wheels, 110)
{
	__u32 load_us, beside_us, limit_us = 0;
	int i;

	for (i = 0, beside_us = ~0U; i < TRIES && beside_us > limit_us; i++) {
		hostile_start(_metadata, self, burn, variant->nr_burners);
		load_us = other_user_p99(_metadata);
		hostile_stop(_metadata, self, variant->nr_burners);
		hostile_start(_metadata, self, variant->attack, 1);
		beside_us = other_user_p99(_metadata);
		hostile_stop(_metadata, self, 1);
		limit_us = 3 * load_us + 5000;
		printf("# p99 of the lateness: %u us beside %d that burn, %u us beside 64 hostile wheels\n",
		       load_us, variant->nr_burners, beside_us);
	}
	EXPECT_GE(limit_us, beside_us);
}

TEST_HARNESS_MAIN
