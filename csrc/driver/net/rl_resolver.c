/*
 * Resolves host names, and asks Sentinels, without blocking.
 *
 * SPDX-License-Identifier: MIT
 *
 * Sentinels are asked by the same thread, because they have names, too (rl_sentinel.c).
 *
 * Only getaddrinfo() resolves names as the machine is configured, and it blocks for tens of seconds
 * if a name server is down. So it runs in a detached thread, which shares only a reference-counted
 * request. The thread cannot be interrupted: the client abandons the request. The thread may
 * outlive the last dlclose(), so libraries with this code are linked with -z nodelete.
 *
 * A thread that hangs belongs to no client. A process that makes many clients while a name server
 * is down would collect such threads, so a static variable counts them. A forked child has none of
 * them, so the variable holds the process number, too.
 */
#include "net/rl_resolver.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rl_time.h"
#include "net/rl_lookup.h"
#include "net/rl_sentinel.h"
#include "os/rl_descriptor.h"
#include "os/rl_thread.h"

#define RL_RESOLVER_STACK                                                                          \
  ((size_t)512 * 1024) /* bytes, without the program's thread-local memory */

/* Process number << 32 | number of its threads that resolve. */
static _Atomic uint64_t rl_resolver_threads;

struct rl_resolver {
  atomic_int references; /* the caller's and the thread's */
  atomic_bool done;
  redlock_time done_us;
  int fds[2]; /* the thread writes to [1], the caller waits for [0] */
  struct addrinfo *addresses;
  char error[RL_STREAM_ERROR_MAX]; /* if there are no addresses */
  rl_sentinel_master target;       /* its host and port, or those that the Sentinels name */
  rl_address_sentinels sentinels;
  rl_sentinel_connection connection; /* the thread's */
};

/* Counts one more thread. Returns false if the limit is reached. */
static bool rl_resolver_enter(void) {
  uint64_t process = (uint64_t)getpid() << 32;
  uint64_t before = atomic_load(&rl_resolver_threads);
  uint64_t after;
  do {
    uint64_t count = (before & ~(uint64_t)UINT32_MAX) == process ? before & UINT32_MAX : 0;
    if (count >= RL_RESOLVER_THREADS_MAX) {
      return false;
    }
    after = process | (count + 1);
  } while (!atomic_compare_exchange_weak(&rl_resolver_threads, &before, after));
  return true;
}

static void rl_resolver_leave(void) {
  (void)atomic_fetch_sub(&rl_resolver_threads, 1);
}

void rl_resolver_free(rl_resolver *resolver) {
  if (resolver == NULL || atomic_fetch_sub(&resolver->references, 1) > 1) {
    return;
  }
  if (resolver->addresses != NULL) {
    freeaddrinfo(resolver->addresses);
  }
  (void)close(resolver->fds[0]);
  (void)close(resolver->fds[1]);
  free(resolver);
}

static void *rl_resolver_run(void *argument) {
  rl_resolver *resolver = argument;
  rl_sentinel_master *target = &resolver->target;
  bool known =
      resolver->sentinels.count == 0 ||
      rl_sentinel_find(&resolver->sentinels, &resolver->connection, target, resolver->error);
  int error = known ? rl_lookup_name(target->host, target->port, &resolver->addresses) : 0;
  if (error != 0) {
    (void)snprintf(resolver->error, sizeof resolver->error, "cannot resolve the name: %s",
                   gai_strerror(error));
  }
  resolver->done_us = redlock_now();
  atomic_store(&resolver->done, true);
  rl_resolver_leave();
  (void)send(resolver->fds[1], "", 1, MSG_NOSIGNAL);
  rl_resolver_free(resolver);
  return NULL;
}

static rl_resolver *rl_resolver_create(const rl_address *address) {
  rl_resolver *resolver = calloc(1, sizeof *resolver);
  if (resolver == NULL) {
    return NULL;
  }
  resolver->connection.fd = -1;
  if (!rl_descriptor_pair(resolver->fds)) {
    free(resolver);
    return NULL;
  }
  memcpy(resolver->target.host, address->host, sizeof address->host);
  (void)snprintf(resolver->target.port, sizeof resolver->target.port, "%d", address->port);
  resolver->sentinels = address->sentinels;
  atomic_init(&resolver->references, 2);
  atomic_init(&resolver->done, false);
  if (rl_thread_start(NULL, RL_RESOLVER_STACK, rl_resolver_run, resolver) != 0) {
    atomic_store(&resolver->references, 1);
    rl_resolver_free(resolver);
    return NULL;
  }
  return resolver;
}

rl_resolver *rl_resolver_new(const rl_address *address, bool *busy) {
  *busy = !rl_resolver_enter();
  if (*busy) {
    return NULL;
  }
  rl_resolver *resolver = rl_resolver_create(address);
  if (resolver == NULL) {
    rl_resolver_leave();
  }
  return resolver;
}

int rl_resolver_fd(const rl_resolver *resolver) {
  return resolver->fds[0];
}

bool rl_resolver_take(rl_resolver *resolver, struct addrinfo **addresses, const char **error) {
  if (!atomic_load(&resolver->done)) {
    return false;
  }
  *addresses = resolver->addresses;
  resolver->addresses = NULL;
  *error = resolver->error[0] != '\0' ? resolver->error : "the name has no address";
  return true;
}

bool rl_resolver_is_stale(const rl_resolver *resolver, redlock_time now_us) {
  return atomic_load(&resolver->done) &&
         now_us > rl_time_add(resolver->done_us, RL_RESOLVER_ANSWER_US);
}

void rl_resolver_forget(rl_resolver *resolver) {
  /* Leak the request: the thread may have been writing to it during the fork. */
  rl_sentinel_forget(&resolver->connection);
  (void)close(resolver->fds[0]);
  (void)close(resolver->fds[1]);
}

struct addrinfo *rl_resolver_numeric(const char *host, int port) {
  struct addrinfo *addresses;
  char service[8];
  (void)snprintf(service, sizeof service, "%d", port);
  (void)rl_lookup_numeric(host, service, &addresses);
  return addresses;
}
