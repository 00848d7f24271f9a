// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_program.c - the calls to make
 *
 * A plan follows from the seed, the number of its round and the corpus: the sequences of earlier
 * rounds that reached new code. Three numbers (round, thread, sequence) name a sequence of the
 * corpus, so that a list of these is enough to make the corpus again, and with it any later plan.
 * Rounds with an even number use no corpus: they follow from seed and number alone.
 */
#include "fuzz.h"

static struct sequence *corpus;
static size_t nr_corpus;

size_t corpus_size(void)
{
	return nr_corpus;
}

void corpus_keep(const struct plan *plan, int thread, int sequence)
{
	if (!(nr_corpus & (nr_corpus - 1)))
		corpus = realloc(corpus, (nr_corpus ? 2 * nr_corpus : 1) * sizeof(*corpus));
	corpus[nr_corpus++] = plan->sequence[thread][sequence];
}

/* How often each op is called, out of some thousands. */
static const __u16 weights[NR_OPS] = {
	[OP_INFO]	= 100,
	[OP_SETUP]	= 40,
	[OP_ARM]	= 1500,
	[OP_REARM]	= 600,
	[OP_CANCEL]	= 1000,
	[OP_QUERY]	= 400,
	[OP_LIST]	= 80,
	[OP_DRAIN]	= 2,
	[OP_ADVANCE]	= 160,
	[OP_UNKNOWN]	= 40,
	[OP_READ]	= 900,
	[OP_READV]	= 150,
	[OP_WRITE]	= 400,
	[OP_POLL]	= 300,
	[OP_EPOLL_CTL]	= 150,
	[OP_EPOLL_WAIT]	= 100,
	[OP_FLAGS]	= 40,
	[OP_DUP]	= 100,
	[OP_CLOSE]	= 100,
	[OP_PASS]	= 5,
	[OP_REOPEN]	= 5,
	[OP_FORK]	= 1,
	[OP_FDINFO]	= 8,
	[OP_MMAP]	= 150,
	[OP_NO_CALL]	= 10,
	[OP_CLOCK]	= 1,
	[OP_SIGNAL]	= 40,
	[OP_SCRIBBLE]	= 20,
};

static int weight_of(enum op op, __u32 left_out)
{
	return left_out >> op & 1 ? 0 : weights[op];
}

/* A round leaves some ops out, so that the others get further. */
static enum op op_choose(__u64 *seed, __u32 left_out)
{
	__u32 total = 0;
	int op, at;

	for (op = 0; op < NR_OPS; op++)
		total += weight_of(op, left_out);
	at = random_below(seed, total);
	for (op = 0; op < NR_OPS; op++) {
		at -= weight_of(op, left_out);
		if (at < 0)
			break;
	}
	return op;
}

struct step step_make(__u64 *seed, enum op op, int wheel)
{
	return (struct step){
		.op	= op,
		.wheel	= wheel,
		.alias	= one_in(seed, 4) ? random_below(seed, ALIASES) : 0U,
		.spoil	= one_in(seed, 12) ? random32(seed) : 0,
		.place	= one_in(seed, 8) ? random32(seed) : 0,
		.nr	= random32(seed),
		.kind	= random32(seed),
		.spare	= random32(seed),
		.seed	= random64(seed),
	};
}

static struct step step_random(__u64 *seed, __u32 left_out, int wheel)
{
	return step_make(seed, op_choose(seed, left_out),
			 one_in(seed, 4) ? (int)random_below(seed, WHEELS) : wheel);
}

static void sequence_random(struct sequence *sequence, __u64 *seed, __u32 left_out)
{
	int i, wheel = random_below(seed, WHEELS);

	for (i = 0; i < SEQUENCE; i++)
		sequence->step[i] = step_random(seed, left_out, wheel);
}

/* Change one byte of a step. */
static void step_twist(struct step *step, __u64 *seed)
{
	switch (random_below(seed, 7)) {
	case 0:
		step->spoil = random32(seed);
		break;
	case 1:
		step->place = random32(seed);
		break;
	case 2:
		step->nr = random32(seed);
		break;
	case 3:
		step->kind = random32(seed);
		break;
	case 4:
		step->wheel = random_below(seed, WHEELS);
		break;
	case 5:
		step->spoil = 0;
		step->place = 0;
		break;
	case 6:
		step->seed = random64(seed);
		break;
	}
}

static void sequence_mutate(struct sequence *sequence, __u64 *seed)
{
	struct step *step = &sequence->step[random_below(seed, SEQUENCE)];
	int wheel = random_below(seed, WHEELS), from, i;

	switch (random_below(seed, 6)) {
	case 0:		/* another step instead */
		*step = step_random(seed, 0, step->wheel);
		break;
	case 1:		/* the same step somewhere else too */
		sequence->step[random_below(seed, SEQUENCE)] = *step;
		break;
	case 2:		/* the end of another one */
		from = random_below(seed, SEQUENCE);
		memcpy(&sequence->step[from],
		       &corpus[random_below(seed, nr_corpus)].step[from],
		       (SEQUENCE - from) * sizeof(*step));
		break;
	case 3:		/* all of it on one wheel */
		for (i = 0; i < SEQUENCE; i++)
			sequence->step[i].wheel = wheel;
		break;
	default:
		step_twist(step, seed);
		break;
	}
}

static void sequence_make(struct sequence *sequence, __u64 *seed, __u32 left_out, bool guided)
{
	int i;

	if (!guided || !nr_corpus || one_in(seed, 4)) {
		sequence_random(sequence, seed, left_out);
		return;
	}
	*sequence = corpus[random_below(seed, nr_corpus)];
	for (i = random_below(seed, 5); i; i--)
		sequence_mutate(sequence, seed);
}

void plan_make(struct plan *plan, __u64 seed, __u64 round, int max_threads)
{
	__u32 left_out = 0;
	__u64 state;
	int i, t;

	plan->round = round;
	plan->seed = mix(seed, round);
	state = plan->seed;
	/* Usually take as many as possible: a single thread soon finds nothing new. */
	plan->threads = max_threads;
	if (one_in(&state, 4))
		plan->threads = 1 + random_below(&state, max_threads);
	if (!one_in(&state, 4)) {
		for (i = 0; i < NR_OPS; i++)
			if (i != OP_ARM && one_in(&state, 5))
				left_out |= 1U << i;
	}
	for (t = 0; t < plan->threads; t++) {
		state = mix(plan->seed, t);
		for (i = 0; i < SEQUENCES; i++)
			sequence_make(&plan->sequence[t][i], &state, left_out, round % 2);
	}
}
