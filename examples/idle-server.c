// SPDX-License-Identifier: 0BSD
/*
 * idle-server.c - a TCP server whose timeouts are all behind one descriptor
 *
 * A single-threaded epoll loop.  It answers each line with a line, and each
 * connection has
 *
 *  - an idle timeout, from its last byte: restarted by traffic;
 *  - while a line is incomplete, a request timeout from when it was begun:
 *    whoever trickles a byte a second is not idle, but is not done either.
 *
 * Both are timers in struct conn.  A round of the loop:
 *
 *  1. What was started meanwhile is flushed, and epoll_wait() sleeps.
 *  2. Sockets are read.
 *  3. The clock is read, once for all of them.  That it is after the reads makes
 *     sure that no timeout is early, however long they took.
 *  4. Timers are started, restarted and stopped, as it follows from what was read.
 *  5. Timers that have expired call on_idle() and on_request().  Since that comes
 *     after 4, a client that has just talked is not among them.
 *
 * epoll names a connection once a round, so it is refreshed once a round,
 * however much it sends.
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int conn_fd(const struct conn *c)
{
	return c - c->server->conn;
}

/* Begin to count, or begin anew. */
static void timeout_start(struct conn *c, enum timeout t)
{
	struct server *s = c->server;

	if (twheel_timer_pending(&c->timer[t]))
		s->st.restarted++;
	else
		s->st.started++;
	c->since_ns[t] = twheel_now(s->wheel);
	twheel_start(s->wheel, &c->timer[t], s->opt->timeout_ns[t]);
}

static void timeout_stop(struct conn *c, enum timeout t)
{
	c->server->st.stopped += twheel_stop(c->server->wheel, &c->timer[t]);
}

/* close() also takes it out of epoll. */
static void conn_close(struct conn *c)
{
	timeout_stop(c, IDLE);
	timeout_stop(c, REQUEST);
	c->open = false;
	close(conn_fd(c));
	c->server->nr_open--;
}

/* Who does not take its answers is not worth a buffer here. */
static bool conn_answer(const struct conn *c, const char *answer, size_t len)
{
	return send(conn_fd(c), answer, len,
		    MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/*
 * Read what is there, but no more than a buffer: others want to be served, and
 * epoll will say that there is more.  Nothing but the ends of lines matters
 * here, so a part of one need not be kept.
 */
static enum heard conn_read(struct conn *c)
{
	char buf[4096], answer[3 * sizeof(buf)];
	size_t len = 0;
	ssize_t n, i;

	n = recv(conn_fd(c), buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NOTHING;
	if (n <= 0)
		return THE_END;
	for (i = 0; i < n; i++) {
		if (buf[i] != '\n')
			continue;
		memcpy(answer + len, "ok\n", 3);
		len += 3;
	}
	c->midline = buf[n - 1] != '\n';
	if (!len)
		return SOMETHING;
	return conn_answer(c, answer, len) ? A_LINE : THE_END;
}

/* What it said decides which timeouts it has. */
static void conn_heard(struct conn *c, enum heard heard)
{
	switch (heard) {
	case NOTHING:
		return;
	case THE_END:
		conn_close(c);
		c->server->st.dropped++;
		return;
	default:
		timeout_start(c, IDLE);
		if (!c->midline)
			timeout_stop(c, REQUEST);
		else if (heard == A_LINE ||
			 !twheel_timer_pending(&c->timer[REQUEST]))
			timeout_start(c, REQUEST);
	}
}

static void late_note(struct stats *st, uint64_t late_ns)
{
	if (st->nr_late == st->room_late) {
		st->room_late = st->room_late ? 2 * st->room_late : 1024;
		st->late_ns = realloc(st->late_ns, st->room_late *
						   sizeof(st->late_ns[0]));
		if (!st->late_ns)
			die("no memory for the statistics");
	}
	st->late_ns[st->nr_late++] = late_ns;
}

/* A timeout has expired, or was refused; false when the connection is closed by that. */
static bool timeout_ended(struct conn *c, enum timeout t, int status)
{
	struct stats *st = &c->server->st;
	uint64_t now = twheel_now(c->server->wheel);
	uint64_t due_ns = c->since_ns[t] + c->server->opt->timeout_ns[t];

	/* A connection that nothing would ever close is not kept. */
	if (status) {
		st->refused++;
		st->refused_errno = -status;
		conn_close(c);
		return false;
	}
	st->expired[t]++;
	if (now < due_ns)
		st->early++;
	else
		late_note(st, now - due_ns);
	return true;
}

/* Its bytes, read late, were in time: the connection goes on. */
static void conn_saved(struct conn *c, enum heard heard)
{
	c->server->st.saved += heard != THE_END;
	/* The time of this round was read before them. */
	twheel_update(c->server->wheel);
	conn_heard(c, heard);
}

/*
 * In these two, look once more: what came in time may still wait in the socket,
 * when it was we who were slow.
 */
static void on_idle(struct twheel *w, struct twheel_timer *t, int status)
{
	struct conn *c = twheel_container_of(t, struct conn, timer[IDLE]);
	enum heard heard;

	(void)w;
	if (!timeout_ended(c, IDLE, status))
		return;
	heard = conn_read(c);
	if (heard != NOTHING) {
		conn_saved(c, heard);
		return;
	}
	conn_close(c);
	c->server->st.closed[IDLE]++;
}

static void on_request(struct twheel *w, struct twheel_timer *t, int status)
{
	struct conn *c = twheel_container_of(t, struct conn, timer[REQUEST]);
	enum heard heard;

	(void)w;
	if (!timeout_ended(c, REQUEST, status))
		return;
	heard = conn_read(c);
	if (heard >= A_LINE) {
		conn_saved(c, heard);
		return;
	}
	conn_answer(c, "timed out\n", 10);
	conn_close(c);
	c->server->st.closed[REQUEST]++;
}

/* It is periodic. */
static void on_second(struct twheel *w, struct twheel_timer *t, int status)
{
	struct server *s = twheel_container_of(t, struct server, second);

	(void)w;
	if (status)
		die_plainly("the timer of the report was refused: %s",
			    strerror(-status));
	s->st.seconds++;
	report_progress(s);
}

static void epoll_add(const struct server *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event))
		die("a descriptor cannot be added to epoll");
}

static void conns_accept(struct server *s)
{
	int i, fd;

	for (i = 0; i < EVENTS; i++) {
		fd = accept4(s->listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EAGAIN || errno == EINTR ||
			       errno == ECONNABORTED))
			return;
		if (fd < 0 || (unsigned int)fd >= s->nr_conn)
			die("cannot accept a connection");
		epoll_add(s, fd);
		s->conn[fd] = (struct conn) {
			.timer[IDLE] = TWHEEL_TIMER_INIT(on_idle),
			.timer[REQUEST] = TWHEEL_TIMER_INIT(on_request),
			.server = s,
			.open = true,
		};
		timeout_start(&s->conn[fd], IDLE);
		s->st.accepted++;
		s->nr_open++;
	}
}

/* The processes of clients */

static bool is_control(const struct server *s, int fd)
{
	unsigned int i;

	for (i = 0; i < s->nr_control; i++)
		if (s->control[i] == fd)
			return true;
	return false;
}

static void controls_stop(const struct server *s)
{
	unsigned int i;

	for (i = 0; i < s->nr_control; i++)
		send(s->control[i], "", 1, MSG_NOSIGNAL);
}

static void report_add(struct server *s, const struct client_report *report)
{
	struct client_report *sum = &s->seen;

	sum->connected += report->connected;
	sum->closed[IDLE] += report->closed[IDLE];
	sum->closed[REQUEST] += report->closed[REQUEST];
	sum->starved += report->starved;
	sum->early += report->early;
	sum->late += report->late;
	sum->missed += report->missed;
	sum->unanswered += report->unanswered;
	s->nr_reports++;
}

/* A byte from each: it has seen all.  Then we ask for the reports. */
static void control_readable(struct server *s, int fd)
{
	struct client_report report;
	ssize_t n = recv(fd, &report, sizeof(report), 0);

	if (n == sizeof(report))
		report_add(s, &report);
	else if (n != 1)
		die_plainly("a process of clients has ended too soon");
	else if (++s->nr_ready == s->nr_control)
		controls_stop(s);
}

/* The loop */

static void server_round(struct server *s)
{
	bool expirations = false, newcomers = false;
	struct epoll_event event[EVENTS];
	int i, n;

	/* A timer that is refused closes its connection. */
	while (twheel_flush(s->wheel))
		;
	n = epoll_wait(s->epoll, event, EVENTS, -1);
	if (n < 0 && errno != EINTR)
		die("cannot wait for events");
	for (i = 0; i < n; i++) {
		int fd = event[i].data.fd;
		struct conn *c = &s->conn[fd];

		if (c->open)
			c->heard = conn_read(c);
		else if (fd == twheel_fd(s->wheel))
			expirations = true;
		else if (fd == s->listener)
			newcomers = true;
		else if (is_control(s, fd))
			control_readable(s, fd);
	}
	twheel_update(s->wheel);
	for (i = 0; i < n; i++)
		if (s->conn[event[i].data.fd].open)
			conn_heard(&s->conn[event[i].data.fd],
				   s->conn[event[i].data.fd].heard);
	if (expirations && twheel_dispatch(s->wheel, EVENTS) < 0)
		die_plainly("the wheel cannot be read");
	/* At last, since they get the descriptors of those that were closed. */
	if (newcomers)
		conns_accept(s);
}

/* The end: all that is left is stopped, and none of it may be missing. */
static void timeouts_stop(struct server *s)
{
	unsigned int i;

	for (i = 0; i < s->nr_conn; i++) {
		struct conn *c = &s->conn[i];

		if (!c->open)
			continue;
		s->st.lost += !twheel_timer_pending(&c->timer[IDLE]);
		timeout_stop(c, IDLE);
		timeout_stop(c, REQUEST);
	}
	twheel_stop(s->wheel, &s->second);
	twheel_flush(s->wheel);
}

/**
 * server_run() - serve until the clients have seen all
 * @s: wheel, listener and control are open, the rest is zero; all descriptors
 *	will be below nr_conn
 *
 * Return: the exit status.
 */
int server_run(struct server *s)
{
	uint64_t kthreads_before_ns = kthreads_cpu_ns();
	unsigned int i;

	s->conn = calloc(s->nr_conn, sizeof(s->conn[0]));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!s->conn || s->epoll < 0)
		die("the server cannot begin");
	epoll_add(s, twheel_fd(s->wheel));
	epoll_add(s, s->listener);
	for (i = 0; i < s->nr_control; i++)
		epoll_add(s, s->control[i]);

	s->st.begin_ns = now_ns();
	twheel_timer_init(&s->second, on_second);
	twheel_start_every(s->wheel, &s->second, TWHEEL_SEC);
	while (s->nr_reports < s->nr_control)
		server_round(s);
	s->st.end_ns = now_ns();
	s->st.server_cpu_ns = server_cpu_ns();
	s->st.kthreads_cpu_ns = kthreads_cpu_ns() - kthreads_before_ns;
	s->st.open_at_end = s->nr_open;

	twheel_stats(s->wheel, &s->lib, sizeof(s->lib));
	report_fdinfo(s);
	timeouts_stop(s);
	report_table(s);
	return report_verdict(s);
}
