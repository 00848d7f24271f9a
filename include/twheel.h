/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between the engine (engine/) and the device (twheel_chardev.c, twheel_ioctl.c), and
 * what the files of the device share.  twheel_stat.c reads struct tw_ctx itself.
 *
 * The engine's functions are described where they are defined.  Those named step do up to
 * TWHEEL_BATCH elements of a call, which are in the user's memory.  If a fault has to be served,
 * they return -EFAULT, and the device has it served and tries again.  Those named one do a single
 * element that the device has.  None may be called with a lock of the engine held.
 */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <linux/fs.h>
#include <linux/twheel.h>

struct attribute_group;
struct tw_ctx;

/* The greatest number of elements that the device hands to the engine at a time. */
#define TWHEEL_BATCH		32

/*
 * The fault of one element is served at most this often: the memory may be taken away again before
 * the element is done.  If it is each time, the call fails with EFAULT.
 */
#define TWHEEL_TRIES		1000

/* The greatest number of elements in the vector of one call. */
#define TWHEEL_MAX_VECTOR	65536

/**
 * struct twheel_file - the private_data of an open file
 * @tw: its wheel, which may have several files; constant
 * @event_size: how long each event of read() is, bytes; 0: as SETUP has it; constant
 */
struct twheel_file {
	struct tw_ctx *tw;
	u32 event_size;
};

static inline const struct twheel_file *twheel_file(const struct file *file)
{
	return file->private_data;
}

/* The wheel of an open file. */
static inline struct tw_ctx *file_wheel(const struct file *file)
{
	return twheel_file(file)->tw;
}

static inline bool event_size_is_valid(u32 size)
{
	return size >= TWHEEL_EVENT_SIZE_MIN && size <= TWHEEL_EVENT_SIZE_MAX &&
	       size % sizeof(u64) == 0;
}

/**
 * struct twheel_call - a call that does the elements of a vector; it belongs to its caller
 * @now_ns: the wheel's clock, from which relative deadlines count; 0 until a step has read it
 * @nr_ok: elements that succeeded so far
 * @stride: how far apart the elements are, and how long each is for the user, bytes
 * @by_key: for REARM and CANCEL: keys stand in place of ids
 */
struct twheel_call {
	u64 now_ns;
	unsigned int nr_ok;
	u32 stride;
	bool by_key;
};

struct tw_ctx *twheel_create(void);
void twheel_get(struct tw_ctx *tw);
void twheel_put(struct tw_ctx *tw);
int twheel_configure(struct tw_ctx *tw, const struct twheel_setup *setup);
int twheel_get_info(struct tw_ctx *tw, struct twheel_info *info);

bool twheel_arm_plain(struct tw_ctx *tw, void __user *user);
int twheel_arm_step(struct tw_ctx *tw, void __user *user, unsigned int nr,
		    struct twheel_call *call);
int twheel_arm_one(struct tw_ctx *tw, struct twheel_arm *arm, bool nowait);
bool twheel_rearm_plain(struct tw_ctx *tw, void __user *user);
int twheel_rearm_step(struct tw_ctx *tw, void __user *user, unsigned int nr,
		      struct twheel_call *call);
int twheel_rearm_one(struct tw_ctx *tw, struct twheel_arm *arm, bool by_key, bool nowait);
bool twheel_cancel_plain(struct tw_ctx *tw, void __user *user);
int twheel_cancel_step(struct tw_ctx *tw, void __user *user, unsigned int nr,
		       struct twheel_call *call);
int twheel_cancel_one(struct tw_ctx *tw, u64 id, bool by_key);
int twheel_read_step(struct tw_ctx *tw, struct iov_iter *to, u32 size, unsigned int nr);

void twheel_query(struct tw_ctx *tw, struct twheel_status *status, unsigned int nr, bool by_key);
u64 twheel_changes(struct tw_ctx *tw);
int twheel_list(struct tw_ctx *tw, u64 *cursor, struct twheel_status *status, unsigned int nr);

u64 twheel_refresh_size(const struct tw_ctx *tw);
struct address_space *twheel_mapping(struct tw_ctx *tw, struct file *file);
int twheel_map_words(struct tw_ctx *tw);
struct page *twheel_words_lock(struct tw_ctx *tw, unsigned long nr);

int twheel_drain(struct tw_ctx *tw);
int twheel_clock_advance(struct tw_ctx *tw, u64 to_ns);

enum twheel_wheel_state twheel_state(const struct tw_ctx *tw);
bool twheel_is_started(const struct tw_ctx *tw);
bool twheel_is_keyed(const struct tw_ctx *tw);
bool twheel_has_places(struct tw_ctx *tw, unsigned int nr);
unsigned int twheel_nr_events(struct tw_ctx *tw, u32 *size);
bool twheel_is_drained(const struct tw_ctx *tw);
void twheel_settle(struct tw_ctx *tw);
int twheel_wait_event(struct tw_ctx *tw);
__poll_t twheel_poll(struct tw_ctx *tw, struct file *file, struct poll_table_struct *wait);

/*
 * The sizes of the first release.  They are accepted for ever, and whatever a caller of that
 * release leaves out counts as zero.  A structure that grows keeps its first size here; only the
 * assertion in twheel_ioctl.c gets the new one.
 */
#define SETUP_SIZE_FIRST	56
#define INFO_SIZE_FIRST		760
#define VECTOR_SIZE_FIRST	32
#define ARM_SIZE_FIRST		56
#define CANCEL_SIZE_FIRST	16
#define STATUS_SIZE_FIRST	80
#define LIST_SIZE_FIRST		40
#define ADVANCE_SIZE_FIRST	16
#define REOPEN_SIZE_FIRST	16

/* twheel_ioctl.c */
long twheel_ioctl(struct file *file, unsigned int cmd, void __user *arg);

/* twheel_stat.c */
extern const struct attribute_group *twheel_attribute_groups[];
void twheel_stat_init(void);
void twheel_stat_exit(void);
void twheel_show_fdinfo(struct seq_file *m, struct file *file);

/* twheel_chardev.c */
int twheel_chardev_register(void);
void twheel_chardev_unregister(void);

#endif /* _TWHEEL_H */
