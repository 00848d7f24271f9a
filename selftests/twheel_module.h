/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loading and unloading the module, for programs that do so themselves.
 * TWHEEL_KO names the file.
 */
#ifndef TWHEEL_MODULE_H
#define TWHEEL_MODULE_H

#include "twheel_test.h"

#include <sys/syscall.h>

static inline const char *tw_module_path(void)
{
	return getenv("TWHEEL_KO") ?: "/lib/twheel.ko";
}

/* Load the module. Return 0, or -errno of finit_module(). */
static inline int tw_load(const char *parameters)
{
	int fd = open(tw_module_path(), O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* The device node comes and goes with the module, but a little later. */
static inline int tw_load_and_wait(const char *parameters)
{
	int ret = tw_load(parameters);

	if (!ret)
		TW_WAIT_FOR(!access(TW_DEVICE, F_OK), TW_MS);
	return ret;
}

static inline int tw_unload(void)
{
	return syscall(SYS_delete_module, "twheel", O_NONBLOCK) ? -errno : 0;
}

/* Unload the module; if a process still has the device open, try again. */
static inline int tw_unload_soon(void)
{
	int ret;

	return TW_WAIT_FOR((ret = tw_unload()) != -EWOULDBLOCK, TW_MS) ? ret : -ETIMEDOUT;
}

/* Write a parameter. Return 0, or -errno. */
static inline int tw_write_parameter(const char *name, const char *value)
{
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), TW_PARAMETERS "/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, value, strlen(value)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

/* The value of a parameter that is a number; 0 if it cannot be read. */
static inline unsigned long tw_read_parameter(const char *name)
{
	unsigned long value = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), TW_PARAMETERS "/%s", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lu", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static inline bool tw_is_loaded(void)
{
	return !access("/sys/module/twheel", F_OK);
}

#endif /* TWHEEL_MODULE_H */
