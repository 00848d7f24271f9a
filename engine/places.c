// SPDX-License-Identifier: GPL-2.0
/*
 * The places of timeouts
 *
 * Each page has a bitmap of its free places.  ARM prefers pages that are partly used, so that
 * others stay unused and go back to the kernel after a burst: a work item removes them after
 * SHRINK_DELAY.
 *
 * G4 nothing lost: a timeout never needs anything but its place, so for want of memory only ARM
 * fails (and REARM, if it asks for the first period or slack in a page).
 */
#include <linux/jiffies.h>

#include "engine.h"
#include "lock.h"

/* Delay until unused pages are given back, jiffies. */
#define SHRINK_DELAY	HZ

/*
 * Between a stale id and the next one with the same TWHEEL_REFRESH_GEN_BITS lie at least this many
 * uses of the place.  A power of two.
 */
#define STALE_DISTANCE	65536U

/*
 * G8 stale ids are harmless: the generation in the word of a new place may be that of a stale id,
 * of a page that was removed.  If it would soon come round, have the place begin after it.  Users
 * may have stored any generation in the word, so no place leaves out more than STALE_DISTANCE
 * generations.
 */
static void page_pass_stale(struct twheel_words *words, struct twheel_page *page, u32 gen)
{
	u32 i, ahead;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		u64 *word = word_at(words, page->first_index + i);

		if (!word)
			continue;
		ahead = (READ_ONCE(*word) - gen) & TWHEEL_REFRESH_GEN_MASK;
		if (ahead < STALE_DISTANCE)
			page->timeout[i].word += (ahead + 1ULL) << GEN_SHIFT;
	}
}

static void page_fill(struct twheel_page *page, u32 first_index, u32 gen)
{
	u32 i;

	page->first_index = first_index;
	for (i = 0; i < PLACES_PER_PAGE; i++)
		page->timeout[i].word = (u64)gen << GEN_SHIFT | (first_index + i);
	bitmap_set(page->free, 0, PLACES_PER_PAGE);
}

/* Return 0 or the error of twheel_pages_add(). */
static int page_add(struct tw_ctx *tw, struct twheel_page *page, u32 nr)
	__must_hold(&tw->places.mutex)
{
	struct twheel_places *places = &tw->places;
	int err = 0;

	if (nr < places->pages.nr)
		twheel_pages_set(&places->pages, nr, page);
	else
		err = twheel_pages_add(&places->pages, &tw->memory, page);
	if (err)
		return err;
	twheel_syncpoint(SYNC_PAGE_ADDED);
	spin_lock(&places->lock);
	hlist_add_head(&page->node, &places->unused);
	places->nr_unused++;
	places->nr_pages++;
	spin_unlock(&places->lock);
	return 0;
}

/* Return 0, -ENOMEM, or -ENOSPC at the limit of memory or if indices are used up. */
static int places_grow(struct tw_ctx *tw) __must_hold(&tw->places.mutex)
{
	struct twheel_places *places = &tw->places;
	struct twheel_page *page;
	u32 nr, first_index;
	int err = 0;

	while (pages_at(&places->pages, places->first_gap))
		places->first_gap++;
	nr = places->first_gap;
	if (nr >= NR_INDICES / PLACES_PER_PAGE)
		return -ENOSPC;
	first_index = nr * PLACES_PER_PAGE;
	if (tw->words.made)
		err = twheel_words_provide(tw, first_index);
	if (!err && tw->keys.used)
		err = twheel_keys_provide(tw, nr);
	if (err)
		return err;
	err = twheel_page_get(&tw->memory, (void **)&page);
	if (err)
		goto remove_keys;
	page_fill(page, first_index, places->first_gen);
	if (tw->words.pages.nr)
		page_pass_stale(&tw->words, page, places->first_gen);
	err = page_add(tw, page, nr);
	if (!err)
		return 0;
	twheel_page_put(&tw->memory, page);
remove_keys:
	if (tw->keys.used)
		twheel_keys_remove(tw, nr);
	return err;
}

/*
 * Take up to *@nr places of a page, TWHEEL_BATCH at most, and put them at the end of a chain,
 * *@tail; reduce *@nr by their number.  Returns the new end of the chain.
 *
 * The places are found without reading them, so their cache misses overlap.
 */
static __always_inline struct twheel_link **page_take(struct twheel_places *places,
						      struct twheel_page *page,
						      unsigned int *nr,
						      struct twheel_link **tail)
	__must_hold(&places->lock)
{
	unsigned int i, left = *nr;

	for (i = 0; i < ARRAY_SIZE(page->free); i++) {
		unsigned long bits = page->free[i];

		while (bits && left) {
			unsigned int first = __ffs(bits), run = __ffs(~(bits >> first) | BIT(left));
			struct twheel_timeout *t = &page->timeout[i * BITS_PER_LONG + first];
			struct twheel_timeout *end = t + run;

			for (; t < end; t++) {
				place_prefetch(t);
				*tail = &t->link;
				tail = &t->link.next;
			}
			bits &= ~((BIT(run) - 1) << first);
			left -= run;
		}
		page->free[i] = bits;
	}
	page_use(places, page, *nr - left);
	*nr = left;
	return tail;
}

/*
 * Take up to *@nr places, and put them at the end of a chain, **@tail, which becomes the new end;
 * reduce *@nr by their number.  Return 0, or if some are left, -EAGAIN at max_pending, and -ENOMEM
 * if there is no free place.
 */
static __always_inline int places_pop(struct twheel_places *places, unsigned int *nr,
				      struct twheel_link ***tail)
{
	struct twheel_link **end = *tail;
	unsigned int got, left;
	int err = 0;
	u32 room;

	spin_lock(&places->lock);
	room = places->max_pending - places->nr_taken;
	if (room < *nr)
		err = -EAGAIN;
	got = min(*nr, room);
	left = got;
	while (left) {
		struct twheel_page *page = page_with_free(places);

		if (unlikely(!page)) {
			err = -ENOMEM;
			break;
		}
		end = page_take(places, page, &left, end);
	}
	*end = NULL;
	*tail = end;
	got -= left;
	*nr -= got;
	WRITE_ONCE(places->nr_taken, places->nr_taken + got);
	counter_add(COUNTER_TIMEOUTS, got);
	spin_unlock(&places->lock);
	return err;
}

/*
 * Add a page of places, unless there are free places by now.  Return 0, -ENOMEM, -ENOSPC at the
 * limit of memory, or -EINTR by a fatal signal.
 */
int twheel_places_provide(struct tw_ctx *tw)
{
	int err = 0;

	if (mutex_lock_killable(&tw->places.mutex))
		return -EINTR;
	/* Without the lock: in either case the answer may be out of date at once. */
	if (!data_race(tw->places.partly.first) && !data_race(tw->places.unused.first))
		err = places_grow(tw);
	mutex_unlock(&tw->places.mutex);
	return err;
}

void twheel_place_refused(struct tw_ctx *tw)
{
	twheel_refused(tw, user_uid(tw->memory.user), COUNTER_REFUSED_PENDING,
		       READ_ONCE(tw->places.nr_taken), 1, READ_ONCE(tw->places.max_pending));
}

/*
 * Take @nr places, which count against max_pending from now on.  Return 0, or why there are fewer:
 * -EAGAIN at max_pending; -ENOMEM, also if a page has to be added with @nowait; -ENOSPC at the
 * limit of memory, or -EINTR by a fatal signal.
 */
int twheel_places_take(struct tw_ctx *tw, unsigned int nr, bool nowait,
		       struct twheel_timeout **first)
{
	struct twheel_link *chain, **tail = &chain;
	int err;

	do {
		err = places_pop(&tw->places, &nr, &tail);
		if (likely(err != -ENOMEM) || nowait)
			break;
		err = twheel_places_provide(tw);
	} while (!err);
	*first = (struct twheel_timeout *)chain;
	return err;
}

/* Whether the pages that are there have @nr free places, or all that max_pending leaves. */
bool twheel_has_places(struct tw_ctx *tw, unsigned int nr)
{
	struct twheel_places *places = &tw->places;
	bool has;

	if (!control_is_started(&tw->control))
		return false;
	spin_lock(&places->lock);
	nr = min(nr, places->max_pending - places->nr_taken);
	has = (u64)places->nr_taken + nr <= (u64)places->nr_pages * PLACES_PER_PAGE;
	spin_unlock(&places->lock);
	return has;
}

/*
 * Take a free place in a keyed wheel, under the wheel's lock.  Return an ERR_PTR if that fails:
 * -EAGAIN at max_pending, -ENOMEM if a page has to be added.
 */
struct twheel_timeout *twheel_place_take_locked(struct tw_ctx *tw)
{
	struct twheel_places *places = &tw->places;
	struct twheel_timeout *t;

	spin_lock(&places->lock);
	t = place_pop(places);
	if (unlikely(!t))
		t = ERR_PTR(places->nr_taken >= places->max_pending ? -EAGAIN : -ENOMEM);
	spin_unlock(&places->lock);
	return t;
}

/*
 * Take the place that a key had, and to which it still leads, under the wheel's lock.  Return 0,
 * -EAGAIN at max_pending, or -ENOENT if its page is being removed or its generations are used up.
 */
int twheel_place_take_again(struct tw_ctx *tw, struct twheel_timeout *t)
{
	struct twheel_places *places = &tw->places;
	struct twheel_page *page = timeout_page(t);
	u32 bit = place_bit(page, t);
	unsigned long *free = page_free_word(page, bit);
	int err = 0;

	spin_lock(&places->lock);
	if (places->nr_taken >= places->max_pending) {
		err = -EAGAIN;
	} else if (unlikely(!(*free & BIT_MASK(bit)))) {
		err = -ENOENT;
	} else {
		*free &= ~BIT_MASK(bit);
		page_use(places, page, 1);
		WRITE_ONCE(places->nr_taken, places->nr_taken + 1);
		counter_add(COUNTER_TIMEOUTS, 1);
	}
	spin_unlock(&places->lock);
	return err;
}

/*
 * After places were given back, wake pollers and have unused pages removed.  The caller holds no
 * lock of the engine.
 */
void twheel_places_freed(struct tw_ctx *tw, u32 nr_before)
{
	struct twheel_places *places = &tw->places;

	twheel_syncpoint(SYNC_PLACES_FREED);
	/* Pollers wait for EPOLLOUT only while the wheel is full. */
	if (unlikely(nr_before >= READ_ONCE(places->max_pending) &&
		     READ_ONCE(places->nr_taken) < READ_ONCE(places->max_pending)))
		twheel_wake_for_room(tw);
	/* places_shrink() checks it under the lock. */
	if (unlikely(data_race(places_are_wasted(places)) &&
		     !delayed_work_pending(&tw->memory.shrink)))
		queue_delayed_work(twheel_memory_queue, &tw->memory.shrink, SHRINK_DELAY);
}

/*
 * Give back places that an ARM has taken and not used.  G8: some of their ids may have been copied
 * out, so none is used again.  The caller holds no lock of the engine.
 */
void twheel_places_give(struct tw_ctx *tw, struct twheel_timeout *first)
{
	struct twheel_places *places = &tw->places;
	struct twheel_timeout *t, *next;
	u32 nr_before;

	twheel_lock(tw);
	spin_lock(&places->lock);
	nr_before = places->nr_taken;
	for (t = first; t; t = next) {
		next = place_next(t);
		places_count_free(places, 1);
		place_free(places, t);
	}
	spin_unlock(&places->lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
}

/* Periods and slack */

/*
 * Each pair of neighbouring pages of places shares a page for these: the even one has the first
 * half.
 */
static_assert(2 * PLACES_PER_PAGE * sizeof(struct twheel_extra) <= PAGE_SIZE);

static inline struct twheel_extra *extra_page(const struct twheel_extra *extra)
{
	return (struct twheel_extra *)((unsigned long)extra & PAGE_MASK);
}

/* Let a page use its half of the page that its neighbour has, or allocate one for both. */
static int extra_add(struct tw_ctx *tw, struct twheel_page *page, u32 nr)
	__must_hold(&tw->places.mutex)
{
	struct twheel_page *beside = pages_at(&tw->places.pages, nr ^ 1);
	struct twheel_extra *both;

	if (beside && beside->extra) {
		both = extra_page(beside->extra);
	} else {
		int err = twheel_page_get(&tw->memory, (void **)&both);

		if (err)
			return err;
	}
	/* Pairs with the acquire in timeout_extra().  Test: litmus extra_filled */
	smp_store_release(&page->extra, both + (nr & 1) * PLACES_PER_PAGE);
	return 0;
}

/*
 * Make sure that the timeout of an index can have a period or slack; nothing to do if its page was
 * removed.  Return 0, -ENOMEM, -ENOSPC at the limit of memory, -EINTR by a fatal signal, or -EAGAIN
 * if it would have to sleep with @nowait.
 */
int twheel_extra_provide(struct tw_ctx *tw, u32 index, bool nowait)
{
	u32 nr = index / PLACES_PER_PAGE;
	struct twheel_page *page;
	bool needed;
	int err = 0;

	rcu_read_lock();
	page = pages_at(&tw->places.pages, nr);
	needed = page && !READ_ONCE(page->extra);
	rcu_read_unlock();
	if (!needed)
		return 0;
	if (nowait)
		return -EAGAIN;
	twheel_syncpoint(SYNC_EXTRA_NONE);
	if (mutex_lock_killable(&tw->places.mutex))
		return -EINTR;
	/*
	 * The page may have been removed or replaced in the meantime.  From now on the mutex keeps
	 * it.
	 */
	page = pages_at(&tw->places.pages, nr);
	if (page && !page->extra)
		err = extra_add(tw, page, nr);
	mutex_unlock(&tw->places.mutex);
	return err;
}

/* Giving memory back */

/*
 * Take a page out of the unused ones; return false if no more of them should be given back.  If a
 * place of the page has used more than half of its generations, the page stays, or later pages
 * would have few left: it counts as partly used from now on, and *@gone is NULL.  There may be many
 * such pages, so handle one for each hold of the lock.
 */
static bool page_pick(struct twheel_places *places, struct twheel_page **gone)
	__must_hold(&places->mutex)
{
	struct twheel_page *page;
	u32 i, gen = places->first_gen;

	*gone = NULL;
	spin_lock(&places->lock);
	if (!places_are_wasted(places)) {
		spin_unlock(&places->lock);
		return false;
	}
	page = hlist_entry(places->unused.first, struct twheel_page, node);
	__hlist_del(&page->node);
	places->nr_unused--;
	for (i = 0; i < PLACES_PER_PAGE; i++)
		gen = max(gen, timeout_gen(&page->timeout[i]));
	if (gen <= S32_MAX) {
		places->nr_pages--;
		/* A key may still lead here: twheel_place_take_again() checks this. */
		bitmap_zero(page->free, PLACES_PER_PAGE);
		/*
		 * G8 stale ids are harmless: if the indices of the page are used again, their
		 * generations go on after the highest one of any removed page.
		 */
		places->first_gen = gen;
		*gone = page;
	} else {
		/* It never counts as unused again. */
		page->nr_used++;
		hlist_add_head(&page->node, &places->partly);
	}
	spin_unlock(&places->lock);
	return true;
}

static void page_drop_keys(struct tw_ctx *tw, struct twheel_page *page)
	__must_hold(&tw->places.mutex)
{
	u32 i;

	twheel_lock(tw);
	for (i = 0; i < PLACES_PER_PAGE; i++)
		twheel_key_drop(tw, &page->timeout[i]);
	twheel_unlock(tw);
}

static void page_remove(struct tw_ctx *tw, struct twheel_page *page) __must_hold(&tw->places.mutex)
{
	u32 nr = page->first_index / PLACES_PER_PAGE;
	const struct twheel_page *beside = pages_at(&tw->places.pages, nr ^ 1);

	if (tw->keys.used)
		page_drop_keys(tw, page);
	twheel_pages_set(&tw->places.pages, nr, NULL);
	tw->places.first_gap = min(tw->places.first_gap, nr);
	/* Threads may still read places that place_at() has found.  Test: litmus page_freed */
	if (page->extra && !(beside && beside->extra))
		twheel_page_put_rcu(&tw->memory, extra_page(page->extra));
	if (tw->keys.used)
		twheel_keys_remove(tw, nr);
	twheel_page_put_rcu(&tw->memory, page);
}

/*
 * The work item: remove pages, and then the words of these.  Drop the mutex after each page, for an
 * ARM that has to add one.  Stop at the last close, which frees the rest.
 */
static void places_shrink(struct work_struct *work)
{
	struct tw_ctx *tw = container_of(to_delayed_work(work), struct tw_ctx, memory.shrink);
	struct twheel_page *page;
	bool picked;

	do {
		mutex_lock(&tw->places.mutex);
		picked = page_pick(&tw->places, &page);
		if (page)
			page_remove(tw, page);
		mutex_unlock(&tw->places.mutex);
		cond_resched();
	} while (picked && refcount_read(&tw->control.nr_files));
	twheel_refresh_shrink(tw);
}

void twheel_places_init(struct tw_ctx *tw)
{
	struct twheel_places *places = &tw->places;

	mutex_init(&places->mutex);
	spin_lock_init(&places->lock);
	places->pages.mutex = &places->mutex;
	tw->keys.pages.mutex = &places->mutex;
	tw->words.pages.mutex = &places->mutex;
	INIT_DELAYED_WORK(&tw->memory.shrink, places_shrink);
	/* Generations begin at 1, so that no id is 0. */
	places->first_gen = 1;
}

/* Free all places at the last close, but leave their charges, as twheel_pages_free() does. */
void twheel_places_free(struct twheel_places *places)
{
	struct twheel_array *table = rcu_dereference_raw(places->pages.table);
	u32 nr;

	counter_add(COUNTER_TIMEOUTS, -(u64)places->nr_taken);
	for (nr = 0; nr < places->pages.nr; nr++) {
		const struct twheel_page *page = table->page[nr];
		const struct twheel_page *before = nr & 1 ? table->page[nr - 1] : NULL;

		if (page && page->extra && !(before && before->extra))
			free_page((unsigned long)extra_page(page->extra));
		cond_resched();
	}
	twheel_pages_free(&places->pages);
}
