// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl: the systemd units that hold a wheel
 *
 * A process belongs to the unit of its cgroup.  If a unit has put a wheel into its descriptor
 * store, process 1 holds it.  No file of the kernel says which unit that is, so systemd is asked:
 * since version 254 it lists a unit's store.  Before that, it only says how many descriptors a
 * store has, so each unit that has one there may be the one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "twheelctl.h"

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text);

	return length > strlen(end) && !strcmp(text + length - strlen(end), end);
}

/* The innermost unit of the cgroup, if there is one.  Managers are in a scope of their own. */
bool unit_of(int pid, char unit[UNIT_SIZE])
{
	char path[64], text[4096], *rest, *part;

	*unit = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	/* With cgroup v1, the line of systemd's hierarchy comes before this one, or is alone. */
	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	rest = strstr(text, "name=systemd:") ?: strstr(text, "0::");
	if (!rest)
		return false;
	rest[strcspn(rest, "\n")] = '\0';
	while ((part = strsep(&rest, "/")))
		if (ends_with(part, ".service") ||
		    (ends_with(part, ".scope") && strcmp(part, "init.scope")))
			snprintf(unit, UNIT_SIZE, "%s", part);
	return *unit;
}

/* Whether systemd lists the store, and it has no descriptor of the device. */
static bool store_lacks_wheels(const char *unit)
{
	char command[UNIT_SIZE + 64], line[1024], number[TEXT_SIZE];
	bool found = false;
	dev_t device;
	FILE *list;

	device_number_or_exit(&device);
	snprintf(number, sizeof(number), " %u:%u ", major(device), minor(device));
	snprintf(command, sizeof(command), "systemd-analyze fdstore '%s' 2>/dev/null", unit);
	list = popen(command, "re");
	while (list && fgets(line, sizeof(line), list))
		found |= !!strstr(line, number);
	return list && !pclose(list) && !found;
}

/* The units whose store may have a wheel.  An empty line ends the properties of a unit. */
static json_t *stores_ask(void)
{
	char line[UNIT_SIZE + 64], unit[UNIT_SIZE] = "";
	json_t *units = json_array();
	unsigned long nr = 0;
	FILE *list;

	list = popen("systemctl show --property=Id,NFileDescriptorStore '*.service' 2>/dev/null; echo",
		     "re");
	while (list && fgets(line, sizeof(line), list)) {
		if (sscanf(line, "Id=%255[^'\n]", unit) == 1 ||
		    sscanf(line, "NFileDescriptorStore=%lu", &nr) == 1)
			continue;
		if (nr && !store_lacks_wheels(unit))
			json_array_append_new(units, json_string(unit));
		nr = 0;
	}
	if (list)
		pclose(list);
	return units;
}

static bool has_unit(const json_t *units, const char *unit)
{
	json_t *other;
	size_t i;

	json_array_foreach(units, i, other)
		if (!strcmp(json_string_value(other), unit))
			return true;
	return false;
}

/* In a container, process 1 need not be systemd. */
static bool is_systemd(void)
{
	struct task task;

	return task_read("/proc/1/stat", &task) && !strcmp(task.comm, "systemd");
}

/* The holder to name: one that runs, rather than process 1, which only keeps it. */
int main_holder(const struct wheel *wheel)
{
	json_t *holder;
	int pid = 0;
	size_t i;

	json_array_foreach(json_object_get(wheel->info, "holders"), i, holder) {
		pid = json_integer_value(json_object_get(holder, "pid"));
		if (pid != 1)
			break;
	}
	return pid;
}

/* Add "units" to each wheel. */
void units_find(struct wheels *wheels)
{
	json_t *stores = NULL, *units, *holder;
	char unit[UNIT_SIZE];
	size_t i, k;

	for (i = 0; i < wheels->nr; i++) {
		const struct wheel *wheel = &wheels->wheels[i];

		units = json_array();
		json_array_foreach(json_object_get(wheel->info, "holders"), k, holder)
			if (unit_of(json_integer_value(json_object_get(holder, "pid")), unit) &&
			    !has_unit(units, unit))
				json_array_append_new(units, json_string(unit));
		if (main_holder(wheel) == 1 && is_systemd()) {
			stores = stores ?: stores_ask();
			json_array_extend(units, stores);
		}
		json_object_set_new(wheel->info, "units", units);
	}
	json_decref(stores);
}

/* Join the units by ", ", or by " or " if only one of them has the wheel in its store. */
const char *units_text(char text[UNITS_SIZE], const struct wheel *wheel)
{
	const char *between = main_holder(wheel) == 1 ? " or " : ", ";
	size_t i, length = 0;
	json_t *unit;

	*text = '\0';
	json_array_foreach(json_object_get(wheel->info, "units"), i, unit) {
		length += snprintf(text + length, UNITS_SIZE - length, "%s%s", i ? between : "",
				   json_string_value(unit));
		if (length >= UNITS_SIZE)
			break;
	}
	return text;
}
