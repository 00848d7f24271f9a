// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl stat: the counters of the module and of its users
 *
 * It shows all files that the module has for its counters, each with a number: a newer module may
 * have more.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "twheelctl.h"

#define USERS	"/sys/kernel/debug/twheel/users"

/* The counters, as an object. */
static json_t *counters_read(void)
{
	json_t *counters = json_object();
	struct dirent **names;
	int nr = scandir(COUNTERS, &names, NULL, alphasort), i;
	char path[512];
	__u64 number;

	if (nr < 0)
		errx(UNKNOWN,
		     "there are no counters in " COUNTERS ": the module is not loaded, or is older than they are; run `twheelctl check'");
	for (i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), COUNTERS "/%s", names[i]->d_name);
		if (names[i]->d_name[0] != '.' && read_number(path, &number))
			json_object_set_new(counters, names[i]->d_name, json_integer(number));
		free(names[i]);
	}
	free(names);
	if (!json_object_size(counters))
		errx(UNKNOWN, "only root can read the counters in " COUNTERS);
	return counters;
}

/* The first line of the list of users names its columns.  NULL if the caller may not read it. */
static json_t *users_read(void)
{
	char line[256], columns[256], *name, *names, *value, *values;
	FILE *file = fopen(USERS, "re");
	json_t *users, *user;

	if (!file)
		return NULL;
	users = json_array();
	if (!fgets(columns, sizeof(columns), file))
		columns[0] = '\0';
	while (fgets(line, sizeof(line), file)) {
		char heads[sizeof(columns)];

		memcpy(heads, columns, sizeof(heads));
		names = heads;
		values = line;
		user = json_object();
		while ((name = strsep(&names, "\n ")) && (value = strsep(&values, "\n ")))
			if (*name)
				json_object_set_new(user, name, json_integer(atoll(value)));
		json_array_append_new(users, user);
	}
	fclose(file);
	return users;
}

/* How much each counter has grown in a second. */
static json_t *rates(json_t *before, json_t *now, double seconds)
{
	json_t *per_second = json_object(), *value;
	const char *key;

	json_object_foreach(now, key, value)
		json_object_set_new(per_second, key,
				    json_real((json_integer_value(value) -
					       json_integer_value(json_object_get(before, key))) /
					      seconds));
	return per_second;
}

static void print_text(json_t *counters, json_t *per_second, json_t *users)
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_foreach(counters, key, value) {
		printf("%-24s %12lld", key, json_integer_value(value));
		if (per_second)
			printf(" %12.1f a second",
			       json_real_value(json_object_get(per_second, key)));
		putchar('\n');
	}
	if (!users)
		puts("What each user has is shown if debugfs is mounted.");
	json_array_foreach(users, i, value) {
		const char *between = "";
		json_t *number;

		json_object_foreach(value, key, number) {
			printf("%s%s %lld", between, key, json_integer_value(number));
			between = ", ";
		}
		putchar('\n');
	}
}

int stat_run(const struct options *options)
{
	json_t *counters = counters_read(), *per_second = NULL, *users;
	__u64 began_ns = now_ns();

	if (options->interval_ns) {
		json_t *before = counters;

		sleep_ns(options->interval_ns);
		counters = counters_read();
		per_second = rates(before, counters, (double)(now_ns() - began_ns) / NS_PER_S);
		json_decref(before);
	}
	users = users_read();
	if (options->json) {
		print_json(json_pack("{s:O,s:O?,s:O?}", "counters", counters, "per_second",
				     per_second, "users", users));
	} else {
		print_text(counters, per_second, users);
	}
	json_decref(counters);
	json_decref(per_second);
	json_decref(users);
	return DONE;
}
