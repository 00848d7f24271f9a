// SPDX-License-Identifier: 0BSD
/*
 * The wheel in a loop of libevent, by descriptor.  libevent has no callback before it sleeps, so
 * the wheel was opened with TWHEEL_IMMEDIATE, see loops.c: nothing has to be flushed.
 */
#include <event2/event.h>

#include "loops.h"

static void readable(int fd, short events, void *w)
{
	twheel_dispatch(w, 0);
}

void loop_libevent(struct twheel *w, const bool *done)
{
	struct event_base *base = event_base_new();
	struct event *event;

	event = event_new(base, twheel_fd(w), EV_READ | EV_PERSIST, readable, w);
	event_add(event, NULL);
	while (!*done)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(event);
	event_base_free(base);
}
