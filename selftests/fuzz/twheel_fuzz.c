// SPDX-License-Identifier: GPL-2.0
/*
 * twheel_fuzz - random calls of every kind, from several threads
 *
 * Each round has three new wheels and up to four threads, and each thread carries out a program of
 * some hundred calls: all ioctls, reads, polls, epoll, dup, close, fork, descriptors over sockets,
 * with valid, borderline and hostile arguments.  After each round, with all threads at rest, the
 * accounts have to balance, each id has to have exactly one outcome, and closing has to let go of
 * the module.
 *
 * All follows from the seed, except how the threads interleave. With KCOV, sequences that
 * reach new code of the module are kept and varied (see fuzz_program.c); without it the
 * programs are random. The name of a kept sequence is printed at once, so that a round can be
 * replayed even if the machine died in it: with the same binary, and all names before joined
 * to one list.
 *
 *	--calls N	end after so many system calls on the device
 *	--seconds N	or after so much time (0: no limit)
 *	--seed N	where randomness starts
 *	--threads N	at most, 1 to 8
 *	--round N	begin with this round, and do
 *	--rounds N	so many (with --round: 1)
 *	--repeat N	each of them so often
 *	--kept LIST	what earlier rounds left to it, as a failure prints
 *	--go-on		after a failure
 *	--progress N	say after so many seconds where it is (10)
 *
 * TW_FUZZ_CALLS and TW_FUZZ_SEED in the environment are as --calls, without a limit
 * of time, and --seed.  A call is a system call on the device or a descriptor of it,
 * however long its vector.
 */
#include "fuzz.h"

#include <getopt.h>
#include <stdarg.h>
#include <sys/mman.h>

static struct {
	__u64 calls, seconds, seed, threads, round, rounds, repeat, progress;
	char *kept;
	bool go_on;
} want = {
	.calls = 10000000, .seconds = 45, .seed = 1, .threads = 4, .repeat = 1,
	.progress = 10,
};

_Atomic __u64 *calls;

static _Atomic int found[NR_CHECKS];
static struct plan plan, earlier;

/* The corpus as a list of names. */
static char *kept_names;
static size_t kept_len, kept_room;
/* The part of kept_names that was there when the round began. */
static size_t kept_before;

/* ---- findings ------------------------------------------------------------- */

/* A child may call this: it shares its parent's output but no locks. */
void wrong(enum check check, const char *fmt, ...)
{
	char text[2400];
	va_list args;
	int len;

	if (atomic_fetch_add(&found[check], 1) >= 4)
		return;
	len = snprintf(text, sizeof(text), "# round %llu: ", plan.round);
	va_start(args, fmt);
	len += vsnprintf(text + len, sizeof(text) - len - 1, fmt, args);
	va_end(args);
	len = min(len, (int)sizeof(text) - 2);
	text[len++] = '\n';
	if (write(STDOUT_FILENO, text, len) < 0)
		return;
}

bool anything_wrong(void)
{
	int i;

	for (i = 0; i < NR_CHECKS; i++)
		if (found[i])
			return true;
	return false;
}

/* ---- the corpus, by name -------------------------------------------------- */

void kept_add(const struct plan *its_plan, int thread, int sequence)
{
	char name[64];
	int len = snprintf(name, sizeof(name), "%llu.%d.%d,", its_plan->round, thread, sequence);

	if (kept_len + len + 1 > kept_room) {
		kept_room = 2 * kept_room + 4096;
		kept_names = realloc(kept_names, kept_room);
	}
	memcpy(kept_names + kept_len, name, len + 1);
	kept_len += len;
	corpus_keep(its_plan, thread, sequence);
}

/* Make the corpus again, up to the round that is wanted. */
static void kept_restore(char *list)
{
	unsigned long long round;
	int thread, sequence;
	char *name;

	earlier.round = ~0ULL;
	for (name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		if (sscanf(name, "%llu.%d.%d", &round, &thread, &sequence) != 3 ||
		    thread >= THREADS_MAX || sequence >= SEQUENCES || round >= want.round)
			continue;
		/* Sequences of a round were kept after it, so its own plan has none of them. */
		if (round != earlier.round)
			plan_make(&earlier, want.seed, round, want.threads);
		kept_add(&earlier, thread, sequence);
	}
}

static void print_replay(void)
{
	printf("# replay: twheel_fuzz --seed %llu --threads %llu --round %llu --repeat 20",
	       want.seed, want.threads, plan.round);
	/* Rounds with an even number do not need it. */
	if (plan.round % 2 && kept_before)
		printf(" --kept %.*s", (int)kept_before, kept_names);
	printf("\n");
}

/* ---- rounds --------------------------------------------------------------- */

static void progress(__u64 begun, __u64 *printed)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (now - *printed < want.progress * NS_PER_SEC)
		return;
	*printed = now;
	printf("# %llu s: round %llu, %llu calls, %u edges, %zu sequences kept\n",
	       (now - begun) / NS_PER_SEC, plan.round, *calls, cover_edges(), corpus_size());
}

static bool enough(__u64 begun, __u64 rounds)
{
	if (anything_wrong() && !want.go_on)
		return true;
	if (want.rounds)
		return rounds >= want.rounds;
	return *calls >= want.calls ||
	       (want.seconds && clock_ns(CLOCK_MONOTONIC) - begun >= want.seconds * NS_PER_SEC);
}

/* Run all rounds, and return how many there were. */
static __u64 run_rounds(void)
{
	__u64 begun = clock_ns(CLOCK_MONOTONIC), printed = begun, round, rounds = 0, again;

	for (round = want.round; !enough(begun, rounds); round++, rounds++) {
		/* Make the plan before any of it is kept. */
		plan_make(&plan, want.seed, round, want.threads);
		kept_before = kept_len;
		for (again = 0; again < want.repeat && !found[CHECK_HANGS]; again++) {
			round_run(&plan);
			if (anything_wrong() && !want.go_on)
				break;
		}
		/* Print it at once: if the machine dies, a replay needs it. */
		if (kept_len > kept_before)
			printf("# kept %s\n", kept_names + kept_before);
		if (anything_wrong())
			print_replay();
		if (found[CHECK_HANGS])
			break;
		progress(begun, &printed);
	}
	begun = clock_ns(CLOCK_MONOTONIC) - begun;
	printf("# seed %llu: %llu calls in %llu rounds, %llu.%llu s, %llu calls/s\n", want.seed,
	       *calls, rounds, begun / NS_PER_SEC, begun / (100 * NS_PER_MS) % 10,
	       *calls * 1000 / (begun / NS_PER_MS + 1));
	printf("# coverage grew to %u edges between %u places; %zu sequences kept\n",
	       cover_edges(), cover_places(), corpus_size());
	return rounds;
}

/* ---- options and results -------------------------------------------------- */

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "calls", 1, NULL, 'c' }, { "seconds", 1, NULL, 's' }, { "seed", 1, NULL, 'S' },
		{ "threads", 1, NULL, 't' }, { "round", 1, NULL, 'r' }, { "rounds", 1, NULL, 'n' },
		{ "repeat", 1, NULL, 'e' }, { "kept", 1, NULL, 'k' }, { "go-on", 0, NULL, 'g' },
		{ "progress", 1, NULL, 'p' },
		{}
	};
	const char *value = getenv("TW_FUZZ_CALLS");
	int option;

	if (value && *value) {
		want.calls = strtoull(value, NULL, 0);
		want.seconds = 0;
	}
	value = getenv("TW_FUZZ_SEED");
	if (value && *value)
		want.seed = strtoull(value, NULL, 0);
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		__u64 number = optarg ? strtoull(optarg, NULL, 0) : 0;

		switch (option) {
		case 'c':
			want.calls = number;
			want.seconds = 0;
			break;
		case 's':
			want.seconds = number;
			break;
		case 'S':
			want.seed = number;
			break;
		case 't':
			want.threads = number;
			break;
		case 'r':
			want.round = number;
			want.rounds = 1;
			break;
		case 'n':
			want.rounds = number;
			break;
		case 'e':
			want.repeat = number;
			break;
		case 'k':
			want.kept = optarg;
			break;
		case 'p':
			want.progress = number;
			break;
		case 'g':
			want.go_on = true;
			break;
		default:
			exit(2);
		}
	}
	if (want.threads < 1 || want.threads > THREADS_MAX)
		exit(2);
}

static void result(enum check check, const char *name)
{
	static int nr;

	printf("%sok %d %s\n", found[check] ? "not " : "", ++nr, name);
}

int main(int argc, char **argv)
{
	static const char * const names[NR_CHECKS] = {
		[CHECK_ACCOUNTS]	= "accounts_balance_after_each_round",
		[CHECK_OUTCOMES]	= "each_id_has_exactly_one_outcome",
		[CHECK_ANSWERS]		= "each_answer_is_one_the_contract_allows",
		[CHECK_HANGS]		= "no_call_hangs",
		[CHECK_CLOSE]		= "closing_everything_lets_go_of_the_module",
		[CHECK_LOG]		= "the_kernel_has_nothing_to_say",
	};
	int i;

	options(argc, argv);
	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%d\n", NR_CHECKS);
	round_init();
	if (want.kept)
		kept_restore(want.kept);
	run_rounds();
	for (i = 0; i < NR_CHECKS; i++)
		result(i, names[i]);
	fflush(stdout);
	/* Do not wait for threads that hang. */
	_exit(anything_wrong());
}
