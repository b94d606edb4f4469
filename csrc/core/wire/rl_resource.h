/*
 * What a lock is for: one resource, or several that are taken together; and their keys on the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RESOURCE_H
#define RL_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock.h"

/* The keys of a lock, shared by its attempts. A key is the prefix and the resource behind it. */
typedef struct rl_resource {
  unsigned references;
  uint32_t key_length; /* of all keys together */
  uint16_t prefix_length;
  uint16_t count; /* of keys */
  char key[];     /* the keys, one behind the other; of several, their lengths stand behind them */
} rl_resource;

/* A resource and its key. */
typedef struct rl_resource_name {
  const char *key;
  size_t key_length;
  const char *resource; /* the end of the key */
  size_t length;
} rl_resource_name;

/*
 * |count| is at most REDLOCK_RESOURCES_MAX, and no key is longer than REDLOCK_KEY_MAX. Everything is
 * copied. NULL when out of memory. One reference is the caller's.
 */
rl_resource *rl_resource_new_many(const void *prefix, size_t prefix_length,
                                  const redlock_resource *resources, size_t count);
rl_resource *rl_resource_new(const void *prefix, size_t prefix_length, const void *resource,
                             size_t resource_length);
void rl_resource_unref(rl_resource *resource);

/* The lengths of the keys; NULL where there is one. */
const uint16_t *rl_resource_lengths(const rl_resource *resource);

/* The |index|th of them, from 0. */
rl_resource_name rl_resource_at(const rl_resource *resource, unsigned index);

/* Returns true if one of |count| resources is there twice. */
bool rl_resource_repeats(const redlock_resource *resources, size_t count);

/*
 * Returns true if the key is one that the library keeps for itself: the counter of another key's fencing tokens, the queue of
 * those who wait for it, or a node's record. A lock there would be overwritten by it, or never be had.
 */
bool rl_resource_is_reserved(const void *prefix, size_t prefix_length,
                             const redlock_resource *resource);

/* The memory that it takes. */
size_t rl_resource_size(const rl_resource *resource);

#endif
