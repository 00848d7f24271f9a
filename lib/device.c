// SPDX-License-Identifier: MIT
/*
 * The client of the device: what <twheel/device.h> offers
 *
 * Of a device, only the address of the refresh table changes, once, by compare and exchange: so
 * threads share a device without a lock.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The library exports what the header declares. */
#define _TWHEEL_DEVICE_LIBRARY
#pragma GCC visibility push(default)
#include "twheel/device.h"
#pragma GCC visibility pop

/* Functions that are not inline go by these sizes: if a structure grows, a symbol keeps the old. */
static_assert(sizeof(struct twheel_info) == 760, "info");
static_assert(sizeof(struct twheel_arm) == 56, "arm");
static_assert(sizeof(struct twheel_cancel) == 16, "cancel");
static_assert(sizeof(struct twheel_status) == 80, "status");
static_assert(sizeof(struct twheel_event) == 40, "event");

/* In one read. */
#define EVENTS_MAX		65536U

struct twheel_device {
	int fd;
	struct twheel_info info;	/* of which only what never changes is used */
	twheel_word_t *table;
};

static int device_ioctl(int fd, unsigned long command, const void *argument)
{
	int ret = ioctl(fd, command, argument);

	return ret < 0 ? -errno : ret;
}

/* If the wheel was set up, armed or drained before, or the descriptor only reads, leave it so. */
static int device_learn(struct twheel_device *d, const struct twheel_setup *setup)
{
	const struct twheel_setup usual = {
		.size = sizeof(usual), .clock = TWHEEL_CLOCK_MONOTONIC,
	};
	int err, ret = device_ioctl(d->fd, TWHEEL_IOC_SETUP, setup ? setup : &usual);

	if (ret && ret != -EBUSY && ret != -ESHUTDOWN && ret != -EBADF)
		return ret;
	err = twheel_device_info(d, &d->info, 0);
	if (err < 0)
		return err;
	if (ret == -EBADF && d->info.state == TWHEEL_WHEEL_NEW)
		return ret;
	/* Another driver may have commands of these numbers. */
	if (!d->info.max_vector || d->info.event_size < TWHEEL_EVENT_SIZE_MIN ||
	    d->info.event_size > TWHEEL_EVENT_SIZE_MAX)
		return -ENOTTY;
	return 0;
}

/* Return a descriptor that exec closes and that is not 0, 1 or 2, in place of this one. */
static int descriptor_move(int fd)
{
	int moved;

	if (fd > STDERR_FILENO)
		return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		return -errno;
	close(fd);
	return moved;
}

int twheel_device_adopt(struct twheel_device **d, int fd, const struct twheel_setup *setup)
{
	struct twheel_device *new = calloc(1, sizeof(*new));
	int ret;

	*d = NULL;
	if (!new)
		return -ENOMEM;
	new->fd = fd;
	ret = device_learn(new, setup);
	if (!ret)
		ret = descriptor_move(fd);
	if (ret < 0) {
		free(new);
		return ret;
	}
	new->fd = ret;
	*d = new;
	return 0;
}

int twheel_device_open(struct twheel_device **d, const char *path, int flags,
		       const struct twheel_setup *setup)
{
	int ret, fd = open(path ? path : "/dev/twheel", O_RDWR | O_CLOEXEC | flags);

	*d = NULL;
	if (fd < 0)
		return -errno;
	ret = twheel_device_adopt(d, fd, setup);
	if (ret < 0)
		close(fd);
	return ret;
}

void twheel_device_close(struct twheel_device *d)
{
	if (!d)
		return;
	if (d->table)
		munmap(d->table, (size_t)d->info.refresh_size);
	close(d->fd);
	free(d);
}

int twheel_device_fd(const struct twheel_device *d)
{
	return d->fd;
}

int _twheel_device_info(const struct twheel_device *d, struct twheel_info *info, size_t size,
			uint32_t flags)
{
	info->size = (uint32_t)size;
	info->flags = flags;
	return device_ioctl(d->fd, TWHEEL_IOC_INFO, info);
}

int twheel_device_now(const struct twheel_device *d, uint64_t *now_ns)
{
	struct twheel_info info;
	int ret = twheel_device_info(d, &info, 0);

	if (!ret)
		*now_ns = info.now_ns;
	return ret;
}

int _twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
			struct twheel_status *rows, size_t size, uint32_t nr)
{
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = (uint32_t)size,
		.nr = nr,
		.cursor = *cursor,
		.entries = (uintptr_t)rows,
	};
	int ret = device_ioctl(d->fd, TWHEEL_IOC_LIST, &list);

	*cursor = list.cursor;
	return ret;
}

int twheel_device_reopen(const struct twheel_device *d, int flags)
{
	struct twheel_reopen reopen = { .size = sizeof(reopen), .flags = (unsigned int)flags };

	return device_ioctl(d->fd, TWHEEL_IOC_REOPEN, &reopen);
}

int twheel_device_drain(const struct twheel_device *d)
{
	return device_ioctl(d->fd, TWHEEL_IOC_DRAIN, NULL);
}

int twheel_device_advance(const struct twheel_device *d, uint64_t to_ns)
{
	struct twheel_advance advance = { .size = sizeof(advance), .to_ns = to_ns };

	return device_ioctl(d->fd, TWHEEL_IOC_ADVANCE, &advance);
}

uint32_t _twheel_device_vector(const struct twheel_device *d, uint32_t command, uint32_t flags,
			       void *elements, size_t size, size_t result, uint32_t nr)
{
	unsigned char *element = elements;
	uint32_t nr_ok = 0;
	int ret = 0;

	while (nr) {
		struct twheel_vector vector = {
			.size = sizeof(vector),
			.entry_size = (uint32_t)size,
			.nr = nr < d->info.max_vector ? nr : d->info.max_vector,
			.flags = flags,
			.entries = (uintptr_t)element,
		};

		ret = device_ioctl(d->fd, command, &vector);
		/* If the descriptor is of another driver now, nr_done was not written. */
		if (ret >= 0 && (!vector.nr_done || vector.nr_done > vector.nr))
			ret = -EIO;
		if (ret < 0)
			break;
		nr_ok += (uint32_t)ret;
		nr -= vector.nr_done;
		element += vector.nr_done * size;
	}
	/* The elements from the one that stopped the call on have its error. */
	for (; nr; nr--, element += size)
		memcpy(element + result, &ret, sizeof(ret));
	return nr_ok;
}

/* In both structures the result is behind the id. */
static_assert(offsetof(struct twheel_arm, result) == offsetof(struct twheel_arm, id) + 8, "arm");
static_assert(offsetof(struct twheel_cancel, result) == 8, "cancel");

/* Elements follow one another in memory: a run that takes one call is a vector. */
struct element {
	__u64 *id;
	uint32_t id_offset;
	uint32_t size;		/* bytes */
	uint32_t command;
	uint32_t flags;
} __attribute__((__aligned__(8)));

struct twheel_batch {
	const struct twheel_device *device;
	size_t size;		/* the longest that an element may be, bytes */
	unsigned char *end;	/* of the last element in memory */
	uint32_t capacity;	/* elements */
	uint32_t nr;		/* how many were added, */
	uint32_t submitted;	/* and how many of these submitted */
	struct element elements[];
};

int _twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity,
		       size_t size)
{
	const size_t each = sizeof(struct element) + size;

	*b = NULL;
	if (!capacity || capacity > d->info.max_vector || each > INT32_MAX / capacity)
		return -EINVAL;
	*b = malloc(sizeof(**b) + capacity * each);
	if (!*b)
		return -ENOMEM;
	**b = (struct twheel_batch){ .device = d, .size = size, .capacity = capacity };
	twheel_batch_reset(*b);
	return 0;
}

void twheel_batch_close(struct twheel_batch *b)
{
	free(b);
}

union _twheel_element _twheel_batch_add(struct twheel_batch *b, uint32_t command, uint32_t flags,
					uint32_t size, uint32_t id_offset, uint64_t id)
{
	unsigned char *element = b->end;
	__u64 *to;

	if (b->nr == b->capacity || size > b->size)
		return (union _twheel_element){ NULL };
	memset(element, 0, size);
	to = (__u64 *)(element + id_offset);
	*to = id;
	*(__s32 *)(to + 1) = -EINPROGRESS;
	b->elements[b->nr++] = (struct element){ to, id_offset, size, command, flags };
	b->end += size;
	return (union _twheel_element){ (struct twheel_arm *)element };
}

uint32_t twheel_batch_submit(struct twheel_batch *b)
{
	uint32_t nr_ok = 0;

	while (b->submitted < b->nr) {
		const struct element *e = &b->elements[b->submitted];
		uint32_t nr = 1;

		while (++b->submitted < b->nr && e[nr].command == e->command &&
		       e[nr].flags == e->flags && e[nr].size == e->size)
			nr++;
		nr_ok += _twheel_device_vector(b->device, e->command, e->flags,
					       (unsigned char *)e->id - e->id_offset, e->size,
					       e->id_offset + sizeof(*e->id), nr);
	}
	return nr_ok;
}

void twheel_batch_reset(struct twheel_batch *b)
{
	b->nr = 0;
	b->submitted = 0;
	b->end = (unsigned char *)&b->elements[b->capacity];
}

uint32_t twheel_batch_nr(const struct twheel_batch *b)
{
	return b->nr;
}

int twheel_batch_result(struct twheel_batch *b, uint32_t index)
{
	return index < b->nr ? *(__s32 *)(b->elements[index].id + 1) : -EINVAL;
}

uint64_t twheel_batch_id(struct twheel_batch *b, uint32_t index)
{
	return index < b->nr ? *b->elements[index].id : 0;
}

int _twheel_device_read(const struct twheel_device *d, struct twheel_event *events, size_t size,
			uint32_t nr)
{
	const size_t length = d->info.event_size;
	unsigned char buffer[2 * TWHEEL_EVENT_SIZE_MAX];
	const bool fits = size == length;
	const size_t max = fits ? EVENTS_MAX : sizeof(buffer) / length;
	ssize_t bytes = read(d->fd, fits ? (void *)events : buffer, (nr < max ? nr : max) * length);
	size_t i;

	if (bytes < 0)
		return -errno;
	/* The descriptor is of another driver now. */
	if ((size_t)bytes % length)
		return -EIO;
	for (i = 0; !fits && i < (size_t)bytes / length; i++)
		memcpy(memset((unsigned char *)events + i * size, 0, size), buffer + i * length,
		       size < length ? size : length);
	return (int)((size_t)bytes / length);
}

struct twheel_reader {
	const struct twheel_device *device;
	unsigned char *next;	/* event in buffer[], */
	uint32_t left;		/* and how many there are from there on */
	uint32_t nr;		/* how many there is room for */
	__aligned_u64 buffer[];
};

int twheel_reader_open(struct twheel_reader **r, const struct twheel_device *d, uint32_t nr)
{
	*r = NULL;
	if (!nr || nr > EVENTS_MAX)
		return -EINVAL;
	*r = malloc(sizeof(**r) + (size_t)nr * d->info.event_size);
	if (!*r)
		return -ENOMEM;
	**r = (struct twheel_reader){ .device = d, .nr = nr };
	return 0;
}

void twheel_reader_close(struct twheel_reader *r)
{
	free(r);
}

int _twheel_reader_next(struct twheel_reader *r, struct twheel_event *event, size_t size)
{
	const size_t length = r->device->info.event_size;

	if (!r->left) {
		int ret = _twheel_device_read(r->device, (void *)r->buffer, length, r->nr);

		if (ret <= 0)
			return ret;
		r->left = (uint32_t)ret;
		r->next = (unsigned char *)r->buffer;
	}
	memcpy(memset(event, 0, size), r->next, size < length ? size : length);
	r->next += length;
	r->left--;
	return 1;
}

uint32_t twheel_reader_left(const struct twheel_reader *r)
{
	return r->left;
}

int twheel_device_map(struct twheel_device *d, twheel_word_t **table, uint32_t *shift)
{
	twheel_word_t *known = __atomic_load_n(&d->table, __ATOMIC_ACQUIRE);
	void *mapped;

	if (!_TWHEEL_ATOMIC_WORDS)
		return -EOPNOTSUPP;
	if (d->info.refresh_size > SIZE_MAX)
		return -ENOMEM;
	if (!known) {
		mapped = mmap(NULL, (size_t)d->info.refresh_size, PROT_READ | PROT_WRITE,
			      MAP_SHARED, d->fd, 0);
		if (mapped == MAP_FAILED)
			return -errno;
		/* If another thread was faster, its table is the one. */
		if (__atomic_compare_exchange_n(&d->table, &known, mapped, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			known = mapped;
		else
			munmap(mapped, (size_t)d->info.refresh_size);
	}
	*table = known;
	*shift = d->info.refresh_shift;
	return 0;
}

int twheel_device_refresh(struct twheel_device *d, uint64_t id, uint64_t deadline_ns)
{
	twheel_word_t *table = NULL;
	uint32_t shift = 0;
	int ret = twheel_device_map(d, &table, &shift);

	if (ret < 0)
		return ret;
	if (!id || (id & UINT32_MAX) >= d->info.refresh_size / sizeof(*table))
		return -EINVAL;
	return twheel_refresh(table, id, twheel_refresh_deadline(deadline_ns, shift));
}
