/*
 * Functions of all integration tests: cmocka, waiting for conditions, making clients.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assert_contains.h"
#include "eventually.h"
#include "farm.h"
#include "redlock.h"
#include "tests.h"
#include "witness.h"

/* Waits while |client| works. The client has processed the latest events before each check. */
#define pump_until(client, condition) eventually_by((void)0, (pump(client, 2), (condition)))

#define MS(milliseconds) (REDLOCK_MILLISECONDS * (redlock_duration)(milliseconds))

/* Fails unless |error| is REDLOCK_OK, with the lock's message. */
#define assert_ok(lock, error)                                                                     \
  do {                                                                                             \
    int assert_ok_error = (error);                                                                 \
    if (assert_ok_error != REDLOCK_OK) {                                                           \
      fail_msg("%s: %s: %s", #error, redlock_error_name(assert_ok_error),                          \
               redlock_lock_message(lock));                                                        \
    }                                                                                              \
  } while (0)

/* |low| <= |value| <= |high|, with the figures when it is not so. */
#define assert_between(value, low, high)                                                           \
  check_between(#value, (uint64_t)(value), (low), (high), __FILE__, __LINE__)

/*
 * Time since |begun_us| = stopwatch(), from |low| to |high|. Adds the delay that the witness saw,
 * which is no fault of the program (witness.h).
 */
#define assert_took(begun_us, low, high)                                                           \
  assert_between(redlock_now() - (begun_us), (low), (high) + witness_delay_us(begun_us))

/* Starts the witness, and returns the time. */
redlock_time stopwatch(void);

void check_between(const char *what, uint64_t value, uint64_t low, uint64_t high, const char *file,
                   int line);

/*
 * Five servers, and three: set-up and tear-down functions for cmocka. A group of tests starts and
 * ends one of them, and may empty it before each test.
 */
extern farm five;
int five_start(void **state);
int five_start_threaded(
    void **state); /* With the first thread a sanitizer starts one of its own. */
int five_reset(void **state);
int five_end(void **state);
extern farm three;
int three_start(void **state);
int three_reset(void **state);
int three_end(void **state);

/* Makes a client of the first |count| nodes; its locks try once unless |options| differ. */
redlock_client *client_of(const farm *self, unsigned count, const redlock_options *options);

/* A client of some addresses. */
redlock_client *client_at(const char *const *addresses, unsigned count,
                          const redlock_options *options);

/*
 * Tries once. Healthy nodes get more time than a loaded machine needs; a test of a node that does
 * not answer sets its own node_timeout.
 */
redlock_options once(void);

redlock_lock *new_lock(redlock_client *client, const char *resource);

/* A lock that is held. */
redlock_lock *held_lock(redlock_client *client, const char *resource);

/* Frees |lock| and a reference of its client. */
void free_with_client(redlock_lock *lock);

/* One turn of a caller-owned loop, which waits at most |milliseconds|. */
void pump(redlock_client *client, int milliseconds);

/* Acquires and releases one lock, so that all nodes that can be are connected. */
void warm_up(redlock_client *client);

/* Returns true if all nodes are connected and have answered everything. */
bool all_up(redlock_client *client);

/* Returns true if the error of a node's vote contains |text|. */
bool vote_says(redlock_lock *lock, size_t node, const char *text);
redlock_vote vote_of(redlock_lock *lock, size_t node);

/* How many bytes of this process are allocated. Unlike resident memory, no allocator adds to it. */
size_t allocated_bytes(void);

/* How many descriptors this process has. */
unsigned open_descriptors(void);

/* How many threads this process has. */
unsigned running_threads(void);

/* Runs |child| in a forked process. Returns what it returns; fails if it ends otherwise. */
int child_exit(int (*child)(void *), void *argument);

/* Fails unless |child| returns 0. */
void in_child(int (*child)(void *), void *argument);

#endif
