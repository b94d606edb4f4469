/*
 * What a program saw of redlock.h when it was compiled with the first version of soname 0. The
 * structs are those of then: today's have more fields at their end.
 *
 * SPDX-License-Identifier: MIT
 *
 * Do not add what redlock.h gets: older_program.c proves that programs of then still run.
 */
#ifndef REDLOCK_0_H
#define REDLOCK_0_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t redlock_duration;

#define REDLOCK_SECONDS ((redlock_duration)1000000)
#define REDLOCK_TEXT_MAX 192
#define REDLOCK_RETRIES_NONE (-1)
#define REDLOCK_OK 0
#define REDLOCK_E_UNAVAILABLE (-2)
#define REDLOCK_E_NOT_HELD (-6)
#define REDLOCK_E_INVALID (-20)
#define REDLOCK_VOTE_UNKNOWN 0
#define REDLOCK_VOTE_ERROR 3
#define REDLOCK_NODE_DOWN 0

typedef struct redlock_client redlock_client;
typedef struct redlock_lock redlock_lock;

typedef struct redlock_options {
  redlock_duration ttl_us;
  int retry_count;
  redlock_duration retry_delay_us;
  redlock_duration retry_jitter_us;
  redlock_duration wait_us;
  redlock_duration node_timeout_us;
  double drift_factor;
  redlock_duration lock_delay_us;
} redlock_options;

typedef struct redlock_settings {
  const redlock_options *options;
  const void *prefix;
  size_t prefix_length;
  const char *username;
  const char *password;
  int db;
  int tls;
} redlock_settings;

typedef struct redlock_node {
  const char *address;
  const char *host;
  int port;
  const char *path;
  const char *username;
  const char *password;
  int db;
  int tls;
} redlock_node;

typedef struct redlock_node_info {
  const char *name;
  int state;
  const char *error;
  redlock_duration latency_us;
  size_t outstanding;
  char text[REDLOCK_TEXT_MAX];
} redlock_node_info;

typedef struct redlock_vote_info {
  const char *name;
  int vote;
  const char *error;
  redlock_duration latency_us;
  char text[REDLOCK_TEXT_MAX];
} redlock_vote_info;

int redlock_client_new_sized(redlock_client **client, const redlock_settings *settings,
                             size_t settings_size, size_t options_size, char *message,
                             size_t message_size);
int redlock_client_add(redlock_client *client, const char *address, char *message,
                       size_t message_size);
int redlock_client_add_node_sized(redlock_client *client, const redlock_node *node,
                                  size_t node_size, char *message, size_t message_size);
int redlock_client_node_info_sized(redlock_client *client, size_t index, redlock_node_info *info,
                                   size_t info_size);
void redlock_client_free(redlock_client *client);
int redlock_lock_new_sized(redlock_lock **lock, redlock_client *client, const void *resource,
                           size_t resource_length, const redlock_options *options,
                           size_t options_size);
int redlock_lock_acquire_sized(redlock_lock *lock, const redlock_options *options,
                               size_t options_size, redlock_duration *validity_us);
int redlock_lock_release(redlock_lock *lock);
redlock_duration redlock_lock_ttl(const redlock_lock *lock);
int redlock_lock_vote_sized(redlock_lock *lock, size_t index, redlock_vote_info *vote,
                            size_t vote_size);
void redlock_lock_free(redlock_lock *lock);

#endif
