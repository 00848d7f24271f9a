// SPDX-License-Identifier: GPL-2.0
/*
 * functions.c LIBRARY - loads the library a thousand times, finds its functions by their
 * names as another language does, and leaves nothing mapped
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <twheel.h>

static int called;

static void on_time(struct twheel *w, struct twheel_timer *t)
{
	(void)w;
	(void)t;
	called++;
}

static int nr_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int c, lines = 0;

	while ((c = getc(maps)) != EOF)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

/* Set a pointer to a function, which is no pointer to an object. */
static int find(void *function, void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	memcpy(function, &found, sizeof(found));
	return !found;
}

static int use(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*open)(struct twheel **w, const struct twheel_options *options);
	void (*init)(struct twheel_timer *t, twheel_callback *callback);
	void (*start)(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);
	void (*start_at)(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns);
	bool (*stop)(struct twheel *w, struct twheel_timer *t);
	int (*dispatch)(struct twheel *w, unsigned int max);
	uint64_t (*now)(struct twheel *w);
	void (*close)(struct twheel *w);
	struct twheel_timer t;
	struct twheel *w;

	if (!handle) {
		puts(dlerror());
		return 1;
	}
	if (find(&open, handle, "twheel_open") ||
	    find(&init, handle, "twheel_timer_init") ||
	    find(&start, handle, "twheel_start") ||
	    find(&start_at, handle, "twheel_start_at") ||
	    find(&stop, handle, "twheel_stop") ||
	    find(&dispatch, handle, "twheel_dispatch") ||
	    find(&now, handle, "twheel_now") ||
	    find(&close, handle, "twheel_close"))
		return 1;
	if (open(&w, NULL) < 0)
		return 2;
	memset(&t, 0xa5, sizeof(t));
	init(&t, on_time);
	start(w, &t, TWHEEL_SEC);
	start_at(w, &t, now(w) + TWHEEL_SEC);
	if (!stop(w, &t) || stop(w, &t))
		return 3;
	called = 0;
	start(w, &t, 0);
	if (dispatch(w, 0) != 1 || called != 1)
		return 4;
	close(w);
	return dlclose(handle) ? 5 : 0;
}

int main(int argc, char **argv)
{
	int i, mappings = 0, ret;

	(void)argc;
	for (i = 0; i < 1000; i++) {
		ret = use(argv[1]);
		if (ret)
			return ret;
		if (i == 10)
			mappings = nr_mappings();
	}
	return nr_mappings() > mappings + 2 ? 6 : 0;
}
