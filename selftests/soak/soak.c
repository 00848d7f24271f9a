// SPDX-License-Identifier: GPL-2.0
/*
 * The soak: init of a User-mode Linux whose time is simulated.  It loads the
 * module, runs the parts, prints TAP, and switches the machine off.
 *
 * From the kernel's command line:
 *
 *	SEED=number	another run of the same kind; each seed can be replayed
 *	DAYS=number	of the mix, simulated
 *	PENDING=number	timeouts of the mix
 *	PARTS=names	mix,steps,virtual,idle,rush: only these
 *
 * The last line is "@end STATUS".
 */
#include "soak.h"

#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <linux/reboot.h>
#include <stdarg.h>

/* How many faults of each kind are printed for a part, which goes on after them. */
#define FAULTS_TOLD	5
#define FAULTS_BORNE	1000

static const char * const sentence[NR_FAULTS] = {
	[FAULT_EARLY] = "fires_none_early",
	[FAULT_LATE] = "fires_none_more_than_a_tick_late",
	[FAULT_LOST] = "loses_none",
	[FAULT_TWICE] = "fires_none_twice",
	[FAULT_COUNT] = "counts_each_period_once",
	[FAULT_ORDER] = "keeps_the_order_of_ticks",
	[FAULT_VERDICT] = "gives_true_verdicts",
	[FAULT_BOOKS] = "balances_its_books",
};

static const struct part {
	const char *name;
	void (*run)(const struct soak_options *options);
} parts[] = {
	{ "mix", soak_mix },
	{ "steps", soak_steps },
	{ "virtual", soak_virtual },
	{ "idle", soak_idle },
	{ "rush", soak_rush },
};

static const char *part_name;
static unsigned int faults[NR_FAULTS];
static unsigned int nr_results, nr_failed;
static __u64 random_state;

void result(bool ok, const char *name)
{
	nr_results++;
	nr_failed += !ok;
	printf("%sok %u %s\n", ok ? "" : "not ", nr_results, name);
}

void part_begin(const char *name)
{
	part_name = name;
	memset(faults, 0, sizeof(faults));
}

void part_end(void)
{
	char name[128];
	int i;

	for (i = 0; i < NR_FAULTS; i++) {
		snprintf(name, sizeof(name), "%s_%s", part_name, sentence[i]);
		if (faults[i])
			printf("# %s: %u faults\n", name, faults[i]);
		result(!faults[i], name);
	}
}

bool part_is_hopeless(void)
{
	unsigned int total = 0;
	int i;

	for (i = 0; i < NR_FAULTS; i++)
		total += faults[i];
	return total > FAULTS_BORNE;
}

void fault(enum fault what, const char *format, ...)
{
	va_list arguments;

	if (++faults[what] > FAULTS_TOLD)
		return;
	printf("# %s_%s: ", part_name, sentence[what]);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

__u32 random_below(__u32 limit)
{
	return (__u64)tw_random(&random_state) * limit >> 32;
}

__u64 random_scale(__u64 low, __u64 high)
{
	__u32 octaves = 0;
	__u64 base, span;

	while (octaves < 63 && low << octaves >> octaves == low && low << octaves < high)
		octaves++;
	if (!octaves)
		return low;
	base = low << random_below(octaves);
	span = high - base < base ? high - base : base;
	if (span >> 32)
		return base + (span >> 32) * tw_random(&random_state);
	return base + random_below(span + 1);
}

static bool load_module(void)
{
	int fd = open("/twheel.ko", O_RDONLY);
	/* The timeouts need more than a user's share of the memory of so small a machine. */
	bool loaded = !syscall(SYS_finit_module, fd,
			       "max_memory_kb=900000 max_user_memory_kb=900000", 0);

	result(loaded, "the_module_loads");
	close(fd);
	return loaded;
}

static __u64 option(const char *name, __u64 otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static bool wanted(const char *name)
{
	const char *names = getenv("PARTS");

	return !names || !*names || strstr(names, name);
}

static void run_parts(const struct soak_options *options)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		__u64 begin_ns = tw_now(CLOCK_BOOTTIME);

		if (!wanted(parts[i].name))
			continue;
		random_state = options->seed;
		printf("@begin %s\n", parts[i].name);
		parts[i].run(options);
		printf("@passed %llu %s\n", (tw_now(CLOCK_BOOTTIME) - begin_ns) / TW_SEC,
		       parts[i].name);
	}
}

int main(void)
{
	const struct soak_options options = {
		.seed = option("SEED", 1),
		.days = option("DAYS", 400),
		.pending = option("PENDING", 1000000),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	printf("TAP version 13\n# seed %llu\n", options.seed);
	if (load_module()) {
		run_parts(&options);
		result(!syscall(SYS_delete_module, "twheel", 0), "the_module_unloads");
	}
	printf("1..%u\n@end %d\n", nr_results, !!nr_failed);
	sync();
	reboot(LINUX_REBOOT_CMD_POWER_OFF);
	return 0;
}
