/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KUnit for kernels without it: the parts that the suites beside this folder use
 *
 * Distributions build their kernels without CONFIG_KUNIT.  With this header in place of the
 * kernel's, twheel_kunit.ko runs on them, too.  Names of KUnit mean the same: if an expectation
 * fails, its case fails; if an assertion fails, the case ends as well.  Each case runs in a kthread
 * of its own, and its exit function in another.  The results are in files of debugfs with the names
 * and the lines that KUnit gives them.
 *
 * kunit.c beside this folder runs the suites when the module is loaded.
 */
#ifndef _TWHEEL_SHIM_KUNIT_TEST_H
#define _TWHEEL_SHIM_KUNIT_TEST_H

#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>

#define KUNIT_PARAM_DESC_SIZE	128

struct completion;
struct kunit_case;
struct kunit_suite;

/**
 * struct kunit - a case that runs
 * @priv: the case's own, kept from its init function to its exit function
 * @param_value: the parameter, if the case has any
 * @suite: the suite that it belongs to
 * @running: the case itself
 * @done: when its thread has ended
 * @nr_failures: expectations and assertions that did not hold
 * @skipped: why the case cannot run here; NULL if it can
 * @memory: what kunit_kzalloc() gave out
 */
struct kunit {
	void *priv;
	const void *param_value;

	const struct kunit_suite *suite;
	const struct kunit_case *running;
	struct completion *done;
	unsigned int nr_failures;
	const char *skipped;
	struct list_head memory;
};

/**
 * struct kunit_case - a function that tests one thing
 * @run_case: the function
 * @name: its name
 * @generate_params: goes from one parameter to the next, and describes it
 */
struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

/**
 * struct kunit_suite - cases that belong together
 * @name: the suite's name
 * @suite_init: called once before the cases
 * @suite_exit: called once after them
 * @init: called before each case, in its kthread
 * @exit: called after each case, however that ended
 * @test_cases: ends with an empty one
 */
struct kunit_suite {
	const char *name;
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(function)						\
	{ .run_case = function, .name = #function }
#define KUNIT_CASE_PARAM(function, params)				\
	{ .run_case = function, .name = #function, .generate_params = params }

/* Defines name_gen_params(), which goes through an array. */
#define KUNIT_ARRAY_PARAM(name, array, describe)			\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	const typeof((array)[0]) * const first = (array);		\
	const size_t nr = prev ? (typeof(first))prev - first + 1 : 0;	\
									\
	if (nr >= sizeof(array) / sizeof(*first))			\
		return NULL;						\
	describe(first + nr, desc);					\
	return first + nr;						\
}									\
static_assert(true)

/* The lists of the two files.  For each file, Kbuild defines the name of its own list. */
extern struct kunit_suite * const wheel_suites[];
extern struct kunit_suite * const engine_suites[];

#define kunit_test_suites(...)						\
	struct kunit_suite * const KUNIT_SUITES[] = { __VA_ARGS__, NULL }
#define kunit_test_suite(suite)	kunit_test_suites(&(suite))

__printf(2, 3)
void kunit_info(struct kunit *test, const char *fmt, ...);

void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp);
void kunit_kfree(struct kunit *test, const void *memory);

static inline void *kunit_kcalloc(struct kunit *test, size_t nr, size_t size, gfp_t gfp)
{
	return kunit_kzalloc(test, array_size(nr, size), gfp);
}

/* Report a condition that does not hold; the format is of the case's own message. */
__printf(4, 5)
void kunit_fail(struct kunit *test, const char *where, const char *condition,
		const char *fmt, ...);

/* End the case.  It is inline since objtool knows only the kernel's function. */
static __always_inline void __noreturn kunit_abort(struct kunit *test)
{
	kthread_complete_and_exit(test->done, 0);
}

/* If a case cannot run here, end it. */
static __always_inline void __noreturn kunit_skip(struct kunit *test, const char *reason)
{
	test->skipped = reason;
	kunit_abort(test);
}

#define KUNIT_WHERE	__FILE__ ":" __stringify(__LINE__)

#define KUNIT_NO_ABORT(test)	((void)(test))

/* Values of any type are shown as a number of 64 bits. */
#define KUNIT_COMPARE(test, left, op, right, then, fmt, ...)		\
do {									\
	const typeof(left) __left = (left);				\
	const typeof(right) __right = (right);				\
	struct kunit *__test = (test);					\
									\
	if (likely(__left op __right))					\
		break;							\
	kunit_fail(__test, KUNIT_WHERE, #left " " #op " " #right,	\
		   "%lld and %lld " fmt, (long long)__left,		\
		   (long long)__right, ##__VA_ARGS__);			\
	then(__test);							\
} while (0)

#define KUNIT_HOLDS(test, condition, is, then)				\
do {									\
	const bool __holds = (condition);				\
	struct kunit *__test = (test);					\
									\
	if (likely(__holds == (is)))					\
		break;							\
	kunit_fail(__test, KUNIT_WHERE, #condition, "is not %s", #is);	\
	then(__test);							\
} while (0)

#define KUNIT_EXPECT_TRUE(test, condition)				\
	KUNIT_HOLDS(test, condition, true, KUNIT_NO_ABORT)
#define KUNIT_EXPECT_FALSE(test, condition)				\
	KUNIT_HOLDS(test, condition, false, KUNIT_NO_ABORT)
#define KUNIT_EXPECT_NULL(test, pointer)				\
	KUNIT_HOLDS(test, (pointer) == NULL, true, KUNIT_NO_ABORT)
#define KUNIT_EXPECT_NOT_NULL(test, pointer)				\
	KUNIT_HOLDS(test, (pointer) == NULL, false, KUNIT_NO_ABORT)
#define KUNIT_ASSERT_TRUE(test, condition)				\
	KUNIT_HOLDS(test, condition, true, kunit_abort)
#define KUNIT_ASSERT_FALSE(test, condition)				\
	KUNIT_HOLDS(test, condition, false, kunit_abort)
#define KUNIT_ASSERT_NULL(test, pointer)				\
	KUNIT_HOLDS(test, (pointer) == NULL, true, kunit_abort)
#define KUNIT_ASSERT_NOT_NULL(test, pointer)				\
	KUNIT_HOLDS(test, (pointer) == NULL, false, kunit_abort)
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pointer)			\
	KUNIT_HOLDS(test, IS_ERR_OR_NULL(pointer), false, kunit_abort)

#define KUNIT_EXPECT(test, left, op, right)				\
	KUNIT_COMPARE(test, left, op, right, KUNIT_NO_ABORT, "")
#define KUNIT_ASSERT(test, left, op, right)				\
	KUNIT_COMPARE(test, left, op, right, kunit_abort, "")

#define KUNIT_EXPECT_EQ(test, left, right)	KUNIT_EXPECT(test, left, ==, right)
#define KUNIT_EXPECT_NE(test, left, right)	KUNIT_EXPECT(test, left, !=, right)
#define KUNIT_EXPECT_LT(test, left, right)	KUNIT_EXPECT(test, left, <, right)
#define KUNIT_EXPECT_LE(test, left, right)	KUNIT_EXPECT(test, left, <=, right)
#define KUNIT_EXPECT_GT(test, left, right)	KUNIT_EXPECT(test, left, >, right)
#define KUNIT_EXPECT_GE(test, left, right)	KUNIT_EXPECT(test, left, >=, right)
#define KUNIT_EXPECT_PTR_EQ			KUNIT_EXPECT_EQ
#define KUNIT_EXPECT_PTR_NE			KUNIT_EXPECT_NE
#define KUNIT_ASSERT_EQ(test, left, right)	KUNIT_ASSERT(test, left, ==, right)
#define KUNIT_ASSERT_NE(test, left, right)	KUNIT_ASSERT(test, left, !=, right)
#define KUNIT_ASSERT_LT(test, left, right)	KUNIT_ASSERT(test, left, <, right)
#define KUNIT_ASSERT_LE(test, left, right)	KUNIT_ASSERT(test, left, <=, right)
#define KUNIT_ASSERT_GT(test, left, right)	KUNIT_ASSERT(test, left, >, right)
#define KUNIT_ASSERT_GE(test, left, right)	KUNIT_ASSERT(test, left, >=, right)
#define KUNIT_ASSERT_PTR_EQ			KUNIT_ASSERT_EQ

#define KUNIT_EXPECT_EQ_MSG(test, left, right, fmt, ...)		\
	KUNIT_COMPARE(test, left, ==, right, KUNIT_NO_ABORT, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(test, left, right, fmt, ...)		\
	KUNIT_COMPARE(test, left, <=, right, KUNIT_NO_ABORT, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_EQ_MSG(test, left, right, fmt, ...)		\
	KUNIT_COMPARE(test, left, ==, right, kunit_abort, fmt, ##__VA_ARGS__)

#endif /* _TWHEEL_SHIM_KUNIT_TEST_H */
