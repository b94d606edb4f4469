/*
 * A TLS server over memory: the other end of a stream, without a socket.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TLS_PEER_H
#define TLS_PEER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "rl_tls.h"

/* A certificate for |host| and 127.0.0.1, signed by itself, valid from and until so many days from now. */
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

/* |version| is TLS1_2_VERSION or TLS1_3_VERSION. A peer serves one stream after the other. */
void tls_peer_start(tls_peer *self, const tls_certificate *certificate, int version);
void tls_peer_end(tls_peer *self);
void tls_peer_next(tls_peer *self);

/* Takes what |stream| has to send; does what comes of it. */
void tls_peer_take(tls_peer *self, rl_transport_stream *stream);

/* Moves what the peer has to send into |stream|, at most |length| bytes; returns how many. */
size_t tls_peer_give(tls_peer *self, rl_transport_stream *stream, size_t length);

/* Shakes hands in pieces of |length| bytes: 1, or -1 with why. */
int tls_peer_shake(tls_peer *self, rl_transport_stream *stream, size_t length, char *message,
                   size_t size);

/* The peer sends, or reads what has come. */
void tls_peer_write(tls_peer *self, const void *bytes, size_t length);
int tls_peer_read(tls_peer *self, void *bytes, size_t length);

#endif
