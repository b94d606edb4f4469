/*
 * TLS for redlock: libredlock_tls.
 *
 * SPDX-License-Identifier: MIT
 *
 * A library of its own, so that programs which need no TLS need no OpenSSL. A program that does says so once,
 * and links with -lredlock_tls (pkg-config: redlock_tls):
 *
 *     #include <redlock_tls.h>
 *
 *     redlock_settings settings = {0};
 *     settings.transport = redlock_tls();
 *     redlock_client_new(&client, &settings, message, sizeof message);
 *     redlock_client_add(client, "rediss://redis-1.example.org", message, sizeof message);
 *
 * The certificate of a node is verified: the chain up to a CA that is trusted, its dates, and that it is for the host
 * by whose name or address the node was added. The options tls_ca, tls_cert and so on, of
 * redlock_settings and redlock_node, say what else there is to say.
 *
 * The process may use OpenSSL for other things. Nothing global in it is changed but what OpenSSL initialises by
 * itself; and a call may empty the calling thread's queue of OpenSSL's errors, so read your own first.
 *
 * The system's CAs are many: a client that trusts them takes some 20 ms, and 0.8 MB, to read them, once for all its nodes.
 * Keep the client, or say tls_ca.
 */
#ifndef REDLOCK_TLS_H
#define REDLOCK_TLS_H

#include "redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What redlock_settings.transport wants. Static; the same each time. Thread-safe. */
REDLOCK_EXTERN const redlock_transport *redlock_tls(void);

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_TLS_H */
