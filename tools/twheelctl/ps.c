// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl ps: the wheels of all processes that the caller may look into
 *
 * All figures are those of fdinfo, which costs the same for ten million timeouts as for one.
 */
#include <string.h>

#include "twheelctl.h"

/* How much a counter has grown between two snapshots, per second. */
static double rate(const struct wheel *before, const struct wheel *after, const char *key)
{
	double seconds = (double)(after->seen_ns - before->seen_ns) / NS_PER_S;

	return (figure(after, key) - figure(before, key)) / seconds;
}

/* If a wheel was not there at the first snapshot, it has no rates. */
static void add_rates(const struct wheels *before, struct wheels *after)
{
	static const char * const keys[] = { "armed", "expirations", "delivered", "late" };
	size_t i, k;

	for (i = 0; i < after->nr; i++) {
		const struct wheel *wheel = &after->wheels[i];
		const struct wheel *was = wheels_find(before, wheel->number);
		json_t *rates = json_object();

		for (k = 0; was && k < ARRAY_SIZE(keys); k++)
			json_object_set_new(rates, keys[k], json_real(rate(was, wheel, keys[k])));
		json_object_set_new(wheel->info, "per_second", was ? rates : json_null());
		if (!was)
			json_decref(rates);
	}
}

/* "PID:FD,FD PID:FD (UNIT)": the descriptors of a process stand together. */
static void print_holders(const struct wheel *wheel)
{
	const json_t *holders = json_object_get(wheel->info, "holders");
	char units[UNITS_SIZE];
	json_int_t last = 0;
	json_t *holder;
	size_t i;

	json_array_foreach(holders, i, holder) {
		json_int_t pid = json_integer_value(json_object_get(holder, "pid"));
		json_int_t fd = json_integer_value(json_object_get(holder, "fd"));

		if (pid == last)
			printf(",%d", (int)fd);
		else
			printf("%s%d:%d", last ? " " : "", (int)pid, (int)fd);
		last = pid;
	}
	if (*units_text(units, wheel))
		printf(" (%s)", units);
	putchar('\n');
}

static void print_wheel(const struct wheel *wheel, bool with_rates)
{
	const json_t *rates = json_object_get(wheel->info, "per_second");
	char text[TEXT_SIZE] = "-";

	printf("%5llu %-15s %5llu %-9s %-8s %9llu %7llu ",
	       wheel->number, *word(wheel, "name") ? word(wheel, "name") : "-",
	       figure(wheel, "uid"), word(wheel, "clock"), word(wheel, "state"),
	       figure(wheel, "pending"), figure(wheel, "unread"));
	if (json_is_object(rates))
		snprintf(text, sizeof(text), "%.1f",
			 json_real_value(json_object_get(rates, "expirations")));
	if (with_rates)
		printf("%9s ", text);
	printf("%7llu ", figure(wheel, "late"));
	printf("%8s %7llu %-9s ", time_text(text, figure(wheel, "last_late_ns")),
	       figure(wheel, "bytes") / 1024, word(wheel, "kthread"));
	print_holders(wheel);
}

static void print_text(const struct wheels *wheels, bool with_rates)
{
	__u64 open;
	size_t i;

	printf("WHEEL NAME              UID CLOCK     STATE      PENDING  UNREAD %s   LATE LAST-LATE      KB KTHREAD   PID:FD (UNIT)\n",
	       with_rates ? "EXPIRED/s " : "");
	for (i = 0; i < wheels->nr; i++)
		print_wheel(&wheels->wheels[i], with_rates);
	if (!wheels->complete)
		puts("Processes of other users are left out: as root, you see the wheels of all.");
	else if (read_number(COUNTERS "/wheels", &open) && open > wheels->nr)
		printf("%llu more are open, which no process has as a descriptor: mapped (as root, `grep -l /dev/twheel /proc/*/maps' finds that), or under way over a socket.\n",
		       open - wheels->nr);
}

static void print_all_json(const struct wheels *wheels)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < wheels->nr; i++)
		json_array_append(list, wheels->wheels[i].info);
	print_json(json_pack("{s:b,s:o}", "complete", wheels->complete, "wheels", list));
}

int ps_run(const struct options *options)
{
	struct wheels wheels;

	wheels_look(&wheels);
	if (options->interval_ns) {
		struct wheels before = wheels;

		sleep_ns(options->interval_ns);
		wheels_look(&wheels);
		add_rates(&before, &wheels);
		wheels_free(&before);
	}
	units_find(&wheels);
	if (options->json)
		print_all_json(&wheels);
	else
		print_text(&wheels, options->interval_ns);
	wheels_free(&wheels);
	return DONE;
}
