// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that fail again and again on one wheel because memory is short: if a call kept a part of
 * its reservation each time, that would add up.
 */
#include "fault_inject.h"
#include "twheel_module.h"

#define TICK		TW_MS

FIXTURE(again) {
	struct fi_module module;
	int fd;
};

#define PLACES		100
#define FAILURES	200

FIXTURE_SETUP(again)
{
	int ret = fi_open();

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	ASSERT_EQ(0, fi_spare_kmemleak());
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
	self->fd = -1;
}

FIXTURE_TEARDOWN(again)
{
	fi_fail_no_more();
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Arm a vector of 32 while that call gets no memory; return whether the call was made. */
static bool fail_vector(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self,
			const struct fi_site *site, unsigned long cmd, struct twheel_arm *arms)
{
	unsigned int nr;

	ASSERT_EQ(0, fi_filter(FI_ALLOCATIONS,
			       (struct fi_range){ site->address, site->address + 1 }));
	ASSERT_EQ(0, fi_mark("thread-self", true));
	ASSERT_EQ(0, fi_fail_always());
	ASSERT_LE(0, tw_vector(self->fd, cmd, arms, sizeof(*arms), 32));
	nr = fi_fail_no_more();
	ASSERT_EQ(0, fi_mark("thread-self", false));
	return nr;
}

static void another_wheel(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self)
{
	if (self->fd >= 0) {
		EXPECT_ACCOUNTS(self->fd);
		close(self->fd);
	}
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TICK, PLACES));
}

static void expect_all_places(struct __test_metadata *_metadata, int fd)
{
	struct twheel_arm arms[PLACES + 1];
	int i;

	memset(arms, 0, sizeof(arms));
	for (i = 0; i < PLACES + 1; i++)
		arms[i].expires_ns = TW_HOUR;
	EXPECT_EQ(PLACES, tw_arm_vec(fd, arms, PLACES + 1));
	EXPECT_EQ(TWHEEL_CREATED, arms[PLACES - 1].result);
	EXPECT_EQ(-EAGAIN, arms[PLACES].result);
}

/*
 * If the cgroup shows kernel memory, it must not grow by as much as FAILURES vectors of 32 would
 * take: at least 20 bytes an element.
 */
static void expect_no_more_memory(struct __test_metadata *_metadata, long before,
				  const struct fi_site *site)
{
	long after = before < 0 ? before : tw_kernel_bytes();

	EXPECT_GE(before + FAILURES * 32 * 20, after)
		TH_LOG("%s in %s(): %ld bytes more", site->callee, site->function, after - before);
}

/**
 * struct vain - a call that is tried again and again
 * @cmd: ARM, or REARM of 32 that are in the wheel already
 * @interval_ns: the interval of each element
 * @afterwards: checks a wheel on which the call has failed that often
 */
struct vain {
	unsigned long cmd;
	__u64 interval_ns;
	void (*afterwards)(struct __test_metadata *_metadata, int fd, struct twheel_arm *arms);
};

/* The wheel's memory shows only by its cost, later. */
static void all_places_are_free(struct __test_metadata *_metadata, int fd, struct twheel_arm *arms)
{
	(void)arms;
	expect_all_places(_metadata, fd);
}

static void all_can_be_rearmed(struct __test_metadata *_metadata, int fd, struct twheel_arm *arms)
{
	ASSERT_EQ(32, tw_rearm_vec(fd, arms, 32));
}

/* Prepare a vector of 32; if the call is REARM, its timeouts are in the wheel. */
static void prepare_vector(struct __test_metadata *_metadata, int fd, const struct vain *vain,
			   struct twheel_arm *arms)
{
	int i;

	memset(arms, 0, 32 * sizeof(*arms));
	for (i = 0; i < 32; i++)
		arms[i].expires_ns = TW_HOUR;
	if (vain->cmd == TWHEEL_IOC_REARM) {
		ASSERT_EQ(32, tw_arm_vec(fd, arms, 32));
		ASSERT_EQ(0, tw_advance(fd, 0));
	}
	for (i = 0; i < 32; i++)
		arms[i].interval_ns = vain->interval_ns;
}

/* Use a wheel of its own. If the vector does not make this call, return false. */
static bool try_in_vain_at(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self,
			   const struct vain *vain, const struct fi_site *site)
{
	struct twheel_arm arms[32];
	long before;
	int round;

	another_wheel(_metadata, self);
	prepare_vector(_metadata, self->fd, vain, arms);
	before = tw_kernel_bytes();
	for (round = 0; round < FAILURES; round++) {
		if (!fail_vector(_metadata, self, site, vain->cmd, arms))
			break;
		ASSERT_EQ(-ENOMEM, arms[31].result)
			TH_LOG("%s in %s(), round %d", site->callee, site->function, round);
	}
	if (!round)
		return false;
	EXPECT_EQ(FAILURES, round)
		TH_LOG("%s in %s()", site->callee, site->function);
	vain->afterwards(_metadata, self->fd, arms);
	expect_no_more_memory(_metadata, before, site);
	return true;
}

/* Try each call that the vector makes; return how many these are. */
static int try_in_vain(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self,
		       const struct vain *vain)
{
	int i, nr = 0;

	for (i = 0; i < self->module.nr; i++)
		if (fi_callee_name(self->module.site[i].callee))
			nr += try_in_vain_at(_metadata, self, vain, &self->module.site[i]);
	return nr;
}

TEST_F_TIMEOUT(again, arms_that_fail_keep_no_place, 120)
{
	const struct vain arm = { TWHEEL_IOC_ARM, 0, all_places_are_free };

	/* The vector needs a page of places and the table. */
	EXPECT_LE(2, try_in_vain(_metadata, self, &arm));
}

TEST_F_TIMEOUT(again, arms_that_lack_memory_for_periods_keep_no_place, 120)
{
	const struct vain arm = { TWHEEL_IOC_ARM, TW_SEC, all_places_are_free };

	EXPECT_LE(2 + 1, try_in_vain(_metadata, self, &arm));
}

TEST_F_TIMEOUT(again, rearms_that_fail_keep_nothing, 120)
{
	const struct vain rearm = { TWHEEL_IOC_REARM, TW_SEC, all_can_be_rearmed };

	/* The memory that periods need. */
	EXPECT_LE(1, try_in_vain(_metadata, self, &rearm));
}

TEST_HARNESS_MAIN
