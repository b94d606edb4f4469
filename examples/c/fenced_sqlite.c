/*
 * A store in SQL that rejects the late write of a holder that was paused beyond its lease.
 *
 *     fenced_sqlite FILE TEXT 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * No lock can stop a process between its last check of the clock and its write. So the store
 * checks: it keeps the fencing token of the last writer beside the data, and rejects a smaller one.
 * The statement is the same in PostgreSQL, where an INTEGER is too short for the token.
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const char CREATE[] = "CREATE TABLE IF NOT EXISTS report"
                             " (name TEXT PRIMARY KEY, text TEXT NOT NULL, fence BIGINT NOT NULL)";

/* One statement compares and writes: no other one runs in between. */
static const char STORE[] =
    "INSERT INTO report (name, text, fence) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (name) DO UPDATE SET text = excluded.text, fence = excluded.fence"
    " WHERE excluded.fence >= report.fence";

static const char LOAD[] = "SELECT text FROM report WHERE name = ?1";

static sqlite3_stmt *prepare(sqlite3 *store, const char *sql, const char *name) {
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(store, sql, -1, &statement, NULL) == SQLITE_OK) {
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
  }
  return statement;
}

/* Returns the number of written rows: 0 if a writer with a greater token came before; -1 on an
   error. */
static int write_report(sqlite3 *store, const char *name, const char *text, uint64_t fence) {
  sqlite3_stmt *statement = prepare(store, STORE, name);
  (void)sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
  (void)sqlite3_bind_int64(statement, 3, (sqlite3_int64)fence); /* It is less than 2^53. */
  int result = sqlite3_step(statement);
  (void)sqlite3_finalize(statement);
  return result == SQLITE_DONE ? sqlite3_changes(store) : -1;
}

static void show_report(sqlite3 *store, const char *name) {
  sqlite3_stmt *statement = prepare(store, LOAD, name);
  if (sqlite3_step(statement) == SQLITE_ROW) {
    printf("the store has: %s\n", (const char *)sqlite3_column_text(statement, 0));
  }
  (void)sqlite3_finalize(statement);
}

static int work_under_lock(redlock_lock *lock, sqlite3 *store, const char *text) {
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
  int written = write_report(store, "daily", text, fence);
  puts(written > 0 ? "stored" : written == 0 ? "refused: a later holder has written" : "failed");
  show_report(store, "daily");
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
  redlock_lock *lock = NULL;
  sqlite3 *store = NULL;
  int status = 1;
  if (argc < 4) {
    fprintf(stderr, "usage: %s file text address...\n", argv[0]);
    return 2;
  }
  redlock_client *client = connect_to(argc - 3, argv + 3);
  if (client == NULL) {
    return 1;
  }
  if (sqlite3_open(argv[1], &store) != SQLITE_OK ||
      sqlite3_busy_timeout(store, 5000) != SQLITE_OK ||
      sqlite3_exec(store, CREATE, NULL, NULL, NULL) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", argv[1], sqlite3_errmsg(store));
  } else if (redlock_lock_new(&lock, client, "report:daily", strlen("report:daily"), &options) !=
             REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_client_message(client));
  } else {
    status = work_under_lock(lock, store, argv[2]);
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  (void)sqlite3_close(store);
  return status;
}
