// SPDX-License-Identifier: GPL-2.0
/*
 * A rush: a million timeouts come due within one second, spread evenly, after some time in the
 * slots of each level. A poller must have each of them soon after its deadline. Processing takes no
 * time here, so all lateness is time for which the module chooses to wait.
 */
#include "soak.h"
#include "../../bench/histogram.h"

#define ROUNDS		20
#define LONGEST_NS	TW_DAY

/* How late events were read, ns. */
static struct histogram *late;

static void note(struct oracle *o, __u32 index)
{
	histogram_add(late, o->now_ns - o->job[index].deadline_ns);
}

static void arm_second(struct oracle *o, __u64 begin_ns)
{
	struct twheel_arm arm = { .flags = TWHEEL_ARM_ABSOLUTE };
	__u32 i;

	for (i = 0; i < o->nr_jobs; i++) {
		arm.expires_ns = begin_ns + random_below(TW_SEC);
		oracle_arm(o, i, arm);
	}
	oracle_flush(o);
}

static void read_second(struct oracle *o)
{
	__u64 wanted = o->books.delivered + o->nr_jobs;

	while (o->books.delivered < wanted && !part_is_hopeless()) {
		if (tw_poll(o->fd, POLLIN, 2 * LONGEST_NS / TW_MS) != POLLIN) {
			fault(FAULT_LOST, "%llu did not come", wanted - o->books.delivered);
			return;
		}
		oracle_stamp(o);
		oracle_read(o);
	}
}

void soak_rush(const struct soak_options *options)
{
	struct oracle o = {
		.setup = { .clock = TWHEEL_CLOCK_MONOTONIC, .tick_ns = TW_MS },
		.in_order = true,
		.ended = note,
	};
	int i;

	part_begin("a_rush");
	late = histogram_new();
	if (oracle_open(&o, options->pending)) {
		for (i = 0; i < ROUNDS && !part_is_hopeless(); i++) {
			__u64 wait_ns = random_scale(TW_SEC, LONGEST_NS);

			oracle_stamp(&o);
			arm_second(&o, o.now_ns + wait_ns);
			read_second(&o);
		}
		oracle_check_books(&o);
		printf("# %u within a second, %d times: read after p50 %.0f, p99 %.0f, p99.9 %.0f us\n",
		       o.nr_jobs, ROUNDS, histogram_at(late, .5) / 1e3,
		       histogram_at(late, .99) / 1e3, histogram_at(late, .999) / 1e3);
		result(histogram_at(late, .99) <= 2 * o.setup.tick_ns,
		       "a_rush_is_read_within_two_ticks");
		oracle_drain(&o);
	}
	oracle_close(&o);
	free(late);
	part_end();
}
