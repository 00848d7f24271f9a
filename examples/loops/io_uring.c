// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of io_uring, by time: the loop's wait has a timeout. */
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "loops.h"

void loop_io_uring(struct twheel *w, const bool *done)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(8, &ring, 0);

	if (ret)
		errx(ret == -ENOMEM ? 1 : 77, "io_uring: %s", strerror(-ret));
	while (!*done) {
		uint64_t wake_ns = twheel_next(w), ns = ns_until(wake_ns);
		struct __kernel_timespec left = { ns / TWHEEL_SEC, ns % TWHEEL_SEC };
		struct io_uring_cqe *cqe;

		io_uring_submit_and_wait_timeout(&ring, &cqe, 1,
						 wake_ns == TWHEEL_NEVER ? NULL : &left, NULL);
		while (!io_uring_peek_cqe(&ring, &cqe))
			io_uring_cqe_seen(&ring, cqe);
		twheel_dispatch(w, 0);
	}
	io_uring_queue_exit(&ring);
}
