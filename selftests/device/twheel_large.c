// SPDX-License-Identifier: GPL-2.0
/*
 * Vectors in a wheel that has more timeouts than the cache holds. The kernel prefetches the places
 * that a batch is about to access, by ids and keys that may name anything. All results of calls are
 * compared with a table.
 */
#include "twheel_keyed.h"

#include <sys/mman.h>

#define TIMEOUTS	(96 * 1824)
#define VECTOR		96
#define CALLS		600

FIXTURE(large) {
	int fd;
	void *words;
	__u64 seed;
};

static __u64 ids[TIMEOUTS];
static __u64 deadlines[TIMEOUTS];	/* 0: cancelled */

FIXTURE_VARIANT(large) {
	bool keyed;
	bool mapped;
};

FIXTURE_VARIANT_ADD(large, plain) {};
FIXTURE_VARIANT_ADD(large, mapped) { .mapped = true };
FIXTURE_VARIANT_ADD(large, keyed) { .keyed = true };
FIXTURE_VARIANT_ADD(large, keyed_mapped) { .keyed = true, .mapped = true };

/* The key of a timeout; if there are no keys, its user_data. */
static __u64 key_of(__u32 i)
{
	return i * 0x100000001ULL + 7;
}

FIXTURE_SETUP(large)
{
	struct twheel_info info;

	self->seed = 1;
	self->words = MAP_FAILED;
	self->fd = variant->keyed ? key_virtual(O_NONBLOCK | O_CLOEXEC, TIMEOUTS) :
				    tw_virtual_for(O_NONBLOCK | O_CLOEXEC, TIMEOUTS);
	ASSERT_LE(0, self->fd);
	if (!variant->mapped)
		return;
	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->words = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
			   0);
	ASSERT_NE(MAP_FAILED, self->words);
}

FIXTURE_TEARDOWN(large)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

static __u64 random_deadline(__u64 *seed)
{
	return TW_SEC + (tw_random(seed) % 3600000) * TW_MS;
}

/* Choose a timeout for each element: none of them twice in a vector. */
static void choose(__u64 *seed, __u32 *at)
{
	__u32 i, first = tw_random(seed) % TIMEOUTS;

	for (i = 0; i < VECTOR; i++)
		at[i] = (first + i * 103) % TIMEOUTS;
}

static void arm_all(struct __test_metadata *_metadata, FIXTURE_DATA(large) *self)
{
	struct twheel_arm arms[VECTOR];
	__u32 i, k;

	for (i = 0; i < TIMEOUTS; i += VECTOR) {
		memset(arms, 0, sizeof(arms));
		for (k = 0; k < VECTOR; k++) {
			deadlines[i + k] = random_deadline(&self->seed);
			arms[k].expires_ns = deadlines[i + k];
			arms[k].flags = TWHEEL_ARM_ABSOLUTE;
			arms[k].user_data = key_of(i + k);
		}
		ASSERT_EQ(VECTOR, tw_arm_vec(self->fd, arms, VECTOR));
		for (k = 0; k < VECTOR; k++)
			ids[i + k] = arms[k].id;
	}
}

/* The name of a timeout; each eighth element names nothing, be it in the range of ids or not. */
static __u64 name_of(FIXTURE_DATA(large) *self, bool by_key, __u32 at, bool *is_there)
{
	*is_there = deadlines[at] && tw_random(&self->seed) % 8;
	if (*is_there)
		return by_key ? key_of(at) : ids[at];
	return (ids[at] ^ (__u64)tw_random(&self->seed) << 32) + (tw_random(&self->seed) | 1);
}

static void rearm_some(struct __test_metadata *_metadata, FIXTURE_DATA(large) *self, bool by_key)
{
	struct twheel_arm arms[VECTOR] = {};
	__u32 at[VECTOR], k, nr = 0;
	bool is_there[VECTOR];

	choose(&self->seed, at);
	for (k = 0; k < VECTOR; k++) {
		arms[k].id = name_of(self, by_key, at[k], &is_there[k]);
		arms[k].expires_ns = random_deadline(&self->seed);
		arms[k].flags = TWHEEL_ARM_ABSOLUTE;
		nr += is_there[k];
	}
	ASSERT_EQ(nr, by_key ? key_rearm_vec(self->fd, arms, VECTOR) :
			       tw_rearm_vec(self->fd, arms, VECTOR));
	for (k = 0; k < VECTOR; k++) {
		ASSERT_EQ(is_there[k] ? TWHEEL_WAS_PENDING : -ENOENT, arms[k].result);
		if (is_there[k])
			deadlines[at[k]] = arms[k].expires_ns;
	}
}

static void cancel_some(struct __test_metadata *_metadata, FIXTURE_DATA(large) *self, bool by_key)
{
	struct twheel_cancel cancels[VECTOR] = {};
	__u32 at[VECTOR], k, nr = 0;
	bool is_there[VECTOR];

	choose(&self->seed, at);
	for (k = 0; k < VECTOR; k++) {
		cancels[k].id = name_of(self, by_key, at[k], &is_there[k]);
		nr += is_there[k];
	}
	ASSERT_EQ(nr, by_key ? key_cancel_vec(self->fd, cancels, VECTOR) :
			       tw_cancel_vec(self->fd, cancels, VECTOR));
	for (k = 0; k < VECTOR; k++) {
		ASSERT_EQ(is_there[k] ? TWHEEL_WAS_PENDING : -ENOENT, cancels[k].result);
		if (is_there[k])
			deadlines[at[k]] = 0;
	}
}

static void query_some(struct __test_metadata *_metadata, FIXTURE_DATA(large) *self, bool by_key)
{
	struct twheel_status rows[VECTOR] = {};
	__u32 at[VECTOR], k, nr = 0;
	bool is_there[VECTOR];

	choose(&self->seed, at);
	for (k = 0; k < VECTOR; k++) {
		rows[k].id = name_of(self, by_key, at[k], &is_there[k]);
		nr += is_there[k];
	}
	ASSERT_EQ(nr, by_key ? key_query_vec(self->fd, rows, VECTOR) :
			       tw_query_vec(self->fd, rows, VECTOR));
	for (k = 0; k < VECTOR; k++) {
		ASSERT_EQ(is_there[k] ? 0 : -ENOENT, rows[k].result);
		if (is_there[k])
			ASSERT_EQ(deadlines[at[k]], rows[k].deadline_ns);
	}
}

/* Arm the timeouts that were cancelled; if the wheel is keyed, also move the others. */
static void arm_some(struct __test_metadata *_metadata, FIXTURE_DATA(large) *self, bool keyed)
{
	struct twheel_arm arms[VECTOR] = {};
	__u32 at[VECTOR], k, nr = 0;

	choose(&self->seed, at);
	for (k = 0; k < VECTOR; k++) {
		if (deadlines[at[k]] && !keyed)
			continue;
		at[nr] = at[k];
		arms[nr].expires_ns = random_deadline(&self->seed);
		arms[nr].flags = TWHEEL_ARM_ABSOLUTE;
		arms[nr].user_data = key_of(at[k]);
		nr++;
	}
	if (!nr)
		return;
	ASSERT_EQ(nr, tw_arm_vec(self->fd, arms, nr));
	for (k = 0; k < nr; k++) {
		ASSERT_EQ(deadlines[at[k]] ? TWHEEL_WAS_PENDING : TWHEEL_CREATED,
			  arms[k].result);
		if (deadlines[at[k]])
			ASSERT_EQ(ids[at[k]], arms[k].id);
		ids[at[k]] = arms[k].id;
		deadlines[at[k]] = arms[k].expires_ns;
	}
}

/* All expire in their time; no event comes twice, and none is lost. */
static void expire_all(struct __test_metadata *_metadata, FIXTURE_DATA(large) *self)
{
	struct twheel_event events[256];
	__u64 now_ns = 0;
	__u32 i;
	int nr;

	while (now_ns < TW_HOUR + TW_MIN) {
		now_ns += 7 * TW_SEC;
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		while ((nr = tw_read(self->fd, events, 256)) > 0) {
			while (nr--) {
				i = (events[nr].user_data - 7) / 0x100000001ULL;
				ASSERT_GT(TIMEOUTS, i);
				ASSERT_EQ(ids[i], events[nr].id);
				ASSERT_EQ(deadlines[i], events[nr].deadline_ns);
				ASSERT_GE(now_ns, deadlines[i]);
				ASSERT_GT(deadlines[i] + 8 * TW_SEC, now_ns);
				deadlines[i] = 0;
			}
		}
		ASSERT_EQ(-EAGAIN, nr);
	}
	for (i = 0; i < TIMEOUTS; i++)
		ASSERT_EQ(0, deadlines[i]);
}

TEST_F(large, vectors_of_any_ids_and_keys_agree_with_a_table)
{
	int i;

	arm_all(_metadata, self);
	for (i = 0; i < CALLS; i++) {
		bool by_key = variant->keyed && tw_random(&self->seed) % 2;

		switch (tw_random(&self->seed) % 5) {
		case 0:
			cancel_some(_metadata, self, by_key);
			break;
		case 1:
			query_some(_metadata, self, by_key);
			break;
		case 2:
			arm_some(_metadata, self, variant->keyed);
			break;
		default:
			rearm_some(_metadata, self, by_key);
		}
	}
	expire_all(_metadata, self);
}

TEST_HARNESS_MAIN
