/*
 * A line: the locks of one client that wait for the same resource. Only the first of them talks to the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 *   W1. The first attempt of an acquire that may make more finds the line of its resource, or begins one. Behind
 *       another it is parked: nothing of it is sent. Try-once locks, those of several resources, those with an
 *       owner (who may hold it already, by another lock) and those with a token of their own stand in no line.
 *       All of one line wait alike, for what the first does is done for all: how often it looks, whether it is called,
 *       how long an attempt may take, and what it asks for. Who says it otherwise would wait as somebody else likes to, or
 *       for what fails for a reason of another's own; that is another line of the same resource. But there are no more
 *       than sixteen: who comes then stands in none, and polls.
 *   W2. A queued waiter keeps the budget with which it came. Its retry_count limits its time, too, to as many
 *       pauses (rl_pause_limit()).
 *   W3. When the first has ended, whatever with, the next one is the first. If the lock was granted it is known to be
 *       taken, and the next one begins by waiting (rl_notify.h), else it takes the place of the one before.
 *   W4. Without calls the next one would not hear of a release of this very client before its delay is over. So it
 *       tries behind the release, at once; but not for longer than a few delays in a row, or other clients would
 *       never have their turn.
 */
#include "wait/rl_waitlist.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_ring.h"
#include "lock/rl_round.h"
#include "options/rl_backoff.h"
#include "wait/rl_notify.h"
#include "wait/rl_pause.h"

#define RL_WAITLIST_BUCKETS_MIN 16
#define RL_WAITLIST_KINDS_MAX 16 /* lines of one resource (W1) */
#define RL_WAITLIST_OURS                                                                           \
  5 /* delays for which the client keeps a resource to itself, where nobody calls (W4) */

/* ------------------------------------------------------------------------------- finding one */

static rl_waitlist **rl_waitlist_bucket(const rl_core *core, uint64_t hash) {
  return &core->lines->buckets[(hash ^ hash >> 32) & (core->lines->bucket_count - 1)];
}

/* The first line of the resource from |line| on, in its bucket; or NULL. */
static rl_waitlist *rl_waitlist_from(rl_waitlist *line, const rl_resource *resource,
                                     uint64_t hash) {
  while (line != NULL &&
         !(line->hash == hash && line->resource->key_length == resource->key_length &&
           memcmp(line->resource->key, resource->key, resource->key_length) == 0)) {
    line = line->next;
  }
  return line;
}

static rl_waitlist *rl_waitlist_look(const rl_core *core, const rl_resource *resource,
                                     uint64_t hash) {
  return core->lines->count == 0
             ? NULL
             : rl_waitlist_from(*rl_waitlist_bucket(core, hash), resource, hash);
}

static rl_waitlist *rl_waitlist_another(const rl_waitlist *line) {
  return rl_waitlist_from(line->next, line->resource, line->hash);
}

rl_waitlist *rl_waitlist_find(const rl_core *core, const rl_resource *resource) {
  return core->lines->count == 0 || resource->count > 1
             ? NULL
             : rl_waitlist_look(core, resource, rl_waits_hash(core, resource));
}

static bool rl_waitlist_reserve(rl_core *core) {
  rl_waitlists *lines = core->lines;
  size_t count = lines->bucket_count == 0 ? RL_WAITLIST_BUCKETS_MIN : lines->bucket_count * 2;
  if (lines->count < lines->bucket_count) {
    return true;
  }
  rl_waitlist **buckets = calloc(count, sizeof(rl_waitlist *));
  if (buckets == NULL) {
    return lines->bucket_count > 0; /* It takes longer, no more. */
  }
  rl_waitlist **old = lines->buckets;
  size_t old_count = lines->bucket_count;
  lines->buckets = buckets;
  lines->bucket_count = count;
  for (size_t i = 0; i < old_count; i++) {
    rl_waitlist *next;
    for (rl_waitlist *line = old[i]; line != NULL; line = next) {
      next = line->next;
      rl_waitlist **bucket = rl_waitlist_bucket(core, line->hash);
      line->next = *bucket;
      *bucket = line;
    }
  }
  free(old);
  return true;
}

/* NULL when out of memory: the lock then goes without. */
static rl_waitlist *rl_waitlist_new(rl_core *core, rl_lock *front, uint64_t hash) {
  rl_waitlists *lines = core->lines;
  rl_waitlist *line = lines->free;
  if (!rl_waitlist_reserve(core)) {
    return NULL;
  }
  if (line != NULL) {
    lines->free = line->next;
  } else if ((line = malloc(sizeof *line)) == NULL) {
    return NULL;
  }
  memset(line, 0, sizeof *line);
  line->resource = front->resource;
  line->resource->references++;
  line->hash = hash;
  line->front = front;
  rl_list_init(&line->behind);
  rl_waitlist **bucket = rl_waitlist_bucket(core, hash);
  line->next = *bucket;
  *bucket = line;
  lines->count++;
  return line;
}

static void rl_waitlist_end(rl_core *core, rl_waitlist *line) {
  rl_waitlist **at = rl_waitlist_bucket(core, line->hash);
  while (*at != line) {
    at = &(*at)->next;
  }
  *at = line->next;
  core->lines->count--;
  rl_resource_unref(line->resource);
  line->next = core->lines->free;
  core->lines->free = line;
}

void rl_waitlists_free(rl_core *core) {
  rl_waitlists *lines = core->lines;
  assert(lines->count == 0);
  while (lines->free != NULL) {
    rl_waitlist *line = lines->free;
    lines->free = line->next;
    free(line);
  }
  free(lines->buckets);
  memset(lines, 0, sizeof *lines);
}

/* ------------------------------------------------------------------------------------- W1, W2 */

static bool rl_waitlist_is_for(const rl_lock *lock) {
  return lock->result == REDLOCK_PENDING && lock->attempts_left > 1 && lock->attempt == NULL &&
         lock->resource->count == 1 && rl_lock_attach(lock) == NULL && !rl_ring_is_owned(lock);
}

/* W1. What the front of a line decides for those behind it. */
static bool rl_waitlist_waits_alike(const rl_lock *lock, const rl_lock *front) {
  const rl_options *ours = lock->current;
  const rl_options *theirs = front->current;
  return ours->retry_delay_us == theirs->retry_delay_us &&
         ours->retry_jitter_us == theirs->retry_jitter_us &&
         ours->poll_interval_us == theirs->poll_interval_us && ours->notify == theirs->notify &&
         ours->fence == theirs->fence && !(ours->drift_factor < theirs->drift_factor) &&
         !(ours->drift_factor > theirs->drift_factor) &&
         rl_options_node_timeout(ours, lock->ttl_us) ==
             rl_options_node_timeout(theirs, front->ttl_us);
}

static void rl_waitlist_park(rl_lock *lock, rl_waitlist *line, redlock_time now_us) {
  rl_outbox_leave(lock);
  lock->phase = RL_PHASE_QUEUED;
  lock->line = line;
  rl_list_append(&line->behind, &lock->queue);
  rl_pause_limit(lock, now_us);
  lock->core->lines->parked++;
  rl_timers_set(&lock->core->timers, &lock->timer, lock->budget_us);
}

bool rl_waitlist_enter(rl_lock *lock, redlock_time now_us, const unsigned char *entropy) {
  rl_core *core = lock->core;
  if (lock->line != NULL || !rl_waitlist_is_for(lock)) {
    return false;
  }
  if (core->lines->seed == 0) {
    memcpy(&core->lines->seed, entropy, sizeof core->lines->seed);
    core->lines->seed |= 1;
    core->lines->random = core->lines->seed;
  }
  uint64_t hash = rl_waits_hash(core, lock->resource);
  rl_waitlist *line = rl_waitlist_look(core, lock->resource, hash);
  unsigned kinds = 0;
  for (; line != NULL && !rl_waitlist_waits_alike(lock, line->front); kinds++) {
    line = rl_waitlist_another(line);
  }
  if (line != NULL) {
    rl_waitlist_park(lock, line, now_us);
    return true;
  }
  lock->line = kinds < RL_WAITLIST_KINDS_MAX ? rl_waitlist_new(core, lock, hash) : NULL;
  return false;
}

/* -------------------------------------------------------------------------------------- W3 */

static void rl_waitlist_settle_all(rl_lock *lock, redlock_vote vote, const char *reason) {
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_round_settle(lock, i, vote, reason, REDLOCK_NEVER);
  }
}

/*
 * It has not asked the nodes itself: it tells what the first has heard. In the middle of an attempt that is not all, and
 * what has failed says so.
 */
static void rl_waitlist_quote(rl_lock *lock, const rl_lock *front, int result) {
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    const rl_vote *vote = &front->votes[i];
    if (vote->settled) {
      rl_round_settle(lock, i, (redlock_vote)vote->vote, rl_reasons_text(front->reasons, i),
                      REDLOCK_NEVER);
    }
  }
  if (result != REDLOCK_E_TAKEN ||
      !rl_quorum_denied(lock->quorum.nodes, lock->quorum.denied,
                        rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE))) {
    rl_waitlist_settle_all(lock, REDLOCK_VOTE_UNKNOWN, "the time was up before it was asked");
  }
}

void rl_waitlist_give_up(rl_lock *lock, redlock_time now_us) {
  const rl_waitlist *line = lock->line;
  const rl_lock *front = line->front;
  int result = front->result != REDLOCK_PENDING ? front->result : REDLOCK_E_UNAVAILABLE;
  bool hears = rl_pause_hears(front, now_us);
  if (line->ours_us != 0 && hears) {
    result = REDLOCK_E_TAKEN;
    rl_waitlist_settle_all(lock, REDLOCK_VOTE_TAKEN, NULL);
  } else {
    result = result == REDLOCK_E_TAKEN && !hears ? REDLOCK_E_UNAVAILABLE : result;
    rl_waitlist_quote(lock, front, result);
  }
  rl_lock_end(lock, now_us, result);
}

/*
 * Picks the waiter to promote. Skips waiters that have no time left for an attempt, unless all are: of many that
 * came together, with the same budget, each would make a last attempt.
 */
static rl_lock *rl_waitlist_next(const rl_waitlist *line, redlock_time now_us) {
  rl_lock *next = rl_lock_queue_first(&line->behind);
  while (next != NULL && rl_pause_next(next, 0, now_us) == REDLOCK_NEVER) {
    next = rl_lock_queue_next(&line->behind, next);
  }
  return next != NULL ? next : rl_lock_queue_first(&line->behind);
}

/* The next one is the first. */
static void rl_waitlist_promote(rl_waitlist *line, redlock_time now_us, bool granted) {
  rl_lock *next = rl_waitlist_next(line, now_us);
  rl_core *core = next->core;
  const rl_lock *before = line->front;
  rl_list_remove(&next->queue);
  core->lines->parked--;
  rl_timers_clear(&core->timers, &next->timer);
  line->front = next;
  line->last_us = 0;
  line->has_waited = false;
  if (core->closed) { /* It is about to be ended, too. */
    next->phase = RL_PHASE_DELAY;
    return;
  }
  if (!granted && line->place == NULL && before->result == REDLOCK_PENDING) {
    rl_outbox_enter(next, now_us); /* Nothing is known: the one before was cancelled. */
    return;
  }
  next->phase = RL_PHASE_DELAY;
  next->random = rl_waits_random(core);
  if (granted) {
    rl_waitlist_settle_all(next, REDLOCK_VOTE_TAKEN, NULL);
    next->result = REDLOCK_E_TAKEN;
  } else if (before->result != REDLOCK_PENDING && before->result != REDLOCK_OK) {
    rl_waitlist_quote(next, before, before->result);
    next->result = before->result;
  }
  redlock_duration pause_us = rl_pause_next(next, next->random, now_us);
  if (pause_us == REDLOCK_NEVER) {
    next->budget_us = now_us; /* No time is left for an attempt: it ends as the one before. */
    rl_timers_set(&core->timers, &next->timer, now_us);
    return;
  }
  rl_timers_set(&core->timers, &next->timer, rl_time_add(now_us, pause_us));
  rl_notify_wait(next, now_us);
}

void rl_waitlist_leave(rl_lock *lock, redlock_time now_us, int result) {
  rl_core *core = lock->core;
  rl_waitlist *line = lock->line;
  if (line->front != lock) {
    rl_list_remove(&lock->queue);
    lock->line = NULL;
    core->lines->parked--;
    return;
  }
  lock->line = NULL;
  bool granted = result == REDLOCK_OK && lock->lease != NULL;
  if (granted) {
    rl_notify_granted(line, lock->lease, now_us);
    line->ours_us = line->ours_us != 0 ? line->ours_us : now_us;
  }
  if (rl_lock_queue_first(&line->behind) != NULL) {
    rl_waitlist_promote(line, now_us, granted);
  } else {
    rl_notify_give_up(core, line);
    rl_waitlist_end(core, line);
  }
}

/* -------------------------------------------------------------------------------------- W4 */

/* The line whose turn it is, of those of |line|'s resource: where nobody calls, and the front does nothing just now. */
static rl_waitlist *rl_waitlist_whose_turn(const rl_core *core, rl_waitlist *line) {
  rl_waitlist *found = NULL;
  for (; line != NULL; line = rl_waitlist_another(line)) {
    bool sleeps = line->front->phase == RL_PHASE_DELAY && !rl_notify_is_awaited(core, line);
    if (sleeps && (found == NULL || line->behind_us < found->behind_us)) {
      found = line;
    }
  }
  return found;
}

static void rl_waitlist_set_ours(rl_waitlist *line, redlock_time ours_us) {
  for (; line != NULL; line = rl_waitlist_another(line)) {
    line->ours_us = ours_us;
  }
}

void rl_waitlist_others_have_it(const rl_core *core, const rl_resource *resource) {
  rl_waitlist_set_ours(rl_waitlist_find(core, resource), 0);
}

/* One line tries at a time: two would take the resource from each other, and never be long enough at it. */
void rl_waitlist_released(rl_core *core, const rl_resource *resource, redlock_time now_us) {
  rl_waitlist *first = core->closed ? NULL : rl_waitlist_find(core, resource);
  rl_waitlist *turn = rl_waitlist_whose_turn(core, first);
  redlock_time since_us = now_us;
  if (turn == NULL) {
    return;
  }
  for (const rl_waitlist *line = first; line != NULL; line = rl_waitlist_another(line)) {
    since_us = line->ours_us != 0 ? rl_time_min(since_us, line->ours_us) : since_us;
  }
  redlock_duration delay_us =
      rl_time_max(turn->front->current->retry_delay_us, REDLOCK_MILLISECONDS);
  bool long_enough = rl_time_sub(now_us, since_us) / RL_WAITLIST_OURS > delay_us;
  rl_waitlist_set_ours(first, long_enough ? now_us : since_us);
  if (!long_enough) {
    turn->behind_us = now_us;
    rl_timers_clear(&core->timers, &turn->front->timer);
    rl_outbox_enter(turn->front, now_us);
  }
}
