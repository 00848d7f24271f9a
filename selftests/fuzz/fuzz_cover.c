// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_cover.c - the code of the module that has been reached
 *
 * KCOV records for each thread the places that its own system calls pass; only the module is
 * compiled for that. An edge is one place after another. Without KCOV nothing is ever new, and
 * all programs are random ones.
 */
#include "fuzz.h"

#include <sys/mman.h>

#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_DISABLE	_IO('c', 101)
#define KCOV_TRACE_PC	0

#define AREA		(1UL << 18)	/* places of one call; a long vector has many */
#define EDGES		(1U << 16)

static _Atomic unsigned char edges[EDGES], places[EDGES];
static _Atomic unsigned int nr_edges, nr_places;

void cover_open(struct cover *cover)
{
	void *area;

	cover->area = NULL;
	cover->fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (cover->fd < 0)
		return;
	if (ioctl(cover->fd, KCOV_INIT_TRACE, AREA))
		return;
	area = mmap(NULL, AREA * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, cover->fd, 0);
	if (area != MAP_FAILED)
		cover->area = area;
}

/* The thread whose calls are covered calls this. */
void cover_start(struct cover *cover)
{
	if (cover->area && ioctl(cover->fd, KCOV_ENABLE, KCOV_TRACE_PC))
		cover->area = NULL;
}

void cover_stop(struct cover *cover)
{
	if (cover->area)
		ioctl(cover->fd, KCOV_DISABLE, 0);
}

void cover_begin(struct cover *cover)
{
	if (cover->area)
		__atomic_store_n(&cover->area[0], 0, __ATOMIC_RELAXED);
}

/* This is slow, and seldom called. */
static void edge_new(struct cover *cover, __u32 edge, unsigned long place)
{
	__u32 at = mix(place, 0) % EDGES;

	if (!atomic_exchange(&edges[edge], 1)) {
		atomic_fetch_add(&nr_edges, 1);
		cover->fresh = true;
	}
	if (!atomic_exchange(&places[at], 1))
		atomic_fetch_add(&nr_places, 1);
}

void cover_end(struct cover *cover)
{
	unsigned long i, nr, last = 0;

	if (!cover->area)
		return;
	nr = __atomic_load_n(&cover->area[0], __ATOMIC_RELAXED);
	for (i = 1; i <= nr; i++) {
		unsigned long place = cover->area[i];
		__u32 edge = ((place ^ last << 20) * 0x9e3779b97f4a7c15ULL) >> 48;

		if (!edges[edge])
			edge_new(cover, edge, place);
		last = place;
	}
}

unsigned int cover_edges(void)
{
	return nr_edges;
}

unsigned int cover_places(void)
{
	return nr_places;
}
