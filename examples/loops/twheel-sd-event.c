// SPDX-License-Identifier: 0BSD
/*
 * A wheel in a loop of sd-event: see twheel-sd-event.h.  It is by descriptor, since a time source
 * of sd-event has a timerfd as well, which is set whenever the time changes.
 */
#include <sys/epoll.h>

#include "twheel-sd-event.h"

static int before_sleep(sd_event_source *source, void *w)
{
	(void)source;
	return twheel_flush(w);
}

static int readable(sd_event_source *source, int fd, uint32_t events, void *w)
{
	(void)source;
	(void)fd;
	(void)events;
	twheel_dispatch(w, 0);
	return 0;
}

int twheel_sd_event_add(sd_event *loop, sd_event_source **source, struct twheel *w)
{
	int ret, fd = twheel_fd(w);

	if (fd < 0)
		return fd;
	ret = sd_event_add_io(loop, source, fd, EPOLLIN, readable, w);
	if (ret < 0)
		return ret;
	ret = sd_event_source_set_prepare(*source, before_sleep);
	if (ret < 0)
		*source = sd_event_source_unref(*source);
	return ret;
}
