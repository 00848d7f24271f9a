// SPDX-License-Identifier: 0BSD
/*
 * idle-local.c - the server in one process, with the wheel of <twheel.h>
 *
 * Both timeouts are timers in struct local_conn.  A round of the loop:
 *
 *  1. twheel_next() says until when epoll_pwait2() may sleep.
 *  2. Sockets are read.
 *  3. The clock is read, once for all of them.  Since that comes after the reads, no timeout is
 *     early, however long they took.
 *  4. Timers are started, restarted and stopped, according to the bytes.
 *  5. Timers that have expired call on_idle() and on_request().  Since that comes after 4, no
 *     client that has just talked is among them.
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <twheel.h>
#include <unistd.h>

struct local_conn {
	struct twheel_timer timer[NR_TIMEOUTS];
	int fd;			/* -1 if it is closed */
	enum heard heard;	/* in this round */
	bool midline;
};

struct local {
	struct server *s;
	struct twheel *wheel;
	struct twheel_timer second;	/* prints a line */
	uint64_t seconds;
	struct local_conn *conn;	/* in the order of arrival */
};

static void timeout_start(struct local *l, struct local_conn *c, enum timeout t)
{
	struct stats *st = &l->s->st;

	if (!twheel_timer_pending(&c->timer[t]))
		st->own.armed++;
	else if (t == IDLE)
		st->refreshed++;
	else
		st->own.rearmed++;
	twheel_start(l->wheel, &c->timer[t], l->s->opt->timeout_ns[t]);
}

static void timeout_stop(struct local *l, struct local_conn *c, enum timeout t)
{
	l->s->st.own.cancelled += twheel_stop(l->wheel, &c->timer[t]);
}

/* close() also takes it out of epoll. */
static void conn_close(struct local *l, struct local_conn *c)
{
	timeout_stop(l, c, IDLE);
	timeout_stop(l, c, REQUEST);
	close(c->fd);
	c->fd = -1;
	l->s->nr_open--;
}

/* Start, restart or stop the timeouts of a connection, according to the bytes. */
static void conn_heard(struct local *l, struct local_conn *c, enum heard heard)
{
	switch (heard) {
	case NOTHING:
		return;
	case THE_END:
		conn_close(l, c);
		l->s->st.dropped++;
		return;
	default:
		timeout_start(l, c, IDLE);
		if (!c->midline)
			timeout_stop(l, c, REQUEST);
		else if (heard == A_LINE || !twheel_timer_pending(&c->timer[REQUEST]))
			timeout_start(l, c, REQUEST);
	}
}

/* The bytes came in time, but were read late: the connection goes on. */
static void conn_saved(struct local *l, struct local_conn *c, enum heard heard)
{
	l->s->st.saved += heard != THE_END;
	/* The time of this round is from before the bytes. */
	twheel_update(l->wheel);
	conn_heard(l, c, heard);
}

/* If the server was slow, bytes that came in time may still wait in the socket. */
static void on_idle(struct twheel *w, struct twheel_timer *t)
{
	struct local_conn *c = twheel_container_of(t, struct local_conn, timer[IDLE]);
	struct local *l = twheel_data(w);
	enum heard heard = line_read(c->fd, &c->midline);

	l->s->st.own.expired++;
	if (heard != NOTHING) {
		conn_saved(l, c, heard);
		return;
	}
	conn_close(l, c);
	l->s->st.closed[IDLE]++;
}

static void on_request(struct twheel *w, struct twheel_timer *t)
{
	struct local_conn *c = twheel_container_of(t, struct local_conn, timer[REQUEST]);
	struct local *l = twheel_data(w);
	enum heard heard = line_read(c->fd, &c->midline);

	l->s->st.own.expired++;
	if (heard >= A_LINE) {
		conn_saved(l, c, heard);
		return;
	}
	line_send(c->fd, "timed out\n", 10);
	conn_close(l, c);
	l->s->st.closed[REQUEST]++;
}

/* It is periodic. */
static void on_second(struct twheel *w, struct twheel_timer *t)
{
	struct local *l = twheel_data(w);

	(void)t;
	l->seconds++;
	report_progress(l->s);
}

static void conns_accept(struct local *l)
{
	struct server *s = l->s;

	for (unsigned int i = 0; i < EVENTS && s->st.accepted < s->opt->connections; i++) {
		struct local_conn *c = &l->conn[s->st.accepted];

		c->fd = server_accept(s);
		if (c->fd < 0)
			return;
		twheel_timer_init(&c->timer[IDLE], on_idle);
		twheel_timer_init(&c->timer[REQUEST], on_request);
		epoll_add(s->epoll, c->fd, CONN, s->st.accepted);
		timeout_start(l, c, IDLE);
		s->st.accepted++;
		s->nr_open++;
	}
}

static int sleep_until(int epoll, struct epoll_event *event, uint64_t wake_ns)
{
	uint64_t now = now_ns(), ns = wake_ns > now ? wake_ns - now : 0;
	struct timespec left = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };
	int n = epoll_pwait2(epoll, event, EVENTS, &left, NULL);

	if (n < 0 && errno != EINTR)
		die("cannot wait for events");
	return n;
}

static void local_round(struct local *l)
{
	struct epoll_event event[EVENTS];
	bool newcomers = false;
	int i, n;

	n = sleep_until(l->s->epoll, event, twheel_next(l->wheel));
	for (i = 0; i < n; i++) {
		struct local_conn *c = &l->conn[(uint32_t)event[i].data.u64];

		switch (event[i].data.u64 >> 32) {
		case CONN:
			c->heard = line_read(c->fd, &c->midline);
			break;
		case LISTENER:
			newcomers = true;
			break;
		case CLIENTS:
			server_clients_readable(l->s, (uint32_t)event[i].data.u64);
		}
	}
	twheel_update(l->wheel);
	for (i = 0; i < n; i++) {
		struct local_conn *c = &l->conn[(uint32_t)event[i].data.u64];

		if (event[i].data.u64 >> 32 == CONN)
			conn_heard(l, c, c->heard);
	}
	twheel_dispatch(l->wheel, EVENTS);
	if (newcomers)
		conns_accept(l);
}

static void local_open(struct local *l)
{
	struct server *s = l->s;
	struct twheel_options options = {
		.size = sizeof(options),
		.tick_ns = s->opt->tick_ns,
		.data = l,
	};
	int ret = twheel_open(&l->wheel, &options);

	if (ret)
		die_plainly("cannot open a wheel: %s", strerror(-ret));
	l->conn = calloc(s->opt->connections, sizeof(l->conn[0]));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!l->conn || s->epoll < 0)
		die("the server cannot begin");
	epoll_add(s->epoll, s->listener, LISTENER, 0);
	for (unsigned int i = 0; i < s->nr_control; i++)
		epoll_add(s->epoll, s->control[i], CLIENTS, i);
	twheel_timer_init(&l->second, on_second);
	twheel_start_every(l->wheel, &l->second, TWHEEL_SEC);
}

/* At the end, each open connection has its idle timeout; stop all timers. */
static void local_close(struct local *l)
{
	struct stats *st = &l->s->st;

	twheel_stop(l->wheel, &l->second);
	st->open_at_end = l->s->nr_open;
	for (unsigned int i = 0; i < st->accepted; i++)
		if (l->conn[i].fd >= 0)
			st->lost += !twheel_timer_pending(&l->conn[i].timer[IDLE]);
	st->own.left = twheel_stop_all(l->wheel, NULL, NULL);
}

static void report_lateness(const struct twheel_stats *stats)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < TWHEEL_LATE_BUCKETS && sum < stats->called * 99 / 100; i++)
		sum += stats->late[i];
	printf("  lateness     99 of 100 callbacks less than %.1f ms after their deadlines\n",
	       i ? (double)(1ULL << (i - 1)) / NSEC_PER_MSEC : 0);
	printf("  the wheel    %" PRIu64 " callbacks in %" PRIu64 " dispatches, %" PRIu64
	       " of them in vain; no descriptor, %" PRIu64 " settings of a timer\n",
	       stats->called, stats->dispatches, stats->vain, stats->settings);
}

int local_run(struct server *s)
{
	struct local l = { .s = s };
	struct twheel_stats stats;
	struct rusage usage;
	bool right = true;

	printf("The wheel is in this process.\n");
	local_open(&l);
	s->st.begin_ns = now_ns();
	while (s->nr_reports < s->nr_control)
		local_round(&l);
	s->st.end_ns = now_ns();
	getrusage(RUSAGE_SELF, &usage);
	s->st.cpu_ns = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
		       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	twheel_get_stats(l.wheel, &stats, sizeof(stats));
	local_close(&l);
	report_server(s);
	report_lateness(&stats);
	printf("\n");
	right &= report_equal("callbacks", stats.called, s->st.own.expired + l.seconds);
	right &= report_equal("timers that pend", stats.pending, s->st.own.left + 1);
	right &= report_verdict(s);
	twheel_close(l.wheel);
	return !right;
}
