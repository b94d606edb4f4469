/*
 * A client of three servers on loopback, which a thread runs, and a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HANDLE_WORLD_H
#define HANDLE_WORLD_H

#include "loopback.h"
#include "rl_test.h"

typedef struct world {
  loopback *farm;
  redlock_client *client;
  redlock_lock *lock;
} world;

/* Returns a client of all nodes; its times are more than a slow machine needs. */
static inline redlock_client *world_client(const loopback *farm, redlock_settings settings) {
  redlock_client *client;
  redlock_options options = {.node_timeout_us = 10 * SECONDS,
                             .ttl_us = 200 * SECONDS,
                             .retry_count = REDLOCK_RETRIES_NONE};
  settings.options = &options;
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < farm->count; i++) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

static inline world *world_begin(void **state, redlock_settings settings) {
  static world one;
  one.farm = loopback_new(3, LOOPBACK_UNIX);
  one.client = world_client(one.farm, settings);
  assert_error(redlock_lock_new(&one.lock, one.client, "orders:42", 9, NULL), REDLOCK_OK);
  loopback_run(one.farm);
  *state = &one;
  return &one;
}

static inline int world_end(void **state) {
  world *one = *state;
  redlock_lock_free(one->lock);
  redlock_client_free(one->client);
  return loopback_end(one->farm) ? 0 : 1;
}

#endif
