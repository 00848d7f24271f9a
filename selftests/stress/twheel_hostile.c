// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile user: processes without privilege, which may open the device and are in a memory
 * cgroup, do their worst, one attack a test. Beside them run tasks that wake every millisecond, and
 * another user who has wheels of ten timeouts each.
 *
 * Under each attack, the cgroup's limit must hold, and no memory may be used that is not charged to
 * it. There may be no OOM kill outside it, and no more threads. The other user's timeouts all come,
 * and none early.  When the attackers are gone, so is all that they had.  The lateness of the other
 * user and of the tasks is printed, and compared with that beside as many processes which merely
 * burn processor time: that a machine is busy is no fault.
 *
 * TW_MILLION, 1000000 unless it is set, scales the attacks for slow kernels; and TW_SLOWDOWN, 1
 * unless it is set, says how much slower than usual the kernel's code is in comparison with that of
 * users, by which the load is measured.
 */
#include "twheel_outside.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define CGROUP		"/sys/fs/cgroup"
#define GROUP		CGROUP "/twheel_hostile"

/* The cgroup's limit, bytes: full within seconds. */
static long memory_max(void)
{
	return (32L << 20) + (96L << 20) * tw_setting("TW_MILLION", 1000000) / 1000000;
}

/* An attack is watched for at least this long. */
static __u64 window_ns(void)
{
	return tw_setting("TW_SLOWDOWN", 1) > 1 ? 3 * TW_SEC : 3 * TW_SEC / 2;
}

/* Memory that the watchers and the kernel's own caches may use besides. */
#define MEMORY_SLACK	(16L << 20)

#define HOSTILE_UID	65534
#define OTHER_UID	1000

#define ATTACKERS	2

/* The other user has more wheels than there are threads to serve them. */
#define OTHER_WHEELS	4
#define OTHER_TICK_NS	(10 * TW_MS)

#define VECTOR		512
#define SAMPLES		4096

/* With so many, the median stays where it is if the machine stands still once. */
#define SAMPLES_MIN	64

/* How long, under load, the attackers may make no progress, and the watchers may take. */
#define PATIENCE_MS	(4 * TW_PATIENCE_MS)

/* ---- measurements -------------------------------------------------------- */

/* The samples of one watcher in one window. */
struct samples {
	__u32 nr;
	__u32 us[SAMPLES];
};

enum watcher { CYCLIC, CYCLIC_FIFO, OTHER_USER, NR_WATCHERS };

static const char * const watcher_name[] = {
	[CYCLIC]	= "1 ms task",
	[CYCLIC_FIFO]	= "1 ms task, SCHED_FIFO",
	[OTHER_USER]	= "other user's wheels",
};

/* Percentiles, microseconds. */
struct latency {
	__u32 p50, p99, max;
};

/* All processes share this. */
static struct shared {
	atomic_bool stop;
	atomic_int ready;
	atomic_long armed;
	atomic_long rounds;
	/* the first error in an attacker, and its line */
	atomic_int error;
	atomic_int line;
	/* how many of the other user's timeouts were early */
	atomic_int early;
	atomic_int lost;
	struct samples samples[NR_WATCHERS];
	/* the latency beside processes that burn processor time; measured once */
	bool measured;
	struct latency control[NR_WATCHERS];
} *shared;

static void __attribute__((constructor)) share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void sample_add(enum watcher watcher, __u64 late_ns)
{
	struct samples *samples = &shared->samples[watcher];

	if (samples->nr < SAMPLES)
		samples->us[samples->nr++] = late_ns / TW_US;
}

static int compare_u32(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return (x > y) - (x < y);
}

static struct latency latency_of(enum watcher watcher)
{
	struct samples *samples = &shared->samples[watcher];
	__u32 nr = samples->nr;

	if (!nr)
		return (struct latency){};
	qsort(samples->us, nr, sizeof(samples->us[0]), compare_u32);
	return (struct latency){
		.p50 = samples->us[nr / 2],
		.p99 = samples->us[nr - 1 - nr / 100],
		.max = samples->us[nr - 1],
	};
}

static long number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	long number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

/* Memory used since then; 0 if the kernel's own notes would be counted as well. */
static long used_bytes(long free_before)
{
	return tw_kernel_notes_allocations() ? 0 : free_before - tw_free_bytes();
}

/* Return the number of OOM kills of others than the attackers. */
static long oom_kills(void)
{
	return tw_sum_of("/proc/vmstat", "oom_kill") - tw_sum_of(GROUP "/memory.events", "oom_kill");
}

static long charged_bytes(void)
{
	return number_in(GROUP "/memory.current");
}

/* ---- watchers ------------------------------------------------------------ */

static void cyclic(enum watcher watcher)
{
	__u64 next_ns = tw_now(CLOCK_MONOTONIC);

	while (!atomic_load(&shared->stop)) {
		struct timespec next;
		__u64 now_ns;

		next_ns += TW_MS;
		next = tw_to_timespec(next_ns);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL))
			;
		now_ns = tw_now(CLOCK_MONOTONIC);
		sample_add(watcher, now_ns - next_ns);
		/* If it missed several times, that is one latency, not many. */
		if (now_ns - next_ns > TW_MS)
			next_ns = now_ns;
	}
}

static void cyclic_fifo(enum watcher watcher)
{
	const struct sched_param param = { .sched_priority = 50 };

	/* If this is not allowed, the watcher is one more ordinary task. */
	sched_setscheduler(0, SCHED_FIFO, &param);
	cyclic(watcher);
}

/* Return false if it was lost. */
static bool other_user_reads(enum watcher watcher, int fd, __u64 deadline_ns, __u64 edge_ns)
{
	struct twheel_event event;

	if (tw_wait_event(fd, &event, TW_PATIENCE_MS) != 1 || event.deadline_ns != deadline_ns) {
		atomic_fetch_add(&shared->lost, 1);
		return false;
	}
	/*
	 * It must not be early by its own account, nor by ours.  If it was armed too late, it does
	 * not wait for the edge.
	 */
	if (event.fired_ns < deadline_ns || tw_now(CLOCK_MONOTONIC) < deadline_ns)
		atomic_fetch_add(&shared->early, 1);
	else
		sample_add(watcher, event.fired_ns < edge_ns ? 0 : event.fired_ns - edge_ns);
	return true;
}

static void other_user(enum watcher watcher)
{
	const struct twheel_setup setup = { .tick_ns = OTHER_TICK_NS };
	int i, fds[OTHER_WHEELS];
	__u64 id;

	if (setgid(OTHER_UID) || setuid(OTHER_UID))
		_exit(1);
	for (i = 0; i < OTHER_WHEELS; i++) {
		fds[i] = tw_open_setup(O_NONBLOCK, &setup);
		if (fds[i] < 0)
			_exit(1);
	}
	while (!atomic_load(&shared->stop)) {
		__u64 edge_ns = tw_round_up(tw_now(CLOCK_MONOTONIC) + OTHER_TICK_NS,
					    OTHER_TICK_NS);
		__u64 deadline_ns = edge_ns - OTHER_TICK_NS / 4;

		for (i = 0; i < OTHER_WHEELS; i++)
			if (tw_arm_at(fds[i], deadline_ns, &id))
				_exit(1);
		for (i = 0; i < OTHER_WHEELS; i++)
			if (!other_user_reads(watcher, fds[i], deadline_ns, edge_ns))
				return;
	}
}

static void (* const watch[])(enum watcher watcher) = {
	[CYCLIC]	= cyclic,
	[CYCLIC_FIFO]	= cyclic_fifo,
	[OTHER_USER]	= other_user,
};

static void watchers_start(struct __test_metadata *_metadata, pid_t pids[])
{
	int i;

	atomic_store(&shared->stop, false);
	atomic_store(&shared->early, 0);
	atomic_store(&shared->lost, 0);
	for (i = 0; i < NR_WATCHERS; i++) {
		shared->samples[i].nr = 0;
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			watch[i](i);
			_exit(0);
		}
	}
}

static bool watchers_know_enough(void)
{
	int i;

	for (i = 0; i < NR_WATCHERS; i++)
		if (shared->samples[i].nr < SAMPLES_MIN)
			return false;
	return true;
}

/* End their window, which lasts until there are enough samples of each. */
static void watchers_stop(struct __test_metadata *_metadata, pid_t pids[],
			  struct latency latency[])
{
	int i;

	for (i = 0; i < PATIENCE_MS / 10 && !atomic_load(&shared->lost) &&
	     !watchers_know_enough(); i++)
		tw_sleep(10 * TW_MS);
	atomic_store(&shared->stop, true);
	for (i = 0; i < NR_WATCHERS; i++) {
		EXPECT_EQ(0, tw_reap(pids[i]))
			TH_LOG("%s", watcher_name[i]);
		latency[i] = latency_of(i);
		EXPECT_LT(0, shared->samples[i].nr)
			TH_LOG("%s", watcher_name[i]);
	}
	EXPECT_EQ(0, atomic_load(&shared->early));
	EXPECT_EQ(0, atomic_load(&shared->lost));
}

static void print_latency(const char *beside, const struct latency latency[])
{
	int i;

	for (i = 0; i < NR_WATCHERS; i++)
		printf("# %s: %s: p50 %u, p99 %u, max %u us (%u samples)\n", beside,
		       watcher_name[i], latency[i].p50, latency[i].p99, latency[i].max,
		       shared->samples[i].nr);
}

/* ---- attackers ----------------------------------------------------------- */

static struct twheel_arm arms[VECTOR];
static struct twheel_cancel cancels[VECTOR];
static struct twheel_event events[VECTOR];

static __u32 scaled(__u32 nr)
{
	nr = nr * tw_setting("TW_MILLION", 1000000) / 1000000;
	return nr < 128 ? 128 : nr;
}

/* If an attack could not attack, it proves nothing. */
static void attacker_fails(int line, int error)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&shared->line, &none, line))
		atomic_store(&shared->error, error);
	_exit(1);
}

#define MUST(condition) do {						\
	if (!(condition))						\
		attacker_fails(__LINE__, errno);			\
} while (0)

/* When all are ready, the attack begins. */
static void ready(void)
{
	atomic_fetch_add(&shared->ready, 1);
}

static void round_done(void)
{
	atomic_fetch_add(&shared->rounds, 1);
}

/* Make a wheel.  If wheels are opened and closed in turn, there is memory for two. */
static int wheel_of(const struct twheel_setup *setup)
{
	int fd = tw_open_setup(O_NONBLOCK, setup);

	if (fd < 0)
		errno = -fd;
	MUST(fd >= 0);
	return fd;
}

/*
 * Arm so many, all at the same time or, by apart_ns, one after the other. Return how many there was
 * memory and room for.
 */
static __u32 arm_many(int fd, __u32 nr, __u64 first_ns, __u64 apart_ns, __u64 interval_ns)
{
	__u32 i, j, n;

	for (i = 0; i < nr; i += n) {
		n = nr - i < VECTOR ? nr - i : VECTOR;
		for (j = 0; j < n; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = first_ns + (i + j) * apart_ns,
				.interval_ns = interval_ns,
				.flags = TWHEEL_ARM_ABSOLUTE,
			};
		MUST(tw_arm_vec(fd, arms, n) >= 0);
		atomic_fetch_add(&shared->armed, n);
		for (j = 0; j < n; j++) {
			if (arms[j].result > 0)
				continue;
			MUST(arms[j].result == -ENOMEM || arms[j].result == -EAGAIN ||
			     arms[j].result == -ENOSPC);
			errno = -arms[j].result;
			return i + j;
		}
	}
	return nr;
}

static __u64 soon(__u64 ns)
{
	return tw_now(CLOCK_MONOTONIC) + ns;
}

/* Do nothing more, but stay. */
static void lie_in_wait(void)
{
	ready();
	for (;;) {
		round_done();
		tw_sleep(10 * TW_MS);
	}
}

/* This is no attack, but attacks are compared with it. */
static void burn(void)
{
	ready();
	for (;;)
		round_done();
}

static void shortest_periods(void)
{
	const struct twheel_setup setup = { .tick_ns = TWHEEL_TICK_MIN_NS };
	int i;

	for (i = 0; i < 8; i++) {
		int fd = wheel_of(&setup);

		MUST(arm_many(fd, scaled(2000), 0, 0, TWHEEL_TICK_MIN_NS));
	}
	lie_in_wait();
}

static void all_due_in_one_tick(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS, .max_pending = 1000000 };
	__u64 edge_ns = tw_round_up(soon(TW_SEC / 10), TW_SEC / 10);
	__u32 nr = scaled(1000000) / ATTACKERS;
	int fd = wheel_of(&setup);

	MUST(arm_many(fd, nr, edge_ns, 0, TW_SEC / 10) == nr);
	ready();
	for (;;) {
		MUST(tw_poll(fd, POLLIN, -1) == POLLIN);
		MUST(tw_read(fd, events, VECTOR) > 0);
		round_done();
	}
}

static void thousands_of_wheels(void)
{
	const struct twheel_setup setup = {
		.tick_ns = TWHEEL_TICK_MIN_NS,
		.slots = TWHEEL_SLOTS_MIN,
		.max_pending = 1,
	};
	__u32 i;

	/* Make as many as the cgroup has memory for: each wheel has ten levels. */
	for (i = 0; i < scaled(800); i++) {
		int fd = wheel_of(&setup);

		MUST(arm_many(fd, 1, 0, 0, TWHEEL_TICK_MIN_NS) == 1);
	}
	lie_in_wait();
}

/* Let as many hrtimers as there are wheels expire at the same time. */
static void thousands_of_wheels_due_at_once(void)
{
	const struct twheel_setup setup = {
		.tick_ns = TW_SEC / 10,
		.slots = TWHEEL_SLOTS_MIN,
		.flags = TWHEEL_SETUP_ONE_LEVEL,
		.max_pending = 1,
	};
	__u32 i;

	for (i = 0; i < scaled(2000); i++) {
		int fd = wheel_of(&setup);

		MUST(arm_many(fd, 1, 0, 0, setup.tick_ns) == 1);
	}
	lie_in_wait();
}

/* Make wheels that use up the whole of each turn. */
static void greedy_wheels(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS };
	int i;

	for (i = 0; i < 50; i++) {
		int fd = wheel_of(&setup);

		MUST(arm_many(fd, scaled(4000), 0, 0, TW_MS) == scaled(4000));
	}
	lie_in_wait();
}

/* Take all the memory there is, and then more. */
static void as_many_as_there_is_memory_for(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS, .max_pending = 4000000 };
	int fd = wheel_of(&setup);
	__u32 nr;

	nr = arm_many(fd, setup.max_pending, soon(TW_HOUR), TW_US, TW_HOUR);
	MUST(nr && nr < setup.max_pending);
	ready();
	for (;;) {
		arm_many(fd, 1, soon(TW_HOUR), TW_US, TW_HOUR);
		round_done();
	}
}

/* Events pile up until there is no room for more, and nobody reads. */
static void a_reader_that_never_reads(void)
{
	const struct twheel_setup setup = {
		.tick_ns = TW_MS, .max_pending = scaled(200000),
	};
	int fd = wheel_of(&setup);

	while (arm_many(fd, VECTOR, 0, 0, 0) == VECTOR)
		;
	ready();
	for (;;) {
		struct twheel_arm arm = {};

		MUST(tw_arm_entry(fd, &arm) == -EAGAIN);
		MUST(!(tw_poll(fd, POLLIN | POLLOUT, 0) & POLLOUT));
		round_done();
	}
}

/* If a timeout is cancelled young, it goes through the inbox all the same. */
static void arm_and_cancel(void)
{
	int i, fd = wheel_of(&(struct twheel_setup){ .tick_ns = TW_MS });

	ready();
	for (;;) {
		MUST(arm_many(fd, VECTOR, soon(TW_HOUR), 0, 0));
		for (i = 0; i < VECTOR; i++)
			cancels[i] = (struct twheel_cancel){ .id = arms[i].id };
		MUST(tw_cancel_vec(fd, cancels, VECTOR) >= 0);
		round_done();
	}
}

/* Each move to an earlier deadline leaves a stale entry in the wheel. */
static void rearm_earlier_and_earlier(void)
{
	int i, fd = wheel_of(&(struct twheel_setup){ .tick_ns = TW_MS });
	__u64 distance_ns = TW_DAY;

	MUST(arm_many(fd, VECTOR, soon(TW_DAY), 0, 0) == VECTOR);
	ready();
	for (;;) {
		distance_ns -= TW_MS;
		for (i = 0; i < VECTOR; i++)
			arms[i].expires_ns = soon(distance_ns);
		/* Let another one be due now, so that the inbox is emptied at once. */
		arms[0].expires_ns = soon(TW_MS);
		MUST(tw_rearm_vec(fd, arms, VECTOR) >= 0);
		if (arms[0].result == -ENOENT)
			MUST(tw_arm_vec(fd, arms, 1) >= 0);
		while (tw_read(fd, events, VECTOR) > 0)
			;
		round_done();
	}
}

static const struct twheel_setup huge = {
	.clock = TWHEEL_CLOCK_REALTIME,
	.tick_ns = TW_MS,
	.slots = TWHEEL_SLOTS_MAX,
};

static void huge_wheels_opened_and_closed(void)
{
	ready();
	for (;;) {
		int fd = wheel_of(&huge);

		arm_many(fd, scaled(20000), tw_now(CLOCK_REALTIME) + TW_SEC, TW_MS, 0);
		close(fd);
		round_done();
	}
}

/* If the clock is set back, all their timeouts are sorted in again, as soon as one is due. */
static void huge_wheels_of_realtime(void)
{
	__u32 nr = scaled(200000);
	int fd = wheel_of(&huge);

	MUST(arm_many(fd, nr, tw_now(CLOCK_REALTIME) + TW_SEC, TW_MS, 0) == nr);
	ready();
	for (;;) {
		arm_many(fd, 1, 0, 0, 0);
		tw_read(fd, events, VECTOR);
		tw_sleep(10 * TW_MS);
		round_done();
	}
}

/* Use up the generations of one place, which would take half an hour. */
static void ids_used_up(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS, .max_pending = 1 };
	int fd = wheel_of(&setup);
	__u64 id;

	ready();
	for (;;) {
		MUST(!tw_arm_in(fd, TW_HOUR, &id));
		MUST(tw_cancel1(fd, id) == TWHEEL_WAS_PENDING);
		round_done();
	}
}

static void longest_vectors(void)
{
	int fd = wheel_of(&(struct twheel_setup){ .tick_ns = TW_MS });
	struct twheel_info info;
	struct twheel_arm *vector;
	__u64 cursor = 0;

	MUST(!tw_info(fd, &info));
	vector = calloc(info.max_vector, sizeof(*vector));
	MUST(vector);
	MUST(arm_many(fd, scaled(20000), soon(TW_HOUR), 0, 0));
	ready();
	for (;;) {
		/* None of them is valid. */
		memset(vector, 0, info.max_vector * sizeof(*vector));
		MUST(!tw_vector(fd, TWHEEL_IOC_REARM, vector, sizeof(*vector), info.max_vector));
		round_done();
		MUST(!tw_vector(fd, TWHEEL_IOC_CANCEL, vector, sizeof(struct twheel_cancel),
				info.max_vector));
		round_done();
		vector[0].flags = ~0U;
		MUST(!tw_vector(fd, TWHEEL_IOC_ARM, vector, sizeof(*vector), 1));
		cursor = 0;
		MUST(tw_list(fd, &cursor, (struct twheel_status *)vector,
			     info.max_vector / 2) > 0);
		round_done();
	}
}

/* If a timeout expires, all of these have to be woken. */
static void crowds_of_pollers(void)
{
	const struct twheel_setup setup = { .tick_ns = TWHEEL_TICK_MIN_NS };
	struct epoll_event event = {};
	int i, epoll, fd = wheel_of(&setup);

	for (i = 0; i < 1000; i++) {
		epoll = epoll_create1(0);
		MUST(epoll >= 0);
		event.events = EPOLLIN | EPOLLET | (i % 2 ? EPOLLEXCLUSIVE : 0);
		MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	}
	MUST(arm_many(fd, scaled(2000), 0, 0, TWHEEL_TICK_MIN_NS));
	ready();
	for (;;) {
		/* If its event was read, it expires anew, and makes an edge for all of them. */
		MUST(epoll_wait(epoll, &event, 1, -1) == 1);
		MUST(tw_read(fd, events, VECTOR) > 0);
		round_done();
	}
}

static void drained_again_and_again(void)
{
	ready();
	for (;;) {
		int fd = wheel_of(&(struct twheel_setup){ .tick_ns = TW_MS });

		arm_many(fd, scaled(50000), soon(TW_HOUR), TW_MS, 0);
		MUST(!tw_drain(fd));
		close(fd);
		round_done();
	}
}

static void looked_at_without_end(void)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS };
	int fd = wheel_of(&setup);
	struct twheel_info info;
	char path[64], text[2048];

	MUST(arm_many(fd, scaled(200000), soon(TW_HOUR), TW_US, 0));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	ready();
	for (;;) {
		int fdinfo = open(path, O_RDONLY);

		MUST(fdinfo >= 0 && read(fdinfo, text, sizeof(text)) > 0);
		close(fdinfo);
		MUST(!tw_info(fd, &info));
		round_done();
	}
}

/* Run an attack in the cgroup, without privilege; it ends with the test. */
static void attacker(void (*attack)(void))
{
	const struct rlimit files = { 8192, 8192 };

	MUST(!tw_write_text(GROUP "/cgroup.procs", "0"));
	MUST(!setrlimit(RLIMIT_NOFILE, &files));
	/*
	 * Fault all pages in now: later, in a full cgroup, that would call the OOM killer, which is
	 * not tested here.
	 */
	MUST(!mlockall(MCL_CURRENT));
	MUST(!setgid(HOSTILE_UID) && !setuid(HOSTILE_UID));
	/* Set this only now: a change of the user clears it. */
	MUST(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	attack();
}

/* If the kernel is slow, it takes a minute to arm as many as there is memory for. */
static void wait_for_attackers(int nr)
{
	__u64 began_ns = tw_now(CLOCK_MONOTONIC);
	long armed = 0;
	int i;

	for (i = 0; i < PATIENCE_MS / 10 && !atomic_load(&shared->line) &&
	     atomic_load(&shared->ready) < nr; i++) {
		if (armed != atomic_load(&shared->armed)) {
			armed = atomic_load(&shared->armed);
			i = 0;
		}
		tw_sleep(10 * TW_MS);
	}
	printf("# ready after %llu ms\n", (tw_now(CLOCK_MONOTONIC) - began_ns) / TW_MS);
}

static void attackers_start(struct __test_metadata *_metadata, void (*attack)(void), int nr)
{
	int i;

	atomic_store(&shared->ready, 0);
	atomic_store(&shared->armed, 0);
	atomic_store(&shared->rounds, 0);
	atomic_store(&shared->error, 0);
	atomic_store(&shared->line, 0);
	for (i = 0; i < nr; i++) {
		pid_t pid = fork();

		ASSERT_LE(0, pid);
		if (!pid)
			attacker(attack);
	}
	wait_for_attackers(nr);
	ASSERT_EQ(nr, atomic_load(&shared->ready))
		TH_LOG("line %d: %s", atomic_load(&shared->line),
		       strerror(atomic_load(&shared->error)));
}

/* Kill them at any point, with all that they have open. */
static void attackers_kill(void)
{
	tw_write_text(GROUP "/cgroup.kill", "1");
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* During a window, do nothing, or the work of somebody innocent. */
static void wait_window(void)
{
	tw_sleep(window_ns());
}

static void set_the_clock_back_and_on(void)
{
	int i;

	for (i = 0; i < 6; i++) {
		__u64 now_ns = tw_now(CLOCK_REALTIME);
		struct timespec ts = tw_to_timespec(i % 2 ? now_ns + TW_SEC : now_ns - TW_SEC);

		if (clock_settime(CLOCK_REALTIME, &ts)) {
			atomic_store(&shared->error, errno);
			atomic_store(&shared->line, __LINE__);
		}
		tw_sleep(window_ns() / 6);
	}
}

/* ---- the rules ----------------------------------------------------------- */

FIXTURE(hostile) {
	mode_t mode;
	int kthreads;
	long free_before;
	long oom_kills;
};

/*
 * The median of the other user's lateness may be this many times that beside mere load, plus a
 * tick.  It is wide, for emulated machines; twheel_fairness_module judges the latest ones.
 */
#define FACTOR	20

FIXTURE_VARIANT(hostile) {
	void (*attack)(void);
	void (*beside)(void);
};

FIXTURE_VARIANT_ADD(hostile, shortest_periods) {
	.attack = shortest_periods,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, all_due_in_one_tick) {
	.attack = all_due_in_one_tick,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, thousands_of_wheels) {
	.attack = thousands_of_wheels,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, thousands_of_wheels_due_at_once) {
	.attack = thousands_of_wheels_due_at_once,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, greedy_wheels) {
	.attack = greedy_wheels,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, as_many_as_there_is_memory_for) {
	.attack = as_many_as_there_is_memory_for,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, a_reader_that_never_reads) {
	.attack = a_reader_that_never_reads,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, arm_and_cancel) {
	.attack = arm_and_cancel,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, rearm_earlier_and_earlier) {
	.attack = rearm_earlier_and_earlier,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, huge_wheels_opened_and_closed) {
	.attack = huge_wheels_opened_and_closed,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, huge_wheels_of_realtime) {
	.attack = huge_wheels_of_realtime,
	.beside = set_the_clock_back_and_on,
};

FIXTURE_VARIANT_ADD(hostile, ids_used_up) {
	.attack = ids_used_up,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, longest_vectors) {
	.attack = longest_vectors,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, crowds_of_pollers) {
	.attack = crowds_of_pollers,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, drained_again_and_again) {
	.attack = drained_again_and_again,
	.beside = wait_window,
};

FIXTURE_VARIANT_ADD(hostile, looked_at_without_end) {
	.attack = looked_at_without_end,
	.beside = wait_window,
};

FIXTURE_SETUP(hostile)
{
	struct stat stat_before;
	__u64 switches;
	char text[32];

	ASSERT_NE(MAP_FAILED, shared);
	tw_write_text(CGROUP "/cgroup.subtree_control", "+memory");
	mkdir(GROUP, 0755);
	if (charged_bytes() < 0)
		SKIP(return, "no cgroup with a memory controller can be made in " CGROUP);
	snprintf(text, sizeof(text), "%ld", memory_max());
	ASSERT_EQ(0, tw_write_text(GROUP "/memory.max", text));
	tw_write_text(GROUP "/memory.swap.max", "0");
	ASSERT_EQ(0, stat(TW_DEVICE, &stat_before));
	self->mode = stat_before.st_mode & 07777;
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	self->kthreads = tw_kthreads(&switches);
	self->oom_kills = oom_kills();
	self->free_before = tw_free_bytes();
}

FIXTURE_TEARDOWN_PARENT(hostile)
{
	tw_write_text(GROUP "/cgroup.kill", "1");
	chmod(TW_DEVICE, self->mode ? self->mode : 0600);
	tw_wait_wheels_open(0);
	rmdir(GROUP);
}

/* Measure the latencies beside mere load, once for all tests. */
static void measure_control(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self)
{
	struct latency quiet[NR_WATCHERS];
	pid_t pids[NR_WATCHERS];

	if (shared->measured)
		return;
	watchers_start(_metadata, pids);
	tw_sleep(window_ns());
	watchers_stop(_metadata, pids, quiet);
	print_latency("quiet", quiet);

	/* Start some more for the kthreads, which serve the attackers in an attack. */
	attackers_start(_metadata, burn, ATTACKERS + self->kthreads);
	watchers_start(_metadata, pids);
	tw_sleep(window_ns());
	watchers_stop(_metadata, pids, shared->control);
	attackers_kill();
	print_latency("load", shared->control);
	shared->measured = true;
}

static void expect_nothing_left(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self)
{
	long missing, charged;

	EXPECT_EQ(0, tw_wait_wheels_open(0));
	TW_WAIT_FOR((missing = used_bytes(self->free_before), charged = charged_bytes(),
		     missing < MEMORY_SLACK && charged < memory_max() / 16), 100 * TW_MS);
	printf("# afterwards: %ld kB less free than before, %ld kB still charged\n",
	       missing / 1024, charged / 1024);
	EXPECT_GT(MEMORY_SLACK, missing);
	EXPECT_GT(memory_max() / 16, charged);
}

static void expect_memory_holds(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self)
{
	long peak, charged, used;
	int i;

	/* The two are not read at the same moment, so read them more than once. */
	for (i = 0; i < 50; i++) {
		charged = charged_bytes();
		used = used_bytes(self->free_before);
		if (used - charged < MEMORY_SLACK)
			break;
		tw_sleep(10 * TW_MS);
	}
	peak = number_in(GROUP "/memory.peak");
	printf("# memory: %ld kB charged, %ld kB at most, %ld kB less free in the machine\n",
	       charged / 1024, peak / 1024, used / 1024);
	EXPECT_GE(memory_max(), charged);
	EXPECT_GE(memory_max(), peak);
	EXPECT_GT(MEMORY_SLACK, used - charged);
	EXPECT_EQ(self->oom_kills, oom_kills());
}

/*
 * If an attack had no round in the window, it has not been withstood yet: on a slow kernel, opening
 * and closing huge wheels takes seconds for a round.  Return how many there were.
 */
static long wait_for_a_round(long before)
{
	int i;

	for (i = 0; i < PATIENCE_MS / 10 && !atomic_load(&shared->line) &&
	     atomic_load(&shared->rounds) == before; i++)
		tw_sleep(10 * TW_MS);
	return atomic_load(&shared->rounds) - before;
}

/* Have a window beside the attack, and check all that must hold. */
static void withstand(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self,
		      void (*beside)(void), struct latency latency[])
{
	long rounds = atomic_load(&shared->rounds);
	pid_t pids[NR_WATCHERS];
	__u64 switches;

	watchers_start(_metadata, pids);
	beside();
	expect_memory_holds(_metadata, self);
	EXPECT_EQ(self->kthreads, tw_kthreads(&switches));
	rounds = wait_for_a_round(rounds);
	watchers_stop(_metadata, pids, latency);
	EXPECT_EQ(0, atomic_load(&shared->line))
		TH_LOG("line %d: %s", atomic_load(&shared->line),
		       strerror(atomic_load(&shared->error)));
	EXPECT_LT(0, rounds);
	printf("# %ld rounds of the attack\n", rounds);
}

TEST_F_TIMEOUT(hostile, hostile_user_harms_nobody_else, 120)
{
	struct latency latency[NR_WATCHERS];
	__u32 limit_us;

	measure_control(_metadata, self);
	attackers_start(_metadata, variant->attack, ATTACKERS);
	withstand(_metadata, self, variant->beside, latency);
	attackers_kill();
	print_latency("attack", latency);
	limit_us = FACTOR * tw_setting("TW_SLOWDOWN", 1) *
		   (shared->control[OTHER_USER].p50 + OTHER_TICK_NS / TW_US);
	EXPECT_GE(limit_us, latency[OTHER_USER].p50);
	expect_nothing_left(_metadata, self);
}

TEST_HARNESS_MAIN
