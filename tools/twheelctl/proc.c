// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl: files of the kernel, in /proc and /sys
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twheelctl.h"

/* PF_KTHREAD of the kernel's <linux/sched.h>, in the flags that /proc/PID/stat shows. */
#define FLAG_KTHREAD	0x00200000

/* Read a small file, without the newline at its end.  Return its length, or -1. */
ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t length = 0;
	ssize_t got;

	*text = '\0';
	if (fd < 0)
		return -1;
	while ((got = read(fd, text + length, size - 1 - length)) > 0)
		length += got;
	close(fd);
	if (got < 0)
		return -1;
	if (length && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	return length;
}

bool read_number(const char *path, __u64 *number)
{
	char text[TEXT_SIZE], *end;

	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	*number = strtoull(text, &end, 0);
	return !*end;
}

/* The name stands in parentheses, and may have blanks and parentheses itself. */
bool task_read(const char *path, struct task *task)
{
	char text[1024], *name, *rest;
	unsigned int flags;

	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	name = strchr(text, '(');
	rest = strrchr(text, ')');
	if (!name || !rest)
		return false;
	*rest = '\0';
	task->pid = atoi(text);
	snprintf(task->comm, sizeof(task->comm), "%s", name + 1);
	/* Fields 3 to 41, see proc(5). */
	if (sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %d %u %u",
		   &task->state, &flags, &task->processor, &task->rt_priority,
		   &task->policy) != 5)
		return false;
	task->kthread = flags & FLAG_KTHREAD;
	return true;
}

/* The next process of a DIR of /proc, or the next thread of a DIR of /proc/PID/task. */
bool tasks_next(DIR *dir, struct task *task)
{
	struct dirent *entry;
	char path[64];

	while ((entry = readdir(dir))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		/* A thread has a folder in /proc, too, though readdir() does not list it. */
		snprintf(path, sizeof(path), "/proc/%.10s/stat", entry->d_name);
		if (task_read(path, task))
			return true;
	}
	return false;
}

/* A number of /proc/PID/status; the key is given with its colon. */
bool status_number(int pid, const char *key, int base, __u64 *number)
{
	char path[64], line[256], *end;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		*number = strtoull(line + strlen(key), &end, base);
		found = end != line + strlen(key);
	}
	if (file)
		fclose(file);
	return found;
}
