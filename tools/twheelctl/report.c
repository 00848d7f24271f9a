// SPDX-License-Identifier: GPL-2.0
/* twheelctl: findings, and the format of findings and figures */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "twheelctl.h"

static const char * const status_names[] = { "ok", "problem", "unknown" };

void report_begin(struct report *report, bool json)
{
	*report = (struct report){ .json = json, .findings = json_array() };
}

/*
 * Add a finding: its cause is a word for programs, see the man page; the rest are sentences for
 * people.  `about' has further keys for JSON, or is NULL, and is consumed.  As exit status, a
 * problem outranks what is unknown.
 */
void report_add(struct report *report, int status, const char *cause, json_t *about,
		const char *advice, const char *format, ...)
{
	json_t *finding = about ?: json_object();
	char *sentence;
	va_list args;

	va_start(args, format);
	if (vasprintf(&sentence, format, args) < 0)
		abort();
	va_end(args);
	if (status == PROBLEM || report->status == DONE)
		report->status = status;
	if (report->json) {
		json_object_set_new(finding, "status", json_string(status_names[status]));
		json_object_set_new(finding, "cause", json_string(cause));
		json_object_set_new(finding, "says", json_string(sentence));
		json_object_set_new(finding, "do", json_string(advice));
		json_array_append(report->findings, finding);
	} else {
		printf("%s: %s: %s\n    %s\n", status_names[status], cause, sentence, advice);
	}
	json_decref(finding);
	free(sentence);
}

/* The keys of a finding about a wheel in JSON; in text, it begins with the same. */
json_t *about(const struct wheel *wheel)
{
	return json_pack("{s:I,s:s,s:I,s:O,s:O}", "wheel", (json_int_t)wheel->number, "name",
			 word(wheel, "name"), "uid", (json_int_t)figure(wheel, "uid"),
			 "holders", json_object_get(wheel->info, "holders"),
			 "units", json_object_get(wheel->info, "units"));
}

/*
 * "Wheel 3 "sessions" of user 1000 (process 812, daemon, of web.service, is stopped)".  Whether it
 * runs or sleeps is left out: a process that waits for events sleeps.
 */
const char *subject(char text[SUBJECT_SIZE], const struct wheel *wheel)
{
	char path[64], unit[UNIT_SIZE], units[UNITS_SIZE], where[UNITS_SIZE + 32] = "";
	int pid = main_holder(wheel);
	struct task task;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!task_read(path, &task))
		task = (struct task){ .comm = "?" };
	if (pid == 1 && *units_text(units, wheel))
		snprintf(where, sizeof(where), ", in the descriptor store of %s", units);
	else if (unit_of(pid, unit))
		snprintf(where, sizeof(where), ", of %s", unit);
	snprintf(text, SUBJECT_SIZE, "Wheel %llu \"%s\" of user %llu (process %d, %s%s%s)",
		 wheel->number, word(wheel, "name"), figure(wheel, "uid"), task.pid, task.comm,
		 where, task.state == 'T' || task.state == 't' ? ", is stopped" :
		 task.state == 'D' ? ", waits for the kernel" : "");
	return text;
}

/* Return the exit status. */
int report_end(struct report *report, const char *all_is_well)
{
	if (report->json)
		print_json(json_pack("{s:s,s:O}", "verdict", status_names[report->status],
				     "findings", report->findings));
	else if (report->status == DONE)
		printf("ok: %s\n", all_is_well);
	json_decref(report->findings);
	return report->status;
}

/* The object is consumed. */
void print_json(json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
}

/* A length of time in the unit that suits it. */
const char *time_text(char text[TEXT_SIZE], __u64 ns)
{
	static const struct {
		__u64 ns;
		const char *name;
	} units[] = {
		{ 86400 * NS_PER_S, "d" }, { 3600 * NS_PER_S, "h" }, { 60 * NS_PER_S, "min" },
		{ NS_PER_S, "s" }, { NS_PER_MS, "ms" }, { NS_PER_US, "us" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (ns < units[i].ns)
			continue;
		snprintf(text, TEXT_SIZE, "%.4g %s", (double)ns / units[i].ns, units[i].name);
		return text;
	}
	snprintf(text, TEXT_SIZE, "%u ns", (unsigned int)ns);
	return text;
}

/* The local date and time `ago_ns' ago. */
const char *date_text(char text[TEXT_SIZE], __u64 ago_ns)
{
	time_t then = time(NULL) - ago_ns / NS_PER_S;
	struct tm date;

	strftime(text, TEXT_SIZE, "%F %T", localtime_r(&then, &date));
	return text;
}

__u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The precision of the kernel's timers: 1 if it has high-resolution timers. */
__u64 resolution_ns(void)
{
	struct timespec resolution = {};

	clock_getres(CLOCK_MONOTONIC, &resolution);
	return resolution.tv_nsec;
}

void sleep_ns(__u64 ns)
{
	struct timespec left = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}
