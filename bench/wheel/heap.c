// SPDX-License-Identifier: GPL-2.0
/*
 * heap.c - a heap of four children a node, each with its time, and the place of each timer
 */
#include "bench.h"

#define NS_PER_MS	1000000ULL
#define CHILDREN	4

struct timer {
	uint32_t place;		/* index in the heap, + 1; 0 if it is not there */
	void (*expired)(struct timer *timer);
};

struct node {
	uint64_t deadline_ns;
	struct timer *timer;
};

static struct node *heap;
static struct timer *timers;
static uint32_t nr_pending;

static void expired(struct timer *timer)
{
	(void)timer;
	nr_expired++;
}

static void make(uint32_t nr)
{
	heap = allocate(nr * sizeof(*heap));
	timers = allocate(nr * sizeof(*timers));
	while (nr--)
		timers[nr].expired = expired;
}

static void put(uint32_t at, struct node node)
{
	heap[at] = node;
	node.timer->place = at + 1;
}

static void up(uint32_t at, struct node node)
{
	while (at && heap[(at - 1) / CHILDREN].deadline_ns > node.deadline_ns) {
		put(at, heap[(at - 1) / CHILDREN]);
		at = (at - 1) / CHILDREN;
	}
	put(at, node);
}

static void down(uint32_t at, struct node node)
{
	uint64_t child, i, least;

	for (; (child = (uint64_t)at * CHILDREN + 1) < nr_pending; at = least) {
		least = child;
		for (i = child + 1; i < child + CHILDREN && i < nr_pending; i++)
			if (heap[i].deadline_ns < heap[least].deadline_ns)
				least = i;
		if (node.deadline_ns <= heap[least].deadline_ns)
			break;
		put(at, heap[least]);
	}
	put(at, node);
}

static void move_node(uint32_t at, struct node node)
{
	if (at && heap[(at - 1) / CHILDREN].deadline_ns > node.deadline_ns)
		up(at, node);
	else
		down(at, node);
}

static void take_out(struct timer *timer)
{
	uint32_t at = timer->place - 1;

	timer->place = 0;
	nr_pending--;
	if (at < nr_pending)
		move_node(at, heap[nr_pending]);
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct node node = { clock_ns + due_ms[i] * NS_PER_MS, &timers[who[i]] };

		if (node.timer->place)
			move_node(node.timer->place - 1, node);
		else
			up(nr_pending++, node);
	}
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		take_out(&timers[who[i]]);
}

static bool step(void)
{
	struct timer *timer;

	if (!nr_pending)
		return false;
	clock_ns = heap[0].deadline_ns;
	timer = heap[0].timer;
	take_out(timer);
	timer->expired(timer);
	return true;
}

static void run(void)
{
	while (step())
		;
}

const struct structure heap_structure = {
	.name	= "heap",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= insert,
	.run	= run,
	.step	= step,
};
