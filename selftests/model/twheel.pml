/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of twheel's state word, for spin
 *
 * It mirrors the engine, from the state word (engine/timeout.h) to twheel_destroy().
 * Functions have their names there, without the prefix twheel_ of those that several
 * files call.  There are two callers, which arm, cancel, re-arm and query; the kthread;
 * one reader; the clock; and, where a configuration asks for them, DRAIN and the last
 * close.  ./run.sh knows the configurations and what is proved for each:
 *
 *   G3  every accepted id has exactly one outcome, and what a call says it did
 *       is what happened
 *   G4  nothing lost: when nobody has anything left to do, no event is unread,
 *       and for all that pends there is an entry and a wake-up in time; the
 *       places, the room and the counts come out even
 *   G8  no id is given out twice, and whoever acts on an id, or is told about
 *       it, acts on that one's life
 *
 * and, because it costs nothing here, G1: nothing expires before its deadline, and
 * no period counts before it has passed.
 *
 * Steps
 * -----
 *
 * A step, atomic or d_step, is what nobody can look into: at most one access to
 * what others change without a lock (a state word, the inbox, wake_ns,
 * draining, nr_requeued), with what is the process's own or guarded by a lock
 * it holds.  Taking a lock goes with the step after it, letting go with the one
 * before: that loses no behaviour.  Nor does it that ending_done() goes with
 * the step that decided: it only gives back, and giving back later lets others
 * do less.  wake_lock is never held for longer than a step.
 *
 * Batches are of one.  A longer one holds the lock where the model lets go of
 * it, which allows less.
 *
 * What is left out
 * ----------------
 *
 * Memory ordering: the model is sequentially consistent; ./litmus sees to the
 * barriers.  Wrapping of sequence numbers and generations: asserted not to happen here.  The wait queues: who waits is
 * awake when what it waits for is there.  Running out of memory.  The count of
 * pages that were removed (nr_removed), which spares looking again: places stay.
 * The insides of the wheel: here it hands out by tick what was put into it.  A
 * tick is a unit of time, and an interval is a tick.  The clock is not set back.
 * Wheels that share a kthread: a turn may end anywhere, and the next one comes.
 * A waiter that stands in for the kthread: it takes the same turn, and makes its pass
 * some time after the alarm, as the kthread does here; who is woken then, KUnit sees to.
 *
 * Breaks
 * ------
 *
 * Each BREAK_* is a mistake that could be made in the code.  ./run.sh sees to it
 * that spin finds them all.
 */

/* The configuration: see run.sh. */

#ifndef PLACES
#define PLACES		1
#endif
#ifndef OPS
#define OPS		3	/* calls, of both callers together */
#endif
#ifndef TIME_END
#define TIME_END	2	/* the clock goes from 1 to here */
#endif
#ifndef DELAY_MAX
#define DELAY_MAX	2	/* of a timeout, 0 is overdue when armed */
#endif
#ifndef REPEATS
#define REPEATS		2	/* expirations of a limited one */
#endif

#define MAX_PENDING	PLACES
#define IDS_PER_PLACE	(OPS + 2)	/* generations 1 to OPS + 1 */
#define WHEEL_MAX	(PLACES + OPS + 1)

/* The state word */

#define PHASE_FREE	0
#define PHASE_NEW	1
#define PHASE_DEAD	2
#define PHASE_QUEUED	3
#define PHASE_ARMED	4
#define PHASE_UNREAD	5
#define PHASE_REARMING	6

#define STATE_PHASE		7
#define STATE_DRAINED		8
#define STATE_ENTRY		8
#define STATE_PERIODIC		16
#define STATE_FIXED_DELAY	32
#define STATE_LIMITED		64
#define STATE_OVERDUE		128
#define STATE_LIFE	(STATE_PERIODIC | STATE_FIXED_DELAY | STATE_LIMITED)
#define STATE_FLAGS	(STATE_DRAINED | STATE_LIFE | STATE_OVERDUE)
#define STATE_SEQ_SHIFT		8
#define STATE_SEQ_MAX		15
#define STATE_GEN_SHIFT		12
#define STATE_GEN_SEQ		(~255)

#define state_phase(s)	((s) & STATE_PHASE)
#define state_seq(s)	(((s) >> STATE_SEQ_SHIFT) & STATE_SEQ_MAX)
#define state_gen(s)	((s) >> STATE_GEN_SHIFT)

#define state_next(s, phase, flags) \
	(((s) & STATE_GEN_SEQ) | (phase) | (flags))

#ifdef BREAK_SEQ_STUCK
#define SEQ_STEP	0
#else
#define SEQ_STEP	(1 << STATE_SEQ_SHIFT)
#endif
#define state_placed(s, flags) \
	((((s) & STATE_GEN_SEQ) + SEQ_STEP) | PHASE_ARMED | (flags))

/* Generations begin at 1: arena_grow() */
#define FIRST_STATE	(1 << STATE_GEN_SHIFT)

#ifdef BREAK_GENERATION_STUCK
#define GEN_STEP	0
#else
#define GEN_STEP	(1 << STATE_GEN_SHIFT)
#endif
#define state_freed(s)	(((s) & STATE_GEN_SEQ) + GEN_STEP)

#define state_has_entry(s) \
	(state_phase(s) <= PHASE_NEW && ((s) & STATE_ENTRY))
#define state_cancelled(s) \
	(state_freed(s) | (state_phase(s) == PHASE_ARMED -> STATE_ENTRY : 0))
#define state_new_with_entry(s)	state_next(s, PHASE_NEW, STATE_ENTRY)
#define state_without_entry(s)	((s) & ~STATE_ENTRY)

#define state_is_pending(s) \
	(state_phase(s) == PHASE_QUEUED || state_phase(s) == PHASE_ARMED)
#define state_is_unread(s)	(state_phase(s) == PHASE_UNREAD)
#define state_is_live(s)	(state_is_pending(s) || state_is_unread(s))
#define state_keeps_room(s) \
	(state_is_unread(s) && ((s) & STATE_PERIODIC) && \
	 !((s) & STATE_DRAINED))
#define state_is_fixed_rate(s) \
	(((s) & STATE_PERIODIC) && !((s) & STATE_FIXED_DELAY))

/*
 * Where a place is linked in.  It has but one link, which is in one list at a
 * time: that is asserted wherever it is used.
 */
#define LINK_FREE	0	/* the free list */
#define LINK_NONE	1	/* nowhere: ARMED, or in somebody's hands */
#define LINK_CHAIN	2	/* an armer's chain */
#define LINK_INBOX	3
#define LINK_ARRIVALS	4	/* what the kthread took from the inbox */
#define LINK_READY	5	/* the ready list */

/* struct twheel_timeout, and one of struct twheel_periodic */

short state[PLACES];
byte deadline[PLACES];
byte entry[PLACES];		/* entry_ns; 0 where it is not valid */
byte user_data[PLACES];		/* the generation, to tell whose it is */
byte link[PLACES];
byte repeats_left[PLACES];
byte count[PLACES];

/* struct twheel */

#define WAKE_NOW	0
#define WAKE_NEVER	255

bool lock;
byte live;
byte room_used;
byte nr_requeued;
bool looking;			/* an event was looked at, and is being copied */
bool ready_changed;		/* since then: ready_changes, as one bit */
byte wake_ns = WAKE_NEVER;
bool passing;
byte passes_wanted;
byte passes_done;
byte timer = WAKE_NEVER;	/* the hrtimer */
bool work;			/* a turn was asked for */
chan wheel = [WHEEL_MAX] of { byte, byte, byte };	/* tick, index, seq */

#ifdef WITH_DRAIN
bool draining;
bool drained;
bool drain_wanted;
bool rcu[3];			/* inside a read-side section */
#define rcu_read_lock()		rcu[me] = true
#define rcu_read_unlock()	rcu[me] = false
#else
#define draining		false
#define drained			false
#define rcu_read_lock()		skip
#define rcu_read_unlock()	skip
#endif

#ifdef WITH_CLOSE
bool closing;
bool cancelled;			/* no turn is to begin any more */
bool in_turn;
bool destroyed;			/* memory is gone */
#else
#define closing			false
#endif

/* The environment */

#define READER		2

byte now = 1;
byte ops = OPS;
bool begun;			/* the first caller has chosen its first call */
bool done[3];

/*
 * The judge's notes: what became of each id.  Of what lives, whether it has
 * expired and nobody was told of that; with a fixed rate, the deadline up to which
 * the user was told of all periods; with a limit, how many expirations that were.
 */
#define OUTCOME_NONE		0	/* never armed */
#define OUTCOME_LIVE		1
#define OUTCOME_READ		2
#define OUTCOME_CANCELLED	3
#define OUTCOME_REVOKED		4
#define OUTCOME_DRAINED		5
#define OUTCOME_DESTROYED	6

byte outcome[PLACES * IDS_PER_PLACE];
bool expired[PLACES];
byte told_until[PLACES];
byte repeats_told[PLACES];

#define outcome_of(p, gen)	outcome[(p) * IDS_PER_PLACE + (gen)]

inline judge_begun(p_, flags_)
{
	expired[p_] = false;
	told_until[p_] = (state_is_fixed_rate(flags_) -> deadline[p_] - 1 : 0);
	repeats_told[p_] = 0
}

/* G8: an id is given out once. */
inline judge_armed(p_, gen_)
{
	assert(gen_ < IDS_PER_PLACE);
	assert(outcome_of(p_, gen_) == OUTCOME_NONE);
	assert(!drained);
	outcome_of(p_, gen_) = OUTCOME_LIVE;
	judge_begun(p_, state[p_])
}

/* G3: who ends an id ends what is live. */
inline judge_ended(p_, gen_, how_)
{
	assert(outcome_of(p_, gen_) == OUTCOME_LIVE);
	outcome_of(p_, gen_) = how_;
	judge_begun(p_, 0)
}

/*
 * G3: state_verdict() of what was seen, as cancel and re-arm report it, is true
 * when they act: there was an event, or there was none.
 */
inline judge_verdict()
{
	assert(state_is_unread(seen) ==
	       (expired[p] || (seen & STATE_DRAINED)))
}

#ifdef WITH_DRAIN
inline judge_nothing_lives()
{
	assert(!state_is_live(state[0]));
#if PLACES > 1
	assert(!state_is_live(state[1]))
#endif
}

inline judge_nothing_pends()
{
	assert(!state_is_pending(state[0]) &&
	       state_phase(state[0]) != PHASE_REARMING);
#if PLACES > 1
	assert(!state_is_pending(state[1]) &&
	       state_phase(state[1]) != PHASE_REARMING)
#endif
}

#endif

/* No turn is to see memory that is gone. */
#ifdef WITH_CLOSE
#define touch()		assert(!destroyed)
#else
#define touch()		skip
#endif

/* Changing the word without a comparison is for who knows what is there. */
inline state_set(p_, from_, to_)
{
	assert(state[p_] == (from_));
	state[p_] = to_
}

inline spin_lock()
{
	!lock;
	lock = true
}

/* When to run */

inline twheel_turn_request()
{
#ifdef WITH_CLOSE
	work = !cancelled
#else
	work = true
#endif
}

/* A time that is NEVER is a timer that is not set. */
inline wake_program()
{
	if
	:: closing -> skip
	:: !closing && wake_ns <= now -> twheel_turn_request()
	:: else -> timer = wake_ns
	fi
}

inline wake_at(edge_ns_)
{
	if
	:: edge_ns_ < wake_ns ->
		wake_ns = edge_ns_;
		if
		:: !passing -> wake_program()
		:: else
		fi
	:: else
	fi
}

/* Ends the section in which it is called, too. */
inline wake_for()
{
	if
	:: due < wake_ns ->
		d_step {
			wake_at(due);
			due = 0;
			rcu_read_unlock()
		}
	:: d_step { due >= wake_ns -> due = 0; rcu_read_unlock() }
	fi
}

inline pass_request()
{
	passes_wanted++;
	wake_ns = WAKE_NOW;
	if
	:: !passing -> wake_program()
	:: else
	fi
}

#define pass_is_done(wanted)	(passes_done >= (wanted))

/* Finish with a place: ending_done() for one. */
inline place_free(p_)
{
	assert(link[p_] == LINK_NONE);
	link[p_] = LINK_FREE
}

inline room_give(nr_)
{
	assert(room_used >= nr_);
	room_used = room_used - nr_
}

inline live_give()
{
	assert(live > 0);
	live--
}

inline ready_add(p_)
{
	assert(link[p_] == LINK_NONE);
	link[p_] = LINK_READY
}

/* Counts of the list's length follow from the links here. */
inline ready_del(p_)
{
	assert(link[p_] == LINK_READY);
	link[p_] = LINK_NONE
}

/* Periods.  An interval is a unit of time, so deadlines count them. */

#define periods_passed(deadline_, until_)	((until_) - (deadline_) + 1)

#define min_repeats(p, s, nr) \
	((((s) & STATE_LIMITED) && repeats_left[p] < (nr)) -> \
	 repeats_left[p] : (nr))

/* One look at the clock. */
#define periods_unread(p, s) \
	((!state_keeps_room(s) || ((s) & STATE_FIXED_DELAY) || \
	  deadline[p] + 1 > now) -> 0 : \
	 min_repeats(p, s, periods_passed(deadline[p] + 1, now)))

/* It matters to a reader who has looked, and not yet taken. */
#define ready_changes_count()	ready_changed = looking

inline periods_settle(p_, state_, nr_)
{
	if
	:: (state_) & STATE_LIMITED ->
		assert(repeats_left[p_] >= nr_);
		repeats_left[p_] = repeats_left[p_] - (nr_)
	:: else
	fi;
	count[p_] = count[p_] + (nr_);
	deadline[p_] = deadline[p_] + (nr_);
#ifndef BREAK_SETTLE_UNCOUNTED
	if
	:: nr_ > 0 -> ready_changes_count()
	:: else
	fi;
#endif
	/* G1 */
	assert(nr_ == 0 || deadline[p_] <= now)
}

inline event_take(p_, state_, nr_)
{
	nr_ = periods_unread(p_, state_);
	periods_settle(p_, state_, nr_);
	nr_ = 0;
	ready_del(p_);
	ready_changes_count()
}

/* Arming */

/* Any time, and any kind that the configuration has. */
inline life_choose()
{
	if
	:: delay = 0
	:: delay = 1
#if DELAY_MAX > 1
	:: delay = 2
#endif
	fi;
	if
#ifdef WITH_ONE_SHOT
	:: flags = 0
#endif
#ifdef WITH_FIXED_RATE
	:: flags = STATE_PERIODIC
#endif
#ifdef WITH_FIXED_DELAY
	:: flags = STATE_PERIODIC | STATE_FIXED_DELAY
#endif
#ifdef WITH_LIMITED_RATE
	:: flags = STATE_PERIODIC | STATE_LIMITED
#endif
#ifdef WITH_LIMITED_DELAY
	:: flags = STATE_PERIODIC | STATE_FIXED_DELAY | STATE_LIMITED
#endif
	fi
}

/* life_of() */
inline life_of(now_ns_)
{
	due = now_ns_ + delay;
	if
	:: delay == 0 -> flags = flags | STATE_OVERDUE
	:: else
	fi
}

inline life_begin(p_)
{
	deadline[p_] = due;
	if
	:: flags & STATE_LIMITED -> repeats_left[p_] = REPEATS
	:: else -> repeats_left[p_] = 0
	fi;
	count[p_] = 0
}

/* life_due_ns() */
inline life_due()
{
	if
	:: flags & STATE_OVERDUE -> due = WAKE_NOW
	:: else
	fi;
	delay = 0;
	flags = 0
}

/* arm_undo() */
inline arm_undo()
{
	assert(state_phase(state[p]) == PHASE_NEW);
	state[p] = state_freed(state[p]);
	link[p] = LINK_NONE;
	place_free(p);
	room_give(1);
	live_give()
}

#define NO_PLACE	PLACES

/* entry_will_do() */
#ifdef BREAK_KEEP_EARLIER
#define KEEPS_IN_TIME	true
#else
#define KEEPS_IN_TIME	(due >= entry[p])
#endif

/* A place that is free, or that a pass would free */
#define place_in_reach(p) \
	(link[p] == LINK_FREE || link[p] == LINK_INBOX || link[p] == LINK_ARRIVALS)
#if PLACES > 1
#define places_in_reach	(place_in_reach(0) || place_in_reach(1))
#else
#define places_in_reach	place_in_reach(0)
#endif

/* twheel_arm_prepare(): p is the place, or NO_PLACE */
inline twheel_arm_prepare()
{
	/* live_take(), room_take() */
	atomic {
		if
		:: live < MAX_PENDING ->
			live++;
			room_used++
		:: else ->
			p = NO_PLACE
		fi
	};
	/* places_take(), arm_place() */
	do
	:: atomic { p == NO_PLACE -> break }
	:: atomic {
		p != NO_PLACE ->
		if
		:: link[0] == LINK_FREE -> p = 0
#if PLACES > 1
		/* Of two that were never used, the first will do. */
		:: link[1] == LINK_FREE && state[0] != FIRST_STATE -> p = 1
#endif
		:: else -> p = NO_PLACE
		fi;
		if
		:: p != NO_PLACE ->
			link[p] = LINK_CHAIN;
			assert(state_phase(state[p]) == PHASE_FREE);
			life_choose();
			life_of(now);
			stays = state_has_entry(state[p]) && flags == 0 &&
				KEEPS_IN_TIME;
			life_begin(p);
			user_data[p] = state_gen(state[p]);
			if
			:: !stays -> state[p] = state_next(state[p], PHASE_NEW, flags)
			:: else ->
				seen = state[p];
				if
				:: state[p] == seen ->
					state[p] = state_new_with_entry(seen)
				fi;
				seen = 0
			fi;
			stays = false;
			delay = 0;
			flags = 0;
			due = 0;
			break
		:: else ->
			/* pass_wait_killable(): the kthread has them. */
			pass_request();
			wanted = passes_wanted;
			p = 0
		fi
	   };
	   /* What is on its way to the inbox is in no pass's reach: to ask again is in vain. */
	   d_step { pass_is_done(wanted) && places_in_reach -> wanted = 0 }
	od
}

/* twheel_arm_commit() */
inline twheel_arm_commit()
{
	atomic {
		seen_requeued = nr_requeued;
		rcu_read_lock();
		if
		:: draining ->
			arm_undo();
			rcu_read_unlock();
			p = NO_PLACE
		:: else
		fi
	};
	/* arm_publish() */
	if
	:: d_step { p != NO_PLACE && state_has_entry(state[p]) -> seen = state[p] }
	:: else
	fi;
	if
	:: d_step {
#ifdef BREAK_KEEP_STORE
		seen != 0 ->
#else
		seen != 0 && state[p] == seen ->
#endif
		assert(link[p] == LINK_CHAIN);
		link[p] = LINK_NONE;
		state[p] = state_next(seen, PHASE_ARMED, 0);
		judge_armed(p, state_gen(seen));
#ifndef BREAK_KEEP_ROOM_TWICE
		room_give(1);
#endif
		rcu_read_unlock();
		seen_requeued = 0;
		seen = 0;
		p = 0
	   }
	:: d_step {
		p != NO_PLACE && state[p] != seen ->
		assert(state_phase(state[p]) == PHASE_NEW && !state_has_entry(state[p]));
		due = deadline[p];
		if
		:: state[p] & STATE_OVERDUE -> due = WAKE_NOW
		:: else
		fi;
		state[p] = state_next(state[p], PHASE_QUEUED,
				      state[p] & STATE_FLAGS);
		seen = 0;
		judge_armed(p, state_gen(state[p]))
	   };
	   d_step {
		/* inbox_add() */
		assert(link[p] == LINK_CHAIN);
		link[p] = LINK_INBOX;
		p = 0
	   };
#ifndef BREAK_NO_REQUEUED
	   d_step {
		if
		:: nr_requeued != seen_requeued -> due = WAKE_NOW
		:: else
		fi;
		seen_requeued = 0
	   };
#endif
	   wake_for()
	:: else
	fi
}

inline twheel_arm()
{
	twheel_arm_prepare();
	if
	:: p != NO_PLACE -> twheel_arm_commit()
#ifdef WITH_FAULTS
	/* The report could not be written. */
	:: d_step { p != NO_PLACE -> arm_undo() }
#endif
	:: else
	fi
}

/* Looking at ids, and cancelling */

/* timeout_by_id(), timeout_look(); seen is 0 where they return NULL */
inline timeout_look()
{
	do
	:: atomic {
		seen = state[p];
		if
		:: state_gen(seen) != gen ||
		   (!state_is_live(seen) &&
		    state_phase(seen) != PHASE_REARMING) ->
			/* G3, G8: it says ENOENT of what is not there. */
			assert(outcome_of(p, gen) != OUTCOME_LIVE);
			seen = 0;
			break
#ifdef BREAK_LOOK_REARMING
		:: state_gen(seen) == gen &&
		   state_phase(seen) == PHASE_REARMING ->
			assert(outcome_of(p, gen) != OUTCOME_LIVE);
			seen = 0;
			break
#endif
		:: state_gen(seen) == gen && state_is_live(seen) -> break
		:: else -> seen = 0
		fi
	   };
	   !lock
	od
}

inline cancel_unread()
{
	atomic {
#ifndef BREAK_CANCEL_UNREAD_UNLOCKED
		spin_lock();
#endif
#ifdef BREAK_CANCEL_UNREAD_UNCHECKED
		won = true
#else
		won = state[p] == seen
#endif
	};
	d_step {
		if
		:: won ->
			event_take(p, seen, nr);
			judge_verdict();
			judge_ended(p, gen, OUTCOME_REVOKED);
			if
			:: state_keeps_room(seen) -> room_give(1)
			:: else
			fi;
#if defined(BREAK_CANCEL_UNREAD_UNLOCKED) || \
    defined(BREAK_CANCEL_UNREAD_UNCHECKED)
			state[p] = state_freed(seen);
#else
			state_set(p, seen, state_freed(seen));
#endif
			place_free(p);
			live_give()
		:: else
		fi;
		lock = false
	}
}

inline cancel_pending()
{
	d_step {
		won = state[p] == seen;
		if
		:: won ->
			judge_verdict();
			judge_ended(p, gen, OUTCOME_CANCELLED);
			if
#ifndef BREAK_FREE_QUEUED
			:: state_phase(seen) == PHASE_QUEUED ->
				state[p] = state_next(seen, PHASE_DEAD, 0)
#endif
			:: else ->
				state[p] = state_cancelled(seen);
				place_free(p)
			fi;
			live_give()
		:: else
		fi
	}
}

/* twheel_cancel_look(), twheel_cancel_commit() */
inline twheel_cancel()
{
	do
	:: timeout_look();
	   if
	   :: seen == 0 -> won = true
	   :: seen != 0 && state_is_unread(seen) -> cancel_unread()
	   :: else -> cancel_pending()
	   fi;
	   if
	   :: won -> break
	   :: else -> seen = 0
	   fi
	od
}

/* Re-arming */

/* timeout_rearm() or timeout_move(), up to the change that makes it ours */
inline timeout_rearm_begin()
{
	atomic {
#ifndef BREAK_REARM_UNLOCKED
		spin_lock();
#endif
		won = state[p] == seen;
		if
		:: won && !state_is_unread(seen) ->
			judge_verdict();
#ifndef BREAK_NO_REARMING
			state[p] = state_next(seen, PHASE_REARMING, 0)
#endif
		:: else
		fi
	}
}

/* The rest of it.  G3: what the old life had to tell went with the verdict. */
inline timeout_rearm_end()
{
	d_step {
		assert(outcome_of(p, gen) == OUTCOME_LIVE);
		assert(!drained);
		if
		:: state_is_unread(seen) ->
			event_take(p, seen, nr);
			judge_verdict()
		:: else
		fi;
#ifdef BREAK_DEFER_EARLIER
		stays = state_phase(seen) == PHASE_ARMED &&
			!(flags & STATE_OVERDUE);
#else
		stays = state_phase(seen) == PHASE_ARMED &&
			!(flags & STATE_OVERDUE) && due >= entry[p];
#endif
		life_begin(p);
		judge_begun(p, flags);
		if
		:: stays -> to = state_next(seen, PHASE_ARMED, flags)
		:: else -> to = state_next(seen, PHASE_QUEUED, flags); entry[p] = 0
		fi;
#if defined(BREAK_NO_REARMING) || defined(BREAK_REARM_UNLOCKED)
		state[p] = to;
#else
		if
		:: state_is_unread(seen) -> state_set(p, seen, to)
		:: else ->
			state_set(p, state_next(seen, PHASE_REARMING, 0), to)
		fi;
#endif
		to = 0;
		/* The alarm is set for the entry that it keeps. */
		if
		:: stays -> due = WAKE_NEVER
		:: else
		fi;
		life_due()
	}
}

/* requeue_finish(): inbox_add() for what is not in there, and the end of the lock */
inline rearm_to_inbox()
{
#ifdef BREAK_INBOX_UNLOCKED
	lock = false;
#endif
	d_step {
		if
		:: state_phase(seen) != PHASE_QUEUED && !stays ->
			assert(link[p] == LINK_NONE);
			link[p] = LINK_INBOX;
			nr_room = state_keeps_room(seen)
		:: else
		fi;
#ifndef BREAK_INBOX_UNLOCKED
		lock = false;
#endif
		stays = false
	}
}

/* twheel_rearm_commit(), after its look at draining */
inline rearm_commit_locked()
{
	timeout_rearm_begin();
	if
	:: won ->
		timeout_rearm_end();
		rearm_to_inbox();
		d_step {
			if
			:: state_phase(seen) == PHASE_QUEUED -> nr_requeued++
			:: else
			fi;
			seen = 0;
			/* At its end, but nobody sees the difference. */
			room_give(nr_room);
			nr_room = 0
		};
		wake_for()
	:: else ->
		d_step { lock = false; rcu_read_unlock(); seen = 0 }
	fi
}

inline rearm_give_up()
{
	room_give(nr_room);
	nr_room = 0;
	rcu_read_unlock();
	delay = 0;
	flags = 0;
	due = 0;
	seen = 0;
	won = true
}

/*
 * twheel_rearm_prepare(), twheel_rearm_commit().  The room is not given back and
 * taken again where it looks again.
 */
inline twheel_rearm()
{
	atomic {
		life_choose();
		room_used++;
		nr_room = 1
	};
	do
	:: won -> break
	:: atomic { !won -> life_of(now) };
	   timeout_look();
#ifdef WITH_DRAIN
	   atomic {
		if
		:: seen != 0 -> rcu_read_lock()
		:: else
		fi;
		if
		:: draining -> seen = 0
		:: else
		fi
	   };
#endif
	   if
	   :: d_step { seen == 0 -> rearm_give_up() }
	   :: seen != 0 -> rearm_commit_locked()
	   fi
	od
}

/* Looking */

/* timeout_has_ended(), when so many periods more have passed */
#define timeout_has_ended(p, s, nr) \
	(!state_keeps_room(s) || \
	 (((s) & STATE_LIMITED) && repeats_left[p] == (nr)))

#define timeout_count(p, s) \
	(!state_is_unread(s) -> 0 : \
	 (((s) & STATE_PERIODIC) -> count[p] : !((s) & STATE_DRAINED)))

/* status_count_periods(): QUERY says what a read would. */
inline status_count_periods()
{
	if
	:: state_is_fixed_rate(seen) && state_is_unread(seen) ->
		assert(timeout_count(p, seen) + periods_unread(p, seen) ==
		       deadline[p] + periods_unread(p, seen) - told_until[p]);
		assert(timeout_has_ended(p, seen, periods_unread(p, seen)) ||
		       deadline[p] + periods_unread(p, seen) + 1 > now)
	:: else
	fi
}

/* twheel_query(), timeout_status() */
inline twheel_query()
{
	atomic {
		spin_lock();
		seen = state[p];
		assert(state_phase(seen) != PHASE_REARMING);
		if
		:: state_gen(seen) != gen || !state_is_live(seen) ->
			assert(outcome_of(p, gen) != OUTCOME_LIVE);
			seen = 0;
			lock = false
		:: else -> status_count_periods()
		fi
	};
	if
	:: seen != 0 ->
		due = user_data[p];
		d_step {
#ifndef BREAK_QUERY_UNCHECKED
			if
			:: state_gen(state[p]) != gen -> due = gen
			:: else
			fi;
#endif
			/* G8: it told of that one and no other. */
			assert(due == gen);
			lock = false;
			seen = 0;
			due = 0
		}
	:: else
	fi
}

/* A caller */

#define OP_NONE		0
#define OP_ARM		1
#define OP_CANCEL	2
#define OP_REARM	3
#define OP_QUERY	4

/* Any id of a place that was given out, or is about to be. */
inline id_choose()
{
	if
	:: p = 0
#if PLACES > 1
	:: p = 1
#endif
	fi;
	gen = state_gen(state[p]);
	do
	:: gen > 1 -> gen--
	:: break
	od
}

/* The callers are alike, so it is the first one who begins. */
proctype caller(byte me)
{
	byte op, p, gen, delay, due, seen_requeued, wanted, nr, flags;
	short seen, to;
	bool won, stays, nr_room;

	do
	:: atomic {
		ops > 0 && (me == 0 || begun) ->
		ops--;
		begun = true;
		if
		:: op = OP_ARM
#ifdef WITH_CANCEL
		:: op = OP_CANCEL; id_choose()
#endif
#ifdef WITH_REARM
		:: op = OP_REARM; id_choose()
#endif
#ifdef WITH_QUERY
		:: op = OP_QUERY; id_choose()
#endif
		fi
	   };
	   if
	   :: op == OP_ARM -> twheel_arm()
#ifdef WITH_CANCEL
	   :: op == OP_CANCEL -> twheel_cancel()
#endif
#ifdef WITH_REARM
	   :: op == OP_REARM -> twheel_rearm()
#endif
#ifdef WITH_QUERY
	   :: op == OP_QUERY -> twheel_query()
#endif
	   fi;
	   atomic { op = OP_NONE; p = 0; gen = 0; seen = 0; won = false }
	:: atomic { begun = true; break }
	od;
	done[me] = true
}

/* Reading events */

#if PLACES > 1
#define has_events	(link[0] == LINK_READY || link[1] == LINK_READY)
#else
#define has_events	(link[0] == LINK_READY)
#endif

/* twheel_events_look(): the order of the ready list does not matter here */
inline twheel_events_look()
{
	if
	:: link[0] == LINK_READY -> p = 0
#if PLACES > 1
	:: link[1] == LINK_READY -> p = 1
#endif
	fi;
	looking = true;
	seen = state[p];
	assert(state_is_unread(seen));
	/* event_look_closely() */
	nr = periods_unread(p, seen);
	told = timeout_count(p, seen) + nr;
	event_deadline = deadline[p] + nr;
	as_drained = (seen & STATE_DRAINED) ||
		     (draining && !timeout_has_ended(p, seen, nr));
	nr = 0;
	/* G8: an event tells of the id that it carries. */
	assert(user_data[p] == state_gen(seen))
}

/*
 * G4: what is taken, the user has: each expiration, and none twice.  What was
 * drained before it expired has none.
 */
inline event_told()
{
#ifdef BREAK_TAKE_FIRST
	if
	:: faults -> told = 0
	:: !faults
	fi;
#endif
	if
	:: state_is_fixed_rate(seen) ->
		assert((told > 0) == expired[p]);
		assert(told == 0 || event_deadline <= now);
		assert(told == 0 || told == event_deadline - told_until[p]);
		told_until[p] = told_until[p] + told
	:: else -> assert(told == expired[p])
	fi;
	expired[p] = false;
	if
	:: seen & STATE_LIMITED ->
		repeats_told[p] = repeats_told[p] + told;
		assert(repeats_told[p] + repeats_left[p] == REPEATS)
	:: else
	fi
}

inline event_end()
{
	ready_del(p);
	event_told();
	if
	:: as_drained -> judge_ended(p, state_gen(seen), OUTCOME_DRAINED)
	:: else ->
		/* It had all the expirations that it was to have. */
		assert(!(seen & STATE_PERIODIC) ||
		       ((seen & STATE_LIMITED) && repeats_left[p] == 0));
		judge_ended(p, state_gen(seen), OUTCOME_READ)
	fi;
	if
	:: state_keeps_room(seen) -> room_give(1)
	:: else
	fi;
	state_set(p, seen, state_freed(seen));
	place_free(p);
	live_give()
}

#ifdef BREAK_PHASE_LOST
#define RATE_FROM	now
#else
#define RATE_FROM	deadline[p]
#endif

inline event_continue()
{
	ready_del(p);
	assert(outcome_of(p, state_gen(seen)) == OUTCOME_LIVE);
	event_told();
	count[p] = 0;
	assert(!drained);
	if
	:: seen & STATE_FIXED_DELAY -> deadline[p] = now + 1
	:: else ->
		deadline[p] = RATE_FROM + 1;
		/* The next period is the first that nobody was told of. */
		assert(deadline[p] == told_until[p] + 1)
	fi;
	due = deadline[p];
	nr = 0;
	if
	:: due <= now -> due = WAKE_NOW; nr = STATE_OVERDUE
	:: else
	fi;
	state_set(p, seen, state_next(seen, PHASE_QUEUED,
				      (seen & STATE_LIFE) | nr));
	nr = 0;
	goes_on = true
}

#define event_periods(p, s) \
	((!state_keeps_room(s) || event_deadline <= deadline[p]) -> 0 : \
	 event_deadline - deadline[p])

#ifdef BREAK_EVENT_COUNT
#define event_is_same(p, s)	(state[p] == (s))
#else
#define event_is_same(p, s) \
	(state[p] == (s) && \
	 timeout_count(p, s) + event_periods(p, s) == told)
#endif

#ifdef BREAK_READ_DRAINING
#define MAY_GO_ON	true
#else
#define MAY_GO_ON	!was_draining
#endif

/* twheel_events_commit() */
inline twheel_events_commit()
{
#ifdef WITH_DRAIN
	d_step { rcu_read_lock(); was_draining = draining };
#endif
	atomic {
		spin_lock();
#ifdef BREAK_READ_UNCHECKED
		won = true;
#else
		won = !ready_changed || event_is_same(p, seen);
#endif
		looking = false;
		ready_changed = false
	};
	d_step {
		if
		:: won ->
#ifdef BREAK_SETTLE_NOW
			nr = periods_unread(p, seen);
#else
			nr = event_periods(p, seen);
#endif
#ifndef BREAK_READ_UNSETTLED
			periods_settle(p, seen, nr);
#endif
			nr = 0;
			if
			:: as_drained || timeout_has_ended(p, seen, 0) ->
				event_end()
			:: else ->
				if
				:: MAY_GO_ON -> event_continue()
				:: else /* it was looked at before */
				fi
			fi
		:: else
		fi;
		if
		:: goes_on
		:: else -> lock = false; rcu_read_unlock()
		fi;
		won = false
	};
	if
	:: goes_on ->
		d_step {
			assert(link[p] == LINK_NONE);
			link[p] = LINK_INBOX;
			lock = false
		};
		wake_for()
	:: else
	fi
}

/*
 * events_read(), twheel_fop_read_iter().  G4: the user's memory may fault, and
 * then nothing has happened.
 */
proctype reader()
{
	byte me = READER;
	byte p, told, event_deadline, nr, due;
	short seen;
	bool won, as_drained, was_draining, was_drained, goes_on, faults;

	do
#ifdef WITH_DRAIN
	:: atomic { has_events || drained -> was_drained = drained };
	   atomic {
		!lock ->
		if
		:: has_events -> twheel_events_look()
		:: else
		fi
#ifdef BREAK_DRAINED_LATE
	   };
	   atomic {
		was_drained = drained;
#else
		;
#endif
		if
		:: was_drained && seen == 0 ->
			/* read() says 0: nothing is there or will come. */
			judge_nothing_lives();
			break
		:: else
		fi
	   };
#else
	:: atomic { has_events && !lock -> twheel_events_look() };
#endif
	   if
	   :: seen != 0 -> twheel_events_commit()
#ifdef BREAK_TAKE_FIRST
	   :: seen != 0 -> faults = true; twheel_events_commit()
#else
	   :: true -> skip
#endif
	   fi;
	   d_step {
		p = 0;
		told = 0;
		event_deadline = 0;
		seen = 0;
		as_drained = false;
		goes_on = false;
		was_draining = false;
		was_drained = false;
		faults = false
	   }
#ifdef WITH_CLOSE
	:: break
#endif
	od;
	done[READER] = true
}

/* The kthread: the wheel */

/* Room was promised for it, or for the one whose place it takes: G4. */
inline entry_insert(tick_, index_, state_)
{
	wheel!!tick_, index_, state_seq(state_);
	assert(len(wheel) <= room_used);
	wheel?<next_tick, _, _>
}

inline entry_pop()
{
	wheel?tick, index, seq;
	if
	:: nempty(wheel) -> wheel?<next_tick, _, _>
	:: empty(wheel) -> next_tick = WAKE_NEVER
	fi
}

inline entry_forget()
{
	tick = 0;
	index = 0;
	seq = 0;
	seen = 0;
	due = 0
}

/* The kthread: turns */

#ifdef WITH_CLOSE
/* The budget has run out: the other wheels have their turns. */
inline turn_may_end()
{
	if
	:: true
	:: d_step { in_turn = false; twheel_turn_request() };
	   d_step { work -> touch(); work = false; in_turn = true }
	fi
}
#else
#define turn_may_end()	skip
#endif

/* The kthread: the inbox */

#define link_taken(p)	link[p] = (link[p] == LINK_INBOX -> LINK_ARRIVALS : \
						    link[p])

inline inbox_take()
{
	d_step {
		link_taken(0);
#if PLACES > 1
		link_taken(1);
#endif
	}
}

/* timeout_enter(), once it has the lock and has seen the state */
inline timeout_enter()
{
	if
	:: state_phase(seen) == PHASE_QUEUED ->
		d_step {
			if
			:: state[index] == seen ->
				assert(state_seq(seen) < STATE_SEQ_MAX);
				due = deadline[index];
				entry[index] = due;
				seen = state_placed(seen, seen & STATE_FLAGS);
				state[index] = seen
			:: else ->
#ifdef BREAK_ENTER_STORE
				due = deadline[index];
				seen = state_placed(seen, seen & STATE_FLAGS);
				state[index] = seen
#else
				/* Lost to a cancel. */
				seen = state[index]
#endif
			fi
		}
	:: else
	fi;
	d_step {
		if
		:: state_phase(seen) == PHASE_ARMED ->
			entry_insert(due, index, seen);
			due = 0
		:: else ->
			assert(state_phase(seen) == PHASE_DEAD);
			state_set(index, seen, state_freed(seen));
			place_free(index);
			room_give(1)
		fi;
		lock = false;
		index = 0;
		seen = 0
	}
}

#if PLACES > 1
#define has_arrivals \
	(link[0] == LINK_ARRIVALS || link[1] == LINK_ARRIVALS)
#else
#define has_arrivals	(link[0] == LINK_ARRIVALS)
#endif

inline inbox_drain()
{
	do
	:: !has_arrivals -> break
	:: atomic {
		has_arrivals && !lock ->
		touch();
		lock = true;
		if
		:: link[0] == LINK_ARRIVALS -> index = 0
		:: else -> index = 1
		fi;
		link[index] = LINK_NONE;
		seen = state[index]
	   };
	   timeout_enter();
	   turn_may_end()
	od
}

/* The kthread: expiry */

#ifdef BREAK_KEEP_ROOM
#define EXPIRY_GIVES_ROOM	true
#else
#define EXPIRY_GIVES_ROOM	(!state_keeps_room(state[index]))
#endif

/* periodic_expire(): how many periods have passed */
#define periods_expired \
	((seen & STATE_FIXED_DELAY) -> 1 : \
	 periods_passed(due, (((seen & STATE_OVERDUE) && due > pass_now) -> \
			      due : pass_now)))

/*
 * timeout_expire_once(), timeout_expire_periodic(): the compare-and-swap, and
 * what is the winner's from then on.
 */
inline timeout_expire_commit()
{
	d_step {
		won = state[index] == seen;
#ifdef BREAK_EXPIRE_STORE
		if
		:: seen & STATE_PERIODIC
		:: else -> won = true
		fi;
#endif
		if
		:: won ->
			if
			:: seen & STATE_PERIODIC ->
				nr = periods_expired;
				nr = min_repeats(index, seen, nr);
				assert(nr > 0);
				if
				:: seen & STATE_LIMITED ->
					repeats_left[index] =
						repeats_left[index] - nr
				:: else
				fi;
				count[index] = nr;
				deadline[index] = due + nr - 1
			:: else
			fi;
			/* G1 */
			assert(deadline[index] <= now);
			assert(!expired[index]);
			expired[index] = true;
			ready_add(index);
			entry[index] = 0;
			state[index] = state_next(seen, PHASE_UNREAD,
						  seen & STATE_LIFE);
			if
			:: EXPIRY_GIVES_ROOM -> room_give(1)
			:: else
			fi
#ifdef BREAK_UNREAD_IN_WHEEL
			; if
			:: state_is_fixed_rate(seen) ->
				entry_insert(deadline[index] + 1, index, seen)
			:: else
			fi
#endif
#ifdef BREAK_EXPIRE_ONE_LOOK
		:: else -> room_give(1); won = true
#else
		:: else -> seen = state[index]
#endif
		fi;
		if
		:: won ->
			lock = false;
			entry_forget()
		:: else
		fi;
		won = false;
		nr = 0
	}
}

/* timeout_expire(): seen is 0 when that is done */
inline timeout_expire()
{
	due = deadline[index];
	if
#ifndef BREAK_MOVED_LATER
	:: d_step {
		!(seen & STATE_OVERDUE) && due > tick ->
		/* timeout_postpone() */
		if
#ifdef BREAK_POSTPONE_UNCHECKED
		:: true ->
#else
		:: state[index] == seen ->
#endif
#ifndef BREAK_POSTPONE_UNTOLD
			entry[index] = due;
#endif
			entry_insert(due, index, seen);
			lock = false;
			entry_forget()
#ifndef BREAK_POSTPONE_UNCHECKED
		:: else -> seen = state[index]
#endif
		fi
	   }
	:: (seen & STATE_OVERDUE) || due <= tick ->
#else
	:: true ->
#endif
		timeout_expire_commit()
	fi
}

#ifdef BREAK_ENTRY_SEQ
#define entry_is_stale	(state_phase(seen) != PHASE_ARMED)
#else
#define entry_is_stale	(state_phase(seen) != PHASE_ARMED || \
			 state_seq(seen) != seq)
#endif

#define entry_is_kept(s, seq)	(state_has_entry(s) && state_seq(s) == (seq))

/* entry_claim(), once it has seen that a free place keeps the entry */
inline entry_claim()
{
	d_step {
		if
		:: state[index] == seen ->
#ifndef BREAK_CLAIM_FORGETS
			state[index] = state_without_entry(seen);
			entry[index] = 0;
#endif
			room_give(1);
			lock = false;
			entry_forget()
		:: else -> seen = state[index]
		fi
	}
}

/* entry_expire(), once it has the lock and has seen a state that may do */
inline entry_expire()
{
	do
	:: seen == 0 -> break
	:: seen != 0 && entry_is_kept(seen, seq) -> entry_claim()
	:: seen != 0 && !entry_is_stale -> timeout_expire()
	:: atomic {
		seen != 0 && entry_is_stale && !entry_is_kept(seen, seq) ->
		room_give(1);
		lock = false;
		entry_forget()
	   }
	od
}

inline expire()
{
	do
	:: next_tick > pass_now -> break
	:: atomic {
		next_tick <= pass_now && !lock ->
		touch();
		entry_pop();
		seen = state[index];
		if
		:: entry_is_stale && !entry_is_kept(seen, seq) ->
#ifndef BREAK_STALE_ROOM
			room_give(1);
#endif
			entry_forget()
		:: else ->
			lock = true
		fi
	   };
	   entry_expire();
	   turn_may_end()
	od
}

/* The kthread: draining */

#ifdef WITH_DRAIN
#ifdef BREAK_DRAIN_UNSETTLED
#define DRAIN_SETTLES	0
#else
#define DRAIN_SETTLES	periods_unread(index, seen)
#endif

/* G4: the event of what is drained has all periods that have passed. */
inline judge_drained()
{
	assert(!state_is_fixed_rate(seen) || deadline[index] + 1 > now)
}

/* timeout_drain() */
inline timeout_drain()
{
	atomic {
		spin_lock();
		seen = state[index]
	};
	d_step {
		won = state[index] == seen;
#ifdef BREAK_DRAIN_STORE
		won = true;
#endif
		if
		:: state_is_unread(seen) ->
			nr = DRAIN_SETTLES;
			periods_settle(index, seen, nr);
			nr = 0;
			if
			:: !timeout_has_ended(index, seen, 0) ->
				judge_drained();
				room_give(1);
				ready_changes_count();
				state_set(index, seen,
					  state_next(seen, PHASE_UNREAD,
						     (seen & STATE_LIFE) |
						     STATE_DRAINED))
			:: else
			fi
		:: state_phase(seen) == PHASE_ARMED && won ->
			state[index] = state_next(seen, PHASE_UNREAD,
				  (seen & STATE_LIFE) | STATE_DRAINED);
			entry[index] = 0;
			ready_add(index)
		:: else
		fi;
		won = false;
		seen = 0;
		lock = false
	}
}

inline drain_pages()
{
	index = 0;
	do
	:: index < PLACES -> timeout_drain(); index++
	:: else -> break
	od;
	index = 0
}
#endif

/* The kthread: giving memory back */

#ifdef WITH_SWEEP
#ifdef BREAK_SWEEP_UNLOCKED
#define sweep_may_look	true
#else
#define sweep_may_look	!lock
#endif

#define entry_lives(index, seq) \
	(state_phase(state[index]) == PHASE_ARMED && \
	 state_seq(state[index]) == (seq))

chan kept = [WHEEL_MAX] of { byte, byte, byte };

/*
 * Any pass may sweep.  entry_lives() is one look, with the lock.  So is that of
 * look_ahead(), which moves what was moved later besides: any such entry here, or
 * none.
 */
inline sweep()
{
	do
	:: atomic {
		nempty(wheel) && sweep_may_look ->
		wheel?tick, index, seq;
		if
		:: entry_lives(index, seq) || entry_is_kept(state[index], seq) ->
			kept!tick, index, seq
		:: entry_is_kept(state[index], seq) ->
			seen = state[index];
			if
			:: state[index] == seen ->
				state[index] = state_without_entry(seen);
				entry[index] = 0
			fi;
			seen = 0;
			room_give(1)
		:: entry_lives(index, seq) && deadline[index] > tick &&
		   !(state[index] & STATE_OVERDUE) ->
			entry[index] = deadline[index];
			kept!deadline[index], index, seq
		:: else -> room_give(1)
		fi
	   }
	:: empty(wheel) -> break
	od;
	atomic {
		next_tick = WAKE_NEVER;
		do
		:: kept?tick, index, seq -> wheel!!tick, index, seq
		:: empty(kept) -> break
		od;
		if
		:: nempty(wheel) -> wheel?<next_tick, _, _>
		:: empty(wheel)
		fi;
		tick = 0;
		index = 0;
		seq = 0
	}
}
#endif

/* The kthread: passes */

/* The timer's callback queues the work, and does nothing else: G5. */
inline turn_begin()
{
	work || timer <= now;
	touch();
	work = false;
#ifdef WITH_CLOSE
	in_turn = true;
#endif
	if
	:: timer <= now -> timer = WAKE_NEVER
	:: else
	fi
}

/* pass_begin(), what it does under wake_lock */
inline pass_begin_locked()
{
	passing = true;
	pass_number = passes_wanted;
#ifdef WITH_DRAIN
	pass_drains = drain_wanted;
#endif
#ifndef BREAK_WAKE_ORDER
	wake_ns = WAKE_NEVER
#endif
}

#ifdef BREAK_PASS_END
#define WHEEL_IS_SOONER	true
#else
#define WHEEL_IS_SOONER	(next_tick < wake_ns)
#endif

/* pass_end(), what it does under wake_lock */
inline pass_end_locked()
{
	passing = false;
#ifdef BREAK_PASSES_DONE
	pass_number = passes_wanted;
#endif
	passes_done = pass_number;
	if
	:: passes_wanted != passes_done -> wake_ns = WAKE_NOW
#ifdef WITH_DRAIN
	:: passes_wanted == passes_done && drained
#endif
	:: passes_wanted == passes_done && !drained && WHEEL_IS_SOONER ->
		wake_ns = next_tick
	:: else
	fi;
	wake_program();
	pass_now = 0;
	pass_number = 0
}

proctype kthread()
{
	byte tick, index, seq, due, nr, pass_now, pass_number;
	byte next_tick = WAKE_NEVER;
	short seen;
	bool won, pass_drains;

	do
	:: atomic { turn_begin(); pass_begin_locked() };
	   inbox_take();
#ifdef BREAK_WAKE_ORDER
	   wake_ns = WAKE_NEVER;
#endif
	   pass_now = now;
	   inbox_drain();
	   expire();
#ifdef WITH_DRAIN
	   if
	   :: pass_drains && !drained ->
#ifdef BREAK_DRAINED_EARLY
		drained = true;
#endif
		drain_pages();
		drained = true
	   :: else
	   fi;
	   pass_drains = false;
#endif
#ifdef WITH_SWEEP
	   if
	   :: sweep()
	   :: true
	   fi;
#endif
	   atomic {
		touch();
		pass_end_locked()
#ifdef WITH_CLOSE
		; in_turn = false
#endif
	   }
	od
}

/* DRAIN and the last close */

#ifdef WITH_DRAIN
/* twheel_drain() */
proctype drainer()
{
	byte wanted;

	draining = true;
#ifndef BREAK_NO_GRACE
	/* synchronize_rcu(): each is seen outside, some time or other. */
	!rcu[0];
	!rcu[1];
	!rcu[READER];
#endif
	drain_wanted = true;
	d_step { pass_request(); wanted = passes_wanted };
	d_step {
		pass_is_done(wanted) ->
		wanted = 0;
		assert(drained);
		judge_nothing_pends()
	}
}
#endif

#ifdef WITH_CLOSE
/* twheel_stop(), twheel_destroy(); the last one has gone */
proctype closer()
{
	byte i;

	atomic {
		done[0] && done[1] && done[READER];
#ifndef BREAK_CLOSING
		closing = true
#endif
	};
	/* hrtimer_cancel() */
	timer = WAKE_NEVER;
	/* twheel_turn_cancel() */
	d_step { cancelled = true; work = false };
#ifndef BREAK_CANCEL_WORK
	!in_turn;
#endif
	d_step {
		destroyed = true;
		i = 0;
		do
		:: i < PLACES * IDS_PER_PLACE ->
			if
			:: outcome[i] == OUTCOME_LIVE ->
				outcome[i] = OUTCOME_DESTROYED
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
}
#endif

/* The judge */

/* One place when nobody can do anything more. */
inline judge_place(p_)
{
	assert(outcome_of(p_, state_gen(state[p_])) ==
	       (state_is_live(state[p_]) -> OUTCOME_LIVE : OUTCOME_NONE) ||
	       state_phase(state[p_]) == PHASE_DEAD);
	/* G4: no event waits while the reader does. */
	assert(!state_is_unread(state[p_]) && !expired[p_]);
	/* G4: the next period is the first that nobody was told of. */
	assert(!state_is_fixed_rate(state[p_]) ||
	       deadline[p_] == told_until[p_] + 1);
	/* G4: what pends is not due, and somebody will come when it is. */
	assert(!state_is_pending(state[p_]) ||
	       (deadline[p_] > now && timer <= deadline[p_]));
	if
	:: state_has_entry(state[p_]) ->
		assert(link[p_] == LINK_FREE);
		armed++
	:: state_phase(state[p_]) == PHASE_FREE && !state_has_entry(state[p_]) ->
		assert(link[p_] == LINK_FREE)
	:: state_phase(state[p_]) == PHASE_QUEUED ||
	   state_phase(state[p_]) == PHASE_DEAD ->
		assert(link[p_] == LINK_INBOX);
		room++
	:: else ->
		assert(state_phase(state[p_]) == PHASE_ARMED);
		assert(link[p_] == LINK_NONE);
		armed++
	fi;
	if
	:: state_is_live(state[p_]) -> lives++
	:: else
	fi
}

/*
 * G4: what is ARMED has an entry, and so has a free place that says so.  It has but one: a
 * second one would come back period after period.
 */
inline judge_entries()
{
	i = len(wheel);
	do
	:: i > 0 ->
		wheel?tick, index, seq;
		wheel!tick, index, seq;
		if
		:: (state_phase(state[index]) == PHASE_ARMED ||
		    state_has_entry(state[index])) &&
		   state_seq(state[index]) == seq ->
			assert(tick <= deadline[index] && tick == entry[index]);
			entries++
		:: else
		fi;
		i--
	:: else -> break
	od;
	assert(entries == armed)
}

/* G3: of all that was armed, only what lives has no outcome yet. */
inline judge_ids()
{
	i = 0;
	do
	:: i < PLACES * IDS_PER_PLACE ->
		if
		:: outcome[i] == OUTCOME_LIVE -> ids++
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

init {
	byte i, room, lives, ids, armed, entries, tick, index, seq;

	atomic {
		state[0] = FIRST_STATE;
#if PLACES > 1
		state[1] = FIRST_STATE;
#endif
		run caller(0);
		run caller(1);
		run reader();
		run kthread();
#ifdef WITH_DRAIN
		run drainer();
#endif
#ifdef WITH_CLOSE
		run closer();
#endif
	};
	do
	:: now < TIME_END -> now++
	:: now == TIME_END -> break
	od;
	atomic {
		timeout ->
		judge_ids();
#ifdef WITH_CLOSE
		assert(destroyed && !in_turn && !work);
		assert(timer == WAKE_NEVER);
		assert(ids == 0)
#else
		/* Nobody waits for ever. */
		assert(done[0] && done[1] && !lock && !passing && !work);
		judge_place(0);
#if PLACES > 1
		judge_place(1);
#endif
		judge_entries();
		assert(ids == lives && live == lives);
		assert(room_used == room + len(wheel))
#endif
	}
}
