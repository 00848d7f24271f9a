// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of GLib, by the files that a program can copy. */
#include "loops.h"
#include "twheel-glib.h"

static bool dialog_is_open;

static void close_dialog(struct twheel *w, struct twheel_timer *t)
{
	dialog_is_open = false;
}

/* A callback that runs the loop until another timer ends it. */
static void open_dialog(struct twheel *w, struct twheel_timer *t)
{
	struct twheel_timer timeout = TWHEEL_TIMER_INIT(close_dialog);

	dialog_is_open = true;
	twheel_start(w, &timeout, 10 * TWHEEL_MSEC);
	while (dialog_is_open)
		g_main_context_iteration(NULL, TRUE);
}

void loop_glib(struct twheel *w, const bool *done)
{
	struct twheel_timer dialog = TWHEEL_TIMER_INIT(open_dialog);
	GSource *source = twheel_source_new(w);

	g_source_attach(source, NULL);
	twheel_start(w, &dialog, 0);
	while (!*done)
		g_main_context_iteration(NULL, TRUE);
	g_source_destroy(source);
	g_source_unref(source);
}
