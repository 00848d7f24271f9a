/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the kernel that twheel_wheel.h and twheel_wheel.c need, for userspace; and for
 * bench/wheel, those of the engine beside them.
 */
#ifndef _WHEEL_SHIM_H
#define _WHEEL_SHIM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef unsigned long long u64;

#define U64_MAX			(~0ULL)
#define BITS_PER_LONG		((unsigned int)(sizeof(long) * CHAR_BIT))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define DIV64_U64_ROUND_UP(n, d)	DIV_ROUND_UP(n, d)
#define BITS_TO_LONGS(nr)	DIV_ROUND_UP(nr, BITS_PER_LONG)
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* Strict about types, as older kernels are. */
#define shim_cmp(x, y, op) ({			\
	typeof(x) _x = (x);			\
	typeof(y) _y = (y);			\
	(void)(&_x == &_y);			\
	_x op _y ? _x : _y; })
#define min(x, y)	shim_cmp(x, y, <)
#define max(x, y)	shim_cmp(x, y, >)

/* The C library may have one that is not inline. */
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define noinline		__attribute__((noinline))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define prefetch(p)		__builtin_prefetch(p)
#define prefetchw(p)		__builtin_prefetch(p, 1)

#define BIT(nr)			(1UL << (nr))
#define BIT_MASK(nr)		(1UL << (nr) % BITS_PER_LONG)
#define BIT_WORD(nr)		((nr) / BITS_PER_LONG)

static inline int ilog2(u64 n)
{
	return 63 - __builtin_clzll(n);
}

static inline unsigned long __fls(unsigned long n)
{
	return BITS_PER_LONG - 1 - __builtin_clzl(n);
}

static inline unsigned long __ffs(unsigned long n)
{
	return __builtin_ctzl(n);
}

static inline bool test_bit(unsigned long nr, const unsigned long *addr)
{
	return addr[BIT_WORD(nr)] & BIT_MASK(nr);
}

#ifdef SHIM_COUNTS_WORDS
/* How many words of bitmaps were read. */
extern u64 shim_words;
#define shim_count_word()	(shim_words++)
#else
#define shim_count_word()	((void)0)
#endif

static inline unsigned long find_next_bit(const unsigned long *addr, unsigned long size,
					  unsigned long from)
{
	while (from < size) {
		unsigned long word = addr[BIT_WORD(from)] >> from % BITS_PER_LONG;

		shim_count_word();
		if (word) {
			from += __builtin_ctzl(word);
			return from < size ? from : size;
		}
		from += BITS_PER_LONG - from % BITS_PER_LONG;
	}
	return size;
}

#endif /* _WHEEL_SHIM_H */
