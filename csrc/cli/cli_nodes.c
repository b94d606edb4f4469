/*
 * redlock(1): what each node answers to a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node that can be reached may still refuse: no memory, no permission, read-only. So the nodes are
 * asked for a lock, of a name that nobody else uses, which is released again.
 */
#include "cli.h"
#include "cli_loop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLI_NODES_PATIENCE_US (500 * REDLOCK_MILLISECONDS)

/* Returns true if every node has answered, or failed. */
static bool cli_nodes_known(redlock_client *client, redlock_lock *lock) {
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_vote_info vote;
    if (redlock_lock_vote(lock, i, &vote) == REDLOCK_OK && vote.vote == REDLOCK_VOTE_UNKNOWN &&
        vote.error == NULL) {
      return false;
    }
  }
  return true;
}

/* Why a node has not granted the lock, in |room| or elsewhere; NULL if it has. */
static const char *cli_nodes_reason(redlock_client *client, size_t index,
                                    const redlock_vote_info *vote, redlock_node_info *room) {
  if (vote->error != NULL || vote->vote != REDLOCK_VOTE_UNKNOWN) {
    return vote->error;
  }
  /* The others had decided. */
  bool known = redlock_client_node_info(client, index, room) == REDLOCK_OK && room->error != NULL;
  return known ? room->error : "no answer in time";
}

/* Returns whether it could be written. */
static bool cli_nodes_print(redlock_client *client, redlock_lock *lock) {
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_vote_info vote;
    if (redlock_lock_vote(lock, i, &vote) != REDLOCK_OK) {
      continue;
    }
    (void)printf("%s\t%s", vote.name, redlock_vote_name(vote.vote));
    if (vote.latency_us != REDLOCK_NEVER) {
      (void)printf("\t%.1f ms", (double)vote.latency_us / (double)REDLOCK_MILLISECONDS);
    }
    redlock_node_info info;
    const char *reason = cli_nodes_reason(client, i, &vote, &info);
    (void)printf("%s%s\n", reason != NULL ? "\t" : "", reason != NULL ? reason : "");
  }
  return fflush(stdout) == 0 && ferror(stdout) == 0;
}

static int cli_nodes_ask(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_time until_us = redlock_now() + CLI_NODES_PATIENCE_US;
  int error = redlock_lock_acquire_start(lock, NULL);
  if (error != REDLOCK_OK) {
    return cli_fail_to_acquire(settings, lock, error);
  }
  while (redlock_lock_result(lock) == REDLOCK_PENDING ||
         (!cli_nodes_known(loop->client, lock) && redlock_now() < until_us)) {
    bool pending = redlock_lock_result(lock) == REDLOCK_PENDING;
    int number = cli_loop_turn(loop, pending ? REDLOCK_NEVER : until_us);
    if (number != 0 && number != SIGCHLD) {
      return 128 + number;
    }
  }
  if (!cli_nodes_print(loop->client, lock)) {
    return cli_fail(CLI_SYSTEM, "what the nodes answered could not be written");
  }
  error = redlock_lock_result(lock);
  return error == REDLOCK_OK ? 0 : cli_fail_to_acquire(settings, lock, error);
}

int cli_nodes(const cli_settings *settings, redlock_client *client) {
  char name[64];
  cli_loop loop;
  redlock_lock *lock;
  int status = CLI_SYSTEM;
  (void)snprintf(name, sizeof name, "redlock-nodes-%ld-%llu", (long)getpid(),
                 (unsigned long long)redlock_now());
  if (redlock_lock_new(&lock, client, name, strlen(name), NULL) != REDLOCK_OK) {
    return cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
  }
  if (cli_loop_open(&loop, client)) {
    status = cli_nodes_ask(settings, &loop, lock);
  } else {
    (void)cli_fail(CLI_SYSTEM, "no pipe, or no handler for signals");
  }
  redlock_lock_free(lock);
  return status;
}
