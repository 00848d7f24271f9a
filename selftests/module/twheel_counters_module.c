// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of the module in sysfs, its users in debugfs, and the log of a user who is refused
 * memory.
 *
 * The program loads the module itself, so that all counters are 0 in the beginning; TWHEEL_KO names
 * the file.
 */
#include "twheel_keyed.h"
#include "twheel_module.h"
#include "twheel_outside.h"

#include <sys/mman.h>

#define COUNTERS	"/sys/class/misc/twheel/counters"
#define USERS		"/sys/kernel/debug/twheel/users"
#define OTHER_UID	12345
#define MANY_WHEELS	100

/* Limits so small that a test reaches each. */
#define LIMITED		"max_memory_kb=512 max_user_memory_kb=256"

FIXTURE(counters) {
	int fd;
	int log;
};

FIXTURE_SETUP(counters)
{
	/* If a test failed, it has left the module. */
	tw_unload_soon();
	ASSERT_EQ(0, tw_load_and_wait(LIMITED));
	self->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->log);
	ASSERT_LE(0, lseek(self->log, 0, SEEK_END));
	self->fd = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, 100);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(counters)
{
	close(self->fd);
	close(self->log);
	EXPECT_EQ(0, tw_unload_soon());
}

/* Return the value of a counter: -errno if it cannot be read, TW_BROKEN if the file has more. */
static long counter(const char *name)
{
	char path[128], end;
	long value;
	FILE *file;

	snprintf(path, sizeof(path), COUNTERS "/%s", name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (fscanf(file, "%ld%c", &value, &end) != 2 || end != '\n' || fgetc(file) != EOF)
		value = TW_BROKEN;
	fclose(file);
	return value;
}

/* Find the line of a user: return 0, or -ENOENT if there is none. */
static int user_line(unsigned int uid, long *wheels, long *bytes)
{
	FILE *file = fopen(USERS, "re");
	int err = -ENOENT;
	unsigned int this;
	char line[128];

	if (!file)
		return -errno;
	if (!fgets(line, sizeof(line), file) || strcmp(line, "uid userns wheels bytes\n"))
		err = TW_BROKEN;
	while (err == -ENOENT && fgets(line, sizeof(line), file))
		if (sscanf(line, "%u %*u %ld %ld\n", &this, wheels, bytes) == 3 && this == uid)
			err = 0;
	fclose(file);
	return err;
}

/* Return how many new lines of the module are in the log; the last one is put into @text. */
static int log_lines(int log, char *text, size_t size)
{
	char record[1024], *line;
	int nr = 0;
	ssize_t n;

	while ((n = read(log, record, sizeof(record) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		record[n < 0 ? 0 : n] = '\0';
		line = strstr(record, ";twheel: ");
		if (!line)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(text, size, "%s", line + 1);
		nr++;
	}
	return nr;
}

TEST_F(counters, wheels_counts_the_open_wheels)
{
	int again, other;

	EXPECT_EQ(1, counter("wheels"));
	other = tw_open(O_CLOEXEC);
	ASSERT_LE(0, other);
	EXPECT_EQ(2, counter("wheels"));
	/* If a wheel has one more open file, that is no other wheel. */
	again = tw_reopen(other, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, again);
	EXPECT_EQ(2, counter("wheels"));
	close(other);
	EXPECT_EQ(2, counter("wheels"));
	close(again);
	EXPECT_EQ(1, counter("wheels"));
}

TEST_F(counters, timeouts_counts_the_live_ones_of_all_wheels)
{
	struct twheel_event event;
	int i, other = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, 100);
	__u64 ids[10];

	ASSERT_LE(0, other);
	EXPECT_EQ(0, counter("timeouts"));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, tw_arm_in(i < 4 ? other : self->fd, TW_MS, &ids[i]));
	}
	EXPECT_EQ(10, counter("timeouts"));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(other, ids[0]));
	EXPECT_EQ(9, counter("timeouts"));
	/* An unread event counts as a timeout. */
	ASSERT_EQ(0, tw_advance(other, TW_MS));
	EXPECT_EQ(9, counter("timeouts"));
	ASSERT_EQ(1, tw_read(other, &event, 1));
	EXPECT_EQ(8, counter("timeouts"));
	close(other);
	EXPECT_EQ(6, counter("timeouts"));
}

TEST_F(counters, bytes_is_the_sum_of_those_in_fdinfo_and_of_those_of_users)
{
	long wheels, before = counter("bytes"), bytes, user_bytes;
	int other;

	ASSERT_EQ(0, user_line(0, &wheels, &user_bytes));
	EXPECT_EQ(1, wheels);
	EXPECT_EQ(before, user_bytes);
	other = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, 100);
	ASSERT_LE(0, other);
	bytes = tw_fdinfo_number(other, "bytes");
	EXPECT_LT(4096, bytes);
	EXPECT_EQ(before + bytes, counter("bytes"));
	close(other);
	EXPECT_TRUE(TW_WAIT_FOR(counter("bytes") == before, TW_MS));
}

TEST_F(counters, users_have_a_line_each_as_long_as_they_have_a_wheel)
{
	long wheels, bytes, all;
	int other;

	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	EXPECT_EQ(-ENOENT, user_line(OTHER_UID, &wheels, &bytes));
	ASSERT_EQ(0, setresuid(OTHER_UID, 0, 0));
	other = tw_open(O_CLOEXEC);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_EQ(0, user_line(OTHER_UID, &wheels, &bytes));
	EXPECT_EQ(1, wheels);
	all = bytes;
	ASSERT_EQ(0, user_line(0, &wheels, &bytes));
	EXPECT_EQ(1, wheels);
	EXPECT_EQ(counter("bytes"), all + bytes);
	close(other);
	EXPECT_EQ(-ENOENT, user_line(OTHER_UID, &wheels, &bytes));
}

/* If users could read a counter, they would see when others use their wheels. */
TEST_F(counters, user_without_root_sees_neither_users_nor_counters)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		struct dirent *entry;
		int seen = 0;
		DIR *dir;

		if (setgid(OTHER_UID) || setuid(OTHER_UID))
			_exit(1);
		dir = opendir(COUNTERS);
		if (!dir)
			_exit(2);
		while ((entry = readdir(dir))) {
			if (entry->d_name[0] == '.')
				continue;
			if (counter(entry->d_name) != -EACCES)
				_exit(3);
			seen++;
		}
		if (!seen || !access(USERS, R_OK))
			_exit(4);
		_exit(0);
	}
	EXPECT_EQ(0, tw_reap(pid));
}

TEST_F(counters, passes_are_counted_by_the_thread_that_makes_them)
{
	long kthread, softirq = counter("passes_softirq");
	struct twheel_event event;
	int real = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &(struct twheel_setup){
		.clock = TWHEEL_CLOCK_MONOTONIC,
	});
	__u64 id;

	ASSERT_LE(0, real);
	EXPECT_EQ(0, counter("passes_call"));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(1, counter("passes_call"));
	kthread = counter("passes_kthread");
	ASSERT_EQ(0, tw_arm_in(real, TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(real, &event, TW_PATIENCE_MS));
	EXPECT_LT(softirq + kthread, counter("passes_softirq") + counter("passes_kthread"));
	if (tw_kernel_is_rt())
		EXPECT_EQ(0, counter("passes_softirq"));
	EXPECT_EQ(1, counter("passes_call"));
	close(real);
}

TEST_F(counters, late_counts_the_late_timeouts_of_all_wheels)
{
	struct twheel_info info = { .size = sizeof(info) };
	int i, other = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, 100);
	__u64 id;

	ASSERT_LE(0, other);
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, tw_arm_in(i < 2 ? other : self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(0, counter("late"));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_EQ(0, tw_advance(other, TW_SEC));
	EXPECT_EQ(3, counter("late"));
	ASSERT_EQ(0, tw_ioctl(other, TWHEEL_IOC_INFO, &info));
	EXPECT_EQ(2, info.late);
	close(other);
	EXPECT_EQ(3, counter("late"));
}

TEST_F(counters, max_pending_refuses_timeouts_one_by_one)
{
	struct twheel_arm arms[110] = {}, arm, *fresh;
	char text[256];
	int i, keyed;

	for (i = 0; i < 110; i++)
		arms[i].expires_ns = TW_HOUR;
	ASSERT_EQ(100, tw_arm_vec(self->fd, arms, 110));
	EXPECT_EQ(10, counter("refused_pending"));
	/* If an element is malformed, it needs no place. */
	for (i = 0; i < 110; i++)
		arms[i].flags = 1U << 31;
	ASSERT_EQ(0, tw_arm_vec(self->fd, arms, 110));
	EXPECT_EQ(10, counter("refused_pending"));
	keyed = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &(struct twheel_setup){
		.clock = TWHEEL_CLOCK_VIRTUAL, .flags = TWHEEL_SETUP_KEYED, .max_pending = 1,
	});
	ASSERT_LE(0, keyed);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(keyed, 1, TW_HOUR, 0, &arm));
	EXPECT_EQ(-EAGAIN, key_arm_at(keyed, 2, TW_HOUR, 0, &arm));
	EXPECT_EQ(11, counter("refused_pending"));
	/* Its result cannot be written before a fault is served. */
	fresh = mmap(NULL, sizeof(*fresh), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)fresh);
	EXPECT_EQ(0, tw_vector(keyed, TWHEEL_IOC_ARM, fresh, sizeof(*fresh), 1));
	EXPECT_EQ(-EAGAIN, fresh->result);
	EXPECT_EQ(12, counter("refused_pending"));
	EXPECT_EQ(0, counter("refused_user_memory") + counter("refused_memory"));
	/* An element that is refused is reported to the program only. */
	EXPECT_EQ(0, log_lines(self->log, text, sizeof(text)));
	close(keyed);
}

/* Arm until the limit of this user's memory is reached. */
static void fill(struct __test_metadata *_metadata, int *fd)
{
	int err;
	__u64 id;

	*fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_LE(0, *fd);
	while (!(err = tw_arm_in(*fd, TW_HOUR, &id)))
		;
	EXPECT_EQ(-ENOSPC, err);
}

/* Open wheels until there is no memory for one: a negative number ends their list. */
static void use_up(struct __test_metadata *_metadata, int fds[MANY_WHEELS])
{
	int i = 0;

	while ((fds[i] = tw_open(O_CLOEXEC)) >= 0)
		ASSERT_GT(MANY_WHEELS, ++i);
	EXPECT_EQ(-ENOSPC, fds[i]);
}

TEST_F(counters, refused_memory_is_one_line_in_the_log_for_a_user_and_names_the_parameter)
{
	char text[256] = "";
	int i, full;
	__u64 id;

	fill(_metadata, &full);
	EXPECT_EQ(1, counter("refused_user_memory"));
	EXPECT_EQ(1, log_lines(self->log, text, sizeof(text)));
	EXPECT_STREQ("twheel: user 0 is refused memory by max_user_memory_kb, which is 256", text);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(-ENOSPC, tw_arm_in(full, TW_HOUR, &id));
	}
	EXPECT_EQ(1001, counter("refused_user_memory"));
	/* If a wheel is closed that was the user's last one, the user goes, too. */
	close(full);
	fill(_metadata, &full);
	EXPECT_EQ(1002, counter("refused_user_memory"));
	EXPECT_EQ(0, log_lines(self->log, text, sizeof(text)));
	EXPECT_EQ(0, counter("refused_memory"));
	close(full);
}

TEST_F(counters, log_has_a_line_for_each_user_and_each_limit)
{
	char text[256] = "";
	int i, full, other, rest[MANY_WHEELS];

	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	fill(_metadata, &full);
	EXPECT_EQ(1, log_lines(self->log, text, sizeof(text)));
	ASSERT_EQ(0, setresuid(OTHER_UID, 0, 0));
	fill(_metadata, &other);
	ASSERT_EQ(1, log_lines(self->log, text, sizeof(text)));
	EXPECT_STREQ("twheel: user 12345 is refused memory by max_user_memory_kb, which is 256",
		     text);
	ASSERT_EQ(0, setresuid(OTHER_UID + 1, 0, 0));
	use_up(_metadata, rest);
	ASSERT_EQ(1, log_lines(self->log, text, sizeof(text)));
	EXPECT_STREQ("twheel: user 12346 is refused memory by max_memory_kb, which is 512", text);
	EXPECT_EQ(1, counter("refused_memory"));
	ASSERT_EQ(0, setresuid(0, 0, 0));
	for (i = 0; rest[i] >= 0; i++)
		close(rest[i]);
	close(full);
	close(other);
}

/* If many users are refused, the log has lines of only some of them. */
TEST_F(counters, many_refused_users_do_not_flood_the_log)
{
	char text[256];
	int i, full, other, rest[MANY_WHEELS];

	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	fill(_metadata, &full);
	ASSERT_EQ(0, setresuid(OTHER_UID, 0, 0));
	fill(_metadata, &other);
	ASSERT_EQ(0, setresuid(OTHER_UID + 1, 0, 0));
	use_up(_metadata, rest);
	for (i = 2; i <= 1000; i++) {
		ASSERT_EQ(0, setresuid(OTHER_UID + i, 0, 0));
		EXPECT_EQ(-ENOSPC, tw_open(O_CLOEXEC));
	}
	ASSERT_EQ(0, setresuid(0, 0, 0));
	EXPECT_GE(32, log_lines(self->log, text, sizeof(text)));
	EXPECT_EQ(1000, counter("refused_memory"));
	for (i = 0; rest[i] >= 0; i++)
		close(rest[i]);
	close(full);
	close(other);
}

TEST_HARNESS_MAIN
