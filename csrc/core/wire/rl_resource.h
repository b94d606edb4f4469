/*
 * The resources of a lock, one or several, and their keys on the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RESOURCE_H
#define RL_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock.h"

/* The keys of a lock, shared by its attempts. A key is the prefix followed by the resource. */
typedef struct rl_resource {
  unsigned references;
  uint32_t key_length; /* of all keys together */
  uint16_t prefix_length;
  uint16_t count; /* of keys */
  char key[];     /* all keys; with several, their lengths follow */
} rl_resource;

/* A resource and its key. */
typedef struct rl_resource_name {
  const char *key;
  size_t key_length;
  const char *resource; /* the end of the key */
  size_t length;
} rl_resource_name;

/*
 * Copy prefix and resources. |count| is at most REDLOCK_RESOURCES_MAX, and no key is longer than
 * REDLOCK_KEY_MAX. Return one reference, or NULL if out of memory.
 */
rl_resource *rl_resource_new_many(const void *prefix, size_t prefix_length,
                                  const redlock_resource *resources, size_t count);
rl_resource *rl_resource_new(const void *prefix, size_t prefix_length, const void *resource,
                             size_t resource_length);
void rl_resource_unref(rl_resource *resource);

/* Returns the lengths of several keys; NULL for one key. */
const uint16_t *rl_resource_lengths(const rl_resource *resource);

/* Returns the resource with that index, from 0. */
rl_resource_name rl_resource_at(const rl_resource *resource, unsigned index);

/* Returns true if two of |count| resources are equal. */
bool rl_resource_repeats(const redlock_resource *resources, size_t count);

/*
 * Returns true if the library reserves the key: for the fencing counter, the queue or the waiters
 * flag of another key, or for a lineage record. A lock there would be overwritten, or never be
 * granted.
 */
bool rl_resource_is_reserved(const void *prefix, size_t prefix_length,
                             const redlock_resource *resource);

/* Returns its size in bytes. */
size_t rl_resource_size(const rl_resource *resource);

#endif
