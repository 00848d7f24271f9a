/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What twheel_wheel.c needs of the kernel, for userspace.
 */
#ifndef _WHEEL_SHIM_H
#define _WHEEL_SHIM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef unsigned long long u64;

#define U64_MAX			(~0ULL)
#ifndef PAGE_SIZE
#define PAGE_SIZE		4096UL
#endif
#define PAGE_MASK		(~(PAGE_SIZE - 1))
#define BITS_PER_LONG		((unsigned int)(sizeof(long) * CHAR_BIT))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define BITS_TO_LONGS(nr)	DIV_ROUND_UP(nr, BITS_PER_LONG)

/* Strict about types, as the older kernels are. */
#define shim_cmp(x, y, op) ({			\
	typeof(x) _x = (x);			\
	typeof(y) _y = (y);			\
	(void)(&_x == &_y);			\
	_x op _y ? _x : _y; })
#define min(x, y)	shim_cmp(x, y, <)
#define max(x, y)	shim_cmp(x, y, >)

#define swap(a, b) do {				\
	typeof(a) _tmp = (a);			\
	(a) = (b);				\
	(b) = _tmp;				\
} while (0)

#define BIT(nr)			(1UL << (nr))
#define BIT_MASK(nr)		(1UL << (nr) % BITS_PER_LONG)
#define BIT_WORD(nr)		((nr) / BITS_PER_LONG)
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define DIV64_U64_ROUND_UP(n, d)	DIV_ROUND_UP(n, d)
#define __always_inline		inline __attribute__((always_inline))

static inline int ilog2(u64 n)
{
	return 63 - __builtin_clzll(n);
}

static inline unsigned int fls64(u64 n)
{
	return n ? 64 - __builtin_clzll(n) : 0;
}

static inline unsigned int __fls(unsigned long n)
{
	return BITS_PER_LONG - 1 - __builtin_clzl(n);
}

static inline unsigned int __ffs(unsigned long n)
{
	return __builtin_ctzl(n);
}

#define __aligned(n)		__attribute__((aligned(n)))
#define noinline		__attribute__((noinline))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define prefetch(p)		__builtin_prefetch(p)
#define prefetchw(p)		__builtin_prefetch(p, 1)

static inline void __set_bit(unsigned long nr, unsigned long *addr)
{
	addr[nr / BITS_PER_LONG] |= 1UL << nr % BITS_PER_LONG;
}

static inline void __clear_bit(unsigned long nr, unsigned long *addr)
{
	addr[nr / BITS_PER_LONG] &= ~(1UL << nr % BITS_PER_LONG);
}

static inline bool test_bit(unsigned long nr, const unsigned long *addr)
{
	return addr[nr / BITS_PER_LONG] >> nr % BITS_PER_LONG & 1;
}

static inline unsigned long find_next_bit(const unsigned long *addr,
					  unsigned long size,
					  unsigned long from)
{
	unsigned long word;

	while (from < size) {
		word = addr[from / BITS_PER_LONG] >> from % BITS_PER_LONG;
		if (word) {
			from += __builtin_ctzl(word);
			return from < size ? from : size;
		}
		from += BITS_PER_LONG - from % BITS_PER_LONG;
	}
	return size;
}

#define for_each_set_bit(bit, addr, size)				\
	for ((bit) = find_next_bit(addr, size, 0); (bit) < (size);	\
	     (bit) = find_next_bit(addr, size, (bit) + 1))

static inline void bitmap_zero(unsigned long *addr, unsigned int nr)
{
	memset(addr, 0, BITS_TO_LONGS(nr) * sizeof(long));
}

struct list_head {
	struct list_head *next, *prev;
};

#define list_entry(node, type, member) \
	((type *)((char *)(node) - offsetof(type, member)))
#define list_first_entry(list, type, member) \
	list_entry((list)->next, type, member)

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add(struct list_head *node, struct list_head *list)
{
	node->next = list->next;
	node->prev = list;
	list->next->prev = node;
	list->next = node;
}

static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}

static inline void list_move(struct list_head *node, struct list_head *list)
{
	list_del(node);
	list_add(node, list);
}

static inline void list_move_tail(struct list_head *node, struct list_head *list)
{
	list_del(node);
	list_add(node, list->prev);
}

#endif /* _WHEEL_SHIM_H */
