// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer of libtwheel without a fuzzing engine: inputs from seeds.  So lib_fuzz.c is tested
 * even if nobody has fuzzed for a while.  TW_ROUNDS says how many inputs there are, TW_SEED which
 * ones.
 */
#include "twheel_lib_test.h"
#include "lib_fuzz.h"

#define LENGTH	1024

FIXTURE(inputs) {
};

FIXTURE_SETUP(inputs)
{
}

FIXTURE_TEARDOWN(inputs)
{
	EXPECT_NO_LEAK();
}

TEST_F_TIMEOUT(inputs, use_by_inputs_of_the_fuzzer_agrees_with_a_plain_array, 110)
{
	int i, round, rounds = tw_setting("TW_ROUNDS", 25);
	unsigned char data[LENGTH];
	__u64 seed;

	for (round = 0; round < rounds; round++) {
		seed = tw_setting("TW_SEED", 1) + round;
		TH_LOG("TW_SEED=%llu TW_ROUNDS=1", (unsigned long long)seed);
		seed *= 0x9e3779b97f4a7c15ULL;
		for (i = 0; i < LENGTH; i++)
			data[i] = tw_random(&seed) >> 8;
		ASSERT_EQ(0, LLVMFuzzerTestOneInput(data, sizeof(data)));
	}
}

TEST_HARNESS_MAIN
