// SPDX-License-Identifier: GPL-2.0
/*
 * The time for which a TCP connection has been silent (<twheel/tcp.h>), on connections of the
 * loopback.
 *
 * The time before a write is no later than the kernel's stamp of it, and the time after a call is
 * no earlier than its answer.  So if an answer is longer than the time between these two, it is too
 * long.  If the kernel counts its jiffies late, its coarse clock is late by the same time.
 */
#include "twheel_lib_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <twheel/tcp.h>

#define PAIRS	30
#define IDLE_NS	(150 * TW_MS)
#define ALL	(TWHEEL_TCP_RECEIVED | TWHEEL_TCP_SENT | TWHEEL_TCP_ANSWERED)
/* An answer may be shorter by two jiffies and a millisecond, or by more if the machine is slow. */
#define SHORTER_NS	(100 * TW_MS)

/* The two ends of a connection. */
struct pair {
	int fd[2];
	struct twheel_timer idle;
	__u64 busy_ns;		/* a time no later than its last traffic */
	bool closed, early;
};

FIXTURE(tcp) {
	int listener;
	int pipe[2];
	struct sockaddr_in address;
	struct pair pair[PAIRS];
};

static __u64 clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * TW_SEC + now.tv_nsec;
}

static __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Take this time before traffic: the kernel's stamp is at most a jiffy before it. */
static __u64 before_traffic_ns(void)
{
	__u64 coarse_ns = clock_ns(CLOCK_MONOTONIC_COARSE), before_ns = now_ns();
	struct timespec jiffy;

	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	return before_ns < coarse_ns + jiffy.tv_nsec ? before_ns : coarse_ns + jiffy.tv_nsec;
}

static int tcp_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

FIXTURE_SETUP(tcp)
{
	socklen_t size = sizeof(self->address);
	int i;

	self->address.sin_family = AF_INET;
	self->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	self->listener = tcp_socket();
	if (self->listener < 0)
		SKIP(return, "the kernel has no TCP");
	ASSERT_EQ(0, pipe(self->pipe));
	ASSERT_EQ(0, bind(self->listener, (struct sockaddr *)&self->address, size));
	ASSERT_EQ(0, listen(self->listener, PAIRS));
	ASSERT_EQ(0, getsockname(self->listener, (struct sockaddr *)&self->address, &size));
	for (i = 0; i < PAIRS; i++) {
		struct pair *p = &self->pair[i];

		p->busy_ns = before_traffic_ns();
		p->fd[0] = tcp_socket();
		ASSERT_EQ(0, connect(p->fd[0], (struct sockaddr *)&self->address, size));
		p->fd[1] = accept(self->listener, NULL, NULL);
		ASSERT_LE(0, p->fd[1]);
		/* Without this, small data is sent later than it was written. */
		ASSERT_EQ(0, setsockopt(p->fd[0], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 },
					sizeof(int)));
	}
}

FIXTURE_TEARDOWN(tcp)
{
	EXPECT_NO_LEAK();
}

/* The connection has been silent since a time between these two, and before the call. */
#define EXPECT_SILENT_SINCE(before_ns, after_ns, fd, what) do {		\
	__u64 _asked_ns = now_ns();					\
	__s64 _silence_ns = twheel_tcp_silence_ns(fd, what);		\
									\
	EXPECT_LE(0, _silence_ns);					\
	EXPECT_LE(_silence_ns, (__s64)(now_ns() - (before_ns)));		\
	EXPECT_LE((__s64)(_asked_ns - (after_ns)), _silence_ns + (__s64)SHORTER_NS); \
} while (0)

TEST_F(tcp, connection_is_silent_since_it_was_made)
{
	const struct pair *p = &self->pair[PAIRS - 1];
	__u64 made_ns = now_ns();
	int i;

	for (i = 0; i < 100; i++) {
		usleep(2500 + i);
		EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[0], TWHEEL_TCP_RECEIVED);
		EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[0], TWHEEL_TCP_SENT);
		EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[1], TWHEEL_TCP_RECEIVED);
		EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[1], TWHEEL_TCP_SENT);
		EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[1], TWHEEL_TCP_ANSWERED);
	}
}

TEST_F(tcp, answer_is_never_longer_than_the_silence)
{
	const struct pair *p = &self->pair[0];
	__u64 before_ns, after_ns;
	int i;

	for (i = 0; i < 100; i++) {
		before_ns = before_traffic_ns();
		ASSERT_EQ(1, write(p->fd[0], "x", 1));
		after_ns = now_ns();
		usleep(5000 + 37 * i);
		EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[0], TWHEEL_TCP_SENT);
		EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[1], TWHEEL_TCP_RECEIVED);
	}
}

TEST_F(tcp, each_end_knows_what_it_received_and_sent_and_of_several_the_latest_counts)
{
	const struct pair *p = &self->pair[0];
	__u64 made_ns = now_ns(), before_ns, after_ns;

	usleep(300000);
	before_ns = before_traffic_ns();
	ASSERT_EQ(1, write(p->fd[0], "x", 1));
	after_ns = now_ns();
	usleep(100000);
	EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[0], TWHEEL_TCP_SENT);
	EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[0], TWHEEL_TCP_RECEIVED);
	/* The peer acknowledges it 40 ms later. */
	EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[0], TWHEEL_TCP_ANSWERED);
	EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[1], TWHEEL_TCP_RECEIVED);
	EXPECT_SILENT_SINCE(p->busy_ns, made_ns, p->fd[1], TWHEEL_TCP_SENT);

	EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[0], ALL);
	EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[1], ALL);
	EXPECT_SILENT_SINCE(before_ns, after_ns, p->fd[0], TWHEEL_TCP_SENT | TWHEEL_TCP_RECEIVED);
}

TEST_F(tcp, splice_counts_at_both_sockets)
{
	const struct pair *from = &self->pair[0], *to = &self->pair[1];
	__u64 before_ns, after_ns;

	ASSERT_EQ(1, write(from->fd[0], "x", 1));
	usleep(300000);
	before_ns = before_traffic_ns();
	ASSERT_EQ(1, splice(from->fd[1], NULL, self->pipe[1], NULL, 1, SPLICE_F_MOVE));
	ASSERT_EQ(1, splice(self->pipe[0], NULL, to->fd[0], NULL, 1, SPLICE_F_MOVE));
	after_ns = now_ns();
	usleep(50000);
	EXPECT_SILENT_SINCE(before_ns, after_ns, to->fd[0], TWHEEL_TCP_SENT);
	EXPECT_SILENT_SINCE(before_ns, after_ns, to->fd[1], TWHEEL_TCP_RECEIVED);
	/* It counts as received when it came, not when it was spliced. */
	EXPECT_LE((__s64)(200 * TW_MS), twheel_tcp_silence_ns(from->fd[1], TWHEEL_TCP_RECEIVED));
}

TEST_F(tcp, answer_to_a_keepalive_probe_counts_as_answered_alone)
{
	const struct pair *p = &self->pair[0];
	__u64 begun_ns = now_ns();

	ASSERT_EQ(0, setsockopt(p->fd[0], SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int)));
	ASSERT_EQ(0, setsockopt(p->fd[0], IPPROTO_TCP, TCP_KEEPIDLE, &(int){ 1 }, sizeof(int)));
	while (twheel_tcp_silence_ns(p->fd[0], TWHEEL_TCP_ANSWERED) + 500 * TW_MS >
	       now_ns() - begun_ns) {
		ASSERT_GT(60 * TW_SEC, now_ns() - begun_ns);
		usleep(50000);
	}
	EXPECT_LE((__s64)(900 * TW_MS), twheel_tcp_silence_ns(p->fd[0], TWHEEL_TCP_RECEIVED));
	EXPECT_LE((__s64)(900 * TW_MS), twheel_tcp_silence_ns(p->fd[0], TWHEEL_TCP_SENT));
	EXPECT_LE((__s64)(900 * TW_MS), twheel_tcp_silence_ns(p->fd[1], TWHEEL_TCP_RECEIVED));
}

/* The peer drops all that comes. */
TEST_F(tcp, data_sent_again_counts_as_sent_and_not_as_answered)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &drop };
	const struct pair *p = &self->pair[0];
	__u64 sent_ns;

	if (setsockopt(p->fd[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		SKIP(return, "the kernel has no filters");
	ASSERT_EQ(1, write(p->fd[0], "x", 1));
	sent_ns = now_ns();
	while (twheel_tcp_silence_ns(p->fd[0], TWHEEL_TCP_SENT) + 100 * TW_MS >
	       now_ns() - sent_ns) {
		ASSERT_GT(60 * TW_SEC, now_ns() - sent_ns);
		usleep(10000);
	}
	EXPECT_SILENT_SINCE(p->busy_ns, sent_ns, p->fd[0], TWHEEL_TCP_ANSWERED);
	EXPECT_SILENT_SINCE(p->busy_ns, sent_ns, p->fd[1], TWHEEL_TCP_RECEIVED);
}

/* ---- a timer that asks ---------------------------------------------------- */

static void on_idle(struct twheel *w, struct twheel_timer *t)
{
	struct pair *p = twheel_container_of(t, struct pair, idle);
	__s64 silence_ns = twheel_tcp_silence_ns(p->fd[1], TWHEEL_TCP_RECEIVED);

	if (silence_ns >= 0 && silence_ns < (__s64)IDLE_NS) {
		twheel_start(w, t, IDLE_NS - silence_ns);
		return;
	}
	p->closed = true;
	p->early = now_ns() < p->busy_ns + IDLE_NS;
}

/* Make some of them busy, by write or by splice, and others not. */
static bool make_busy(struct pair *p, int i, const int *pipe)
{
	if (i % 3 == 2 || p->closed)
		return true;
	p->busy_ns = before_traffic_ns();
	if (i % 3 == 0)
		return write(p->fd[0], "x", 1) == 1;
	return write(pipe[1], "x", 1) == 1 &&
		splice(pipe[0], NULL, p->fd[0], NULL, 1, SPLICE_F_MOVE) == 1;
}

TEST_F(tcp, timer_that_asks_closes_the_silent_in_time_and_none_early)
{
	int i, round, busy_closed = 0, closed = 0;
	struct twheel *w;
	__u64 end_ns;

	ASSERT_EQ(0, twheel_open(&w, NULL));
	for (i = 0; i < PAIRS; i++) {
		twheel_timer_init(&self->pair[i].idle, on_idle);
		twheel_start(w, &self->pair[i].idle, IDLE_NS);
	}
	for (round = 0; round < 40; round++) {
		for (i = 0; i < PAIRS; i++) {
			ASSERT_TRUE(make_busy(&self->pair[i], i, self->pipe));
		}
		end_ns = now_ns() + 10 * TW_MS;
		while (now_ns() < end_ns)
			ASSERT_LE(0, twheel_wait(w, TW_MS));
	}
	for (i = 0; i < PAIRS; i++)
		busy_closed += i % 3 != 2 && self->pair[i].closed;
	/* All are silent from now on. */
	while (lib_stats(w).pending)
		ASSERT_LE(0, twheel_wait(w, TWHEEL_NEVER));
	for (i = 0; i < PAIRS; i++) {
		closed += self->pair[i].closed;
		EXPECT_FALSE(self->pair[i].early);
	}
	EXPECT_EQ(PAIRS, closed);
	TH_LOG("%d of 20 busy connections were closed while the machine stood still", busy_closed);
	twheel_close(w);
}

/* ---- errors --------------------------------------------------------------- */

TEST_F(tcp, socket_without_a_connection_says_enotconn)
{
	const struct linger reset = { .l_onoff = 1 };
	struct pair *p = &self->pair[0];
	int fd = tcp_socket();
	char byte;

	EXPECT_EQ(-ENOTCONN, twheel_tcp_silence_ns(fd, ALL));
	EXPECT_EQ(-ENOTCONN, twheel_tcp_silence_ns(self->listener, ALL));
	/* If the peer has closed, there still is a connection. */
	close(self->pair[1].fd[0]);
	ASSERT_EQ(0, read(self->pair[1].fd[1], &byte, 1));
	EXPECT_LE(0, twheel_tcp_silence_ns(self->pair[1].fd[1], ALL));
	/* After a reset, there is none. */
	ASSERT_EQ(0, setsockopt(p->fd[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)));
	close(p->fd[0]);
	ASSERT_EQ(-1, read(p->fd[1], &byte, 1));
	EXPECT_EQ(ECONNRESET, errno);
	EXPECT_EQ(-ENOTCONN, twheel_tcp_silence_ns(p->fd[1], ALL));
	close(fd);
}

/* The listener drops what comes: nobody answers. */
TEST_F(tcp, connection_that_is_being_made_says_enotconn)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &drop };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (setsockopt(self->listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		SKIP(return, "the kernel has no filters");
	EXPECT_EQ(-1, connect(fd, (struct sockaddr *)&self->address, sizeof(self->address)));
	EXPECT_EQ(EINPROGRESS, errno);
	EXPECT_EQ(-ENOTCONN, twheel_tcp_silence_ns(fd, ALL));
	close(fd);
}

TEST_F(tcp, other_descriptors_say_what_getsockopt_says)
{
	EXPECT_EQ(-ENOTSOCK, twheel_tcp_silence_ns(self->pipe[0], ALL));
	EXPECT_EQ(-EBADF, twheel_tcp_silence_ns(-1, ALL));
	EXPECT_EQ(-EOPNOTSUPP, twheel_tcp_silence_ns(socket(AF_UNIX, SOCK_STREAM, 0), ALL));
}

TEST_F(tcp, unknown_bits_and_none_say_einval)
{
	const int fd = self->pair[0].fd[0];

	EXPECT_EQ(-EINVAL, twheel_tcp_silence_ns(fd, 0));
	EXPECT_EQ(-EINVAL, twheel_tcp_silence_ns(fd, 1U << 3));
	EXPECT_EQ(-EINVAL, twheel_tcp_silence_ns(fd, 1U << 31 | ALL));
}

TEST_HARNESS_MAIN
