/*
 * A turn with full sockets, and a peer that reads when the test wants.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_turn.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/rl_poll.h"
#include "client_world.h"

#define LOCKS 200
#define KEY_LENGTH 4000
#define HELLO                                                                                      \
  "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$7\r\nredlock\r\n"                                       \
  "*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$7\r\nredlock\r\n"                     \
  "*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$5\r\n" REDLOCK_VERSION "\r\n"
#define HELLO_REPLY "+OK\r\n+OK\r\n+OK\r\n"

static unsigned looks;    /* number of polls for input */
static unsigned readings; /* of the clock */
static bool send_is_ours;
static long send_result;

redlock_time __real_redlock_now(void);
redlock_time __wrap_redlock_now(void);
size_t __real_rl_poll_fds(const redlock_client *client, struct pollfd *fds, size_t capacity);
size_t __wrap_rl_poll_fds(const redlock_client *client, struct pollfd *fds, size_t capacity);
long __real_rl_socket_send(rl_socket *socket, const void *bytes, size_t length);
long __wrap_rl_socket_send(rl_socket *socket, const void *bytes, size_t length);

redlock_time __wrap_redlock_now(void) {
  readings++;
  return __real_redlock_now();
}

size_t __wrap_rl_poll_fds(const redlock_client *client, struct pollfd *fds, size_t capacity) {
  looks++;
  return __real_rl_poll_fds(client, fds, capacity);
}

long __wrap_rl_socket_send(rl_socket *socket, const void *bytes, size_t length) {
  return send_is_ours ? send_result : __real_rl_socket_send(socket, bytes, length);
}

typedef struct peer {
  char directory[SCRATCH_PATH_MAX];
  struct sockaddr_un local;
  int server;
  int fd;
  redlock_client *client;
  redlock_lock *locks[LOCKS];
  char *bytes;
  size_t length; /* bytes that have been read */
} peer;

static uint32_t nodes_polled_for_writing(const peer *self) {
  return rl_poll_wants(self->client, NULL, 0).writable;
}

static redlock_lock *lock_of(redlock_client *client, unsigned number) {
  char name[KEY_LENGTH];
  redlock_lock *lock;
  redlock_options options = {0};
  memset(name, 'x', sizeof name);
  (void)snprintf(name, sizeof name, "%08u", number);
  options.ttl_us = 600 * SECONDS;
  options.node_timeout_us = 60 * SECONDS;
  assert_error(redlock_lock_new(&lock, client, name, sizeof name, &options), REDLOCK_OK);
  return lock;
}

static peer *peer_of_the_test;

static bool peer_end(void) {
  peer *self = peer_of_the_test;
  (void)close(self->fd);
  (void)close(self->server);
  for (unsigned i = 0; i < LOCKS; i++) {
    redlock_lock_free(self->locks[i]);
  }
  redlock_client_free(self->client);
  (void)unlink(self->local.sun_path);
  (void)rmdir(self->directory);
  free(self->bytes);
  free(self);
  return true;
}

/* One node, which has replied to the handshake, and |locks| operations of its client. */
static peer *peer_of(unsigned locks) {
  peer *self = calloc(1, sizeof *self);
  char address[128];
  char hello[sizeof HELLO];
  assert_non_null(self);
  self->bytes = malloc((size_t)LOCKS * (KEY_LENGTH + 200));
  assert_non_null(self->bytes);
  assert_true(scratch_make(self->directory, "test"));
  self->local.sun_family = AF_UNIX;
  (void)snprintf(self->local.sun_path, sizeof self->local.sun_path, "%s/s", self->directory);
  self->server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(self->server, (struct sockaddr *)&self->local, sizeof self->local), 0);
  assert_int_equal(listen(self->server, 1), 0);
  (void)snprintf(address, sizeof address, "unix://%s", self->local.sun_path);
  /* No timer of an operation wakes the loop on a slow machine. */
  redlock_options options = {.node_timeout_us = 60 * SECONDS, .ttl_us = 600 * SECONDS};
  redlock_settings settings = {.options = &options};
  assert_error(redlock_client_new(&self->client, &settings, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(self->client, address, NULL, 0), REDLOCK_OK);
  self->client->core.active = true; /* It connects without operations, too. */
  for (unsigned i = 0; i < locks; i++) {
    self->locks[i] = lock_of(self->client, i);
    assert_error(redlock_lock_acquire_start(self->locks[i], NULL), REDLOCK_OK);
  }
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  self->fd = accept(self->server, NULL, NULL);
  assert_true(self->fd >= 0);
  assert_int_equal(recv(self->fd, hello, sizeof hello - 1, MSG_WAITALL), sizeof hello - 1);
  assert_memory_equal(hello, HELLO, sizeof hello - 1);
  assert_int_equal(send(self->fd, HELLO_REPLY, strlen(HELLO_REPLY), 0), strlen(HELLO_REPLY));
  peer_of_the_test = self;
  tests_at_end(peer_end);
  return self;
}

/* The node stops reading after the handshake. It lives until the end of the test. */
static peer *peer_new(void) {
  return peer_of(LOCKS);
}

/* Reads whatever is there, answers nothing. */
static void peer_read(peer *self) {
  ssize_t got;
  do {
    size_t room = (size_t)LOCKS * (KEY_LENGTH + 200) - self->length;
    got = recv(self->fd, self->bytes + self->length, room, MSG_DONTWAIT);
    self->length += got > 0 ? (size_t)got : 0;
  } while (got > 0);
}

static short events_of(peer *self) {
  struct pollfd one = {-1, 0, 0};
  assert_int_equal(redlock_client_pollfds(self->client, &one, 1), 1);
  return one.events;
}

static bool ready(int fd) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

/* Takes turns while the descriptor is readable. */
static void process_while_ready(peer *self, int fd) {
  for (unsigned turns = 0; ready(fd); turns++) {
    assert_true(turns < 100); /* It does not spin. */
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  }
}

/* Each command has arrived once and complete. */
static void check_stream(const peer *self) {
  static const char before[] = "*6\r\n$3\r\nSET\r\n$4000\r\n";
  size_t length = self->length / LOCKS;
  bool seen[LOCKS] = {false};
  assert_int_equal(self->length % LOCKS, 0);
  for (unsigned i = 0; i < LOCKS; i++) {
    const char *command = self->bytes + i * length;
    assert_memory_equal(command, before, sizeof before - 1);
    unsigned long number = strtoul(command + sizeof before - 1, NULL, 10);
    assert_in_range(number, 0, LOCKS - 1);
    assert_false(seen[number]);
    seen[number] = true;
  }
}

LINUX_TEST(full_socket_is_polled_and_drained) {
  peer *self = peer_new();
  int fd = redlock_client_pollfd(self->client);
  assert_int_equal(events_of(self), POLLIN); /* No send has failed. */
  process_while_ready(self, fd);
  assert_true(self->client->sockets[0].stream.blocked);
  for (unsigned i = 0; i < 5; i++) { /* Kept, as long as it is full. */
    assert_int_equal(events_of(self), POLLIN | POLLOUT);
    assert_int_equal(nodes_polled_for_writing(self), 1); /* The poller waits for room. */
    assert_false(ready(fd));
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  }
  unsigned drained = 0;
  while (self->client->sockets[0].stream.blocked) {
    peer_read(self);
    assert_true(ready(fd)); /* There is room: that wakes the loop. */
    process_while_ready(self, fd);
    assert_true(++drained < 100);
  }
  assert_true(drained > 1); /* It was full more than once. */
  peer_read(self);
  check_stream(self);
  assert_int_equal(events_of(self),
                   POLLIN); /* Not polled for writing: a socket with room is always writable. */
  assert_int_equal(nodes_polled_for_writing(self), 0);
  assert_false(ready(fd));
}

/* A finalizer flushes, and loses nothing that did not fit. */
TEST(next_turn_sends_what_a_full_socket_refused) {
  peer *self = peer_new();
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_true(self->client->sockets[0].stream.blocked);
  rl_turn_flush(self->client);
  assert_true(self->client->sockets[0].stream.blocked);
  eventually_by(peer_read(self), redlock_client_process(self->client, NULL, 0) == REDLOCK_OK &&
                                     !self->client->sockets[0].stream.blocked);
  peer_read(self);
  check_stream(self);
}

TEST(room_is_polled_for_only_with_output) {
  peer *self = peer_new();
  rl_socket *socket = &self->client->sockets[0];
  size_t length;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  while (rl_core_output(&self->client->core, 0, &length) != NULL) {
    peer_read(self);
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  }
  socket->stream.blocked = true;
  assert_int_equal(nodes_polled_for_writing(self), 0);
  assert_int_equal(events_of(self), POLLIN);
  socket->stream.blocked = false;
}

TEST(only_a_failed_send_ends_the_connection) {
  peer *self = peer_new();
  const rl_link *link = &self->client->core.nodes[0]->link;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_int_equal(link->phase, RL_LINK_UP);
  self->client->sockets[0].stream.blocked = false;
  send_is_ours = true;
  send_result = 0;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_int_equal(link->phase, RL_LINK_UP);
  send_result = -1;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  send_is_ours = false;
  assert_int_not_equal(link->phase, RL_LINK_UP);
}

TEST(bytes_are_left_to_arriving_threads) {
  peer *self = peer_new();
  self->client->callers.arriving = 1;
  self->client->wake = true;
  self->client->callers.turned = false;
  assert_error(rl_turn_process(self->client, NULL, 0), REDLOCK_OK);
  assert_true(self->client->callers.unsent);
  assert_true(self->client->callers.turned);
  assert_false(self->client->wake);
  peer_read(self);
  assert_int_equal(self->length, 0);
  self->client->callers.arriving = 0;
  self->client->callers.unsent = false;
  assert_error(rl_turn_process(self->client, NULL, 0), REDLOCK_OK);
  assert_false(self->client->callers.unsent);
  peer_read(self);
  assert_true(self->length > 0);
}

/* Reading costs a system call, so it happens after a pause, and if much is outstanding. */
TEST(starting_turn_reads_only_if_it_is_worth_it) {
  peer *self = peer_new();
  rl_link *link = &self->client->core.nodes[0]->link;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  size_t outstanding = link->outstanding_count;
  for (unsigned i = 0; i < 3; i++) {
    self->client->processed_us = i == 2 ? 0 : redlock_now() + 100 * SECONDS;
    link->outstanding_count = i == 1 ? RL_PACER_IN_FLIGHT : RL_PACER_IN_FLIGHT - 1;
    looks = 0;
    assert_error(rl_turn_start(self->client, redlock_now()), REDLOCK_OK);
    assert_int_equal(looks, i); /* twice after a long pause */
  }
  link->outstanding_count = (unsigned)outstanding;
}

/* The operation has begun with a reading. */
TEST(start_of_a_turn_does_not_read_the_clock) {
  peer *self = peer_of(0);
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  self->client->processed_us = REDLOCK_NEVER;
  redlock_time now_us = redlock_now();
  readings = 0;
  assert_error(rl_turn_start(self->client, now_us), REDLOCK_OK);
  assert_int_equal(readings, 0);
  assert_true(self->client->processed_us >= now_us);
}

/* The clock is read after the bytes of each node, which is late enough for the turn, too. */
TEST(input_tells_the_turn_the_time) {
  peer *self = peer_of(0);
  struct pollfd one;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_pollfds(self->client, &one, 1), 1);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(send(self->fd, "+", i, 0), i); /* a part of a reply, which changes nothing */
    assert_int_equal(poll(&one, 1, i == 0 ? 0 : 5000), i);
    redlock_time before_us = redlock_now();
    readings = 0;
    assert_error(rl_turn_process(self->client, &one, 1), REDLOCK_OK);
    assert_int_equal(readings, 1);
    assert_true(self->client->processed_us >= before_us);
  }
}

/* Since the program's poll() other nodes may have replied, too. */
TEST(process_that_was_held_up_reads_once_more_after_input) {
  peer *self = peer_of(0);
  struct pollfd one;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_pollfds(self->client, &one, 1), 1);
  assert_int_equal(send(self->fd, "+", 1, 0), 1);
  assert_int_equal(poll(&one, 1, 5000), 1);
  self->client->processed_us = self->client->core.now_us -= 1 * SECONDS;
  looks = 0;
  assert_error(rl_turn_process(self->client, &one, 1), REDLOCK_OK);
  assert_int_equal(looks, 1);
}

/* Returns true if the client has closed the connection, even if it has made another one. */
static bool is_hung_up_on(peer *self) {
  char byte;
  peer_read(self);
  return recv(self->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Its connection is up, and an invalid reply has arrived. */
static rl_socket *open_socket(peer *self) {
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_true(rl_socket_is_open(&self->client->sockets[0]));
  assert_int_equal(send(self->fd, "nonsense\r\n", 10, 0), 10);
  return &self->client->sockets[0];
}

TEST(invalid_reply_ends_the_connection) {
  peer *self = peer_new();
  (void)open_socket(self);
  assert_false(is_hung_up_on(self));
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_true(is_hung_up_on(self));
}

/* The peer takes another connection, which the client may have made already. */
static void take_next_connection(peer *self) {
  self->client->core.nodes[0]->connect_at_us = 0;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  (void)close(self->fd);
  self->fd = accept(self->server, NULL, NULL);
  assert_true(self->fd >= 0);
}

/* An open one would make the loop spin until the next connection. */
TEST(turn_closes_a_dropped_connection_during_the_back_off) {
  peer *self = peer_of(0);
  self->client->core.nodes[0]->failures = 10;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_int_equal(send(self->fd, "nonsense\r\n", 10, 0), 10);
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_true(is_hung_up_on(self));
  for (unsigned i = 0; i < 2; i++) { /* After the first time it skips a command, at once. */
    take_next_connection(self);
    assert_int_equal(shutdown(self->fd, SHUT_WR), 0); /* before the end of the handshake */
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
    assert_true(is_hung_up_on(self));
  }
  take_next_connection(self);
  rl_core_disconnected(&self->client->core, 0, redlock_now(), "out of memory");
  assert_int_equal(redlock_client_timeout(self->client), 0);
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  assert_true(is_hung_up_on(self));
}

/* A transport with bytes of its own, such as TLS has them after a renewal of its keys. */
static size_t transport_unsent;

static const void *transport_output(const rl_transport_stream *stream, size_t *length) {
  static const char bytes[] = "keys";
  (void)stream;
  *length = transport_unsent;
  return transport_unsent > 0 ? bytes + 4 - transport_unsent : NULL;
}

static void transport_sent(rl_transport_stream *stream, size_t length) {
  (void)stream;
  transport_unsent -= length;
}

static bool transport_holds(const rl_transport_stream *stream) {
  (void)stream;
  return false;
}

TEST(bytes_of_the_transport_go_when_the_socket_takes_them) {
  static const redlock_transport transport = {
      .output = transport_output, .sent = transport_sent, .holds = transport_holds};
  peer *self = peer_new();
  struct pollfd one;
  size_t length;
  rl_stream *stream = &self->client->sockets[0].stream;
  assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  while (rl_core_output(&self->client->core, 0, &length) != NULL) {
    peer_read(self);
    assert_error(redlock_client_process(self->client, NULL, 0), REDLOCK_OK);
  }
  peer_read(self);
  size_t before = self->length;
  stream->transport = &transport;
  stream->inner = (rl_transport_stream *)&transport_unsent;
  stream->blocked = true;
  transport_unsent = 4;
  assert_int_equal(nodes_polled_for_writing(self), 1);
  assert_true(redlock_client_timeout(self->client) > 0);
  assert_int_equal(redlock_client_pollfds(self->client, &one, 1), 1);
  assert_int_equal(poll(&one, 1, 0), 1);
  assert_error(redlock_client_process(self->client, &one, 1), REDLOCK_OK);
  stream->transport = NULL;
  stream->inner = NULL;
  peer_read(self);
  assert_int_equal(self->length - before, 4);
}

/* As in a program that has closed its standard input. */
TEST(descriptor_0_is_read) {
  peer *self = peer_new();
  struct pollfd one;
  rl_socket *socket = open_socket(self);
  int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
  assert_int_equal(dup2(socket->fd, 0), 0);
  (void)close(socket->fd);
  socket->fd = 0;
  assert_true(socket->stream.blocked);
  assert_int_equal(nodes_polled_for_writing(self), 1);
  assert_int_equal(redlock_client_pollfds(self->client, &one, 1), 1);
  assert_int_equal(poll(&one, 1, 5000), 1);
  assert_error(redlock_client_process(self->client, &one, 1), REDLOCK_OK);
  assert_true(is_hung_up_on(self));
  rl_socket_close(socket); /* A new connection may have got the number again. */
  if (input >= 0) {
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
  }
}

/* The program's descriptors end at a page without a next one, and none is the client's. */
TEST(turn_reads_only_the_programs_descriptors) {
  redlock_client *client = client_without_servers(2);
  int ends[2];
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(pages != MAP_FAILED);
  assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
  struct pollfd *fds = (struct pollfd *)(void *)(pages + page) - 2;
  assert_int_equal(pipe(ends), 0);
  for (unsigned i = 0; i < 2; i++) {
    client->sockets[i].fd = dup(ends[0]);
    client->sockets[i].phase = RL_SOCKET_OPEN;
    fds[i] = (struct pollfd){ends[1], POLLOUT, POLLOUT};
  }
  assert_error(redlock_client_process(client, fds, 2), REDLOCK_OK);
  redlock_client_free(client);
  (void)close(ends[0]);
  (void)close(ends[1]);
  assert_int_equal(munmap(pages, 2 * page), 0);
}

TEST(closed_client_processes_nothing) {
  redlock_client *client = client_without_servers(1);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_E_CLOSED);
  redlock_client_free(client);
}
