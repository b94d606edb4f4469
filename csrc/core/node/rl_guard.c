/*
 * The guard: which nodes may vote, because they remember what they have granted.
 *
 * SPDX-License-Identifier: MIT
 *
 * (docs/safety.md; "Distributed Locks with Redis": a node that may have forgotten its keys must be unavailable for
 * longer than the longest ttl in use.) Each node keeps a record of who it is and since when it remembers, which goes
 * where its keys go: it is lost with them, and names another server where they came from elsewhere.
 *   G1. The last step of a handshake asks the node for its record. It may be up without a vote.
 *   G2. The record is ours: the node votes Q after it was made, by the node's clock and by ours. Q is the longest
 *       life of a key that any client may ask for, a tenth more, 2 ms and the 2 s of G3, but at least 6 s.
 *       It is of clients with other nodes, another quorum, ttl or prefix; or the node is the same server as another
 *       one; or it may not be asked: the node is refused, with a reason.
 *   G3. There is no record, or it is another server's and was our clients': it is made, and Q begins. It is not where
 *       another database has one: whose keys are elsewhere never meets ours. But a clock that is wrong and will be
 *       set right would make Q end early. So a record is made, and a node votes, only where the clocks of a majority of
 *       all nodes, its own among them, are within 2 s of its own.
 *   G4. An acquire is sent only to a node that votes, and only for the record that we know: the script looks whether
 *       its seal is there, and carries the record's hash in its text, so that a server that was put in its place does
 *       not know the script, though it has a copy of the record. Whoever sends the text says whose it must be. The hash
 *       of the record, and not only the run_id in it, for else a client that is late with an older record would teach
 *       it the name.
 *       It may have been taught nevertheless; or keep its scripts over a restart (before version 7); or be the same
 *       process, which was a replica for a while and has fewer keys. The seal shows that the record has been in the memory
 *       of this process since it was made, and all that came after: a full resynchronisation, a restart and a snapshot
 *       break it, and the script that replaces the record deletes it. A node that becomes a replica, lags or never gets
 *       through, and is promoted again keeps it; but then the other server has made a record, too, and voted Q later.
 *       So scripts compare the past that the server tells, which a promotion changes, and which is another one while it
 *       is a replica. An acquire may leave that out for 0.1 s after the server was seen to be a master with that past:
 *       Q is longer than the longest life of a key by 2 s for the clocks, and 0.3 s at least besides. A heal, a join
 *       and the text always ask: they may be executed at any time.
 *       Who does not vote is sent nothing. So it is with a heal and a join: a key that came to be on a node in quarantine
 *       would make an extend count there, while the node's vote from before the loss may count for somebody else.
 *       Extends go to all nodes: a key that is still there has been there since before any loss, or comes from a copy,
 *       and has run out when the quarantine ends. For that reason a lease is attached only where the node may vote.
 *   G5. Where the record is another one, or the script is not known any more, the node is asked again (G1) on the same
 *       connection. The script is never sent by its text before that.
 *   G6. Each reply with the node's clock goes to the watch. After a step the keys may have ended early, or the record
 *       be too young: it is made anew. One that is too far off for that now (G3) loses its record, for it may be set right
 *       before anybody else looks. That it was stepped is forgotten with a record that was made for it, and not with the
 *       connection, nor because the node refused to answer. Where a majority of the nodes was stepped alike, it was our own
 *       clock that stood still, for all that is known. Then no record is made, but we wait for Q. Either way leases have lost what
 *       they had there (MAR-5), and their holders are told (REN-6).
 *   G7. Whoever does not vote is asked again when an acquire wants him, once a second: others may have made him ready.
 */
#include "node/rl_guard.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_quorum.h"

/* ---------------------------------------------------------------------------------------- life */

/* What is wrong and what to do, before and after what a node said. */
#define RL_GUARD_COPIES                                                                            \
  "use a server that docs/operating.md names, or no guard: on this one copies of keys look like "  \
  "the keys, for "
#define RL_GUARD_RIGHTS                                                                            \
  "; the guard needs +eval +evalsha +info +time +get +set +del +append +object "                   \
  "+select ~" RL_LINEAGE_KEY "*"
#define RL_GUARD_QUOTE_MAX (RL_REASON_MAX + 1 - sizeof RL_GUARD_RIGHTS)

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

const char *rl_guard_too_long(const rl_guards *guards, redlock_duration ttl_us,
                              redlock_duration lock_delay_us) {
  return guards != NULL && rl_time_add(ttl_us, lock_delay_us) > guards->max_ttl_us
             ? RL_GUARD_TOO_LONG
             : NULL;
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

void rl_guard_confirmed(rl_guard *guard, const rl_outstanding *command) {
  guard->changes = 0;
  if (command->step != 0) {
    guard->history_us = rl_time_max(guard->history_us, command->sent_us);
  }
}

/* -------------------------------------------------------------------------------------- asking */

static bool rl_guard_ask(rl_node *node, redlock_time now_us, rl_guard_action make) {
  return rl_link_has_room(&node->link, RL_OUTSTANDING_ACQUIRE) &&
         rl_link_queue_guard(&node->link, now_us, make);
}

/* The median of the clocks that are known, for people. */
static int64_t rl_guard_median(const rl_guards *guards) {
  const rl_node_clock *clocks[REDLOCK_NODES_MAX];
  int64_t median_us = 0;
  for (unsigned i = 0; i < guards->node_count; i++) {
    clocks[i] = &guards->nodes[i]->link.clock;
  }
  (void)rl_node_clock_median(clocks, guards->node_count, &median_us);
  return median_us;
}

/* How far two clocks are apart, if both are known, and by how much that may be wrong. */
static bool rl_guard_apart(const rl_node_clock *one, const rl_node_clock *other,
                           redlock_duration *apart_us, redlock_duration *error_us) {
  int64_t away_us = one->offset_us - other->offset_us;
  *apart_us = (redlock_duration)(away_us < 0 ? -away_us : away_us);
  *error_us = one == other ? 0 : rl_time_add(one->error_us, other->error_us);
  return one->known && other->known;
}

/*
 * G3. What is only possible is not known: the reply to a client that was stopped meanwhile says nothing of a clock.
 * Returns whether it is known now, and was not before, if the clocks of a majority are near that of the node.
 */
static bool rl_guard_compare_clocks(const rl_guards *guards, const rl_node *node,
                                    int64_t median_us) {
  rl_guard *guard = node->link.guard;
  const rl_node_clock *own = &node->link.clock;
  unsigned near = 0, far = 0, needed = rl_quorum_majority(guards->node_count);
  bool was_known = guard->near || guard->distant;
  for (unsigned i = 0; i < guards->node_count; i++) {
    redlock_duration apart_us, error_us;
    bool known = rl_guard_apart(own, &guards->nodes[i]->link.clock, &apart_us, &error_us);
    near += known && rl_time_add(apart_us, error_us) <= guards->skew_us;
    far += known && apart_us > rl_time_add(guards->skew_us, error_us);
  }
  guard->near = near >= needed;
  guard->distant = guards->node_count - far < needed;
  guard->distance_us = own->known ? own->offset_us - median_us : 0;
  return (guard->near || guard->distant) && !was_known;
}

/* How many nodes were stepped, and when the last of them was seen to be. */
static unsigned rl_guard_stepped(const rl_guards *guards, redlock_time *since_us) {
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

/* The nodes whose clocks may have been stepped by as much as that of |guard| at least was. */
static unsigned rl_guard_alike(const rl_guards *guards, const rl_guard *guard, uint32_t *alike) {
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

/* G6. The nodes of a majority that was stepped alike; 0 when there is none. */
static uint32_t rl_guard_stepped_alike(const rl_guards *guards) {
  for (unsigned i = 0; i < guards->node_count; i++) {
    const rl_guard *guard = guards->nodes[i]->link.guard;
    uint32_t alike;
    if (guard->stepped &&
        rl_guard_alike(guards, guard, &alike) >= rl_quorum_majority(guards->node_count)) {
      return alike;
    }
  }
  return 0;
}

/* G6. It was our own clock: nobody else is told. */
static void rl_guard_wait_out(rl_guards *guards, redlock_time now_us, uint32_t alike) {
  for (unsigned i = 0; i < guards->node_count; i++) {
    rl_guard *guard = guards->nodes[i]->link.guard;
    if ((alike >> i & 1) != 0) {
      guard->stepped = false;
      guard->state = guard->state == RL_GUARD_MISSING ? RL_GUARD_KNOWN : guard->state;
      guard->votes_at_us = rl_time_add(now_us, guard->guards->quarantine_us);
    }
  }
}

/* G6. Whether all that are up have answered what was sent since a clock was stepped. Those that have not are asked. */
static bool rl_guard_await_replies(rl_guards *guards, redlock_time now_us, redlock_time since_us) {
  bool heard = true;
  for (unsigned i = 0; i < guards->node_count; i++) {
    rl_node *node = guards->nodes[i];
    const rl_link *link = &node->link;
    if (link->phase != RL_LINK_UP || link->guard->stepped ||
        link->guard->state == RL_GUARD_REFUSED || link->guard->clock_sent_us >= since_us) {
      continue;
    }
    heard = false;
    if (!link->guard->asked) {
      (void)rl_guard_ask(node, now_us, RL_GUARD_CHECK);
    }
  }
  return heard;
}

/* G3. */
static void rl_guard_create_records(rl_guards *guards, redlock_time now_us, bool settled) {
  for (unsigned i = 0; i < guards->node_count; i++) {
    rl_node *node = guards->nodes[i];
    rl_guard *guard = node->link.guard;
    bool idle = guard->state == RL_GUARD_MISSING && !guard->asked;
    if (idle && guard->near && (settled || !guard->stepped)) {
      (void)rl_guard_ask(node, now_us, guard->stepped ? RL_GUARD_RECREATE : RL_GUARD_CREATE);
    } else if (idle && guard->distant && settled && guard->stepped) {
      (void)rl_guard_ask(node, now_us, RL_GUARD_INVALIDATE); /* G6 */
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
  unsigned stepped = rl_guard_stepped(guards, &since_us);
  bool heard = stepped == 0 || rl_guard_await_replies(guards, now_us, since_us);
  if (heard && guards->node_count > 1 && stepped > 0) {
    rl_guard_wait_out(guards, now_us, rl_guard_stepped_alike(guards));
  }
  rl_guard_create_records(guards, now_us, heard);
  return known;
}

/* ----------------------------------------------------------------------------------- answering */

static void rl_guard_refuse(rl_guard *guard, const char *why, const char *detail) {
  size_t length = strlen(why);
  guard->state = RL_GUARD_REFUSED;
  (void)snprintf(guard->reason, sizeof guard->reason, "%s%.*s", why,
                 (int)(sizeof guard->reason - 1 - length), detail);
}

/* G4. The text of TAKE for the record that we know, and its name; and that of the seal. */
static void rl_guard_name_script(rl_guard *guard) {
  size_t length = strlen(guard->body);
  rl_sha1(guard->body + length - RL_SHA1_LENGTH, guard->record, strlen(guard->record));
  (void)snprintf(guard->seal, sizeof guard->seal, RL_LINEAGE_SEAL "%." RL_LINEAGE_SEAL_DIGITS "s",
                 guard->body + length - RL_SHA1_LENGTH);
  rl_sha1(guard->sha1, guard->body, length);
}

/* Nothing is known of a server that is another one. False when there is no memory for the text of TAKE. */
static bool rl_guard_know_server(rl_guard *guard, const char *run_id) {
  const char *text = rl_command_script_text(RL_SCRIPT_TAKE);
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
  guard->record[0] = '\0';
  return true;
}

/* Another node that is the same server, and comes before it. */
static const rl_node *rl_guard_same(const rl_guards *guards, const rl_node *node) {
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

/* G2. A node that comes before others may turn out to be the same server as one of them. */
static void rl_guard_compare_servers(rl_guards *guards, rl_node *node) {
  const rl_node *same = rl_guard_same(guards, node);
  if (same != NULL) {
    rl_guard_refuse_same(node, same);
  }
  for (unsigned i = node->index + 1; i < guards->node_count; i++) {
    rl_node *other = guards->nodes[i];
    rl_guard *guard = other->link.guard;
    if (guard->state != RL_GUARD_UNKNOWN && rl_guard_same(guards, other) == node) {
      rl_guard_refuse_same(other, node);
    }
  }
}

#define RL_GUARD_OTHERS "it is guarded for other clients: "

/* After SWAPDB, for one. The next record is new, so the node is quarantined: that is safe. */
#define RL_GUARD_FORGET "; if it has no others, delete redlock:lineage* in all its databases"

/* G2. The record is there: whose it is, and for how long it has been. */
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
  if (!same) {
    (void)snprintf(guard->record, sizeof guard->record, "%s", answer->record);
    rl_guard_name_script(guard);
    node->link.knows[RL_SCRIPT_TAKE_HERE] = false;
  }
}

/*
 * G6. Whether the record was made for the step that was seen, by whoever saw it, too: not before the clock was last
 * seen right. Another reason is none: its quarantine would end by the clock that has gone forward.
 */
static bool rl_guard_is_of_step(const rl_guard *guard, const rl_lineage_answer *answer) {
  return answer->created_for == RL_LINEAGE_CLOCK && strcmp(guard->record, answer->record) != 0 &&
         answer->created_us >= guard->clock_before_us;
}

/* G3, or a record that is there. */
static void rl_guard_read_answer(rl_node *node, redlock_time now_us,
                                 const rl_lineage_answer *answer, rl_guard_action make) {
  rl_guard *guard = node->link.guard;
  if (!rl_guard_know_server(guard, answer->run_id)) {
    rl_guard_refuse(guard, "out of memory", "");
    return;
  }
  bool asks = make == RL_GUARD_CHECK || make == RL_GUARD_CREATE;
  bool due = guard->stepped && asks && !rl_guard_is_of_step(guard, answer);
  if (answer->create_for != RL_LINEAGE_NONE && make != RL_GUARD_CHECK &&
      make != RL_GUARD_INVALIDATE) {
    rl_guard_refuse(guard, "it does not keep the guard's record", "");
  } else if (answer->create_for != RL_LINEAGE_NONE) {
    guard->state = RL_GUARD_MISSING;
    guard->why = answer->create_for;
    guard->stepped = false;
    guard->votes_at_us = 0;
  } else {
    rl_guard_read_record(node, now_us, answer);
  }
  if (due && guard->state == RL_GUARD_KNOWN) { /* G6: nobody has made it anew. */
    guard->state = RL_GUARD_MISSING;
    guard->why = RL_LINEAGE_CLOCK;
    guard->stepped = true;
  }
  rl_guard_compare_servers(guard->guards, node);
}

/*
 * Copies an error of a script without the place in the script, which stands last. Keeps the end of
 * a long one: the command that is forbidden stands there.
 */
static void rl_guard_quote(char quoted[RL_GUARD_QUOTE_MAX + 1], const char *said) {
  size_t length = strlen(said);
  const char *place = strstr(said, "on @user_script");
  for (; place != NULL && place > said; place--) {
    if (strncmp(place, " script:", 8) == 0) {
      length = (size_t)(place - said);
      break;
    }
  }
  bool fits = length <= RL_GUARD_QUOTE_MAX;
  (void)snprintf(quoted, RL_GUARD_QUOTE_MAX + 1, "%s%.*s", fits ? "" : "...", (int)length,
                 fits ? said : said + (length - RL_GUARD_QUOTE_MAX + 3));
  quoted[fits ? length : RL_GUARD_QUOTE_MAX] = '\0';
}

/*
 * The node refuses the guard's script. One of these errors is the script's own. NOPERM, and ERR
 * from inside a script, are what a user gets who lacks a right: the words differ from server to
 * server.
 */
static void rl_guard_read_error(rl_node *node) {
  const char *said = rl_link_error_text(&node->link);
  size_t code = strcspn(RL_COMMAND_NO_SEAL, " ") + 1;
  char quoted[RL_GUARD_QUOTE_MAX + 1];
  rl_guard_quote(quoted, said);
  if (strncmp(said, RL_COMMAND_NO_SEAL, code) == 0) {
    rl_guard_refuse(node->link.guard, RL_GUARD_COPIES, said + code);
  } else if (strncmp(said, "NOPERM ", 7) == 0 || strncmp(said, "ERR ", 4) == 0) {
    rl_guard_refuse(node->link.guard, quoted, RL_GUARD_RIGHTS);
  } else {
    rl_guard_refuse(node->link.guard, "the guard cannot examine it: ", said);
  }
}

/* G6. Whether somebody else has seen the step of its clock, and made the record anew. */
static bool rl_guard_step_is_recorded(const rl_guard *guard, const rl_lineage_answer *answer) {
  return answer->create_for == RL_LINEAGE_NONE && answer->created_for == RL_LINEAGE_CLOCK &&
         strcmp(guard->record, answer->record) != 0;
}

/* MAR-5. The record that we know is not there any more, and it was not us who made it anew. */
static bool rl_guard_compare_records(const rl_node *node, const rl_lineage_answer *answer,
                                     rl_guard_action make) {
  const char *known = node->link.guard->record;
  bool other = answer->create_for != RL_LINEAGE_NONE || strcmp(known, answer->record) != 0;
  return make == RL_GUARD_CHECK && known[0] != '\0' && other;
}

rl_guard_news rl_guard_answered(rl_node *node, redlock_time now_us, const rl_outstanding *command) {
  const rl_reply *reply = &node->link.reader.reply;
  rl_guard *guard = node->link.guard;
  rl_lineage_answer answer;
  rl_guard_news news = {0};
  guard->asked = false;
  if (reply->type == RL_REPLY_ERROR) {
    rl_guard_read_error(node);
    return news;
  }
  if (reply->type != RL_REPLY_STRING || !rl_lineage_read(&answer, reply->bytes, reply->length)) {
    rl_guard_refuse(guard, "its record cannot be read", "");
    return news;
  }
  guard->history_us = rl_time_max(guard->history_us, command->sent_us);
  (void)rl_node_clock_note(&node->link.clock, answer.now_us, command->sent_us, now_us);
  bool told = rl_guard_step_is_recorded(guard, &answer);
  bool suspect = rl_guard_compare_records(node, &answer, (rl_guard_action)command->step);
  rl_guard_read_answer(node, now_us, &answer, (rl_guard_action)command->step);
  if (told) {
    guard->clock_sent_us = rl_time_max(guard->clock_sent_us, command->sent_us);
    (void)rl_clock_watch_note(&guard->watch, answer.now_us, command->sent_us, now_us);
    guard->clock_us = answer.now_us;
    news.review = true; /* Which way it was stepped the record does not say. */
  } else {
    news = rl_guard_note_clock(node, now_us, command, answer.now_us);
  }
  news.suspect = news.suspect || suspect;
  return news;
}

/* --------------------------------------------------------------------------------------- voting */

bool rl_guard_votes(const rl_guard *guard, redlock_time now_us) {
  return guard == NULL ||
         (guard->state == RL_GUARD_KNOWN && guard->near && guard->votes_at_us <= now_us);
}

redlock_vote rl_guard_vote(const rl_guard *guard) {
  return guard->state == RL_GUARD_REFUSED ? REDLOCK_VOTE_ERROR : REDLOCK_VOTE_QUARANTINED;
}

rl_guard_verdict rl_guard_judge(rl_node *node, redlock_time now_us, redlock_vote *vote,
                                char reason[RL_REASON_MAX + 1]) {
  rl_guard *guard = node->link.guard;
  if (rl_guard_votes(guard, now_us)) {
    return RL_GUARD_MAY_VOTE;
  }
  if (!guard->asked && (guard->state == RL_GUARD_UNKNOWN ||
                        rl_time_sub(now_us, guard->asked_us) >= RL_GUARD_ASK_EVERY_US)) { /* G7 */
    (void)rl_guard_ask(node, now_us, RL_GUARD_CHECK);
  }
  bool undecided = guard->state == RL_GUARD_KNOWN && !guard->near && !guard->distant &&
                   guard->votes_at_us <= now_us;
  if (undecided || (guard->state == RL_GUARD_UNKNOWN && guard->asked)) {
    return RL_GUARD_MUST_WAIT;
  }
  *vote = rl_guard_vote(guard);
  (void)rl_guard_reason(guard, now_us, reason, RL_REASON_MAX + 1);
  return RL_GUARD_MUST_NOT;
}

bool rl_guard_suspect(rl_node *node, redlock_time now_us) {
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
  if (step_us != 0 && guard->record[0] != '\0') { /* Whatever is known of the node besides. */
    bool known = guard->state == RL_GUARD_KNOWN;
    guard->state = known ? RL_GUARD_MISSING : guard->state;
    guard->why = known ? RL_LINEAGE_CLOCK : guard->why;
    guard->clock_before_us = guard->clock_us;
    guard->stepped = true;
    guard->stepped_us = now_us;
  }
  guard->clock_us = node_us;
  news.suspect = news.review = step_us > 0; /* Backwards keys live longer. */
  if (step_us != 0 || rl_time_sub(now_us, guard->guards->reviewed_us) >= RL_GUARD_ASK_EVERY_US) {
    news.near = rl_guard_review(guard->guards, now_us);
  }
  return news;
}

redlock_duration rl_guard_quarantined(const rl_guard *guard, redlock_time now_us) {
  if (rl_guard_votes(guard, now_us)) {
    return 0;
  }
  return guard->state == RL_GUARD_KNOWN && guard->near ? rl_time_sub(guard->votes_at_us, now_us)
                                                       : REDLOCK_NEVER;
}

/* As seconds with one digit behind the point. */
static const char *rl_guard_seconds(char text[32], redlock_duration duration_us) {
  redlock_duration tenths = (duration_us + 99999) / 100000;
  (void)snprintf(text, 32, "%llu.%llu s", (unsigned long long)(tenths / 10),
                 (unsigned long long)(tenths % 10));
  return text;
}

const char *rl_guard_reason(const rl_guard *guard, redlock_time now_us, char *text, size_t size) {
  char seconds[32];
  text[0] = '\0';
  if (rl_guard_votes(guard, now_us)) {
    return text;
  }
  if (guard->state == RL_GUARD_REFUSED) {
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
