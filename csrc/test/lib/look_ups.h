/*
 * Look-ups of names that wait until they are told not to, and a count of what they have found. Included by one
 * file of a program: it defines the wrappers.
 *
 * SPDX-License-Identifier: MIT
 *
 * The names of the wrappers stand in the file that includes this, where the Makefile looks for them.
 */
#ifndef LOOK_UPS_H
#define LOOK_UPS_H

#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>

#include "rl_test.h"

/* Whether threads that look a name up wait, and how many lists of addresses there are. */
static atomic_bool look_ups_wait;
static atomic_int look_ups_lists;

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses);
void __real_freeaddrinfo(struct addrinfo *addresses);
void __wrap_freeaddrinfo(struct addrinfo *addresses);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **addresses) {
  while (atomic_load(&look_ups_wait) && (hints->ai_flags & AI_NUMERICHOST) == 0) {
    (void)poll(NULL, 0, 1);
  }
  int error = __real_getaddrinfo(host, service, hints, addresses);
  atomic_fetch_add(&look_ups_lists, error == 0);
  return error;
}

void __wrap_freeaddrinfo(struct addrinfo *addresses) {
  assert_non_null(addresses);
  atomic_fetch_sub(&look_ups_lists, 1);
  __real_freeaddrinfo(addresses);
}

#endif
