// SPDX-License-Identifier: GPL-2.0
/*
 * write(): whole records, in order, up to the first that is refused; each does what the ioctl of
 * its name does with a vector of one. With RWF_NOWAIT, a record that would have to wait or
 * allocate says EAGAIN.
 */
#include "twheel_test.h"

#include <signal.h>
#include <sys/uio.h>

#define RECORD_BYTES	((ssize_t)sizeof(struct twheel_record))
#define MAX_RECORDS	100

static struct twheel_record arm_in(__u64 key, __u64 distance_ns)
{
	return (struct twheel_record){
		.op = TWHEEL_OP_ARM, .key = key, .expires_ns = distance_ns,
	};
}

static struct twheel_record rearm_in(__u64 id, __u64 distance_ns)
{
	return (struct twheel_record){
		.op = TWHEEL_OP_REARM, .key = id, .expires_ns = distance_ns,
	};
}

static struct twheel_record cancel_of(__u64 id)
{
	return (struct twheel_record){ .op = TWHEEL_OP_CANCEL, .key = id };
}

/* Write with RWF_NOWAIT; return how many records were done, or -errno. */
static int write_nowait(int fd, const struct twheel_record *records, size_t nr)
{
	struct iovec iov = { (void *)records, nr * sizeof(*records) };
	ssize_t bytes = pwritev2(fd, &iov, 1, -1, RWF_NOWAIT);

	if (bytes < 0)
		return -errno;
	return bytes % RECORD_BYTES ? TW_BROKEN : bytes / RECORD_BYTES;
}

/* Return a page that cannot be read, behind one that can. */
static char *bad_page(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *base = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED || mprotect(base + page, page, PROT_NONE))
		return NULL;
	return base + page;
}

FIXTURE(write) {
	int fd;
	char *bad;
};

TW_SETTLE_VARIANTS(write);

FIXTURE_SETUP(write)
{
	TW_SETTLE();
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	self->bad = bad_page();
	ASSERT_NE(NULL, self->bad);
}

FIXTURE_TEARDOWN(write)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* ---- the effect of a record ---------------------------------------------- */

TEST_F(write, a_record_arms_and_its_key_is_the_user_data)
{
	const struct twheel_record record = arm_in(0xfedcba9876543210ULL, 3 * TW_MS);
	struct twheel_event events[2];

	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS - 1));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, events, 2));
	EXPECT_EQ(0xfedcba9876543210ULL, events[0].user_data);
	EXPECT_EQ(3 * TW_MS, events[0].deadline_ns);
	EXPECT_EQ(1, events[0].count);
}

TEST_F(write, all_fields_of_a_record_reach_the_timeout)
{
	const struct twheel_record record = {
		.op = TWHEEL_OP_ARM,
		.flags = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_FIXED_DELAY,
		.key = 7,
		.expires_ns = 5 * TW_MS,
		.interval_ns = 2 * TW_MS,
		.repeats = 9,
		.slack_ticks = 7,
	};
	struct twheel_status row[2];

	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(1, tw_list_all(self->fd, row, 2, 2));
	EXPECT_EQ(TWHEEL_STATE_PENDING, row[0].state);
	EXPECT_EQ(7, row[0].user_data);
	EXPECT_EQ(5 * TW_MS, row[0].deadline_ns);
	EXPECT_EQ(4 * TW_MS, row[0].left_ns);
	EXPECT_EQ(2 * TW_MS, row[0].interval_ns);
	EXPECT_EQ(TWHEEL_ARM_FIXED_DELAY, row[0].flags);
	EXPECT_EQ(9, row[0].repeats_left);
	EXPECT_EQ(7, row[0].slack_ticks);
}

TEST_F(write, a_record_rearms_by_id_and_leaves_the_user_data)
{
	struct twheel_record record;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_MS, 0, 5, &id));
	record = rearm_in(id, 4 * TW_MS);
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(5, event.user_data);
}

/* In each of these states REARM takes another path through the engine. */
TEST_F(write, a_record_rearms_in_every_state)
{
	struct twheel_record records[TW_KINDS];
	struct twheel_event events[TW_KINDS + 1];
	__u64 ids[TW_KINDS];
	int i;

	tw_arm_each_kind(_metadata, self->fd, ids);
	for (i = 0; i < TW_KINDS; i++) {
		records[i] = rearm_in(ids[i], (i + 1) * TW_MS);
		records[i].interval_ns = i & 1 ? TW_HOUR : 0;
	}
	ASSERT_EQ(TW_KINDS, tw_write(self->fd, records, TW_KINDS));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, (20 + TW_KINDS) * TW_MS));
	ASSERT_EQ(TW_KINDS, tw_read(self->fd, events, TW_KINDS + 1));
	for (i = 0; i < TW_KINDS; i++)
		EXPECT_EQ(ids[i], events[i].id);
}

TEST_F(write, a_record_cancels_in_every_state)
{
	struct twheel_record records[TW_KINDS];
	struct twheel_info info;
	__u64 ids[TW_KINDS];
	int i;

	tw_arm_each_kind(_metadata, self->fd, ids);
	for (i = 0; i < TW_KINDS; i++)
		records[i] = cancel_of(ids[i]);
	ASSERT_EQ(TW_KINDS, tw_write(self->fd, records, TW_KINDS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.live);
	EXPECT_EQ(2, info.cancelled);
	EXPECT_EQ(3, info.revoked);
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(write, a_timeout_in_the_past_is_accepted)
{
	const struct twheel_record record = {
		.op = TWHEEL_OP_ARM, .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = TW_MS,
	};
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(TW_MS, event.deadline_ns);
}

TEST_F(write, many_records_are_done_in_order)
{
	struct twheel_record records[MAX_RECORDS];
	struct twheel_event events[MAX_RECORDS + 1];
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		records[i] = arm_in(i, (i + 1) * TW_MS);
	ASSERT_EQ(MAX_RECORDS, tw_write(self->fd, records, MAX_RECORDS));
	ASSERT_EQ(0, tw_advance(self->fd, MAX_RECORDS * TW_MS));
	ASSERT_EQ(MAX_RECORDS, tw_read(self->fd, events, MAX_RECORDS + 1));
	for (i = 0; i < MAX_RECORDS; i++)
		EXPECT_EQ(i, events[i].user_data);
}

TEST_F(write, writev_lays_a_record_across_two_pieces)
{
	const struct twheel_record records[2] = { arm_in(1, TW_MS), arm_in(2, 2 * TW_MS) };
	struct iovec iov[] = {
		{ (char *)records, 52 },
		{ (char *)records + 52, sizeof(records) - 52 },
	};
	struct twheel_event events[3];

	ASSERT_EQ(2 * RECORD_BYTES, writev(self->fd, iov, 2));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(2, tw_read(self->fd, events, 3));
	EXPECT_EQ(1, events[0].user_data);
	EXPECT_EQ(2, events[1].user_data);
}

/* Records have no id and no verdict: those come by ioctl, and the id by the first event. */
TEST_F(write, records_are_read_only)
{
	struct twheel_record *records = (void *)(self->bad - sysconf(_SC_PAGESIZE));
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	records[0] = arm_in(1, TW_MS);
	records[1] = rearm_in(id, TW_MS);
	records[2] = cancel_of(id);
	ASSERT_EQ(0, mprotect(records, sysconf(_SC_PAGESIZE), PROT_READ));
	EXPECT_EQ(3, tw_write(self->fd, records, 3));
}

TEST_F(write, the_first_event_has_the_id_for_further_records)
{
	struct twheel_record record = arm_in(7, TW_MS);
	struct twheel_event event;

	record.interval_ns = TW_MS;
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	record = rearm_in(event.id, 5 * TW_MS);
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_advance(self->fd, 6 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, event.id);
	EXPECT_EQ(7, event.user_data);
	EXPECT_EQ(6 * TW_MS, event.deadline_ns);
}

/* ---- SETUP --------------------------------------------------------------- */

TEST(a_record_sets_a_wheel_up)
{
	const struct twheel_setup_record setup = {
		.op = TWHEEL_OP_SETUP,
		.flags = TWHEEL_SETUP_ONE_LEVEL,
		.clock = TWHEEL_CLOCK_BOOTTIME,
		.event_size = TWHEEL_EVENT_SIZE_MIN + 8,
		.tick_ns = 7 * TW_MS,
		.slack_ns = 9 * TW_MS,
		.slots = 100,
		.max_pending = 33,
	};
	const struct twheel_record *record = (const void *)&setup;
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(1, tw_write(fd, record, 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_CLOCK_BOOTTIME, info.clock);
	EXPECT_EQ(TWHEEL_SETUP_ONE_LEVEL, info.setup_flags);
	EXPECT_EQ(7 * TW_MS, info.tick_ns);
	EXPECT_EQ(128, info.slots);
	EXPECT_EQ(33, info.max_pending);
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MIN + 8, info.event_size);
	EXPECT_EQ(9 * TW_MS, info.slack_ns);
	EXPECT_EQ('\0', info.name[0]);
	EXPECT_EQ(-EBUSY, tw_write(fd, record, 1));
	close(fd);
}

TEST(a_bad_setup_record_says_einval_and_does_not_start_the_wheel)
{
	const struct twheel_setup_record setup[] = {
		{ .op = TWHEEL_OP_SETUP },
		{ .op = TWHEEL_OP_SETUP, .clock = CLOCK_MONOTONIC },
		{ .op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC, .flags = 1U << 31 },
		{ .op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC, .slots = 3 },
		{ .op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC, .tick_ns = 999 },
		{ .op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC, .event_size = 41 },
		{ .op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC, .slack_ns = ~0ULL },
		{ .op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC, .max_pending = ~0U },
	};
	int fd = tw_open(O_NONBLOCK), i;
	struct twheel_info info;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(setup); i++) {
		EXPECT_EQ(-EINVAL, tw_write(fd, (const void *)&setup[i], 1))
			TH_LOG("setup record %d", i);
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, info.state);
	close(fd);
}

TEST(a_wheel_that_was_never_set_up_starts_with_the_defaults)
{
	const struct twheel_record record = arm_in(4, 10 * TW_MS);
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(1, tw_write(fd, &record, 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, info.clock);
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(4, event.user_data);
	close(fd);
}

TEST(a_record_that_is_refused_does_not_start_the_wheel)
{
	struct twheel_record record = arm_in(0, TW_MS);
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	record.flags = 1U << 31;
	EXPECT_EQ(-EINVAL, tw_write(fd, &record, 1));
	record = rearm_in(1ULL << 32, TW_MS);
	EXPECT_EQ(-ENOENT, tw_write(fd, &record, 1));
	record = cancel_of(1ULL << 32);
	EXPECT_EQ(-ENOENT, tw_write(fd, &record, 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, info.state);
	close(fd);
}

/* ---- records that are refused -------------------------------------------- */

TEST_F(write, less_than_a_record_says_einval)
{
	const struct twheel_record record = arm_in(0, TW_MS);
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-1, write(self->fd, &record, RECORD_BYTES - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &record, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &record, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(write, a_partial_record_at_the_end_is_not_consumed)
{
	const struct twheel_record records[3] = {
		arm_in(1, TW_MS), arm_in(2, TW_MS), arm_in(3, TW_MS),
	};
	struct twheel_info info;

	EXPECT_EQ(2 * RECORD_BYTES, write(self->fd, records, 3 * RECORD_BYTES - 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.armed);
}

/* Each record is an ARM, a REARM or a CANCEL that would succeed but for one field. */
TEST_F(write, a_bad_field_says_einval_and_changes_nothing)
{
	struct twheel_record good[3], record;
	struct tw_snapshot before;
	int i, bad;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	good[0] = arm_in(1, TW_MS);
	good[1] = rearm_in(id, TW_MS);
	good[2] = cancel_of(id);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < 3; i++) {
		for (bad = 0; bad < 6; bad++) {
			/* CANCEL has no other fields than the key. */
			if (bad >= 4 && i < 2)
				continue;
			record = good[i];
			switch (bad) {
			case 0:
				record.op = i ? ~record.op : 0;
				break;
			case 1:
				record.flags = 1U << 31;
				break;
			case 2:
				record.flags = TWHEEL_ARM_FIXED_DELAY;
				break;
			case 3:
				record.repeats = 1;
				break;
			case 4:
				record.expires_ns = 1;
				break;
			case 5:
				record.interval_ns = TW_MS;
				break;
			}
			EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1))
				TH_LOG("operation %d, field %d", i + 1, bad);
		}
	}
	record = good[2];
	record.slack_ticks = 1;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	record = good[2];
	record.flags = TWHEEL_ARM_ABSOLUTE;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(write, an_unknown_id_says_enoent)
{
	struct twheel_record record;
	struct tw_snapshot before;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	record = rearm_in(id + (1ULL << 32), TW_MS);
	EXPECT_EQ(-ENOENT, tw_write(self->fd, &record, 1));
	record = cancel_of(id + 1);
	EXPECT_EQ(-ENOENT, tw_write(self->fd, &record, 1));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(write, a_write_stops_at_the_first_record_that_is_refused)
{
	struct twheel_record records[5] = {
		arm_in(1, TW_MS), arm_in(2, TW_MS), cancel_of(1), arm_in(4, TW_MS),
		arm_in(5, TW_MS),
	};
	struct twheel_event events[5];

	EXPECT_EQ(2, tw_write(self->fd, records, 5));
	EXPECT_EQ(-ENOENT, tw_write(self->fd, records + 2, 3));
	EXPECT_EQ(2, tw_write(self->fd, records + 3, 2));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(4, tw_read(self->fd, events, 5));
}

/* ---- records that forgive ------------------------------------------------ */

static struct twheel_record forgiving(struct twheel_record record)
{
	record.flags |= TWHEEL_RECORD_ABSENT_OK;
	return record;
}

/* Every third one is there. */
TEST_F(write, absent_timeouts_do_not_end_a_write_that_forgives)
{
	struct twheel_record records[MAX_RECORDS], plain;
	int i, there = 0, first_absent = 1;
	struct twheel_info info;
	__u64 id;

	for (i = 0; i < MAX_RECORDS; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
		if (i % 3) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
		}
		there += !(i % 3);
		records[i] = forgiving(i % 2 ? cancel_of(id) : rearm_in(id, TW_MS));
	}
	plain = records[first_absent];
	plain.flags = 0;
	EXPECT_EQ(-ENOENT, tw_write(self->fd, &plain, 1));
	EXPECT_EQ(MAX_RECORDS, tw_write(self->fd, records, MAX_RECORDS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(there / 2, info.rearmed);
	EXPECT_EQ(there / 2, info.pending);
	/* If the flag is missing, the write ends there. */
	records[first_absent] = plain;
	EXPECT_EQ(first_absent, tw_write(self->fd, records, MAX_RECORDS));
}

TEST_F(write, a_record_that_forgives_changes_nothing_if_its_timeout_is_absent)
{
	struct twheel_record records[2];
	struct tw_snapshot before;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	records[0] = forgiving(cancel_of(id + (1ULL << 32)));
	records[1] = forgiving(rearm_in(id + (1ULL << 32), TW_MS));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(2, tw_write(self->fd, records, 2));
	EXPECT_EQ(2, write_nowait(self->fd, records, 2));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(write, a_record_that_forgives_does_what_it_says_if_its_timeout_is_there)
{
	struct twheel_record records[2];
	struct twheel_event event;
	__u64 ids[2];

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[0]));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[1]));
	records[0] = forgiving(rearm_in(ids[0], TW_MS));
	records[1] = forgiving(cancel_of(ids[1]));
	EXPECT_EQ(2, tw_write(self->fd, records, 2));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, ids[1]));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, ids[0]);
}

/* An ARM creates an absent timeout, unless it says IF_PRESENT; and SETUP has no timeout. */
TEST_F(write, other_records_that_forgive_say_einval)
{
	const struct twheel_setup_record setup = {
		.op = TWHEEL_OP_SETUP, .flags = TWHEEL_RECORD_ABSENT_OK,
		.clock = TWHEEL_CLOCK_MONOTONIC,
	};
	struct twheel_record record = forgiving(arm_in(1, TW_MS));
	struct tw_snapshot before;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, tw_write(fd, (const void *)&setup, 1));
	EXPECT_EQ(-EINVAL, tw_write(fd, &record, 1));
	close(fd);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	EXPECT_EQ(-EINVAL, write_nowait(self->fd, &record, 1));
	/* Conditions on keys need keys. */
	record.flags |= TWHEEL_ARM_IF_PRESENT;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	record = forgiving(cancel_of(1));
	record.expires_ns = 1;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	EXPECT_UNCHANGED(self->fd, &before);
}

/* Each element has a result of its own. */
TEST_F(write, an_element_of_a_vector_that_forgives_says_einval)
{
	struct twheel_arm arm = { .expires_ns = TW_MS, .flags = TWHEEL_RECORD_ABSENT_OK };
	__u64 id;

	ASSERT_EQ(0, tw_arm_vec(self->fd, &arm, 1));
	EXPECT_EQ(-EINVAL, arm.result);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	arm.id = id;
	ASSERT_EQ(0, tw_rearm_vec(self->fd, &arm, 1));
	EXPECT_EQ(-EINVAL, arm.result);
}

TEST_F(write, a_record_that_forgives_says_eshutdown_in_a_drained_wheel)
{
	const struct twheel_record records[2] = {
		forgiving(cancel_of(1)), forgiving(rearm_in(1, TW_MS)),
	};

	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(1, tw_write(self->fd, records, 2));
	EXPECT_EQ(-ESHUTDOWN, tw_write(self->fd, records + 1, 1));
}

/* The batches in which records are copied in make no difference. */
TEST_F(write, a_long_write_stops_at_any_record_that_is_refused)
{
	struct twheel_record records[MAX_RECORDS];
	struct twheel_info info;
	int i, bad, armed = 0;

	for (bad = 0; bad < MAX_RECORDS; bad++) {
		for (i = 0; i < MAX_RECORDS; i++)
			records[i] = arm_in(i, TW_HOUR);
		records[bad].op = 99;
		ASSERT_EQ(bad ?: -EINVAL, tw_write(self->fd, records, MAX_RECORDS));
		armed += bad;
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(armed, info.armed);
	}
}

TEST(a_full_wheel_says_eagain_and_records_that_fit_are_done)
{
	const struct twheel_record records[5] = {
		arm_in(1, TW_MS), arm_in(2, TW_MS), arm_in(3, TW_MS), arm_in(4, TW_MS),
		arm_in(5, TW_MS),
	};
	struct tw_snapshot before;
	int fd = tw_open(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 3));
	EXPECT_EQ(3, tw_write(fd, records, 5));
	ASSERT_EQ(0, tw_snapshot(fd, &before));
	/* The write does not wait, though the descriptor has no O_NONBLOCK. */
	EXPECT_EQ(-EAGAIN, tw_write(fd, records + 3, 2));
	EXPECT_EQ(-EAGAIN, write_nowait(fd, records + 3, 2));
	EXPECT_EQ(0, tw_poll(fd, POLLOUT, 0));
	EXPECT_UNCHANGED(fd, &before);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F(write, a_drained_wheel_says_eshutdown_but_cancels)
{
	struct twheel_record record;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_drain(self->fd));
	record = arm_in(0, TW_MS);
	EXPECT_EQ(-ESHUTDOWN, tw_write(self->fd, &record, 1));
	record = rearm_in(id, TW_MS);
	EXPECT_EQ(-ESHUTDOWN, tw_write(self->fd, &record, 1));
	record = cancel_of(id);
	EXPECT_EQ(1, tw_write(self->fd, &record, 1));
	EXPECT_EQ(0, tw_read(self->fd, &(struct twheel_event){}, 1));
}

TEST_F(write, a_bad_buffer_says_efault_and_changes_nothing)
{
	const struct twheel_record record = arm_in(1, TW_MS);
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EFAULT, tw_write(self->fd, (void *)self->bad, 3));
	memcpy(self->bad - 24, &record, 24);
	EXPECT_EQ(-EFAULT, tw_write(self->fd, (void *)(self->bad - 24), 3));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(write, a_later_fault_leaves_exactly_the_records_before_it_done)
{
	struct twheel_record record;
	struct twheel_info info;
	int i, cut, armed = 0;
	char *from;

	for (cut = 0; cut < RECORD_BYTES; cut += 8) {
		from = self->bad - 40 * RECORD_BYTES - cut;
		for (i = 0; i < 40; i++) {
			record = arm_in(i, TW_HOUR);
			memcpy(from + i * RECORD_BYTES, &record, sizeof(record));
		}
		memcpy(from + i * RECORD_BYTES, &record, cut);
		ASSERT_EQ(40, tw_write(self->fd, (void *)from, 60));
		armed += 40;
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(armed, info.armed);
	}
}

TEST_F(write, pwrite_says_espipe)
{
	const struct twheel_record record = arm_in(1, TW_MS);

	EXPECT_EQ(-1, pwrite(self->fd, &record, sizeof(record), 0));
	EXPECT_EQ(ESPIPE, errno);
}

/* Many writers, while their timeouts expire and are read. */
TEST_F(write, records_beside_a_reader_are_all_delivered)
{
	enum { WRITERS = 4, ROUNDS = 200, EACH = 37 };
	struct twheel_event events[64];
	int i, j, n, got = 0;
	pid_t pids[WRITERS];

	for (i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (pids[i])
			continue;
		for (j = 0; j < ROUNDS; j++) {
			struct twheel_record records[EACH];

			for (n = 0; n < EACH; n++)
				records[n] = arm_in(i, 0);
			if (tw_write(self->fd, records, EACH) != EACH)
				_exit(1);
		}
		_exit(0);
	}
	while (got < WRITERS * ROUNDS * EACH) {
		ASSERT_EQ(0, tw_advance(self->fd, 0));
		ASSERT_LT(0, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
		n = tw_read(self->fd, events, 64);
		ASSERT_LT(0, n);
		got += n;
	}
	for (i = 0; i < WRITERS; i++)
		EXPECT_EQ(0, tw_reap(pids[i]));
	EXPECT_NO_EVENT(self->fd);
}

/* ---- keyed wheels -------------------------------------------------------- */

FIXTURE(keyed_write) {
	int fd;
};

TW_SETTLE_VARIANTS(keyed_write);

FIXTURE_SETUP(keyed_write)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .flags = TWHEEL_SETUP_KEYED,
	};

	TW_SETTLE();
	self->fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(keyed_write)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Expect this timeout, and no other. */
static void expect_one(struct __test_metadata *_metadata, int fd, __u64 key, __u64 deadline_ns)
{
	struct twheel_status row[2];

	ASSERT_EQ(1, tw_list_all(fd, row, 2, 2));
	EXPECT_EQ(key, row[0].user_data);
	EXPECT_EQ(deadline_ns, row[0].deadline_ns);
}

TEST_F(keyed_write, arm_of_a_key_that_is_there_moves_it)
{
	const __u64 keys[] = { 0, 1, 7, ~0ULL };
	int i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct twheel_record records[] = {
			arm_in(keys[i], TW_MS), arm_in(keys[i], 3 * TW_MS),
			arm_in(keys[i], 2 * TW_MS),
		};
		const struct twheel_record cancel = cancel_of(keys[i]);

		EXPECT_EQ(3, tw_write(self->fd, records, 3));
		expect_one(_metadata, self->fd, keys[i], 2 * TW_MS);
		EXPECT_EQ(1, tw_write(self->fd, &cancel, 1));
		EXPECT_EQ(-ENOENT, tw_write(self->fd, &cancel, 1));
	}
}

TEST_F(keyed_write, arm_of_a_key_with_an_unread_event_takes_the_event_back)
{
	struct twheel_record record = arm_in(7, TW_MS);
	struct twheel_event events[2];

	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, events, 2));
	EXPECT_EQ(7, events[0].user_data);
	EXPECT_EQ(2 * TW_MS, events[0].deadline_ns);
}

TEST_F(keyed_write, rearm_and_cancel_go_by_the_key)
{
	const struct twheel_record arms[] = { arm_in(7, TW_MS), arm_in(8, TW_MS) };
	struct twheel_record record;

	ASSERT_EQ(2, tw_write(self->fd, arms, 2));
	record = rearm_in(7, 5 * TW_MS);
	EXPECT_EQ(1, tw_write(self->fd, &record, 1));
	record = cancel_of(8);
	EXPECT_EQ(1, tw_write(self->fd, &record, 1));
	expect_one(_metadata, self->fd, 7, 5 * TW_MS);
	EXPECT_EQ(-ENOENT, tw_write(self->fd, &record, 1));
	record = rearm_in(8, TW_MS);
	EXPECT_EQ(-ENOENT, tw_write(self->fd, &record, 1));
}

TEST_F(keyed_write, a_condition_that_is_not_met_ends_the_write)
{
	static const struct {
		__u32 op, flags;
		__u64 key, expires_ns;
		int err;
	} cases[] = {
		{ TWHEEL_OP_ARM, TWHEEL_ARM_IF_ABSENT, 7, 9, -EEXIST },
		{ TWHEEL_OP_ARM, TWHEEL_ARM_IF_PRESENT, 8, 9, -ENOENT },
		{ TWHEEL_OP_ARM, TWHEEL_ARM_ONLY_LATER, 7, 4, -ERANGE },
		{ TWHEEL_OP_ARM, TWHEEL_ARM_ONLY_EARLIER, 7, 6, -ERANGE },
		{ TWHEEL_OP_REARM, TWHEEL_ARM_ONLY_LATER, 7, 5, -ERANGE },
		{ TWHEEL_OP_REARM, TWHEEL_ARM_ONLY_EARLIER, 7, 5, -ERANGE },
		{ TWHEEL_OP_REARM, TWHEEL_ARM_IF_PRESENT, 7, 9, -EINVAL },
		{ TWHEEL_OP_ARM, TWHEEL_ARM_IF_PRESENT, 7, 6, 1 },
		{ TWHEEL_OP_ARM, TWHEEL_ARM_ONLY_LATER, 7, 7, 1 },
		{ TWHEEL_OP_REARM, TWHEEL_ARM_ONLY_EARLIER, 7, 5, 1 },
		{ TWHEEL_OP_ARM, TWHEEL_ARM_IF_ABSENT, 8, 9, 1 },
	};
	const struct twheel_record first = arm_in(7, 5 * TW_MS);
	struct tw_snapshot before;
	int i;

	ASSERT_EQ(1, tw_write(self->fd, &first, 1));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct twheel_record record = {
			.op = cases[i].op,
			.flags = cases[i].flags,
			.key = cases[i].key,
			.expires_ns = cases[i].expires_ns * TW_MS,
		};

		ASSERT_EQ(0, tw_snapshot(self->fd, &before));
		EXPECT_EQ(cases[i].err, tw_write(self->fd, &record, 1))
			TH_LOG("case %d", i);
		if (cases[i].err < 0)
			EXPECT_UNCHANGED(self->fd, &before);
	}
}

TEST_F(keyed_write, keys_that_are_gone_do_not_end_a_write_that_forgives)
{
	enum { KEYS = MAX_RECORDS };
	struct twheel_record records[KEYS];
	struct twheel_status rows[KEYS];
	int i, there = 0;

	for (i = 0; i < KEYS; i++) {
		const struct twheel_record arm = arm_in(i, TW_HOUR);

		if (i % 3)
			continue;
		ASSERT_EQ(1, tw_write(self->fd, &arm, 1));
		there += i % 2;
	}
	for (i = 0; i < KEYS; i++) {
		records[i] = forgiving(arm_in(i, 2 * TW_HOUR));
		records[i].flags |= TWHEEL_ARM_IF_PRESENT;
		if (!(i % 2))
			records[i] = forgiving(cancel_of(i));
	}
	EXPECT_EQ(KEYS, write_nowait(self->fd, records, KEYS));
	EXPECT_EQ(KEYS, tw_write(self->fd, records, KEYS));
	ASSERT_EQ(there, tw_list_all(self->fd, rows, KEYS, KEYS));
	for (i = 0; i < there; i++) {
		EXPECT_EQ(2 * TW_HOUR, rows[i].deadline_ns);
		EXPECT_EQ(3, rows[i].user_data % 6);
	}
}

/* If the timeout is absent, the flag forgives that, and nothing else. */
TEST_F(keyed_write, a_record_that_forgives_forgives_nothing_else)
{
	const struct twheel_record first = arm_in(7, 5 * TW_MS);
	struct twheel_record record = forgiving(arm_in(7, 5 * TW_MS));
	struct tw_snapshot before;

	ASSERT_EQ(1, tw_write(self->fd, &first, 1));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	record.flags |= TWHEEL_ARM_IF_PRESENT | TWHEEL_ARM_ONLY_LATER;
	EXPECT_EQ(-ERANGE, tw_write(self->fd, &record, 1));
	record.flags = TWHEEL_RECORD_ABSENT_OK | TWHEEL_ARM_IF_ABSENT;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	record.flags |= TWHEEL_ARM_IF_PRESENT;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	record = forgiving(rearm_in(7, 5 * TW_MS));
	record.flags |= TWHEEL_ARM_ONLY_EARLIER;
	EXPECT_EQ(-ERANGE, tw_write(self->fd, &record, 1));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST(one_write_does_it_all)
{
	const struct twheel_setup_record setup = {
		.op = TWHEEL_OP_SETUP,
		.flags = TWHEEL_SETUP_KEYED,
		.clock = TWHEEL_CLOCK_MONOTONIC,
	};
	struct twheel_record records[5] = {
		{}, arm_in(1, TW_HOUR), arm_in(2, 10 * TW_MS), arm_in(1, 20 * TW_MS),
		cancel_of(2),
	};
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;

	ASSERT_LE(0, fd);
	memcpy(records, &setup, sizeof(setup));
	ASSERT_EQ(5, tw_write(fd, records, 5));
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(1, event.user_data);
	EXPECT_NO_EVENT(fd);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/*
 * They write in any order: no write fails, since records for keys that may be absent forgive that.
 */
TEST_F(keyed_write, writers_of_the_same_keys_beside_a_reader_all_succeed)
{
	enum { WRITERS = 4, ROUNDS = 2000, KEYS = 8 };
	struct twheel_event events[KEYS];
	struct twheel_status rows[KEYS + 1];
	pid_t pids[WRITERS];
	int i, j, n, ret;

	for (i = 0; i < WRITERS; i++) {
		__u64 seed = i + 1;

		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (pids[i])
			continue;
		/*
		 * The reader's ADVANCE empties the inbox, too; thousands more would take minutes.
		 */
		tw_settles = false;
		for (j = 0; j < ROUNDS; j++) {
			__u64 key = tw_random(&seed) % KEYS;
			struct twheel_record record = arm_in(key, tw_random(&seed) % 3 * TW_MS);

			switch (tw_random(&seed) % 4) {
			case 0:
				record = forgiving(cancel_of(key));
				break;
			case 1:
				record.op = TWHEEL_OP_REARM;
				record = forgiving(record);
				break;
			}
			ret = tw_write(self->fd, &record, 1);
			if (ret != 1)
				_exit(1);
		}
		_exit(0);
	}
	for (i = 1; i < 300; i++) {
		ASSERT_EQ(0, tw_advance(self->fd, i * TW_MS));
		n = tw_read(self->fd, events, KEYS);
		ASSERT_TRUE(n > 0 || n == -EAGAIN);
	}
	for (i = 0; i < WRITERS; i++)
		EXPECT_EQ(0, tw_reap(pids[i]));
	n = tw_list_all(self->fd, rows, KEYS + 1, KEYS + 1);
	ASSERT_LE(0, n);
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			EXPECT_NE(rows[i].user_data, rows[j].user_data);
}

/* ---- RWF_NOWAIT ---------------------------------------------------------- */

TEST_F(write, preadv2_nowait_reads_events_and_does_not_wait)
{
	struct twheel_event event;
	struct iovec iov = { &event, sizeof(event) };
	__u64 id;

	/* Clear O_NONBLOCK, so that only the flag counts. */
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	EXPECT_EQ(-1, preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(sizeof(event), preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(-1, preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
}

TEST(pwritev2_nowait_does_not_start_a_wheel)
{
	const struct twheel_setup_record setup = {
		.op = TWHEEL_OP_SETUP, .clock = TWHEEL_CLOCK_MONOTONIC,
	};
	const struct twheel_record record = arm_in(1, TW_MS);
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EAGAIN, write_nowait(fd, &record, 1));
	EXPECT_EQ(-EAGAIN, write_nowait(fd, (const void *)&setup, 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, info.state);
	close(fd);
}

/*
 * The write does as many as there are places for; after a write that may wait, it does the others.
 */
TEST_F(write, pwritev2_nowait_takes_free_places_and_allocates_nothing)
{
	struct twheel_record records[MAX_RECORDS];
	int i, nr, written = 0, refused = 0;
	struct twheel_info info;

	for (i = 0; i < MAX_RECORDS; i++)
		records[i] = arm_in(i, TW_HOUR);
	EXPECT_EQ(-EAGAIN, write_nowait(self->fd, records, 1));
	for (i = 0; i < 50; i++) {
		nr = write_nowait(self->fd, records, MAX_RECORDS);
		if (nr < MAX_RECORDS) {
			refused++;
			ASSERT_EQ(nr < 0 ? -EAGAIN : nr, nr);
			EXPECT_EQ(-EAGAIN, write_nowait(self->fd, records, 1));
			ASSERT_EQ(1, tw_write(self->fd, records, 1));
			written++;
		}
		written += nr < 0 ? 0 : nr;
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(written, info.armed);
	}
	EXPECT_LT(0, refused);
	EXPECT_LT(refused, written / 10);
	EXPECT_ACCOUNTS(self->fd);
}

/*
 * If a timeout is the first one of its page with an interval or slack, it needs memory that plain
 * one-shots do not.
 */
static void expect_no_memory_for(struct __test_metadata *_metadata, int fd, __u64 interval_ns,
				 __u32 slack_ticks)
{
	struct twheel_record records[2] = { arm_in(1, TW_MS), arm_in(2, TW_MS) };
	struct tw_snapshot before;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	records[1].interval_ns = interval_ns;
	records[1].slack_ticks = slack_ticks;
	EXPECT_EQ(1, write_nowait(fd, records, 2));
	ASSERT_EQ(0, tw_snapshot(fd, &before));
	EXPECT_EQ(-EAGAIN, write_nowait(fd, records + 1, 1));
	records[0] = rearm_in(id, TW_MS);
	records[0].interval_ns = interval_ns;
	records[0].slack_ticks = slack_ticks;
	EXPECT_EQ(-EAGAIN, write_nowait(fd, records, 1));
	EXPECT_UNCHANGED(fd, &before);
	EXPECT_EQ(1, tw_write(fd, records + 1, 1));
	EXPECT_EQ(1, write_nowait(fd, records, 1));
	EXPECT_EQ(1, write_nowait(fd, records + 1, 1));
}

TEST_F(write, pwritev2_nowait_allocates_nothing_for_periods)
{
	expect_no_memory_for(_metadata, self->fd, TW_MS, 0);
}

TEST_F(write, pwritev2_nowait_allocates_nothing_for_slack)
{
	expect_no_memory_for(_metadata, self->fd, 0, 3);
}

TEST_F(write, pwritev2_nowait_rearms_and_cancels)
{
	struct twheel_record records[3];
	struct twheel_event event;
	__u64 ids[2];

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[0]));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[1]));
	/* Move one later, one earlier, and cancel one. */
	records[0] = rearm_in(ids[0], 2 * TW_HOUR);
	records[1] = rearm_in(ids[0], TW_MS);
	records[2] = cancel_of(ids[1]);
	EXPECT_EQ(3, write_nowait(self->fd, records, 3));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, ids[0]);
	EXPECT_EQ(-ENOENT, write_nowait(self->fd, records + 2, 1));
}

/* This holds even for an earlier time, again and again. */
TEST_F(write, pwritev2_nowait_rearms_without_memory)
{
	struct twheel_record record;
	__u64 id, first;
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &first));
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	for (i = 1; i < 10000; i++) {
		record = rearm_in(id, TW_HOUR - i * TW_US);
		ASSERT_EQ(1, write_nowait(self->fd, &record, 1));
		ASSERT_EQ(0, tw_advance(self->fd, 0));
	}
}

TEST_F(keyed_write, pwritev2_nowait_arms_and_moves)
{
	const struct twheel_record records[] = {
		arm_in(1, TW_HOUR), arm_in(2, TW_MS), arm_in(1, 2 * TW_MS), rearm_in(2, 3 * TW_MS),
		cancel_of(1),
	};

	/* There is no place yet. */
	EXPECT_EQ(-EAGAIN, write_nowait(self->fd, records, 5));
	ASSERT_EQ(1, tw_write(self->fd, records, 1));
	EXPECT_EQ(4, write_nowait(self->fd, records + 1, 4));
	expect_one(_metadata, self->fd, 2, 3 * TW_MS);
}

TEST_HARNESS_MAIN
