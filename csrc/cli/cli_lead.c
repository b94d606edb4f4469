/*
 * redlock lead: runs a command while it leads, and stands by otherwise.
 *
 * SPDX-License-Identifier: MIT
 *
 *   STBY-1. Acquire the lock, for as long as it takes or for --wait. A signal ends this, and so
 *           does a wrong password. Report it once when too few nodes are connected.
 *   STBY-2. Start the command: a term begins.
 *   STBY-3. While the command runs, the lease extends itself. If it ends all the same, end the
 *           command and its descendants (RUN-4).
 *   STBY-4. If the command has ended by itself, release the lock, and exit with its status.
 *   STBY-5. If this program has ended it, release, and campaign again. No process of the command
 *           is left then: otherwise exit with 75, because two terms would overlap. A signal that
 *           has come meanwhile ends this program.
 */
#include <signal.h>
#include <stdio.h>

#include "cli_run.h"

#define CLI_LEAD_CHECK_US REDLOCK_SECONDS
#define CLI_LEAD_REASONS_MAX 64

/* The nodes during a campaign. */
typedef struct cli_lead_nodes {
  const cli_settings *settings;
  redlock_lock *lock;
  redlock_time check_us; /* time of the next check */
  bool lacking;          /* too few could vote at the last check */
  bool reported;
  unsigned long long seen[CLI_LEAD_REASONS_MAX]; /* hashes of the reasons that were reported */
  size_t seen_count;
  char refusals[REDLOCK_NODES_MAX][REDLOCK_TEXT_MAX]; /* errors of the latest votes, or "" */
} cli_lead_nodes;

/* Notes why nodes refuse. A round that goes on has no votes yet: then the last ones count. */
static void cli_lead_note_votes(cli_lead_nodes *nodes) {
  redlock_vote_info vote;
  for (size_t i = 0; redlock_lock_vote(nodes->lock, i, &vote) == REDLOCK_OK; i++) {
    bool votes = vote.vote == REDLOCK_VOTE_GRANTED || vote.vote == REDLOCK_VOTE_TAKEN;
    if (votes || vote.error != NULL) {
      (void)snprintf(nodes->refusals[i], sizeof nodes->refusals[i], "%s", votes ? "" : vote.error);
    }
  }
}

/* Returns why the node |index| cannot vote, or NULL. */
static const char *cli_lead_reason(const cli_lead_nodes *nodes, size_t index,
                                   const redlock_node_info *node) {
  const char *refusal = nodes->refusals[index];
  if (node->state == REDLOCK_NODE_UP) {
    return refusal[0] != '\0' ? refusal : NULL;
  }
  return node->error != NULL ? node->error : "not connected";
}

/* Returns true if the reason of the node is new. Digits do not count, because times change. */
static bool cli_lead_is_new(cli_lead_nodes *nodes, size_t index, const char *reason) {
  unsigned long long hash = 14695981039346656037u + index; /* FNV-1a */
  for (const char *at = reason; *at != '\0'; at++) {
    bool digit = *at >= '0' && *at <= '9';
    hash = (hash ^ (digit ? 0 : (unsigned char)*at)) * 1099511628211u;
  }
  for (size_t i = 0; i < nodes->seen_count; i++) {
    if (nodes->seen[i] == hash) {
      return false;
    }
  }
  if (nodes->seen_count == CLI_LEAD_REASONS_MAX) {
    return false;
  }
  nodes->seen[nodes->seen_count++] = hash;
  return true;
}

static void cli_lead_report_reasons(cli_lead_nodes *nodes, redlock_client *client) {
  redlock_node_info node;
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    const char *reason = cli_lead_reason(nodes, i, &node);
    if (reason != NULL && cli_lead_is_new(nodes, i, reason)) {
      (void)cli_report(nodes->settings, 0, "%s: %s", node.name, reason);
    }
  }
}

/* STBY-1. Two checks must agree, because a node that has been idle is connected anew. */
static void cli_lead_check(cli_lead_nodes *nodes, redlock_client *client) {
  const cli_settings *settings = nodes->settings;
  redlock_node_info node;
  size_t count = redlock_client_node_count(client);
  size_t needed = cli_quorum(settings, count);
  size_t able = 0;
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    able += cli_lead_reason(nodes, i, &node) == NULL;
  }
  bool lacks = able < needed;
  if (lacks && nodes->lacking && !nodes->reported) {
    (void)cli_report(settings, 0, "'%s': %zu of %zu nodes can vote (%zu needed); waiting",
                     settings->name, able, count, needed);
  } else if (!lacks && nodes->reported) {
    (void)cli_report(settings, 0, "'%s': %zu of %zu nodes can vote again", settings->name, able,
                     count);
    nodes->seen_count = 0;
  }
  nodes->reported = lacks && (nodes->lacking || nodes->reported);
  nodes->lacking = lacks;
  if (nodes->reported) {
    cli_lead_report_reasons(nodes, client);
  }
}

/* Is a cli_turn. */
static int cli_lead_turn(void *context, cli_loop *loop, redlock_time until_us) {
  cli_lead_nodes *nodes = context;
  redlock_time due_us = nodes->check_us < until_us ? nodes->check_us : until_us;
  int number = cli_loop_turn(loop, due_us, NULL, 0);
  redlock_time now_us = redlock_now();
  cli_lead_note_votes(nodes);
  if (now_us >= nodes->check_us) {
    nodes->check_us = now_us + CLI_LEAD_CHECK_US;
    cli_lead_check(nodes, loop->client);
  }
  return number;
}

/* STBY-1. Returns -1 when this program leads, or the exit status. */
static int cli_lead_campaign(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_lead_nodes nodes = {
      .settings = settings, .lock = lock, .check_us = redlock_now() + CLI_LEAD_CHECK_US};
  int status = cli_take(settings, loop, lock, cli_lead_turn, &nodes);
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status < 0 && settings->verbose) {
    (void)cli_report(settings, 0, "'%s': leads with the fencing token %llu", settings->name,
                     (unsigned long long)redlock_lock_fence(lock));
  }
  return status;
}

/* STBY-5. Returns the exit status of a signal that ends this program; -1 if there was none. */
static int cli_lead_signal(const cli_run_state *run) {
  static const int ending[] = {SIGTERM, SIGINT, SIGQUIT};
  for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
    if ((run->came >> ending[i] & 1) != 0) {
      return CLI_SIGNAL + ending[i];
    }
  }
  return (run->came_late >> SIGHUP & 1) != 0 ? CLI_SIGNAL + SIGHUP : -1;
}

/* One term. Returns -1 to campaign again, or the exit status. */
static int cli_lead_term(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_run_state run;
  int status = cli_lead_campaign(settings, loop, lock);
  if (status >= 0) {
    return status;
  }
  status = cli_run_start(&run, settings, loop, lock);
  if (status >= 0) {
    return status == CLI_UNAVAILABLE ? -1 : status; /* The lease ended before the command began. */
  }
  status = cli_run_wait(&run);
  if (!run.stopping || cli_child_signal(&run.command, 0) > 0) {
    return status;
  }
  return cli_lead_signal(&run);
}

int cli_lead(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int status = -1;
  while (status < 0) {
    status = cli_lead_term(settings, loop, lock);
  }
  return status;
}
