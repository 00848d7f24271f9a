/* SPDX-License-Identifier: MIT */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
template <typename Type>
class _twheel_same {
public:
	using self = Type;
};

template <typename Type, typename Class, typename Member>
inline Type *_twheel_container_of(Member *t, Member Class::*member)
{
	Member Type::*own = member;
	ptrdiff_t offset = 0;

	static_assert(sizeof(offset) == sizeof(own), "a pointer to a member is an offset");
	__builtin_memcpy(&offset, &own, sizeof(offset));

	void *type = static_cast<char *>(static_cast<void *>(t)) - offset;

	return static_cast<Type *>(type);
}

extern "C" {
#endif

#define _TWHEEL_INLINE	static inline __attribute__((__always_inline__, __unused__))
#ifdef TWHEEL_NO_INLINE
#define _TWHEEL_FUNCTION
#elif !defined(_TWHEEL_FUNCTION)
#define _TWHEEL_FUNCTION	_TWHEEL_INLINE
#endif

#define TWHEEL_VERSION_MAJOR	0
#define TWHEEL_VERSION_MINOR	1
#define TWHEEL_VERSION_PATCH	0

#define TWHEEL_USEC	1000ULL
#define TWHEEL_MSEC	1000000ULL
#define TWHEEL_SEC	1000000000ULL

#define TWHEEL_NEVER	UINT64_MAX

struct twheel;
struct twheel_timer;

typedef void twheel_callback(struct twheel *w, struct twheel_timer *t);

struct twheel_timer {
	struct twheel_timer *next;
	twheel_callback *callback;
	struct twheel_timer **pprev;
	uint64_t interval_ns;
	uint64_t deadline;
};

#define TWHEEL_TIMER_INIT(its_callback)	{ NULL, (its_callback), NULL, 0, 0 }

#ifdef __cplusplus
#define twheel_container_of(t, type, member)						\
	_twheel_container_of<type>(t, &_twheel_same<type>::self::member)
#else
#define twheel_container_of(t, type, member) \
	((type *)(void *)((char *)(t) - offsetof(type, member)))
#endif

#define TWHEEL_MONOTONIC	0U
#define TWHEEL_BOOTTIME		1U
#define TWHEEL_REALTIME		2U
#define TWHEEL_TAI		3U
#define TWHEEL_CALLER		4U

#define TWHEEL_SHARED		(1U << 0)
#define TWHEEL_IMMEDIATE	(1U << 1)
#define TWHEEL_MEASURE		(1U << 2)

struct twheel_options {
	uint32_t size;
	uint32_t clock;
	uint32_t flags;
	uint32_t reserved;
	uint64_t tick_ns;
	uint64_t slack_ns;
	void *data;
};

#define TWHEEL_LATE_BUCKETS	64

struct twheel_stats {
	uint64_t pending;
	uint64_t called;
	uint64_t dispatches;
	uint64_t vain;
	uint64_t settings;
	uint64_t moved;
	uint64_t slowest_ns;
	uint64_t late[TWHEEL_LATE_BUCKETS];
};

typedef void twheel_visitor(struct twheel *w, struct twheel_timer *t, void *arg);

const char *twheel_version(void);

int twheel_open(struct twheel **w, const struct twheel_options *options);

void twheel_close(struct twheel *w);

void *twheel_data(const struct twheel *w);

_TWHEEL_FUNCTION
void twheel_timer_init(struct twheel_timer *t, twheel_callback *its_callback);

size_t twheel_timer_size(void);

_TWHEEL_FUNCTION
void twheel_start(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);

_TWHEEL_FUNCTION
void twheel_start_at(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns);

void twheel_start_every(struct twheel *w, struct twheel_timer *t, uint64_t interval_ns);

#define TWHEEL_FIXED_DELAY	(1U << 0)

void twheel_start_periodic(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			   uint64_t interval_ns, unsigned int flags);

uint64_t twheel_periods(const struct twheel *w);

_TWHEEL_FUNCTION
bool twheel_stop(struct twheel *w, struct twheel_timer *t);

bool twheel_stop_sync(struct twheel *w, struct twheel_timer *t);

size_t twheel_stop_all(struct twheel *w, twheel_visitor *fn, void *arg);

void twheel_each(struct twheel *w, twheel_visitor *fn, void *arg);

_TWHEEL_FUNCTION
bool twheel_timer_pending(const struct twheel_timer *t);

_TWHEEL_FUNCTION
uint64_t twheel_timer_deadline(const struct twheel_timer *t);

void twheel_timer_move(struct twheel *w, struct twheel_timer *to, struct twheel_timer *from);

int twheel_dispatch(struct twheel *w, unsigned int max);

uint64_t twheel_next(struct twheel *w);

int twheel_fd(struct twheel *w);

int twheel_flush(struct twheel *w);

int twheel_wait(struct twheel *w, uint64_t timeout_ns);

void twheel_wake(struct twheel *w);

uint64_t twheel_now(struct twheel *w);

uint64_t twheel_update(struct twheel *w);

int twheel_advance(struct twheel *w, uint64_t to_ns);

_TWHEEL_FUNCTION
uint64_t twheel_from_ms(uint64_t ms);

_TWHEEL_FUNCTION
int twheel_left_ms(uint64_t until_ns, uint64_t now_ns);

void twheel_after_fork(struct twheel *w);

void twheel_get_stats(struct twheel *w, struct twheel_stats *stats, size_t size);

#ifndef TWHEEL_NO_INLINE
#define _TWHEEL_UNLIKELY(x)	__builtin_expect(!!(x), 0)
#define _TWHEEL_KEY	(1ULL << 63)
#define _TWHEEL_SLOTS	256
#define _TWHEEL_SHARED_BIT	16U

#ifdef __cplusplus
#define _TWHEEL_HEAD(w)		reinterpret_cast<struct _twheel_head *>(w)
#define _TWHEEL_ADDRESS(w)	reinterpret_cast<uintptr_t>(w)
#define _TWHEEL_SIGNED(x)	static_cast<int64_t>(x)
#define _TWHEEL_INT(x)		static_cast<int>(x)
#define _TWHEEL_BIT(x)		(63U ^ static_cast<unsigned int>(__builtin_clzll(x)))
#else
#define _TWHEEL_HEAD(w)		((struct _twheel_head *)(w))
#define _TWHEEL_ADDRESS(w)	((uintptr_t)(w))
#define _TWHEEL_SIGNED(x)	((int64_t)(x))
#define _TWHEEL_INT(x)		((int)(x))
#define _TWHEEL_BIT(x)		(63U ^ (unsigned int)__builtin_clzll(x))
#endif

struct _twheel_head {
	uint64_t now;
	uint64_t base;
	uint64_t next;
	uint64_t shared;
	uint64_t spare[4];
	uint8_t shift[64];
	struct twheel_timer **level[64];
};

void _twheel_start_slow(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);
void _twheel_start_at_slow(struct twheel *w, struct twheel_timer *t, uint64_t key);
void _twheel_restart(struct twheel *w, struct twheel_timer *t, uint64_t key);
bool _twheel_stop_slow(struct twheel *w, struct twheel_timer *t);
void _twheel_mark(struct twheel *w, struct twheel_timer **slot, uint64_t key);

_TWHEEL_FUNCTION
void twheel_timer_init(struct twheel_timer *t, twheel_callback *its_callback)
{
	const struct twheel_timer timer = TWHEEL_TIMER_INIT(its_callback);

	*t = timer;
}

_TWHEEL_INLINE void _twheel_insert(struct twheel *wheel, struct twheel_timer *t, uint64_t key)
{
	struct _twheel_head *w = _TWHEEL_HEAD(wheel);
	unsigned int bit = _TWHEEL_BIT(key - w->base);
	struct twheel_timer **slot = w->level[bit] + (key >> w->shift[bit]) % _TWHEEL_SLOTS;
	struct twheel_timer *next = *slot;

	t->next = next;
	t->pprev = slot;
	t->deadline = key;
	*slot = t;
	if (_TWHEEL_UNLIKELY(!next)) {
		_twheel_mark(wheel, slot, key);
		return;
	}
	next->pprev = &t->next;
	if (_TWHEEL_UNLIKELY(key < w->next))
		_twheel_mark(wheel, slot, key);
}

_TWHEEL_INLINE void _twheel_start_key(struct twheel *w, struct twheel_timer *t, uint64_t key)
{
	if (!t->deadline)
		_twheel_insert(w, t, key);
	else if (_TWHEEL_SIGNED(key) >= _TWHEEL_SIGNED(t->deadline))
		t->deadline = key;
	else
		_twheel_restart(w, t, key);
}

_TWHEEL_FUNCTION
void twheel_start(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	uint64_t key = _TWHEEL_HEAD(w)->now + delay_ns;

	if (_TWHEEL_UNLIKELY(key <= _TWHEEL_HEAD(w)->now))
		_twheel_start_slow(w, t, delay_ns);
	else
		_twheel_start_key(w, t, key);
}

_TWHEEL_FUNCTION
void twheel_start_at(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	uint64_t key = deadline_ns ^ _TWHEEL_KEY;

	if (_TWHEEL_UNLIKELY(key <= _TWHEEL_HEAD(w)->now))
		_twheel_start_at_slow(w, t, key);
	else
		_twheel_start_key(w, t, key);
}

_TWHEEL_FUNCTION
bool twheel_stop(struct twheel *w, struct twheel_timer *t)
{
	struct twheel_timer *next, **pprev;

	if (_TWHEEL_UNLIKELY(_TWHEEL_ADDRESS(w) & _TWHEEL_SHARED_BIT))
		return _twheel_stop_slow(w, t);
	if (!t->deadline)
		return false;
	next = t->next;
	pprev = t->pprev;
	t->deadline = 0;
	*pprev = next;
	next->pprev = pprev;
	return true;
}

_TWHEEL_FUNCTION
bool twheel_timer_pending(const struct twheel_timer *t)
{
	return t->deadline != 0;
}

_TWHEEL_FUNCTION
uint64_t twheel_timer_deadline(const struct twheel_timer *t)
{
	if (!t->deadline || t->deadline == _TWHEEL_KEY - 1)
		return TWHEEL_NEVER;
	return t->deadline & ~_TWHEEL_KEY;
}

_TWHEEL_FUNCTION
uint64_t twheel_from_ms(uint64_t ms)
{
	return ms > TWHEEL_NEVER / TWHEEL_MSEC ? TWHEEL_NEVER : ms * TWHEEL_MSEC;
}

_TWHEEL_FUNCTION
int twheel_left_ms(uint64_t until_ns, uint64_t now_ns)
{
	uint64_t left_ns;

	if (until_ns == TWHEEL_NEVER)
		return -1;
	if (until_ns <= now_ns)
		return 0;
	left_ns = until_ns - now_ns - 1;
	if (left_ns >= INT32_MAX * TWHEEL_MSEC)
		return INT32_MAX;
	return _TWHEEL_INT(left_ns / TWHEEL_MSEC) + 1;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
