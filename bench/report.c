// SPDX-License-Identifier: GPL-2.0
/* Makes tables from rows, and shows the values that moved since the last time. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values that moved by no more than this are not reported, percent. */
#define NOTICED		3.0

struct row {
	char mode[16], peer[24], workload[16], metric[24];
	uint32_t n;
	double value;
};

/*
 * Counts are compared if these are the same, from the lines "# kernel: ..." and "# compiler: ...":
 * another kernel does other work, another compiler does the same with other instructions.
 */
struct surroundings {
	char kernel[128], compiler[128];
};

struct rows {
	struct row *row;
	int nr;
	struct surroundings in;
};

static struct rows rows;

static void add_row(struct rows *to, const char *line)
{
	struct row row;

	if (sscanf(line, "%15[^,],%23[^,],%15[^,],%u,%23[^,],%lf", row.mode, row.peer,
		   row.workload, &row.n, row.metric, &row.value) != 6)
		return;
	to->row = realloc(to->row, (to->nr + 1) * sizeof(row));
	if (!to->row)
		abort();
	to->row[to->nr++] = row;
}

void report_row(const char *line)
{
	add_row(&rows, line);
}

/* If the line begins with the key, copy the rest of it. */
static void read_word(char *to, size_t size, const char *line, const char *key)
{
	size_t len = strlen(key);

	if (!strncmp(line, key, len))
		snprintf(to, size, "%.*s", (int)strcspn(line + len, "\n"), line + len);
}

static int read_rows(struct rows *to, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		add_row(to, line);
		read_word(to->in.kernel, sizeof(to->in.kernel), line, "# kernel: ");
		read_word(to->in.compiler, sizeof(to->in.compiler), line, "# compiler: ");
	}
	fclose(file);
	return 0;
}

int report_read(const char *path)
{
	return read_rows(&rows, path);
}

/* Find the last such row, or NULL.  If n is 0, any size will do. */
static const struct row *find(const struct rows *in, const char *mode, const char *peer,
			      const char *workload, uint32_t n, const char *metric)
{
	int i;

	for (i = in->nr - 1; i >= 0; i--) {
		const struct row *row = &in->row[i];

		if (!strcmp(row->mode, mode) && !strcmp(row->peer, peer) &&
		    !strcmp(row->workload, workload) && !strcmp(row->metric, metric) &&
		    (!n || row->n == n))
			return row;
	}
	return NULL;
}

static double value_of(const char *mode, const char *peer, const char *workload, uint32_t n,
		       const char *metric)
{
	const struct row *row = find(&rows, mode, peer, workload, n, metric);

	return row ? row->value : NAN;
}

static void print_value(double value)
{
	if (isnan(value))
		printf(" %11s", "-");
	else
		printf(" %11.*f", fabs(value) < 10 && value != floor(value) ? 3 : 1, value);
}

/* ---- a table for each workload ------------------------------------------- */

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The sizes that were measured, in order. */
static int sizes_of(const char *mode, const char *workload, const char *metric, uint32_t sizes[8])
{
	int i, j, nr = 0;

	for (i = 0; i < rows.nr && nr < 8; i++) {
		const struct row *row = &rows.row[i];

		if (strcmp(row->mode, mode) || strcmp(row->workload, workload) ||
		    strcmp(row->metric, metric))
			continue;
		for (j = 0; j < nr && sizes[j] != row->n; j++)
			;
		if (j == nr)
			sizes[nr++] = row->n;
	}
	qsort(sizes, nr, sizeof(*sizes), compare_u32);
	return nr;
}

static void print_peer(const char *mode, const char *peer, const char *workload,
		       const char *metric, const uint32_t *sizes, int nr)
{
	int i;

	if (!find(&rows, mode, peer, workload, 0, metric))
		return;
	printf("  %-19s", peer);
	for (i = 0; i < nr; i++)
		print_value(value_of(mode, peer, workload, sizes[i], metric));
	putchar('\n');
}

static void print_table(const char *mode, const char *workload, const char *metric,
			const char *title)
{
	uint32_t sizes[8];
	int i, nr = sizes_of(mode, workload, metric, sizes);

	if (!nr)
		return;
	printf("\n%s\n  %-19s", title, "");
	for (i = 0; i < nr; i++)
		printf(" %11u", sizes[i]);
	putchar('\n');
	for (i = 0; peers[i]; i++)
		print_peer(mode, peers[i]->name, workload, metric, sizes, nr);
	print_peer(mode, "netty", workload, metric, sizes, nr);
}

static void print_in_vain(const char *mode)
{
	static const char * const workloads[] = { "request", "slow", "lifo", "lengths",
						    "burst" };
	char title[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(workloads); i++) {
		snprintf(title, sizeof(title), "%s: events in vain per 1,000 starts", workloads[i]);
		print_table(mode, workloads[i], "vain", title);
		print_table(mode, workloads[i], "rearmed", "and of timeouts that were moved");
		print_table(mode, workloads[i], "calls", "and calls of the wheel");
	}
}

static void print_mode(const char *mode, const char *unit)
{
	static const struct {
		const char *workload, *metric, *title;
	} tables[] = {
		{ "create", "cost", "make, once for many arms" },
		{ "arm", "cost", "arm" },
		{ "refresh", "cost", "refresh, at random" },
		{ "earlier", "cost", "refresh to an earlier point, at random" },
		{ "cancel", "cost", "cancel, at random" },
		{ "cancel", "later", "what is done in two seconds after that" },
		{ "young", "cost", "arm and cancel soon after, amid so many" },
		{ "expire", "cost", "expire and deliver, so many due in a second" },
		{ "mix", "cost", "a refresh among idle connections, with 1/1000 of an expiry" },
		{ "request", "cost", "a request timeout, started and stopped, so many in flight" },
		{ "slow", "cost", "the same, answered after half of its time" },
		{ "lifo", "cost",
		  "the same amid so many long ones, those of a turn stopped backwards" },
		{ "restart", "cost", "an idle timeout moved on, in a loop" },
		{ "lengths", "cost",
		  "a request: idle timeout of 30 s moved twice, one of 1 s started and stopped" },
		{ "burst", "one_turn", "a burst, started and stopped in one turn" },
		{ "burst", "cost", "a burst, started in one turn and stopped in the next" },
		{ "burst", "later", "what it costs in the five quiet seconds after that" },
	};
	char title[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		snprintf(title, sizeof(title), "%s: %s each", tables[i].title, unit);
		print_table(mode, tables[i].workload, tables[i].metric, title);
	}
	print_table(mode, "expire", "wakeups", "wake-ups of the process per expiry");
	print_table(mode, "expire", "kthread_wakeups", "wake-ups of kthreads per expiry");
	print_table(mode, "memory", "bytes", "memory, bytes each, all that is taken");
	print_table(mode, "memory", "slab_bytes", "of these in slabs");
	print_table(mode, "memory", "caller_bytes", "of these the caller's struct");
	print_table(mode, "memory", "library_bytes", "of these the library's, in the process");
	print_table(mode, "churn", "bytes", "memory, bytes each, after many came and went");
	print_table(mode, "moved", "bytes", "memory, bytes each, after all were moved earlier");
	print_table(mode, "idle", "wakeups", "10 s with nothing due: wake-ups of the process");
	print_table(mode, "idle", "kthread_wakeups", "wake-ups of kthreads");
	print_table(mode, "idle", "timer_interrupts",
		    "timer interrupts of the machine (\"empty\" is what it has anyway)");
	print_table(mode, "burst", "bytes", "memory after a burst, bytes each");
	print_in_vain(mode);
	print_table(mode, "wakeups", "hour_1s",
		    "wake-ups in an hour beside those of requests, so many in a second, of 1 s");
	print_table(mode, "wakeups", "kthreads_1s", "and of kthreads");
	print_table(mode, "wakeups", "hour_30s", "the same with timeouts of 30 s");
	print_table(mode, "wakeups", "kthreads_30s", "and of kthreads");
	print_table(mode, "wakeups", "hour_apart",
		    "the same with timeouts of 1 s, each answered before the next request comes");
	print_table(mode, "wakeups", "kthreads_apart", "and of kthreads");
	snprintf(title, sizeof(title), "the longest call, so many due within an hour: %s", unit);
	print_table(mode, "dispatch", "max", title);
	snprintf(title, sizeof(title),
		 "one structure, timers started and stopped by so many threads: %s a pair", unit);
	print_table(mode, "shared", "cost", title);
	print_table(mode, "shared", "pairs", "pairs of all threads in a second");
	print_table(mode, "wheels", "process",
		    "a wheel with ten timers, of so many: bytes in the process, timers included");
	print_table(mode, "wheels", "kernel", "and in the kernel, such as descriptors");
	print_table(mode, "wheels", "timer", "of these the struct of one timer");
	print_table(mode, "late", "p50", "lateness, so many due in a second: half within, us");
	print_table(mode, "late", "p99", "lateness: 99 % within, us");
	print_table(mode, "late", "max", "lateness: the latest, us");
	print_table(mode, "scale", "own_wheels",
		    "timeouts armed and cancelled a second and thread, a wheel for each thread");
	print_table(mode, "scale", "one_wheel", "one wheel for all threads");
}

/* ---- twheel's bars ------------------------------------------------------- */

static void print_bar(const char *what, const char *peer, const char *workload,
		      const char *metric, const char *minus)
{
	static const uint32_t sizes[] = { 10000, 100000, 1000000 };
	const char *mode = "instructions";
	size_t i;

	if (!find(&rows, mode, peer, workload, 0, metric))
		return;
	printf("  %-44s", what);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		double value = value_of(mode, peer, workload, sizes[i], metric);

		if (minus)
			value -= value_of(mode, minus, workload, sizes[i], metric);
		print_value(value);
	}
	putchar('\n');
}

static void print_one(const char *what, const char *mode, const char *peer, const char *workload,
		      uint32_t n, const char *metric)
{
	double value = value_of(mode, peer, workload, n, metric);

	if (isnan(value))
		return;
	printf("  %-44s", what);
	print_value(value);
	putchar('\n');
}

static void print_huge(void)
{
	static const char * const metrics[] = {
		"arm", "refresh", "cancel", "expire", "list", "close"
	};
	char what[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(metrics); i++) {
		snprintf(what, sizeof(what), "ten million: %s", metrics[i]);
		print_one(what, "instructions", "twheel", "huge", 0, metrics[i]);
	}
}

static void print_bars(void)
{
	const char *mode = "instructions";

	printf("\ntwheel, instructions per timeout\n  %-44s %11s %11s %11s\n", "",
	       "10000", "100000", "1000000");
	print_bar("arm, into the wheel", "twheel", "arm", "cost", NULL);
	print_bar("arm and cancel young", "twheel", "young", "cost", NULL);
	print_bar("cancel", "twheel", "cancel", "cost", NULL);
	print_bar("given back later", "twheel", "cancel", "later", "empty");
	print_bar("refresh by store, above the empty loop", "twheel-store", "refresh", "cost",
		  "empty");
	print_bar("the same, checked", "twheel-checked", "refresh", "cost", "empty");
	print_bar("refresh by REARM", "twheel", "refresh", "cost", NULL);
	print_bar("the same, to an earlier point", "twheel", "earlier", "cost", NULL);
	print_bar("arm, with a refresh table", "twheel-store", "arm", "cost", NULL);
	print_bar("request timeouts, above the loop", "twheel", "request", "cost", "empty");
	print_bar("idle connections, by store, above the loop", "twheel-store", "mix", "cost",
		  "empty");
	print_bar("idle connections, by REARM, above the loop", "twheel", "mix", "cost", "empty");
	print_bar("expire and deliver, all within a second", "twheel", "expire", "cost", NULL);
	print_one("an ioctl that fails at once", mode, "twheel", "calls", 0, "failing_ioctl");
	print_one("single ARM, above that", mode, "twheel", "calls", 0, "arm");
	print_one("single REARM, above that", mode, "twheel", "calls", 0, "refresh");
	print_one("single CANCEL, above that", mode, "twheel", "calls", 0, "cancel");
	print_one("ARM by a record of write(), of 256", mode, "twheel", "calls", 0, "records");
	print_one("bytes per pending timeout, of a million", mode, "twheel", "memory", 1000000,
		  "bytes");
	print_one("the same with a refresh table", mode, "twheel-store", "memory", 1000000,
		  "bytes");
	print_one("wake-ups in 10 s, a million pending, process", mode, "twheel", "idle",
		  1000000, "wakeups");
	print_one("and kthreads", mode, "twheel", "idle", 1000000, "kthread_wakeups");
	print_one("lateness at a million a second, p50, us", mode, "twheel", "late", 1000000,
		  "p50");
	print_one("p99, us", mode, "twheel", "late", 1000000, "p99");
	print_one("max, us", mode, "twheel", "late", 1000000, "max");
	print_huge();
}

static void print_libtwheel(const char *peer)
{
	printf("\n%s, instructions above the loop\n  %-44s %11s %11s %11s\n", peer, "",
	       "10000", "100000", "1000000");
	print_bar("start that needs a new place, and flush", peer, "arm", "cost", "empty");
	print_bar("restart to later, at first", peer, "refresh", "cost", "empty");
	print_bar("restart to later, in a loop", peer, "restart", "cost", "empty");
	print_bar("stop", peer, "cancel", "cost", "empty");
	print_bar("request timeout, start and stop", peer, "request", "cost", "empty");
	print_bar("the same, answered after half of its time", peer, "slow", "cost", "empty");
	print_bar("the last one stopped first, amid long ones", peer, "lifo", "cost", "empty");
	print_bar("two lengths on a connection, with the loop", peer, "lengths", "cost", NULL);
	print_bar("two lengths on a connection", peer, "lengths", "cost", "empty");
	print_bar("idle connections", peer, "mix", "cost", "empty");
	print_bar("expire and call back, all within a second", peer, "expire", "cost", NULL);
}

/* The cost of a start and a stop, by what is between the program and the wheel. */
static void print_numbers(void)
{
	printf("\nnumbers, a start and a stop by arrays of 256, amid so many\n  %-44s %11s %11s %11s\n",
	       "", "10000", "100000", "1000000");
	print_bar("table in the process, above the loop", "table", "young", "cost", "empty");
	print_bar("table on the device, above the loop", "table-device", "young", "cost", "empty");
	print_bar("vectors of a keyed wheel, above the loop", "twheel-keyed", "young", "cost",
		  "empty");
}

void report_print(void)
{
	bool counted = false, timed = false;
	int i;

	for (i = 0; i < rows.nr; i++) {
		counted |= rows.row[i].mode[0] == 'i';
		timed |= rows.row[i].mode[0] == 't';
	}
	for (i = 0; peers[i] && rows.nr; i++)
		printf("%-19s %s\n", peers[i]->name, peers[i]->usage ?: "not built in");
	if (counted) {
		puts("\n==== instructions, user and kernel together, one CPU");
		print_mode("instructions", "instructions");
		print_bars();
		print_libtwheel("libtwheel");
		print_libtwheel("libtwheel-fd");
		print_numbers();
	}
	if (timed) {
		puts("\n==== processor time of the process and the module's kthreads");
		puts("(compare within this run only; what others do in interrupts is not in it)");
		print_mode("time", "ns");
	}
}

/* ---- values that moved --------------------------------------------------- */

static bool same_surroundings(const struct surroundings *was, const struct surroundings *is)
{
	if (!strcmp(was->kernel, is->kernel) && !strcmp(was->compiler, is->compiler))
		return true;
	printf("  nothing is compared: that was recorded with %s, %s; this is %s, %s\n",
	       *was->kernel ? was->kernel : "no word of the kernel",
	       *was->compiler ? was->compiler : "nor of the compiler",
	       *is->kernel ? is->kernel : "no word of the kernel",
	       *is->compiler ? is->compiler : "nor of the compiler");
	return false;
}

/*
 * Compare the counts of a measurement, but not of the machine's other work; and no tails, which are
 * a handful of timeouts.
 */
static bool compares(const struct row *row)
{
	return !strcmp(row->mode, "instructions") && !strstr(row->metric, "interrupts") &&
	       strncmp(row->metric, "p99.", 4) && strcmp(row->metric, "max");
}

int report_compare(const char *path)
{
	struct rows old = { 0 };
	int i, moved = 0, compared = 0;

	if (read_rows(&old, path))
		return -1;
	printf("\nagainst %s:\n", path);
	if (!same_surroundings(&old.in, &rows.in))
		return 0;
	for (i = 0; i < rows.nr; i++) {
		const struct row *row = &rows.row[i];
		const struct row *was = find(&old, row->mode, row->peer, row->workload, row->n,
					     row->metric);
		double percent;

		if (!was || !compares(row))
			continue;
		compared++;
		/* Ignore a difference below 0.05, though it is many percent of a small value. */
		percent = was->value ? 100 * (row->value / was->value - 1) : 0;
		if (fabs(percent) <= NOTICED || fabs(row->value - was->value) < 0.05)
			continue;
		printf("  %s %s %u %s: %.4g, was %.4g (%+.1f %%)\n", row->peer, row->workload,
		       row->n, row->metric, row->value, was->value, percent);
		moved++;
	}
	printf("  %d of %d instruction counts moved by more than %.0f %%\n", moved, compared,
	       NOTICED);
	return moved;
}
