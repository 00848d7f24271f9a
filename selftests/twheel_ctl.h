/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Running twheelctl, and reading its output
 */
#ifndef TWHEEL_CTL_H
#define TWHEEL_CTL_H

#include "twheel_module.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Exit statuses, see twheelctl(8). */
#define CTL_DONE	0
#define CTL_PROBLEM	1
#define CTL_UNKNOWN	2

#define CTL_SIZE	65536

static char ctl_said[CTL_SIZE];

/* It is built only if its libraries are there. */
static inline bool ctl_is_there(void)
{
	return !access("/programs/twheelctl", X_OK);
}

/*
 * Run twheelctl with these arguments, after `prepare' in its process, and put its output into
 * ctl_said; return its exit status, or -1.
 */
static inline int ctl_prepared(void (*prepare)(void), const char * const *arguments)
{
	size_t length = 0;
	int pipes[2], status;
	ssize_t got;
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		if (prepare)
			prepare();
		execv("/programs/twheelctl", (char * const *)arguments);
		_exit(127);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], ctl_said + length, CTL_SIZE - 1 - length)) > 0)
		length += got;
	ctl_said[length] = '\0';
	close(pipes[0]);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CTL_AFTER(prepare, ...) \
	ctl_prepared(prepare, (const char * const []){ "twheelctl", __VA_ARGS__, NULL })

#define CTL(...)	CTL_AFTER(NULL, __VA_ARGS__)

/* How many findings there are, and how many of them have this cause. */
static inline int ctl_findings(const char *cause)
{
	const char *at = ctl_said;
	char text[64] = "\"cause\": \"";
	int nr = 0;

	if (cause)
		snprintf(text, sizeof(text), "\"cause\": \"%s\"", cause);
	while ((at = strstr(at, text))) {
		at++;
		nr++;
	}
	return nr;
}

static inline void ctl_expect_only(struct __test_metadata *_metadata, const char *cause, int line)
{
	EXPECT_EQ(1, ctl_findings(cause))
		TH_LOG("line %d: %s is not among: %s", line, cause, ctl_said);
	EXPECT_EQ(1, ctl_findings(NULL))
		TH_LOG("line %d: more than %s: %s", line, cause, ctl_said);
}

/* Expect that the output names this cause, and no other. */
#define EXPECT_ONLY(cause)	ctl_expect_only(_metadata, cause, __LINE__)

static inline void ctl_expect_says(struct __test_metadata *_metadata, const char *text, int line)
{
	EXPECT_NE(NULL, strstr(ctl_said, text))
		TH_LOG("line %d: \"%s\" is not in: %s", line, text, ctl_said);
}

#define EXPECT_SAYS(text)	ctl_expect_says(_metadata, text, __LINE__)

/* A file that twheelctl reads, or a command that it runs. */
static inline int ctl_file(const char *path, mode_t mode, const char *text)
{
	FILE *file = fopen(path, "we");

	if (!file || fputs(text, file) < 0 || fclose(file))
		return -errno;
	return chmod(path, mode) ? -errno : 0;
}

#define CTL_OTHER_UID	1001

/* For CTL_AFTER(): a user without any right. */
static inline void ctl_become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(CTL_OTHER_UID, CTL_OTHER_UID, CTL_OTHER_UID) ||
	    setresuid(CTL_OTHER_UID, CTL_OTHER_UID, CTL_OTHER_UID))
		_exit(126);
}

/* Start a child that calls `run', and then waits to be killed; it ends with its parent. */
static inline pid_t ctl_child(int (*run)(void))
{
	int pipes[2];
	char done = 0;
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pipes[0]);
		if (run())
			_exit(1);
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	if (read(pipes[0], &done, 1) != 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(pipes[0]);
	return pid;
}

static inline void ctl_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif /* TWHEEL_CTL_H */
