/* SPDX-License-Identifier: 0BSD */
#ifndef LOOPS_H
#define LOOPS_H

#include <stdbool.h>
#include <time.h>
#include <twheel.h>

/*
 * A loop: it serves the wheel until @done is true, which a timer of the wheel sets.  If its library
 * was missing, it is NULL.
 */
typedef void loop_run(struct twheel *w, const bool *done);

#define LOOP __attribute__((weak))
extern loop_run loop_poll, loop_own, loop_libuv LOOP, loop_libev LOOP, loop_libevent LOOP,
		loop_sd_event LOOP, loop_glib LOOP, loop_io_uring LOOP;

/* If the clock of the wheel is that of loop_own(), call this before the first start. */
void loop_own_begin(struct twheel *w);

/* The clock of a wheel with the default options. */
static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TWHEEL_SEC + now.tv_nsec;
}

/* How long it is until a time that twheel_next() has returned, which is not TWHEEL_NEVER. */
static inline uint64_t ns_until(uint64_t wake_ns)
{
	uint64_t now = now_ns();

	return wake_ns > now ? wake_ns - now : 0;
}

#endif /* LOOPS_H */
