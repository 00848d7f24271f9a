// SPDX-License-Identifier: 0BSD
/* A wheel in a loop of GLib: see twheel-glib.h. */
#include "twheel-glib.h"

struct wheel_source {
	GSource source;
	struct twheel *w;
	uint64_t wake_ns;
};

/* The time at which GLib began to prepare, or woke up. */
static uint64_t now_ns(GSource *source)
{
	return g_source_get_time(source) * TWHEEL_USEC;
}

static gboolean is_due(GSource *source)
{
	return now_ns(source) >= ((struct wheel_source *)source)->wake_ns;
}

static gboolean before_sleep(GSource *source, gint *timeout_ms)
{
	struct wheel_source *s = (struct wheel_source *)source;

	s->wake_ns = twheel_next(s->w);
	*timeout_ms = twheel_left_ms(s->wake_ns, now_ns(source));
	return is_due(source);
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	(void)callback;
	(void)data;
	twheel_dispatch(((struct wheel_source *)source)->w, 0);
	return G_SOURCE_CONTINUE;
}

GSource *twheel_source_new(struct twheel *w)
{
	static GSourceFuncs functions = {
		.prepare = before_sleep, .check = is_due, .dispatch = dispatch,
	};
	GSource *source = g_source_new(&functions, sizeof(struct wheel_source));

	g_source_set_name(source, "twheel");
	g_source_set_can_recurse(source, TRUE);
	((struct wheel_source *)source)->w = w;
	return source;
}
