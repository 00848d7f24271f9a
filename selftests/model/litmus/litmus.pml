/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two or three threads on a machine that reorders, for spin
 *
 * A thread is a list of up to STEPS steps: loads, stores and what orders them.  Its
 * processor takes them in any order that the list of needs allows: need[i] has a bit for
 * each earlier step of the thread that has to be done before step i.  Anything may
 * overtake anything else: a store that waits in a store buffer is one that is done late,
 * and a load that is speculated is one that is done early.  So this is at least as weak
 * as arm64, where all processors see a store at the same time, and for two threads with
 * full barriers as weak as POWER.
 *
 * litmus.pl reads the steps and the marks of each out of the module's source, works out
 * the needs by the rules of the kernel's memory model, and writes tests.h: tables of the
 * steps, which go into the arrays below, and is_never(), which says whether a test has
 * come to an end that is never to be.  One search goes through all tests.
 */

/* litmus.pl has the same numbers. */
#define STEPS		16
#define THREADS		3

#define STEP_NONE	0
#define STEP_LOAD	1
#define STEP_STORE	2
#define STEP_CHANGE	3	/* load and store, at once */
#define STEP_FENCE	4	/* matters by the needs that name it */
#define STEP_LOCK	5
#define STEP_UNLOCK	6
#define STEP_SECTION	7	/* rcu_read_lock() */
#define STEP_LEAVE	8	/* rcu_read_unlock() */
#define STEP_GRACE	9	/* synchronize_rcu() */

short test;
byte kind[THREADS * STEPS];
byte place[THREADS * STEPS];
byte value[THREADS * STEPS];
int need[THREADS * STEPS];
int all[THREADS];

byte memory[8];
byte seen[THREADS * STEPS];	/* what each load has found */
byte sections;			/* RCU read-side sections that are going on */
byte ended;

c_decl {
	\#include "tests.h"
}

#define CAN_TAKE \
	(kind[me * STEPS + i] != STEP_NONE && !(done & (1 << i)) && \
	 (done & need[me * STEPS + i]) == need[me * STEPS + i] && \
	 (kind[me * STEPS + i] != STEP_LOCK || !memory[place[me * STEPS + i]]) && \
	 (kind[me * STEPS + i] != STEP_GRACE || !sections))

inline take(at)
{
	if
	:: kind[at] == STEP_LOAD -> seen[at] = memory[place[at]]
	:: kind[at] == STEP_STORE -> memory[place[at]] = value[at]
	:: kind[at] == STEP_CHANGE ->
		seen[at] = memory[place[at]];
		memory[place[at]] = value[at]
	:: kind[at] == STEP_LOCK -> memory[place[at]] = 1
	:: kind[at] == STEP_UNLOCK -> memory[place[at]] = 0
	:: kind[at] == STEP_SECTION -> sections++
	:: kind[at] == STEP_LEAVE -> sections--
	:: kind[at] == STEP_FENCE || kind[at] == STEP_GRACE
	fi
}

proctype thread(byte me)
{
	int done;
	byte i;

	do
	:: atomic { done == all[me] -> ended++; break }
	:: atomic {
		done != all[me] ->
		/* Any step whose turn it may be; if none is found, begin again. */
		do
		:: i < STEPS - 1 -> i++
		:: CAN_TAKE -> take(me * STEPS + i); done = done | (1 << i); break
		:: i == STEPS - 1 && !CAN_TAKE -> break
		od;
		i = 0
	   }
	od
}

init {
	int tests;

	atomic {
		c_code { Pinit->tests = TESTS; };
		do
		:: test < tests - 1 -> test++
		:: break
		od;
		c_code {
			int s;

			for (s = first_step[now.test]; steps[s].at >= 0; s++) {
				int at = steps[s].at;

				now.kind[at] = steps[s].kind;
				now.place[at] = steps[s].place;
				now.value[at] = steps[s].value;
				now.need[at] = steps[s].need;
				now.all[at / 16] |= 1 << at % 16;
			}
		};
		run thread(0);
		run thread(1);
		run thread(2)
	};
	atomic {
		ended == THREADS ->
		c_code {
			if (is_never(now.test, now.memory, now.seen))
				printf("never %d\n", now.test);
		}
	}
}
