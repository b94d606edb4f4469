/*
 * The bytes of a connection that has been made: bare, or through a transport.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_STREAM_H
#define RL_STREAM_H

#include "net/rl_route.h"
#include "net/rl_transport.h"

#define RL_STREAM_ERROR_MAX RL_ROUTE_ERROR_MAX

typedef struct rl_stream {
  const redlock_transport *transport; /* NULL: bytes go as they are */
  rl_transport_stream *inner;         /* the transport's stream */
  bool blocked;                       /* the kernel takes no more bytes for now */
} rl_stream;

/*
 * Begins the stream of a new connection by |route|. Returns false if it cannot be used. |error|,
 * here and below, has RL_STREAM_ERROR_MAX bytes, and receives a sentence after a failure.
 */
bool rl_stream_open(rl_stream *stream, const rl_route *route, char *error);

/* Frees the stream. Unless |silent|, sends as much of a farewell as |fd| takes at once. */
void rl_stream_close(rl_stream *stream, int fd, bool silent);

/* Returns true if a handshake comes before the first byte. */
bool rl_stream_shakes(const rl_stream *stream);

/* Continues it. Returns 1 when it is complete, 0 if poll() must report first, -1 if it failed. */
int rl_stream_shake(rl_stream *stream, int fd, char *error);

/* Returns true if bytes wait for the kernel to take them, besides those of the caller. */
static inline bool rl_stream_unsent(const rl_stream *stream) {
  size_t length;
  return stream->inner != NULL && stream->transport->output(stream->inner, &length) != NULL;
}

/* Returns true if rl_stream_receive() has bytes that poll() does not report. */
static inline bool rl_stream_holds_input(const rl_stream *stream) {
  return stream->inner != NULL && stream->transport->holds(stream->inner);
}

/* As rl_socket_send() and rl_socket_receive(). A send of no bytes sends what is unsent. */
long rl_stream_send(rl_stream *stream, int fd, const void *bytes, size_t length, char *error);
long rl_stream_receive(rl_stream *stream, int fd, void *bytes, size_t length, char *error);

/* Writes the meaning of the error number |error| into |text|. */
void rl_stream_explain(char *text, int error);

/*
 * After the handshake: the remaining validity of the peer's certificate; REDLOCK_NEVER without one.
 */
redlock_duration rl_stream_certificate(const rl_stream *stream);

#endif
