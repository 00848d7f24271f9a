// SPDX-License-Identifier: GPL-2.0
/*
 * If a call fails, it gives all its pages back, wherever it fails. Each case fails at each of its
 * allocations, so often that the loss of one page each time would show.
 */
#include "fault_shoot.h"

FIXTURE(call) {
	struct world world;
	struct fi_module module;
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
}

FIXTURE_TEARDOWN(call)
{
	fi_fail_no_more();
}

#define ROUNDS		16

/* Return how many bytes more the kernel has allocated after a number of failures. */
static long bytes_kept(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		       const struct shot *shot)
{
	long before = tw_kernel_bytes();
	int round, ret;

	for (round = 0; round < ROUNDS; round++) {
		world_begin(_metadata, w, op, false);
		EXPECT_LT(0, world_fire(_metadata, w, op, shot, &ret));
		world_end(w);
	}
	return tw_kernel_bytes() - before;
}

/*
 * kmemleak does not see pages. If a page is lost in each round, every try shows that; if
 * allocators keep pages for later, some try does not.
 */
TEST_F_TIMEOUT(call, a_call_that_fails_gives_all_its_pages_back, 100)
{
	const long limit = ROUNDS * 4096 / 2;
	const struct fi_module *module = &self->module;
	const struct op *op = variant->op;
	int found[64], i, again, nr;

	if (tw_kernel_bytes() < 0)
		SKIP(return, "no memory cgroup that shows kernel memory");
	nr = op->slow ? 0 : sites_of(_metadata, &self->world, module, op, found);
	for (i = 0; i < nr; i++) {
		const struct fi_site *site = &module->site[found[i]];
		const struct shot shot = {
			FI_ALLOCATIONS, { site->address, site->address + 1 }, 0
		};
		long kept = limit;

		if (!probe(_metadata, &self->world, op, FI_ALLOCATIONS, shot.range))
			continue;
		for (again = 0; again < 5 && kept >= limit; again++)
			kept = bytes_kept(_metadata, &self->world, op, &shot);
		EXPECT_GT(limit, kept)
			TH_LOG("%s, %s in %s(): %ld bytes more after %d rounds", op->name,
			       site->callee, site->function, kept, ROUNDS);
	}
}

TEST_HARNESS_MAIN
