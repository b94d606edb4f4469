/* SPDX-License-Identifier: MIT */
#include "operator/rl_ask.h"

#include <stdlib.h>

#include "lease/rl_release.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_outbox.h"
#include "node/rl_link_queue.h"

static void **rl_ask_place(const rl_lock *lock, rl_operation operation) {
  return &lock->extension->answers[operation - RL_OPERATION_FIRST_ASKED];
}

void *rl_ask_answers(const rl_lock *lock, rl_operation operation) {
  return lock->extension == NULL ? NULL : *rl_ask_place(lock, operation);
}

/*
 * Returns a reference to the resource of the question. A token of a semaphore is in a slot, whose
 * queue of waiters is that of the semaphore. NULL if out of memory.
 */
static rl_resource *rl_ask_resource(const rl_lock *lock, const rl_question *asked, bool any) {
  size_t base_length;
  rl_resource_name name = rl_resource_at(lock->resource, 0);
  unsigned permits =
      any || asked->token == NULL ? 0 : rl_label_permits(asked->token, asked->token_length);
  unsigned slot = rl_resource_parse_slot(name.resource, name.length, &base_length);
  if (slot == 0 || slot > permits) {
    lock->resource->references++;
    return lock->resource;
  }
  rl_resource *made =
      rl_resource_new(name.key, lock->resource->prefix_length, name.resource, name.length);
  if (made != NULL) {
    made->suffix_length = (uint8_t)(name.length - base_length);
  }
  return made;
}

int rl_lock_ask(rl_lock *lock, redlock_time now_us, rl_operation operation,
                const rl_question *question, bool notify) {
  static const rl_question none;
  const rl_steps *steps = lock->core->upper->steps[operation];
  const rl_question *asked = question != NULL ? question : &none;
  size_t size = steps->answers_size + lock->core->node_count * steps->answer_size;
  bool any = asked->token_length == REDLOCK_TOKEN_ANY;
  int error = rl_lock_check_ask(lock, now_us, operation); /* ASK-1, ASK-2 */
  if (error != REDLOCK_OK) {
    return error;
  }
  const char *wrong = steps->wrong != NULL ? steps->wrong(lock, asked) : NULL;
  if (wrong != NULL) {
    return rl_lock_refuse_argument(lock, operation, wrong);
  }
  void *answers = size > 0 && rl_lock_reserve_extension(lock) ? calloc(1, size) : NULL;
  rl_resource *resource = size > 0 && answers == NULL ? NULL : rl_ask_resource(lock, asked, any);
  rl_attempt *attempt = resource == NULL
                            ? NULL
                            : rl_attempt_new_custom(&lock->core->attempts, resource, lock,
                                                    asked->token, any ? 0 : asked->token_length);
  if (resource != NULL) {
    rl_resource_unref(resource);
  }
  if (attempt == NULL) {
    free(answers);
    return rl_lock_refuse(lock, operation, REDLOCK_E_NO_MEMORY);
  }
  if (answers != NULL) {
    free(*rl_ask_place(lock, operation));
    *rl_ask_place(lock, operation) = answers;
  }
  attempt->deletes_any_token = any;
  if (steps->prepare != NULL) {
    steps->prepare(lock, now_us, asked);
  }
  return rl_lock_begin_asking(lock, operation, now_us, attempt, notify);
}

rl_outstanding rl_ask_command(const rl_lock *lock, redlock_time now_us, unsigned step) {
  rl_outstanding command = {.attempt = lock->attempt,
                            .sent_us = now_us,
                            .round = lock->round,
                            .kind = (uint8_t)lock->operation,
                            .by_text = true,
                            .step = (uint8_t)step};
  return command;
}

const char *rl_ask_send(const rl_lock *lock, redlock_time now_us, rl_node *node, unsigned step,
                        const rl_command_bytes *arguments, unsigned count) {
  rl_outstanding command = rl_ask_command(lock, now_us, step);
  if (!rl_link_has_room(&node->link, lock->operation)) {
    return "too many commands are waiting for the node";
  }
  return rl_link_queue_arguments(&node->link, &command, arguments, count) ? NULL : "out of memory";
}

bool rl_ask_awaits(const rl_outstanding *command) {
  const rl_lock *lock = command->attempt->lock;
  return lock != NULL && command->round == lock->round && lock->phase == RL_PHASE_ROUND;
}

bool rl_ask_is_answered(const rl_lock *lock) {
  const rl_quorum *quorum = &lock->quorum;
  return quorum->granted + quorum->denied + quorum->failed == quorum->nodes;
}

void rl_ask_end(rl_lock *lock, redlock_time now_us, int result) {
  rl_attempt *attempt = lock->attempt;
  lock->attempt = NULL;
  rl_lock_end(lock, now_us, result);
  rl_release_and_drop(lock, now_us, attempt, true);
}

void rl_ask_decide(rl_lock *lock, redlock_time now_us) {
  if (rl_ask_is_answered(lock)) {
    bool majority = lock->quorum.granted >= rl_quorum_majority(lock->quorum.nodes);
    rl_ask_end(lock, now_us, majority ? REDLOCK_OK : REDLOCK_E_UNAVAILABLE);
  }
}
