// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl: finding the wheels, by the descriptors of all processes
 *
 * A descriptor is one of a wheel if it has the number of the device, whatever the node is called
 * and in whichever mount namespace it was opened.  Its fdinfo has the number of the wheel.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/twheel.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "twheelctl.h"

/* The keys that are not numbers: a wheel may have digits as its name. */
static bool is_word(const char *key)
{
	static const char * const words[] = { "name", "state", "kthread", "clock" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(key, words[i]))
			return true;
	return false;
}

/* TWHEEL_TIME_NEVER is no time, and no counter gets so far. */
static json_t *number_json(__u64 number)
{
	return number >= TWHEEL_TIME_NEVER ? json_null() : json_integer(number);
}

static json_t *value_json(const char *key, char *value)
{
	json_t *numbers;

	if (is_word(key))
		return json_string(value);
	if (!strchr(value, ' '))
		return number_json(strtoull(value, NULL, 10));
	numbers = json_array();
	while (*value) {
		json_array_append_new(numbers, number_json(strtoull(value, &value, 10)));
		value += strspn(value, " ");
	}
	return numbers;
}

/* All that the module shows of a descriptor, without the lines that the kernel puts before it. */
json_t *fdinfo_read(int pid, int fd)
{
	json_t *info = json_object();
	char path[64], text[4096], *rest = text, *line, *value;
	bool ours = false;	/* the module's key, not one that the kernel shows of any file */

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	if (read_text(path, text, sizeof(text)) < 0) {
		json_decref(info);
		return NULL;
	}
	while ((line = strsep(&rest, "\n"))) {
		value = strstr(line, ":\t");
		if (!value)
			continue;
		*value = '\0';
		ours |= !strcmp(line, "wheel") || !strcmp(line, "name");
		if (ours)
			json_object_set_new(info, line, value_json(line, value + 2));
	}
	return info;
}

bool fdinfo_is_wheel(const json_t *info)
{
	return json_object_get(info, "wheel");
}

__u64 figure(const struct wheel *wheel, const char *key)
{
	return json_integer_value(json_object_get(wheel->info, key));
}

const char *word(const struct wheel *wheel, const char *key)
{
	return json_string_value(json_object_get(wheel->info, key)) ?: "";
}

__u64 growth(const struct wheel *before, const struct wheel *now, const char *key)
{
	return figure(now, key) - figure(before, key);
}

bool is_held_by(const struct wheel *wheel, int pid)
{
	json_t *holder;
	size_t i;

	json_array_foreach(json_object_get(wheel->info, "holders"), i, holder)
		if (json_integer_value(json_object_get(holder, "pid")) == pid)
			return true;
	return false;
}

/* The number of the device, whether or not there is a node of it here. */
bool device_number(dev_t *device)
{
	unsigned int major, minor;
	char text[TEXT_SIZE];

	if (read_text("/sys/class/misc/twheel/dev", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%u:%u", &major, &minor) != 2)
		return false;
	*device = makedev(major, minor);
	return true;
}

/* Follow the link of a descriptor to the file itself, without asking a server that may be away. */
static bool is_device(int dir, const char *name, dev_t device)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(dir, name, target, sizeof(target) - 1);
	struct statx status;

	if (length < 0)
		return false;
	target[length] = '\0';
	return *target == '/' && !statx(dir, name, AT_STATX_DONT_SYNC, STATX_TYPE, &status) &&
	       S_ISCHR(status.stx_mode) &&
	       makedev(status.stx_rdev_major, status.stx_rdev_minor) == device;
}

static void wheels_add(struct wheels *wheels, int pid, int fd)
{
	json_t *info = fdinfo_read(pid, fd);
	struct wheel *wheel;

	/* The descriptor may have been closed since. */
	if (!fdinfo_is_wheel(info)) {
		json_decref(info);
		return;
	}
	json_object_set_new(info, "holders", json_pack("[{s:i,s:i}]", "pid", pid, "fd", fd));
	wheels->wheels = reallocarray(wheels->wheels, wheels->nr + 1, sizeof(*wheel));
	if (!wheels->wheels)
		err(UNKNOWN, "reading /proc");
	wheel = &wheels->wheels[wheels->nr++];
	*wheel = (struct wheel){ .seen_ns = now_ns(), .info = info };
	wheel->number = figure(wheel, "wheel");
}

static void process_look(struct wheels *wheels, int pid, dev_t device)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir) {
		/* Any other error means that the process has ended. */
		if (errno == EACCES)
			wheels->complete = false;
		return;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && is_device(dirfd(dir), entry->d_name, device))
			wheels_add(wheels, pid, atoi(entry->d_name));
	closedir(dir);
}

static int by_number(const void *a, const void *b)
{
	const struct wheel *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

/* Several descriptors have shown the same wheel: keep the first, with the holders of all. */
static void wheels_merge(struct wheels *wheels)
{
	size_t i, nr = 0;

	qsort(wheels->wheels, wheels->nr, sizeof(*wheels->wheels), by_number);
	for (i = 0; i < wheels->nr; i++) {
		struct wheel *wheel = &wheels->wheels[i];

		if (nr && wheels->wheels[nr - 1].number == wheel->number) {
			json_array_extend(json_object_get(wheels->wheels[nr - 1].info, "holders"),
					  json_object_get(wheel->info, "holders"));
			json_decref(wheel->info);
		} else {
			wheels->wheels[nr++] = *wheel;
		}
	}
	wheels->nr = nr;
}

/* If the module is not loaded, there are no wheels, whatever rights the caller has. */
void device_number_or_exit(dev_t *device)
{
	if (!device_number(device))
		errx(UNKNOWN, "the module is not loaded, or /sys is not mounted; run `twheelctl check'");
}

void wheels_look(struct wheels *wheels)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	dev_t device;

	*wheels = (struct wheels){ .complete = true };
	if (!proc)
		err(UNKNOWN, "/proc cannot be read; mount it (mount -t proc none /proc)");
	device_number_or_exit(&device);
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			process_look(wheels, atoi(entry->d_name), device);
	closedir(proc);
	if (wheels->nr)
		wheels_merge(wheels);
}

void wheels_free(struct wheels *wheels)
{
	while (wheels->nr)
		json_decref(wheels->wheels[--wheels->nr].info);
	free(wheels->wheels);
}

const struct wheel *wheels_find(const struct wheels *wheels, __u64 number)
{
	const struct wheel key = { .number = number };

	if (!wheels->nr)
		return NULL;
	return bsearch(&key, wheels->wheels, wheels->nr, sizeof(key), by_number);
}
