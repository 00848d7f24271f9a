// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of io_uring. */
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>

#include "loops.h"

/* Poll once, so that what dispatch has left is seen; it goes in with the next wait. */
static void watch(struct io_uring *ring, struct twheel *w)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_poll_add(sqe, twheel_fd(w), POLLIN);
	io_uring_sqe_set_data(sqe, w);
}

void loop_io_uring(struct twheel *w, const bool *done)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	int ret = io_uring_queue_init(8, &ring, 0);

	if (ret)
		errx(ret == -ENOMEM ? 1 : 77, "io_uring: %s", strerror(-ret));
	watch(&ring, w);
	while (!*done) {
		twheel_flush(w);
		io_uring_submit_and_wait(&ring, 1);
		while (!io_uring_peek_cqe(&ring, &cqe)) {
			io_uring_cqe_seen(&ring, cqe);
			twheel_dispatch(w, 0);
			watch(&ring, w);
		}
	}
	io_uring_queue_exit(&ring);
}
