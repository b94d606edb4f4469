/*
 * TLS for redlock: libredlock_tls.
 *
 * SPDX-License-Identifier: MIT
 *
 * A separate library, so that programs without TLS need no OpenSSL. Link with -lredlock_tls
 * (pkg-config: redlock_tls), and:
 *
 *     #include <redlock_tls.h>
 *
 *     redlock_settings settings = {0};
 *     settings.transport = redlock_tls();
 *     error = redlock_client_new(&client, &settings, message, sizeof message);
 *     if (error == REDLOCK_OK) {
 *       error = redlock_client_add(client, "rediss://redis.example.org", message, sizeof message);
 *     }
 *
 * The certificate of a node is verified: its chain up to a trusted CA, its dates, and the name or
 * address of the host in the node's address. The fields of redlock_settings and redlock_node that
 * begin with tls_ say what differs.
 *
 * The process may use OpenSSL for other things. The library changes nothing global in OpenSSL,
 * except what OpenSSL initialises by itself. A call may empty the calling thread's queue of OpenSSL
 * errors: read your own errors first.
 *
 * A client that trusts the system's CAs takes about 20 ms and 0.8 MB to read them, once for all its
 * nodes. Keep the client, or set tls_ca.
 */
#ifndef REDLOCK_TLS_H
#define REDLOCK_TLS_H

#include "redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the transport for redlock_settings.transport. Static, the same in each call. Any thread
 * may call it. A library of another version than libredlock is refused by redlock_client_add() with
 * REDLOCK_E_UNSUPPORTED.
 */
REDLOCK_EXTERN const redlock_transport *redlock_tls(void);

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_TLS_H */
