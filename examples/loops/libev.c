// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of libev. */
#include <ev.h>

#include "loops.h"

static const bool *is_done;

static void before_sleep(struct ev_loop *loop, ev_prepare *prepare, int events)
{
	twheel_flush(prepare->data);
}

static void readable(struct ev_loop *loop, ev_io *io, int events)
{
	twheel_dispatch(io->data, 0);
	if (*is_done)
		ev_break(loop, EVBREAK_ALL);
}

void loop_libev(struct twheel *w, const bool *done)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_prepare prepare = { .cb = before_sleep, .data = w };
	ev_io io = { .cb = readable, .data = w };

	is_done = done;
	ev_prepare_start(loop, &prepare);
	ev_io_set(&io, twheel_fd(w), EV_READ);
	ev_io_start(loop, &io);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
}
