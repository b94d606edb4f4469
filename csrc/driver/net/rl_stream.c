/*
 * The bytes of a connection that has been made: as they are, or through a transport.
 *
 * SPDX-License-Identifier: MIT
 *
 * A transport takes bytes only while nothing of it waits for the kernel, so that what it holds is bounded. What it has
 * taken counts as sent: it may reach the node, and nobody can take it back.
 */
#include "net/rl_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define RL_STREAM_WRITE_MAX 65536 /* that a transport is given at once */
#define RL_STREAM_READS_MAX                                                                        \
  16 /* from the kernel for one rl_stream_receive() or rl_stream_shake() */

void rl_stream_explain(char *text, int error) {
  char room[128];
  room[0] = '\0';
#if defined(__GLIBC__)
  const char *said = strerror_r(error, room, sizeof room);
#else
  const char *said = strerror_r(error, room, sizeof room) == 0 ? room : "error";
#endif
  (void)snprintf(text, RL_STREAM_ERROR_MAX, "%s", said);
}

static bool rl_stream_would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

/* --------------------------------------------------------------------------------- the kernel */

static long rl_stream_put(rl_stream *stream, int fd, const void *bytes, size_t length,
                          char *error) {
  ssize_t sent;
  do {
    sent = send(fd, bytes, length, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  stream->blocked = sent < 0 || (size_t)sent < length;
  if (sent < 0 && !rl_stream_would_block(errno)) {
    rl_stream_explain(error, errno);
    return -1;
  }
  return sent < 0 ? 0 : sent;
}

static long rl_stream_get(int fd, void *bytes, size_t length, char *error) {
  ssize_t received;
  do {
    received = recv(fd, bytes, length, 0);
  } while (received < 0 && errno == EINTR);
  if (received == 0) {
    (void)snprintf(error, RL_STREAM_ERROR_MAX, "the node closed the connection");
    return -1;
  }
  if (received < 0 && !rl_stream_would_block(errno)) {
    rl_stream_explain(error, errno);
    return -1;
  }
  return received < 0 ? 0 : received;
}

/* -------------------------------------------------------------------------------- the transport */

/* Sends what the transport has to send: 0, or -1 when the connection has ended. */
static int rl_stream_flush(rl_stream *stream, int fd, char *error) {
  size_t length;
  const void *bytes = stream->transport->output(stream->line, &length);
  while (bytes != NULL && !stream->blocked) {
    long sent = rl_stream_put(stream, fd, bytes, length, error);
    if (sent < 0) {
      return -1;
    }
    stream->transport->sent(stream->line, (size_t)sent);
    bytes = stream->transport->output(stream->line, &length);
  }
  return 0;
}

/* Gives the transport what the kernel has: how many bytes, 0 for none, -1 when the connection has ended. */
static long rl_stream_feed(rl_stream *stream, int fd, bool *all, char *error) {
  size_t room;
  void *bytes = stream->transport->room(stream->line, &room);
  long got = rl_stream_get(fd, bytes, room, error);
  if (got > 0) {
    stream->transport->fed(stream->line, (size_t)got);
  }
  *all = got < (long)room;
  return got;
}

/*
 * The connection has ended while something was sent. The peer may have said why before, and that tells more than the
 * kernel does: in TLS 1.3 it is after the handshake that it refuses our certificate.
 */
static void rl_stream_hear_last(rl_stream *stream, int fd, bool shaken, char *error) {
  const redlock_transport *transport = stream->transport;
  char heard[RL_STREAM_ERROR_MAX];
  unsigned char ignored[512];
  bool all = false;
  for (unsigned i = 0; !all && i < RL_STREAM_READS_MAX; i++) {
    if (rl_stream_feed(stream, fd, &all, heard) <= 0) {
      return;
    }
    long got = shaken ? transport->read(stream->line, ignored, sizeof ignored, heard, sizeof heard)
                      : transport->shake(stream->line, heard, sizeof heard);
    if (got < 0) {
      memcpy(error, heard, sizeof heard);
      return;
    }
  }
}

static long rl_stream_send_through(rl_stream *stream, int fd, const void *bytes, size_t length,
                                   char *error) {
  long taken = 0;
  int ended = rl_stream_flush(stream, fd, error);
  if (ended == 0 && !rl_stream_unsent(stream) && length > 0) {
    size_t given = length < RL_STREAM_WRITE_MAX ? length : RL_STREAM_WRITE_MAX;
    taken = stream->transport->write(stream->line, bytes, given, error, RL_STREAM_ERROR_MAX);
    if (taken < 0) {
      return -1;
    }
    ended = rl_stream_flush(stream, fd, error);
  }
  if (ended != 0) {
    rl_stream_hear_last(stream, fd, true, error);
  }
  return ended != 0 ? -1 : taken;
}

static long rl_stream_receive_through(rl_stream *stream, int fd, void *bytes, size_t length,
                                      char *error) {
  const redlock_transport *transport = stream->transport;
  bool all = false;
  long got = 0;
  if (transport->holds(stream->line)) {
    got = transport->read(stream->line, bytes, length, error, RL_STREAM_ERROR_MAX);
  }
  /* A record may be longer than what the kernel gives at once, or say nothing to the program. */
  for (unsigned i = 0; got == 0 && !all && i < RL_STREAM_READS_MAX; i++) {
    long fed = rl_stream_feed(stream, fd, &all, error);
    got = fed <= 0 ? fed : transport->read(stream->line, bytes, length, error, RL_STREAM_ERROR_MAX);
  }
  /* An answer of the transport's own. What has been read counts, though the connection ends with it. */
  return got >= 0 && rl_stream_flush(stream, fd, error) != 0 && got == 0 ? -1 : got;
}

int rl_stream_shake(rl_stream *stream, int fd, char *error) {
  const redlock_transport *transport = stream->transport;
  char broken[RL_STREAM_ERROR_MAX];
  bool all = false;
  int ended = transport->shake(stream->line, error, RL_STREAM_ERROR_MAX);
  for (unsigned i = 0; ended == 0 && !all && i < RL_STREAM_READS_MAX; i++) {
    if (rl_stream_flush(stream, fd, error) != 0) {
      rl_stream_hear_last(stream, fd, false, error);
      return -1;
    }
    long fed = rl_stream_feed(stream, fd, &all, error);
    if (fed < 0) {
      (void)snprintf(broken, sizeof broken, "%.100s during the TLS handshake", error);
      memcpy(error, broken, sizeof broken);
      return -1;
    }
    ended = fed == 0 ? 0 : transport->shake(stream->line, error, RL_STREAM_ERROR_MAX);
  }
  /* The last message of ours; or why the peer is refused, which it may want to read. */
  if (ended < 0) {
    char unheard[RL_STREAM_ERROR_MAX];
    (void)rl_stream_flush(stream, fd, unheard);
    return -1;
  }
  if (rl_stream_flush(stream, fd, error) != 0) {
    rl_stream_hear_last(stream, fd, ended > 0, error);
    return -1;
  }
  return ended;
}

/* ---------------------------------------------------------------------------------- the stream */

bool rl_stream_open(rl_stream *stream, const rl_route *route, char *error) {
  memset(stream, 0, sizeof *stream);
  if (route->node == NULL) {
    return true;
  }
  stream->line = route->transport->line_new(route->node, error, RL_STREAM_ERROR_MAX);
  stream->transport = stream->line == NULL ? NULL : route->transport;
  return stream->line != NULL;
}

void rl_stream_close(rl_stream *stream, int fd, bool silent) {
  char unheard[RL_STREAM_ERROR_MAX];
  if (stream->line != NULL && !silent) {
    stream->transport->finish(stream->line);
    (void)rl_stream_flush(stream, fd, unheard);
  }
  if (stream->line != NULL) {
    stream->transport->line_free(stream->line);
  }
  memset(stream, 0, sizeof *stream);
}

bool rl_stream_shakes(const rl_stream *stream) {
  return stream->line != NULL;
}

bool rl_stream_unsent(const rl_stream *stream) {
  size_t length;
  return stream->line != NULL && stream->transport->output(stream->line, &length) != NULL;
}

bool rl_stream_holds_input(const rl_stream *stream) {
  return stream->line != NULL && stream->transport->holds(stream->line);
}

long rl_stream_send(rl_stream *stream, int fd, const void *bytes, size_t length, char *error) {
  return stream->line != NULL ? rl_stream_send_through(stream, fd, bytes, length, error)
         : length == 0        ? 0
                              : rl_stream_put(stream, fd, bytes, length, error);
}

long rl_stream_receive(rl_stream *stream, int fd, void *bytes, size_t length, char *error) {
  return stream->line != NULL ? rl_stream_receive_through(stream, fd, bytes, length, error)
                              : rl_stream_get(fd, bytes, length, error);
}

redlock_duration rl_stream_certificate(const rl_stream *stream) {
  return stream->line != NULL ? stream->transport->certificate(stream->line) : REDLOCK_NEVER;
}
