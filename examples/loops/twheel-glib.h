/* SPDX-License-Identifier: 0BSD */
/*
 * A wheel in a loop of GLib, and so in those of GTK and others: copy twheel-glib.h and
 * twheel-glib.c into a program.
 *
 *	twheel_open(&w, NULL);
 *	source = twheel_source_new(w);
 *	g_source_attach(source, NULL);
 *	g_main_loop_run(loop);				calls the timers that expire
 *	g_source_destroy(source);
 *	g_source_unref(source);
 *	twheel_close(w);
 */
#ifndef TWHEEL_GLIB_H
#define TWHEEL_GLIB_H

#include <glib.h>
#include <twheel.h>

G_BEGIN_DECLS

/*
 * Make a source for a wheel with TWHEEL_MONOTONIC, which is the clock of GLib.  Destroy it before
 * the wheel is closed.  It has no descriptor: GLib asks how long it may sleep, in milliseconds.
 *
 * The timers of a callback that runs a loop, as a dialog does, expire in that loop.  The prepare
 * functions of other sources must not start timers: GLib may have asked before.
 */
GSource *twheel_source_new(struct twheel *w);

G_END_DECLS

#endif /* TWHEEL_GLIB_H */
