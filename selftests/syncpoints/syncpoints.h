/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sync points of the module, at which a test holds a thread, and other threads that make one call
 * each
 */
#ifndef SYNCPOINTS_H
#define SYNCPOINTS_H

#include "twheel_outside.h"
#include "twheel_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#define SYNCPOINTS_FILE	"/sys/kernel/debug/twheel_syncpoints"

/* If nothing prevents an error of another thread, it happens within this time. */
#define A_WHILE		(150 * TW_MS)

/* If an event that must come at once has not come for this long, it is lost. */
#define LOST_MS		8000

/* Write one command to the file; return 0 or -errno. */
static inline int syncpoint_say(const char *point, const char *what)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %s", point, what);
	int fd = open(SYNCPOINTS_FILE, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, line, len) == len ? 0 : -errno;
	close(fd);
	return ret;
}

struct syncpoint {
	int hits;
	int inside;
	int held;
};

static inline struct syncpoint syncpoint_see(const char *point)
{
	struct syncpoint seen, found = { -1, -1, -1 };
	FILE *file = fopen(SYNCPOINTS_FILE, "re");
	char name[64];

	while (file && fscanf(file, "%63s %d %d %d", name, &seen.hits, &seen.inside,
			      &seen.held) == 4)
		if (!strcmp(name, point))
			found = seen;
	if (file)
		fclose(file);
	return found;
}

#define HOLD(point)		ASSERT_EQ(0, syncpoint_say(point, "hold"))
#define RELEASE(point)		ASSERT_EQ(0, syncpoint_say(point, "release"))
#define AWAIT(point, condition)					\
	ASSERT_TRUE(TW_WAIT_FOR(condition, 2 * TW_MS))			\
		TH_LOG("no thread came to the sync point %s", point)
#define AWAIT_HELD(point)	AWAIT(point, syncpoint_see(point).held == 1)
#define AWAIT_INSIDE(point)	AWAIT(point, syncpoint_see(point).inside > 0)

/* A thread that makes one call. */
struct side {
	int fd;
	int (*run)(struct side *side);
	struct twheel_arm arm;
	struct twheel_arm *arms;
	__u64 id;
	__u64 at_ns;
	__u32 nr;
	short wanted;
	struct twheel_status status;
	struct twheel_event events[4];
	int ret;
	atomic_int tid;
	atomic_int has_begun;
	atomic_int may_end;
	atomic_int done;
	pthread_t thread;
};

static inline int side_arm(struct side *side)
{
	return tw_arm_entry(side->fd, &side->arm);
}

static inline int side_arm_vec(struct side *side)
{
	return tw_arm_vec(side->fd, side->arms, side->nr);
}

static inline int side_rearm(struct side *side)
{
	return tw_rearm_entry(side->fd, &side->arm);
}

static inline int side_cancel(struct side *side)
{
	return tw_cancel1(side->fd, side->id);
}

static inline int side_query(struct side *side)
{
	return tw_query1(side->fd, side->id, &side->status);
}

static inline int side_read(struct side *side)
{
	return tw_read(side->fd, side->events, 4);
}

/* Read events of any size; return how many bytes. */
static inline int side_read_bytes(struct side *side)
{
	ssize_t bytes = read(side->fd, side->events, sizeof(side->events));

	return bytes < 0 ? -errno : bytes;
}

/*
 * Return the events that poll() reports. At its time-out it checks once more; if it finds an event
 * only then, that has woken nobody.
 */
static inline int side_poll(struct side *side)
{
	struct pollfd pollfd = { .fd = side->fd, .events = side->wanted };
	__u64 begin_ns = tw_now(CLOCK_MONOTONIC);
	int ret = poll(&pollfd, 1, LOST_MS);

	if (ret < 0)
		return -errno;
	return ret && tw_now(CLOCK_MONOTONIC) - begin_ns < LOST_MS * TW_MS ? pollfd.revents : 0;
}

static inline int side_drain(struct side *side)
{
	return tw_drain(side->fd);
}

static inline int side_advance(struct side *side)
{
	return tw_advance(side->fd, side->at_ns);
}

static inline void *side_thread(void *arg)
{
	struct side *side = arg;

	side->tid = gettid();
	side->ret = side->run(side);
	side->done = 1;
	return NULL;
}

#define START(side)	\
	ASSERT_EQ(0, pthread_create(&(side)->thread, NULL, side_thread, side))

/* Return the attributes of a thread that runs on this processor alone. */
static inline pthread_attr_t on_processor(int nr)
{
	pthread_attr_t attr;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(nr, &set);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	return attr;
}

/* Have this thread run on this processor alone. */
static inline int stay_on_processor(int nr)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(nr, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/*
 * If a thread is going to spin at a sync point, or to go on while this one does, start it on
 * another processor.
 */
#define START_APART(side) do {						\
	pthread_attr_t attr = on_processor(1);				\
									\
	ASSERT_EQ(0, stay_on_processor(0));				\
	ASSERT_EQ(0, pthread_create(&(side)->thread, &attr, side_thread, side)); \
	pthread_attr_destroy(&attr);					\
} while (0)

/* Wait until a thread has made its call, which must not take for ever. */
#define FINISH(side) do {						\
	ASSERT_TRUE(TW_WAIT_FOR((side)->done, TW_MS))			\
		TH_LOG("line %d: the call does not end", __LINE__);	\
	pthread_join((side)->thread, NULL);				\
} while (0)

/* Wait until a thread sleeps in its call. */
#define AWAIT_ASLEEP(side) do {						\
	ASSERT_TRUE(TW_WAIT_FOR((side)->tid, TW_MS));			\
	ASSERT_EQ(0, tw_wait_asleep((side)->tid));			\
} while (0)

/* Whether an event comes that must come at once. */
static inline bool event_comes(int fd)
{
	struct side side = { .fd = fd, .wanted = POLLIN };

	return side_poll(&side) & POLLIN;
}

/* Return how many events can be read, each of which must be there at once; or -errno. */
static inline int read_all(int fd, struct twheel_event *events, int max)
{
	int ret, nr = 0;

	while (nr < max) {
		ret = tw_read(fd, &events[nr], max - nr);
		if (ret <= 0)
			return nr || ret == -EAGAIN ? nr : ret;
		nr += ret;
	}
	return nr;
}

/* Arm this many timeouts that never expire, and store the id of the first one. */
static inline int arm_many(int fd, __u64 expires_ns, __u32 nr, __u64 *ids)
{
	struct twheel_arm *arms = calloc(nr, sizeof(*arms));
	int ret;
	__u32 i;

	for (i = 0; i < nr; i++) {
		arms[i].flags = TWHEEL_ARM_ABSOLUTE;
		arms[i].expires_ns = expires_ns;
		arms[i].user_data = 1000000 + i;
	}
	ret = tw_arm_vec(fd, arms, nr);
	for (i = 0; i < nr && ids; i++)
		ids[i] = arms[i].id;
	free(arms);
	return ret;
}

static inline int cancel_many(int fd, const __u64 *ids, __u32 nr)
{
	struct twheel_cancel *cancels = calloc(nr, sizeof(*cancels));
	int ret;
	__u32 i;

	for (i = 0; i < nr; i++)
		cancels[i].id = ids[i];
	ret = tw_cancel_vec(fd, cancels, nr);
	free(cancels);
	return ret;
}

#endif /* SYNCPOINTS_H */
