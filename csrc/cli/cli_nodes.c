/*
 * redlock nodes: shows the answer of each node to an acquire.
 *
 * SPDX-License-Identifier: MIT
 *
 * A reachable node can still refuse a lock: no memory, no permission, read-only. So the verb
 * acquires a lock of a unique name on all nodes, and releases it.
 */
#include "cli.h"

#include <stdio.h>
#include <unistd.h>

#define CLI_NODES_PATIENCE_US (500 * REDLOCK_MILLISECONDS)

/* Returns true if a node has neither answered nor failed. */
static bool cli_nodes_pending(redlock_lock *lock) {
  redlock_vote_info vote;
  for (size_t i = 0; redlock_lock_vote(lock, i, &vote) == REDLOCK_OK; i++) {
    if (vote.vote == REDLOCK_VOTE_UNKNOWN && vote.error == NULL) {
      return true;
    }
  }
  return false;
}

/* Returns why the node has not granted the lock, or NULL if it has. |room| may hold the text. */
static const char *cli_nodes_reason(redlock_client *client, redlock_lock *lock, size_t index,
                                    const redlock_vote_info *vote, redlock_node_info *room) {
  if (vote->error != NULL || vote->vote != REDLOCK_VOTE_UNKNOWN) {
    return vote->error;
  }
  bool known = redlock_client_node_info(client, index, room) == REDLOCK_OK && room->error != NULL;
  if (known) {
    return room->error;
  }
  return redlock_lock_result(lock) == REDLOCK_OK
             ? "no answer in time"
             : "the attempt failed before this node answered; run redlock doctor";
}

static int cli_nodes_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_vote_info vote;
  redlock_node_info info;
  redlock_time until_us = redlock_now() + CLI_NODES_PATIENCE_US;
  int status = cli_await(settings, loop, lock, redlock_lock_acquire_start(lock, NULL));
  if (status >= 0) {
    return status;
  }
  /* A majority has decided; the other nodes get the rest of the time. */
  while (cli_nodes_pending(lock) && redlock_now() < until_us) {
    int number = cli_loop_turn(loop, until_us);
    if (number != 0 && number != SIGCHLD) {
      return 128 + number;
    }
  }
  for (size_t i = 0; redlock_lock_vote(lock, i, &vote) == REDLOCK_OK; i++) {
    const char *reason = cli_nodes_reason(loop->client, lock, i, &vote, &info);
    (void)printf("%s\t%s", vote.name, redlock_vote_name(vote.vote));
    if (vote.latency_us != REDLOCK_NEVER) {
      (void)printf("\t%.1f ms", (double)vote.latency_us / (double)REDLOCK_MILLISECONDS);
    }
    (void)printf("%s%s\n", reason != NULL ? "\t" : "", reason != NULL ? reason : "");
  }
  return cli_print_result(settings, lock);
}

int cli_nodes(const cli_settings *settings, redlock_client *client) {
  char name[64];
  (void)snprintf(name, sizeof name, "redlock-nodes-%ld-%llu", (long)getpid(),
                 (unsigned long long)redlock_now());
  return cli_with_lock(settings, client, name, cli_nodes_step);
}
