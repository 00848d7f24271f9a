// SPDX-License-Identifier: 0BSD
/*
 * Request timeouts with retries, in an epoll loop.
 *
 *	requests [NUMBER]
 *
 * The peer, another process, ignores one request in three until it is sent again, and one
 * in 200 for ever.  If a request is not answered in time, it is sent again, and has twice
 * the time then.  After four times it is given up.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <twheel.h>
#include <unistd.h>

#define IN_FLIGHT	100U
#define FIRST_NS	(100 * TWHEEL_MSEC)
#define TRIES		4
#define NEVER		200	/* one in this many is never answered */

struct message {
	uint32_t request, try;
};

struct request {
	struct twheel_timer timeout;
	uint32_t try;
};

static struct request *requests;
static unsigned int nr, nr_begun, nr_answered, nr_answered_later, nr_given_up;
static int sock;

static void peer(void)
{
	struct message m;

	while (recv(sock, &m, sizeof(m), 0) == sizeof(m))
		if (m.request % NEVER && (m.request + m.try) % 3)
			send(sock, &m, sizeof(m), 0);
	exit(0);
}

static void request_send(struct twheel *w, struct request *r)
{
	struct message m = { .request = r - requests, .try = r->try };

	/* If it cannot be sent now, it is sent again, like one that got lost on the way. */
	send(sock, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);
	twheel_start(w, &r->timeout, FIRST_NS << r->try);
}

static void request_next(struct twheel *w)
{
	if (nr_begun < nr)
		request_send(w, &requests[nr_begun++]);
}

static void on_timeout(struct twheel *w, struct twheel_timer *t)
{
	struct request *r = twheel_container_of(t, struct request, timeout);

	if (++r->try < TRIES) {
		request_send(w, r);
	} else {
		nr_given_up++;
		request_next(w);
	}
}

static void read_answers(struct twheel *w)
{
	struct message m;

	while (recv(sock, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m)) {
		/* If the answer comes twice or too late, the timer does not pend. */
		if (!twheel_stop(w, &requests[m.request].timeout))
			continue;
		nr_answered++;
		nr_answered_later += requests[m.request].try > 0;
		request_next(w);
	}
}

/* Sleep until there is something to read, or until a time on CLOCK_MONOTONIC. */
static void sleep_until(int epoll, uint64_t wake_ns)
{
	struct epoll_event event;
	struct timespec now, left = { 0, 0 };
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * TWHEEL_SEC + now.tv_nsec;
	if (wake_ns > now_ns) {
		left.tv_sec = (wake_ns - now_ns) / TWHEEL_SEC;
		left.tv_nsec = (wake_ns - now_ns) % TWHEEL_SEC;
	}
	epoll_pwait2(epoll, &event, 1, wake_ns == TWHEEL_NEVER ? NULL : &left, NULL);
}

int main(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN };
	int is_peer, pair[2], epoll = epoll_create1(EPOLL_CLOEXEC);
	struct twheel *w;

	nr = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000;
	requests = calloc(nr, sizeof(*requests));
	if (!requests || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		err(1, "sockets");
	is_peer = !fork();
	sock = pair[is_peer];
	close(pair[!is_peer]);
	if (is_peer)
		peer();
	if (twheel_open(&w, NULL) < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, sock, &event))
		errx(1, "there is no wheel, or no epoll");
	for (unsigned int i = 0; i < nr; i++)
		twheel_timer_init(&requests[i].timeout, on_timeout);
	for (unsigned int i = 0; i < IN_FLIGHT; i++)
		request_next(w);
	while (nr_answered + nr_given_up < nr) {
		sleep_until(epoll, twheel_next(w));
		read_answers(w);	/* first take the answers that came in time */
		twheel_dispatch(w, 0);
	}
	printf("%u requests answered, %u of them when sent again, and %u given up\n",
	       nr_answered, nr_answered_later, nr_given_up);
	/* Only requests that are never answered are given up, unless the machine is slow. */
	return nr_given_up < (nr + NEVER - 1) / NEVER;
}
