// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_memory.c - pointers for the kernel, good and hostile
 *
 * All memory is mapped twice: at one address we can always write and read it; the other one is
 * given to the kernel, with an edge behind which it is read-only or missing. So we can fill and
 * check memory that the kernel cannot touch.
 */
#include "fuzz.h"

#include <sys/mman.h>

#define PAGE		4096UL
#define READ_ONLY	4	/* read-only pages behind the writable ones */
#define NOWHERE		8	/* missing pages behind those */
#define EDGE		(VIEW_PAGES + READ_ONLY + NOWHERE)	/* first page of the edge */
#define HEAD		(EDGE + 1 + NOWHERE)
#define HEAD_PAGES	2
#define ALL		(HEAD + HEAD_PAGES + 1)

#define ARENA		4	/* pages that all threads write to */

static unsigned char *arena, *arena_mine;
static int arena_fd;

static unsigned char *map(int fd, size_t page, size_t pages, int prot)
{
	void *at = mmap(NULL, pages * PAGE, prot, MAP_SHARED, fd, page * PAGE);

	return at == MAP_FAILED ? NULL : at;
}

int views_make(struct views *views)
{
	int fd = memfd_create("twheel_fuzz", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, ALL * PAGE))
		return -errno;
	views->mine = map(fd, 0, ALL, PROT_READ | PROT_WRITE);
	views->user = map(fd, 0, EDGE, PROT_READ | PROT_WRITE);
	views->edge = map(fd, EDGE, 1 + NOWHERE, PROT_READ | PROT_WRITE);
	views->head = map(fd, HEAD, HEAD_PAGES + 1, PROT_READ | PROT_WRITE);
	close(fd);
	if (!views->mine || !views->user || !views->edge || !views->head)
		return -ENOMEM;
	mprotect(views->user + VIEW_PAGES * PAGE, READ_ONLY * PAGE, PROT_READ);
	mprotect(views->user + (VIEW_PAGES + READ_ONLY) * PAGE, NOWHERE * PAGE, PROT_NONE);
	mprotect(views->head + HEAD_PAGES * PAGE, PAGE, PROT_NONE);
	mprotect(views->edge + PAGE, NOWHERE * PAGE, PROT_NONE);
	return 0;
}

void arena_make(void)
{
	arena_fd = memfd_create("twheel_fuzz_arena", MFD_CLOEXEC);
	if (arena_fd < 0 || ftruncate(arena_fd, (ARENA + NOWHERE) * PAGE))
		exit(1);
	arena_mine = map(arena_fd, 0, ARENA + NOWHERE, PROT_READ | PROT_WRITE);
	arena = map(arena_fd, 0, ARENA + NOWHERE, PROT_READ | PROT_WRITE);
}

/* Change memory that another thread has just given to the kernel, or take it away. */
void arena_scribble(__u64 seed)
{
	size_t from = random_below(&seed, ARENA * PAGE);
	size_t len = 1 + random_below(&seed, ARENA * PAGE - from);
	size_t page = random_below(&seed, ARENA), i;
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	switch (random_below(&seed, 4)) {
	case 0:
		for (i = 0; i < len && i < 512; i++)
			arena_mine[from + i] = random32(&seed);
		break;
	case 1:
		mprotect(arena + page * PAGE, PAGE, prots[random_below(&seed, 3)]);
		break;
	case 2:
		mmap(arena + page * PAGE, PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, arena_fd, page * PAGE);
		break;
	case 3:		/* map other memory in the same place */
		mmap(arena + page * PAGE, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	}
}

static struct place at_view(struct thread *t, size_t offset)
{
	return (struct place){
		.user		= (uintptr_t)t->views.user + offset,
		.mine		= t->views.mine + offset,
		.writable	= offset < VIEW_PAGES * PAGE ? VIEW_PAGES * PAGE - offset : 0,
	};
}

static struct place at_edge(struct thread *t, size_t offset)
{
	return (struct place){
		.user		= (uintptr_t)t->views.edge + offset,
		.mine		= t->views.mine + EDGE * PAGE + offset,
		.writable	= offset < PAGE ? PAGE - offset : 0,
	};
}

/* Return an address at which we have no memory at all. */
static struct place at_address(struct thread *t, __u64 seed)
{
	static const __u64 addresses[] = {
		0, 1, PAGE, 0x7ffffffff000ULL - 16, 0x7ffffffff000ULL, 0x800000000000ULL,
		0xffff800000000000ULL, 0xffff888000000000ULL, 0xffffffff81000000ULL,
		~0ULL - 7, ~0ULL - 100, ~0ULL,
	};
	struct place place = at_view(t, 0);

	place.user = addresses[random_below(&seed, 12)];
	place.writable = 0;
	return place;
}

/*
 * Choose memory for @len bytes, mostly at a multiple of 8. If the wheel is strict, other threads
 * must not write to it: the results of the call would be lost.
 */
struct place place_choose(struct thread *t, __u8 kind, __u64 seed, size_t len, bool strict)
{
	size_t cut = len ? random_below(&seed, len + 1) : 0;
	size_t end = VIEW_PAGES * PAGE;
	struct place place;

	if (!one_in(&seed, 8))
		cut &= ~7UL;
	if (!kind || len > HOSTILE_MAX)
		return at_view(t, 0);
	switch (kind % 8) {
	case 0:		/* right up to the edge */
		return at_view(t, end - len);
	case 1:		/* the last part is read-only */
		return at_view(t, end - cut);
	case 2:		/* all of it is */
		return at_view(t, end);
	case 3:		/* the last part is not there */
		return at_edge(t, PAGE - (cut > PAGE ? PAGE : cut));
	case 4:		/* neither is the first */
		return at_edge(t, PAGE);
	case 5:
		return at_address(t, seed);
	case 6:		/* aligned to nothing */
		return at_view(t, 1 + random_below(&seed, 63));
	default:
		if (strict || len > ARENA * PAGE)
			return at_view(t, 0);
		place = at_view(t, 0);
		place.user = (uintptr_t)arena;
		place.mine = arena_mine;
		place.lossy = true;
		return place;
	}
}

/* Choose memory for the structure that a command's argument points to. */
struct place place_head(struct thread *t, __u8 kind, __u64 seed)
{
	struct place place = {
		.user		= (uintptr_t)t->views.head,
		.mine		= t->views.mine + HEAD * PAGE,
		.writable	= HEAD_PAGES * PAGE,
	};

	/* Usually the kernel should be able to read the structure. */
	if (!kind || kind % 4)
		return place;
	if (kind % 3) {
		struct place bad = at_address(t, seed);

		bad.mine = place.mine;
		return bad;
	}
	place.user += one_in(&seed, 2) ? HEAD_PAGES * PAGE - 12 : 4;
	place.mine += place.user - (uintptr_t)t->views.head;
	place.writable -= place.user - (uintptr_t)t->views.head;
	return place;
}
