// SPDX-License-Identifier: 0BSD
/* The smallest program in C: the device by ioctl, with nothing but <linux/twheel.h>. */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/twheel.h>

int main(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = sizeof(struct twheel_event),
	};
	struct twheel_arm arm = { .user_data = 42, .expires_ns = 100000000 };
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = sizeof(arm),
		.nr = 1,
		.entries = (uintptr_t)&arm,
	};
	struct pollfd wheel = { .events = POLLIN };
	struct twheel_event event;

	wheel.fd = open("/dev/twheel", O_RDWR | O_CLOEXEC);
	if (wheel.fd < 0 || ioctl(wheel.fd, TWHEEL_IOC_SETUP, &setup))
		err(1, "/dev/twheel");
	if (ioctl(wheel.fd, TWHEEL_IOC_ARM, &vector) != 1)
		err(1, "arm");
	if (poll(&wheel, 1, -1) != 1 || read(wheel.fd, &event, sizeof(event)) != sizeof(event))
		err(1, "read");
	printf("timeout %llu has expired, %llu us after its deadline\n", event.user_data,
	       (event.fired_ns - event.deadline_ns) / 1000);
	return 0;
}
