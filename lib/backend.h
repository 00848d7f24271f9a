/* SPDX-License-Identifier: MIT */
/*
 * What the front of libtwheel (front.h) and its back ends (device.c, local.c) share
 *
 * A back end holds timeouts, as /dev/twheel does: they are armed and cancelled by vectors,
 * are known by an id, whose low half is an index and whose high half is a generation, and
 * end by an event.  All are one-shots.  Each has a word in the refresh table: a deadline
 * stored there counts when the back end looks, which is when the deadline that it knows
 * comes up, and only if the stored one is later.
 */
#ifndef _TWHEEL_LIB_BACKEND_H
#define _TWHEEL_LIB_BACKEND_H

#include <sys/types.h>

#include "twheel.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Entries of a vector, and events of a read. */
#define BATCH		256

/* One class of lengths for each power of two of nanoseconds. */
#define LENGTHS		_TWHEEL_LENGTHS

/* More than any machine has memory for. */
#define MAX_TIMERS	(1U << 30)

/* Where the caller does not say. */
#define MAX_TIMERS_DEFAULT	(1U << 20)

/* Deadlines are counted in grains of 2^grain_shift ns. */
typedef uint64_t grains_t;

/**
 * struct stack - parked places of one class of lengths, the latest on top
 * @bottom: memory; its first entry is &twheel_idle, which no timer can take
 * @size: how many entries there is memory for, the first one included
 */
struct stack {
	struct twheel_place **bottom;
	size_t size;
};

struct backend;
struct local;

/**
 * struct twheel - a wheel; see timers.c
 * @head: what the inline functions know:
 *	now_up: the time that relative times count from, rounded up by a grain less 1 ns;
 *	STALE when the clock has to be read first.
 *	words: the refresh table.
 *	grain_shift: a grain is 2^grain_shift ns.
 *	work: what twheel_flush() has to do: WORK_*.
 *	taken: starts that took a parked place.
 *	grain_mask: a grain less 1 ns.
 *	top: the latest parked place of each class.
 *	end: where twheel_stop() may not go beyond in each class.
 * @now_ns: the time that was read last
 * @nr_words: length of @words
 * @place: the places; memory is touched as they are used
 * @nr_places: length of @place
 * @nr_used: how many of them have been in use
 * @nr_armed: how many are timeouts that are armed
 * @free: those that can be used again, linked by their owner
 * @given_up: those that wait to be cancelled, linked likewise
 * @notes: timers that wait to be armed
 * @due: timers that have expired and wait for their callback
 * @stack: memory of the parked places
 * @lengths: the classes of the timers that were noted, a bit each
 * @depth: how many calls of twheel_dispatch() and twheel_flush() are under way
 * @closed: twheel_close() was called in one of these
 * @clock: enum twheel_clock
 * @tick_ns: granularity
 * @slack_ticks: 2^k - 1
 * @max_timers: limit of timeouts
 * @fd: the descriptor
 * @pid: who has opened the device
 * @backend: the back end
 * @local: what the local back end has
 * @stats: counters
 * @arm: vector
 * @cancel: vector
 * @event: vector
 */
struct twheel {
	struct _twheel_head head;
	uint64_t now_ns;
	uint32_t nr_words;
	uint32_t nr_places;
	struct twheel_place *place;
	uint32_t nr_used;
	uint32_t nr_armed;
	struct twheel_place *free;
	struct twheel_place *given_up;
	struct twheel_timer notes;
	struct twheel_timer due;
	struct stack stack[LENGTHS];
	uint64_t lengths;
	unsigned int depth;
	bool closed;

	uint32_t clock;
	uint64_t tick_ns;
	uint32_t slack_ticks;
	uint32_t max_timers;
	int fd;
	pid_t pid;
	const struct backend *backend;
	struct local *local;
	struct twheel_stats stats;
	/* Set up but for the deadline and user_data. */
	struct twheel_arm arm[BATCH];
	union {
		struct twheel_cancel cancel[BATCH];
		struct twheel_event event[BATCH];
	};
};

/**
 * struct backend - what a back end does
 * @kind: TWHEEL_DEVICE or TWHEEL_LOCAL
 * @open: opens it by what stands in the wheel, and sets @fd, @head.words and
 *	@nr_words there; 0 or a negative errno, and nothing is left open then
 * @close: ends it; it may be called in a child after fork()
 * @now_ns: the clock
 * @arm: arms timeouts: each entry gets its result, and its id, which is 2^32 at least
 * @cancel: cancels timeouts: each entry gets its result
 * @read: takes up to that many events; how many, or a negative errno
 * @next_ns: when the descriptor becomes readable, TWHEEL_NO_EXPIRY for never
 * @advance: moves the virtual clock; 0 or a negative errno
 */
struct backend {
	enum twheel_backend kind;
	int (*open)(struct twheel *w, const char *path);
	void (*close)(struct twheel *w);
	uint64_t (*now_ns)(const struct twheel *w);
	void (*arm)(struct twheel *w, struct twheel_arm *arm, uint32_t nr);
	void (*cancel)(struct twheel *w, struct twheel_cancel *cancel, uint32_t nr);
	int (*read)(struct twheel *w, struct twheel_event *event, uint32_t nr);
	uint64_t (*next_ns)(struct twheel *w);
	int (*advance)(struct twheel *w, uint64_t to_ns);
};

extern const struct backend twheel_device_backend, twheel_local_backend;

uint64_t twheel_clock_now(uint32_t clock);
void *twheel_reserve(size_t nr, size_t size);
void twheel_unreserve(void *memory, size_t nr, size_t size);

/* Where the word of a timeout is. */
static inline uint64_t *word_of(const struct twheel *w, uint64_t id)
{
	return &w->head.words[(uint32_t)id];
}

/* The word that says this deadline: the lowest 28 bits are those of the generation. */
static inline uint64_t word_for(uint64_t id, grains_t deadline)
{
	return deadline << TWHEEL_REFRESH_GEN_BITS |
	       (id << (32 - TWHEEL_REFRESH_GEN_BITS)) >> (64 - TWHEEL_REFRESH_GEN_BITS);
}

static inline uint64_t time_min(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* The time of so many grains, TWHEEL_TIME_NEVER at most. */
static inline uint64_t grains_to_ns(const struct twheel *w, grains_t grains)
{
	return time_min(grains << w->head.grain_shift, TWHEEL_TIME_NEVER);
}

#endif /* _TWHEEL_LIB_BACKEND_H */
