/*
 * A list of entries that stand in what is listed: an entry is in at most one list, and leaves it without being told which.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LIST_H
#define RL_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* An entry, all zero while it is in no list; or the list itself, which stands between its last entry and its first. */
typedef struct rl_list {
  struct rl_list *previous, *next;
} rl_list;

static inline void rl_list_init(rl_list *list) {
  list->previous = list->next = list;
}

static inline bool rl_list_is_in(const rl_list *entry) {
  return entry->next != NULL;
}

/* Returns the entry behind |entry|, or NULL; of the list itself its first. */
static inline rl_list *rl_list_next(const rl_list *list, const rl_list *entry) {
  return entry->next == list ? NULL : entry->next;
}

/* |entry| is in no list. */
static inline void rl_list_append(rl_list *list, rl_list *entry) {
  entry->previous = list->previous;
  entry->next = list;
  list->previous->next = entry;
  list->previous = entry;
}

/* Idempotent. */
static inline void rl_list_remove(rl_list *entry) {
  if (rl_list_is_in(entry)) {
    entry->previous->next = entry->next;
    entry->next->previous = entry->previous;
    entry->previous = entry->next = NULL;
  }
}

#endif
