/* SPDX-License-Identifier: 0BSD */
/* A ring of links.  The list itself is one of them, before the first and after the last. */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>

struct list {
	struct list *next;
	struct list *prev;
};

static inline bool list_empty(const struct list *list)
{
	return list->next == list;
}

static inline void list_add_after(struct list *at, struct list *link)
{
	link->next = at->next;
	link->prev = at;
	at->next->prev = link;
	at->next = link;
}

static inline void list_remove(struct list *link)
{
	link->next->prev = link->prev;
	link->prev->next = link->next;
}

#endif /* LIST_H */
