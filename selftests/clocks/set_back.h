/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks that hold after a clock was set back, for the programs that set one.
 */
#ifndef SET_BACK_H
#define SET_BACK_H

#include "twheel_test.h"

/*
 * The wheel goes on from the present time of the clock. The first timeout makes it read the clock
 * while the second is still pending.
 */
static inline void expect_two_in_their_time(struct __test_metadata *_metadata, int fd,
					    clockid_t clock)
{
	const __u64 distances_ns[] = { 50 * TW_MS, 700 * TW_MS };
	struct twheel_event event;
	__u64 ids[2];
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, tw_arm_ahead(fd, clock, distances_ns[i], &ids[i]));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		EXPECT_EQ(ids[i], event.id);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		EXPECT_LE(event.deadline_ns, tw_now(clock));
	}
}

#endif /* SET_BACK_H */
