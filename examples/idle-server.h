/* SPDX-License-Identifier: 0BSD */
/*
 * What the parts of idle-server share.
 */
#ifndef IDLE_SERVER_H
#define IDLE_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <time.h>
#include <twheel.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL

/* How much later than due a close may reach a client: the machine may be slow. */
#define GRACE_NS	(5 * NSEC_PER_SEC)

/* The time that the clients have to connect. */
#define CONNECT_NS	(60 * NSEC_PER_SEC)

/* What a round takes on: sockets, expirations, and new connections. */
#define EVENTS		256

enum timeout {
	IDLE,		/* nothing was received for so long */
	REQUEST,	/* a line was begun so long ago, and is not complete */
	NR_TIMEOUTS,
};

struct options {
	unsigned int connections;
	unsigned int seconds;
	uint64_t timeout_ns[NR_TIMEOUTS];
	uint64_t tick_ns;
	enum twheel_backend backend;
};

/* The server counts this by itself, to be held against what the library says. */
struct stats {
	uint64_t accepted;
	uint64_t closed[NR_TIMEOUTS];	/* because this expired */
	uint64_t saved;		/* expired, but the last look found traffic */
	uint64_t dropped;	/* left, or did not take their answers */
	unsigned int open_at_end;

	/* Each timeout that is started has one of these ends. */
	uint64_t started;
	uint64_t stopped;
	uint64_t expired[NR_TIMEOUTS];
	uint64_t refused;
	int refused_errno;

	uint64_t restarted;
	uint64_t seconds;	/* expirations of the timer that prints a line */

	/* What must not happen. */
	uint64_t early;		/* expired before their time */
	uint64_t lost;		/* connections without their idle timeout */

	uint64_t *late_ns;	/* of each expiration */
	unsigned int nr_late, room_late;

	uint64_t begin_ns, end_ns;
	uint64_t server_cpu_ns, kthreads_cpu_ns;
};

/* What the clients saw; each process sends one of these when it ends. */
struct client_report {
	uint32_t connected;
	uint32_t closed[NR_TIMEOUTS];	/* on time */
	uint32_t starved;	/* too slow to talk in time, so closed with right */
	uint32_t early;		/* closed before their time, or while talking */
	uint32_t late;		/* closed too late */
	uint32_t missed;	/* not closed at all */
	uint32_t unanswered;	/* closed though they waited for an answer */
};

/* What was found in a socket. */
enum heard { NOTHING, SOMETHING, A_LINE, THE_END };

struct conn {
	struct twheel_timer timer[NR_TIMEOUTS];
	uint64_t since_ns[NR_TIMEOUTS];	/* what it counts from */
	struct server *server;
	enum heard heard;		/* in this round */
	bool open;
	bool midline;
};

struct server {
	const struct options *opt;
	struct stats st;

	struct twheel *wheel;
	struct twheel_stats lib;	/* before the end, where all is stopped */
	struct twheel_timer second;	/* prints a line */
	int epoll, listener;
	struct conn *conn;		/* by descriptor */
	unsigned int nr_conn, nr_open;

	/* The processes of clients, and what they have seen. */
	const int *control;
	unsigned int nr_control, nr_ready, nr_reports;
	struct client_report seen;
};

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* idle-main.c: a sentence, and for die() what errno says; then exit(1). */
noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
noreturn void die_plainly(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* idle-server.c */
int server_run(struct server *s);

/* idle-clients.c */
noreturn void clients_run(const struct options *opt, unsigned int process,
			  unsigned int nr, uint16_t port, int control);

/* idle-report.c */
uint64_t server_cpu_ns(void);
uint64_t kthreads_cpu_ns(void);
void report_wheel(const struct server *s);
void report_progress(const struct server *s);
void report_fdinfo(const struct server *s);
void report_table(struct server *s);
int report_verdict(const struct server *s);

#endif /* IDLE_SERVER_H */
