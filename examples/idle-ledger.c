// SPDX-License-Identifier: 0BSD
/*
 * idle-ledger.c - vectors of operations, and exact accounts of what they have done
 */
#include "idle-shared.h"

#include <errno.h>
#include <string.h>

/* A deadline in the past expires at once. */
void ledger_arm(struct ledger *l, uint64_t key, uint64_t deadline_ns)
{
	l->arm[l->nr_arm++] = (struct twheel_arm) {
		.expires_ns = deadline_ns,
		.flags = TWHEEL_ARM_ABSOLUTE,
		.user_data = key,
		.result = -EINPROGRESS,
	};
}

void ledger_cancel(struct ledger *l, uint64_t key)
{
	l->cancel[l->nr_cancel++] = (struct twheel_cancel) {
		.id = key,
		.result = -EINPROGRESS,
	};
}

static void ledger_add(const struct ledger *l, struct accounts *sum)
{
	for (uint32_t i = 0; i < l->nr_arm; i++) {
		int result = l->arm[i].result;

		if (result < 0 && result != -EINPROGRESS)
			die_plainly("the wheel refuses a timeout: %s", strerror(-result));
		sum->armed += result == TWHEEL_CREATED;
		sum->rearmed += result == TWHEEL_WAS_PENDING || result == TWHEEL_WAS_UNREAD;
	}
	/* -ENOENT says that the event has been read. */
	for (uint32_t i = 0; i < l->nr_cancel; i++) {
		int result = l->cancel[i].result;

		if (result < 0 && result != -EINPROGRESS && result != -ENOENT)
			die_plainly("the wheel cancels nothing: %s", strerror(-result));
		sum->cancelled += result == TWHEEL_WAS_PENDING;
		sum->revoked += result == TWHEEL_WAS_UNREAD;
	}
}

/* Close it by one store, which changes the sum in force. */
static void ledger_close(struct ledger *l)
{
	uint32_t from = l->state & LEDGER_SUM, to = !from;

	l->sum[to] = l->sum[from];
	ledger_add(l, &l->sum[to]);
	STORE(l->state, to);
}

/* Carry out the collected operations; the vectors stay until they are emptied. */
void ledger_submit(struct ledger *l, const struct twheel_device *wheel)
{
	STORE(l->state, l->state | LEDGER_OPEN);
	twheel_device_arm_many(wheel, l->arm, l->nr_arm);
	twheel_device_cancel_key_many(wheel, l->cancel, l->nr_cancel);
	ledger_close(l);
}

/* Close the ledger of a process that has ended, at whatever point. */
void ledger_settle(struct ledger *l)
{
	if (l->state & LEDGER_OPEN)
		ledger_close(l);
	l->nr_arm = 0;
	l->nr_cancel = 0;
}

const struct accounts *ledger_sum(const struct ledger *l)
{
	return &l->sum[l->state & LEDGER_SUM];
}
