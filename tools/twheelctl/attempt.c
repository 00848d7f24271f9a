// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl check: opening the device, in a process of its own
 *
 * A process of its own, since a seccomp filter may kill a process that makes a call it forbids.  If
 * the attempt is made for another process, it is made in the mount namespace and root of that, and
 * with its user and groups.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "check.h"

#define GROUPS_MAX	1024

/* The groups of a process, and the effective user and group, as /proc/PID/status shows them. */
static bool identity_read(int pid, unsigned int ids[2], gid_t *groups, int *nr)
{
	char path[64], line[16384], *at, *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	*nr = -1;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Uid: %*u %u", &ids[0]) == 1 ||
		    sscanf(line, "Gid: %*u %u", &ids[1]) == 1 || strncmp(line, "Groups:", 7))
			continue;
		for (*nr = 0, at = line + 7; *nr < GROUPS_MAX; at = end) {
			groups[*nr] = strtoul(at, &end, 10);
			if (end == at)
				break;
			++*nr;
		}
	}
	if (file)
		fclose(file);
	return *nr >= 0;
}

/* Become another process, as far as files go.  If that fails, errno says why. */
static bool enter(int pid)
{
	int process = pidfd_open(pid, 0), root, nr;
	gid_t groups[GROUPS_MAX];
	unsigned int ids[2] = {};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return process >= 0 && root >= 0 && identity_read(pid, ids, groups, &nr) &&
	       !setns(process, CLONE_NEWNS) && !fchdir(root) && !chroot(".") &&
	       !setgroups(nr, groups) && !setresgid(ids[1], ids[1], ids[1]) &&
	       !setresuid(ids[0], ids[0], ids[0]);
}

/* Return whether the file system that is mounted at /dev is devtmpfs. */
static bool dev_is_own(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[4096];
	bool own = false;

	/* If several are mounted there, the last one is in use. */
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 && !strcmp(at, "/dev"))
			own = strstr(line, " - devtmpfs ");
	if (file)
		fclose(file);
	return own;
}

static void attempt_open(struct attempt *attempt)
{
	int flags = O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, fd;
	struct twheel_info info = { .size = sizeof(info) };
	struct statvfs file_system;
	struct stat status;

	attempt->own_dev = dev_is_own();
	attempt->step = STEP_NODE;
	if (stat(DEVICE, &status)) {
		attempt->error = errno;
		return;
	}
	attempt->mode = status.st_mode;
	attempt->gid = status.st_gid;
	attempt->device = status.st_rdev;
	attempt->nodev = !statvfs(DEVICE, &file_system) && file_system.f_flag & ST_NODEV;
	attempt->step = STEP_OPEN;
	fd = open("/dev/null", flags);
	attempt->null_error = fd < 0 ? errno : 0;
	close(fd);
	fd = open(DEVICE, flags);
	if (fd < 0) {
		attempt->error = errno;
		return;
	}
	attempt->step = STEP_INFO;
	if (ioctl(fd, TWHEEL_IOC_INFO, &info)) {
		attempt->error = errno;
		return;
	}
	attempt->step = STEP_DONE;
}

/* Make the attempt as process `pid', or as this one if that is 0. */
void attempt_make(struct attempt *attempt, int pid)
{
	struct attempt *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;

	if (shared == MAP_FAILED)
		err(UNKNOWN, "the check needs a page of memory");
	child = fork();
	if (child < 0)
		err(UNKNOWN, "the check needs a process of its own");
	if (!child) {
		if (pid && !enter(pid))
			shared->error = errno;
		else
			attempt_open(shared);
		_exit(0);
	}
	if (waitpid(child, &status, 0) < 0)
		err(UNKNOWN, "the process that tried the device was lost");
	*attempt = *shared;
	attempt->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	munmap(shared, sizeof(*shared));
}
