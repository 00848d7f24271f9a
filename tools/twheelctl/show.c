// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl show: all about one wheel, and the timeouts that expire next
 *
 * It asks for INFO and LIST by a copy of the process's descriptor.  The copy may do what the
 * descriptor may, but INFO and LIST change nothing.
 */
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "twheelctl.h"

/* How many rows of LIST are asked for at a time. */
#define ROWS	4096

/* How a member of struct twheel_info is shown. */
enum unit {
	SMALL,		/* a number of 32 bits */
	NUMBER,
	SPAN,		/* a length of time */
	TIME,		/* a point on the wheel's clock */
};

#define MEMBER(name, unit, says) \
	{ #name, offsetof(struct twheel_info, name), unit, says }

static const struct {
	const char *name;
	size_t offset;
	enum unit unit;
	const char *says;
} members[] = {
	MEMBER(now_ns, TIME, "the wheel's clock"),
	MEMBER(tick_ns, SPAN, "tick"),
	MEMBER(slots, SMALL, "slots of the first level"),
	MEMBER(slack_ns, SPAN, "slack of the wheel"),
	MEMBER(event_size, SMALL, "size of an event, bytes"),
	MEMBER(refresh_size, NUMBER, "size of the refresh table, bytes"),
	MEMBER(max_pending, SMALL, "most timeouts in use at a time"),
	MEMBER(live, NUMBER, "timeouts in use"),
	MEMBER(pending, NUMBER, "of these, pending"),
	MEMBER(unread, NUMBER, "of these, with an event that waits to be read"),
	MEMBER(next_expiry_ns, TIME, "next expiry"),
	MEMBER(alarm_ns, TIME, "the kernel looks at the wheel next"),
	MEMBER(armed, NUMBER, "timeouts armed so far"),
	MEMBER(rearmed, NUMBER, "moved by REARM"),
	MEMBER(expirations, NUMBER, "expirations"),
	MEMBER(delivered, NUMBER, "events read"),
	MEMBER(completed, NUMBER, "ended because their last event was read"),
	MEMBER(cancelled, NUMBER, "cancelled while pending"),
	MEMBER(revoked, NUMBER, "cancelled with an unread event"),
	MEMBER(drained, NUMBER, "ended by DRAIN"),
	MEMBER(late, NUMBER, "later than a tick and the slack"),
	MEMBER(last_late_ns, SPAN, "how late the last of these was"),
	MEMBER(last_late_at_ns, TIME, "when that was"),
	MEMBER(longest_unread_at_ns, TIME, "when one unread for longest was last read"),
};

static __u64 member_value(const struct twheel_info *info, size_t i)
{
	const char *at = (const char *)info + members[i].offset;
	__u64 number = 0;
	__u32 small = 0;

	if (members[i].unit != SMALL)
		memcpy(&number, at, sizeof(number));
	else
		memcpy(&small, at, sizeof(small));
	return number + small;
}

/* Copy a descriptor of another process. */
static int descriptor_get(int pid, int fd)
{
	int process, copy;
	dev_t device;

	device_number_or_exit(&device);
	process = pidfd_open(pid, 0);
	if (process < 0)
		err(UNKNOWN, "process %d; `twheelctl ps' lists wheels", pid);
	copy = pidfd_getfd(process, fd, 0);
	if (copy < 0 && errno == EPERM)
		errx(UNKNOWN,
		     "You may not trace process %d, and a copy of its descriptor needs that right: run twheelctl as root, or look at what `twheelctl ps' shows",
		     pid);
	if (copy < 0)
		err(UNKNOWN, "descriptor %d of process %d; `twheelctl ps' lists wheels", fd, pid);
	close(process);
	return copy;
}

static int by_left(const void *a, const void *b)
{
	const struct twheel_status *one = a, *other = b;

	return (one->left_ns > other->left_ns) - (one->left_ns < other->left_ns);
}

/*
 * Keep the rows that expire next.  There is room for twice as many: when it is full, the rows are
 * sorted, and the second half is dropped.  If a timeout is moved during the walk, it may come
 * twice.
 */
static size_t nearest_get(int fd, struct twheel_status *nearest, size_t most)
{
	static struct twheel_status rows[ROWS];
	struct twheel_list list = {
		.size = sizeof(list), .entry_size = sizeof(*rows), .nr = ROWS,
		.entries = (uintptr_t)rows,
	};
	size_t nr = 0;
	int got, i;

	while ((got = ioctl(fd, TWHEEL_IOC_LIST, &list)) > 0) {
		for (i = 0; i < got; i++) {
			if (rows[i].state == TWHEEL_STATE_DRAINED ||
			    (rows[i].state == TWHEEL_STATE_EXPIRED && !rows[i].left_ns) ||
			    rows[i].deadline_ns >= TWHEEL_TIME_NEVER)
				continue;
			nearest[nr++] = rows[i];
			if (nr < 2 * most)
				continue;
			qsort(nearest, nr, sizeof(*nearest), by_left);
			nr = most;
		}
	}
	if (got < 0)
		err(UNKNOWN, "LIST of the wheel failed");
	qsort(nearest, nr, sizeof(*nearest), by_left);
	return nr < most ? nr : most;
}

static json_t *hexadecimal(__u64 number)
{
	return json_sprintf("0x%llx", number);
}

static json_t *nearest_json(const struct twheel_status *nearest, size_t nr)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < nr; i++) {
		const struct twheel_status *row = &nearest[i];
		json_t *json = json_object();

		json_object_set_new(json, "id", hexadecimal(row->id));
		json_object_set_new(json, "user_data", hexadecimal(row->user_data));
		json_object_set_new(json, "deadline_ns", json_integer(row->deadline_ns));
		json_object_set_new(json, "left_ns", json_integer(row->left_ns));
		json_object_set_new(json, "interval_ns", json_integer(row->interval_ns));
		json_object_set_new(json, "repeats_left", json_integer(row->repeats_left));
		json_object_set_new(json, "slack_ticks", json_integer(row->slack_ticks));
		json_array_append_new(list, json);
	}
	return list;
}

/* Add the members of INFO to those of fdinfo; one of them is known only after a walk. */
static void info_json(const struct twheel_info *info, json_t *fdinfo)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(members); i++) {
		__u64 value = member_value(info, i);
		bool known = members[i].unit != TIME || value != TWHEEL_TIME_NEVER;

		if (members[i].offset == offsetof(struct twheel_info, next_expiry_ns))
			known &= !!(info->flags & TWHEEL_INFO_WALK);
		json_object_set_new(fdinfo, members[i].name,
				    known ? json_integer(value) : json_null());
	}
}

static void print_member(const struct twheel_info *info, const json_t *json, size_t i)
{
	__u64 value = member_value(info, i);
	char text[TEXT_SIZE], ahead[TEXT_SIZE];

	printf("%-20s %-45s ", members[i].name, members[i].says);
	if (json_is_null(json_object_get(json, members[i].name)))
		puts("never");
	else if (members[i].unit == SPAN)
		puts(time_text(text, value));
	else if (members[i].unit != TIME || !value || value == info->now_ns)
		printf("%llu%s\n", value, members[i].unit == TIME ? " ns" : "");
	else if (value > info->now_ns)
		printf("%llu ns, in %s\n", value, time_text(ahead, value - info->now_ns));
	else
		printf("%llu ns, %s ago\n", value, time_text(ahead, info->now_ns - value));
}

static void print_ticks(const struct twheel_info *info, const char *head,
			const __u64 ticks[TWHEEL_LATE_TICKS])
{
	char text[TEXT_SIZE];
	unsigned int i;

	puts(head);
	for (i = 0; i < TWHEEL_LATE_TICKS; i++)
		if (ticks[i])
			printf("  %-43s %llu\n",
			       i ? time_text(text, info->tick_ns << i) : "within a tick",
			       ticks[i]);
}

static void print_text(const struct twheel_info *info, const json_t *json,
		       const struct twheel_status *nearest, size_t nr)
{
	const struct wheel wheel = { .info = (json_t *)json };
	char text[TEXT_SIZE], every[TEXT_SIZE];
	size_t i;

	printf("wheel %llu, name \"%s\", of the user %llu: %s, on the clock %s, served by %s, %llu bytes%s%s\n",
	       figure(&wheel, "wheel"), word(&wheel, "name"), figure(&wheel, "uid"),
	       word(&wheel, "state"), word(&wheel, "clock"), word(&wheel, "kthread"),
	       figure(&wheel, "bytes"),
	       info->setup_flags & TWHEEL_SETUP_KEYED ? ", keyed" : "",
	       info->setup_flags & TWHEEL_SETUP_ONE_LEVEL ? ", one level" : "");
	for (i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i].offset != offsetof(struct twheel_info, next_expiry_ns) ||
		    info->flags & TWHEEL_INFO_WALK)
			print_member(info, json, i);
	if (info->expirations)
		print_ticks(info, "how late timeouts expired, up to:", info->late_ticks);
	if (info->delivered)
		print_ticks(info, "how long events were unread, up to:", info->unread_ticks);
	if (!nr)
		return;
	puts("the timeouts that expire next:");
	for (i = 0; i < nr; i++)
		printf("  id 0x%-16llx user_data 0x%-16llx in %s%s%s\n", nearest[i].id,
		       nearest[i].user_data, time_text(text, nearest[i].left_ns),
		       nearest[i].interval_ns ? ", every " : "",
		       nearest[i].interval_ns ? time_text(every, nearest[i].interval_ns) : "");
}

int show_run(const struct options *options)
{
	int pid = options->numbers[0], number = options->numbers[1];
	struct twheel_info info = {
		.size = sizeof(info), .flags = options->nearest ? TWHEEL_INFO_WALK : 0,
	};
	struct twheel_status *nearest = NULL;
	int fd = descriptor_get(pid, number);
	json_t *json = fdinfo_read(getpid(), fd);
	size_t nr = 0;

	if (!fdinfo_is_wheel(json))
		errx(UNKNOWN, "descriptor %d of process %d is not one of a wheel; `twheelctl ps' lists wheels",
		     number, pid);
	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		err(UNKNOWN, "INFO of the wheel failed; `twheelctl check' may say why");
	if (options->nearest) {
		nearest = calloc(2UL * options->nearest, sizeof(*nearest));
		if (!nearest)
			err(UNKNOWN, "%u timeouts", options->nearest);
		nr = nearest_get(fd, nearest, options->nearest);
	}
	info_json(&info, json);
	if (options->json) {
		json_object_set_new(json, "nearest", nearest_json(nearest, nr));
		print_json(json);
	} else {
		print_text(&info, json, nearest, nr);
		json_decref(json);
	}
	free(nearest);
	close(fd);
	return DONE;
}
