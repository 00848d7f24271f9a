// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of GLib, and so in those of GTK and others. */
#include <glib-unix.h>

#include "loops.h"

struct wheel_source { GSource source; struct twheel *w; gpointer fd; };

static gboolean before_sleep(GSource *source, gint *timeout_ms)
{
	twheel_flush(((struct wheel_source *)source)->w);
	*timeout_ms = -1;
	return FALSE;
}

static gboolean readable(GSource *source)
{
	return g_source_query_unix_fd(source, ((struct wheel_source *)source)->fd) & G_IO_IN;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	twheel_dispatch(((struct wheel_source *)source)->w, 0);
	return G_SOURCE_CONTINUE;
}

void loop_glib(struct twheel *w, const bool *done)
{
	static GSourceFuncs funcs = { before_sleep, readable, dispatch, .finalize = NULL };
	GSource *source = g_source_new(&funcs, sizeof(struct wheel_source));

	((struct wheel_source *)source)->w = w;
	((struct wheel_source *)source)->fd = g_source_add_unix_fd(source, twheel_fd(w), G_IO_IN);
	g_source_attach(source, NULL);
	while (!*done)
		g_main_context_iteration(NULL, TRUE);
	g_source_destroy(source);
	g_source_unref(source);
}
