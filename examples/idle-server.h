/* SPDX-License-Identifier: 0BSD */
/* Shared by the parts of idle-server. */
#ifndef IDLE_SERVER_H
#define IDLE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <time.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL

/* How much too late a close may reach a client: the machine may be slow. */
#define GRACE_NS	(5 * NSEC_PER_SEC)

/* How long the clients may take to connect. */
#define CONNECT_NS	(60 * NSEC_PER_SEC)

/* The most that a round handles: sockets, events of the wheel, and new connections. */
#define EVENTS		256

#define MAX_WORKERS	64

enum timeout {
	IDLE,		/* nothing was received for this long */
	REQUEST,	/* a line was begun this long ago, and is not complete */
	NR_TIMEOUTS,
};

struct options {
	bool local;		/* one process, with a wheel of its own */
	unsigned int workers;
	unsigned int connections;
	unsigned int seconds;
	uint64_t timeout_ns[NR_TIMEOUTS];
	uint64_t tick_ns;
};

/* Each timeout that is armed ends in one of the ways below; it may be re-armed before. */
struct accounts {
	uint64_t armed;
	uint64_t expired;
	uint64_t cancelled;
	uint64_t revoked;	/* cancelled while its event was unread */
	uint64_t left;		/* left at the end */
	uint64_t rearmed;
};

/* The server counts these itself, to compare them with the wheel's counters. */
struct stats {
	uint64_t accepted;
	uint64_t closed[NR_TIMEOUTS];	/* because this timeout expired */
	uint64_t saved;			/* expired, but the last check found traffic */
	uint64_t dropped;		/* left, or did not take their answers */
	unsigned int open_at_end;

	struct accounts own;
	uint64_t refreshed;		/* idle timeouts that were moved by a store */

	/* These must not happen. */
	uint64_t early;			/* expired before their time */
	uint64_t lost;			/* open connections without their idle timeout */

	uint64_t *late_ns;		/* of each expiration */
	unsigned int nr_late, max_late;

	uint64_t begin_ns, end_ns;
	uint64_t cpu_ns, kthreads_cpu_ns;
};

/* The results of a process of clients, which sends them when it ends. */
struct client_report {
	uint32_t connected;
	uint32_t closed[NR_TIMEOUTS];	/* on time */
	uint32_t starved;	/* too slow to talk in time, so rightly closed */
	uint32_t early;		/* closed before their time, or while talking */
	uint32_t late;		/* closed too late */
	uint32_t missed;	/* not closed at all */
	uint32_t unanswered;	/* closed though they waited for an answer */
};

/* The part of a server that is the same for both wheels. */
struct server {
	const struct options *opt;
	struct stats st;
	int epoll, listener;
	unsigned int nr_open;

	/* The processes of clients, and their results. */
	const int *control;
	unsigned int nr_control, nr_ready, nr_reports;
	struct client_report seen;
};

/* The result of reading a socket. */
enum heard { NOTHING, SOMETHING, A_LINE, THE_END };

/* The source of an event of epoll; an index says which of these it is. */
enum source { LISTENER, CLIENTS, WHEEL, WORKER, CONN };

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* idle-main.c: print a sentence, and for die() the text of errno; then exit(1). */
noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
noreturn void die_plainly(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* idle-server.c */
void epoll_add(int epoll, int fd, enum source source, uint32_t index);
enum heard line_read(int fd, bool *midline);
bool line_send(int fd, const char *line, size_t len);
int server_accept(const struct server *s);
void server_clients_readable(struct server *s, unsigned int process);
void server_late(struct server *s, uint64_t late_ns);

/* idle-local.c and idle-shared.c: serve until the clients have seen all; return the exit status. */
int local_run(struct server *s);
int shared_run(struct server *s);

/* idle-clients.c */
noreturn void clients_run(const struct options *opt, unsigned int process,
			  unsigned int nr, uint16_t port, int control);

/* idle-report.c */
uint64_t kthreads_cpu_ns(void);
void report_progress(const struct server *s);
void report_server(struct server *s);
bool report_equal(const char *what, uint64_t wheel, uint64_t server);
bool report_verdict(const struct server *s);

#endif /* IDLE_SERVER_H */
