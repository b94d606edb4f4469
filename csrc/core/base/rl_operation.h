/*
 * Operations, their words, and the effects of their commands.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OPERATION_H
#define RL_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

/* Effects of a command: bits. Code tests an effect, not the kind of the command. */
enum {
  RL_CREATES = 1 << 0,  /* may create the key of its attempt */
  RL_PROLONGS = 1 << 1, /* may change the life of that key */
  RL_RELEASES = 1 << 2, /* releases that key (lease/rl_release.h) */
  RL_REMOVES = 1 << 3,  /* may delete a key */
  RL_FINDS = 1 << 4,    /* needs an earlier key: a denial proves that the node has lost it */
  RL_PROVES = 1 << 5,   /* success proves that the node has the key (MAR-1) */
  RL_HOLDS = 1 << 6,    /* needs a lease that lasts, and counts its keys */
  RL_ASKS = 1 << 7,     /* is a question about a key of any client (operator/rl_ask.h) */
  RL_READS = 1 << 8,    /* the steps read the reply: each reply but an error counts as granted */
  RL_COMPETES = 1 << 9, /* the lock is not held yet: the bounds of the connection are lower */
  RL_APART = 1 << 10,   /* its answer is no vote */
  RL_GRANTS = RL_CREATES | RL_HOLDS /* of an operation: it gives a lease, or needs one that lasts */
};

/*
 * X(operation, name, gerund, the result of a node that granted it, the feature that needs scripts,
 *   the message of a lease that has expired, effects of its command). NULL: the message is another.
 *   The steps of the operation are rl_NAME_steps (lock/rl_steps.h).
 * From INSPECT on: the operations that ask the nodes (operator/rl_ask.h).
 */
#define RL_OPERATIONS(X)                                                                           \
  X(ACQUIRE, acquire, "acquiring", "granted it",                                                   \
    "a lock with several resources, a fence or a guard", NULL,                                     \
    RL_CREATES | RL_PROVES | RL_COMPETES)                                                          \
  X(EXTEND, extend, "extending", "extended it", "this extend",                                     \
    " was not extended: its lease had expired", RL_PROLONGS | RL_FINDS | RL_PROVES | RL_HOLDS)     \
  X(RELEASE, release, "releasing", "confirmed its release", "this release",                        \
    " had expired before it was released", RL_REMOVES | RL_RELEASES | RL_FINDS)                    \
  X(INSPECT, inspect, "inspecting", "reported their keys", "inspect()", NULL, RL_ASKS | RL_READS)  \
  X(FORCE_RELEASE, force_release, "releasing by force", "confirmed its release",                   \
    "force_release()", NULL, RL_ASKS | RL_REMOVES)                                                 \
  X(DOCTOR, doctor, "asking for the doctor", "were examined", NULL, NULL, RL_ASKS | RL_READS)      \
  X(BOOTSTRAP, bootstrap, "making the nodes ready", "may vote", NULL, NULL, RL_ASKS | RL_READS)

#define RL_OPERATION_ENUM(operation, ...) RL_OPERATION_##operation,
typedef enum rl_operation {
  RL_OPERATION_NONE,
  RL_OPERATIONS(RL_OPERATION_ENUM) RL_OPERATION_COUNT
} rl_operation;
#undef RL_OPERATION_ENUM

/* Returns true if the operation has one of |effects|, which are constant: few comparisons. */
#define RL_OPERATION_HAS(name, lower, gerund, done, scripted, expired, has)                        \
  || (((has)&effects) != 0 && operation == RL_OPERATION_##name)
__attribute__((always_inline)) static inline bool rl_operation_has(unsigned operation,
                                                                   unsigned effects) {
  return false RL_OPERATIONS(RL_OPERATION_HAS);
}
#undef RL_OPERATION_HAS

#define RL_OPERATION_FIRST_ASKED RL_OPERATION_INSPECT
#define RL_OPERATIONS_ASKED (RL_OPERATION_COUNT - RL_OPERATION_FIRST_ASKED)

typedef struct rl_operation_words {
  const char *gerund, *done, *scripted, *expired;
} rl_operation_words;

extern const rl_operation_words rl_operation_words_of[RL_OPERATION_COUNT];

#endif
