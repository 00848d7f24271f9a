/* SPDX-License-Identifier: 0BSD */
/*
 * A wheel in a loop of sd-event: copy twheel-sd-event.h and twheel-sd-event.c into a program.
 *
 *	twheel_open(&w, NULL);
 *	twheel_sd_event_add(loop, &source, w);
 *	sd_event_loop(loop);				calls the timers that expire
 *	sd_event_source_disable_unref(source);
 *	twheel_close(w);
 */
#ifndef TWHEEL_SD_EVENT_H
#define TWHEEL_SD_EVENT_H

#include <systemd/sd-event.h>
#include <twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make a source for a wheel, on any clock.  It is like one of sd_event_add_io(), with the
 * descriptor of the wheel, which is set before the loop sleeps.  Disable and release it before
 * the wheel is closed.
 *
 * If functions of sd_event_source_set_prepare() start timers, open the wheel with
 * TWHEEL_IMMEDIATE: sd-event may call these after the descriptor has been set.
 *
 * Returns 0, or the negative errno of twheel_fd() or sd-event.
 */
int twheel_sd_event_add(sd_event *loop, sd_event_source **source, struct twheel *w);

#ifdef __cplusplus
}
#endif

#endif /* TWHEEL_SD_EVENT_H */
