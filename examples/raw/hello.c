// SPDX-License-Identifier: 0BSD
/* Arms three timeouts, cancels one, and prints the two that expire. */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <twheel/device.h>

int main(void)
{
	struct twheel_arm *arm[3];
	struct twheel_device *device;
	struct twheel_batch *batch;
	struct twheel_reader *reader;
	struct twheel_event event;
	int ret = twheel_device_open(&device, NULL);

	if (ret < 0)
		errx(1, "/dev/twheel: %s", strerror(-ret));
	if (twheel_batch_open(&batch, device, 3) < 0 || twheel_reader_open(&reader, device, 64) < 0)
		errx(1, "out of memory");
	for (unsigned int i = 0; i < 3; i++)	/* nanoseconds from now */
		arm[i] = twheel_batch_arm(batch, 100 * (i + 1), 100000000ULL * (i + 1));
	twheel_batch_submit(batch);		/* one call for all of them */
	for (unsigned int i = 0; i < 3; i++) {
		ret = twheel_batch_result(batch, i);
		if (ret < 0)
			errx(1, "arm: entry %u: %s", i, strerror(-ret));
	}
	ret = twheel_device_cancel(device, arm[1]->id);
	if (ret < 0)
		errx(1, "cancel: %s", strerror(-ret));
	for (unsigned int ms = 100; ms <= 300; ms += 200) {
		if (twheel_reader_next(reader, &event) != 1)
			errx(1, "no event");
		printf("%llu ms have passed, and %llu us\n", event.user_data,
		       (event.fired_ns - event.deadline_ns) / 1000);
		if (event.user_data != ms)
			errx(1, "it should have been %u", ms);
	}
	twheel_reader_close(reader);
	twheel_batch_close(batch);
	twheel_device_close(device);
	return 0;
}
