// SPDX-License-Identifier: GPL-2.0
/*
 * Reading events, waiting for them, and what poll() reports
 *
 * An event is copied out and taken in one step, under the lock.  G4 nothing lost: an event that
 * cannot be copied stays in the list.  The caller has the fault served without the lock, so other
 * readers go on.
 *
 * For why no wake-up is lost, see wake_waiters() (lock.c).
 */
#include <linux/poll.h>
#include <linux/uio.h>

#include "lock.h"
#include "trace.h"
#include "twheel_compat.h"
#include "user_access.h"

/* Fill in the event of a timeout of any kind.  Returns the periods that have passed unread. */
static u64 event_fill(struct tw_ctx *tw, const struct twheel_timeout *t,
		      struct twheel_event *event) __must_hold(&tw->lock)
{
	u64 nr = twheel_periods_unread(&tw->clock, t);
	bool drained = timeout_is_drained(t);
	bool ended = timeout_ends(t, nr);

	*event = (struct twheel_event){
		.id		= timeout_id(t),
		.user_data	= t->user_data,
		.deadline_ns	= timeout_known_ns(t),
		.fired_ns	= t->fired_ns & ~FIRED_DRAINED,
		.count		= periods_count(timeout_count(t), nr),
	};
	if (nr) {
		const struct twheel_extra *x = timeout_extra(t);

		event->deadline_ns += nr * x->interval_ns;
		event->fired_ns = period_fired_ns(&tw->clock, x->flags, event->deadline_ns);
	}
	event->deadline_ns = min(event->deadline_ns, TWHEEL_TIME_NEVER);
	/*
	 * If the event of a periodic timeout is read while the wheel is draining, the timeout ends
	 * with it, so the event says that it was drained.
	 */
	if (READ_ONCE(tw->control.draining) && !ended)
		drained = true;
	event->flags = drained ? TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED :
		       ended ? TWHEEL_EVENT_ENDED : 0;
	return nr;
}

/* Take an event that was copied out.  @nr is what event_fill() has returned. */
static void event_take(struct tw_ctx *tw, struct twheel_timeout *t,
		       const struct twheel_event *event, u64 nr)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	trace_twheel_read(tw, event);
	twheel_periods_settle(tw, t, nr);
	event_del(&tw->events, t);
	tw->events.delivered++;
	if (!(event->flags & TWHEEL_EVENT_ENDED)) {
		twheel_period_begin(tw, t);
		return;
	}
	if (event->flags & TWHEEL_EVENT_DRAINED)
		tw->events.drained++;
	else
		tw->events.completed++;
	places_count_free(&tw->places, 1);
	place_free(&tw->places, t);
}

/* Copy out an event of any kind, @size bytes; false if it faults. */
static bool event_copy(const struct twheel_event *event, u32 size, struct iov_iter *to)
{
	u32 known = min_t(u32, size, sizeof(*event));
	size_t copied = copy_to_iter(event, known, to);

	/*
	 * A program of a newer header gets zeroes for the members that this kernel does not know.
	 * A program of an older header does not get the members that it does not know.
	 */
	if (copied == known && size > known)
		copied += iov_iter_zero(size - known, to);
	if (likely(copied == size))
		return true;
	iov_iter_revert(to, copied);
	return false;
}

/* Slow path: copy out and take the oldest event, of any kind; false if it faults. */
static noinline bool read_slow(struct tw_ctx *tw, struct iov_iter *to, u32 size)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	struct twheel_timeout *t = link_timeout(tw->events.first);
	struct twheel_event event;
	u64 nr = event_fill(tw, t, &event);
	bool copied;

	pagefault_disable();
	copied = event_copy(&event, size, to);
	pagefault_enable();
	if (copied)
		event_take(tw, t, &event, nr);
	return copied;
}

/* Whether an event is that of a one-shot that has expired, with slack or without. */
static __always_inline bool event_is_plain(const struct twheel_timeout *t)
{
	return !timeout_is_drained(t) && !timeout_is_periodic(t);
}

/* read_expired() writes each member by itself, so a new one needs a value there, too. */
static_assert(offsetofend(struct twheel_event, flags) == sizeof(struct twheel_event));

/* Fast path: take up to @nr events, until one is not that of an expired one-shot, or faults. */
static __always_inline unsigned int read_expired(struct tw_ctx *tw, struct iov_iter *to,
						 unsigned int nr)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	struct twheel_event __user *user = to->ubuf + to->iov_offset;
	struct twheel_events *events = &tw->events;
	struct twheel_link *link = events->first;
	unsigned int i = 0;

	if (!access_open_locked(user, nr * sizeof(*user)))
		return 0;
	for (; i < nr && link != &events->end; i++, user++) {
		struct twheel_timeout *t = link_timeout(link);
		u64 deadline_ns = t->deadline_ns, fired_ns = t->fired_ns;

		if (unlikely((deadline_ns | fired_ns) >> 63)) {
			if (!event_is_plain(t))
				break;
			deadline_ns = timeout_known_ns(t);
		}
		if (unlikely(!access_put(timeout_id(t), &user->id) ||
			     !access_put(t->user_data, &user->user_data) ||
			     !access_put(deadline_ns, &user->deadline_ns) ||
			     !access_put(fired_ns, &user->fired_ns) ||
			     !access_put_half(1, &user->count) ||
			     !access_put_half(TWHEEL_EVENT_ENDED, &user->flags)))
			goto fault;
		link = link->next;
		place_prefetch(link_timeout(link->next));
		place_free(&tw->places, t);
	}
fault:
	access_close_locked();
	events->first = link;
	link->pprev = &events->first;
	WRITE_ONCE(events->nr_unread, events->nr_unread - i);
	places_count_free(&tw->places, i);
	events->completed += i;
	events->delivered += i;
	iov_iter_advance(to, i * sizeof(*user));
	return i;
}

/* When the oldest event became one; 0 if there is none. */
static u64 events_oldest_ns(const struct twheel_events *events)
{
	return events->first == &events->end ? 0 :
	       link_timeout(events->first)->fired_ns & ~FIRED_DRAINED;
}

/* Note how long @nr events that are read have been unread, by the oldest of them. */
static void unread_note(struct tw_ctx *tw, u64 oldest_ns, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	struct twheel_events *events = &tw->events;
	unsigned int ticks = ticks_log2(&tw->clock, now_ns - min(oldest_ns, now_ns));

	events->unread_ticks[ticks] += nr;
	if (ticks >= events->longest_unread) {
		events->longest_unread = ticks;
		events->longest_unread_at_ns = now_ns;
	}
}

/*
 * Copy out and take the oldest events, @size bytes each, up to @nr; @to ends up behind them.
 * Returns how many; 0 if there is none, and -EFAULT if the first one cannot be copied: the caller
 * has the fault served, and tries again.
 */
int twheel_read_step(struct tw_ctx *tw, struct iov_iter *to, u32 size, unsigned int nr)
{
	bool fast = size == sizeof(struct twheel_event) && iter_is_ubuf(to) &&
		     !trace_twheel_read_enabled();
	u64 now_ns = clock_now(&tw->clock), oldest_ns;
	unsigned int i = 0;
	bool faulted = false;
	u32 nr_before;

	twheel_lock(tw);
	oldest_ns = events_oldest_ns(&tw->events);
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	while (i < nr && tw->events.first != &tw->events.end) {
		if (likely(fast)) {
			i += read_expired(tw, to, nr - i);
			if (i == nr || tw->events.first == &tw->events.end)
				break;
		}
		faulted = !read_slow(tw, to, size);
		if (faulted)
			break;
		i++;
	}
	spin_unlock(&tw->places.lock);
	if (i)
		unread_note(tw, oldest_ns, now_ns, i);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return i ?: faulted ? -EFAULT : 0;
}

/*
 * The number of events that can be read, without the lock: it may change at any time.  @size
 * becomes their length for the user, bytes: final if there are events; if not, a SETUP may change
 * it.
 */
unsigned int twheel_nr_events(struct tw_ctx *tw, u32 *size)
{
	unsigned int nr = READ_ONCE(tw->events.nr_unread);

	twheel_syncpoint(SYNC_EVENTS_COUNTED);
	/*
	 * Pairs with the release in wheel_start(): an event comes from a timeout that was armed
	 * after that, so a reader that sees an event sees the size as well.
	 * Test: litmus event_size
	 */
	smp_rmb();
	*size = READ_ONCE(tw->control.event_size);
	return nr;
}

/* Wait for an event, or for the end of DRAIN: 0, or -ERESTARTSYS by a signal. */
int twheel_wait_event(struct tw_ctx *tw)
{
	return wait_event_interruptible(tw->waiters, READ_ONCE(tw->events.nr_unread) ||
					twheel_is_drained(tw));
}

/*
 * Queue a poller, and return the EPOLL* flags of what can be done now, which may change at any
 * time.
 *
 * The state is read without the lock: an ARM may have left overdue timeouts in the inbox.  The
 * thread that has the lock makes events of these, and wakes the poller.  A read that does not wait
 * takes the lock, see twheel_settle().
 */
__poll_t twheel_poll(struct tw_ctx *tw, struct file *file, struct poll_table_struct *wait)
{
	__poll_t events = 0;

	/*
	 * Queue first, read the state second: an event that comes in between wakes the poller.
	 * Test: syncpoints.event_between_queueing_and_checking_ends_poll
	 */
	poll_wait(file, &tw->waiters, wait);
	twheel_syncpoint(SYNC_POLL_QUEUED);
	/*
	 * Read this before the events: HUP without IN has to mean that no event is left.
	 * Test: syncpoints.poll_beside_drain_reports_no_hup_without_in
	 */
	if (twheel_is_drained(tw))
		events |= EPOLLHUP;
	else if (!READ_ONCE(tw->control.draining) &&
		 READ_ONCE(tw->places.nr_taken) < READ_ONCE(tw->places.max_pending))
		events |= EPOLLOUT | EPOLLWRNORM;
	twheel_syncpoint(SYNC_POLL_DRAINED);
	if (READ_ONCE(tw->events.nr_unread))
		events |= EPOLLIN | EPOLLRDNORM;
	return events;
}
