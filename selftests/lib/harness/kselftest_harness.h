/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This takes the place of the kernel's harness, which is missing if the library is built alone: it
 * has the parts that libtwheel's tests need, with the same meaning.  In the virtual machine the
 * same tests run with the kernel's.  Each test runs in a process of its own, which is ended if it
 * takes too long.  If an ASSERT fails, the test ends.  If the setup was done, the teardown is done,
 * too.
 */
#ifndef LIB_KSELFTEST_HARNESS_H
#define LIB_KSELFTEST_HARNESS_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* The exit status of a test's process. */
enum { KSFT_PASS, KSFT_FAIL, KSFT_SKIP = 4 };

struct __variant_metadata {
	const char *name;
	const void *data;
	struct __variant_metadata *next;
};

struct __fixture_metadata {
	const char *name;
	struct __variant_metadata *variants;
};

struct __test_metadata {
	const char *name;
	struct __fixture_metadata *fixture;
	void (*run)(struct __test_metadata *_metadata, const void *variant);
	unsigned int limit_s;
	struct __test_metadata *next;

	/* The process of the test has these. */
	int exit_code;
	bool trigger;		/* the code behind an EXPECT runs */
	bool aborted;		/* an ASSERT failed */
	bool setup_completed;
	char *reason;		/* why it was skipped; shared with the parent */
	jmp_buf env;
};

#define TH_REASON_SIZE	256

static struct __fixture_metadata _fixture_global __attribute__((unused)) = { .name = "global" };
static struct __test_metadata *__tests, **__last_test = &__tests;
static pid_t __running;

static inline void __register_test(struct __test_metadata *t)
{
	*__last_test = t;
	__last_test = &t->next;
}

static inline void __register_variant(struct __fixture_metadata *f, struct __variant_metadata *v)
{
	struct __variant_metadata **last = &f->variants;

	while (*last)
		last = &(*last)->next;
	*last = v;
}

static inline bool __bail(bool assert, struct __test_metadata *t)
{
	if (assert) {
		t->aborted = true;
		longjmp(t->env, 1);
	}
	return false;
}

/* ---- the macros of tests --------------------------------------------------------- */

#define TH_LOG(format, ...) \
	printf("# %s:%d:%s:" format "\n", __FILE__, __LINE__, _metadata->name, ##__VA_ARGS__)

#define SKIP(statement, format, ...) do {						\
	snprintf(_metadata->reason, TH_REASON_SIZE, format, ##__VA_ARGS__);		\
	_metadata->exit_code = KSFT_SKIP;						\
	_metadata->trigger = false;							\
	statement;									\
} while (0)

#define FIXTURE_DATA(fixture)	struct _data_##fixture

/* The members follow. */
#define FIXTURE(fixture)								\
	static struct __fixture_metadata _fixture_##fixture = { .name = #fixture };	\
	struct _variant_##fixture;							\
	struct _data_##fixture

#define FIXTURE_VARIANT(fixture)	struct _variant_##fixture

/* The initializer follows. */
#define FIXTURE_VARIANT_ADD(fixture, variant)						\
	static const struct _variant_##fixture _data_##fixture##_##variant;		\
	static struct __variant_metadata _variant_##fixture##_##variant = {		\
		.name = #variant, .data = &_data_##fixture##_##variant,			\
	};										\
	static void __attribute__((constructor)) _add_##fixture##_##variant(void)	\
	{										\
		__register_variant(&_fixture_##fixture, &_variant_##fixture##_##variant); \
	}										\
	static const struct _variant_##fixture _data_##fixture##_##variant =

#define __FIXTURE_FUNCTION(fixture, what)						\
	static void _##what##_##fixture(						\
		struct __test_metadata *_metadata __attribute__((unused)),		\
		struct _data_##fixture *self __attribute__((unused)),			\
		const struct _variant_##fixture *variant __attribute__((unused)))

#define FIXTURE_SETUP(fixture)		__FIXTURE_FUNCTION(fixture, setup)
#define FIXTURE_TEARDOWN(fixture)	__FIXTURE_FUNCTION(fixture, teardown)

#define __ADD_TEST(fixture_name, test, limit)						\
	static struct __test_metadata _test_##fixture_name##_##test = {			\
		.name = #test, .fixture = &_fixture_##fixture_name,			\
		.run = _run_##fixture_name##_##test, .limit_s = (limit),		\
	};										\
	static void __attribute__((constructor)) _add_test_##fixture_name##_##test(void) \
	{										\
		__register_test(&_test_##fixture_name##_##test);			\
	}

#define TEST_F_TIMEOUT(fixture, test, limit)						\
	static void fixture##_##test(struct __test_metadata *, struct _data_##fixture *, \
				     const struct _variant_##fixture *);		\
	static void _run_##fixture##_##test(struct __test_metadata *_metadata,		\
					    const void *variant)			\
	{										\
		static struct _data_##fixture self;					\
											\
		if (!setjmp(_metadata->env)) {						\
			_setup_##fixture(_metadata, &self, variant);			\
			if (_metadata->exit_code)					\
				return;							\
			_metadata->setup_completed = true;				\
			fixture##_##test(_metadata, &self, variant);			\
		}									\
		if (_metadata->setup_completed && !setjmp(_metadata->env))		\
			_teardown_##fixture(_metadata, &self, variant);			\
	}										\
	__ADD_TEST(fixture, test, limit)						\
	static void fixture##_##test(							\
		struct __test_metadata *_metadata __attribute__((unused)),		\
		struct _data_##fixture *self __attribute__((unused)),			\
		const struct _variant_##fixture *variant __attribute__((unused)))

#define TEST_F(fixture, test)	TEST_F_TIMEOUT(fixture, test, 30)

#define TEST(test)									\
	static void test(struct __test_metadata *);					\
	static void _run_global_##test(struct __test_metadata *_metadata, const void *variant) \
	{										\
		(void)variant;								\
		if (!setjmp(_metadata->env))						\
			test(_metadata);						\
	}										\
	__ADD_TEST(global, test, 30)							\
	static void test(struct __test_metadata *_metadata __attribute__((unused)))

/* If the comparison fails, the code that follows is run. */
#define __HANDLER(assert) \
	for (; _metadata->trigger; _metadata->trigger = __bail(assert, _metadata))

#define __FAILED(format, ...) do {							\
	TH_LOG("Expected " format, ##__VA_ARGS__);					\
	_metadata->exit_code = KSFT_FAIL;						\
	_metadata->trigger = true;							\
} while (0)

#define __COMPARE(a, op, b, assert) do {						\
	__typeof__(a) __a = (a);							\
	__typeof__(b) __b = (b);							\
											\
	if (!(__a op __b))								\
		__FAILED("%s (%jd) %s %s (%jd)", #a, (intmax_t)__a, #op, #b, (intmax_t)__b); \
} while (0); __HANDLER(assert)

#define __COMPARE_TEXT(a, op, b, assert) do {						\
	const char *__a = (a), *__b = (b);						\
											\
	if (!(strcmp(__a, __b) op 0))							\
		__FAILED("'%s' %s '%s'", __a, #op, __b);				\
} while (0); __HANDLER(assert)

#define EXPECT_EQ(a, b)		__COMPARE(a, ==, b, false)
#define EXPECT_NE(a, b)		__COMPARE(a, !=, b, false)
#define EXPECT_LT(a, b)		__COMPARE(a, <, b, false)
#define EXPECT_LE(a, b)		__COMPARE(a, <=, b, false)
#define EXPECT_GT(a, b)		__COMPARE(a, >, b, false)
#define EXPECT_GE(a, b)		__COMPARE(a, >=, b, false)
#define EXPECT_TRUE(a)		__COMPARE(0, !=, a, false)
#define EXPECT_FALSE(a)		__COMPARE(0, ==, a, false)
#define EXPECT_STREQ(a, b)	__COMPARE_TEXT(a, ==, b, false)
#define ASSERT_EQ(a, b)		__COMPARE(a, ==, b, true)
#define ASSERT_NE(a, b)		__COMPARE(a, !=, b, true)
#define ASSERT_LT(a, b)		__COMPARE(a, <, b, true)
#define ASSERT_LE(a, b)		__COMPARE(a, <=, b, true)
#define ASSERT_GT(a, b)		__COMPARE(a, >, b, true)
#define ASSERT_GE(a, b)		__COMPARE(a, >=, b, true)
#define ASSERT_TRUE(a)		__COMPARE(0, !=, a, true)
#define ASSERT_FALSE(a)		__COMPARE(0, ==, a, true)

/* ---- running them ---------------------------------------------------------------- */

static void __too_long(int signal)
{
	(void)signal;
	kill(-__running, SIGKILL);
}

/* Return the exit status of the test, or minus the signal that killed it. */
static int __run_process(struct __test_metadata *t, const void *variant)
{
	int status;

	fflush(NULL);
	__running = fork();
	if (__running < 0)
		return KSFT_FAIL;
	if (!__running) {
		setpgid(0, 0);
		t->run(t, variant);
		fflush(NULL);
		_exit(t->exit_code);
	}
	setpgid(__running, __running);
	alarm(t->limit_s);
	while (waitpid(__running, &status, 0) < 0 && errno == EINTR)
		;
	alarm(0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool __run_test(struct __test_metadata *t, const struct __variant_metadata *v, int nr)
{
	int status;

	t->reason[0] = '\0';
	status = __run_process(t, v ? v->data : NULL);
	if (status < 0)
		printf("# %s was ended by signal %d\n", t->name, -status);
	printf("%s %d %s%s%s.%s", status == KSFT_PASS || status == KSFT_SKIP ? "ok" : "not ok", nr,
	       t->fixture->name, v ? "." : "", v ? v->name : "", t->name);
	printf(status == KSFT_SKIP ? " # SKIP %s\n" : "%s\n", t->reason);
	return status == KSFT_PASS || status == KSFT_SKIP;
}

static inline int __run_tests(void)
{
	char *reason = mmap(NULL, TH_REASON_SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct sigaction action = { .sa_handler = __too_long };
	const struct __variant_metadata *v;
	struct __test_metadata *t;
	bool passed = true;
	int nr = 0;

	if (reason == MAP_FAILED || sigaction(SIGALRM, &action, NULL))
		return KSFT_FAIL;
	printf("TAP version 13\n");
	for (t = __tests; t; t = t->next) {
		t->reason = reason;
		v = t->fixture->variants;
		do {
			passed &= __run_test(t, v, ++nr);
			v = v ? v->next : NULL;
		} while (v);
	}
	printf("1..%d\n", nr);
	return passed ? KSFT_PASS : KSFT_FAIL;
}

#define TEST_HARNESS_MAIN	int main(void) { return __run_tests(); }

#endif /* LIB_KSELFTEST_HARNESS_H */
