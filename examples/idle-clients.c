// SPDX-License-Identifier: 0BSD
/*
 * idle-clients.c - the clients of the connections, in a process of their own
 *
 * Every client knows from the clock when it spoke last, and checks the server: each line gets an
 * answer, and if the client falls silent or does not end a line, the connection is closed on time.
 * If an answer does not come before its next turn, the client asks again: a worker of the server
 * may die before it answers.  Nothing here uses a wheel.  The clock is read before an action, and
 * after a close: if a close is early by these times, it is early.
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A client has its turn in one slice of each period, half the idle timeout. */
#define SLICES			64
#define PERIODS_PER_TIMEOUT	2

/* The second part of a request follows the first by this many slices. */
#define SLICES_OF_REQUEST	(SLICES / 8)

/* How many connections may wait for their first answer: no more than a listen queue holds. */
#define MAX_GREETINGS		256

enum role {
	TALKS,		/* talks all the time, and is never closed */
	REQUESTS,	/* talks in two parts, and is never closed */
	FALLS_SILENT,	/* is silent from its time on */
	STALLS,		/* as REQUESTS, but does not end one request */
};

/* The roles of ten clients. */
static const enum role roles[] = {
	TALKS, TALKS, FALLS_SILENT, TALKS, REQUESTS,
	TALKS, TALKS, FALLS_SILENT, TALKS, STALLS,
};

struct client {
	int fd;			/* -1 if it is closed */
	enum role role;
	bool greeted;		/* has got an answer */
	bool owed;		/* waits for one */
	bool half;		/* has begun a line */
	bool turned;		/* is silent or stalled by now */
	uint64_t turn_ns;	/* when it turns, after the start */
	uint64_t spoke_ns;	/* sent its last byte */
	uint64_t began_ns;	/* began its last line */
	uint64_t gap_ns;	/* longest silence since the last answer */
};

struct clients {
	const struct options *opt;
	struct client *client;
	unsigned int nr, nr_connected;
	unsigned int nr_greetings;	/* connected, not greeted */
	unsigned int nr_to_close;	/* that the server has to close, and that are still open */
	struct sockaddr_in from, to;
	int epoll;
	int control;
	uint64_t begin_ns;	/* of this process */
	uint64_t start_ns;	/* when all were connected, or 0 */
	bool ready;		/* the server knows that */
	struct client_report report;
};

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* If we were too slow to talk in time, the close was due. */
static bool client_starved(const struct clients *cl, const struct client *c,
			   uint64_t now)
{
	uint64_t line_ns = (c->half ? now : c->spoke_ns) - c->began_ns;
	uint64_t gap_ns = c->gap_ns;

	/* While it waits for its answer, its silence does not count. */
	if (!c->owed)
		gap_ns = longer(gap_ns, now - c->spoke_ns);
	return gap_ns >= cl->opt->timeout_ns[IDLE] ||
	       line_ns >= cl->opt->timeout_ns[REQUEST];
}

/* Count whether the server was right to close a client now. */
static void client_judge(struct clients *cl, const struct client *c,
			 uint64_t now)
{
	enum timeout t = c->role == STALLS ? REQUEST : IDLE;
	uint64_t since_ns = now - (t == IDLE ? c->spoke_ns : c->began_ns);
	uint64_t timeout_ns = cl->opt->timeout_ns[t];

	if (c->turned && since_ns > timeout_ns + cl->opt->tick_ns + GRACE_NS)
		cl->report.late++;
	else if (c->turned && since_ns >= timeout_ns)
		cl->report.closed[t]++;
	else if (client_starved(cl, c, now))
		cl->report.starved++;
	else if (c->owed && since_ns >= timeout_ns)
		cl->report.unanswered++;
	else
		cl->report.early++;
}

static void client_gone(struct clients *cl, struct client *c)
{
	uint64_t now = now_ns();

	client_judge(cl, c, now);
	if (!c->greeted)
		cl->nr_greetings--;
	if (c->role == FALLS_SILENT || c->role == STALLS)
		cl->nr_to_close--;
	close(c->fd);
	c->fd = -1;
}

static void client_say(struct clients *cl, struct client *c, const char *what)
{
	size_t len = strlen(what);
	uint64_t now = now_ns();

	if (c->spoke_ns)
		c->gap_ns = longer(c->gap_ns, now - c->spoke_ns);
	c->spoke_ns = now;
	if (!c->half)
		c->began_ns = c->spoke_ns;
	c->half = what[len - 1] != '\n';
	c->owed |= !c->half;
	/* A line always fits into the socket's buffer. */
	if (send(c->fd, what, len, MSG_NOSIGNAL) < 0)
		client_gone(cl, c);
}

static void client_turn(struct clients *cl, struct client *c)
{
	bool turns = cl->start_ns && now_ns() >= cl->start_ns + c->turn_ns;

	if (c->fd < 0)
		return;
	switch (c->role) {
	case FALLS_SILENT:
		c->turned = turns;
		if (c->turned)
			break;
		__attribute__((fallthrough));
	case TALKS:
		client_say(cl, c, "ping\n");
		break;
	case STALLS:
		/* From now on it sends a byte a turn: it is not idle, but does not end its line. */
		if (!c->half)
			c->turned = turns;
		__attribute__((fallthrough));
	case REQUESTS:
		client_say(cl, c, !c->half ? "GET /" : c->turned ? "." : "\n");
		break;
	}
}

static void client_read(struct clients *cl, struct client *c)
{
	char buf[256];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_gone(cl, c);
		return;
	}
	/* If this is no answer but a farewell, the close comes next. */
	if (buf[0] != 'o')
		return;
	c->owed = false;
	c->gap_ns = 0;
	if (!c->greeted) {
		c->greeted = true;
		cl->nr_greetings--;
	}
}

static void client_connect(struct clients *cl, struct client *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	int one = 1, tries = 3;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("a client cannot have a socket");
	/* Let connect() choose the port: it finds a free one faster. */
	setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
		   sizeof(one));
	/* If nobody answers, find out in seconds and not in minutes. */
	setsockopt(c->fd, IPPROTO_TCP, TCP_SYNCNT, &tries, sizeof(tries));
	if (bind(c->fd, (void *)&cl->from, sizeof(cl->from)) ||
	    connect(c->fd, (void *)&cl->to, sizeof(cl->to)))
		die("a client cannot connect to the server (is lo up?)");
	if (epoll_ctl(cl->epoll, EPOLL_CTL_ADD, c->fd, &event))
		die("a client cannot be added to epoll");
	cl->nr_connected++;
	cl->nr_greetings++;
	client_say(cl, c, "hello\n");
}

/*
 * Connect no more at a time than the server can accept, and than time allows: the connected clients
 * have to talk.
 */
static void clients_connect(struct clients *cl, uint64_t until_ns)
{
	while (cl->nr_connected < cl->nr && cl->nr_greetings < MAX_GREETINGS &&
	       now_ns() < until_ns)
		client_connect(cl, &cl->client[cl->nr_connected]);
	if (cl->nr_connected == cl->nr && !cl->nr_greetings && !cl->start_ns)
		cl->start_ns = now_ns();
}

/* In a request, a client has a second turn in each period, for the second part. */
static void clients_slice(struct clients *cl, unsigned int slice)
{
	unsigned int i, second = (slice + SLICES - SLICES_OF_REQUEST) % SLICES;

	for (i = slice; i < cl->nr_connected; i += SLICES)
		client_turn(cl, &cl->client[i]);
	for (i = second; i < cl->nr_connected; i += SLICES)
		if (cl->client[i].half)
			client_turn(cl, &cl->client[i]);
}

static bool clients_are_ready(const struct clients *cl)
{
	uint64_t now = now_ns();
	uint64_t end_ns = cl->start_ns + cl->opt->seconds * NSEC_PER_SEC;

	if (!cl->start_ns)
		return now >= cl->begin_ns + CONNECT_NS;
	/* Wait for closes that are late, so that they are counted. */
	return now >= end_ns && (!cl->nr_to_close || now >= end_ns + GRACE_NS);
}

/* The server asks for the end. */
static noreturn void clients_end(struct clients *cl)
{
	char byte;

	/* If the server has gone, nobody wants the report. */
	if (recv(cl->control, &byte, 1, 0) != 1)
		exit(1);
	cl->report.connected = cl->nr_connected;
	cl->report.missed = cl->nr_to_close;
	send(cl->control, &cl->report, sizeof(cl->report), MSG_NOSIGNAL);
	/* Let the open connections stay until the server has read its wheel. */
	recv(cl->control, &byte, 1, 0);
	exit(0);
}

static void clients_loop(struct clients *cl)
{
	uint64_t slice_ns = cl->opt->timeout_ns[IDLE] / PERIODS_PER_TIMEOUT /
			    SLICES;
	uint64_t next_ns = now_ns();
	struct epoll_event event[EVENTS];
	unsigned int slice = 0;

	for (;;) {
		uint64_t now = now_ns();
		int i, n, wait_ms = 0;

		if (now < next_ns)
			wait_ms = (next_ns - now) / NSEC_PER_MSEC + 1;
		n = epoll_wait(cl->epoll, event, EVENTS, wait_ms);
		for (i = 0; i < n; i++) {
			if (!event[i].data.ptr)
				clients_end(cl);
			client_read(cl, event[i].data.ptr);
		}
		for (; now_ns() >= next_ns; next_ns += slice_ns)
			clients_slice(cl, slice++ % SLICES);
		clients_connect(cl, next_ns);
		if (!cl->ready && clients_are_ready(cl)) {
			cl->ready = true;
			send(cl->control, "", 1, MSG_NOSIGNAL);
		}
	}
}

/* Spread the times of turning over the time in which they can be watched. */
static void clients_cast(struct clients *cl)
{
	const uint64_t *timeout_ns = cl->opt->timeout_ns;
	uint64_t longest_ns = longer(timeout_ns[IDLE], timeout_ns[REQUEST]);
	uint64_t window_ns = cl->opt->seconds * NSEC_PER_SEC - longest_ns -
			     NSEC_PER_SEC;
	unsigned int i;

	for (i = 0; i < cl->nr; i++) {
		struct client *c = &cl->client[i];

		c->fd = -1;
		c->role = roles[i % ARRAY_SIZE(roles)];
		c->turn_ns = window_ns / cl->nr * i;
		if (c->role == FALLS_SILENT || c->role == STALLS)
			cl->nr_to_close++;
	}
}

/**
 * clients_run() - be a process of clients
 * @opt: the options
 * @process: its number, from 0
 * @nr: how many clients
 * @port: where the server listens
 * @control: the socket to the server.  The clients send a byte when they have seen all, the
 *	server sends one to stop them, and they send the report.
 */
noreturn void clients_run(const struct options *opt, unsigned int process,
			  unsigned int nr, uint16_t port, int control)
{
	struct clients cl = {
		.opt = opt,
		.nr = nr,
		.control = control,
		.begin_ns = now_ns(),
		.from.sin_family = AF_INET,
		.from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + process),
		.to.sin_family = AF_INET,
		.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.to.sin_port = htons(port),
	};
	struct epoll_event event = { .events = EPOLLIN };

	cl.client = calloc(nr, sizeof(cl.client[0]));
	cl.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!cl.client || cl.epoll < 0 ||
	    epoll_ctl(cl.epoll, EPOLL_CTL_ADD, control, &event))
		die("a process of clients cannot begin");
	clients_cast(&cl);
	clients_loop(&cl);
	exit(0);
}
