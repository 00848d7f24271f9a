// SPDX-License-Identifier: GPL-2.0
/* Arms three timeouts, cancels one, and prints the two that expire. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define VECTOR(array) (&(struct twheel_vector) {			\
	.size = sizeof(struct twheel_vector),				\
	.entry_size = sizeof((array)[0]),				\
	.nr = sizeof(array) / sizeof((array)[0]),			\
	.entries = (uintptr_t)(array) })

int main(void)
{
	struct twheel_arm arm[] = {	/* nanoseconds from now */
		{ .expires_ns = 300000000, .user_data = 300 },
		{ .expires_ns = 200000000, .user_data = 200 },
		{ .expires_ns = 100000000, .user_data = 100 },
	};
	struct pollfd wheel = { .fd = open("/dev/twheel", O_RDWR | O_NONBLOCK), .events = POLLIN };
	struct twheel_cancel cancel[1] = { 0 };
	struct twheel_event event;

	if (wheel.fd < 0)
		err(1, "/dev/twheel");
	/* It fails when no entry was attempted. Each entry has a result of its own. */
	if (ioctl(wheel.fd, TWHEEL_IOC_ARM, VECTOR(arm)) < 0)
		err(1, "arm");
	for (unsigned int i = 0; i < 3; i++)
		if (arm[i].result < 0)
			errx(1, "arm: entry %u: %s", i, strerror(-arm[i].result));
	cancel[0].id = arm[1].id;
	if (ioctl(wheel.fd, TWHEEL_IOC_CANCEL, VECTOR(cancel)) < 0)
		err(1, "cancel");
	if (cancel[0].result < 0)
		errx(1, "cancel: %s", strerror(-cancel[0].result));
	for (unsigned int ms = 100; ms <= 300; ms += 200) {
		while (read(wheel.fd, &event, sizeof(event)) < 0) {
			if (errno != EAGAIN || poll(&wheel, 1, -1) < 0)
				err(1, "read");
		}
		printf("%llu ms have passed, and %llu us\n", event.user_data,
		       (event.fired_ns - event.deadline_ns) / 1000);
		if (event.user_data != ms)
			errx(1, "it should have been %u", ms);
	}
	return 0;
}
