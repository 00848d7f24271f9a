/* SPDX-License-Identifier: MIT */
#ifndef _TWHEEL_DEVICE_H
#define _TWHEEL_DEVICE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TWHEEL_NO_INLINE) || defined(_TWHEEL_DEVICE_LIBRARY)
#define _TWHEEL_DEVICE_INLINE
#else
#define _TWHEEL_DEVICE_INLINE	static inline
#endif

struct twheel_device;
struct twheel_batch;
struct twheel_reader;

int twheel_device_open(struct twheel_device **d, const char *path, int flags,
		       const struct twheel_setup *setup);

int twheel_device_adopt(struct twheel_device **d, int fd, const struct twheel_setup *setup);

void twheel_device_close(struct twheel_device *d);

int twheel_device_fd(const struct twheel_device *d);

int twheel_device_reopen(const struct twheel_device *d, int flags);

_TWHEEL_DEVICE_INLINE
int twheel_device_info(const struct twheel_device *d, struct twheel_info *info, uint32_t flags);

int twheel_device_now(const struct twheel_device *d, uint64_t *now_ns);

_TWHEEL_DEVICE_INLINE
int twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
		       struct twheel_status *rows, uint32_t nr);

int twheel_device_drain(const struct twheel_device *d);

int twheel_device_advance(const struct twheel_device *d, uint64_t to_ns);

_TWHEEL_DEVICE_INLINE
int twheel_device_arm(const struct twheel_device *d, struct twheel_arm *arm);

_TWHEEL_DEVICE_INLINE
int twheel_device_rearm(const struct twheel_device *d, struct twheel_arm *arm);

_TWHEEL_DEVICE_INLINE
int twheel_device_rearm_key(const struct twheel_device *d, struct twheel_arm *arm);

_TWHEEL_DEVICE_INLINE
int twheel_device_cancel(const struct twheel_device *d, uint64_t id);

_TWHEEL_DEVICE_INLINE
int twheel_device_cancel_key(const struct twheel_device *d, uint64_t key);

_TWHEEL_DEVICE_INLINE
int twheel_device_query(const struct twheel_device *d, struct twheel_status *status);

_TWHEEL_DEVICE_INLINE
int twheel_device_query_key(const struct twheel_device *d, struct twheel_status *status);

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_arm_many(const struct twheel_device *d, struct twheel_arm *arms,
				uint32_t nr);

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_many(const struct twheel_device *d, struct twheel_arm *arms,
				  uint32_t nr);

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_key_many(const struct twheel_device *d, struct twheel_arm *arms,
				      uint32_t nr);

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_many(const struct twheel_device *d, struct twheel_cancel *cancels,
				   uint32_t nr);

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_key_many(const struct twheel_device *d,
				       struct twheel_cancel *cancels, uint32_t nr);

_TWHEEL_DEVICE_INLINE
int twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity);

void twheel_batch_close(struct twheel_batch *b);

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_arm(struct twheel_batch *b, uint64_t user_data,
				    uint64_t expires_ns);

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm(struct twheel_batch *b, uint64_t id, uint64_t expires_ns);

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm_key(struct twheel_batch *b, uint64_t key,
					  uint64_t expires_ns);

_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel(struct twheel_batch *b, uint64_t id);

_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel_key(struct twheel_batch *b, uint64_t key);

uint32_t twheel_batch_submit(struct twheel_batch *b);

void twheel_batch_reset(struct twheel_batch *b);

uint32_t twheel_batch_nr(const struct twheel_batch *b);

int twheel_batch_result(struct twheel_batch *b, uint32_t index);

uint64_t twheel_batch_id(struct twheel_batch *b, uint32_t index);

_TWHEEL_DEVICE_INLINE
int twheel_device_read(const struct twheel_device *d, struct twheel_event *events, uint32_t nr);

int twheel_reader_open(struct twheel_reader **r, const struct twheel_device *d, uint32_t nr);

void twheel_reader_close(struct twheel_reader *r);

_TWHEEL_DEVICE_INLINE
int twheel_reader_next(struct twheel_reader *r, struct twheel_event *event);

uint32_t twheel_reader_left(const struct twheel_reader *r);

typedef uint64_t twheel_word_t __attribute__((__aligned__(8)));

int twheel_device_map(struct twheel_device *d, twheel_word_t **table, uint32_t *shift);

int twheel_device_refresh(struct twheel_device *d, uint64_t id, uint64_t deadline_ns);

_TWHEEL_DEVICE_INLINE
uint64_t twheel_refresh_deadline(uint64_t deadline_ns, uint32_t shift);

_TWHEEL_DEVICE_INLINE
int twheel_refresh(twheel_word_t *table, uint64_t id, uint64_t deadline);

_TWHEEL_DEVICE_INLINE
void twheel_refresh_blind(twheel_word_t *table, uint64_t id, uint64_t deadline);

int _twheel_device_info(const struct twheel_device *d, struct twheel_info *info, size_t size,
			uint32_t flags);
int _twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
			struct twheel_status *rows, size_t size, uint32_t nr);
uint32_t _twheel_device_vector(const struct twheel_device *d, uint32_t command, uint32_t flags,
			       void *elements, size_t size, size_t result, uint32_t nr);
int _twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity,
		       size_t size);
union _twheel_element {
	struct twheel_arm *arm;
	struct twheel_cancel *cancel;
};

union _twheel_element _twheel_batch_add(struct twheel_batch *b, uint32_t command, uint32_t flags,
					uint32_t size, uint32_t id_offset, uint64_t id);
int _twheel_device_read(const struct twheel_device *d, struct twheel_event *events, size_t size,
			uint32_t nr);
int _twheel_reader_next(struct twheel_reader *r, struct twheel_event *event, size_t size);

#ifndef TWHEEL_NO_INLINE

_TWHEEL_DEVICE_INLINE
int twheel_device_info(const struct twheel_device *d, struct twheel_info *info, uint32_t flags)
{
	return _twheel_device_info(d, info, sizeof(*info), flags);
}

_TWHEEL_DEVICE_INLINE
int twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
		       struct twheel_status *rows, uint32_t nr)
{
	return _twheel_device_list(d, cursor, rows, sizeof(*rows), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_arm_many(const struct twheel_device *d, struct twheel_arm *arms,
				uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_ARM, 0, arms, sizeof(*arms),
				     offsetof(struct twheel_arm, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_many(const struct twheel_device *d, struct twheel_arm *arms,
				  uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_REARM, 0, arms, sizeof(*arms),
				     offsetof(struct twheel_arm, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_key_many(const struct twheel_device *d, struct twheel_arm *arms,
				      uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, arms, sizeof(*arms),
				     offsetof(struct twheel_arm, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_many(const struct twheel_device *d, struct twheel_cancel *cancels,
				   uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_CANCEL, 0, cancels, sizeof(*cancels),
				     offsetof(struct twheel_cancel, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_key_many(const struct twheel_device *d,
				       struct twheel_cancel *cancels, uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, cancels,
				     sizeof(*cancels), offsetof(struct twheel_cancel, result), nr);
}

_TWHEEL_DEVICE_INLINE
int twheel_device_arm(const struct twheel_device *d, struct twheel_arm *arm)
{
	twheel_device_arm_many(d, arm, 1);
	return arm->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_rearm(const struct twheel_device *d, struct twheel_arm *arm)
{
	twheel_device_rearm_many(d, arm, 1);
	return arm->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_rearm_key(const struct twheel_device *d, struct twheel_arm *arm)
{
	twheel_device_rearm_key_many(d, arm, 1);
	return arm->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_cancel(const struct twheel_device *d, uint64_t id)
{
	struct twheel_cancel cancel;

	memset(&cancel, 0, sizeof(cancel));
	cancel.id = id;
	twheel_device_cancel_many(d, &cancel, 1);
	return cancel.result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_cancel_key(const struct twheel_device *d, uint64_t key)
{
	struct twheel_cancel cancel;

	memset(&cancel, 0, sizeof(cancel));
	cancel.id = key;
	twheel_device_cancel_key_many(d, &cancel, 1);
	return cancel.result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_query(const struct twheel_device *d, struct twheel_status *status)
{
	_twheel_device_vector(d, TWHEEL_IOC_QUERY, 0, status, sizeof(*status),
			      offsetof(struct twheel_status, result), 1);
	return status->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_query_key(const struct twheel_device *d, struct twheel_status *status)
{
	_twheel_device_vector(d, TWHEEL_IOC_QUERY, TWHEEL_VECTOR_BY_KEY, status, sizeof(*status),
			      offsetof(struct twheel_status, result), 1);
	return status->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity)
{
	return _twheel_batch_open(b, d, capacity,
				  sizeof(struct twheel_arm) > sizeof(struct twheel_cancel) ?
				  sizeof(struct twheel_arm) : sizeof(struct twheel_cancel));
}

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_arm(struct twheel_batch *b, uint64_t user_data,
				    uint64_t expires_ns)
{
	struct twheel_arm *arm =
		_twheel_batch_add(b, TWHEEL_IOC_ARM, 0, sizeof(*arm),
				  offsetof(struct twheel_arm, id), 0).arm;

	if (arm) {
		arm->user_data = user_data;
		arm->expires_ns = expires_ns;
	}
	return arm;
}

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm(struct twheel_batch *b, uint64_t id, uint64_t expires_ns)
{
	struct twheel_arm *arm =
		_twheel_batch_add(b, TWHEEL_IOC_REARM, 0, sizeof(*arm),
				  offsetof(struct twheel_arm, id), id).arm;

	if (arm)
		arm->expires_ns = expires_ns;
	return arm;
}

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm_key(struct twheel_batch *b, uint64_t key,
					  uint64_t expires_ns)
{
	struct twheel_arm *arm =
		_twheel_batch_add(b, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, sizeof(*arm),
				  offsetof(struct twheel_arm, id), key).arm;

	if (arm)
		arm->expires_ns = expires_ns;
	return arm;
}

_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel(struct twheel_batch *b, uint64_t id)
{
	return _twheel_batch_add(b, TWHEEL_IOC_CANCEL, 0, sizeof(struct twheel_cancel),
				 offsetof(struct twheel_cancel, id), id).cancel;
}

_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel_key(struct twheel_batch *b, uint64_t key)
{
	return _twheel_batch_add(b, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY,
				 sizeof(struct twheel_cancel),
				 offsetof(struct twheel_cancel, id), key).cancel;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_read(const struct twheel_device *d, struct twheel_event *events, uint32_t nr)
{
	return _twheel_device_read(d, events, sizeof(*events), nr);
}

_TWHEEL_DEVICE_INLINE
int twheel_reader_next(struct twheel_reader *r, struct twheel_event *event)
{
	return _twheel_reader_next(r, event, sizeof(*event));
}

#if (defined(__GCC_ATOMIC_LLONG_LOCK_FREE) && __GCC_ATOMIC_LLONG_LOCK_FREE == 2) || \
	defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_8)
#define _TWHEEL_ATOMIC_WORDS	1
#else
#define _TWHEEL_ATOMIC_WORDS	0
#endif

_TWHEEL_DEVICE_INLINE
uint64_t twheel_refresh_deadline(uint64_t deadline_ns, uint32_t shift)
{
	return (deadline_ns + (1ULL << shift) - 1) >> shift << TWHEEL_REFRESH_GEN_BITS;
}

_TWHEEL_DEVICE_INLINE
int twheel_refresh(twheel_word_t *table, uint64_t id, uint64_t deadline)
{
#if _TWHEEL_ATOMIC_WORDS
	twheel_word_t *word = table + (id & 0xffffffff);
	uint64_t gen = id >> 32 & TWHEEL_REFRESH_GEN_MASK;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	do {
		if (((old - gen) & TWHEEL_REFRESH_GEN_MASK) - 1 < TWHEEL_REFRESH_GEN_MASK >> 1)
			return 0;
	} while (!__atomic_compare_exchange_n(word, &old, deadline | gen, 1,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 1;
#else
	(void)table;
	(void)id;
	(void)deadline;
	return -EOPNOTSUPP;
#endif
}

_TWHEEL_DEVICE_INLINE
void twheel_refresh_blind(twheel_word_t *table, uint64_t id, uint64_t deadline)
{
#if _TWHEEL_ATOMIC_WORDS
	__atomic_store_n(table + (id & 0xffffffff),
			 deadline | (id >> 32 & TWHEEL_REFRESH_GEN_MASK), __ATOMIC_RELAXED);
#else
	(void)table;
	(void)id;
	(void)deadline;
#endif
}

#endif

#ifdef __cplusplus
}
#endif

#endif
