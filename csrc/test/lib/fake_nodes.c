/*
 * Scripted nodes and a fake clock over the core: the whole world of a unit test.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"

#include <assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_number.h"
#include "fake_queue.h"
#include "tests.h"

#define FAKE_TURNS_MAX 32

static int fake_world_add(fake_world *world) {
  int error = REDLOCK_OK;
  unsigned count = world->count;
  for (unsigned i = 0; i < count && error == REDLOCK_OK; i++) {
    redlock_settings settings = {0};
    redlock_node node;
    rl_address address;
    char text[32];
    memset(&node, 0, sizeof node);
    (void)snprintf(text, sizeof text, "10.0.0.%u", i + 1);
    node.address = text;
    error = rl_address_read(&address, &node, &settings, NULL, 0);
    if (error == REDLOCK_OK) {
      error = rl_core_add(&world->core, &address);
    }
    if (error == REDLOCK_OK) {
      world->core.nodes[i]->link.skips_native = true; /* fake_enable_native() */
    }
    (void)snprintf(world->nodes[i].store.run_id, sizeof world->nodes[i].store.run_id, "run%u", i);
  }
  return error;
}

static int fake_world_init(fake_world *world, unsigned count, const char *prefix) {
  memset(world, 0, offsetof(fake_world, nodes));
  for (unsigned i = 0; i < 2 * count; i++) {
    memset(&world->nodes[i], 0, offsetof(fake_node, queue));
  }
  world->now_us = FAKE_START_US;
  world->count = count;
  return rl_core_init(&world->core, prefix, prefix == NULL ? 0 : strlen(prefix));
}

int fake_world_open(fake_world *world, unsigned count, const char *prefix) {
  int error = fake_world_init(world, count, prefix);
  return error == REDLOCK_OK ? fake_world_add(world) : error;
}

int fake_world_open_guarded(fake_world *world, unsigned count, const char *prefix,
                            redlock_duration max_ttl_us) {
  int error = fake_world_init(world, count, prefix);
  error = error == REDLOCK_OK ? rl_guard_open(&world->core.guards, max_ttl_us, NULL) : error;
  return error == REDLOCK_OK ? fake_world_add(world) : error;
}

int fake_world_open_notifying(fake_world *world, unsigned count) {
  int error = fake_world_init(world, count, NULL);
  error = error == REDLOCK_OK ? rl_notify_open(&world->core) : error;
  return error == REDLOCK_OK ? fake_world_add(world) : error;
}

void fake_world_close(fake_world *world) {
  while (!world->keeps_locks && !rl_list_is_empty(&world->core.locks)) {
    rl_lock_free(RL_LIST_FIRST(&world->core.locks, rl_lock, locks), world->now_us);
  }
  rl_core_free(&world->core);
}

static fake_world *fake_worlds; /* They end with the test. */

static bool fake_worlds_end(void) {
  bool ok = true;
  while (fake_worlds != NULL) {
    ok = fake_world_end(fake_worlds) && ok;
  }
  if (!ok) {
    (void)fputs("a node received a command that the library does not have\n", stderr);
  }
  return ok;
}

static fake_world *fake_world_made(fake_world *world, int error) {
  if (error != REDLOCK_OK) {
    abort();
  }
  world->next = fake_worlds;
  fake_worlds = world;
  tests_at_end(fake_worlds_end);
  return world;
}

static fake_world *fake_world_allocate(void) {
  fake_world *world = malloc(sizeof *world);
  if (world == NULL) {
    abort();
  }
  return world;
}

fake_world *fake_world_new(unsigned count) {
  fake_world *world = fake_world_allocate();
  return fake_world_made(world, fake_world_open(world, count, NULL));
}

fake_world *fake_world_new_notifying(unsigned count) {
  fake_world *world = fake_world_allocate();
  return fake_world_made(world, fake_world_open_notifying(world, count));
}

fake_world *fake_world_new_guarded(unsigned count, redlock_duration max_ttl_us) {
  fake_world *world = fake_world_allocate();
  return fake_world_made(world, fake_world_open_guarded(world, count, NULL, max_ttl_us));
}

bool fake_world_end(fake_world *world) {
  bool ok = !world->broken;
  fake_world **at = &fake_worlds;
  while (*at != world) {
    at = &(*at)->next;
  }
  *at = world->next;
  fake_world_close(world);
  free(world);
  return ok;
}

void fake_enable_native(fake_world *world, unsigned native) {
  for (unsigned i = 0; i < world->count; i++) {
    world->core.nodes[i]->link.skips_native = false;
    world->nodes[i].store.native = native;
    world->nodes[i].store.knows_ifeq = native != 0;
  }
}

static void fake_count(fake_node *node, fake_verb verb) {
  node->sets += verb == FAKE_SET;
  node->extends += verb == FAKE_EXTEND;
  node->releases += verb == FAKE_RELEASE;
  node->enqueues += verb == FAKE_ENQUEUE;
  node->dequeues += verb == FAKE_DEQUEUE;
}

/* Parses received bytes into commands, while there is room. */
static void fake_read(fake_world *world, fake_node *node) {
  size_t at = 0;
  long used = 0;
  while (node->queued < FAKE_QUEUE_MAX &&
         (used = fake_command_parse(&node->queue[node->queued], node->input + at,
                                    node->input_length - at)) > 0) {
    fake_count(node, node->queue[node->queued].verb);
    node->queued++;
    at += (size_t)used;
  }
  memmove(node->input, node->input + at, node->input_length - at);
  node->input_length -= at;
  world->broken = world->broken || used < 0 ||
                  (node->queued < FAKE_QUEUE_MAX && node->input_length > FAKE_INPUT_MAX / 2);
}

/* The node's socket receives the core's output. */
static void fake_receive(fake_world *world, unsigned index) {
  fake_node *node = &world->nodes[index];
  size_t length;
  const char *bytes;
  if (!node->connected || node->blocked) {
    return;
  }
  fake_read(world, node);
  while (node->queued < FAKE_QUEUE_MAX && !world->broken &&
         (bytes = rl_core_output(&world->core, index, &length)) != NULL) {
    size_t room = sizeof node->input - node->input_length;
    size_t part = length < room ? length : room;
    memcpy(node->input + node->input_length, bytes, part);
    node->input_length += part;
    rl_core_output_sent(&world->core, index, part);
    fake_read(world, node);
  }
}

/* The store of a connection's node. */
static fake_store *fake_store_of(fake_world *world, unsigned index) {
  assert(world->count > 0);
  return &world->nodes[index % world->count].store;
}

static void fake_hang_up(fake_world *world, unsigned index) {
  fake_node *node = &world->nodes[index];
  node->connected = false;
  node->queued = 0;
  node->input_length = 0;
  if (index >= world->count) {
    fake_queue_unsubscribe(fake_store_of(world, index), 0);
  }
}

/* Makes or closes the connection of a node as the core wants. */
static void fake_connect(fake_world *world, unsigned index) {
  fake_node *node = &world->nodes[index];
  rl_connection wanted = rl_core_wanted_connection(&world->core, index, world->now_us);
  if (wanted != RL_CONNECTION_OPEN && node->connected) {
    fake_hang_up(world, index);
  }
  if (wanted != RL_CONNECTION_WANTED) {
    return;
  }
  rl_core_connecting(&world->core, index, world->now_us);
  if (node->policy == FAKE_REFUSES) {
    rl_core_disconnected(&world->core, index, world->now_us, "Connection refused");
  } else if (node->policy != FAKE_HANGS) {
    node->connected = true;
    node->connections++;
    rl_core_connected(&world->core, index, world->now_us);
  }
}

static void fake_shake_hands(fake_world *world, unsigned index) {
  fake_node *node = &world->nodes[index];
  while (node->policy == FAKE_ACCEPTS && node->queued > 0 && node->queue[0].verb < FAKE_SET) {
    char reply[FAKE_REPLY_MAX];
    (void)fake_execute(world, index, reply);
    rl_core_input(&world->core, index, world->now_us, reply, strlen(reply));
    fake_receive(world, index);
  }
  if (node->policy == FAKE_ACCEPTS && node->queued > 0 && node->queue[0].verb == FAKE_GUARD &&
      world->core.nodes[index]->link.phase == RL_LINK_HANDSHAKE) {
    char reply[FAKE_REPLY_MAX];
    (void)fake_execute(world, index, reply);
    rl_core_input(&world->core, index, world->now_us, reply, strlen(reply));
    fake_receive(world, index);
  }
}

static void fake_launch(fake_world *world) {
  unsigned char entropy[16 * RL_LOCK_ENTROPY];
  size_t wanted = rl_core_entropy_wanted(&world->core);
  wanted = wanted < sizeof entropy ? wanted : sizeof entropy;
  memset(entropy, 0, sizeof entropy);
  for (size_t at = 0; at + RL_LOCK_ENTROPY <= wanted; at += RL_LOCK_ENTROPY) {
    world->draws++;
    memcpy(entropy + at, &world->draws, sizeof world->draws);
    uint64_t jitter = rl_number_in_bytes(&world->jitter, sizeof world->jitter);
    memcpy(entropy + at + RL_ATTEMPT_ENTROPY, &jitter, sizeof jitter);
  }
  rl_core_send(&world->core, world->now_us, entropy, world->no_entropy ? 0 : wanted);
}

static bool fake_hear(fake_world *world, unsigned index) {
  char message[FAKE_REPLY_MAX];
  fake_node *subscriber = &world->nodes[world->count + index];
  size_t length = subscriber->connected && !subscriber->blocked
                      ? fake_queue_take(&world->nodes[index].store, 0, message)
                      : 0;
  if (length > 0) {
    rl_core_input(&world->core, world->count + index, world->now_us, message, length);
  }
  return length > 0;
}

void fake_turn(fake_world *world) {
  for (unsigned turn = 0; turn < FAKE_TURNS_MAX; turn++) {
    rl_core_advance(&world->core, world->now_us);
    for (unsigned i = 0; i < rl_core_connection_count(&world->core); i++) {
      fake_connect(world, i);
    }
    for (unsigned i = 0; i < world->count && !world->holds_messages; i++) {
      while (fake_hear(world, i)) {
      }
    }
    if (rl_core_wants_send(&world->core)) {
      fake_launch(world);
    }
    for (unsigned i = 0; i < rl_core_connection_count(&world->core); i++) {
      fake_receive(world, i);
      fake_shake_hands(world, i);
    }
    if (rl_core_deadline(&world->core) > world->now_us) {
      break;
    }
  }
}

void fake_pass(fake_world *world, redlock_duration duration_us) {
  world->now_us += duration_us;
  fake_turn(world);
}

fake_command fake_take(fake_world *world, unsigned index) {
  fake_node *node = &world->nodes[index];
  fake_command command;
  memset(&command, 0, sizeof command);
  if (node->queued > 0) {
    command = node->queue[0];
    node->queued--;
    memmove(&node->queue[0], &node->queue[1], node->queued * sizeof node->queue[0]);
  }
  return command;
}

fake_command fake_execute(fake_world *world, unsigned node, char reply[FAKE_REPLY_MAX]) {
  fake_command command = fake_take(world, node);
  reply[0] = '\0';
  if (command.verb != FAKE_OTHER) {
    fake_store_execute(fake_store_of(world, node), world->now_us, &command, reply);
    if (command.verb == FAKE_SUBSCRIBE) {
      fake_queue_subscribe(fake_store_of(world, node), 0, fake_queue_channel(&command));
    }
  }
  return command;
}

void fake_deliver(fake_world *world, unsigned node, const char *reply) {
  rl_core_input(&world->core, node, world->now_us, reply, strlen(reply));
  fake_turn(world);
}

fake_command fake_reply(fake_world *world, unsigned node, const char *reply) {
  char all[FAKE_REPLY_MAX + 600]; /* A test may send a longer reply than the fake does. */
  fake_command command = fake_take(world, node);
  (void)snprintf(all, sizeof all, "%s", reply);
  while (world->nodes[node].queued > 0 && world->nodes[node].queue[0].verb == FAKE_SETINFO) {
    (void)fake_take(world, node);
    strncat(all, "+OK\r\n", sizeof all - strlen(all) - 1);
  }
  fake_deliver(world, node, all);
  return command;
}

fake_command fake_answer(fake_world *world, unsigned node) {
  char reply[FAKE_REPLY_MAX];
  fake_command command = fake_execute(world, node, reply);
  if (command.verb != FAKE_OTHER) {
    fake_deliver(world, node, reply);
  }
  return command;
}

void fake_answer_tests(fake_world *world, const rl_lock *lock) {
  assert(lock->phase == RL_PHASE_ROUND && lock->attempt->test_outstanding != 0);
  for (unsigned i = 0; i < world->count; i++) {
    while (lock->phase == RL_PHASE_ROUND && (lock->attempt->test_outstanding >> i & 1) != 0) {
      (void)fake_answer(world, i);
    }
  }
}

bool fake_deliver_message(fake_world *world, unsigned node) {
  bool heard = fake_hear(world, node);
  fake_turn(world);
  return heard;
}

void fake_break(fake_world *world, unsigned node, const char *reason) {
  fake_hang_up(world, node);
  rl_core_disconnected(&world->core, node, world->now_us, reason);
  fake_turn(world);
}

void fake_settle(fake_world *world) {
  bool answered = true;
  fake_turn(world);
  while (answered) {
    answered = false;
    for (unsigned i = 0; i < world->count; i++) {
      while (world->nodes[i].queued > 0) {
        (void)fake_answer(world, i);
        answered = true;
      }
    }
  }
}

fake_verb fake_next(const fake_world *world, unsigned node) {
  return world->nodes[node].queued == 0 ? FAKE_OTHER : world->nodes[node].queue[0].verb;
}

rl_lock *fake_lock(fake_world *world, const char *resource, const redlock_options *options) {
  return fake_lock_of(world, resource, strlen(resource), options);
}

rl_lock *fake_lock_of(fake_world *world, const void *resource, size_t length,
                      const redlock_options *options) {
  rl_options read;
  rl_options_default(&read);
  if (options != NULL && rl_options_read(&read, options) != NULL) {
    return NULL;
  }
  return rl_lock_new(&world->core, resource, length, &read);
}

rl_lock *fake_lock_many(fake_world *world, const char *const *resources, size_t count,
                        const redlock_options *options) {
  redlock_resource names[FAKE_NAMES_MAX];
  rl_options read;
  rl_options_default(&read);
  if (count > FAKE_NAMES_MAX || (options != NULL && rl_options_read(&read, options) != NULL)) {
    return NULL;
  }
  for (size_t i = 0; i < count; i++) {
    names[i] = (redlock_resource){resources[i], strlen(resources[i])};
  }
  return rl_lock_new_many(&world->core, names, count, &read);
}

redlock_options fake_once(void) {
  redlock_options options = {0};
  options.retry_count = REDLOCK_RETRIES_NONE;
  return options;
}

int fake_acquire(fake_world *world, rl_lock *lock) {
  int error = rl_lock_acquire(lock, world->now_us, NULL, false);
  if (error != REDLOCK_OK) {
    return error;
  }
  fake_settle(world);
  return rl_lock_result(lock);
}

unsigned fake_holders(fake_world *world, const char *key, const char *token) {
  unsigned holders = 0;
  for (unsigned i = 0; i < world->count; i++) {
    const char *held = fake_store_token(&world->nodes[i].store, world->now_us, key);
    holders += held != NULL && strcmp(held, token) == 0;
  }
  return holders;
}

unsigned fake_keys(fake_world *world, const char *key) {
  unsigned keys = 0;
  for (unsigned i = 0; i < world->count; i++) {
    keys += fake_store_token(&world->nodes[i].store, world->now_us, key) != NULL;
  }
  return keys;
}
