// SPDX-License-Identifier: GPL-2.0
/*
 * Control: creating, setting up, starting and destroying a wheel
 *
 * A wheel starts once, by SETUP or by its first ARM.  It gets memory for its slots, an hrtimer and
 * a kthread only then; its configuration is constant from there on.
 */
#include <linux/err.h>
#include <linux/kmemleak.h>

#include "lock.h"

#define DEFAULT_SLOTS		1024
#define DEFAULT_MAX_PENDING	1048576U

/* Bytes charged for a wheel before it is armed; the 256 are for its first open file. */
#define WHEEL_SIZE	(PAGE_ALIGN(sizeof(struct tw_ctx)) + 256)

unsigned int twheel_max_pending_limit = 16777216;

static atomic64_t nr_opened;

/* The last state first: a wheel goes from each to those above it only. */
enum twheel_wheel_state twheel_state(const struct tw_ctx *tw)
{
	if (twheel_is_drained(tw))
		return TWHEEL_WHEEL_DRAINED;
	if (READ_ONCE(tw->control.draining))
		return TWHEEL_WHEEL_DRAINING;
	return twheel_is_started(tw) ? TWHEEL_WHEEL_RUNNING : TWHEEL_WHEEL_NEW;
}

bool twheel_is_started(const struct tw_ctx *tw)
{
	return control_is_started(&tw->control);
}

/* Whether keys name timeouts.  Either answer may come while another thread sets the wheel up. */
bool twheel_is_keyed(const struct tw_ctx *tw)
{
	/*
	 * Pairs with the release in twheel_keys_start(): a caller that goes by keys finds the
	 * index.  Test: litmus keyed
	 */
	return smp_load_acquire(&tw->keys.used);
}

/* Whether a name can stand in a line of text and in JSON as it is, and only zeroes follow it. */
static bool name_is_valid(const char name[TWHEEL_NAME_SIZE])
{
	unsigned int i;

	for (i = 0; name[i]; i++)
		if (i == TWHEEL_NAME_SIZE - 1 || name[i] <= ' ' || name[i] > '~' ||
		    name[i] == '"' || name[i] == '\\')
			return false;
	return !memchr_inv(name + i, 0, TWHEEL_NAME_SIZE - i);
}

/* Put defaults for zeroes, and round @slots up: 0, or -EINVAL if a value is beyond its limits. */
static int setup_complete(struct twheel_setup *setup)
{
	u32 max_pending_limit = READ_ONCE(twheel_max_pending_limit);

	setup->tick_ns = setup->tick_ns ?: TWHEEL_TICK_DEFAULT_NS;
	setup->slots = setup->slots ?: DEFAULT_SLOTS;
	setup->max_pending = setup->max_pending ?: min(max_pending_limit, DEFAULT_MAX_PENDING);
	setup->event_size = setup->event_size ?: TWHEEL_EVENT_SIZE_MIN;
	if (setup->flags & ~(TWHEEL_SETUP_ONE_LEVEL | TWHEEL_SETUP_KEYED))
		return -EINVAL;
	if (setup->slack_ns > TWHEEL_SLACK_MAX_NS)
		return -EINVAL;
	if (!event_size_is_valid(setup->event_size))
		return -EINVAL;
	if (!name_is_valid(setup->name))
		return -EINVAL;
	if (setup->clock < TWHEEL_CLOCK_MONOTONIC || setup->clock > TWHEEL_CLOCK_VIRTUAL)
		return -EINVAL;
	if (setup->tick_ns < TWHEEL_TICK_MIN_NS || setup->tick_ns > TWHEEL_TICK_MAX_NS)
		return -EINVAL;
	if (setup->slots < TWHEEL_SLOTS_MIN || setup->slots > TWHEEL_SLOTS_MAX)
		return -EINVAL;
	if (setup->max_pending > max_pending_limit)
		return -EINVAL;
	setup->slots = roundup_pow_of_two(setup->slots);
	/* G6: with one level, the softirq runs once a round for nothing. */
	if (setup->flags & TWHEEL_SETUP_ONE_LEVEL &&
	    setup->tick_ns * setup->slots < TWHEEL_ROUND_MIN_NS)
		return -EINVAL;
	return 0;
}

static const struct twheel_setup defaults = { .clock = TWHEEL_CLOCK_MONOTONIC };

static void setup_apply(struct tw_ctx *tw, const struct twheel_setup *setup)
{
	tw->clock.kind = setup->clock;
	tw->clock.tick_ns = setup->tick_ns;
	tw->clock.slack_ns = setup->slack_ns;
	tw->words.shift = ilog2(setup->tick_ns);
	tw->control.slots = setup->slots;
	tw->control.setup_flags = setup->flags;
	memcpy(tw->control.name, setup->name, sizeof(tw->control.name));
	WRITE_ONCE(tw->control.event_size, setup->event_size);
	WRITE_ONCE(tw->places.max_pending, setup->max_pending);
}

/*
 * Configure a wheel that has not started as it would be without SETUP.  The caller holds
 * control.mutex, unless the wheel is new.  The limit of the module, which bounds max_pending, may
 * have changed since the last call.
 */
void twheel_set_defaults(struct tw_ctx *tw)
{
	struct twheel_setup setup = defaults;

	(void)setup_complete(&setup);
	setup_apply(tw, &setup);
}

/*
 * Give a wheel its slots, hrtimer and kthread: its configuration is final from here on.  All memory
 * comes first: if there is none, the wheel stays as it was.
 */
static int wheel_start(struct tw_ctx *tw, const struct twheel_setup *setup)
	__must_hold(&tw->control.mutex)
{
	struct twheel_wheel_config config = {
		.tick_ns	= setup->tick_ns,
		.slots		= setup->slots,
		.one_level	= setup->flags & TWHEEL_SETUP_ONE_LEVEL,
	};
	size_t size = twheel_wheel_size(&config);
	void *memory;
	int err;

	err = twheel_area_get(&tw->memory, size, &memory);
	if (err)
		return err;
	if (setup->flags & TWHEEL_SETUP_KEYED) {
		err = twheel_keys_start(tw, setup->max_pending);
		if (err)
			goto free_slots;
	}
	setup_apply(tw, setup);
	tw->slots_memory = memory;
	tw->slots_size = size;
	tw->clock.offset_ns = twheel_namespace_offset_ns(tw->clock.kind);
	WRITE_ONCE(tw->clock.settable,
		   tw->clock.kind == TWHEEL_CLOCK_REALTIME || tw->clock.kind == TWHEEL_CLOCK_TAI);
	tw->clock.never_ns = min(edge_before_ns(&tw->clock, TWHEEL_TIME_NEVER) + 1,
				 TWHEEL_TIME_NEVER);
	twheel_wheel_init(&tw->wheel, &config, memory,
			  edge_before_ns(&tw->clock, clock_now(&tw->clock)));
	tw->clock.steady = !tw->clock.settable && !tw->clock.slack_ns && tw->wheel.nr_levels > 1;
	twheel_alarm_init(tw);
	twheel_turn_init(&tw->turn, tw->memory.user, twheel_run_turn);
	twheel_syncpoint(SYNC_START);
	/*
	 * Pairs with the acquire in control_is_started(): all of the above is seen.
	 * Test: litmus started
	 */
	smp_store_release(&tw->control.started, true);
	return 0;

free_slots:
	twheel_area_free(memory, size);
	twheel_memory_uncharge(&tw->memory, PAGE_ALIGN(size));
	return err;
}

/*
 * Configure a wheel and start it.  A call that fails leaves the wheel as it was.  Returns 0;
 * -EINVAL if a value is not within its limits; -EBUSY if the wheel has started; -ESHUTDOWN if it
 * was drained; -ENOMEM, or -ENOSPC at the limit of memory; -EINTR by a fatal signal.
 */
int twheel_configure(struct tw_ctx *tw, const struct twheel_setup *setup)
{
	struct twheel_setup complete = *setup;
	int err = setup_complete(&complete);

	if (err)
		return err;
	if (mutex_lock_killable(&tw->control.mutex))
		return -EINTR;
	if (tw->control.draining)
		err = -ESHUTDOWN;
	else if (tw->control.started)
		err = -EBUSY;
	else
		err = wheel_start(tw, &complete);
	mutex_unlock(&tw->control.mutex);
	return err;
}

/*
 * Start a wheel with the defaults: 0 if it has started, now or before; else as twheel_configure().
 */
int twheel_start_lazily(struct tw_ctx *tw)
{
	int err = twheel_configure(tw, &defaults);

	return err == -EBUSY ? 0 : err;
}

/*
 * Make a wheel with the default configuration, for one open file, charged to the calling user.  It
 * takes the memory of its slots when it starts.  If this fails, returns an ERR_PTR: -ENOMEM, or
 * -ENOSPC at the limit of memory.
 */
struct tw_ctx *twheel_create(void)
{
	struct tw_ctx *tw = twheel_area_alloc(sizeof(*tw));
	int err;

	if (!tw)
		return ERR_PTR(-ENOMEM);
	tw->memory.user = twheel_user_get();
	if (IS_ERR(tw->memory.user)) {
		err = PTR_ERR(tw->memory.user);
		goto free_wheel;
	}
	err = twheel_memory_charge(&tw->memory, WHEEL_SIZE);
	if (err)
		goto put_user;
	/*
	 * kmemleak does not scan whole pages by itself.  The wheel holds the only
	 * references to areas from vmalloc(), which kmemleak would report as leaked.
	 */
	if (!is_vmalloc_addr(tw))
		kmemleak_alloc(tw, sizeof(*tw), 1, GFP_KERNEL);
	twheel_set_defaults(tw);
	mutex_init(&tw->control.mutex);
	refcount_set(&tw->control.nr_files, 1);
	spin_lock_init(&tw->lock);
	init_llist_head(&tw->inbox);
	init_waitqueue_head(&tw->waiters);
	events_init(&tw->events);
	twheel_places_init(tw);
	address_space_init_once(&tw->words.mapping);
	tw->control.nr = atomic64_inc_return(&nr_opened);
	counter_add(COUNTER_WHEELS, 1);
	return tw;

put_user:
	twheel_user_put(tw->memory.user);
free_wheel:
	twheel_area_free(tw, sizeof(*tw));
	return ERR_PTR(err);
}

/*
 * Stop all that may run in a wheel without a call.  A thread that releases the lock may insert
 * timeouts from the inbox, and set the alarm.  So cancel the hrtimer last, when only its own
 * function takes the lock, and asks for turns in vain.
 */
static void wheel_stop(struct tw_ctx *tw)
{
	cancel_delayed_work_sync(&tw->memory.shrink);
	if (!tw->control.started)
		return;
	twheel_turn_cancel(&tw->turn);
	hrtimer_cancel(&tw->alarm.timer);
}

/*
 * Destroy a wheel and all timeouts in it.  G3: timeouts that are left, and unread events, end here.
 */
static void twheel_destroy(struct tw_ctx *tw)
{
	counter_add(COUNTER_WHEELS, -1);
	wheel_stop(tw);
	twheel_area_free(tw->slots_memory, tw->slots_size);
	twheel_words_free(&tw->words);
	twheel_places_free(&tw->places);
	twheel_keys_free(&tw->keys);
	twheel_uncharge(tw->memory.user, atomic_long_read(&tw->memory.charged));
	twheel_user_put(tw->memory.user);
	if (!is_vmalloc_addr(tw))
		kmemleak_free(tw);
	twheel_area_free(tw, sizeof(*tw));
}

/* One more open file has the wheel; the caller has an open file of it. */
void twheel_get(struct tw_ctx *tw)
{
	refcount_inc(&tw->control.nr_files);
}

/* An open file of the wheel is closed.  The last close destroys the wheel, and sleeps. */
void twheel_put(struct tw_ctx *tw)
{
	if (refcount_dec_and_test(&tw->control.nr_files))
		twheel_destroy(tw);
}
