// SPDX-License-Identifier: GPL-2.0
/*
 * The timers of a program without any library: a heap, each node with four children, and one
 * timerfd for its least deadline.  The timerfd is set when the program is about to sleep, and only
 * to an earlier time than it is set to.  If the first timer was moved on, the timerfd wakes the
 * program once in vain.
 */
#include "bench.h"

#include <err.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define CHILDREN	4

struct node {
	uint64_t deadline_ns;
	uint32_t who;
};

struct heap {
	int fd;
	int watched;		/* or -1 */
	uint32_t nr, max;
	uint64_t set_ns;	/* the time that the timerfd is set to; 0: none */
	struct node *node;
	uint32_t *place;	/* the index of each timer in node[], + 1; 0 if it is not there */
};

static void *open_heap(const struct setup *setup)
{
	struct heap *heap = get_memory(1, sizeof(*heap));

	heap->max = setup->nr;
	heap->watched = -1;
	heap->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (heap->fd < 0)
		err(1, "timerfd_create");
	return heap;
}

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct heap *heap = self;

	(void)nr;
	/* Allocate once, for all timers. */
	if (first)
		return;
	heap->node = get_memory(heap->max, sizeof(*heap->node));
	heap->place = get_memory(heap->max, sizeof(*heap->place));
}

static void put(struct heap *heap, uint32_t at, struct node node)
{
	heap->node[at] = node;
	heap->place[node.who] = at + 1;
}

static void up(struct heap *heap, uint32_t at, struct node node)
{
	while (at) {
		uint32_t parent = (at - 1) / CHILDREN;

		if (heap->node[parent].deadline_ns <= node.deadline_ns)
			break;
		put(heap, at, heap->node[parent]);
		at = parent;
	}
	put(heap, at, node);
}

static void down(struct heap *heap, uint32_t at, struct node node)
{
	uint64_t child, i, least;

	for (; (child = (uint64_t)at * CHILDREN + 1) < heap->nr; at = least) {
		least = child;
		for (i = child + 1; i < child + CHILDREN && i < heap->nr; i++)
			if (heap->node[i].deadline_ns < heap->node[least].deadline_ns)
				least = i;
		if (node.deadline_ns <= heap->node[least].deadline_ns)
			break;
		put(heap, at, heap->node[least]);
	}
	put(heap, at, node);
}

static void move(struct heap *heap, uint32_t at, struct node node)
{
	if (at && heap->node[(at - 1) / CHILDREN].deadline_ns > node.deadline_ns)
		up(heap, at, node);
	else
		down(heap, at, node);
}

/* Remove a node: the last one takes its place. */
static void take_out(struct heap *heap, uint32_t at)
{
	heap->place[heap->node[at].who] = 0;
	heap->nr--;
	if (at < heap->nr)
		move(heap, at, heap->node[heap->nr]);
}

/* If a timer is in the heap, it is moved. */
static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct heap *heap = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct node node = { deadline_ns[i], who[i] };

		if (heap->place[who[i]])
			move(heap, heap->place[who[i]] - 1, node);
		else
			up(heap, heap->nr++, node);
	}
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct heap *heap = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (heap->place[who[i]])
			take_out(heap, heap->place[who[i]] - 1);
}

static bool take_due(struct heap *heap)
{
	uint64_t now = now_ns();
	bool any = false;

	for (; heap->nr && heap->node[0].deadline_ns <= now; any = true) {
		expired(heap->node[0].who);
		take_out(heap, 0);
	}
	return any;
}

static void set_timerfd(struct heap *heap)
{
	uint64_t ns = heap->nr ? heap->node[0].deadline_ns : 0;
	const struct itimerspec spec = {
		.it_value = to_timespec(ns),
	};

	if (!ns || (heap->set_ns && heap->set_ns <= ns))
		return;
	if (timerfd_settime(heap->fd, TFD_TIMER_ABSTIME, &spec, NULL))
		err(1, "timerfd_settime");
	heap->set_ns = ns;
}

/* Return whether the timerfd has expired; then it is set to nothing. */
static bool read_timerfd(struct heap *heap)
{
	uint64_t count;

	if (read(heap->fd, &count, sizeof(count)) != sizeof(count))
		return false;
	heap->set_ns = 0;
	return true;
}

static void wait(void *self, bool sleep)
{
	struct heap *heap = self;
	struct pollfd pfd[2] = {
		{ .fd = heap->fd, .events = POLLIN },
		{ .fd = heap->watched, .events = POLLIN },
	};
	nfds_t nr = heap->watched < 0 ? 1 : 2;

	/* The loop of a server polls the kernel in each turn. */
	do {
		set_timerfd(heap);
		if (poll(pfd, nr, sleep ? -1 : 0) < 0)
			err(1, "poll");
	} while (!(pfd[0].revents && read_timerfd(heap) && take_due(heap)) && !pfd[1].revents &&
		 sleep);
}

static void watch(void *self, int fd)
{
	((struct heap *)self)->watched = fd;
}

static void close_heap(void *self)
{
	close(((struct heap *)self)->fd);
}

const struct peer peer_heap = {
	.name = "heap",
	.usage = "four children a node, and one timerfd; in one thread's hands",
	.workloads = DOES_ALL | DOES(SCALE) | DOES(WAKEUPS) | DOES(DISPATCH) |
		     DOES(WHEELS) | DOES(SHARED),
	.is_structure = true,
	.open = open_heap,
	.create = create,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait,
	.watch = watch,
	.close = close_heap,
};
