// SPDX-License-Identifier: GPL-2.0
/*
 * engine/pages.c: pages by number
 */

/* If a table grows, it replaces the smaller one, whose memory is given back. */
static void a_table_is_charged_for_once_however_often_it_grows(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_pages pages = { .mutex = &tw->places.mutex };
	long before = atomic_long_read(&tw->memory.charged);
	unsigned int i;

	mutex_lock(&tw->places.mutex);
	for (i = 0; i < 5 * PAGE_SIZE / sizeof(void *); i++) {
		KUNIT_EXPECT_EQ(test, twheel_pages_add(&pages, &tw->memory, NULL), 0);
		audit_table(test, &pages);
	}
	KUNIT_EXPECT_GE(test, table_bytes(&pages), i * sizeof(void *));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged) - before,
			(long)table_bytes(&pages));
	mutex_unlock(&tw->places.mutex);
	twheel_memory_uncharge(&tw->memory, table_bytes(&pages));
	twheel_pages_free(&pages);
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE(a_table_is_charged_for_once_however_often_it_grows),
	{}
};

ENGINE_SUITE(pages);
