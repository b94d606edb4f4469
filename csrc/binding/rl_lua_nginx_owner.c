/*
 * The request of nginx that owns a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_nginx_owner.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 16
#define BUCKETS_MAX 65536 /* a worker has hardly more connections, and so requests */

struct rl_lua_nginx_owner {
  rl_lua_nginx_owners *owners; /* NULL: freed before */
  rl_lua_nginx_owner *next;    /* in its bucket */
  rl_lua_nginx_cleanup *cleanup;
  void *request;
  uint64_t number;
  rl_lua_nginx_owned locks; /* head of a circular list */
};

static void list_init(rl_lua_nginx_owned *head) {
  head->previous = head;
  head->next = head;
  head->owner = NULL;
}

static void list_append(rl_lua_nginx_owned *head, rl_lua_nginx_owned *owned) {
  owned->previous = head->previous;
  owned->next = head;
  head->previous->next = owned;
  head->previous = owned;
}

static void list_remove(rl_lua_nginx_owned *owned) {
  assert(owned->previous != NULL && owned->next != NULL);
  owned->previous->next = owned->next;
  owned->next->previous = owned->previous;
  owned->previous = NULL;
  owned->next = NULL;
}

static rl_lua_nginx_owner **bucket_of(const rl_lua_nginx_owners *owners, const void *request) {
  uintptr_t address = (uintptr_t)request;

  /* The allocator aligns requests to pages, or to large parts of pages. */
  return &owners->buckets[((address >> 4) ^ (address >> 12)) & (owners->bucket_count - 1)];
}

/* Grows the table. Without memory the chains become longer. Returns false if there is no table. */
static bool make_room(rl_lua_nginx_owners *owners) {
  size_t bucket_count = owners->bucket_count == 0 ? BUCKETS_MIN : 2 * owners->bucket_count;
  rl_lua_nginx_owners grown = *owners;

  if (owners->count < owners->bucket_count || bucket_count > BUCKETS_MAX)
    return true;
  grown.buckets = calloc(bucket_count, sizeof grown.buckets[0]);
  if (grown.buckets == NULL)
    return owners->bucket_count > 0;
  grown.bucket_count = bucket_count;
  for (size_t i = 0; i < owners->bucket_count; i++) {
    rl_lua_nginx_owner *next;
    for (rl_lua_nginx_owner *owner = owners->buckets[i]; owner != NULL; owner = next) {
      rl_lua_nginx_owner **bucket = bucket_of(&grown, owner->request);
      next = owner->next;
      owner->next = *bucket;
      *bucket = owner;
    }
  }
  free(owners->buckets);
  owners->buckets = grown.buckets;
  owners->bucket_count = grown.bucket_count;
  return true;
}

/* Handler that nginx calls once at the end of a request. */
static void request_ended(void *data) {
  rl_lua_nginx_owner *owner = data;
  rl_lua_nginx_owners *owners = owner->owners;
  rl_lua_nginx_owner **link;

  if (owners == NULL)
    return;
  for (link = bucket_of(owners, owner->request); *link != owner;)
    link = &(*link)->next;
  *link = owner->next;
  owners->count--;
  while (owner->locks.next != &owner->locks) {
    rl_lua_nginx_owned *owned = owner->locks.next;
    list_remove(owned);
    owned->owner = NULL;
    owners->owned_count--;
    list_append(&owners->ended, owned);
  }
}

/* Returns NULL if the request has owned no lock. */
static rl_lua_nginx_owner *known_owner(const rl_lua_nginx_owners *owners, const void *request) {
  rl_lua_nginx_owner *owner = owners->bucket_count > 0 ? *bucket_of(owners, request) : NULL;

  while (owner != NULL && owner->request != request)
    owner = owner->next;
  return owner;
}

/*
 * Returns the owner of a request; creates it for the request's first lock. NULL: memory is short.
 */
static rl_lua_nginx_owner *find_owner(rl_lua_nginx_owners *owners, void *request) {
  rl_lua_nginx_owner **bucket;
  rl_lua_nginx_owner *owner = known_owner(owners, request);
  rl_lua_nginx_cleanup *cleanup;

  if (owner != NULL)
    return owner;
  if (!make_room(owners))
    return NULL;
  cleanup = owners->cleanup_add(request, sizeof *owner);
  if (cleanup == NULL)
    return NULL;
  owner = cleanup->data;
  memset(owner, 0, sizeof *owner);
  owner->owners = owners;
  owner->cleanup = cleanup;
  owner->request = request;
  owner->number = ++owners->last_number;
  list_init(&owner->locks);
  bucket = bucket_of(owners, request);
  owner->next = *bucket;
  *bucket = owner;
  owners->count++;
  cleanup->handler = request_ended;
  return owner;
}

void rl_lua_nginx_owners_init(rl_lua_nginx_owners *owners) {
  void *symbol = dlsym(RTLD_DEFAULT, "ngx_http_cleanup_add");

  memset(owners, 0, sizeof *owners);
  list_init(&owners->ended);
  /* ISO C has no cast from an object's address to a function's. */
  memcpy(&owners->cleanup_add, &symbol, sizeof owners->cleanup_add);
}

void rl_lua_nginx_owners_free(rl_lua_nginx_owners *owners) {
  for (size_t i = 0; i < owners->bucket_count; i++) {
    for (rl_lua_nginx_owner *owner = owners->buckets[i]; owner != NULL; owner = owner->next) {
      while (owner->locks.next != &owner->locks)
        rl_lua_nginx_owners_take(owners, owner->locks.next);
      owner->owners = NULL;
      owner->cleanup->handler = NULL; /* The request may end after this module is unloaded. */
    }
  }
  while (rl_lua_nginx_owners_next_ended(owners) != NULL) {
  }
  free(owners->buckets);
  owners->buckets = NULL;
  owners->bucket_count = 0;
  owners->count = 0;
}

bool rl_lua_nginx_owners_give(rl_lua_nginx_owners *owners, void *request,
                              rl_lua_nginx_owned *owned) {
  rl_lua_nginx_owner *owner = NULL;

  if (request != NULL && owners->cleanup_add != NULL)
    owner = find_owner(owners, request);
  if (owner != NULL && owned->owner == owner)
    return true;
  rl_lua_nginx_owners_take(owners, owned);
  if (owner == NULL)
    return false;
  owned->owner = owner;
  list_append(&owner->locks, owned);
  owners->owned_count++;
  return true;
}

bool rl_lua_nginx_owner_is_another(const rl_lua_nginx_owned *owned, const void *request) {
  return owned->owner != NULL && owned->owner->request != request;
}

uint64_t rl_lua_nginx_owners_number(rl_lua_nginx_owners *owners, void *request) {
  const rl_lua_nginx_owner *owner =
      request != NULL && owners->cleanup_add != NULL ? find_owner(owners, request) : NULL;

  return owner == NULL ? 0 : owner->number;
}

bool rl_lua_nginx_owners_last(const rl_lua_nginx_owners *owners, const void *request,
                              uint64_t number) {
  const rl_lua_nginx_owner *owner = request != NULL ? known_owner(owners, request) : NULL;

  return owner != NULL && owner->number == number;
}

void rl_lua_nginx_owners_take(rl_lua_nginx_owners *owners, rl_lua_nginx_owned *owned) {
  if (owned->next == NULL)
    return;
  list_remove(owned);
  owners->owned_count -= owned->owner != NULL;
  owned->owner = NULL;
}

rl_lua_nginx_owned *rl_lua_nginx_owners_next_ended(rl_lua_nginx_owners *owners) {
  rl_lua_nginx_owned *owned = owners->ended.next;

  if (owned == &owners->ended)
    return NULL;
  list_remove(owned);
  return owned;
}
