/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A call that is held in the middle: by userfaultfd, in a fault in the caller's own memory, until
 * the test lets it go on.
 *
 * Most calls copy results out before they do anything. If memory can be read and not written, it
 * holds them there. If memory does not exist yet, it holds a call that copies in.
 */
#ifndef TWHEEL_HELD_H
#define TWHEEL_HELD_H

#include "twheel_test.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Two pages; a fault in the second one holds the caller. */
struct held_memory {
	int faults;		/* the userfaultfd, or -1 if the kernel has none of the kind */
	size_t page;
	char *map;
	char *edge;		/* where the second page begins */
	__u64 mode;
	/* the bytes that are copied into memory that does not exist yet */
	char *image;
};

/* Map memory whose second page is to be missing (UFFDIO_REGISTER_MODE_MISSING or _WP). */
static inline void held_memory_make(struct held_memory *memory, __u64 mode)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = mode == UFFDIO_REGISTER_MODE_WP ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};
	struct uffdio_register range = { .mode = mode };

	memory->mode = mode;
	memory->page = sysconf(_SC_PAGESIZE);
	memory->map = mmap(NULL, 2 * memory->page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory->image = calloc(1, memory->page);
	memory->edge = memory->map + memory->page;
	memory->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (memory->faults < 0)
		return;
	memset(memory->map, TW_POISON, 2 * memory->page);
	range.range = (struct uffdio_range){ (uintptr_t)memory->edge, memory->page };
	if (ioctl(memory->faults, UFFDIO_API, &api) ||
	    ioctl(memory->faults, UFFDIO_REGISTER, &range)) {
		close(memory->faults);
		memory->faults = -1;
	}
}

static inline void held_memory_free(struct held_memory *memory)
{
	if (memory->faults >= 0)
		close(memory->faults);
	munmap(memory->map, 2 * memory->page);
	free(memory->image);
}

/*
 * Place bytes so that this many of them are before the edge; if a caller reads or writes the
 * others, they hold it. Return their address, or NULL.
 */
static inline void *held_lay(struct held_memory *memory, const void *bytes, size_t size,
			     size_t before)
{
	struct uffdio_writeprotect protect = {
		.range = { (uintptr_t)memory->edge, memory->page },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (memory->mode == UFFDIO_REGISTER_MODE_WP) {
		memcpy(memory->edge - before, bytes, size);
		if (ioctl(memory->faults, UFFDIO_WRITEPROTECT, &protect))
			return NULL;
	} else {
		memcpy(memory->edge - before, bytes, before);
		memcpy(memory->image, (const char *)bytes + before, size - before);
		if (madvise(memory->edge, memory->page, MADV_DONTNEED))
			return NULL;
	}
	return memory->edge - before;
}

/* Wait until a caller is held: return 0, or -ETIMEDOUT. */
static inline int held_wait(struct held_memory *memory)
{
	struct uffd_msg msg;

	if (tw_poll(memory->faults, POLLIN, TW_PATIENCE_MS) != POLLIN)
		return -ETIMEDOUT;
	if (read(memory->faults, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_PAGEFAULT)
		return TW_BROKEN;
	return 0;
}

/* Let the call go on. */
static inline int held_release(struct held_memory *memory)
{
	struct uffdio_writeprotect unprotect = {
		.range = { (uintptr_t)memory->edge, memory->page },
	};
	struct uffdio_copy copy = {
		.dst = (uintptr_t)memory->edge,
		.src = (uintptr_t)memory->image,
		.len = memory->page,
	};

	if (memory->mode == UFFDIO_REGISTER_MODE_WP)
		return ioctl(memory->faults, UFFDIO_WRITEPROTECT, &unprotect);
	return ioctl(memory->faults, UFFDIO_COPY, &copy);
}

/* ---- the call ------------------------------------------------------------ */

/* A call in a thread of its own. A command uses exactly one of the two arguments. */
struct held_call {
	pthread_t thread;
	int fd;
	unsigned long cmd;	/* 0 for read(), 1 for write() */
	struct twheel_vector vector;
	struct twheel_list list;
	void *bytes;
	size_t size;
	bool pieces;		/* read() into more than one piece of memory */
	int ret;		/* the result of the call, or -errno */
};

#define HELD_READ	0
#define HELD_WRITE	1

static inline void *held_run(void *arg)
{
	struct held_call *call = arg;
	ssize_t ret;

	if (call->cmd == HELD_READ && call->pieces)
		ret = tw_read_pieces(call->fd, call->bytes, call->size);
	else if (call->cmd == HELD_READ)
		ret = read(call->fd, call->bytes, call->size);
	else if (call->cmd == HELD_WRITE)
		ret = write(call->fd, call->bytes, call->size);
	else if (call->cmd == TWHEEL_IOC_LIST)
		ret = ioctl(call->fd, call->cmd, &call->list);
	else
		ret = ioctl(call->fd, call->cmd, &call->vector);
	call->ret = ret < 0 ? -errno : (int)ret;
	return NULL;
}

/* Prepare a call with nr elements of this many bytes each, at bytes. */
static inline void held_prepare(struct held_call *call, int fd, unsigned long cmd, __u32 flags,
				void *bytes, __u32 element_size, __u32 nr)
{
	*call = (struct held_call){
		.fd = fd,
		.cmd = cmd,
		.vector = {
			.size = sizeof(call->vector),
			.entry_size = element_size,
			.nr = nr,
			.flags = flags,
			.entries = (uintptr_t)bytes,
			.nr_done = TW_POISON32,
		},
		.list = {
			.size = sizeof(call->list),
			.entry_size = element_size,
			.nr = nr,
			.entries = (uintptr_t)bytes,
		},
		.bytes = bytes,
		.size = (size_t)element_size * nr,
	};
}

/* Begin the call, and return 0 when it is held. */
static inline int held_begin(struct held_call *call, struct held_memory *memory)
{
	int ret = pthread_create(&call->thread, NULL, held_run, call);

	return ret ? -ret : held_wait(memory);
}

/* Let the call go on, and return 0 when it is over. */
static inline int held_end(struct held_call *call, struct held_memory *memory)
{
	struct timespec until;

	if (held_release(memory))
		return -errno;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TW_PATIENCE_MS / 1000;
	return -pthread_timedjoin_np(call->thread, NULL, &until);
}

#endif /* TWHEEL_HELD_H */
