// SPDX-License-Identifier: GPL-2.0
/*
 * lib_calls.c - what libtwheel asks of the C library, counted, and refused on demand
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "lib_calls.h"
#include "lib_wrapped.h"

struct lib_calls lib_calls;

/* Whether this attempt is to fail. */
static bool refused(const char *name)
{
	unsigned long nr;

	if (!lib_calls.watched)
		return false;
	nr = ++lib_calls.attempts;
	if (!lib_calls.refuse || nr < lib_calls.refuse ||
	    (nr > lib_calls.refuse && !lib_calls.refuse_after))
		return false;
	lib_calls.refused++;
	lib_calls.name = name;
	return true;
}

static void count_system(void)
{
	lib_calls.system += lib_calls.watched;
}

static void count_memory(void)
{
	lib_calls.memory += lib_calls.watched;
}

void *__wrap_malloc(size_t size)
{
	count_memory();
	if (refused("malloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	count_memory();
	if (refused("calloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_calloc(nr, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	count_memory();
	if (refused("realloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_realloc(memory, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	count_memory();
	return refused("posix_memalign") ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	count_memory();
	count_system();
	if (refused("mmap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(at, size, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
	count_system();
	return __real_munmap(at, size);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
	count_system();
	if (refused("madvise")) {
		errno = ENOMEM;
		return -1;
	}
	return __real_madvise(at, size, advice);
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	count_system();
	if (refused("open")) {
		errno = EMFILE;
		return -1;
	}
	return __real_open(path, flags, mode);
}

int __wrap_close(int fd)
{
	count_system();
	return __real_close(fd);
}

/*
 * A vector fails as a whole where the kernel has no memory to copy it in.  INFO and ADVANCE
 * do not fail.
 */
int __wrap_ioctl(int fd, unsigned long command, ...)
{
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	count_system();
	if (command != TWHEEL_IOC_INFO && command != TWHEEL_IOC_ADVANCE && refused("ioctl")) {
		errno = ENOMEM;
		return -1;
	}
	return __real_ioctl(fd, command, arg);
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	count_system();
	if (refused("read")) {
		errno = EAGAIN;
		return -1;
	}
	return __real_read(fd, buffer, size);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask)
{
	count_system();
	if (refused("ppoll")) {
		errno = EINTR;
		return -1;
	}
	return __real_ppoll(fds, nr, timeout, mask);
}

int __wrap_timerfd_create(int clock, int flags)
{
	count_system();
	if (refused("timerfd_create")) {
		errno = EMFILE;
		return -1;
	}
	return __real_timerfd_create(clock, flags);
}

/* It fails for want of an argument only. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	count_system();
	return __real_timerfd_settime(fd, flags, when, old);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	lib_calls.clock += lib_calls.watched;
	return __real_clock_gettime(clock, now);
}
