// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of libev, by time: before the loop sleeps, a timer of libev is set. */
#include <ev.h>

#include "loops.h"

static const bool *is_done;
static ev_timer timer;

static void expired(struct ev_loop *loop, ev_timer *handle, int events)
{
	twheel_dispatch(handle->data, 0);
	if (*is_done)
		ev_break(loop, EVBREAK_ALL);
}

static void before_sleep(struct ev_loop *loop, ev_prepare *prepare, int events)
{
	static uint64_t set_ns;
	uint64_t wake_ns = twheel_next(prepare->data);

	if (wake_ns == set_ns && ev_is_active(&timer))
		return;
	set_ns = wake_ns;
	ev_timer_stop(loop, &timer);
	if (wake_ns == TWHEEL_NEVER)
		return;
	/* libev counts from the time at which it woke up. */
	ev_timer_set(&timer, ns_until(wake_ns) / 1e9 + ev_time() - ev_now(loop), 0.);
	ev_timer_start(loop, &timer);
}

void loop_libev(struct twheel *w, const bool *done)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_prepare prepare = { .cb = before_sleep, .data = w };

	is_done = done;
	ev_init(&timer, expired);
	timer.data = w;
	ev_prepare_start(loop, &prepare);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
}
