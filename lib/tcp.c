// SPDX-License-Identifier: MIT
/*
 * How long a TCP connection has been silent: what <twheel/tcp.h> offers
 *
 * TCP_INFO has milliseconds, which the kernel makes of the difference of two numbers of jiffies.
 * That may be too long by a jiffy, and if a jiffy is not whole milliseconds, the kernel rounds up
 * as well.  Both are taken off.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#pragma GCC visibility push(default)
#include "twheel/tcp.h"
#pragma GCC visibility pop

#define NSEC_PER_MSEC	1000000LL
#define KNOWN		(TWHEEL_TCP_RECEIVED | TWHEEL_TCP_SENT | TWHEEL_TCP_ANSWERED)

static int64_t excess_ns(void)
{
	struct timespec jiffy = { 0, 0 };

	/* A coarse clock moves once a jiffy. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	return jiffy.tv_nsec + (jiffy.tv_nsec % NSEC_PER_MSEC ? NSEC_PER_MSEC : 0);
}

static uint32_t silence_ms(const struct tcp_info *info, uint32_t what)
{
	const uint32_t each[] = {
		info->tcpi_last_data_recv, info->tcpi_last_data_sent, info->tcpi_last_ack_recv,
	};
	uint32_t i, least = UINT32_MAX;

	for (i = 0; i < 3; i++) {
		if (what & 1U << i && each[i] < least)
			least = each[i];
	}
	return least;
}

/* In the other states there are no stamps of a connection. */
static bool is_connected(const struct tcp_info *info)
{
	return info->tcpi_state != TCP_CLOSE && info->tcpi_state != TCP_LISTEN &&
		info->tcpi_state != TCP_SYN_SENT;
}

int64_t twheel_tcp_silence_ns(int fd, uint32_t what)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);
	int64_t silence_ns;

	if (!what || what & ~KNOWN)
		return -EINVAL;
	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		return -errno;
	if (!is_connected(&info))
		return -ENOTCONN;
	silence_ns = silence_ms(&info, what) * NSEC_PER_MSEC - excess_ns();
	return silence_ns > 0 ? silence_ns : 0;
}
