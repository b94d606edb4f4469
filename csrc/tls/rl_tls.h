/*
 * TLS by OpenSSL: the transport of csrc/driver/net/rl_transport.h.
 *
 * SPDX-License-Identifier: MIT
 *
 *   rl_tls_transport.c  the table of functions
 *   rl_tls_node.c       what the connections to one node share: files, rules, the last session
 *   rl_tls_verify.c     the verification of a node's certificate: CAs, CRL, name of the node
 *   rl_tls_stream.c     one connection: handshake, input, output
 *   rl_tls_bio.c        moves bytes between OpenSSL and the buffers of a stream
 *   rl_tls_message.c    errors as sentences
 *
 * OpenSSL has one queue of errors per thread, which the program may use, too. Each function empties
 * it before and after its calls.
 */
#ifndef RL_TLS_H
#define RL_TLS_H

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "net/rl_transport.h"
#include "redlock_tls.h"

/* Bytes of a record, its header and what TLS may add. */
#define RL_TLS_INPUT_MAX (16384 + 2048)
/* Unsent bytes. Only a peer that sends requests and reads no answers exceeds this limit. */
#define RL_TLS_OUTPUT_MAX ((size_t)1 << 18)
#define RL_TLS_OUTPUT_KEPT_MAX ((size_t)1 << 15) /* a larger buffer is freed when it is empty */
/* Bytes after the handshake without data for the client, such as new keys. More than a record. */
#define RL_TLS_IDLE_MAX ((size_t)1 << 15)
#define RL_TLS_REFUSAL_MAX 192

/* A file and its state when it was read. */
typedef struct rl_tls_file {
  const char *path; /* or NULL */
  struct stat seen;
} rl_tls_file;

enum { RL_TLS_CA, RL_TLS_CRL, RL_TLS_CERT, RL_TLS_KEY, RL_TLS_FILES };

struct rl_transport_node {
  rl_transport_options options; /* its strings are copies that the node owns */
  const char *peer;             /* name or address in the node's certificate; empty if unverified */
  bool peer_is_address;
  BIO_METHOD *bio;
  SSL_CTX *context;
  X509_STORE *store;    /* trusted CAs as last read; NULL if the node is unverified */
  SSL_SESSION *session; /* of the last connection, to resume; or NULL */
  rl_tls_file files[RL_TLS_FILES];
  bool outdated; /* a file has changed, and could not be read since */
};

struct rl_transport_stream {
  rl_transport_node *node;
  SSL *ssl;
  bool shaken; /* the handshake is complete */
  bool holds;  /* a read needs no more input */
  bool failed;
  char refusal[RL_TLS_REFUSAL_MAX]; /* what was wrong with the certificate */
  char failure[RL_TLS_REFUSAL_MAX]; /* message of the next read or write, if |failed| */
  size_t idle;                      /* bytes of input since the last data for the client */
  size_t output_start, output_end, output_capacity;
  unsigned char *output;
  size_t input_start, input_end;
  unsigned char input[RL_TLS_INPUT_MAX];
};

/* rl_tls_node.c */
int rl_tls_node_new(rl_transport_node **made, const rl_transport_options *options, char *message,
                    size_t message_size);
void rl_tls_node_free(rl_transport_node *node);
/* Reads changed files again. Keeps the previous contents if they are invalid. */
void rl_tls_node_refresh(rl_transport_node *node);
void rl_tls_node_forget_session(rl_transport_node *node);

/* rl_tls_verify.c */

/* Makes the handshakes of |context| verify the certificate, unless the options forbid it. */
void rl_tls_verify_begin(SSL_CTX *context, const rl_transport_options *options);

/* Read the trusted CAs, and the CRL |crl|, into |context|. Return false if they cannot. */
bool rl_tls_verify_trust(SSL_CTX *context, const rl_transport_options *options);
bool rl_tls_verify_revoke(SSL_CTX *context, const char *crl);

/* Makes the handshake require a certificate for the peer's name or address. */
bool rl_tls_verify_expect(SSL *ssl, const rl_transport_node *node);

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

/* rl_tls_bio.c: a method for BIOs whose data is a stream. NULL when out of memory. */
BIO_METHOD *rl_tls_bio_method(void);

/* rl_tls_message.c */

/* Formats a sentence of printable characters. */
void rl_tls_format(char *message, size_t message_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes |before| and the reason of OpenSSL's last error, or |otherwise|. Empties the queue. */
void rl_tls_format_error(char *message, size_t message_size, const char *before,
                         const char *otherwise);

/* Writes why |stream| failed after a call that returned |result|. */
void rl_tls_format_failure(rl_transport_stream *stream, int result, char *message,
                           size_t message_size);

/* Sets stream->refusal to what is wrong with the current certificate of |store|. */
void rl_tls_set_refusal(rl_transport_stream *stream, X509_STORE_CTX *store);

#endif
