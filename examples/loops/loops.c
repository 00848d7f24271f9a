// SPDX-License-Identifier: 0BSD
/*
 * The same wheel in several event loops: for each, see the file of its name.
 *
 *	loops [--backend=device|local|auto] [LOOP]...
 *
 * In each loop, some hundred timers expire several times, and it is checked that none of
 * them is early, and none is lost.  Without a name it runs all loops that it was built
 * with. It ends with status 77 where a LOOP cannot run: it was built without its library,
 * or the kernel has no io_uring.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loops.h"

#define TIMERS		300
#define EXPIRIES	3			/* of each timer */
#define LONGEST_NS	(200 * TWHEEL_MSEC)
#define LOST_AFTER_S	60

static const struct loop {
	const char *name;
	loop_run *run;
} loops[] = {
	{ "libuv", loop_libuv },
	{ "libev", loop_libev },
	{ "libevent", loop_libevent },
	{ "sd_event", loop_sd_event },
	{ "glib", loop_glib },
	{ "io_uring", loop_io_uring },
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct example {
	struct twheel_timer timer;
	uint64_t due_ns;
	unsigned int left;
};

static struct example examples[TIMERS];
static unsigned int left, early;
static bool done;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TWHEEL_SEC + now.tv_nsec;
}

static void start(struct twheel *w, struct example *e)
{
	uint64_t delay_ns = random() % LONGEST_NS;

	e->due_ns = twheel_now(w) + delay_ns;
	twheel_start(w, &e->timer, delay_ns);
}

static void expired(struct twheel *w, struct twheel_timer *t, int status)
{
	struct example *e = twheel_container_of(t, struct example, timer);

	if (status)
		errx(1, "a timer was refused: %s", strerror(-status));
	early += now_ns() < e->due_ns || twheel_now(w) < e->due_ns;
	if (--e->left)
		start(w, e);
	done = !--left;
}

static bool run(const struct loop *loop, const struct twheel_options *options)
{
	struct twheel *w;
	int ret = twheel_open(&w, options);
	unsigned int i;

	if (ret)
		errx(1, "there is no wheel: %s", strerror(-ret));
	left = TIMERS * EXPIRIES;
	early = 0;
	done = false;
	for (i = 0; i < TIMERS; i++) {
		twheel_timer_init(&examples[i].timer, expired);
		examples[i].left = EXPIRIES;
		start(w, &examples[i]);
	}
	/* A loop that waits for a timer that was lost does not end. */
	alarm(LOST_AFTER_S);
	loop->run(w, &done);
	alarm(0);
	printf("%s, with the wheel in the %s: %u of %u expired, %u of them early\n",
	       loop->name, twheel_backend(w) == TWHEEL_DEVICE ? "kernel" : "process",
	       TIMERS * EXPIRIES - left, TIMERS * EXPIRIES, early);
	for (i = 0; i < TIMERS; i++)
		left += twheel_stop(w, &examples[i].timer);
	twheel_close(w);
	return !left && !early;
}

static const struct loop *loop_by_name(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(loops); i++)
		if (!strcmp(loops[i].name, name))
			return &loops[i];
	errx(2, "there is no loop %s", name);
}

static enum twheel_backend backend_by_name(const char *name)
{
	if (!strcmp(name, "device"))
		return TWHEEL_DEVICE;
	if (!strcmp(name, "local"))
		return TWHEEL_LOCAL;
	if (strcmp(name, "auto"))
		errx(2, "there is no back end %s", name);
	return TWHEEL_AUTO;
}

int main(int argc, char **argv)
{
	struct twheel_options options = { .size = sizeof(options) };
	bool right = true;
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strncmp(argv[1], "--backend=", 10)) {
		options.backend = backend_by_name(argv[1] + 10);
		argv++;
		argc--;
	}
	for (i = 0; argc == 1 && i < ARRAY_SIZE(loops); i++)
		if (loops[i].run)
			right &= run(&loops[i], &options);
	for (; argc > 1; argv++, argc--) {
		const struct loop *loop = loop_by_name(argv[1]);

		if (!loop->run)
			errx(77, "this was built without %s", loop->name);
		right &= run(loop, &options);
	}
	return !right;
}
