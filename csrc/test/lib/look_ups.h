/*
 * Look-ups of names that wait for the test, and a count of their results. Included by one file of a
 * program: it defines the wrappers.
 *
 * SPDX-License-Identifier: MIT
 *
 * The names of the wrappers are in the file that includes this, where the Makefile finds them.
 */
#ifndef LOOK_UPS_H
#define LOOK_UPS_H

#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>

#include "rl_test.h"

/*
 * True while look-ups must wait; the number of running look-ups; and the number of lists of
 * addresses.
 */
static atomic_bool look_ups_wait;
static atomic_int look_ups_port; /* only look-ups of this port wait; 0: all */
static atomic_int look_ups_running;
static atomic_int look_ups_lists;

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
void __real_freeaddrinfo(struct addrinfo *addresses);
void __wrap_freeaddrinfo(struct addrinfo *addresses);

static bool look_ups_must_wait(const char *service) {
  int port = atomic_load(&look_ups_port);
  return atomic_load(&look_ups_wait) && (port == 0 || atoi(service) == port);
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses) {
  atomic_fetch_add(&look_ups_running, 1);
  while (look_ups_must_wait(service) && (hints->ai_flags & AI_NUMERICHOST) == 0) {
    (void)poll(NULL, 0, 1);
  }
  int error = __real_getaddrinfo(host, service, hints, addresses);
  atomic_fetch_add(&look_ups_lists, error == 0);
  atomic_fetch_sub(&look_ups_running, 1);
  return error;
}

void __wrap_freeaddrinfo(struct addrinfo *addresses) {
  assert_non_null(addresses);
  atomic_fetch_sub(&look_ups_lists, 1);
  __real_freeaddrinfo(addresses);
}

/*
 * The teardown of a group: under valgrind a process would otherwise never end if a thread is in a
 * look-up.
 */
static int look_ups_end(void **state) {
  redlock_time until_us = redlock_now() + 20 * REDLOCK_SECONDS;
  (void)state;
  while (atomic_load(&look_ups_running) > 0 && redlock_now() < until_us) {
    (void)poll(NULL, 0, 1);
  }
  return atomic_load(&look_ups_running) > 0;
}

#endif
