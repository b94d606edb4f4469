/*
 * Launching: what has been begun and not been sent, and when it may be.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node that is sent ten thousand commands at once answers the last of them long after its round is
 * over. So rounds are launched only while the nodes owe little: what a node may owe before more is
 * launched is its window. The clock of a round begins with its launch.
 */
#ifndef RL_LAUNCH_H
#define RL_LAUNCH_H

#include "rl_lock.h"

/*
 * What a node may owe before more is launched: so many commands, and those that fit into the time
 * that its fastest reply took, if it needs 10 us for each of them. A node that is far away is given
 * something to do while its replies are on their way.
 */
#define RL_LAUNCH_WINDOW 256
#define RL_LAUNCH_COMMAND_US 10

/* A minority whose windows are full holds nobody up, until they owe so many times as much. */
#define RL_LAUNCH_OVERFULL 16

/* Extends and releases in a row, before an acquire has its turn. */
#define RL_LAUNCH_RENEWALS 3

/* Rounds that one call launches at most: what was sent wants to be heard too. */
#define RL_LAUNCH_MAX 64

typedef struct rl_launches {
  rl_timers renewals;           /* extends and releases, by when they are needed */
  rl_lock_queue acquires;       /* in the order in which they were begun */
  unsigned acquire_count;       /* each needs entropy */
  unsigned renewals_in_a_row;   /* launched since the last acquire */
  redlock_time closed_until_us; /* the window is closed until then, or until the nodes answer */
  unsigned window;              /* RL_LAUNCH_WINDOW; a test may make it smaller */
  redlock_duration command_us;  /* RL_LAUNCH_COMMAND_US; a test may make it larger */
} rl_launches;

void rl_launch_init(struct rl_core *core);
void rl_launch_free(struct rl_core *core);

/* Makes room for so many locks; the other calls then cannot fail. False when out of memory. */
bool rl_launch_reserve(struct rl_core *core, size_t locks);

/* The lock is to be launched; and it is not any more. */
void rl_launch_enter(rl_lock *lock, redlock_time now_us);
void rl_launch_leave(rl_lock *lock);

/* An acquire has waited in vain for the nodes to answer others. */
void rl_launch_give_up(rl_lock *lock, redlock_time now_us);

/* A reply has come, or a connection has changed: the window may be open again. */
void rl_launch_look_again(struct rl_core *core);

/* Whether something can be launched by now, and how much entropy that takes. */
bool rl_launch_wanted(const struct rl_core *core);
size_t rl_launch_entropy_wanted(const struct rl_core *core);

/* When rl_launch_wanted() will say so without anything happening before; REDLOCK_NEVER if never. */
redlock_time rl_launch_deadline(const struct rl_core *core);

/* Launches what the window lets through, acquires as far as the entropy goes. */
void rl_launch(struct rl_core *core, redlock_time now_us, const unsigned char *entropy,
               size_t entropy_length);

#endif
