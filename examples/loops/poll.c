// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of ppoll(), by time: epoll_pwait2() and pselect() take the same. */
#define _GNU_SOURCE
#include <poll.h>
#include <stddef.h>

#include "loops.h"

void loop_poll(struct twheel *w, const bool *done)
{
	while (!*done) {
		uint64_t wake_ns = twheel_next(w), ns = ns_until(wake_ns);
		struct timespec left = { ns / TWHEEL_SEC, ns % TWHEEL_SEC };

		ppoll(NULL, 0, wake_ns == TWHEEL_NEVER ? NULL : &left, NULL);
		twheel_dispatch(w, 0);
	}
}
