/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ../twheel_test.h includes this in place of the kernel's harness, which forks for each test, gives
 * it seconds, and can be included by only one file of a program.
 */
#ifndef SOAK_KSELFTEST_HARNESS_H
#define SOAK_KSELFTEST_HARNESS_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The header disables a warning that only gcc has. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#endif

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

struct __test_metadata {
	bool aborted;
};

#define TH_LOG(format, ...)	printf("# " format "\n", ##__VA_ARGS__)

/* If the condition does not hold, the message that follows is printed once. */
#define EXPECT_TRUE(a)		for (bool __bad = ((void)_metadata, !(a)); __bad; __bad = false)
#define EXPECT_EQ(a, b)		EXPECT_TRUE((a) == (b))
#define EXPECT_LE(a, b)		EXPECT_TRUE((a) <= (b))
#define ASSERT_EQ(a, b)		EXPECT_TRUE((a) == (b))

#endif /* SOAK_KSELFTEST_HARNESS_H */
