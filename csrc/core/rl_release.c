/*
 * Releasing: the operation, and what attempts have left on nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * RELEASE ("Distributed Locks with Redis": the client releases by deleting the key only if it holds
 * the random value; this is done on all instances, whether or not the client believes that it got
 * the lock there):
 *   R1. The lease ends, before the first byte (rl_lock_release()).
 *   R2. Compare-and-delete on every node to which a SET may have gone, whatever it answered.
 *   R3. Count votes (rl_quorum.c). What is still to be sent goes on without the operation.
 * An attempt that failed, a lock that is freed and a client that is closed leave tokens behind that
 * nobody waits for. They take step R2 only, and stand in a list until every node has been told.
 */
#include "rl_release.h"

#include <assert.h>
#include <string.h>

#include "rl_core.h"
#include "rl_round.h"

/* -------------------------------------------------------------------------- the list, and R2 */

/* Takes |*link| out of the list; |*link| is then the next one. */
static void rl_release_unlist(rl_core *core, rl_attempt **link) {
  rl_attempt *attempt = *link;
  assert(attempt != NULL);
  *link = attempt->next;
  if (attempt->next == NULL) {
    core->releases.tail = link;
  }
  attempt->next = NULL;
  attempt->listed = false;
  core->releases.count--;
  rl_attempt_unref(&core->attempts, attempt);
}

static void rl_release_list(rl_core *core, rl_attempt *attempt) {
  if (attempt->listed) {
    return;
  }
  attempt->listed = true;
  attempt->next = NULL;
  (void)rl_attempt_ref(attempt);
  *core->releases.tail = attempt;
  core->releases.tail = &attempt->next;
  core->releases.count++;
  if (core->releases.count > RL_RELEASE_LIST_MAX) {
    rl_release_unlist(core, &core->releases.first);
  }
}

/* Goes through the list again after a while. */
static void rl_release_later(rl_core *core, redlock_time now_us) {
  core->releases.again_at_us =
      rl_time_min(core->releases.again_at_us, rl_time_add(now_us, RL_RELEASE_RETRY_US));
}

/* Sends the release of |attempt| to those nodes that it is due on and that can take it. */
static void rl_release_send(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  uint32_t round = attempt->lock != NULL ? attempt->lock->round : 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = (uint32_t)1 << i;
    if ((attempt->due & bit) == 0 || node->link.phase != RL_LINK_UP) {
      continue;
    }
    if (!rl_link_has_room(&node->link, RL_OWED_RELEASE)) {
      node->release_blocked = true;
    } else if (rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {
      attempt->due &= ~bit;
    } else if (grow) {
      rl_release_later(core, now_us); /* Out of memory. */
    } else {
      core->releases.again = true;
    }
  }
}

void rl_release_begin(rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow) {
  attempt->releasing = true;
  attempt->due = attempt->sent & ~attempt->released;
  rl_release_send(core, now_us, attempt, grow);
  if (attempt->due == 0 || attempt->expired_us <= now_us) {
    return;
  }
  rl_release_list(core, attempt);
}

/* Goes through all releases that are due somewhere. What has expired by itself is dropped. */
void rl_release_continue(rl_core *core, redlock_time now_us) {
  rl_attempt **link = &core->releases.first;
  core->releases.again = false;
  while (*link != NULL) {
    rl_attempt *attempt = *link;
    bool gone = attempt->expired_us <= now_us;
    if (!gone) {
      rl_release_send(core, now_us, attempt, true);
    }
    /* What is due stays so: that is how the lock sees that it was not sent. */
    if (gone || attempt->due == 0) {
      rl_release_unlist(core, link);
    } else {
      link = &attempt->next;
    }
  }
}

/* The nodes on which a release of the list is due. */
uint32_t rl_release_due(const rl_core *core) {
  uint32_t due = 0;
  for (const rl_attempt *attempt = core->releases.first; attempt != NULL; attempt = attempt->next) {
    due |= attempt->expired_us > core->now_us ? attempt->due : 0;
  }
  return due;
}

/* The lock has nothing to do with |attempt| any more; whatever it may have set is released. */
void rl_release_let_go(rl_lock *lock, redlock_time now_us, rl_attempt *attempt, bool grow) {
  if (attempt == NULL) {
    return;
  }
  attempt->lock = NULL;
  if (!attempt->releasing) {
    rl_release_begin(lock->core, now_us, attempt, grow);
  }
  rl_attempt_unref(&lock->core->attempts, attempt);
}

/*
 * A release that was answered with an error, of a node that is loading or busy, is tried again while
 * the key may live; not one that was refused for who we are.
 */
void rl_release_answered(rl_core *core, const rl_node *node, redlock_time now_us,
                         rl_attempt *attempt, redlock_vote vote, const char *error) {
  uint32_t bit = (uint32_t)1 << node->index;
  if (vote != REDLOCK_VOTE_ERROR) {
    attempt->released |= bit;
  } else if (attempt->expired_us > now_us && strncmp(error, "NOPERM", 6) != 0 &&
             strncmp(error, "NOAUTH", 6) != 0) {
    attempt->due |= bit;
    rl_release_list(core, attempt);
    rl_release_later(core, now_us);
  }
}

void rl_release_unanswered(rl_core *core, const rl_node *node, redlock_time now_us,
                           rl_attempt *attempt) {
  if (attempt->expired_us > now_us) {
    attempt->due |= rl_node_bit(node);
    rl_release_list(core, attempt);
  }
}

void rl_release_room(rl_core *core, rl_node *node) {
  if (node->release_blocked && rl_link_has_room(&node->link, RL_OWED_RELEASE)) {
    node->release_blocked = false;
    core->releases.again = true;
  }
}

void rl_release_advance(rl_core *core, redlock_time now_us) {
  if (core->releases.again_at_us <= now_us) {
    core->releases.again_at_us = REDLOCK_NEVER;
    core->releases.again = true;
  }
}

void rl_release_forget(rl_core *core) {
  while (core->releases.first != NULL) {
    core->releases.first->due = 0;
    rl_release_unlist(core, &core->releases.first);
  }
  core->releases.again = false;
  core->releases.again_at_us = REDLOCK_NEVER;
}

/* ----------------------------------------------------------------------------- the operation */

/* R2: a release has its own list of nodes, and goes on when the operation has ended. */
void rl_release_ask(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_attempt *attempt = lock->attempt;
  rl_release_begin(core, now_us, attempt, true);
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    uint32_t bit = rl_node_bit(node);
    if ((attempt->sent & bit) == 0) {
      lock->votes[i].settled = true;
      rl_round_excuse(lock, i, "nothing was sent to it");
      lock->quorum.unsent++;
    } else if ((attempt->released & bit) != 0) {
      rl_round_settle(lock, i, REDLOCK_VOTE_GRANTED, NULL, REDLOCK_NEVER);
    } else if ((attempt->due & bit) == 0) {
      continue; /* It has been sent. */
    } else if (node->link.phase == RL_LINK_UP) {
      rl_round_settle(lock, i, REDLOCK_VOTE_ERROR, "too many commands are waiting for the node",
                      REDLOCK_NEVER);
    } else if (node->link.phase != RL_LINK_DOWN || rl_node_wants_connection(node, now_us)) {
      lock->waiting |= bit;
    } else {
      rl_round_settle(lock, i, REDLOCK_VOTE_ERROR, node->error, REDLOCK_NEVER);
    }
  }
}

void rl_release_node_up(rl_lock *lock, redlock_time now_us, const rl_node *node) {
  if ((lock->attempt->due & rl_node_bit(node)) != 0) {
    bool gone = lock->attempt->expired_us <= now_us;
    rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR,
                    gone ? "its key has expired by now" : "the release could not be queued",
                    REDLOCK_NEVER);
  }
}

/*
 * R3. What a release ends with. When it is repeated, a node may say "not there" because the first one
 * has deleted the key: that is no loss.
 */
static int rl_release_result(const rl_lock *lock, rl_decision decision) {
  bool majority = lock->quorum.granted >= rl_quorum_majority(lock->quorum.nodes);
  if (decision == RL_DECISION_UNAVAILABLE) {
    return REDLOCK_E_UNAVAILABLE;
  }
  if (lock->ran_out && !majority) {
    return REDLOCK_E_EXPIRED;
  }
  return decision == RL_DECISION_TAKEN && !lock->repeated ? REDLOCK_E_LOST : REDLOCK_OK;
}

static void rl_release_ended(rl_lock *lock, redlock_time now_us, int result) {
  rl_attempt *attempt = lock->attempt;
  lock->attempt = NULL;
  rl_lock_end(lock, now_us, result);
  if (result == REDLOCK_E_UNAVAILABLE) {
    lock->unreleased = attempt;
  } else {
    rl_release_let_go(lock, now_us, attempt, true);
  }
}

void rl_release_decide(rl_lock *lock, redlock_time now_us) {
  rl_decision decision = rl_quorum_decide_release(&lock->quorum);
  if (decision != RL_DECISION_NONE) {
    rl_release_ended(lock, now_us, rl_release_result(lock, decision));
  }
}
