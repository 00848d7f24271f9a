// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_ledger.c - the outcomes of each timeout
 *
 * Each thread notes the results of its calls in a ledger of its own, in any order. After the
 * round all records of an id are put together, and have to be one schedule with one end (G3): the
 * timeout was armed once, and then it was cancelled, or revoked, or drained, or its last event
 * was read, or LIST still shows it.
 */
#include "fuzz.h"

void ledger_note(struct ledger *ledger, const struct record *record)
{
	if (ledger->nr == ledger->room) {
		ledger->room = ledger->room ? 2 * ledger->room : 4096;
		ledger->record = realloc(ledger->record, ledger->room * sizeof(*record));
		if (!ledger->record)
			exit(1);
	}
	ledger->record[ledger->nr++] = *record;
}

/* All that is known of one id. */
struct history {
	__u64 id;
	__u64 user_data;
	__u64 expirations;	/* sum of all its events */
	__u32 repeats;
	bool periodic;
	__u32 drained;
	__u32 ended;		/* how many events were flagged as the last one */
	__u32 final;		/* how many events came after the round was over */
	__u32 facts[NR_FACTS];
};

static void history_add(struct history *history, const struct record *record)
{
	history->facts[record->fact]++;
	if (record->fact == ARMED) {
		history->periodic = record->periodic;
		history->repeats = record->count;
		history->user_data = record->user_data;
	}
	if (record->fact == DELIVERED) {
		history->expirations += record->count;
		history->drained += record->drained;
		history->ended += record->ended;
		history->final += record->final;
		if (record->user_data != history->user_data && history->facts[ARMED])
			wrong(CHECK_OUTCOMES, "event of %#llx has user_data %#llx, not %#llx",
			      record->id, record->user_data, history->user_data);
	}
}

/* Check the events of a timeout that nobody re-armed. */
static bool events_agree(const struct history *history, bool completed)
{
	const __u32 *facts = history->facts;

	if (facts[REARMED])
		return true;
	if (!history->periodic)
		return facts[DELIVERED] <= 1 && (completed || !history->expirations);
	if (!history->repeats)
		return !completed;
	return completed ? history->expirations == history->repeats :
			   history->expirations <= history->repeats;
}

/* Check the history of a timeout; return whether its last event was read. */
static bool history_judge(const struct history *history, int wheel, bool emptied)
{
	const __u32 *facts = history->facts;
	__u32 taken = facts[CANCELLED] + facts[REVOKED] + history->drained;
	/* LIST came before the wheel was emptied. */
	bool is_live = facts[LISTED] && !emptied;
	bool completed = !taken && !is_live && facts[DELIVERED];
	const char *why = NULL;

	if (facts[ARMED] != 1)
		why = "was not armed exactly once";
	else if (taken > 1 || facts[LISTED] > 1)
		why = "ended twice";
	else if (!taken && !completed && !is_live)
		why = "is lost";
	else if (is_live && taken)
		why = "ended and is listed";
	else if (emptied && !facts[LISTED] != !history->final)
		why = "was listed and nothing came, or the other way round";
	else if (history->ended != completed + history->drained)
		why = "has a last event that does not say so, or another one that does";
	else if (!events_agree(history, completed))
		why = "has too many events, or too few";
	if (why)
		wrong(CHECK_OUTCOMES,
		      "id %#llx of wheel %d %s: armed %u rearmed %u cancelled %u revoked %u delivered %u drained %u listed %u final %u, %llu expirations, periodic %d repeats %u",
		      history->id, wheel, why, facts[ARMED], facts[REARMED], facts[CANCELLED],
		      facts[REVOKED], facts[DELIVERED], history->drained, facts[LISTED],
		      history->final, history->expirations, history->periodic, history->repeats);
	return completed;
}

static int record_compare(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	/* Sort ARMED first: the others have to agree with it. */
	return (int)x->fact - (int)y->fact;
}

static struct ledger ledger_of_wheel(struct ledger *const ledgers[], int nr, int wheel)
{
	struct ledger all = {};
	size_t i;
	int l;

	for (l = 0; l < nr; l++)
		for (i = 0; i < ledgers[l]->nr; i++)
			if (ledgers[l]->record[i].wheel == wheel)
				ledger_note(&all, &ledgers[l]->record[i]);
	if (all.nr)
		qsort(all.record, all.nr, sizeof(*all.record), record_compare);
	return all;
}

static void compare(int wheel, const char *what, __u64 ours, __u64 info)
{
	if (ours != info)
		wrong(CHECK_OUTCOMES, "wheel %d: %s: INFO says %llu, the threads saw %llu", wheel,
		      what, info, ours);
}

/* @emptied: the wheel was drained and read to the end after LIST. */
void ledger_reconcile(struct ledger *const ledgers[], int nr, int wheel,
		      const struct twheel_info *info, bool emptied)
{
	struct ledger all = ledger_of_wheel(ledgers, nr, wheel);
	__u64 facts[NR_FACTS] = {}, completed = 0, drained = 0;
	size_t i = 0;
	int f;

	while (i < all.nr) {
		struct history history = { .id = all.record[i].id };

		while (i < all.nr && all.record[i].id == history.id)
			history_add(&history, &all.record[i++]);
		completed += history_judge(&history, wheel, emptied);
		drained += history.drained;
		for (f = 0; f < NR_FACTS; f++)
			facts[f] += history.facts[f];
	}
	compare(wheel, "armed", facts[ARMED], info->armed);
	compare(wheel, "rearmed", facts[REARMED], info->rearmed);
	compare(wheel, "cancelled", facts[CANCELLED], info->cancelled);
	compare(wheel, "revoked", facts[REVOKED], info->revoked);
	compare(wheel, "delivered", facts[DELIVERED], info->delivered);
	compare(wheel, "drained", drained, info->drained);
	compare(wheel, "completed", completed, info->completed);
	free(all.record);
}
