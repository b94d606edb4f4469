/*
 * A server that misbehaves during or after the TLS handshake.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TLS_HOSTILE_H
#define TLS_HOSTILE_H

#include <openssl/ssl.h>
#include <sys/types.h>

/* Serves one connection in its own process, which ends when this returns. */
typedef void tls_hostile_serve(int fd, SSL_CTX *context);

typedef struct tls_hostile_counts {
  unsigned accepted;
  unsigned shaken;
  unsigned resumed;
} tls_hostile_counts;

typedef struct tls_hostile {
  pid_t pid;
  int port;
  char address[48];                    /* "rediss://127.0.0.1:port" */
  volatile tls_hostile_counts *counts; /* shared with its processes */
} tls_hostile;

/* |directory| is the one of certificates_write(). */
void tls_hostile_start(tls_hostile *self, const char *directory, tls_hostile_serve *serve);
void tls_hostile_end(tls_hostile *self);

/* For serve(): completes the handshake, or ends the process. */
SSL *tls_hostile_accept(int fd, SSL_CTX *context);

/*
 * Answers |commands| commands as Redis does; ends the process if the client disconnects. The name
 * of a connection, its library and version count as one.
 */
void tls_hostile_answer(SSL *ssl, unsigned commands);

/* Closes with a reset. */
void tls_hostile_reset(int fd);

/* Reads and discards until the client disconnects. */
void tls_hostile_drain(int fd);

#endif
