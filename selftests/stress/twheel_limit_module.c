// SPDX-License-Identifier: GPL-2.0
/*
 * max_memory_kb and max_user_memory_kb bound the memory that a user without privilege can make the
 * module hold, whatever the user does: the loss of the machine's free memory stays within the limit
 * and 5 %. Each test is one way to get more.
 *
 * The program loads and unloads the module itself; TWHEEL_KO names the file.
 */
#include "twheel_module.h"
#include "twheel_outside.h"

#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define LIMIT_KB	65536
#define LIMIT_TEXT	"65536"
#define LIMIT_BYTES	(LIMIT_KB * 1024L)

#define USER_UID	12345

#define VECTOR		1024
#define NR_FDS		20000

/* More ids than fit into the limit, at 48 bytes each. */
#define NR_IDS		(LIMIT_BYTES / 48)

/* How long memory is watched at the end: longer than any of it is kept in reserve. */
#define WATCH_NS	(2 * TW_SEC)

/* Both processes share this. */
static struct shared {
	atomic_bool ready;	/* the user has all the memory of its own that it needs */
	atomic_bool go;
	atomic_bool done;
	atomic_int line;	/* the first error, and its line */
	atomic_int error;
} *shared;

/* The user's own memory, allocated before it is measured. */
static __u64 *ids;
static int *fds;
static struct twheel_arm arms[VECTOR];
static struct twheel_cancel cancels[VECTOR];

static void __attribute__((constructor)) allocate(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ids = mmap(NULL, NR_IDS * sizeof(*ids), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fds = mmap(NULL, NR_FDS * sizeof(*fds), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The kernel's memory for open files of any kind, which is not the module's. */
static long files_bytes(void)
{
	long active, all, size, per_slab, pages, slabs = 0;
	FILE *file = fopen("/proc/slabinfo", "re");
	char line[512];

	pages = 0;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "filp %ld %ld %ld %ld %ld : tunables %*d %*d %*d : slabdata %*d %ld",
			   &active, &all, &size, &per_slab, &pages, &slabs) == 6)
			break;
	if (file)
		fclose(file);
	return slabs * pages * sysconf(_SC_PAGESIZE);
}

/* Memory that nobody uses, and memory that is not the module's. */
static long free_bytes(void)
{
	return tw_free_bytes() + files_bytes();
}

/*
 * The same at one moment.  While memory is taken, the figures change between the reading of two
 * files, and memory that was given back is free only a grace period later.  So the process that
 * takes it is stopped, and if more is missing than allowed, the figures are read again.
 */
static long free_bytes_beside(pid_t pid, long enough)
{
	long bytes, most = 0;
	int status, tries;

	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	for (tries = 0; tries < 10 && most < enough; tries++) {
		if (tries)
			tw_sleep(20 * TW_MS);
		bytes = free_bytes();
		if (bytes > most)
			most = bytes;
	}
	kill(pid, SIGCONT);
	return most;
}

/* ---- actions of the user -------------------------------------------------- */

#define MUST(condition) do {						\
	if (!(condition)) {						\
		atomic_store(&shared->error, errno);			\
		atomic_store(&shared->line, __LINE__);			\
		_exit(1);						\
	}								\
} while (0)

/* Make another wheel, if there is memory for it, or return -ENOSPC. */
static int wheel(const struct twheel_setup *setup)
{
	int fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, setup);

	if (fd < 0)
		errno = -fd;
	MUST(fd >= 0 || fd == -ENOSPC);
	return fd;
}

static const struct twheel_setup wide = { .tick_ns = TW_MS, .max_pending = 4000000 };

/* Arm nr timeouts, one to two hours ahead, or fewer if there is no more memory. */
static __u32 arm_many(int fd, __u32 nr, __u64 interval_ns)
{
	__u32 j, n, done = 0;
	bool full = false;
	__u64 seed = 1;

	while (done < nr && !full) {
		n = nr - done < VECTOR ? nr - done : VECTOR;
		for (j = 0; j < n; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = TW_HOUR + tw_random(&seed) % 3600 * TW_SEC,
				.interval_ns = interval_ns,
			};
		MUST(tw_arm_vec(fd, arms, n) >= 0);
		/* If one was refused, a later one may still succeed: memory comes back. */
		for (j = 0; j < n; j++) {
			MUST(arms[j].result > 0 || arms[j].result == -ENOSPC);
			if (arms[j].result < 0)
				full = true;
			else
				ids[done++] = arms[j].id;
		}
	}
	return done;
}

/* Cancel those whose number is no multiple of one_in. */
static void cancel_all_but_one_in(int fd, __u32 nr, __u32 one_in)
{
	__u32 i, n = 0;

	for (i = 0; i < nr; i++) {
		if (i % one_in)
			cancels[n++] = (struct twheel_cancel){ .id = ids[i] };
		if (n == VECTOR || (n && i + 1 == nr)) {
			MUST(tw_cancel_vec(fd, cancels, n) == (int)n);
			n = 0;
		}
	}
}

/* Wait until all memory that is given back later has been given back. */
static void rest(void)
{
	tw_sleep(3 * TW_SEC / 2);
}

static void fill_up(void)
{
	int fd = wheel(&wide);

	if (fd >= 0)
		arm_many(fd, NR_IDS, 0);
}

static void arms_timeouts(void)
{
	fill_up();
}

static void arms_periodic_ones(void)
{
	int fd = wheel(&wide);

	MUST(fd >= 0);
	arm_many(fd, NR_IDS, TW_HOUR);
}

/* Give each wheel a few timeouts, and move them earlier so that each is in many slots. */
static void moves_earlier_and_earlier(void)
{
	__u32 i, j;
	int fd;

	while ((fd = wheel(&wide)) >= 0) {
		__u32 nr = arm_many(fd, 32, 0);

		for (i = 0; i < 127; i++) {
			for (j = 0; j < nr; j++)
				arms[j] = (struct twheel_arm){
					.id = ids[j],
					.expires_ns = TW_HOUR - (i * 32 + j) * TW_SEC / 2,
				};
			if (nr)
				tw_rearm_vec(fd, arms, nr);
		}
	}
}

/* Open as many as there is memory for, with all that they have from the beginning. */
static __u32 opens(const struct twheel_setup *setup)
{
	__u32 nr = 0;

	while (nr < NR_FDS && (fds[nr] = setup ? wheel(setup) : tw_open(O_CLOEXEC)) >= 0)
		nr++;
	MUST(nr == NR_FDS || fds[nr] == -ENOSPC);
	return nr;
}

static void opens_wheels(void)
{
	opens(NULL);
}

static void sets_wheels_up(void)
{
	opens(&wide);
}

static void sets_wide_wheels_up(void)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_REALTIME,
		.tick_ns = TW_MS,
		.slots = TWHEEL_SLOTS_MAX / 4,
	};

	opens(&setup);
	fill_up();
}

static const struct twheel_setup keyed = {
	.tick_ns = TW_MS,
	.max_pending = 4000000,
	.flags = TWHEEL_SETUP_KEYED,
};

/* Each wheel has a hash table from the beginning. */
static void sets_keyed_wheels_up(void)
{
	opens(&keyed);
}

/* Close most of the wheels that lie side by side; their memory is used for something else. */
static void closes_all_but_one_in_16(void)
{
	__u32 i, nr = opens(NULL);

	for (i = 0; i < nr; i++)
		if (i % 16)
			close(fds[i]);
	rest();
	fill_up();
}

static void arms_once_in_each_of_many(void)
{
	__u32 i, nr = opens(&wide);

	/* Close some, so that there is memory for entries. */
	for (i = 0; i < nr; i += 2)
		close(fds[i]);
	for (i = 1; i < nr; i += 2)
		arm_many(fds[i], 1, TW_HOUR);
	fill_up();
}

static void cancels_all_but_one_in_a_page(void)
{
	int fd = wheel(&wide);
	__u32 nr;

	MUST(fd >= 0);
	nr = arm_many(fd, NR_IDS, 0);
	cancel_all_but_one_in(fd, nr, 110);
	rest();
	fill_up();
}

static void cancels_most_periodic_ones(void)
{
	int fd = wheel(&wide);
	__u32 nr;

	MUST(fd >= 0);
	nr = arm_many(fd, NR_IDS, TW_HOUR);
	cancel_all_but_one_in(fd, nr, 16 * 102);
	rest();
	fill_up();
}

/* Map and read the table of a wheel with a burst, and then go on with the next wheel. */
static void maps_tables_and_goes_on(void)
{
	struct twheel_info info;
	volatile __u64 *table;
	__u32 i, j, nr;
	int fd;

	for (i = 0; i < 12; i++) {
		fd = wheel(&wide);
		if (fd < 0)
			break;
		MUST(!tw_info(fd, &info));
		table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (table == MAP_FAILED) {
			MUST(errno == ENOSPC);
			break;
		}
		nr = arm_many(fd, 200000, 0);
		for (j = 0; j < nr; j += 64)
			table[(__u32)ids[j]] |= 0;
		cancel_all_but_one_in(fd, nr, NR_IDS);
		if (i < 6)
			rest();
	}
	fill_up();
}

/*
 * Make keyed wheels, each with just so many keys that the hash table of its index, which had so
 * many buckets, has grown: it grows when it has three quarters as many keys.
 */
static void arm_keys_beyond(__u32 nr_buckets)
{
	const __u32 grows_at = nr_buckets / 4 * 3 + 1;
	__u32 j, n, done;
	bool full = false;
	int fd;

	while (!full && (fd = wheel(&keyed)) >= 0) {
		for (done = 0; done < grows_at && !full; done += n) {
			n = grows_at - done < VECTOR ? grows_at - done : VECTOR;
			for (j = 0; j < n; j++)
				arms[j] = (struct twheel_arm){
					.expires_ns = TW_HOUR,
					.user_data = done + j,
				};
			MUST(tw_arm_vec(fd, arms, n) >= 0);
			for (j = 0; j < n; j++) {
				MUST(arms[j].result > 0 || arms[j].result == -ENOSPC);
				full |= arms[j].result < 0;
			}
		}
	}
}

/* The larger hash table is too large for contiguous pages. */
static void arms_keys_until_each_index_grows(void)
{
	arm_keys_beyond(1 << 17);
}

static void arms_keys_until_each_large_index_grows(void)
{
	arm_keys_beyond(1 << 18);
}

static void user(void (*greed)(void))
{
	const struct rlimit files = { NR_FDS + 64, NR_FDS + 64 };
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(!setrlimit(RLIMIT_NOFILE, &files));
	MUST(!setgroups(0, NULL) && !setgid(USER_UID) && !setuid(USER_UID));
	/* The user's own memory for the ids is not the module's. */
	memset(ids, 1, NR_IDS * sizeof(*ids));
	memset(fds, 1, NR_FDS * sizeof(*fds));
	MUST(dup2(STDERR_FILENO, NR_FDS + 60) >= 0);
	for (i = 0; i < 2; i++)
		memset(i ? (void *)cancels : (void *)arms, 1, i ? sizeof(cancels) : sizeof(arms));
	atomic_store(&shared->ready, true);
	while (!atomic_load(&shared->go))
		tw_sleep(TW_MS);
	greed();
	atomic_store(&shared->done, true);
	for (;;)
		pause();
}

/* ---- the rule ------------------------------------------------------------- */

FIXTURE(limit) {
	pid_t pid;
};

FIXTURE_VARIANT(limit) {
	void (*greed)(void);
};

#define GREED(name)							\
	FIXTURE_VARIANT_ADD(limit, name) { .greed = name }

GREED(arms_timeouts);
GREED(arms_periodic_ones);
GREED(moves_earlier_and_earlier);
GREED(opens_wheels);
GREED(sets_wheels_up);
GREED(sets_keyed_wheels_up);
GREED(sets_wide_wheels_up);
GREED(closes_all_but_one_in_16);
GREED(arms_once_in_each_of_many);
GREED(cancels_all_but_one_in_a_page);
GREED(cancels_most_periodic_ones);
GREED(maps_tables_and_goes_on);
GREED(arms_keys_until_each_index_grows);
GREED(arms_keys_until_each_large_index_grows);

FIXTURE_SETUP(limit)
{
	tw_unload_soon();
	ASSERT_NE(MAP_FAILED, shared);
	ASSERT_NE(MAP_FAILED, ids);
	ASSERT_NE(MAP_FAILED, fds);
	if (tw_kernel_notes_allocations())
		SKIP(return, "this kernel's notes of what is allocated take memory, too");
	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=" LIMIT_TEXT
				      " max_user_memory_kb=" LIMIT_TEXT));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	memset(shared, 0, sizeof(*shared));
	self->pid = fork();
	ASSERT_LE(0, self->pid);
	if (!self->pid)
		user(variant->greed);
}

FIXTURE_TEARDOWN(limit)
{
	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		waitpid(self->pid, NULL, 0);
	}
	EXPECT_EQ(0, tw_unload_soon());
}

#define WHAT_FAILED	"line %d: %s", atomic_load(&shared->line),		\
			strerror(atomic_load(&shared->error))

/* This is the maximum of the whole time, not of its end only. */
TEST_F_TIMEOUT(limit, limit_of_memory_holds_whatever_a_user_does, 100)
{
	const long may_be = LIMIT_BYTES + LIMIT_BYTES / 20;
	long free_before, used, most = 0;
	__u64 from_ns, until_ns = 0;

	ASSERT_TRUE(TW_WAIT_FOR(atomic_load(&shared->ready), TW_MS))
		TH_LOG(WHAT_FAILED);
	tw_write_text("/proc/sys/vm/drop_caches", "3");
	tw_sleep(TW_SEC / 10);
	free_before = free_bytes();
	atomic_store(&shared->go, true);
	while (!until_ns || tw_now(CLOCK_MONOTONIC) < until_ns) {
		ASSERT_EQ(0, atomic_load(&shared->line))
			TH_LOG(WHAT_FAILED);
		from_ns = tw_now(CLOCK_MONOTONIC);
		used = free_before - free_bytes_beside(self->pid, free_before - may_be);
		if (used > most)
			most = used;
		if (!until_ns && atomic_load(&shared->done))
			until_ns = tw_now(CLOCK_MONOTONIC) + WATCH_NS;
		/* The user is stopped while memory is read: let it run for most of the time. */
		tw_sleep(20 * TW_MS + 3 * (tw_now(CLOCK_MONOTONIC) - from_ns));
	}
	TH_LOG("%ld kB at most, %ld kB in the end; the limit is %d kB", most / 1024, used / 1024,
	       LIMIT_KB);
	EXPECT_GE(may_be, most);
	/* If a user got nowhere near the limit, the test has shown nothing. */
	EXPECT_LE(LIMIT_BYTES / 10 * 9, most);
}

TEST_HARNESS_MAIN
