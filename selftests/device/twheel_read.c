// SPDX-License-Identifier: GPL-2.0
/*
 * read(): whole events only, each exactly once, in the order of ticks; and no event is lost,
 * whatever buffer read() is given and whenever the reader is killed (G4).
 */
#include "twheel_test.h"

#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#define EVENT_BYTES	((ssize_t)sizeof(struct twheel_event))
#define MAX_EVENTS	1024

/*
 * Arm nr timeouts, one a tick of 1 ms from the first tick after now on, with user_data counting
 * from 0. They are due when the clock is at the time returned.
 */
static __u64 arm_row(struct __test_metadata *_metadata, int fd, int nr)
{
	static struct twheel_arm arms[MAX_EVENTS];
	struct twheel_info info;
	int i;

	ASSERT_GE(MAX_EVENTS, nr);
	ASSERT_EQ(0, tw_info(fd, &info));
	for (i = 0; i < nr; i++)
		arms[i] = (struct twheel_arm){
			.expires_ns = (i + 1) * TW_MS,
			.user_data = i,
		};
	ASSERT_EQ(nr, tw_arm_vec(fd, arms, nr));
	return info.now_ns + nr * TW_MS;
}

/* Make nr unread events, with user_data 0 to nr - 1, which are read in this order. */
static void make_events(struct __test_metadata *_metadata, int fd, int nr)
{
	ASSERT_EQ(0, tw_advance(fd, arm_row(_metadata, fd, nr)));
}

/* Expect that the events first to end - 1 of such a row can be read now, and no others. */
static void expect_row(struct __test_metadata *_metadata, int fd, int first, int end)
{
	static struct twheel_event events[MAX_EVENTS];
	int i;

	ASSERT_EQ(end - first, tw_read(fd, events, MAX_EVENTS));
	for (i = first; i < end; i++)
		ASSERT_EQ(i, events[i - first].user_data);
}

/*
 * Return a page that cannot be written, behind one that can.  Both are far from the end of the
 * address space: a kernel may refuse a buffer that ends behind it.
 */
static char *bad_page(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *base = mmap((void *)0x40000000, 2 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED || mprotect(base + page, page, PROT_NONE))
		return NULL;
	memset(base, TW_POISON, page);
	return base + page;
}

FIXTURE(read) {
	int fd;
	char *bad;		/* this page faults; if a buffer ends here, it does not */
};

FIXTURE_SETUP(read)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	self->bad = bad_page();
	ASSERT_NE(NULL, self->bad);
}

FIXTURE_TEARDOWN(read)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(read, a_read_without_an_event_says_eagain)
{
	struct twheel_event event;

	EXPECT_EQ(-EAGAIN, tw_read(self->fd, &event, 1));
}

TEST_F(read, a_buffer_short_of_one_event_says_einval)
{
	char buf[EVENT_BYTES];

	make_events(_metadata, self->fd, 1);
	EXPECT_EQ(-1, read(self->fd, buf, EVENT_BYTES - 1));
	EXPECT_EQ(EINVAL, errno);
	expect_row(_metadata, self->fd, 0, 1);
}

TEST_F(read, a_buffer_of_nothing_says_einval)
{
	char buf[1];

	make_events(_metadata, self->fd, 1);
	EXPECT_EQ(-1, read(self->fd, buf, 0));
	EXPECT_EQ(EINVAL, errno);
	expect_row(_metadata, self->fd, 0, 1);
}

TEST_F(read, a_short_buffer_says_einval_without_an_event_too)
{
	char buf[EVENT_BYTES];

	EXPECT_EQ(-1, read(self->fd, buf, EVENT_BYTES - 1));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(read, only_whole_events_are_written)
{
	struct twheel_event events[3];
	size_t room = 3 * EVENT_BYTES - 1;
	unsigned char *tail = (unsigned char *)&events[2];
	int i;

	make_events(_metadata, self->fd, 3);
	memset(events, TW_POISON, sizeof(events));
	ASSERT_EQ(2 * EVENT_BYTES, read(self->fd, events, room));
	EXPECT_EQ(0, events[0].user_data);
	EXPECT_EQ(1, events[1].user_data);
	for (i = 0; i < EVENT_BYTES; i++)
		ASSERT_EQ(TW_POISON, tail[i]);
	expect_row(_metadata, self->fd, 2, 3);
}

/* A program has to ask for other kinds of events, and for flags that change what it must do. */
TEST_F(read, an_event_has_no_flag_but_those_of_the_header)
{
	const __u32 known = TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED;
	struct twheel_arm arms[] = {
		{ .expires_ns = TW_MS },
		{ .expires_ns = TW_MS, .slack_ticks = 3 },
		{ .expires_ns = TW_MS, .interval_ns = TW_MS },
		{ .expires_ns = TW_MS, .interval_ns = TW_MS, .flags = TWHEEL_ARM_FIXED_DELAY },
		{ .expires_ns = TW_MS, .interval_ns = TW_MS, .repeats = 2 },
		{ .expires_ns = TW_HOUR },
	};
	struct twheel_event events[ARRAY_SIZE(arms)];
	int i, nr, round;

	ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(self->fd, arms, ARRAY_SIZE(arms)));
	for (round = 1; round <= 3; round++) {
		ASSERT_EQ(0, round < 3 ? tw_advance(self->fd, round * 4 * TW_MS) :
					 tw_drain(self->fd));
		nr = tw_read(self->fd, events, ARRAY_SIZE(events));
		ASSERT_LT(0, nr);
		for (i = 0; i < nr; i++) {
			EXPECT_EQ(0, events[i].flags & ~known);
		}
	}
}

TEST_F(read, an_event_has_the_fields_of_its_timeout)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, 3 * TW_MS + 1, 0,
			     0xfedcba9876543210ULL, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(0xfedcba9876543210ULL, event.user_data);
	EXPECT_EQ(3 * TW_MS + 1, event.deadline_ns);
	EXPECT_EQ(4 * TW_MS, event.fired_ns);
	EXPECT_EQ(1, event.count);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
}

TEST_F(read, events_come_in_the_order_of_ticks)
{
	struct twheel_event events[7];
	__u64 seed = 1, last = 0, id;
	int nr, i, left = MAX_EVENTS;

	for (i = 0; i < MAX_EVENTS; i++)
		ASSERT_EQ(0, tw_arm_at(self->fd, tw_random(&seed) % TW_SEC, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	for (; left > 0; left -= nr) {
		nr = tw_read(self->fd, events, ARRAY_SIZE(events));
		ASSERT_LT(0, nr);
		for (i = 0; i < nr; i++) {
			__u64 edge = tw_round_up(events[i].deadline_ns, TW_MS);

			ASSERT_LE(last, edge);
			last = edge;
		}
	}
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(read, an_earlier_event_comes_first_though_left_unread)
{
	struct twheel_event events[5];
	int i;

	make_events(_metadata, self->fd, 2);
	make_events(_metadata, self->fd, 2);
	ASSERT_EQ(4, tw_read(self->fd, events, ARRAY_SIZE(events)));
	for (i = 0; i < 4; i++)
		EXPECT_EQ((i + 1) * TW_MS, events[i].deadline_ns);
}

/* ---- bad buffers --------------------------------------------------------- */

TEST_F(read, a_bad_buffer_says_efault_and_takes_nothing)
{
	make_events(_metadata, self->fd, 3);
	EXPECT_EQ(-1, read(self->fd, self->bad, 3 * EVENT_BYTES));
	EXPECT_EQ(EFAULT, errno);
	expect_row(_metadata, self->fd, 0, 3);
}

TEST_F(read, a_first_event_that_fits_in_part_stays)
{
	make_events(_metadata, self->fd, 3);
	EXPECT_EQ(-1, read(self->fd, self->bad - EVENT_BYTES / 2, 3 * EVENT_BYTES));
	EXPECT_EQ(EFAULT, errno);
	expect_row(_metadata, self->fd, 0, 3);
}

TEST_F(read, a_later_fault_takes_exactly_the_events_before_it)
{
	struct twheel_event *events = (void *)(self->bad - 3 * EVENT_BYTES);
	int i;

	make_events(_metadata, self->fd, 10);
	ASSERT_EQ(3 * EVENT_BYTES, read(self->fd, events, 10 * EVENT_BYTES));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(i, events[i].user_data);
	expect_row(_metadata, self->fd, 3, 10);
}

TEST_F(read, a_fault_within_a_later_event_leaves_that_event)
{
	struct twheel_event *events;
	int i;

	/* Cut the third event at each multiple of 8 bytes. */
	for (i = 8; i < EVENT_BYTES; i += 8) {
		events = (void *)(self->bad - 2 * EVENT_BYTES - i);
		make_events(_metadata, self->fd, 4);
		ASSERT_EQ(2 * EVENT_BYTES, read(self->fd, events, 4 * EVENT_BYTES));
		EXPECT_EQ(0, events[0].user_data);
		EXPECT_EQ(1, events[1].user_data);
		expect_row(_metadata, self->fd, 2, 4);
	}
}

TEST_F(read, an_event_in_a_bad_buffer_counts_as_unread)
{
	struct twheel_info info;

	make_events(_metadata, self->fd, 2);
	ASSERT_EQ(-1, read(self->fd, self->bad, EVENT_BYTES));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.unread);
	EXPECT_EQ(0, info.delivered);
	EXPECT_EQ(0, info.completed);
}

TEST_F(read, a_periodic_event_in_a_bad_buffer_goes_on_counting)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_MS, TW_MS, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(-1, read(self->fd, self->bad, EVENT_BYTES));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(5, event.count);
}

TEST_F(read, an_event_survives_any_series_of_buffers)
{
	struct twheel_event events[8];
	__u64 seed = 2;
	int got = 0;

	make_events(_metadata, self->fd, 500);
	while (got < 500) {
		int room = tw_random(&seed) % 8 + 1;
		char *cut = self->bad - room * EVENT_BYTES - 8;
		int whole = room < 500 - got ? room : 500 - got;

		switch (tw_random(&seed) % 4) {
		case 0:
			ASSERT_EQ(-1, read(self->fd, events, EVENT_BYTES - 1));
			ASSERT_EQ(EINVAL, errno);
			break;
		case 1:
			ASSERT_EQ(-1, read(self->fd, self->bad, sizeof(events)));
			ASSERT_EQ(EFAULT, errno);
			break;
		case 2:
			ASSERT_EQ(whole * EVENT_BYTES, read(self->fd, cut, 4096));
			ASSERT_EQ(got, ((struct twheel_event *)cut)->user_data);
			got += whole;
			break;
		case 3:
			ASSERT_EQ(whole, tw_read(self->fd, events, room));
			ASSERT_EQ(got, events[0].user_data);
			got += whole;
			break;
		}
	}
	EXPECT_NO_EVENT(self->fd);
}

/* ---- other ways to read -------------------------------------------------- */

/* One-shots take another path to the reader than a periodic timeout among them. */
TEST_F(read, one_call_takes_all_kinds_of_events)
{
	static struct twheel_event events[MAX_EVENTS];
	__u64 id, end_ns = arm_row(_metadata, self->fd, 90);
	int i;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, 45 * TW_MS + 1, TW_HOUR, 1000, &id));
	ASSERT_EQ(0, tw_arm_entry(self->fd, &(struct twheel_arm) {
		.expires_ns = 45 * TW_MS + 1, .slack_ticks = 1, .user_data = 1000,
	}));
	ASSERT_EQ(0, tw_advance(self->fd, end_ns));
	ASSERT_EQ(92, tw_read(self->fd, events, MAX_EVENTS));
	for (i = 0; i < 45; i++)
		EXPECT_EQ(i, events[i].user_data);
	/* Their events are of one tick, and so is one of the others. */
	EXPECT_EQ(2045, events[45].user_data + events[46].user_data + events[47].user_data);
	for (i = 46; i < 90; i++)
		EXPECT_EQ(i, events[i + 2].user_data);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

/* All kinds expire in one tick, behind events that are unread; some of them are revoked. */
TEST_F(read, the_rest_of_a_tick_is_read)
{
	enum { FIRST, PERIODIC, SECOND, SLACK, THIRD, LATER, EARLIER, CANCELLED, NR };
	struct twheel_arm arms[NR];
	struct twheel_event events[8];
	int i;

	make_events(_metadata, self->fd, 3);
	for (i = 0; i < NR; i++)
		arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = 16 * TW_MS,
			.interval_ns = i == PERIODIC ? TW_HOUR : 0,
			.slack_ticks = i == SLACK,
			.user_data = 100 + i,
		};
	ASSERT_EQ(NR, tw_arm_vec(self->fd, arms, NR));
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, arms[LATER].id, TWHEEL_ARM_ABSOLUTE,
						TW_HOUR, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, arms[EARLIER].id,
						TWHEEL_ARM_ABSOLUTE, 15 * TW_MS, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, arms[CANCELLED].id));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, arms[SECOND].id));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, arms[FIRST].id));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, arms[THIRD].id));
	ASSERT_EQ(6, tw_read(self->fd, events, 8));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(i, events[i].user_data);
	EXPECT_EQ(100 + EARLIER, events[3].user_data);
	EXPECT_EQ(200 + PERIODIC + SLACK, events[4].user_data + events[5].user_data);
	EXPECT_NE(events[4].user_data, events[5].user_data);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(read, a_buffer_at_any_address_is_fine)
{
	char bytes[8 + 2 * EVENT_BYTES];
	struct twheel_event events[2];
	int i;

	for (i = 1; i < 8; i++) {
		make_events(_metadata, self->fd, 2);
		ASSERT_EQ(2 * EVENT_BYTES, read(self->fd, bytes + i, 2 * EVENT_BYTES));
		memcpy(events, bytes + i, sizeof(events));
		EXPECT_EQ(0, events[0].user_data);
		EXPECT_EQ(1, events[1].user_data);
	}
}

/* There are more events in the page before the bad one than read() copies at once. */
TEST_F(read, a_bad_page_takes_exactly_the_events_before_it)
{
	const int nr = sysconf(_SC_PAGESIZE) / EVENT_BYTES;

	make_events(_metadata, self->fd, nr + 20);
	ASSERT_EQ(nr * EVENT_BYTES,
		  read(self->fd, self->bad - sysconf(_SC_PAGESIZE), (nr + 20) * EVENT_BYTES));
	expect_row(_metadata, self->fd, nr, nr + 20);
}

TEST_F(read, readv_fills_all_pieces)
{
	struct twheel_event a, b[2];
	struct iovec iov[] = { { &a, sizeof(a) }, { b, sizeof(b) } };

	make_events(_metadata, self->fd, 4);
	ASSERT_EQ(3 * EVENT_BYTES, readv(self->fd, iov, ARRAY_SIZE(iov)));
	EXPECT_EQ(0, a.user_data);
	EXPECT_EQ(1, b[0].user_data);
	EXPECT_EQ(2, b[1].user_data);
	expect_row(_metadata, self->fd, 3, 4);
}

TEST_F(read, readv_lays_an_event_across_two_pieces)
{
	char buf[2 * EVENT_BYTES];
	struct iovec iov[] = { { buf, 12 }, { buf + 12, sizeof(buf) - 12 } };
	struct twheel_event events[2];

	make_events(_metadata, self->fd, 2);
	ASSERT_EQ(2 * EVENT_BYTES, readv(self->fd, iov, ARRAY_SIZE(iov)));
	memcpy(events, buf, sizeof(events));
	EXPECT_EQ(TW_MS, events[0].deadline_ns);
	EXPECT_EQ(1, events[1].user_data);
}

TEST_F(read, readv_with_a_bad_piece_takes_the_events_before_it)
{
	struct twheel_event events[2];
	struct iovec iov[] = {
		{ events, sizeof(events) },
		{ self->bad, 2 * EVENT_BYTES },
	};

	make_events(_metadata, self->fd, 4);
	ASSERT_EQ(2 * EVENT_BYTES, readv(self->fd, iov, ARRAY_SIZE(iov)));
	expect_row(_metadata, self->fd, 2, 4);
}

TEST_F(read, pread_says_espipe)
{
	struct twheel_event event;

	make_events(_metadata, self->fd, 1);
	EXPECT_EQ(-1, pread(self->fd, &event, sizeof(event), 0));
	EXPECT_EQ(ESPIPE, errno);
	expect_row(_metadata, self->fd, 0, 1);
}

TEST_F(read, lseek_says_espipe)
{
	EXPECT_EQ(-1, lseek(self->fd, 0, SEEK_CUR));
	EXPECT_EQ(ESPIPE, errno);
}

TEST_F(read, a_buffer_far_larger_than_needed_is_fine)
{
	struct twheel_event *events = (void *)(self->bad - 5 * EVENT_BYTES);

	/* There is nothing to write behind the fifth event. */
	make_events(_metadata, self->fd, 5);
	ASSERT_EQ(5 * EVENT_BYTES, read(self->fd, events, INT_MAX));
	EXPECT_EQ(4, events[4].user_data);
}

/* If an event was read, it is soon unread again: there is always another one. */
TEST_F_TIMEOUT(read, a_read_ends_with_the_events_that_were_unread_when_it_began, 60)
{
	const struct twheel_setup setup = { .tick_ns = 10 * TW_US };
	const int room = 100 * MAX_EVENTS;
	int i, nr, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event *events = calloc(room, sizeof(*events));
	static struct twheel_arm arms[MAX_EVENTS];
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, events);
	for (i = 0; i < MAX_EVENTS; i++) {
		arms[i].expires_ns = 10 * TW_US;
		arms[i].interval_ns = 10 * TW_US;
	}
	ASSERT_EQ(MAX_EVENTS, tw_arm_vec(fd, arms, MAX_EVENTS));
	for (i = 0; i < 5; i++) {
		do {
			tw_sleep(TW_MS);
			ASSERT_EQ(0, tw_info(fd, &info));
		} while (info.unread < MAX_EVENTS);
		nr = tw_read(fd, events, room);
		EXPECT_EQ(MAX_EVENTS, nr);
	}
	free(events);
	close(fd);
}

TEST_F(read, a_reader_killed_in_the_middle_loses_nothing)
{
	const int nr = 20 * MAX_EVENTS;
	volatile struct twheel_event *log;
	struct twheel_event event;
	int i, taken;
	pid_t child;

	for (i = 0; i < nr; i += MAX_EVENTS)
		make_events(_metadata, self->fd, MAX_EVENTS);
	/* The buffer is written first, so that few page faults come between read and kill. */
	log = mmap(NULL, (nr + 1) * EVENT_BYTES, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, log);
	memset((void *)log, TW_POISON, (nr + 1) * EVENT_BYTES);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; read(self->fd, (void *)&log[i], EVENT_BYTES) > 0; i++)
			;
		_exit(0);
	}
	TW_WAIT_FOR(log[100].id != TW_POISON64, TW_MS);
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	/*
	 * If the reader was killed at a fault, there may be zeroes at the place of the next
	 * event.
	 */
	for (taken = 0; log[taken].id && log[taken].id != TW_POISON64; taken++)
		ASSERT_EQ(taken % MAX_EVENTS, log[taken].user_data);
	ASSERT_LT(100, taken);
	TH_LOG("killed after %d of %d events", taken, nr);
	for (; taken < nr; taken++) {
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		ASSERT_EQ(taken % MAX_EVENTS, event.user_data);
	}
	EXPECT_NO_EVENT(self->fd);
}

TEST_HARNESS_MAIN
