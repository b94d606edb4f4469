/*
 * Resolves host names without blocking.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RESOLVER_H
#define RL_RESOLVER_H

#include <stdbool.h>

#include "options/rl_address.h"

struct addrinfo;

typedef struct rl_resolver rl_resolver;

/* Threads that resolve names at once, of all clients of the process together. */
#define RL_RESOLVER_THREADS_MAX 32

/* An answer serves a later connection for so long. Longer than the back-off (rl_backoff.h). */
#define RL_RESOLVER_ANSWER_US (5 * REDLOCK_SECONDS)

/*
 * Begins to look up |address|, in a thread of its own, for stream sockets: its host, or the master
 * that its Sentinels name. Returns NULL without memory, descriptor or thread; also, with |*busy|,
 * if too many look-ups are in progress: retry later. Give it up with rl_resolver_free() at any
 * time.
 */
rl_resolver *rl_resolver_new(const rl_address *address, bool *busy);

/* Drops a reference, of which the thread has another. Never waits. NULL is allowed. */
void rl_resolver_free(rl_resolver *resolver);

/* Returns a descriptor that is readable when the answer has come. */
int rl_resolver_fd(const rl_resolver *resolver);

/*
 * Returns true if the answer has come. |*addresses| is then the list, which the caller frees with
 * freeaddrinfo(); or NULL, and |*error| is the reason, until the resolver is freed.
 */
bool rl_resolver_take(rl_resolver *resolver, struct addrinfo **addresses, const char **error);

/* Returns true if the answer has come so long ago that the name may have another address now. */
bool rl_resolver_is_stale(const rl_resolver *resolver, redlock_time now_us);

/* In a forked child, which does not have the thread: closes the descriptors. */
void rl_resolver_forget(rl_resolver *resolver);

/* Parses a numeric address; the caller frees it with freeaddrinfo(). Returns NULL for a name. */
struct addrinfo *rl_resolver_numeric(const char *host, int port);

#endif
