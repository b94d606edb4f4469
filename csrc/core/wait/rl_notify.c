/*
 * Calls: a node tells the first of those who wait for a resource that it is free.
 *
 * SPDX-License-Identifier: MIT
 *
 * Beside a key that clients wait for, each node has a queue of them, which is a string: who came first there is first.
 * A place in it is 24 hexadecimal digits: the client's channel, and which of its places it is. The scripts are in
 * rl_command.c. What they say may be late, wrong or lost: it only shortens delays. Safety rests on the attempts, which
 * are as they were.
 *
 *   C1. An attempt has failed: the front of the line (rl_waitlist.h) asks each node whose calls arrive to let it stand in
 *       the queue. A node where the key is free, and nobody comes before us, says so, and that counts as a call. Where
 *       others have waited lately it only joins them, which costs two commands in place of five: of the key it hears when
 *       it looks, soon if few come before it.
 *   C2. Where others have waited lately, or with |fair|, an acquire asks that first, in place of its first attempt:
 *       it does not overtake them. With |fair| a client that has no listeners yet waits until they are there, but not
 *       for longer than an attempt may take. Else the first attempt is the plain SET, so that a lock that nobody wants costs
 *       nothing more.
 *   C3. A release deletes the key and calls who stands first: a message that nobody receives is told by its result,
 *       and the dead leave the queue so. Who is called stays first until it leaves, so a call may be repeated.
 *   C4. While a majority has said that the key is there, the front only looks again after |poll_interval|, or when the
 *       key has ended on so many nodes that a majority is free; then the first of the queue goes first, the next
 *       fifteen a little later, and nobody else. Looking asks C1 once more: it finds the queue that was lost, calls who
 *       is first when nobody has, and where the key is free twice in a row, and nobody has moved up meanwhile, takes
 *       away who is first and does not come. The further behind somebody stands, the longer that takes: it is left to
 *       those before, until it shows that none of them is there.
 *       Who stands far behind looks less often, so that those who wait are not felt by their number.
 *       Else the front polls, as it would without calls.
 *   C5. It tries when a majority has called; or a little after the first call, when no majority comes. Not more often
 *       than every 50 to 100 ms then, or one node that lost a key would make all who wait try as fast as they can. Nor, by
 *       whatever calls, before the usual delay, if it was not denied by so many that somebody may have the lock: the key
 *       may be free on a majority of which some give nobody a vote. Both are random: the release of each of two clients
 *       that have split the votes calls the other, and they would go on in step until their budgets end.
 *   C6. When it has the lock its place goes with the lease: the release leaves the queue in the same script.
 *   C7. Who gives up leaves all queues, and where the key is free calls the next: the call may have been its own.
 *   C8. A call for a place that there is not any more is answered by leaving it, which calls the next; but of a key of
 *       over 504 bytes not all is known, and the others take it out (C4). Not that of a lease: there a node was late,
 *       and C6 leaves.
 *   C9. A node that refuses is asked for no place for a while (L3 of rl_subscriber.c). But where a key of another type is in
 *       the way of one queue, that says nothing of the others; and that it has no memory, loads or is busy, nothing of
 *       the next time.
 */
#include "wait/rl_notify.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_round.h"
#include "options/rl_backoff.h"
#include "wait/rl_pause.h"
#include "wait/rl_ticket.h"

#define RL_NOTIFY_GRACE_US REDLOCK_MILLISECONDS /* besides what the nodes need to answer (C5) */
#define RL_NOTIFY_HURRY_US                                                                         \
  (50 * REDLOCK_MILLISECONDS) /* between attempts without a majority of calls, at least */
#define RL_NOTIFY_PATIENCE_US                                                                      \
  (100 * REDLOCK_MILLISECONDS) /* for who is called and comes first (C4) */
#define RL_NOTIFY_LEARN_US                                                                         \
  (50 * REDLOCK_MILLISECONDS)                        /* for who has joined, and comes first (C1) */
#define RL_NOTIFY_STEP_US (2 * REDLOCK_MILLISECONDS) /* between those who see a key end */
#define RL_NOTIFY_STEPS_MAX 15
#define RL_NOTIFY_ROW                                                                              \
  8 /* so many look after |poll_interval|, the next so many after twice that, ... */
#define RL_NOTIFY_ROWS_MAX 8
#define RL_NOTIFY_SLOW_MAX_US                                                                      \
  (40 * REDLOCK_SECONDS) /* a queue lives for 60 s after the last look */
#define RL_NOTIFY_POLITE_US REDLOCK_SECONDS
#define RL_NOTIFY_PAYLOAD 8 /* digits of a place's id; the key stands behind them */

/* ------------------------------------------------------------------------- C2, whether others wait */

static unsigned rl_notify_polite_at(uint64_t hash) {
  return (unsigned)(hash >> 7) % RL_NOTIFY_POLITE;
}

void rl_notify_others_wait(rl_core *core, const rl_resource *resource, redlock_time now_us) {
  if (core->calls != NULL && core->lines->seed != 0 && resource->count == 1) {
    uint64_t hash = rl_waits_hash(core, resource);
    unsigned at = rl_notify_polite_at(hash);
    core->calls->polite[at].hash = (uint32_t)(hash >> 32);
    core->calls->polite[at].until_us = rl_time_add(now_us, RL_NOTIFY_POLITE_US);
  }
}

static bool rl_notify_is_polite(const rl_core *core, const rl_waitlist *line, redlock_time now_us) {
  unsigned at = rl_notify_polite_at(line->hash);
  return core->calls->polite[at].hash == (uint32_t)(line->hash >> 32) &&
         core->calls->polite[at].until_us > now_us;
}

/* ----------------------------------------------------------------------------- when to go on */

static unsigned rl_notify_needed(const rl_core *core) {
  return rl_core_quorum(core, RL_OPERATION_ACQUIRE);
}

/* When the key has ended on so many of the nodes that hold it that it is free on a majority; C4. */
static redlock_time rl_notify_end(const rl_core *core, const rl_ticket *place) {
  redlock_time ends_us[RL_NOTIFY_NODES_MAX] = {0};
  unsigned count = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((place->held >> i & 1) != 0) {
      unsigned at = count++;
      for (; at > 0 && ends_us[at - 1] > place->at[i].ends_us; at--) {
        ends_us[at] = ends_us[at - 1];
      }
      ends_us[at] = place->at[i].ends_us;
    }
  }
  unsigned needed = rl_notify_needed(core), is_free = rl_quorum_count(place->called);
  return is_free >= needed || is_free + count < needed ? REDLOCK_NEVER
                                                       : ends_us[needed - is_free - 1];
}

/* How many come first, where it is the fewest. */
static unsigned rl_notify_before(const rl_core *core, const rl_ticket *place) {
  unsigned before = RL_COMMAND_QUEUE_MAX;
  for (unsigned i = 0; i < core->node_count; i++) {
    bool told = ((place->held | place->behind) >> i & 1) != 0;
    if (told && place->at[i].position <= before) {
      before = place->at[i].position - 1;
    }
  }
  return before;
}

/*
 * C4. Until when the front waits: until its last attempt, which finds a key that was released without a
 * notification. A front that waits for longer than |poll_interval| finds it by looking, and makes none.
 */
static redlock_time rl_notify_last(const rl_ticket *place) {
  const rl_lock *front = place->line->front;
  redlock_duration slow_us = front->current->poll_interval_us;
  bool looks = rl_time_sub(front->budget_us, place->begun_us) > rl_time_add(slow_us, slow_us / 4);
  return looks ? front->budget_us : rl_pause_last(front);
}

/*
 * C4. When to look again, or to stop waiting. What nodes say later does not put off what is due by |poll_interval|.
 */
static redlock_time rl_notify_look_at(rl_core *core, const rl_ticket *place, redlock_time now_us) {
  const rl_lock *front = place->line->front;
  unsigned before = rl_notify_before(core, place);
  unsigned rows =
      before / RL_NOTIFY_ROW < RL_NOTIFY_ROWS_MAX ? before / RL_NOTIFY_ROW : RL_NOTIFY_ROWS_MAX;
  redlock_duration slow_us = rl_time_min(front->current->poll_interval_us, RL_NOTIFY_SLOW_MAX_US);
  slow_us = rl_time_min(slow_us * (1 + rows), RL_NOTIFY_SLOW_MAX_US);
  redlock_duration needs_us = rl_pause_needs(core);
  redlock_time due_us =
      rl_time_add(place->since_us, slow_us - slow_us / 8 + place->random % (slow_us / 4 + 1));
  redlock_time end_us = rl_notify_end(core, place);
  due_us = rl_time_max(due_us, now_us);
  if (place->unsure != 0) {
    redlock_duration learn_us =
        rl_time_min(rl_time_add(RL_NOTIFY_LEARN_US, 2 * needs_us), front->ttl_us / 4);
    due_us =
        rl_time_min(due_us, rl_time_add(place->since_us, (before > 0 ? before : 1) * learn_us));
    due_us = rl_time_max(due_us, now_us);
  }
  if (place->behind != 0) {
    unsigned turns = before > 0 && place->alone == 0 ? before : 1;
    due_us = rl_time_min(
        due_us, rl_time_add(now_us, turns * rl_time_max(RL_NOTIFY_PATIENCE_US, 2 * needs_us)));
  }
  if (end_us != REDLOCK_NEVER && before <= RL_NOTIFY_STEPS_MAX) {
    end_us =
        rl_time_add(rl_time_max(end_us, now_us), REDLOCK_MILLISECONDS + before * RL_NOTIFY_STEP_US);
    due_us = rl_time_min(due_us, end_us);
  }
  return rl_time_min(due_us, rl_notify_last(place));
}

/* The slow retry is counted from now on. */
static void rl_notify_slow_down(rl_core *core, rl_ticket *place, redlock_time now_us) {
  place->since_us = now_us;
  place->random = rl_waits_random(core);
}

/* C5. Whether the last attempt was denied by so many that somebody may have the lock; or there was none. */
static bool rl_notify_was_denied(const rl_lock *front, const rl_ticket *place) {
  return place->line->last_us == 0 ||
         rl_quorum_denied(front->quorum.nodes, front->quorum.denied, rl_notify_needed(front->core));
}

/* C5. The front tries at |due_us|, or before, if it was to; not because of what else is called. */
static void rl_notify_hurry(rl_lock *front, rl_ticket *place, redlock_time due_us) {
  place->hurried = true;
  place->looks = false;
  rl_timers_set(&front->core->timers, &front->timer, rl_time_min(front->timer.due_us, due_us));
}

/* C5. The usual delay: the one it waits for anyway, or another, from the attempt that has failed on. */
static void rl_notify_keep_pace(rl_lock *front, rl_ticket *place, redlock_time now_us) {
  redlock_time due_us = front->timer.due_us;
  if (place->hurried) {
    return;
  }
  if (place->looks) {
    redlock_time last_us = place->line->last_us;
    due_us = rl_time_add(last_us, rl_pause_next(front, rl_waits_random(front->core), last_us));
  }
  rl_notify_hurry(front, place, rl_time_max(due_us, now_us));
}

/* C5. A majority has called. */
static void rl_notify_go(rl_lock *front, rl_ticket *place, redlock_time now_us) {
  if (rl_notify_was_denied(front, place)) {
    rl_timers_clear(&front->core->timers, &front->timer);
    rl_outbox_enter(front, now_us);
  } else {
    rl_notify_keep_pace(front, place, now_us);
  }
}

/* C5. The first call has come. */
static void rl_notify_begins(rl_core *core, rl_lock *front, rl_ticket *place, redlock_time now_us) {
  redlock_duration needs_us = rl_pause_needs(core);
  redlock_duration range_us = rl_time_max(RL_NOTIFY_HURRY_US, 4 * needs_us);
  redlock_time due_us = rl_time_add(now_us, rl_time_add(RL_NOTIFY_GRACE_US, needs_us));
  if (!rl_notify_was_denied(front, place)) {
    rl_notify_keep_pace(front, place, now_us);
    return;
  }
  if (place->line->last_us != 0) {
    redlock_duration apart_us = RL_NOTIFY_HURRY_US + rl_waits_random(core) % (range_us + 1);
    due_us = rl_time_max(due_us, rl_time_add(place->line->last_us, apart_us));
  }
  rl_notify_hurry(front, place, due_us);
}

/* What the nodes have said so far decides when the front goes on. */
static void rl_notify_weigh(rl_core *core, rl_ticket *place, redlock_time now_us) {
  rl_lock *front = place->line->front;
  unsigned needed = rl_notify_needed(core);
  if (front->phase != RL_PHASE_DELAY) {
    return;
  }
  if (rl_quorum_count(place->called) >= needed) {
    rl_notify_go(front, place, now_us); /* C5 */
    return;
  }
  if (place->hurried) {
    return;
  }
  if (rl_quorum_count(place->held | place->behind) >= needed) {
    rl_pause_limit(front, now_us);
    place->looks = true;
    rl_timers_set(&core->timers, &front->timer, rl_notify_look_at(core, place, now_us));
  } else if (place->looks) { /* Nodes that would have called are gone: it polls. */
    redlock_duration pause_us = rl_pause_next(front, rl_waits_random(core), now_us);
    place->looks = false;
    rl_timers_set(&core->timers, &front->timer,
                  rl_time_min(rl_time_add(now_us, pause_us), front->timer.due_us));
  }
}

/* Returns true if |lock| may wait for calls at all. */
static bool rl_notify_is_for_lock(const rl_lock *lock) {
  const rl_core *core = lock->core;
  return core->calls != NULL && lock->line != NULL && !core->closed &&
         core->node_count <= RL_NOTIFY_NODES_MAX && lock->current->notify == REDLOCK_YES;
}

void rl_notify_wait(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_notifications *calls = core->calls;
  rl_waitlist *line = lock->line;
  if (line != NULL) {
    line->has_waited = true;
  }
  if (!rl_notify_is_for_lock(lock)) {
    if (line != NULL) {
      rl_notify_give_up(core, line); /* Who was the front before may have had a place. */
    }
    return;
  }
  calls->wanted = true;
  calls->used_us = now_us;
  if (line->place == NULL) {
    line->place = rl_ticket_new(core);
    if (line->place == NULL) {
      return;
    }
    calls->used_count++;
    line->place->line = line;
    line->place->resource = line->resource;
    line->place->contended = false;
    line->resource->references++;
  }
  rl_ticket *place = line->place;
  place->looks = place->hurried = false;
  place->held = place->behind = place->alone = place->unsure = 0;
  place->joins = rl_notify_is_polite(core, line, now_us);
  rl_notify_slow_down(core, place, now_us);
  place->begun_us = now_us;
  rl_ticket_ask(calls, place, ~(uint32_t)0);
  rl_notify_weigh(core, place, now_us);
}

void rl_notify_attempt(rl_waitlist *line, redlock_time now_us) {
  line->last_us = now_us;
  if (line->place != NULL) {
    line->place->called = 0;
    line->place->hurried = line->place->looks = false;
  }
}

bool rl_notify_timer(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_ticket *place = lock->line != NULL ? lock->line->place : NULL;
  redlock_duration left_us = place != NULL ? rl_time_sub(rl_notify_last(place), now_us) : 0;
  if (left_us == 0 || !place->looks) {
    return false;
  }
  place->looks = false;
  place->held = 0;
  rl_notify_slow_down(core, place, now_us);
  rl_ticket_ask(core->calls, place, ~(uint32_t)0);
  redlock_duration answers_us = rl_options_node_timeout(lock->current, lock->ttl_us);
  rl_timers_set(&core->timers, &lock->timer, rl_time_add(now_us, rl_time_min(answers_us, left_us)));
  return true;
}

/* Nobody waits in the place of |line| any more. What is to be left is sent, and then it goes. */
static void rl_notify_part(rl_notifications *calls, rl_waitlist *line, redlock_time now_us) {
  rl_ticket *place = line->place;
  calls->used_count--;
  calls->used_us = rl_time_max(calls->used_us, now_us);
  place->wanted = 0;
  place->line = NULL;
  line->place = NULL;
  rl_ticket_list(calls, place);
}

void rl_notify_granted(rl_waitlist *line, rl_attempt *lease, redlock_time now_us) {
  rl_ticket *place = line->place;
  if (place == NULL) {
    return;
  }
  rl_core *core = line->front->core;
  uint32_t standing = place->standing | place->asked;
  if (place->contended) { /* Or a client that once waited would queue before each acquire. */
    rl_notify_others_wait(core, line->resource, now_us);
  }
  lease->place = place->id;
  lease->standing = standing & lease->sent;
  place->leaving = standing & ~lease->sent;
  place->granted = true;
  rl_notify_part(core->calls, line, now_us);
}

void rl_notify_released(rl_core *core, const rl_attempt *lease, bool leaves) {
  rl_ticket *place =
      core->calls != NULL && lease->place != 0 ? rl_ticket_at(core->calls, lease->place) : NULL;
  if (place != NULL && place->granted) {
    place->granted = false;
    place->leaving = leaves ? lease->standing : place->leaving;
    rl_ticket_list(core->calls, place); /* It goes. */
  }
}

void rl_notify_give_up(rl_core *core, rl_waitlist *line) {
  rl_ticket *place = line->place;
  if (place != NULL) {
    place->leaving = place->standing | place->asked | place->called;
    rl_notify_part(core->calls, line, core->now_us);
  }
}

bool rl_notify_is_awaited(const rl_core *core, const rl_waitlist *line) {
  const rl_ticket *place = line->place;
  return place != NULL &&
         rl_quorum_count(place->held | place->behind | place->called) >= rl_notify_needed(core);
}

/* ------------------------------------------------------------------------------------- C2 */

bool rl_notify_waits_first(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_waitlist *line = lock->line;
  rl_notifications *calls = core->calls;
  bool fair = lock->current->fair == REDLOCK_YES;
  if (!rl_notify_is_for_lock(lock) || line->last_us != 0 || line->has_waited) {
    return false;
  }
  calls->wanted = calls->wanted || fair;
  calls->used_us = fair ? now_us : calls->used_us;
  bool calling = rl_quorum_count(calls->ready) >= rl_notify_needed(core);
  if (fair ? !calling && !rl_subscribers_are_coming(core, rl_notify_needed(core))
           : !calling || !rl_notify_is_polite(core, line, now_us)) {
    return false;
  }
  redlock_duration left_us = rl_time_sub(rl_pause_last(lock), now_us);
  if (left_us <= rl_time_add(RL_NOTIFY_GRACE_US, rl_pause_needs(core))) {
    return false; /* There is time for one attempt. */
  }
  redlock_duration answers_us = /* If no majority tells. */
      rl_time_min(left_us, rl_options_node_timeout(lock->current, lock->ttl_us));
  rl_outbox_leave(lock);
  lock->phase = RL_PHASE_DELAY;
  rl_timers_set(&core->timers, &lock->timer, rl_time_add(now_us, answers_us));
  rl_notify_wait(lock, now_us);
  return true;
}

/* ------------------------------------------------------------------------------------ answers */

bool rl_notify_is_for(const rl_outstanding *owed) {
  return owed->kind == RL_OUTSTANDING_STAND || owed->kind == RL_OUTSTANDING_LEAVE ||
         owed->kind == RL_OUTSTANDING_PROBE;
}

/*
 * The queues of a majority say that the key is taken: a front that has made no attempt (C2), or has looked since its
 * attempt failed for another reason, has that from them. Before it looks they may speak of its own key, whose release is
 * on the way.
 */
static void rl_notify_quote(rl_lock *front, const rl_ticket *place) {
  bool looked = front->result == REDLOCK_PENDING || place->since_us != place->begun_us;
  if (front->phase != RL_PHASE_DELAY || front->result == REDLOCK_E_TAKEN || !looked ||
      rl_quorum_count(place->held) < rl_notify_needed(front->core)) {
    return;
  }
  rl_round_clear(front);
  for (unsigned i = 0; i < front->core->node_count; i++) {
    if ((place->held >> i & 1) != 0) {
      rl_round_settle(front, i, REDLOCK_VOTE_TAKEN, NULL, REDLOCK_NEVER);
    }
  }
  front->result = REDLOCK_E_TAKEN;
}

/* C1: what the script has answered; rl_command.h. */
static void rl_notify_stands(rl_core *core, rl_ticket *place, unsigned node, redlock_time now_us,
                             long long answer) {
  uint32_t bit = (uint32_t)1 << node;
  uint64_t left_ms = (uint64_t)answer / RL_COMMAND_STAND_UNIT;
  uint32_t position = (uint32_t)((uint64_t)answer % RL_COMMAND_STAND_UNIT);
  bool took_out = (place->behind & bit) != 0 && left_ms == 0 && position > 0 &&
                  position + 1 == place->at[node].position;
  place->alone = took_out ? place->alone | bit : place->alone & ~bit;
  place->held &= ~bit;
  place->behind &= ~bit;
  if (left_ms != 1 || position < 2) {
    place->unsure &= ~bit; /* It was the only one: the node has told all. */
  }
  if (answer == 0) {
    place->called |= bit;
    rl_notify_weigh(core, place, now_us);
    return;
  }
  place->contended = true;
  place->called &= ~bit;
  place->standing = position > 0 ? place->standing | bit : place->standing & ~bit;
  if (position > 0 && (core->calls->ready & bit) != 0) { /* Or it will not call. */
    place->at[node].position = position;
    *(left_ms > 0 ? &place->held : &place->behind) |= bit;
    place->at[node].ends_us =
        left_ms > 1 ? rl_time_add(now_us, (left_ms - 1) * REDLOCK_MILLISECONDS) : REDLOCK_NEVER;
    if (left_ms > 0) {
      rl_notify_quote(place->line->front, place);
    }
  }
  rl_notify_weigh(core, place, now_us);
}

/*
 * Returns true if a LEAVE was refused for its command: a waiter that may come and not leave would
 * keep others waiting. Such an error names the command, but in Redis 6 and 7.0, and where the
 * command was renamed. A LEAVE that was refused for its key says nothing of the node: it may answer
 * a forged message (C8).
 */
static bool rl_notify_is_forbidden(const rl_reply *reply) {
  return reply->type == RL_REPLY_ERROR &&
         (rl_reply_names_command(reply->text) ||
          strstr(reply->text, "executing the script can't run") != NULL ||
          strstr(reply->text, "t run this command") != NULL ||
          strstr(reply->text, "nknown ") != NULL);
}

/* C9. Before Redis 7 these words stand inside the text. */
static const char *const rl_notify_passing[] = {"WRONGTYPE",   "OOM ",  "LOADING ",    "MISCONF ",
                                                "NOREPLICAS ", "BUSY ", "MASTERDOWN ", "READONLY "};

/* C9. Whether only this STAND was refused. Who waits there polls; where |place| has stood before it still may. */
static bool rl_notify_is_passing(rl_core *core, const rl_node *node, redlock_time now_us,
                                 rl_ticket *place) {
  const rl_reply *reply = &node->link.reader.reply;
  uint32_t bit = rl_node_bit(node);
  bool passes = false;
  for (size_t i = 0; i < sizeof rl_notify_passing / sizeof rl_notify_passing[0]; i++) {
    passes = passes || (reply->type == RL_REPLY_ERROR && strstr(reply->text, rl_notify_passing[i]));
  }
  if (!passes) {
    return false;
  }
  if (place != NULL) {
    place->held &= ~bit;
    place->behind &= ~bit;
    rl_notify_weigh(core, place, now_us);
  }
  return true;
}

void rl_notify_answered(rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *owed) {
  const rl_reply *reply = &node->link.reader.reply;
  rl_ticket *place = rl_ticket_waiting(core->calls, owed->round);
  bool waits = owed->kind == RL_OUTSTANDING_STAND && place != NULL;
  if (owed->kind == RL_OUTSTANDING_PROBE) {
    rl_notify_changed(core, rl_subscriber_probed(core, node, now_us), now_us);
    return;
  }
  if (waits) {
    place->asked &= ~rl_node_bit(node);
  }
  if (reply->type == RL_REPLY_INTEGER && reply->integer >= 0) {
    node->link.knows[owed->script] = true;
    if (waits) {
      rl_notify_stands(core, place, node->index, now_us, reply->integer);
    }
    return;
  }
  bool unknown = reply->type == RL_REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0;
  if (unknown && !owed->by_text) {
    node->link.knows[owed->script] = false;
    if (waits) {
      rl_ticket_ask(core->calls, place, rl_node_bit(node));
    }
    return;
  }
  bool refused =
      owed->kind == RL_OUTSTANDING_STAND && !rl_notify_is_passing(core, node, now_us, place);
  if (refused || rl_notify_is_forbidden(reply)) {
    const char *reason = reply->type == RL_REPLY_ERROR
                             ? rl_link_said(&node->link)
                             : "the queue's script is not answered as ours";
    rl_notify_changed(core, rl_subscriber_refuse(core, node, now_us, reason), now_us);
  }
}

void rl_notify_unanswered(rl_core *core, const rl_node *node, const rl_outstanding *owed) {
  rl_ticket *place = rl_ticket_waiting(core->calls, owed->round);
  if (owed->kind == RL_OUTSTANDING_STAND && place != NULL) {
    place->asked &= ~rl_node_bit(node);
    place->standing |= rl_node_bit(node); /* It may. */
  }
}

/* ----------------------------------------------------------------------------------- messages */

/* The id at the beginning of a message; false if there is none. */
static bool rl_notify_read_id(const rl_reply *reply, uint32_t *id) {
  *id = 0;
  for (unsigned i = 0; i < RL_NOTIFY_PAYLOAD; i++) {
    char digit = i < reply->length ? reply->bytes[i] : '\0';
    if (digit >= '0' && digit <= '9') {
      *id = *id << 4 | (uint32_t)(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      *id = *id << 4 | (uint32_t)(digit - 'a' + 10);
    } else {
      return false;
    }
  }
  return true;
}

/* C8 */
static void rl_notify_decline(rl_core *core, rl_node *node, redlock_time now_us, uint32_t id,
                              const char *key, size_t length) {
  char entry[RL_LINK_ENTRY_SIZE];
  rl_link_entry(core->calls->channel, id, entry);
  bool told = length > 0 && length <= RL_REPLY_BYTES_MAX - RL_NOTIFY_PAYLOAD; /* the whole key */
  if (told && rl_link_has_room(&node->link, RL_OUTSTANDING_LEAVE)) {
    (void)rl_link_queue_leave(&node->link, now_us, id, key, length, entry);
  }
}

void rl_notify_message(rl_core *core, unsigned node, redlock_time now_us, const rl_reply *reply) {
  uint32_t id;
  uint32_t bit = (uint32_t)1 << node;
  if (!rl_notify_read_id(reply, &id)) {
    return; /* The probe. */
  }
  rl_ticket *place = rl_ticket_at(core->calls, id);
  if (place != NULL && place->granted) {
    return; /* The node is late: its release was that which has freed the lock for us. */
  }
  if (place == NULL || place->line == NULL) {
    rl_notify_decline(core, core->nodes[node], now_us, id, reply->bytes + RL_NOTIFY_PAYLOAD,
                      reply->length - RL_NOTIFY_PAYLOAD);
    return;
  }
  place->called |= bit;
  place->held &= ~bit;
  place->behind &= ~bit;
  rl_lock *front = place->line->front;
  rl_notify_weigh(core, place, now_us);
  if (front->phase == RL_PHASE_DELAY && !place->hurried) {
    rl_notify_begins(core, front, place, now_us);
  }
}

/* ---------------------------------------------------------------------------------- nodes */

/* Of all places what a node has said counts no more. */
static void rl_notify_discount(rl_core *core, uint32_t bit, bool stays, redlock_time now_us) {
  rl_notifications *calls = core->calls;
  for (uint32_t i = 0; i < calls->place_count; i++) {
    rl_ticket *place = calls->places[i];
    place->wanted &= ~bit;
    place->leaving &= stays ? ~(uint32_t)0 : ~bit;
    place->held &= ~bit;
    place->behind &= ~bit;
    place->unsure &= ~bit;
    place->called &= stays ? ~(uint32_t)0 : ~bit;
    if (place->line != NULL) {
      rl_notify_weigh(core, place, now_us);
    }
  }
}

void rl_notify_node_down(rl_core *core, const rl_node *node, redlock_time now_us) {
  rl_notify_changed(core, rl_subscriber_node_down(core, node), now_us);
  rl_notify_discount(core, rl_node_bit(node), false, now_us);
}

void rl_notify_changed(rl_core *core, rl_subscriber_change change, redlock_time now_us) {
  if (change.lost != 0) {
    rl_notify_discount(core, change.lost, true, now_us);
  }
  for (uint32_t i = 0; change.ready != 0 && i < core->calls->place_count; i++) {
    if (core->calls->places[i]->line != NULL) {
      rl_ticket_ask(core->calls, core->calls->places[i], change.ready);
    }
  }
}

/* --------------------------------------------------------------------------------- sending */

void rl_notify_continue(rl_core *core, redlock_time now_us) {
  if (core->calls != NULL) {
    rl_subscribers_continue(core, now_us);
    rl_tickets_send(core, now_us);
  }
}

bool rl_notify_has_news(const rl_core *core) {
  return core->calls != NULL && (core->calls->first != NULL || rl_subscribers_have_news(core));
}

/* ------------------------------------------------------------------------------------- its life */

int rl_notify_open(rl_core *core) {
  core->calls = calloc(1, sizeof *core->calls);
  return core->calls != NULL ? REDLOCK_OK : REDLOCK_E_NO_MEMORY;
}

void rl_notify_forget(rl_core *core) {
  rl_notifications *calls = core->calls;
  if (calls == NULL) {
    return;
  }
  rl_tickets_forget(calls);
  rl_subscribers_forget(core);
}

void rl_notify_close(rl_core *core) {
  rl_notifications *calls = core->calls;
  if (calls == NULL) {
    return;
  }
  rl_notify_forget(core);
  rl_subscribers_free(core);
  rl_tickets_free(calls);
  free(calls);
  core->calls = NULL;
}
