/*
 * A doubly linked list whose entries are members of the listed structs.
 *
 * SPDX-License-Identifier: MIT
 *
 * An entry is in at most one list, and is removed without naming the list.
 */
#ifndef RL_LIST_H
#define RL_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* An entry, zero while it is in no list; or the list, between its last and its first entry. */
typedef struct rl_list {
  struct rl_list *previous, *next;
} rl_list;

static inline void rl_list_init(rl_list *list) {
  list->previous = list->next = list;
}

static inline bool rl_list_is_empty(const rl_list *list) {
  return list->next == list;
}

/* Returns true if |entry| is in a list. */
static inline bool rl_list_is_in(const rl_list *entry) {
  return entry->next != NULL;
}

/* Returns the entry behind |entry|, or NULL at the end. The first entry is behind |list|. */
static inline rl_list *rl_list_next(const rl_list *list, const rl_list *entry) {
  return entry->next == list ? NULL : entry->next;
}

/* Appends |entry|, which must be in no list. If |list| is an entry: inserts |entry| before it. */
static inline void rl_list_append(rl_list *list, rl_list *entry) {
  entry->previous = list->previous;
  entry->next = list;
  list->previous->next = entry;
  list->previous = entry;
}

/* Idempotent. */
static inline void rl_list_remove(rl_list *entry) {
  if (rl_list_is_in(entry)) {
    assert(entry->previous != NULL);
    entry->previous->next = entry->next;
    entry->next->previous = entry->previous;
    entry->previous = entry->next = NULL;
  }
}

/* A stack of free entries, NULL while it is empty. A pop returns NULL then. */
static inline void rl_list_push(rl_list **stack, rl_list *entry) {
  entry->next = *stack;
  *stack = entry;
}

static inline rl_list *rl_list_pop(rl_list **stack) {
  rl_list *entry = *stack;
  *stack = entry == NULL ? NULL : entry->next;
  return entry;
}

static inline void *rl_list_owner(const void *entry, size_t offset) {
  return entry == NULL ? NULL : (char *)(size_t)entry - offset;
}

/* Returns the struct whose |member| is |entry|; NULL for NULL. */
#define RL_OWNER(entry, type, member) ((type *)rl_list_owner(entry, offsetof(type, member)))

/* Returns the first struct of |list|, and the one behind |item|; NULL at the end. */
#define RL_LIST_FIRST(list, type, member) RL_OWNER(rl_list_next(list, list), type, member)
#define RL_LIST_AFTER(list, item, type, member)                                                    \
  RL_OWNER(rl_list_next(list, &(item)->member), type, member)

/* A loop over |list|, whose body may remove |item|. A declared name cannot be in parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define RL_LIST_EACH(list, item, type, member)                                                     \
  for (type *item = RL_LIST_FIRST(list, type, member), *item##_next;                               \
       item != NULL && (item##_next = RL_LIST_AFTER(list, item, type, member), true);              \
       item = item##_next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
