// SPDX-License-Identifier: GPL-2.0
/*
 * Memory: at most 64 bytes for each pending timeout and 5 % for all the rest,
 * charged to the caller's memory cgroup, and given back at the last close.
 *
 * The bound is measured by the free memory of the machine, which misses nothing, wherever the
 * module takes its memory from.  The cgroup's own count shows that the caller is charged.  Each
 * measurement is made by a child that has its own pages already.
 */
#include "twheel_outside.h"

#include <signal.h>
#include <sys/prctl.h>

#define NR_MAX		1000000
#define VECTOR		512
/*
 * How many wheels are filled and closed after the first one, each with a quarter of its timeouts.
 */
#define CLOSE_ROUNDS	4
/* How many wheels are closed before the kthread has served them. */
#define EARLY_ROUNDS	1000
#define CLOSE_SLACK	(1L << 20)
#define CGROUP		"/sys/fs/cgroup"
#define CHILD		CGROUP "/twheel_memory"

/* The results of the child, bytes; it shares them. */
struct found {
	long free_before, free_started, free_armed, free_refreshed, free_shrunk;
	long free_closed, free_closed_again, free_closed_early;
	long charge_before, charge_armed, charge_closed, charge_closed_again;
	int error;			/* errno of the call that failed, and its line */
	int line;
	__u32 armed;
	__u32 moved;
	__u32 cancelled;
	int written;			/* the result of write() at the limit */
	bool measured;
};

/* The measurement takes long, so it is made once for all tests. */
static struct found *shared;

/* If TW_MILLION is set, it is less than NR_MAX, for slow kernels. */
static __u64 nr_timeouts = NR_MAX;

static void __attribute__((constructor)) share(void)
{
	nr_timeouts = tw_setting("TW_MILLION", NR_MAX);
	if (nr_timeouts > NR_MAX)
		nr_timeouts = NR_MAX;
	shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static long read_number(const char *path)
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

/*
 * Memory that nobody uses: MemFree, and the tens of megabytes that each processor may have on lists
 * of its own.
 */
static long free_bytes(void)
{
	/* Memory that RCU frees in the background has to count as free. */
	tw_sleep(TW_SEC);
	tw_write_text("/proc/sys/vm/drop_caches", "3");
	return tw_free_bytes();
}

/* Try until no more than this is missing, or patience ends. */
static long free_bytes_soon(long free_before, long missing)
{
	__u64 until_ns = tw_now(CLOCK_MONOTONIC) + TW_PATIENCE_MS * TW_MS;
	long bytes;

	do {
		bytes = free_bytes();
	} while (free_before - bytes > missing && tw_now(CLOCK_MONOTONIC) < until_ns);
	return bytes;
}

static long charged_bytes(void)
{
	return read_number(CHILD "/memory.current");
}

static struct twheel_arm arms[VECTOR];
static __u64 ids[NR_MAX];

/* Arm up to nr, an hour to two ahead, until one fails; return how many, and its errno. */
static __u32 arm_all(int fd, __u32 nr, int *error)
{
	__u64 seed = 1;
	__u32 i, j, n;
	int ret;

	*error = 0;
	for (i = 0; i < nr; i += n) {
		n = nr - i < VECTOR ? nr - i : VECTOR;
		for (j = 0; j < n; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = TW_HOUR + tw_random(&seed) * 838ULL,
			};
		ret = tw_arm_vec(fd, arms, n);
		if (ret < 0) {
			*error = ret;
			return i;
		}
		for (j = 0; j < n && arms[j].result > 0; j++)
			ids[i + j] = arms[j].id;
		if (j < n) {
			*error = arms[j].result;
			return i + j;
		}
	}
	return nr;
}

static int rearm_all(int fd, __u32 nr)
{
	__u64 seed = 2;
	__u32 i, j, n;

	for (i = 0; i < nr; i += n) {
		n = nr - i < VECTOR ? nr - i : VECTOR;
		for (j = 0; j < n; j++)
			arms[j] = (struct twheel_arm){
				.id = ids[i + j],
				.expires_ns = 2 * TW_HOUR + tw_random(&seed) * 838ULL,
			};
		if (tw_rearm_vec(fd, arms, n) != (int)n)
			return -EIO;
	}
	return 0;
}

static int cancel_most(int fd, __u32 nr)
{
	static struct twheel_cancel cancels[VECTOR];
	__u32 i, n = 0;

	for (i = 0; i < nr; i++) {
		if (i % 1000)
			cancels[n++] = (struct twheel_cancel){ .id = ids[i] };
		if (n < VECTOR && i + 1 < nr)
			continue;
		if (tw_cancel_vec(fd, cancels, n) != (int)n)
			return -EIO;
		n = 0;
	}
	return 0;
}

#define CHILD_DO(call) do {						\
	int __ret = (call);						\
	if (__ret < 0) {						\
		found->error = __ret;					\
		found->line = __LINE__;					\
		return;							\
	}								\
} while (0)

/*
 * How much may be missing after all but a thousandth of a burst was cancelled.  The timeouts that
 * are left keep a tenth of the pages of places, and a slab for each chunk of the wheel, of which
 * there are thousands for any burst.
 */
static long burst_may_keep(const struct found *found)
{
	return (found->free_before - found->free_armed) / 4 + (8 << 20);
}

/* Allocators may keep some memory for the next time, but not more in each round. */
static void close_again(struct found *found)
{
	int round, fd, error;

	for (round = 0; round < CLOSE_ROUNDS; round++) {
		CHILD_DO(fd = tw_open(O_NONBLOCK | O_CLOEXEC));
		CHILD_DO(tw_setup(fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, nr_timeouts));
		arm_all(fd, nr_timeouts / 4, &error);
		CHILD_DO(error);
		close(fd);
	}
	found->free_closed_again = free_bytes_soon(found->free_closed, CLOSE_SLACK);
	found->charge_closed_again = charged_bytes();
}

/* Close wheels with chunks that their kthread has not taken yet. */
static void close_early(struct found *found)
{
	int round, fd;
	__u64 id;

	for (round = 0; round < EARLY_ROUNDS; round++) {
		CHILD_DO(fd = tw_open(O_NONBLOCK | O_CLOEXEC));
		CHILD_DO(tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, nr_timeouts));
		CHILD_DO(tw_arm_in(fd, TW_SEC, &id));
		close(fd);
	}
	found->free_closed_early = free_bytes_soon(found->free_closed_again, CLOSE_SLACK);
}

static void measure(struct found *found)
{
	int fd, error, again;
	__u64 id;

	CHILD_DO(tw_write_text(CHILD "/cgroup.procs", "0"));
	memset(ids, 1, sizeof(ids));
	memset(arms, 1, sizeof(arms));
	free_bytes();
	found->free_before = free_bytes();
	found->charge_before = charged_bytes();

	CHILD_DO(fd = tw_open(O_NONBLOCK | O_CLOEXEC));
	CHILD_DO(tw_setup(fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, nr_timeouts + 1));
	CHILD_DO(tw_arm_in(fd, TW_DAY, &id));
	found->free_started = free_bytes();
	found->armed = arm_all(fd, nr_timeouts, &error);
	CHILD_DO(error);
	found->free_armed = free_bytes();
	found->charge_armed = charged_bytes();

	for (again = 0; again < 3; again++)
		CHILD_DO(rearm_all(fd, nr_timeouts));
	found->free_refreshed = free_bytes();

	/* One timeout in a thousand stays. */
	CHILD_DO(cancel_most(fd, nr_timeouts));
	/* The kthread is in no hurry. */
	found->free_shrunk = free_bytes_soon(found->free_before, burst_may_keep(found));

	close(fd);
	found->free_closed = free_bytes_soon(found->free_before, CLOSE_SLACK);
	found->charge_closed = charged_bytes();
	close_again(found);
	close_early(found);
}

/* If a page of the stack was first written at the limit, that would kill the process. */
static void touch_stack(void)
{
	char stack[65536];

	explicit_bzero(stack, sizeof(stack));
}

/* Let a wheel take all that its cgroup has, and ask for more. */
static void exhaust(struct found *found)
{
	const struct twheel_record record = { .op = TWHEEL_OP_ARM, .expires_ns = TW_HOUR };
	struct twheel_cancel cancel;
	int fd;
	__u32 i;

	CHILD_DO(tw_write_text(CHILD "/cgroup.procs", "0"));
	memset(ids, 1, sizeof(ids));
	memset(arms, 1, sizeof(arms));
	touch_stack();
	CHILD_DO(fd = tw_open(O_NONBLOCK | O_CLOEXEC));
	CHILD_DO(tw_setup(fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, NR_MAX));
	CHILD_DO(tw_write_text(CHILD "/memory.max", "32M"));
	found->armed = arm_all(fd, NR_MAX, &found->error);
	found->written = tw_write(fd, &record, 1);
	/* If a timeout is moved later, that takes no memory. */
	if (!rearm_all(fd, found->armed))
		found->moved = found->armed;
	for (i = 0; i < found->armed; i++) {
		cancel = (struct twheel_cancel){ .id = ids[i] };
		if (tw_cancel_vec(fd, &cancel, 1) == 1 && cancel.result == TWHEEL_WAS_PENDING)
			found->cancelled++;
	}
	close(fd);
}

static bool make_cgroup(void)
{
	tw_write_text(CGROUP "/cgroup.subtree_control", "+memory");
	mkdir(CHILD, 0755);
	return charged_bytes() >= 0;
}

FIXTURE(memory) {
	struct found *found;
};

FIXTURE_SETUP(memory)
{
	ASSERT_NE(MAP_FAILED, shared);
	self->found = shared;
	if (!make_cgroup())
		SKIP(return, "no cgroup with a memory controller can be made in " CGROUP);
	if (tw_kernel_notes_allocations())
		SKIP(return, "what this kernel notes of allocations takes memory, too");
}

FIXTURE_TEARDOWN(memory)
{
	rmdir(CHILD);
}

/* Run it in a child; return its exit status, or 128 + the signal that killed it. */
static int in_child(void (*what)(struct found *), struct found *found)
{
	pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		what(found);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void run_measure(struct __test_metadata *_metadata, struct found *found)
{
	double nr = nr_timeouts;

	if (found->measured)
		return;
	ASSERT_EQ(0, in_child(measure, found));
	ASSERT_EQ(0, found->error)
		TH_LOG("in line %d", found->line);
	ASSERT_EQ(nr_timeouts, found->armed);
	TH_LOG("started: %ld kB", (found->free_before - found->free_started) / 1024);
	TH_LOG("armed: %.2f bytes each, %.2f of them charged to the cgroup",
	       (found->free_before - found->free_armed) / nr,
	       (found->charge_armed - found->charge_before) / nr);
	TH_LOG("refreshed three times: %.2f bytes each",
	       (found->free_before - found->free_refreshed) / nr);
	TH_LOG("all but a thousandth cancelled: %ld kB",
	       (found->free_before - found->free_shrunk) / 1024);
	TH_LOG("closed: %ld kB, %ld of them charged",
	       (found->free_before - found->free_closed) / 1024,
	       (found->charge_closed - found->charge_before) / 1024);
	TH_LOG("closed %d times more: %ld kB more, %ld of them charged", CLOSE_ROUNDS,
	       (found->free_closed - found->free_closed_again) / 1024,
	       (found->charge_closed_again - found->charge_closed) / 1024);
	TH_LOG("%d closed before their first pass: %ld kB more", EARLY_ROUNDS,
	       (found->free_closed_again - found->free_closed_early) / 1024);
	found->measured = true;
}

TEST_F_TIMEOUT(memory, a_pending_timeout_takes_at_most_64_bytes_and_5_percent, 100)
{
	run_measure(_metadata, self->found);
	EXPECT_GE(nr_timeouts * 64 * 105 / 100, self->found->free_before - self->found->free_armed);
}

TEST_F_TIMEOUT(memory, refreshes_do_not_pile_up, 100)
{
	run_measure(_metadata, self->found);
	EXPECT_GE(nr_timeouts * 80, self->found->free_before - self->found->free_refreshed);
}

TEST_F_TIMEOUT(memory, memory_of_a_burst_is_given_back_while_some_of_it_stays, 100)
{
	run_measure(_metadata, self->found);
	EXPECT_GE(burst_may_keep(self->found),
		  self->found->free_before - self->found->free_shrunk);
}

TEST_F_TIMEOUT(memory, memory_is_charged_to_the_cgroup_of_the_caller, 100)
{
	run_measure(_metadata, self->found);
	EXPECT_LE((self->found->free_before - self->found->free_armed) * 9 / 10,
		  self->found->charge_armed - self->found->charge_before);
}

TEST_F_TIMEOUT(memory, the_last_close_gives_all_memory_back, 100)
{
	run_measure(_metadata, self->found);
	EXPECT_GE((self->found->free_before - self->found->free_armed) / 10,
		  self->found->free_before - self->found->free_closed);
	EXPECT_GE(CLOSE_SLACK, self->found->free_closed - self->found->free_closed_again);
	EXPECT_GE(CLOSE_SLACK, self->found->charge_closed_again - self->found->charge_closed);
}

TEST_F_TIMEOUT(memory, a_close_before_the_first_pass_gives_all_memory_back, 100)
{
	run_measure(_metadata, self->found);
	EXPECT_GE(CLOSE_SLACK, self->found->free_closed_again - self->found->free_closed_early);
}

FIXTURE(cgroup) {
};

FIXTURE_SETUP(cgroup)
{
	ASSERT_NE(MAP_FAILED, shared);
	if (!make_cgroup())
		SKIP(return, "no cgroup with a memory controller can be made in " CGROUP);
}

FIXTURE_TEARDOWN(cgroup)
{
	rmdir(CHILD);
}

/* Large areas are charged as pages are. */
static void set_up_large(struct found *found)
{
	const struct twheel_setup setup = { .slots = TWHEEL_SLOTS_MAX };
	int fd;

	CHILD_DO(tw_write_text(CHILD "/cgroup.procs", "0"));
	CHILD_DO(fd = tw_open(O_NONBLOCK | O_CLOEXEC));
	found->charge_before = charged_bytes();
	CHILD_DO(tw_setup_full(fd, &setup));
	found->charge_armed = charged_bytes();
	close(fd);
}

TEST_F(cgroup, slots_of_a_large_wheel_are_charged_to_it)
{
	struct found *found = &shared[1];

	ASSERT_EQ(0, in_child(set_up_large, found));
	ASSERT_EQ(0, found->line);
	EXPECT_LE(TWHEEL_SLOTS_MAX * (long)sizeof(void *) * 9 / 10,
		  found->charge_armed - found->charge_before);
}

TEST_F_TIMEOUT(cgroup, at_its_limit_arm_says_enomem_and_what_is_there_can_be_moved, 100)
{
	struct found *found = &shared[1];

	ASSERT_EQ(0, in_child(exhaust, found));
	ASSERT_EQ(0, found->line);
	EXPECT_EQ(-ENOMEM, found->error);
	EXPECT_EQ(-ENOMEM, found->written);
	EXPECT_LT(0, found->armed);
	EXPECT_EQ(found->armed, found->moved);
	EXPECT_EQ(found->armed, found->cancelled);
	TH_LOG("%u fitted", found->armed);
}

TEST_HARNESS_MAIN
