// SPDX-License-Identifier: GPL-2.0
/*
 * engine/look.h: from looking at a timeout to the commit
 */

/*
 * G8: pages were freed between look and commit, so the pointer from the look may not be
 * used. Here it is no timeout at all.
 */
static void what_was_found_before_pages_were_freed_is_looked_up_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_cancel cancels[1] = {};
	struct twheel_rearming rearming = {};
	struct twheel_arm how = { .expires_ns = 77 * TICK_NS };
	struct twheel_timeout *t = arm_like(test, 0);
	struct twheel_look look;
	unsigned int nr_ok = 0;

	enter(tw);
	how.id = id_of(t);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_ASSERT_PTR_EQ(test, rearming.look.timeout[0], t);
	tw->arena.nr_removed++;
	rearming.look.timeout[0] = NULL;
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok),
			1);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + 77 * TICK_NS);

	cancels[0].id = how.id;
	twheel_cancel_look(tw, cancels, &look, 1);
	KUNIT_ASSERT_PTR_EQ(test, look.timeout[0], t);
	tw->arena.nr_removed++;
	look.timeout[0] = NULL;
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, cancels, &look, 1, &nr_ok),
			1U);
	KUNIT_EXPECT_EQ(test, nr_ok, 2U);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 0);
}

static struct kunit_case look_cases[] = {
	KUNIT_CASE(what_was_found_before_pages_were_freed_is_looked_up_again),
	{}
};

ENGINE_SUITE(look);
