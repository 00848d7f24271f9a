// SPDX-License-Identifier: MIT
/*
 * The client of the device: what <twheel/device.h> offers
 *
 * A device is a descriptor, and what INFO says of its wheel that never changes.  The address
 * of the refresh table is the only member that changes, once, by compare and exchange: so
 * threads share a device without a lock.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "options.h"

/* The library exports what the header declares. */
#define _TWHEEL_DEVICE_LIBRARY
#pragma GCC visibility push(default)
#include "twheel/device.h"
#pragma GCC visibility pop

/*
 * The functions that are not inline go by the sizes that these have here.  If one grows, the
 * present symbols have to keep the old size, for programs that have the old structure.
 */
static_assert(sizeof(struct twheel_info) == 472, "info");
static_assert(sizeof(struct twheel_arm) == 56, "arm");
static_assert(sizeof(struct twheel_cancel) == 16, "cancel");
static_assert(sizeof(struct twheel_status) == 72, "status");
static_assert(sizeof(struct twheel_event) == 40, "event");

/* The size of the options in the first release. */
#define OPTIONS_SIZE_FIRST	sizeof(struct twheel_device_options)

#define READER_MAX		65536U

struct twheel_device {
	int fd;
	uint32_t event_size;
	uint32_t max_vector;
	uint32_t refresh_shift;
	uint64_t refresh_size;
	twheel_word_t *table;
};

static int device_ioctl(int fd, unsigned long command, void *argument)
{
	int ret = ioctl(fd, command, argument);

	return ret < 0 ? -errno : ret;
}

/* ---- the device ---------------------------------------------------------- */

static int options_get(struct twheel_device_options *to, const struct twheel_device_options *from)
{
	int ret = options_copy(to, sizeof(*to), OPTIONS_SIZE_FIRST, from);

	if (ret)
		return ret;
	return to->reserved ? -EINVAL : 0;
}

/*
 * Set the wheel up, unless somebody has done that, or has armed or drained it.  After that,
 * what INFO says here is final.
 */
static int device_learn(struct twheel_device *d, int fd, const struct twheel_device_options *o)
{
	struct twheel_info info = { .size = sizeof(info), .flags = TWHEEL_INFO_NO_WALK };
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = o->clock ? o->clock : TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = o->tick_ns,
		.slots = o->slots,
		.max_pending = o->max_pending,
		.flags = o->setup_flags,
		.event_size = o->event_size,
		.slack_ns = o->slack_ns,
	};
	int ret = device_ioctl(fd, TWHEEL_IOC_SETUP, &setup);

	if (!ret || ret == -EBUSY || ret == -ESHUTDOWN)
		ret = device_ioctl(fd, TWHEEL_IOC_INFO, &info);
	if (ret < 0)
		return ret;
	/* Another driver may have commands of these numbers. */
	if (!info.max_vector || info.event_size < TWHEEL_EVENT_SIZE_MIN ||
	    info.event_size > TWHEEL_EVENT_SIZE_MAX)
		return -ENOTTY;
	d->event_size = info.event_size;
	d->max_vector = info.max_vector;
	d->refresh_shift = info.refresh_shift;
	if (info.features & TWHEEL_FEATURE_REFRESH)
		d->refresh_size = info.refresh_size;
	return 0;
}

/* A descriptor that exec closes and that is not 0, 1 or 2, in place of this one. */
static int descriptor_move(int fd)
{
	int moved = fd;

	if (fd <= STDERR_FILENO) {
		moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (moved >= 0)
			close(fd);
	} else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
		moved = -1;
	}
	return moved < 0 ? -errno : moved;
}

int twheel_device_adopt(struct twheel_device **d, int fd,
			const struct twheel_device_options *options)
{
	struct twheel_device *new = calloc(1, sizeof(*new));
	struct twheel_device_options o;
	int ret = new ? options_get(&o, options) : -ENOMEM;

	*d = NULL;
	if (!ret)
		ret = device_learn(new, fd, &o);
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

int twheel_device_open(struct twheel_device **d, const struct twheel_device_options *options)
{
	struct twheel_device_options o;
	int fd, ret = options_get(&o, options);

	*d = NULL;
	if (ret < 0)
		return ret;
	fd = open(o.path ? o.path : "/dev/twheel",
		  O_RDWR | O_CLOEXEC | (o.nonblocking ? O_NONBLOCK : 0));
	if (fd < 0)
		return -errno;
	ret = twheel_device_adopt(d, fd, options);
	if (ret < 0)
		close(fd);
	return ret;
}

void twheel_device_close(struct twheel_device *d)
{
	if (!d)
		return;
	if (d->table)
		munmap(d->table, (size_t)d->refresh_size);
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
	int ret = twheel_device_info(d, &info, TWHEEL_INFO_NO_WALK);

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

int twheel_device_drain(const struct twheel_device *d)
{
	return device_ioctl(d->fd, TWHEEL_IOC_DRAIN, NULL);
}

int twheel_device_advance(const struct twheel_device *d, uint64_t to_ns)
{
	struct twheel_advance advance = { .size = sizeof(advance), .to_ns = to_ns };

	return device_ioctl(d->fd, TWHEEL_IOC_ADVANCE, &advance);
}

/* ---- one timeout --------------------------------------------------------- */

/*
 * One call.  @nr_ok: in and out.  Returns how many elements were attempted, 1 at least, or why
 * none was.
 */
static int device_vector(const struct twheel_device *d, uint32_t command, uint32_t flags,
			 void *elements, size_t size, uint32_t nr, uint32_t *nr_ok)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = (uint32_t)size,
		.nr = nr,
		.flags = flags,
		.entries = (uintptr_t)elements,
	};
	int ret = device_ioctl(d->fd, command, &vector);

	if (ret < 0)
		return ret;
	/* If the descriptor is something else now, nobody has written it. */
	if (!vector.nr_done || vector.nr_done > nr)
		return -EIO;
	*nr_ok += (uint32_t)ret;
	return (int)vector.nr_done;
}

static int device_one(const struct twheel_device *d, uint32_t command, uint32_t flags,
		      void *element, size_t size, const int32_t *result)
{
	uint32_t nr_ok = 0;
	int ret = device_vector(d, command, flags, element, size, 1, &nr_ok);

	return ret < 0 ? ret : *result;
}

int _twheel_device_arm(const struct twheel_device *d, uint32_t command, uint32_t flags,
		       struct twheel_arm *arm, size_t size)
{
	return device_one(d, command, flags, arm, size, &arm->result);
}

static int device_cancel(const struct twheel_device *d, uint32_t flags, uint64_t id)
{
	struct twheel_cancel cancel = { .id = id };

	return device_one(d, TWHEEL_IOC_CANCEL, flags, &cancel, sizeof(cancel), &cancel.result);
}

int twheel_device_cancel(const struct twheel_device *d, uint64_t id)
{
	return device_cancel(d, 0, id);
}

int twheel_device_cancel_key(const struct twheel_device *d, uint64_t key)
{
	return device_cancel(d, TWHEEL_VECTOR_BY_KEY, key);
}

int _twheel_device_query(const struct twheel_device *d, uint32_t flags,
			 struct twheel_status *status, size_t size)
{
	return device_one(d, TWHEEL_IOC_QUERY, flags, status, size, &status->result);
}

/* ---- many timeouts ------------------------------------------------------- */

/* The functions that add an element: a run of one kind is submitted together. */
enum kind {
	KIND_ARM,
	KIND_REARM,
	KIND_REARM_KEY,
	KIND_CANCEL,
	KIND_CANCEL_KEY,
};

static const struct {
	uint32_t command;
	uint32_t flags;
	size_t id;		/* offsets in an element */
	size_t result;
} kinds[] = {
#define BY_KEY		TWHEEL_VECTOR_BY_KEY
#define ELEMENT(type)	offsetof(struct type, id), offsetof(struct type, result)
	[KIND_ARM]		= { TWHEEL_IOC_ARM, 0, ELEMENT(twheel_arm) },
	[KIND_REARM]		= { TWHEEL_IOC_REARM, 0, ELEMENT(twheel_arm) },
	[KIND_REARM_KEY]	= { TWHEEL_IOC_REARM, BY_KEY, ELEMENT(twheel_arm) },
	[KIND_CANCEL]		= { TWHEEL_IOC_CANCEL, 0, ELEMENT(twheel_cancel) },
	[KIND_CANCEL_KEY]	= { TWHEEL_IOC_CANCEL, BY_KEY, ELEMENT(twheel_cancel) },
};

/* Elements are as long as a multiple of 8: the lowest bits of an offset can be a kind. */
#define KIND_MASK	7U

struct twheel_batch {
	const struct twheel_device *device;
	uint32_t arm_size;	/* of the program's structure, or of ours, if that is longer */
	uint32_t cancel_size;	/* likewise */
	uint32_t capacity;	/* elements */
	uint32_t nr;		/* how many were added, */
	uint32_t submitted;	/* and how many of these submitted */
	uint32_t used;		/* bytes of elements[] */
	uint32_t *where;	/* of each: its offset in elements[], and its kind */
	__aligned_u64 elements[];	/* a run of one kind is a vector */
};

static enum kind batch_kind(const struct twheel_batch *b, uint32_t index)
{
	return b->where[index] & KIND_MASK;
}

static void *batch_element(struct twheel_batch *b, uint32_t index, size_t offset)
{
	return (unsigned char *)b->elements + (b->where[index] & ~KIND_MASK) + offset;
}

static int32_t *batch_result(struct twheel_batch *b, uint32_t index)
{
	return batch_element(b, index, kinds[batch_kind(b, index)].result);
}

static size_t size_max(size_t a, size_t b)
{
	return a > b ? a : b;
}

int _twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity,
		       size_t arm_size, size_t cancel_size)
{
	const size_t arm = size_max(arm_size, sizeof(struct twheel_arm));
	const size_t cancel = size_max(cancel_size, sizeof(struct twheel_cancel));
	const size_t longest = size_max(arm, cancel);
	struct twheel_batch *new;

	*b = NULL;
	if (!capacity || capacity > d->max_vector ||
	    longest + sizeof(*new->where) > INT32_MAX / capacity)
		return -EINVAL;
	new = malloc(sizeof(*new) + capacity * (longest + sizeof(*new->where)));
	if (!new)
		return -ENOMEM;
	new->device = d;
	new->arm_size = (uint32_t)arm;
	new->cancel_size = (uint32_t)cancel;
	new->capacity = capacity;
	new->where = (uint32_t *)((unsigned char *)new->elements + capacity * longest);
	twheel_batch_reset(new);
	*b = new;
	return 0;
}

void twheel_batch_close(struct twheel_batch *b)
{
	free(b);
}

static inline void *batch_add(struct twheel_batch *b, enum kind kind, uint32_t size)
{
	unsigned char *element = (unsigned char *)b->elements + b->used;

	if (b->nr == b->capacity)
		return NULL;
	b->where[b->nr++] = b->used | kind;
	b->used += size;
	return element;
}

/* Clear what a later header has at the end of an element, and return the element. */
static __attribute__((noinline, cold)) void *element_clear(void *element, size_t known, size_t size)
{
	memset((unsigned char *)element + known, 0, size - known);
	return element;
}

static inline struct twheel_arm *batch_add_arm(struct twheel_batch *b, enum kind kind, uint64_t id,
					       uint64_t user_data, uint64_t expires_ns)
{
	struct twheel_arm *arm = batch_add(b, kind, b->arm_size);

	if (!arm)
		return NULL;
	*arm = (struct twheel_arm){
		.expires_ns = expires_ns,
		.user_data = user_data,
		.id = id,
		.result = -EINPROGRESS,
	};
	return b->arm_size > sizeof(*arm) ? element_clear(arm, sizeof(*arm), b->arm_size) : arm;
}

static inline struct twheel_cancel *batch_add_cancel(struct twheel_batch *b, enum kind kind,
						     uint64_t id)
{
	struct twheel_cancel *cancel = batch_add(b, kind, b->cancel_size);

	if (!cancel)
		return NULL;
	*cancel = (struct twheel_cancel){ .id = id, .result = -EINPROGRESS };
	return b->cancel_size > sizeof(*cancel) ?
		element_clear(cancel, sizeof(*cancel), b->cancel_size) : cancel;
}

struct twheel_arm *twheel_batch_arm(struct twheel_batch *b, uint64_t user_data,
				    uint64_t expires_ns)
{
	return batch_add_arm(b, KIND_ARM, 0, user_data, expires_ns);
}

struct twheel_arm *twheel_batch_rearm(struct twheel_batch *b, uint64_t id, uint64_t expires_ns)
{
	return batch_add_arm(b, KIND_REARM, id, 0, expires_ns);
}

struct twheel_arm *twheel_batch_rearm_key(struct twheel_batch *b, uint64_t key,
					  uint64_t expires_ns)
{
	return batch_add_arm(b, KIND_REARM_KEY, key, 0, expires_ns);
}

struct twheel_cancel *twheel_batch_cancel(struct twheel_batch *b, uint64_t id)
{
	return batch_add_cancel(b, KIND_CANCEL, id);
}

struct twheel_cancel *twheel_batch_cancel_key(struct twheel_batch *b, uint64_t key)
{
	return batch_add_cancel(b, KIND_CANCEL_KEY, key);
}

uint32_t twheel_batch_submit(struct twheel_batch *b)
{
	uint32_t end, nr_ok = 0;

	while (b->submitted < b->nr) {
		enum kind kind = batch_kind(b, b->submitted);
		int done;

		for (end = b->submitted + 1; end < b->nr && batch_kind(b, end) == kind; )
			end++;
		done = device_vector(b->device, kinds[kind].command, kinds[kind].flags,
				     batch_element(b, b->submitted, 0),
				     kind < KIND_CANCEL ? b->arm_size : b->cancel_size,
				     end - b->submitted, &nr_ok);
		/* A call that was stopped goes on, and says why if it cannot. */
		if (done > 0)
			b->submitted += (uint32_t)done;
		else
			while (b->submitted < end)
				*batch_result(b, b->submitted++) = done;
	}
	return nr_ok;
}

void twheel_batch_reset(struct twheel_batch *b)
{
	b->nr = 0;
	b->submitted = 0;
	b->used = 0;
}

uint32_t twheel_batch_nr(const struct twheel_batch *b)
{
	return b->nr;
}

int twheel_batch_result(struct twheel_batch *b, uint32_t index)
{
	return index < b->nr ? *batch_result(b, index) : -EINVAL;
}

uint64_t twheel_batch_id(struct twheel_batch *b, uint32_t index)
{
	const __u64 *id;

	if (index >= b->nr)
		return 0;
	id = batch_element(b, index, kinds[batch_kind(b, index)].id);
	return *id;
}

/* ---- events -------------------------------------------------------------- */

struct twheel_reader {
	const struct twheel_device *device;
	size_t size;		/* of buffer[], bytes */
	size_t begin;		/* offset of the next event */
	size_t end;		/* and of the end of the last one */
	__aligned_u64 buffer[];
};

int twheel_reader_open(struct twheel_reader **r, const struct twheel_device *d, uint32_t nr)
{
	size_t size = (size_t)nr * d->event_size;
	struct twheel_reader *new;

	*r = NULL;
	if (!nr || nr > READER_MAX)
		return -EINVAL;
	new = malloc(sizeof(*new) + size);
	if (!new)
		return -ENOMEM;
	new->device = d;
	new->size = size;
	new->begin = 0;
	new->end = 0;
	*r = new;
	return 0;
}

void twheel_reader_close(struct twheel_reader *r)
{
	free(r);
}

int _twheel_reader_next(struct twheel_reader *r, struct twheel_event *event, size_t size)
{
	const size_t length = r->device->event_size;
	const size_t known = size < length ? size : length;
	ssize_t bytes;

	if (r->begin == r->end) {
		bytes = read(r->device->fd, r->buffer, r->size);
		if (bytes <= 0)
			return bytes < 0 ? -errno : 0;
		if ((size_t)bytes % length)
			return -EIO;
		r->begin = 0;
		r->end = (size_t)bytes;
	}
	memcpy(event, (unsigned char *)r->buffer + r->begin, known);
	memset((unsigned char *)event + known, 0, size - known);
	r->begin += length;
	return 1;
}

uint32_t twheel_reader_left(const struct twheel_reader *r)
{
	return (uint32_t)((r->end - r->begin) / r->device->event_size);
}

/* ---- the refresh table --------------------------------------------------- */

int twheel_device_map(struct twheel_device *d, twheel_word_t **table, uint32_t *shift)
{
	twheel_word_t *known = __atomic_load_n(&d->table, __ATOMIC_ACQUIRE);
	void *mapped;

	if (!_TWHEEL_ATOMIC_WORDS || !d->refresh_size)
		return -EOPNOTSUPP;
	if (d->refresh_size > SIZE_MAX)
		return -ENOMEM;
	if (!known) {
		mapped = mmap(NULL, (size_t)d->refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			      d->fd, 0);
		if (mapped == MAP_FAILED)
			return -errno;
		/* If another thread was faster, its table is the one. */
		if (__atomic_compare_exchange_n(&d->table, &known, mapped, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			known = mapped;
		else
			munmap(mapped, (size_t)d->refresh_size);
	}
	*table = known;
	*shift = d->refresh_shift;
	return 0;
}

int twheel_device_refresh(struct twheel_device *d, uint64_t id, uint64_t deadline_ns)
{
	twheel_word_t *table;
	uint32_t shift;
	int ret = twheel_device_map(d, &table, &shift);

	if (ret < 0)
		return ret;
	if (!id || (id & UINT32_MAX) >= d->refresh_size / sizeof(*table))
		return -EINVAL;
	return twheel_refresh(table, id, twheel_refresh_deadline(deadline_ns, shift));
}
