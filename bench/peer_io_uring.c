// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring's timeouts, 256 to a submission.  If a request succeeds at once, it has no completion
 * (IOSQE_CQE_SKIP_SUCCESS).  Completions are run by the thread that waits for them
 * (IORING_SETUP_DEFER_TASKRUN), and their ring holds as many as may come at once.
 */
#include "bench.h"

#ifdef HAVE_LIBURING
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>

/* The longest ring of completions that there is. */
#define CQES_MAX	65536
/* user_data of requests that are no timeouts. */
#define NOBODY		UINT64_MAX

struct uring {
	struct io_uring ring;
	struct __kernel_timespec deadline[BATCH];
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Make a ring for this many requests, used by one thread or by several. */
static const char *start(struct io_uring *ring, uint32_t nr, bool shared)
{
	uint32_t entries = least(nr, BATCH), completions = least(2 * nr, CQES_MAX);
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = completions,
	};
	int ret = shared ? -EINVAL : io_uring_queue_init_params(entries, ring, &params);

	/* For kernels before 6.1, too. */
	if (ret == -EINVAL) {
		params = (struct io_uring_params){
			.flags = IORING_SETUP_CQSIZE,
			.cq_entries = completions,
		};
		ret = io_uring_queue_init_params(entries, ring, &params);
	}
	return ret ? strerror(-ret) : NULL;
}

static const char *absent(void)
{
	struct io_uring ring;
	const char *why = start(&ring, BATCH, false);

	if (!why)
		io_uring_queue_exit(&ring);
	return why;
}

static void *open_uring(const struct setup *setup)
{
	struct uring *u = get_memory(1, sizeof(*u));
	const char *why = start(&u->ring, setup->nr, setup->shared);

	if (why)
		errx(1, "io_uring: %s", why);
	return u;
}

static struct __kernel_timespec *timespec_of(struct uring *u, uint32_t i, uint64_t ns)
{
	u->deadline[i] = (struct __kernel_timespec){
		.tv_sec = ns / SEC,
		.tv_nsec = ns % SEC,
	};
	return &u->deadline[i];
}

/* The ring has room for a batch, and each batch is submitted. */
static struct io_uring_sqe *next(struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe)
		errx(1, "io_uring has no room");
	return sqe;
}

static void submit(struct uring *u, uint32_t nr)
{
	if (io_uring_submit(&u->ring) != (int)nr)
		errx(1, "io_uring_submit");
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct uring *u = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct io_uring_sqe *sqe = next(u);

		io_uring_prep_timeout(sqe, timespec_of(u, i, deadline_ns[i]), 0,
				      IORING_TIMEOUT_ABS);
		sqe->user_data = who[i];
	}
	submit(u, nr);
}

static void refresh(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct uring *u = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct io_uring_sqe *sqe = next(u);

		io_uring_prep_timeout_update(sqe, timespec_of(u, i, deadline_ns[i]), who[i],
					     IORING_TIMEOUT_ABS);
		sqe->user_data = NOBODY;
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	}
	submit(u, nr);
}

/* If a timeout was cancelled or could not be moved, its completion needs no action. */
static void reap(struct uring *u)
{
	struct io_uring_cqe *cqes[BATCH];
	unsigned int got, i;

	while ((got = io_uring_peek_batch_cqe(&u->ring, cqes, BATCH))) {
		for (i = 0; i < got; i++)
			if (cqes[i]->res == -ETIME && cqes[i]->user_data != NOBODY)
				expired(cqes[i]->user_data);
		io_uring_cq_advance(&u->ring, got);
	}
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct uring *u = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct io_uring_sqe *sqe = next(u);

		io_uring_prep_timeout_remove(sqe, who[i], 0);
		sqe->user_data = NOBODY;
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	}
	submit(u, nr);
	/* Each cancelled timeout has a completion; make room for more. */
	io_uring_get_events(&u->ring);
	reap(u);
}

static void wait_ring(void *self, bool sleep)
{
	struct uring *u = self;
	struct io_uring_cqe *cqe;

	if (!sleep)
		io_uring_get_events(&u->ring);
	else if (io_uring_wait_cqe(&u->ring, &cqe))
		errx(1, "io_uring_wait_cqe");
	reap(u);
}

/* A request that completes each time the descriptor becomes readable. */
static void watch(void *self, int fd)
{
	struct uring *u = self;
	struct io_uring_sqe *sqe = next(u);

	io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	sqe->user_data = NOBODY;
	submit(u, 1);
}

static void close_uring(void *self)
{
	io_uring_queue_exit(&((struct uring *)self)->ring);
}

const struct peer peer_io_uring = {
	.name = "io_uring",
	.usage = "timeouts, 256 a submission; no completion of what succeeds at once",
	/*
	 * To move or cancel one among a million takes 40 ms, and to do so often takes hours, unless
	 * it is the first one in the list each time.
	 */
	.workloads = (DOES_ALL & ~(DOES(MIX) | DOES(CHURN) | DOES(MOVED) | DOES(RESTART) |
				   DOES(LENGTHS))) |
		     DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	.max = 100000,
	.absent = absent,
	.open = open_uring,
	.arm = arm,
	.refresh = refresh,
	.cancel = cancel,
	.wait = wait_ring,
	.watch = watch,
	.close = close_uring,
};
#else
ABSENT_PEER(peer_io_uring, "io_uring", "built without liburing");
#endif
