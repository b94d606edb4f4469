/*
 * Notifications: when the head of a wait list tries or polls, by what the nodes reported.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each node has a queue beside a key that clients wait for: a string of entries in order of
 * arrival. An entry has 24 hexadecimal digits: 16 of the client's channel, and 8 of the ticket's
 * id. rl_script.c has the scripts. A node reports the state of the key in its reply to ENQUEUE.
 * Reports and notifications may be late, wrong or lost. A notification shortens the delay before
 * the next attempt. Reports of a holder lengthen it: the head polls instead. Safety rests on the
 * attempts alone.
 *
 *   NTF-1. After a failed attempt, the head sends ENQUEUE to each node with a working subscriber.
 *          If a node reports that the key is free and no other client waits, that counts as a
 *          notification. If the resource was recently contended, ENQUEUE only appends to an
 *          existing queue, which costs the node two commands instead of five. The reply then lacks
 *          the state of the key. The next poll reports it. The fewer tickets are before the head,
 *          the sooner it polls. The script of a head with a label also reports the label of the
 *          holder, for the message of the waiters.
 *   NTF-2. If the resource was recently contended, or with |fair|, an acquire enqueues before its
 *          first attempt, so it does not overtake waiters. With |fair|, a client whose subscribers
 *          are not connected yet waits for them, but no longer than an attempt may take. Without
 *          contention and |fair|, the first attempt is a plain SET, and costs no queue command.
 *          After a release that found waiters, the client also connects its subscribers: otherwise
 *          a holder that acquires again at once would overtake each waiter. A caller-supplied token
 *          serves one attempt. If that attempt is denied, the resource is noted as recently
 *          contended, so that the next acquire enqueues first.
 *   NTF-3. A release deletes the key and notifies the first ticket of the queue. The result of
 *          PUBLISH shows whether a subscriber received the message, so the script evicts
 *          disconnected waiters. A notified ticket stays in the queue until its client dequeues it,
 *          so a notification may be repeated.
 *   NTF-4. "Enough" nodes are the quorum of an acquire. While enough nodes report a holder or
 *          another first ticket, the head only polls: after |poll_interval|, or when the keys on
 *          enough nodes have expired. After the expiry the first sixteen waiters poll one after
 *          the other, in the order of their tickets. A poll repeats NTF-1. It restores a
 *          lost queue, notifies a first ticket that was not notified, and evicts an unresponsive
 *          one. A first ticket is unresponsive if two successive polls of another waiter find the
 *          key free, and that waiter at the same place. Waiters further back poll less often, and
 *          wait longer before they evict, so that the load does not grow with the number of
 *          waiters. If fewer nodes report a holder or another first ticket, the head tries as if
 *          there were no notifications.
 *   NTF-5. The head tries when enough nodes have notified it, or a little after the first
 *          notification. Without enough notifications it tries again 50 ms after its last attempt,
 *          plus a random time: at most max(50 ms, 4 x reply time of the quorum). Otherwise one node
 *          that lost a key would make all waiters try as fast as they can. If so few nodes denied
 *          the attempt that no other client can hold the lock, the head waits its usual delay. Both
 *          delays are random: otherwise two clients that split the votes would notify each other by
 *          their releases, and split them again.
 *   NTF-6. After a successful acquire, the ticket belongs to the lease: the script that releases
 *          the lease also dequeues the ticket. A ticket of a semaphore is dequeued at once: the
 *          next release of another slot is for the next waiter. A node with a free slot notifies
 *          that waiter.
 *   NTF-7. A waiter that gives up dequeues on all nodes. A node where the key is free then notifies
 *          the next waiter, because the last notification may have been for the waiter that gave
 *          up.
 *   NTF-8. The client answers a notification of an unknown ticket with DEQUEUE, which notifies the
 *          next waiter. A message cuts keys of over 504 bytes. The client cannot dequeue then;
 *          other waiters evict the entry (NTF-4). The client ignores a notification of a ticket
 *          that belongs to a lease: the notification came late, and the release dequeues that
 *          ticket (NTF-6).
 *   NTF-9. A node that refuses ENQUEUE gets none for a while (SUB-3 of rl_subscriber.c). Some
 *          errors concern only one ENQUEUE: a key of another type is in the place of the queue, or
 *          the node is out of memory, loading or busy for a while.
 *   NTF-10. A lock on several keys, at most RL_COMMAND_QUEUES_MAX, stands in the queue of each key
 *          under one ticket. A notification names one key. Unless the others are reserved, the
 *          client asks the node.
 *          Order: ENQUEUE_ALL enters all queues of a node at once. So two such waiters have the
 *          same order in all queues, and never wait for each other.
 *          Reservation: if the ticket is first in all queues of a node, the node reserves the free
 *          keys for it. A reservation lasts for one ttl of the waiter. Then the node lets the next
 *          waiter have them, because a holder of the other keys may extend its lease for ever. A
 *          waiter with reserved keys asks every 100 ms, and cannot be evicted meanwhile (NTF-4).
 *          Letting through: if another ticket is first in one of the queues, the node notifies the
 *          next waiters of the free keys. The ticket keeps its places. So no key is idle because of
 *          a waiter that waits for another key.
 */
#include "wait/rl_notify.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"
#include "options/rl_backoff.h"
#include "wait/rl_pause.h"
#include "wait/rl_poll_time.h"
#include "wait/rl_ticket.h"

/* Added to the time that the nodes need to answer (NTF-5). */
#define RL_NOTIFY_SLACK_US REDLOCK_MILLISECONDS

/* Least time between attempts without notifications of a quorum (NTF-5). */
#define RL_NOTIFY_APART_US (50 * REDLOCK_MILLISECONDS)

/* Time for which a resource counts as recently contended (NTF-2). */
#define RL_NOTIFY_CONTENDED_US REDLOCK_SECONDS

/* ------------------------------------------------------------------ NTF-2, recent contention */

static unsigned rl_notify_contended_at(uint64_t hash) {
  return (unsigned)(hash >> 7) % RL_NOTIFY_CONTENDED_SIZE;
}

static void rl_notify_note_hash(rl_notify_state *notify, uint64_t hash, redlock_time now_us) {
  unsigned at = rl_notify_contended_at(hash);
  notify->contended[at].hash = (uint32_t)(hash >> 32);
  notify->contended[at].until_us = rl_time_add(now_us, RL_NOTIFY_CONTENDED_US);
}

/* A lock on several resources marks its whole set, and each resource. */
void rl_notify_note_contention(rl_core *core, const rl_resource *resource, redlock_time now_us) {
  if (core->notify == NULL) {
    return;
  }
  rl_notify_note_hash(core->notify, rl_wait_state_hash(core, resource), now_us);
  for (unsigned i = 0; i < resource->count && resource->count > 1; i++) {
    rl_resource_name name = rl_resource_at(resource, i);
    rl_notify_note_hash(core->notify,
                        rl_hash_bytes(core->waitlists->seed, name.key, name.key_length), now_us);
  }
}

bool rl_notify_was_contended(const rl_core *core, uint64_t hash, redlock_time now_us) {
  unsigned at = rl_notify_contended_at(hash);
  return core->notify != NULL && core->notify->contended[at].hash == (uint32_t)(hash >> 32) &&
         core->notify->contended[at].until_us > now_us;
}

/* --------------------------------------------------------------------------- NTF-5, deciding */

unsigned rl_notify_quorum(const rl_core *core) {
  return rl_core_quorum(core, RL_OPERATION_ACQUIRE);
}

/*
 * NTF-5. Returns true if the key may have a holder: enough nodes denied the last attempt, or the
 *        head has made none.
 */
static bool rl_notify_key_may_have_holder(const rl_lock *head, const rl_ticket *ticket) {
  return ticket->waitlist->attempt_us == 0 ||
         rl_quorum_denied(head->quorum.nodes, head->quorum.denied, rl_notify_quorum(head->core));
}

/* NTF-5. Sets the timer for a try at |due_us|, or keeps it if it is due earlier. */
static void rl_notify_schedule_at(rl_lock *head, rl_ticket *ticket, redlock_time due_us) {
  ticket->attempt_due = true;
  ticket->polls = false;
  rl_timers_set(&head->core->timers, &head->timer, rl_time_min(head->timer.due_us, due_us));
}

/*
 * NTF-5. Sets the timer for a try after the usual delay. If it is set for a try, keeps it. If it is
 *        set for a poll, draws a new delay after the last attempt.
 */
static void rl_notify_schedule_after_pause(rl_lock *head, rl_ticket *ticket, redlock_time now_us) {
  redlock_time due_us = head->timer.due_us;
  if (ticket->attempt_due) {
    return;
  }
  if (ticket->polls) {
    redlock_time last_us = ticket->waitlist->attempt_us;
    due_us = rl_time_add(last_us, rl_pause_next(head, rl_wait_state_random(head->core), last_us));
  }
  rl_notify_schedule_at(head, ticket, rl_time_max(due_us, now_us));
}

/* NTF-5. Returns true if |nodes| are a quorum of servers: a twin is the server of another node. */
static bool rl_notify_is_quorum(const rl_core *core, uint32_t nodes) {
  for (unsigned i = 0; i < core->node_count; i++) {
    nodes &= core->nodes[i]->twins != 0 ? ~((uint32_t)1 << i) : ~(uint32_t)0;
  }
  return rl_quorum_count(nodes) >= rl_notify_quorum(core);
}

unsigned rl_notify_slot(const rl_core *core, const rl_waitlist *waitlist) {
  const rl_ticket *ticket = waitlist != NULL ? waitlist->ticket : NULL;
  bool agreed = ticket != NULL && rl_notify_is_quorum(core, ticket->slot_nodes);
  return agreed ? ticket->slot : 0;
}

/* NTF-5. Returns a random time, 50 ms or more after the last attempt. */
static redlock_time rl_notify_time_apart(rl_core *core, const rl_ticket *ticket) {
  redlock_duration range_us = rl_time_max(RL_NOTIFY_APART_US, 4 * rl_pause_reply_time(core));
  redlock_duration apart_us = RL_NOTIFY_APART_US + rl_wait_state_random(core) % (range_us + 1);
  return rl_time_add(ticket->waitlist->attempt_us, apart_us);
}

/*
 * NTF-5. A quorum has notified the head: lets it try now, or sets its timer. If the nodes name
 *        different slots of a semaphore, perhaps no slot is free on a quorum: then the head waits a
 *        random time, which later notifications do not change. If the last votes were split, the
 *        head waits its usual delay.
 */
static void rl_notify_schedule_by_quorum(rl_lock *head, rl_ticket *ticket, redlock_time now_us) {
  bool slots_differ = ticket->permits > 0 && ticket->waitlist->attempt_us != 0 &&
                      rl_notify_slot(head->core, ticket->waitlist) == 0;
  if (slots_differ && ticket->attempt_due) {
    return;
  }
  redlock_time due_us = slots_differ ? rl_notify_time_apart(head->core, ticket) : now_us;
  if (due_us > now_us) {
    rl_notify_schedule_at(head, ticket, due_us);
  } else if (rl_notify_key_may_have_holder(head, ticket)) {
    rl_timers_clear(&head->core->timers, &head->timer);
    rl_outbox_enter(head, now_us);
  } else {
    rl_notify_schedule_after_pause(head, ticket, now_us);
  }
}

/* NTF-5. The first notification has come: sets the timer for a try a little later. */
static void rl_notify_schedule_soon(rl_core *core, rl_lock *head, rl_ticket *ticket,
                                    redlock_time now_us) {
  redlock_duration needs_us = rl_pause_reply_time(core);
  redlock_time due_us = rl_time_add(now_us, rl_time_add(RL_NOTIFY_SLACK_US, needs_us));
  if (!rl_notify_key_may_have_holder(head, ticket)) {
    rl_notify_schedule_after_pause(head, ticket, now_us);
    return;
  }
  if (ticket->waitlist->attempt_us != 0) {
    due_us = rl_time_max(due_us, rl_notify_time_apart(core, ticket));
  }
  rl_notify_schedule_at(head, ticket, due_us);
}

void rl_notify_decide(rl_core *core, rl_ticket *ticket, redlock_time now_us) {
  rl_lock *head = ticket->waitlist->head;
  unsigned needed = rl_notify_quorum(core);
  if (head->phase != RL_PHASE_DELAY) {
    return;
  }
  if (rl_notify_is_quorum(core, ticket->notified)) {
    rl_notify_schedule_by_quorum(head, ticket, now_us); /* NTF-5 */
    return;
  }
  if (ticket->attempt_due) {
    return;
  }
  if (rl_quorum_count(ticket->held | ticket->outranked) >= needed) {
    rl_pause_limit(head, now_us);
    ticket->polls = true;
    rl_timers_set(&core->timers, &head->timer, rl_poll_time_next(core, ticket, now_us));
  } else if (ticket->polls) { /* Too few nodes would notify the head: try after a pause. */
    redlock_duration pause_us = rl_pause_next(head, rl_wait_state_random(core), now_us);
    ticket->polls = false;
    rl_timers_set(&core->timers, &head->timer,
                  rl_time_min(rl_time_add(now_us, pause_us), head->timer.due_us));
  }
}

/* Returns true if |lock| may wait for notifications. */
static bool rl_notify_is_for_lock(const rl_lock *lock) {
  const rl_core *core = lock->core;
  return core->notify != NULL && lock->waitlist != NULL && !core->closed &&
         core->node_count <= RL_NOTIFY_NODES_MAX && lock->current->notify == REDLOCK_YES;
}

void rl_notify_enqueue(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_notify_state *notify = core->notify;
  rl_waitlist *waitlist = lock->waitlist;
  if (waitlist != NULL) {
    waitlist->has_waited = true;
  }
  if (!rl_notify_is_for_lock(lock)) {
    if (waitlist != NULL) {
      rl_notify_give_up(core, waitlist); /* The old head may have had a ticket. */
    }
    return;
  }
  notify->wanted = true;
  notify->used_us = now_us;
  if (waitlist->ticket == NULL) {
    waitlist->ticket = rl_ticket_new(core, waitlist->resource);
    if (waitlist->ticket == NULL) {
      return;
    }
    notify->used_count++;
    waitlist->ticket->waitlist = waitlist;
    waitlist->ticket->permits = (uint16_t)(lock->current->permits > 0 ? lock->current->permits : 0);
  }
  rl_ticket *ticket = waitlist->ticket;
  ticket->polls = ticket->attempt_due = false;
  ticket->held = ticket->outranked = ticket->evicted = ticket->unqueried = ticket->labelled = 0;
  ticket->appends = rl_notify_was_contended(core, waitlist->entry.hash, now_us);
  rl_poll_time_restart(core, ticket, now_us);
  ticket->begun_us = now_us;
  rl_ticket_request_enqueue(notify, ticket, ~(uint32_t)0);
  rl_notify_decide(core, ticket, now_us);
}

void rl_notify_attempt_begins(rl_waitlist *waitlist, redlock_time now_us) {
  waitlist->attempt_us = now_us;
  if (waitlist->ticket != NULL) {
    waitlist->ticket->notified = 0;
    waitlist->ticket->slot = 0;
    waitlist->ticket->slot_nodes = 0;
    waitlist->ticket->attempt_due = waitlist->ticket->polls = false;
  }
}

bool rl_notify_poll_if_due(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_ticket *ticket = lock->waitlist != NULL ? lock->waitlist->ticket : NULL;
  redlock_duration left_us = ticket != NULL ? rl_time_sub(rl_poll_time_last(ticket), now_us) : 0;
  if (left_us == 0 || !ticket->polls) {
    return false; /* The head stops waiting: a last attempt. Or the timer is for an attempt. */
  }
  ticket->polls = false;
  ticket->held = 0;
  rl_poll_time_restart(core, ticket, now_us);
  rl_ticket_request_enqueue(core->notify, ticket, ~(uint32_t)0);
  redlock_duration answers_us = rl_options_node_timeout(lock->current, lock->ttl_us);
  rl_timers_set(&core->timers, &lock->timer, rl_time_add(now_us, rl_time_min(answers_us, left_us)));
  return true;
}

void rl_notify_only_attempt_failed(rl_lock *lock, redlock_time now_us, int error) {
  if (error == REDLOCK_E_TAKEN && rl_notify_is_for_lock(lock)) {
    lock->core->notify->wanted = true;
    lock->core->notify->used_us = now_us;
    rl_notify_note_contention(lock->core, lock->resource, now_us);
  }
}

/* Takes the ticket from the wait list. The ticket is freed after its commands are sent. */
static void rl_notify_detach(rl_notify_state *notify, rl_waitlist *waitlist, redlock_time now_us) {
  rl_ticket *ticket = waitlist->ticket;
  notify->used_count--;
  notify->used_us = rl_time_max(notify->used_us, now_us);
  ticket->to_enqueue = 0;
  ticket->waitlist = NULL;
  waitlist->ticket = NULL;
  rl_ticket_list(notify, ticket);
}

void rl_notify_move_ticket(rl_waitlist *waitlist, rl_attempt *lease, redlock_time now_us) {
  rl_ticket *ticket = waitlist->ticket;
  if (ticket == NULL) {
    return;
  }
  rl_core *core = waitlist->head->core;
  uint32_t standing = ticket->enqueued | ticket->outstanding;
  if (ticket->contended) { /* Only then: a lock without contention must not queue first. */
    rl_notify_note_contention(core, waitlist->resource, now_us);
  }
  if (ticket->permits > 0) { /* Another slot may be free for the next waiter. */
    ticket->to_dequeue = standing;
  } else {
    lease->ticket = ticket->id;
    lease->enqueued = standing & lease->sent;
    ticket->to_dequeue = standing & ~lease->sent;
    ticket->granted = true;
  }
  rl_notify_detach(core->notify, waitlist, now_us);
}

void rl_notify_free_ticket(rl_core *core, const rl_attempt *lease, bool dequeues) {
  rl_ticket *ticket = lease->ticket != 0 ? rl_ticket_find(core->notify, lease->ticket) : NULL;
  if (ticket != NULL && ticket->granted) {
    ticket->granted = false;
    ticket->to_dequeue = dequeues ? lease->enqueued : ticket->to_dequeue;
    rl_ticket_list(core->notify, ticket); /* to be freed */
  }
}

void rl_notify_give_up(rl_core *core, rl_waitlist *waitlist) {
  rl_ticket *ticket = waitlist->ticket;
  if (ticket != NULL) {
    ticket->to_dequeue = ticket->enqueued | ticket->outstanding | ticket->notified;
    rl_notify_detach(core->notify, waitlist, core->now_us);
  }
}

void rl_notify_copy_label(rl_lock *lock) {
  const rl_core *core = lock->core;
  const rl_ticket *ticket = lock->waitlist->ticket;
  bool known =
      ticket != NULL && rl_quorum_count(ticket->labelled) >= rl_quorum_majority(core->node_count);
  if (known && rl_lock_reserve_extension(lock)) {
    lock->extension->holder = ticket->holder;
  }
}

bool rl_notify_quorum_notifies(const rl_core *core, const rl_waitlist *waitlist) {
  const rl_ticket *ticket = waitlist->ticket;
  return ticket != NULL && rl_quorum_count(ticket->held | ticket->outranked | ticket->notified) >=
                               rl_notify_quorum(core);
}

/* ---------------------------------------------------------------------- NTF-2, enqueuing first */

bool rl_notify_enqueue_first(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_waitlist *waitlist = lock->waitlist;
  rl_notify_state *notify = core->notify;
  bool fair = lock->current->fair == REDLOCK_YES;
  if (!rl_notify_is_for_lock(lock) || waitlist->attempt_us != 0 || waitlist->has_waited) {
    return false;
  }
  bool contended = rl_notify_was_contended(core, waitlist->entry.hash, now_us);
  notify->wanted = notify->wanted || fair || contended;
  notify->used_us = fair || contended ? now_us : notify->used_us;
  bool connected = rl_quorum_count(notify->ready) >= rl_notify_quorum(core);
  bool coming = fair && rl_subscribers_are_coming(core, rl_notify_quorum(core));
  if (!(connected || coming) || !(fair || contended)) {
    return false;
  }
  redlock_duration left_us = rl_time_sub(rl_pause_last_attempt_at(lock), now_us);
  if (left_us <= rl_time_add(RL_NOTIFY_SLACK_US, rl_pause_reply_time(core))) {
    return false; /* There is time for one attempt only, and no time to wait in a queue. */
  }
  redlock_duration answers_us = /* until an attempt, if no quorum has reported */
      rl_time_min(left_us, rl_options_node_timeout(lock->current, lock->ttl_us));
  rl_outbox_leave(lock);
  rl_lock_set_phase(lock, RL_PHASE_DELAY);
  rl_timers_set(&core->timers, &lock->timer, rl_time_add(now_us, answers_us));
  rl_notify_enqueue(lock, now_us);
  return true;
}

void rl_notify_node_notified(rl_core *core, rl_ticket *ticket, uint32_t bit, redlock_time now_us,
                             bool soon) {
  rl_lock *head = ticket->waitlist->head;
  ticket->notified |= bit;
  ticket->held &= ~bit;
  ticket->outranked &= ~bit;
  rl_notify_decide(core, ticket, now_us);
  if (soon && head->phase == RL_PHASE_DELAY && !ticket->attempt_due) {
    rl_notify_schedule_soon(core, head, ticket, now_us);
  }
}

/* ----------------------------------------------------------- sending, creating and freeing */

void rl_notify_continue(rl_core *core, redlock_time now_us) {
  if (core->notify != NULL) {
    rl_subscribers_continue(core, now_us);
    rl_tickets_send(core, now_us);
  }
}

bool rl_notify_has_news(const rl_core *core) {
  return core->notify != NULL &&
         (!rl_list_is_empty(&core->notify->queue) || rl_subscribers_have_news(core));
}

int rl_notify_open(rl_core *core) {
  core->notify = calloc(1, sizeof *core->notify);
  if (core->notify == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  rl_list_init(&core->notify->queue);
  return REDLOCK_OK;
}

void rl_notify_reset(rl_core *core) {
  if (core->notify != NULL) {
    rl_tickets_reset(core->notify);
    rl_subscribers_reset(core);
  }
}

void rl_notify_close(rl_core *core) {
  rl_notify_state *notify = core->notify;
  if (notify == NULL) {
    return;
  }
  rl_notify_reset(core);
  rl_tickets_free(notify);
  free(notify);
  core->notify = NULL;
}
