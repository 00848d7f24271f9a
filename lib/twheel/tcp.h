/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: for how long a TCP connection has been silent
 *
 * An idle timeout needs no work for each packet.  The kernel notes for each connection when data
 * was received and sent.  So a timer asks when it expires, and goes on if there was traffic:
 *
 *	static void on_idle(struct twheel *w, struct twheel_timer *t)
 *	{
 *		struct conn *conn = twheel_container_of(t, struct conn, idle);
 *		int64_t silence_ns = twheel_tcp_silence_ns(conn->fd, TWHEEL_TCP_RECEIVED);
 *
 *		if (silence_ns >= 0 && silence_ns < IDLE_NS)
 *			twheel_start(w, t, IDLE_NS - silence_ns);
 *		else
 *			conn_close(conn);
 *	}
 *
 * The kernel also counts what went by splice(), sendfile(), kTLS, io_uring and sockmap, which the
 * program does not see.
 */
#ifndef _TWHEEL_TCP_H
#define _TWHEEL_TCP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Data was received. */
#define TWHEEL_TCP_RECEIVED	(1U << 0)
/* Data was sent, for the first time or again because nobody has answered. */
#define TWHEEL_TCP_SENT		(1U << 1)
/* The peer's kernel has acknowledged data, or answered a keepalive probe. */
#define TWHEEL_TCP_ANSWERED	(1U << 2)

/**
 * twheel_tcp_silence_ns() - say for how long a connection has been silent
 * @fd: a TCP socket that is connected
 * @what: TWHEEL_TCP_RECEIVED and its like; of several, the latest counts
 *
 * A connection on which nothing has happened is silent since it was made.  The time counts on
 * CLOCK_MONOTONIC.
 *
 * The kernel's stamps are in jiffies of 1 to 10 ms.  A jiffy is taken off, and another millisecond
 * if a jiffy is not whole milliseconds: so it is never longer than the connection was silent, and
 * a timer that waits for the rest is never early.  It is shorter by less than two jiffies and a
 * millisecond.  If the kernel counts a jiffy late, as in a virtual machine that had to wait, it may
 * be longer by as much.  After 49 days it begins again at 0.
 *
 * Return: nanoseconds, or:
 *	-EINVAL		@what is 0, or has a bit that is unknown
 *	-ENOTCONN	the socket is not connected, or the connection was reset
 *	others		@fd is no TCP socket: what getsockopt() says, such as -EBADF or -ENOTSOCK
 */
int64_t twheel_tcp_silence_ns(int fd, uint32_t what);

#ifdef __cplusplus
}
#endif

#endif /* _TWHEEL_TCP_H */
