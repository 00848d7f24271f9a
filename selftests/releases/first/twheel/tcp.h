/* SPDX-License-Identifier: MIT */
#ifndef _TWHEEL_TCP_H
#define _TWHEEL_TCP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TWHEEL_TCP_RECEIVED	(1U << 0)
#define TWHEEL_TCP_SENT		(1U << 1)
#define TWHEEL_TCP_ANSWERED	(1U << 2)

int64_t twheel_tcp_silence_ns(int fd, uint32_t what);

#ifdef __cplusplus
}
#endif

#endif
