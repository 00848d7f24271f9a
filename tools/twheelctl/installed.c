// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl check: the module that is installed for the running kernel
 *
 * modinfo is asked.  With libkmod and what that brings, such as libcrypto, each command would start
 * with 3.7 million instructions instead of 0.15 million.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/*
 * What modinfo says of the module that modprobe would load.  No shell is between: that of busybox
 * takes a modinfo of its own, which tells of no signature.
 */
static FILE *modinfo_start(pid_t *child)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return NULL;
	*child = fork();
	if (!*child) {
		dup2(pipes[1], STDOUT_FILENO);
		/* That there is no module is nothing to be said there. */
		close(STDERR_FILENO);
		execlp("modinfo", "modinfo", "twheel", NULL);
		/* Users without root lack this folder in their path. */
		execl("/sbin/modinfo", "modinfo", "twheel", NULL);
		_exit(1);
	}
	close(pipes[1]);
	return fdopen(pipes[0], "r");
}

void installed_look(struct installed *installed)
{
	char line[512], first;
	pid_t child = -1;
	FILE *modinfo = modinfo_start(&child);

	*installed = (struct installed){};
	while (modinfo && fgets(line, sizeof(line), modinfo)) {
		/* A built-in one has no file. */
		if (sscanf(line, "filename: /%c", &first) == 1)
			installed->found = true;
		else if (!strncmp(line, "sig_id:", 7))
			installed->is_signed = true;
		else if (sscanf(line, "version: %63s", installed->version) != 1)
			sscanf(line, "srcversion: %63s", installed->srcversion);
	}
	if (modinfo)
		fclose(modinfo);
	if (child > 0)
		waitpid(child, NULL, 0);
}
