/*
 * Which request of nginx a lock belongs to: with the request's end the lock is given back.
 *
 * SPDX-License-Identifier: MIT
 *
 * nginx calls what ngx_http_cleanup_add() registered when a request ends, however it ends; timers have
 * a request too. It is called once, in the middle of nginx's own work, so it runs no Lua, allocates
 * nothing and sends nothing: it moves the request's locks to those that the client's clock is to
 * release with its next turn. Until then the log phase, which comes later, still finds them held.
 *
 * Request, lock and client may go in any order. An owner lies in the memory of its request, an owned
 * in its lock, the owners in their client's handle; each is taken out of the lists of the others before
 * its memory goes.
 */
#ifndef RL_LUA_NGINX_OWNER_H
#define RL_LUA_NGINX_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rl_lua_nginx_owner rl_lua_nginx_owner;
typedef struct rl_lua_nginx_owned rl_lua_nginx_owned;

/* A lock's place in a list: of its owner's locks, or of those whose owner has ended. */
struct rl_lua_nginx_owned {
  rl_lua_nginx_owned *previous, *next; /* NULL in no list */
  rl_lua_nginx_owner *owner;           /* NULL when it has none, or that has ended */
};

/* nginx's: of the request's cleanups. */
typedef struct rl_lua_nginx_cleanup {
  void (*handler)(void *data);
  void *data;
  struct rl_lua_nginx_cleanup *next;
} rl_lua_nginx_cleanup;

/* The owners of one client's locks, found by the address of the request. */
typedef struct rl_lua_nginx_owners {
  rl_lua_nginx_cleanup *(*cleanup_add)(void *request, size_t size); /* NULL where nginx has none */
  rl_lua_nginx_owner **buckets;
  size_t bucket_count; /* a power of 2, or 0 */
  size_t count;
  uint64_t last_number;     /* of a request */
  size_t owned_count;       /* locks with an owner */
  rl_lua_nginx_owned ended; /* the head of the locks whose owner has ended */
} rl_lua_nginx_owners;

void rl_lua_nginx_owners_init(rl_lua_nginx_owners *owners);

/* Detaches all requests and locks, and frees what the owners allocated. */
void rl_lua_nginx_owners_free(rl_lua_nginx_owners *owners);

/*
 * The lock belongs to |request| from now on. Returns false, and the lock belongs to nobody, when
 * |request| is NULL, this program does not tell when requests end, or there is no memory.
 */
bool rl_lua_nginx_owners_give(rl_lua_nginx_owners *owners, void *request,
                              rl_lua_nginx_owned *owned);

/* Returns true if the lock belongs to a request that lasts, and to another one than |request|. */
bool rl_lua_nginx_owner_is_another(const rl_lua_nginx_owned *owned, const void *request);

/* The number of a request, which no other has had; 0 when |request| is NULL, or as above. */
uint64_t rl_lua_nginx_owners_number(rl_lua_nginx_owners *owners, void *request);

/* Returns true if the request with that number has not ended. */
bool rl_lua_nginx_owners_last(const rl_lua_nginx_owners *owners, const void *request,
                              uint64_t number);

/* The lock belongs to nobody any more. */
void rl_lua_nginx_owners_take(rl_lua_nginx_owners *owners, rl_lua_nginx_owned *owned);

/* Returns true if the lock's owner has ended, and the lock has not been taken off the list of such. */
static inline bool rl_lua_nginx_owner_has_ended(const rl_lua_nginx_owned *owned) {
  return owned->next != NULL && owned->owner == NULL;
}

/* A lock whose owner has ended, taken off the list; NULL when there is none. */
rl_lua_nginx_owned *rl_lua_nginx_owners_next_ended(rl_lua_nginx_owners *owners);

#endif /* RL_LUA_NGINX_OWNER_H */
