// SPDX-License-Identifier: GPL-2.0
/*
 * two_copies.c - two copies of the library in one process
 *
 * two_copies LIBRARY: the program has a copy of its own; a plugin's copy is LIBRARY.  In a
 * callback of a wheel of the program's, the plugin closes it, or dispatches it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <twheel.h>

static void (*plugin_close)(struct twheel *w);
static int (*plugin_dispatch)(struct twheel *w, unsigned int max);
static int called;

static void closes(struct twheel *w, struct twheel_timer *t)
{
	(void)t;
	called++;
	plugin_close(w);
}

static void dispatches(struct twheel *w, struct twheel_timer *t)
{
	(void)t;
	called++;
	if (plugin_dispatch(w, 1) != 1)
		called += 100;
}

static int on_a_wheel(uint32_t flags)
{
	struct twheel_options options = {
		.size = sizeof(options), .clock = TWHEEL_CALLER, .flags = flags,
	};
	struct twheel_timer timer[3];
	struct twheel *w;
	int i;

	called = 0;
	if (twheel_open(&w, &options) < 0)
		return 1;
	for (i = 0; i < 3; i++) {
		twheel_timer_init(&timer[i], i ? closes : dispatches);
		twheel_start(w, &timer[i], (uint64_t)(i + 1) * TWHEEL_MSEC);
	}
	twheel_advance(w, TWHEEL_SEC);
	/* The first one calls the second one, which closes the wheel. */
	if (twheel_dispatch(w, 0) != 1 || called != 2)
		return 2;
	return twheel_timer_pending(&timer[2]) ? 3 : 0;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int ret;

	if (!library) {
		fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: two_copies LIBRARY");
		return 99;
	}
	*(void **)&plugin_close = dlsym(library, "twheel_close");
	*(void **)&plugin_dispatch = dlsym(library, "twheel_dispatch");
	if (!plugin_close || plugin_close == twheel_close || !plugin_dispatch)
		return 98;
	ret = on_a_wheel(0);
	return ret ? ret : on_a_wheel(TWHEEL_SHARED) ? 10 : 0;
}
