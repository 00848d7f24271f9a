// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of today on a later kernel: the tests below run unchanged on a module in which each
 * structure of the ABI has grown at its end (tools/vm/lib/build.sh makes it). (Programs of a later
 * header on the module of today: device/twheel_sizes.c and device/twheel_event_size.c.)
 *
 * The program loads and unloads the module itself; TWHEEL_GROWN_KO names the file.
 */
#include "twheel_module.h"

/* How many bytes each structure has grown by, see build_grown(). */
#define TW_GROWN	16

/* This file has a main() for all of them. */
#undef TEST_HARNESS_MAIN
#define TEST_HARNESS_MAIN

#include "../device/twheel_abi.c"
#include "../device/twheel_event_size.c"
#include "../device/twheel_list.c"
#include "../device/twheel_query.c"
#include "../device/twheel_sizes.c"

/* If it were not larger, all of this would prove nothing. */
TEST(module_has_a_larger_info_than_this_program)
{
	struct {
		struct twheel_info info;
		unsigned char more[2 * TW_GROWN];
	} large = { .info.size = sizeof(large) };
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_ioctl(fd, TWHEEL_IOC_INFO, &large));
	EXPECT_EQ(sizeof(large.info) + TW_GROWN, large.info.size);
	close(fd);
}

int main(int argc, char **argv)
{
	int ret;

	setenv("TWHEEL_KO", getenv("TWHEEL_GROWN_KO") ?: "/lib/twheel_grown.ko", 1);
	ret = tw_load_and_wait("");
	if (ret) {
		printf("Bail out! %s does not load: %s\n", tw_module_path(), strerror(-ret));
		return 1;
	}
	ret = test_harness_run(argc, argv);
	tw_unload_soon();
	return ret;
}
