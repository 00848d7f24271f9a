// SPDX-License-Identifier: 0BSD
/*
 * The users who are online: a keyed wheel in place of a map from users to timeouts.
 *
 *	online
 *
 * A user is online for ONLINE_NS from the last sign of life. Each sign is one ARM with the user's
 * number as the key: the wheel knows whether the user was online, so no id is kept. Users 1 to 4
 * come; 1 gives signs of life for a second, and 2 signs off. It ends when all of them are offline.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <twheel/device.h>

#define ONLINE_NS	500000000ULL
#define USERS		4

/* A sign of life; returns whether the user was offline before. */
static int seen(struct twheel_device *device, uint64_t user)
{
	struct twheel_arm arm = { .expires_ns = ONLINE_NS, .user_data = user };
	int found = twheel_device_arm(device, &arm);

	if (found < 0)
		errx(1, "user %llu: %s", (unsigned long long)user, strerror(-found));
	/* If the event was unread, it never comes: the user is not reported as offline. */
	return found == TWHEEL_CREATED;
}

/* Take a user off; returns whether that user was online. */
static int gone(struct twheel_device *device, uint64_t user)
{
	int found = twheel_device_cancel_key(device, user);

	if (found < 0 && found != -ENOENT)
		errx(1, "cancel: %s", strerror(-found));
	return found > 0;
}

int main(void)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_KEYED,
	};
	unsigned int signs, online = 0;
	struct twheel_device *device;
	struct twheel_event events[64];
	struct pollfd wheel;
	uint64_t user;
	int ret, i;

	ret = twheel_device_open(&device, NULL, O_NONBLOCK, &setup);
	if (ret < 0)
		errx(1, "/dev/twheel: %s", strerror(-ret));
	wheel = (struct pollfd){ .fd = twheel_device_fd(device), .events = POLLIN };
	for (user = 1; user <= USERS; user++)
		online += seen(device, user);
	if (online != USERS || !gone(device, 2) || gone(device, 2))
		errx(1, "not all have come, or user 2 did not sign off once");
	online--;

	for (signs = 0; online; ) {
		if (poll(&wheel, 1, 50) < 0)
			err(1, "poll");
		ret = twheel_device_read(device, events, 64);
		for (i = 0; i < ret; i++, online--)
			printf("user %llu is offline\n", events[i].user_data);
		if (signs++ < 20)
			online += seen(device, 1);
	}
	twheel_device_close(device);
	return 0;
}
