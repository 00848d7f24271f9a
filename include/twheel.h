/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between the engine (engine/) and the device (twheel_chardev.c,
 * twheel_ioctl.c, twheel_vectors.c, twheel_write.c)
 *
 * The engine's functions are described where they are defined.  They take batches of up
 * to TWHEEL_BATCH entries, and no user memory: the device copies in and out, and the
 * structs below carry the state of a call from one function of the engine to the next.  Only
 * twheel_arm_directly(), twheel_rearm_directly(), twheel_cancel_directly() and
 * twheel_events_directly() write to the user's memory themselves.
 * None of the functions may be called with a lock of the engine held.
 */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <linux/types.h>

struct address_space;
struct inode;
struct llist_node;
struct page;
struct twheel;
struct twheel_arm;
struct twheel_cancel;
struct twheel_event;
struct twheel_info;
struct twheel_setup;
struct twheel_status;
struct twheel_timeout;
struct wait_queue_head;

/* The greatest number of entries that the device hands to the engine at a time. */
#define TWHEEL_BATCH		32

/* The greatest number of entries in the vector of one call. */
#define TWHEEL_MAX_VECTOR	65536

/**
 * struct twheel_arming - timeouts that have a place and are not armed yet
 * @first: chain of the timeouts, in the order of the vector
 * @due_ns: when the kthread has to look at the earliest of them
 * @all: every entry of the batch has a timeout, and all of them are one-shots
 * @keeps: some of their places keep an entry in the wheel
 * @nowait: in: refuse with -EAGAIN what would have to sleep
 *
 * It belongs to one call, as do the two structs below: no lock guards them.
 */
struct twheel_arming {
	struct llist_node *first;
	u64 due_ns;
	bool all;
	bool keeps;
	bool nowait;
};

/**
 * struct twheel_look - timeouts as they were when a batch was looked at
 * @changes: a count of the engine at that time.  For REARM and CANCEL it tells whether
 *	the pointers in @timeout may still be used, for read also whether @state is
 *	unchanged.
 * @timeout: the timeout of each entry; undefined where the entry's result is an errno
 * @state: the state of each timeout; undefined as @timeout is
 */
struct twheel_look {
	u64 changes;
	struct twheel_timeout *timeout[TWHEEL_BATCH];
	u64 state[TWHEEL_BATCH];
};

/**
 * struct twheel_rearming - a batch that is being re-armed
 * @now_ns: the wheel's clock when the engine looked at the batch
 * @nr_room: number of entries in the wheel that room was taken for
 * @upsert: this is an ARM in a keyed wheel, which tells the deadlines that it replaces
 * @exact: some of the deadlines that are replaced have to be as they were seen
 * @nowait: in: refuse with -EAGAIN what would have to sleep
 * @look: the timeouts that were found, and their states
 */
struct twheel_rearming {
	u64 now_ns;
	unsigned int nr_room;
	bool upsert;
	bool exact;
	bool nowait;
	struct twheel_look look;
};

/**
 * enum twheel_found - what ARM has found of the keys of a keyed wheel
 * @TWHEEL_FOUND_ABSENT: no live timeout has the key
 * @TWHEEL_FOUND_PRESENT: a live timeout has it
 * @TWHEEL_FOUND_REFUSED: the entry is refused, whatever has it
 */
enum twheel_found {
	TWHEEL_FOUND_ABSENT,
	TWHEEL_FOUND_PRESENT,
	TWHEEL_FOUND_REFUSED,
};

struct twheel *twheel_create(void);
void twheel_destroy(struct twheel *tw);
int twheel_configure(struct twheel *tw, const struct twheel_setup *setup);
int twheel_get_info(struct twheel *tw, struct twheel_info *info);

int twheel_arm_prepare(struct twheel *tw, struct twheel_arm *arm,
		       unsigned int nr, struct twheel_arming *arming);
int twheel_arm_commit(struct twheel *tw, struct twheel_arming *arming,
		      unsigned int nr);
int twheel_arm_commit_keyed(struct twheel *tw, struct twheel_arming *arming,
			    unsigned int nr, unsigned int *nr_armed);
enum twheel_found twheel_keyed_look(struct twheel *tw, struct twheel_arm *arm,
				    unsigned int *nr, bool guess);
u64 twheel_key_id(struct twheel *tw, u64 key);

int twheel_rearm_prepare(struct twheel *tw, struct twheel_arm *arm,
			 struct twheel_rearming *rearming, unsigned int nr);
int twheel_upsert_prepare(struct twheel *tw, struct twheel_arm *arm,
			  struct twheel_rearming *rearming, unsigned int nr);
int twheel_rearm_commit(struct twheel *tw, const struct twheel_arm *arm,
			struct twheel_rearming *rearming, unsigned int nr,
			unsigned int *nr_ok);

unsigned int twheel_arm_directly(struct twheel *tw, struct twheel_arm *arm,
				 struct twheel_arm __user *user, unsigned int nr,
				 unsigned int *nr_ok);
unsigned int twheel_rearm_directly(struct twheel *tw, struct twheel_arm *arm,
				   struct twheel_arm __user *user, unsigned int nr,
				   unsigned int *told, unsigned int *nr_ok);

void twheel_cancel_look(struct twheel *tw, struct twheel_cancel *cancel,
			struct twheel_look *look, unsigned int nr);
unsigned int twheel_cancel_commit(struct twheel *tw,
				  const struct twheel_cancel *cancel,
				  struct twheel_look *look,
				  unsigned int nr, unsigned int *nr_ok);
unsigned int twheel_cancel_directly(struct twheel *tw, struct twheel_cancel *cancel,
				    struct twheel_cancel __user *user, unsigned int nr,
				    unsigned int *told, unsigned int *nr_ok);

void twheel_query(struct twheel *tw, struct twheel_status *status,
		  unsigned int nr);
int twheel_list(struct twheel *tw, u64 *cursor, struct twheel_status *status,
		unsigned int nr);

u64 twheel_refresh_size(const struct twheel *tw);
struct address_space *twheel_mapping(struct twheel *tw, struct inode *inode);
int twheel_map_words(struct twheel *tw);
struct page *twheel_words_lock(struct twheel *tw, unsigned long nr);

int twheel_drain(struct twheel *tw);
int twheel_advance(struct twheel *tw, u64 to_ns);

unsigned int twheel_events_look(struct twheel *tw, struct twheel_event *event,
				struct twheel_look *look, unsigned int nr);
unsigned int twheel_events_commit(struct twheel *tw,
				  const struct twheel_event *event,
				  const struct twheel_look *look,
				  unsigned int nr);
unsigned int twheel_events_directly(struct twheel *tw, struct twheel_event __user *user,
				    unsigned int nr);
bool twheel_is_started(const struct twheel *tw);
bool twheel_is_keyed(const struct twheel *tw);
unsigned long twheel_bytes(const struct twheel *tw);
const char *twheel_kthread_name(const struct twheel *tw);
unsigned int twheel_nr_events(struct twheel *tw, u32 *size);
void twheel_stand_in(struct twheel *tw);
bool twheel_has_events(struct twheel *tw);
bool twheel_wait_is_over(struct twheel *tw);
bool twheel_has_room(const struct twheel *tw);
bool twheel_is_draining(const struct twheel *tw);
bool twheel_is_drained(const struct twheel *tw);
struct wait_queue_head *twheel_wait_queue(struct twheel *tw);

/* twheel_chardev.c */
int twheel_chardev_register(void);
void twheel_chardev_unregister(void);

#endif /* _TWHEEL_H */
