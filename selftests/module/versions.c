// SPDX-License-Identifier: GPL-2.0
/*
 * Programs, libraries and modules of different releases, together: each call of the device,
 * and each kind of function of the library.
 *
 * It is compiled with the headers of the first release and with those of a later one, in which each
 * structure has grown, and linked with the library of this tree and with one that was built with
 * the later header (../Makefile).  twheel_versions_module.sh runs each of the four on the module of
 * this tree and on a later one.  So it uses only the interface of the first release.
 *
 *	versions --info		prints how long INFO's structure is here, and in the module
 */
#include <twheel.h>
#include <twheel/device.h>
#include <twheel/table.h>

#include "twheel_test.h"

#define COOKIE		0xfedcba9876543210ULL

/* The buffer is longer than the structure of any release. */
static __u32 info_of_the_module(int fd)
{
	union {
		struct twheel_info info;
		unsigned char bytes[TWHEEL_SIZE_MAX];
	} large = { .info.size = sizeof(large) };

	return tw_ioctl(fd, TWHEEL_IOC_INFO, &large) ? 0 : large.info.size;
}

/* The later header has more members, which must be 0; the first one has not. */
#ifdef TW_LATER
#define EXPECT_LATER_IS_ZERO(s) do {		\
	EXPECT_EQ(0, (s)->grown[0]);		\
	EXPECT_EQ(0, (s)->grown[1]);		\
} while (0)
#else
#define EXPECT_LATER_IS_ZERO(s)	EXPECT_NE(NULL, s)
#endif

/* The setup of a virtual wheel whose events are as long as this program wants them. */
static const struct twheel_setup setup = {
	.size = sizeof(setup),
	.clock = TWHEEL_CLOCK_VIRTUAL,
	.tick_ns = TW_MS,
	.event_size = sizeof(struct twheel_event),
	.name = "versions",
};

FIXTURE(versions) {
	int fd;
	struct twheel_device *device;
};

FIXTURE_SETUP(versions)
{
	self->fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, twheel_device_open(&self->device, NULL, O_NONBLOCK, &setup));
}

FIXTURE_TEARDOWN(versions)
{
	EXPECT_ACCOUNTS(self->fd);
	EXPECT_ACCOUNTS(twheel_device_fd(self->device));
	close(self->fd);
	twheel_device_close(self->device);
}

/* ---- the device, without the library ------------------------------------- */

TEST_F(versions, info_returns_the_size_that_both_sides_know)
{
	const __u32 theirs = info_of_the_module(self->fd);
	struct twheel_info info;

	memset(&info, TW_POISON, sizeof(info));
	info.size = sizeof(info);
	info.flags = 0;
	ASSERT_EQ(0, tw_ioctl(self->fd, TWHEEL_IOC_INFO, &info));
	EXPECT_EQ(theirs < sizeof(info) ? theirs : sizeof(info), info.size);
	EXPECT_EQ(sizeof(struct twheel_event), info.event_size);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.alarm_ns);
	EXPECT_EQ(0, strcmp("versions", info.name));
	EXPECT_LATER_IS_ZERO(&info);
}

TEST_F(versions, timeout_is_armed_moved_queried_and_cancelled)
{
	struct twheel_arm arms[2] = { { .expires_ns = TW_MS }, { .expires_ns = TW_MS } };
	struct twheel_status rows[2] = {};
	__u64 cursor = 0;
	int i;

	ASSERT_EQ(2, tw_arm_vec(self->fd, arms, 2));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(TWHEEL_CREATED, arms[i].result);
		rows[i].id = arms[i].id;
		arms[i].expires_ns = (i + 2) * TW_MS;
	}
	ASSERT_EQ(2, tw_rearm_vec(self->fd, arms, 2));
	ASSERT_EQ(2, tw_vector(self->fd, TWHEEL_IOC_QUERY, rows, sizeof(*rows), 2));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(TWHEEL_STATE_PENDING, rows[i].state);
		EXPECT_EQ((i + 2) * TW_MS, rows[i].deadline_ns);
		EXPECT_LATER_IS_ZERO(&rows[i]);
	}
	ASSERT_EQ(2, tw_list(self->fd, &cursor, rows, 2));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(rows[i].id == arms[0].id ? 2 * TW_MS : 3 * TW_MS, rows[i].deadline_ns);
		EXPECT_LATER_IS_ZERO(&rows[i]);
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, arms[i].id));
	}
}

TEST_F(versions, events_have_the_size_that_the_program_chose)
{
	struct twheel_event events[3];
	__u64 ids[2];
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, (i + 1) * TW_MS, 0, COOKIE + i,
				     &ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(2, tw_read(self->fd, events, 3));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(ids[i], events[i].id);
		EXPECT_EQ(COOKIE + i, events[i].user_data);
		EXPECT_EQ(TWHEEL_EVENT_ENDED, events[i].flags);
		EXPECT_LATER_IS_ZERO(&events[i]);
	}
}

TEST_F(versions, event_of_a_wheel_without_setup_has_the_size_of_the_first_release)
{
	int fd = tw_open(O_NONBLOCK);
	unsigned char bytes[2 * TWHEEL_EVENT_SIZE_MIN];
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MIN, read(fd, bytes, sizeof(bytes)));
	EXPECT_EQ(0, memcmp(&id, bytes, sizeof(id)));
	close(fd);
}

TEST_F(versions, write_carries_out_records)
{
	const struct twheel_setup_record first = {
		.op = TWHEEL_OP_SETUP, .flags = TWHEEL_SETUP_KEYED, .clock = TWHEEL_CLOCK_VIRTUAL,
	};
	const struct twheel_record records[] = {
		{ .op = TWHEEL_OP_ARM, .key = 7, .expires_ns = TW_HOUR },
		{ .op = TWHEEL_OP_REARM, .key = 7, .expires_ns = TW_MS },
		{ .op = TWHEEL_OP_CANCEL, .key = 8, .flags = TWHEEL_RECORD_ABSENT_OK },
	};
	int fd = tw_open(O_NONBLOCK);
	__u64 bytes[TWHEEL_EVENT_SIZE_MIN / 8];

	ASSERT_LE(0, fd);
	ASSERT_EQ(sizeof(first), write(fd, &first, sizeof(first)));
	EXPECT_EQ(3, tw_write(fd, records, 3));
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	ASSERT_EQ(sizeof(bytes), read(fd, bytes, sizeof(bytes)));
	EXPECT_EQ(7, bytes[1]);
	close(fd);
}

TEST_F(versions, drain_hands_out_what_was_left)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(TW_DRAINED, event.flags);
	EXPECT_EQ(0, tw_read(self->fd, &event, 1));
}

/* ---- the library: the device --------------------------------------------- */

TEST_F(versions, library_arms_a_batch_and_reads_its_events)
{
	struct twheel_reader *reader;
	struct twheel_batch *batch;
	struct twheel_event event;
	__u64 ids[3];
	int i;

	ASSERT_EQ(0, twheel_batch_open(&batch, self->device, 8));
	for (i = 0; i < 3; i++) {
		ASSERT_NE(NULL, twheel_batch_arm(batch, COOKIE + i, (i + 1) * TW_MS));
	}
	ASSERT_EQ(3, twheel_batch_submit(batch));
	for (i = 0; i < 3; i++) {
		ids[i] = twheel_batch_id(batch, i);
		EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(batch, i));
	}
	twheel_batch_reset(batch);
	ASSERT_NE(NULL, twheel_batch_rearm(batch, ids[0], 2 * TW_MS));
	ASSERT_NE(NULL, twheel_batch_cancel(batch, ids[1]));
	ASSERT_EQ(2, twheel_batch_submit(batch));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(batch, 1));
	twheel_batch_close(batch);

	ASSERT_EQ(0, twheel_device_advance(self->device, 3 * TW_MS));
	ASSERT_EQ(0, twheel_reader_open(&reader, self->device, 4));
	for (i = 0; i < 3; i += 2) {
		memset(&event, TW_POISON, sizeof(event));
		ASSERT_EQ(1, twheel_reader_next(reader, &event));
		EXPECT_EQ(ids[i], event.id);
		EXPECT_EQ((i ? 3 : 2) * TW_MS, event.deadline_ns);
		EXPECT_LATER_IS_ZERO(&event);
	}
	EXPECT_EQ(-EAGAIN, twheel_reader_next(reader, &event));
	twheel_reader_close(reader);
}

TEST_F(versions, library_queries_timeouts)
{
	struct twheel_arm arms[2] = { { .expires_ns = TW_MS }, { .expires_ns = TW_HOUR } };
	struct twheel_status rows[4], row = {};
	struct twheel_event events[2];
	struct twheel_info info;
	uint64_t cursor = 0;
	int i;

	ASSERT_EQ(2, twheel_device_arm_many(self->device, arms, 2));
	memset(&info, TW_POISON, sizeof(info));
	ASSERT_EQ(0, twheel_device_info(self->device, &info, TWHEEL_INFO_WALK));
	EXPECT_EQ(2, info.pending);
	EXPECT_EQ(TW_MS, info.next_expiry_ns);
	EXPECT_LATER_IS_ZERO(&info);
	row.id = arms[1].id;
	ASSERT_EQ(0, twheel_device_query(self->device, &row));
	EXPECT_EQ(TW_HOUR, row.deadline_ns);
	memset(rows, TW_POISON, sizeof(rows));
	ASSERT_EQ(2, twheel_device_list(self->device, &cursor, rows, 4));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, rows[i].result);
		EXPECT_LATER_IS_ZERO(&rows[i]);
	}
	ASSERT_EQ(0, twheel_device_advance(self->device, TW_MS));
	memset(events, TW_POISON, sizeof(events));
	ASSERT_EQ(1, twheel_device_read(self->device, events, 2));
	EXPECT_EQ(arms[0].id, events[0].id);
	EXPECT_LATER_IS_ZERO(&events[0]);
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_cancel(self->device, arms[1].id));
}

/* The other release has set the wheel up. */
TEST_F(versions, library_reads_events_of_any_length)
{
	static const __u32 lengths[] = { 0, 48, 64, 4096 };
	struct twheel_setup other = setup;
	struct twheel_device *device;
	struct twheel_event events[2];
	struct twheel_arm arm;
	int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		other.event_size = lengths[i];
		ASSERT_EQ(0, twheel_device_open(&device, NULL, O_NONBLOCK, &other));
		arm = (struct twheel_arm){ .user_data = COOKIE };
		ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(device, &arm));
		ASSERT_EQ(0, twheel_device_advance(device, TW_MS));
		memset(events, TW_POISON, sizeof(events));
		ASSERT_EQ(1, twheel_device_read(device, events, 2));
		EXPECT_EQ(arm.id, events[0].id);
		EXPECT_EQ(COOKIE, events[0].user_data);
		EXPECT_LATER_IS_ZERO(&events[0]);
		twheel_device_close(device);
	}
}

TEST_F(versions, a_store_moves_a_timeout)
{
	struct twheel_arm arm = { .expires_ns = TW_MS };
	struct twheel_event event;
	twheel_word_t *table;
	uint32_t shift;

	ASSERT_EQ(0, twheel_device_map(self->device, &table, &shift));
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->device, &arm));
	ASSERT_EQ(1, twheel_refresh(table, arm.id, twheel_refresh_deadline(9 * TW_MS, shift)));
	ASSERT_EQ(0, twheel_device_advance(self->device, 8 * TW_MS));
	EXPECT_EQ(-EAGAIN, twheel_device_read(self->device, &event, 1));
	ASSERT_EQ(0, twheel_device_advance(self->device, 10 * TW_MS));
	EXPECT_EQ(1, twheel_device_read(self->device, &event, 1));
}

/* ---- the library: the wheel in the process, and tables -------------------- */

static void count(struct twheel *w, struct twheel_timer *t)
{
	*(uint64_t *)twheel_data(w) += twheel_periods(w) << (t->interval_ns ? 8 : 0);
}

TEST(timers_in_the_process_expire)
{
	struct twheel_timer timers[3] = {
		TWHEEL_TIMER_INIT(count), TWHEEL_TIMER_INIT(count), TWHEEL_TIMER_INIT(count),
	};
	uint64_t counted = 0;
	const struct twheel_options options = {
		.size = sizeof(options), .clock = TWHEEL_CALLER, .data = &counted,
	};
	struct twheel_stats stats;
	struct twheel *w;

	ASSERT_EQ(0, twheel_open(&w, &options));
	EXPECT_EQ(sizeof(struct twheel_timer), twheel_timer_size());
	twheel_start(w, &timers[0], TWHEEL_MSEC);
	twheel_start_at(w, &timers[1], 2 * TWHEEL_MSEC);
	twheel_start_every(w, &timers[2], TWHEEL_MSEC);
	EXPECT_TRUE(twheel_stop(w, &timers[1]));
	twheel_start(w, &timers[1], TWHEEL_SEC);
	ASSERT_EQ(0, twheel_advance(w, 5 * TWHEEL_MSEC));
	EXPECT_EQ(2, twheel_dispatch(w, 0));
	EXPECT_EQ(1 + (5 << 8), counted);
	memset(&stats, TW_POISON, sizeof(stats));
	twheel_get_stats(w, &stats, sizeof(stats));
	EXPECT_EQ(2, stats.pending);
	EXPECT_EQ(2, stats.called);
	twheel_close(w);
}

static void use_table(struct __test_metadata *_metadata, uint32_t backend)
{
	const struct twheel_table_options options = {
		.size = sizeof(options), .backend = backend, .clock = TWHEEL_TABLE_VIRTUAL,
	};
	struct twheel_table_change changes[4];
	struct twheel_table *table;
	uint32_t numbers[4], i;

	ASSERT_EQ(0, twheel_table_open(&table, 4, &options));
	EXPECT_EQ(backend, twheel_table_backend(table));
	for (i = 0; i < 4; i++)
		changes[i] = (struct twheel_table_change){
			.number = i, .deadline_ns = (i + 1) * TW_MS,
		};
	ASSERT_EQ(4, twheel_table_apply(table, changes, 4, 0));
	EXPECT_EQ(TWHEEL_TABLE_PENDING, twheel_table_stop(table, 1));
	ASSERT_EQ(0, twheel_table_advance(table, 3 * TW_MS));
	ASSERT_EQ(2, twheel_table_expired(table, numbers, 4, 0));
	EXPECT_EQ(0, numbers[0]);
	EXPECT_EQ(2, numbers[1]);
	EXPECT_EQ(TWHEEL_TABLE_PENDING, twheel_table_state(table, 3, NULL));
	twheel_table_close(table);
}

TEST(table_in_the_process_expires)
{
	use_table(_metadata, TWHEEL_TABLE_PROCESS);
}

TEST(table_on_the_device_expires)
{
	use_table(_metadata, TWHEEL_TABLE_DEVICE);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 2 || strcmp(argv[1], "--info"))
		return test_harness_run(argc, argv);
	fd = tw_open(O_CLOEXEC);
	printf("%zu %u\n", sizeof(struct twheel_info), fd < 0 ? 0 : info_of_the_module(fd));
	return fd < 0;
}
