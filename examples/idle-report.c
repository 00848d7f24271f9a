// SPDX-License-Identifier: 0BSD
/* idle-report.c - the output of idle-server, and the verdict */
#define _GNU_SOURCE
#include "idle-server.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seconds(uint64_t ns)
{
	return (double)ns / NSEC_PER_SEC;
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

/* CPU time of the kernel threads that serve all wheels; 0 if it cannot be read. */
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
		/* The first number of the line is nanoseconds. */
		if (read_line(entry->d_name, "schedstat", line, sizeof(line)))
			sum += strtoull(line, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return sum;
}

void report_progress(const struct server *s)
{
	static uint64_t last_ns, last_refreshed, last_cancelled;
	const struct stats *st = &s->st;
	uint64_t now = now_ns();
	/* If a line is late, it stands for more than a second. */
	double elapsed = seconds(now - (last_ns ? last_ns : st->begin_ns));

	if (!last_ns)
		printf("  second  connections  refreshes/s  cancels/s  idle closed  requests timed out\n");
	printf("%8.1f  %11u  %11.0f  %9.0f  %11" PRIu64 "  %18" PRIu64 "\n",
	       seconds(now - st->begin_ns), s->nr_open,
	       (st->refreshed - last_refreshed) / elapsed,
	       (st->own.cancelled - last_cancelled) / elapsed,
	       st->closed[IDLE], st->closed[REQUEST]);
	last_ns = now;
	last_refreshed = st->refreshed;
	last_cancelled = st->own.cancelled;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double late_ms(const struct stats *st, unsigned int percent)
{
	return (double)st->late_ns[(uint64_t)(st->nr_late - 1) * percent / 100] / NSEC_PER_MSEC;
}

/* The end of the report, which is the same for all servers. */
void report_server(struct server *s)
{
	struct stats *st = &s->st;

	printf("\nIn %.1f seconds:\n", seconds(st->end_ns - st->begin_ns));
	printf("  connections  %" PRIu64 ": %" PRIu64 " closed idle, %" PRIu64
	       " with a request timed out, %u open at the end\n",
	       st->accepted, st->closed[IDLE], st->closed[REQUEST],
	       st->open_at_end);
	printf("  timeouts     %" PRIu64 " armed, %" PRIu64 " refreshed, %" PRIu64
	       " cancelled, %" PRIu64 " expired; %" PRIu64 " saved by bytes that were late\n",
	       st->own.armed, st->refreshed, st->own.cancelled + st->own.revoked,
	       st->own.expired, st->saved);
	if (st->nr_late) {
		qsort(st->late_ns, st->nr_late, sizeof(st->late_ns[0]), compare);
		printf("  lateness     half of all within %.1f ms, 99 %% within %.1f ms, all within %.1f ms; a tick is %g ms\n",
		       late_ms(st, 50), late_ms(st, 99), late_ms(st, 100),
		       (double)s->opt->tick_ns / NSEC_PER_MSEC);
	}
	printf("  CPU time     %.2f s the server", seconds(st->cpu_ns));
	if (st->kthreads_cpu_ns)
		printf(", %.2f s the kernel threads of all wheels",
		       seconds(st->kthreads_cpu_ns));
	printf("\n");
	if (s->seen.starved)
		printf("  This machine was too slow for %u clients to talk in time; they were closed, and rightly.\n",
		       s->seen.starved);
}

/* Verdict */

bool report_equal(const char *what, uint64_t wheel, uint64_t server)
{
	if (wheel == server)
		return true;
	printf("WRONG: the wheel has %" PRIu64 " %s, and the server %" PRIu64 ".\n",
	       wheel, what, server);
	return false;
}

/* Print "N of them", and return whether there are none, as there ought to be. */
static bool none(uint64_t nr, const char *what)
{
	if (!nr)
		return true;
	printf("WRONG: %" PRIu64 " %s.\n", nr, what);
	return false;
}

static bool timeouts_were_right(const struct stats *st)
{
	const struct accounts *own = &st->own;
	uint64_t ended = own->expired + own->cancelled + own->revoked + own->left;
	bool right = true;

	right &= none(st->early, "timeouts expired before their deadline");
	right &= none(st->lost, "connections had lost their idle timeout");
	if (own->armed != ended) {
		printf("WRONG: %" PRIu64 " timeouts were armed, and %" PRIu64
		       " are accounted for.\n", own->armed, ended);
		right = false;
	}
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
 * report_verdict() - say whether the server was right, and if not, why
 * @s: the server, at its end
 *
 * Return: whether it was.
 */
bool report_verdict(const struct server *s)
{
	const struct options *opt = s->opt;
	bool right = true;

	/* All other errors would follow from this one. */
	if (s->seen.connected < opt->connections) {
		printf("WRONG: of %u connections only %u were made in %.0f s; this machine is too slow: try --connections=%u, or a longer --idle.\n",
		       opt->connections, s->seen.connected,
		       seconds(CONNECT_NS), s->seen.connected / 2);
		return false;
	}
	right &= timeouts_were_right(&s->st);
	right &= clients_are_content(s);
	if (right)
		printf("Right: %u silent and %u stalled connections were closed on time, no other was, and every timeout is accounted for.\n",
		       s->seen.closed[IDLE], s->seen.closed[REQUEST]);
	return right;
}
