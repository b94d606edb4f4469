/*
 * TLS by OpenSSL, as csrc/driver/net/rl_transport.h wants it.
 *
 * SPDX-License-Identifier: MIT
 *
 *   rl_tls_node.c     what the connections to one node share: certificates, rules, the last session
 *   rl_tls_stream.c     one connection: handshake, bytes in, bytes out
 *   rl_tls_bio.c      between OpenSSL and the buffers of a stream
 *   rl_tls_message.c  what went wrong, as a sentence
 *
 * OpenSSL's queue of errors belongs to the thread, and the program may use it too: each call begins by emptying it,
 * and leaves it empty.
 */
#ifndef RL_TLS_H
#define RL_TLS_H

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "net/rl_transport.h"
#include "redlock_tls.h"

/* A record, its header, and what TLS may add to it. */
#define RL_TLS_INPUT_MAX (16384 + 2048)
/* What may wait to be sent. Beyond it are only peers that ask and never read. */
#define RL_TLS_OUTPUT_MAX ((size_t)1 << 18)
#define RL_TLS_OUTPUT_KEPT_MAX ((size_t)1 << 15) /* a larger buffer is not kept when it is empty */
/* After the handshake: how much may come that says nothing to the program, such as new keys. More than a record. */
#define RL_TLS_UNHEARD_MAX ((size_t)1 << 15)
#define RL_TLS_REFUSAL_MAX 192

/* A file that was read, as it was then. */
typedef struct rl_tls_file {
  const char *path;
  struct stat seen;
} rl_tls_file;

enum { RL_TLS_CA, RL_TLS_CRL, RL_TLS_CERT, RL_TLS_KEY, RL_TLS_FILES };

struct rl_transport_node {
  rl_transport_options options; /* its strings are ours */
  const char *peer;             /* whom the certificate is to be for: server_name or host */
  bool peer_is_address;
  BIO_METHOD *bio;
  SSL_CTX *context;
  X509_STORE *store;    /* the CAs, as they were read last; NULL when nobody is to be verified */
  SSL_SESSION *session; /* of the last connection, to resume; or NULL */
  rl_tls_file files[RL_TLS_FILES];
  bool outdated; /* the files have changed, and could not be read since */
};

struct rl_transport_stream {
  rl_transport_node *node;
  SSL *ssl;
  bool shaken;
  bool holds;
  bool failed;
  char refusal[RL_TLS_REFUSAL_MAX]; /* what was wrong with the certificate */
  char failure[RL_TLS_REFUSAL_MAX]; /* for the next read() */
  size_t unheard;                   /* bytes since the program heard something */
  size_t output_start, output_end, output_capacity;
  unsigned char *output;
  size_t input_start, input_end;
  unsigned char input[RL_TLS_INPUT_MAX];
};

/* rl_tls_node.c */
int rl_tls_node_new(rl_transport_node **made, const rl_transport_options *options, char *message,
                    size_t message_size);
void rl_tls_node_free(rl_transport_node *node);
/* Reads files that have changed anew; keeps what it has when they are of no use. */
void rl_tls_node_refresh(rl_transport_node *node);
void rl_tls_node_forget_session(rl_transport_node *node);

/* rl_tls_stream.c */
rl_transport_stream *rl_tls_stream_new(rl_transport_node *node, char *message, size_t message_size);
void rl_tls_stream_free(rl_transport_stream *stream);
int rl_tls_stream_shake(rl_transport_stream *stream, char *message, size_t message_size);
void *rl_tls_stream_room(rl_transport_stream *stream, size_t *length);
void rl_tls_stream_fed(rl_transport_stream *stream, size_t length);
long rl_tls_stream_read(rl_transport_stream *stream, void *bytes, size_t length, char *message,
                        size_t message_size);
bool rl_tls_stream_holds(const rl_transport_stream *stream);
long rl_tls_stream_write(rl_transport_stream *stream, const void *bytes, size_t length,
                         char *message, size_t message_size);
const void *rl_tls_stream_output(const rl_transport_stream *stream, size_t *length);
void rl_tls_stream_sent(rl_transport_stream *stream, size_t length);
void rl_tls_stream_finish(rl_transport_stream *stream);
redlock_duration rl_tls_stream_certificate(const rl_transport_stream *stream);

/* rl_tls_bio.c: a BIO_METHOD whose BIOs have a stream as their data. NULL when out of memory. */
BIO_METHOD *rl_tls_bio_method(void);

/* rl_tls_message.c */

/* |format| as a sentence of printable characters. */
void rl_tls_say(char *message, size_t message_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What OpenSSL says of its last error; |otherwise| when it says nothing. Empties its queue. */
void rl_tls_say_error(char *message, size_t message_size, const char *before,
                      const char *otherwise);

/* Why |stream| failed, after a call on it that returned |result|. */
void rl_tls_say_failure(rl_transport_stream *stream, int result, char *message,
                        size_t message_size);

/* Notes in |stream| what is wrong with the certificate that |store| looks at. */
void rl_tls_note_refusal(rl_transport_stream *stream, X509_STORE_CTX *store);

#endif
