/*
 * The bytes of a connection that has been made: as they are, or through a transport.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_STREAM_H
#define RL_STREAM_H

#include "net/rl_transport.h"

#define RL_STREAM_ERROR_MAX 192

/* How a node is reached; zeros: by the bare socket. */
typedef struct rl_route {
  const redlock_transport *transport;
  rl_transport_node *node;
} rl_route;

typedef struct rl_stream {
  const redlock_transport *transport; /* NULL: the bytes go as they are */
  rl_transport_stream *line;
  bool blocked; /* the kernel takes no more bytes for now */
} rl_stream;

/*
 * A connection to a node of |route| was made. False, with a sentence in |error|, when it cannot be used. |error|, here
 * and below, has RL_STREAM_ERROR_MAX bytes.
 */
bool rl_stream_open(rl_stream *stream, const rl_route *route, char *error);

/* Says farewell as far as the socket |fd| takes it at once, unless |silent|; then nothing is left. */
void rl_stream_close(rl_stream *stream, int fd, bool silent);

/* Returns true if a handshake comes before the first byte. */
bool rl_stream_shakes(const rl_stream *stream);

/* Goes on with it: 1 when it has ended well, 0 when poll() has to tell first, -1 for |error|. */
int rl_stream_shake(rl_stream *stream, int fd, char *error);

/* Returns true if bytes wait for the kernel to take them, besides those of the caller. */
bool rl_stream_unsent(const rl_stream *stream);

/* Returns true if rl_stream_receive() has bytes of which poll() does not tell. */
bool rl_stream_holds_input(const rl_stream *stream);

/* As rl_socket_send() and rl_socket_receive(); a send of no bytes sends what is unsent. */
long rl_stream_send(rl_stream *stream, int fd, const void *bytes, size_t length, char *error);
long rl_stream_receive(rl_stream *stream, int fd, void *bytes, size_t length, char *error);

/* What the error number |error| means, into |text|, of RL_STREAM_ERROR_MAX bytes. */
void rl_stream_explain(char *text, int error);

/* Shaken: for how long the peer's certificate is valid yet; REDLOCK_NEVER without one. */
redlock_duration rl_stream_certificate(const rl_stream *stream);

#endif
