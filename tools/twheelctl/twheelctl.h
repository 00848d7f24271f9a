/* SPDX-License-Identifier: GPL-2.0 */
/*
 * twheelctl: what its commands share
 */
#ifndef TWHEELCTL_H
#define TWHEELCTL_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>
#include <linux/types.h>

#define NS_PER_S	1000000000ULL
#define NS_PER_MS	1000000ULL
#define NS_PER_US	1000ULL

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* Exit statuses; if the command line is wrong, it is EX_USAGE. */
enum {
	DONE	= 0,	/* done, and nothing is wrong */
	PROBLEM	= 1,	/* something is wrong, and named */
	UNKNOWN	= 2,	/* unknown, or could not be done */
};

/**
 * struct options - the command line behind the name of the command
 * @json: print JSON instead of text
 * @watch: go on for ever, and print what changes
 * @interval_ns: between two snapshots; 0: only one, or the default
 * @nap_ns: a reader that leaves events unread for this long naps; 0: the default
 * @nearest: how many timeouts to show
 * @numbers: arguments, each a number, such as a PID
 * @nr: how many
 */
struct options {
	bool json;
	bool watch;
	__u64 interval_ns;
	__u64 nap_ns;
	unsigned int nearest;
	int *numbers;
	int nr;
};

int check_run(const struct options *options);
int late_run(const struct options *options);
int ps_run(const struct options *options);
int show_run(const struct options *options);
int stat_run(const struct options *options);

/* The counters of the module, each a number in a file. */
#define COUNTERS	"/sys/class/misc/twheel/counters"

/* wheels.c: the wheels that the caller may see */

/**
 * struct wheel - a wheel, as the fdinfo of its descriptors shows it
 * @number: the key "wheel" of fdinfo
 * @seen_ns: when it was read, CLOCK_MONOTONIC
 * @info: all keys of fdinfo, and "holders": objects with "pid" and "fd"; after units_find()
 *	"units" as well.  A number that stands for "never" is null.
 */
struct wheel {
	__u64 number;
	__u64 seen_ns;
	json_t *info;
};

/**
 * struct wheels - all wheels that the caller may see, by their numbers
 * @wheels: each wheel once
 * @nr: how many
 * @complete: no process was left out for lack of rights
 */
struct wheels {
	struct wheel *wheels;
	size_t nr;
	bool complete;
};

void wheels_look(struct wheels *wheels);
void wheels_free(struct wheels *wheels);
const struct wheel *wheels_find(const struct wheels *wheels, __u64 number);
json_t *fdinfo_read(int pid, int fd);
bool fdinfo_is_wheel(const json_t *info);
__u64 figure(const struct wheel *wheel, const char *key);
const char *word(const struct wheel *wheel, const char *key);
__u64 growth(const struct wheel *before, const struct wheel *now, const char *key);
bool is_held_by(const struct wheel *wheel, int pid);
bool device_number(dev_t *device);
void device_number_or_exit(dev_t *device);

/* units.c: the systemd units that hold a wheel */

/* The name of a unit has 255 characters at most. */
#define UNIT_SIZE	256
#define UNITS_SIZE	512

bool unit_of(int pid, char unit[UNIT_SIZE]);
int main_holder(const struct wheel *wheel);
void units_find(struct wheels *wheels);
const char *units_text(char text[UNITS_SIZE], const struct wheel *wheel);

/* proc.c: files of the kernel */

/* The name of a process or thread has 15 characters at most. */
#define COMM_SIZE	16

/**
 * struct task - a process or thread, as /proc/PID/stat shows it
 * @pid: its id
 * @comm: its name
 * @state: a letter
 * @kthread: it is a thread of the kernel
 * @processor: where it runs, waits to run, or ran last
 * @rt_priority: 1 to 99 for a real-time thread, else 0
 * @policy: SCHED_*
 */
struct task {
	int pid;
	char comm[COMM_SIZE];
	char state;
	bool kthread;
	int processor;
	unsigned int rt_priority;
	unsigned int policy;
};

ssize_t read_text(const char *path, char *text, size_t size);
bool read_number(const char *path, __u64 *number);
bool task_read(const char *path, struct task *task);
bool tasks_next(DIR *dir, struct task *task);
bool status_number(int pid, const char *key, int base, __u64 *number);

/* report.c: findings, and the format of figures */

/**
 * struct report - the result of a command
 * @json: keep the findings for report_end(), instead of printing them
 * @findings: those that were kept
 * @status: the exit status
 */
struct report {
	bool json;
	json_t *findings;
	int status;
};

void report_begin(struct report *report, bool json);
void report_add(struct report *report, int status, const char *cause, json_t *about,
		const char *advice, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
int report_end(struct report *report, const char *all_is_well);
void print_json(json_t *json);

#define SUBJECT_SIZE	(192 + UNITS_SIZE)

json_t *about(const struct wheel *wheel);
const char *subject(char text[SUBJECT_SIZE], const struct wheel *wheel);

#define TEXT_SIZE	32

const char *time_text(char text[TEXT_SIZE], __u64 ns);
const char *date_text(char text[TEXT_SIZE], __u64 ago_ns);

__u64 now_ns(void);
__u64 resolution_ns(void);
void sleep_ns(__u64 ns);

#endif /* TWHEELCTL_H */
