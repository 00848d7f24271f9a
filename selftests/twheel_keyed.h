/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of keyed wheels: ARM as an upsert, and REARM, CANCEL and QUERY by key.
 *
 * As in twheel_test.h, a wrapper returns the result of the call, or -errno; if it is for one
 * element, that element's result. All memory that a call writes is poisoned before.
 */
#ifndef TWHEEL_KEYED_H
#define TWHEEL_KEYED_H

#include "twheel_test.h"

/* Store in *nr_done how many elements were attempted. */
static inline int key_vector_done(int fd, unsigned long cmd, __u32 flags, void *entries,
				  __u32 entry_size, __u32 nr, __u32 *nr_done)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = entry_size,
		.nr = nr,
		.flags = flags,
		.entries = (uintptr_t)entries,
		.nr_done = TW_POISON32,
	};
	int ret = tw_ioctl(fd, cmd, &vector);

	*nr_done = vector.nr_done;
	if (ret >= 0 && (vector.nr_done > nr || vector.nr_done < (__u32)ret))
		return TW_BROKEN;
	return ret;
}

static inline int key_vector(int fd, unsigned long cmd, __u32 flags, void *entries,
			     __u32 entry_size, __u32 nr)
{
	__u32 nr_done;

	return key_vector_done(fd, cmd, flags, entries, entry_size, nr, &nr_done);
}

/* ---- vectors ------------------------------------------------------------- */

static inline int key_arm_vec(int fd, struct twheel_arm *arms, __u32 nr)
{
	__u32 i;

	tw_settle(fd);
	for (i = 0; i < nr; i++)
		arms[i].was_deadline_ns = TW_POISON64;
	return tw_arm_vec(fd, arms, nr);
}

/* REARM by key: ``id`` is the key. */
static inline int key_rearm_vec(int fd, struct twheel_arm *arms, __u32 nr)
{
	__u32 i;

	tw_settle(fd);
	for (i = 0; i < nr; i++) {
		arms[i].result = TW_POISON32;
		arms[i].was_deadline_ns = TW_POISON64;
	}
	return key_vector(fd, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, arms, sizeof(*arms), nr);
}

/* CANCEL by key: ``id`` is the key. */
static inline int key_cancel_vec(int fd, struct twheel_cancel *cancels, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		cancels[i].result = TW_POISON32;
	return key_vector(fd, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, cancels,
			  sizeof(*cancels), nr);
}

/* QUERY by key: ``id`` is the key, and after the call the id. */
static inline int key_query_vec(int fd, struct twheel_status *rows, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		__u64 key = rows[i].id;

		memset(&rows[i], TW_POISON, sizeof(rows[i]));
		rows[i].id = key;
	}
	return key_vector(fd, TWHEEL_IOC_QUERY, TWHEEL_VECTOR_BY_KEY, rows, sizeof(*rows), nr);
}

/* ---- one element --------------------------------------------------------- */

/* Arm with every field as given; fills in id, result and was_deadline_ns. */
static inline int key_arm_entry(int fd, struct twheel_arm *arm)
{
	int ret = key_arm_vec(fd, arm, 1);

	return tw_one_result(ret, arm->result);
}

/* Arm a one-shot at a point in time. */
static inline int key_arm_at(int fd, __u64 key, __u64 deadline_ns, __u32 flags,
			     struct twheel_arm *arm)
{
	*arm = (struct twheel_arm){
		.user_data = key,
		.expires_ns = deadline_ns,
		.flags = TWHEEL_ARM_ABSOLUTE | flags,
	};
	return key_arm_entry(fd, arm);
}

/* Arm likewise, if only the verdict matters. */
static inline int key_arm(int fd, __u64 key, __u64 deadline_ns, __u32 flags)
{
	struct twheel_arm arm;

	return key_arm_at(fd, key, deadline_ns, flags, &arm);
}

/* Re-arm to a one-shot at a point in time; user_data is poison: REARM has to ignore it. */
static inline int key_rearm(int fd, __u64 key, __u64 deadline_ns, __u32 flags)
{
	struct twheel_arm arm = {
		.id = key,
		.user_data = TW_POISON64,
		.expires_ns = deadline_ns,
		.flags = TWHEEL_ARM_ABSOLUTE | flags,
	};
	int ret = key_rearm_vec(fd, &arm, 1);

	return tw_one_result(ret, arm.result);
}

static inline int key_cancel(int fd, __u64 key)
{
	struct twheel_cancel cancel = { .id = key };
	int ret = key_cancel_vec(fd, &cancel, 1);

	return tw_one_result(ret, cancel.result);
}

static inline int key_query(int fd, __u64 key, struct twheel_status *status)
{
	int ret;

	status->id = key;
	ret = key_query_vec(fd, status, 1);
	return tw_one_result(ret, status->result);
}

/* Return the id of the timeout with this key, 0 if there is none. */
static inline __u64 key_id(int fd, __u64 key)
{
	struct twheel_status status;

	return key_query(fd, key, &status) ? 0 : status.id;
}

/* ---- wheels -------------------------------------------------------------- */

/* Make a keyed wheel whose time moves by tw_advance() only; it stands at 0. */
static inline int key_virtual(int flags, __u32 max_pending)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.max_pending = max_pending,
		.flags = TWHEEL_SETUP_KEYED,
	};

	return tw_open_setup(flags, &setup);
}

#endif /* TWHEEL_KEYED_H */
