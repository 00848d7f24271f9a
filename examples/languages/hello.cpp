// SPDX-License-Identifier: 0BSD
// The smallest program in C++: the client of the device in libtwheel.
#include <cstdio>
#include <cstring>
#include <memory>

#include <twheel/device.h>

struct closer {
	void operator()(twheel_device *device) const { twheel_device_close(device); }
};

static int fail(const char *what, int result)
{
	std::fprintf(stderr, "%s: %s\n", what, std::strerror(-result));
	return 1;
}

int main()
{
	twheel_device *opened;
	int result = twheel_device_open(&opened, nullptr, 0, nullptr);
	std::unique_ptr<twheel_device, closer> wheel(opened);
	twheel_arm arm{};
	twheel_event event;

	if (result < 0)
		return fail("/dev/twheel", result);
	arm.user_data = 42;
	arm.expires_ns = 100000000;	// from now
	result = twheel_device_arm(wheel.get(), &arm);
	if (result < 0)
		return fail("arm", result);
	result = twheel_device_read(wheel.get(), &event, 1);
	if (result != 1)
		return fail("read", result);
	std::printf("timeout %llu has expired, %llu us after its deadline\n", event.user_data,
		    (event.fired_ns - event.deadline_ns) / 1000);
}
