/*
 * A TLS server in memory: the peer of a stream without sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TLS_PEER_H
#define TLS_PEER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "rl_tls.h"

/* A self-signed certificate for |host|, 127.0.0.1 and ::1; its validity is in days from now. */
typedef struct tls_certificate {
  X509 *certificate;
  EVP_PKEY *key;
} tls_certificate;

tls_certificate tls_certificate_make(const char *host, int from_days, int until_days);
void tls_certificate_free(tls_certificate *self);
void tls_certificate_write(const tls_certificate *self, const char *path);
void tls_certificate_write_key(const tls_certificate *self, const char *path, const char *password);

typedef struct tls_peer {
  SSL_CTX *context;
  SSL *ssl;
  BIO *in;
  BIO *out;
} tls_peer;

/* |version| is TLS1_2_VERSION or TLS1_3_VERSION. tls_peer_next() begins the next connection. */
void tls_peer_start(tls_peer *self, const tls_certificate *certificate, int version);
void tls_peer_end(tls_peer *self);
void tls_peer_next(tls_peer *self);

/* Takes the output of |stream|, and continues the handshake. */
void tls_peer_take(tls_peer *self, rl_transport_stream *stream);

/* Moves at most |length| bytes of the peer into |stream|. Returns their number. */
size_t tls_peer_give(tls_peer *self, rl_transport_stream *stream, size_t length);

/* Makes the handshake in pieces of |length| bytes. Returns 1, or -1 with a message. */
int tls_peer_shake(tls_peer *self, rl_transport_stream *stream, size_t length, char *message,
                   size_t size);

/* Sends or reads data as the peer. */
void tls_peer_write(tls_peer *self, const void *bytes, size_t length);
int tls_peer_read(tls_peer *self, void *bytes, size_t length);

#endif
