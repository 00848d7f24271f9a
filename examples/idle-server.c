// SPDX-License-Identifier: 0BSD
/*
 * idle-server.c - a TCP server: the part that is the same for both wheels
 *
 * It answers each line with a line, and each connection has
 *
 *  - an idle timeout, from its last byte: traffic moves it;
 *  - while a line is incomplete, a request timeout, from the beginning of the line: a client that
 *    trickles a byte a second is not idle, but is not done either.
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void epoll_add(int epoll, int fd, enum source source, uint32_t index)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)source << 32 | index,
	};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		die("a descriptor cannot be added to epoll");
}

/* If a client does not take its answers, close the connection: buffer nothing for it. */
bool line_send(int fd, const char *line, size_t len)
{
	return send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/**
 * line_read() - read from a connection, and answer
 * @fd: the connection
 * @midline: out: whether a line is incomplete
 *
 * It reads no more than a buffer: others want to be served, and if there is more, epoll says so.
 * Only the ends of lines matter here, so a part of a line need not be kept.
 *
 * Return: the most important thing that was found.
 */
enum heard line_read(int fd, bool *midline)
{
	char buf[4096], answer[3 * sizeof(buf)];
	size_t len = 0;
	ssize_t n, i;

	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
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
	*midline = buf[n - 1] != '\n';
	if (!len)
		return SOMETHING;
	return line_send(fd, answer, len) ? A_LINE : THE_END;
}

/* Accept the next connection; -1 if there is none. */
int server_accept(const struct server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		die("cannot accept a connection");
	return fd;
}

void server_late(struct server *s, uint64_t late_ns)
{
	struct stats *st = &s->st;

	if (st->nr_late == st->max_late) {
		st->max_late = st->max_late ? 2 * st->max_late : 1024;
		st->late_ns = realloc(st->late_ns, st->max_late * sizeof(st->late_ns[0]));
		if (!st->late_ns)
			die("no memory for the statistics");
	}
	st->late_ns[st->nr_late++] = late_ns;
}

/* The processes of clients */

static void clients_stop(const struct server *s)
{
	for (unsigned int i = 0; i < s->nr_control; i++)
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

/* A byte from each process says that it has seen all.  Then they are asked for their reports. */
void server_clients_readable(struct server *s, unsigned int process)
{
	struct client_report report;
	ssize_t n = recv(s->control[process], &report, sizeof(report), 0);

	if (n == sizeof(report))
		report_add(s, &report);
	else if (n != 1)
		die_plainly("a process of clients has ended too soon");
	else if (++s->nr_ready == s->nr_control)
		clients_stop(s);
}
