/*
 * What a client in nginx, one of those that share their connections, has in common with its locks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_SHARE_H
#define RL_LUA_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct rl_lua_share {
  size_t references;
  bool closed;
} rl_lua_share;

/* Gives up a client's reference, or a lock's. NULL is allowed. */
static inline void rl_lua_share_unref(rl_lua_share *share) {
  if (share != NULL && --share->references == 0)
    free(share);
}

/* Returns true if the client was closed while others that share its connections go on. */
static inline bool rl_lua_share_is_closed(const rl_lua_share *share) {
  return share != NULL && share->closed;
}

#endif /* RL_LUA_SHARE_H */
