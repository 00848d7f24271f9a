// SPDX-License-Identifier: GPL-2.0
/*
 * first.c - a program that uses all inline functions and macros of <twheel.h>, in C and in C++; if
 * TWHEEL_NO_INLINE is defined, without the functions
 */
#include <string.h>
#include <twheel.h>

struct object {
	int called;
	struct twheel_timer timer;
};

static int called;

static void on_time(struct twheel *w, struct twheel_timer *t)
{
	struct object *o = twheel_container_of(t, struct object, timer);

	(void)w;
	o->called++;
	called++;
}

int main(void)
{
	struct object constant = { 0, TWHEEL_TIMER_INIT(on_time) }, o;
	struct twheel_options options;
	struct twheel *w;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	o.called = 0;
	twheel_timer_init(&o.timer, on_time);
	if (twheel_timer_size() != sizeof(o.timer) || twheel_open(&w, &options) < 0)
		return 1;
	twheel_start(w, &o.timer, TWHEEL_MSEC);
	twheel_start_at(w, &constant.timer, twheel_now(w) + TWHEEL_MSEC);
	while (called < 2)
		if (twheel_wait(w, TWHEEL_SEC) < 1)
			return 2;
	twheel_start(w, &o.timer, TWHEEL_SEC);
	twheel_start(w, &o.timer, 2 * TWHEEL_SEC);
	twheel_start(w, &o.timer, TWHEEL_SEC);
	if (!twheel_stop(w, &o.timer) || twheel_stop(w, &o.timer) || o.called != 1)
		return 3;
	if (twheel_left_ms(twheel_from_ms(7), 0) != 7)
		return 4;
	twheel_close(w);
	return 0;
}
