// SPDX-License-Identifier: 0BSD
/*
 * Idle connections by the refresh table: each packet moves a timeout on by one store,
 * with no system call.
 *
 *	refresh [CONNECTIONS]
 *
 * All connections have a packet in each turn of the loop, but for one, which is
 * silent: that one times out, and no other does.  In the end the others are
 * cancelled.  A daemon would keep the ids with its connections, as this keeps them
 * in an array, and would find a connection by user_data.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define IDLE_NS		1000000000ULL	/* a connection that is silent for so long */
#define TURN_MS		10
#define SILENT		0		/* the connection that has no packets */

static unsigned int nr;			/* connections */
static uint64_t *ids;			/* the timeout of each */
static void *table;			/* the refresh table */
static uint32_t shift;			/* for its deadlines */
static unsigned int silent_ended, others_ended;

static uint64_t now_ns(void)
{
	struct timespec ts;

	/* A wheel without SETUP goes by this clock. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* One call for all of them; how many succeeded. */
static unsigned int vector_call(int fd, unsigned long cmd, void *entries, size_t entry_size)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = entry_size,
		.nr = nr,
		.entries = (uintptr_t)entries,
	};
	int ret = ioctl(fd, cmd, &vector);

	if (ret < 0)
		err(1, "ioctl");
	/* Where it ended early, the entries that follow say nothing. */
	if (vector.nr_done != nr)
		errx(1, "the call ended after %u of %u", vector.nr_done, nr);
	return ret;
}

static void arm_all(int fd)
{
	struct twheel_arm *arms = calloc(nr, sizeof(*arms));
	unsigned int i;

	ids = calloc(nr, sizeof(*ids));
	if (!arms || !ids)
		err(1, "memory");
	for (i = 0; i < nr; i++) {
		arms[i].expires_ns = IDLE_NS;
		arms[i].user_data = i;
	}
	vector_call(fd, TWHEEL_IOC_ARM, arms, sizeof(arms[0]));
	for (i = 0; i < nr; i++) {
		if (arms[i].result < 0) {
			errno = -arms[i].result;
			err(1, "timeout %u was refused", i);
		}
		ids[i] = arms[i].id;
	}
	free(arms);
}

/* The size is final once the wheel has been set up or armed. */
static void map_table(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		err(1, "INFO");
	if (!(info.features & TWHEEL_FEATURE_REFRESH))
		errx(1, "this module has no refresh table");
	shift = info.refresh_shift;
	table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		err(1, "mmap");
}

static void connection_ends(const struct twheel_event *event, uint64_t earliest_ns)
{
	uint64_t who = event->user_data;

	if (who >= nr || event->id != ids[who])
		errx(1, "an event of nobody");
	ids[who] = 0;
	if (who == SILENT)
		silent_ended++;
	else if (event->deadline_ns < earliest_ns)
		errx(1, "connection %u timed out although it had packets", (unsigned int)who);
	else
		others_ended++;		/* this program itself came too late */
}

/* All that expired.  A timeout that was moved to earliest_ns must not come before. */
static void read_events(int fd, uint64_t earliest_ns)
{
	struct twheel_event events[64];
	ssize_t bytes, i;

	do {
		bytes = read(fd, events, sizeof(events));
		/* After POLLIN too: whoever shares the wheel may have been faster. */
		if (bytes < 0 && errno != EAGAIN && errno != EINTR)
			err(1, "read");
		for (i = 0; i < bytes / (ssize_t)sizeof(events[0]); i++)
			connection_ends(&events[i], earliest_ns);
	} while (bytes == sizeof(events));
}

/* One turn: the clock is looked at once, then each packet is one store. */
static uint64_t packets_come(void)
{
	uint64_t deadline_ns = now_ns() + IDLE_NS;
	uint64_t later = twheel_refresh_deadline(deadline_ns, shift);
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (i != SILENT && ids[i] && !twheel_refresh(table, ids[i], later))
			errx(1, "connection %u has lost its timeout", i);
	return deadline_ns;
}

static unsigned int cancel_all(int fd)
{
	struct twheel_cancel *cancels = calloc(nr, sizeof(*cancels));
	unsigned int cancelled;
	unsigned int i;

	if (!cancels)
		err(1, "memory");
	for (i = 0; i < nr; i++)
		cancels[i].id = ids[i];		/* 0, of those that ended, is ENOENT */
	cancelled = vector_call(fd, TWHEEL_IOC_CANCEL, cancels, sizeof(cancels[0]));
	free(cancels);
	return cancelled;
}

int main(int argc, char **argv)
{
	struct pollfd wheel = { .events = POLLIN };
	uint64_t deadline_ns = 0, earliest_ns = 0, end_ns;
	unsigned int cancelled, turns = 0;

	nr = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
	if (nr < 1 || nr > 65536)
		errx(2, "1 to 65536 connections, as many as one call takes");
	wheel.fd = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (wheel.fd < 0)
		err(1, "/dev/twheel");
	arm_all(wheel.fd);
	map_table(wheel.fd);

	/* Until the silent one has timed out, and the others would have, twice over. */
	end_ns = now_ns() + 3 * IDLE_NS;
	while (!silent_ended || now_ns() < end_ns) {
		if (poll(&wheel, 1, TURN_MS) < 0 && errno != EINTR)
			err(1, "poll");
		if (wheel.revents & POLLIN)
			read_events(wheel.fd, earliest_ns);
		/* A store that comes after the expiry changes nothing: so the last but one. */
		earliest_ns = deadline_ns;
		deadline_ns = packets_come();
		turns++;
	}

	cancelled = cancel_all(wheel.fd);
	printf("%u turns: the silent connection timed out, %u others did, %u were cancelled\n",
	       turns, others_ended, cancelled);
	if (silent_ended != 1 || silent_ended + others_ended + cancelled != nr)
		errx(1, "that does not make %u", nr);
	return 0;
}
