/*
 * The bytes of a connection that has been made: bare, or through a transport.
 *
 * SPDX-License-Identifier: MIT
 *
 * The driver gives a transport bytes only if the kernel has taken its output. So its memory is
 * bounded. Bytes that it has taken count as sent: they may reach the node.
 */
#include "net/rl_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define RL_STREAM_WRITE_MAX 65536 /* bytes for a transport at once */
#define RL_STREAM_READS_MAX 16    /* from the kernel in one rl_stream_receive() or _shake() */

void rl_stream_explain(char *text, int error) {
  char room[128];
  room[0] = '\0';
#if defined(__GLIBC__)
  const char *meaning = strerror_r(error, room, sizeof room);
#else
  const char *meaning = strerror_r(error, room, sizeof room) == 0 ? room : "error";
#endif
  (void)snprintf(text, RL_STREAM_ERROR_MAX, "%s", meaning);
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

/* Sends the transport's output. Returns 0, or -1 if the connection has ended. */
static int rl_stream_flush(rl_stream *stream, int fd, char *error) {
  size_t length;
  const void *bytes = stream->transport->output(stream->inner, &length);
  while (bytes != NULL && !stream->blocked) {
    long sent = rl_stream_put(stream, fd, bytes, length, error);
    if (sent < 0) {
      return -1;
    }
    stream->transport->sent(stream->inner, (size_t)sent);
    bytes = stream->transport->output(stream->inner, &length);
  }
  return 0;
}

/*
 * Gives the kernel's bytes to the transport. Returns their number, or -1 if the connection has
 * ended.
 */
static long rl_stream_feed(rl_stream *stream, int fd, bool *all, char *error) {
  size_t room;
  void *bytes = stream->transport->room(stream->inner, &room);
  long got = rl_stream_get(fd, bytes, room, error);
  if (got > 0) {
    stream->transport->fed(stream->inner, (size_t)got);
  }
  *all = got < (long)room;
  return got;
}

/*
 * Reads the peer's reason after a send has failed, which explains more than the kernel's error. In
 * TLS 1.3 a peer refuses our certificate after the handshake.
 */
static void rl_stream_read_reason(rl_stream *stream, int fd, bool shaken, char *error) {
  const redlock_transport *transport = stream->transport;
  char reason[RL_STREAM_ERROR_MAX];
  unsigned char ignored[512];
  bool all = false;
  for (unsigned i = 0; !all && i < RL_STREAM_READS_MAX; i++) {
    if (rl_stream_feed(stream, fd, &all, reason) <= 0) {
      return;
    }
    long got = shaken
                   ? transport->read(stream->inner, ignored, sizeof ignored, reason, sizeof reason)
                   : transport->shake(stream->inner, reason, sizeof reason);
    if (got < 0) {
      memcpy(error, reason, sizeof reason);
      return;
    }
  }
}

static long rl_stream_send_through(rl_stream *stream, int fd, const void *bytes, size_t length,
                                   char *error) {
  long taken = 0;
  int ended = rl_stream_flush(stream, fd, error);
  if (ended == 0 && !rl_stream_unsent(stream) && length > 0) {
    size_t offered = length < RL_STREAM_WRITE_MAX ? length : RL_STREAM_WRITE_MAX;
    taken = stream->transport->write(stream->inner, bytes, offered, error, RL_STREAM_ERROR_MAX);
    if (taken < 0) {
      return -1;
    }
    ended = rl_stream_flush(stream, fd, error);
  }
  if (ended != 0) {
    rl_stream_read_reason(stream, fd, true, error);
  }
  return ended != 0 ? -1 : taken;
}

static long rl_stream_receive_through(rl_stream *stream, int fd, void *bytes, size_t length,
                                      char *error) {
  const redlock_transport *transport = stream->transport;
  bool all = false;
  long got = 0;
  if (transport->holds(stream->inner)) {
    got = transport->read(stream->inner, bytes, length, error, RL_STREAM_ERROR_MAX);
  }
  /* A record may be longer than one read, or contain no bytes for the client. */
  for (unsigned i = 0; got == 0 && !all && i < RL_STREAM_READS_MAX; i++) {
    long fed = rl_stream_feed(stream, fd, &all, error);
    got =
        fed <= 0 ? fed : transport->read(stream->inner, bytes, length, error, RL_STREAM_ERROR_MAX);
  }
  /* Send the transport's own reply. Bytes that were read count even if this ends the connection. */
  return got >= 0 && rl_stream_flush(stream, fd, error) != 0 && got == 0 ? -1 : got;
}

int rl_stream_shake(rl_stream *stream, int fd, char *error) {
  const redlock_transport *transport = stream->transport;
  char broken[RL_STREAM_ERROR_MAX];
  bool all = false;
  int ended = transport->shake(stream->inner, error, RL_STREAM_ERROR_MAX);
  for (unsigned i = 0; ended == 0 && !all && i < RL_STREAM_READS_MAX; i++) {
    if (rl_stream_flush(stream, fd, error) != 0) {
      rl_stream_read_reason(stream, fd, false, error);
      return -1;
    }
    long fed = rl_stream_feed(stream, fd, &all, error);
    if (fed < 0) {
      (void)snprintf(broken, sizeof broken, "%.100s during the TLS handshake", error);
      memcpy(error, broken, sizeof broken);
      return -1;
    }
    ended = fed == 0 ? 0 : transport->shake(stream->inner, error, RL_STREAM_ERROR_MAX);
  }
  if (ended < 0) { /* Tell the peer why it is refused. */
    char ignored[RL_STREAM_ERROR_MAX];
    (void)rl_stream_flush(stream, fd, ignored);
    return -1;
  }
  if (rl_stream_flush(stream, fd, error) != 0) {
    rl_stream_read_reason(stream, fd, ended > 0, error);
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
  stream->inner = route->transport->stream_new(route->node, error, RL_STREAM_ERROR_MAX);
  stream->transport = stream->inner == NULL ? NULL : route->transport;
  return stream->inner != NULL;
}

void rl_stream_close(rl_stream *stream, int fd, bool silent) {
  char ignored[RL_STREAM_ERROR_MAX];
  if (stream->inner != NULL && !silent) {
    stream->transport->finish(stream->inner);
    (void)rl_stream_flush(stream, fd, ignored);
  }
  if (stream->inner != NULL) {
    stream->transport->stream_free(stream->inner);
  }
  memset(stream, 0, sizeof *stream);
}

bool rl_stream_shakes(const rl_stream *stream) {
  return stream->inner != NULL;
}

long rl_stream_send(rl_stream *stream, int fd, const void *bytes, size_t length, char *error) {
  return stream->inner != NULL ? rl_stream_send_through(stream, fd, bytes, length, error)
         : length == 0         ? 0
                               : rl_stream_put(stream, fd, bytes, length, error);
}

long rl_stream_receive(rl_stream *stream, int fd, void *bytes, size_t length, char *error) {
  return stream->inner != NULL ? rl_stream_receive_through(stream, fd, bytes, length, error)
                               : rl_stream_get(fd, bytes, length, error);
}

redlock_duration rl_stream_certificate(const rl_stream *stream) {
  return stream->inner != NULL ? stream->transport->certificate(stream->inner) : REDLOCK_NEVER;
}
