/*
 * The bytes of a connection, through a transport that notes what it gets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/rl_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rl_test.h"

/* It reports "because" for an 'x' of the peer, and returns every other byte. */
struct rl_transport_stream {
  char input[64];
  size_t held;
  char output[64];
  size_t unsent;
  bool shaken;
};

static rl_transport_stream line;

static rl_transport_stream *note_new(rl_transport_node *node, char *message, size_t message_size) {
  (void)node;
  (void)message;
  (void)message_size;
  memset(&line, 0, sizeof line);
  return &line;
}

static void note_free(rl_transport_stream *self) {
  (void)self;
}

static int note_shake(rl_transport_stream *self, char *message, size_t message_size) {
  if (self->held > 0 && self->input[0] == 'x') {
    (void)snprintf(message, message_size, "because");
    return -1;
  }
  self->shaken = self->held > 0;
  return self->shaken;
}

static void *note_room(rl_transport_stream *self, size_t *length) {
  *length = sizeof self->input - self->held;
  return self->input + self->held;
}

static void note_fed(rl_transport_stream *self, size_t length) {
  self->held += length;
}

static long note_read(rl_transport_stream *self, void *bytes, size_t length, char *message,
                      size_t message_size) {
  if (self->held > 0 && self->input[0] == 'x') {
    (void)snprintf(message, message_size, "because");
    return -1;
  }
  size_t got = self->held < length ? self->held : length;
  memcpy(bytes, self->input, got);
  self->held = 0;
  return (long)got;
}

static bool note_holds(const rl_transport_stream *self) {
  (void)self;
  return false;
}

static long note_write(rl_transport_stream *self, const void *bytes, size_t length, char *message,
                       size_t message_size) {
  (void)message;
  (void)message_size;
  memcpy(self->output, bytes, length);
  self->unsent = length;
  return (long)length;
}

static const void *note_output(const rl_transport_stream *self, size_t *length) {
  *length = self->unsent;
  return self->unsent == 0 ? NULL : self->output;
}

static void note_sent(rl_transport_stream *self, size_t length) {
  self->unsent -= length;
}

static void note_finish(rl_transport_stream *self) {
  (void)self;
}

static const redlock_transport notes = {
    RL_TRANSPORT_VERSION, NULL,        NULL,      note_new,    note_free,
    note_shake,           note_room,   note_fed,  note_read,   note_holds,
    note_write,           note_output, note_sent, note_finish, NULL};

/* Two ends of a TCP connection. */
static void connect_ends(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(server, (struct sockaddr *)&address, length), 0);
  assert_int_equal(listen(server, 1), 0);
  assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
  ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(ends[0], (struct sockaddr *)&address, length), 0);
  ends[1] = accept(server, NULL, NULL);
  assert_true(ends[1] >= 0);
  (void)close(server);
}

static void open_stream(rl_stream *stream, int fd) {
  rl_transport_node *node =
      (rl_transport_node *)(uintptr_t)&line; /* No function dereferences it. */
  rl_route route = {&notes, node};
  char error[RL_STREAM_ERROR_MAX];
  (void)fd;
  assert_true(rl_stream_open(stream, &route, error));
}

/* The peer sends |said|, and resets the connection: it closes it with an unread byte. */
static void say_and_reset(const int ends[2], const char *said) {
  struct pollfd ready = {ends[0], 0, 0};
  assert_int_equal(send(ends[0], "?", 1, 0), 1);
  struct pollfd come = {ends[1], POLLIN, 0};
  assert_int_equal(poll(&come, 1, 5000), 1);
  assert_int_equal(send(ends[1], said, strlen(said), 0), (ssize_t)strlen(said));
  (void)close(ends[1]);
  assert_int_equal(poll(&ready, 1, 5000), 1); /* POLLERR */
}

TEST(reason_of_the_peer_replaces_its_reset) {
  static const char *const said[] = {"x", "y", ""};
  static const char *const reasons[] = {"because", "Connection reset by peer",
                                        "Connection reset by peer"};
  for (unsigned i = 0; i < COUNT_OF(said); i++) {
    int ends[2];
    rl_stream stream;
    char error[RL_STREAM_ERROR_MAX] = "";
    connect_ends(ends);
    open_stream(&stream, ends[0]);
    say_and_reset(ends, said[i]);
    assert_int_equal(rl_stream_send(&stream, ends[0], "SET", 3, error), -1);
    assert_string_equal(error, reasons[i]);
    rl_stream_close(&stream, ends[0], true);
    (void)close(ends[0]);
  }
}

TEST(reason_replaces_a_reset_in_a_handshake) {
  int ends[2];
  rl_stream stream;
  char error[RL_STREAM_ERROR_MAX] = "";
  connect_ends(ends);
  open_stream(&stream, ends[0]);
  line.unsent = 3; /* a message of the handshake */
  say_and_reset(ends, "x");
  assert_int_equal(rl_stream_shake(&stream, ends[0], error), -1);
  assert_string_equal(error, "because");
  rl_stream_close(&stream, ends[0], true);
  (void)close(ends[0]);
}
