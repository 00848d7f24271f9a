// SPDX-License-Identifier: GPL-2.0
/*
 * The workloads of make bench-native: calls of the device's ioctl handler, and of the kernel's own
 * timers
 *
 * A sample is one call for a vector, or for the kernel's timers a loop of as many. Deadlines are
 * random in 1 s to 1 h; timeouts are accessed in random order, each once, and in another order in
 * each row, so that the neighbours of a timeout in its list are not in the cache either. The
 * clock of the wheel is virtual.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/twheel.h>
#include <linux/uio.h>

#include "engine/engine.h"
#include "native.h"
#include "twheel.h"

#define SECOND_NS	NSEC_PER_SEC
#define HOUR_NS		(3600 * SECOND_NS)

/* At most this many timeouts are accessed in a row, and this many samples kept of it. */
#define ACCESSED_MAX	1000000U
#define SAMPLES_MAX	100000U

/* A workload for few timeouts is repeated, until it has armed this many. */
#define ARMED_MIN	200000U

struct row {
	const char *name;
	u32 nr;
	u32 *cycles;
};

static struct row rows[16];
static const char *who;
static u32 *order;
static u64 *ids, *deadlines;
static void *elements;
static struct twheel_file opened;
static struct file file = { .private_data = &opened, .f_mode = FMODE_READ | FMODE_WRITE };

/* Room for the largest vector of the largest element, and for all events of a read(). */
#define ELEMENTS_BYTES	(TWHEEL_MAX_VECTOR * sizeof(struct twheel_status))

static __always_inline u64 cycles_now(void)
{
	barrier();
	return __builtin_ia32_rdtsc();
}

/* Marsaglia, "Xorshift RNGs" (2003). */
static u64 random(void)
{
	static u64 seed = 88172645463325252ULL;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static u64 random_below(u64 end)
{
	return mul_u64_u64_shr(random(), end, 64);
}

static u64 key_of(u32 i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ULL;
}

static void sample(const char *name, u64 cycles)
{
	struct row *row = rows;

	while (row->name && strcmp(row->name, name))
		row++;
	if (!row->name) {
		row->name = name;
		row->nr = 0;
		if (!row->cycles)
			row->cycles = native_memory(SAMPLES_MAX * sizeof(*row->cycles));
	}
	if (row->nr < SAMPLES_MAX)
		row->cycles[row->nr++] = min_t(u64, cycles, U32_MAX);
}

static void report(u32 nr, u32 vector)
{
	struct row *row;

	for (row = rows; row->name; row++) {
		native_report(who, row->name, nr, vector, row->cycles, row->nr);
		row->name = NULL;
	}
}

static void shuffle(u32 nr)
{
	u32 i, other;

	for (i = 0; i < nr; i++)
		order[i] = i;
	for (i = nr; --i;) {
		other = random_below(i + 1);
		swap(order[i], order[other]);
	}
}

static void wheel_open(u32 nr, u32 flags)
{
	struct twheel_setup setup = {
		.size		= sizeof(setup),
		.clock		= TWHEEL_CLOCK_VIRTUAL,
		.max_pending	= nr,
		.flags		= flags,
	};

	opened.tw = twheel_create();
	if (IS_ERR(opened.tw) || twheel_ioctl(&file, TWHEEL_IOC_SETUP, (void __user *)&setup))
		native_fail("no wheel");
}

/* Make one call for a vector of elements, which the caller has written. */
static void call(const char *name, u32 cmd, u32 size, u32 nr, bool by_key)
{
	struct twheel_vector vector = {
		.size		= sizeof(vector),
		.entry_size	= size,
		.nr		= nr,
		.flags		= by_key ? TWHEEL_VECTOR_BY_KEY : 0,
		.entries	= (unsigned long)elements,
	};
	u64 begin = cycles_now();
	long done = twheel_ioctl(&file, cmd, (void __user *)&vector);

	sample(name, cycles_now() - begin);
	if (done != nr)
		native_fail(name);
	native_run_works();
}

static void arm(const char *name, u32 nr, u32 vector, bool keyed)
{
	struct twheel_arm *arm = elements;
	u32 i, k;

	for (i = 0; i + vector <= nr; i += vector) {
		for (k = 0; k < vector; k++) {
			u32 at = order[i + k];

			deadlines[at] = SECOND_NS + random_below(HOUR_NS);
			arm[k] = (struct twheel_arm){
				.expires_ns	= deadlines[at],
				.flags		= TWHEEL_ARM_ABSOLUTE,
				.user_data	= keyed ? key_of(at) : at,
			};
		}
		call(name, TWHEEL_IOC_ARM, sizeof(*arm), vector, false);
		for (k = 0; k < vector; k++)
			ids[order[i + k]] = arm[k].id;
	}
}

/* Move each timeout by REARM or, if the wheel is keyed, by ARM. */
static void move(const char *name, u32 nr, u32 vector, bool earlier, bool keyed)
{
	struct twheel_arm *arm = elements;
	u32 i, k;

	for (i = 0; i + vector <= nr; i += vector) {
		for (k = 0; k < vector; k++) {
			u32 at = order[i + k];

			if (earlier)
				deadlines[at] = SECOND_NS + random_below(deadlines[at] - SECOND_NS);
			else
				deadlines[at] += 1 + random_below(HOUR_NS);
			arm[k] = (struct twheel_arm){
				.expires_ns	= deadlines[at],
				.flags		= TWHEEL_ARM_ABSOLUTE,
				.user_data	= key_of(at),
				.id		= ids[at],
			};
		}
		call(name, keyed ? TWHEEL_IOC_ARM : TWHEEL_IOC_REARM, sizeof(*arm), vector, false);
	}
}

static void query(const char *name, u32 nr, u32 vector, bool keyed)
{
	struct twheel_status *status = elements;
	u32 i, k;

	for (i = 0; i + vector <= nr; i += vector) {
		for (k = 0; k < vector; k++)
			status[k].id = keyed ? key_of(order[i + k]) : ids[order[i + k]];
		call(name, TWHEEL_IOC_QUERY, sizeof(*status), vector, keyed);
	}
}

static void cancel(const char *name, u32 nr, u32 vector, bool keyed)
{
	struct twheel_cancel *cancel = elements;
	u32 i, k;

	for (i = 0; i + vector <= nr; i += vector) {
		for (k = 0; k < vector; k++) {
			u32 at = order[i + k];

			cancel[k] = (struct twheel_cancel){ .id = keyed ? key_of(at) : ids[at] };
		}
		call(name, TWHEEL_IOC_CANCEL, sizeof(*cancel), vector, keyed);
	}
}

/* Read @nr events, TWHEEL_BATCH at a time, as read() does. */
static void read_events(const char *name, u32 nr, u32 vector)
{
	u32 size, done, want;

	twheel_nr_events(opened.tw, &size);
	for (; nr; nr -= want) {
		u64 begin = cycles_now();

		want = min(nr, vector);
		for (done = 0; done < want;) {
			u32 step = min(want - done, TWHEEL_BATCH);
			struct iov_iter to;
			int got;

			iov_iter_ubuf(&to, ITER_DEST, (void __user *)elements, step * size);
			got = twheel_read_step(opened.tw, &to, size, step);
			if (got <= 0)
				native_fail(name);
			done += got;
		}
		if (want == vector)
			sample(name, cycles_now() - begin);
		native_run_works();
	}
}

/*
 * Advance the clock in steps, in each of which about @vector timeouts expire, and read their
 * events.  After @nr have expired, let all others expire at once, and read those events.
 */
static void expire_some(u32 pending, u32 nr, u32 vector)
{
	u64 now_ns = 0, step_ns = max_t(u64, HOUR_NS / pending * vector, NSEC_PER_MSEC);
	u32 got, size, seen = 0;

	while (seen < nr && now_ns < 9 * HOUR_NS) {
		u64 begin, cycles;

		now_ns += step_ns;
		begin = cycles_now();
		if (twheel_clock_advance(opened.tw, now_ns))
			native_fail("advance");
		cycles = cycles_now() - begin;
		got = twheel_nr_events(opened.tw, &size);
		if (!got)
			continue;
		sample("expire", div64_u64(cycles * vector, got));
		read_events("read", got, vector);
		seen += got;
	}
	twheel_clock_advance(opened.tw, 10 * HOUR_NS);
	read_events("read-late", min(twheel_nr_events(opened.tw, &size), ACCESSED_MAX), vector);
}

/* @mapped: the refresh table is mapped, so calls read or write its words. */
static void wheel(u32 nr, u32 vector, bool keyed, bool mapped)
{
	u32 all = nr / vector * vector, accessed = min(all, ACCESSED_MAX);

	wheel_open(nr, keyed ? TWHEEL_SETUP_KEYED : 0);
	if (mapped && twheel_map_words(opened.tw))
		native_fail("no refresh table");
	shuffle(all);
	arm("arm", all, vector, keyed);
	shuffle(all);
	query("query", accessed, vector, keyed);
	shuffle(all);
	move("later", accessed, vector, false, keyed);
	shuffle(all);
	move("earlier", accessed, vector, true, keyed);
	shuffle(all);
	cancel("cancel", accessed / 2, vector, keyed);
	arm("arm-again", accessed / 2, vector, keyed);
	expire_some(nr, accessed / 2, vector);
	twheel_put(opened.tw);
}

/* The kernel's own timers, each in a line of the cache of its own */
union timer {
	struct timer_list timer;
	struct hrtimer hrtimer;
	u8 line[64];
};

static union timer *timers;

static void timer_ends(struct timer_list *timer)
{
}

static enum hrtimer_restart hrtimer_ends(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static __always_inline void timer_set(union timer *timer, u64 deadline_ns, bool high_resolution)
{
	if (high_resolution)
		hrtimer_start(&timer->hrtimer, ns_to_ktime(deadline_ns), HRTIMER_MODE_ABS_SOFT);
	else
		mod_timer(&timer->timer, deadline_ns / TICK_NSEC);
}

static __always_inline void timers_row(const char *name, u32 nr, u32 vector, bool high_resolution,
				       bool end)
{
	u32 i, k;

	for (i = 0; i + vector <= nr; i += vector) {
		u64 begin = cycles_now();

		for (k = 0; k < vector; k++) {
			union timer *timer = &timers[order[i + k]];

			if (!end)
				timer_set(timer, deadlines[order[i + k]], high_resolution);
			else if (high_resolution)
				hrtimer_try_to_cancel(&timer->hrtimer);
			else
				timer_delete(&timer->timer);
		}
		sample(name, cycles_now() - begin);
	}
}

static __always_inline void timers_all(u32 nr, u32 vector, bool high_resolution)
{
	u32 accessed = min(nr, ACCESSED_MAX) / vector * vector, i;
	u64 base_ns = ktime_get_ns() + jiffies * TICK_NSEC;

	nr = nr / vector * vector;
	for (i = 0; i < nr; i++) {
		memset(&timers[i], 0, sizeof(timers[i]));
		if (high_resolution)
			hrtimer_init(&timers[i].hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
		else
			timer_setup(&timers[i].timer, timer_ends, 0);
		if (high_resolution)
			timers[i].hrtimer.function = hrtimer_ends;
		deadlines[i] = base_ns + SECOND_NS + random_below(HOUR_NS);
	}
	shuffle(nr);
	timers_row("arm", nr, vector, high_resolution, false);
	for (i = 0; i < nr; i++)
		deadlines[i] += 1 + random_below(HOUR_NS);
	shuffle(nr);
	timers_row("later", accessed, vector, high_resolution, false);
	for (i = 0; i < nr; i++)
		deadlines[i] -= random_below(deadlines[i] - base_ns);
	shuffle(nr);
	timers_row("earlier", accessed, vector, high_resolution, false);
	shuffle(nr);
	timers_row("cancel", accessed / 2, vector, high_resolution, true);
	timers_row("arm-again", accessed / 2, vector, high_resolution, false);
	timers_row("cancel", nr, vector, high_resolution, true);
}

bool native_run(const char *workload, unsigned int nr, unsigned int vector)
{
	static u32 room;
	u32 i;

	who = workload;
	twheel_nr_workers = 1;
	twheel_max_pending_limit = U32_MAX;
	twheel_max_memory = LONG_MAX / 4;
	twheel_max_user_memory = LONG_MAX / 4;
	if (room < nr) {
		room = nr;
		order = native_memory(room * sizeof(*order));
		ids = native_memory(room * sizeof(*ids));
		deadlines = native_memory(room * sizeof(*deadlines));
		timers = native_memory(room * sizeof(*timers));
	}
	if (!elements)
		elements = native_memory(ELEMENTS_BYTES);
	for (i = 0; i < max(ARMED_MIN / nr, 1U); i++) {
		if (!strcmp(who, "twheel"))
			wheel(nr, vector, false, false);
		else if (!strcmp(who, "twheel-keyed"))
			wheel(nr, vector, true, false);
		else if (!strcmp(who, "twheel-mapped"))
			wheel(nr, vector, false, true);
		else if (!strcmp(who, "timer_list"))
			timers_all(nr, vector, false);
		else if (!strcmp(who, "hrtimer"))
			timers_all(nr, vector, true);
		else
			return false;
	}
	report(nr, vector);
	return true;
}
