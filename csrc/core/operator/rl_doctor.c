/*
 * The doctor: asks every node what there is to know of it, for rl_finding.c to judge.
 *
 * SPDX-License-Identifier: MIT
 *
 *   D1. A lock that is held lends no round: it is the lease's business.
 *   D2. A probe goes first: a script by a name that nobody has. How long its answer takes is the round trip. The right
 *       to run scripts by their names shows, too. Where keys are to be looked through, the rest is sent when it
 *       is answered: a server that reads two commands at once answers both when it has done both.
 *   D3. Then the examination, one script: what the node is and how it is set, its clock, and each command that a lock
 *       needs, under a key where nothing is. So nothing changes. The key is the lock's with something behind it, so
 *       that what an ACL says of its keys shows; of the lock's own it is only asked whether it is there. Keys are
 *       looked through only where that is asked for.
 *       A node that knows no scripts is asked for its role: a Sentinel looks like a server whose commands were renamed.
 *   D4. All nodes are waited for, for a second or for node_timeout, whichever is longer: a slow node is to be told from one
 *       that is down.
 *   D5. What the nodes have said is kept as it was said. Any of it may be missing, or a lie. Only the password that they
 *       were sent is struck out.
 */
#include "operator/rl_doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/rl_release.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_lock.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "operator/rl_finding.h"

#define RL_DOCTOR_TIMEOUT_US REDLOCK_SECONDS

static rl_doctor *rl_doctor_find(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->doctor;
}

const rl_doctor *rl_doctor_of(const rl_lock *lock) {
  const rl_doctor *doctor = rl_doctor_find(lock);
  return doctor == NULL || !doctor->done ? NULL : doctor;
}

/* What is known without asking. */
static void rl_doctor_prepare(rl_doctor *doctor, const rl_lock *lock, redlock_time now_us,
                              unsigned flags) {
  const rl_core *core = lock->core;
  const rl_options *options = rl_lock_options(lock);
  uint64_t number = core->random ^ (now_us * UINT64_C(0x9e3779b97f4a7c15));
  doctor->count = core->node_count;
  doctor->keys = (flags & REDLOCK_DOCTOR_KEYS) != 0;
  doctor->guard = core->guards != NULL;
  doctor->fence = options->fence == REDLOCK_YES;
  doctor->ttl_us = options->ttl_us;
  doctor->node_timeout_us = rl_options_node_timeout(options, options->ttl_us);
  doctor->key = lock->resource->key;
  doctor->key_length = lock->resource->key_length;
  doctor->prefix = core->prefix;
  doctor->prefix_length = core->prefix_length;
  (void)snprintf(doctor->suffix, sizeof doctor->suffix, ":redlock-doctor:%016llx",
                 (unsigned long long)number);
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_address *address = &core->nodes[i]->address;
    rl_doctor_node *node = &doctor->nodes[i];
    node->name = address->name;
    node->username = address->has_username ? address->username : NULL;
    node->db = address->db;
    node->round_trip_us = REDLOCK_NEVER;
    node->certificate_us = REDLOCK_NEVER;
  }
}

int rl_lock_doctor(rl_lock *lock, redlock_time now_us, unsigned flags, bool notify) {
  static const unsigned char no_entropy[RL_TOKEN_ENTROPY];        /* Its token is never sent. */
  int error = rl_lock_may_ask(lock, now_us, RL_OPERATION_DOCTOR); /* D1 */
  if (error != REDLOCK_OK) {
    return error;
  }
  size_t size = sizeof(rl_doctor) + lock->core->node_count * sizeof(rl_doctor_node);
  rl_doctor *doctor = rl_lock_reserve_extension(lock) ? calloc(1, size) : NULL;
  rl_attempt *attempt =
      doctor == NULL ? NULL
                     : rl_attempt_new(&lock->core->attempts, lock->resource, lock, no_entropy);
  if (attempt == NULL) {
    free(doctor);
    return rl_lock_ask_nothing(lock, RL_OPERATION_DOCTOR);
  }
  free(lock->extension->doctor);
  rl_doctor_prepare(doctor, lock, now_us, flags);
  lock->extension->doctor = doctor;
  return rl_lock_ask(lock, RL_OPERATION_DOCTOR, now_us, attempt, notify);
}

/* For how long the nodes may answer: D4. */
static redlock_duration rl_doctor_timeout(const rl_lock *lock) {
  return rl_time_max(rl_doctor_find(lock)->node_timeout_us, RL_DOCTOR_TIMEOUT_US); /* D4 */
}

static const char *rl_doctor_ask(rl_lock *lock, redlock_time now_us, rl_node *node,
                                 const rl_command_examination *examination) {
  if (!rl_link_has_room(&node->link, RL_OUTSTANDING_DOCTOR)) {
    return "too many commands are waiting for the node";
  }
  return rl_link_queue_doctor(&node->link, now_us, lock->attempt, lock->round, examination)
             ? NULL
             : "out of memory";
}

/* D3 */
static const char *rl_doctor_examine(rl_lock *lock, redlock_time now_us, rl_node *node) {
  const rl_doctor *doctor = rl_doctor_find(lock);
  rl_command_examination examination = {lock->resource->key,   lock->resource->key_length,
                                        doctor->suffix,        doctor->prefix,
                                        doctor->prefix_length, doctor->keys};
  return rl_doctor_ask(lock, now_us, node, &examination);
}

/* D2, D3. Sends the questions, or the first of them. Returns NULL, or why it was not sent. */
static const char *rl_doctor_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  const char *why = rl_doctor_ask(lock, now_us, node, NULL); /* D2 */
  return why != NULL || rl_doctor_find(lock)->keys ? why : rl_doctor_examine(lock, now_us, node);
}

/* D5. What the node says of its clock: that was between the command and its answer. */
static void rl_doctor_read_clock(rl_doctor_node *node, redlock_time now_us,
                                 redlock_duration took_us) {
  uint64_t clock_us;
  if (rl_finding_number(node, "now", &clock_us)) {
    node->has_clock = true;
    node->clock_us = (now_us - took_us / 2) - clock_us;
    node->clock_error_us = took_us;
  }
}

/* D5. A shorter one stands in any text, and nobody would learn it from there. */
#define RL_DOCTOR_PASSWORD_MIN 4

static void rl_doctor_strike_out(char *said, const char *bytes, size_t length,
                                 const rl_address *address) {
  size_t secret = address->has_password ? address->password_length : 0;
  for (size_t at = 0; secret >= RL_DOCTOR_PASSWORD_MIN && at + secret <= length; at++) {
    if (memcmp(bytes + at, address->password, secret) == 0) {
      memset(said + at, '*', secret);
    }
  }
}

static void rl_doctor_keep(rl_doctor_node *node, const char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) {
    node->said[i] = bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '?';
  }
  node->said[length] = '\0';
}

static bool rl_doctor_is_unknown(const rl_reply *reply) {
  return reply->type == RL_REPLY_ERROR && strncmp(reply->text, "ERR unknown command", 19) == 0;
}

bool rl_doctor_note(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_outstanding *owed,
                    const rl_reply *reply, const char **why) {
  bool last = owed->step != RL_LINK_PROBE;
  if (owed->round != lock->round || lock->phase != RL_PHASE_ROUND) {
    return last;
  }
  rl_doctor_node *told = &rl_doctor_find(lock)->nodes[node->index];
  redlock_duration took_us = rl_time_sub(now_us, owed->sent_us);
  told->login_given = node->link.login_given;
  if (!last) {
    told->round_trip_us = took_us; /* D2 */
    told->no_evalsha = reply->type == RL_REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
    told->unknown_evalsha = rl_doctor_is_unknown(reply);
    *why = rl_doctor_find(lock)->keys ? rl_doctor_examine(lock, now_us, node) : NULL;
    return *why != NULL;
  }
  if (owed->step == RL_LINK_ROLE) {
    told->sentinel = strcmp(reply->word, "sentinel") == 0;
    *why = told->said;
    return true;
  }
  if (told->unknown_evalsha && rl_doctor_is_unknown(reply)) { /* D3 */
    (void)snprintf(told->said, sizeof told->said, "%s", *why);
    return !rl_link_has_room(&node->link, RL_OUTSTANDING_DOCTOR) ||
           !rl_link_queue_role(&node->link, now_us, owed->attempt, owed->round);
  }
  if (reply->type == RL_REPLY_STRING) {
    told->answered = true;
    rl_doctor_keep(told, reply->bytes, reply->length);
    rl_doctor_strike_out(told->said, reply->bytes, reply->length, &node->address);
    rl_doctor_read_clock(told, now_us, took_us);
  }
  return true;
}

/* What is known of a node that has not been asked for it. */
static void rl_doctor_conclude(rl_doctor_node *told, const rl_node *node, redlock_time now_us) {
  const rl_guard *guard = node->link.guard;
  told->certificate_us = rl_node_certificate(node, now_us);
  if (guard != NULL && guard->standing != RL_GUARD_UNSEEN) {
    told->refused = guard->standing == RL_GUARD_REFUSED;
    (void)rl_guard_reason(guard, now_us, told->quarantine, sizeof told->quarantine);
  }
}

/* D4 */
static void rl_doctor_decide(rl_lock *lock, redlock_time now_us) {
  const rl_quorum *quorum = &lock->quorum;
  rl_doctor *doctor = rl_doctor_find(lock);
  if (quorum->granted + quorum->denied + quorum->failed < quorum->nodes) {
    return;
  }
  for (unsigned i = 0; i < doctor->count; i++) {
    rl_doctor_node *node = &doctor->nodes[i];
    if (!node->answered) {
      (void)snprintf(node->said, sizeof node->said, "%s", rl_round_reason(lock, i));
    }
    rl_doctor_conclude(node, lock->core->nodes[i], now_us);
  }
  doctor->done = true;
  bool majority = quorum->granted >= rl_quorum_majority(quorum->nodes);
  rl_lock_asked(lock, now_us, majority ? REDLOCK_OK : REDLOCK_E_UNAVAILABLE);
}

const rl_steps rl_doctor_steps = {
    .timeout = rl_doctor_timeout,
    .send = rl_doctor_send,
    .decide = rl_doctor_decide,
};
