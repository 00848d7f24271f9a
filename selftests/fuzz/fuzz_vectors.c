// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_vectors.c - ARM, REARM, CANCEL, QUERY and LIST, and write()
 *
 * A vector is filled, gets a fault if the step says so, and is given to the call; then its
 * results are compared with the contract, and on a strict wheel noted in the ledger.
 */
#include "fuzz.h"

#include <sys/uio.h>

#define UNTOUCHED	(-12345)	/* a result that no call returns */

/* Faults of the structure before the vector, from 1 on. */
enum spoil {
	GOOD, SIZE_0, SIZE_SHORT, SIZE_LONG, SIZE_LONG_UNKNOWN, SIZE_PAGE, SIZE_OVER, SIZE_MAX_,
	ENTRY_0, ENTRY_SHORT, ENTRY_LONG, ENTRY_LONG_UNKNOWN, ENTRY_PAGE, ENTRY_OVER, ENTRY_ODD,
	ENTRY_MAX, RESERVED, NR_OVER, NR_MAX, NR_SPOILS
};

struct kind {
	unsigned long cmd;
	__u32 size;		/* of an element */
	__u32 result;		/* offset of its result */
	__s32 first, last;	/* results that mean success */
	const int *calls;	/* the errors of the call */
	const int *entries;	/* the errors of an element */
};

static const int arm_calls[] = { EFAULT, EINVAL, E2BIG, EBADF, ESHUTDOWN, ENOMEM, ENOSPC, 0 };
static const int arm_entries[] = {
	EINVAL, E2BIG, EAGAIN, ENOMEM, ENOSPC, ESHUTDOWN, EEXIST, ENOENT, ERANGE, 0
};

static const int rearm_calls[] = { EFAULT, EINVAL, E2BIG, EBADF, ESHUTDOWN, 0 };
static const int rearm_entries[] = { EINVAL, E2BIG, ENOENT, ERANGE, ENOMEM, ESHUTDOWN, 0 };
static const int plain_calls[] = { EFAULT, EINVAL, E2BIG, EBADF, 0 };
static const int cancel_entries[] = { EINVAL, E2BIG, ENOENT, 0 };
static const int query_entries[] = { E2BIG, ENOENT, 0 };

static const struct kind kinds[] = {
	{ TWHEEL_IOC_ARM, sizeof(struct twheel_arm), offsetof(struct twheel_arm, result),
	  TWHEEL_CREATED, TWHEEL_WAS_UNREAD, arm_calls, arm_entries },
	{ TWHEEL_IOC_REARM, sizeof(struct twheel_arm), offsetof(struct twheel_arm, result),
	  TWHEEL_WAS_PENDING, TWHEEL_WAS_UNREAD, rearm_calls, rearm_entries },
	{ TWHEEL_IOC_CANCEL, sizeof(struct twheel_cancel), offsetof(struct twheel_cancel, result),
	  TWHEEL_WAS_PENDING, TWHEEL_WAS_UNREAD, plain_calls, cancel_entries },
	{ TWHEEL_IOC_QUERY, sizeof(struct twheel_status), offsetof(struct twheel_status, result),
	  0, 0, plain_calls, query_entries },
};

/* A vector and its state during a call. */
struct vector {
	const struct kind *kind;
	struct wheel *wheel;
	struct place head;
	struct place body;
	__u32 entry_size;
	__u32 nr;		/* elements that are filled */
	bool by_key;
	bool refused;		/* the call has to fail */
};

/* ---- elements ------------------------------------------------------------- */

static __u64 some_deadline(struct wheel *w, __u64 *seed, bool absolute)
{
	__u64 tick = w->tick_ns;
	__u64 at = absolute ? wheel_now(w) : 0;

	switch (random_below(seed, 24)) {
	case 0:
		return 0;
	case 1:
		return at + 1;
	case 2:
		return at + tick - 1;
	case 3:
		return at + tick;
	case 4:
		return at + tick + 1;
	case 5:
		return TWHEEL_TIME_NEVER - 1;
	case 6:
		return TWHEEL_TIME_NEVER + random_below(seed, 2);
	case 7:
		return ~0ULL - random_below(seed, 2);
	case 8:		/* a time in the past, if there is one */
		return at - (at ? random64(seed) % at : 0);
	case 9:		/* any time */
		return at + (random64(seed) >> random_below(seed, 64));
	case 10:	/* an edge of some level */
		return at + (tick << random_below(seed, 40)) + random_below(seed, 3) - 1;
	default:	/* a time that comes soon */
		return at + random_below(seed, 64) * tick + random_below(seed, 1000);
	}
}

static __u64 some_interval(struct wheel *w, __u64 *seed)
{
	__u64 tick = w->tick_ns;

	if (random_below(seed, 3))
		return 0;
	/* If the clock is real, short periods would leave time for nothing else. */
	if (w->clock != TWHEEL_CLOCK_VIRTUAL && random_below(seed, 16))
		return 50 * NS_PER_MS + random_below(seed, 1000) * NS_PER_MS;
	switch (random_below(seed, 8)) {
	case 0:
		return 1;
	case 1:
		return tick - 1;
	case 2:
		return tick;
	case 3:
		return tick + 1;
	case 4:
		return ~0ULL - random_below(seed, 2) * (1ULL << 63);
	default:
		return tick * (1 + random_below(seed, 100)) + random_below(seed, 3) - 1;
	}
}

static void fill_arm(struct thread *t, struct wheel *w, struct twheel_arm *arm, __u64 *seed)
{
	static const __u32 repeats[] = { 1, 1, 2, 3, 100, 0xffffffff };
	bool settable = w->clock == TWHEEL_CLOCK_REALTIME || w->clock == TWHEEL_CLOCK_TAI;
	/* If a clock can be set, it has no relative times. */
	bool absolute = settable ? !one_in(seed, 16) : random_below(seed, 2);

	arm->expires_ns = some_deadline(w, seed, absolute);
	arm->interval_ns = some_interval(w, seed);
	arm->flags = absolute ? TWHEEL_ARM_ABSOLUTE : 0;
	if (arm->interval_ns && one_in(seed, 3))
		arm->flags |= TWHEEL_ARM_FIXED_DELAY;
	if (arm->interval_ns && one_in(seed, 2))
		arm->repeats = repeats[random_below(seed, 6)];
	if (one_in(seed, 4))
		arm->slack_ticks = random32(seed) >> (15 + random_below(seed, 17));
	arm->user_data = w->may_be_keyed ? wheel_some_key(seed) :
					   (__u64)t->nr << 56 | t->serial++;
	if (w->may_be_keyed && one_in(seed, 4))
		arm->flags |= TWHEEL_ARM_IF_ABSENT << random_below(seed, 2);
	if (one_in(seed, w->may_be_keyed ? 4 : 64))
		arm->flags |= TWHEEL_ARM_ONLY_LATER << random_below(seed, 2);
	if (!one_in(seed, 24))
		return;
	switch (random_below(seed, 3)) {
	case 0:
		arm->flags |= 1U << random_below(seed, 32);
		break;
	case 1:
		arm->flags |= TWHEEL_ARM_FIXED_DELAY;
		break;
	case 2:
		arm->repeats = random32(seed);
		break;
	}
}

static __u64 some_name(const struct vector *v, __u64 *seed)
{
	return v->by_key ? wheel_some_key(seed) : wheel_some_id(v->wheel, seed);
}

static void fill(struct thread *t, struct vector *v, __u64 seed)
{
	unsigned char *entry = v->body.mine;
	__u32 i;

	for (i = 0; i < v->nr; i++, entry += v->entry_size) {
		memset(entry, 0, v->entry_size);
		if (v->kind->size == sizeof(struct twheel_arm)) {
			fill_arm(t, v->wheel, (void *)entry, &seed);
			((struct twheel_arm *)entry)->id = some_name(v, &seed);
		} else {	/* the id is the first field */
			*(__u64 *)entry = some_name(v, &seed);
		}
		if (v->kind->cmd == TWHEEL_IOC_CANCEL && one_in(&seed, 64))
			((struct twheel_cancel *)entry)->reserved = 1;
		*(__s32 *)(entry + v->kind->result) = UNTOUCHED;
	}
}

/* ---- the structure before it ---------------------------------------------- */

static __u32 some_nr(const struct step *step)
{
	/* Lengths are mostly short, so that many calls are made, or near those of batches. */
	static const __u8 usual[32] = {
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 8, 0
	};
	static const __u8 edges[] = { 13, 31, 32, 33, 64, 65, 100 };
	__u64 seed = mix(step->seed, 1);

	if (step->nr < 252)
		return usual[step->nr % 32];
	if (step->nr == 255 && one_in(&seed, 8))
		return one_in(&seed, 16) ? 65536 : 1000;
	return edges[random_below(&seed, sizeof(edges))];
}

static __u32 spoil_size(enum spoil spoil, __u32 size, bool *refused)
{
	static const __s8 refuses[NR_SPOILS] = {
		[SIZE_0] = 1, [SIZE_SHORT] = 1, [SIZE_LONG_UNKNOWN] = 1, [SIZE_OVER] = 1,
		[SIZE_MAX_] = 1, [ENTRY_0] = 1, [ENTRY_SHORT] = 1, [ENTRY_OVER] = 1,
		[ENTRY_ODD] = 1, [ENTRY_MAX] = 1, [RESERVED] = 1, [NR_OVER] = 1, [NR_MAX] = 1,
	};

	*refused = refuses[spoil];
	switch (spoil) {
	case SIZE_0: case ENTRY_0:
		return 0;
	case SIZE_SHORT: case ENTRY_SHORT:
		return size - 1;
	case SIZE_LONG: case SIZE_LONG_UNKNOWN: case ENTRY_LONG: case ENTRY_LONG_UNKNOWN:
		return size + 8;
	case SIZE_PAGE: case ENTRY_PAGE:
		return TWHEEL_SIZE_MAX;
	case SIZE_OVER:
		return TWHEEL_SIZE_MAX + 1;
	case ENTRY_OVER:
		return TWHEEL_SIZE_MAX + 8;
	case ENTRY_ODD:
		return size + 4;
	case SIZE_MAX_: case ENTRY_MAX:
		return ~0U;
	default:
		return size;
	}
}

/* How many elements are filled: if they will be refused, few. */
static __u32 vector_room(const struct vector *v)
{
	if (!v->entry_size || v->entry_size > TWHEEL_SIZE_MAX)
		return 0;
	if (v->refused)
		return min(v->nr, 64U);
	return min((size_t)v->nr, VIEW_PAGES * 4096UL / v->entry_size);
}

/*
 * Whether names are keys. If the wheel has none, the call fails, unless another thread has made it
 * keyed. The ledger needs ids: if the wheel is strict, only QUERY goes by keys.
 */
static bool is_by_key(const struct vector *v, const struct step *step)
{
	__u64 seed = mix(step->seed, 3);

	if (v->kind->cmd == TWHEEL_IOC_ARM)
		return one_in(&seed, 64);
	if (v->wheel->strict && v->kind->cmd != TWHEEL_IOC_QUERY)
		return false;
	return one_in(&seed, v->wheel->may_be_keyed ? 2 : 64);
}

static struct vector vector_make(struct thread *t, const struct step *step,
				 const struct kind *kind)
{
	enum spoil spoil = step->spoil % NR_SPOILS;
	struct twheel_vector header = { .size = sizeof(header) };
	struct vector v = {
		.kind	= kind,
		.wheel	= &wheels[step->wheel],
		.head	= place_head(t, step->place, step->seed),
		.nr	= some_nr(step),
	};
	__u32 nr;

	header.entry_size = kind->size;
	if (spoil >= ENTRY_0 && spoil <= ENTRY_MAX)
		header.entry_size = spoil_size(spoil, kind->size, &v.refused);
	else
		header.size = spoil_size(spoil, sizeof(header), &v.refused);
	v.by_key = is_by_key(&v, step);
	header.flags = v.by_key ? TWHEEL_VECTOR_BY_KEY : 0;
	if (spoil == RESERVED)
		header.flags |= TWHEEL_VECTOR_BY_KEY << 1;
	if (v.by_key && kind->cmd == TWHEEL_IOC_ARM)
		v.refused = true;
	v.entry_size = header.entry_size;
	v.nr = vector_room(&v);
	nr = v.nr;
	if (spoil == NR_OVER || spoil == NR_MAX)
		nr = spoil == NR_OVER ? 65537 : ~0U;
	header.nr = nr;
	v.body = place_choose(t, step->place, step->seed, (size_t)v.nr * v.entry_size,
			      v.wheel->strict);
	header.entries = v.body.user;
	v.refused |= v.body.user % 8;
	memset(v.head.mine, 0, sizeof(header) + 8);
	if (header.size == TWHEEL_SIZE_MAX)
		memset(v.head.mine, 0, TWHEEL_SIZE_MAX);
	memcpy(v.head.mine, &header, sizeof(header));
	if (spoil == SIZE_LONG_UNKNOWN)
		v.head.mine[sizeof(header) + 7] = 1;
	fill(t, &v, step->seed);
	if (spoil == ENTRY_LONG_UNKNOWN && v.nr)
		v.body.mine[v.entry_size - 1] = 1;
	return v;
}

/* ---- results -------------------------------------------------------------- */

static void note_success(struct thread *t, struct vector *v, int wheel,
			 const struct twheel_arm *entry, __s32 result)
{
	struct record record = { .id = entry->id, .wheel = wheel };

	switch (v->kind->cmd) {
	case TWHEEL_IOC_ARM:
		wheel_remember(v->wheel, entry->id);
		if (result != TWHEEL_CREATED && !v->wheel->may_be_keyed)
			wrong(CHECK_ANSWERS, "ARM without keys says %d", result);
		record.fact = result == TWHEEL_CREATED ? ARMED : REARMED;
		record.user_data = entry->user_data;
		record.periodic = entry->interval_ns;
		record.count = entry->repeats;
		break;
	case TWHEEL_IOC_REARM:
		record.fact = REARMED;
		break;
	case TWHEEL_IOC_CANCEL:
		/* In an element, the id is the first field. */
		record.id = *(const __u64 *)entry;
		record.fact = result == TWHEEL_WAS_PENDING ? CANCELLED : REVOKED;
		break;
	}
	if (v->wheel->strict && v->kind->cmd != TWHEEL_IOC_QUERY)
		ledger_note(&t->ledger, &record);
}

static void check_status(const struct twheel_status *s)
{
	__u32 fixed = s->flags & TWHEEL_ARM_FIXED_DELAY, last = s->flags & TWHEEL_STATUS_LAST_EVENT;

	if (s->state < TWHEEL_STATE_PENDING || s->state > TWHEEL_STATE_DRAINED ||
	    s->deadline_ns > TWHEEL_TIME_NEVER || s->left_ns > TWHEEL_TIME_NEVER ||
	    s->flags != (fixed | last) || (fixed && !s->interval_ns) ||
	    (last && (s->state == TWHEEL_STATE_PENDING || s->left_ns)) ||
	    (s->state == TWHEEL_STATE_DRAINED && !last) || !s->id)
		wrong(CHECK_ANSWERS,
		      "id %#llx: state %u deadline %llu left %llu interval %llu flags %#x",
		      s->id, s->state, s->deadline_ns, s->left_ns, s->interval_ns, s->flags);
}

/* Return the element at which the call says that it stopped: no element from there on succeeded. */
static __u32 vector_done(const struct vector *v, int ret)
{
	__u32 nr_done;

	if (ret < 0)
		return 0;
	memcpy(&nr_done, v->head.mine + offsetof(struct twheel_vector, nr_done), sizeof(nr_done));
	if (nr_done > v->nr || nr_done < (__u32)ret)
		wrong(CHECK_ANSWERS, "command %#lx returns %d and has attempted %u of %u",
		      v->kind->cmd, ret, nr_done, v->nr);
	return nr_done;
}

/* Count the successes among the elements that could be written, as the kernel does. */
static int vector_check(struct thread *t, struct vector *v, int wheel, __u32 nr_done)
{
	size_t until = v->kind->cmd == TWHEEL_IOC_QUERY ? v->kind->size :
							  v->kind->result + sizeof(__s32);
	const unsigned char *entry = v->body.mine;
	int ok = 0;
	__u32 i;

	for (i = 0; i < v->nr; i++, entry += v->entry_size) {
		__s32 result = *(const __s32 *)(entry + v->kind->result);

		if (i * (size_t)v->entry_size + until > v->body.writable)
			break;
		if (result == UNTOUCHED || (i >= nr_done && result == -ESHUTDOWN))
			continue;
		if (i >= nr_done && nr_done)
			wrong(CHECK_ANSWERS, "command %#lx: element %u of %u says %d", v->kind->cmd,
			      i, nr_done, result);
		if (result >= v->kind->first && result <= v->kind->last) {
			ok++;
			note_success(t, v, wheel, (const void *)entry, result);
			if (v->kind->cmd == TWHEEL_IOC_QUERY)
				check_status((const void *)entry);
		} else if (result >= 0 || !answer_is_one_of(result, v->kind->entries)) {
			wrong(CHECK_ANSWERS, "command %#lx: element %u says %d", v->kind->cmd, i,
			      result);
		}
	}
	return ok;
}

void run_vector(struct thread *t, const struct step *step)
{
	const struct kind *kind = &kinds[step->op - OP_ARM];
	struct vector v = vector_make(t, step, kind);
	__u32 nr_done;
	int ret, ok;

	ret = call_ioctl(t, fd_of(step->wheel, step->alias), kind->cmd, v.head.user);
	answered(t, ret, kind->calls, v.refused);
	if (v.body.lossy)
		return;
	nr_done = vector_done(&v, ret);
	ok = vector_check(t, &v, step->wheel, nr_done);
	if (ok != max(ret, 0) && !t->child)
		wrong(CHECK_ANSWERS, "command %#lx returns %d and %d elements succeeded",
		      kind->cmd, ret, ok);
}

/* ---- LIST ----------------------------------------------------------------- */

static const int list_calls[] = { EFAULT, EINVAL, E2BIG, EBADF, EINTR, 0 };

static struct twheel_list list_header(const struct step *step, bool *refused)
{
	enum spoil spoil = step->spoil % NR_SPOILS;
	struct twheel_list list = {
		.size		= sizeof(list),
		.entry_size	= sizeof(struct twheel_status),
		.nr		= some_nr(step),
		.flags		= spoil == RESERVED,
	};
	__u64 seed = mix(step->seed, 2);

	if (spoil >= ENTRY_0 && spoil <= ENTRY_MAX)
		list.entry_size = spoil_size(spoil, list.entry_size, refused);
	else
		list.size = spoil_size(spoil, list.size, refused);
	if (spoil == NR_OVER || spoil == NR_MAX)
		list.nr = spoil == NR_OVER ? 65537 : ~0U;
	else if (list.nr > 1024)
		list.nr = 1024;
	if (list.entry_size > TWHEEL_SIZE_MAX)
		list.nr = min(list.nr, 64U);
	*refused |= !list.nr;
	if (one_in(&seed, 4))
		list.cursor = one_in(&seed, 2) ? random_below(&seed, 2000) :
						 random64(&seed) >> random_below(&seed, 64);
	return list;
}

/* The rows of one call must be in the order of their places, each once. */
static void check_rows(const struct place *rows, __u32 stride, int nr)
{
	__s64 last = -1;
	int i;

	for (i = 0; i < nr && (i + 1) * (size_t)stride <= rows->writable; i++) {
		const struct twheel_status *row = (const void *)(rows->mine + i * stride);

		check_status(row);
		if ((__u32)row->id <= last)
			wrong(CHECK_ANSWERS, "LIST: place %u after %lld", (__u32)row->id, last);
		last = (__u32)row->id;
	}
}

void run_list(struct thread *t, const struct step *step)
{
	bool refused = false, strict = wheels[step->wheel].strict;
	struct twheel_list list = list_header(step, &refused);
	struct place head = place_head(t, step->place, step->seed);
	__u32 room = refused ? 0 : list.nr;
	struct place rows = place_choose(t, step->place, step->seed,
					 (size_t)room * list.entry_size, strict);
	int i, ret;

	list.entries = rows.user;
	refused |= rows.user % 8;
	memset(head.mine, 0, list.size == TWHEEL_SIZE_MAX ? TWHEEL_SIZE_MAX : 48);
	memcpy(head.mine, &list, sizeof(list));
	if (step->spoil % NR_SPOILS == SIZE_LONG_UNKNOWN)
		head.mine[sizeof(list) + 7] = 1;
	/* The walk goes on by itself: the kernel has moved the cursor. */
	for (i = 0; i < 1 + step->kind % 8; i++) {
		ret = call_ioctl(t, fd_of(step->wheel, step->alias), TWHEEL_IOC_LIST, head.user);
		answered(t, ret, list_calls, refused);
		if (ret <= 0)
			break;
		if ((__u32)ret > list.nr)
			wrong(CHECK_ANSWERS, "LIST: %d rows of %u", ret, list.nr);
		else if (!rows.lossy)
			check_rows(&rows, list.entry_size, ret);
	}
}

/* ---- write() -------------------------------------------------------------- */

static const int write_fails[] = {
	EAGAIN, EBADF, EBUSY, EEXIST, EFAULT, EINTR, EINVAL, ENOENT, ENOMEM, ENOSPC, ERANGE,
	ESHUTDOWN, 0
};

/* Whether a record names no operation, so that write() has to stop there. */
static bool record_is_odd(const struct twheel_record *record)
{
	return record->op < TWHEEL_OP_ARM || record->op > TWHEEL_OP_SETUP;
}

/*
 * If the wheel is strict, only use records of REARM: write() reports neither the ids of an ARM nor
 * the verdict of a CANCEL, which the ledger needs. If the wheel may have keys, do not even use
 * REARM, whose record would not have an id.
 */
static void fill_record(struct thread *t, struct wheel *w, struct twheel_record *record,
			__u64 *seed)
{
	static const __u32 ops[] = {
		TWHEEL_OP_REARM, TWHEEL_OP_ARM, TWHEEL_OP_CANCEL, TWHEEL_OP_SETUP
	};
	struct twheel_arm arm = {};

	fill_arm(t, w, &arm, seed);
	record->op = ops[w->strict ? 0 : random_below(seed, one_in(seed, 64) ? 4 : 3)];
	if (one_in(seed, 24))
		record->op = one_in(seed, 2) ? 0 : 5 + (random32(seed) >> 3);
	if (w->strict && w->may_be_keyed)
		record->op = 0;
	record->key = record->op == TWHEEL_OP_ARM || w->may_be_keyed ? arm.user_data : arm.id;
	if (!w->strict && one_in(seed, 2))
		record->flags = TWHEEL_RECORD_ABSENT_OK;
	if (record->op == TWHEEL_OP_CANCEL && random_below(seed, 16))
		return;
	record->flags |= arm.flags;
	/* Records that were done must have found a timeout, which the ledger counts. */
	if (w->strict)
		record->flags &= ~TWHEEL_RECORD_ABSENT_OK;
	record->expires_ns = arm.expires_ns;
	record->interval_ns = arm.interval_ns;
	record->repeats = arm.repeats;
	record->slack_ticks = arm.slack_ticks;
	if (record->op != TWHEEL_OP_SETUP)
		return;
	w->may_be_keyed = true;
	((struct twheel_setup_record *)record)->clock = TWHEEL_CLOCK_MONOTONIC +
							random_below(seed, 6);
}

static void write_done(struct thread *t, const struct step *step, const struct place *place,
		       __u32 nr, int ret)
{
	const struct twheel_record *record = (const void *)place->mine;
	const size_t each = sizeof(*record);
	__u32 i;

	answered(t, ret, write_fails, !nr);
	if (ret < 0 || place->lossy)
		return;
	if (ret % each || ret / each > nr)
		wrong(CHECK_ANSWERS, "write of %u records returns %d", nr, ret);
	for (i = 0; i < ret / each && i < nr; i++) {
		struct record fact = {
			.id = record[i].key, .wheel = step->wheel, .fact = REARMED,
		};

		if (record_is_odd(&record[i]))
			wrong(CHECK_ANSWERS, "write does operation %u", record[i].op);
		if (wheels[step->wheel].strict)
			ledger_note(&t->ledger, &fact);
	}
}

/* Write without RWF_NOWAIT, and with it; and sometimes with a partial record at the end. */
void run_write(struct thread *t, const struct step *step)
{
	struct wheel *w = &wheels[step->wheel];
	__u32 nr = min(some_nr(step), 100U), i;
	size_t size = nr * sizeof(struct twheel_record);
	struct place place = place_choose(t, step->place, step->seed, size, w->strict);
	struct twheel_record *record = (void *)place.mine;
	size_t cut = step->spoil && nr ? step->spoil % sizeof(*record) : 0;
	struct iovec iov = { (void *)(uintptr_t)place.user, size - cut };
	__u64 seed = step->seed;
	ssize_t ret;

	memset(place.mine, 0, size);
	for (i = 0; i < nr; i++)
		fill_record(t, w, &record[i], &seed);
	call_begin(t);
	ret = pwritev2(fd_of(step->wheel, step->alias), &iov, 1, -1,
		       step->kind % 2 ? RWF_NOWAIT : 0);
	call_end(t);
	if (iov.iov_len)
		write_done(t, step, &place, nr - !!cut, ret < 0 ? -errno : ret);
}
