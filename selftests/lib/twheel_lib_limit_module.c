// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel where the module's limit of memory is reached: timers are told ENOSPC, once,
 * nothing else is lost, and when there is memory again, they can be started.
 *
 * The program loads and unloads the module itself; TWHEEL_KO names the file.
 */
#include "twheel_lib_test.h"
#include "twheel_module.h"

/* More than go into 16 MB, at 59 bytes each. */
#define TIMERS	400000

struct told {
	struct twheel_timer timer;
	int expired;
	int refused;
	int status;
};

static void on_expiry(struct twheel *w, struct twheel_timer *t, int status)
{
	struct told *it = twheel_container_of(t, struct told, timer);

	(void)w;
	if (status)
		it->refused++;
	else
		it->expired++;
	it->status = status;
}

FIXTURE(limit) {
	struct twheel *w;
	struct told *told;
};

FIXTURE_SETUP(limit)
{
	int i;

	tw_unload_soon();
	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=16384 max_user_memory_kb=16384"));
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_DEVICE, TWHEEL_CLOCK_VIRTUAL, TW_MS));
	self->told = calloc(TIMERS, sizeof(*self->told));
	for (i = 0; i < TIMERS; i++)
		twheel_timer_init(&self->told[i].timer, on_expiry);
}

FIXTURE_TEARDOWN(limit)
{
	twheel_close(self->w);
	free(self->told);
	EXPECT_EQ(0, tw_unload_soon());
}

TEST_F_TIMEOUT(limit, of_memory_is_told_as_enospc_and_loses_nothing, 100)
{
	unsigned int refused, told = 0;
	int i, expired = 0, ret;

	for (i = 0; i < TIMERS; i++)
		twheel_start(self->w, &self->told[i].timer, TW_SEC + i % 1000 * TW_MS);
	refused = twheel_flush(self->w);
	EXPECT_LT(0, refused);
	EXPECT_GT(TIMERS, refused);
	for (i = 0; i < TIMERS; i++) {
		told += self->told[i].refused;
		ASSERT_EQ(self->told[i].refused ? -ENOSPC : 0, self->told[i].status);
		ASSERT_EQ(!self->told[i].refused, twheel_timer_pending(&self->told[i].timer));
	}
	EXPECT_EQ(refused, told);
	ASSERT_EQ(0, twheel_advance(self->w, 10 * TW_SEC));
	while ((ret = twheel_dispatch(self->w, 0)) > 0)
		expired += ret;
	EXPECT_EQ(TIMERS - refused, expired);
	TH_LOG("%u of %u were refused", refused, TIMERS);
	/* There is memory again. */
	for (i = 0; i < 1000; i++)
		twheel_start(self->w, &self->told[i].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	ASSERT_EQ(0, twheel_advance(self->w, 20 * TW_SEC));
	EXPECT_EQ(1000, twheel_dispatch(self->w, 0));
}

TEST_HARNESS_MAIN
