// SPDX-License-Identifier: 0BSD
/*
 * The wheel in a loop of libuv, by time: before the loop sleeps, a timer of libuv is set.  Its
 * timers count in milliseconds; if a wheel has finer ticks, watch twheel_fd() by a uv_poll_t.
 */
#include <uv.h>

#include "loops.h"

static const bool *is_done;
static uv_timer_t timer;

static void expired(uv_timer_t *handle)
{
	twheel_dispatch(handle->data, 0);
	if (*is_done)
		uv_stop(handle->loop);
}

static void before_sleep(uv_prepare_t *prepare)
{
	static uint64_t set_ms;
	uint64_t wake_ns = twheel_next(prepare->data);
	/* The time on the clock of uv_now(), which is the wheel's. */
	uint64_t wake_ms = (wake_ns + TWHEEL_MSEC - 1) / TWHEEL_MSEC;

	if (wake_ns == TWHEEL_NEVER) {
		uv_timer_stop(&timer);
	} else if (wake_ms != set_ms || !uv_is_active((uv_handle_t *)&timer)) {
		uint64_t now_ms = uv_now(prepare->loop);

		set_ms = wake_ms;
		uv_timer_start(&timer, expired, wake_ms > now_ms ? wake_ms - now_ms : 0, 0);
	}
}

void loop_libuv(struct twheel *w, const bool *done)
{
	uv_loop_t *loop = uv_default_loop();
	uv_prepare_t prepare = { .data = w };

	is_done = done;
	uv_timer_init(loop, &timer);
	timer.data = w;
	uv_prepare_init(loop, &prepare);
	uv_prepare_start(&prepare, before_sleep);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&prepare, NULL);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
}
