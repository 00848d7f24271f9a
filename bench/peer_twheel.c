// SPDX-License-Identifier: GPL-2.0
/* The device: vectors in, whole buffers of events out. */
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <twheel/device.h>
#include <unistd.h>

#define DEVICE		"/dev/twheel"
#define TICK_NS		MS
/* user_data of the timeout that settle() arms. */
#define NOBODY		UINT32_MAX

struct twheel {
	int fd;
	int watched;		/* or -1 */
	__u64 *id;
	void *table;		/* refresh by store */
	uint32_t shift;		/* refresh by store */
	bool shared;
	struct twheel_arm arm[BATCH];
	struct twheel_cancel cancel[BATCH];
	struct twheel_event event[BATCH];
};

static const char *absent(void)
{
	return access(DEVICE, R_OK | W_OK) ? "no " DEVICE : NULL;
}

static void call_with(struct twheel *tw, unsigned long cmd, __u32 flags, void *entries,
		      size_t size, uint32_t nr)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = size,
		.nr = nr,
		.flags = flags,
		.entries = (uintptr_t)entries,
	};

	if (ioctl(tw->fd, cmd, &vector) != (int)nr)
		err(1, "twheel, command %#lx", cmd);
}

static void call(struct twheel *tw, unsigned long cmd, void *entries, size_t size, uint32_t nr)
{
	call_with(tw, cmd, 0, entries, size, nr);
}

static struct twheel *open_wheel(const struct setup *setup, uint64_t tick_ns, __u32 flags)
{
	struct twheel *tw = get_memory(1, sizeof(*tw));
	struct twheel_setup wheel = {
		.size = sizeof(wheel),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = tick_ns,
		/* One more for settle(). */
		.max_pending = setup->nr + 1,
		.flags = flags,
	};
	uint32_t i;

	tw->fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tw->fd < 0 || ioctl(tw->fd, TWHEEL_IOC_SETUP, &wheel))
		err(1, DEVICE);
	tw->watched = -1;
	tw->shared = setup->shared;
	tw->id = get_memory(setup->nr, sizeof(*tw->id));
	for (i = 0; i < BATCH; i++)
		tw->arm[i].flags = TWHEEL_ARM_ABSOLUTE;
	return tw;
}

static void *open_1ms(const struct setup *setup)
{
	return open_wheel(setup, TICK_NS, 0);
}

static void *open_10ms(const struct setup *setup)
{
	return open_wheel(setup, 10 * TICK_NS, 0);
}

/* Each timeout may be that many ticks late. */
static void *open_slack(const struct setup *setup)
{
	struct twheel *tw = open_1ms(setup);
	uint32_t i;

	for (i = 0; i < BATCH; i++)
		tw->arm[i].slack_ticks = SLACK_NS / TICK_NS;
	return tw;
}

/* A keyed wheel needs no ids: the key says whose timeout it is, and if it pends, ARM moves it. */
static void arm_keys(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct twheel *tw = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		tw->arm[i].expires_ns = deadline_ns[i];
		tw->arm[i].user_data = who[i];
	}
	call(tw, TWHEEL_IOC_ARM, tw->arm, sizeof(tw->arm[0]), nr);
}

/* With several threads, each arm is a call of its own: they share no vector. */
static void arm_one(struct twheel *tw, uint32_t who, uint64_t delay_ns)
{
	struct twheel_arm arm = { .expires_ns = delay_ns, .user_data = who };

	call(tw, TWHEEL_IOC_ARM, &arm, sizeof(arm), 1);
	tw->id[who] = arm.id;
}

static void cancel_one(struct twheel *tw, uint32_t who)
{
	struct twheel_cancel cancel = { .id = tw->id[who] };

	call(tw, TWHEEL_IOC_CANCEL, &cancel, sizeof(cancel), 1);
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct twheel *tw = self;
	uint32_t i;

	if (tw->shared) {
		arm_one(tw, who[0], deadline_ns[0]);
		return;
	}
	arm_keys(self, who, deadline_ns, nr);
	for (i = 0; i < nr; i++)
		tw->id[who[i]] = tw->arm[i].id;
}

static void rearm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct twheel *tw = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		tw->arm[i].expires_ns = deadline_ns[i];
		tw->arm[i].id = tw->id[who[i]];
	}
	call(tw, TWHEEL_IOC_REARM, tw->arm, sizeof(tw->arm[0]), nr);
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct twheel *tw = self;
	uint32_t i;

	if (tw->shared) {
		cancel_one(tw, who[0]);
		return;
	}
	for (i = 0; i < nr; i++)
		tw->cancel[i].id = tw->id[who[i]];
	call(tw, TWHEEL_IOC_CANCEL, tw->cancel, sizeof(tw->cancel[0]), nr);
}

/* If a read is short, it has taken all events. */
static void take_events(struct twheel *tw)
{
	ssize_t got, i;

	do {
		got = read(tw->fd, tw->event, sizeof(tw->event));
		if (got < 0 && errno != EAGAIN)
			err(1, "read");
		for (i = 0; i < got / (ssize_t)sizeof(tw->event[0]); i++)
			expired(tw->event[i].user_data);
	} while (got == sizeof(tw->event));
}

static void wait(void *self, bool sleep)
{
	struct twheel *tw = self;
	struct pollfd pfd[2] = {
		{ .fd = tw->fd, .events = POLLIN },
		{ .fd = tw->watched, .events = POLLIN },
	};
	nfds_t nr = tw->watched < 0 ? 1 : 2;

	if (sleep && poll(pfd, nr, -1) < 0)
		err(1, "poll");
	take_events(tw);
}

static void watch(void *self, int fd)
{
	((struct twheel *)self)->watched = fd;
}

/*
 * Wait until the inbox is empty and the kthread sleeps: arm a timeout that is due at once, read its
 * event, and give the kthread time to end its turn.
 */
static void settle(void *self)
{
	struct twheel *tw = self;
	struct twheel_arm due = { .user_data = NOBODY };
	struct pollfd pfd = { .fd = tw->fd, .events = POLLIN };

	call(tw, TWHEEL_IOC_ARM, &due, sizeof(due), 1);
	if (poll(&pfd, 1, -1) < 0 || read(tw->fd, tw->event, sizeof(tw->event[0])) < 0)
		err(1, "read");
	if (tw->event[0].user_data != NOBODY)
		errx(1, "something expired too soon");
	sleep_until(now_ns() + 10 * MS);
}

static void close_wheel(void *self)
{
	struct twheel *tw = self;

	close(tw->fd);
}

/* ---- refresh by store ---------------------------------------------------- */

static struct twheel_info info_of(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		err(1, "twheel, INFO");
	return info;
}

static void *open_store(const struct setup *setup)
{
	struct twheel *tw = open_1ms(setup);

	struct twheel_info info = info_of(tw->fd);

	tw->shift = info.refresh_shift;
	tw->table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, tw->fd, 0);
	if (tw->table == MAP_FAILED)
		err(1, "mmap");
	return tw;
}

/* Deadlines are rounded one by one, since they differ; in the turn of a loop they are the same. */
static void store(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	const struct twheel *tw = self;
	const uint32_t shift = tw->shift;
	uint32_t i;

	for (i = 0; i < nr; i++)
		twheel_refresh_blind(tw->table, tw->id[who[i]],
				     twheel_refresh_deadline(deadline_ns[i], shift));
}

/* Check the id first, as <twheel/device.h> advises if it may be old. */
static void store_checked(void *self, const uint32_t *who, const uint64_t *deadline_ns,
			  uint32_t nr)
{
	const struct twheel *tw = self;
	const uint32_t shift = tw->shift;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (!twheel_refresh(tw->table, tw->id[who[i]],
				    twheel_refresh_deadline(deadline_ns[i], shift)))
			errx(1, "twheel: %u is not there any more", who[i]);
}

/* ---- keys ----------------------------------------------------------------- */

static void *open_keyed(const struct setup *setup)
{
	return open_wheel(setup, TICK_NS, TWHEEL_SETUP_KEYED);
}

static void cancel_keys(void *self, const uint32_t *who, uint32_t nr)
{
	struct twheel *tw = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		tw->cancel[i].id = who[i];
	call_with(tw, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, tw->cancel,
		  sizeof(tw->cancel[0]), nr);
}

/* ---- several wheels of one user ------------------------------------------- */

#define WHEELS_MAX	8

/* A timeout is in the wheel of its number modulo @nr, so all wheels share all due ticks. */
struct wheels {
	uint32_t nr;
	struct twheel *wheel[WHEELS_MAX];
	struct pollfd pfd[WHEELS_MAX];
};

static void *open_wheels(const struct setup *setup, uint32_t nr)
{
	struct wheels *wheels = get_memory(1, sizeof(*wheels));
	uint32_t i;

	wheels->nr = nr;
	for (i = 0; i < nr; i++) {
		wheels->wheel[i] = open_1ms(setup);
		wheels->pfd[i] = (struct pollfd){ .fd = wheels->wheel[i]->fd, .events = POLLIN };
	}
	return wheels;
}

static void *open_2_wheels(const struct setup *setup)
{
	return open_wheels(setup, 2);
}

static void *open_8_wheels(const struct setup *setup)
{
	return open_wheels(setup, 8);
}

static void arm_wheels(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct wheels *wheels = self;
	uint64_t its_deadline_ns[BATCH];
	uint32_t its_who[BATCH], i, j, its_nr;

	for (i = 0; i < wheels->nr; i++) {
		for (j = 0, its_nr = 0; j < nr; j++) {
			if (who[j] % wheels->nr != i)
				continue;
			its_who[its_nr] = who[j];
			its_deadline_ns[its_nr++] = deadline_ns[j];
		}
		if (its_nr)
			arm(wheels->wheel[i], its_who, its_deadline_ns, its_nr);
	}
}

static void wait_wheels(void *self, bool sleep)
{
	struct wheels *wheels = self;
	uint32_t i;

	if (poll(wheels->pfd, wheels->nr, sleep ? -1 : 0) < 0)
		err(1, "poll");
	for (i = 0; i < wheels->nr; i++)
		if (wheels->pfd[i].revents)
			take_events(wheels->wheel[i]);
}

static void settle_wheels(void *self)
{
	struct wheels *wheels = self;
	uint32_t i;

	for (i = 0; i < wheels->nr; i++)
		settle(wheels->wheel[i]);
}

static void close_wheels(void *self)
{
	struct wheels *wheels = self;
	uint32_t i;

	for (i = 0; i < wheels->nr; i++)
		close_wheel(wheels->wheel[i]);
}

/* ---- workloads of twheel alone ------------------------------------------- */

void twheel_write(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct twheel_record record[BATCH];
	struct twheel *tw = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		record[i] = (struct twheel_record){
			.op = TWHEEL_OP_ARM,
			.flags = TWHEEL_ARM_ABSOLUTE,
			.key = who[i],
			.expires_ns = deadline_ns[i],
		};
	if (write(tw->fd, record, nr * sizeof(record[0])) != (ssize_t)(nr * sizeof(record[0])))
		err(1, "twheel, write");
}

void twheel_share(void *self, void *other)
{
	struct twheel *tw = self, *with = other;

	if (dup2(with->fd, tw->fd) < 0)
		err(1, "dup2");
}

void twheel_list_all(void *self, uint32_t nr)
{
	struct twheel *tw = self;
	struct twheel_status *rows = get_memory(BATCH, sizeof(*rows));
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(*rows),
		.nr = BATCH,
		.entries = (uintptr_t)rows,
	};
	uint32_t seen = 0;
	int got;

	while ((got = ioctl(tw->fd, TWHEEL_IOC_LIST, &list)) > 0)
		seen += got;
	if (got < 0 || seen != nr)
		err(1, "LIST: %u of %u", seen, nr);
}

#define TWHEEL_PEER							\
	.arm = arm, .cancel = cancel, .wait = wait, .watch = watch, .settle = settle, \
	.close = close_wheel

const struct peer peer_twheel = {
	TWHEEL_PEER,
	.name = "twheel",
	.usage = "tick 1 ms, 256 a call",
	.workloads = DOES_ALL | DOES(CALLS) | DOES(SCALE) | DOES(HUGE) | DOES(WAKEUPS) |
		     DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	.reads_clock = true,
	.has_lock = true,
	.absent = absent,
	.open = open_1ms,
	.refresh = rearm,
};

const struct peer peer_twheel_store = {
	TWHEEL_PEER,
	.name = "twheel-store",
	.usage = "the same, refresh by store",
	.workloads = (DOES_OPS & ~DOES(EARLIER)) | DOES(MIX) | DOES(MEMORY) | DOES(CHURN) |
		     DOES(RESTART) | DOES(LENGTHS),
	.absent = absent,
	.open = open_store,
	.refresh = store,
};

const struct peer peer_twheel_checked = {
	TWHEEL_PEER,
	.name = "twheel-checked",
	.usage = "the same, each store checks whose place it is",
	.workloads = DOES(REFRESH) | DOES(MIX),
	.absent = absent,
	.open = open_store,
	.refresh = store_checked,
};

#define TWHEEL_KEYED_PEER						\
	.absent = absent, .open = open_keyed,				\
	.arm = arm_keys, .refresh = arm_keys, .cancel = cancel_keys,	\
	.wait = wait, .settle = settle, .close = close_wheel

const struct peer peer_twheel_keyed = {
	TWHEEL_KEYED_PEER,
	.name = "twheel-keyed",
	.usage = "tick 1 ms, 256 a call, by key",
	.workloads = DOES_OPS | DOES(EXPIRE) | DOES(MIX) | DOES_MEMORY,
};

const struct peer peer_twheel_keyed_single = {
	TWHEEL_KEYED_PEER,
	.name = "twheel-keyed-single",
	.usage = "tick 1 ms, one a call, by key",
	.workloads = DOES_OPS,
	.max = 100000,
	.batch = 1,
};

const struct peer peer_twheel_single = {
	TWHEEL_PEER,
	.name = "twheel-single",
	.usage = "tick 1 ms, one a call",
	.workloads = DOES_OPS,
	.max = 100000,
	.batch = 1,
	.absent = absent,
	.open = open_1ms,
	.refresh = rearm,
};

const struct peer peer_twheel_10ms = {
	TWHEEL_PEER,
	.name = "twheel-10ms",
	.usage = "tick 10 ms, 256 a call",
	.workloads = DOES(EXPIRE) | DOES(LATE),
	.absent = absent,
	.open = open_10ms,
	.refresh = rearm,
};

const struct peer peer_twheel_slack = {
	TWHEEL_PEER,
	.name = "twheel-slack",
	.usage = "tick 1 ms, slack 15 ms, 256 a call",
	.workloads = DOES(EXPIRE) | DOES(LATE),
	.absent = absent,
	.open = open_slack,
	.refresh = rearm,
};

#define TWHEEL_WHEELS_PEER						\
	.workloads = DOES(EXPIRE) | DOES(LATE), .absent = absent,	\
	.arm = arm_wheels, .wait = wait_wheels, .settle = settle_wheels, .close = close_wheels

const struct peer peer_twheel_2_wheels = {
	TWHEEL_WHEELS_PEER,
	.name = "twheel-2-wheels",
	.usage = "two wheels of one user, tick 1 ms, up to 256 a call",
	.open = open_2_wheels,
};

const struct peer peer_twheel_8_wheels = {
	TWHEEL_WHEELS_PEER,
	.name = "twheel-8-wheels",
	.usage = "the same with eight wheels",
	.open = open_8_wheels,
};
