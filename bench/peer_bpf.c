// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of BPF: one in each element of an array.  A batch is put into memory that is shared with a
 * program (timers.bpf.c), and one system call runs the program for all of it.  Expired timeouts
 * come through a ring, which is read without a system call.
 */
#include "bench.h"

#ifdef HAVE_LIBBPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "timers_bpf.h"

/* The size of an event in the ring: four bytes for the index, rounded up, and eight before it. */
#define EVENT_BYTES	16

_Static_assert(BATCH <= TIMERS_BATCH, "a batch goes in one call");

asm(".section .rodata\n"
	".balign 8\n"
	"timers_object:\n"
	".incbin \"" TIMERS_BPF_O "\"\n"
	"timers_object_end:\n"
	".previous\n");

struct bpf_timers {
	uint32_t nr;
	bool stores;
	uint64_t grain_ns;		/* deadlines are rounded up to it */
	struct bpf_object *object;
	struct timers_batch *batch;
	uint64_t *deadline_ns;		/* where stores go */
	struct ring_buffer *ring;
	int make, start, cancel;	/* programs */
};

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int on_event(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)size;
	expired(*(uint32_t *)data);
	return 0;
}

/* ---- loading it ----------------------------------------------------------- */

/* Compare the end of the name: before a section's name stands that of the object. */
static struct bpf_map *map_of(struct bpf_object *object, const char *name)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
		if (strstr(bpf_map__name(map), name))
			return map;
	errx(1, "timers.bpf.o has no %s", name);
}

static int program_of(struct bpf_object *object, const char *name)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(object, name);

	if (!prog)
		errx(1, "timers.bpf.o has no %s", name);
	return bpf_program__fd(prog);
}

static void *mapped(struct bpf_object *object, const char *name, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(map_of(object, name)), 0);

	if (memory == MAP_FAILED)
		err(1, "cannot map %s of timers.bpf.o", name);
	return memory;
}

/* Before 6.4, timers are relative: the program converts the deadlines. */
static uint32_t has_absolute = 1;

/*
 * Room for an event of each timeout, and for one that stays free.  If the ring were smaller, events
 * that find no room would have to be lost or tried again, and a processor does not keep up with
 * many of these.
 */
static uint32_t ring_bytes(uint32_t nr)
{
	uint32_t bytes = getpagesize();

	while (bytes / EVENT_BYTES <= nr)
		bytes *= 2;
	return bytes;
}

/* Return whether it works; if not, errno says why. */
static bool load(struct bpf_timers *t)
{
	const size_t size = timers_object_end - timers_object;
	const uint32_t constants[] = { has_absolute, t->stores };

	t->object = bpf_object__open_mem(timers_object, size, NULL);
	if (!t->object ||
	    bpf_map__set_initial_value(map_of(t->object, ".rodata"), constants,
				       sizeof(constants)) ||
	    bpf_map__set_max_entries(map_of(t->object, "timers"), t->nr) ||
	    bpf_map__set_max_entries(map_of(t->object, "deadlines"), t->stores ? t->nr : 1) ||
	    bpf_map__set_max_entries(map_of(t->object, "events"), ring_bytes(t->nr)) ||
	    bpf_object__load(t->object))
		return false;
	t->batch = mapped(t->object, ".bss", sizeof(*t->batch));
	if (t->stores)
		t->deadline_ns = mapped(t->object, "deadlines", t->nr * sizeof(uint64_t));
	t->make = program_of(t->object, "timers_make");
	t->start = program_of(t->object, "timers_start");
	t->cancel = program_of(t->object, "timers_cancel");
	return true;
}

static void run(const struct bpf_timers *t, int program, uint32_t nr)
{
	t->batch->nr = nr;
	t->batch->error = 0;
	if (bpf_prog_test_run_opts(program, NULL))
		err(1, "BPF_PROG_RUN");
}

static void run_well(const struct bpf_timers *t, int program, uint32_t nr)
{
	run(t, program, nr);
	if (t->batch->nr_done != nr)
		errx(1, "BPF: %u of %u: %s", t->batch->nr_done, nr, strerror(-t->batch->error));
}

/* Try it once, with a timer that nobody waits for. */
static const char *absent(void)
{
	struct bpf_timers t = { .nr = 1 };
	const char *why = NULL;

	libbpf_set_print(silent);
	if (load(&t)) {
		run_well(&t, t.make, 1);
		t.batch->entry[0].deadline_ns = now_ns() + 3600 * SEC;
		run(&t, t.start, 1);
		if (t.batch->error)
			has_absolute = 0;
		munmap(t.batch, sizeof(*t.batch));
	} else {
		why = strerror(errno);
	}
	bpf_object__close(t.object);
	return why;
}

/* ---- the back end --------------------------------------------------------- */

static struct bpf_timers *opened(const struct setup *setup, uint64_t grain_ns, bool stores)
{
	struct bpf_timers *t = get_memory(1, sizeof(*t));

	t->nr = setup->nr;
	t->grain_ns = grain_ns;
	t->stores = stores;
	return t;
}

static void *open_exact(const struct setup *setup)
{
	return opened(setup, 1, false);
}

/* As exact as a wheel of 1 ms: timers of the same millisecond expire together. */
static void *open_1ms(const struct setup *setup)
{
	return opened(setup, MS, false);
}

static void *open_store(const struct setup *setup)
{
	return opened(setup, MS, true);
}

/* Timers are allocated without waiting, which may fail for the moment. */
#define PATIENCE	1000

static void create(void *self, uint32_t first, uint32_t nr)
{
	struct bpf_timers *t = self;
	uint32_t i, tries = 0;

	/* Load the programs once, for all timers. */
	if (!first) {
		if (!load(t))
			err(1, "timers.bpf.o");
		t->ring = ring_buffer__new(bpf_map__fd(map_of(t->object, "events")), on_event,
					   NULL, NULL);
		if (!t->ring)
			err(1, "ring_buffer__new");
	}
	for (i = 0; i < nr; i += t->batch->nr_done) {
		t->batch->first = first + i;
		run(t, t->make, nr - i < TIMERS_BATCH ? nr - i : TIMERS_BATCH);
		if (!t->batch->error)
			continue;
		tries = t->batch->nr_done ? 0 : tries + 1;
		if (t->batch->error != -ENOMEM || tries > PATIENCE)
			errx(1, "bpf_timer_init: %s", strerror(-t->batch->error));
		sleep_until(now_ns() + MS);
	}
}

static uint64_t rounded(const struct bpf_timers *t, uint64_t deadline_ns)
{
	return (deadline_ns + t->grain_ns - 1) / t->grain_ns * t->grain_ns;
}

static void store(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct bpf_timers *t = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		__atomic_store_n(&t->deadline_ns[who[i]], rounded(t, deadline_ns[i]),
				 __ATOMIC_RELAXED);
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	struct bpf_timers *t = self;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		t->batch->entry[i].who = who[i];
		t->batch->entry[i].deadline_ns = rounded(t, deadline_ns[i]);
	}
	if (t->stores)
		store(self, who, deadline_ns, nr);
	run_well(t, t->start, nr);
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	struct bpf_timers *t = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		t->batch->entry[i].who = who[i];
	run_well(t, t->cancel, nr);
}

static void wait_program(void *self, bool sleep)
{
	struct bpf_timers *t = self;
	int got = ring_buffer__consume(t->ring);

	if (sleep && !got)
		got = ring_buffer__poll(t->ring, -1);
	if (got < 0 && got != -EINTR)
		errx(1, "ring_buffer__poll: %s", strerror(-got));
}

/*
 * Add the descriptor to the ring's epoll set.  There, data.fd is a ring's index: 0 is the only one.
 */
static void watch(void *self, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = 0 };
	struct bpf_timers *t = self;

	if (epoll_ctl(ring_buffer__epoll_fd(t->ring), EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

#define BPF_PEER							\
	.absent = absent, .create = create, .arm = arm, .cancel = cancel,\
	.wait = wait_program

const struct peer peer_bpf_timer = {
	BPF_PEER,
	.name = "bpf-timer",
	.usage = "bpf_timer in an array, 256 a run of the program; events by a ring",
	.workloads = DOES_ALL | DOES(WAKEUPS) | DOES(DISPATCH) | DOES(WHEELS) | DOES(SHARED),
	.open = open_exact,
	.refresh = arm,
	.watch = watch,
};

const struct peer peer_bpf_1ms = {
	BPF_PEER,
	.name = "bpf-1ms",
	.usage = "the same, deadlines rounded up to milliseconds",
	.workloads = DOES(EXPIRE) | DOES(MIX) | DOES(LATE),
	.open = open_1ms,
	.refresh = arm,
};

/* Twheel's refresh table, made of BPF: the callback checks whether there is a later deadline. */
const struct peer peer_bpf_store = {
	BPF_PEER,
	.name = "bpf-store",
	.usage = "the same, refresh by a store that the timer's callback finds",
	.workloads = DOES(REFRESH) | DOES(MIX) | DOES(MEMORY) | DOES(RESTART) |
		     DOES(LENGTHS),
	.open = open_store,
	.refresh = store,
};
#else
ABSENT_PEER(peer_bpf_timer, "bpf-timer", "built without clang and libbpf");
ABSENT_PEER(peer_bpf_1ms, "bpf-1ms", "built without clang and libbpf");
ABSENT_PEER(peer_bpf_store, "bpf-store", "built without clang and libbpf");
#endif
