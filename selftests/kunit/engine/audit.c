// SPDX-License-Identifier: GPL-2.0
/*
 * Counting: what must agree in a wheel at rest, and what a step has changed
 */

enum tally {
	LIVE, PENDING, UNREAD, INBOX, ROOM, PLACES, RETIRED, ACCEPTED, CANCELLED,
	REVOKED, COMPLETED, DRAINED, DELIVERED, EXPIRATIONS, REARMED, NR_TALLIES,
};

static const char * const tally_name[] = {
	"live", "pending", "unread", "inbox", "room", "free places", "retired",
	"armed", "cancelled", "revoked", "completed", "drained", "delivered",
	"expirations", "rearmed",
};

static_assert(ARRAY_SIZE(tally_name) == NR_TALLIES);

static int llist_length(const struct llist_node *node)
{
	int nr = 0;

	for (; node; node = node->next)
		nr++;
	return nr;
}

static void tally_take(struct twheel *tw, s64 tally[NR_TALLIES])
{
	struct twheel_info info = {};

	twheel_get_info(tw, &info);
	tally[LIVE] = info.live;
	tally[PENDING] = info.pending;
	tally[UNREAD] = info.unread;
	tally[INBOX] = atomic_read(&tw->inbox.len);
	tally[ROOM] = atomic_long_read(&tw->room.used);
	tally[PLACES] = llist_length(tw->arena.free) + llist_length(tw->arena.freed.first);
	tally[RETIRED] = atomic_read(&tw->arena.nr_retired);
	tally[ACCEPTED] = info.armed;
	tally[CANCELLED] = info.cancelled;
	tally[REVOKED] = info.revoked;
	tally[COMPLETED] = info.completed;
	tally[DRAINED] = info.drained;
	tally[DELIVERED] = info.delivered;
	tally[EXPIRATIONS] = info.expirations;
	tally[REARMED] = info.rearmed;
}

static const s8 nothing[NR_TALLIES];

/* Expects that the counts have changed since @before by @delta and nothing else. */
static void expect_delta(struct kunit *test, const s64 before[NR_TALLIES],
			 const s8 delta[NR_TALLIES])
{
	s64 after[NR_TALLIES];
	int i;

	tally_take(test->priv, after);
	for (i = 0; i < NR_TALLIES; i++)
		KUNIT_EXPECT_EQ_MSG(test, after[i] - before[i], (s64)delta[i],
				    "%s", tally_name[i]);
}

/**
 * struct census - how many places of a wheel are in which state
 * @phase: how many are in each phase
 * @live: pending or to be read
 * @keeping: not in the wheel, but with room there
 * @retired: free, their generations used up
 */
struct census {
	int phase[STATE_PHASE + 1];
	int live;
	int keeping;
	int retired;
};

static void census_count(struct census *census, u64 state)
{
	enum twheel_phase phase = state_phase(state);

	census->phase[phase]++;
	census->live += phase == PHASE_QUEUED || phase == PHASE_ARMED ||
			phase == PHASE_UNREAD;
	census->keeping += phase == PHASE_UNREAD && state & STATE_PERIODIC &&
			   !(state & STATE_DRAINED);
	census->retired += phase == PHASE_FREE && !state_gen(state);
}

static struct census census_take(struct twheel *tw)
{
	struct census census = {};
	struct twheel_page *page;
	u32 nr, i;

	for (nr = 0; nr < tw->arena.places.nr; nr++) {
		page = look_at_page(tw, nr);
		for (i = 0; page && i < PLACES_PER_PAGE; i++)
			census_count(&census, timeout_state(&page->timeout[i]));
	}
	return census;
}

/* Follows the ready list both ways, and returns its length. */
static int audit_ready(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 link, prev = 0;
	int nr = 0;

	link = tw->events.first ? timeout_index(tw->events.first) + 1 : 0;
	for (; link; nr++) {
		struct twheel_timeout *t = look_at(tw, link - 1);

		KUNIT_ASSERT_NOT_NULL(test, t);
		KUNIT_ASSERT_TRUE(test, state_is_unread(timeout_state(t)));
		KUNIT_ASSERT_EQ(test, t->prev, prev);
		KUNIT_ASSERT_LT(test, nr, 100000);
		prev = link;
		link = t->next;
	}
	KUNIT_EXPECT_EQ(test, tw->events.last_link, prev);
	KUNIT_EXPECT_PTR_EQ(test, tw->events.last,
			    prev ? look_at(tw, prev - 1) : NULL);
	return nr;
}

/* Checks everything that must agree while no call and no pass is under way. */
static void audit(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct census census = census_take(tw);
	s64 tally[NR_TALLIES];
	int nr_ready = audit_ready(test);

	tally_take(tw, tally);
	KUNIT_EXPECT_EQ(test, tally[UNREAD], (s64)nr_ready);
	KUNIT_EXPECT_EQ(test, tally[UNREAD], (s64)census.phase[PHASE_UNREAD]);
	KUNIT_EXPECT_EQ(test, tally[LIVE], (s64)census.live);
	/* G3: whatever was armed lives, or has ended in one way. */
	KUNIT_EXPECT_EQ(test, tally[ACCEPTED],
			tally[LIVE] + tally[COMPLETED] + tally[CANCELLED] +
			tally[REVOKED] + tally[DRAINED]);
	KUNIT_EXPECT_EQ(test, tally[INBOX],
			(s64)llist_length(tw->inbox.list.first));
	KUNIT_EXPECT_EQ(test, tally[INBOX], (s64)census.phase[PHASE_QUEUED] +
			census.phase[PHASE_DEAD]);
	/* G4: each is of an entry in the wheel or on its way there, or promised. */
	KUNIT_EXPECT_EQ(test, tally[ROOM], (s64)tw->wheel.nr_entries +
			tally[INBOX] + census.keeping);
	KUNIT_EXPECT_LE(test, tally[ROOM], (s64)tw->room.provided);
	KUNIT_EXPECT_EQ(test, tally[RETIRED], (s64)census.retired);
	KUNIT_EXPECT_EQ(test, tally[PLACES], (s64)census.phase[PHASE_FREE] -
			census.retired);
	if (!tw->keys.used)
		return;
	/* Each that lives has a node in the index, and those that are dead may. */
	KUNIT_EXPECT_GE(test, atomic_read(&tw->keys.index.nelems), census.live);
	KUNIT_EXPECT_LE(test, atomic_read(&tw->keys.index.nelems),
			census.live + census.phase[PHASE_DEAD]);
}

static size_t table_bytes(const struct twheel_pages *pages)
{
	struct twheel_table *table = rcu_dereference_raw(pages->table);

	return table ? table->size : 0;
}

static int nr_key_pages(struct twheel *tw)
{
	int nr = 0;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < tw->keys.pages.nr; i++)
		nr += !!pages_at(&tw->keys.pages, i);
	rcu_read_unlock();
	return nr;
}

/* Expects that the wheel was charged for exactly the memory that it has. */
static void expect_charged_for_all(struct kunit *test)
{
	struct twheel *tw = test->priv;
	size_t slots = 0, bytes = WHEEL_SIZE + tw->room.nr_chunk_pages * PAGE_SIZE;
	u32 nr;

	for (nr = 0; nr < tw->wheel.nr_levels; nr++) {
		u32 nr_slots = tw->wheel.level[nr].mask + 1;

		slots += nr_slots * sizeof(void *) +
			 BITS_TO_LONGS(nr_slots) * sizeof(long);
	}
	bytes += PAGE_ALIGN(slots) + table_bytes(&tw->arena.places) +
		 table_bytes(&tw->words.pages) + (tw->words.hole ? PAGE_SIZE : 0);
	for (nr = 0; nr < tw->words.pages.nr; nr++)
		if (look_at_words(tw, nr))
			bytes += PAGE_SIZE;
	for (nr = 0; nr < tw->arena.places.nr; nr++) {
		struct twheel_page *page = look_at_page(tw, nr);
		struct twheel_page *beside = look_at_page(tw, nr ^ 1);

		if (!page)
			continue;
		bytes += PAGE_SIZE;
		/* Of two pages that share one, the first is charged for it. */
		if (page->periodic && !(nr & 1 && beside && beside->periodic))
			bytes += PAGE_SIZE;
	}
	if (tw->keys.used)
		bytes += FIRST_CHARGE + table_bytes(&tw->keys.pages) +
			 nr_key_pages(tw) * (PAGE_SIZE + INDEX_CHARGE);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), (long)bytes);
}
