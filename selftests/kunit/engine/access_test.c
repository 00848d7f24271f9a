// SPDX-License-Identifier: GPL-2.0
/*
 * engine/user_access.h: elements that are copied in
 *
 * The tests of the calls also test how results are copied out.
 */

/* The number of members of 64 bits in an element, and the most elements that are copied in. */
#define NR_MEMBERS	(sizeof(struct twheel_arm) / sizeof(u64))
#define NR_ELEMENTS	5
/* The number of members in the longest element of a user. */
#define MOST_MEMBERS	(NR_MEMBERS + 3)

/**
 * struct elements - elements in the memory of a user, and here
 * @user: there each member is another number, and none is 0
 * @here: U64_MAX if nothing was copied there
 */
struct elements {
	u64 user[NR_ELEMENTS * MOST_MEMBERS];
	u64 here[NR_ELEMENTS * NR_MEMBERS];
};

/* Copy in @nr elements of @stride members each. Return how many could be read. */
static unsigned int elements_copy_in(struct kunit *test, struct elements *elements, u32 stride,
				     unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(elements->user); i++)
		elements->user[i] = i + 1;
	for (i = 0; i < ARRAY_SIZE(elements->here); i++)
		elements->here[i] = U64_MAX;
	return access_copy_in(elements->here, sizeof(struct twheel_arm),
			      (u64 __user __force *)elements->user, stride * sizeof(u64), nr);
}

/*
 * Expect the first @nr to be here. If an element is shorter, the members that it leaves out are
 * zero.
 */
static void expect_elements(struct kunit *test, const struct elements *elements, u32 stride,
			    unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr * NR_MEMBERS; i++) {
		unsigned int member = i % NR_MEMBERS;

		KUNIT_ASSERT_EQ_MSG(test, elements->here[i], member < stride ?
				    elements->user[i / NR_MEMBERS * stride + member] : 0,
				    "member %u of element %zu, with %u of them", member,
				    i / NR_MEMBERS, stride);
	}
}

static void elements_of_any_length_are_copied_in(struct kunit *test)
{
	struct elements *elements = kunit_kzalloc(test, sizeof(*elements), GFP_KERNEL);
	unsigned int stride, nr, i;

	KUNIT_ASSERT_NOT_NULL(test, elements);
	for (stride = 1; stride <= MOST_MEMBERS; stride++) {
		for (nr = 1; nr <= NR_ELEMENTS; nr++) {
			KUNIT_ASSERT_EQ(test, elements_copy_in(test, elements, stride, nr), nr);
			expect_elements(test, elements, stride, nr);
			for (i = nr * NR_MEMBERS; i < ARRAY_SIZE(elements->here); i++)
				KUNIT_ASSERT_EQ(test, elements->here[i], U64_MAX);
		}
	}
}

/* If one element faults, the elements are copied one by one. */
static void elements_before_one_that_faults_are_copied_in(struct kunit *test)
{
	struct elements *elements = kunit_kzalloc(test, sizeof(*elements), GFP_KERNEL);
	unsigned int nr, got;

	KUNIT_ASSERT_NOT_NULL(test, elements);
	for (nr = 0; nr < NR_ELEMENTS; nr++) {
		faults_begin(nr);
		got = elements_copy_in(test, elements, NR_MEMBERS + 1, NR_ELEMENTS);
		KUNIT_EXPECT_TRUE(test, faults_end());
		KUNIT_ASSERT_EQ(test, got, nr);
		expect_elements(test, elements, NR_MEMBERS + 1, nr);
	}
}

static void two_can_be_read(void)
{
	user_memory.left = 2;
}

/* If another thread unmaps the memory behind, elements that can be read are copied one by one. */
static void a_batch_that_faults_as_a_whole_is_copied_up_to_the_fault(struct kunit *test)
{
	struct elements *elements = kunit_kzalloc(test, sizeof(*elements), GFP_KERNEL);
	unsigned int got;

	KUNIT_ASSERT_NOT_NULL(test, elements);
	faults_begin(0);
	user_memory.call_at = user_memory.nr + 1;
	user_memory.call = two_can_be_read;
	got = elements_copy_in(test, elements, NR_MEMBERS, NR_ELEMENTS);
	user_memory.call = NULL;
	KUNIT_EXPECT_TRUE(test, faults_end());
	KUNIT_ASSERT_EQ(test, got, 2U);
	expect_elements(test, elements, NR_MEMBERS, got);
}

static struct kunit_case access_cases[] = {
	KUNIT_CASE(elements_of_any_length_are_copied_in),
	KUNIT_CASE(elements_before_one_that_faults_are_copied_in),
	KUNIT_CASE(a_batch_that_faults_as_a_whole_is_copied_up_to_the_fault),
	{}
};

ENGINE_SUITE(access);
