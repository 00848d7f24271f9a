// SPDX-License-Identifier: GPL-2.0
/*
 * Idle: with a million timeouts far ahead, a week in which none is due costs no wake-up and no
 * interrupt; a week in which some are due costs only those that they need.
 *
 * The clock's device cannot sleep for longer than some seconds at a time, so that a week has
 * interrupts of its own: they are counted first, without a wheel.
 */
#include "soak.h"
#include "twheel_outside.h"

#include <dirent.h>

#define WEEK_NS		(7 * TW_DAY)
#define DUE		1000

struct toll {
	__u64 interrupts;
	__u64 wakeups;
};

/* The number after a word of a file, 0 if the word is not there. */
static __u64 number_after(const char *path, const char *word)
{
	static char text[65536];
	FILE *file = fopen(path, "r");
	const char *found;

	if (!file)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	found = strstr(text, word);
	return found ? strtoull(found + strlen(word), NULL, 10) : 0;
}

/* How often the kthreads of the module have been woken. */
static __u64 count_wakeups(void)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	__u64 total = 0;
	char path[300];

	while (proc && (entry = readdir(proc))) {
		char name[32] = "";
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		if (!fgets(name, sizeof(name), comm))
			name[0] = '\0';
		fclose(comm);
		if (strncmp(name, "twheel/", 7))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/status", entry->d_name);
		total += number_after(path, "\nvoluntary_ctxt_switches:");
	}
	if (proc)
		closedir(proc);
	return total;
}

static struct toll toll_now(void)
{
	return (struct toll){
		/* The timer is interrupt 0. */
		.interrupts = number_after("/proc/interrupts", " 0:"),
		.wakeups = count_wakeups(),
	};
}

static struct toll sleep_a_week(void)
{
	struct toll before = toll_now(), after;

	tw_sleep(WEEK_NS);
	after = toll_now();
	return (struct toll){
		.interrupts = after.interrupts - before.interrupts,
		.wakeups = after.wakeups - before.wakeups,
	};
}

static void print_toll(const char *what, struct toll toll)
{
	printf("# a week %s: %llu timer interrupts, %llu wake-ups of the kthread\n", what,
	       toll.interrupts, toll.wakeups);
}

static void forget(struct oracle *o, __u32 index)
{
	(void)o;
	(void)index;
}

static void arm_some(struct oracle *o, __u32 index, __u32 nr, __u64 from_ns, __u64 range_ns)
{
	struct twheel_arm arm = {};

	oracle_stamp(o);
	while (nr--) {
		arm.expires_ns = from_ns + (range_ns >> 16) * random_below(1 << 16) +
				 random_below(TW_SEC);
		oracle_arm(o, index++, arm);
		if (index % ORACLE_BATCH && nr)
			continue;
		oracle_flush(o);
		tw_sleep(TW_MS);
		oracle_stamp(o);
	}
	/* Move timeouts from the inbox into the wheel. */
	tw_sleep(TW_MIN);
	oracle_stamp(o);
}

void soak_idle(const struct soak_options *options)
{
	struct oracle o = {
		.setup = { .clock = TWHEEL_CLOCK_MONOTONIC, .tick_ns = TW_MS },
		.in_order = true,
		.ended = forget,
	};
	struct toll none, idle, due;

	part_begin("an_idle_wheel");
	none = sleep_a_week();
	print_toll("without a wheel", none);
	if (!oracle_open(&o, options->pending + DUE))
		goto end;
	/* Arm them beyond the weeks, and beyond the time by which entries are moved ahead. */
	arm_some(&o, 0, options->pending, 50 * TW_DAY, 300 * TW_DAY);
	idle = sleep_a_week();
	print_toll("with nothing due", idle);
	arm_some(&o, options->pending, DUE, TW_HOUR, WEEK_NS - TW_DAY);
	due = sleep_a_week();
	print_toll("with 1000 due", due);
	oracle_stamp(&o);
	oracle_read(&o);
	oracle_check_books(&o);
	if (o.books.delivered != DUE)
		fault(FAULT_LOST, "%llu events of %u", o.books.delivered, DUE);
	result(idle.wakeups == 0, "an_idle_wheel_wakes_no_kthread");
	result(idle.interrupts <= none.interrupts + none.interrupts / 1000,
	       "an_idle_wheel_interrupts_no_cpu");
	/* Each moves at most once in each level on its way down. */
	result(due.wakeups <= DUE * tw_fdinfo_number(o.fd, "levels"), "what_is_due_is_all_that_wakes");
	oracle_drain(&o);
end:
	oracle_close(&o);
	part_end();
}
