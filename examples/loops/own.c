// SPDX-License-Identifier: 0BSD
/*
 * The wheel in a loop that reads the time itself, in milliseconds and once in a turn, and had a
 * heap or a tree of timers before.  The clock of the wheel is TWHEEL_CALLER.
 */
#include <poll.h>
#include <stddef.h>

#include "loops.h"

static uint64_t read_ms(void)
{
	return now_ns() / TWHEEL_MSEC;
}

/* The clock begins at 0: move it on before the first start. */
void loop_own_begin(struct twheel *w)
{
	twheel_advance(w, twheel_from_ms(read_ms()));
}

void loop_own(struct twheel *w, const bool *done)
{
	while (!*done) {
		uint64_t wake_ns = twheel_next(w);

		poll(NULL, 0, twheel_left_ms(wake_ns, now_ns()));
		twheel_advance(w, twheel_from_ms(read_ms()));
		/* Here the program reads its sockets, which may stop a timer. */
		twheel_dispatch(w, 0);
	}
}
