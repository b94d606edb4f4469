/* SPDX-License-Identifier: MIT */
#include "wire/rl_resource.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_number.h"
#include "wire/rl_command.h"
#include "wire/rl_lineage.h"

/* Returns the offset of the lengths from the first key. */
static size_t rl_resource_lengths_at(size_t key_length) {
  return (key_length + 1) / sizeof(uint16_t) * sizeof(uint16_t);
}

static size_t rl_resource_room(size_t key_length, size_t count) {
  return count == 1
             ? sizeof(rl_resource) + key_length
             : sizeof(rl_resource) + rl_resource_lengths_at(key_length) + count * sizeof(uint16_t);
}

static char *rl_resource_append(char *out, const void *bytes, size_t length) {
  if (length > 0) {
    memcpy(out, bytes, length);
  }
  return out + length;
}

rl_resource *rl_resource_new_many(const void *prefix, size_t prefix_length,
                                  const redlock_resource *resources, size_t count) {
  size_t key_length = count * prefix_length;
  assert(count > 0 && count <= REDLOCK_RESOURCES_MAX);
  for (size_t i = 0; i < count; i++) {
    key_length += resources[i].length;
  }
  rl_resource *made = malloc(rl_resource_room(key_length, count));
  if (made == NULL) {
    return NULL;
  }
  made->references = 1;
  made->count = (uint8_t)count;
  made->suffix_length = 0;
  made->prefix_length = (uint16_t)prefix_length;
  made->key_length = (uint32_t)key_length;
  uint16_t *lengths = (uint16_t *)rl_resource_lengths(made);
  char *out = made->key;
  for (size_t i = 0; i < count; i++) {
    out = rl_resource_append(out, prefix, prefix_length);
    out = rl_resource_append(out, resources[i].bytes, resources[i].length);
    if (lengths != NULL) {
      lengths[i] = (uint16_t)(prefix_length + resources[i].length);
    }
  }
  return made;
}

rl_resource *rl_resource_new(const void *prefix, size_t prefix_length, const void *resource,
                             size_t resource_length) {
  redlock_resource one = {resource, resource_length};
  return rl_resource_new_many(prefix, prefix_length, &one, 1);
}

rl_resource *rl_resource_new_slot(const rl_resource *base, unsigned slot) {
  char suffix[16];
  assert(base->count == 1 && base->suffix_length == 0);
  int suffix_length = snprintf(suffix, sizeof suffix, "/%u", slot);
  rl_resource *made = rl_resource_new(base->key, base->key_length, suffix, (size_t)suffix_length);
  if (made != NULL) {
    made->prefix_length = base->prefix_length;
    made->suffix_length = (uint8_t)suffix_length;
  }
  return made;
}

unsigned rl_resource_parse_slot(const void *name, size_t length, size_t *base_length) {
  const char *bytes = name;
  size_t at = length;
  uint64_t slot = 0;
  while (at > 0 && length - at < RL_RESOURCE_SUFFIX_MAX && bytes[at - 1] != '/') {
    at--;
  }
  bool named = at > 0 && at < length && bytes[at - 1] == '/' && bytes[at] != '0' &&
               rl_number_in_digits(bytes + at, length - at, &slot) == length - at &&
               slot <= REDLOCK_PERMITS_MAX;
  *base_length = named ? at - 1 : length;
  return named ? (unsigned)slot : 0;
}

unsigned rl_resource_slot(const rl_resource *resource) {
  size_t base_length;
  return resource->suffix_length == 0
             ? 0
             : rl_resource_parse_slot(resource->key, resource->key_length, &base_length);
}

void rl_resource_unref(rl_resource *resource) {
  assert(resource->references > 0);
  if (--resource->references == 0) {
    free(resource);
  }
}

const uint16_t *rl_resource_lengths(const rl_resource *resource) {
  const char *lengths = resource->key + rl_resource_lengths_at(resource->key_length);
  return resource->count == 1 ? NULL : (const uint16_t *)(const void *)lengths;
}

rl_resource_name rl_resource_at(const rl_resource *resource, unsigned index) {
  const uint16_t *lengths = rl_resource_lengths(resource);
  rl_resource_name name = {resource->key, resource->key_length, NULL, 0};
  assert(index < resource->count);
  for (unsigned i = 0; lengths != NULL && i <= index; i++) {
    name.key += i > 0 ? lengths[i - 1] : 0;
    name.key_length = lengths[i];
  }
  name.resource = name.key + resource->prefix_length;
  name.length = name.key_length - resource->prefix_length;
  return name;
}

bool rl_resource_equal(const rl_resource *one, const rl_resource *other) {
  size_t length = rl_resource_base_length(one);
  return one->count == other->count && length == rl_resource_base_length(other) &&
         memcmp(one->key, other->key, length) == 0 &&
         (one->count == 1 || memcmp(rl_resource_lengths(one), rl_resource_lengths(other),
                                    one->count * sizeof(uint16_t)) == 0);
}

bool rl_resource_repeats(const redlock_resource *resources, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < i; j++) {
      if (resources[i].length == resources[j].length &&
          (resources[i].length == 0 ||
           memcmp(resources[i].bytes, resources[j].bytes, resources[i].length) == 0)) {
        return true;
      }
    }
  }
  return false;
}

/* Returns true if the key, prefix and resource, has |text| at |at|. */
static bool rl_resource_has(const char *prefix, size_t prefix_length,
                            const redlock_resource *resource, size_t at, const char *text) {
  const char *bytes = resource->bytes;
  size_t length = prefix_length + resource->length;
  for (; *text != '\0' && at < length; at++, text++) {
    char byte = at < prefix_length ? prefix[at] : bytes[at - prefix_length];
    if (byte != *text) {
      return false;
    }
  }
  return *text == '\0';
}

bool rl_resource_is_reserved(const void *prefix, size_t prefix_length,
                             const redlock_resource *resource) {
  static const char *const suffixes[] = {RL_COMMAND_COUNTER, RL_COMMAND_QUEUE, RL_COMMAND_WAIT,
                                         RL_COMMAND_RESERVED};
  size_t length = prefix_length + resource->length, record = strlen(RL_LINEAGE_KEY);
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    size_t suffix = strlen(suffixes[i]);
    if (length >= suffix &&
        rl_resource_has(prefix, prefix_length, resource, length - suffix, suffixes[i])) {
      return true;
    }
  }
  return rl_resource_has(prefix, prefix_length, resource, 0, RL_LINEAGE_KEY) &&
         (length == record || rl_resource_has(prefix, prefix_length, resource, record, ":") ||
          rl_resource_has(prefix, prefix_length, resource, 0, RL_LINEAGE_SEAL));
}

size_t rl_resource_size(const rl_resource *resource) {
  return rl_resource_room(resource->key_length, resource->count);
}
