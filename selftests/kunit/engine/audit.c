// SPDX-License-Identifier: GPL-2.0
/* The counts that must agree in a wheel at rest, and those that a step has changed */

enum tally {
	LIVE, PENDING, UNREAD, PLACES, ARMED, CANCELLED, REVOKED, COMPLETED, DRAINED, DELIVERED,
	EXPIRATIONS, REARMED, NR_TALLIES,
};

static const char * const tally_name[] = {
	"live", "pending", "unread", "places taken", "armed", "cancelled", "revoked",
	"completed", "drained", "delivered", "expirations", "rearmed",
};

static_assert(ARRAY_SIZE(tally_name) == NR_TALLIES);

static void tally_take(struct tw_ctx *tw, s64 tally[NR_TALLIES])
{
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };

	twheel_get_info(tw, &info);
	tally[LIVE] = info.live;
	tally[PENDING] = info.pending;
	tally[UNREAD] = info.unread;
	tally[PLACES] = tw->places.nr_taken;
	tally[ARMED] = info.armed;
	tally[CANCELLED] = info.cancelled;
	tally[REVOKED] = info.revoked;
	tally[COMPLETED] = info.completed;
	tally[DRAINED] = info.drained;
	tally[DELIVERED] = info.delivered;
	tally[EXPIRATIONS] = info.expirations;
	tally[REARMED] = info.rearmed;
}

static const s8 nothing[NR_TALLIES];

/* Expect that the counts have changed since @before by @delta and nothing else. */
static void expect_delta(struct kunit *test, const s64 before[NR_TALLIES],
			 const s8 delta[NR_TALLIES])
{
	s64 after[NR_TALLIES];
	int i;

	tally_take(test->priv, after);
	for (i = 0; i < NR_TALLIES; i++)
		KUNIT_EXPECT_EQ_MSG(test, after[i] - before[i], (s64)delta[i], "%s",
				    tally_name[i]);
}

/**
 * struct census - the contents of a wheel's pages
 * @pending: timeouts that pend
 * @unread: timeouts with an event
 * @retired: places whose generations are used up
 * @pages: pages
 * @partly: pages of which some places are free and some are not
 * @unused: pages of which all places are free
 */
struct census {
	u32 pending;
	u32 unread;
	u32 retired;
	u32 pages;
	u32 partly;
	u32 unused;
};

/* Count a page, and expect that a place has its bit if it is free and can be used again. */
static void census_count(struct kunit *test, struct census *census, struct twheel_page *page)
{
	u32 i, nr_live = 0, nr_retired = 0;
	const struct twheel_timeout *t;
	bool stays = false;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		t = &page->timeout[i];
		stays |= timeout_gen(t) > S32_MAX;
		census->pending += timeout_is_pending(t);
		census->unread += timeout_is_unread(t);
		nr_live += timeout_is_live(t);
		nr_retired += !timeout_is_live(t) && !timeout_gen(t);
		KUNIT_ASSERT_EQ(test, timeout_index(t), page->first_index + i);
		KUNIT_ASSERT_EQ(test, test_bit(i, page->free),
				!timeout_is_live(t) && timeout_gen(t));
	}
	/*
	 * If its places have few generations left, a page may count one more as used, so that it
	 * stays.
	 */
	stays &= page->nr_used == nr_live + nr_retired + 1;
	KUNIT_EXPECT_EQ(test, page->nr_used - stays, nr_live + nr_retired);
	census->retired += nr_retired;
	census->pages++;
	census->unused += !page->nr_used;
	census->partly += page->nr_used && page_has_free(page);
}

static struct census census_take(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct census census = {};
	struct twheel_page *page;
	u32 nr;

	for (nr = 0; nr < tw->places.pages.nr; nr++) {
		page = page_of_nr(tw, nr);
		if (page)
			census_count(test, &census, page);
	}
	return census;
}

/* Follow a list by both links, and return its length. */
static u32 audit_list(struct kunit *test, struct twheel_link **head,
		      const struct twheel_link *end, u64 state)
{
	struct twheel_link *link, **pprev = head;
	u32 nr = 0;

	for (link = *head; link != end; link = link->next) {
		KUNIT_ASSERT_PTR_EQ(test, link->pprev, pprev);
		KUNIT_ASSERT_EQ(test, state_of(link_timeout(link)), state);
		KUNIT_ASSERT_LE(test, ++nr, 10 * MAX_PENDING);
		pprev = &link->next;
	}
	return nr;
}

/*
 * Expect that all timeouts of a list are due when it comes up, or later, by the known deadline: if
 * a REARM sets a time from then on, it leaves them where they are.
 */
static void audit_due(struct kunit *test, struct twheel_link *link, u64 comes_ns)
{
	struct tw_ctx *tw = test->priv;
	unsigned int nr_late = 0;

	for (; link != &tw->wheel.end; link = link->next) {
		struct twheel_timeout *t = link_timeout(link);

		nr_late += timeout_due_by_ns(tw, t, timeout_known_ns(t)) < comes_ns;
	}
	KUNIT_EXPECT_EQ(test, nr_late, 0U);
}

/* Expect the members of a level to agree with its slots; return how many entries it has. */
static u32 audit_level(struct kunit *test, struct twheel_wheel *w, u32 nr)
{
	struct twheel_level *level = &w->level[nr];
	u32 i, nr_in_slot, nr_entries = 0;
	u64 at = (w->base_ns + 1) >> level->shift, comes_ns;
	bool used = false;

	for (i = 0; i <= level->mask; i++) {
		KUNIT_ASSERT_EQ(test, !!level->slot[i], !!test_bit(i, level->occupied));
		if (!level->slot[i])
			continue;
		used = true;
		nr_in_slot = audit_list(test, &level->slot[i], &w->end, STATE_PENDING);
		nr_entries += nr_in_slot;
		comes_ns = max((at + ((i - at) & level->mask)) << level->shift, w->base_ns + 1);
		KUNIT_EXPECT_LE(test, level->begin_ns, comes_ns);
		audit_due(test, level->slot[i], comes_ns);
	}
	if (used) {
		KUNIT_EXPECT_TRUE(test, w->used & BIT(nr));
		KUNIT_EXPECT_NE(test, level->begin_ns, U64_MAX);
	}
	return nr_entries;
}

static u32 audit_wheel(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_wheel *w = &tw->wheel;
	u32 i, nr;

	nr = audit_list(test, &w->coming, &w->end, STATE_PENDING) +
	     audit_list(test, &w->never, &w->end, STATE_PENDING);
	audit_due(test, w->never, NEVER_NS);
	for (i = 0; i < w->nr_levels; i++)
		nr += audit_level(test, w, i);
	return nr;
}

/* Expect a table to have the memory for its number of pages. */
static void audit_table(struct kunit *test, const struct twheel_pages *pages)
{
	struct twheel_array *table = rcu_dereference_raw(pages->table);

	if (table)
		KUNIT_EXPECT_LE(test, struct_size(table, page, pages->nr), table->size);
}

static u32 audit_pages(struct kunit *test, struct hlist_head *head, bool used)
{
	struct twheel_page *page;
	u32 nr = 0;

	hlist_for_each_entry(page, head, node) {
		KUNIT_ASSERT_EQ(test, !!page->nr_used, used);
		KUNIT_ASSERT_TRUE(test, page_has_free(page));
		nr++;
	}
	return nr;
}

/*
 * Expect of a keyed wheel that each place has a node, that the key of each live timeout leads to
 * it, and that all nodes in the index are those of places.
 */
static void audit_keys(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 nr, i, nr_nodes = 0;

	rcu_read_lock();
	for (nr = 0; nr < tw->keys.pages.nr; nr++) {
		struct twheel_key_page *page = pages_at(&tw->keys.pages, nr);

		for (i = 0; page && i < KEYS_PER_PAGE; i++) {
			struct twheel_key *node = &page->key[i];

			if (!key_is_used(node))
				continue;
			nr_nodes++;
			KUNIT_EXPECT_NOT_NULL(test, place_at(&tw->places, page->first_index + i));
		}
	}
	for (i = 0; i < tw->places.pages.nr * PLACES_PER_PAGE; i++) {
		struct twheel_timeout *t = place_at(&tw->places, i);

		if (t)
			KUNIT_EXPECT_NOT_NULL(test, pages_at(&tw->keys.pages, i / KEYS_PER_PAGE));
		if (t && timeout_is_live(t))
			KUNIT_EXPECT_PTR_EQ(test, twheel_key_find(tw, t->user_data), t);
	}
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, (u32)atomic_read(&tw->keys.index.nelems), nr_nodes);
}

/* Check everything that must agree while no call and no pass is under way. */
static void audit(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_places *places = &tw->places;
	struct census census;
	s64 tally[NR_TALLIES];

	if (!tw->control.started)
		return;
	census = census_take(test);
	tally_take(tw, tally);
	/* G3 exactly one outcome: each timeout that was armed is live, or has ended in one way. */
	KUNIT_EXPECT_EQ(test, tally[LIVE], (s64)census.pending + census.unread);
	KUNIT_EXPECT_EQ(test, tally[UNREAD], (s64)census.unread);
	/* G4 nothing lost: pending timeouts are in the wheel, and events are in the list. */
	KUNIT_EXPECT_EQ(test, audit_wheel(test), census.pending);
	KUNIT_EXPECT_EQ(test, audit_list(test, &tw->events.first, &tw->events.end, STATE_UNREAD),
			census.unread);
	KUNIT_EXPECT_TRUE(test, llist_empty(&tw->inbox));
	KUNIT_EXPECT_EQ(test, tw->events.nr_to_wake, 0U);
	KUNIT_EXPECT_EQ(test, places->nr_taken, census.pending + census.unread);
	/* The module counts them, too; the wheel of the case is the only one. */
	KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_TIMEOUTS), (u64)places->nr_taken);
	KUNIT_EXPECT_EQ(test, places->nr_pages, census.pages);
	KUNIT_EXPECT_EQ(test, places->nr_unused, census.unused);
	KUNIT_EXPECT_EQ(test, audit_pages(test, &places->unused, false), census.unused);
	KUNIT_EXPECT_EQ(test, audit_pages(test, &places->partly, true), census.partly);
	audit_table(test, &places->pages);
	audit_table(test, &tw->words.pages);
	audit_table(test, &tw->keys.pages);
	if (tw->keys.used) {
		twheel_lock(tw);
		audit_keys(test);
		twheel_unlock(tw);
	}
	/* No fault is served under the lock. */
	KUNIT_EXPECT_EQ(test, user_memory.nr_unserved, 0U);
}

static size_t table_bytes(const struct twheel_pages *pages)
{
	struct twheel_array *table = rcu_dereference_raw(pages->table);

	return table ? table->size : 0;
}

static int nr_key_pages(struct tw_ctx *tw)
{
	int nr = 0;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < tw->keys.pages.nr; i++)
		nr += !!pages_at(&tw->keys.pages, i);
	rcu_read_unlock();
	return nr;
}

/* Expect that the wheel was charged for exactly the memory that it has. */
static void expect_charged_for_all(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	size_t bytes = WHEEL_SIZE + PAGE_ALIGN(tw->slots_size) +
		       table_bytes(&tw->places.pages) + table_bytes(&tw->words.pages) +
		       (tw->words.hole ? PAGE_SIZE : 0);
	u32 nr;

	for (nr = 0; nr < tw->words.pages.nr; nr++)
		if (words_of_nr(tw, nr))
			bytes += PAGE_SIZE;
	for (nr = 0; nr < tw->places.pages.nr; nr++) {
		struct twheel_page *page = page_of_nr(tw, nr);
		struct twheel_page *beside = page_of_nr(tw, nr ^ 1);

		if (!page)
			continue;
		bytes += PAGE_SIZE;
		/* Of two pages that share one, the first is charged for it. */
		if (page->extra && !(nr & 1 && beside && beside->extra))
			bytes += PAGE_SIZE;
	}
	if (tw->keys.used) {
		struct rhashtable *index = &tw->keys.index;
		unsigned int nr_buckets, tries = 100;

		bytes += tw->keys.charged + table_bytes(&tw->keys.pages) +
			 nr_key_pages(tw) * PAGE_SIZE;
		/*
		 * The index shrinks in a work item, after its nodes have gone.  Newer kernels queue
		 * that from an interrupt, which may be a tick away.
		 */
		do {
			flush_work(&index->run_work);
			rcu_read_lock();
			nr_buckets = rcu_dereference(index->tbl)->size;
			rcu_read_unlock();
		} while (index_bytes(&index->p, nr_buckets) > tw->keys.charged && tries-- &&
			 !msleep_interruptible(10));
		KUNIT_EXPECT_LE(test, index_bytes(&index->p, nr_buckets), tw->keys.charged);
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), (long)bytes);
}
