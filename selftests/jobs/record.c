// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded: appends to the file $RECORD all changes that a program makes to the files of an SQLite
 * database. From these, cut.pl makes the states that a power cut may leave.
 *
 *	W NAME OFFSET LENGTH, a line, and the bytes		before a write
 *	T NAME LENGTH						before a file is cut
 *	U PATH							before a file is removed
 *	S NAME							after a file is on the disk
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(name)	((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

/* Make one write, so that the records of several processes do not mix. */
static void record(const char *line, const void *bytes, size_t length)
{
	struct iovec parts[] = {
		{ .iov_base = (void *)line, .iov_len = strlen(line) },
		{ .iov_base = (void *)bytes, .iov_len = length },
	};
	int fd = open(getenv("RECORD"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || writev(fd, parts, 2) != (ssize_t)(strlen(line) + length))
		err(1, "RECORD");
	close(fd);
}

static const char *name_of(int fd, char *path, size_t size)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	if (length < 0)
		err(1, "%s", link);
	path[length] = 0;
	return basename(path);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset)
{
	char path[4096], line[4200];

	snprintf(line, sizeof(line), "W %s %lld %zu\n", name_of(fd, path, sizeof(path)),
		 (long long)offset, length);
	record(line, bytes, length);
	return NEXT(pwrite64)(fd, bytes, length, offset);
}

int ftruncate64(int fd, off64_t length)
{
	char path[4096], line[4200];

	snprintf(line, sizeof(line), "T %s %lld\n", name_of(fd, path, sizeof(path)),
		 (long long)length);
	record(line, NULL, 0);
	return NEXT(ftruncate64)(fd, length);
}

static int synced(int fd, int ret)
{
	char path[4096], line[4200];

	snprintf(line, sizeof(line), "S %s\n", name_of(fd, path, sizeof(path)));
	if (!ret)
		record(line, NULL, 0);
	return ret;
}

int fsync(int fd)
{
	return synced(fd, NEXT(fsync)(fd));
}

int fdatasync(int fd)
{
	return synced(fd, NEXT(fdatasync)(fd));
}

int unlink(const char *path)
{
	char line[4200];

	snprintf(line, sizeof(line), "U %s\n", basename(path));
	record(line, NULL, 0);
	return NEXT(unlink)(path);
}
