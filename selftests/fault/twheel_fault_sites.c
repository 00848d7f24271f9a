// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation that the module makes, and every copy from and to the user,
 * fails in turn.
 *
 * Each case is one system call on a wheel that is made for it. The call is made to fail at its
 * first chance, at its second, and so on until it comes through untouched; after each fault the
 * wheel is compared with the state that follows from the errno and the results: the counters, the
 * rows of LIST, the events of all timeouts, and whether it still works. Then the same is done for
 * one call in the module's code after the other, also with a fault that does not go away, and the
 * results are compared with the table below, which Documentation/fault-sites.rst shows.
 *
 * At the end each call of the module that can fail has been made to fail by some case.
 *
 * Copies of single values (get_user() and its kin) have no fault of their own:
 * twheel_faults.c lets memory end at each byte of each structure.
 */
#include "fault_shoot.h"

/* ---- the table ----------------------------------------------------------- */

/**
 * struct row - the results of a case with a fault at one call
 * @op: the case
 * @where: the function of the module, in its source
 * @callee: the function that it calls
 * @once: its results if the first fault happens there, the second and so on; elements that
 *	succeed in spite of a failed allocation are left out, unless all do
 * @always: its results if all of them happen
 *
 * "done" is a success as if nothing had been.
 */
static const struct row {
	const char *op;
	const char *where;
	const char *callee;
	const char *once;
	const char *always;
} rows[] = {
	{ "open", "twheel_fop_open()", "kmalloc", "ENOMEM", "ENOMEM" },
	{ "open", "twheel_create()", "pages", "ENOMEM", "ENOMEM" },
	{ "open", "user_make()", "kmalloc", "ENOMEM", "ENOMEM" },
	{ "SETUP", "arg_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "SETUP", "wheel_start()", "pages", "done", "ENOMEM" },
	{ "SETUP of 2^14 slots", "arg_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "SETUP of 2^14 slots", "wheel_start()", "pages", "ENOMEM", "ENOMEM" },
	{ "ARM, the first", "arm_start()", "copy_from_user", "done", "EFAULT" },
	{ "ARM, the first", "access_copy_in()", "copy_from_user", "done", "done" },
	{ "ARM, the first", "wheel_start()", "pages", "done", "ENOMEM" },
	{ "ARM, the first", "table_grow()", "pages", "8 of 40, 32 ENOMEM", "0 of 40, 40 ENOMEM" },
	{ "ARM, the first", "places_grow()", "pages", "8 of 40, 32 ENOMEM", "0 of 40, 40 ENOMEM" },
	{ "ARM of new keys", "access_copy_in()", "copy_from_user", "done", "done" },
	{
		"ARM of new keys", "twheel_keys_provide()", "pages",
		"39 of 40, 1 ENOMEM", "0 of 40, 40 ENOMEM"
	},
	{ "ARM of new keys", "table_grow()", "pages", "39 of 40, 1 ENOMEM", "0 of 40, 40 ENOMEM" },
	{ "ARM of new keys", "places_grow()", "pages", "39 of 40, 1 ENOMEM", "0 of 40, 40 ENOMEM" },
	{ "ARM", "access_copy_in()", "copy_from_user", "done", "done" },
	{
		"ARM of new keys, wide entries", "arg_copy_in()", "copy_from_user",
		"EFAULT", "EFAULT"
	},
	{
		"ARM of new keys, wide entries", "twheel_access_copy_each()", "copy_from_user",
		"done", "EFAULT"
	},
	{
		"ARM of new keys, wide entries", "twheel_keys_provide()", "pages",
		"4 of 5, 1 ENOMEM", "0 of 5, 5 ENOMEM"
	},
	{
		"ARM of new keys, wide entries", "table_grow()", "pages",
		"4 of 5, 1 ENOMEM", "0 of 5, 5 ENOMEM"
	},
	{
		"ARM of new keys, wide entries", "places_grow()", "pages",
		"4 of 5, 1 ENOMEM", "0 of 5, 5 ENOMEM"
	},
	{ "ARM into a new page", "access_copy_in()", "copy_from_user", "done", "done" },
	{ "ARM into a new page", "places_grow()", "pages", "2 of 4, 2 ENOMEM", "2 of 4, 2 ENOMEM" },
	{ "ARM into a new table", "table_grow()", "pages", "done", "2 of 4, 2 ENOMEM" },
	{ "ARM into a new page of words", "access_copy_in()", "copy_from_user", "done", "done" },
	{
		"ARM into a new page of words", "words_add()", "pages",
		"2 of 4, 2 ENOMEM", "2 of 4, 2 ENOMEM"
	},
	{
		"ARM into a new page of words", "places_grow()", "pages",
		"2 of 4, 2 ENOMEM", "2 of 4, 2 ENOMEM"
	},
	{ "mmap", "twheel_map_words()", "pages", "ENOMEM", "ENOMEM" },
	{ "mmap", "words_add()", "pages", "ENOMEM", "ENOMEM" },
	{ "mmap", "table_grow()", "pages", "ENOMEM", "ENOMEM" },
	{ "ARM, periodic", "access_copy_in()", "copy_from_user", "done", "done" },
	{ "ARM, periodic", "extra_add()", "pages", "3 of 4, 1 ENOMEM", "0 of 4, 4 ENOMEM" },
	{ "REARM", "access_copy_in()", "copy_from_user", "done", "done" },
	{ "REARM, now periodic", "access_copy_in()", "copy_from_user", "done", "done" },
	{ "REARM, now periodic", "extra_add()", "pages", "7 of 8, 1 ENOMEM", "0 of 8, 8 ENOMEM" },
	{ "CANCEL", "access_copy_in()", "copy_from_user", "done", "done" },
	{ "QUERY", "row_copy_out()", "copy_to_user", "done; 20 of 40; done", "EFAULT" },
	{ "LIST", "arg_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "LIST", "rows_report()", "copy_to_user", "done", "done" },
	{ "LIST of wide rows", "arg_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "LIST of wide rows", "rows_report()", "copy_to_user", "EFAULT; 1 to 39 of 40", "EFAULT" },
	{ "INFO", "info_ioctl()", "copy_to_user", "EFAULT", "EFAULT" },
	{ "ADVANCE", "arg_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "read", "event_copy()", "copy_to_iter", "done", "EFAULT" },
	{ "read of wide events", "event_copy()", "copy_to_iter", "done", "EFAULT" },
	{ "readv", "event_copy()", "copy_to_iter", "done", "EFAULT" },
	{ "write", "records_copy_in()", "copy_from_iter", "done", "EFAULT" },
	{ "poll of many", "twheel_poll()", "poll_wait", "ENOMEM", "ENOMEM" },
	{ "epoll_ctl", "twheel_poll()", "poll_wait", "ENOMEM", "ENOMEM" },
	{ "REOPEN", "arg_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "REOPEN", "file_reopen()", "open file", "ENOMEM", "ENOMEM" },
	{ "REOPEN", "twheel_fop_open()", "kmalloc", "ENOMEM", "ENOMEM" },
	{ "REOPEN", "twheel_create()", "pages", "ENOMEM", "ENOMEM" },
};

/* The outcomes of one case. */
struct outcomes {
	int nr;
	struct outcome outcome[512];
};

/* One test fills these in, and another one needs them. */
static struct shared {
	bool hit[ARRAY_SIZE(((struct fi_module *)NULL)->site)];
	bool row_seen[ARRAY_SIZE(rows)];
	int nr_cases;
} *shared;

static void __attribute__((constructor)) share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
}

/* ---- outcomes ------------------------------------------------------------ */

static bool is_done(const struct op *op, const struct outcome *outcome)
{
	return outcome->ret == op->nr && !outcome->nr_enomem;
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
	return a->ret == b->ret && a->nr_enomem == b->nr_enomem;
}

/* Note a result, unless it is like the last one. */
static void outcomes_add(struct outcomes *outcomes, const struct outcome *outcome)
{
	if (outcomes->nr && is_same(&outcomes->outcome[outcomes->nr - 1], outcome))
		return;
	if (outcomes->nr < (int)ARRAY_SIZE(outcomes->outcome))
		outcomes->outcome[outcomes->nr++] = *outcome;
}

static bool outcomes_have(const struct outcomes *outcomes, const struct outcome *outcome)
{
	int i;

	for (i = 0; i < outcomes->nr; i++)
		if (is_same(&outcomes->outcome[i], outcome))
			return true;
	return false;
}

static void text_add(char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

/*
 * Format the results as in the table. If results in a row differ by one each, @last is the last
 * one of them.
 */
static void outcome_text(char *text, size_t size, const struct op *op,
			 const struct outcome *outcome, const struct outcome *last)
{
	if (*text)
		text_add(text, size, "; ");
	if (outcome->ret < 0)
		text_add(text, size, "%s", strerrorname_np(-outcome->ret));
	else if (is_done(op, outcome))
		text_add(text, size, "done");
	else if (last != outcome)
		text_add(text, size, "%d to %d of %d", outcome->ret, last->ret, op->nr);
	else
		text_add(text, size, "%d of %d", outcome->ret, op->nr);
	if (outcome->nr_enomem)
		text_add(text, size, ", %d ENOMEM", outcome->nr_enomem);
}

static void outcomes_text(char *text, size_t size, const struct op *op,
			  const struct outcomes *outcomes)
{
	const struct outcome *o = outcomes->outcome;
	int i, j;

	text[0] = '\0';
	for (i = 0; i < outcomes->nr; i = j + 1) {
		for (j = i; j + 1 < outcomes->nr && o[i].ret > 0 && !o[i].nr_enomem &&
		     !o[j + 1].nr_enomem && o[j + 1].ret == o[j].ret + 1; j++)
			;
		outcome_text(text, size, op, &o[i], &o[j]);
	}
}

/* ---- sites --------------------------------------------------------------- */

/* Check that the results are a row of the table. */
static void expect_row(struct __test_metadata *_metadata, const struct row *seen)
{
	int i, nr = 0;

	for (i = 0; i < (int)ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].op, seen->op) || strcmp(rows[i].where, seen->where) ||
		    strcmp(rows[i].callee, seen->callee) || strcmp(rows[i].once, seen->once) ||
		    strcmp(rows[i].always, seen->always))
			continue;
		shared->row_seen[i] = true;
		nr++;
	}
	EXPECT_EQ(1, nr)
		TH_LOG("rows of the table: %s | %s in %s | %s | %s", seen->op, seen->callee,
		       seen->where, seen->once, seen->always);
}

/*
 * Let one fault after the other happen there until the call succeeds without one; note the results.
 */
static void shoot_once_each(struct __test_metadata *_metadata, struct world *w, const struct op *op,
			    struct shot shot, struct outcomes *once, struct outcomes *all)
{
	const struct outcome done = { op->nr, 0 };
	struct outcome outcome;

	for (shot.nth = 1; shoot(_metadata, w, op, &shot, false, &outcome); shot.nth++) {
		outcomes_add(all, &outcome);
		/* Within one allocation there may be others that it does not need. */
		if (shot.kinds == FI_COPIES || !is_done(op, &outcome))
			outcomes_add(once, &outcome);
	}
	EXPECT_TRUE(is_done(op, &outcome))
		TH_LOG("%s: untouched, it returns %d", w->where, outcome.ret);
	if (!once->nr)
		outcomes_add(once, &done);
}

/*
 * Let one fault after the other happen, then all at once. @callee: as in the table, or NULL if the
 * call must succeed whatever fails within it.
 */
static void shoot_site(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		       const char *callee, const char *function, struct shot shot,
		       struct outcomes *all)
{
	char where[128], once_text[256], always_text[256] = "";
	const struct row row = { op->name, where, callee, once_text, always_text };
	struct outcomes once = {};
	struct outcome outcome;

	shoot_once_each(_metadata, w, op, shot, &once, all);
	outcomes_text(once_text, sizeof(once_text), op, &once);
	if (!callee) {
		EXPECT_STREQ("done", once_text)
			TH_LOG("%s: called from %s(), and cannot fail", op->name, function);
		return;
	}
	shot.nth = 0;
	EXPECT_TRUE(shoot(_metadata, w, op, &shot, false, &outcome))
		TH_LOG("%s: nothing failed", w->where);
	outcomes_add(all, &outcome);
	outcome_text(always_text, sizeof(always_text), op, &outcome, &outcome);

	snprintf(where, sizeof(where), "%s()", function);
	ksft_print_msg("site: %s | %s in %s | %s | %s\n", op->name, callee, where, once_text,
		       always_text);
	fflush(stdout);
	expect_row(_metadata, &row);
}

/* ---- tests --------------------------------------------------------------- */

FIXTURE(call) {
	struct world world;
	struct fi_module module;
	struct outcomes outcomes;
};

FIXTURE_VARIANT(call) {
	const struct op *op;
};

FAULT_CASES(FAULT_CASE_VARIANT, ;);

FIXTURE_SETUP(call)
{
	int ret = ready_to_shoot(_metadata, &self->world, &self->module);

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	self->outcomes.nr = 0;
}

FIXTURE_TEARDOWN(call)
{
	fi_fail_no_more();
}

static void each_site(struct __test_metadata *_metadata, FIXTURE_DATA(call) *self,
		      const struct op *op)
{
	const struct fi_module *module = &self->module;
	int found[64], i, nr = sites_of(_metadata, &self->world, module, op, found);
	unsigned int copies, copies_found = 0;

	for (i = 0; i < nr; i++) {
		const struct fi_site *site = &module->site[found[i]];
		struct shot shot = { FI_ALL, { site->address, site->address + 1 }, 0 };

		copies = probe(_metadata, &self->world, op, FI_COPIES, shot.range);
		if (copies)
			shot.kinds = FI_COPIES;
		copies_found += copies;
		shoot_site(_metadata, &self->world, op, fi_callee_name(site->callee),
			   site->function, shot, &self->outcomes);
		shared->hit[found[i]] = true;
	}
	if (op->only)
		return;
	copies = probe(_metadata, &self->world, op, FI_COPIES, module->code);
	EXPECT_EQ(copies, copies_found)
		TH_LOG("%s: copies that stand in no relocation", op->name);
	if (op->indirect) {
		struct shot shot = { FI_ALL, module->code, 0 };

		shoot_site(_metadata, &self->world, op, "poll_wait", "twheel_poll", shot,
			   &self->outcomes);
	}
}

/* Let all faults of the case within the module happen, in any call. */
static void each_fault(struct __test_metadata *_metadata, FIXTURE_DATA(call) *self,
		       const struct op *op, bool compat)
{
	struct shot shot = { FI_ALL, self->module.code, 1 };
	struct outcome outcome;

	while (shoot(_metadata, &self->world, op, &shot, compat, &outcome)) {
		EXPECT_TRUE(is_done(op, &outcome) || outcomes_have(&self->outcomes, &outcome))
			TH_LOG("%s: %d, %d ENOMEM", self->world.where, outcome.ret,
			       outcome.nr_enomem);
		shot.nth++;
	}
	EXPECT_TRUE(is_done(op, &outcome))
		TH_LOG("%s: untouched, it returns %d", self->world.where, outcome.ret);
	ksft_print_msg("%s%s: %u faults, one after the other\n", op->name,
		       compat ? " (32-bit)" : "", shot.nth - 1);
	fflush(stdout);
}

TEST_F_TIMEOUT(call, a_call_that_fails_says_so_and_leaves_no_trace, 100)
{
	each_site(_metadata, self, variant->op);
	if (!variant->op->only)
		each_fault(_metadata, self, variant->op, false);
	if (variant->op->compat)
		each_fault(_metadata, self, variant->op, true);
	shared->nr_cases++;
}

/* ---- all sites ----------------------------------------------------------- */

FIXTURE(all) {
	struct fi_module module;
};

FIXTURE_SETUP(all)
{
	if (shared->nr_cases < NR_CASES)
		SKIP(return, "only %d of %d cases were run, or could be", shared->nr_cases,
		     NR_CASES);
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
}

FIXTURE_TEARDOWN(all)
{
}

/* If you add a call that can fail, add a case that makes it. */
TEST_F(all, all_calls_that_can_fail_have_failed)
{
	int i;

	for (i = 0; i < self->module.nr; i++) {
		const struct fi_site *site = &self->module.site[i];

		/* The code that controls sync points is used by tests only. */
		if (!fi_callee_name(site->callee) ||
		    !strncmp(site->function, "syncpoints_", strlen("syncpoints_")))
			continue;
		EXPECT_TRUE(shared->hit[i])
			TH_LOG("%s in %s() has never failed", site->callee, site->function);
	}
}

TEST_F(all, all_rows_of_the_table_were_seen)
{
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(rows); i++) {
		EXPECT_TRUE(shared->row_seen[i])
			TH_LOG("%s | %s in %s | %s | %s", rows[i].op, rows[i].callee,
			       rows[i].where, rows[i].once, rows[i].always);
	}
}

TEST_HARNESS_MAIN
