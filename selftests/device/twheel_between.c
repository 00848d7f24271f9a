// SPDX-License-Identifier: GPL-2.0
/*
 * Another call in the middle of a call, after that has copied out a result and before it has done
 * what the result says.
 *
 * A call copies the result of an element out, and then does what the result says. Here a call is
 * held in between, or before a batch, by a fault in the memory that it writes to (twheel_held.h),
 * and another call begins and ends while it is held. G3: each timeout has exactly one outcome, as
 * if one call had come after the other. A model of the wheel says which.
 *
 * A call is also held while it copies in, before it has looked an element up.
 */
#include "twheel_held.h"
#include "twheel_keyed.h"

#include <stddef.h>

/* Elements of the held call: a batch of any call, and some more. */
#define NR		40

/* Two other timeouts: one that exists and that nobody touches, and one to be armed. */
#define BYSTANDER	NR
#define OTHER		(NR + 1)
#define LINES		(NR + 2)

/* Deadlines: the first one of a line, that of the held call, and that of the other call. */
#define FIRST_NS(line)	((10 + (line)) * TW_MS)
#define EXPIRED_NS	(60 * TW_MS)
#define HELD_NS		(200 * TW_MS)
#define OTHER_NS	(300 * TW_MS)
#define REFRESHED_NS	tw_refreshed_ns(250 * TW_MS, tw_shift(TW_MS))
#define LATER_NS	(400 * TW_MS)
#define STANDING_NS	TW_HOUR

/* ---- the model ------------------------------------------------------------ */

enum state { ABSENT, PENDING, UNREAD, DRAINED };

struct line {
	enum state state;
	__u64 id;		/* the id of its last timeout, 0 if none */
	__u64 deadline_ns;
};

/* A wheel, and the state that it must have. The number of a line is its user_data, or its key. */
struct world {
	int fd;
	bool keyed;
	bool draining;
	__u64 now_ns;
	__u64 *table;
	__u64 table_size;
	struct line line[LINES];
	__u64 armed, rearmed, cancelled, revoked, completed, drained;
};

/* The result that an element gets. */
struct said {
	__s32 result;
	bool nothing;		/* the element is unchanged */
	__u64 was_deadline_ns;
};

static __s32 model_compare(const struct line *line, __u32 flags, __u64 deadline_ns)
{
	if (flags & TWHEEL_ARM_ONLY_LATER && deadline_ns <= line->deadline_ns)
		return -ERANGE;
	if (flags & TWHEEL_ARM_ONLY_EARLIER && deadline_ns >= line->deadline_ns)
		return -ERANGE;
	return 0;
}

static struct said model_rearm(struct world *world, int i, __u32 flags, __u64 deadline_ns)
{
	struct line *line = &world->line[i];
	struct said said = {};

	if (world->draining)
		said.result = -ESHUTDOWN;
	else if (line->state == ABSENT)
		said.result = -ENOENT;
	else
		said.result = model_compare(line, flags, deadline_ns);
	if (said.result)
		return said;
	said.result = line->state == PENDING ? TWHEEL_WAS_PENDING : TWHEEL_WAS_UNREAD;
	said.was_deadline_ns = line->deadline_ns;
	line->state = PENDING;
	line->deadline_ns = deadline_ns;
	world->rearmed++;
	return said;
}

static struct said model_arm(struct world *world, int i, __u32 flags, __u64 deadline_ns)
{
	struct line *line = &world->line[i];
	struct said said = {};

	if (world->draining)
		said.result = -ESHUTDOWN;
	else if (line->state != ABSENT && flags & TWHEEL_ARM_IF_ABSENT)
		said.result = -EEXIST;
	else if (line->state == ABSENT && flags & TWHEEL_ARM_IF_PRESENT)
		said.result = -ENOENT;
	if (said.result)
		return said;
	if (line->state != ABSENT)
		return model_rearm(world, i, flags, deadline_ns);
	said.result = TWHEEL_CREATED;
	line->state = PENDING;
	line->deadline_ns = deadline_ns;
	world->armed++;
	return said;
}

static struct said model_cancel(struct world *world, int i)
{
	struct line *line = &world->line[i];
	struct said said = {};

	if (line->state == ABSENT) {
		said.result = -ENOENT;
	} else if (line->state == PENDING) {
		said.result = TWHEEL_WAS_PENDING;
		world->cancelled++;
	} else {
		said.result = TWHEEL_WAS_UNREAD;
		world->revoked++;
	}
	line->state = ABSENT;
	return said;
}

static void model_advance(struct world *world, __u64 now_ns)
{
	int i;

	world->now_ns = now_ns;
	for (i = 0; i < LINES; i++)
		if (world->line[i].state == PENDING && world->line[i].deadline_ns <= now_ns)
			world->line[i].state = UNREAD;
}

static void model_drain(struct world *world)
{
	int i;

	world->draining = true;
	for (i = 0; i < LINES; i++)
		if (world->line[i].state == PENDING)
			world->line[i].state = DRAINED;
}

static void model_read(struct world *world, int i)
{
	if (world->line[i].state == DRAINED)
		world->drained++;
	else
		world->completed++;
	world->line[i].state = ABSENT;
}

static int model_unread(const struct world *world)
{
	int i, nr = 0;

	for (i = 0; i < LINES; i++)
		nr += world->line[i].state == UNREAD || world->line[i].state == DRAINED;
	return nr;
}

/* ---- the wheel and the model --------------------------------------------- */

static void world_make(struct __test_metadata *_metadata, struct world *world, bool keyed,
		       bool table)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.flags = keyed ? TWHEEL_SETUP_KEYED : 0,
	};
	struct twheel_info info;

	memset(world, 0, sizeof(*world));
	world->keyed = keyed;
	world->fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, world->fd);
	if (!table)
		return;
	ASSERT_EQ(0, tw_info(world->fd, &info));
	world->table_size = info.refresh_size;
	world->table = mmap(NULL, world->table_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			    world->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)world->table);
}

static void world_advance(struct __test_metadata *_metadata, struct world *world, __u64 now_ns)
{
	ASSERT_EQ(0, tw_advance(world->fd, now_ns));
	model_advance(world, now_ns);
}

/* Arm lines from good memory, each at its first deadline; the bystander is far ahead. */
static void world_arm(struct __test_metadata *_metadata, struct world *world, int first, int nr)
{
	struct twheel_arm arms[LINES] = {};
	int i;

	for (i = 0; i < nr; i++)
		arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = first + i == BYSTANDER ? STANDING_NS : FIRST_NS(first + i),
			.user_data = first + i,
		};
	ASSERT_EQ(nr, tw_arm_vec(world->fd, arms, nr));
	for (i = 0; i < nr; i++) {
		world->line[first + i].id = arms[i].id;
		model_arm(world, first + i, 0, arms[i].expires_ns);
	}
}

/* The event is this line's, and the line is as its model says. */
static void expect_event(struct __test_metadata *_metadata, struct world *world,
			 const struct twheel_event *event)
{
	struct line *line;

	ASSERT_GT(LINES, event->user_data);
	line = &world->line[event->user_data];
	ASSERT_TRUE(line->state == UNREAD || line->state == DRAINED)
		TH_LOG("line %llu: state %d", event->user_data, line->state);
	EXPECT_EQ(line->id, event->id);
	EXPECT_EQ(line->deadline_ns, event->deadline_ns)
		TH_LOG("line %llu", event->user_data);
	if (line->state == DRAINED) {
		EXPECT_EQ(0, event->count);
		EXPECT_EQ(TW_DRAINED, event->flags);
	} else {
		EXPECT_LE(event->deadline_ns, event->fired_ns);
		EXPECT_EQ(1, event->count);
		EXPECT_EQ(TWHEEL_EVENT_ENDED, event->flags);
	}
	model_read(world, event->user_data);
}

/* Read all events. */
static void world_read(struct __test_metadata *_metadata, struct world *world)
{
	struct twheel_event events[LINES + 1];
	int i, nr = model_unread(world), ret = tw_read(world->fd, events, LINES + 1);

	ASSERT_EQ(nr ?: world->draining ? 0 : -EAGAIN, ret);
	for (i = 0; i < nr; i++)
		expect_event(_metadata, world, &events[i]);
}

static void expect_row(struct __test_metadata *_metadata, const struct world *world, int i,
		       const struct twheel_status *row)
{
	const struct line *line = &world->line[i];
	bool waits = line->state == PENDING && line->deadline_ns > world->now_ns;

	if (line->state == ABSENT) {
		EXPECT_EQ(-ENOENT, row->result)
			TH_LOG("line %d", i);
		EXPECT_EQ(TW_POISON64, row->deadline_ns);
		return;
	}
	EXPECT_EQ(0, row->result)
		TH_LOG("line %d", i);
	EXPECT_EQ(line->id, row->id);
	EXPECT_EQ(i, row->user_data);
	EXPECT_EQ((line->state == PENDING ? TWHEEL_STATE_PENDING :
		   line->state == UNREAD ? TWHEEL_STATE_EXPIRED : TWHEEL_STATE_DRAINED),
		  row->state)
		TH_LOG("line %d", i);
	EXPECT_EQ(line->deadline_ns, row->deadline_ns)
		TH_LOG("line %d", i);
	EXPECT_EQ(waits ? line->deadline_ns - world->now_ns : 0, row->left_ns);
	EXPECT_EQ(line->state == UNREAD, row->count);
}

/* QUERY says of each line what the model says. */
static void expect_lines(struct __test_metadata *_metadata, const struct world *world)
{
	struct twheel_status rows[LINES];
	int i, nr = 0;

	for (i = 0; i < LINES; i++) {
		rows[i].id = world->line[i].id;
		nr += world->line[i].state != ABSENT;
	}
	ASSERT_EQ(nr, tw_query_vec(world->fd, rows, LINES));
	for (i = 0; i < LINES; i++)
		expect_row(_metadata, world, i, &rows[i]);
	if (!world->keyed)
		return;
	for (i = 0; i < LINES; i++)
		rows[i].id = i;
	ASSERT_EQ(nr, key_query_vec(world->fd, rows, LINES));
	for (i = 0; i < LINES; i++)
		expect_row(_metadata, world, i, &rows[i]);
}

static void expect_poll(struct __test_metadata *_metadata, const struct world *world)
{
	EXPECT_EQ((world->draining ? POLLHUP : POLLOUT) | (model_unread(world) ? POLLIN : 0),
		  tw_poll(world->fd, POLLIN | POLLOUT, 0));
}

/* Both calls are over: the other timeouts expire, and each line has had one outcome. */
static void world_settle(struct __test_metadata *_metadata, struct world *world)
{
	struct twheel_info info;

	/* If a timeout was due when armed, it has expired by then, too. */
	if (!world->draining)
		world_advance(_metadata, world, world->now_ns);
	expect_lines(_metadata, world);
	expect_poll(_metadata, world);
	if (!world->draining)
		world_advance(_metadata, world, 2 * TW_HOUR);
	world_read(_metadata, world);
	ASSERT_EQ(0, tw_info(world->fd, &info));
	EXPECT_EQ(world->armed, info.armed);
	EXPECT_EQ(world->rearmed, info.rearmed);
	EXPECT_EQ(world->cancelled, info.cancelled);
	EXPECT_EQ(world->revoked, info.revoked);
	EXPECT_EQ(world->completed, info.completed);
	EXPECT_EQ(world->drained, info.drained);
	EXPECT_EQ(world->completed + world->drained, info.delivered);
	EXPECT_EQ(0, info.live);
	EXPECT_EQ(0, info.unread);
	EXPECT_ACCOUNTS(world->fd);
	if (world->table)
		munmap(world->table, world->table_size);
	close(world->fd);
}

/* ---- the call that is held ------------------------------------------------ */

FIXTURE(held) {
	struct held_memory written;	/* can be read, and holds a writer */
	struct held_memory missing;	/* holds a reader */
};

FIXTURE_VARIANT(held) {
	unsigned long cmd;
	enum twheel_op op;	/* the operation of a write() */
	bool keyed;
	bool present;		/* ARM finds the keys */
	__u32 flags;		/* TWHEEL_ARM_*, but for _ABSOLUTE */
	bool pieces;		/* the read is a readv() */
	/* The call finds this many elements before it copies out the first result. */
	int batch;
};

#define VARIANT(name, ...)	FIXTURE_VARIANT_ADD(held, name) { __VA_ARGS__ }

VARIANT(arm, .cmd = TWHEEL_IOC_ARM, .batch = 32);
VARIANT(rearm, .cmd = TWHEEL_IOC_REARM, .batch = 32);
VARIANT(rearm_only_later, .cmd = TWHEEL_IOC_REARM, .flags = TWHEEL_ARM_ONLY_LATER, .batch = 32);
VARIANT(rearm_only_earlier, .cmd = TWHEEL_IOC_REARM, .flags = TWHEEL_ARM_ONLY_EARLIER,
	.batch = 32);
VARIANT(cancel, .cmd = TWHEEL_IOC_CANCEL, .batch = 32);
VARIANT(query, .cmd = TWHEEL_IOC_QUERY, .batch = 20);
VARIANT(list, .cmd = TWHEEL_IOC_LIST, .batch = 16);
VARIANT(read, .cmd = HELD_READ, .batch = 32);
VARIANT(read_into_pieces, .cmd = HELD_READ, .pieces = true, .batch = 32);
VARIANT(write_that_arms, .cmd = HELD_WRITE, .op = TWHEEL_OP_ARM, .batch = 32);
VARIANT(write_that_rearms, .cmd = HELD_WRITE, .op = TWHEEL_OP_REARM, .batch = 32);
VARIANT(write_that_cancels, .cmd = HELD_WRITE, .op = TWHEEL_OP_CANCEL, .batch = 32);

VARIANT(arm_of_new_keys, .cmd = TWHEEL_IOC_ARM, .keyed = true, .batch = 32);
VARIANT(arm_of_new_keys_if_absent, .cmd = TWHEEL_IOC_ARM, .keyed = true,
	.flags = TWHEEL_ARM_IF_ABSENT, .batch = 32);
VARIANT(arm_of_keys_there, .cmd = TWHEEL_IOC_ARM, .keyed = true, .present = true, .batch = 32);
VARIANT(arm_of_keys_there_if_present, .cmd = TWHEEL_IOC_ARM, .keyed = true, .present = true,
	.flags = TWHEEL_ARM_IF_PRESENT, .batch = 32);
VARIANT(rearm_by_key, .cmd = TWHEEL_IOC_REARM, .keyed = true, .batch = 32);
VARIANT(cancel_by_key, .cmd = TWHEEL_IOC_CANCEL, .keyed = true, .batch = 32);
VARIANT(query_by_key, .cmd = TWHEEL_IOC_QUERY, .keyed = true, .batch = 20);
VARIANT(write_that_arms_keys, .cmd = HELD_WRITE, .op = TWHEEL_OP_ARM, .keyed = true,
	.present = true, .batch = 32);

/* DRAIN waits for a grace period: make that short, if the kernel can. */
static void hurry_rcu(bool hurry)
{
	int fd = open("/sys/kernel/rcu_expedited", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, hurry ? "1" : "0", 1) != 1)
		perror("rcu_expedited");
	close(fd);
}

FIXTURE_SETUP(held)
{
	held_memory_make(&self->written, UFFDIO_REGISTER_MODE_WP);
	held_memory_make(&self->missing, UFFDIO_REGISTER_MODE_MISSING);
	if (self->written.faults < 0 || self->missing.faults < 0)
		SKIP(return, "the kernel has no userfaultfd that protects from writing");
	hurry_rcu(true);
}

FIXTURE_TEARDOWN(held)
{
	hurry_rcu(false);
	held_memory_free(&self->written);
	held_memory_free(&self->missing);
}

/*
 * The place at which a call is held: before it writes or reads this many bytes of an element. It
 * also says which timeout the other call is about: that of this element, one whose result was
 * copied out before, or one whose result was not copied out yet.
 */
struct place {
	const char *name;
	int entry;
	bool amid;		/* the id was copied out, and the rest was not */
	bool reads;
	int victim;		/* relative to the element */
	bool settled;		/* the existing timeouts are in the wheel, not in the inbox */
};

static const struct place places[] = {
	{ "at the first element", .entry = 0 },
	{ "in the middle of a batch", .entry = 10, .victim = -1, .settled = true },
	{ "in the middle of a batch", .entry = 10, .victim = 1 },
	{ "in the middle of an element", .entry = 10, .amid = true, .settled = true },
	{ "in the second batch", .entry = 35, .victim = -1, .settled = true },
	{ "before the first batch", .entry = 3, .reads = true },
	{ "before the second batch", .entry = 36, .reads = true, .settled = true },
};

/* One round: a world, a call that is held in it, and the other call. */
struct round {
	struct world world;
	struct world before;	/* the state that the call saw */
	const struct place *place;
	int victim;		/* the line that the other call is about */
	struct held_call call;
	struct held_memory *memory;
	char *entries;		/* in that memory */
	__u32 size;		/* size of an element */
	int first;		/* first element of the batch that is held */
	struct said said[NR];
};

static bool is_arm(const FIXTURE_VARIANT(held) *variant)
{
	return variant->cmd == TWHEEL_IOC_ARM || variant->op == TWHEEL_OP_ARM;
}

static bool is_rearm(const FIXTURE_VARIANT(held) *variant)
{
	return variant->cmd == TWHEEL_IOC_REARM || variant->op == TWHEEL_OP_REARM;
}

/* An element, as the caller gives it. */
union entry {
	struct twheel_arm arm;
	struct twheel_cancel cancel;
	struct twheel_status status;
	struct twheel_event event;
	struct twheel_record record;
};

static __u32 entry_size(unsigned long cmd)
{
	switch (cmd) {
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
		return sizeof(struct twheel_arm);
	case TWHEEL_IOC_CANCEL:
		return sizeof(struct twheel_cancel);
	case TWHEEL_IOC_QUERY:
	case TWHEEL_IOC_LIST:
		return sizeof(struct twheel_status);
	case HELD_READ:
		return sizeof(struct twheel_event);
	default:
		return sizeof(struct twheel_record);
	}
}

/* If the id is copied out, return the offset behind it, and otherwise that of the result. */
static __u32 element_front(unsigned long cmd)
{
	switch (cmd) {
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
		return offsetof(struct twheel_arm, result);
	default:
		return sizeof(__u64);
	}
}

static void element_make(const FIXTURE_VARIANT(held) *variant, const struct world *world, int i,
			 union entry *entry)
{
	__u64 id = variant->keyed ? (__u64)i : world->line[i].id;

	memset(entry, TW_POISON, sizeof(*entry));
	switch (variant->cmd) {
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
		entry->arm = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE | variant->flags,
			.expires_ns = HELD_NS,
			.user_data = is_arm(variant) ? (__u64)i : TW_POISON64,
			.id = is_arm(variant) ? TW_POISON64 : id,
			.result = TW_POISON32,
			.was_deadline_ns = TW_POISON64,
		};
		break;
	case TWHEEL_IOC_CANCEL:
		entry->cancel = (struct twheel_cancel){ .id = id, .result = TW_POISON32 };
		break;
	case TWHEEL_IOC_QUERY:
		entry->status.id = id;
		break;
	case HELD_WRITE:
		entry->record = (struct twheel_record){
			.op = variant->op,
			.key = is_arm(variant) ? (__u64)i : id,
			.flags = variant->op == TWHEEL_OP_CANCEL ? 0 : TWHEEL_ARM_ABSOLUTE,
			.expires_ns = variant->op == TWHEEL_OP_CANCEL ? 0 : HELD_NS,
		};
		break;
	}
}

/* Bring the world to the state before the call. */
static void round_prepare(struct __test_metadata *_metadata,
			  const FIXTURE_VARIANT(held) *variant, struct round *round, bool table)
{
	world_make(_metadata, &round->world, variant->keyed, table);
	if (!is_arm(variant) || variant->present)
		world_arm(_metadata, &round->world, 0, NR + 1);
	else
		world_arm(_metadata, &round->world, BYSTANDER, 1);
	/* If the variant wants that, move timeouts from the inbox into the wheel. */
	if (round->place->settled)
		world_advance(_metadata, &round->world, 0);
	if (variant->cmd == HELD_READ)
		world_advance(_metadata, &round->world, EXPIRED_NS);
}

/* Do to a line in the model what the call does in its turn, and return its result. */
static struct said model_held(const FIXTURE_VARIANT(held) *variant, struct world *world, int i)
{
	struct said said = {};

	if (variant->cmd == HELD_READ)
		model_read(world, i);
	if (is_arm(variant))
		return model_arm(world, i, variant->flags, HELD_NS);
	if (is_rearm(variant))
		return model_rearm(world, i, variant->flags, HELD_NS);
	if (variant->cmd == TWHEEL_IOC_CANCEL || variant->op == TWHEEL_OP_CANCEL)
		return model_cancel(world, i);
	if (variant->cmd == TWHEEL_IOC_QUERY && world->line[i].state == ABSENT)
		said.result = -ENOENT;
	return said;
}

static __u64 element_id(const struct round *round, int i)
{
	struct twheel_arm arm;

	memcpy(&arm, round->entries + i * round->size, sizeof(arm));
	return arm.id;
}

/* write() reports no ids: LIST finds them. */
static void find_ids(struct __test_metadata *_metadata, struct world *world)
{
	struct twheel_status rows[LINES];
	__u64 cursor = 0;
	int i, nr = tw_list(world->fd, &cursor, rows, LINES);

	ASSERT_LE(0, nr);
	for (i = 0; i < nr; i++) {
		ASSERT_GT(LINES, rows[i].user_data);
		world->line[rows[i].user_data].id = rows[i].id;
	}
}

/* Let the call be held; the batches before are done, in the model too. */
static void round_begin(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
			const FIXTURE_VARIANT(held) *variant, struct round *round)
{
	const struct place *place = round->place;
	union entry entry;
	char bytes[NR * sizeof(entry)];
	__u32 flags = variant->keyed && !is_arm(variant) ? TWHEEL_VECTOR_BY_KEY : 0;
	int i;

	round->size = entry_size(variant->cmd);
	for (i = 0; i < NR; i++) {
		element_make(variant, &round->world, i, &entry);
		memcpy(bytes + i * round->size, &entry, round->size);
	}
	round->memory = place->reads ? &self->missing : &self->written;
	round->entries = held_lay(round->memory, bytes, NR * round->size,
				  place->entry * round->size +
				  (place->amid ? element_front(variant->cmd) : 0));
	ASSERT_NE(NULL, round->entries);
	round->first = place->entry / variant->batch * variant->batch;
	held_prepare(&round->call, round->world.fd, variant->cmd, flags, round->entries,
		     round->size, NR);
	round->call.pieces = variant->pieces;
	ASSERT_EQ(0, held_begin(&round->call, round->memory));
	for (i = 0; i < round->first; i++)
		round->said[i] = model_held(variant, &round->world, i);
	for (i = 0; i < round->first && variant->cmd == TWHEEL_IOC_ARM; i++)
		round->world.line[i].id = element_id(round, i);
	if (variant->op == TWHEEL_OP_ARM)
		find_ids(_metadata, &round->world);
	round->before = round->world;
}

/* ---- the results of the held call -------------------------------------------- */

/* Whether the call had found an element's timeout when it was held. */
static bool was_seen(const FIXTURE_VARIANT(held) *variant, const struct round *round, int i)
{
	return i < round->first ||
	       (!round->place->reads && i < round->first + variant->batch);
}

/*
 * The results of ARM and REARM for the held batch and the rest, if DRAIN came in between. If a call
 * has attempted nothing, it leaves elements untouched that it has not reported, and those that it
 * has refused.
 */
static struct said results_of_drain(const FIXTURE_VARIANT(held) *variant, struct round *round,
				    int i)
{
	struct said said = {};

	/* Of these calls, only an ARM without keys copies results out before it acts. */
	if (was_seen(variant, round, i) && !round->first && is_arm(variant) && !variant->keyed)
		said = model_held(variant, &round->before, i);
	else
		said.nothing = !round->first;
	if (said.result >= 0)
		said.result = -ESHUTDOWN;
	said.was_deadline_ns = 0;
	return said;
}

/* Do the rest of a vector in the model; QUERY reports what it saw. */
static void model_rest(const FIXTURE_VARIANT(held) *variant, struct round *round)
{
	bool refused = round->world.draining && (is_arm(variant) || is_rearm(variant));
	int i;

	for (i = round->first; i < NR; i++) {
		if (variant->cmd == TWHEEL_IOC_QUERY && was_seen(variant, round, i))
			round->said[i] = model_held(variant, &round->before, i);
		else if (refused)
			round->said[i] = results_of_drain(variant, round, i);
		else
			round->said[i] = model_held(variant, &round->world, i);
	}
}

static void expect_armed(struct __test_metadata *_metadata,
			 const FIXTURE_VARIANT(held) *variant, struct round *round, int i,
			 const struct twheel_arm *arm)
{
	const struct said *said = &round->said[i];
	struct line *line = &round->world.line[i];

	EXPECT_EQ(said->nothing ? (__s32)TW_POISON32 : said->result, arm->result)
		TH_LOG("element %d", i);
	if (!is_arm(variant))
		return;
	/* G8: a timeout that was created has an id of its own. */
	if (said->result == TWHEEL_CREATED && i >= round->first) {
		EXPECT_NE(line->id, arm->id);
		line->id = arm->id;
	}
	EXPECT_EQ(said->nothing ? TW_POISON64 : said->result < 0 ? 0 : line->id, arm->id)
		TH_LOG("element %d", i);
	EXPECT_EQ(variant->keyed && !said->nothing ? said->was_deadline_ns : TW_POISON64,
		  arm->was_deadline_ns)
		TH_LOG("element %d", i);
}

static void expect_vector(struct __test_metadata *_metadata,
			  const FIXTURE_VARIANT(held) *variant, struct round *round)
{
	bool refused = round->world.draining && (is_arm(variant) || is_rearm(variant));
	union entry entry;
	int i, nr_ok = 0;

	for (i = 0; i < NR; i++) {
		const struct said *said = &round->said[i];
		const struct world *seen = was_seen(variant, round, i) ? &round->before :
									 &round->world;

		memcpy(&entry, round->entries + i * round->size, round->size);
		if (variant->cmd == TWHEEL_IOC_CANCEL) {
			EXPECT_EQ(said->result, entry.cancel.result)
				TH_LOG("element %d", i);
		} else if (variant->cmd == TWHEEL_IOC_QUERY) {
			expect_row(_metadata, seen, i, &entry.status);
		} else {
			expect_armed(_metadata, variant, round, i, &entry.arm);
		}
		nr_ok += variant->cmd == TWHEEL_IOC_QUERY ? !said->result : said->result > 0;
	}
	EXPECT_EQ(refused && !round->first ? -ESHUTDOWN : nr_ok, round->call.ret);
	EXPECT_EQ(refused ? round->first : NR, round->call.vector.nr_done);
}

/*
 * LIST goes in the order of places, which is that of lines; each step shows their state at that
 * time.
 */
static void expect_list(struct __test_metadata *_metadata, const FIXTURE_VARIANT(held) *variant,
			struct round *round)
{
	struct twheel_status row;
	int i, nr = 0;

	for (i = 0; i < LINES && nr < NR; i++) {
		const struct world *seen = was_seen(variant, round, i) ? &round->before :
									 &round->world;

		if (seen->line[i].state == ABSENT)
			continue;
		memcpy(&row, round->entries + nr++ * round->size, sizeof(row));
		expect_row(_metadata, seen, i, &row);
	}
	EXPECT_EQ(nr, round->call.ret);
}

/*
 * Expect the events that existed when the read began, the oldest first, without those revoked or
 * read since. The victim may have expired once more.
 */
static void expect_read(struct __test_metadata *_metadata, struct round *round)
{
	struct twheel_event event;
	int i, nr = round->first;
	__u64 previous = 0;

	for (i = round->first; i < NR; i++)
		nr += round->world.line[i].state == UNREAD;
	for (i = 0; i < nr; i++) {
		memcpy(&event, round->entries + i * round->size, sizeof(event));
		if (i < round->first) {
			EXPECT_EQ(i, event.user_data);
		} else {
			expect_event(_metadata, &round->world, &event);
		}
		if (event.user_data != round->victim) {
			EXPECT_LE(previous, event.user_data);
			previous = event.user_data;
		}
	}
	/* If it finds none, it tries again, and the wheel may be drained by then. */
	if (!nr && round->world.drained) {
		EXPECT_EQ(0, round->call.ret);
	} else {
		EXPECT_EQ(nr ? nr * (int)round->size : -EAGAIN, round->call.ret);
	}
}

/* If a record is refused, write() ends with it. */
static void expect_write(struct __test_metadata *_metadata,
			 const FIXTURE_VARIANT(held) *variant, struct round *round)
{
	struct said said = {};
	int i;

	for (i = round->first; i < NR; i++) {
		said = model_held(variant, &round->world, i);
		if (said.result < 0)
			break;
	}
	EXPECT_EQ(i ? i * (int)round->size : said.result, round->call.ret);
}

/* Let the call go on; check its result and the state of the wheel. */
static void round_end(struct __test_metadata *_metadata, const FIXTURE_VARIANT(held) *variant,
		      struct round *round)
{
	ASSERT_EQ(0, held_end(&round->call, round->memory));
	switch (variant->cmd) {
	case TWHEEL_IOC_LIST:
		expect_list(_metadata, variant, round);
		break;
	case HELD_READ:
		expect_read(_metadata, round);
		break;
	case HELD_WRITE:
		expect_write(_metadata, variant, round);
		if (is_arm(variant))
			find_ids(_metadata, &round->world);
		break;
	default:
		model_rest(variant, round);
		expect_vector(_metadata, variant, round);
	}
	world_settle(_metadata, &round->world);
}

/* ---- the calls in between ------------------------------------------------------- */

#define BETWEEN(name)								\
static void name(struct __test_metadata __attribute__((unused)) *_metadata,		\
		 struct round *round)

static __u64 victim_id(const struct round *round)
{
	return round->world.line[round->victim].id;
}

/* LIST and read(), and a call that closes a duplicate of the descriptor. */
BETWEEN(queries_and_reads)
{
	struct twheel_status rows[LINES + 1];
	int i, nr = 0, fd = round->world.fd;

	for (i = 0; i < LINES; i++)
		nr += round->world.line[i].state != ABSENT;
	EXPECT_EQ(nr, tw_list_all(fd, rows, LINES + 1, 7));
	world_read(_metadata, &round->world);
	ASSERT_EQ(0, close(dup(fd)));
}

/* Another timeout is armed; if the wheel is keyed, its key is also one of the held call's. */
BETWEEN(arm)
{
	int i = round->world.keyed ? round->victim : OTHER;
	struct said said = model_arm(&round->world, i, 0, OTHER_NS);
	struct twheel_arm arm;

	EXPECT_EQ(said.result, key_arm_at(round->world.fd, i, OTHER_NS, 0, &arm));
	if (said.result == TWHEEL_CREATED)
		round->world.line[i].id = arm.id;
	EXPECT_EQ(round->world.line[i].id, arm.id);
}

BETWEEN(rearm)
{
	struct said said = model_rearm(&round->world, round->victim, 0, OTHER_NS);

	EXPECT_EQ(said.result, tw_rearm1(round->world.fd, victim_id(round), TWHEEL_ARM_ABSOLUTE,
					 OTHER_NS, 0));
}

/* Re-arm later, and back to the first deadline: the state may be the one that the call saw. */
BETWEEN(rearm_there_and_back)
{
	__u64 deadline_ns = round->world.line[round->victim].deadline_ns;
	struct said said;

	rearm(_metadata, round);
	said = model_rearm(&round->world, round->victim, 0, deadline_ns);
	EXPECT_EQ(said.result, tw_rearm1(round->world.fd, victim_id(round), TWHEEL_ARM_ABSOLUTE,
					 deadline_ns, 0));
	/* The clock of the wheel has passed that deadline. */
	if (round->world.now_ns)
		world_advance(_metadata, &round->world, round->world.now_ns);
}

BETWEEN(cancel)
{
	struct said said = model_cancel(&round->world, round->victim);

	EXPECT_EQ(said.result, tw_cancel1(round->world.fd, victim_id(round)));
}

/* G8: the next timeout may get the place. If the wheel is keyed, it gets the key. */
BETWEEN(cancel_and_arm)
{
	cancel(_metadata, round);
	arm(_metadata, round);
}

BETWEEN(refresh)
{
	struct line *line = &round->world.line[round->victim];

	tw_refresh(round->world.table, line->id, REFRESHED_NS, tw_shift(TW_MS));
	if (line->state == PENDING)
		line->deadline_ns = REFRESHED_NS;
}

BETWEEN(expiry)
{
	world_advance(_metadata, &round->world, OTHER_NS - TW_MS);
}

BETWEEN(expiry_and_read)
{
	expiry(_metadata, round);
	world_read(_metadata, &round->world);
}

BETWEEN(drain)
{
	ASSERT_EQ(0, tw_drain(round->world.fd));
	model_drain(&round->world);
}

BETWEEN(drain_and_read)
{
	drain(_metadata, round);
	world_read(_metadata, &round->world);
}

/* ---- rounds ------------------------------------------------------------------------ */

/* If ARM has copied out an id, and the timeout does not exist yet, the id names nothing (G8). */
static void expect_copied_ids_name_nothing(struct __test_metadata *_metadata,
					   const FIXTURE_VARIANT(held) *variant,
					 const struct round *round)
{
	int i, fd = round->world.fd, end = round->place->entry + round->place->amid;
	struct twheel_status status;

	if (variant->cmd != TWHEEL_IOC_ARM || variant->present || round->place->reads)
		return;
	for (i = round->first; i < end; i++) {
		__u64 id = element_id(round, i);

		EXPECT_EQ(-ENOENT, tw_query1(fd, id, &status));
		EXPECT_EQ(-ENOENT, tw_cancel1(fd, id));
		EXPECT_EQ(round->world.draining ? -ESHUTDOWN : -ENOENT,
			  tw_rearm1(fd, id, 0, TW_MS, 0));
	}
}

struct between {
	void (*call)(struct __test_metadata *_metadata, struct round *round);
	bool table;		/* it stores to the refresh table */
};

static void run_round(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
		      const FIXTURE_VARIANT(held) *variant, const struct between *between,
		      struct round *round)
{
	round_prepare(_metadata, variant, round, between->table);
	round_begin(_metadata, self, variant, round);
	between->call(_metadata, round);
	expect_lines(_metadata, &round->world);
	expect_poll(_metadata, &round->world);
	expect_copied_ids_name_nothing(_metadata, variant, round);
	round_end(_metadata, variant, round);
	ASSERT_EQ(KSFT_PASS, _metadata->exit_code)
		TH_LOG("held %s, about line %d", round->place->name, round->victim);
}

/*
 * Whether a call can be held there: it writes, or it reads more than its arguments. If a call is
 * held before it has done anything, nothing can disturb it; but write() can be held nowhere else.
 */
static bool is_place_of(const struct place *place, const FIXTURE_VARIANT(held) *variant)
{
	if (variant->cmd == HELD_READ || variant->cmd == TWHEEL_IOC_LIST)
		return !place->reads;
	if (variant->cmd == HELD_WRITE)
		return place->reads;
	return !place->reads || place->entry >= variant->batch;
}

static void run(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
		const FIXTURE_VARIANT(held) *variant, const struct between *between)
{
	struct round round = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		if (!is_place_of(&places[i], variant))
			continue;
		round.place = &places[i];
		round.victim = places[i].entry + places[i].victim;
		run_round(_metadata, self, variant, between, &round);
	}
}

#define STANDS(what, ...)							\
TEST_F_TIMEOUT(held, a_held_call_withstands_##what, 100)			\
{										\
	static const struct between between = { .call = what, __VA_ARGS__ };	\
										\
	run(_metadata, self, variant, &between);				\
}

STANDS(queries_and_reads)
STANDS(arm)
STANDS(rearm)
STANDS(rearm_there_and_back)
STANDS(cancel)
STANDS(cancel_and_arm)
STANDS(refresh, .table = true)
STANDS(expiry)
STANDS(expiry_and_read)
STANDS(drain)
STANDS(drain_and_read)

TEST_HARNESS_MAIN
