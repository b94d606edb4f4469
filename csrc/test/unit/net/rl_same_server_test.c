/*
 * Detects that two nodes are one server. The test supplies the peers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/rl_same_server.h"
#include "rl_test.h"

/* By descriptor. NULL: a connection that has ended; "": a Unix socket. */
static const struct {
  const char *text;
  uint16_t port;
} peers[] = {
    {"127.0.0.1", 6379}, {"127.0.0.1", 6380},       {"::1", 6379}, {"10.0.0.1", 6379},
    {"10.0.0.2", 6379},  {"::ffff:10.0.0.1", 6379}, {"", 0},       {NULL, 0},
};
enum { LOOPBACK, OTHER_PORT, LOOPBACK_6, TEN_1, TEN_2, TEN_1_MAPPED, UNIX, GONE };

int __wrap_getpeername(int fd, struct sockaddr *name, socklen_t *length);
int __wrap_getpeername(int fd, struct sockaddr *name, socklen_t *length) {
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(peers[fd].port)};
  struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(peers[fd].port)};
  struct sockaddr_un un = {.sun_family = AF_UNIX};
  if (peers[fd].text == NULL) {
    errno = ENOTCONN;
    return -1;
  }
  if (peers[fd].text[0] == '\0') {
    memcpy(name, &un, sizeof un);
    *length = sizeof un;
  } else if (inet_pton(AF_INET, peers[fd].text, &in.sin_addr) == 1) {
    memcpy(name, &in, sizeof in);
    *length = sizeof in;
  } else {
    assert_int_equal(inet_pton(AF_INET6, peers[fd].text, &in6.sin6_addr), 1);
    memcpy(name, &in6, sizeof in6);
    *length = sizeof in6;
  }
  return 0;
}

/* In both orders. */
static bool same(int first, const char *first_host, int second, const char *second_host) {
  rl_address a = {.db = 0};
  rl_address b = {.db = 0};
  (void)snprintf(a.host, sizeof a.host, "%s", first_host);
  (void)snprintf(b.host, sizeof b.host, "%s", second_host);
  bool result = rl_same_server(first, &a, second, &b);
  assert_true(rl_same_server(second, &b, first, &a) == result);
  b.db = 1;
  assert_false(rl_same_server(first, &a, second, &b));
  return result;
}

TEST(same_address_and_port_are_one_server) {
  assert_true(same(LOOPBACK, "localhost", LOOPBACK, "127.0.0.1"));
  assert_true(same(TEN_1, "redis.example", TEN_1, "10.0.0.1"));
  assert_true(same(TEN_1, "10.0.0.1", TEN_1_MAPPED, "::ffff:10.0.0.1"));
}

TEST(another_port_or_address_is_another_server) {
  assert_false(same(LOOPBACK, "localhost", OTHER_PORT, "127.0.0.1"));
  assert_false(same(TEN_1, "a.example", TEN_2, "b.example"));
  assert_false(same(TEN_1, "a.example", LOOPBACK, "localhost"));
  assert_false(same(LOOPBACK_6, "localhost", TEN_1, "10.0.0.1"));
}

/* Two written addresses are two servers; a name may mean either address. */
TEST(localhost_is_one_server_by_ipv4_and_ipv6) {
  assert_true(same(LOOPBACK_6, "localhost", LOOPBACK, "127.0.0.1"));
  assert_true(same(LOOPBACK_6, "::1", LOOPBACK, "localhost"));
  assert_false(same(LOOPBACK_6, "::1", LOOPBACK, "127.0.0.1"));
  assert_false(same(LOOPBACK_6, "localhost", OTHER_PORT, "127.0.0.1"));
}

TEST(connection_without_an_address_is_no_server) {
  assert_false(same(UNIX, "", UNIX, ""));
  assert_false(same(UNIX, "", LOOPBACK, "localhost"));
  assert_false(same(GONE, "localhost", LOOPBACK, "127.0.0.1"));
  assert_false(same(GONE, "localhost", GONE, "127.0.0.1"));
}
