// SPDX-License-Identifier: GPL-2.0
/*
 * The engine under KUnit: a suite for each of its parts
 *
 * The cases for engine/X.c and engine/X.h are in engine/X_test.c beside this file, and
 * their suite is called twheel_X. Those for twheel_main.c are in main_test.c. Some parts
 * have no file of their own: budget.h and inbox.h are tested with the pass, ending.c with
 * the ways to end (cancel, rearm, events), pages.c with the arena and the refresh table,
 * the memory of user.c with that of wheels, and words.c with the refresh table.
 *
 * The engine is compiled into this file as it is, see engine_parts.h: its transitions are
 * static. So are the suites, which are included after it. This file answers for the rest
 * of the module. The device is a stub, so that nothing is registered. A wheel is served by
 * a worker without a thread: its work stays queued, and a pass takes place when the
 * test makes one, and only then. The clock is the virtual one.
 *
 * Each case has a wheel of its own, and when the case ends audit() counts all that must
 * agree in a wheel at rest. G1 to G8 stand at the cases that fail when the guarantee of
 * that name is broken; the banner of twheel_main.c lists them.
 */
/* It must precede the headers; twheel_main.c defines it again. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

/*
 * The suites call the module's init and exit functions, and may be run again long after
 * this module was loaded.
 */
#undef __init
#define __init
#undef __exit
#define __exit
#undef module_init
#define module_init(...)		static_assert(true)
#undef module_exit
#define module_exit(...)		static_assert(true)
#undef MODULE_DESCRIPTION
#define MODULE_DESCRIPTION(...)	static_assert(true)
#undef MODULE_LICENSE
#define MODULE_LICENSE(...)	static_assert(true)
#undef MODULE_VERSION
#define MODULE_VERSION(...)	static_assert(true)

/* A case sets it to have every page refused. */
static bool no_memory;

static unsigned long page_alloc(gfp_t flags)
{
	return no_memory ? 0 : __get_free_page(flags | __GFP_ZERO);
}

#undef get_zeroed_page
#define get_zeroed_page	page_alloc

/* The address of the object that was freed last. */
static unsigned long freed;

static void object_free(const void *object)
{
	freed = (unsigned long)object;
	kfree(object);
}

#define kfree(object)	object_free(object)

/* Entries that were put into a wheel: new ones, and those that moved. */
static u64 nr_inserted;

#include "twheel_wheel.h"
#define twheel_wheel_insert(w, entry) \
	(nr_inserted++, twheel_wheel_insert(w, entry))

static inline void put_back(struct twheel_wheel *w, struct twheel_chunk *chunk)
{
	nr_inserted += chunk->nr;
	twheel_wheel_put_back(w, chunk);
}

#define twheel_wheel_put_back	put_back

#include "engine_parts.h"

/* A case sets it to have registering the device fail with that error. */
static int chardev_errno;
static int chardev_registered;

int twheel_chardev_register(void)
{
	if (!chardev_errno)
		chardev_registered++;
	return chardev_errno;
}

void twheel_chardev_unregister(void)
{
	chardev_registered--;
}

#include "engine/actions.c"
#include "engine/audit.c"
#include "engine/fixture.c"
#include "engine/transitions.c"

#include "engine/arena_test.c"
#include "engine/arm_test.c"
#include "engine/cancel_test.c"
#include "engine/clock_test.c"
#include "engine/control_test.c"
#include "engine/events_test.c"
#include "engine/keys_test.c"
#include "engine/life_test.c"
#include "engine/look_test.c"
#include "engine/main_test.c"
#include "engine/memory_test.c"
#include "engine/pages_test.c"
#include "engine/pass_test.c"
#include "engine/periods_test.c"
#include "engine/query_test.c"
#include "engine/rearm_test.c"
#include "engine/refresh_test.c"
#include "engine/room_test.c"
#include "engine/shrink_test.c"
#include "engine/slack_test.c"
#include "engine/timeout_test.c"
#include "engine/user_test.c"
#include "engine/wake_test.c"

kunit_test_suites(&arena_suite, &arm_suite, &cancel_suite, &clock_suite, &control_suite,
		  &events_suite, &keys_suite, &life_suite, &look_suite, &main_suite, &memory_suite,
		  &pages_suite, &pass_suite, &periods_suite, &query_suite, &rearm_suite,
		  &refresh_suite, &room_suite, &shrink_suite, &slack_suite, &timeout_suite,
		  &user_suite, &wake_suite);
