/*
 * Commands with an outstanding reply: their kinds, and the effects of each kind.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OUTSTANDING_H
#define RL_OUTSTANDING_H

#include <assert.h>

#include "base/rl_operation.h"
#include "base/rl_time.h"
#include "wire/rl_attempt.h"

/*
 * X(kind, operation whose steps read the answer, effects): the commands besides those of
 * RL_OPERATIONS, which are kinds, too. The last two belong to the connection.
 */
#define RL_OUTSTANDING_KINDS(X)                                                                    \
  X(HEAL, EXTEND, RL_CREATES | RL_PROVES | RL_APART)                                               \
  X(ATTACH, ACQUIRE, RL_CREATES | RL_PROVES | RL_FINDS)                                            \
  X(CONFIRM, ACQUIRE, RL_PROVES | RL_APART) /* raises counters */                                  \
  X(SLOTS, ACQUIRE, RL_READS)      /* asks which slots of a semaphore exist (rl_semaphore.h) */    \
  X(NATIVE, RELEASE, 0)            /* goes with a release; |step|: rl_native_step */               \
  X(ENQUEUE, ACQUIRE, RL_COMPETES) /* these have no attempt (rl_notify.c); |round|: ticket's id */ \
  X(DEQUEUE, ACQUIRE, 0)                                                                           \
  X(PROBE, ACQUIRE, 0)                                                                             \
  X(GUARD, NONE, 0) /* the guard's script; |step|: rl_guard_action */                              \
  X(HANDSHAKE, NONE, 0)

#define RL_OUTSTANDING_KIND(kind, ...) RL_OUTSTANDING_##kind,
typedef enum rl_outstanding_kind {
  RL_OUTSTANDING_NONE, /* the kind of an operation's command is the operation */
  RL_OPERATIONS(RL_OUTSTANDING_KIND) RL_OUTSTANDING_KINDS(RL_OUTSTANDING_KIND)
} rl_outstanding_kind;
static_assert((int)RL_OUTSTANDING_HEAL == (int)RL_OPERATION_COUNT, "they have equal numbers");
#undef RL_OUTSTANDING_KIND

/* A command with an outstanding reply. */
typedef struct rl_outstanding {
  rl_attempt *attempt; /* a reference; or NULL */
  redlock_time sent_us;
  uint32_t round;  /* of the attempt's lock */
  uint8_t kind;    /* an rl_outstanding_kind */
  uint8_t by_text; /* sent as EVAL */
  /* Of the handshake, guard, doctor. TAKE: compares the history. Native release: an rl_native. */
  uint8_t step;
  uint8_t script; /* the rl_script, or RL_SCRIPT_NONE */
} rl_outstanding;

/* As rl_operation_has(). */
#define RL_OUTSTANDING_HAS(name, operation, has)                                                   \
  || (((has)&effects) != 0 && kind == RL_OUTSTANDING_##name)
__attribute__((always_inline)) static inline bool rl_outstanding_kind_has(unsigned kind,
                                                                          unsigned effects) {
  return rl_operation_has(kind, effects) RL_OUTSTANDING_KINDS(RL_OUTSTANDING_HAS);
}
#undef RL_OUTSTANDING_HAS

__attribute__((always_inline)) static inline bool rl_outstanding_has(const rl_outstanding *command,
                                                                     unsigned effects) {
  return rl_outstanding_kind_has(command->kind, effects);
}

/* Returns the operation whose steps read the answer. */
static inline rl_operation rl_outstanding_operation(const rl_outstanding *command) {
#define RL_OUTSTANDING_ITSELF(operation, ...) [RL_OPERATION_##operation] = RL_OPERATION_##operation,
#define RL_OUTSTANDING_ROW(kind, operation, ...) [RL_OUTSTANDING_##kind] = RL_OPERATION_##operation,
  static const uint8_t operations[] = {RL_OPERATIONS(RL_OUTSTANDING_ITSELF)
                                           RL_OUTSTANDING_KINDS(RL_OUTSTANDING_ROW)};
#undef RL_OUTSTANDING_ITSELF
#undef RL_OUTSTANDING_ROW
  return (rl_operation)operations[command->kind];
}

/* Returns true if the command is SET NX without a script. */
static inline bool rl_outstanding_is_set(const rl_outstanding *command) {
  return command->script == RL_SCRIPT_NONE && rl_outstanding_has(command, RL_CREATES) &&
         !rl_outstanding_has(command, RL_FINDS);
}

#endif
