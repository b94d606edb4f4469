/*
 * The guard: lets a node vote only after a time Q in which it has certainly lost no key.
 *
 * SPDX-License-Identifier: MIT
 *
 * "Distributed Locks with Redis": a node that may have lost keys must be unavailable for longer
 * than the longest ttl (docs/safety.md). Each node keeps a lineage record with its identity and the
 * time since which it has lost nothing. A node that loses its keys loses the record, too. A record
 * names its server. So a copy of the keys names another server.
 *   GRD-1. The last step of a handshake checks the record. A connection may be up without a vote.
 *   GRD-2. If the record is of these clients, the node votes when the quarantine Q has passed since
 *          the record's creation. The node's clock gives the age of the record; the client's clock
 *          measures the rest of Q. Q = 1.1 x the longest life of a key + 2 ms + the skew of GRD-3;
 *          at least 6 s. A node is refused, with a reason,
 *            - if the record is of clients with other nodes, quorum, ttl or prefix,
 *            - if the node is the same server as another one,
 *            - if the script is denied.
 *   GRD-3. If the record is missing, or is a copy from another server of these clients, create one.
 *          Q begins. There are two exceptions:
 *            - A node is refused if another database of its server has a record. The clients of the
 *              two records would not exclude each other.
 *            - A node's clock may be wrong, and be corrected later: then Q would end early. A
 *              majority of all clocks, including the node's, must be within 2 s of the node's
 *              clock. Otherwise no record is created, and the node does not vote.
 *   GRD-4. An acquire goes only to a node that votes, and only for the known record. Other nodes
 *          get no heal and no backfill either: an extend would count the new key, while another
 *          client may still count the node's earlier vote. Extends go to all nodes. An existing key
 *          was set after the last loss, or is a copy that expires within the quarantine. For that
 *          reason a lease is attached only on nodes that vote.
 *          The script that takes the lock proves on the server that the record is still true:
 *            - The hash. The script's text has the hash of the record, so that a server with a copy
 *              of the record does not know the script. The hash covers the whole record. Otherwise
 *              a client with an older record could send the server the same script. A script that
 *              is sent as text also checks the run_id.
 *            - The seal. A server that kept scripts over a restart (before version 7), or was a
 *              replica with fewer keys, knows the script nevertheless. The seal proves that this
 *              process has kept the record, and all keys since, in memory. A full
 *              resynchronisation, a restart and a snapshot break the seal. The script that replaces
 *              the record deletes it.
 *            - The replication history. A master that becomes a replica, lags, and is promoted
 *              again keeps the seal. The history changes with a promotion, and differs while the
 *              server is a replica. An acquire omits the history for 0.1 s after its last
 *              confirmation. Q is long enough for that: besides the 2 s for the clocks, it exceeds
 *              the longest life of a key by at least 0.3 s. A heal, a backfill and a text always
 *              compare it, because a node may execute them late. (The server that was master
 *              meanwhile has created a record, too, and votes only Q later.)
 *   GRD-5. If the record differs, or the script is unknown, the node is checked again (GRD-1) on
 *          the same connection. Before that, the script is never sent as text.
 *   GRD-6. The watch receives each reply with the node's clock. After a step, keys may have expired
 *          early, or the record may be too young: a new record is created. If the clock is too far
 *          off for that (GRD-3), the record is deleted: the clock may be corrected before another
 *          client notices the step. A step is forgotten only with the new record. The end of the
 *          connection does not clear it, nor does a refusal of the node. If a majority of the nodes
 *          was stepped alike, the client's own clock may have stood still. Then no record is
 *          created, and the client waits for Q. In each case leases no longer count keys on the
 *          stepped nodes (rl_margin.c), and the client warns their holders (rl_renew.c).
 *   GRD-7. A node that does not vote is checked again when an acquire needs it, once a second:
 *          another client may have bootstrapped it.
 */
#include "node/rl_guard.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_quorum.h"

/* ---------------------------------------------------------------------------------------- life */

/* Messages. RL_GUARD_COPIES precedes the text of the node, RL_GUARD_RIGHTS follows it. */
#define RL_GUARD_COPIES                                                                            \
  "use a server that docs/operating.md names, or no guard: on this one copies of keys look like "  \
  "the keys, for "
#define RL_GUARD_RIGHTS                                                                            \
  "; the guard needs +eval +evalsha +info +time +get +set +del +append +object "                   \
  "+select ~" RL_LINEAGE_KEY "*"
#define RL_GUARD_REPLICAS                                                                          \
  " Its quarantine begins when it has the replicas of min-replicas-to-write: start one"
#define RL_GUARD_COPY_MAX (RL_REASON_MAX + 1 - sizeof RL_GUARD_RIGHTS)

static redlock_duration rl_guard_quarantine(redlock_duration max_ttl_us) {
  redlock_duration longest_us =
      rl_time_add(rl_time_add(max_ttl_us, max_ttl_us / 10), RL_GUARD_MARGIN_US + RL_GUARD_SKEW_US);
  return rl_time_max(longest_us, RL_GUARD_QUARANTINE_MIN_US);
}

int rl_guard_open(rl_guards **made, redlock_duration max_ttl_us, const char *cluster) {
  rl_guards *guards = calloc(1, sizeof *guards);
  assert(*made == NULL);
  if (guards == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  guards->max_ttl_us = rl_guard_longest(max_ttl_us);
  guards->quarantine_us = rl_guard_quarantine(guards->max_ttl_us);
  guards->skew_us = RL_GUARD_SKEW_US;
  (void)snprintf(guards->cluster, sizeof guards->cluster, "%s", cluster != NULL ? cluster : "");
  rl_lineage_write_key(guards->key, cluster);
  *made = guards;
  return REDLOCK_OK;
}

void rl_guard_close(rl_guards *guards) {
  free(guards);
}

void rl_guard_add_node(rl_node *node, rl_guard *guard) {
  node->link.guard = guard;
  if (guard != NULL) {
    guard->guards->nodes[guard->guards->node_count++] = node;
  }
}

const char *rl_guard_too_long_to_hold(const rl_guards *guards, redlock_duration hold_us) {
  return guards != NULL && hold_us > guards->max_ttl_us ? RL_GUARD_TOO_LONG_TO_HOLD : NULL;
}

const char *rl_guard_too_long(const rl_guards *guards, const rl_options *options) {
  bool too_long =
      guards != NULL && rl_time_add(options->ttl_us, options->lock_delay_us) > guards->max_ttl_us;
  return too_long ? RL_GUARD_TOO_LONG
                  : rl_guard_too_long_to_hold(guards, rl_options_hold_us(options));
}

void rl_guard_prepare(rl_guards *guards, unsigned quorum, const void *prefix,
                      size_t prefix_length) {
  rl_lineage_fingerprint fingerprint = {0};
  if (guards == NULL || guards->fingerprint[0] != '\0') {
    return;
  }
  fingerprint.nodes = guards->node_count;
  fingerprint.quorum = quorum;
  fingerprint.max_ttl_us = guards->max_ttl_us;
  fingerprint.cluster = guards->cluster[0] != '\0' ? guards->cluster : NULL;
  fingerprint.prefix = prefix;
  fingerprint.prefix_length = prefix_length;
  for (unsigned i = 0; i < guards->node_count; i++) {
    fingerprint.names[i] = guards->nodes[i]->address.name;
    fingerprint.dbs[i] = guards->nodes[i]->address.db;
  }
  rl_lineage_write_fingerprint(guards->fingerprint, &fingerprint);
}

void rl_guard_note_confirmation(rl_guard *guard, const rl_outstanding *command) {
  guard->changes = 0;
  if (command->step != 0) {
    guard->history_us = rl_time_max(guard->history_us, command->sent_us);
  }
}

/* -------------------------------------------------------------------------------------- asking */

static bool rl_guard_ask(rl_node *node, redlock_time now_us, rl_guard_action action) {
  return rl_link_has_room(&node->link, RL_OUTSTANDING_ACQUIRE) &&
         rl_link_ask_guard(&node->link, now_us, action);
}

/* Returns the median of the known clocks, for messages. */
static int64_t rl_guard_median(const rl_guards *guards) {
  const rl_node_clock *clocks[REDLOCK_NODES_MAX];
  int64_t median_us = 0;
  for (unsigned i = 0; i < guards->node_count; i++) {
    clocks[i] = &guards->nodes[i]->link.clock;
  }
  (void)rl_node_clock_median(clocks, guards->node_count, &median_us);
  return median_us;
}

/* Computes the distance of two clocks, and its error. Returns false unless both are known. */
static bool rl_guard_apart(const rl_node_clock *one, const rl_node_clock *other,
                           redlock_duration *apart_us, redlock_duration *error_us) {
  int64_t away_us = one->offset_us - other->offset_us;
  *apart_us = (redlock_duration)(away_us < 0 ? -away_us : away_us);
  *error_us = one == other ? 0 : rl_time_add(one->error_us, other->error_us);
  return one->known && other->known;
}

/*
 * GRD-3. Sets |near| if the clocks of a majority are near the node's, |distant| if no majority can
 *        be near, whatever the unknown clocks show. A distance counts only beyond its error: a
 *        reply to a client that was stopped meanwhile proves nothing. Returns true if neither was
 *        set before, and one is now.
 */
static bool rl_guard_compare_clocks(const rl_guards *guards, const rl_node *node,
                                    int64_t median_us) {
  rl_guard *guard = node->link.guard;
  const rl_node_clock *own = &node->link.clock;
  unsigned near_count = 0, far_count = 0, needed = rl_quorum_majority(guards->node_count);
  bool was_known = guard->near || guard->distant;
  for (unsigned i = 0; i < guards->node_count; i++) {
    redlock_duration apart_us, error_us;
    bool known = rl_guard_apart(own, &guards->nodes[i]->link.clock, &apart_us, &error_us);
    near_count += known && rl_time_add(apart_us, error_us) <= guards->skew_us;
    far_count += known && apart_us > rl_time_add(guards->skew_us, error_us);
  }
  guard->near = near_count >= needed;
  guard->distant = guards->node_count - far_count < needed;
  guard->distance_us = own->known ? own->offset_us - median_us : 0;
  return (guard->near || guard->distant) && !was_known;
}

/* Returns the number of stepped nodes, and the time of the last detection. */
static unsigned rl_guard_count_stepped(const rl_guards *guards, redlock_time *since_us) {
  unsigned stepped = 0;
  *since_us = 0;
  for (unsigned i = 0; i < guards->node_count; i++) {
    const rl_guard *guard = guards->nodes[i]->link.guard;
    if (guard->stepped) {
      stepped++;
      *since_us = rl_time_max(*since_us, guard->stepped_us);
    }
  }
  return stepped;
}

/* Counts the nodes whose step may equal the smallest possible step of |guard|. */
static unsigned rl_guard_count_alike(const rl_guards *guards, const rl_guard *guard,
                                     uint32_t *alike) {
  int64_t step_us = guard->watch.step_least_us;
  unsigned count = 0;
  *alike = 0;
  for (unsigned i = 0; i < guards->node_count; i++) {
    const rl_guard *other = guards->nodes[i]->link.guard;
    bool may_be = other->stepped && other->watch.step_least_us <= step_us &&
                  step_us <= other->watch.step_most_us;
    *alike |= (uint32_t)may_be << i;
    count += may_be;
  }
  return count;
}

/* GRD-6. Returns the nodes of a majority that was stepped alike, or 0. */
static uint32_t rl_guard_stepped_alike(const rl_guards *guards) {
  for (unsigned i = 0; i < guards->node_count; i++) {
    const rl_guard *guard = guards->nodes[i]->link.guard;
    uint32_t alike;
    if (guard->stepped &&
        rl_guard_count_alike(guards, guard, &alike) >= rl_quorum_majority(guards->node_count)) {
      return alike;
    }
  }
  return 0;
}

/*
 * GRD-6. The nodes |alike| vote again after Q, without new records: the client's clock may have
 *        stood still.
 */
static void rl_guard_quarantine_nodes(rl_guards *guards, redlock_time now_us, uint32_t alike) {
  for (unsigned i = 0; i < guards->node_count; i++) {
    rl_guard *guard = guards->nodes[i]->link.guard;
    if ((alike >> i & 1) != 0) {
      guard->stepped = false;
      guard->state = guard->state == RL_GUARD_MISSING ? RL_GUARD_KNOWN : guard->state;
      guard->votes_at_us = rl_time_add(now_us, guard->guards->quarantine_us);
    }
  }
}

/*
 * GRD-6. Checks the connected nodes that have answered no command since the step. Returns true if
 *        there are none.
 */
static bool rl_guard_check_since_step(rl_guards *guards, redlock_time now_us,
                                      redlock_time since_us) {
  bool answered = true;
  for (unsigned i = 0; i < guards->node_count; i++) {
    rl_node *node = guards->nodes[i];
    const rl_link *link = &node->link;
    if (link->phase != RL_LINK_UP || link->guard->stepped ||
        link->guard->state == RL_GUARD_REFUSED || link->guard->clock_sent_us >= since_us) {
      continue;
    }
    answered = false;
    if (!link->guard->asked) {
      (void)rl_guard_ask(node, now_us, RL_GUARD_CHECK);
    }
  }
  return answered;
}

/*
 * GRD-3, GRD-6. Creates records where the clocks permit it; deletes the record of a stepped node
 *               whose clock is distant. A stepped node waits until the answers are |settled|.
 */
static void rl_guard_create_records(rl_guards *guards, redlock_time now_us, bool settled) {
  for (unsigned i = 0; i < guards->node_count; i++) {
    rl_node *node = guards->nodes[i];
    rl_guard *guard = node->link.guard;
    bool idle = guard->state == RL_GUARD_MISSING && !guard->asked;
    if (idle && guard->near && (settled || !guard->stepped)) {
      (void)rl_guard_ask(node, now_us, guard->stepped ? RL_GUARD_RECREATE : RL_GUARD_CREATE);
    } else if (idle && guard->distant && settled && guard->stepped) {
      (void)rl_guard_ask(node, now_us, RL_GUARD_INVALIDATE); /* GRD-6 */
    }
  }
}

uint32_t rl_guard_review(rl_guards *guards, redlock_time now_us) {
  int64_t median_us = rl_guard_median(guards);
  uint32_t known = 0;
  redlock_time since_us;
  guards->reviewed_us = now_us;
  for (unsigned i = 0; i < guards->node_count; i++) {
    if (rl_guard_compare_clocks(guards, guards->nodes[i], median_us)) {
      known |= (uint32_t)1 << i;
    }
  }
  unsigned stepped = rl_guard_count_stepped(guards, &since_us);
  bool answered = stepped == 0 || rl_guard_check_since_step(guards, now_us, since_us);
  if (answered && guards->node_count > 1 && stepped > 0) {
    rl_guard_quarantine_nodes(guards, now_us, rl_guard_stepped_alike(guards));
  }
  rl_guard_create_records(guards, now_us, answered);
  return known;
}

/* ----------------------------------------------------------------------------------- answering */

static void rl_guard_refuse(rl_guard *guard, const char *why, const char *detail) {
  size_t length = strlen(why);
  guard->state = RL_GUARD_REFUSED;
  guard->declined = false;
  /* The precision tells the compiler that a long detail may be cut. */
  (void)snprintf(guard->reason, sizeof guard->reason, "%s%.*s", why,
                 (int)(sizeof guard->reason - 1 - length), detail);
}

/* GRD-4. Writes the text of TAKE for the known record, its SHA-1, and the key of the seal. */
static void rl_guard_name_script(rl_guard *guard) {
  size_t length = strlen(guard->body);
  rl_sha1(guard->body + length - RL_SHA1_LENGTH, guard->record, strlen(guard->record));
  (void)snprintf(guard->seal, sizeof guard->seal, RL_LINEAGE_SEAL "%." RL_LINEAGE_SEAL_DIGITS "s",
                 guard->body + length - RL_SHA1_LENGTH);
  rl_sha1(guard->sha1, guard->body, length);
}

/* Forgets the former server if this is another one. Returns false if out of memory. */
static bool rl_guard_note_server(rl_guard *guard, const char *run_id) {
  const char *text = rl_script_text(RL_SCRIPT_TAKE);
  size_t size = strlen(text) + 2 + RL_SHA1_LENGTH + 1;
  if (guard->body != NULL && strcmp(guard->run_id, run_id) == 0) {
    return true;
  }
  if (guard->body == NULL && (guard->body = malloc(size)) == NULL) {
    return false;
  }
  (void)snprintf(guard->body, size, "%s--%0*d", text, RL_SHA1_LENGTH, 0);
  (void)snprintf(guard->run_id, sizeof guard->run_id, "%s", run_id);
  memset(&guard->watch, 0, sizeof guard->watch);
  guard->stepped = false;
  guard->clock_us = guard->clock_before_us = 0;
  guard->votes_at_us = 0;
  guard->declined = false;
  guard->record[0] = '\0';
  return true;
}

/* Returns the first node before |node| that is the same server, or NULL. */
static const rl_node *rl_guard_find_same_server(const rl_guards *guards, const rl_node *node) {
  for (unsigned i = 0; i < node->index; i++) {
    const rl_node *other = guards->nodes[i];
    bool seen = other->link.guard->state != RL_GUARD_UNKNOWN && other->link.guard->body != NULL;
    if (seen && strcmp(other->link.guard->run_id, node->link.guard->run_id) == 0) {
      return other;
    }
  }
  return NULL;
}

static void rl_guard_refuse_same(rl_node *node, const rl_node *other) {
  rl_guard_refuse(node->link.guard, "it is the same server as ", other->address.name);
}

/* GRD-2. Refuses a node that is the same server as another one. */
static void rl_guard_compare_servers(rl_guards *guards, rl_node *node) {
  const rl_node *same = rl_guard_find_same_server(guards, node);
  if (same != NULL) {
    rl_guard_refuse_same(node, same);
  }
  for (unsigned i = node->index + 1; i < guards->node_count; i++) {
    rl_node *other = guards->nodes[i];
    rl_guard *guard = other->link.guard;
    if (guard->state != RL_GUARD_UNKNOWN && rl_guard_find_same_server(guards, other) == node) {
      rl_guard_refuse_same(other, node);
    }
  }
}

#define RL_GUARD_OTHERS "it is guarded for other clients: "

/*
 * SWAPDB may leave such a record. To delete it is safe: then a new record is created, and the node
 * is quarantined.
 */
#define RL_GUARD_FORGET "; if it has no others, delete redlock:lineage* in all its databases"

/* GRD-2. Reads a record: is it of these clients, and how old is it? */
static void rl_guard_read_record(rl_node *node, redlock_time now_us,
                                 const rl_lineage_answer *answer) {
  rl_guard *guard = node->link.guard;
  char difference[RL_REASON_MAX + 1];
  if (strcmp(answer->fingerprint, guard->guards->fingerprint) != 0) {
    size_t room = sizeof difference - strlen(RL_GUARD_OTHERS) - strlen(RL_GUARD_FORGET);
    (void)rl_lineage_difference(difference, room, answer->fingerprint, guard->guards->fingerprint);
    (void)snprintf(difference + strlen(difference), sizeof difference - strlen(difference), "%s",
                   RL_GUARD_FORGET);
    rl_guard_refuse(guard, RL_GUARD_OTHERS, difference);
    return;
  }
  redlock_duration age_us = rl_time_sub(answer->now_us, answer->created_us);
  redlock_time votes_at_us = rl_time_add(now_us, rl_time_sub(guard->guards->quarantine_us, age_us));
  bool same = strcmp(guard->record, answer->record) == 0;
  guard->votes_at_us = same ? rl_time_max(guard->votes_at_us, votes_at_us) : votes_at_us;
  guard->state = RL_GUARD_KNOWN;
  guard->why = answer->created_for;
  guard->stepped = false;
  guard->declined = false;
  if (!same) {
    (void)snprintf(guard->record, sizeof guard->record, "%s", answer->record);
    rl_guard_name_script(guard);
    node->link.knows[RL_SCRIPT_TAKE_HERE] = false;
  }
}

/*
 * GRD-6. Returns true if a client has created another record than the known one for a step of the
 *        clock. A record for another reason does not count: the step would end its quarantine
 *        early.
 */
static bool rl_guard_is_for_step(const rl_guard *guard, const rl_lineage_answer *answer) {
  return answer->created_for == RL_LINEAGE_CLOCK && strcmp(guard->record, answer->record) != 0;
}

/* Reads an answer with or without a record (GRD-2, GRD-3). */
static void rl_guard_read_answer(rl_node *node, redlock_time now_us,
                                 const rl_lineage_answer *answer, rl_guard_action action) {
  rl_guard *guard = node->link.guard;
  if (!rl_guard_note_server(guard, answer->run_id)) {
    rl_guard_refuse(guard, "out of memory", "");
    return;
  }
  bool keeps_step = action == RL_GUARD_CHECK || action == RL_GUARD_CREATE;
  /* The step still needs a record, unless one was created since the reading before the step. */
  bool step_needs_record =
      guard->stepped && keeps_step &&
      !(rl_guard_is_for_step(guard, answer) && answer->created_us >= guard->clock_before_us);
  bool creates = action != RL_GUARD_CHECK && action != RL_GUARD_INVALIDATE;
  if (answer->create_for != RL_LINEAGE_NONE && creates) {
    rl_guard_refuse(guard, "it does not keep the guard's record", "");
  } else if (answer->create_for != RL_LINEAGE_NONE) {
    guard->state = RL_GUARD_MISSING;
    guard->why = answer->create_for;
    guard->stepped = false;
    guard->votes_at_us = 0;
  } else {
    rl_guard_read_record(node, now_us, answer);
  }
  if (step_needs_record && guard->state == RL_GUARD_KNOWN) { /* GRD-6 */
    guard->state = RL_GUARD_MISSING;
    guard->why = RL_LINEAGE_CLOCK;
    guard->stepped = true;
  }
  rl_guard_compare_servers(guard->guards, node);
}

/*
 * Copies an error of a script without the position in the script, which Redis appends. Of a long
 * error it keeps the end, which names the forbidden command.
 */
static void rl_guard_copy_error(char copy[RL_GUARD_COPY_MAX + 1], const char *text) {
  size_t length = strlen(text);
  const char *position = strstr(text, "on @user_script");
  for (; position != NULL && position > text; position--) {
    if (strncmp(position, " script:", 8) == 0) {
      length = (size_t)(position - text);
      break;
    }
  }
  bool fits = length <= RL_GUARD_COPY_MAX;
  (void)snprintf(copy, RL_GUARD_COPY_MAX + 1, "%s%.*s", fits ? "" : "...", (int)length,
                 fits ? text : text + (length - RL_GUARD_COPY_MAX + 3));
  copy[fits ? length : RL_GUARD_COPY_MAX] = '\0';
}

/*
 * Refuses a node whose answer to the guard's script is an error. RL_SCRIPT_NO_SEAL is an error of
 * the script itself. NOPERM, and ERR from inside a script, mean that the user lacks a right; the
 * texts differ from server to server. Before Redis 7 a master without its replicas also answers
 * ERR, with its code inside the text.
 */
static void rl_guard_read_error(rl_node *node) {
  const char *text = rl_link_error_text(&node->link);
  const char *replicas = strstr(text, "NOREPLICAS ");
  size_t code = strcspn(RL_SCRIPT_NO_SEAL, " ") + 1;
  char copy[RL_GUARD_COPY_MAX + 1];
  rl_guard_copy_error(copy, replicas != NULL ? replicas : text);
  if (replicas != NULL) {
    rl_guard_refuse(node->link.guard, copy, RL_GUARD_REPLICAS);
  } else if (strncmp(text, RL_SCRIPT_NO_SEAL, code) == 0) {
    rl_guard_refuse(node->link.guard, RL_GUARD_COPIES, text + code);
  } else if (strncmp(text, "NOPERM ", 7) == 0 || strncmp(text, "ERR ", 4) == 0) {
    rl_guard_refuse(node->link.guard, copy, RL_GUARD_RIGHTS);
  } else {
    rl_guard_refuse(node->link.guard, "the guard cannot examine it: ", text);
  }
}

/* MAR-5. Returns true if the known record is gone, and this client has not replaced it. */
static bool rl_guard_lost_record(const rl_node *node, const rl_lineage_answer *answer,
                                 rl_guard_action action) {
  const char *known = node->link.guard->record;
  bool other = answer->create_for != RL_LINEAGE_NONE || strcmp(known, answer->record) != 0;
  return action == RL_GUARD_CHECK && known[0] != '\0' && other;
}

rl_guard_news rl_guard_answered(rl_node *node, redlock_time now_us, const rl_outstanding *command) {
  const rl_reply *reply = &node->link.reader.reply;
  rl_guard *guard = node->link.guard;
  rl_lineage_answer answer;
  rl_guard_news news = {0};
  bool writes = command->step != RL_GUARD_CHECK;
  guard->asked = false;
  guard->declined = guard->declined && !writes;
  if (reply->type == RL_REPLY_ERROR) {
    rl_guard_read_error(node);
    guard->declined = writes;
    return news;
  }
  if (reply->type != RL_REPLY_STRING || !rl_lineage_read(&answer, reply->bytes, reply->length)) {
    rl_guard_refuse(guard, "its record cannot be read", "");
    return news;
  }
  guard->history_us = rl_time_max(guard->history_us, command->sent_us);
  (void)rl_node_clock_note(&node->link.clock, answer.now_us, command->sent_us, now_us);
  bool step_recorded =
      answer.create_for == RL_LINEAGE_NONE && rl_guard_is_for_step(guard, &answer); /* GRD-6 */
  bool lost_record = rl_guard_lost_record(node, &answer, (rl_guard_action)command->step);
  rl_guard_read_answer(node, now_us, &answer, (rl_guard_action)command->step);
  if (step_recorded) {
    guard->clock_sent_us = rl_time_max(guard->clock_sent_us, command->sent_us);
    (void)rl_clock_watch_note(&guard->watch, answer.now_us, command->sent_us, now_us);
    guard->clock_us = answer.now_us;
    news.review = true; /* The record does not tell if the step went forward: assume that it did. */
  } else {
    news = rl_guard_note_clock(node, now_us, command, answer.now_us);
  }
  news.lost_keys = news.lost_keys || lost_record;
  return news;
}

/* --------------------------------------------------------------------------------------- voting */

bool rl_guard_may_vote(const rl_guard *guard, redlock_time now_us) {
  return guard == NULL ||
         (guard->state == RL_GUARD_KNOWN && guard->near && guard->votes_at_us <= now_us);
}

bool rl_guard_refuses(const rl_guard *guard) {
  return guard->state == RL_GUARD_REFUSED || (guard->state == RL_GUARD_MISSING && guard->declined);
}

redlock_vote rl_guard_missing_vote(const rl_guard *guard) {
  return rl_guard_refuses(guard) ? REDLOCK_VOTE_ERROR : REDLOCK_VOTE_QUARANTINED;
}

/* Returns true if only the clocks of other nodes are missing for a vote. */
static bool rl_guard_is_undecided(const rl_guard *guard, redlock_time now_us) {
  return guard->state == RL_GUARD_KNOWN && !guard->near && !guard->distant &&
         guard->votes_at_us <= now_us;
}

rl_guard_permission rl_guard_judge(rl_node *node, redlock_time now_us, redlock_vote *vote,
                                   char reason[RL_REASON_MAX + 1]) {
  rl_guard *guard = node->link.guard;
  if (rl_guard_may_vote(guard, now_us)) {
    return RL_GUARD_MAY_VOTE;
  }
  if (!guard->asked &&
      (guard->state == RL_GUARD_UNKNOWN ||
       rl_time_sub(now_us, guard->asked_us) >= RL_GUARD_ASK_EVERY_US)) { /* GRD-7 */
    (void)rl_guard_ask(node, now_us, RL_GUARD_CHECK);
  }
  if (rl_guard_is_undecided(guard, now_us) || (guard->state == RL_GUARD_UNKNOWN && guard->asked)) {
    return RL_GUARD_MUST_WAIT;
  }
  *vote = rl_guard_missing_vote(guard);
  (void)rl_guard_reason(guard, now_us, reason, RL_REASON_MAX + 1);
  return RL_GUARD_MUST_NOT;
}

bool rl_guard_recheck(rl_node *node, redlock_time now_us) {
  rl_guard *guard = node->link.guard;
  node->link.knows[RL_SCRIPT_TAKE_HERE] = false;
  if (++guard->changes > RL_GUARD_CHANGES_MAX) {
    rl_guard_refuse(guard, "its record keeps changing", "");
    return false;
  }
  guard->state = RL_GUARD_UNKNOWN;
  return guard->asked || rl_guard_ask(node, now_us, RL_GUARD_CHECK);
}

rl_guard_news rl_guard_note_clock(rl_node *node, redlock_time now_us, const rl_outstanding *command,
                                  uint64_t node_us) {
  rl_guard_news news = {0};
  rl_guard *guard = node->link.guard;
  guard->clock_sent_us = rl_time_max(guard->clock_sent_us, command->sent_us);
  int64_t step_us = rl_clock_watch_note(&guard->watch, node_us, command->sent_us, now_us);
  if (step_us != 0 && guard->record[0] != '\0') {
    bool known = guard->state == RL_GUARD_KNOWN;
    guard->state = known ? RL_GUARD_MISSING : guard->state;
    guard->why = known ? RL_LINEAGE_CLOCK : guard->why;
    guard->clock_before_us = guard->clock_us;
    guard->stepped = true;
    guard->stepped_us = now_us;
  }
  guard->clock_us = node_us;
  news.lost_keys = news.review = step_us > 0; /* after a step backwards keys live longer */
  if (step_us != 0 || rl_time_sub(now_us, guard->guards->reviewed_us) >= RL_GUARD_ASK_EVERY_US) {
    news.near = rl_guard_review(guard->guards, now_us);
  }
  return news;
}

redlock_duration rl_guard_quarantined(const rl_guard *guard, redlock_time now_us) {
  if (rl_guard_may_vote(guard, now_us)) {
    return 0;
  }
  return guard->state == RL_GUARD_KNOWN && guard->near ? rl_time_sub(guard->votes_at_us, now_us)
                                                       : REDLOCK_NEVER;
}

bool rl_guard_excludes(const rl_guard *guard, redlock_time now_us) {
  return !rl_guard_may_vote(guard, now_us) && guard->state != RL_GUARD_UNKNOWN &&
         !rl_guard_is_undecided(guard, now_us);
}

/* Writes seconds with one decimal. */
static const char *rl_guard_seconds(char text[32], redlock_duration duration_us) {
  redlock_duration tenths = (duration_us + 99999) / 100000;
  (void)snprintf(text, 32, "%llu.%llu s", (unsigned long long)(tenths / 10),
                 (unsigned long long)(tenths % 10));
  return text;
}

const char *rl_guard_reason(const rl_guard *guard, redlock_time now_us, char *text, size_t size) {
  char seconds[32];
  text[0] = '\0';
  if (rl_guard_may_vote(guard, now_us)) {
    return text;
  }
  if (rl_guard_refuses(guard)) {
    (void)snprintf(text, size, "%s", guard->reason);
  } else if (guard->state == RL_GUARD_UNKNOWN) {
    (void)snprintf(text, size, "it has not identified itself yet");
  } else if (guard->distant) {
    bool ahead = guard->distance_us > 0;
    (void)snprintf(text, size, "its clock is %s %s those of the other nodes",
                   rl_guard_seconds(seconds, (redlock_duration)(ahead ? guard->distance_us
                                                                      : -guard->distance_us)),
                   ahead ? "ahead of" : "behind");
  } else if (guard->state == RL_GUARD_MISSING) {
    (void)snprintf(text, size, "%s; its quarantine begins %s", rl_lineage_why_sentence(guard->why),
                   guard->asked ? "now" : "when a majority of the nodes is connected");
  } else if (guard->votes_at_us <= now_us) {
    (void)snprintf(text, size, "the clocks of too few nodes are known");
  } else {
    (void)snprintf(text, size, "for %s more: %s",
                   rl_guard_seconds(seconds, rl_time_sub(guard->votes_at_us, now_us)),
                   rl_lineage_why_sentence(guard->why));
  }
  return text;
}
