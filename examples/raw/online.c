// SPDX-License-Identifier: 0BSD
/*
 * Who is online: a keyed wheel in place of a map from users to timeouts.
 *
 *	online
 *
 * A user is online for ONLINE_NS from the last sign of life. Each sign is one ARM with the
 * user's number as the key: the wheel itself knows whether the user was online, and no id
 * is kept. Users 1 to 4 come; 1 gives signs of life for a second, and 2 signs off. It ends
 * when all of them are offline.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <linux/twheel_calls.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ONLINE_NS	500000000ULL
#define USERS		4

/* A sign of life; whether the user was offline before. */
static int seen(int fd, uint64_t user)
{
	struct twheel_arm arm = { .expires_ns = ONLINE_NS, .user_data = user };
	int found = twheel_arm_one(fd, &arm);

	if (found < 0)
		errx(1, "user %llu: %s", (unsigned long long)user, strerror(-found));
	/* Where the event was unread, it never comes: the user is not told to be offline. */
	return found == TWHEEL_CREATED;
}

/* Take a user off; whether that user was online. */
static int gone(int fd, uint64_t user)
{
	struct twheel_cancel entry = { .id = user };
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = sizeof(entry),
		.nr = 1,
		.flags = TWHEEL_VECTOR_BY_KEY,
		.entries = (uintptr_t)&entry,
	};

	if (ioctl(fd, TWHEEL_IOC_CANCEL, &vector) < 0)
		err(1, "cancel");
	if (entry.result < 0 && entry.result != -ENOENT)
		errx(1, "cancel: %s", strerror(-entry.result));
	return entry.result > 0;
}

int main(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_KEYED,
	};
	struct pollfd wheel = { .fd = open("/dev/twheel", O_RDWR | O_NONBLOCK), .events = POLLIN };
	unsigned int signs, online = 0;
	struct twheel_event event;
	uint64_t user;

	if (wheel.fd < 0 || ioctl(wheel.fd, TWHEEL_IOC_SETUP, &setup))
		err(1, "/dev/twheel");
	for (user = 1; user <= USERS; user++)
		online += seen(wheel.fd, user);
	if (online != USERS || !gone(wheel.fd, 2) || gone(wheel.fd, 2))
		errx(1, "not all have come, or user 2 did not sign off once");
	online--;

	for (signs = 0; online; ) {
		if (poll(&wheel, 1, 50) < 0)
			err(1, "poll");
		while (read(wheel.fd, &event, sizeof(event)) == sizeof(event)) {
			printf("user %llu is offline\n", (unsigned long long)event.user_data);
			online--;
		}
		if (signs++ < 20)
			online += seen(wheel.fd, 1);
	}
	return 0;
}
