// SPDX-License-Identifier: 0BSD
/*
 * idle-server.c - a TCP server whose timeouts are all behind one descriptor
 *
 * A single-threaded epoll loop.  It answers each line with a line, and each
 * connection has
 *
 *  - an idle timeout, from its last byte: refreshed by traffic;
 *  - while a line is incomplete, a request timeout from when it was begun:
 *    whoever trickles a byte a second is not idle, but is not done either.
 *
 * A round of the loop, with the calls to the wheel that it takes:
 *
 *  1. Sockets are read.  What follows for timeouts is only noted.
 *  2. The clock is looked at, once for all of them.  That it is after the
 *     reads makes sure that no timeout is early, however long they took.
 *  3. One REARM, one ARM and one CANCEL do all that was noted.
 *  4. Expirations are read.  That comes after the REARM, so that who has just
 *     talked is not among them: REARM revokes an event that was not read yet.
 *  5. As 2 and 3 for what followed from 4.
 *  6. What was closed is closed.  Its descriptors, by which timeouts are known,
 *     are not given out again before the timeouts have been cancelled.
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

/* What was found in a socket. */
enum heard { NOTHING, SOMETHING, A_LINE, THE_END };

static int conn_fd(const struct server *s, const struct conn *c)
{
	return c - s->conn;
}

/* It is not served any more; its descriptor is closed at the round's end. */
void conn_close(struct server *s, struct conn *c)
{
	if (!c->open)
		return;
	timeout_stop(s, c, IDLE);
	timeout_stop(s, c, REQUEST);
	c->open = false;
	s->closing[s->nr_closing++] = conn_fd(s, c);
}

static void conns_close(struct server *s)
{
	/* That also takes them out of epoll. */
	while (s->nr_closing) {
		close(s->closing[--s->nr_closing]);
		s->nr_open--;
	}
}

/* Who does not take its answers is not worth a buffer here. */
static bool conn_answer(const struct server *s, const struct conn *c,
			const char *answer, size_t len)
{
	return send(conn_fd(s, c), answer, len,
		    MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/*
 * Read what is there, but no more than a buffer: others want to be served, and
 * epoll will say that there is more.  Nothing but the ends of lines matters
 * here, so a part of one need not be kept.
 */
static enum heard conn_read(const struct server *s, struct conn *c)
{
	char buf[4096], answer[3 * sizeof(buf)];
	size_t len = 0;
	ssize_t n, i;

	n = recv(conn_fd(s, c), buf, sizeof(buf), MSG_DONTWAIT);
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
	return conn_answer(s, c, answer, len) ? A_LINE : THE_END;
}

/* What it said decides which timeouts it has. */
static void conn_heard(struct server *s, struct conn *c, enum heard heard)
{
	switch (heard) {
	case NOTHING:
		return;
	case THE_END:
		conn_close(s, c);
		s->st.dropped++;
		return;
	default:
		timeout_start(s, c, IDLE);
		if (!c->midline)
			timeout_stop(s, c, REQUEST);
		else if (heard == A_LINE || !c->id[REQUEST])
			timeout_start(s, c, REQUEST);
	}
}

/*
 * A deadline has passed.  Look once more: what came in time may still wait in
 * the socket, when it was we who were slow.
 */
static void conn_expired(struct server *s, struct conn *c)
{
	enum heard heard = conn_read(s, c);
	unsigned int expired = c->expired;

	c->expired = 0;
	if (expired & 1U << REQUEST && heard < A_LINE) {
		conn_answer(s, c, "timed out\n", 10);
		conn_close(s, c);
		s->st.closed[REQUEST]++;
	} else if (expired & 1U << IDLE && heard == NOTHING) {
		conn_close(s, c);
		s->st.closed[IDLE]++;
	} else {
		s->st.saved += heard != THE_END;
		conn_heard(s, c, heard);
	}
}

static void conns_expire(struct server *s)
{
	struct conn *conn[EVENTS];
	unsigned int i, nr = timeouts_expired(s, conn);

	for (i = 0; i < nr; i++)
		if (conn[i]->expired)
			conn_expired(s, conn[i]);
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
		s->conn[fd] = (struct conn) { .open = true };
		timeout_start(s, &s->conn[fd], IDLE);
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

	n = epoll_wait(s->epoll, event, EVENTS, -1);
	if (n < 0 && errno != EINTR)
		die("cannot wait for events");
	for (i = 0; i < n; i++) {
		int fd = event[i].data.fd;
		struct conn *c = &s->conn[fd];

		if (c->open)
			conn_heard(s, c, conn_read(s, c));
		else if (fd == s->wheel)
			expirations = true;
		else if (fd == s->listener)
			newcomers = true;
		else if (is_control(s, fd))
			control_readable(s, fd);
	}
	if (newcomers)
		conns_accept(s);
	timeouts_flush(s);
	if (expirations) {
		conns_expire(s);
		timeouts_flush(s);
	}
	conns_close(s);
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
	epoll_add(s, s->wheel);
	epoll_add(s, s->listener);
	for (i = 0; i < s->nr_control; i++)
		epoll_add(s, s->control[i]);

	s->st.begin_ns = now_ns();
	progress_start(s);
	while (s->nr_reports < s->nr_control)
		server_round(s);
	s->st.end_ns = now_ns();
	s->st.server_cpu_ns = server_cpu_ns();
	s->st.kthreads_cpu_ns = kthreads_cpu_ns() - kthreads_before_ns;
	s->st.open_at_end = s->nr_open;

	report_fdinfo(s->wheel);
	timeouts_drain(s);
	report_table(s);
	return report_verdict(s);
}
