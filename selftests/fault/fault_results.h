/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of the results of a call. The return value must agree with the results in the elements;
 * the world notes these.
 */
#ifndef TWHEEL_FAULT_RESULTS_H
#define TWHEEL_FAULT_RESULTS_H

#include "fault_world.h"

/*
 * Check the result of one element: that of an attempt or, from the fault on, none. Return whether
 * the element succeeded.
 */
static inline bool element_done(struct __test_metadata *_metadata, struct world *w, int ret, int i,
				__s32 result, bool *faulted)
{
	if (result == (__s32)TW_POISON32) {
		*faulted = true;
	} else {
		EXPECT_FALSE(*faulted)
			TH_LOG("%s: element %d is done, and one before it is not", w->where, i);
	}
	if (ret < 0) {
		/* Before the first timeout, ARM checks whether it can copy results out. */
		EXPECT_TRUE(*faulted || (!i && result == ret))
			TH_LOG("%s: element %d of a call that failed says %d", w->where, i, result);
		return false;
	}
	if (result == -ENOMEM) {
		w->nr_enomem++;
	} else if (!*faulted) {
		EXPECT_LE(0, result)
			TH_LOG("%s: element %d", w->where, i);
	}
	return !*faulted && result >= 0;
}

static inline void results_of_arm(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_arm *arm = world_entry(w, i);

		if (!element_done(_metadata, w, ret, i, arm->result, &faulted)) {
			EXPECT_EQ(arm->result == (__s32)TW_POISON32 ? TW_POISON64 : 0, arm->id)
				TH_LOG("%s: element %d was not armed and has an id", w->where, i);
			continue;
		}
		world_learn(w, arm->user_data, arm->id, arm->expires_ns, arm->interval_ns);
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

static inline void results_of_rearm(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_arm *arm = world_entry(w, i);
		struct known *known = &w->known[arm->user_data];

		if (!element_done(_metadata, w, ret, i, arm->result, &faulted))
			continue;
		EXPECT_EQ(TWHEEL_WAS_PENDING, arm->result)
			TH_LOG("%s: element %d", w->where, i);
		known->deadline_ns = arm->expires_ns;
		known->interval_ns = arm->interval_ns;
		w->rearmed++;
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

/* How many places a page has. */
#define PAGE_PLACES	84

/*
 * The table of pages begins with a page, which has memory for the numbers of 509. Use up all their
 * places, by timeouts that are cancelled before anything is compared.
 */
#define BALLAST		(509 * PAGE_PLACES - 3 - 2)

static struct twheel_arm ballast[BALLAST];

static inline void results_of_arm_table(struct __test_metadata *_metadata, struct world *w, int ret)
{
	static struct twheel_cancel cancels[BALLAST];
	int i;

	results_of_arm(_metadata, w, ret);
	for (i = 0; i < BALLAST; i++)
		cancels[i] = (struct twheel_cancel){ .id = ballast[i].id };
	ASSERT_EQ(BALLAST, tw_cancel_vec(w->fd, cancels, BALLAST))
		TH_LOG("%s", w->where);
	w->armed += BALLAST;
	w->cancelled += BALLAST;
}

/* Here the event of the last element is unread. */
static inline void results_of_cancel(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_cancel *cancel = world_entry(w, i);
		int user_data = i < w->nr - 1 ? i + 3 : 1;

		if (!element_done(_metadata, w, ret, i, cancel->result, &faulted))
			continue;
		EXPECT_EQ(user_data == 1 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING, cancel->result)
			TH_LOG("%s: element %d", w->where, i);
		if (user_data == 1)
			w->revoked++;
		else
			w->cancelled++;
		world_forget(w, user_data);
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

/* The records are the same, but write() only reports how many were done. */
static inline void results_of_write(struct __test_metadata *_metadata, struct world *w, int ret)
{
	int i;

	EXPECT_TRUE(ret < 0 ? ret == -EFAULT : ret > 0)
		TH_LOG("%s: write says %d", w->where, ret);
	for (i = 0; i < ret; i++) {
		int user_data = i < w->nr - 1 ? i + 3 : 1;

		if (user_data == 1)
			w->revoked++;
		else
			w->cancelled++;
		world_forget(w, user_data);
	}
}

static inline void results_of_query(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_status *row = world_entry(w, i);

		if (!element_done(_metadata, w, ret, i, row->result, &faulted))
			continue;
		EXPECT_EQ(i, row_is_known(_metadata, w, row));
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

/* The walk goes on with the row that could not be copied out. */
static inline void results_of_list(struct __test_metadata *_metadata, struct world *w, int ret)
{
	struct twheel_list *list = (void *)w->arena;
	static struct twheel_status rest[KNOWN];
	int i, more, nr = ret < 0 ? 0 : ret;
	__u64 cursor = list->cursor;
	bool seen[KNOWN] = {};

	for (i = 0; i < nr; i++)
		seen[row_is_known(_metadata, w, world_entry(w, i))] = true;
	more = tw_list(w->fd, &cursor, rest, KNOWN);
	EXPECT_EQ(w->nr_known, nr + more)
		TH_LOG("%s: rows, after the walk went on", w->where);
	for (i = 0; i < more; i++) {
		__u64 user_data = row_is_known(_metadata, w, &rest[i]);

		EXPECT_FALSE(seen[user_data])
			TH_LOG("%s: row %d comes twice", w->where, nr + i);
	}
}

static inline void results_of_read(struct __test_metadata *_metadata, struct world *w, int ret)
{
	int i;

	for (i = 0; i < ret; i++)
		event_is_due(_metadata, w, world_entry(w, i), START, false);
	/* If events were not delivered, they were not written, or not as a whole. */
	EXPECT_TRUE(ret < 0 ? ret == -EFAULT : ret > 0)
		TH_LOG("%s: read says %d", w->where, ret);
}

static inline void no_results(struct __test_metadata *_metadata, struct world *w, int ret)
{
	(void)_metadata;
	(void)w;
	(void)ret;
}

/* INFO writes all of it, or nothing. */
static inline void results_of_info(struct __test_metadata *_metadata, struct world *w, int ret)
{
	const struct twheel_info *info = (void *)w->arena;

	EXPECT_EQ(ret ? TW_POISON64 : w->armed, info->armed)
		TH_LOG("%s", w->where);
}

/* If a wheel could not be set up, it is like a new one; set it up now. */
static inline void results_of_setup(struct __test_metadata *_metadata, struct world *w, int ret)
{
	const struct twheel_setup *setup = (void *)w->arena;
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(w->fd, &info));
	if (!ret) {
		EXPECT_EQ(setup->slots ? setup->slots : 1024, info.slots)
			TH_LOG("%s", w->where);
		EXPECT_EQ(TWHEEL_CLOCK_VIRTUAL, info.clock)
			TH_LOG("%s", w->where);
		return;
	}
	EXPECT_TRUE(info.state == TWHEEL_WHEEL_NEW && info.slots == 1024 &&
		    info.clock == TWHEEL_CLOCK_MONOTONIC)
		TH_LOG("%s: SETUP failed, and left clock %u, %u slots, state %u", w->where,
		       info.clock, info.slots, info.state);
	ASSERT_EQ(0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0))
		TH_LOG("%s: SETUP after one that failed", w->where);
}

/*
 * If the first ARM failed as a whole, SETUP can still be called. The wheel's clock cannot be
 * advanced to the end, so cancel its timeouts.
 */
static inline void results_of_first_arm(struct __test_metadata *_metadata, struct world *w, int ret)
{
	struct twheel_info info;
	int i;

	results_of_arm(_metadata, w, ret);
	w->real = ret >= 0;
	ASSERT_EQ(0, tw_info(w->fd, &info));
	EXPECT_EQ(w->real ? TWHEEL_WHEEL_RUNNING : TWHEEL_WHEEL_NEW, info.state)
		TH_LOG("%s: state %u", w->where, info.state);
	EXPECT_EQ(w->real ? -EBUSY : 0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0))
		TH_LOG("%s", w->where);
	EXPECT_EQ(w->nr_known, info.live)
		TH_LOG("%s", w->where);
	for (i = 0; i < KNOWN; i++) {
		if (!w->known[i].id)
			continue;
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(w->fd, w->known[i].id))
			TH_LOG("%s", w->where);
		world_forget(w, i);
		w->cancelled++;
	}
}

static inline void results_of_drain(struct __test_metadata *_metadata, struct world *w, int ret)
{
	EXPECT_EQ(0, ret)
		TH_LOG("%s", w->where);
	w->drained = !ret;
}

static inline void results_of_open(struct __test_metadata *_metadata, struct world *w, int ret)
{
	if (ret < 0) {
		EXPECT_EQ(0, tw_wheels_open())
			TH_LOG("%s", w->where);
		world_open(_metadata, w);
	}
	ASSERT_EQ(0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0))
		TH_LOG("%s", w->where);
}

/* close() destroys the wheel: the checks need another one. */
static inline void results_of_close(struct __test_metadata *_metadata, struct world *w, int ret)
{
	EXPECT_EQ(0, ret)
		TH_LOG("%s", w->where);
	EXPECT_EQ(0, tw_wait_wheels_open(0))
		TH_LOG("%s", w->where);
	memset(w->known, 0, sizeof(w->known));
	w->nr_known = 0;
	w->armed = 0;
	make_empty(_metadata, w);
}

#endif /* TWHEEL_FAULT_RESULTS_H */
