// SPDX-License-Identifier: 0BSD
/* Arms three timeouts, cancels one, and prints the two that expire. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel_calls.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	struct twheel_arm arm[] = {	/* nanoseconds from now */
		{ .expires_ns = 300000000, .user_data = 300 },
		{ .expires_ns = 200000000, .user_data = 200 },
		{ .expires_ns = 100000000, .user_data = 100 },
	};
	struct pollfd wheel = { .fd = open("/dev/twheel", O_RDWR | O_NONBLOCK), .events = POLLIN };
	struct twheel_event event;
	int result;

	if (wheel.fd < 0)
		err(1, "/dev/twheel");
	for (unsigned int i = 0; i < 3; i++) {
		result = twheel_arm_one(wheel.fd, &arm[i]);
		if (result < 0)
			errx(1, "arm: entry %u: %s", i, strerror(-result));
	}
	result = twheel_cancel_one(wheel.fd, arm[1].id);
	if (result < 0)
		errx(1, "cancel: %s", strerror(-result));
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
