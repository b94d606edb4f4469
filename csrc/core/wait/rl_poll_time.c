/*
 * When the head of a wait list polls.
 *
 * SPDX-License-Identifier: MIT
 *
 * The earliest of these times (NTF-4 of rl_notify.c):
 *   POLL-1. after |poll_interval|, and later for waiters further back in the queue
 *   POLL-2. soon, if a node has only appended the ticket, so that it has not reported the key
 *   POLL-3. when the waiter before this one has had time to acquire a free key; the poll evicts it
 *           if it has not
 *   POLL-4. when the keys on enough nodes have expired, one waiter after the other
 *   POLL-5. when the head stops waiting
 *   POLL-6. after a quarter of the time for which a node reserves one of several keys (NTF-10)
 */
#include "wait/rl_poll_time.h"

#include <assert.h>

#include "wait/rl_pause.h"

/* Time in which a head that was notified must acquire the key (POLL-3). */
#define RL_POLL_TIME_PATIENCE_US (100 * REDLOCK_MILLISECONDS)

/* Time per place in the queue after which an appended waiter polls for the key (POLL-2). */
#define RL_POLL_TIME_LEARN_US (50 * REDLOCK_MILLISECONDS)

#define RL_POLL_TIME_RESERVED_US (RL_COMMAND_RESERVE_MS / 4 * REDLOCK_MILLISECONDS) /* POLL-6 */

/* When a key expires, the first waiters of the queue poll one after the other (POLL-4). */
#define RL_POLL_TIME_STEP_US (2 * REDLOCK_MILLISECONDS)
#define RL_POLL_TIME_STEPS_MAX 15

/* So many waiters poll after |poll_interval|, as many after twice that, and so on (POLL-1). */
#define RL_POLL_TIME_ROW 8
#define RL_POLL_TIME_ROWS_MAX 8
#define RL_POLL_TIME_MAX_US (40 * REDLOCK_SECONDS) /* a queue lives for 60 s after a poll */

/*
 * Returns when so many keys have expired that a quorum of nodes is free. Fewer are free now.
 */
static redlock_time rl_poll_time_expiry(const rl_core *core, const rl_ticket *ticket) {
  redlock_time ends_us[RL_NOTIFY_NODES_MAX] = {0};
  unsigned count = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((ticket->held >> i & 1) != 0) {
      unsigned at = count++;
      for (; at > 0 && ends_us[at - 1] > ticket->at[i].ends_us; at--) {
        ends_us[at] = ends_us[at - 1];
      }
      ends_us[at] = ticket->at[i].ends_us;
    }
  }
  unsigned needed = rl_core_quorum(core, RL_OPERATION_ACQUIRE);
  unsigned is_free = rl_quorum_count(ticket->notified);
  assert(is_free < needed);
  return is_free + count < needed ? REDLOCK_NEVER : ends_us[needed - is_free - 1];
}

/* Returns how many waiters stand before the ticket, on the node where they are fewest. */
static unsigned rl_poll_time_before(const rl_core *core, const rl_ticket *ticket) {
  unsigned before = RL_COMMAND_QUEUE_MAX;
  for (unsigned i = 0; i < core->node_count; i++) {
    bool reported = ((ticket->held | ticket->outranked) >> i & 1) != 0;
    if (reported && ticket->at[i].position <= before) {
      before = ticket->at[i].position - 1;
    }
  }
  return before;
}

redlock_time rl_poll_time_last(const rl_ticket *ticket) {
  const rl_lock *head = ticket->waitlist->head;
  redlock_duration poll_us = head->current->poll_interval_us;
  bool polls =
      rl_time_sub(head->budget_ends_us, ticket->begun_us) > rl_time_add(poll_us, poll_us / 4);
  return polls ? head->budget_ends_us : rl_pause_last_attempt_at(head);
}

redlock_time rl_poll_time_next(rl_core *core, const rl_ticket *ticket, redlock_time now_us) {
  const rl_lock *head = ticket->waitlist->head;
  unsigned before = rl_poll_time_before(core, ticket);
  unsigned rows = before / RL_POLL_TIME_ROW < RL_POLL_TIME_ROWS_MAX ? before / RL_POLL_TIME_ROW
                                                                    : RL_POLL_TIME_ROWS_MAX;
  redlock_duration poll_us = rl_time_min(head->current->poll_interval_us, RL_POLL_TIME_MAX_US);
  poll_us = rl_time_min(poll_us * (1 + rows), RL_POLL_TIME_MAX_US);
  redlock_duration needs_us = rl_pause_reply_time(core);
  redlock_time due_us =
      rl_time_add(ticket->polled_us, poll_us - poll_us / 8 + ticket->random % (poll_us / 4 + 1));
  redlock_time end_us = rl_poll_time_expiry(core, ticket);
  due_us = rl_time_max(due_us, now_us);
  if (ticket->unqueried != 0) { /* POLL-2 */
    redlock_duration learn_us =
        rl_time_min(rl_time_add(RL_POLL_TIME_LEARN_US, 2 * needs_us), head->ttl_us / 4);
    due_us =
        rl_time_min(due_us, rl_time_add(ticket->polled_us, (before > 0 ? before : 1) * learn_us));
    due_us = rl_time_max(due_us, now_us);
  }
  if (ticket->outranked != 0) { /* POLL-3 */
    unsigned turns = before > 0 && ticket->evicted == 0 ? before : 1;
    due_us = rl_time_min(
        due_us, rl_time_add(now_us, turns * rl_time_max(RL_POLL_TIME_PATIENCE_US, 2 * needs_us)));
  }
  if (end_us != REDLOCK_NEVER && before <= RL_POLL_TIME_STEPS_MAX) { /* POLL-4 */
    end_us = rl_time_add(rl_time_max(end_us, now_us),
                         REDLOCK_MILLISECONDS + before * RL_POLL_TIME_STEP_US);
    due_us = rl_time_min(due_us, end_us);
  }
  if (ticket->reserved != 0) { /* POLL-6 */
    due_us = rl_time_min(
        due_us, rl_time_max(rl_time_add(ticket->polled_us, RL_POLL_TIME_RESERVED_US), now_us));
  }
  return rl_time_min(due_us, rl_poll_time_last(ticket));
}

void rl_poll_time_restart(rl_core *core, rl_ticket *ticket, redlock_time now_us) {
  ticket->polled_us = now_us;
  ticket->random = rl_wait_state_random(core);
}
