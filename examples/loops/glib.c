// SPDX-License-Identifier: 0BSD
/*
 * The wheel in a loop of GLib, and so in those of GTK and others, by time: GLib asks each
 * source how long it may sleep.
 */
#include <glib.h>

#include "loops.h"

struct wheel_source {
	GSource source;
	struct twheel *w;
	uint64_t wake_ns;
};

static gboolean is_due(GSource *source)
{
	/* GLib's time is that of CLOCK_MONOTONIC, as the wheel's. */
	return g_source_get_time(source) * TWHEEL_USEC >=
	       ((struct wheel_source *)source)->wake_ns;
}

static gboolean before_sleep(GSource *source, gint *timeout_ms)
{
	struct wheel_source *s = (struct wheel_source *)source;
	uint64_t left_ms;

	s->wake_ns = twheel_next(s->w);
	left_ms = (ns_until(s->wake_ns) + TWHEEL_MSEC - 1) / TWHEEL_MSEC;
	*timeout_ms = left_ms < G_MAXINT ? left_ms : G_MAXINT;
	return is_due(source);
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	twheel_dispatch(((struct wheel_source *)source)->w, 0);
	return G_SOURCE_CONTINUE;
}

void loop_glib(struct twheel *w, const bool *done)
{
	static GSourceFuncs funcs = { before_sleep, is_due, dispatch, .finalize = NULL };
	GSource *source = g_source_new(&funcs, sizeof(struct wheel_source));

	((struct wheel_source *)source)->w = w;
	g_source_attach(source, NULL);
	while (!*done)
		g_main_context_iteration(NULL, TRUE);
	g_source_destroy(source);
	g_source_unref(source);
}
