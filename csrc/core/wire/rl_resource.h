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

#define RL_RESOURCE_SUFFIX_MAX 5 /* bytes of "/1024" */

/* The keys of a lock, shared by its attempts. A key is the prefix followed by the resource. */
typedef struct rl_resource {
  unsigned references;
  uint32_t key_length; /* of all keys together */
  uint16_t prefix_length;
  uint8_t count;         /* of keys */
  uint8_t suffix_length; /* of "/" and the number of a semaphore's slot at the end; 0: no slot */
  char key[];            /* all keys; with several, their lengths follow */
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

/*
 * Returns one reference to the key of a semaphore's slot, from 1: the key of |base|, "/" and the
 * number. NULL if out of memory.
 */
rl_resource *rl_resource_new_slot(const rl_resource *base, unsigned slot);

/* Returns the number of the slot; 0 if the resource is none. */
unsigned rl_resource_slot(const rl_resource *resource);

/*
 * Returns the number of the slot that the name ends in, and the length of the semaphore's name in
 * |*base_length|; 0 if the name is none of a slot.
 */
unsigned rl_resource_parse_slot(const void *name, size_t length, size_t *base_length);

/* Returns the length of the first key without the number of the slot. */
static inline size_t rl_resource_base_length(const rl_resource *resource) {
  return resource->key_length - resource->suffix_length;
}

/* Returns the lengths of several keys; NULL for one key. */
const uint16_t *rl_resource_lengths(const rl_resource *resource);

/* Returns the resource with that index, from 0. */
rl_resource_name rl_resource_at(const rl_resource *resource, unsigned index);

/* Returns true if both have the same keys in the same order, without the number of a slot. */
bool rl_resource_equal(const rl_resource *one, const rl_resource *other);

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
