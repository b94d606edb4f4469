/* SPDX-License-Identifier: MIT */
#include "base/rl_hash.h"

#include <stdlib.h>

#include "base/rl_number.h"

#define RL_HASH_BUCKETS_MIN 16

uint64_t rl_hash_bytes(uint64_t seed, const void *bytes, size_t length) {
  const char *at = bytes;
  uint64_t hash = seed ^ length;
  while (length > 0) {
    size_t taken = length < sizeof hash ? length : sizeof hash;
    hash = (hash ^ rl_number_in_bytes(at, taken)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
    hash += seed;
    at += taken;
    length -= taken;
  }
  return hash ^ hash >> 29;
}

static rl_hash_entry **rl_hash_bucket(const rl_hash *table, uint64_t hash) {
  return &table->buckets[(hash ^ hash >> 32) & (table->bucket_count - 1)];
}

bool rl_hash_reserve(rl_hash *table, size_t count) {
  rl_hash old = *table;
  if (count <= table->bucket_count) {
    return true;
  }
  size_t bucket_count = old.bucket_count == 0 ? RL_HASH_BUCKETS_MIN : old.bucket_count * 2;
  rl_hash_entry **buckets = calloc(bucket_count, sizeof(rl_hash_entry *));
  if (buckets == NULL) {
    return old.bucket_count > 0;
  }
  *table = (rl_hash){.buckets = buckets, .bucket_count = bucket_count};
  for (size_t i = 0; i < old.bucket_count; i++) {
    rl_hash_entry *next;
    for (rl_hash_entry *entry = old.buckets[i]; entry != NULL; entry = next) {
      next = entry->next;
      rl_hash_insert(table, entry, entry->hash);
    }
  }
  free(old.buckets);
  return true;
}

void rl_hash_insert(rl_hash *table, rl_hash_entry *entry, uint64_t hash) {
  rl_hash_entry **bucket = rl_hash_bucket(table, hash);
  entry->hash = hash;
  entry->next = *bucket;
  *bucket = entry;
  table->count++;
}

void rl_hash_remove(rl_hash *table, const rl_hash_entry *entry) {
  rl_hash_entry **at = rl_hash_bucket(table, entry->hash);
  while (*at != entry) {
    at = &(*at)->next;
  }
  *at = entry->next;
  table->count--;
}

static rl_hash_entry *rl_hash_from(rl_hash_entry *entry, uint64_t hash) {
  while (entry != NULL && entry->hash != hash) {
    entry = entry->next;
  }
  return entry;
}

rl_hash_entry *rl_hash_find(const rl_hash *table, uint64_t hash) {
  return table->count == 0 ? NULL : rl_hash_from(*rl_hash_bucket(table, hash), hash);
}

rl_hash_entry *rl_hash_find_next(const rl_hash_entry *entry) {
  return rl_hash_from(entry->next, entry->hash);
}

void rl_hash_free(rl_hash *table) {
  free(table->buckets);
  *table = (rl_hash){0};
}
