// SPDX-License-Identifier: 0BSD
/*
 * idle-report.c - what idle-server prints, and whether it was done right
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seconds(uint64_t ns)
{
	return (double)ns / NSEC_PER_SEC;
}

/* CPU time */

uint64_t server_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static bool read_line(const char *pid, const char *name, char *line, int size)
{
	char path[300];
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	file = fopen(path, "r");
	if (!file)
		return false;
	good = fgets(line, size, file);
	fclose(file);
	return good;
}

/* Of the kernel threads that serve all wheels; 0 when it cannot be read. */
uint64_t kthreads_cpu_ns(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t sum = 0;
	char line[200];

	while (proc && (entry = readdir(proc))) {
		if (!isdigit(entry->d_name[0]) ||
		    !read_line(entry->d_name, "comm", line, sizeof(line)) ||
		    strncmp(line, "twheel/", 7))
			continue;
		/* Its first number is nanoseconds. */
		if (read_line(entry->d_name, "schedstat", line, sizeof(line)))
			sum += strtoull(line, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return sum;
}

/* The wheel, progress, fdinfo, the table */

void report_wheel(const struct server *s)
{
	if (twheel_backend(s->wheel) == TWHEEL_DEVICE)
		printf("The wheel is in the kernel: /dev/twheel.\n");
	else
		printf("The wheel is in this process, without the kernel module.\n");
}

void report_progress(const struct server *s)
{
	static uint64_t last_ns, last_restarted, last_stopped;
	const struct stats *st = &s->st;
	uint64_t now = now_ns();
	/* When it is late, it stands for more than a second. */
	double elapsed = seconds(now - (last_ns ? last_ns : st->begin_ns));

	if (!last_ns)
		printf("  second  connections   restarts/s    stops/s  idle closed  requests timed out\n");
	printf("%8.1f  %11u  %11.0f  %9.0f  %11" PRIu64 "  %18" PRIu64 "\n",
	       seconds(now - st->begin_ns), s->nr_open,
	       (st->restarted - last_restarted) / elapsed,
	       (st->stopped - last_stopped) / elapsed,
	       st->closed[IDLE], st->closed[REQUEST]);
	last_ns = now;
	last_restarted = st->restarted;
	last_stopped = st->stopped;
}

/* What the kernel says about each descriptor is left out. */
static bool is_common(const char *key)
{
	static const char * const common[] = { "pos", "flags", "mnt_id", "ino" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(common); i++)
		if (!strcmp(key, common[i]))
			return true;
	return false;
}

/* It is the kernel that says this, so only of a wheel that is there. */
void report_fdinfo(const struct server *s)
{
	char path[64], line[200], key[100], value[100];
	FILE *file;

	if (twheel_backend(s->wheel) != TWHEEL_DEVICE)
		return;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", twheel_fd(s->wheel));
	file = fopen(path, "r");
	if (!file) {
		printf("\n%s: %s\n", path, strerror(errno));
		return;
	}
	printf("\n%s, before all timers are stopped:\n", path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%99[^:]: %99s", key, value) == 2 &&
		    !is_common(key))
			printf("  %-15s %20s\n", key, value);
	fclose(file);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double late_ticks(const struct server *s, unsigned int percent)
{
	const struct stats *st = &s->st;

	if (!st->nr_late)
		return 0;
	return (double)st->late_ns[(uint64_t)(st->nr_late - 1) * percent / 100] /
	       s->opt->tick_ns;
}

void report_table(struct server *s)
{
	const struct twheel_stats *lib = &s->lib;
	struct stats *st = &s->st;

	qsort(st->late_ns, st->nr_late, sizeof(st->late_ns[0]), compare);
	printf("\nIn %.1f seconds, and one descriptor for all timeouts:\n",
	       seconds(st->end_ns - st->begin_ns));
	printf("  connections  %" PRIu64 ": %" PRIu64 " closed idle, %" PRIu64
	       " with a request timed out, %u open at the end\n",
	       st->accepted, st->closed[IDLE], st->closed[REQUEST],
	       st->open_at_end);
	printf("  timeouts     %" PRIu64 " started, %" PRIu64
	       " restarts, %" PRIu64 " stopped, %" PRIu64 " idle and %" PRIu64
	       " request expired\n",
	       st->started, st->restarted, st->stopped, st->expired[IDLE],
	       st->expired[REQUEST]);
	printf("  lateness     p50 %.2f, p99 %.2f, max %.2f ticks of %g ms\n",
	       late_ticks(s, 50), late_ticks(s, 99), late_ticks(s, 100),
	       (double)s->opt->tick_ns / NSEC_PER_MSEC);
	printf("  library      %" PRIu64 " calls %s: %" PRIu64 " armed, %" PRIu64
	       " armed again, %" PRIu64 " cancelled, %" PRIu64 " in vain\n",
	       lib->calls, lib->backend == TWHEEL_DEVICE ?
	       "of the kernel" : "of its own wheel", lib->armed - lib->rearmed,
	       lib->rearmed, lib->cancelled, lib->vain);
	printf("               all other starts and restarts were stores, %" PRIu64
	       " of them to what an earlier one had left\n", lib->taken);
	printf("  CPU time     %.2f s this server", seconds(st->server_cpu_ns));
	if (lib->backend == TWHEEL_DEVICE && st->kthreads_cpu_ns)
		printf(", %.2f s the kernel threads of all wheels",
		       seconds(st->kthreads_cpu_ns));
	printf("\n");
	if (s->seen.starved)
		printf("  This machine was too slow for %u clients to talk in time; they were closed, and rightly.\n",
		       s->seen.starved);
}

/* Verdict */

static bool agree(const char *what, uint64_t library, uint64_t server)
{
	if (library == server)
		return true;
	printf("WRONG: the library says %" PRIu64 " %s, and the server counted %"
	       PRIu64 ".\n", library, what, server);
	return false;
}

/* "N of them", which ought to be none. */
static bool none(uint64_t nr, const char *what)
{
	if (!nr)
		return true;
	printf("WRONG: %" PRIu64 " %s.\n", nr, what);
	return false;
}

/* All timers have been stopped. */
static bool accounting_is_right(const struct server *s)
{
	const struct stats *st = &s->st;
	uint64_t expired = st->expired[IDLE] + st->expired[REQUEST];
	uint64_t ended = expired + st->stopped + st->refused;
	struct twheel_stats lib;
	bool right = true;

	twheel_stats(s->wheel, &lib, sizeof(lib));
	right &= agree("timers expired", lib.expired, expired + st->seconds);
	right &= agree("timers refused", lib.refused, st->refused);
	right &= none(lib.noted, "timers still wait to be armed");
	right &= none(lib.places - lib.parked, "timers still have a place");
	if (st->started != ended) {
		printf("WRONG: %" PRIu64 " timeouts were started, and %" PRIu64
		       " are accounted for.\n", st->started, ended);
		right = false;
	}
	return right;
}

static bool wheel_was_right(const struct stats *st)
{
	bool right = true;

	right &= none(st->early, "timers expired before their deadline");
	right &= none(st->lost, "connections had lost their idle timeout");
	return right;
}

static bool clients_are_content(const struct server *s)
{
	const struct client_report *seen = &s->seen;
	const struct stats *st = &s->st;
	bool right = true;
	uint64_t closes;

	right &= none(seen->early,
		      "connections were closed while they talked, or before their time");
	right &= none(seen->late, "connections were closed too late");
	right &= none(seen->missed,
		      "connections should have been closed, and were not");
	right &= none(seen->unanswered,
		      "connections were closed while they waited for an answer");
	right &= none(st->dropped, "connections were lost");
	if (st->accepted != s->opt->connections) {
		printf("WRONG: %u connections were made, and %" PRIu64
		       " accepted.\n", s->opt->connections, st->accepted);
		right = false;
	}

	closes = seen->closed[IDLE] + seen->closed[REQUEST] + seen->starved +
		 seen->early + seen->late + seen->unanswered;
	if (closes != st->closed[IDLE] + st->closed[REQUEST]) {
		printf("WRONG: the clients saw %" PRIu64 " closes, and the server made %"
		       PRIu64 ".\n", closes,
		       st->closed[IDLE] + st->closed[REQUEST]);
		right = false;
	}
	if (seen->starved > s->opt->connections / 10) {
		printf("WRONG: this machine is too slow for so much: try --connections=%u.\n",
		       s->opt->connections / 4);
		right = false;
	}
	return right;
}

/**
 * report_verdict() - say whether it was done right, and if not what was wrong
 * @s: the server, at its end
 *
 * Return: the exit status, 0 when it was.
 */
int report_verdict(const struct server *s)
{
	const struct options *opt = s->opt;
	const struct stats *st = &s->st;
	bool right = true;

	printf("\n");
	/* All else would follow from one of these. */
	if (s->seen.connected < opt->connections) {
		printf("WRONG: of %u connections only %u were made in %.0f s; this machine is too slow: try --connections=%u, or a longer --idle.\n",
		       opt->connections, s->seen.connected,
		       seconds(CONNECT_NS), s->seen.connected / 2);
		return 1;
	}
	if (st->refused) {
		printf("WRONG: the wheel refused %" PRIu64 " timeouts (%s%s), and their connections were closed.\n",
		       st->refused, strerror(st->refused_errno),
		       st->refused_errno == ENOSPC ?
		       ": the module's limit of memory is reached" : "");
		return 1;
	}
	right &= wheel_was_right(st);
	right &= accounting_is_right(s);
	right &= clients_are_content(s);
	if (right)
		printf("Right: %u silent and %u stalled connections were closed on time, no other was, and every timeout is accounted for.\n",
		       s->seen.closed[IDLE], s->seen.closed[REQUEST]);
	return !right;
}
