/*
 * The outbox: locks whose operation was begun, and whose commands are to be sent.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OUTBOX_H
#define RL_OUTBOX_H

#include "rl_lock.h"
#include "rl_timers.h"

/*
 * What a node may owe before more is launched: so many commands, and those that fit into the time
 * that its fastest reply took, if it needs 10 us for each of them. A node that is far away is given
 * something to do while its replies are on their way.
 */
#define RL_LAUNCH_WINDOW 256
#define RL_LAUNCH_COMMAND_US 10

typedef struct rl_launches {
  rl_timers renewals;           /* extends and releases, by when they are needed */
  rl_list acquires;       /* in the order in which they were begun */
  unsigned acquire_count;       /* each needs entropy */
  unsigned renewals_in_a_row;   /* launched since the last acquire */
  redlock_time closed_until_us; /* the window is closed until then, or until the nodes answer */
  unsigned window;              /* RL_LAUNCH_WINDOW; a test may make it smaller */
  redlock_duration command_us;  /* RL_LAUNCH_COMMAND_US; a test may make it larger */
} rl_launches;

void rl_outbox_init(struct rl_core *core);
void rl_outbox_free(struct rl_core *core);

/* Makes room for so many locks; the other calls then cannot fail. False when out of memory. */
bool rl_outbox_reserve(struct rl_core *core, size_t locks);

/* The commands of the lock are to be sent; and they are not any more. */
void rl_outbox_enter(rl_lock *lock, redlock_time now_us);
void rl_outbox_leave(rl_lock *lock);

/* A reply has come, or a connection has changed: the window may be open again. */
void rl_outbox_look_again(struct rl_core *core);

#endif
