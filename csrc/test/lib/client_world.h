/*
 * A client of fake servers on loopback, and a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * The servers run in a thread or, with fake_clock.h, while the test waits.
 */
#ifndef CLIENT_WORLD_H
#define CLIENT_WORLD_H

#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "loopback.h"
#include "rl_test.h"

typedef struct world {
  loopback *farm;
  redlock_client *client;
  redlock_lock *lock; /* of "orders:42" */
} world;

/* Returns a client of all nodes, with longer times than a slow machine needs. */
static inline redlock_client *new_client_of(const loopback *farm, redlock_settings settings) {
  redlock_client *client;
  redlock_options options = {.node_timeout_us = 10 * SECONDS,
                             .ttl_us = 200 * SECONDS,
                             .retry_count = REDLOCK_RETRIES_NONE};
  settings.options = settings.options != NULL ? settings.options : &options;
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < farm->count; i++) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

/* Adds addresses at which no server listens. */
static inline void add_nodes_without_servers(redlock_client *client, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    char address[16];
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", i + 1);
    assert_error(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  }
}

static inline redlock_client *client_without_servers(unsigned count) {
  redlock_client *client;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  add_nodes_without_servers(client, count);
  return client;
}

static inline redlock_lock *new_lock(redlock_client *client, const char *resource,
                                     const redlock_options *options) {
  redlock_lock *lock;
  assert_error(redlock_lock_new(&lock, client, resource, strlen(resource), options), REDLOCK_OK);
  return lock;
}

static inline void free_with_client(redlock_lock *lock) {
  redlock_client *client = redlock_lock_client(lock);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static world the_world;

static inline bool end_world(void) {
  free_with_client(the_world.lock);
  return loopback_end(the_world.farm);
}

/* Returns a world of |nodes| servers, which ends with the test. */
static inline world *world_with_settings(unsigned nodes, redlock_settings settings) {
  world *one = &the_world;
  one->farm = loopback_new(nodes, LOOPBACK_UNIX);
  one->client = new_client_of(one->farm, settings);
  one->lock = new_lock(one->client, "orders:42", NULL);
  loopback_run(one->farm);
  tests_at_end(end_world);
  return one;
}

static inline world *world_new(unsigned nodes) {
  return world_with_settings(nodes, (redlock_settings){0});
}

/* Stops a server: it refuses connections. */
static inline void stop_server(loopback *farm, unsigned node) {
  loopback_lock(farm);
  loopback_down(farm, node);
  loopback_unlock(farm);
}

/* Deaf servers accept and read, and answer nothing. */
static inline void set_deaf(loopback *farm, bool deaf) {
  loopback_lock(farm);
  for (unsigned i = 0; i < farm->count; i++) {
    farm->nodes[i].deaf = deaf;
  }
  loopback_unlock(farm);
}

/* Waits once, as a blocking call does. Returns its error. */
static inline int wait_once(redlock_client *client, redlock_time until_us) {
  rl_client_enter(client);
  rl_caller *caller = rl_caller_begin(client, NULL);
  assert_non_null(caller);
  int error = rl_caller_wait(client, caller, until_us, NULL);
  rl_caller_end(client, caller);
  rl_client_leave(client);
  return error;
}

/* Runs a prepared operation in short waits, as a script with a hook does. Returns its result. */
static inline int finish_in_steps(redlock_lock *lock) {
  int error = rl_handle_begin(lock);
  eventually_by(error = rl_handle_go_on(lock, 20 * MS),
                error != REDLOCK_OK || !rl_handle_pending(lock));
  rl_handle_end(lock, error);
  return redlock_lock_result(lock);
}

#endif
