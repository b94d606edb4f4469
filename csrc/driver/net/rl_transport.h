/*
 * The interface of libredlock_tls for the driver: it encrypts and decrypts the bytes of a
 * connection.
 *
 * SPDX-License-Identifier: MIT
 *
 * A transport does no input or output, and knows neither sockets nor clocks. It turns bytes from
 * the peer into bytes for the client, and the client's bytes into bytes for the peer. So the driver
 * sends, receives and waits for all connections alike, and a transport can be tested without a
 * network.
 *
 * It is a table of functions, so that programs without TLS need not link it. It comes from another
 * shared library, perhaps of another version, hence RL_TRANSPORT_VERSION. All calls for one client
 * come from one thread at a time; clients share nothing.
 */
#ifndef RL_TRANSPORT_H
#define RL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define RL_TRANSPORT_VERSION 2u

typedef struct rl_transport_node rl_transport_node;     /* shared by all connections to one node */
typedef struct rl_transport_stream rl_transport_stream; /* one connection */

/* How a node is reached: the fields of rl_option_table.h. NULL and 0 mean "not set". */
typedef struct rl_transport_options {
  const char *host; /* a name or an address; empty for a Unix socket */
  const char *ca;
  const char *ca_path;
  const char *crl;
  const char *cert;
  const char *key;
  const char *key_password;
  const char *server_name;
  const char *ciphers;
  int min_version; /* REDLOCK_TLS_1_2, ... */
  bool unverified;
  const rl_transport_node *like; /* another node of the client, to read common CAs once; or NULL */
} rl_transport_options;

/* Functions that fail write a sentence into |message|: with a NUL, without a secret. */
struct redlock_transport {
  unsigned version;

  /*
   * Reads the files in |options|, and keeps no pointer into |options|. Returns REDLOCK_OK, INVALID,
   * NO_MEMORY or SYSTEM.
   */
  int (*node_new)(rl_transport_node **node, const rl_transport_options *options, char *message,
                  size_t message_size);
  /* Its streams must have been freed. */
  void (*node_free)(rl_transport_node *node);

  /* Returns the stream of a new connection, or NULL. stream_free() sends nothing. */
  rl_transport_stream *(*stream_new)(rl_transport_node *node, char *message, size_t message_size);
  void (*stream_free)(rl_transport_stream *stream);

  /*
   * Continues the handshake. Returns 1 when it is complete, 0 if it needs input, -1 if it failed.
   */
  int (*shake)(rl_transport_stream *stream, char *message, size_t message_size);

  /* Returns where to put bytes of the peer, |*length| at most; fed() reports how many were put. */
  void *(*room)(rl_transport_stream *stream, size_t *length);
  void (*fed)(rl_transport_stream *stream, size_t length);

  /* After the handshake: returns the number of bytes for the client, 0 if it needs input, or -1. */
  long (*read)(rl_transport_stream *stream, void *bytes, size_t length, char *message,
               size_t message_size);

  /* Returns true if read() has bytes without more input. */
  bool (*holds)(const rl_transport_stream *stream);

  /* After the handshake: takes all bytes of the client and returns their number, or -1. */
  long (*write)(rl_transport_stream *stream, const void *bytes, size_t length, char *message,
                size_t message_size);

  /* Returns bytes to send to the peer, or NULL; sent() reports how many were sent. */
  const void *(*output)(const rl_transport_stream *stream, size_t *length);
  void (*sent)(rl_transport_stream *stream, size_t length);

  /* Puts a farewell into the output, if there is room. */
  void (*finish)(rl_transport_stream *stream);

  /*
   * After the handshake: returns the remaining validity of the peer's certificate, or
   * REDLOCK_NEVER.
   */
  redlock_duration (*certificate)(const rl_transport_stream *stream);
};

#endif
