/* SPDX-License-Identifier: 0BSD */
#ifndef LOOPS_H
#define LOOPS_H

#include <stdbool.h>
#include <twheel.h>

/*
 * A back end: it makes a loop that watches the wheel, and runs it until @done is true,
 * which a timer of the wheel sets.  A loop whose library was missing is NULL.
 */
typedef void loop_run(struct twheel *w, const bool *done);

#define LOOP __attribute__((weak))
extern loop_run loop_libuv LOOP, loop_libev LOOP, loop_libevent LOOP, loop_sd_event LOOP,
		loop_glib LOOP, loop_io_uring LOOP;

#endif /* LOOPS_H */
