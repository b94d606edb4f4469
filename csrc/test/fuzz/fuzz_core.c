/*
 * Fuzz target: the core, with any bytes from the nodes in any pieces, at any time, under any
 * operations. Its output must be well formed, its state consistent, and nothing may remain.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "fake_nodes.h"
#include "fake_queue.h"
#include "fuzz.h"
#include "lease/rl_attach.h"
#include "lease/rl_custom_token.h"
#include "lifecycle/rl_detach.h"
#include "operator/rl_finding.h"
#include "operator/rl_inspect.h"

#define FUZZ_CORE_LOCKS 3
#define FUZZ_CORE_STEPS 400
#define FUZZ_CORE_TEXT_MAX 512

static const char *const fuzz_core_replies[] = {"+OK\r\n",
                                                "$-1\r\n",
                                                ":1\r\n",
                                                ":0\r\n",
                                                "-ERR x\r\n",
                                                "-NOSCRIPT\r\n",
                                                "-WRONGTYPE\r\n",
                                                "-LOADING\r\n",
                                                "+QUEUED\r\n",
                                                "*1\r\n:1\r\n",
                                                "$2\r\nOK\r\n",
                                                "-BUSY x\r\n",
                                                "$25\r\nOK 1000000000 1000000000 \r\n",
                                                "$24\r\nOK 1000000000 1000000777\r\n",
                                                "$15\r\nno 1000000000 0\r\n",
                                                "$14\r\n1 1000000000 0\r\n"};

/* Waiting: answers of queues, and published messages. */
static const char *const fuzz_core_answers[] = {":0\r\n",    ":2\r\n",       ":3\r\n",
                                                ":2001\r\n", ":20001\r\n",   ":200007\r\n",
                                                ":1\r\n",    "-NOPERM x\r\n"};
static const char *const fuzz_core_messages[] = {
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$12\r\n00000000name\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$12\r\n00000001name\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$12\r\n00010000name\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$9\r\nffffffffx\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$0\r\n\r\n",
    "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
    "*2\r\n$4\r\npong\r\n$0\r\n\r\n",
    "+OK\r\n"};

static redlock_options fuzz_core_options(fuzz_input *input) {
  redlock_options options = {0};
  uint8_t bits = fuzz_byte(input);
  options.retry_count = bits % 4 == 3 ? 0 : bits % 4 == 0 ? REDLOCK_RETRIES_NONE : bits % 4;
  options.wait_us =
      bits & 4 ? (redlock_duration)fuzz_byte(input) * 4 * REDLOCK_MILLISECONDS : REDLOCK_NEVER;
  if (options.wait_us == 0) {
    options.wait_us = REDLOCK_DURATION_NONE;
  }
  options.ttl_us = bits & 8 ? REDLOCK_MILLISECONDS * (4 + (redlock_duration)fuzz_byte(input))
                            : 10 * REDLOCK_SECONDS;
  options.lock_delay_us = bits & 16 ? 5 * REDLOCK_SECONDS : 0;
  options.node_timeout_us = bits & 32 ? REDLOCK_SECONDS : 0;
  options.auto_extend = bits & 128 ? REDLOCK_YES : 0;
  options.max_hold_us = bits % 8 == 5 ? 20 * REDLOCK_SECONDS : 0;
  options.hold_at_least_us = bits % 16 == 9 ? 15 * REDLOCK_SECONDS : 0;
  options.fence = bits % 16 == 10 ? REDLOCK_YES : 0;
  options.fair = bits % 32 == 7 ? REDLOCK_YES : 0;
  options.notify = bits % 32 == 11 ? REDLOCK_NO : 0;
  options.retry_delay_us = bits & 64 ? REDLOCK_DURATION_NONE : 200 * REDLOCK_MILLISECONDS;
  return options;
}

/* Detaches a lease, if there is one; its text may be used repeatedly, or changed. */
static void fuzz_core_detach(fake_world *world, rl_lock *lock, char *text) {
  rl_handover handover;
  if (rl_lock_describe_lease(lock, world->now_us, &handover) == REDLOCK_OK) {
    fuzz_require(rl_handover_length(&handover) < FUZZ_CORE_TEXT_MAX);
    rl_handover_write(&handover, text);
    rl_lock_detach(lock);
    fuzz_require(rl_lock_remaining(lock, world->now_us) == 0);
  }
}

static void fuzz_core_attach(rl_lock *lock, const char *text, fuzz_input *input) {
  char changed[FUZZ_CORE_TEXT_MAX];
  rl_handover handover;
  size_t length = strlen(text);
  uint8_t at = fuzz_byte(input);
  memcpy(changed, text, length + 1);
  if (at < length && at % 4 == 3) {
    changed[at] = (char)fuzz_byte(input);
  }
  if (rl_handover_read(&handover, changed, length) == REDLOCK_OK) {
    fuzz_require(strcmp(changed, text) == 0);
    (void)rl_attach_set(lock, &handover);
    rl_handover_free(&handover);
  }
}

/* Reads all findings, also those of mutated answers. */
static void fuzz_core_read_findings(const rl_lock *lock) {
  rl_finding finding;
  const rl_doctor *doctor = rl_doctor_of(lock);
  for (unsigned i = 0; doctor != NULL && rl_finding_at(doctor, i, &finding); i++) {
    fuzz_require(i < 32 * REDLOCK_NODES_MAX && strlen(finding.message) > 0);
  }
}

/* Rare operations. */
static void fuzz_core_operate_seldom(fake_world *world, rl_lock **slot, char *text,
                                     fuzz_input *input) {
  static const char *const names[] = {"name", "other"};
  redlock_options options;
  rl_lock *lock = *slot;
  unsigned nodes;
  redlock_duration ttl_us;
  uint8_t length = fuzz_byte(input);
  switch (length % 8) {
  case 0:
    (void)rl_lock_release_send(lock, world->now_us);
    break;
  case 1:
    (void)rl_custom_token_set(lock, "the same for all, 1234567890", 1 + length / 8 % 28);
    break;
  case 2:
    (void)(length & 64 ? rl_lock_ask(lock, world->now_us, RL_OPERATION_DOCTOR,
                                     &(rl_question){.flags = length / 8 % 2}, true)
                       : rl_lock_ask(lock, world->now_us, RL_OPERATION_INSPECT, NULL, true));
    break;
  case 3:
    (void)rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                      &(rl_question){.token = "the same for all, 1234567890",
                                     .token_length = length & 128 ? REDLOCK_TOKEN_ANY : length / 8},
                      true);
    break;
  case 4:
    fuzz_core_detach(world, lock, text);
    break;
  case 5:
    fuzz_core_attach(lock, text, input);
    break;
  case 6:
    options = fuzz_core_options(input);
    rl_lock_free(lock, world->now_us);
    *slot = fake_lock_many(world, names, 1 + length / 8 % 2, &options);
    break;
  default:
    (void)rl_inspect_of(lock, length / 8 % world->count);
    (void)rl_inspect_holder(lock, &ttl_us, &nodes);
    fuzz_core_read_findings(lock);
    break;
  }
}

static void fuzz_core_operate(fake_world *world, rl_lock **slot, char *text, fuzz_input *input) {
  redlock_options options;
  rl_lock *lock = *slot;
  uint8_t what = fuzz_byte(input);
  if (what >= 192) {
    fuzz_core_operate_seldom(world, slot, text, input);
    return;
  }
  switch (what % 8) {
  case 0:
  case 1:
    options = fuzz_core_options(input);
    (void)rl_lock_acquire(lock, world->now_us, &options, true);
    break;
  case 2:
    (void)rl_lock_extend(lock, world->now_us,
                         (redlock_duration)fuzz_byte(input) * 39 * REDLOCK_MILLISECONDS, true);
    break;
  case 3:
    (void)rl_lock_release(lock, world->now_us, true);
    break;
  case 4:
    rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    break;
  case 5:
    rl_lock_free(lock, world->now_us);
    *slot = fake_lock(world, "name", NULL);
    break;
  case 6:
    (void)rl_lock_outcome(lock, world->now_us);
    break;
  default:
    (void)rl_core_next_ended(&world->core);
    (void)rl_loss_next(&world->core, world->now_us);
    break;
  }
}

/* Something happens to a node. */
static void fuzz_core_node(fake_world *world, unsigned index, fuzz_input *input) {
  fake_node *node = &world->nodes[index];
  const uint8_t *bytes;
  uint8_t what = fuzz_byte(input);
  unsigned reply = what / 8 < 24 ? what / 8 % 12 : 12 + what / 8 % 4;
  const char *text = index >= world->count ? fuzz_core_messages[what / 8 % 8]
                     : world->core.notify != NULL && what / 8 >= 24
                         ? fuzz_core_answers[what / 8 % 8]
                         : fuzz_core_replies[reply];
  size_t length;
  switch (what % 8) {
  case 0: /* any bytes */
    length = fuzz_bytes(input, &bytes, 1 + what / 8);
    rl_core_input(&world->core, index, world->now_us, bytes, length);
    break;
  case 1: /* a reply to the next command, perhaps a right one */
  case 2:
    (void)fake_take(world, index);
    bytes = (const uint8_t *)text;
    length = strlen(text);
    if (what % 8 == 2) { /* in two pieces */
      rl_core_input(&world->core, index, world->now_us, bytes, 1);
      bytes++;
      length--;
    }
    rl_core_input(&world->core, index, world->now_us, bytes, length);
    break;
  case 3: /* the right one */
  case 4:
    (void)fake_answer(world, index);
    break;
  case 5:
    fake_break(world, index, "Connection reset by peer");
    break;
  case 6:
    node->policy = (fake_policy)(what / 8 % 4);
    break;
  default:
    node->blocked = !node->blocked;
    break;
  }
  if (node->queued == FAKE_QUEUE_MAX) {
    node->queued = 0; /* It has read them, and will never answer. */
  }
}

static void fuzz_core_pass(fake_world *world, fuzz_input *input) {
  static const redlock_duration steps_us[] = {1,      999,     20000,   99999,
                                              500000, 1000000, 4000000, 60000000};
  world->now_us += steps_us[fuzz_byte(input) % 8];
}

static void fuzz_core_check(const fake_world *world, rl_lock *const *locks) {
  for (unsigned i = 0; i < FUZZ_CORE_LOCKS; i++) {
    const rl_lock *lock = locks[i];
    char message[64];
    redlock_duration left_us = rl_lock_remaining(lock, world->core.now_us);
    fuzz_require(left_us == 0 || lock->lease != NULL);
    fuzz_require(left_us <= 10 * REDLOCK_SECONDS);
    fuzz_require(left_us == 0 || rl_quorum_majority(world->count) <=
                                     (unsigned)__builtin_popcount(lock->lease->sent));
    fuzz_require(strlen(rl_lock_message(lock, message, sizeof message)) < sizeof message);
  }
  fuzz_require(!world->broken);
  fuzz_require(world->core.waitlists->queued_count < FUZZ_CORE_LOCKS);
  fuzz_require(world->core.waitlists->table.count <= FUZZ_CORE_LOCKS);
  fuzz_require(world->core.waitlists->queued_count + world->core.waitlists->table.count <=
               FUZZ_CORE_LOCKS);
  fuzz_require(world->core.releases->count <= (size_t)RL_RELEASE_NODE_MAX * world->count);
  for (unsigned i = 0; i < rl_core_connection_count(&world->core); i++) {
    fuzz_require(rl_core_peer(&world->core, i)->link.outstanding_count <= RL_LINK_OUTSTANDING_MAX);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {data, size};
  rl_lock *locks[FUZZ_CORE_LOCKS];
  char text[FUZZ_CORE_TEXT_MAX] = "";
  uint8_t shape = fuzz_byte(&input);
  unsigned count = 1 + shape % 5;
  fake_world *world = shape & 64 ? fake_world_new_notifying(count) : fake_world_new(count);
  for (unsigned i = 0; i < FUZZ_CORE_LOCKS; i++) {
    locks[i] = fake_lock(world, i == 0 ? "other" : "name", NULL);
  }
  for (unsigned i = 0; i < FUZZ_CORE_STEPS && input.left > 0; i++) {
    uint8_t action = fuzz_byte(&input);
    unsigned which = action / 4;
    if (action == 255) {
      rl_core_close(&world->core, world->now_us);
    } else if (action == 254) {
      rl_core_reset(&world->core);
      for (unsigned k = 0; k < 2 * world->count; k++) {
        fake_queue_unsubscribe(&world->nodes[k % world->count].store, 0);
        world->nodes[k].connected = false;
        world->nodes[k].queued = 0;
        world->nodes[k].input_length = 0;
      }
    } else if (action % 4 == 0) {
      fuzz_core_operate(world, &locks[which % FUZZ_CORE_LOCKS], text, &input);
    } else if (action % 4 == 3) {
      fuzz_core_pass(world, &input);
    } else {
      fuzz_core_node(world, which % rl_core_connection_count(&world->core), &input);
    }
    if ((shape & 128) == 0 || action % 4 == 3) {
      fake_turn(world);
    }
    fuzz_core_check(world, locks);
    (void)rl_core_deadline(&world->core);
  }
  fuzz_require(fake_world_end(world));
  return 0;
}
