/*
 * The request of nginx that owns a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_nginx_owner.h"

#include <dlfcn.h>
#include <string.h>

struct rl_lua_nginx_owner {
  rl_hash_entry entry;         /* the hash is the address of the request */
  rl_lua_nginx_owners *owners; /* NULL: freed before */
  rl_lua_nginx_cleanup *cleanup;
  uint64_t number;
  rl_list locks;
};

/* Different addresses have different hashes. */
static uint64_t hash_of(const void *request) {
  return (uint64_t)(uintptr_t)request * 0x9e3779b97f4a7c15u;
}

/* Returns NULL if the request has owned no lock. */
static rl_lua_nginx_owner *known_owner(const rl_lua_nginx_owners *owners, const void *request) {
  return RL_OWNER(rl_hash_find(&owners->table, hash_of(request)), rl_lua_nginx_owner, entry);
}

/* Handler that nginx calls once at the end of a request. */
static void request_ended(void *data) {
  rl_lua_nginx_owner *owner = data;
  rl_lua_nginx_owners *owners = owner->owners;

  if (owners == NULL)
    return;
  rl_hash_remove(&owners->table, &owner->entry);
  RL_LIST_EACH(&owner->locks, owned, rl_lua_nginx_owned, list) {
    rl_lua_nginx_owners_take(owners, owned);
    rl_list_append(&owners->ended, &owned->list);
  }
}

/*
 * Returns the owner of a request; creates it for the request's first lock. NULL: memory is short.
 */
static rl_lua_nginx_owner *find_owner(rl_lua_nginx_owners *owners, void *request) {
  rl_lua_nginx_owner *owner = known_owner(owners, request);
  rl_lua_nginx_cleanup *cleanup;

  if (owner != NULL)
    return owner;
  if (!rl_hash_reserve(&owners->table, owners->table.count + 1))
    return NULL;
  cleanup = owners->cleanup_add(request, sizeof *owner);
  if (cleanup == NULL)
    return NULL;
  owner = cleanup->data;
  memset(owner, 0, sizeof *owner);
  owner->owners = owners;
  owner->cleanup = cleanup;
  owner->number = ++owners->last_number;
  rl_list_init(&owner->locks);
  rl_hash_insert(&owners->table, &owner->entry, hash_of(request));
  cleanup->handler = request_ended;
  return owner;
}

void rl_lua_nginx_owners_init(rl_lua_nginx_owners *owners) {
  void *symbol = dlsym(RTLD_DEFAULT, "ngx_http_cleanup_add");

  memset(owners, 0, sizeof *owners);
  rl_list_init(&owners->ended);
  /* ISO C has no cast from an object's address to a function's. */
  memcpy(&owners->cleanup_add, &symbol, sizeof owners->cleanup_add);
}

void rl_lua_nginx_owners_free(rl_lua_nginx_owners *owners) {
  for (size_t i = 0; i < owners->table.bucket_count; i++) {
    for (rl_hash_entry *entry = owners->table.buckets[i]; entry != NULL; entry = entry->next) {
      rl_lua_nginx_owner *owner = RL_OWNER(entry, rl_lua_nginx_owner, entry);
      RL_LIST_EACH(&owner->locks, owned, rl_lua_nginx_owned, list) {
        rl_lua_nginx_owners_take(owners, owned);
      }
      owner->owners = NULL;
      owner->cleanup->handler = NULL; /* The request may end after this module is unloaded. */
    }
  }
  while (rl_lua_nginx_owners_next_ended(owners) != NULL) {
  }
  rl_hash_free(&owners->table);
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
  rl_list_append(&owner->locks, &owned->list);
  owners->owned_count++;
  return true;
}

bool rl_lua_nginx_owner_is_another(const rl_lua_nginx_owned *owned, const void *request) {
  return owned->owner != NULL && owned->owner->entry.hash != hash_of(request);
}

uint64_t rl_lua_nginx_owners_number(rl_lua_nginx_owners *owners, void *request) {
  const rl_lua_nginx_owner *owner =
      request != NULL && owners->cleanup_add != NULL ? find_owner(owners, request) : NULL;

  return owner == NULL ? 0 : owner->number;
}

bool rl_lua_nginx_owners_last(const rl_lua_nginx_owners *owners, const void *request,
                              uint64_t number) {
  const rl_lua_nginx_owner *owner = known_owner(owners, request);

  return owner != NULL && owner->number == number;
}

void rl_lua_nginx_owners_take(rl_lua_nginx_owners *owners, rl_lua_nginx_owned *owned) {
  rl_list_remove(&owned->list);
  owners->owned_count -= owned->owner != NULL;
  owned->owner = NULL;
}

rl_lua_nginx_owned *rl_lua_nginx_owners_next_ended(rl_lua_nginx_owners *owners) {
  rl_lua_nginx_owned *owned = RL_LIST_FIRST(&owners->ended, rl_lua_nginx_owned, list);

  if (owned != NULL)
    rl_list_remove(&owned->list);
  return owned;
}
