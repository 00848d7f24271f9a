// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-bench: the same workloads for the device and for its peers.
 *
 * Each measurement is made by a process of its own, one at a time.  The process returns its results
 * as rows of CSV, from which the tables are made at the end.
 */
#include "bench.h"

#include <argp.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Enough for a million timerfds, and some more descriptors that come and go. */
#define DESCRIPTORS	2100000

/* If at most so many timeouts pend, earlier measurements change the result; see measure(). */
#define FEW		10000
#define ROUNDS		3

const char *argp_program_version = "twheel-bench";

static const struct argp_option options[] = {
	{ "instructions", 'i', NULL, 0,
	  "The clock counts instructions: one CPU, qemu -icount shift=0,sleep=off", 0 },
	{ "workloads", 'w', "WORDS", 0,
	  "Only these: arm refresh cancel earlier young expire mix memory churn moved idle late request slow lifo restart lengths burst calls scale huge wakeups dispatch wheels shared",
	  0 },
	{ "peers", 'p', "WORDS", 0, "Only these, by their names in the tables", 0 },
	{ "sizes", 's', "NUMBERS", 0, "How many pending, instead of 1000 to 1000000", 0 },
	{ "csv", 'c', "FILE", 0, "Write all results there", 0 },
	{ "report", 'r', "FILE", 0, "Measure nothing, make the tables of that CSV", 0 },
	{ "recorded", 'o', "FILE", 0, "Tell which instruction counts differ from that CSV", 0 },
	{ 0 }
};

static struct {
	const char *workloads;
	const char *peers;
	const char *sizes;
	const char *csv;
	const char *report;
	const char *recorded;
} args;

const struct peer *const peers[] = {
	&peer_empty, &peer_libtwheel, &peer_libtwheel_fd, &peer_table, &peer_table_device,
	&peer_twheel, &peer_twheel_store, &peer_twheel_checked, &peer_twheel_keyed,
	&peer_twheel_single, &peer_twheel_keyed_single,
	&peer_twheel_10ms, &peer_twheel_2_wheels, &peer_twheel_8_wheels, &peer_twheel_slack,
	&peer_timerfd, &peer_timerfd_1ms,
	&peer_timerfd_slack, &peer_posix, &peer_io_uring, &peer_bpf_timer, &peer_bpf_1ms,
	&peer_bpf_store, &peer_heap, &peer_callout, &peer_levels, &peer_libev, &peer_libuv,
	&peer_libevent, NULL
};

/* Workloads that share a process share a function. */
static const struct {
	const char *name;
	void (*run)(const struct peer *peer, uint32_t n);
	uint32_t sizes[5];
	bool needs_cpus;	/* it has no meaning with one processor */
	bool one_counts;	/* but it has with one thread */
	bool needs_hours;	/* nobody has them if they are real hours */
	bool own_sizes;		/* its sizes are no numbers of timeouts that pend */
} workloads[NR_WORKLOADS] = {
	[ARM] = { "arm", run_ops, { 1000, 10000, 100000, 1000000 } },
	[REFRESH] = { "refresh", run_ops },
	[CANCEL] = { "cancel", run_ops },
	[EARLIER] = { "earlier", run_earlier, { 10000, 100000, 1000000 } },
	[YOUNG] = { "young", run_young, { 10000, 100000, 1000000 } },
	[EXPIRE] = { "expire", run_expire, { 1000, 10000, 100000, 1000000 } },
	[MIX] = { "mix", run_mix, { 10000, 100000 } },
	[MEMORY] = { "memory", run_memory, { 1000000 } },
	[CHURN] = { "churn", run_churn, { 1000000 } },
	[MOVED] = { "moved", run_moved, { 1000000 } },
	[IDLE] = { "idle", run_idle, { 1000000 } },
	[LATE] = { "late", run_late, { 10000, 100000, 1000000 } },
	[REQUEST] = { "request", run_request, { 100, 10000, 1000000 } },
	[SLOW] = { "slow", run_slow, { 10000 } },
	[LIFO] = { "lifo", run_lifo, { 100, 10000, 100000 } },
	[RESTART] = { "restart", run_restart, { 1000, 10000, 100000, 1000000 } },
	[LENGTHS] = { "lengths", run_lengths, { 10000, 100000 } },
	[BURST] = { "burst", run_burst, { 100000 } },
	[CALLS] = { "calls", run_calls, { 1 }, .own_sizes = true },
	[SCALE] = { "scale", run_scale, { 1, 2, 4 }, .needs_cpus = true },
	[HUGE] = { "huge", run_huge, { 10000000 } },
	[WAKEUPS] = { "wakeups", run_wakeups, { 100 }, .needs_hours = true, .own_sizes = true },
	[DISPATCH] = { "dispatch", run_dispatch, { 1000000 }, .needs_hours = true },
	[WHEELS] = { "wheels", run_wheels, { 1000 }, .own_sizes = true },
	[SHARED] = { "shared", run_shared, { 1, 2, 4 }, .needs_cpus = true, .one_counts = true },
};

unsigned int wanted;
static FILE *csv;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)state;
	switch (key) {
	case 'i':
		counts_instructions = true;
		break;
	case 'w':
		args.workloads = arg;
		break;
	case 'p':
		args.peers = arg;
		break;
	case 's':
		args.sizes = arg;
		break;
	case 'c':
		args.csv = arg;
		break;
	case 'r':
		args.report = arg;
		break;
	case 'o':
		args.recorded = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	options, parse, NULL,
	"Compares timeouts: what they cost, take and keep awake.\vWithout --instructions it measures processor time, which only compares within one run. As root it can hold more, and measure memory.",
	NULL, NULL, NULL
};

/* Whether the word is in the list.  If there is no list, all words are. */
static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *at;

	if (!list || !*list)
		return true;
	for (at = list; (at = strstr(at, word)); at += len)
		if ((at == list || strchr(" ,", at[-1])) && strchr(" ,", at[len]))
			return true;
	return false;
}

/* ---- in the process that measures ---------------------------------------- */

void result(const char *peer, const char *workload, uint32_t n, const char *metric, double value)
{
	printf("%s,%s,%s,%u,%s,%.*f\n", counts_instructions ? "instructions" : "time",
	       peer, workload, n, metric, value < 10 ? 4 : 1, value);
}

void result_cost(const char *peer, const char *workload, uint32_t n, const struct meter *meter,
		 uint64_t times)
{
	result(peer, workload, n, "cost", (double)meter->busy_ns / times);
}

/* ---- the plan ------------------------------------------------------------ */

static void write_limit(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return;
	fprintf(file, "%d\n", DESCRIPTORS);
	fclose(file);
}

/* Allow as many descriptors and signals as any back end needs; root may ask for more. */
static void raise_limits(void)
{
	const struct rlimit descriptors = { DESCRIPTORS, DESCRIPTORS };
	const struct rlimit signals = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit now;

	write_limit("/proc/sys/fs/nr_open");
	write_limit("/proc/sys/fs/epoll/max_user_watches");
	setrlimit(RLIMIT_SIGPENDING, &signals);
	if (!setrlimit(RLIMIT_NOFILE, &descriptors) || getrlimit(RLIMIT_NOFILE, &now))
		return;
	now.rlim_cur = now.rlim_max;
	setrlimit(RLIMIT_NOFILE, &now);
}

static void in_child(int out, const struct peer *peer, enum workload w, uint32_t n)
{
	dup2(out, STDOUT_FILENO);
	close(out);
	/* If a measurement hangs, SIGALRM ends it: it is reported, and the others go on. */
	alarm(counts_instructions ? 4 * 3600 : 600);
	/* Start at the same distance from the kernel's own timers, each time. */
	if (counts_instructions)
		sleep_until((now_ns() / SEC + 1) * SEC);
	workloads[w].run(peer, n);
	fflush(stdout);
	_exit(0);
}

/* The rows of CSV that one process prints. */
struct found {
	int nr;
	char row[8][128];
};

static void measure_once(const struct peer *peer, enum workload w, uint32_t n, struct found *found)
{
	int status, fds[2];
	FILE *in;
	pid_t pid;

	found->nr = 0;
	if (pipe(fds))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		close(fds[0]);
		in_child(fds[1], peer, w, n);
	}
	close(fds[1]);
	in = fdopen(fds[0], "r");
	while (in && found->nr < (int)ARRAY_SIZE(found->row) &&
	       fgets(found->row[found->nr], sizeof(found->row[0]), in))
		found->nr++;
	if (in)
		fclose(in);
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		fprintf(stderr, "# skipped: %s: %s, %u ended with status %#x\n",
			peer->name, workloads[w].name, n, status);
	/* After a process has ended, the kernel still works for a while to clean up. */
	sleep_until(now_ns() + (counts_instructions ? 5 * SEC : SEC / 5));
}

static double value_in(const char *row)
{
	return strtod(strrchr(row, ',') + 1, NULL);
}

/* Each row with the median of its values.  If a run failed, it has fewer rows. */
static void median(const struct found *found, struct found *result)
{
	const char *row[ROUNDS];
	int i, j, k;

	result->nr = found[0].nr;
	for (j = 1; j < ROUNDS; j++)
		if (found[j].nr < result->nr)
			result->nr = found[j].nr;
	for (i = 0; i < result->nr; i++) {
		for (j = 0; j < ROUNDS; j++) {
			const char *next = found[j].row[i];

			for (k = j; k && value_in(row[k - 1]) > value_in(next); k--)
				row[k] = row[k - 1];
			row[k] = next;
		}
		memmove(result->row[i], row[ROUNDS / 2], sizeof(result->row[i]));
	}
}

static void tell(const struct found *found)
{
	int i;

	for (i = 0; i < found->nr; i++) {
		report_row(found->row[i]);
		if (csv)
			fputs(found->row[i], csv);
	}
	if (!csv)
		return;
	fflush(csv);
	/* Do not measure the interrupts of a serial line. */
	tcdrain(fileno(csv));
}

/*
 * Measure one size of one workload.  The slabs and free lists that earlier measurements left make
 * 15 % of a thousand arms, and another run may have made others.  So if instructions are counted,
 * measure once before, without a result; if there are few timeouts, take the median of several
 * runs.
 */
static void measure(const struct peer *peer, enum workload w, uint32_t n)
{
	bool warm = counts_instructions && DOES(w) & DOES_COST;
	struct found found[ROUNDS], middle;
	int i;

	fprintf(stderr, "# %s: %s, %u\n", peer->name, workloads[w].name, n);
	tcdrain(STDERR_FILENO);
	if (warm)
		measure_once(peer, w, n < FEW ? n : FEW, &middle);
	measure_once(peer, w, n, &found[0]);
	if (warm && n <= FEW) {
		for (i = 1; i < ROUNDS; i++)
			measure_once(peer, w, n, &found[i]);
		median(found, &middle);
		tell(&middle);
	} else {
		tell(&found[0]);
	}
}

/* n, or the most that the peer can hold; 0 if that has been measured already. */
static uint32_t next_size(const struct peer *peer, const uint32_t *sizes, int i)
{
	if (!peer->max || sizes[i] <= peer->max)
		return sizes[i];
	return i && sizes[i - 1] >= peer->max ? 0 : peer->max;
}

static uint32_t chosen_sizes[5];

static bool has_meaning(enum workload w, uint32_t n)
{
	if (!counts_instructions)
		return !workloads[w].needs_hours;
	return !workloads[w].needs_cpus || (workloads[w].one_counts && n == 1);
}

static void measure_sizes(const struct peer *peer, enum workload w)
{
	const uint32_t *sizes = chosen_sizes[0] && !workloads[w].own_sizes ? chosen_sizes :
		workloads[w].sizes;
	uint32_t n;
	int i;

	for (i = 0; i < 5 && sizes[i]; i++) {
		n = next_size(peer, sizes, i);
		if (n && has_meaning(w, n))
			measure(peer, w, n);
	}
}

static void measure_peer(const struct peer *peer)
{
	const char *why = peer->absent ? peer->absent() : NULL;
	unsigned int todo = peer->workloads & wanted;
	int w;

	if (why) {
		fprintf(stderr, "# skipped: %s: %s\n", peer->name, why);
		return;
	}
	/* The process that measures the first also measures the other two. */
	if (todo & (DOES(ARM) | DOES(REFRESH) | DOES(CANCEL)))
		todo = (todo & ~(DOES(REFRESH) | DOES(CANCEL))) | DOES(ARM);
	for (w = 0; w < NR_WORKLOADS; w++)
		if (todo & DOES(w))
			measure_sizes(peer, w);
}

static void measure_all(void)
{
	int i;

	for (i = 0; i < NR_WORKLOADS; i++)
		if (in_list(args.workloads, workloads[i].name))
			wanted |= DOES(i);
	if (args.sizes) {
		char *at = (char *)args.sizes;

		for (i = 0; i < 5 && *at; i++, at += strspn(at, " ,"))
			chosen_sizes[i] = strtoul(at, &at, 0);
	}
	if (args.csv) {
		csv = fopen(args.csv, "we");
		if (!csv)
			err(1, "%s", args.csv);
		fputs("mode,peer,workload,n,metric,value\n", csv);
	}
	raise_limits();
	for (i = 0; peers[i]; i++)
		if (in_list(args.peers, peers[i]->name))
			measure_peer(peers[i]);
}

int main(int argc, char **argv)
{
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	setvbuf(stderr, NULL, _IOLBF, 0);
	if (!args.report)
		measure_all();
	else if (report_read(args.report))
		err(1, "%s", args.report);
	report_print();
	if (args.recorded && report_compare(args.recorded) < 0)
		err(1, "%s", args.recorded);
	return 0;
}
