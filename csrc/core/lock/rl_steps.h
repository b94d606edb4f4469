/*
 * The steps of an operation, as a table; and the functions of upper layers that this layer calls.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new operation brings a table of its steps, rl_NAME_steps. rl_core_init() passes all tables, so
 * this layer includes no header of an operation.
 */
#ifndef RL_STEPS_H
#define RL_STEPS_H

#include "lock/rl_lock.h"
#include "node/rl_verdict.h"

typedef enum rl_begun {
  RL_BEGUN,          /* the round begins */
  RL_BEGUN_ENDED,    /* the operation has ended instead */
  RL_BEGUN_TOO_LATE, /* the operation must end: its budget has expired */
} rl_begun;

/* Arguments of an operation that asks all nodes (operator/rl_ask.h); else all zero. */
typedef struct rl_question {
  const void *token; /* REDLOCK_TOKEN_ANY as the length means any token */
  size_t token_length;
  unsigned flags;
} rl_question;

/* The answer of a node to a command of an operation. */
typedef struct rl_answer {
  rl_node *node; /* whose reader has the reply */
  const rl_outstanding *command;
  rl_verdict verdict;
  const char *reason;           /* why the node has no vote; or NULL */
  char text[RL_REASON_MAX + 1]; /* room for the reason */
} rl_answer;

/* A step that is NULL does not exist, unless its comment has another rule. */
typedef struct rl_steps {
  /* Of an operation that asks: the size of its answers, and of the answer of each node. */
  size_t answers_size, answer_size;

  /* Of an operation that asks: returns NULL, or a static sentence about a wrong argument. */
  const char *(*wrong)(const rl_lock *lock, const rl_question *question);

  /* Of an operation that asks: fills the answers, which have been allocated and are all zero. */
  void (*prepare)(rl_lock *lock, redlock_time now_us, const rl_question *question);

  /*
   * Runs before the first command of a round. |entropy| is RL_LOCK_ENTROPY bytes for an acquire,
   * else NULL.
   */
  rl_begun (*begin)(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

  /* Returns the time limit of the round. NULL: the node_timeout of the options. */
  redlock_duration (*timeout)(const rl_lock *lock);

  /* Sends the command to a node that is up and has room. Returns NULL, or why it was not sent. */
  const char *(*send)(rl_lock *lock, redlock_time now_us, rl_node *node);

  /*
   * Sends |command| once more to a node that has room: by its text, or without notifying waiters.
   * Returns true if it was sent.
   */
  bool (*send_again)(rl_node *node, redlock_time now_us, const rl_outstanding *command);

  /*
   * Reads an answer, whose lock may be freed. May change its verdict and its reason. Returns false
   * if the vote of the node needs one more answer.
   */
  bool (*note)(rl_core *core, redlock_time now_us, rl_answer *answer);

  /* Replace |send|: ask all nodes; and act on an awaited node that is connected now. */
  void (*send_to_all)(rl_lock *lock, redlock_time now_us);
  void (*node_up)(rl_lock *lock, redlock_time now_us, const rl_node *node);

  /* Acts on the votes as soon as they are decisive. Never NULL. */
  void (*decide)(rl_lock *lock, redlock_time now_us);

  /* Ends requests besides the votes with the reason |missed|: the round has timed out. */
  void (*timed_out)(rl_lock *lock, const char *missed);
} rl_steps;

#define RL_STEPS_DECLARE(operation, name, ...) extern const rl_steps rl_##name##_steps;
RL_OPERATIONS(RL_STEPS_DECLARE)
#undef RL_STEPS_DECLARE

/* Functions of the layers above. */
typedef struct rl_upper {
  const rl_steps *const *steps; /* by rl_operation */

  /* Takes a lock out of its wait list: its operation is about to end with |result|. */
  void (*leave_waitlist)(rl_lock *lock, redlock_time now_us, int result);

  /* Acts on the end of the operation with |result|. */
  void (*ended)(rl_lock *lock, redlock_time now_us, int result);

  /*
   * Acts on the vote of a node that comes after the decision: in phase SUCCEEDED on each vote, in
   * phase IDLE on the vote of an extend.
   */
  void (*late_vote)(rl_lock *lock, redlock_time now_us, rl_node *node, redlock_vote vote);

  /*
   * Gives the key to a node that has come up after its lock was granted. Returns false if the node
   * cannot take it yet.
   */
  bool (*backfill)(rl_lock *lock, redlock_time now_us, rl_node *node);
} rl_upper;

#endif
