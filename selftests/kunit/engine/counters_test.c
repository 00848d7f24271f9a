// SPDX-License-Identifier: GPL-2.0
/*
 * engine/account.c: the counters of the module
 *
 * Whether each of them is right is tested with the things that they count.
 */

/* A thread may end on another processor a timeout that began on this one. */
static void a_counter_is_the_sum_of_all_processors(struct kunit *test)
{
	u64 sum = twheel_counter(COUNTER_LATE);
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		per_cpu(twheel_counters, cpu)[COUNTER_LATE] += 1000 + cpu;
		sum += 1000 + cpu;
		KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_LATE), sum);
	}
	for_each_possible_cpu(cpu)
		per_cpu(twheel_counters, cpu)[COUNTER_LATE] -= 1000 + cpu;
}

/*
 * A timeout may end on one processor before its counter is read, and have begun on another one
 * whose counter was read already.
 */
static void a_change_while_a_level_is_read_does_not_wrap_it(struct kunit *test)
{
	s64 open = twheel_counter(COUNTER_WHEELS);

	counter_add(COUNTER_WHEELS, -(u64)open - 1);
	KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_WHEELS), 0ULL);
	counter_add(COUNTER_WHEELS, open + 1);
	KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_WHEELS), (u64)open);
}

static struct kunit_case counters_cases[] = {
	KUNIT_CASE(a_counter_is_the_sum_of_all_processors),
	KUNIT_CASE(a_change_while_a_level_is_read_does_not_wrap_it),
	{}
};

ENGINE_SUITE(counters);
