/*
 * Resolves a host name, and blocks meanwhile.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LOOKUP_H
#define RL_LOOKUP_H

struct addrinfo;

/*
 * Fills |*addresses| with those of |host|, for stream sockets to the number |port|. The caller
 * frees them with freeaddrinfo(). Returns 0, or an error of getaddrinfo() and NULL in |*addresses|.
 */
int rl_lookup_name(const char *host, const char *port, struct addrinfo **addresses);

/* The same for a numeric address, without blocking. */
int rl_lookup_numeric(const char *host, const char *port, struct addrinfo **addresses);

#endif
