/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Namespaces: processes whose clocks are ahead of others, and containers
 */
#ifndef TWHEEL_NAMESPACE_H
#define TWHEEL_NAMESPACE_H

#include "twheel_test.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/*
 * Let the children of this process live in another time namespace; the process itself does not.
 * Return 0, or -errno.
 */
static inline int tw_namespace_for_children(const char *clock, int ahead_s)
{
	char offset[64];
	int fd, len, ret = 0;

	if (unshare(CLONE_NEWTIME))
		return -errno;
	len = snprintf(offset, sizeof(offset), "%s %d 0\n", clock, ahead_s);
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, offset, len) != len)
		ret = -errno;
	close(fd);
	return ret;
}

/* Return whether INFO's clock is this process' own. */
static inline bool tw_clock_is_ours(int fd, clockid_t clockid)
{
	__u64 before_ns = tw_now(clockid);
	struct twheel_info info;

	return !tw_info(fd, &info) && before_ns <= info.now_ns && info.now_ns <= tw_now(clockid);
}

static inline bool tw_has_user_namespaces(void)
{
	return !access("/proc/self/ns/user", F_OK);
}

/* A process in a container, which does a step when asked, and then says so. */
struct tw_container {
	pid_t pid;
	int fd;
};

/* The first user of a container. */
#define TW_CONTAINER_UID	100000

static inline int tw_container_run(uid_t maker, int fd, bool (*step)(char what))
{
	bool first = true;
	char c;

	/* If a process was root before, it could not open /proc/self without this. */
	if (setresuid(maker, maker, maker) || prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
		return 1;
	if (send(fd, "", 1, 0) != 1)
		return 2;
	while (recv(fd, &c, 1, 0) == 1) {
		/* Now the map is written. */
		if (first && setresuid(0, 0, 0))
			return 3;
		first = false;
		c = step(c);
		if (send(fd, &c, 1, 0) != 1)
			return 4;
	}
	return 0;
}

/* Have a container do something; return the result of step(what). */
static inline bool tw_container_step(const struct tw_container *box, char what)
{
	char c = 0;

	return send(box->fd, &what, 1, 0) == 1 && recv(box->fd, &c, 1, 0) == 1 && c;
}

static inline int tw_container_map(const struct tw_container *box, const char *name,
				   const char *map)
{
	int fd, ret = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", box->pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, strlen(map)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/*
 * Start a process in a user namespace of its own, made by maker. Root in it has the id of maker
 * outside or, if maker is root, the first of ten others. When asked, the process runs step().
 * Return 0, or -errno.
 */
static inline int tw_container_start(struct tw_container *box, uid_t maker,
				     bool (*step)(char what))
{
	char map[64], c;
	int ends[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	box->pid = fork();
	if (box->pid < 0)
		return -errno;
	if (!box->pid) {
		close(ends[0]);
		_exit(tw_container_run(maker, ends[1], step));
	}
	close(ends[1]);
	box->fd = ends[0];
	if (recv(box->fd, &c, 1, 0) != 1)
		return -ECHILD;
	snprintf(map, sizeof(map), "0 %u %d", maker ?: TW_CONTAINER_UID, maker ? 1 : 10);
	ret = tw_container_map(box, "uid_map", map);
	/* If a user has no group in the namespace, it may make no namespace within it. */
	return ret ?: tw_container_map(box, "gid_map", "0 0 1");
}

/* End the container; return its exit status. */
static inline int tw_container_end(const struct tw_container *box)
{
	/* Other processes may have the socket, too. */
	shutdown(box->fd, SHUT_RDWR);
	close(box->fd);
	return tw_reap(box->pid);
}

#endif /* TWHEEL_NAMESPACE_H */
