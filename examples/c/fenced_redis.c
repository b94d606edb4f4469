/*
 * A store in Redis that rejects the late write of a holder that was paused beyond its lease.
 *
 *     fenced_redis HOST PORT TEXT 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * HOST and PORT are the server of the data, which is no node of the lock. A script compares the
 * fencing token with that of the last writer, and writes. No other command runs in between.
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KEYS[1] is a hash. Tokens are less than 2^53, so that Lua's numbers hold them. */
static const char STORE[] = "local last = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')\n"
                            "if tonumber(ARGV[1]) < last then return 0 end\n"
                            "redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'text', ARGV[2])\n"
                            "return 1\n";

/* Returns 1; 0 if a writer with a greater token came before; -1 on an error. */
static int write_report(redisContext *store, const char *key, const char *text, uint64_t fence) {
  char number[32];
  (void)snprintf(number, sizeof number, "%llu", (unsigned long long)fence);
  redisReply *reply = redisCommand(store, "EVAL %s 1 %s %s %s", STORE, key, number, text);
  int written = reply != NULL && reply->type == REDIS_REPLY_INTEGER ? (int)reply->integer : -1;
  freeReplyObject(reply);
  return written;
}

static void show_report(redisContext *store, const char *key) {
  redisReply *reply = redisCommand(store, "HGET %s text", key);
  if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
    printf("the store has: %s\n", reply->str);
  }
  freeReplyObject(reply);
}

static int work_under_lock(redlock_lock *lock, redisContext *store, const char *text) {
  char line[80];
  int error = redlock_lock_acquire(lock, NULL, NULL);
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s (%s)\n", redlock_lock_message(lock), redlock_error_name(error));
    return 1;
  }
  /* Read it once, after the acquire: the lock has none after its lease has ended. */
  uint64_t fence = redlock_lock_fence(lock);
  if (fence == 0) { /* An empty store would accept it. */
    fputs("the lease has ended already\n", stderr);
    return 1;
  }
  printf("holding, with the fencing token %llu\n", (unsigned long long)fence);
  (void)fflush(stdout);

  /* The work: it waits for a line. The process may be stopped here for any time. */
  if (fgets(line, sizeof line, stdin) == NULL) {
    return 1;
  }
  int written = write_report(store, "report:daily", text, fence);
  puts(written > 0 ? "stored" : written == 0 ? "refused: a later holder has written" : "failed");
  show_report(store, "report:daily");
  (void)redlock_lock_release(lock);
  return written > 0 ? 0 : 1;
}

static redlock_client *connect_to(int count, char **addresses) {
  char message[256];
  redlock_client *client = NULL;
  int error = redlock_client_new(&client, NULL, message, sizeof message);
  for (int i = 0; i < count && error == REDLOCK_OK; i++) {
    error = redlock_client_add(client, addresses[i], message, sizeof message);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
    redlock_client_free(client);
    return NULL;
  }
  return client;
}

int main(int argc, char **argv) {
  redlock_options options = {
      .ttl_us = REDLOCK_SECONDS, .wait_us = 10 * REDLOCK_SECONDS, .fence = REDLOCK_YES};
  const struct timeval patience = {5, 0};
  redlock_lock *lock = NULL;
  int status = 1;
  if (argc < 5) {
    fprintf(stderr, "usage: %s host port text address...\n", argv[0]);
    return 2;
  }
  redlock_client *client = connect_to(argc - 4, argv + 4);
  if (client == NULL) {
    return 1;
  }
  redisContext *store = redisConnectWithTimeout(argv[1], (int)strtol(argv[2], NULL, 10), patience);
  if (store == NULL || store->err != 0) {
    fprintf(stderr, "%s:%s: %s\n", argv[1], argv[2], store != NULL ? store->errstr : "no memory");
  } else if (redlock_lock_new(&lock, client, "report:daily", strlen("report:daily"), &options) !=
             REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_client_message(client));
  } else {
    status = work_under_lock(lock, store, argv[3]);
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  redisFree(store);
  return status;
}
