// SPDX-License-Identifier: GPL-2.0
/*
 * first.c - a program that has all inline functions of <twheel.h>, in C and in C++; without
 * them, if TWHEEL_NO_INLINE is defined
 */
#include <string.h>
#include <twheel.h>

static int called;

static void on_time(struct twheel *w, struct twheel_timer *t)
{
	(void)w;
	(void)t;
	called++;
}

int main(void)
{
	struct twheel_timer t, constant = TWHEEL_TIMER_INIT(on_time);
	struct twheel_options options;
	struct twheel *w;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	twheel_timer_init(&t, on_time);
	if (twheel_timer_size() != sizeof(t) || twheel_open(&w, &options) < 0)
		return 1;
	twheel_start(w, &t, TWHEEL_MSEC);
	twheel_start_at(w, &constant, twheel_now(w) + TWHEEL_MSEC);
	while (called < 2)
		if (twheel_wait(w, TWHEEL_SEC) < 1)
			return 2;
	twheel_start(w, &t, TWHEEL_SEC);
	twheel_start(w, &t, 2 * TWHEEL_SEC);
	twheel_start(w, &t, TWHEEL_SEC);
	if (!twheel_stop(w, &t) || twheel_stop(w, &t))
		return 3;
	twheel_close(w);
	return 0;
}
