// SPDX-License-Identifier: GPL-2.0
/*
 * wheel_bench.c - nanoseconds per operation on structures of timers
 *
 * Each structure, with each number of timers, runs in a process of its own, in turn with the
 * others, several times; the median is printed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX_SIZES	16
#define MAX_REPEATS	64

/* If there were fewer operations than this, the clock is too coarse: repeat them. */
#define ENOUGH		200000

/* This part of the pending timers comes and goes, but at least this many. */
#define CHURN_PART	8
#define CHURN_MIN	500

#define HUGE_BYTES	(2UL << 20)

/* The most turns of a loop in an hour: one for each of ten million timers, and some more. */
#define MAX_STEPS	(16U << 20)

enum operation { INSERT, REMOVE, MOVE, EXPIRE, EXPIRE_MOVED, NR_OPERATIONS };

static const char * const operation_name[NR_OPERATIONS] = {
	"insert", "remove", "move later", "expire", "expire, moved once",
};

#define NR_STRUCTURES	9

static const struct structure * const structures[NR_STRUCTURES] = {
	&libtwheel_structure, &callout_structure, &levels_structure, &heap_structure,
	&twheel_structure, &libev_structure, &libuv_structure,
	&libevent_structure, &libevent_common_structure,
};

static struct {
	const char *only;
	const char *csv;
	uint32_t size[MAX_SIZES];
	unsigned int nr_sizes;
	unsigned int repeats;
	uint64_t seed;
	int cpu;
} option = {
	.size		= { 1000, 10000, 100000, 1000000, 10000000 },
	.nr_sizes	= 5,
	.repeats	= 5,
	.seed		= 1,
	.cpu		= -1,
};

/* Shared with the children. */
static struct {
	double ns[NR_STRUCTURES][MAX_SIZES][NR_OPERATIONS][MAX_REPEATS];
	uint32_t step_ns[MAX_STEPS];	/* of one structure: the shortest time of all repeats */
	uint32_t nr_steps;
} *result;

/* The longest call: the greatest of step_ns. */
static uint32_t longest_ns[NR_STRUCTURES][MAX_SIZES];

uint64_t nr_expired;

void fail(const char *what)
{
	fprintf(stderr, "wheel_bench: %s\n", what);
	exit(1);
}

void *allocate(size_t size)
{
	void *p;

	size = (size + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	p = aligned_alloc(HUGE_BYTES, size);
	if (!p)
		fail("out of memory");
	madvise(p, size, MADV_HUGEPAGE);
	return memset(p, 0, size);
}

/* Randomness: splitmix64 */

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return ((z ^ z >> 31) >> 32) * n >> 32;
}

/**
 * struct work - what is done with one structure
 * @s: the structure
 * @nr: timers that pend
 * @room: places for timers
 * @who: all places; the first @nr of them are those that pend
 * @due_ms: a deadline for each of @who
 * @ns: nanoseconds that each operation has taken
 * @times: and how many times it was done
 */
struct work {
	const struct structure *s;
	uint32_t nr;
	uint32_t room;
	uint32_t *who;
	uint32_t *due_ms;
	uint64_t ns[NR_OPERATIONS];
	uint64_t times[NR_OPERATIONS];
};

/* Choose @nr of the first @of places at random, and bring them to the end. */
static void choose(struct work *w, uint32_t nr, uint32_t of)
{
	while (nr--) {
		uint32_t i = below(of--);
		uint32_t chosen = w->who[i];

		w->who[i] = w->who[of];
		w->who[of] = chosen;
	}
}

static void deadlines(struct work *w, uint32_t first, uint32_t nr, uint32_t span_ms)
{
	while (nr--)
		w->due_ms[first++] = 1 + below(span_ms);
}

static void count(struct work *w, enum operation op, uint64_t begin_ns,
		  uint64_t times)
{
	w->ns[op] += cpu_ns() - begin_ns;
	w->times[op] += times;
}

static void work_fill(struct work *w, uint32_t span_ms)
{
	choose(w, w->nr, w->nr);
	deadlines(w, 0, w->nr, span_ms);
	w->s->insert(w->who, w->due_ms, w->nr);
}

/* Timers start and others end, at random, while @nr pend. */
static void work_churn(struct work *w, uint32_t nr)
{
	uint64_t begin_ns;

	deadlines(w, w->nr, nr, SPAN_MS);
	begin_ns = cpu_ns();
	w->s->insert(w->who + w->nr, w->due_ms + w->nr, nr);
	count(w, INSERT, begin_ns, nr);

	choose(w, nr, w->room);
	begin_ns = cpu_ns();
	w->s->remove(w->who + w->nr, nr);
	count(w, REMOVE, begin_ns, nr);
}

/* Let all timers expire. */
static void work_run(struct work *w, enum operation op)
{
	uint64_t before = nr_expired, begin_ns = cpu_ns();

	w->s->run();
	count(w, op, begin_ns, w->nr);
	if (nr_expired - before != w->nr)
		fail("not all expired, or some twice");
}

static void work_move(struct work *w)
{
	uint64_t begin_ns;
	uint32_t i;

	for (i = 0; i < w->nr; i++)
		w->due_ms[i] += 1 + below(SPAN_MS);
	/* Shuffle the places, each with its deadline. */
	for (i = w->nr - 1; i; i--) {
		uint32_t other = below(i + 1);
		uint32_t who = w->who[i], due_ms = w->due_ms[i];

		w->who[i] = w->who[other];
		w->who[other] = who;
		w->due_ms[i] = w->due_ms[other];
		w->due_ms[other] = due_ms;
	}
	begin_ns = cpu_ns();
	w->s->move(w->who, w->due_ms, w->nr);
	count(w, MOVE, begin_ns, w->nr);
}

static void work_all(struct work *w)
{
	uint32_t nr_churn = w->room - w->nr;
	uint64_t begin_ns;

	do {
		work_fill(w, SPAN_MS);
		while (w->times[INSERT] < w->nr || w->times[INSERT] < ENOUGH)
			work_churn(w, nr_churn);
		if (w->s->settle) {
			begin_ns = cpu_ns();
			w->s->settle();
			count(w, REMOVE, begin_ns, 0);
		}
		work_run(w, EXPIRE);
		work_fill(w, SPAN_MS);
		work_move(w);
		work_run(w, EXPIRE_MOVED);
	} while (w->times[EXPIRE] < ENOUGH);
}

/*
 * Let all timers expire within an hour.  Each repeat has the same turns of the loop.  If a turn was
 * disturbed, it takes longer, so the shortest time of each is kept.
 */
static void work_steps(struct work *w, bool first)
{
	uint64_t before = nr_expired, begin_ns, end_ns;
	uint32_t i = 0, ns;
	bool more;

	work_fill(w, HOUR_MS);
	begin_ns = cpu_ns();
	do {
		more = w->s->step();
		end_ns = cpu_ns();
		ns = end_ns - begin_ns;
		begin_ns = end_ns;
		if (i == MAX_STEPS)
			fail("too many turns");
		if (first || ns < result->step_ns[i])
			result->step_ns[i] = ns;
		i++;
	} while (more);
	if (nr_expired - before != w->nr)
		fail("not all expired, or some twice");
	if (!first && i != result->nr_steps)
		fail("not the same turns");
	result->nr_steps = i;
}

static void work_open(struct work *w, uint32_t nr, uint64_t seed)
{
	uint32_t i;

	w->nr = nr;
	w->room = nr + nr / CHURN_PART;
	if (w->room < nr + CHURN_MIN)
		w->room = nr + CHURN_MIN;
	random_state = seed;
	w->who = allocate(w->room * sizeof(*w->who));
	w->due_ms = allocate(w->room * sizeof(*w->due_ms));
	for (i = 0; i < w->room; i++)
		w->who[i] = i;
	choose(w, w->room, w->room);
	w->s->make(w->room);
}

/* This runs in a process of its own, and so does measure(). */
static void measure_steps(unsigned int structure, unsigned int size, unsigned int repeat)
{
	struct work w = { .s = structures[structure] };

	work_open(&w, option.size[size], option.seed);
	work_steps(&w, !repeat);
	exit(0);
}

static void measure(unsigned int structure, unsigned int size,
		    unsigned int repeat)
{
	struct work w = { .s = structures[structure] };
	uint32_t i;

	work_open(&w, option.size[size], option.seed + repeat);
	work_all(&w);
	for (i = 0; i < NR_OPERATIONS; i++)
		result->ns[structure][size][i][repeat] =
			(double)w.ns[i] / w.times[i];
	exit(0);
}

static void measure_apart(void (*measure)(unsigned int structure, unsigned int size,
					  unsigned int repeat),
			  unsigned int structure, unsigned int size, unsigned int repeat)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		measure(structure, size, repeat);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "wheel_bench: %s failed with %u timers\n",
			structures[structure]->name, option.size[size]);
		exit(1);
	}
}

static void measure_longest(unsigned int structure, unsigned int size)
{
	unsigned int r;
	uint32_t i;

	if (!structures[structure]->step)
		return;
	for (r = 0; r < option.repeats; r++)
		measure_apart(measure_steps, structure, size, r);
	for (i = 0; i < result->nr_steps; i++)
		if (result->step_ns[i] > longest_ns[structure][size])
			longest_ns[structure][size] = result->step_ns[i];
}

/* Output */

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(unsigned int structure, unsigned int size,
		     enum operation op)
{
	double *ns = result->ns[structure][size][op];

	qsort(ns, option.repeats, sizeof(*ns), compare);
	return (ns[(option.repeats - 1) / 2] + ns[option.repeats / 2]) / 2;
}

static bool is_wanted(unsigned int structure)
{
	const struct structure *s = structures[structure];

	return !s->why_missing &&
	       (!option.only || !strcmp(option.only, s->name));
}

static void print_table(enum operation op)
{
	unsigned int s, n;

	printf("\n%-20s", operation_name[op]);
	for (n = 0; n < option.nr_sizes; n++)
		printf("%11u", option.size[n]);
	putchar('\n');
	for (s = 0; s < NR_STRUCTURES; s++) {
		if (!is_wanted(s))
			continue;
		printf("  %-18s", structures[s]->name);
		for (n = 0; n < option.nr_sizes; n++)
			printf("%11.1f", median(s, n, op));
		putchar('\n');
	}
}

static void print_longest(void)
{
	unsigned int s, n;

	printf("\n%-20s", "longest turn, us");
	for (n = 0; n < option.nr_sizes; n++)
		printf("%11u", option.size[n]);
	putchar('\n');
	for (s = 0; s < NR_STRUCTURES; s++) {
		if (!is_wanted(s) || !structures[s]->step)
			continue;
		printf("  %-18s", structures[s]->name);
		for (n = 0; n < option.nr_sizes; n++)
			printf("%11.1f", longest_ns[s][n] / 1000.);
		putchar('\n');
	}
}

static void write_csv(void)
{
	FILE *f = fopen(option.csv, "w");
	unsigned int op, s, n;

	if (!f)
		fail(option.csv);
	fprintf(f, "operation,structure,n,ns\n");
	for (op = 0; op < NR_OPERATIONS; op++)
		for (s = 0; s < NR_STRUCTURES; s++)
			for (n = 0; n < option.nr_sizes && is_wanted(s); n++)
				fprintf(f, "\"%s\",\"%s\",%u,%.1f\n",
					operation_name[op], structures[s]->name,
					option.size[n], median(s, n, op));
	for (s = 0; s < NR_STRUCTURES; s++)
		for (n = 0; n < option.nr_sizes && is_wanted(s) && structures[s]->step; n++)
			fprintf(f, "\"longest turn\",\"%s\",%u,%u\n", structures[s]->name,
				option.size[n], longest_ns[s][n]);
	if (fclose(f))
		fail(option.csv);
}

/* Options */

static void refuse(void)
{
	fputs("usage: wheel_bench [-n NUMBER[,NUMBER...]] [-r REPEATS] [-s SEED] [-c CPU]\n"
	      "                   [-o STRUCTURE] [-f CSV-FILE]\n", stderr);
	exit(2);
}

static uint64_t number(char *text, char **end, uint64_t max)
{
	unsigned long long value;

	errno = 0;
	value = strtoull(text, end, 10);
	if (*end == text || errno || !value || value > max)
		refuse();
	return value;
}

static void sizes(char *text)
{
	option.nr_sizes = 0;
	for (;; text++) {
		if (option.nr_sizes == MAX_SIZES)
			refuse();
		option.size[option.nr_sizes++] = number(text, &text, 100000000);
		if (*text != ',')
			break;
	}
	if (*text)
		refuse();
}

static void options(int argc, char **argv)
{
	char *end = "";
	int c;

	while ((c = getopt(argc, argv, "n:r:s:c:o:f:")) != -1) {
		if (c == 'n')
			sizes(optarg);
		else if (c == 'r')
			option.repeats = number(optarg, &end, MAX_REPEATS);
		else if (c == 's')
			option.seed = number(optarg, &end, UINT64_MAX);
		else if (c == 'c')
			option.cpu = atoi(optarg);
		else if (c == 'o')
			option.only = optarg;
		else if (c == 'f')
			option.csv = optarg;
		else
			refuse();
		if (*end)
			refuse();
	}
	if (optind != argc)
		refuse();
}

/* Let the libraries' memory be of huge pages as well. */
static void huge_malloc(char **argv)
{
	if (getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
	execv("/proc/self/exe", argv);
}

/* Stay on a CPU: the present one, if none was asked for. */
static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(option.cpu < 0 ? sched_getcpu() : option.cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("no such CPU");
}

int main(int argc, char **argv)
{
	unsigned int s, n, r, op;

	options(argc, argv);
	huge_malloc(argv);
	pin();
	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (result == MAP_FAILED)
		fail("out of memory");
	for (n = 0; n < option.nr_sizes; n++)
		for (r = 0; r < option.repeats; r++)
			for (s = 0; s < NR_STRUCTURES; s++)
				if (is_wanted(s))
					measure_apart(measure, s, n, r);
	for (n = 0; n < option.nr_sizes; n++)
		for (s = 0; s < NR_STRUCTURES; s++)
			if (is_wanted(s))
				measure_longest(s, n);

	printf("nanoseconds per operation, median of %u; deadlines random over %u s\n",
	       option.repeats, SPAN_MS / 1000);
	for (op = 0; op < NR_OPERATIONS; op++)
		print_table(op);
	print_longest();
	for (s = 0; s < NR_STRUCTURES; s++)
		if (structures[s]->why_missing)
			printf("\nskipped: %s (%s)\n", structures[s]->name,
			       structures[s]->why_missing);
	if (option.csv)
		write_csv();
	return 0;
}
