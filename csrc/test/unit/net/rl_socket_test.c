/*
 * One connection, to servers of the test.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "look_ups.h" /* __wrap_getaddrinfo, __wrap_freeaddrinfo */
#include "net/rl_socket.h"
#include "node/rl_node.h"
#include "rl_test.h"
#include "scratch.h"

static const rl_route PLAIN = {NULL, NULL};

/* Those of the test: a socket, a server, and its address in two ways. */
static rl_socket sock;
static int server, port;
static rl_address address, named;

/* Number of next calls that a signal interrupts. */
static unsigned interruptions;

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t length, int flags);

static bool interrupted(void) {
  if (interruptions == 0) {
    return false;
  }
  interruptions--;
  errno = EINTR;
  return true;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags) {
  return interrupted() ? -1 : __real_send(fd, bytes, length, flags);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t length, int flags) {
  return interrupted() ? -1 : __real_recv(fd, bytes, length, flags);
}

/* A server on 127.0.0.1 with a port of its own. */
static int listen_on(int *its_port, int backlog) {
  struct sockaddr_in own;
  socklen_t length = sizeof own;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memset(&own, 0, sizeof own);
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
  if (backlog >= 0) {
    assert_int_equal(listen(fd, backlog), 0);
  }
  assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &length), 0);
  *its_port = ntohs(own.sin_port);
  return fd;
}

static rl_address address_of(const char *host, int its_port, const char *path) {
  rl_address made;
  memset(&made, 0, sizeof made);
  (void)snprintf(made.host, sizeof made.host, "%s", host);
  (void)snprintf(made.path, sizeof made.path, "%s", path);
  made.port = its_port;
  return made;
}

static int begin(void **state) {
  rl_socket_init(&sock);
  server = listen_on(&port, 8);
  address = address_of("127.0.0.1", port, "");
  named = address_of("localhost", port, "");
  return 0;
}

static int end(void **state) {
  rl_socket_free(&sock, false);
  (void)close(server);
  return 0;
}

static void progress(void) {
  short events;
  struct pollfd ready = {rl_socket_wait(&sock, true, &events), 0, 0};
  assert_true(ready.fd >= 0);
  ready.events = events;
  (void)poll(&ready, 1, 10);
  rl_socket_progress(&sock, redlock_now());
}

/* Waits until the socket neither resolves nor connects. */
static void settle(void) {
  eventually_by(progress(),
                sock.phase != RL_SOCKET_RESOLVING && sock.phase != RL_SOCKET_CONNECTING);
}

static int accept_peer(void) {
  struct pollfd ready = {server, POLLIN, 0};
  assert_int_equal(poll(&ready, 1, 5000), 1);
  int fd = accept(server, NULL, NULL);
  assert_true(fd >= 0);
  return fd;
}

static int option_of(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  assert_int_equal(getsockopt(fd, level, option, &value, &length), 0);
  return value;
}

/*
 * As in a program that has closed its standard input. It is the first test: a thread of a look-up
 * might take the descriptor.
 */
LINUX_TEST(descriptor_0_is_as_good_as_any) {
  struct epoll_event event;
  int set = epoll_create1(EPOLL_CLOEXEC);
  int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
  (void)close(0);
  rl_socket_connect(&sock, &address, &PLAIN, redlock_now());
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  assert_int_equal(sock.fd, 0);
  int peer = accept_peer();
  for (unsigned i = 0; i < 2; i++) {
    rl_socket_register(&sock, set, false); /* The second time it does nothing. */
    assert_int_equal(sock.polled_fd, 0);
  }
  sock.stream.blocked = true;
  rl_socket_register(&sock, set, true);
  assert_int_equal(epoll_wait(set, &event, 1, 5000), 1);
  assert_int_equal(event.events, EPOLLOUT);
  assert_int_equal(event.data.fd, 0);
  int copy = fcntl(0, F_DUPFD_CLOEXEC, 3); /* It would stay in the epoll set. */
  rl_socket_close(&sock);
  assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
  (void)close(copy);
  assert_int_equal(fcntl(0, F_GETFD), -1);
  assert_int_equal(sock.polled_fd, -1);
  if (input >= 0) {
    assert_int_equal(dup2(input, 0), 0);
    (void)close(input);
  }
  (void)close(peer);
  (void)close(set);
}

TEST(socket_is_tuned_and_does_not_block) {
  rl_socket_connect(&sock, &address, &PLAIN, redlock_now());
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  assert_int_equal(option_of(sock.fd, IPPROTO_TCP, TCP_NODELAY), 1);
  assert_int_equal(option_of(sock.fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  assert_int_equal(option_of(sock.fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 3000);
  assert_int_equal(option_of(sock.fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
  assert_int_equal(option_of(sock.fd, IPPROTO_TCP, TCP_KEEPINTVL), 1);
  assert_int_equal(option_of(sock.fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
  assert_true((fcntl(sock.fd, F_GETFL) & O_NONBLOCK) != 0);
  assert_true((fcntl(sock.fd, F_GETFD) & FD_CLOEXEC) != 0);
  char byte;
  assert_int_equal(rl_socket_receive(&sock, &byte, 1), 0); /* nothing there yet */
  rl_socket_free(&sock, false);
  assert_int_equal(sock.fd, -1);
}

TEST(unix_socket_connects_at_once_or_explains) {
  char directory[SCRATCH_PATH_MAX];
  struct sockaddr_un local;
  assert_true(scratch_make(directory, "test"));
  memset(&local, 0, sizeof local);
  local.sun_family = AF_UNIX;
  (void)snprintf(local.sun_path, sizeof local.sun_path, "%s/s", directory);
  rl_address path = address_of("", 0, local.sun_path);
  rl_socket_connect(&sock, &path, &PLAIN, redlock_now());
  assert_int_equal(sock.phase, RL_SOCKET_CLOSED);
  assert_string_equal(sock.error, "No such file or directory");
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&local, sizeof local), 0);
  rl_socket_connect(&sock, &path, &PLAIN, redlock_now());
  assert_int_equal(sock.phase, RL_SOCKET_CLOSED);
  assert_string_equal(sock.error, "Connection refused");
  assert_int_equal(listen(listener, 8), 0);
  rl_socket_connect(&sock, &path, &PLAIN, redlock_now());
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  assert_true((fcntl(sock.fd, F_GETFL) & O_NONBLOCK) != 0);
  assert_true((fcntl(sock.fd, F_GETFD) & FD_CLOEXEC) != 0);
  (void)close(listener);
  (void)unlink(local.sun_path);
  (void)rmdir(directory);
}

/* Extends the list, as if the name had one more address. */
static void add_address(int its_port) {
  struct addrinfo *last = sock.addresses;
  while (last->ai_next != NULL) {
    last = last->ai_next;
  }
  last->ai_next = rl_resolver_numeric("127.0.0.1", its_port);
  assert_non_null(last->ai_next);
  atomic_fetch_sub(&look_ups_lists, 1); /* It is part of the other list. */
}

TEST(connect_tries_all_addresses_of_a_name) {
  int closed_port;
  int other_port;
  int closed = listen_on(&closed_port, -1);
  int other = listen_on(&other_port, -1);
  rl_address first = address_of("127.0.0.1", closed_port, "");
  rl_socket_connect(&sock, &first, &PLAIN, redlock_now());
  assert_int_equal(sock.phase, RL_SOCKET_CONNECTING);
  add_address(other_port);
  add_address(port);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  assert_null(sock.addresses);
  struct sockaddr_in peer;
  socklen_t length = sizeof peer;
  assert_int_equal(getpeername(sock.fd, (struct sockaddr *)&peer, &length), 0);
  assert_int_equal(ntohs(peer.sin_port), port);
  (void)close(other);
  (void)close(closed);
}

static rl_transport_stream *line_new(rl_transport_node *node, char *text, size_t size) {
  (void)text;
  (void)size;
  return (rl_transport_stream *)node;
}

static int line_shake(rl_transport_stream *line, char *text, size_t size) {
  (void)line;
  (void)snprintf(text, size, "its certificate is refused");
  return -1;
}

static const void *line_output(const rl_transport_stream *line, size_t *length) {
  (void)line;
  *length = 0;
  return NULL;
}

static void line_ends(rl_transport_stream *line) {
  (void)line;
}

/* "localhost" has two addresses, and many servers listen on one of them. */
TEST(failed_handshake_explains_more_than_a_missing_server) {
  static const redlock_transport transport = {.stream_new = line_new,
                                              .shake = line_shake,
                                              .output = line_output,
                                              .finish = line_ends,
                                              .stream_free = line_ends};
  const rl_route route = {&transport, (rl_transport_node *)(uintptr_t)&transport};
  int closed_port;
  int closed = listen_on(&closed_port, -1);
  rl_socket_connect(&sock, &address, &route, redlock_now());
  add_address(closed_port);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_CLOSED);
  assert_string_equal(sock.error, "its certificate is refused");
  (void)close(server); /* The next attempt has errors of its own. */
  server = -1;
  rl_socket_connect(&sock, &address, &route, redlock_now());
  settle();
  assert_string_equal(sock.error, "Connection refused");
  (void)close(closed);
}

/* A server whose queue is full does not answer: SYNs are dropped. */
static int full_server(int *its_port, int *fillers, unsigned count) {
  int full = listen_on(its_port, 0);
  struct sockaddr_in own;
  memset(&own, 0, sizeof own);
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  own.sin_port = htons((uint16_t)*its_port);
  for (unsigned i = 0; i < count; i++) {
    fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)connect(fillers[i], (struct sockaddr *)&own, sizeof own);
  }
  return full;
}

TEST(silent_address_gets_its_share_of_the_time) {
  int silent_port;
  int fillers[4];
  int silent = full_server(&silent_port, fillers, 4);
  rl_address first = address_of("127.0.0.1", silent_port, "");
  redlock_time start_us = redlock_now();
  rl_socket_connect(&sock, &first, &PLAIN, start_us);
  assert_int_equal(sock.phase, RL_SOCKET_CONNECTING);
  assert_int_equal(rl_socket_deadline(&sock), REDLOCK_NEVER); /* it is the only address */
  add_address(silent_port);
  add_address(port);
  /* As if the name had three addresses. */
  sock.address_deadline_us = start_us + RL_LINK_CONNECT_TIMEOUT_US / 3;
  rl_socket_progress(&sock, start_us + SECONDS - 1);
  assert_ptr_equal(sock.current, sock.addresses);
  rl_socket_progress(&sock, start_us + SECONDS);
  assert_ptr_equal(sock.current, sock.addresses->ai_next);
  assert_int_equal(rl_socket_deadline(&sock), start_us + SECONDS + RL_LINK_CONNECT_TIMEOUT_US / 2);
  rl_socket_progress(&sock, start_us + SECONDS + RL_LINK_CONNECT_TIMEOUT_US / 2);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  for (unsigned i = 0; i < 4; i++) {
    (void)close(fillers[i]);
  }
  (void)close(silent);
}

TEST(connect_resolves_names_without_blocking) {
  short events;
  rl_socket_connect(&sock, &named, &PLAIN, redlock_now());
  assert_true(sock.phase == RL_SOCKET_RESOLVING || sock.phase == RL_SOCKET_CONNECTING);
  assert_true(rl_socket_wait(&sock, false, &events) >= 0);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  assert_null(sock.resolver);
}

TEST(look_up_outlives_its_attempt_and_serves_the_next) {
  redlock_time now_us = redlock_now();
  rl_socket_connect(&sock, &named, &PLAIN, now_us);
  rl_resolver *first = sock.resolver;
  rl_socket_close(&sock);
  assert_int_equal(sock.phase, RL_SOCKET_CLOSED);
  assert_ptr_equal(sock.resolver, first);
  rl_socket_connect(&sock, &named, &PLAIN, now_us);
  /* The answer may have come in the first attempt (then no look-up is left) or in this one. */
  assert_true(first == NULL || sock.resolver == first || sock.resolver == NULL);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  rl_socket_close(&sock);
  rl_socket_connect(&sock, &named, &PLAIN, redlock_now());
  rl_socket_free(&sock, false); /* abandoned in flight */
}

/* The name may have another address by now. */
TEST(old_answer_serves_no_connection) {
  atomic_store(&look_ups_wait, true);
  rl_socket_connect(&sock, &named, &PLAIN, redlock_now());
  struct pollfd answer = {rl_resolver_fd(sock.resolver), POLLIN, 0};
  rl_socket_close(&sock);
  atomic_store(&look_ups_wait, false);
  assert_int_equal(poll(&answer, 1, 30000), 1);
  atomic_store(&look_ups_wait, true);
  redlock_time later_us = redlock_now() + RL_RESOLVER_ANSWER_US + 1;
  rl_socket_connect(&sock, &named, &PLAIN, later_us);
  assert_int_equal(sock.phase, RL_SOCKET_RESOLVING);
  atomic_store(&look_ups_wait, false);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  rl_socket_close(&sock);
}

/* Opens a socket, and returns its peer. */
static int open_pair(void) {
  rl_socket_init(&sock);
  rl_socket_connect(&sock, &address, &PLAIN, redlock_now());
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
  return accept_peer();
}

TEST(end_of_a_connection_raises_no_signal) {
  char byte;
  int peer = open_pair();
  struct pollfd ready = {sock.fd, POLLIN, 0};
  (void)close(peer);
  assert_int_equal(poll(&ready, 1, 5000), 1);
  assert_int_equal(rl_socket_receive(&sock, &byte, 1), -1);
  assert_string_equal(sock.error, "the node closed the connection");
  eventually(rl_socket_send(&sock, "x", 1) < 0); /* The first write may succeed. */
  assert_true(strcmp(sock.error, "Broken pipe") == 0 ||
              strcmp(sock.error, "Connection reset by peer") == 0);
}

TEST(signal_in_a_system_call_has_no_effect) {
  char bytes[8];
  int peer = open_pair();
  struct pollfd ready = {sock.fd, POLLIN, 0};
  interruptions = 2;
  assert_int_equal(rl_socket_send(&sock, "ping", 4), 4);
  assert_int_equal(interruptions, 0);
  assert_int_equal(recv(peer, bytes, sizeof bytes, 0), 4);
  interruptions = 2;
  assert_int_equal(rl_socket_receive(&sock, bytes, sizeof bytes), 0);
  (void)close(peer);
  assert_int_equal(poll(&ready, 1, 5000), 1);
  interruptions = 1; /* then the end, which keeps errno */
  assert_int_equal(rl_socket_receive(&sock, bytes, sizeof bytes), -1);
  assert_string_equal(sock.error, "the node closed the connection");
}

/* A registered descriptor costs no system call. */
LINUX_TEST(registration_changes_only_if_necessary) {
  struct epoll_event event;
  int set = epoll_create1(EPOLL_CLOEXEC);
  int peer = open_pair();
  rl_socket_register(&sock, set, false);
  /* Removed behind its back: a second registration would fail. */
  event = (struct epoll_event){.events = EPOLLOUT};
  assert_int_equal(epoll_ctl(set, EPOLL_CTL_MOD, sock.fd, &event), 0);
  rl_socket_register(&sock, set, false);
  assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
  int fd = dup(sock.fd); /* a copy keeps it in the epoll set */
  rl_socket_close(&sock);
  assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
  rl_socket_register(&sock, set, true);
  assert_int_equal(sock.polled_fd, -1);
  assert_int_equal(sock.epoll_fd, set);
  (void)close(fd);
  (void)close(peer);
  (void)close(set);
}

/* The new descriptor has the number of the old one. */
LINUX_TEST(reused_descriptor_is_registered_again) {
  struct epoll_event event;
  int set = epoll_create1(EPOLL_CLOEXEC);
  int peer = open_pair();
  rl_socket_register(&sock, set, false);
  rl_socket_close(&sock);
  (void)close(peer);
  peer = open_pair();
  rl_socket_register(&sock, set, false);
  assert_int_equal(send(peer, "x", 1, MSG_NOSIGNAL), 1);
  assert_int_equal(epoll_wait(set, &event, 1, 5000), 1);
  assert_int_equal(event.data.fd, sock.fd);
  (void)close(peer);
  (void)close(set);
}

/* Returns true if the descriptor has changed, so that a polling thread must be woken. */
static bool has_changed(unsigned *before) {
  bool changed = sock.changes != *before;
  assert_in_range(sock.changes - *before, 0, 9); /* It only grows: no change undoes another. */
  *before = sock.changes;
  return changed;
}

TEST(change_counter_reports_each_new_descriptor) {
  unsigned before = sock.changes;
  for (unsigned i = 0; i < 3; i++) {
    rl_socket_connect(&sock, &address, &PLAIN, redlock_now());
    assert_true(has_changed(&before));
    settle();
    assert_int_equal(sock.phase, RL_SOCKET_OPEN);
    assert_false(has_changed(&before));
    rl_socket_close(&sock);
    assert_true(has_changed(&before));
    rl_socket_close(&sock);
    assert_false(has_changed(&before));
  }
  atomic_store(&look_ups_wait, true);
  rl_socket_connect(&sock, &named, &PLAIN, redlock_now());
  assert_true(has_changed(&before)); /* It polls the look-up ... */
  atomic_store(&look_ups_wait, false);
  settle();
  assert_true(has_changed(&before)); /* ... then the connection. */
  rl_socket_free(&sock, false);
  assert_true(has_changed(&before));
}

/* The limit of look-ups hangs: one more retries until it may begin. */
TEST(busy_look_up_is_retried_every_10_ms) {
  rl_resolver *hanging[RL_RESOLVER_THREADS_MAX];
  short events;
  bool busy;
  unsigned count = 0;
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  atomic_store(&look_ups_wait, true);
  for (;;) { /* Look-ups of earlier tests may just end. */
    assert_true(redlock_now() < until_us);
    while (count < COUNT_OF(hanging)) {
      hanging[count] = rl_resolver_new(&named, &busy);
      if (busy) {
        break;
      }
      assert_non_null(hanging[count++]);
    }
    rl_socket_init(&sock);
    rl_socket_connect(&sock, &named, &PLAIN, 1000 * SECONDS);
    if (sock.resolver == NULL) {
      break;
    }
    rl_socket_free(&sock, false);
    (void)poll(NULL, 0, 1);
  }
  assert_int_equal(sock.phase, RL_SOCKET_RESOLVING);
  assert_true(rl_socket_deadline(&sock) == 1000 * SECONDS + 10 * MS);
  assert_int_equal(rl_socket_wait(&sock, true, &events), -1);
  atomic_store(&look_ups_wait, false);
  while (count > 0) {
    rl_resolver_free(hanging[--count]);
  }
  eventually((rl_socket_progress(&sock, redlock_now()), sock.resolver != NULL) ||
             sock.phase != RL_SOCKET_RESOLVING);
  assert_true(sock.resolver == NULL || rl_socket_deadline(&sock) == REDLOCK_NEVER);
  settle();
  assert_int_equal(sock.phase, RL_SOCKET_OPEN);
}

TEST(look_up_has_no_time_out) {
  atomic_store(&look_ups_wait, true);
  rl_socket_connect(&sock, &named, &PLAIN, redlock_now());
  assert_non_null(sock.resolver);
  assert_true(rl_socket_deadline(&sock) == REDLOCK_NEVER);
  atomic_store(&look_ups_wait, false);
}

/* A child shares the epoll set with its parent. */
LINUX_TEST(forked_child_keeps_its_parents_epoll_set) {
  for (unsigned forked = 0; forked < 2; forked++) {
    struct epoll_event event;
    int set = epoll_create1(EPOLL_CLOEXEC);
    int peer = open_pair();
    rl_socket_register(&sock, set, false);
    int parents = dup(sock.fd);
    rl_socket_free(&sock, forked == 1);
    assert_int_equal(send(peer, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(epoll_wait(set, &event, 1, forked == 1 ? 5000 : 0), forked);
    (void)close(parents);
    (void)close(peer);
    (void)close(set);
  }
}

TEST(no_address_list_leaks) {
  eventually(atomic_load(&look_ups_lists) == 0); /* Abandoned look-ups may still be in progress. */
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end, .end = look_ups_end});
}
