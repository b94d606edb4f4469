/*
 * Sentinels: their answers, their majority, and those that do not answer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/rl_sentinel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rl_test.h"

#define SECRET "s3cr3t"
#define MASTER "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6380\r\n"
#define FORMER "*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6380\r\n"
#define QUESTION "*3\r\n$8\r\nSENTINEL\r\n$23\r\nget-master-addr-by-name\r\n$8\r\nmymaster\r\n"

/*
 * A server that answers each request of |length| bytes by |says|, byte by byte. NULL: never; "": it
 * closes the connection.
 */
typedef struct script {
  const char *says;
  size_t length;
  int listener, port;
  pthread_t thread;
  atomic_bool stop;
  atomic_uint asked;
  char received[512];
} script;

static void serve_one(script *self, int fd) {
  bool closes = self->says != NULL && self->says[0] == '\0';
  size_t held = 0;
  while (held < self->length && !atomic_load(&self->stop)) {
    struct pollfd readable = {fd, POLLIN, 0};
    ssize_t got = poll(&readable, 1, 10) > 0
                      ? recv(fd, self->received + held, sizeof self->received - 1 - held, 0)
                      : 0;
    held += got > 0 ? (size_t)got : 0;
  }
  for (size_t i = 0; self->says != NULL && self->says[i] != '\0'; i++) {
    (void)send(fd, self->says + i, 1, MSG_NOSIGNAL);
  }
  (void)atomic_fetch_add(&self->asked, 1);
  struct pollfd ended = {fd, POLLIN, 0};
  while (!closes && !atomic_load(&self->stop) && poll(&ended, 1, 10) == 0) {
  }
  (void)close(fd);
}

static void *serve(void *argument) {
  script *self = argument;
  while (!atomic_load(&self->stop)) {
    struct pollfd readable = {self->listener, POLLIN, 0};
    if (poll(&readable, 1, 10) > 0) {
      serve_one(self, accept(self->listener, NULL, NULL));
    }
  }
  return NULL;
}

static void begin(script *self, const char *says, size_t length) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  memset(self, 0, sizeof *self);
  self->says = says;
  self->length = length;
  self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(self->listener, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(self->listener, 8), 0);
  assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &size), 0);
  self->port = ntohs(address.sin_port);
  assert_int_equal(pthread_create(&self->thread, NULL, serve, self), 0);
}

static void finish(script *self) {
  atomic_store(&self->stop, true);
  assert_int_equal(pthread_join(self->thread, NULL), 0);
  (void)close(self->listener);
}

/* Asks |count| Sentinels. Returns true with the master in |found|, or false with |error|. */
static rl_sentinel_master found;
static rl_sentinel_connection connection = {.fd = -1};
static char error[RL_STREAM_ERROR_MAX];
static bool ask(const script *scripts, unsigned count, const char *login) {
  rl_address address;
  redlock_settings settings = {0};
  char text[300], message[256] = "";
  int length = snprintf(text, sizeof text, "sentinel://%s", login);
  for (unsigned i = 0; i < count; i++) {
    length += snprintf(text + length, sizeof text - (size_t)length, "%s127.0.0.1:%d",
                       i == 0 ? "" : ",", scripts[i].port);
  }
  (void)snprintf(text + length, sizeof text - (size_t)length, "/mymaster");
  redlock_node node = {.address = text};
  assert_error(rl_address_read(&address, &node, &settings, message, sizeof message), REDLOCK_OK);
  return rl_sentinel_find(&address.sentinels, &connection, &found, error);
}

TEST(sentinel_names_its_master) {
  script one;
  begin(&one, MASTER, strlen(QUESTION));
  eventually(ask(&one, 1, ""));
  finish(&one);
  assert_string_equal(found.host, "10.0.0.1");
  assert_string_equal(found.port, "6380");
  assert_string_equal(one.received, QUESTION);
}

TEST(sentinel_gets_its_login_first) {
  static const char whole[] = "*3\r\n$4\r\nAUTH\r\n$5\r\nwatch\r\n$6\r\n" SECRET "\r\n" QUESTION;
  static const char alone[] = "*2\r\n$4\r\nAUTH\r\n$6\r\n" SECRET "\r\n" QUESTION;
  script one;
  begin(&one, "+OK\r\n" MASTER, strlen(whole));
  eventually(ask(&one, 1, "watch:" SECRET "@"));
  finish(&one);
  assert_string_equal(one.received, whole);
  begin(&one, "+OK\r\n" MASTER, strlen(alone));
  eventually(ask(&one, 1, ":" SECRET "@"));
  finish(&one);
  assert_string_equal(one.received, alone);
}

TEST(sentinel_without_an_answer_is_named) {
  static const char *const cases[][2] = {
      {"-NOAUTH Authentication required.\r\n", ": it answers NOAUTH"},
      {"-ERR unknown command 'AUTH', with args beginning with: '" SECRET "'\r\n",
       ": it answers ERR; is this a Sentinel?"},
      {"*-1\r\n", ": it knows no master of this name"},
      {"$-1\r\n", ": it knows no master of this name"},
      {"*3\r\n", ": its answer is not that of a Sentinel"},
      {"+PONG\r\n", ": its answer is not that of a Sentinel"},
      {"HTTP/1.1 400 Bad Request\r\n", ": its answer is not that of a Sentinel"},
      {"*2\r\n$0\r\n\r\n", ": its answer is not that of a Sentinel"},
      {"*2\r\n$1\r\nh\r\n$6\r\n123456\r\n", ": its answer is not that of a Sentinel"},
      {"*2\r\n$1\r\nh\r\n$5\r\n65536\r\n", ": its answer is not that of a Sentinel"},
      {"*2\r\n$1\r\nh\r\n$1\r\n0\r\n", ": its answer is not that of a Sentinel"},
      {"*2\r\n$1\r\nh\r\n$2\r\n-1\r\n", ": its answer is not that of a Sentinel"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    script one;
    char wanted[128];
    begin(&one, cases[i][0], strlen(QUESTION));
    (void)snprintf(wanted, sizeof wanted, "too few Sentinels name a master: 127.0.0.1:%d%s",
                   one.port, cases[i][1]);
    eventually(!ask(&one, 1, "") && strcmp(error, wanted) == 0);
    finish(&one);
  }
}

TEST(endless_answer_is_refused) {
  static char endless[4096];
  script one;
  memset(endless, 'x', sizeof endless - 1);
  begin(&one, endless, strlen(QUESTION));
  assert_false(ask(&one, 1, ""));
  finish(&one);
  assert_non_null(strstr(error, ": it does not answer"));
}

/* One Sentinel is silent, and one names the former master. */
TEST(majority_of_sentinels_decides) {
  script five[5];
  for (unsigned i = 0; i < 5; i++) {
    begin(&five[i], i == 0 ? NULL : i == 1 ? FORMER : MASTER, strlen(QUESTION));
  }
  eventually(ask(five, 5, ""));
  assert_string_equal(found.host, "10.0.0.1");
  for (unsigned i = 0; i < 5; i++) {
    finish(&five[i]);
  }
}

/* Half of the Sentinels is cut off with the former master. */
TEST(half_of_the_sentinels_decides_nothing) {
  script four[4];
  for (unsigned i = 0; i < 4; i++) {
    begin(&four[i], i < 2 ? FORMER : MASTER, strlen(QUESTION));
  }
  eventually(!ask(four, 4, "") && strcmp(error, "the Sentinels name different masters") == 0);
  for (unsigned i = 0; i < 4; i++) {
    finish(&four[i]);
  }
  assert_false(ask(four, 3, "")); /* No process listens any longer. */
  assert_non_null(strstr(error, ": Connection refused"));
}

TEST(sentinel_that_closes_the_connection_is_named) {
  script one;
  begin(&one, "", strlen(QUESTION));
  eventually(!ask(&one, 1, "") && strstr(error, ": it has closed the connection") != NULL);
  finish(&one);
}

TEST(majority_ends_the_questions) {
  script three[3];
  for (unsigned i = 0; i < 3; i++) {
    begin(&three[i], MASTER, strlen(QUESTION));
  }
  unsigned before;
  eventually((before = atomic_load(&three[2].asked), ask(three, 3, "")) &&
             atomic_load(&three[2].asked) == before);
  for (unsigned i = 0; i < 3; i++) {
    finish(&three[i]);
  }
}
