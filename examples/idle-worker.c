// SPDX-License-Identifier: 0BSD
/*
 * idle-worker.c - a worker of the shared server
 *
 * It reads and answers its connections.  Each packet moves the idle timeout of its connection
 * by a store into the refresh table.  Request timeouts are collected: one call arms those of
 * a round, and another one cancels them.
 *
 * It never reads the wheel, and never closes a connection because of a timeout: the keeper
 * does, by shutdown(), and the worker finds the end of the stream.
 */
#define _GNU_SOURCE
#include "idle-shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct worker {
	const struct common *common;
	struct ledger *ledger;
	int *fd;		/* of each connection */
	int epoll, control;
};

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

/* If the worker has died, its successor gets all its connections. */
void conn_hand_over(int control, uint32_t number, int fd)
{
	struct handover handover = { number };
	struct iovec iov = { &handover, sizeof(handover) };
	union control c = {
		.header = {
			.cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		},
	};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &c,
		.msg_controllen = sizeof(c),
	};

	memcpy(CMSG_DATA(&c.header), &fd, sizeof(fd));
	if (sendmsg(control, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		die("a connection cannot be handed over");
}

/* Returns whether there was one.  If the keeper has closed its end, the worker ends. */
static bool conn_take(struct worker *w)
{
	struct handover handover;
	struct iovec iov = { &handover, sizeof(handover) };
	union control c;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &c,
		.msg_controllen = sizeof(c),
	};
	ssize_t n = recvmsg(w->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (!n)
		exit(0);
	if (n != sizeof(handover) || message.msg_flags & MSG_CTRUNC)
		die("a connection cannot be taken over");
	memcpy(&w->fd[handover.number], CMSG_DATA(&c.header), sizeof(int));
	epoll_add(w->epoll, w->fd[handover.number], CONN, handover.number);
	return true;
}

/* A line is begun, goes on, or is complete. */
static void conn_line(struct worker *w, uint32_t number, enum heard heard, bool midline,
		      uint64_t now)
{
	struct conn *c = &w->common->shared->conn[number];
	uint64_t key = conn_key(number, REQUEST);

	if (midline && (heard == A_LINE || !c->line_ns)) {
		STORE(c->line_ns, now);
		ledger_arm(w->ledger, key, now + w->common->s->opt->timeout_ns[REQUEST]);
	} else if (!midline && c->line_ns) {
		STORE(c->line_ns, 0);
		ledger_cancel(w->ledger, key);
	}
}

/* Read the clock after the bytes, so that no timeout is early. */
static void conn_serve(struct worker *w, uint32_t number)
{
	const struct common *common = w->common;
	struct conn *c = &common->shared->conn[number];
	bool midline = c->line_ns;
	enum heard heard;
	uint64_t now;

	STORE(c->busy, 1);
	heard = line_read(w->fd[number], &midline);
	now = now_ns();
	if (heard == THE_END) {
		/* close() alone would not do so, since the keeper has it open. */
		epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->fd[number], NULL);
		close(w->fd[number]);
		/* If the client has left, the keeper finds that out by an event. */
		if (LOAD(c->open))
			ledger_arm(w->ledger, conn_key(number, IDLE), 0);
	} else if (heard != NOTHING) {
		uint64_t idle_ns = now + common->s->opt->timeout_ns[IDLE];

		STORE(c->heard_ns, now);
		twheel_refresh(common->table, LOAD(c->id),
			       twheel_refresh_deadline(idle_ns, common->shift));
		w->ledger->refreshed++;
		conn_line(w, number, heard, midline, now);
	}
	STORE(c->busy, 0);
}

static void worker_round(struct worker *w)
{
	struct epoll_event event[EVENTS];
	int i, n = epoll_wait(w->epoll, event, EVENTS, -1);

	if (n < 0 && errno != EINTR)
		die("a worker cannot wait for events");
	w->ledger->nr_arm = 0;
	w->ledger->nr_cancel = 0;
	for (i = 0; i < n; i++)
		if (event[i].data.u64 >> 32 == CONN)
			conn_serve(w, (uint32_t)event[i].data.u64);
	ledger_submit(w->ledger, w->common->wheel);
	/* The first round after these signs may find more to read. */
	for (i = 0; i < n; i++)
		if (event[i].data.u64 >> 32 == WORKER)
			while (conn_take(w))
				;
}

/* Of all inherited descriptors, keep only the wheel and the socket to the keeper. */
static void descriptors_close(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

/**
 * worker_run() - be a worker
 * @common: as it was at the fork
 * @ledger: the worker's own, closed
 * @control: the socket to the keeper
 */
noreturn void worker_run(const struct common *common, struct ledger *ledger, int control)
{
	struct worker w = { .common = common, .ledger = ledger, .control = control };

	descriptors_close(twheel_device_fd(common->wheel), control);
	w.fd = calloc(common->s->opt->connections, sizeof(w.fd[0]));
	w.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!w.fd || w.epoll < 0)
		die("a worker cannot begin");
	epoll_add(w.epoll, control, WORKER, 0);
	for (;;)
		worker_round(&w);
}
