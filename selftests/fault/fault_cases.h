/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases: each is one system call on a wheel that is made for it, with arguments and with a
 * check of its results.
 */
#ifndef TWHEEL_FAULT_CASES_H
#define TWHEEL_FAULT_CASES_H

#include "fault_results.h"

#include <sys/epoll.h>
#include <sys/uio.h>

/**
 * struct op - a case: one system call
 * @name: the name of the call, and its variant
 * @prepare: makes the wheel and the arguments
 * @run: the call, and nothing else that could fail
 * @check: checks the results, and notes them
 * @nr: elements that it returns when nothing fails; 0 for a plain success
 * @compat: 32-bit programs make the call by another entry point
 * @indirect: it calls a function that the kernel has passed to it, which may fail
 * @slow: not to be repeated more often than needed
 * @only: make only calls whose name begins like this fail: others have cases of their own;
 *	NULL: all calls
 */
struct op {
	const char *name;
	void (*prepare)(struct __test_metadata *_metadata, struct world *w);
	int (*run)(struct world *w);
	void (*check)(struct __test_metadata *_metadata, struct world *w, int ret);
	int nr;
	bool compat;
	bool indirect;
	bool slow;
	const char *only;
};

/* ---- arguments ----------------------------------------------------------- */

static inline void poison_entries(struct world *w, int nr, int stride)
{
	w->nr = nr;
	w->stride = stride;
	memset(w->arena, 0, ARENA);
}

static inline void *vector_of(struct world *w, __u32 entry_size)
{
	struct twheel_vector *vector = (void *)w->arena;

	*vector = (struct twheel_vector){
		.size = sizeof(*vector),
		.entry_size = entry_size,
		.nr = w->nr,
		.entries = (uintptr_t)world_entry(w, 0),
	};
	return vector;
}

/* ARM nr timeouts from user_data first on, each n-th of them periodic. */
static inline void arm_entries(struct world *w, int nr, int stride, int periodic)
{
	int i;

	poison_entries(w, nr, stride);
	for (i = 0; i < nr; i++) {
		struct twheel_arm *arm = world_entry(w, i);

		*arm = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = TW_HOUR + (i * 37 % 100) * TW_SEC,
			.interval_ns = periodic ? TW_MIN : 0,
			.user_data = w->armed + i,
			.id = TW_POISON64,
			.result = TW_POISON32,
		};
	}
	vector_of(w, stride);
}

/*
 * REARM the one-shots from user_data first on, to earlier deadlines, so that each needs memory of
 * its own in the wheel.
 */
static inline void rearm_entries(struct world *w, int first, int nr, __u64 interval_ns)
{
	int i;

	poison_entries(w, nr, sizeof(struct twheel_arm));
	for (i = 0; i < nr; i++) {
		struct twheel_arm *arm = world_entry(w, i);

		*arm = (struct twheel_arm){
			.id = w->known[first + i].id,
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = TW_MIN + i * TW_MS,
			.interval_ns = interval_ns,
			.user_data = first + i,
			.result = TW_POISON32,
		};
	}
	vector_of(w, w->stride);
}

/* ---- calls --------------------------------------------------------------- */

static inline int run_arm(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_ARM, w->arena);
}

static inline int run_rearm(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_REARM, w->arena);
}

static inline int run_cancel(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_CANCEL, w->arena);
}

static inline int run_query(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_QUERY, w->arena);
}

static inline int run_list(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_LIST, w->arena);
}

static inline int run_info(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_INFO, w->arena);
}

static inline int run_setup(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_SETUP, w->arena);
}

static inline int run_advance(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_ADVANCE, w->arena);
}

static inline int run_drain(struct world *w)
{
	return world_ioctl(w, TWHEEL_IOC_DRAIN, NULL);
}

static inline int run_open(struct world *w)
{
	w->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	return w->fd < 0 ? w->fd : 0;
}

/* The table stays with the wheel; the mapping does not. */
static inline int run_map(struct world *w)
{
	const size_t size = 8 * 4096;
	void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);

	return table == MAP_FAILED ? -errno : munmap(table, size);
}

/* The wheel goes on with the new descriptor. */
static inline int run_reopen(struct world *w)
{
	int fd = tw_reopen(w->fd, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return fd;
	close(w->fd);
	w->fd = fd;
	return 0;
}

static inline int run_close(struct world *w)
{
	return close(w->fd) ? -errno : 0;
}

static inline int run_read(struct world *w)
{
	ssize_t bytes = read(w->fd, world_entry(w, 0), w->nr * w->stride);

	return bytes < 0 ? -errno : (int)(bytes / w->stride);
}

static inline int run_write(struct world *w)
{
	return tw_write(w->fd, world_entry(w, 0), w->nr);
}

/* A read into pieces of this size ends within events. */
#define PIECE		(3 * sizeof(struct twheel_event) + 12)

static inline int run_readv(struct world *w)
{
	struct iovec iov[16];
	size_t left = w->nr * sizeof(struct twheel_event);
	char *at = world_entry(w, 0);
	ssize_t bytes;
	int i;

	for (i = 0; left && i < (int)ARRAY_SIZE(iov); i++) {
		iov[i] = (struct iovec){ at, left < PIECE ? left : PIECE };
		at += iov[i].iov_len;
		left -= iov[i].iov_len;
	}
	bytes = readv(w->fd, iov, i);
	if (bytes > 0 && bytes % sizeof(struct twheel_event))
		return TW_BROKEN;
	return bytes < 0 ? -errno : (int)(bytes / sizeof(struct twheel_event));
}

static inline int run_poll(struct world *w)
{
	int revents = tw_poll(w->fd, POLLIN, 0);

	return revents == POLLIN ? 0 : TW_BROKEN;
}

/* Poll more descriptors than poll() has memory for on its stack. */
static inline int run_poll_many(struct world *w)
{
	struct pollfd *pfd = (void *)w->arena;
	int i;

	for (i = 0; i < 64; i++)
		pfd[i] = (struct pollfd){ .fd = w->fd, .events = POLLPRI };
	/* If an event were there at once, epoll would not need to wait anywhere. */
	return poll(pfd, 64, 1) < 0 ? -errno : 0;
}

static inline int run_epoll_ctl(struct world *w)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(w->other, EPOLL_CTL_ADD, w->fd, &event) ? -errno : 0;
}

static inline int run_fdinfo(struct world *w)
{
	return pread(w->other, w->arena, 4096, 0) > 0 ? 0 : -errno;
}

/* ---- wheels and arguments ------------------------------------------------ */

static inline void prepare_open(struct __test_metadata *_metadata, struct world *w)
{
	(void)_metadata;
	w->fd = -1;
}

static inline void setup_argument(struct world *w, __u32 slots)
{
	struct twheel_setup *setup = (void *)w->arena;

	*setup = (struct twheel_setup){
		.size = sizeof(*setup),
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TICK,
		.slots = slots,
	};
}

static inline void prepare_setup(struct __test_metadata *_metadata, struct world *w)
{
	world_open(_metadata, w);
	setup_argument(w, 0);
}

/* Make more elements than fit into contiguous pages, but few enough to fail each in turn. */
static inline void prepare_setup_wide(struct __test_metadata *_metadata, struct world *w)
{
	world_open(_metadata, w);
	setup_argument(w, 1 << 14);
}

/* Arm two batches on a wheel that was not set up. */
static inline void prepare_first_arm(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	world_open(_metadata, w);
	arm_entries(w, 40, sizeof(struct twheel_arm), 0);
	/* On a real clock, deadlines far ahead keep timeouts pending. */
	for (i = 0; i < w->nr; i++)
		((struct twheel_arm *)world_entry(w, i))->flags = 0;
}

static inline void prepare_arm(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	arm_entries(w, 40, sizeof(struct twheel_arm), 0);
}

/* These are the first timeouts of a keyed wheel. */
static inline void prepare_arm_keyed(struct __test_metadata *_metadata, struct world *w)
{
	make_with(_metadata, w, TWHEEL_SETUP_KEYED, 0);
	arm_entries(w, 40, sizeof(struct twheel_arm), 0);
}

/* Elements have a tail that this version does not know: a keyed wheel then copies each alone. */
static inline void prepare_arm_wide(struct __test_metadata *_metadata, struct world *w)
{
	make_with(_metadata, w, TWHEEL_SETUP_KEYED, 0);
	arm_entries(w, 5, 64, 0);
}

static inline void prepare_arm_page(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	world_fill(_metadata, w, PAGE_PLACES - 3 - 2);
	arm_entries(w, 4, sizeof(struct twheel_arm), 0);
}

static inline void prepare_arm_table(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	for (i = 0; i < BALLAST; i++)
		ballast[i] = (struct twheel_arm){ .expires_ns = TW_HOUR };
	ASSERT_EQ(BALLAST, tw_arm_vec(w->fd, ballast, BALLAST));
	arm_entries(w, 4, sizeof(struct twheel_arm), 0);
}

/* A page of the refresh table has 512 words. */
static inline void prepare_arm_words(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	ASSERT_EQ(0, run_map(w));
	world_fill(_metadata, w, 6 * PAGE_PLACES - 3 - 2);
	arm_entries(w, 4, sizeof(struct twheel_arm), 0);
}

static inline void prepare_arm_periodic(struct __test_metadata *_metadata, struct world *w)
{
	make_plain(_metadata, w);
	arm_entries(w, 4, sizeof(struct twheel_arm), 1);
}

/* The pages of chunks have memory for some of the entries that a re-arm needs, not for all. */
static inline void prepare_rearm(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	world_fill(_metadata, w, 60);
	ASSERT_EQ(0, tw_advance(w->fd, START));
	rearm_entries(w, 3, 40, 0);
}

static inline void prepare_rearm_periodic(struct __test_metadata *_metadata, struct world *w)
{
	make_plain(_metadata, w);
	world_fill(_metadata, w, 8);
	ASSERT_EQ(0, tw_advance(w->fd, START));
	rearm_entries(w, 2, 8, TW_MIN);
}

static inline void prepare_cancel(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	world_fill(_metadata, w, 39);
	poison_entries(w, 40, sizeof(struct twheel_cancel));
	for (i = 0; i < w->nr; i++)
		*(struct twheel_cancel *)world_entry(w, i) = (struct twheel_cancel){
			.id = w->known[i < w->nr - 1 ? i + 3 : 1].id,
			.result = TW_POISON32,
		};
	vector_of(w, w->stride);
}

/* Do the same by write(), which needs no memory for the records. */
static inline void prepare_write(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	world_fill(_metadata, w, 39);
	poison_entries(w, 40, sizeof(struct twheel_record));
	for (i = 0; i < w->nr; i++)
		*(struct twheel_record *)world_entry(w, i) = (struct twheel_record){
			.op = TWHEEL_OP_CANCEL,
			.key = w->known[i < w->nr - 1 ? i + 3 : 1].id,
		};
}

static inline void prepare_query(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	world_fill(_metadata, w, 37);
	poison_entries(w, 40, sizeof(struct twheel_status));
	for (i = 0; i < w->nr; i++) {
		struct twheel_status *row = world_entry(w, i);

		memset(row, TW_POISON, sizeof(*row));
		row->id = w->known[i].id;
	}
	vector_of(w, w->stride);
}

static inline void prepare_rows(struct __test_metadata *_metadata, struct world *w, int stride)
{
	struct twheel_list *list = (void *)w->arena;

	make_usual(_metadata, w);
	world_fill(_metadata, w, 37);
	poison_entries(w, 40, stride);
	*list = (struct twheel_list){
		.size = sizeof(*list),
		.entry_size = w->stride,
		.nr = w->nr,
		.entries = (uintptr_t)world_entry(w, 0),
	};
}

static inline void prepare_list(struct __test_metadata *_metadata, struct world *w)
{
	prepare_rows(_metadata, w, sizeof(struct twheel_status));
}

/* Rows have a tail that this version does not know: each is copied alone. */
static inline void prepare_list_wide(struct __test_metadata *_metadata, struct world *w)
{
	prepare_rows(_metadata, w, sizeof(struct twheel_status) + 8);
}

static inline void prepare_info(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	*(struct twheel_info *)w->arena = (struct twheel_info){
		.size = sizeof(struct twheel_info), .flags = TWHEEL_INFO_WALK,
		.armed = TW_POISON64,
	};
}

static inline void prepare_advance(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	*(struct twheel_advance *)w->arena = (struct twheel_advance){
		.size = sizeof(struct twheel_advance),
		.to_ns = START,
	};
}

/* Make 40 events, which is two batches, ready to be read. */
static inline void prepare_events(struct __test_metadata *_metadata, struct world *w,
				  __u32 event_size)
{
	static struct twheel_arm arms[38];
	int i;

	make_with(_metadata, w, 0, event_size);
	make_lively(_metadata, w);
	for (i = 0; i < 38; i++)
		arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = EXPIRED_NS,
			.user_data = w->armed + i,
		};
	ASSERT_EQ(38, tw_arm_vec(w->fd, arms, 38));
	for (i = 0; i < 38; i++)
		world_learn(w, arms[i].user_data, arms[i].id, EXPIRED_NS, 0);
	ASSERT_EQ(0, tw_advance(w->fd, START));
	poison_entries(w, 40, event_size);
}

static inline void prepare_read(struct __test_metadata *_metadata, struct world *w)
{
	prepare_events(_metadata, w, sizeof(struct twheel_event));
}

/* Events have a tail that this version does not know: each is copied alone. */
static inline void prepare_read_wide(struct __test_metadata *_metadata, struct world *w)
{
	prepare_events(_metadata, w, sizeof(struct twheel_event) + 8);
}

static inline void prepare_epoll(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	w->other = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, w->other);
}

static inline void prepare_fdinfo(struct __test_metadata *_metadata, struct world *w)
{
	char path[64];

	make_usual(_metadata, w);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", w->fd);
	w->other = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, w->other);
}

/* ---- all cases ----------------------------------------------------------- */

static const struct op case_open = {
	.name = "open",
	.prepare = prepare_open, .run = run_open, .check = results_of_open,
};

static const struct op case_setup = {
	.name = "SETUP", .compat = true,
	.prepare = prepare_setup, .run = run_setup, .check = results_of_setup,
};

static const struct op case_setup_wide = {
	.name = "SETUP of 2^14 slots",
	.prepare = prepare_setup_wide, .run = run_setup, .check = results_of_setup,
};

static const struct op case_arm_first = {
	.name = "ARM, the first", .nr = 40, .compat = true,
	.prepare = prepare_first_arm, .run = run_arm, .check = results_of_first_arm,
};

static const struct op case_arm_keyed = {
	.name = "ARM of new keys", .nr = 40,
	.prepare = prepare_arm_keyed, .run = run_arm, .check = results_of_arm,
};

static const struct op case_arm = {
	.name = "ARM", .nr = 40, .compat = true,
	.prepare = prepare_arm, .run = run_arm, .check = results_of_arm,
};

static const struct op case_arm_wide = {
	.name = "ARM of new keys, wide entries", .nr = 5, .compat = true,
	.prepare = prepare_arm_wide, .run = run_arm, .check = results_of_arm,
};

static const struct op case_arm_page = {
	.name = "ARM into a new page", .nr = 4,
	.prepare = prepare_arm_page, .run = run_arm, .check = results_of_arm,
};

static const struct op case_arm_table = {
	.name = "ARM into a new table", .nr = 4, .slow = true, .only = "twheel_area_",
	.prepare = prepare_arm_table, .run = run_arm, .check = results_of_arm_table,
};

static const struct op case_arm_words = {
	.name = "ARM into a new page of words", .nr = 4,
	.prepare = prepare_arm_words, .run = run_arm, .check = results_of_arm,
};

static const struct op case_map = {
	.name = "mmap",
	.prepare = make_usual, .run = run_map, .check = no_results,
};

static const struct op case_arm_periodic = {
	.name = "ARM, periodic", .nr = 4,
	.prepare = prepare_arm_periodic, .run = run_arm, .check = results_of_arm,
};

static const struct op case_rearm = {
	.name = "REARM", .nr = 40, .compat = true,
	.prepare = prepare_rearm, .run = run_rearm, .check = results_of_rearm,
};

static const struct op case_rearm_periodic = {
	.name = "REARM, now periodic", .nr = 8,
	.prepare = prepare_rearm_periodic, .run = run_rearm, .check = results_of_rearm,
};

static const struct op case_cancel = {
	.name = "CANCEL", .nr = 40, .compat = true,
	.prepare = prepare_cancel, .run = run_cancel, .check = results_of_cancel,
};

static const struct op case_query = {
	.name = "QUERY", .nr = 40, .compat = true,
	.prepare = prepare_query, .run = run_query, .check = results_of_query,
};

static const struct op case_list = {
	.name = "LIST", .nr = 40, .compat = true,
	.prepare = prepare_list, .run = run_list, .check = results_of_list,
};

static const struct op case_list_wide = {
	.name = "LIST of wide rows", .nr = 40,
	.prepare = prepare_list_wide, .run = run_list, .check = results_of_list,
};

static const struct op case_info = {
	.name = "INFO", .compat = true,
	.prepare = prepare_info, .run = run_info, .check = results_of_info,
};

static const struct op case_advance = {
	.name = "ADVANCE", .compat = true,
	.prepare = prepare_advance, .run = run_advance, .check = no_results,
};

static const struct op case_drain = {
	.name = "DRAIN", .compat = true,
	.prepare = make_usual, .run = run_drain, .check = results_of_drain,
};

static const struct op case_read = {
	.name = "read", .nr = 40,
	.prepare = prepare_read, .run = run_read, .check = results_of_read,
};

static const struct op case_read_wide = {
	.name = "read of wide events", .nr = 40,
	.prepare = prepare_read_wide, .run = run_read, .check = results_of_read,
};

static const struct op case_readv = {
	.name = "readv", .nr = 40,
	.prepare = prepare_read, .run = run_readv, .check = results_of_read,
};

static const struct op case_write = {
	.name = "write", .nr = 40,
	.prepare = prepare_write, .run = run_write, .check = results_of_write,
};

static const struct op case_poll = {
	.name = "poll",
	.prepare = make_usual, .run = run_poll, .check = no_results,
};

static const struct op case_poll_of_many = {
	.name = "poll of many", .indirect = true,
	.prepare = make_usual, .run = run_poll_many, .check = no_results,
};

static const struct op case_epoll_ctl = {
	.name = "epoll_ctl", .indirect = true,
	.prepare = prepare_epoll, .run = run_epoll_ctl, .check = no_results,
};

static const struct op case_fdinfo = {
	.name = "fdinfo",
	.prepare = prepare_fdinfo, .run = run_fdinfo, .check = no_results,
};

static const struct op case_reopen = {
	.name = "REOPEN",
	.prepare = make_usual, .run = run_reopen, .check = no_results,
};

static const struct op case_close = {
	.name = "close",
	.prepare = make_usual, .run = run_close, .check = results_of_close,
};

/*
 * Call X() for each case, with something between the calls. X gets the end of the name of a case,
 * which is also that of its variant in a test.
 */
#define FAULT_CASES(X, between)	\
	X(open) between \
	X(setup) between \
	X(setup_wide) between \
	X(arm_first) between \
	X(arm_keyed) between \
	X(arm) between \
	X(arm_wide) between \
	X(arm_page) between \
	X(arm_table) between \
	X(arm_words) between \
	X(map) between \
	X(arm_periodic) between \
	X(rearm) between \
	X(rearm_periodic) between \
	X(cancel) between \
	X(query) between \
	X(list) between \
	X(list_wide) between \
	X(info) between \
	X(advance) between \
	X(drain) between \
	X(read) between \
	X(read_wide) between \
	X(readv) between \
	X(write) between \
	X(poll) between \
	X(poll_of_many) between \
	X(epoll_ctl) between \
	X(fdinfo) between \
	X(reopen) between \
	X(close)

#define FAULT_CASE_IS_ONE(name)	(sizeof(case_##name) > 0)
#define NR_CASES	(FAULT_CASES(FAULT_CASE_IS_ONE, +))

/* Use this after FIXTURE_VARIANT(call), which has a member op: it makes a variant for a case. */
#define FAULT_CASE_VARIANT(name)	\
	FIXTURE_VARIANT_ADD(call, name) { .op = &case_##name }

#endif /* TWHEEL_FAULT_CASES_H */
