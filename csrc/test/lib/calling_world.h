/*
 * A world of nodes that call, and of other clients that wait there, as the tests of waiting use it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CALLING_WORLD_H
#define CALLING_WORLD_H

#include "fake_queue.h"
#include "keys.h"
#include "lock/rl_round.h"
#include "wait/rl_report.h"
#include "wait/rl_subscriber.h"
#include "wait/rl_waitlist.h"
#include "world_steps.h"

/* Another client, which hears what is published as subscriber 1 of each node. */
static const char OTHERS_CHANNEL[] = "00112233445566aa";
static const char OTHERS_ENTRY[] = "00112233445566aa00000007";

#define DELAY (200 * MS)
#define SLOW (2 * SECONDS)

/* A waiter that waits for up to a minute, and without notifications tries every 200 ms. */
static inline redlock_options patient(void) {
  redlock_options options = {.wait_us = 60 * SECONDS,
                             .retry_delay_us = DELAY,
                             .retry_jitter_us = REDLOCK_DURATION_NONE,
                             .node_timeout_us = 50 * MS};
  return options;
}

static inline redlock_options fair(void) {
  redlock_options options = patient();
  options.fair = REDLOCK_YES;
  return options;
}

/* Another client holds the key on the nodes of |nodes|, up to |ends_us|. */
static inline void take_key(fake_world *world, uint32_t nodes, redlock_time ends_us) {
  for (unsigned i = 0; i < world->count; i++) {
    if ((nodes >> i & 1) != 0) {
      fake_store_put(&world->nodes[i].store, KEY, OTHER, ends_us);
    }
  }
}

/* That client releases on a node. Its messages arrive with the next turn. */
static inline void release_key(fake_world *world, unsigned node) {
  char reply[FAKE_REPLY_MAX];
  fake_command release = {
      .verb = FAKE_RELEASE, .calls = true, .by_text = true, .key_length = sizeof KEY - 1};
  memcpy(release.key, KEY, sizeof KEY);
  memcpy(release.token, OTHER, sizeof OTHER);
  fake_store_execute(&world->nodes[node].store, world->now_us, &release, reply);
}

/* It releases on all nodes, and its messages arrive. */
static inline void release_keys(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    release_key(world, i);
  }
  fake_settle(world);
}

/* The key is gone from all nodes, and no notification tells. */
static inline void remove_keys(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    fake_store_remove(&world->nodes[i].store, KEY);
  }
}

/* An acquire has begun, and the nodes have answered everything. */
static inline rl_lock *begin_of(fake_world *world, const char *key,
                                const redlock_options *options) {
  rl_lock *lock = fake_lock(world, key, options);
  assert_non_null(lock);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  return lock;
}

static inline rl_lock *begin_patient(fake_world *world) {
  redlock_options options = patient();
  return begin_of(world, KEY, &options);
}

/* Time passes until |until_us|, and the nodes answer all that they are asked on the way. */
static inline void pass_until(fake_world *world, redlock_time until_us) {
  while (world->now_us < until_us) {
    redlock_time next_us = rl_core_deadline(&world->core);
    assert_true(next_us > world->now_us);
    world->now_us = next_us < until_us ? next_us : until_us;
    fake_settle(world);
  }
}

static inline void pass(fake_world *world, redlock_duration duration_us) {
  pass_until(world, world->now_us + duration_us);
}

/* A lock has waited before, so the notifications of all nodes arrive. */
static inline void make_subscribers(fake_world *world) {
  redlock_options options = patient();
  for (unsigned i = 0; i < world->count; i++) {
    fake_store_put(&world->nodes[i].store, "warm", OTHER, REDLOCK_NEVER);
  }
  rl_lock *lock = begin_of(world, "warm", &options);
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
  for (unsigned i = 0; i < world->count; i++) {
    fake_node *node = &world->nodes[i];
    assert_true((world->core.notify->ready >> i & 1) != 0);
    assert_null(fake_queue_at(&node->store, "warm", 0));
    fake_store_remove(&node->store, "warm");
    node->sets = node->releases = node->stands = node->leaves = 0;
  }
}

static inline fake_world *listening(unsigned count) {
  fake_world *world = fake_world_new_calling(count);
  make_subscribers(world);
  return world;
}

/* The same, and another client holds the key on all nodes for good. */
static inline fake_world *held_world(unsigned count) {
  fake_world *world = listening(count);
  take_key(world, UINT32_MAX, REDLOCK_NEVER);
  return world;
}

/* The node refuses what its notifications need. */
static inline void refuse_notifications(fake_world *world, unsigned node) {
  rl_report_subscribers_changed(
      &world->core,
      rl_subscriber_refuse(&world->core, world->core.nodes[node], world->now_us, "NOPERM"),
      world->now_us);
}

/* Another client comes last in the queues, and hears when it is called. */
static inline void let_other_stand(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    fake_queue_subscribe(&world->nodes[i].store, 1, OTHERS_CHANNEL);
    fake_queue_put(&world->nodes[i].store, KEY, OTHERS_ENTRY);
  }
}

/* Returns true if the other client was called there. */
static inline bool other_hears(fake_world *world, unsigned node) {
  char message[FAKE_REPLY_MAX];
  return fake_queue_take(&world->nodes[node].store, 1, message) > 0;
}

/* The entry of the front in the queues of the nodes. */
static inline const char *entry_of(const rl_lock *lock) {
  static char entry[RL_LINK_ENTRY_SIZE];
  assert_non_null(lock->waitlist);
  assert_non_null(lock->waitlist->ticket);
  rl_link_entry(lock->core->notify->channel, lock->waitlist->ticket->id, entry);
  return entry;
}

static inline void assert_stands(fake_world *world, unsigned node, unsigned at, const char *entry) {
  const char *found = fake_queue_at(&world->nodes[node].store, KEY, at);
  assert_non_null(found);
  assert_string_equal(found, entry);
}

/* No waiter is in a queue of the key. */
static inline void assert_no_queue(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    assert_null(fake_queue_at(&world->nodes[i].store, KEY, 0));
  }
}

/* A message for the client, as a node sends it. */
static inline void shout(fake_world *world, unsigned node, const char *said) {
  char message[FAKE_REPLY_MAX + 600];
  (void)snprintf(message, sizeof message, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                 strlen(world->core.notify->channel), world->core.notify->channel, strlen(said),
                 said);
  fake_deliver(world, world->count + node, message);
}

/* A call for the lock, or for the place |id|, as if the node had sent it. */
static inline void call_place(fake_world *world, unsigned node, uint32_t id) {
  char said[64];
  (void)snprintf(said, sizeof said, "%08x%s", (unsigned)id, KEY);
  shout(world, node, said);
}

/* How many commands of a kind all nodes have had. */
#define total_of(world, what)                                                                      \
  ((world)->nodes[0].what + ((world)->count > 1 ? (world)->nodes[1].what : 0) +                    \
   ((world)->count > 2 ? (world)->nodes[2].what : 0))

#endif
