/*
 * A program that was compiled with an older redlock.h, and runs with today's library.
 *
 * SPDX-License-Identifier: MIT
 *
 * Its nodes do not exist, so it needs no server. Prints a line for each check; exits with 1 if one
 * fails.
 */
#include "redlock_0.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CANARY 0xa5

static int status;

static void check(const char *name, bool passed) {
  printf("%s - abi: %s\n", passed ? "ok" : "not ok", name);
  status |= !passed;
}

static bool is_canary(const unsigned char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] != CANARY) {
      return false;
    }
  }
  return true;
}

static redlock_client *new_client(void) {
  char message[256] = "";
  redlock_client *client = NULL;
  redlock_options options = {0};
  redlock_settings settings = {&options, "older:", 6, NULL, NULL, 0, 0};
  redlock_node node = {0};
  options.ttl_us = 7 * REDLOCK_SECONDS;
  options.retry_count = REDLOCK_RETRIES_NONE;
  node.path = "/nonexistent/3";
  int error = redlock_client_new_sized(&client, &settings, sizeof settings, sizeof options, message,
                                       sizeof message);
  check("older settings and options are accepted", error == REDLOCK_OK);
  check("nodes are added", redlock_client_add(client, "unix:///nonexistent/1", message,
                                              sizeof message) == REDLOCK_OK &&
                               redlock_client_add(client, "unix:///nonexistent/2", message,
                                                  sizeof message) == REDLOCK_OK);
  check("an older node is accepted",
        redlock_client_add_node_sized(client, &node, sizeof node, message, sizeof message) ==
            REDLOCK_OK);
  return client;
}

static void check_infos(redlock_client *client, redlock_lock *lock) {
  struct {
    redlock_node_info info;
    unsigned char after[1024];
  } node;
  struct {
    redlock_vote_info info;
    unsigned char after[1024];
  } vote;
  memset(&node, CANARY, sizeof node);
  memset(&vote, CANARY, sizeof vote);
  check("an older node info is filled",
        redlock_client_node_info_sized(client, 2, &node.info, sizeof node.info) == REDLOCK_OK &&
            strcmp(node.info.name, "unix:/nonexistent/3") == 0 &&
            node.info.state == REDLOCK_NODE_DOWN && node.info.error == node.info.text &&
            node.info.text[0] != '\0');
  check("nothing behind a node info is written", is_canary(node.after, sizeof node.after));
  check("an older vote info is filled",
        redlock_lock_vote_sized(lock, 0, &vote.info, sizeof vote.info) == REDLOCK_OK &&
            strcmp(vote.info.name, "unix:/nonexistent/1") == 0 &&
            (vote.info.vote == REDLOCK_VOTE_ERROR || vote.info.vote == REDLOCK_VOTE_UNKNOWN) &&
            vote.info.error == vote.info.text);
  check("nothing behind a vote info is written", is_canary(vote.after, sizeof vote.after));
}

int main(void) {
  redlock_options options = {0};
  redlock_lock *lock = NULL;
  redlock_client *client = new_client();
  int error = redlock_lock_new_sized(&lock, client, "abi", 3, NULL, sizeof options);
  check("a lock has the client's older options",
        error == REDLOCK_OK && redlock_lock_ttl(lock) == 7 * REDLOCK_SECONDS);
  options.retry_count = REDLOCK_RETRIES_NONE;
  check("errors keep their numbers",
        redlock_lock_acquire_sized(lock, &options, sizeof options, NULL) == REDLOCK_E_UNAVAILABLE &&
            redlock_lock_release(lock) == REDLOCK_E_NOT_HELD);
  error = redlock_lock_acquire_sized(lock, &options, sizeof options - 1, NULL);
  check("an impossible size is refused", error == REDLOCK_E_INVALID);
  check_infos(client, lock);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return status;
}
