/*
 * A world of nodes that notify waiters, with another client that holds the key or waits for it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WAITING_WORLD_H
#define WAITING_WORLD_H

#include "fake_queue.h"
#include "keys.h"
#include "lock/rl_round.h"
#include "wait/rl_queue_report.h"
#include "wait/rl_subscriber.h"
#include "wait/rl_waitlist.h"
#include "world_steps.h"

/* The channel and the entry of another client, which is subscriber 1 of each node. */
static const char OTHERS_CHANNEL[] = "00112233445566aa";
static const char OTHERS_ENTRY[] = "00112233445566aa00000007";

#define DELAY (200 * MS)
#define SLOW (2 * SECONDS)

/* Options of a waiter that waits for a minute, and polls every 200 ms without notifications. */
static inline redlock_options patient_options(void) {
  redlock_options options = {.wait_us = 60 * SECONDS,
                             .retry_delay_us = DELAY,
                             .retry_jitter_us = REDLOCK_DURATION_NONE,
                             .node_timeout_us = 50 * MS};
  return options;
}

static inline redlock_options fair_options(void) {
  redlock_options options = patient_options();
  options.fair = REDLOCK_YES;
  return options;
}

/* Lets another client hold the key on the nodes of the set |nodes| until |ends_us|. */
static inline void let_other_take(fake_world *world, uint32_t nodes, redlock_time ends_us) {
  for (unsigned i = 0; i < world->count; i++) {
    if ((nodes >> i & 1) != 0) {
      fake_store_put(&world->nodes[i].store, KEY, OTHER, ends_us);
    }
  }
}

/* Lets that client release the key on a node. Its messages arrive with the next turn. */
static inline void let_other_release(fake_world *world, unsigned node) {
  char reply[FAKE_REPLY_MAX];
  fake_command release = {
      .verb = FAKE_RELEASE, .notifies = true, .by_text = true, .key_length = sizeof KEY - 1};
  memcpy(release.key, KEY, sizeof KEY);
  memcpy(release.token, OTHER, sizeof OTHER);
  fake_store_execute(&world->nodes[node].store, world->now_us, &release, reply);
}

/* Lets it release the key on all nodes. Its messages arrive. */
static inline void let_other_release_everywhere(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    let_other_release(world, i);
  }
  fake_settle(world);
}

/* Removes the key from all nodes without a notification. */
static inline void remove_keys_unnoticed(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    fake_store_remove(&world->nodes[i].store, KEY);
  }
}

/* Begins an acquire of a new lock. The nodes have answered everything. */
static inline rl_lock *begin_acquire_of(fake_world *world, const char *key,
                                        const redlock_options *options) {
  rl_lock *lock = fake_lock(world, key, options);
  assert_non_null(lock);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  return lock;
}

static inline rl_lock *begin_waiter(fake_world *world) {
  redlock_options options = patient_options();
  return begin_acquire_of(world, KEY, &options);
}

/* Lets time pass until |until_us|. The nodes answer each command at once. */
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

/* Lets a lock wait and end, so that the client has subscribers on all nodes. */
static inline void subscribe_to_all_nodes(fake_world *world) {
  redlock_options options = patient_options();
  for (unsigned i = 0; i < world->count; i++) {
    fake_store_put(&world->nodes[i].store, "warm", OTHER, REDLOCK_NEVER);
  }
  rl_lock *lock = begin_acquire_of(world, "warm", &options);
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
  for (unsigned i = 0; i < world->count; i++) {
    fake_node *node = &world->nodes[i];
    assert_true((world->core.notify->ready >> i & 1) != 0);
    assert_null(fake_queue_at(&node->store, "warm", 0));
    fake_store_remove(&node->store, "warm");
    node->sets = node->releases = node->enqueues = node->dequeues = 0;
  }
}

static inline fake_world *world_with_subscribers(unsigned count) {
  fake_world *world = fake_world_new_notifying(count);
  subscribe_to_all_nodes(world);
  return world;
}

/* The same, with a key that another client holds on all nodes for good. */
static inline fake_world *world_with_taken_key(unsigned count) {
  fake_world *world = world_with_subscribers(count);
  let_other_take(world, UINT32_MAX, REDLOCK_NEVER);
  return world;
}

/* Lets the node refuse the commands of a subscriber. */
static inline void refuse_notifications(fake_world *world, unsigned node) {
  rl_queue_report_subscribers_changed(
      &world->core,
      rl_subscriber_refuse(&world->core, world->core.nodes[node], world->now_us, "NOPERM"),
      world->now_us);
}

/* Appends another client to the queues. */
static inline void enqueue_other(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    fake_queue_subscribe(&world->nodes[i].store, 1, OTHERS_CHANNEL);
    fake_queue_put(&world->nodes[i].store, KEY, OTHERS_ENTRY);
  }
}

/* Takes a message of the other client. Returns true if there was one. */
static inline bool other_is_notified(fake_world *world, unsigned node) {
  char message[FAKE_REPLY_MAX];
  return fake_queue_take(&world->nodes[node].store, 1, message) > 0;
}

/* Returns the entry of the head of the wait list in the queues of the nodes. */
static inline const char *entry_of_head(const rl_lock *lock) {
  static char entry[RL_LINK_ENTRY_SIZE];
  assert_non_null(lock->waitlist);
  assert_non_null(lock->waitlist->ticket);
  rl_link_entry(lock->core->notify->channel, lock->waitlist->ticket->id, entry);
  return entry;
}

/* Fails unless |entry| is at |at| in the queue of the key on a node. */
static inline void assert_entry_at(fake_world *world, unsigned node, unsigned at,
                                   const char *entry) {
  const char *found = fake_queue_at(&world->nodes[node].store, KEY, at);
  assert_non_null(found);
  assert_string_equal(found, entry);
}

/* Fails if a queue of the key has an entry. */
static inline void assert_queues_are_empty(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    assert_null(fake_queue_at(&world->nodes[i].store, KEY, 0));
  }
}

/* Delivers a message to the subscriber, as a node sends it. */
static inline void deliver_message(fake_world *world, unsigned node, const char *said) {
  char message[FAKE_REPLY_MAX + 600];
  (void)snprintf(message, sizeof message, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                 strlen(world->core.notify->channel), world->core.notify->channel, strlen(said),
                 said);
  fake_deliver(world, world->count + node, message);
}

/* Delivers a notification of the ticket |id|. */
static inline void notify_ticket(fake_world *world, unsigned node, uint32_t id) {
  char said[64];
  (void)snprintf(said, sizeof said, "%08x%s", (unsigned)id, KEY);
  deliver_message(world, node, said);
}

/* Returns how many commands of a kind the nodes have received, in the field |what|. */
#define total_of(world, what)                                                                      \
  ((world)->nodes[0].what + ((world)->count > 1 ? (world)->nodes[1].what : 0) +                    \
   ((world)->count > 2 ? (world)->nodes[2].what : 0))

#endif
