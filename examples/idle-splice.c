// SPDX-License-Identifier: 0BSD
/*
 * A TCP proxy that splices, and closes connections that are idle.
 *
 *	idle-splice LISTEN_PORT SERVER_PORT IDLE_MS	127.0.0.1 to 127.0.0.1
 *	idle-splice					shows itself, with a server and clients
 *
 * The data goes from socket to socket in the kernel, and the proxy never sees it.  A packet costs
 * nothing: when the timer of a connection expires, it asks the kernel, and if there was traffic, it
 * goes on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <twheel.h>
#include <twheel/tcp.h>

#define CLIENTS		20
/* This is longer than a peer waits before it acknowledges. */
#define SHOWN_MS	600
#define SPLICE_MAX	65536

/* One direction of a connection. */
struct way {
	int from, to;
	int pipe[2];
	size_t in_pipe;
	bool ended;		/* the end of the stream was read */
	bool shut;		/* and was passed on to the other end */
};

struct conn {
	int client, server;
	struct way there, back;
	struct twheel_timer idle;
	struct conn *next_closed;
};

static int epoll;
static uint64_t idle_ns;
static unsigned int nr_looks, nr_idle;
/* Events of this turn may still point to them. */
static struct conn *closed;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "idle-splice: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- connections --------------------------------------------------------- */

static void conn_close(struct twheel *w, struct conn *c)
{
	const int fds[] = {
		c->client, c->server, c->there.pipe[0], c->there.pipe[1], c->back.pipe[0],
		c->back.pipe[1],
	};

	twheel_stop(w, &c->idle);
	for (int i = 0; i < 6; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	c->client = -1;
	c->next_closed = closed;
	closed = c;
}

static void free_closed(void)
{
	struct conn *c;

	while ((c = closed)) {
		closed = c->next_closed;
		free(c);
	}
}

/*
 * Nothing has come from the client, and its kernel has not answered.  TWHEEL_TCP_SENT would not do:
 * if a client is gone, data is sent to it again and again.
 */
static void on_idle(struct twheel *w, struct twheel_timer *t)
{
	struct conn *c = twheel_container_of(t, struct conn, idle);
	int64_t silence_ns = twheel_tcp_silence_ns(c->client,
						   TWHEEL_TCP_RECEIVED | TWHEEL_TCP_ANSWERED);

	nr_looks++;
	if (silence_ns >= 0 && (uint64_t)silence_ns < idle_ns) {
		twheel_start(w, t, idle_ns - (uint64_t)silence_ns);
		return;
	}
	nr_idle++;
	conn_close(w, c);
}

/* Move all data that is there.  Returns false if the connection has failed. */
static bool way_move(struct way *way)
{
	const unsigned int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
	ssize_t nr;

	for (;;) {
		if (!way->in_pipe && !way->ended) {
			nr = splice(way->from, NULL, way->pipe[1], NULL, SPLICE_MAX, flags);
			if (nr < 0)
				return errno == EAGAIN;
			way->in_pipe = (size_t)nr;
			way->ended = !nr;
		}
		if (!way->in_pipe)
			break;
		nr = splice(way->pipe[0], NULL, way->to, NULL, way->in_pipe, flags);
		if (nr < 0)
			return errno == EAGAIN;
		way->in_pipe -= (size_t)nr;
	}
	if (!way->shut)
		shutdown(way->to, SHUT_WR);
	way->shut = true;
	return true;
}

/* Both sockets are edge-triggered, so each event moves all that can be moved. */
static void conn_move(struct twheel *w, struct conn *c)
{
	if (c->client < 0)
		return;
	if (!way_move(&c->there) || !way_move(&c->back) || (c->there.shut && c->back.shut))
		conn_close(w, c);
}

static bool watch(int fd, struct conn *c)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = { .ptr = c },
	};

	return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static struct sockaddr_in local(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
}

static void conn_open(struct twheel *w, int client, uint16_t server_port)
{
	const struct sockaddr_in server = local(server_port);
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		fail("calloc");
	c->client = client;
	c->server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	c->there = (struct way){ .from = client, .to = c->server, .pipe = { -1, -1 } };
	c->back = (struct way){ .from = c->server, .to = client, .pipe = { -1, -1 } };
	twheel_timer_init(&c->idle, on_idle);
	twheel_start(w, &c->idle, idle_ns);
	if (c->server < 0 ||
	    (connect(c->server, (const struct sockaddr *)&server, sizeof(server)) < 0 &&
	     errno != EINPROGRESS) ||
	    pipe2(c->there.pipe, O_NONBLOCK | O_CLOEXEC) < 0 ||
	    pipe2(c->back.pipe, O_NONBLOCK | O_CLOEXEC) < 0 ||
	    !watch(client, c) || !watch(c->server, c))
		conn_close(w, c);
}

/* ---- the proxy ----------------------------------------------------------- */

static int listen_at(uint16_t port)
{
	const struct sockaddr_in address = local(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		fail("listen");
	return fd;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		fail("getsockname");
	return ntohs(address.sin_port);
}

/* Run until a client of its own has ended, or for ever if there is none. */
static void proxy(int listener, uint16_t server_port, int until)
{
	struct epoll_event events[64];
	struct twheel *w;
	int nr, fd, i;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || twheel_open(&w, NULL) < 0)
		fail("the loop");
	if (!watch(listener, (void *)&listener) || !watch(twheel_fd(w), (void *)w) ||
	    (until >= 0 && !watch(until, NULL)))
		fail("epoll_ctl");
	for (;;) {
		twheel_flush(w);
		nr = epoll_wait(epoll, events, 64, -1);
		for (i = 0; i < nr; i++) {
			if (!events[i].data.ptr)
				goto end;
			if (events[i].data.ptr == (void *)&listener) {
				while ((fd = accept4(listener, NULL, NULL,
						     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
					conn_open(w, fd, server_port);
			} else if (events[i].data.ptr != (void *)w) {
				conn_move(w, events[i].data.ptr);
			}
		}
		twheel_dispatch(w, 0);
		free_closed();
	}
end:
	twheel_close(w);
}

/* ---- a server and clients, to show it ------------------------------------ */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TWHEEL_SEC + (uint64_t)now.tv_nsec;
}

/* Send back all that comes. */
static void serve(int listener)
{
	struct pollfd fds[CLIENTS + 1] = { { .fd = listener, .events = POLLIN } };
	char buffer[256];
	ssize_t got;
	int nr = 1, i;

	for (;;) {
		poll(fds, (nfds_t)nr, -1);
		if (fds[0].revents && nr <= CLIENTS) {
			fds[nr].fd = accept(listener, NULL, NULL);
			fds[nr++].events = POLLIN;
		}
		for (i = 1; i < nr; i++) {
			if (!fds[i].revents)
				continue;
			got = read(fds[i].fd, buffer, sizeof(buffer));
			if (got <= 0 || write(fds[i].fd, buffer, (size_t)got) != got) {
				close(fds[i].fd);
				fds[i].fd = -1;
			}
		}
	}
}

/*
 * A client talks to the server some times, or never, with pauses shorter than the idle time, and
 * then is silent.  Returns whether it was closed after that, and not early.  If the machine has no
 * time for the client, it is idle before it is silent.
 */
static bool talk(uint16_t port, int times)
{
	const struct sockaddr_in address = local(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t busy_ns = now_ns(), talks_ns;
	char byte = 'x';

	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		fail("connect");
	for (; times; times--) {
		poll(NULL, 0, SHOWN_MS / 6);
		talks_ns = now_ns();
		if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
			break;
		busy_ns = talks_ns;
	}
	return read(fd, &byte, 1) <= 0 && now_ns() - busy_ns >= SHOWN_MS * TWHEEL_MSEC;
}

/* Returns how many clients were right. */
static int run_clients(uint16_t port)
{
	int i, status, nr_right = 0;

	for (i = 0; i < CLIENTS; i++) {
		if (!fork())
			_exit(!talk(port, i / 2));
	}
	while (wait(&status) > 0)
		nr_right += !status;
	return nr_right;
}

static int show(void)
{
	int listener = listen_at(0), server = listen_at(0), ended[2], status;
	pid_t clients, servers;

	servers = fork();
	if (!servers) {
		fcntl(server, F_SETFL, 0);
		serve(server);
	}
	if (pipe2(ended, O_CLOEXEC) < 0)
		fail("pipe");
	clients = fork();
	if (!clients)
		_exit(run_clients(port_of(listener)));
	close(ended[1]);
	idle_ns = SHOWN_MS * TWHEEL_MSEC;
	proxy(listener, port_of(server), ended[0]);
	kill(servers, SIGKILL);
	if (waitpid(clients, &status, 0) != clients)
		fail("waitpid");
	printf("%d of %d clients were closed when they were idle, and none early; %u looks\n",
	       WEXITSTATUS(status), CLIENTS, nr_looks);
	return status != CLIENTS << 8 || nr_idle != CLIENTS;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 1)
		return show();
	if (argc != 4) {
		fprintf(stderr, "usage: idle-splice [LISTEN_PORT SERVER_PORT IDLE_MS]\n");
		return 2;
	}
	idle_ns = strtoull(argv[3], NULL, 10) * TWHEEL_MSEC;
	proxy(listen_at((uint16_t)atoi(argv[1])), (uint16_t)atoi(argv[2]), -1);
	return 0;
}
