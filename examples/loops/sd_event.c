// SPDX-License-Identifier: 0BSD
/*
 * The wheel in a loop of sd-event, by descriptor: a time source of sd-event has a timerfd as
 * well, which is set whenever the time changes.
 */
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "loops.h"

static const bool *is_done;

static int before_sleep(sd_event_source *source, void *w)
{
	twheel_flush(w);
	return 0;
}

static int readable(sd_event_source *source, int fd, uint32_t events, void *w)
{
	twheel_dispatch(w, 0);
	return *is_done ? sd_event_exit(sd_event_source_get_event(source), 0) : 0;
}

void loop_sd_event(struct twheel *w, const bool *done)
{
	sd_event *loop;
	sd_event_source *source;

	is_done = done;
	sd_event_new(&loop);
	sd_event_add_io(loop, &source, twheel_fd(w), EPOLLIN, readable, w);
	sd_event_source_set_prepare(source, before_sleep);
	sd_event_loop(loop);
	sd_event_source_unref(source);
	sd_event_unref(loop);
}
