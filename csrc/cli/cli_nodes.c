/*
 * redlock nodes: shows the answer of each node to an acquire.
 *
 * SPDX-License-Identifier: MIT
 *
 * A reachable node can still refuse a lock: no memory, no permission, read-only. So the verb
 * acquires locks of unique names and releases them.
 *   NODES-1. Each node gets a lock from a client of its own. So its vote does not depend on the
 *            answers of other nodes, as in an acquire that a majority decides.
 *   NODES-2. The client of all nodes acquires a lock, too, and then asks every node once. It knows
 *            what is wrong with the nodes together: quarantine by the guard, two names of one
 *            server.
 *   NODES-3. A node grants if its own lock was granted and NODES-2 found nothing wrong with it.
 *   NODES-4. The exit status depends on the number of nodes that grant.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "cli_output.h"

typedef struct cli_probe {
  redlock_client *client;
  redlock_lock *lock;
  redlock_vote_info vote;
  bool settled;
} cli_probe;

typedef struct cli_nodes_run {
  cli_loop *loop;
  size_t count;
  bool quiet; /* shows only nodes that do not grant */
  cli_probe probes[REDLOCK_NODES_MAX];
  struct pollfd polls[REDLOCK_NODES_MAX];
} cli_nodes_run;

/* --------------------------------------------------------------------------------------- probes */

/* NODES-1. Returns -1, or the exit status after a message. */
static int cli_probe_open(cli_probe *probe, const cli_settings *settings, size_t index,
                          const char *name) {
  char message[256] = "";
  redlock_settings alone = settings->client;
  alone.quorum = 0;
  alone.guard = 0;
  alone.guard_max_ttl_us = 0;
  alone.guard_cluster = NULL;
  int error = redlock_client_new(&probe->client, &alone, message, sizeof message);
  if (error == REDLOCK_OK) {
    error = redlock_client_add(probe->client, settings->nodes[index], message, sizeof message);
  }
  if (error == REDLOCK_OK) {
    error = redlock_lock_new(&probe->lock, probe->client, name, strlen(name), NULL);
  }
  if (error == REDLOCK_OK) {
    error = redlock_lock_acquire_start(probe->lock, NULL);
  }
  if (error == REDLOCK_OK) {
    return -1;
  }
  return cli_fail(CLI_SYSTEM, "node %zu: %s", index + 1,
                  message[0] != '\0' ? message : redlock_strerror(error));
}

/* Settles a probe whose acquire has ended, or whose node has refused. */
static void cli_probe_settle(cli_probe *probe) {
  if (probe->settled || redlock_lock_vote(probe->lock, 0, &probe->vote) != REDLOCK_OK) {
    return;
  }
  int result = redlock_lock_result(probe->lock);
  probe->settled = result != REDLOCK_PENDING || probe->vote.vote == REDLOCK_VOTE_ERROR;
  if (probe->settled && result == REDLOCK_OK) {
    (void)redlock_lock_release_start(probe->lock);
  } else if (probe->settled) {
    redlock_lock_cancel(probe->lock);
  }
}

/* Returns true if a probe is not settled, or its release has not ended. */
static bool cli_nodes_busy(const cli_nodes_run *run) {
  for (size_t i = 0; i < run->count; i++) {
    const cli_probe *probe = &run->probes[i];
    if (!probe->settled || redlock_lock_result(probe->lock) == REDLOCK_PENDING) {
      return true;
    }
  }
  return false;
}

/* Processes all clients once. Returns -1, or the exit status if a signal came. */
static int cli_nodes_turn(cli_nodes_run *run) {
  redlock_time until_us = REDLOCK_NEVER;
  for (size_t i = 0; i < run->count; i++) {
    int fd = redlock_client_pollfd(run->probes[i].client);
    run->polls[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    until_us = fd < 0 ? redlock_now() + 10 * REDLOCK_MILLISECONDS : until_us;
  }
  int number = cli_loop_turn(run->loop, until_us, run->polls, run->count);
  for (size_t i = 0; i < run->count; i++) {
    (void)redlock_client_process(run->probes[i].client, NULL, 0);
    while (redlock_client_next_ended(run->probes[i].client) != NULL) {
      /* The probe's one lock has a result. */
    }
    cli_probe_settle(&run->probes[i]);
  }
  return number == 0 ? -1 : CLI_SIGNAL + number;
}

/* Waits for an operation of the lock of all nodes. Returns -1, or the exit status. */
static int cli_nodes_await(const cli_settings *settings, cli_nodes_run *run, redlock_lock *lock,
                           int error) {
  int status = error == REDLOCK_OK ? -1 : cli_fail_lock(settings, lock, error);
  while (status < 0 && redlock_lock_result(lock) == REDLOCK_PENDING) {
    status = cli_nodes_turn(run);
  }
  return status;
}

/* NODES-1, NODES-2. Returns -1, or the exit status. */
static int cli_nodes_ask(const cli_settings *settings, cli_nodes_run *run, redlock_lock *lock) {
  int status = cli_nodes_await(settings, run, lock, redlock_lock_acquire_start(lock, NULL));
  if (status < 0 && redlock_lock_result(lock) == REDLOCK_OK) {
    status = cli_nodes_await(settings, run, lock, redlock_lock_release_start(lock));
  }
  if (status < 0) {
    status = cli_nodes_await(settings, run, lock, redlock_lock_inspect_start(lock));
  }
  while (status < 0 && cli_nodes_busy(run)) {
    status = cli_nodes_turn(run);
  }
  return status;
}

/* -------------------------------------------------------------------------------------- answers */

/*
 * NODES-3. Corrects the vote of a node by what the client of all nodes knows. Equal failures get
 * equal texts: "no reply within 893 ms" becomes "no reply in time".
 */
static void cli_nodes_correct(cli_probe *probe, redlock_client *client, size_t index) {
  redlock_node_info info;
  redlock_vote_info *vote = &probe->vote;
  char *within = vote->error != NULL ? strstr(vote->text, " within ") : NULL;
  if (vote->vote == REDLOCK_VOTE_UNKNOWN && within != NULL) {
    (void)snprintf(within, sizeof vote->text - (size_t)(within - vote->text), " in time");
  }
  if (vote->vote != REDLOCK_VOTE_GRANTED ||
      redlock_client_node_info(client, index, &info) != REDLOCK_OK) {
    return;
  }
  const char *error = info.quarantine != NULL ? info.quarantine : info.error;
  if (error != NULL) {
    vote->vote = info.quarantine != NULL ? REDLOCK_VOTE_QUARANTINED : REDLOCK_VOTE_ERROR;
    (void)snprintf(vote->text, sizeof vote->text, "%s", error);
    vote->error = vote->text;
  }
}

static int cli_nodes_row(void *context, size_t index, cli_cell cells[static CLI_COLUMNS_MAX]) {
  const cli_nodes_run *run = context;
  if (index == run->count) {
    return CLI_ROW_END;
  }
  const redlock_vote_info *vote = &run->probes[index].vote;
  bool granted = vote->vote == REDLOCK_VOTE_GRANTED;
  cells[0].text = vote->name;
  cells[1].text = redlock_vote_name((int)vote->vote);
  cells[1].color = granted ? CLI_GOOD : vote->vote == REDLOCK_VOTE_QUARANTINED ? CLI_WARN : CLI_BAD;
  cells[2] = (cli_cell){.kind = CLI_TIME, .number = vote->latency_us};
  cells[3].text = vote->error;
  return run->quiet && granted ? CLI_ROW_SKIP : CLI_ROW_SHOW;
}

/* NODES-4. Returns the exit status. */
static int cli_nodes_print(const cli_settings *settings, cli_nodes_run *run) {
  static const cli_column columns[] = {
      {"NODE", "node"}, {"ANSWER", "vote"}, {"TIME", "latency_ms"}, {"ERROR", "error"}, {0}};
  const cli_table table = {cli_nodes_row, run, columns};
  size_t granted = 0;
  size_t quorum = cli_quorum(settings, run->count);
  for (size_t i = 0; i < run->count; i++) {
    cli_nodes_correct(&run->probes[i], run->loop->client, i);
    granted += run->probes[i].vote.vote == REDLOCK_VOTE_GRANTED;
  }
  if (settings->json) {
    cli_json json = {0};
    cli_json_begin(&json, NULL, '{');
    cli_json_number(&json, "granted", granted);
    cli_json_number(&json, "quorum", quorum);
    cli_json_table(&json, "nodes", &table);
    cli_json_end_line(&json);
  } else {
    cli_put_table(&table);
  }
  int status = cli_flush();
  if (status == 0 && granted < quorum) {
    return cli_report(settings, CLI_UNAVAILABLE,
                      "%zu of %zu nodes grant locks, and a lock needs %zu", granted, run->count,
                      quorum);
  }
  return status;
}

/* ----------------------------------------------------------------------------------------- verb */

int cli_nodes(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_nodes_run run = {
      .loop = loop, .count = settings->node_count, .quiet = settings->quiet && !settings->json};
  char name[64];
  size_t length;
  const char *resource = redlock_lock_resource(lock, &length);
  int status = -1;
  (void)snprintf(name, sizeof name, "%.*s-one", (int)length, resource);
  for (size_t i = 0; status < 0 && i < run.count; i++) {
    status = cli_probe_open(&run.probes[i], settings, i, name);
  }
  status = status < 0 ? cli_nodes_ask(settings, &run, lock) : status;
  status = status < 0 ? cli_nodes_print(settings, &run) : status;
  for (size_t i = 0; i < run.count; i++) {
    redlock_lock_free(run.probes[i].lock);
    if (run.probes[i].client != NULL) {
      (void)redlock_client_close(run.probes[i].client, 0);
      redlock_client_free(run.probes[i].client);
    }
  }
  return status;
}
