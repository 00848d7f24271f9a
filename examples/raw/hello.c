// SPDX-License-Identifier: 0BSD
/* Arms three timeouts, cancels one, and prints the two that expire. */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <twheel/device.h>

int main(void)
{
	struct twheel_arm arms[3] = {0};
	struct twheel_device *device;
	struct twheel_event event;
	int ret = twheel_device_open(&device, NULL, 0, NULL);

	if (ret < 0)
		errx(1, "/dev/twheel: %s", strerror(-ret));
	for (unsigned int i = 0; i < 3; i++) {
		arms[i].user_data = 100 * (i + 1);
		arms[i].expires_ns = 100000000ULL * (i + 1);	/* from now */
	}
	twheel_device_arm_many(device, arms, 3);		/* one call for all of them */
	for (unsigned int i = 0; i < 3; i++)
		if (arms[i].result < 0)
			errx(1, "arm: entry %u: %s", i, strerror(-arms[i].result));
	ret = twheel_device_cancel(device, arms[1].id);
	if (ret < 0)
		errx(1, "cancel: %s", strerror(-ret));
	for (unsigned int ms = 100; ms <= 300; ms += 200) {
		if (twheel_device_read(device, &event, 1) != 1)
			errx(1, "no event");
		printf("%llu ms have passed, and %llu us\n", event.user_data,
		       (event.fired_ns - event.deadline_ns) / 1000);
		if (event.user_data != ms)
			errx(1, "it should have been %u", ms);
	}
	twheel_device_close(device);
	return 0;
}
