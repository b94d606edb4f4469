/*
 * What carries the bytes of a connection, where the bare socket does not: the seam between the driver and
 * a library of its own, libredlock_tls.
 *
 * SPDX-License-Identifier: MIT
 *
 * A transport does no input or output, and knows neither sockets nor clocks. It turns the bytes that the peer has sent into
 * those that the program reads, and the program's into those that go to the peer. So the driver sends,
 * receives and waits for all connections alike, and a transport can be tried without any.
 *
 * It is a table of functions, because whoever speaks no TLS is to be linked without it. It comes from another
 * shared library, perhaps of another version: RL_TRANSPORT_VERSION tells.
 *
 * All calls for one client come from one thread at a time; clients share nothing.
 */
#ifndef RL_TRANSPORT_H
#define RL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define RL_TRANSPORT_VERSION 2u

typedef struct rl_transport_node rl_transport_node; /* what all connections to one node share */

/* How a node is to be reached, as rl_option_table.h has it. What is NULL or 0 is not said. */
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
  const rl_transport_node
      *like; /* another node of the client: what both trust is read once; or NULL */
} rl_transport_options;

typedef struct rl_transport_stream rl_transport_stream; /* one connection */

/* Sentences in |message| hold no secret, and end with a NUL. */
struct redlock_transport {
  unsigned version;

  /*
   * Reads what |options| name, and keeps nothing of them. Returns REDLOCK_OK, or INVALID, NO_MEMORY or
   * SYSTEM with a sentence that says what is wrong.
   */
  int (*node_new)(rl_transport_node **node, const rl_transport_options *options, char *message,
                  size_t message_size);
  /* All its lines have been freed. */
  void (*node_free)(rl_transport_node *node);

  /* A connection that has just been made. NULL with a sentence. Nothing is sent to the peer by line_free(). */
  rl_transport_stream *(*line_new)(rl_transport_node *node, char *message, size_t message_size);
  void (*line_free)(rl_transport_stream *line);

  /* Goes on with the handshake: 1 when it has ended well, 0 when it needs input, -1 with a sentence. */
  int (*shake)(rl_transport_stream *line, char *message, size_t message_size);

  /* Where to put bytes of the peer, |*length| at most; and that |length| of them are there. */
  void *(*room)(rl_transport_stream *line, size_t *length);
  void (*fed)(rl_transport_stream *line, size_t length);

  /* After the handshake: bytes for the program; 0 when it needs input, -1 with a sentence. */
  long (*read)(rl_transport_stream *line, void *bytes, size_t length, char *message,
               size_t message_size);

  /* Whether read() has something without input. */
  bool (*holds)(const rl_transport_stream *line);

  /* After the handshake: takes bytes of the program, all of them, or -1 with a sentence. */
  long (*write)(rl_transport_stream *line, const void *bytes, size_t length, char *message,
                size_t message_size);

  /* What is to be sent to the peer, NULL when nothing is; and that |length| of it was. */
  const void *(*output)(const rl_transport_stream *line, size_t *length);
  void (*sent)(rl_transport_stream *line, size_t length);

  /* The program is done: the farewell goes into the output, if there is room for one. */
  void (*finish)(rl_transport_stream *line);

  /* After the handshake: for how long the peer's certificate is valid yet; REDLOCK_NEVER when that is not known. */
  redlock_duration (*certificate)(const rl_transport_stream *line);
};

#endif
