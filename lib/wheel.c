// SPDX-License-Identifier: MIT
/*
 * A wheel of libtwheel: opened, closed, and asked
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "front.h"

/* Address space that takes memory when it is touched, and is zero then. */
void *twheel_reserve(size_t nr, size_t size)
{
	void *memory = mmap(NULL, nr * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void twheel_unreserve(void *memory, size_t nr, size_t size)
{
	if (memory)
		munmap(memory, nr * size);
}

static clockid_t clock_id(uint32_t clock)
{
	switch (clock) {
	case TWHEEL_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TWHEEL_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	case TWHEEL_CLOCK_TAI:
		return CLOCK_TAI;
	default:
		return CLOCK_MONOTONIC;
	}
}

uint64_t twheel_clock_now(uint32_t clock)
{
	struct timespec now;

	clock_gettime(clock_id(clock), &now);
	return now.tv_sec * TWHEEL_SEC + now.tv_nsec;
}

/* 2^k - 1 ticks that are not longer, as ARM has it. */
static uint32_t slack_ticks(uint64_t slack_ns, uint64_t tick_ns)
{
	uint32_t slack = 0;

	while (slack < (1U << 15) - 1 && 2 * slack + 1 <= slack_ns / tick_ns)
		slack = 2 * slack + 1;
	return slack;
}

/* Options that are longer than this library knows say nothing in the rest. */
static int options_copy(struct twheel_options *to, const struct twheel_options *from)
{
	const char *byte;
	uint32_t i;

	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	if (from->size < offsetof(struct twheel_options, tick_ns))
		return -EINVAL;
	byte = (const char *)from;
	for (i = sizeof(*to); i < from->size; i++)
		if (byte[i])
			return -E2BIG;
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

static int options_set(struct twheel *w, const struct twheel_options *options)
{
	unsigned int i;

	w->clock = options->clock ? options->clock : TWHEEL_CLOCK_MONOTONIC;
	w->tick_ns = options->tick_ns ? options->tick_ns : TWHEEL_MSEC;
	w->max_timers = options->max_timers;
	if (w->clock < TWHEEL_CLOCK_MONOTONIC || w->clock > TWHEEL_CLOCK_VIRTUAL ||
	    w->tick_ns < TWHEEL_TICK_MIN_NS || w->tick_ns > TWHEEL_TICK_MAX_NS ||
	    w->max_timers >= MAX_TIMERS || options->backend > TWHEEL_LOCAL)
		return -EINVAL;
	w->slack_ticks = slack_ticks(options->slack_ns, w->tick_ns);
	for (i = 0; i < BATCH; i++) {
		w->arm[i].flags = TWHEEL_ARM_ABSOLUTE;
		w->arm[i].slack_ticks = w->slack_ticks;
	}
	w->head.grain_shift = 63 - __builtin_clzll(w->tick_ns);
	w->head.grain_mask = (1ULL << w->head.grain_shift) - 1;
	w->head.now_up = STALE;
	return 0;
}

static int backend_open(struct twheel *w, const struct twheel_options *options)
{
	int err;

	if (options->backend != TWHEEL_LOCAL) {
		w->backend = &twheel_device_backend;
		err = w->backend->open(w, options->device ? options->device : "/dev/twheel");
		if (!err || options->backend == TWHEEL_DEVICE)
			return err;
		w->max_timers = options->max_timers;
	}
	w->backend = &twheel_local_backend;
	return w->backend->open(w, NULL);
}

EXPORT int twheel_open(struct twheel **out, const struct twheel_options *its_options)
{
	struct twheel_options options;
	struct twheel *w;
	int err;

	*out = NULL;
	err = options_copy(&options, its_options);
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	twheel_stacks_init(w);
	list_init(&w->notes);
	list_init(&w->due);
	err = options_set(w, &options);
	if (!err)
		err = backend_open(w, &options);
	if (err) {
		free(w);
		return err;
	}
	w->nr_places = w->max_timers + BATCH;
	w->place = twheel_reserve(w->nr_places, sizeof(*w->place));
	if (!w->place) {
		twheel_close(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

EXPORT void twheel_close(struct twheel *w)
{
	if (!w)
		return;
	w->closed = true;
	if (w->depth)
		return;
	w->backend->close(w);
	twheel_unreserve(w->place, w->nr_places, sizeof(*w->place));
	twheel_stacks_free(w);
	free(w);
}

EXPORT int twheel_fd(const struct twheel *w)
{
	return w->fd;
}

EXPORT enum twheel_backend twheel_backend(const struct twheel *w)
{
	return w->backend->kind;
}

EXPORT uint64_t twheel_next(struct twheel *w)
{
	unsigned int refused;

	if (!twheel_flush_within(w, &refused))
		return TWHEEL_NO_EXPIRY;
	if (!list_empty(&w->due) || !list_empty(&w->notes))
		return twheel_now(w);
	return w->backend->next_ns(w);
}

EXPORT int twheel_advance(struct twheel *w, uint64_t to_ns)
{
	unsigned int refused;
	int err;

	if (w->clock != TWHEEL_CLOCK_VIRTUAL)
		return -EOPNOTSUPP;
	if (to_ns > TWHEEL_TIME_NEVER || to_ns < twheel_now(w))
		return -EINVAL;
	if (!twheel_flush_within(w, &refused))
		return 0;
	err = w->backend->advance(w, to_ns);
	twheel_update(w);
	return err;
}

EXPORT void twheel_stats(struct twheel *w, struct twheel_stats *stats, size_t size)
{
	struct twheel_stats now = w->stats;

	now.tick_ns = w->tick_ns;
	now.slack_ns = w->slack_ticks * w->tick_ns;
	now.max_timers = w->max_timers;
	now.backend = w->backend->kind;
	now.clock = w->clock;
	now.grain_shift = w->head.grain_shift;
	now.places = w->nr_armed;
	now.taken = w->head.taken;
	now.parked = twheel_parked(w);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	if (size > sizeof(now))
		memset((char *)stats + sizeof(now), 0, size - sizeof(now));
}
