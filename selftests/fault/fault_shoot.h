/* SPDX-License-Identifier: GPL-2.0 */
/* Makes a case fail at one place after the other. */
#ifndef TWHEEL_FAULT_SHOOT_H
#define TWHEEL_FAULT_SHOOT_H

#include "fault_cases.h"
#include "fault_inject.h"
#include "twheel_module.h"

/**
 * struct shot - the place at which a run is made to fail
 * @kinds: kinds of faults
 * @range: the code that makes the calls
 * @nth: the number of the fault; 0 for all of them
 */
struct shot {
	unsigned int kinds;
	struct fi_range range;
	unsigned int nth;
};

struct outcome {
	int ret;
	int nr_enomem;
};

/* Call this before the others. Return the result of fi_open(). */
static inline int ready_to_shoot(struct __test_metadata *_metadata, struct world *w,
				 struct fi_module *module)
{
	int ret = fi_open();

	if (ret)
		return ret;
	ASSERT_EQ(0, fi_spare_kmemleak());
	ASSERT_EQ(0, fi_read_module(module, tw_module_path()));
	w->arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)w->arena);
	return 0;
}

static inline void world_begin(struct __test_metadata *_metadata, struct world *w,
			       const struct op *op, bool compat)
{
	char *arena = w->arena;

	memset(w, 0, sizeof(*w));
	w->arena = arena;
	w->compat = compat;
	w->fd = -1;
	w->other = -1;
	memset(arena, 0, ENTRIES);
	op->prepare(_metadata, w);
}

static inline void world_end(struct world *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->other >= 0)
		close(w->other);
}

/* Make the call, and return how many faults there were. */
static inline unsigned int world_fire(struct __test_metadata *_metadata, struct world *w,
				      const struct op *op, const struct shot *shot, int *ret)
{
	unsigned int left, nr;

	ASSERT_EQ(0, fi_filter(shot->kinds, shot->range));
	if (shot->nth) {
		ASSERT_EQ(0, fi_arm(shot->nth));
		*ret = op->run(w);
		left = fi_disarm();
		nr = shot->nth == FI_NEVER ? FI_NEVER - left : !left;
	} else {
		ASSERT_EQ(0, fi_mark("thread-self", true));
		ASSERT_EQ(0, fi_fail_always());
		*ret = op->run(w);
		nr = fi_fail_no_more();
		ASSERT_EQ(0, fi_mark("thread-self", false));
	}
	ASSERT_EQ(0, fi_filter(0, shot->range));
	return nr;
}

/* Return how many faults are possible in that range. */
static inline unsigned int probe(struct __test_metadata *_metadata, struct world *w,
				 const struct op *op, unsigned int kinds, struct fi_range range)
{
	const struct shot shot = { kinds, range, FI_NEVER };
	unsigned int nr;
	int ret;

	world_begin(_metadata, w, op, false);
	nr = world_fire(_metadata, w, op, &shot, &ret);
	world_end(w);
	return nr;
}

/* Do one run and all checks after it. Return whether anything has failed. */
static inline bool shoot(struct __test_metadata *_metadata, struct world *w, const struct op *op,
			 const struct shot *shot, bool compat, struct outcome *outcome)
{
	unsigned int nr;
	int ret;

	world_begin(_metadata, w, op, compat);
	snprintf(w->where, sizeof(w->where), "%s%s, fault %u in %#llx-%#llx", op->name,
		 compat ? " (32-bit)" : "", shot->nth, shot->range.start, shot->range.end);
	nr = world_fire(_metadata, w, op, shot, &ret);
	op->check(_metadata, w, ret);
	*outcome = (struct outcome){ ret, w->nr_enomem };
	check_world(_metadata, w);
	world_end(w);
	EXPECT_EQ(0, tw_wait_wheels_open(0))
		TH_LOG("%s: wheels open", w->where);
	return nr;
}

/* ---- the places at which a case can fail ---------------------------------- */

/* Find the calls out of the module at which this case can fail. */
static inline void find_sites(struct __test_metadata *_metadata, struct world *w,
			      const struct op *op, const struct fi_module *module, int first,
			      int last, int *found, int *nr)
{
	const struct fi_range range = {
		module->site[first].address,
		module->site[last].address + 1,
	};
	int middle = first + (last - first) / 2;

	/*
	 * The range also has the module's calls to itself, so the fault may be at none of the
	 * sites.
	 */
	if (!probe(_metadata, w, op, FI_ALL, range))
		return;
	if (first == last) {
		found[(*nr)++] = first;
		return;
	}
	find_sites(_metadata, w, op, module, first, middle, found, nr);
	find_sites(_metadata, w, op, module, middle + 1, last, found, nr);
}

/*
 * Calls of functions that can fail, and any other that turns out to. Return how many there are at
 * @found.
 */
static inline int sites_of(struct __test_metadata *_metadata, struct world *w,
			   const struct fi_module *module, const struct op *op, int *found)
{
	unsigned int total = 0;
	int i, nr = 0;

	for (i = 0; i < module->nr; i++) {
		const struct fi_site *site = &module->site[i];
		unsigned int possible;

		if (!fi_callee_name(site->callee) ||
		    (op->only && strncmp(op->only, site->callee, strlen(op->only))))
			continue;
		possible = probe(_metadata, w, op, FI_ALL,
				 (struct fi_range){ site->address, site->address + 1 });
		if (possible)
			found[nr++] = i;
		total += possible;
	}
	if (!op->only && total != probe(_metadata, w, op, FI_ALL, module->code)) {
		nr = 0;
		find_sites(_metadata, w, op, module, 0, module->nr - 1, found, &nr);
	}
	return nr;
}

#endif /* TWHEEL_FAULT_SHOOT_H */
