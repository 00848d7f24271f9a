// SPDX-License-Identifier: GPL-2.0
/* lib_calls.c - libtwheel's calls of the C library, counted, refused, and with false clocks */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib_calls.h"
#include "lib_wrapped.h"

#define FDS	1024

struct lib_calls lib_calls;

/* The setting of each timerfd, by its clock, so that a jump can set it anew. */
static struct {
	clockid_t clock;
	int flags;
	struct itimerspec when;
} timers[FDS];

static bool refused(const char *name, int err)
{
	if (!lib_calls.refuse || strcmp(lib_calls.refuse, name) || lib_calls.granted-- > 0)
		return false;
	errno = err;
	return true;
}

static int64_t offset_of(clockid_t clock)
{
	return clock >= 0 && clock < LIB_CLOCKS ? lib_calls.offset_ns[clock] : 0;
}

static void move(struct timespec *time, int64_t by_ns)
{
	int64_t ns = time->tv_sec * 1000000000LL + time->tv_nsec + by_ns;

	if (ns < 1)
		ns = 1;
	time->tv_sec = ns / 1000000000;
	time->tv_nsec = ns % 1000000000;
}

void *__wrap_malloc(size_t size)
{
	lib_calls.memory++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	lib_calls.memory++;
	return refused("calloc", ENOMEM) ? NULL : __real_calloc(nr, size);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	lib_calls.system++;
	lib_calls.memory++;
	if (refused("mmap", ENOMEM))
		return MAP_FAILED;
	return __real_mmap(at, size, prot, flags, fd, offset);
}

void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off64_t offset)
{
	lib_calls.system++;
	lib_calls.memory++;
	return refused("mmap", ENOMEM) ? MAP_FAILED :
		__real_mmap64(at, size, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
	lib_calls.system++;
	lib_calls.memory++;
	return __real_munmap(at, size);
}

int __wrap_close(int fd)
{
	lib_calls.system++;
	return __real_close(fd);
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	lib_calls.system++;
	return __real_read(fd, buffer, size);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask)
{
	lib_calls.system++;
	return __real_ppoll(fds, nr, timeout, mask);
}

int __wrap_timerfd_create(int clock, int flags)
{
	int fd;

	lib_calls.system++;
	if (refused("timerfd_create", EMFILE))
		return -1;
	fd = __real_timerfd_create(clock, flags);
	if (fd >= 0 && fd < FDS) {
		memset(&timers[fd], 0, sizeof(timers[fd]));
		timers[fd].clock = clock;
	}
	return fd;
}

static int settime(int fd, int flags, struct itimerspec when, struct itimerspec *old)
{
	if (when.it_value.tv_sec || when.it_value.tv_nsec)
		move(&when.it_value, -offset_of(timers[fd % FDS].clock));
	return __real_timerfd_settime(fd, flags, &when, old);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	lib_calls.system++;
	lib_calls.settings++;
	if (refused("timerfd_settime", EINVAL))
		return -1;
	if (fd >= 0 && fd < FDS) {
		timers[fd].flags = flags;
		timers[fd].when = *when;
	}
	return settime(fd, flags, *when, old);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = __real_clock_gettime(clock, now);

	lib_calls.clock++;
	if (offset_of(clock))
		move(now, offset_of(clock));
	return ret;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
			   struct timespec *left)
{
	struct timespec moved = *until;

	lib_calls.system++;
	if (flags & TIMER_ABSTIME)
		move(&moved, -offset_of(clock));
	return __real_clock_nanosleep(clock, flags, &moved, left);
}

/* Set a clock forward or back; each timerfd on it follows, as the kernel's do. */
void lib_jump(clockid_t clock, int64_t by_ns)
{
	int fd;

	lib_calls.offset_ns[clock] += by_ns;
	for (fd = 0; fd < FDS; fd++)
		if (timers[fd].flags && timers[fd].clock == clock)
			settime(fd, timers[fd].flags, timers[fd].when, NULL);
}
