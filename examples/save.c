// SPDX-License-Identifier: 0BSD
/*
 * Timeouts that outlive the machine: write what pends to a file, and arm it again.
 *
 *	save FILE
 *
 * If FILE is there, the jobs in it are armed again, and FILE is removed; otherwise there are
 * five new jobs.  Then it does jobs until none is left, or SIGTERM comes: it writes those that
 * are left to FILE, and ends.
 *
 * The clock is CLOCK_REALTIME, so a deadline means the same after a reboot.  If a job fell due in
 * between, it comes at once, and its event says how late it is.  If a daemon may be killed without
 * a warning, see outlive.c.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <twheel/device.h>
#include <unistd.h>

#define ROWS		256
#define SEC		1000000000ULL

/* If a job is later than this, its lateness is printed. */
#define LATE_MS		100

static void on_stop(int signal)
{
	(void)signal;
}

/* ---- to the file -------------------------------------------------------------- */

/*
 * Return the timeout to arm again.  If it has an unread event, add the periods of that event, which
 * nobody has read.
 */
static struct twheel_arm arm_again(const struct twheel_status *row)
{
	struct twheel_arm arm = {
		.user_data = row->user_data,
		.expires_ns = row->deadline_ns,
		.interval_ns = row->interval_ns,
		.flags = TWHEEL_ARM_ABSOLUTE | (row->flags & TWHEEL_ARM_FIXED_DELAY),
		.repeats = row->repeats_left,
		.slack_ticks = row->slack_ticks,
	};
	uint32_t last = row->flags & TWHEEL_STATUS_LAST_EVENT;

	if (!row->count || !row->interval_ns)
		return arm;
	/* In the last event, 0 is not "no limit". */
	if (row->repeats_left || last)
		arm.repeats += row->count;
	/* With a fixed rate, the deadline is the next one, though the event is unread. */
	if (!last && !(row->flags & TWHEEL_ARM_FIXED_DELAY))
		arm.expires_ns -= row->count * row->interval_ns;
	else
		arm.expires_ns -= (row->count - 1) * row->interval_ns;
	return arm;
}

static void write_rows(const struct twheel_device *device, FILE *file)
{
	struct twheel_status rows[ROWS];
	uint64_t cursor = 0;
	int i, nr;

	while ((nr = twheel_device_list(device, &cursor, rows, ROWS)) > 0) {
		for (i = 0; i < nr; i++) {
			struct twheel_arm arm = arm_again(&rows[i]);

			fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u\n",
				(uint64_t)arm.user_data, (uint64_t)arm.expires_ns,
				(uint64_t)arm.interval_ns, arm.flags, arm.repeats,
				arm.slack_ticks);
		}
	}
	if (nr < 0)
		errx(1, "LIST: %s", strerror(-nr));
}

/* Keep the old file until the new one is whole, and on the disk. */
static void save(const struct twheel_device *device, const char *path)
{
	char new[4096], folder[4096];
	FILE *file;
	int fd;

	snprintf(new, sizeof(new), "%s.new", path);
	snprintf(folder, sizeof(folder), "%s", path);
	file = fopen(new, "we");
	if (!file)
		err(1, "%s", new);
	write_rows(device, file);
	if (fflush(file) || fsync(fileno(file)) || fclose(file) || rename(new, path))
		err(1, "%s", path);
	fd = open(dirname(folder), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		err(1, "the folder of %s", path);
	close(fd);
}

/* ---- from the file ------------------------------------------------------------ */

static void arm_rows(const struct twheel_device *device, struct twheel_arm *arms, uint32_t nr)
{
	uint32_t i;

	if (twheel_device_arm_many(device, arms, nr) == nr)
		return;
	for (i = 0; i < nr; i++)
		if (arms[i].result < 0)
			errx(1, "job %" PRIu64 ": %s", (uint64_t)arms[i].user_data,
			     strerror(-arms[i].result));
}

static uint64_t load(const struct twheel_device *device, FILE *file)
{
	uint64_t user_data, expires_ns, interval_ns, nr = 0;
	uint32_t flags, repeats, slack_ticks, some = 0;
	struct twheel_arm arms[ROWS];
	int found;

	while ((found = fscanf(file, "%" SCNu64 "%" SCNu64 "%" SCNu64 "%u%u%u", &user_data,
			       &expires_ns, &interval_ns, &flags, &repeats, &slack_ticks)) == 6) {
		arms[some++] = (struct twheel_arm){
			.user_data = user_data, .expires_ns = expires_ns,
			.interval_ns = interval_ns, .flags = flags, .repeats = repeats,
			.slack_ticks = slack_ticks,
		};
		nr++;
		if (some == ROWS) {
			arm_rows(device, arms, some);
			some = 0;
		}
	}
	if (found != EOF)
		errx(1, "job %" PRIu64 " of the file is not whole", nr + 1);
	arm_rows(device, arms, some);
	return nr;
}

/* ---- the jobs ------------------------------------------------------------------ */

static void arm_new(const struct twheel_device *device)
{
	struct twheel_arm arms[5];
	struct timespec now;
	uint64_t now_ns;
	int i;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = now.tv_sec * SEC + now.tv_nsec;
	for (i = 0; i < 4; i++)
		arms[i] = (struct twheel_arm){
			.user_data = i + 1, .flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = now_ns + (i + 1) * SEC,
		};
	arms[4] = (struct twheel_arm){
		.user_data = 5, .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = now_ns + SEC / 4,
		.interval_ns = SEC / 4, .repeats = 10,
	};
	arm_rows(device, arms, 5);
}

/* Do jobs until there are none, or SIGTERM comes; return whether some are left. */
static int do_jobs(const struct twheel_device *device)
{
	struct pollfd wheel = { .fd = twheel_device_fd(device), .events = POLLIN };
	struct twheel_event events[ROWS];
	struct twheel_info info;
	sigset_t none;
	int i, nr;

	sigemptyset(&none);
	for (;;) {
		twheel_device_info(device, &info, 0);
		if (!info.live)
			return 0;
		/* SIGTERM is blocked everywhere else. */
		if (ppoll(&wheel, 1, NULL, &none) < 0)
			return 1;
		nr = twheel_device_read(device, events, ROWS);
		if (nr < 0 && nr != -EAGAIN)
			errx(1, "read: %s", strerror(-nr));
		for (i = 0; i < nr; i++) {
			uint64_t late_ms = (events[i].fired_ns - events[i].deadline_ns) / 1000000;

			printf("job %" PRIu64 ", count %u", (uint64_t)events[i].user_data,
			       events[i].count);
			if (late_ms >= LATE_MS)
				printf(", %" PRIu64 " ms late", late_ms);
			puts("");
		}
	}
}

int main(int argc, char **argv)
{
	static const struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_REALTIME, .name = "jobs",
	};
	struct sigaction stop = { .sa_handler = on_stop };
	struct twheel_device *device;
	sigset_t terms;
	FILE *file;
	int ret;

	if (argc != 2)
		errx(2, "usage: save FILE");
	setlinebuf(stdout);
	sigaction(SIGTERM, &stop, NULL);
	sigemptyset(&terms);
	sigaddset(&terms, SIGTERM);
	sigprocmask(SIG_BLOCK, &terms, NULL);
	ret = twheel_device_open(&device, NULL, O_NONBLOCK, &setup);
	if (ret < 0)
		errx(1, "/dev/twheel: %s", strerror(-ret));
	file = fopen(argv[1], "re");
	if (file) {
		printf("%" PRIu64 " jobs of before\n", load(device, file));
		fclose(file);
		unlink(argv[1]);
	} else if (errno == ENOENT) {
		arm_new(device);
	} else {
		err(1, "%s", argv[1]);
	}
	if (do_jobs(device))
		save(device, argv[1]);
	twheel_device_close(device);
	return 0;
}
