// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of libuv. */
#include <uv.h>

#include "loops.h"

static const bool *is_done;

static void before_sleep(uv_prepare_t *prepare)
{
	twheel_flush(prepare->data);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	if (!status && events & UV_READABLE)
		twheel_dispatch(poll->data, 0);
	if (*is_done)
		uv_stop(poll->loop);
}

void loop_libuv(struct twheel *w, const bool *done)
{
	uv_loop_t *loop = uv_default_loop();
	uv_prepare_t prepare = { .data = w };
	uv_poll_t poll = { .data = w };

	is_done = done;
	uv_prepare_init(loop, &prepare);
	uv_prepare_start(&prepare, before_sleep);
	uv_poll_init(loop, &poll, twheel_fd(w));
	uv_poll_start(&poll, UV_READABLE, readable);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&prepare, NULL);
	uv_close((uv_handle_t *)&poll, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
}
