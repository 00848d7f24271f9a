// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_calls.c - every call but those with a vector
 */
#include "fuzz.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* ---- one call ------------------------------------------------------------- */

void call_begin(struct thread *t)
{
	atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
	cover_begin(&t->cover);
}

void call_end(struct thread *t)
{
	int saved = errno;

	cover_end(&t->cover);
	errno = saved;
}

int call_ioctl(struct thread *t, int fd, unsigned long cmd, __u64 arg)
{
	int ret;

	call_begin(t);
	ret = ioctl(fd, cmd, (unsigned long)arg);
	call_end(t);
	return ret < 0 ? -errno : ret;
}

bool answer_is_one_of(int ret, const int *allowed)
{
	for (; *allowed; allowed++)
		if (ret == -*allowed)
			return true;
	return false;
}

void answered(struct thread *t, int ret, const int *allowed, bool refused)
{
	const char *name = op_name(t->step->op);

	if (ret >= 0 && refused)
		wrong(CHECK_ANSWERS, "%s says %d to what it has to refuse (spoil %u)", name, ret,
		      t->step->spoil);
	if (ret < 0 && !answer_is_one_of(ret, allowed))
		wrong(CHECK_ANSWERS, "%s fails with %d", name, -ret);
}

/* ---- choices from the state of a wheel ------------------------------------ */

static clockid_t clock_of(__u32 clock)
{
	switch (clock) {
	case TWHEEL_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TWHEEL_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	case TWHEEL_CLOCK_TAI:
		return CLOCK_TAI;
	default:
		return CLOCK_MONOTONIC;
	}
}

__u64 wheel_now(struct wheel *w)
{
	if (w->clock == TWHEEL_CLOCK_VIRTUAL)
		return w->now_ns;
	return clock_ns(clock_of(w->clock));
}

void wheel_remember(struct wheel *w, __u64 id)
{
	__u32 at = atomic_fetch_add(&w->nr_recent, 1);

	w->recent[at % RECENT] = id;
}

__u64 wheel_some_key(__u64 *seed)
{
	switch (random_below(seed, 16)) {
	case 0:
		return ~0ULL - random_below(seed, 2);
	case 1:
		return random64(seed) >> random_below(seed, 64);
	case 2: case 3:
		return (__u64)random_below(seed, 16) << 32;
	case 4: case 5:
		/* Ids have this form. */
		return (__u64)(1 + random_below(seed, 4)) << 32 | random_below(seed, 64);
	default:
		return random_below(seed, one_in(seed, 2) ? 8 : 200);
	}
}

__u64 wheel_some_id(struct wheel *w, __u64 *seed)
{
	__u32 nr = w->nr_recent;
	/* Most events concern young timeouts. */
	__u32 window = one_in(seed, 4) ? RECENT : 48;
	__u64 id;

	if (!nr)
		return random_below(seed, 2) ? 1ULL << 32 : random32(seed);
	id = w->recent[(nr - 1 - random_below(seed, min(nr, window))) % RECENT];
	switch (random_below(seed, 32)) {
	case 0:		/* another generation */
		return id + ((__u64)(random_below(seed, 5) - 2) << 32);
	case 1:		/* another place */
		return id + random_below(seed, 5) - 2;
	case 2:
		return random64(seed) >> random_below(seed, 64);
	default:
		return id;
	}
}

/* ---- INFO, SETUP, DRAIN, ADVANCE ------------------------------------------ */

static const __u32 other_sizes[15] = {
	0, 4, 8, 15, 16, 17, 32, 40, 159, 161, 200, 4095, 4096, 4097, ~0U
};

static __u32 spoil_size(const struct step *step, __u32 size)
{
	return step->spoil && step->spoil % 3 ? other_sizes[step->spoil % 15] : size;
}

static void run_info(struct thread *t, const struct step *step)
{
	static const int allowed[] = { EFAULT, EINVAL, E2BIG, EBADF, 0 };
	struct place head = place_head(t, step->place, step->seed);
	__u32 size = spoil_size(step, sizeof(struct twheel_info));
	__u32 words[2] = { size, step->seed % 4 };
	int ret;

	memcpy(head.mine, words, sizeof(words));
	ret = call_ioctl(t, fd_of(step->wheel, step->alias), TWHEEL_IOC_INFO, head.user);
	answered(t, ret, allowed, size < sizeof(struct twheel_info) || size > 4096 ||
		 words[1] & ~TWHEEL_INFO_WALK);
}

static struct twheel_setup some_setup(__u64 *seed)
{
	static const __u64 ticks[] = {
		0, NS_PER_MS, NS_PER_MS, 10 * NS_PER_MS, TWHEEL_TICK_MIN_NS,
		100 * NS_PER_US, NS_PER_SEC, TWHEEL_TICK_MAX_NS, 1234567,
		TWHEEL_TICK_MAX_NS + 1, TWHEEL_TICK_MIN_NS - 1, ~0ULL,
	};
	static const __u32 slots[] = {
		0, 4, 5, 8, 64, 256, 1024, 3000, 3, TWHEEL_SLOTS_MAX + 1, ~0U, 1,
	};
	static const __u32 limits[] = {
		0, 1, 2, 33, 64, 500, 5000, 100000, 16777216, 16777217, ~0U
	};
	struct twheel_setup setup = {
		.clock		= TWHEEL_CLOCK_MONOTONIC + random_below(seed, 5),
		.tick_ns	= ticks[random_below(seed, one_in(seed, 4) ? 12 : 9)],
		.slots		= slots[random_below(seed, one_in(seed, 4) ? 12 : 8)],
		.max_pending	= limits[random_below(seed, one_in(seed, 4) ? 11 : 9)],
		.flags		= one_in(seed, 4) ? TWHEEL_SETUP_ONE_LEVEL : 0,
	};

	if (one_in(seed, 256))
		setup.slots = TWHEEL_SLOTS_MAX;
	if (one_in(seed, 3))
		setup.flags |= TWHEEL_SETUP_KEYED;
	if (one_in(seed, 4))
		setup.slack_ns = random32(seed) >> random_below(seed, 32);
	if (one_in(seed, 2))
		memset(setup.name, '#' + random_below(seed, '\\' - '#'),
		       random_below(seed, TWHEEL_NAME_SIZE));
	return setup;
}

/* Whether a round of one level is too short, so that SETUP is refused. */
static bool round_is_short(const struct twheel_setup *setup)
{
	__u64 tick_ns = setup->tick_ns ?: NS_PER_MS, slots = TWHEEL_SLOTS_MIN;

	while (slots < (setup->slots ?: 1024) && slots < TWHEEL_SLOTS_MAX)
		slots *= 2;
	return setup->flags & TWHEEL_SETUP_ONE_LEVEL && tick_ns < TWHEEL_ROUND_MIN_NS / slots;
}

static void run_setup(struct thread *t, const struct step *step)
{
	static const int allowed[] = {
		EFAULT, EINVAL, E2BIG, EBADF, EBUSY, ESHUTDOWN, ENOMEM, ENOSPC, 0
	};
	__u64 seed = step->seed;
	struct twheel_setup setup = some_setup(&seed);
	struct place head = place_head(t, step->place, step->seed);
	struct wheel *w = &wheels[step->wheel];
	bool refused = false;
	int ret;

	setup.size = spoil_size(step, sizeof(setup));
	if (step->spoil && !(step->spoil % 3)) {
		refused = true;
		if (step->spoil % 2)
			setup.slack_ns = TWHEEL_SLACK_MAX_NS + 1;
		else if (one_in(&seed, 4))
			setup.event_size = (40U << random_below(&seed, 16)) + 1 +
					   random_below(&seed, 7);
		else if (one_in(&seed, 4))
			/* Change a byte of the name, or one behind it. */
			setup.name[random_below(&seed, TWHEEL_NAME_SIZE)] =
				one_in(&seed, 2) ? 1 + random_below(&seed, ' ') : 127;
		else
			setup.flags |= 4U << random_below(&seed, 30);
	}
	if (setup.clock == TWHEEL_CLOCK_VIRTUAL && one_in(&seed, 16)) {
		refused = true;
		setup.clock += 1 + (random32(&seed) >> random_below(&seed, 32)) % (~0U - 5);
	}
	refused |= round_is_short(&setup);
	refused |= setup.size < sizeof(setup) || setup.size > 4096;
	memset(head.mine, 0, 4096);
	memcpy(head.mine, &setup, sizeof(setup));
	if (setup.flags & TWHEEL_SETUP_KEYED)
		w->may_be_keyed = true;
	ret = call_ioctl(t, fd_of(step->wheel, step->alias), TWHEEL_IOC_SETUP, head.user);
	answered(t, ret, allowed, refused);
	if (!ret) {
		w->clock = setup.clock;
		w->tick_ns = setup.tick_ns ? setup.tick_ns : NS_PER_MS;
	}
}

static void run_drain(struct thread *t, const struct step *step)
{
	static const int allowed[] = { EBADF, EINVAL, EINTR, 0 };
	__u64 argument = step->spoil % 2 ? step->seed : 0;

	answered(t, call_ioctl(t, fd_of(step->wheel, step->alias), TWHEEL_IOC_DRAIN, argument),
		 allowed, argument);
}

static __u64 some_time(struct wheel *w, const struct step *step)
{
	__u64 seed = step->seed, tick = w->tick_ns, now = w->now_ns;

	switch (step->kind % 16) {
	case 0:
		return now;
	case 1:
		return now - min(now, (__u64)1 + random_below(&seed, 1000));
	case 2:
		return now + (random64(&seed) >> (20 + random_below(&seed, 44)));
	case 3:
		return now + (tick << random_below(&seed, 24)) - 1;
	case 4:
		return now + tick - 1;
	case 5:		/* the end of time, of which there is only one */
		if (one_in(&seed, 32))
			return TWHEEL_TIME_NEVER + random_below(&seed, 3) - 1;
		return ~0ULL - random_below(&seed, 2);
	default:
		return now + random_below(&seed, 8) * tick + random_below(&seed, 2);
	}
}

static void run_advance(struct thread *t, const struct step *step)
{
	static const int allowed[] = {
		EFAULT, EINVAL, E2BIG, EBADF, EOPNOTSUPP, ESHUTDOWN, EINTR, 0
	};
	struct twheel_advance advance = { .size = spoil_size(step, sizeof(advance)) };
	struct place head = place_head(t, step->place, step->seed);
	struct wheel *w = &wheels[step->wheel];
	__u64 now = w->now_ns;
	int ret;

	advance.to_ns = some_time(w, step);
	advance.reserved = step->spoil && !(step->spoil % 3);
	memset(head.mine, 0, 4096);
	memcpy(head.mine, &advance, sizeof(advance));
	ret = call_ioctl(t, fd_of(step->wheel, step->alias), TWHEEL_IOC_ADVANCE, head.user);
	answered(t, ret, allowed, advance.size < sizeof(advance) || advance.size > 4096 ||
		 advance.reserved || advance.to_ns > TWHEEL_TIME_NEVER);
	while (!ret && advance.to_ns > now &&
	       !atomic_compare_exchange_weak(&w->now_ns, &now, advance.to_ns))
		;
}

static void run_unknown(struct thread *t, const struct step *step)
{
	static const int allowed[] = { ENOTTY, EBADF, 0 };
	__u64 seed = step->seed;
	unsigned long cmd = TWHEEL_IOC_INFO + 10 + random_below(&seed, 246);

	switch (step->kind % 4) {
	case 0:		/* a known one, with a size */
		cmd = _IOWR(TWHEEL_IOC_MAGIC, random_below(&seed, 10), struct twheel_info);
		break;
	case 1:
		cmd = (__u32)random32(&seed) | 0x80000000U;
		break;
	}
	answered(t, call_ioctl(t, fd_of(step->wheel, step->alias), cmd, step->seed), allowed, true);
}

/* ---- read ----------------------------------------------------------------- */

static const int read_fails[] = { EAGAIN, EINTR, EINVAL, EFAULT, EBADF, 0 };

/* Check the fields of events that hold whatever other threads did. */
void events_seen(struct thread *t, int wheel, const struct twheel_event *event, size_t nr,
		 bool final)
{
	for (; nr; nr--, event++) {
		const struct record record = {
			.fact		= DELIVERED,
			.wheel		= wheel,
			.id		= event->id,
			.user_data	= event->user_data,
			.count		= event->count,
			.drained	= event->flags & TWHEEL_EVENT_DRAINED,
			.ended		= event->flags & TWHEEL_EVENT_ENDED,
			.final		= final,
		};

		if ((event->flags & ~(TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED)) ||
		    !event->id || (!event->count && !record.drained) ||
		    (record.drained && !record.ended))
			wrong(CHECK_ANSWERS, "event of %#llx: flags %#x count %u", event->id,
			      event->flags, event->count);
		if (event->count && event->fired_ns < event->deadline_ns)
			wrong(CHECK_OUTCOMES, "event of %#llx is early: due %llu, fired %llu",
			      event->id, event->deadline_ns, event->fired_ns);
		if (wheels[wheel].strict)
			ledger_note(&t->ledger, &record);
	}
}

static size_t some_size(const struct step *step)
{
	static const __u16 sizes[] = {
		40, 40, 80, 1280, 1320, 4000, 41, 79, 0, 1, 39, 1283, 40, 120, 2600, 400
	};

	return sizes[step->nr % 16];
}

static void read_done(struct thread *t, const struct step *step, int ret,
		      const struct place *place, size_t size)
{
	size_t each = wheels[step->wheel].event_size, i;
	const unsigned char *mine = (const void *)place->mine;

	/* If a vector has no elements, the read does not reach the device. */
	answered(t, ret, read_fails, size && size < each);
	if (ret <= 0 || place->lossy)
		return;
	if (ret % each || (size_t)ret > size || (size_t)ret > place->writable) {
		wrong(CHECK_ANSWERS, "read of %zu bytes returns %d, %zu can be written", size, ret,
		      place->writable);
		return;
	}
	for (i = 0; i < (size_t)ret; i++) {
		if (i % each == 0)
			events_seen(t, step->wheel, (const void *)(mine + i), 1, false);
		if (i % each >= sizeof(struct twheel_event) && mine[i])
			wrong(CHECK_ANSWERS, "byte %zu of %d that were read is %#x", i, ret,
			      mine[i]);
	}
}

static void run_read(struct thread *t, const struct step *step)
{
	size_t size = some_size(step);
	struct place place = place_choose(t, step->place, step->seed, size,
					  wheels[step->wheel].strict);
	ssize_t ret;

	t->patient = true;
	call_begin(t);
	ret = read(fd_of(step->wheel, step->alias), (void *)(uintptr_t)place.user, size);
	call_end(t);
	t->patient = false;
	read_done(t, step, ret < 0 ? -errno : ret, &place, size);
}

/* The pieces follow each other in memory, so the result is like that of one read. */
static void run_readv(struct thread *t, const struct step *step)
{
	size_t size = some_size(step), left = size;
	struct place place = place_choose(t, step->place, step->seed, size,
					  wheels[step->wheel].strict);
	__u64 seed = step->seed;
	struct iovec piece[8];
	ssize_t ret;
	int i;

	for (i = 0; i < 8; i++) {
		size_t len = i < 7 ? random_below(&seed, left + 1) : left;

		piece[i] = (struct iovec){ (void *)(uintptr_t)(place.user + size - left), len };
		left -= len;
	}
	t->patient = true;
	call_begin(t);
	if (step->kind % 2)
		ret = readv(fd_of(step->wheel, step->alias), piece, 8);
	else
		ret = preadv2(fd_of(step->wheel, step->alias), piece, 8, -1, 0);
	call_end(t);
	t->patient = false;
	read_done(t, step, ret < 0 ? -errno : ret, &place, size);
}

/* ---- poll and epoll ------------------------------------------------------- */

static int some_wait(const struct step *step)
{
	return step->nr < 224 ? 0 : step->nr < 254 ? 1 + step->nr % 4 : -1;
}

static void check_revents(const struct step *step, unsigned int revents)
{
	if (revents & ~(POLLIN | POLLOUT | POLLHUP | POLLNVAL | POLLRDNORM | POLLWRNORM))
		wrong(CHECK_ANSWERS, "poll says %#x", revents);
	if ((revents & POLLHUP) && (revents & POLLOUT))
		wrong(CHECK_ANSWERS, "poll of wheel %u says HUP and OUT", step->wheel);
}

static void run_poll(struct thread *t, const struct step *step)
{
	struct pollfd fds[WHEELS];
	int i, ret, nr = 1 + step->kind % WHEELS;

	for (i = 0; i < nr; i++)
		fds[i] = (struct pollfd){
			.fd = fd_of((step->wheel + i) % WHEELS, step->alias),
			.events = step->seed >> (8 * i) & (POLLIN | POLLOUT),
		};
	t->patient = true;
	call_begin(t);
	ret = poll(fds, nr, some_wait(step));
	call_end(t);
	t->patient = false;
	if (ret < 0 && errno != EINTR)
		wrong(CHECK_ANSWERS, "poll fails with %d", errno);
	for (i = 0; i < nr && ret > 0; i++)
		check_revents(step, fds[i].revents);
}

static void run_epoll_ctl(struct thread *t, const struct step *step)
{
	static const int allowed[] = { EEXIST, ENOENT, EBADF, EINVAL, 0 };
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL };
	static const __u32 modes[] = {
		0, EPOLLET, EPOLLONESHOT, EPOLLET | EPOLLONESHOT, EPOLLEXCLUSIVE
	};
	struct epoll_event event = {
		.events = (step->seed & (EPOLLIN | EPOLLOUT)) | modes[step->nr % 5],
		.data.u32 = step->wheel,
	};
	int ret;

	call_begin(t);
	ret = epoll_ctl(t->epoll, ops[step->kind % 4], fd_of(step->wheel, step->alias), &event);
	call_end(t);
	answered(t, ret < 0 ? -errno : 0, allowed, false);
}

static void run_epoll_wait(struct thread *t, const struct step *step)
{
	struct epoll_event events[4];
	int i, ret;

	t->patient = true;
	call_begin(t);
	ret = epoll_wait(t->epoll, events, 4, some_wait(step));
	call_end(t);
	t->patient = false;
	if (ret < 0 && errno != EINTR)
		wrong(CHECK_ANSWERS, "epoll_wait fails with %d", errno);
	for (i = 0; i < ret; i++)
		check_revents(step, events[i].events);
}

/* ---- descriptors ---------------------------------------------------------- */

static void run_flags(struct thread *t, const struct step *step)
{
	int fd = fd_of(step->wheel, 0);

	call_begin(t);
	/* Mostly set it back to the value that the others expect. */
	fcntl(fd, F_SETFL, O_RDWR | (step->kind % 8 ? O_NONBLOCK : 0));
	call_end(t);
}

/* Some of the flags that say EINVAL. */
#define REOPEN_REFUSES	(O_CREAT | O_EXCL | O_DIRECT | O_DIRECTORY | O_PATH | 1U << 31)

/* Sometimes reopen with another mode, and any flags. */
static void run_dup(struct thread *t, const struct step *step)
{
	static const int allowed[] = { EBADF, EINVAL, EMFILE, ENFILE, ENOMEM, ENOSPC, 0 };
	int to = fd_of(step->wheel, 1 + step->kind % (ALIASES - 1)), fd;
	struct twheel_reopen reopen = {
		.size = sizeof(reopen),
		.flags = step->spoil ? step->seed : step->nr % 4 | O_NONBLOCK | O_CLOEXEC,
		.event_size = step->spoil % 2,
	};

	if (step->spare % 4) {
		call_begin(t);
		dup3(fd_of(step->wheel, 0), to, O_CLOEXEC);
		call_end(t);
		return;
	}
	fd = call_ioctl(t, fd_of(step->wheel, step->alias), TWHEEL_IOC_REOPEN, (uintptr_t)&reopen);
	answered(t, fd, allowed, reopen.event_size || reopen.flags & REOPEN_REFUSES);
	if (fd < 0)
		return;
	dup3(fd, to, O_CLOEXEC);
	close(fd);
}

/* Close a descriptor that others are probably using. */
static void run_close(struct thread *t, const struct step *step)
{
	call_begin(t);
	close(fd_of(step->wheel, 1 + step->kind % (ALIASES - 1)));
	call_end(t);
}

/* Pass a descriptor over a socket, and take it out of it again or not. */
static void run_pass(struct thread *t, const struct step *step)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	int pair[2], fd = fd_of(step->wheel, 0);

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair))
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	call_begin(t);
	if (sendmsg(pair[0], &message, 0) == 1 && step->kind % 2 &&
	    recvmsg(pair[1], &message, 0) == 1 && CMSG_FIRSTHDR(&message)) {
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		/* The descriptor is new, but the wheel is the same. */
		dup3(fd, fd_of(step->wheel, 1 + step->kind % (ALIASES - 1)), O_CLOEXEC);
		close(fd);
	}
	call_end(t);
	close(pair[0]);
	close(pair[1]);
}

/* Close the last descriptor during other calls, and make a new wheel in its place. */
static void run_reopen(struct thread *t, const struct step *step)
{
	struct wheel *w = &wheels[step->wheel];
	int i, fd;

	if (w->strict)
		return;
	call_begin(t);
	for (i = 0; i < ALIASES; i++)
		close(fd_of(step->wheel, i));
	fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		dup3(fd, fd_of(step->wheel, 0), O_CLOEXEC);
		close(fd);
		w->clock = TWHEEL_CLOCK_MONOTONIC;
		w->tick_ns = NS_PER_MS;
		w->now_ns = 0;
	}
	call_end(t);
}

static void run_fdinfo(struct thread *t, const struct step *step)
{
	char path[64], text[1024];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd_of(step->wheel, step->alias));
	call_begin(t);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, text, sizeof(text)) < 0 && errno != ENOENT && errno != EINTR)
			wrong(CHECK_ANSWERS, "fdinfo fails with %d", errno);
		close(fd);
	}
	call_end(t);
}

/* How long a grain is: as INFO says, or any length. */
static __u32 some_shift(struct wheel *w, __u64 *seed)
{
	__u64 tick_ns = w->tick_ns;

	if (!tick_ns || !random_below(seed, 8))
		return random_below(seed, 42);
	return 63 - __builtin_clzll(tick_ns);
}

/* A word for the refresh table: nearly right, or any number. */
static __u64 some_word(struct wheel *w, __u64 id, __u64 *seed)
{
	static const __u64 distances_ns[] = { 0, NS_PER_MS, NS_PER_SEC, NS_PER_DAY };
	__u64 deadline_ns = wheel_now(w) + distances_ns[random_below(seed, 4)];

	switch (random_below(seed, 8)) {
	case 0:
		return random64(seed) >> random_below(seed, 64);
	case 1:
		deadline_ns = ~0ULL >> random_below(seed, 64);
		break;
	}
	return twheel_refresh_deadline(deadline_ns, some_shift(w, seed)) |
	       (id >> 32 & TWHEEL_REFRESH_GEN_MASK);
}

static __thread sigjmp_buf beyond_the_table;

static void on_sigbus(int signal)
{
	siglongjmp(beyond_the_table, signal);
}

static void store_word(__u64 *to, __u64 word)
{
	if (!sigsetjmp(beyond_the_table, 1))
		__atomic_store_n(to, word, __ATOMIC_RELAXED);
}

static void run_mmap(struct thread *t, const struct step *step)
{
	static const int allowed[] = { EBADF, EACCES, EINVAL, ENOMEM, EINTR, ENODEV, 0 };
	size_t size = (1 + step->nr % 16) * 4096UL;
	struct wheel *w = &wheels[step->wheel];
	int i, fd = fd_of(step->wheel, step->alias);
	__u64 *table, seed = step->seed;

	signal(SIGBUS, on_sigbus);
	call_begin(t);
	table = mmap(NULL, size, step->kind % 16 ? PROT_READ | PROT_WRITE : PROT_READ,
		     step->kind % 8 ? MAP_SHARED : MAP_PRIVATE, fd,
		     step->spoil ? step->spoil * 4096UL : 0);
	call_end(t);
	if (table == MAP_FAILED) {
		if (!answer_is_one_of(-errno, allowed))
			wrong(CHECK_ANSWERS, "mmap fails with %d", errno);
		return;
	}
	if (!(step->kind % 8))
		wrong(CHECK_ANSWERS, "a private mmap succeeds");
	if (step->spoil)
		wrong(CHECK_ANSWERS, "a mmap at an offset succeeds");
	for (i = 0; step->kind % 16 && i < 1 + step->kind % 4; i++) {
		__u64 id = wheel_some_id(w, &seed);

		store_word(&table[(__u32)id % (size / sizeof(*table))], some_word(w, id, &seed));
	}
	munmap(table, size);
}

static void run_no_call(struct thread *t, const struct step *step)
{
	int fd = fd_of(step->wheel, 0);
	ssize_t ret;

	call_begin(t);
	ret = step->kind % 4 ? write(fd, &step, 8) : lseek(fd, 8, SEEK_SET);
	if (ret > 0)
		wrong(CHECK_ANSWERS, "write or lseek returns %zd", ret);
	call_end(t);
}

/* ---- events besides calls of the device ----------------------------------- */

/* Set the clock years ahead and back, always within this century. */
static void run_clock(struct thread *t, const struct step *step)
{
	static const __s64 steps_ns[] = {
		NS_PER_MS, NS_PER_SEC, NS_PER_HOUR, NS_PER_DAY, 3650 * NS_PER_DAY,
		100 * NS_PER_US, NS_PER_MIN, 7
	};
	__s64 by = steps_ns[step->kind % 8] * (step->nr % 2 ? 1 : -1);
	__u64 now = clock_ns(CLOCK_REALTIME) + by;
	struct timespec ts = { now / NS_PER_SEC, now % NS_PER_SEC };
	struct timex tai = { .modes = ADJ_TAI, .constant = step->nr % 64 };

	(void)t;
	if (step->spare % 8 == 0 && step->kind % 4 == 0) {
		adjtimex(&tai);
		return;
	}
	if (now > 1500000000 * NS_PER_SEC && now < 3000000000 * NS_PER_SEC)
		clock_settime(CLOCK_REALTIME, &ts);
}

static void run_signal(struct thread *t, const struct step *step)
{
	struct thread *other = &threads[step->kind % nr_threads];

	/* One signal restarts the call, the other ends it. */
	if (other != t && !t->child && !other->finished)
		syscall(SYS_tgkill, getpid(), other->tid, step->nr % 2 ? SIGUSR1 : SIGUSR2);
}

static void run_scribble(struct thread *t, const struct step *step)
{
	(void)t;
	arena_scribble(step->seed);
}

/* ---- fork ----------------------------------------------------------------- */

/* On a strict wheel, make only calls that the ledger need not know. */
static enum op child_op(__u64 *seed, bool strict)
{
	static const enum op harmless[] = {
		OP_INFO, OP_QUERY, OP_LIST, OP_POLL, OP_DUP, OP_CLOSE, OP_FDINFO, OP_UNKNOWN
	};
	static const enum op any[] = {
		OP_ARM, OP_REARM, OP_CANCEL, OP_READ, OP_ADVANCE, OP_ARM, OP_READV, OP_LIST
	};

	return strict ? harmless[random_below(seed, 8)] : any[random_below(seed, 8)];
}

static void child_run(struct thread *t, const struct step *step)
{
	const struct itimerval often = { .it_interval.tv_usec = 5000, .it_value.tv_usec = 5000 };
	__u64 seed = step->seed;
	int i, nr = 1 + step->nr % 8;

	t->child = true;
	t->cover.area = NULL;
	/* Nothing else ends the child's wait. */
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < nr; i++) {
		bool strict = wheels[step->wheel].strict;
		struct step its = step_make(&seed, child_op(&seed, strict), step->wheel);

		t->step = &its;
		step_run(t, &its);
	}
	/* The child stays, with its descriptors, until it is killed. */
	if (step->kind % 2)
		pause();
	_exit(anything_wrong());
}

static void run_fork(struct thread *t, const struct step *step)
{
	pid_t pid;
	int status;

	pid = fork();
	if (!pid)
		child_run(t, step);
	if (pid < 0)
		return;
	if (step->kind % 2) {
		sleep_ns(random_below(&(__u64){ step->seed }, 5) * NS_PER_MS);
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) != SIGKILL)
		wrong(CHECK_ANSWERS, "a child ends with %#x", status);
}

/* ---- all calls ------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(struct thread *t, const struct step *step);
} ops[NR_OPS] = {
	[OP_INFO] = { "INFO", run_info },
	[OP_SETUP] = { "SETUP", run_setup },
	[OP_ARM] = { "ARM", run_vector },
	[OP_REARM] = { "REARM", run_vector },
	[OP_CANCEL] = { "CANCEL", run_vector },
	[OP_QUERY] = { "QUERY", run_vector },
	[OP_LIST] = { "LIST", run_list },
	[OP_DRAIN] = { "DRAIN", run_drain },
	[OP_ADVANCE] = { "ADVANCE", run_advance },
	[OP_UNKNOWN] = { "UNKNOWN", run_unknown },
	[OP_READ] = { "READ", run_read },
	[OP_READV] = { "READV", run_readv },
	[OP_WRITE] = { "WRITE", run_write },
	[OP_POLL] = { "POLL", run_poll },
	[OP_EPOLL_CTL] = { "EPOLL_CTL", run_epoll_ctl },
	[OP_EPOLL_WAIT] = { "EPOLL_WAIT", run_epoll_wait },
	[OP_FLAGS] = { "FLAGS", run_flags },
	[OP_DUP] = { "DUP", run_dup },
	[OP_CLOSE] = { "CLOSE", run_close },
	[OP_PASS] = { "PASS", run_pass },
	[OP_REOPEN] = { "REOPEN", run_reopen },
	[OP_FORK] = { "FORK", run_fork },
	[OP_FDINFO] = { "FDINFO", run_fdinfo },
	[OP_MMAP] = { "MMAP", run_mmap },
	[OP_NO_CALL] = { "NO_CALL", run_no_call },
	[OP_CLOCK] = { "CLOCK", run_clock },
	[OP_SIGNAL] = { "SIGNAL", run_signal },
	[OP_SCRIBBLE] = { "SCRIBBLE", run_scribble },
};

const char *op_name(enum op op)
{
	return ops[op].name;
}

void step_run(struct thread *t, const struct step *step)
{
	t->step = step;
	ops[step->op].run(t, step);
}
