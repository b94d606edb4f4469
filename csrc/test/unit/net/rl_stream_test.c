/*
 * The bytes of a connection, bare and through a transport of the test.
 *
 * SPDX-License-Identifier: MIT
 *
 * That transport writes a record as its length in one byte and its bytes turned upside down. Its
 * handshake is "hello", to which the peer says "well". A record of no bytes says nothing to the
 * program; one of BAD bytes is refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/rl_stream.h"
#include "rl_test.h"

#define BAD 255
#define RECORD_MAX 100
#define ROOM_MAX 7 /* bytes that it takes of the peer at once */

/* ----------------------------------------------------------------------------------- the kernel */

static size_t send_room; /* bytes that the kernel takes before it is full */
static int send_error;   /* or its error */
static unsigned receives;
static unsigned interrupts; /* calls that are interrupted first */

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t length, int flags);

static bool is_interrupted(void) {
  if (interrupts == 0) {
    return false;
  }
  interrupts--;
  errno = EINTR;
  return true;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags) {
  assert_true((flags & MSG_NOSIGNAL) != 0);
  if (is_interrupted()) {
    return -1;
  }
  errno = send_error != 0 ? send_error : EAGAIN;
  if (send_error != 0 || send_room == 0) {
    return -1;
  }
  size_t taken = length < send_room ? length : send_room;
  send_room -= taken;
  return __real_send(fd, bytes, taken, flags);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t length, int flags) {
  receives++;
  if (is_interrupted()) {
    return -1;
  }
  return __real_recv(fd, bytes, length, flags);
}

/* -------------------------------------------------------------------------------- the transport */

struct rl_transport_node {
  bool refuses; /* every connection */
};

struct rl_transport_stream {
  bool greeted, shaken;
  size_t input_length, output_start, output_end;
  unsigned char input[256 + ROOM_MAX];
  unsigned char output[1 << 17];
};

static unsigned lines, writes;
static size_t largest_write;

static rl_transport_stream *line_new(rl_transport_node *node, char *message, size_t message_size) {
  if (node->refuses) {
    (void)snprintf(message, message_size, "no line");
    return NULL;
  }
  lines++;
  return calloc(1, sizeof(rl_transport_stream));
}

static void line_free(rl_transport_stream *line) {
  lines--;
  free(line);
}

static void put(rl_transport_stream *line, const void *bytes, size_t length) {
  assert_true(line->output_end + length <= sizeof line->output);
  memcpy(line->output + line->output_end, bytes, length);
  line->output_end += length;
}

static void consume(rl_transport_stream *line, size_t length) {
  line->input_length -= length;
  memmove(line->input, line->input + length, line->input_length);
}

static int shake(rl_transport_stream *line, char *message, size_t message_size) {
  if (!line->greeted) {
    put(line, "hello", 5);
    line->greeted = true;
  }
  if (line->input_length > 0 && line->input[0] != 'w') {
    put(line, "alert", 5);
    (void)snprintf(message, message_size, "its certificate is refused");
    return -1;
  }
  if (line->input_length < 4) {
    return 0;
  }
  consume(line, 4);
  line->shaken = true;
  return 1;
}

static void *room(rl_transport_stream *line, size_t *length) {
  *length = ROOM_MAX;
  return line->input + line->input_length;
}

static void fed(rl_transport_stream *line, size_t length) {
  line->input_length += length;
}

static bool holds(const rl_transport_stream *line) {
  return line->input_length > 0 && line->input_length > line->input[0];
}

static long read_line(rl_transport_stream *line, void *bytes, size_t length, char *message,
                      size_t message_size) {
  while (line->input_length > 0) {
    size_t size = line->input[0];
    if (size == BAD) {
      (void)snprintf(message, message_size, "a bad record");
      return -1;
    }
    if (line->input_length <= size) {
      return 0;
    }
    assert_true(size <= length);
    for (size_t i = 0; i < size; i++) {
      ((unsigned char *)bytes)[i] = line->input[i + 1] ^ 0xff;
    }
    consume(line, size + 1);
    if (size > 0) {
      return (long)size;
    }
  }
  return 0;
}

static long write_line(rl_transport_stream *line, const void *bytes, size_t length, char *message,
                       size_t message_size) {
  const unsigned char *from = bytes;
  writes++;
  largest_write = length > largest_write ? length : largest_write;
  assert_int_equal(line->output_start, line->output_end); /* All other output has been sent. */
  if (from[0] == '!') {
    (void)snprintf(message, message_size, "the transport is broken");
    return -1;
  }
  line->output_start = line->output_end = 0;
  for (size_t at = 0; at < length; at += RECORD_MAX) {
    unsigned char record[RECORD_MAX + 1];
    size_t size = length - at < RECORD_MAX ? length - at : RECORD_MAX;
    record[0] = (unsigned char)size;
    for (size_t i = 0; i < size; i++) {
      record[i + 1] = from[at + i] ^ 0xff;
    }
    put(line, record, size + 1);
  }
  return (long)length;
}

static const void *output(const rl_transport_stream *line, size_t *length) {
  *length = line->output_end - line->output_start;
  return *length > 0 ? line->output + line->output_start : NULL;
}

static void sent(rl_transport_stream *line, size_t length) {
  line->output_start += length;
}

static void finish(rl_transport_stream *line) {
  put(line, "bye", 3);
}

static const redlock_transport transport = {.version = RL_TRANSPORT_VERSION,
                                            .stream_new = line_new,
                                            .stream_free = line_free,
                                            .shake = shake,
                                            .room = room,
                                            .fed = fed,
                                            .read = read_line,
                                            .holds = holds,
                                            .write = write_line,
                                            .output = output,
                                            .sent = sent,
                                            .finish = finish};

/* --------------------------------------------------------------------------------------- a pair */

static rl_transport_node node;
static const rl_route plain = {NULL, NULL};
static const rl_route through = {&transport, &node};
static rl_stream stream;
static int fd, peer;
static char error[RL_STREAM_ERROR_MAX];
static unsigned char bytes[256];

static int start(void **state) {
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  fd = ends[0];
  peer = ends[1];
  send_room = SIZE_MAX;
  send_error = 0;
  receives = lines = writes = 0;
  largest_write = 0;
  node.refuses = false;
  error[0] = '\0';
  return 0;
}

static int end(void **state) {
  rl_stream_close(&stream, fd, true);
  (void)close(fd);
  if (peer >= 0) {
    (void)close(peer);
  }
  assert_int_equal(lines, 0);
  return 0;
}

static void peer_says(const void *what, size_t length) {
  assert_int_equal(write(peer, what, length), (ssize_t)length);
}

/* The peer reads |length| bytes; there are no more. */
static void peer_hears(const void *what, size_t length) {
  unsigned char heard[256];
  ssize_t got = read(peer, heard, sizeof heard);
  assert_int_equal(got < 0 ? 0 : got, length);
  assert_memory_equal(heard, what, length);
}

static void peer_hangs_up(void) {
  (void)close(peer);
  peer = -1;
}

/* A TCP connection replaces the pair, which knows no reset. */
static void use_tcp(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(server, (struct sockaddr *)&address, length), 0);
  assert_int_equal(listen(server, 1), 0);
  assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
  (void)close(fd);
  (void)close(peer);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
  assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  peer = accept(server, NULL, NULL);
  assert_true(peer >= 0);
  (void)close(server);
}

static void wait_for(int which, short events) {
  struct pollfd one = {which, events, 0};
  assert_int_equal(poll(&one, 1, 5000), 1);
}

/* The peer says |what|, and resets the connection: it closes it with an unread byte. */
static void peer_resets(const void *what, size_t length) {
  assert_int_equal(send(fd, "?", 1, MSG_NOSIGNAL), 1);
  wait_for(peer, POLLIN);
  peer_says(what, length);
  peer_hangs_up();
  wait_for(fd, 0); /* POLLERR */
}

static void open_through(void) {
  assert_true(rl_stream_open(&stream, &through, error));
  assert_true(rl_stream_shakes(&stream));
  peer_says("well", 4);
  wait_for(fd, POLLIN);
  assert_int_equal(rl_stream_shake(&stream, fd, error), 1);
  peer_hears("hello", 5);
  assert_false(rl_stream_unsent(&stream));
}

/* ---------------------------------------------------------------------------------------- plain */

TEST(bytes_are_unchanged_without_a_transport) {
  assert_true(rl_stream_open(&stream, &plain, error));
  assert_false(rl_stream_shakes(&stream));
  assert_int_equal(rl_stream_send(&stream, fd, "PING", 4, error), 4);
  peer_hears("PING", 4);
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 0);
  peer_says("PONG", 4);
  assert_false(rl_stream_holds_input(&stream));
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 4);
  assert_memory_equal(bytes, "PONG", 4);
  send_room = 2;
  assert_int_equal(rl_stream_send(&stream, fd, "PING", 4, error), 2);
  assert_true(stream.blocked);
  assert_int_equal(rl_stream_send(&stream, fd, "NG", 2, error), 0);
  assert_int_equal(rl_stream_send(&stream, fd, "", 0, error), 0);
  assert_false(rl_stream_unsent(&stream));
  peer_hears("PI", 2);
  peer_hangs_up();
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), -1);
  assert_string_equal(error, "the node closed the connection");
  send_error = ECONNRESET;
  assert_int_equal(rl_stream_send(&stream, fd, "NG", 2, error), -1);
  assert_string_equal(error, "Connection reset by peer");
}

/* ----------------------------------------------------------------------------------- handshakes */

TEST(interrupted_call_is_repeated) {
  assert_true(rl_stream_open(&stream, &plain, error));
  interrupts = 2;
  assert_int_equal(rl_stream_send(&stream, fd, "PING", 4, error), 4);
  peer_hears("PING", 4);
  peer_says("PONG", 4);
  interrupts = 2;
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 4);
}

TEST(handshake_works_byte_by_byte) {
  assert_true(rl_stream_open(&stream, &through, error));
  assert_int_equal(rl_stream_shake(&stream, fd, error), 0);
  peer_hears("hello", 5);
  for (unsigned i = 0; i < 4; i++) {
    peer_says(&"well"[i], 1);
    assert_int_equal(rl_stream_shake(&stream, fd, error), i == 3);
  }
}

TEST(handshake_waits_for_the_kernel) {
  send_room = 2;
  assert_true(rl_stream_open(&stream, &through, error));
  assert_int_equal(rl_stream_shake(&stream, fd, error), 0);
  assert_true(stream.blocked);
  assert_true(rl_stream_unsent(&stream));
  send_room = SIZE_MAX;
  stream.blocked = false; /* poll() has reported it. */
  assert_int_equal(rl_stream_shake(&stream, fd, error), 0);
  assert_false(rl_stream_unsent(&stream));
  peer_hears("hello", 5);
}

TEST(refusal_is_sent_before_it_is_reported) {
  assert_true(rl_stream_open(&stream, &through, error));
  peer_says("?", 1);
  assert_int_equal(rl_stream_shake(&stream, fd, error), -1);
  assert_string_equal(error, "its certificate is refused");
  peer_hears("helloalert", 10);
}

TEST(end_during_the_handshake_is_named) {
  assert_true(rl_stream_open(&stream, &through, error));
  peer_hangs_up();
  send_error = 0;
  assert_int_equal(rl_stream_shake(&stream, fd, error), -1);
  /* A socket pair tells when it is written to; a server of TCP later, when it is read from. */
  assert_non_null(strstr(error, "Broken pipe"));
  assert_int_equal(end(NULL), 0);
  assert_int_equal(start(NULL), 0);
  assert_true(rl_stream_open(&stream, &through, error));
  assert_int_equal(rl_stream_shake(&stream, fd, error), 0);
  peer_hangs_up();
  assert_int_equal(rl_stream_shake(&stream, fd, error), -1);
  assert_non_null(strstr(error, "during the TLS handshake"));
}

TEST(failed_stream_is_reported) {
  node.refuses = true;
  assert_false(rl_stream_open(&stream, &through, error));
  assert_string_equal(error, "no line");
  assert_false(rl_stream_shakes(&stream));
  rl_stream_close(&stream, fd, false); /* It has no stream. */
}

/* ---------------------------------------------------------------------------------------- input */

TEST(record_may_be_split_at_every_byte) {
  static const unsigned char record[] = {3, 'a' ^ 0xff, 'b' ^ 0xff, 'c' ^ 0xff};
  open_through();
  for (unsigned i = 0; i < sizeof record; i++) {
    peer_says(&record[i], 1);
    long got = rl_stream_receive(&stream, fd, bytes, sizeof bytes, error);
    assert_int_equal(got, i == 3 ? 3 : 0);
  }
  assert_memory_equal(bytes, "abc", 3);
}

/* The kernel has no more bytes, only the transport has. */
TEST(held_bytes_are_read_without_the_kernel) {
  static const unsigned char records[] = {1, 'a' ^ 0xff, 1, 'b' ^ 0xff, 1};
  open_through();
  peer_says(records, sizeof records);
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 1);
  assert_int_equal(bytes[0], 'a');
  assert_true(rl_stream_holds_input(&stream));
  receives = 0;
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 1);
  assert_int_equal(bytes[0], 'b');
  assert_int_equal(receives, 0);
  assert_false(rl_stream_holds_input(&stream));
}

/* More than the transport takes at once. */
TEST(long_record_is_read_to_its_end) {
  unsigned char record[51] = {50};
  open_through();
  peer_says(record, sizeof record);
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 50);
  assert_int_equal(receives, 9); /* with the one of the handshake */
}

/* A peer with many empty records does not delay other connections. */
TEST(empty_records_are_read_within_a_bound) {
  unsigned char nothing[1000] = {0};
  open_through();
  peer_says(nothing, sizeof nothing);
  receives = 0;
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 0);
  assert_in_range(receives, 2, 100);
}

TEST(bytes_count_before_the_end_of_a_connection) {
  static const unsigned char records[] = {1, 'a' ^ 0xff, BAD};
  open_through();
  peer_says(records, sizeof records);
  peer_hangs_up();
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), 1);
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), -1);
}

TEST(failed_read_ends_the_connection) {
  static const unsigned char bad = BAD;
  open_through();
  peer_says(&bad, 1);
  assert_int_equal(rl_stream_receive(&stream, fd, bytes, sizeof bytes, error), -1);
  assert_string_equal(error, "a bad record");
}

/* --------------------------------------------------------------------------------------- output */

TEST(no_bytes_are_taken_while_output_waits) {
  static const unsigned char both[] = {1, 'a' ^ 0xff, 1, 'b' ^ 0xff};
  open_through();
  send_room = 1;
  assert_int_equal(rl_stream_send(&stream, fd, "a", 1, error), 1); /* The transport has it. */
  assert_true(stream.blocked);
  assert_true(rl_stream_unsent(&stream));
  for (unsigned i = 0; i < 3; i++) {
    stream.blocked = false;
    assert_int_equal(rl_stream_send(&stream, fd, "b", 1, error), 0);
    assert_true(stream.blocked);
  }
  assert_int_equal(writes, 1);
  send_room = SIZE_MAX;
  stream.blocked = false;
  assert_int_equal(rl_stream_send(&stream, fd, "", 0, error), 0);
  assert_false(rl_stream_unsent(&stream));
  assert_int_equal(writes, 1);
  assert_int_equal(rl_stream_send(&stream, fd, "b", 1, error), 1);
  peer_hears(both, sizeof both);
}

TEST(transport_gets_a_bounded_number_of_bytes) {
  static unsigned char many[100000];
  open_through();
  assert_int_equal(rl_stream_send(&stream, fd, many, sizeof many, error), 65536);
  assert_int_equal(largest_write, 65536);
}

TEST(failed_write_ends_the_connection) {
  open_through();
  assert_int_equal(rl_stream_send(&stream, fd, "!", 1, error), -1);
  assert_string_equal(error, "the transport is broken");
}

/* The kernel only reports that the connection has ended. */
TEST(last_record_of_a_peer_replaces_its_reset) {
  static const struct {
    unsigned char said[ROOM_MAX + 1];
    size_t length;
    const char *reason;
  } rows[] = {{{BAD}, 1, "a bad record"},
              {{[ROOM_MAX] = BAD}, ROOM_MAX + 1, "a bad record"}, /* in the second read */
              {{1, 'a'}, 2, "Connection reset by peer"},
              {{0}, 0, "Connection reset by peer"}};
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    use_tcp();
    open_through();
    peer_resets(rows[i].said, rows[i].length);
    assert_int_equal(rl_stream_send(&stream, fd, "SET", 3, error), -1);
    assert_string_equal(error, rows[i].reason);
    assert_int_equal(end(NULL), 0);
    assert_int_equal(start(NULL), 0);
  }
}

TEST(reason_replaces_a_reset_in_a_handshake) {
  use_tcp();
  assert_true(rl_stream_open(&stream, &through, error));
  peer_resets("x", 1);
  assert_int_equal(rl_stream_shake(&stream, fd, error), -1);
  assert_string_equal(error, "its certificate is refused");
}

TEST(farewell_is_sent_unless_the_close_is_silent) {
  open_through();
  rl_stream_close(&stream, fd, false);
  peer_hears("bye", 3);
  open_through();
  rl_stream_close(&stream, fd, true); /* In a forked child the connection is the parent's. */
  peer_hears("", 0);
  open_through();
  send_room = 1;
  rl_stream_close(&stream, fd, false); /* As far as the kernel takes it. */
  peer_hears("b", 1);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = start, .after = end});
}
