// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints: each event comes once for each timeout, with all fields that
 * Documentation/operating.rst lists, whichever path the timeout takes; and no call does anything
 * else while it is traced.
 *
 * Other events may be on, too; the tests ignore them.
 */
#include "twheel_keyed.h"
#include "twheel_outside.h"

#define EVENTS		TW_TRACING "/events/twheel"
#define NAME		"traced"
#define MANY		100

FIXTURE(trace) {
	int fd;
	__u64 wheel;
	FILE *trace;
};

static int open_named(__u32 clock, __u32 flags, __u32 max_pending)
{
	const struct twheel_setup setup = {
		.clock = clock, .tick_ns = TW_MS, .flags = flags, .max_pending = max_pending,
		.name = NAME,
	};

	return tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
}

/* Forget the traced events, and go on. */
static void start(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, tw_write_text(TW_TRACING "/trace", ""));
	ASSERT_EQ(0, tw_write_text(TW_TRACING "/tracing_on", "1"));
}

FIXTURE_SETUP(trace)
{
	if (access(EVENTS, F_OK))
		SKIP(return, "no tracepoints on this kernel");
	self->fd = open_named(TWHEEL_CLOCK_VIRTUAL, 0, 2 * MANY);
	ASSERT_LE(0, self->fd);
	ASSERT_LT(0, tw_fdinfo_number(self->fd, "wheel"));
	self->wheel = tw_fdinfo_number(self->fd, "wheel");
	ASSERT_EQ(0, tw_write_text(EVENTS "/enable", "1"));
	start(_metadata);
}

FIXTURE_TEARDOWN(trace)
{
	tw_write_text(EVENTS "/enable", "0");
	if (self->trace)
		fclose(self->trace);
	close(self->fd);
}

/* Stop, and begin to read the traced events. */
static void stop(struct __test_metadata *_metadata, FIXTURE_DATA(trace) *self)
{
	self->trace = tw_trace_stop();
	ASSERT_NE(NULL, self->trace);
}

/* The next event other than those of a kind: its name and fields. Empty if there is none. */
static const char *next_event(FIXTURE_DATA(trace) *self, const char *but)
{
	static char line[512];
	char *event;

	while (fgets(line, sizeof(line), self->trace)) {
		event = strstr(line, ": twheel_");
		if (line[0] == '#' || !event || (but && !strncmp(event + 2, but, strlen(but))))
			continue;
		line[strcspn(line, "\n")] = '\0';
		return event + 2;
	}
	return "";
}

/* Return how many events of this kind the rest has. */
static int count_events(FIXTURE_DATA(trace) *self, const char *kind)
{
	const char *event;
	int nr = 0;

	while (*(event = next_event(self, NULL)))
		nr += !strncmp(event, kind, strlen(kind));
	return nr;
}

#define EXPECT_EVENT(but, kind, format, ...)							\
do {												\
	char _expected[512];									\
												\
	snprintf(_expected, sizeof(_expected), "twheel_" kind ": wheel=%llu name=" NAME " " format,\
		 self->wheel, ##__VA_ARGS__);							\
	EXPECT_STREQ(_expected, next_event(self, but));						\
} while (0)

TEST_F(trace, arm_move_and_cancel_are_traced_with_their_times)
{
	struct twheel_arm arms[2] = {
		{ .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = TW_SEC, .user_data = 0xab },
		{ .expires_ns = TW_MIN, .interval_ns = TW_HOUR, .user_data = 2 },
	};

	ASSERT_EQ(2, tw_arm_vec(self->fd, arms, 2));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, arms[0].id, TWHEEL_ARM_ABSOLUTE,
						2 * TW_SEC, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, arms[1].id, 0, TW_MS, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, arms[0].id));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, arms[0].id));
	stop(_metadata, self);
	EXPECT_EVENT(NULL, "arm", "id=0x%llx user_data=0xab deadline_ns=%llu interval_ns=0",
		     arms[0].id, TW_SEC);
	EXPECT_EVENT(NULL, "arm", "id=0x%llx user_data=0x2 deadline_ns=%llu interval_ns=%llu",
		     arms[1].id, TW_MIN, TW_HOUR);
	EXPECT_EVENT(NULL, "move", "id=0x%llx user_data=0xab deadline_ns=%llu interval_ns=0 was_deadline_ns=%llu was_unread=0",
		     arms[0].id, 2 * TW_SEC, TW_SEC);
	EXPECT_EVENT(NULL, "move", "id=0x%llx user_data=0x2 deadline_ns=%llu interval_ns=0 was_deadline_ns=%llu was_unread=0",
		     arms[1].id, TW_MS, TW_MIN);
	EXPECT_EVENT(NULL, "cancel", "id=0x%llx user_data=0xab deadline_ns=%llu was_unread=0",
		     arms[0].id, 2 * TW_SEC);
	EXPECT_STREQ("", next_event(self, NULL));
}

TEST_F(trace, expiry_and_read_are_traced_with_the_lateness_of_each)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 5 * TW_MS - 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 12 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	stop(_metadata, self);
	next_event(self, NULL);
	EXPECT_EVENT("twheel_pass", "expire", "id=0x%llx user_data=0x0 deadline_ns=%llu fired_ns=%llu late_ns=%llu count=1",
		     id, 5 * TW_MS - 1, 12 * TW_MS, 7 * TW_MS);
	EXPECT_EVENT("twheel_pass", "read", "id=0x%llx user_data=0x0 deadline_ns=%llu fired_ns=%llu read_ns=%llu count=1 flags=0x%x",
		     id, 5 * TW_MS - 1, 12 * TW_MS, 20 * TW_MS, TWHEEL_EVENT_ENDED);
	EXPECT_STREQ("", next_event(self, "twheel_pass"));
}

TEST_F(trace, overdue_timeout_is_not_late)
{
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, 12 * TW_MS));
	ASSERT_EQ(0, tw_arm_at(self->fd, 5 * TW_MS, &id));
	stop(_metadata, self);
	EXPECT_EVENT("twheel_pass", "arm", "id=0x%llx user_data=0x0 deadline_ns=%llu interval_ns=0",
		     id, 5 * TW_MS);
	EXPECT_EVENT("twheel_pass", "expire", "id=0x%llx user_data=0x0 deadline_ns=%llu fired_ns=%llu late_ns=0 count=1",
		     id, 5 * TW_MS, 12 * TW_MS);
}

TEST_F(trace, periods_are_counted_in_the_event_of_the_latest)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, 2 * TW_MS, 2 * TW_MS, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 7 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 8 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	stop(_metadata, self);
	next_event(self, NULL);
	EXPECT_EVENT("twheel_pass", "expire", "id=0x%llx user_data=0x0 deadline_ns=%llu fired_ns=%llu late_ns=%llu count=3",
		     id, 6 * TW_MS, 7 * TW_MS, 5 * TW_MS);
	EXPECT_EVENT("twheel_pass", "read", "id=0x%llx user_data=0x0 deadline_ns=%llu fired_ns=%llu read_ns=%llu count=4 flags=0x0",
		     id, 8 * TW_MS, 8 * TW_MS, 8 * TW_MS);
}

TEST_F(trace, unread_timeouts_are_traced_as_such_when_they_are_revoked)
{
	__u64 ids[2];

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &ids[0]));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &ids[1]));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	start(_metadata);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, ids[0], 0, TW_SEC, 0));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, ids[1]));
	stop(_metadata, self);
	EXPECT_EVENT(NULL, "move", "id=0x%llx user_data=0x0 deadline_ns=%llu interval_ns=0 was_deadline_ns=%llu was_unread=1",
		     ids[0], TW_SEC + TW_MS, TW_MS);
	EXPECT_EVENT(NULL, "cancel", "id=0x%llx user_data=0x0 deadline_ns=%llu was_unread=1",
		     ids[1], TW_MS);
}

TEST_F(trace, the_event_of_a_step_says_who_takes_it_and_what_it_found)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_arm_at(self->fd, 2 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	stop(_metadata, self);
	EXPECT_EVENT("twheel_arm", "expire", "id=0x%llx user_data=0x0 deadline_ns=%llu fired_ns=%llu late_ns=0 count=1",
		     id - 1, TW_MS, TW_MS);
	EXPECT_EVENT(NULL, "pass", "by=call now_ns=%llu scanned=1 unread=1 more=0", TW_MS);
}

/*
 * The softirq expires them; if the kernel has PREEMPT_RT, or the softirq leaves some, the kthread
 * does.
 */
TEST_F(trace, on_a_real_clock_the_softirq_or_the_kthread_expires)
{
	unsigned long long deadline_ns = 0, fired_ns = 0, late_ns = 0, read_ns = 0;
	struct twheel_event event;
	bool expired = false;
	const char *line;
	__u64 id;

	close(self->fd);
	self->fd = open_named(TWHEEL_CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm_in(self->fd, 3 * TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	stop(_metadata, self);
	while (*(line = next_event(self, NULL))) {
		const char *times = strstr(line, "deadline_ns=");

		expired |= strstr(line, tw_kernel_is_rt() ? "by=kthread" : "by=softirq") ||
			   strstr(line, "by=kthread");
		if (!strncmp(line, "twheel_expire", 13) && times)
			EXPECT_EQ(3, sscanf(times, "deadline_ns=%llu fired_ns=%llu late_ns=%llu",
					    &deadline_ns, &fired_ns, &late_ns));
		if (!strncmp(line, "twheel_read", 11))
			sscanf(strstr(line, "read_ns="), "read_ns=%llu", &read_ns);
	}
	EXPECT_TRUE(expired);
	EXPECT_EQ(event.deadline_ns, deadline_ns);
	EXPECT_EQ(event.fired_ns, fired_ns);
	EXPECT_EQ(fired_ns - tw_round_up(deadline_ns, TW_MS), late_ns);
	EXPECT_LE(fired_ns, read_ns);
	EXPECT_GE(tw_now(CLOCK_MONOTONIC), read_ns);
}

TEST_F(trace, keyed_arm_is_traced_as_an_arm_or_a_move)
{
	struct twheel_arm first, again;

	close(self->fd);
	self->fd = open_named(TWHEEL_CLOCK_VIRTUAL, TWHEEL_SETUP_KEYED, 0);
	ASSERT_LE(0, self->fd);
	self->wheel = tw_fdinfo_number(self->fd, "wheel");
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, 7, TW_SEC, 0, &first));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm_at(self->fd, 7, TW_MIN, 0, &again));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, 7));
	stop(_metadata, self);
	EXPECT_EVENT("twheel_pass", "arm", "id=0x%llx user_data=0x7 deadline_ns=%llu interval_ns=0",
		     first.id, TW_SEC);
	EXPECT_EVENT("twheel_pass", "move", "id=0x%llx user_data=0x7 deadline_ns=%llu interval_ns=0 was_deadline_ns=%llu was_unread=0",
		     first.id, TW_MIN, TW_SEC);
	EXPECT_EVENT("twheel_pass", "cancel", "id=0x%llx user_data=0x7 deadline_ns=%llu was_unread=0",
		     first.id, TW_MIN);
}

TEST_F(trace, the_event_of_a_limit_says_who_was_refused_what)
{
	struct twheel_arm arms[4] = {};

	close(self->fd);
	self->fd = open_named(TWHEEL_CLOCK_VIRTUAL, 0, 3);
	ASSERT_LE(0, self->fd);
	self->wheel = tw_fdinfo_number(self->fd, "wheel");
	ASSERT_EQ(3, tw_arm_vec(self->fd, arms, 4));
	EXPECT_EQ(-EAGAIN, arms[3].result);
	stop(_metadata, self);
	EXPECT_EVENT(NULL, "limit", "limit=max_pending uid=%u used=3 wanted=1 most=3", getuid());
}

/* Use batches of many timeouts each: the calls do the same, and trace each. */
TEST_F(trace, vectors_are_traced_by_element_and_do_the_same_as_untraced)
{
	static struct twheel_event events[MANY];
	static struct twheel_cancel cancels[MANY / 2];
	static struct twheel_arm arms[MANY];
	int i;

	for (i = 0; i < MANY; i++)
		arms[i] = (struct twheel_arm){ .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = TW_MS,
					       .user_data = i };
	ASSERT_EQ(MANY, tw_arm_vec(self->fd, arms, MANY));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(TWHEEL_CREATED, arms[i].result);
		arms[i].expires_ns = 2 * TW_MS;
	}
	ASSERT_EQ(MANY, tw_rearm_vec(self->fd, arms, MANY));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, arms[i].result);
		if (i < MANY / 2)
			cancels[i].id = arms[i].id;
	}
	ASSERT_EQ(MANY / 2, tw_cancel_vec(self->fd, cancels, MANY / 2));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(MANY / 2, tw_read(self->fd, events, MANY));
	for (i = 0; i < MANY / 2; i++) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, cancels[i].result);
		EXPECT_LE(MANY / 2, events[i].user_data);
		EXPECT_EQ(arms[events[i].user_data].id, events[i].id);
	}
	EXPECT_ACCOUNTS(self->fd);
	stop(_metadata, self);
	EXPECT_EQ(MANY, count_events(self, "twheel_arm"));
	rewind(self->trace);
	EXPECT_EQ(MANY, count_events(self, "twheel_move"));
	rewind(self->trace);
	EXPECT_EQ(MANY / 2, count_events(self, "twheel_cancel"));
	rewind(self->trace);
	EXPECT_EQ(MANY / 2, count_events(self, "twheel_expire"));
	rewind(self->trace);
	EXPECT_EQ(MANY / 2, count_events(self, "twheel_read"));
}

TEST_F(trace, nothing_is_traced_that_is_off)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_write_text(EVENTS "/enable", "0"));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	stop(_metadata, self);
	EXPECT_STREQ("", next_event(self, NULL));
}

/* If an event is on, only its own calls lose their fast path, and it traces nothing else. */
TEST_F(trace, each_event_is_switched_on_by_itself)
{
	static const char * const names[] = { "arm", "move", "cancel", "expire", "read", "pass" };
	struct twheel_event event;
	char path[128], kind[32];
	__u64 ids[2];
	int i;

	ASSERT_EQ(0, tw_write_text(EVENTS "/enable", "0"));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), EVENTS "/twheel_%s/enable", names[i]);
		snprintf(kind, sizeof(kind), "twheel_%s:", names[i]);
		ASSERT_EQ(0, tw_write_text(path, "1"));
		start(_metadata);
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &ids[0]));
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[1]));
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, ids[0], 0, 2 * TW_MS, 0));
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[1]));
		ASSERT_EQ(0, tw_advance(self->fd, (i + 1) * 10 * TW_MS));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		stop(_metadata, self);
		ASSERT_EQ(0, tw_write_text(path, "0"));
		EXPECT_NE(0, count_events(self, kind))
			TH_LOG("%s", names[i]);
		rewind(self->trace);
		EXPECT_STREQ("", next_event(self, kind));
		fclose(self->trace);
		self->trace = NULL;
	}
}

TEST_HARNESS_MAIN
