// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/PID/fdinfo: one "key:\tvalue" a line, and the same numbers as INFO without its walk.
 */
#include "twheel_namespace.h"

#include <sys/stat.h>

FIXTURE(fdinfo) {
	int fd;
	char text[4096];
};

/* No two of these counters are equal, so that none is taken for another. */
#define PENDING		9	/* beside a periodic one, of which an event was read */
#define UNREAD		2
#define COMPLETED	5
#define CANCELLED	8
#define REVOKED		3
#define LATE		4

static void arm_some(struct __test_metadata *_metadata, int fd, int nr, __u64 deadline_ns,
		     __u64 *ids)
{
	int i;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, tw_arm_at(fd, deadline_ns, &ids[i]));
	}
}

/* A virtual wheel on which each counter that can move has moved. */
FIXTURE_SETUP(fdinfo)
{
	__u64 pending[PENDING], revoked[REVOKED], others[CANCELLED], periodic;
	struct twheel_event events[COMPLETED + 1];
	int i;

	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	arm_some(_metadata, self->fd, COMPLETED, TW_MS, others);
	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_MS, TW_HOUR, 0, &periodic));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(COMPLETED + 1, tw_read(self->fd, events, COMPLETED + 1));
	arm_some(_metadata, self->fd, PENDING, TW_HOUR + 1, pending);
	arm_some(_metadata, self->fd, CANCELLED, TW_HOUR, others);
	for (i = 0; i < CANCELLED; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, others[i]));
	}
	arm_some(_metadata, self->fd, UNREAD, 2 * TW_MS + 1, others);
	arm_some(_metadata, self->fd, LATE - UNREAD, 2 * TW_MS + 1, revoked);
	arm_some(_metadata, self->fd, REVOKED - (LATE - UNREAD), 4 * TW_MS,
		 revoked + (LATE - UNREAD));
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	for (i = 0; i < REVOKED; i++) {
		ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, revoked[i]));
	}
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, pending[0], 0, TW_DAY + 1, 0));
}

FIXTURE_TEARDOWN(fdinfo)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Read all of it as a string; return its length, or -errno. */
static int read_fdinfo_of(pid_t pid, int fd, char *text, size_t size)
{
	char path[64];
	ssize_t len;
	int info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -errno;
	len = read(info, text, size - 1);
	close(info);
	text[len < 0 ? 0 : len] = '\0';
	return len < 0 ? -EIO : (int)len;
}

static int read_fdinfo(int fd, char *text, size_t size)
{
	return read_fdinfo_of(getpid(), fd, text, size);
}

/* The value of a key as text; NULL if there is no line for it. */
static const char *value_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, key, len) && !strncmp(text + len, ":\t", 2))
			return text + len + 2;
	}
	return NULL;
}

TEST_F(fdinfo, every_line_is_a_key_and_a_value)
{
	char *line, *rest = self->text;

	ASSERT_LT(0, read_fdinfo(self->fd, self->text, sizeof(self->text)));
	while ((line = strsep(&rest, "\n"))) {
		char *tab = strstr(line, ":\t");

		if (!*line)
			continue;
		ASSERT_NE(NULL, tab)
			TH_LOG("%s", line);
		EXPECT_LT(0, tab - line);
		/* This wheel has no name. */
		EXPECT_EQ(!strncmp(line, "name:", 5), !tab[2])
			TH_LOG("%s", line);
	}
}

/* The line of a key has these numbers. */
static void expect_ticks(struct __test_metadata *_metadata, const char *text, const char *key,
			 const __u64 ticks[TWHEEL_LATE_TICKS])
{
	const char *value = value_of(text, key);
	int k;

	ASSERT_NE(NULL, value)
		TH_LOG("%s", key);
	for (k = 0; k < TWHEEL_LATE_TICKS; k++) {
		EXPECT_EQ(ticks[k], strtoull(value, (char **)&value, 10))
			TH_LOG("%s, %d", key, k);
		EXPECT_EQ(k == TWHEEL_LATE_TICKS - 1 ? '\n' : ' ', *value);
	}
}

TEST_F(fdinfo, fdinfo_shows_the_numbers_of_info)
{
	const int first = 10;	/* value of the first counter */
	struct twheel_info i = { .size = sizeof(i) };
	int k, other;

	ASSERT_LT(0, read_fdinfo(self->fd, self->text, sizeof(self->text)));
	ASSERT_EQ(0, tw_ioctl(self->fd, TWHEEL_IOC_INFO, &i));

	const struct {
		const char *key;
		__u64 value;
	} numbers[] = {
		{ "tick_ns", i.tick_ns }, { "slots", i.slots },
		{ "now_ns", i.now_ns }, { "max_pending", i.max_pending },
		{ "setup_flags", i.setup_flags }, { "event_size", i.event_size },
		{ "alarm_ns", i.alarm_ns },
		{ "slack_ns", i.slack_ns }, { "last_late_ns", i.last_late_ns },
		{ "last_late_at_ns", i.last_late_at_ns },
		{ "armed", i.armed }, { "pending", i.pending }, { "unread", i.unread },
		{ "live", i.live }, { "expirations", i.expirations },
		{ "delivered", i.delivered }, { "completed", i.completed },
		{ "cancelled", i.cancelled }, { "revoked", i.revoked },
		{ "drained", i.drained }, { "rearmed", i.rearmed },
		{ "changes", i.changes }, { "late", i.late },
		{ "longest_unread_at_ns", i.longest_unread_at_ns },
	};

	for (k = 0; k < ARRAY_SIZE(numbers); k++) {
		const char *value = value_of(self->text, numbers[k].key);

		ASSERT_NE(NULL, value)
			TH_LOG("%s", numbers[k].key);
		EXPECT_EQ(numbers[k].value, strtoull(value, NULL, 10))
			TH_LOG("%s", numbers[k].key);
		for (other = first; other < k; other++) {
			EXPECT_NE(numbers[other].value, numbers[k].value)
				TH_LOG("%s, %s", numbers[other].key, numbers[k].key);
		}
	}
	EXPECT_EQ(LATE, i.late);
	EXPECT_EQ(COMPLETED + 1, i.late_ticks[0]);
	EXPECT_EQ(UNREAD + REVOKED - LATE, i.late_ticks[1]);
	EXPECT_EQ(LATE, i.late_ticks[2]);
	expect_ticks(_metadata, self->text, "late_ticks", i.late_ticks);
	expect_ticks(_metadata, self->text, "unread_ticks", i.unread_ticks);
}

/* The line of a key is exactly this value. */
static bool has_value(const char *text, const char *key, const char *expected)
{
	const char *value = value_of(text, key);
	size_t len = strlen(expected);

	return value && !strncmp(value, expected, len) && value[len] == '\n';
}

static __u64 bytes_of(struct __test_metadata *_metadata, int fd)
{
	const char *value;
	char text[4096];

	ASSERT_LT(0, read_fdinfo(fd, text, sizeof(text)));
	value = value_of(text, "bytes");
	ASSERT_NE(NULL, value);
	return strtoull(value, NULL, 10);
}

#define CROWD	500

/* G7: if a place is used again, its timeout needs no further memory. */
TEST_F(fdinfo, bytes_do_not_grow_while_timeouts_come_and_go)
{
	static struct twheel_cancel cancels[CROWD];
	static struct twheel_arm arms[CROWD];
	__u64 bytes = 0;
	int i, round;

	for (round = 0; round < 100; round++) {
		for (i = 0; i < CROWD; i++)
			arms[i] = (struct twheel_arm){ .expires_ns = TW_HOUR };
		ASSERT_EQ(CROWD, tw_arm_vec(self->fd, arms, CROWD));
		ASSERT_EQ(0, tw_advance(self->fd, (5 + round) * TW_MS));
		if (!round)
			bytes = bytes_of(_metadata, self->fd);
		for (i = 0; i < CROWD; i++)
			cancels[i].id = arms[i].id;
		ASSERT_EQ(CROWD, tw_cancel_vec(self->fd, cancels, CROWD));
	}
	EXPECT_GT(2 * bytes, bytes_of(_metadata, self->fd));
}

/* The header gives these figures for the nodes of the index, and its buckets. */
TEST_F(fdinfo, bytes_of_a_keyed_wheel_are_20_to_60_more_for_each_timeout)
{
	enum { NR = 20 * CROWD };
	static struct twheel_arm arms[CROWD];
	struct twheel_setup setup = { .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS };
	__u64 bytes[2];
	int i, fd, keyed;

	for (keyed = 0; keyed < 2; keyed++) {
		setup.flags = keyed * TWHEEL_SETUP_KEYED;
		fd = tw_open_setup(O_NONBLOCK, &setup);
		ASSERT_LE(0, fd);
		for (i = 0; i < NR; i++) {
			arms[i % CROWD] = (struct twheel_arm){
				.expires_ns = TW_HOUR, .user_data = i,
			};
			if (i % CROWD == CROWD - 1) {
				ASSERT_EQ(CROWD, tw_arm_vec(fd, arms, CROWD));
			}
		}
		bytes[keyed] = bytes_of(_metadata, fd);
		close(fd);
	}
	EXPECT_LE(20 * NR, bytes[1] - bytes[0]);
	EXPECT_GE(60 * NR, bytes[1] - bytes[0])
		TH_LOG("%.1f bytes", (double)(bytes[1] - bytes[0]) / NR);
}

TEST_F(fdinfo, fdinfo_shows_the_state_and_the_kthread_of_the_wheel)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	const char *value;
	__u64 id, bytes;

	ASSERT_LE(0, fd);
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "state", "new"));
	EXPECT_TRUE(has_value(self->text, "kthread", "none"));
	value = value_of(self->text, "bytes");
	ASSERT_NE(NULL, value);
	bytes = strtoull(value, NULL, 10);
	EXPECT_LT(0, bytes);

	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "state", "running"));
	value = value_of(self->text, "kthread");
	ASSERT_NE(NULL, value);
	EXPECT_EQ(0, strncmp(value, "twheel/", 7));
	value = value_of(self->text, "bytes");
	ASSERT_NE(NULL, value);
	EXPECT_LT(bytes, strtoull(value, NULL, 10));

	ASSERT_EQ(0, tw_drain(fd));
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "state", "drained"));
	ASSERT_ONE_EVENT(fd, &event, id);
	close(fd);

	/* If a wheel never started, it is drained, too. */
	fd = tw_open(O_NONBLOCK);
	ASSERT_EQ(0, tw_drain(fd));
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "state", "drained"));
	EXPECT_TRUE(has_value(self->text, "kthread", "none"));
	close(fd);
}

TEST_F(fdinfo, fdinfo_shows_the_slack_of_the_wheel)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.slack_ns = TWHEEL_SLACK_MAX_NS,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);

	ASSERT_LE(0, fd);
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "slack_ns", "3600000000000"));
	close(fd);
}

TEST_F(fdinfo, fdinfo_shows_a_number_that_no_other_wheel_has)
{
	int i, again = tw_reopen(self->fd, O_RDONLY), other;
	__u64 first, nr;

	ASSERT_LE(0, again);
	ASSERT_LT(0, read_fdinfo(self->fd, self->text, sizeof(self->text)));
	first = strtoull(value_of(self->text, "wheel") ?: "0", NULL, 10);
	EXPECT_NE(0, first);
	/* The lines before it are the kernel's. */
	EXPECT_EQ(0, strncmp(strchr(value_of(self->text, "wheel"), '\n'), "\nname:\t", 7));
	ASSERT_LT(0, read_fdinfo(again, self->text, sizeof(self->text)));
	EXPECT_EQ(first, strtoull(value_of(self->text, "wheel"), NULL, 10));
	close(again);
	/* If a wheel was closed, its number is not used again. REOPEN, too, takes one. */
	first++;
	for (i = 0; i < 3; i++) {
		other = tw_open(O_CLOEXEC);
		ASSERT_LE(0, other);
		ASSERT_LT(0, read_fdinfo(other, self->text, sizeof(self->text)));
		nr = strtoull(value_of(self->text, "wheel"), NULL, 10);
		EXPECT_EQ(first + 1, nr);
		first = nr;
		close(other);
	}
}

TEST_F(fdinfo, fdinfo_names_the_clock)
{
	static const char * const names[] = {
		"monotonic", "boottime", "realtime", "tai", "virtual",
	};
	const char *value;
	__u32 clock;
	int fd;

	for (clock = 0; clock < ARRAY_SIZE(names); clock++) {
		fd = tw_open(O_NONBLOCK);
		ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_MONOTONIC + clock, 0, 0));
		ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
		value = value_of(self->text, "clock");
		ASSERT_NE(NULL, value);
		EXPECT_EQ(0, strncmp(value, names[clock], strlen(names[clock])))
			TH_LOG("clock %u: %.16s", clock, value);
		close(fd);
	}
}

TEST_F(fdinfo, fdinfo_shows_the_configuration)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.flags = TWHEEL_SETUP_ONE_LEVEL | TWHEEL_SETUP_KEYED,
		.event_size = 48,
		.name = "sessions",
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);

	ASSERT_LE(0, fd);
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "name", "sessions"));
	EXPECT_TRUE(has_value(self->text, "setup_flags", "3"));
	EXPECT_TRUE(has_value(self->text, "event_size", "48"));
	close(fd);
}

#define NOBODY_UID	65534
#define NOBODY_TEXT	"65534"

/* The user who opened the wheel is charged for it, whoever has the descriptor now. */
TEST_F(fdinfo, fdinfo_shows_the_user_who_is_charged)
{
	char own[16];
	int fd;

	snprintf(own, sizeof(own), "%u", getuid());
	ASSERT_LT(0, read_fdinfo(self->fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "uid", own));
	if (getuid())
		SKIP(return, "only root can open a wheel as another user");
	ASSERT_EQ(0, setresuid(NOBODY_UID, 0, 0));
	fd = tw_open(O_NONBLOCK);
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_LE(0, fd);
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "uid", NOBODY_TEXT));
	close(fd);
}

/* The number in a link such as "user:[4026531837]"; 0 if there is none. */
static unsigned long namespace_of(pid_t pid)
{
	char path[64], link[64] = "";
	unsigned long nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (readlink(path, link, sizeof(link) - 1) < 0 || sscanf(link, "user:[%lu]", &nr) != 1)
		return 0;
	return nr;
}

static bool has_number(const char *text, const char *key, unsigned long number)
{
	char value[32];

	snprintf(value, sizeof(value), "%lu", number);
	return has_value(text, key, value);
}

#define CONTAINER_FD	100

static bool container_opens(char fd)
{
	return dup2(tw_open(O_NONBLOCK), fd) == fd;
}

/*
 * If root has made a namespace, it counts as a user of its own; if another user has, it counts as
 * that user.
 */
TEST_F(fdinfo, fdinfo_shows_the_container_that_is_charged)
{
	struct tw_container box;
	struct stat device;

	if (getuid())
		SKIP(return, "only root can make a namespace as another user");
	if (!tw_has_user_namespaces())
		SKIP(return, "no user namespaces");
	ASSERT_LT(0, read_fdinfo(self->fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_number(self->text, "userns", namespace_of(getpid())));
	ASSERT_EQ(0, stat(TW_DEVICE, &device));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	ASSERT_EQ(0, tw_container_start(&box, 0, container_opens));
	ASSERT_TRUE(tw_container_step(&box, CONTAINER_FD));
	ASSERT_LT(0, read_fdinfo_of(box.pid, CONTAINER_FD, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_number(self->text, "uid", TW_CONTAINER_UID));
	EXPECT_NE(namespace_of(getpid()), namespace_of(box.pid));
	EXPECT_TRUE(has_number(self->text, "userns", namespace_of(box.pid)));
	EXPECT_EQ(0, tw_container_end(&box));

	ASSERT_EQ(0, tw_container_start(&box, NOBODY_UID, container_opens));
	ASSERT_TRUE(tw_container_step(&box, CONTAINER_FD));
	ASSERT_LT(0, read_fdinfo_of(box.pid, CONTAINER_FD, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_number(self->text, "uid", NOBODY_UID));
	EXPECT_TRUE(has_number(self->text, "userns", namespace_of(getpid())));
	EXPECT_EQ(0, tw_container_end(&box));
	ASSERT_EQ(0, chmod(TW_DEVICE, device.st_mode & 07777));
}

TEST_F(fdinfo, fdinfo_shows_the_time_of_the_alarm)
{
	int fd = tw_open(O_NONBLOCK);
	__u64 id, now_ns, alarm_ns;
	const char *value;

	ASSERT_LE(0, fd);
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	EXPECT_TRUE(has_value(self->text, "alarm_ns", "9223372036854775807"));
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	now_ns = tw_now(CLOCK_MONOTONIC);
	ASSERT_LT(0, read_fdinfo(fd, self->text, sizeof(self->text)));
	value = value_of(self->text, "alarm_ns");
	ASSERT_NE(NULL, value);
	alarm_ns = strtoull(value, NULL, 10);
	EXPECT_LT(now_ns, alarm_ns);
	EXPECT_GT(now_ns + 2 * TW_HOUR, alarm_ns);
	close(fd);
}

TEST_F(fdinfo, reading_fdinfo_changes_nothing)
{
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	ASSERT_LT(0, read_fdinfo(self->fd, self->text, sizeof(self->text)));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_HARNESS_MAIN
