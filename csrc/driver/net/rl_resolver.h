/*
 * Host names to addresses, without blocking.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RESOLVER_H
#define RL_RESOLVER_H

#include <stdbool.h>

struct addrinfo;

typedef struct rl_resolver rl_resolver;

/* Threads of the process, of all clients together, that look names up at once. */
#define RL_RESOLVER_THREADS_MAX 32

/*
 * Begins to resolve |host|, in a thread of its own, for stream sockets on |port|. NULL when there is
 * no memory, descriptor or thread; also with |*busy| when so many look-ups are under way that this one
 * has to wait for its turn. To be given up with rl_resolver_free() at any time.
 */
rl_resolver *rl_resolver_new(const char *host, int port, bool *busy);

/* Never waits for the thread. NULL is allowed. */
void rl_resolver_free(rl_resolver *resolver);

/* A descriptor that is readable when the answer has come. */
int rl_resolver_fd(const rl_resolver *resolver);

/*
 * Returns true if the answer has come. Then |*addresses| is the list, the caller's to free with
 * freeaddrinfo(), or NULL with |*error| saying why.
 */
bool rl_resolver_take(rl_resolver *resolver, struct addrinfo **addresses, const char **error);

/* In a forked child, where the thread does not exist: closes the descriptors. */
void rl_resolver_forget(rl_resolver *resolver);

/* Resolves an address in digits at once; NULL when |host| is none. freeaddrinfo() is the caller's. */
struct addrinfo *rl_resolver_numeric(const char *host, int port);

#endif
