// SPDX-License-Identifier: 0BSD
/*
 * Idle connections by the refresh table: each packet moves a timeout on by one store,
 * with no system call.
 *
 *	refresh [CONNECTIONS]
 *
 * All connections but one have a packet in each turn of the loop.  The silent one times out, and no
 * other does.  In the end the others are cancelled.  A daemon would keep the ids with its
 * connections, as this keeps them in an array, and would find a connection by user_data.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <twheel/device.h>

#define IDLE_NS		1000000000ULL	/* a connection that is silent for this long */
#define TURN_MS		10
#define SILENT		0		/* the connection that has no packets */

static unsigned int nr;			/* connections */
static uint64_t *ids;			/* the timeout of each */
static twheel_word_t *table;		/* the refresh table */
static uint32_t shift;			/* shift of its deadlines */
static struct twheel_device *device;
static unsigned int silent_ended, others_ended;

static uint64_t now_ns(void)
{
	struct timespec ts;

	/* By default, a wheel has this clock. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

/* Arm all: one call takes up to 65,536 timeouts. */
static void arm_all(void)
{
	struct twheel_arm *arms = calloc(nr, sizeof(*arms));
	unsigned int i;

	if (!arms)
		err(1, "memory");
	for (i = 0; i < nr; i++) {
		arms[i].user_data = i;
		arms[i].expires_ns = IDLE_NS;
	}
	twheel_device_arm_many(device, arms, nr);
	for (i = 0; i < nr; i++) {
		check(arms[i].result, "arm");
		ids[i] = arms[i].id;
	}
	free(arms);
}

static unsigned int cancel_all(void)
{
	struct twheel_cancel *cancels = calloc(nr, sizeof(*cancels));
	unsigned int i, cancelled;

	if (!cancels)
		err(1, "memory");
	for (i = 0; i < nr; i++)
		cancels[i].id = ids[i];		/* 0, of those that ended, is ENOENT */
	cancelled = twheel_device_cancel_many(device, cancels, nr);
	free(cancels);
	return cancelled;
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
		others_ended++;		/* this program itself was too late */
}

/*
 * Read the events of all that expired.  If a timeout was moved to earliest_ns, it must not come
 * before.
 */
static void read_events(uint64_t earliest_ns)
{
	struct twheel_event events[64];
	int ret, i;

	while ((ret = twheel_device_read(device, events, 64)) > 0)
		for (i = 0; i < ret; i++)
			connection_ends(&events[i], earliest_ns);
	/* Also after POLLIN: another reader of the wheel may have been faster. */
	if (ret != -EAGAIN && ret != -EINTR)
		check(ret, "read");
}

/* In each turn, the clock is read once, and each packet is one store. */
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

int main(int argc, char **argv)
{
	struct pollfd wheel = { .events = POLLIN };
	uint64_t deadline_ns = 0, earliest_ns = 0, end_ns;
	unsigned int cancelled, turns = 0;

	nr = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
	if (nr < 1 || nr > 1000000)
		errx(2, "1 to 1000000 connections");
	ids = calloc(nr, sizeof(*ids));
	if (!ids)
		err(1, "memory");
	check(twheel_device_open(&device, NULL, O_NONBLOCK, NULL), "/dev/twheel");
	check(twheel_device_map(device, &table, &shift), "map");
	wheel.fd = twheel_device_fd(device);
	arm_all();

	/* Go on until the silent one has timed out, and the others would have, twice. */
	end_ns = now_ns() + 3 * IDLE_NS;
	while (!silent_ended || now_ns() < end_ns) {
		if (poll(&wheel, 1, TURN_MS) < 0 && errno != EINTR)
			err(1, "poll");
		if (wheel.revents & POLLIN)
			read_events(earliest_ns);
		/*
		 * If a store comes after the expiry, it changes nothing: so take the last but one.
		 */
		earliest_ns = deadline_ns;
		deadline_ns = packets_come();
		turns++;
	}

	cancelled = cancel_all();
	printf("%u turns: the silent connection timed out, %u others did, %u were cancelled\n",
	       turns, others_ended, cancelled);
	if (silent_ended != 1 || silent_ended + others_ended + cancelled != nr)
		errx(1, "that does not make %u", nr);
	twheel_device_close(device);
	free(ids);
	return 0;
}
