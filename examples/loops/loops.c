// SPDX-License-Identifier: 0BSD
/*
 * The same wheel in several event loops: for each, see the file of its name.
 *
 *	loops [LOOP]...
 *
 * In each loop, some hundred timers expire several times, and none of them may be early or lost.
 * If no LOOP is given, it runs all that it was built with.  If a LOOP cannot run, since its library
 * was missing at the build or the kernel has no io_uring, the status is 77.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loops.h"

#define TIMERS		300
#define EXPIRIES	3			/* of each timer */
#define LONGEST_NS	(200 * TWHEEL_MSEC)
#define LOST_AFTER_S	60

static const struct loop {
	const char *name;
	loop_run *run;
	uint32_t flags, clock;			/* of its wheel */
} loops[] = {
	{ "poll", loop_poll, 0, TWHEEL_MONOTONIC },
	{ "own", loop_own, 0, TWHEEL_CALLER },
	{ "libuv", loop_libuv, 0, TWHEEL_MONOTONIC },
	{ "libev", loop_libev, 0, TWHEEL_MONOTONIC },
	{ "libevent", loop_libevent, TWHEEL_IMMEDIATE, TWHEEL_MONOTONIC },
	{ "sd_event", loop_sd_event, 0, TWHEEL_MONOTONIC },
	{ "glib", loop_glib, 0, TWHEEL_MONOTONIC },
	{ "io_uring", loop_io_uring, 0, TWHEEL_MONOTONIC },
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

static void start(struct twheel *w, struct example *e)
{
	uint64_t delay_ns = random() % LONGEST_NS;

	e->due_ns = twheel_now(w) + delay_ns;
	twheel_start(w, &e->timer, delay_ns);
}

static void expired(struct twheel *w, struct twheel_timer *t)
{
	struct example *e = twheel_container_of(t, struct example, timer);

	early += now_ns() < e->due_ns || twheel_now(w) < e->due_ns;
	if (--e->left)
		start(w, e);
	done = !--left;
}

static bool run(const struct loop *loop)
{
	struct twheel_options options = {
		.size = sizeof(options), .clock = loop->clock, .flags = loop->flags,
	};
	struct twheel *w;
	int ret = twheel_open(&w, &options);
	size_t pending;

	if (ret)
		errx(1, "there is no wheel: %s", strerror(-ret));
	if (loop->clock == TWHEEL_CALLER)
		loop_own_begin(w);
	left = TIMERS * EXPIRIES;
	early = 0;
	done = false;
	for (unsigned int i = 0; i < TIMERS; i++) {
		twheel_timer_init(&examples[i].timer, expired);
		examples[i].left = EXPIRIES;
		start(w, &examples[i]);
	}
	/* If a timer was lost, the loop never ends. */
	alarm(LOST_AFTER_S);
	loop->run(w, &done);
	alarm(0);
	printf("%s: %u of %u expired, %u of them early\n", loop->name,
	       TIMERS * EXPIRIES - left, TIMERS * EXPIRIES, early);
	pending = twheel_stop_all(w, NULL, NULL);
	twheel_close(w);
	return !left && !early && !pending;
}

static const struct loop *loop_by_name(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(loops); i++)
		if (!strcmp(loops[i].name, name))
			return &loops[i];
	errx(2, "there is no loop %s", name);
}

int main(int argc, char **argv)
{
	bool right = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int i = 0; argc == 1 && i < ARRAY_SIZE(loops); i++)
		if (loops[i].run)
			right &= run(&loops[i]);
	for (int i = 1; i < argc; i++) {
		const struct loop *loop = loop_by_name(argv[i]);

		if (!loop->run)
			errx(77, "this was built without %s", loop->name);
		right &= run(loop);
	}
	return !right;
}
