/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the clock, the descriptor and the lock of a wheel, and where its timers go
 */
#ifndef _TWHEEL_LOOP_H
#define _TWHEEL_LOOP_H

#include "wheel.h"

#define FIXED_DELAY	(1ULL << 63)	/* in interval_ns */

static inline void lock(struct twheel *w)
{
	if (unlikely(w->head.shared))
		pthread_mutex_lock(&w->lock);
}

static inline void unlock(struct twheel *w)
{
	if (unlikely(w->head.shared))
		pthread_mutex_unlock(&w->lock);
}

/* There are no turns: each start reads the clock and sets the descriptor. */
static bool is_immediate(const struct twheel *w)
{
	return w->flags & (TWHEEL_SHARED | TWHEEL_IMMEDIATE);
}

uint64_t loop_update(struct twheel *w);
uint64_t loop_turn_ns(struct twheel *w);
void loop_end_turn(struct twheel *w);
int loop_set_fd(struct twheel *w);
void loop_place(struct twheel *w, struct twheel_timer *t, uint64_t ns, bool periodic);
bool loop_is_inside(const struct twheel *w);
bool loop_enter(struct twheel *w);
void loop_leave(struct twheel *w);

#endif /* _TWHEEL_LOOP_H */
