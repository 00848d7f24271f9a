// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation while the module is loaded fails in turn: the workqueue, the threads, the
 * device. The load returns an errno, and leaves nothing behind. If an allocation fails, it counts
 * against no limit of memory, which is tested with the smallest limits.
 *
 * The program loads and unloads the module itself. TWHEEL_KO names the file.
 */
#include "twheel_module.h"
#include "fault_inject.h"

/* Whether a file has a line with this word. */
static bool file_has(const char *path, const char *word)
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		found |= !!strstr(line, word);
	if (file)
		fclose(file);
	return found;
}

/* Return the kind of thing that the unloaded module has left behind; NULL if there is none. */
static const char *left_behind(void)
{
	__u64 switches;

	if (tw_is_loaded())
		return "/sys/module";
	if (tw_kthreads(&switches))
		return "a thread";
	if (!access("/sys/class/misc/twheel", F_OK) || file_has("/proc/misc", "twheel"))
		return "a misc device";
	if (!access(TW_DEVICE, F_OK))
		return "a device node";
	return NULL;
}

/* Device nodes are removed by a thread of the kernel, so wait for it. */
static const char *left_behind_soon(void)
{
	const char *left;

	TW_WAIT_FOR(!(left = left_behind()), 10 * TW_MS);
	return left;
}

/* ---- loading ------------------------------------------------------------- */

FIXTURE(load) {
	struct fi_module module;
};

/* Three threads: if the second cannot be made, the first has to end. */
#define THREADS		"kthreads=3"

FIXTURE_SETUP(load)
{
	int ret = fi_open();

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	if (access(tw_module_path(), R_OK))
		SKIP(return, "no %s: set TWHEEL_KO", tw_module_path());
	if (tw_is_loaded())
		ASSERT_EQ(0, tw_unload());
	ASSERT_EQ(NULL, left_behind_soon());
}

FIXTURE_TEARDOWN(load)
{
	fi_fail_no_more();
	if (tw_is_loaded())
		EXPECT_EQ(0, tw_unload());
}

/**
 * struct row - the errors of insmod for faults within a function of the kernel
 * @what: the thing that fails
 * @where: the function
 * @once: its errors if the first fault happens there, the second and so on, each once; loads
 *	that succeed are left out, unless all do
 * @always: its errors if all of them happen
 *
 * Documentation/fault-sites.rst shows this table.
 */
static const struct row {
	const char *what;
	const char *where;
	const char *once;
	const char *always;
} rows[] = {
	{ "the workqueue, what it is made of", "alloc_workqueue()", "ENOMEM", "ENOMEM" },
	{ "a kthread, what it is asked for with", "kthread_create_worker()", "ENOMEM", "ENOMEM" },
	{ "a new kthread, its credentials", "kernel_clone()", "ENOMEM, EAGAIN", "ENOMEM" },
	{ "the misc device, its class device", "misc_register()", "ENOMEM", "ENOMEM" },
	{ "anything of these", "do_one_initcall()", "ENOMEM", "ENOMEM" },
};

/* How many loads returned each error, while a function of the kernel was made to fail. */
struct said {
	unsigned int nr;	/* faults */
	unsigned int enomem;
	unsigned int ebusy;
	unsigned int eagain;
	unsigned int loaded;
};

static void check_load(struct __test_metadata *_metadata, int ret, const char *function,
		       unsigned int nth, struct said *said)
{
	const char *left;
	int fd;

	said->nr++;
	if (!ret) {
		/* If the load does not need it, the module must be complete. */
		said->loaded++;
		fd = tw_open(O_CLOEXEC);
		EXPECT_TRUE(fd >= 0 || access(TW_DEVICE, F_OK))
			TH_LOG("%s(), fault %u: open says %d", function, nth, fd);
		if (fd >= 0)
			close(fd);
		ASSERT_EQ(0, tw_unload())
			TH_LOG("%s(), fault %u", function, nth);
	} else if (ret == -EBUSY) {
		said->ebusy++;
	} else if (ret == -EAGAIN) {
		said->eagain++;
	} else {
		EXPECT_EQ(-ENOMEM, ret)
			TH_LOG("%s(), fault %u", function, nth);
		said->enomem++;
	}
	left = left_behind_soon();
	EXPECT_EQ(NULL, left)
		TH_LOG("%s(), fault %u: %s is left", function, nth, left);
}

/* Write the errors as in the table. */
static void said_text(char *text, size_t size, const struct said *said)
{
	snprintf(text, size, "%s%s%s", said->enomem ? ", ENOMEM" : "",
		 said->eagain ? ", EAGAIN" : "", said->ebusy ? ", EBUSY" : "");
	if (text[0])
		memmove(text, text + 2, strlen(text + 2) + 1);
	else
		snprintf(text, size, "done");
}

static void expect_row(struct __test_metadata *_metadata, const char *function,
		       const struct said *once, const struct said *always)
{
	char where[128], once_text[64], always_text[64];
	int i, nr = 0;

	snprintf(where, sizeof(where), "%s()", function);
	said_text(once_text, sizeof(once_text), once);
	said_text(always_text, sizeof(always_text), always);
	for (i = 0; i < (int)ARRAY_SIZE(rows); i++)
		nr += !strcmp(rows[i].where, where) && !strcmp(rows[i].once, once_text) &&
		      !strcmp(rows[i].always, always_text);
	EXPECT_EQ(1, nr)
		TH_LOG("rows of the table: %s | %s | %s", where, once_text, always_text);
}

/* Let all faults happen that these threads could have there. */
static struct said load_with_all_faults(struct __test_metadata *_metadata, const char *function,
					const char *thread)
{
	struct said said = {};
	int ret;

	ASSERT_EQ(0, fi_filter(FI_ALL, fi_function(function)));
	ASSERT_EQ(0, fi_mark(thread, true));
	ASSERT_EQ(0, fi_fail_always());
	ret = tw_load(THREADS);
	EXPECT_LT(0, fi_fail_no_more());
	ASSERT_EQ(0, fi_mark(thread, false));
	ASSERT_EQ(0, fi_filter(0, fi_function(function)));
	check_load(_metadata, ret, function, 0, &said);
	return said;
}

static void note_said(const char *function, const struct said *said)
{
	ksft_print_msg("site: loading | %s() | %u faults: %u ENOMEM, %u EBUSY, %u EAGAIN, %u loaded\n",
		       function, said->nr, said->enomem, said->ebusy, said->eagain, said->loaded);
	fflush(stdout);
}

/* Make one of these faults after the other happen within a function, until a load has none. */
static void load_with_each_fault(struct __test_metadata *_metadata, const char *function,
				 unsigned int kinds, struct said *said)
{
	struct fi_range range = fi_function(function);
	unsigned int nth, left;
	int ret;

	ASSERT_NE(0, range.start)
		TH_LOG("the kernel has no %s()", function);
	for (nth = 1;; nth++) {
		ASSERT_EQ(0, fi_filter(kinds, range));
		ASSERT_EQ(0, fi_arm(nth));
		ret = tw_load(THREADS);
		left = fi_disarm();
		ASSERT_EQ(0, fi_filter(0, range));
		if (left)
			break;
		check_load(_metadata, ret, function, nth, said);
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, tw_unload());
}

/*
 * Faults of kmalloc() have a row of their own: its slabs take a different number of pages in each
 * load, so the numbers of the other faults would differ, too.
 */
static struct said load_with_faults_in(struct __test_metadata *_metadata, const char *function)
{
	struct said always, said = {};

	load_with_each_fault(_metadata, function, 1U << FI_SLAB, &said);
	load_with_each_fault(_metadata, function, FI_ALL & ~(1U << FI_SLAB), &said);
	note_said(function, &said);
	always = load_with_all_faults(_metadata, function, "thread-self");
	expect_row(_metadata, function, &said, &always);
	return said;
}

TEST_F_TIMEOUT(load, a_workqueue_that_cannot_be_made_says_enomem, 100)
{
	struct said said = load_with_faults_in(_metadata, "alloc_workqueue");

	EXPECT_LT(0, said.enomem);
	EXPECT_EQ(0, said.ebusy + said.eagain);
}

TEST_F_TIMEOUT(load, a_thread_that_cannot_be_asked_for_says_enomem, 100)
{
	struct said said = load_with_faults_in(_metadata, "kthread_create_worker");

	/* Each of the three threads needs the worker itself, and the request to make its thread. */
	EXPECT_LE(3 * 2, said.enomem);
	EXPECT_EQ(0, said.ebusy + said.eagain);
}

/* Its number needs no memory: userfaultfd has one as well, in the same leaf. */
TEST_F_TIMEOUT(load, a_device_that_cannot_be_registered_says_enomem, 100)
{
	struct said said = load_with_faults_in(_metadata, "misc_register");

	EXPECT_LT(0, said.enomem);
	EXPECT_EQ(0, said.ebusy + said.eagain);
}

/* All faults of the load, within any function. */
TEST_F_TIMEOUT(load, every_fault_of_loading_leaves_nothing, 100)
{
	struct said said = load_with_faults_in(_metadata, "do_one_initcall");

	/* The workqueue, the list of threads, the threads, the device. */
	EXPECT_LE(1 + 1 + 3 * 2 + 1, said.enomem);
}

/* Another thread makes threads, and has faults of its own. */
TEST_F_TIMEOUT(load, a_thread_that_cannot_be_made_says_the_errno_of_the_kernel, 100)
{
	struct fi_range range = fi_function("kernel_clone");
	int nth_fd = open("/proc/2/fail-nth", O_RDWR | O_CLOEXEC);
	struct said always, said = {};
	int own_fd = fi.nth, ret;
	unsigned int nth, left;

	ASSERT_TRUE(file_has("/proc/2/comm", "kthreadd"));
	ASSERT_LE(0, nth_fd);
	ASSERT_NE(0, range.start);
	for (nth = 1;; nth++) {
		ASSERT_EQ(0, fi_filter(FI_ALL, range));
		fi.nth = nth_fd;
		ASSERT_EQ(0, fi_arm(nth));
		ret = tw_load(THREADS);
		left = fi_disarm();
		fi.nth = own_fd;
		ASSERT_EQ(0, fi_filter(0, range));
		if (left)
			break;
		check_load(_metadata, ret, "kernel_clone", nth, &said);
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, tw_unload());
	note_said("kernel_clone", &said);
	always = load_with_all_faults(_metadata, "kernel_clone", "2");
	expect_row(_metadata, "kernel_clone", &said, &always);
	/*
	 * Each of the three needs its thread and its stack. If its credentials fail, that is
	 * EAGAIN.
	 */
	EXPECT_LE(3 * 2, said.enomem);
	EXPECT_EQ(0, said.ebusy);
}

/* ---- limits of the module ------------------------------------------------ */

#define PLACES_PER_PAGE	102
/* Each round takes a page, so these take more than the smallest limit. */
#define ROUNDS		72

/* Let all faults at the calls of this name happen during an ARM. */
static int arm_with_faults_in(struct __test_metadata *_metadata, int fd,
			      const struct fi_site *site, unsigned int *nr)
{
	__u64 id;
	int ret;

	ASSERT_EQ(0, fi_filter(FI_ALL, (struct fi_range){ site->address, site->address + 1 }));
	ASSERT_EQ(0, fi_mark("thread-self", true));
	ASSERT_EQ(0, fi_fail_always());
	ret = tw_arm_in(fd, TW_HOUR, &id);
	*nr = fi_fail_no_more();
	ASSERT_EQ(0, fi_mark("thread-self", false));
	return ret;
}

/* Load with the smallest limit, and let more pages and tables fail than it allows. */
TEST_F_TIMEOUT(load, pages_that_could_not_be_had_count_against_no_limit, 120)
{
	static struct twheel_arm arms[10 * PLACES_PER_PAGE];
	unsigned int nr, nr_failed = 0;
	int i, round, fd;

	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=256 max_user_memory_kb=256"));
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
	for (i = 0; i < self->module.nr; i++) {
		const struct fi_site *site = &self->module.site[i];

		if (!fi_allocator(site->callee))
			continue;
		fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
		ASSERT_LE(0, fd);
		for (round = 0, nr = 1; round < ROUNDS && nr; round++) {
			int ret = arm_with_faults_in(_metadata, fd, site, &nr);

			/* If there was no fault, the ARM does not make this call. */
			EXPECT_EQ(nr ? -ENOMEM : 0, ret)
				TH_LOG("%s in %s()", site->callee, site->function);
			nr_failed += !!nr;
		}
		close(fd);
	}
	/* Pages of places, of the table and of chunks have failed. */
	EXPECT_LE(3 * ROUNDS, nr_failed);

	fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_LE(0, fd);
	for (i = 0; i < 10 * PLACES_PER_PAGE; i++)
		arms[i].expires_ns = TW_HOUR;
	EXPECT_EQ(10 * PLACES_PER_PAGE, tw_arm_vec(fd, arms, 10 * PLACES_PER_PAGE))
		TH_LOG("the last one says %d", arms[10 * PLACES_PER_PAGE - 1].result);
	close(fd);
}

/* The slots of a wide wheel count, too: they take 8 MB. */
TEST_F_TIMEOUT(load, slots_that_could_not_be_had_count_against_no_limit, 120)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.slots = TWHEEL_SLOTS_MAX,
	};
	int fd, round;
	__u64 id;

	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=8448 max_user_memory_kb=8448"));
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, fd);
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, fi_filter(FI_ALLOCATIONS, self->module.code));
		ASSERT_EQ(0, fi_mark("thread-self", true));
		ASSERT_EQ(0, fi_fail_always());
		EXPECT_EQ(-ENOMEM, tw_setup_full(fd, &setup));
		EXPECT_LT(0, fi_fail_no_more());
		ASSERT_EQ(0, fi_mark("thread-self", false));
	}
	EXPECT_EQ(0, tw_setup_full(fd, &setup));
	EXPECT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	close(fd);
}

TEST_HARNESS_MAIN
