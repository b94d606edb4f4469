/*
 * Blocking calls: acquire, extend, release.
 *
 *     plain 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <stdio.h>
#include <string.h>

static double milliseconds(redlock_duration duration_us) {
  return (double)duration_us / (double)REDLOCK_MILLISECONDS;
}

static void print_votes(redlock_client *client, redlock_lock *lock) {
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_vote_info vote;
    if (redlock_lock_vote(lock, i, &vote) == REDLOCK_OK) {
      printf("  %s: %s%s%s\n", vote.name, redlock_vote_name(vote.vote),
             vote.error != NULL ? ": " : "", vote.error != NULL ? vote.error : "");
    }
  }
}

static int failed(const char *what, redlock_lock *lock, int error) {
  fprintf(stderr, "%s: %s (%s)\n", what, redlock_lock_message(lock), redlock_error_name(error));
  return 1;
}

static int work_under_lock(redlock_client *client, redlock_lock *lock) {
  redlock_duration validity_us;
  int error = redlock_lock_acquire(lock, NULL, &validity_us);
  if (error != REDLOCK_OK) {
    return failed("acquire", lock, error);
  }
  printf("acquired, valid for %.1f ms\n", milliseconds(validity_us));
  print_votes(client, lock);

  error = redlock_lock_extend(lock, 20 * REDLOCK_SECONDS, &validity_us);
  if (error != REDLOCK_OK) {
    return failed("extend", lock, error);
  }
  printf("extended, valid for %.1f ms\n", milliseconds(validity_us));

  /* The work goes here, and stops when redlock_lock_remaining(lock) has come down to 0. */

  error = redlock_lock_release(lock);
  if (error != REDLOCK_OK) {
    return failed("release", lock, error);
  }
  printf("released, valid for %.1f ms\n", milliseconds(redlock_lock_remaining(lock)));
  return 0;
}

int main(int argc, char **argv) {
  char message[256];
  redlock_client *client = NULL;
  redlock_lock *lock = NULL;
  int status = 1;

  if (argc < 2) {
    fprintf(stderr, "usage: %s address...\n", argv[0]);
    return 2;
  }
  if (redlock_client_new(&client, NULL, message, sizeof message) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  for (int i = 1; i < argc; i++) {
    if (redlock_client_add(client, argv[i], message, sizeof message) != REDLOCK_OK) {
      fprintf(stderr, "%s\n", message);
      goto done;
    }
  }
  if (redlock_lock_new(&lock, client, "orders:42", strlen("orders:42"), NULL) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_client_message(client));
  } else {
    status = work_under_lock(client, lock);
  }
done:
  redlock_lock_free(lock);
  redlock_client_free(client);
  return status;
}
