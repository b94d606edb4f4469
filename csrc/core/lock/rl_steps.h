/*
 * The steps of an operation, which the round asks for; and what follows when it ends.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new operation brings a table of its steps. The layers above hand all tables over when the core is made, so that
 * this layer names none of them.
 */
#ifndef RL_STEPS_H
#define RL_STEPS_H

#include "lock/rl_lock.h"
#include "node/rl_verdict.h"

typedef enum rl_begun {
  RL_BEGUN,          /* the round begins */
  RL_BEGUN_ENDED,    /* the operation has ended instead */
  RL_BEGUN_TOO_LATE, /* it is to end, for its time is over */
} rl_begun;

/* What an operator asks the nodes (operator/rl_ask.h); all zero if the operation needs none of it. */
typedef struct rl_question {
  const void *token; /* with REDLOCK_TOKEN_ANY as its length: any */
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

/* NULL stands for a step that the operation does not have, unless the step says otherwise. */
typedef struct rl_steps {
  /* Of an operation that asks: the size of its answers, and of the answer of each node. */
  size_t answers_size, answer_size;

  /* Of an operation that asks: returns NULL, or what is wrong with the question, as a static sentence. */
  const char *(*wrong)(const rl_lock *lock, const rl_question *question);

  /* Of an operation that asks: the answers have been allocated, and are all zero. */
  void (*prepare)(rl_lock *lock, redlock_time now_us, const rl_question *question);

  /* Before the first command of a round. |entropy| is RL_LOCK_ENTROPY bytes for an acquire, else NULL. */
  rl_begun (*begin)(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

  /* Returns how long the round may last; without it the node_timeout of the operation's options. */
  redlock_duration (*timeout)(const rl_lock *lock);

  /* Sends the command to a node that is up and has room. Returns NULL, or why it was not sent. */
  const char *(*send)(rl_lock *lock, redlock_time now_us, rl_node *node);

  /*
   * Sends |command| once more to a node that has room: by its text, or without notifying waiters.
   * Returns true if it was sent.
   */
  bool (*send_again)(rl_node *node, redlock_time now_us, const rl_outstanding *command);

  /*
   * Reads an answer, whose lock may be gone, and may change its verdict and its reason. Returns false
   * if the vote of the node needs another answer.
   */
  bool (*note)(rl_core *core, redlock_time now_us, rl_answer *answer);

  /* In place of |send|: asks all nodes; and looks at one that was waited for and has come up. */
  void (*ask)(rl_lock *lock, redlock_time now_us);
  void (*node_up)(rl_lock *lock, redlock_time now_us, const rl_node *node);

  /* Acts on the votes as soon as they are decisive. Never NULL. */
  void (*decide)(rl_lock *lock, redlock_time now_us);

  /* The round is over: what was asked besides the votes is |missed|. */
  void (*timed_out)(rl_lock *lock, const char *missed);

  /* A node has voted when the operation had ended; its connection has come up then. */
  void (*grace_vote)(rl_lock *lock, redlock_time now_us, rl_node *node, redlock_vote vote);
  void (*grace_up)(rl_lock *lock, redlock_time now_us, rl_node *node);
} rl_steps;

/* What the lock layer calls of the layers above. */
typedef struct rl_upper {
  const rl_steps *const *steps; /* by rl_operation */

  /* The operation of a lock ends with |result|, which is not noted yet: its line goes on. */
  void (*leave_line)(rl_lock *lock, redlock_time now_us, int result);

  /* It has ended with |result|. */
  void (*ended)(rl_lock *lock, redlock_time now_us, int result);
} rl_upper;

#endif
