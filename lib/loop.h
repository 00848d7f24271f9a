/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the clock, the descriptor and the lock of a wheel, and where its timers go
 *
 * These functions do not take the lock.  Callers of all but loop_clock(), loop_read() and
 * loop_sleep() hold it.
 */
#ifndef _TWHEEL_LOOP_H
#define _TWHEEL_LOOP_H

#include <time.h>

#include "wheel.h"

#define FIXED_DELAY	(1ULL << 63)	/* in interval_ns */

/*
 * A function that may cancel its thread is called with cancellation disabled under the lock, which
 * would stay taken.
 */
static inline struct twheel *lock(struct twheel *w)
{
	if (unlikely(w->head.shared))
		pthread_mutex_lock(&w->lock);
	return w;
}

static inline void unlock(struct twheel *w)
{
	if (unlikely(w->head.shared))
		pthread_mutex_unlock(&w->lock);
}

static inline void unlock_block(struct twheel **w)
{
	unlock(*w);
}

/* The rest of the block has the lock, also if a visitor throws in it. */
#define LOCKED(w)	\
	struct twheel *locked __attribute__((__cleanup__(unlock_block), __unused__)) = lock(w)

/* There are no turns: each start reads the clock and sets the descriptor. */
static inline bool is_immediate(const struct twheel *w)
{
	return w->options.flags & (TWHEEL_SHARED | TWHEEL_IMMEDIATE);
}

/* Another thread is in a callback: only its callbacks are called without the lock. */
static inline bool is_elsewhere(const struct twheel *w)
{
	return unlikely(w->head.shared) && w->callbacks &&
		!pthread_equal(w->thread, pthread_self());
}

/* The key of the last edge of a tick. */
static inline uint64_t last_edge(const struct twheel *w)
{
	uint64_t passed = (w->clock_ns | KEY) - w->target;

	if (likely(passed < 2 * w->edge_ns))
		return passed < w->edge_ns ? w->target : w->target + w->edge_ns;
	return (w->clock_ns - w->clock_ns % w->edge_ns) | KEY;
}

uint64_t loop_clock(clockid_t id);
uint64_t loop_read(const struct twheel *w);
int loop_sleep(int fd, clockid_t id, uint64_t end_ns);
uint64_t loop_update(struct twheel *w);
void loop_end_turn(struct twheel *w);
uint64_t loop_wake_ns(struct twheel *w);
int loop_set_fd(struct twheel *w);
void loop_place(struct twheel *w, struct twheel_timer *t, uint64_t ns);
struct twheel_timer **loop_callback_of(struct twheel *w, const struct twheel_timer *t);
int loop_dispatch(struct twheel *w, unsigned int max);
int options_copy(void *to, size_t known, const void *from);
void timers_start(struct twheel *w, struct twheel_timer *t, uint64_t ns, uint64_t interval_ns);

static inline uint64_t loop_turn_ns(struct twheel *w)
{
	return w->head.now != NO_KEY ? w->clock_ns : loop_update(w);
}

#endif /* _TWHEEL_LOOP_H */
