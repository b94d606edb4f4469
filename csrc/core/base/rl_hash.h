/*
 * A hash table whose entries are members of the found structs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HASH_H
#define RL_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rl_list.h"

typedef struct rl_hash_entry {
  struct rl_hash_entry *next; /* in its bucket */
  uint64_t hash;
} rl_hash_entry;

/* Empty while it is zero. */
typedef struct rl_hash {
  rl_hash_entry **buckets;
  size_t bucket_count; /* a power of 2, or 0 */
  size_t count;        /* of entries */
} rl_hash;

/* Returns a hash of |length| bytes. With a random |seed|, no client can choose colliding names. */
uint64_t rl_hash_bytes(uint64_t seed, const void *bytes, size_t length);

/*
 * Makes room for |count| entries. If memory is short, the table keeps its size and becomes slower.
 * Returns false if it has no buckets at all.
 */
bool rl_hash_reserve(rl_hash *table, size_t count);

/* Inserts |entry|. rl_hash_reserve() must have succeeded. */
void rl_hash_insert(rl_hash *table, rl_hash_entry *entry, uint64_t hash);

/* Removes |entry|, which must be in |table|. */
void rl_hash_remove(rl_hash *table, const rl_hash_entry *entry);

/* Returns an entry with |hash|, or NULL. Growth reverses the order of equal hashes. */
rl_hash_entry *rl_hash_find(const rl_hash *table, uint64_t hash);

/* Returns the next entry with the hash of |entry|, or NULL after the last one. */
rl_hash_entry *rl_hash_find_next(const rl_hash_entry *entry);

/* Frees the buckets. */
void rl_hash_free(rl_hash *table);

#endif
