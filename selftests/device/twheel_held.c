// SPDX-License-Identifier: GPL-2.0
/*
 * A call that is held in the middle, in cases that twheel_between does not have: a wheel that
 * nobody has set up, periods that pass while a reader has not got its events, places that are
 * taken and not armed yet, and the last close.
 */
#include "twheel_held.h"
#include "twheel_keyed.h"
#include "twheel_outside.h"

#include <stddef.h>

FIXTURE(holding) {
	struct held_memory memory;
	struct held_call call;
	int fd;
};

FIXTURE_SETUP(holding)
{
	held_memory_make(&self->memory, UFFDIO_REGISTER_MODE_WP);
	if (self->memory.faults < 0)
		SKIP(return, "the kernel has no userfaultfd that protects from writing");
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(holding)
{
	held_memory_free(&self->memory);
	if (self->fd >= 0) {
		EXPECT_ACCOUNTS(self->fd);
		close(self->fd);
	}
}

/* Let a call be held before it writes to the element with this number. */
static void hold(struct __test_metadata *_metadata, FIXTURE_DATA(holding) *self,
		 unsigned long cmd, const void *entries, __u32 size, int nr, int good)
{
	void *at = held_lay(&self->memory, entries, nr * size, good * size);

	ASSERT_NE(NULL, at);
	held_prepare(&self->call, self->fd, cmd, 0, at, size, nr);
	ASSERT_EQ(0, held_begin(&self->call, &self->memory));
}

/* Let it go on; return its result, and copy its elements. */
static int let_go(struct __test_metadata *_metadata, FIXTURE_DATA(holding) *self, void *entries)
{
	EXPECT_EQ(0, held_end(&self->call, &self->memory));
	memcpy(entries, self->call.bytes, self->call.size);
	return self->call.ret;
}

/* ---- a wheel that nobody has set up ---------------------------------------- */

#define KEY	7

/* Arm one key twice, and another one. */
static const struct twheel_arm first_arms[3] = {
	{ .user_data = KEY, .expires_ns = TW_HOUR, .result = TW_POISON32 },
	{ .user_data = KEY + 1, .expires_ns = TW_HOUR, .result = TW_POISON32 },
	{ .user_data = KEY, .expires_ns = 2 * TW_HOUR, .result = TW_POISON32 },
};

static void hold_first_arm(struct __test_metadata *_metadata, FIXTURE_DATA(holding) *self)
{
	hold(_metadata, self, TWHEEL_IOC_ARM, first_arms, sizeof(first_arms[0]), 3, 0);
}

static int setup_keyed(int fd)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .flags = TWHEEL_SETUP_KEYED,
	};

	return tw_setup_full(fd, &setup);
}

TEST_F(holding, first_arm_takes_the_wheel_as_a_setup_in_between_made_it)
{
	struct twheel_arm arms[3];
	struct twheel_info info;

	hold_first_arm(_metadata, self);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, 5 * TW_MS, 0));
	EXPECT_EQ(3, let_go(_metadata, self, arms));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(3, info.live);
	EXPECT_EQ(TW_HOUR, info.next_expiry_ns);
}

/* No key has two timeouts, and each timeout is found by its key. */
TEST_F(holding, first_arm_goes_by_keys_when_a_keyed_setup_came_in_between)
{
	struct twheel_status status;
	struct twheel_arm arms[3];
	struct twheel_info info;

	hold_first_arm(_metadata, self);
	ASSERT_EQ(0, setup_keyed(self->fd));
	EXPECT_EQ(3, let_go(_metadata, self, arms));
	EXPECT_EQ(TWHEEL_CREATED, arms[0].result);
	EXPECT_EQ(TWHEEL_CREATED, arms[1].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arms[2].result);
	EXPECT_EQ(TW_HOUR, arms[2].was_deadline_ns);
	EXPECT_EQ(arms[0].id, arms[2].id);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.live);
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_EQ(arms[0].id, status.id);
	EXPECT_EQ(2 * TW_HOUR, status.deadline_ns);
	ASSERT_EQ(0, key_query(self->fd, KEY + 1, &status));
	EXPECT_EQ(arms[1].id, status.id);
}

TEST_F(holding, first_arm_replaces_a_key_that_came_in_between)
{
	struct twheel_arm arms[3], other;
	struct twheel_info info;

	hold_first_arm(_metadata, self);
	ASSERT_EQ(0, setup_keyed(self->fd));
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY + 1, TW_DAY, 0, &other));
	EXPECT_EQ(3, let_go(_metadata, self, arms));
	EXPECT_EQ(TWHEEL_CREATED, arms[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arms[1].result);
	EXPECT_EQ(other.id, arms[1].id);
	EXPECT_EQ(TW_DAY, arms[1].was_deadline_ns);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.live);
}

/* The results that it wrote to find out whether it can write are corrected. */
TEST_F(holding, first_arm_says_eshutdown_after_a_drain_in_between)
{
	struct twheel_arm arms[3];
	struct twheel_info info;

	hold_first_arm(_metadata, self);
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(-ESHUTDOWN, let_go(_metadata, self, arms));
	EXPECT_EQ(-ESHUTDOWN, arms[0].result);
	EXPECT_EQ(0, arms[0].id);
	EXPECT_EQ((__s32)TW_POISON32, arms[1].result);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.armed);
	EXPECT_EQ(POLLHUP, tw_poll(self->fd, POLLIN | POLLOUT, 0));
}

TEST_F(holding, first_arm_says_eshutdown_after_a_keyed_setup_and_a_drain_in_between)
{
	struct twheel_arm arms[3];
	struct twheel_info info;

	hold_first_arm(_metadata, self);
	ASSERT_EQ(0, setup_keyed(self->fd));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(-ESHUTDOWN, let_go(_metadata, self, arms));
	EXPECT_EQ(-ESHUTDOWN, arms[0].result);
	EXPECT_EQ(0, arms[0].id);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.armed);
}

/* ---- places that are taken, and not armed yet ------------------------------- */

#define BATCH	32	/* the batch of ARM */

TEST_F(holding, arm_has_its_places_before_it_copies_ids_out)
{
	struct twheel_arm arms[BATCH + 8] = {}, others[9] = {};
	int i;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, BATCH + 8));
	for (i = 0; i < BATCH + 8; i++)
		arms[i].expires_ns = TW_HOUR;
	for (i = 0; i < 9; i++)
		others[i].expires_ns = TW_HOUR;
	hold(_metadata, self, TWHEEL_IOC_ARM, arms, sizeof(arms[0]), BATCH + 8, 10);
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	EXPECT_EQ(8, tw_arm_vec(self->fd, others, 9));
	EXPECT_EQ(TWHEEL_CREATED, others[7].result);
	EXPECT_EQ(-EAGAIN, others[8].result);
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, others[0].id));
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	EXPECT_EQ(BATCH + 1, let_go(_metadata, self, arms));
	EXPECT_EQ(TWHEEL_CREATED, arms[BATCH].result);
	EXPECT_EQ(-EAGAIN, arms[BATCH + 1].result);
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN | POLLOUT, 0));
}

/*
 * If its memory is unmapped when it goes on, the timeouts whose ids were copied out are armed, and
 * the other places are free again.
 */
TEST_F(holding, arm_that_faults_after_all_gives_its_places_back)
{
	struct twheel_arm arms[BATCH] = {};
	struct twheel_info info;
	int i;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, BATCH));
	for (i = 0; i < BATCH; i++)
		arms[i].expires_ns = TW_HOUR;
	hold(_metadata, self, TWHEEL_IOC_ARM, arms, sizeof(arms[0]), BATCH, 10);
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	ASSERT_EQ(0, mprotect(self->memory.edge, self->memory.page, PROT_NONE));
	ASSERT_EQ(0, held_end(&self->call, &self->memory));
	EXPECT_EQ(10, self->call.ret);
	EXPECT_EQ(10, self->call.vector.nr_done);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(10, info.live);
	EXPECT_EQ(BATCH - 10, tw_arm_vec(self->fd, arms, BATCH));
}

/* ---- periods that pass while a reader is held -------------------------------- */

#define PERIODIC	5

FIXTURE(reader) {
	FIXTURE_DATA(holding) holding;
	struct twheel_arm arms[PERIODIC];
	struct twheel_event events[PERIODIC];
	/* sums of the events read: how many expirations, and which have ended */
	__u64 expirations;
	int delivered, drained;
	bool ended[PERIODIC];
};

FIXTURE_VARIANT(reader) {
	__u32 flags;
	__u32 repeats;
};

FIXTURE_VARIANT_ADD(reader, of_a_fixed_rate) { .repeats = 0 };
FIXTURE_VARIANT_ADD(reader, of_a_fixed_delay) { .flags = TWHEEL_ARM_FIXED_DELAY };
FIXTURE_VARIANT_ADD(reader, of_a_limited_rate) { .repeats = 4 };
FIXTURE_VARIANT_ADD(reader, of_a_limited_delay) {
	.flags = TWHEEL_ARM_FIXED_DELAY, .repeats = 2
};

static void note(struct __test_metadata *_metadata, FIXTURE_DATA(reader) *self,
		 const struct twheel_event *event)
{
	int i = event->user_data;

	ASSERT_GT(PERIODIC, event->user_data);
	EXPECT_FALSE(self->ended[i])
		TH_LOG("an event of timeout %d, which has ended", i);
	EXPECT_EQ(self->arms[i].id, event->id);
	self->ended[i] = event->flags & TWHEEL_EVENT_ENDED;
	self->expirations += event->count;
	self->delivered++;
	self->drained += !!(event->flags & TWHEEL_EVENT_DRAINED);
}

/* A reader that is held in its third event of five, at 25 ms. */
FIXTURE_SETUP(reader)
{
	FIXTURE_DATA(holding) *holding = &self->holding;
	int i;

	holding_setup(_metadata, holding, NULL);
	if (_metadata->exit_code)
		return;
	ASSERT_EQ(0, tw_setup(holding->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	for (i = 0; i < PERIODIC; i++)
		self->arms[i] = (struct twheel_arm){
			.flags = variant->flags,
			.expires_ns = 10 * TW_MS,
			.interval_ns = 10 * TW_MS,
			.repeats = variant->repeats,
			.user_data = i,
		};
	ASSERT_EQ(PERIODIC, tw_arm_vec(holding->fd, self->arms, PERIODIC));
	ASSERT_EQ(0, tw_advance(holding->fd, 25 * TW_MS));
	hold(_metadata, holding, HELD_READ, self->events, sizeof(self->events[0]), PERIODIC, 2);
}

FIXTURE_TEARDOWN(reader)
{
	holding_teardown(_metadata, &self->holding, NULL);
}

/* Let it go on: it gets this many events. */
static void reader_ends(struct __test_metadata *_metadata, FIXTURE_DATA(reader) *self, int nr)
{
	int i, ret = let_go(_metadata, &self->holding, self->events);

	ASSERT_EQ(nr * (int)sizeof(self->events[0]), ret);
	for (i = 0; i < nr; i++)
		note(_metadata, self, &self->events[i]);
}

/* Read the rest; each expiration that was not revoked was in one event. */
static void expect_sums(struct __test_metadata *_metadata, FIXTURE_DATA(reader) *self,
			__u64 revoked)
{
	int i, nr, fd = self->holding.fd;
	struct twheel_info info;

	while ((nr = tw_read(fd, self->events, PERIODIC)) > 0)
		for (i = 0; i < nr; i++)
			note(_metadata, self, &self->events[i]);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(info.expirations, self->expirations + revoked);
	EXPECT_EQ(info.delivered, self->delivered);
	EXPECT_EQ(info.drained, self->drained);
}

TEST_F(reader, a_reader_gets_the_periods_that_pass_during_its_read_once)
{
	const bool delay = variant->flags & TWHEEL_ARM_FIXED_DELAY;
	int fd = self->holding.fd;

	ASSERT_EQ(0, tw_advance(fd, 55 * TW_MS));
	reader_ends(_metadata, self, PERIODIC);
	/* An event is copied and taken in one step: it has all periods until then. */
	EXPECT_EQ(PERIODIC * (delay ? 1 : variant->repeats ?: 5), self->expirations);
	ASSERT_EQ(0, tw_advance(fd, 65 * TW_MS));
	expect_sums(_metadata, self, 0);
	/* If the delay is fixed, it begins when the event was read. */
	EXPECT_EQ(PERIODIC * (delay ? 2 : variant->repeats ?: 6), self->expirations);
	EXPECT_EQ(!!variant->repeats, self->ended[0]);
}

/* G4: if a timeout would go on after the read, and DRAIN comes before that, it is not lost. */
TEST_F(reader, a_reader_gets_each_last_event_when_drain_comes_in_between)
{
	int i, fd = self->holding.fd;

	ASSERT_EQ(0, tw_drain(fd));
	reader_ends(_metadata, self, PERIODIC);
	expect_sums(_metadata, self, 0);
	for (i = 0; i < PERIODIC; i++)
		EXPECT_TRUE(self->ended[i]);
	EXPECT_EQ(PERIODIC, self->delivered);
	EXPECT_EQ(PERIODIC, self->drained);
	EXPECT_EQ(POLLHUP, tw_poll(fd, POLLIN | POLLOUT, 0));
}

TEST_F(reader, a_reader_gets_the_periods_until_a_drain_once)
{
	int fd = self->holding.fd;

	ASSERT_EQ(0, tw_advance(fd, 35 * TW_MS));
	ASSERT_EQ(0, tw_drain(fd));
	reader_ends(_metadata, self, PERIODIC);
	expect_sums(_metadata, self, 0);
	EXPECT_EQ(PERIODIC, self->delivered);
	EXPECT_EQ(POLLHUP, tw_poll(fd, POLLIN | POLLOUT, 0));
}

TEST_F(reader, a_reader_does_not_get_an_event_that_is_revoked_meanwhile)
{
	int i, fd = self->holding.fd;

	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(fd, self->arms[1].id));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(fd, self->arms[3].id, 0, TW_HOUR, 0));
	self->ended[1] = true;
	self->ended[3] = true;
	reader_ends(_metadata, self, PERIODIC - 2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-EAGAIN, tw_read(fd, self->events, PERIODIC));
	expect_sums(_metadata, self, variant->flags & TWHEEL_ARM_FIXED_DELAY ? 2 : 4);
}

/* Otherwise a call with a large buffer might never end. */
struct arm_call {
	int fd;
	struct twheel_vector *vector;
	int ret;
};

static void *arm_fast(void *arg)
{
	struct arm_call *call = arg;

	call->ret = tw_ioctl(call->fd, TWHEEL_IOC_ARM, call->vector);
	return NULL;
}

/* Only in this case does a call fail although it has done something. */
TEST_F(holding, arm_whose_vector_cannot_be_written_any_more_says_efault)
{
	struct arm_call call = { .fd = self->fd };
	struct twheel_arm arms[BATCH] = {}, *at;
	struct twheel_info info;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	for (i = 0; i < BATCH; i++)
		arms[i].expires_ns = TW_HOUR;
	at = held_lay(&self->memory, arms, sizeof(arms), 10 * sizeof(arms[0]));
	ASSERT_NE(NULL, at);
	call.vector = mmap(NULL, self->memory.page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)call.vector);
	*call.vector = (struct twheel_vector){
		.size = sizeof(*call.vector), .entry_size = sizeof(arms[0]), .nr = BATCH,
		.entries = (uintptr_t)at,
	};
	ASSERT_EQ(0, pthread_create(&thread, NULL, arm_fast, &call));
	ASSERT_EQ(0, held_wait(&self->memory));
	ASSERT_EQ(0, mprotect(call.vector, self->memory.page, PROT_READ));
	ASSERT_EQ(0, mprotect(self->memory.edge, self->memory.page, PROT_NONE));
	ASSERT_EQ(0, held_release(&self->memory));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-EFAULT, call.ret);
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(TWHEEL_CREATED, at[i].result);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(10, info.live);
	munmap(call.vector, self->memory.page);
}

TEST_F(holding, read_takes_no_more_events_than_there_were)
{
	struct twheel_event events[8] = {};
	int i;
	__u64 id;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, tw_arm_at(self->fd, (i < 3 ? 10 : 30) * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	hold(_metadata, self, HELD_READ, events, sizeof(events[0]), 8, 2);
	ASSERT_EQ(0, tw_advance(self->fd, 40 * TW_MS));
	EXPECT_EQ(3 * (int)sizeof(events[0]), let_go(_metadata, self, events));
	EXPECT_EQ(1, tw_read(self->fd, events, 8));
	EXPECT_EQ(id, events[0].id);
}

/*
 * If a row was written before a change, it does not show it: the number has to be the one from
 * before the change.
 */
TEST_F(holding, list_reports_the_number_of_changes_at_its_beginning)
{
	struct twheel_status rows[3] = {};
	__u64 ids[3];
	int i;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &ids[i]));
	hold(_metadata, self, TWHEEL_IOC_LIST, rows, sizeof(rows[0]), 3, 1);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, ids[0], 0, TW_HOUR, 0));
	EXPECT_EQ(3, let_go(_metadata, self, rows));
	EXPECT_EQ(TW_MS, rows[0].deadline_ns);
	EXPECT_EQ(3, self->call.list.changes);
}

/* ---- the last close ------------------------------------------------------------ */

/* The wheel exists until the call is over, and no longer. */
TEST_F(holding, last_close_waits_for_the_call)
{
	const struct {
		unsigned long cmd;
		__u32 size;
	} calls[] = {
		{ TWHEEL_IOC_ARM, sizeof(struct twheel_arm) },
		{ TWHEEL_IOC_REARM, sizeof(struct twheel_arm) },
		{ TWHEEL_IOC_CANCEL, sizeof(struct twheel_cancel) },
		{ TWHEEL_IOC_QUERY, sizeof(struct twheel_status) },
		{ TWHEEL_IOC_LIST, sizeof(struct twheel_status) },
		{ HELD_READ, sizeof(struct twheel_event) },
	};
	union {
		struct twheel_arm arm;
		struct twheel_status status;
	} entry;
	int i, nr_open;
	__u64 id;

	close(self->fd);
	nr_open = tw_wheels_open();
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		memset(&entry, 0, sizeof(entry));
		self->fd = tw_virtual(O_NONBLOCK, TW_MS);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
		ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
		if (calls[i].cmd == TWHEEL_IOC_REARM)
			entry.arm.id = id;
		else if (calls[i].cmd != TWHEEL_IOC_ARM)
			entry.status.id = id;
		hold(_metadata, self, calls[i].cmd, &entry, calls[i].size, 1, 0);
		close(self->fd);
		self->fd = -1;
		EXPECT_EQ(nr_open + 1, tw_wheels_open());
		EXPECT_EQ(calls[i].cmd == HELD_READ ? (int)calls[i].size : 1,
			  let_go(_metadata, self, &entry))
			TH_LOG("call %d", i);
		EXPECT_EQ(nr_open, tw_wait_wheels_open(nr_open));
	}
}

TEST_HARNESS_MAIN
