// SPDX-License-Identifier: MIT
/*
 * The back end in the kernel: /dev/twheel
 *
 * Vectors, events and words are the device's own, see <linux/twheel.h>.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"

#define FEATURES_NEEDED		(TWHEEL_FEATURE_REFRESH | TWHEEL_FEATURE_SLACK)

static int device_info(const struct twheel *w, uint32_t flags, struct twheel_info *info)
{
	*info = (struct twheel_info){ .size = sizeof(*info), .flags = flags };
	return ioctl(w->fd, TWHEEL_IOC_INFO, info) ? -errno : 0;
}

/* Set the wheel up; its limits are in @info then. */
static int device_setup(struct twheel *w, struct twheel_info *info)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = w->clock,
		.tick_ns = w->tick_ns,
		.max_pending = w->max_timers,
		.event_size = sizeof(struct twheel_event),
	};

	if (device_info(w, TWHEEL_INFO_NO_WALK, info) ||
	    (info->features & FEATURES_NEEDED) != FEATURES_NEEDED)
		return -EOPNOTSUPP;
	if (!setup.max_pending)
		setup.max_pending = info->max_pending_limit < MAX_TIMERS_DEFAULT ?
				    info->max_pending_limit : MAX_TIMERS_DEFAULT;
	if (ioctl(w->fd, TWHEEL_IOC_SETUP, &setup))
		return -errno;
	if (device_info(w, TWHEEL_INFO_NO_WALK, info) || info->refresh_shift != w->head.grain_shift)
		return -EOPNOTSUPP;
	return 0;
}

static int device_open(struct twheel *w, const char *path)
{
	struct twheel_info info;
	int err;

	w->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (w->fd < 0)
		return -errno;
	err = device_setup(w, &info);
	if (err)
		goto close;
	w->head.words = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	if (w->head.words == MAP_FAILED) {
		err = -errno;
		goto close;
	}
	/*
	 * A store of a child would move timeouts of its parent, so it has no table; where
	 * the kernel has no madvise(), the child must know.
	 */
	madvise(w->head.words, info.refresh_size, MADV_DONTFORK);
	w->nr_words = info.refresh_size / sizeof(*w->head.words);
	w->max_timers = info.max_pending;
	w->pid = getpid();
	return 0;
close:
	close(w->fd);
	return err;
}

static void device_close(struct twheel *w)
{
	/* In a child something else may have been mapped there. */
	if (getpid() == w->pid)
		munmap(w->head.words, w->nr_words * sizeof(*w->head.words));
	close(w->fd);
}

static uint64_t device_now_ns(const struct twheel *w)
{
	struct twheel_info info;

	if (w->clock != TWHEEL_CLOCK_VIRTUAL)
		return twheel_clock_now(w->clock);
	return device_info(w, TWHEEL_INFO_NO_WALK, &info) ? 0 : info.now_ns;
}

/*
 * A call that fails has done nothing; one that ends early has given results to the entries
 * before.
 */
static int device_call(const struct twheel *w, unsigned long command, void *entries,
		       uint32_t entry_size, uint32_t nr, uint32_t *nr_done)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = entry_size,
		.nr = nr,
		.entries = (uintptr_t)entries,
	};
	int ret = ioctl(w->fd, command, &vector);

	*nr_done = ret < 0 ? 0 : vector.nr_done;
	return ret < 0 ? -errno : -ESHUTDOWN;
}

static void device_arm(struct twheel *w, struct twheel_arm *arm, uint32_t nr)
{
	uint32_t done;
	int err = device_call(w, TWHEEL_IOC_ARM, arm, sizeof(*arm), nr, &done);

	for (; done < nr; done++)
		arm[done].result = err;
}

static void device_cancel(struct twheel *w, struct twheel_cancel *cancel, uint32_t nr)
{
	uint32_t done;
	int err = device_call(w, TWHEEL_IOC_CANCEL, cancel, sizeof(*cancel), nr, &done);

	for (; done < nr; done++)
		cancel[done].result = err;
}

static int device_read(struct twheel *w, struct twheel_event *event, uint32_t nr)
{
	ssize_t ret = read(w->fd, event, nr * sizeof(*event));

	if (ret < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EIO;
	return ret / sizeof(*event);
}

static uint64_t device_next_ns(struct twheel *w)
{
	struct twheel_info info;

	/* Where it cannot be known, the caller is to look. */
	if (device_info(w, 0, &info))
		return 0;
	return info.unread ? info.now_ns : info.next_expiry_ns;
}

static int device_advance(struct twheel *w, uint64_t to_ns)
{
	struct twheel_advance advance = { .size = sizeof(advance), .to_ns = to_ns };

	while (ioctl(w->fd, TWHEEL_IOC_ADVANCE, &advance))
		if (errno != EINTR)
			return -errno;
	return 0;
}

const struct backend twheel_device_backend = {
	.kind		= TWHEEL_DEVICE,
	.open		= device_open,
	.close		= device_close,
	.now_ns		= device_now_ns,
	.arm		= device_arm,
	.cancel		= device_cancel,
	.read		= device_read,
	.next_ns	= device_next_ns,
	.advance	= device_advance,
};
