/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheel's lock and what goes on beside it, for spin
 *
 * All that is done to a timeout is done under one lock, and is one step here.  What is left to go
 * wrong lies between the holds: what an ARM adds to the inbox while another thread has the lock;
 * the softirq, which only tries the lock, and hands over to the kthread; the alarm, which is set
 * under the lock and rings without it; waiters, who are woken after it; and DRAIN, which waits
 * for those who have not seen it.
 *
 * The names are those of the module's functions.  ties.pl compares the order of their steps, by
 * the table ties.  A d_step is a hold of the lock, or what nobody else looks into.
 *
 * At the end of all, nothing moves any more.  Then each timeout has exactly one outcome: its event
 * was read, or ARM was refused.  (A timeout in the inbox that nobody takes out, one that is due
 * and whose alarm is not set, or a waiter that sleeps beside an event, is one without.)
 *
 *	NR		how many ARMs of one timeout each (2)
 *	WITH_HOLDER	a thread takes and releases the lock: QUERY, or CANCEL that finds nothing
 *	WITH_DRAIN	a DRAIN comes, and may leave the rest to the kthread, at a signal
 *	WITH_HOGS	realtime threads have the processors: the kthread never runs
 *	BREAK_*		mistakes that are to be found, see run.sh
 *
 * The processor or the user may have no share of the softirq left, now and then: twice at most.
 *
 * Left out: what a hold does to a wheel (KUnit, the differential test), memory, how shares are
 * counted, the refresh table, and orders of loads and stores (litmus).
 */

#ifndef NR
#define NR		2
#endif

#define TIME_END	2
#define NEVER		9

/* Where a timeout is. */
#define NOWHERE		0
#define INBOX		1
#define PENDING		2
#define UNREAD		3
#define READ		4
#define REFUSED		5

byte now;
byte where[NR];
byte due[NR];
bool lock;
bool draining, drains, drained;
byte rcu;		/* threads in an RCU section that DRAIN has to wait for */
byte nr_to_wake;
byte at_ns = NEVER;	/* alarm.at_ns */
bool queued;		/* the hrtimer is */
byte expires = NEVER;	/* when it rings then */
bool turn;		/* the kthread was asked for one */
bool waits, woken;	/* a waiter is in the queue; it was woken */
byte nr_ended;		/* armers that have ended */
byte nr_barred;		/* how often there was no share for the softirq */
byte i_;		/* in a d_step only */

#define first_in(place)	(where[0] == place || (NR > 1 && where[NR > 1] == place) || \
			 (NR > 2 && where[(NR > 2) * 2] == place))
#define inbox_is_empty	(!first_in(INBOX))
#define nr_unread	(first_in(UNREAD))
#define is_due(i)	(where[i] == PENDING && due[i] <= now)
#define some_due	(is_due(0) || (NR > 1 && is_due(NR > 1)) || (NR > 2 && is_due((NR > 2) * 2)))

/* ---- under the lock: in a d_step ------------------------------------------ */

inline event_add(i)
{
	assert(where[i] != UNREAD && where[i] != READ && !drained);
	where[i] = UNREAD;
	nr_to_wake++
}

inline alarm_begin(ns)
{
	at_ns = ns;
	expires = ns;
	queued = true
}

/* Put a timeout to where its deadline says, and set the alarm for it. */
inline timeout_pend(i)
{
	if
	:: due[i] <= now -> event_add(i)
	:: else ->
		where[i] = PENDING;
		if
		:: due[i] < at_ns -> alarm_begin(due[i])
		:: else
		fi
	fi
}

inline twheel_inbox_empty()
{
	i_ = 0;
	do
	:: i_ < NR && where[i_] == INBOX -> timeout_pend(i_); i_++
	:: i_ < NR && where[i_] != INBOX -> i_++
	:: i_ >= NR -> break
	od;
	i_ = 0
}

/* A step looks at one timeout: those that are due come first, then those that DRAIN has left. */
inline pass_step(more)
{
	i_ = 0;
	do
	:: i_ < NR && !is_due(i_) -> i_++
	:: i_ < NR && is_due(i_) -> event_add(i_); break
	:: i_ >= NR -> break
	od;
	more = some_due;
	if
	:: i_ >= NR && drains ->
		i_ = 0;
		do
		:: i_ < NR && where[i_] != PENDING -> i_++
		:: i_ < NR && where[i_] == PENDING -> event_add(i_); more = true; break
		:: i_ >= NR ->
			more = false;
			drains = false;
			drained = true;
			nr_to_wake++;
			break
		od
	:: i_ < NR && drains -> more = true
	:: else
	fi;
	i_ = 0
}

byte next_;		/* in a d_step only */

inline alarm_next_ns()
{
	next_ = NEVER;
	i_ = 0;
	do
	:: i_ < NR ->
		if
		:: where[i_] == PENDING && due[i_] < next_ -> next_ = due[i_]
		:: else
		fi;
		i_++
	:: else -> break
	od;
	i_ = 0
}

inline twheel_alarm_set()
{
	alarm_next_ns();
	if
	:: next_ == at_ns
	:: next_ != at_ns && next_ != NEVER -> alarm_begin(next_)
	:: next_ != at_ns && next_ == NEVER ->
		at_ns = NEVER;
		expires = NEVER;
		queued = false
	fi;
	next_ = 0
}

/* In the hrtimer's own function: it is queued again when that has returned. */
inline alarm_set_again(restart)
{
	alarm_next_ns();
	if
	:: next_ != NEVER && (next_ != at_ns || !queued) ->
		at_ns = next_;
		expires = next_;
		if
		:: queued -> skip
		:: else -> restart = true
		fi
	:: next_ == NEVER && at_ns != NEVER ->
		at_ns = NEVER;
		expires = NEVER;
		queued = false;
		restart = false
	:: else
	fi;
	next_ = 0
}

/*
 * More is left: it rings at the next tick, too.  That is not seen after the last tick, except where
 * nobody else does the rest: there, the last tick does not end.
 */
inline alarm_set_next(restart)
{
#ifdef WITH_HOGS
	next_ = (now < TIME_END -> now + 1 : now);
#else
	next_ = now + 1;
#endif
	if
	:: next_ < at_ns ->
		at_ns = next_;
		expires = next_;
		if
		:: queued -> skip
		:: else -> restart = true
		fi
	:: else
	fi;
	next_ = 0
}

/* ---- the lock and the inbox ------------------------------------------------ */

/* Under none of the engine's locks.  If all events have been read meanwhile, waking does no more than no good. */
inline twheel_wake_for_events(nr)
{
	if
	:: nr ->
		d_step {
			if
			:: (nr_unread || drained) && waits -> woken = true
			:: else
			fi;
			nr = 0
		}
	:: else
	fi
}

/* The beginning of a d_step. */
inline twheel_lock()
{
	!lock -> lock = true;
	twheel_inbox_empty()
}

/* Likewise, with the lock if that was free. */
inline twheel_trylock(got)
{
	got = !lock;
	lock = true
}

inline twheel_unlock_inbox(got, nr2)
{
	do
	:: inbox_is_empty -> break
	:: !inbox_is_empty ->
		d_step {
			got = !lock;
			if
			:: got -> lock = true; twheel_inbox_empty()
			:: else
			fi
		}
		if
		:: got ->
			d_step { nr2 = nr_to_wake; nr_to_wake = 0; lock = false; got = false }
			twheel_wake_for_events(nr2)
		:: else -> break
		fi
	od;
	skip
}

inline twheel_unlock_quietly(got, nr2)
{
#ifdef BREAK_LOOK_FIRST
	got = inbox_is_empty;
	lock = false;
	if
	:: !got -> twheel_unlock_inbox(got, nr2)
	:: else -> got = false
	fi
#else
	lock = false;
	twheel_unlock_inbox(got, nr2)
#endif
}

inline twheel_unlock(got, nr, nr2)
{
#ifdef BREAK_LOOK_FIRST
	d_step { nr = nr_to_wake; nr_to_wake = 0 }
	twheel_unlock_quietly(got, nr2);
#else
	d_step { nr = nr_to_wake; nr_to_wake = 0; lock = false }
	twheel_unlock_inbox(got, nr2);
#endif
	twheel_wake_for_events(nr)
}

/* ---- ARM ------------------------------------------------------------------- */

/* In a d_step, with the lock. */
inline arm_insert(i)
{
	twheel_inbox_empty();
	if
#ifndef BREAK_DRAIN_UNSEEN
	:: draining -> where[i] = REFUSED
#endif
	:: else -> timeout_pend(i)
	fi
}

inline arm_queue(i)
{
	if
	:: !inbox_is_empty ->
		d_step { twheel_lock(); arm_insert(i) }
		twheel_unlock(got, nr, nr2)
	:: else ->
		d_step { rcu++; seen = draining }	/* rcu_read_lock() */
#ifdef BREAK_TRY_FIRST
		twheel_unlock_inbox(got, nr2);
#endif
		d_step {
			if
			:: seen -> where[i] = REFUSED
			:: else -> where[i] = INBOX
			fi;
			rcu--				/* rcu_read_unlock() */
		}
#ifndef BREAK_TRY_FIRST
		if
		:: !seen -> twheel_unlock_inbox(got, nr2)
		:: else -> seen = false
		fi
#endif
	fi
}

proctype armer(byte i)
{
	bool got, seen;
	byte nr, nr2;

	d_step {
		twheel_trylock(got);
		if
		:: got -> arm_insert(i)
		:: else
		fi
	}
	if
	:: got -> got = false; twheel_unlock(got, nr, nr2)
	:: else -> arm_queue(i)
	fi;
	nr_ended++
}

proctype holder()
{
	bool got;
	byte nr, nr2;

	d_step { twheel_lock() }
	twheel_unlock(got, nr, nr2)
}

/* ---- the softirq and the kthread ------------------------------------------- */

inline twheel_turn_request()
{
	turn = true
}

/* It rings in a moment; or later, and then the kthread is asked as well. */
inline alarm_missed()
{
#ifndef BREAK_MISSED
	d_step { expires = 0; queued = true }
	if
	:: true
	:: twheel_turn_request()
	fi
#else
	twheel_turn_request()
#endif
}

/* There is no share: the kthread is asked, and it rings at the next tick. */
inline alarm_leave()
{
	d_step {
		nr_barred++;
		twheel_trylock(got);
		if
		:: got ->
			at_ns = NEVER;
#ifndef BREAK_BARRED
			alarm_set_next(restart)
#endif
		:: else
		fi
	}
	if
	:: got -> got = false; twheel_unlock_quietly(got, nr2)
	:: else -> alarm_missed()
	fi;
	twheel_turn_request()
}

inline alarm_step()
{
	pass_step(more);
	if
	:: !more -> alarm_set_again(restart)
	:: else -> alarm_set_next(restart)
	fi
}

inline alarm_work()
{
	d_step {
		twheel_trylock(got);
		if
		:: got ->
			at_ns = NEVER;
			twheel_inbox_empty();
			if
			:: !drains -> alarm_step()
			:: else
			fi
		:: else
		fi
	}
	if
	:: !got -> alarm_missed(); goto returned
	:: else -> got = false
	fi;
	do
	:: !more -> break
	:: more -> break		/* SOFT_STEPS, or SOFT_NS */
	:: more ->
	   twheel_unlock_quietly(got, nr2);
	   d_step {
		twheel_trylock(got);
		if
		:: got -> alarm_step()
		:: else
		fi
	   }
	   if
	   :: !got ->
#ifdef BREAK_LOST_LOCK
		more = false;
#endif
		goto left
	   :: else -> got = false
	   fi
	od;
	twheel_unlock(got, nr, nr2);
left:
#ifndef BREAK_REST_LEFT
	if
	:: more -> twheel_turn_request(); more = false
	:: else
	fi
#else
	more = false
#endif
}

active proctype softirq()
{
	bool got, more, restart;
	byte nr, nr2;

	do
	:: d_step { queued && now >= expires -> queued = false }
	   if
	   :: nr_barred < 2 -> alarm_leave()
	   :: alarm_work()
	   fi;
returned: skip;
	   /* The hrtimer's core. */
	   d_step {
		if
		:: restart && !queued -> queued = true
		:: restart && queued
		:: !restart && !queued -> expires = NEVER
		:: !restart && queued
		fi;
		restart = false;
		got = false
	   }
	od
}

/* Until there is nothing more to do now. */
inline pass_steps()
{
	do
	:: d_step {
		twheel_lock();
		pass_step(more);
		if
		:: !more -> twheel_alarm_set()
		:: else
		fi
	   }
	   if
	   :: more -> twheel_unlock_quietly(got, nr2)	/* fewer than WAKE_EVERY */
	   :: twheel_unlock(got, nr, nr2)
	   fi;
	   if
	   :: !more -> break
	   :: else
	   fi
	od;
	skip
}

active proctype kthread()
{
	bool got, more;
	byte nr, nr2;

#ifndef WITH_HOGS
	do
	:: d_step { turn -> turn = false }
	   pass_steps()
	od
#endif
}

/* ---- DRAIN ------------------------------------------------------------------ */

bool drain_ended;

proctype drainer()
{
	bool got, more;
	byte nr, nr2;

	d_step { twheel_lock(); draining = true }
	twheel_unlock(got, nr, nr2);
#ifndef BREAK_NO_GRACE
	rcu == 0;				/* synchronize_rcu() */
#endif
	d_step { twheel_lock(); drains = true }
	twheel_unlock(got, nr, nr2);
	if
	:: pass_steps()
	:: twheel_turn_request()		/* a signal */
	fi;
	drain_ended = true
}

/* ---- who waits --------------------------------------------------------------- */

bool reader_ended;

inline events_read()
{
	d_step {
		twheel_lock();
		do
		:: i_ < NR ->
			if
			:: where[i_] == UNREAD -> where[i_] = READ; had = true
			:: else
			fi;
			i_++
		:: else -> break
		od;
		i_ = 0
	}
	twheel_unlock(got, nr, nr2)
}

active proctype reader()
{
	bool got, had, was_drained;
	byte nr, nr2;

	do
	::
#ifndef BREAK_DRAINED_LATE
	   was_drained = drained;
#endif
	   events_read();
#ifdef BREAK_DRAINED_LATE
	   was_drained = drained;
#endif
	   if
	   :: had -> had = false; was_drained = false
	   :: !had && was_drained -> break
	   :: !had && !was_drained ->
		/* wait_event_interruptible() */
		do
		::
#ifdef BREAK_LOOK_UNQUEUED
		   got = nr_unread || drained;
		   d_step { waits = true; woken = false }
		   if
		   :: got -> break
		   :: else
		   fi;
#else
		   d_step { waits = true; woken = false }
		   if
		   :: nr_unread || drained -> break
		   :: else
		   fi;
#endif
		   woken
		od;
		skip;
		d_step { waits = false; woken = false; got = false }
	   fi
	od;
	reader_ended = true
}

/* ---- the clock and the judge -------------------------------------------------- */

active proctype clock()
{
	do
	:: now < TIME_END -> now++
	:: else -> break
	od
}

init
{
	byte i;

	atomic {
		for (i : 0 .. NR - 1) {
			if
			:: due[i] = 1
			:: due[i] = TIME_END
			fi;
			run armer(i)
		}
#ifdef WITH_HOLDER
		run holder();
#endif
#ifdef WITH_DRAIN
		run drainer();
#endif
	}
	timeout ->
	assert(!lock && now == TIME_END && nr_ended == NR);
#ifndef WITH_HOGS
	assert(!turn);
#endif
	for (i : 0 .. NR - 1) {
#ifdef WITH_DRAIN
		assert(where[i] == READ || where[i] == REFUSED)
#else
		assert(where[i] == READ)
#endif
	}
#ifdef WITH_DRAIN
	assert(drained && drain_ended && reader_ended)
#endif
}
