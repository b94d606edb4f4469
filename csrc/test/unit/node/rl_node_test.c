/*
 * One node: handshake, back-off, silence, bounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_store.h"
#include "node/rl_link_queue.h"
#include "node/rl_node.h"
#include "rl_test.h"

#define START_US (100 * SECONDS)
#define SECRET "s3cr3t"
#define INFO "CLIENT SETINFO LIB-NAME redlock;CLIENT SETINFO LIB-VER " REDLOCK_VERSION ";"
#define OKS "+OK\r\n+OK\r\n" /* to INFO */
#define HELLO "CLIENT SETNAME redlock;" INFO

static const unsigned char ENTROPY[20] = {1};

typedef struct fixture {
  rl_node node;
  rl_attempt_pool pool;
  rl_resource *resource;
  rl_attempt *attempt; /* of attempt_of(); NULL before */
  redlock_time now_us;
  struct fixture *next;
} fixture;

static fixture *fixtures; /* of the test */

static fixture *make(const char *text) {
  fixture *made = calloc(1, sizeof *made);
  redlock_settings settings = {0};
  redlock_node node;
  rl_address address;
  assert_non_null(made);
  memset(&node, 0, sizeof node);
  node.address = text;
  assert_error(rl_address_read(&address, &node, &settings, NULL, 0), REDLOCK_OK);
  rl_node_init(&made->node, 3, &address);
  made->resource = rl_resource_new(NULL, 0, "k", 1);
  assert_non_null(made->resource);
  made->now_us = START_US;
  made->next = fixtures;
  fixtures = made;
  return made;
}

static int destroy_all(void **state) {
  while (fixtures != NULL) {
    fixture *it = fixtures;
    fixtures = it->next;
    if (it->attempt != NULL) {
      rl_attempt_unref(&it->pool, it->attempt);
    }
    rl_node_free(&it->node, &it->pool); /* gives up what is outstanding */
    rl_resource_unref(it->resource);
    rl_attempt_pool_free(&it->pool);
    free(it);
  }
  return 0;
}

static void connect_node(fixture *it) {
  rl_link_connecting(&it->node.link, it->now_us);
  rl_node_connected(&it->node, it->now_us);
  assert_int_equal(it->node.link.phase, RL_LINK_HANDSHAKE);
}

/* A node of which the client waits for the reply to the first command of the handshake. */
static fixture *connected(const char *text) {
  fixture *it = make(text);
  connect_node(it);
  return it;
}

/* The connection ends, and its commands are given up. */
static void disconnect(fixture *it, const char *reason) {
  rl_outstanding command;
  rl_node_disconnected(&it->node, it->now_us, reason);
  while (rl_link_take(&it->node.link, &command)) {
  }
}

/* Returns the link's complaint about bytes, whatever part of the output is sent. */
static const char *hear(fixture *it, const char *bytes, size_t length) {
  bool came_up = false;
  rl_outstanding command;
  const char *reason = rl_link_feed(&it->node.link, it->now_us, bytes, length);
  int got;
  while (reason == NULL &&
         (got = rl_link_next(&it->node.link, it->now_us, &command, &came_up, &reason)) > 0) {
    rl_attempt_unref(&it->pool, command.attempt);
  }
  assert_true(!came_up || it->node.link.phase == RL_LINK_UP);
  return reason;
}

/* The same when all output was sent. */
static const char *feed_part(fixture *it, const char *bytes, size_t length) {
  rl_link_sent(&it->node.link, rl_buffer_length(&it->node.link.output));
  return hear(it, bytes, length);
}

/* The same for a string; what stands behind a '|' comes later. */
static const char *feed(fixture *it, const char *bytes) {
  size_t first = strcspn(bytes, "|");
  const char *reason = feed_part(it, bytes, first);
  return reason != NULL || bytes[first] == '\0' ? reason : feed(it, bytes + first + 1);
}

static fixture *make_up(void) {
  fixture *it = connected("h");
  assert_null(feed(it, FAKE_HANDSHAKE));
  assert_int_equal(it->node.link.phase, RL_LINK_UP);
  rl_buffer_clear(&it->node.link.output);
  return it;
}

static rl_attempt *attempt_of(fixture *it) {
  if (it->attempt == NULL) {
    it->attempt = rl_attempt_new(&it->pool, it->resource, NULL, ENTROPY, 0, NULL);
    assert_non_null(it->attempt);
  }
  return it->attempt;
}

static void queue_set(fixture *it, unsigned ttl_ms) {
  assert_true(rl_link_queue_set(&it->node.link, it->now_us, RL_OUTSTANDING_ACQUIRE, attempt_of(it),
                                1, ttl_ms));
}

static void queue_release(fixture *it, unsigned round) {
  assert_true(
      rl_link_queue_release(&it->node.link, it->now_us, attempt_of(it), round, false, true));
}

/* -------------------------------------------------------------------------------- handshake */

static void assert_steps(fixture *it, const char *expected) {
  char steps[256] = "";
  const char *bytes = it->node.link.output.data + it->node.link.output.head;
  size_t length = rl_buffer_length(&it->node.link.output);
  while (length > 0) {
    fake_command command;
    long used = fake_command_parse(&command, bytes, length);
    assert_true(used > 0);
    strcat(steps, command.line);
    strcat(steps, ";");
    bytes += used;
    length -= (size_t)used;
  }
  assert_string_equal(steps, expected);
}

TEST(handshake_logs_in_selects_and_sets_the_name) {
  static const struct {
    const char *address;
    const char *steps;
    unsigned command;
  } cases[] = {
      {"h", HELLO, 3},
      {"redis://h/0", HELLO, 3},
      {"redis://h/15", "SELECT 15;" HELLO, 4},
      {"redis://:p@h", "AUTH p;" HELLO, 4},
      {"redis://u:p@h", "AUTH u p;" HELLO, 4},
      {"redis://u:@h/2", "AUTH u ;SELECT 2;" HELLO, 5},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    fixture *it = connected(cases[i].address);
    assert_steps(it, cases[i].steps);
    assert_int_equal(it->node.link.outstanding_count, cases[i].command);
    for (unsigned k = 0; k < cases[i].command; k++) {
      assert_int_equal(it->node.link.phase, RL_LINK_HANDSHAKE);
      assert_false(rl_link_has_room(&it->node.link, RL_OUTSTANDING_RELEASE));
      it->now_us += 5;
      assert_null(feed(it, "+OK\r\n"));
    }
    assert_int_equal(it->node.link.phase, RL_LINK_UP);
    assert_int_equal(it->node.link.up_us, it->now_us);
    assert_int_equal(it->node.link.latency_us, 5 * cases[i].command);
    assert_string_equal(it->node.error, "");
  }
}

typedef struct refusal {
  const char *address;
  const char *replies;
  const char *reason; /* NULL: it comes up */
} refusal;

static const refusal refusals[] = {
    {"redis://u:" SECRET "@h", "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
     "WRONGPASS invalid username-password pair or user is disabled."},
    {"redis://:" SECRET "@h", "-ERR invalid password\r\n", "ERR invalid password"},
    {"redis://:" SECRET "@h", "-ERR Client sent AUTH, but no password is set\r\n",
     "ERR Client sent AUTH, but no password is set"},
    /* Servers that do not know AUTH quote what they were sent. */
    {"redis://:" SECRET "@h",
     "-ERR unknown command 'AUTH', with args beginning with: '" SECRET "' \r\n",
     "ERR unknown command "},
    {"redis://:" SECRET "@h", "-ERR unknown command `AUTH`, with args: `" SECRET "`,\r\n",
     "ERR unknown command "},
    {"redis://:" SECRET "@h", "-ERR unknown command \"AUTH " SECRET "\"\r\n",
     "ERR unknown command "},
    {"redis://:" SECRET "@h", "-ERR what is " SECRET "?\r\n", "an error that quotes the password"},
    {"redis://:" SECRET "@h", "-" SECRET "\r\n", "an error that quotes the password"},
    {"redis://:" SECRET "@h", "-'" SECRET "'\r\n", "an error without a text"},
    {"redis://:" SECRET "@h", "-\r\n", "an error without a text"},
    {"redis://u:@h", "-WRONGPASS x\r\n", "WRONGPASS x"},        /* There is nothing to hide. */
    {"redis://:" SECRET "@h", "-ERR not s3\r\n", "ERR not s3"}, /* not the whole of it */
    {"redis://h/99", "-ERR DB index is out of range\r\n", "ERR DB index is out of range"},
    {"redis://u:p@h/99", "+OK\r\n-NOPERM no select\r\n", "NOPERM no select"},
    {"h", "-NOAUTH Authentication required.\r\n", "NOAUTH Authentication required."},
    {"h", "-DENIED Redis is running in protected mode\r\n",
     "DENIED Redis is running in protected mode"},
    {"h", "-ERR max number of clients reached\r\n", "ERR max number of clients reached"},
    {"h", "-NOPERM this user has no permissions\r\n" OKS, NULL}, /* SETNAME is a courtesy */
    {"h", "-ERR unknown command 'CLIENT'\r\n" OKS, NULL},
    {"h", "-ERR Unknown subcommand\r\n" OKS, NULL},
    {"h", "-unsupported command 'client'\r\n" OKS "|:0\r\n", NULL},
    {"h", ":1\r\n" OKS "|:1\r\n", NULL},
    {"h", "$-1\r\n" OKS "|:0\r\n", NULL},
    {"h", "*2\r\n$3\r\nfoo\r\n-ERR bar\r\n" OKS "|:0\r\n", NULL},
    /* Any reply to SETINFO will do. */
    {"h", "+OK\r\n-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n-ERR x\r\n", NULL},
    {"h", "+OK\r\n-NOPERM x\r\n-NOAUTH Authentication required.\r\n", NULL},
    {"h", "+OK\r\n:5\r\n*2\r\n$3\r\nfoo\r\n-ERR bar\r\n", NULL},
    {"h", "+OK\r\n$-1\r\n$3\r\nfoo\r\n", NULL},
    {"h", "-NOPERM x\r\n-NOPERM x\r\n-NOPERM x\r\n", NULL},
    /* A greeting: the reply to CLIENT SETNAME follows it, and must not count for a SET. */
    {"h", ":1\r\n|+OK\r\n" OKS, "the peer does not answer like a Redis server"},
    {"h", ":1\r\n:1\r\n:1\r\n:1\r\n",
     "the peer does not answer like a Redis server"}, /* not asked */
    {"h", "*1\r\n+hello\r\n" OKS "|:7\r\n", "the peer does not answer like a Redis server"},
    {"h", "-ERR hello\r\n" OKS "|+OK\r\n", "the peer does not answer like a Redis server"},
    /* The error may be the reply to SETINFO. */
    {"h", ":1\r\n|+OK\r\n-ERR unknown subcommand\r\n-ERR unknown subcommand\r\n",
     "ERR unknown subcommand"},
    {"h", "-LOADING Redis is loading\r\n" OKS "|-LOADING Redis is loading\r\n",
     "LOADING Redis is loading"},
    {"redis://h/1", ":1\r\n", "the peer does not answer like a Redis server"},
    {"h", "HTTP/1.1 400 Bad Request\r\n",
     "the reply is not RESP; is this the port of a Redis or Valkey server?"},
    {"h", "+OK\r\n" OKS "+OK\r\n", "the node sent a reply that was not asked for"},
};

TEST(refused_step_ends_the_connection_with_a_reason) {
  for (unsigned i = 0; i < COUNT_OF(refusals); i++) {
    fixture *it = connected(refusals[i].address);
    const char *reason = feed(it, refusals[i].replies);
    if (refusals[i].reason == NULL) {
      assert_null(reason);
      assert_int_equal(it->node.link.phase, RL_LINK_UP);
    } else {
      assert_non_null(reason);
      assert_string_equal(reason, refusals[i].reason);
      assert_null(strstr(reason, SECRET));
      rl_node_disconnected(&it->node, it->now_us, reason);
      assert_int_equal(it->node.link.phase, RL_LINK_DOWN);
      assert_string_equal(it->node.error, refusals[i].reason);
    }
  }
}

/* The name of a command is no argument, and "can't" quotes nothing. */
TEST(error_with_a_password_names_the_forbidden_command) {
  static const char *const cases[][2] = {
      {"+OK\r\n-NOPERM User u has no permissions to run the 'select' command\r\n",
       "NOPERM User u has no permissions to run the 'select' command"},
      {"+OK\r\n-ERR The user can't run 'select' with '" SECRET "'\r\n",
       "ERR The user can't run 'select' with "},
      {"+OK\r\n-ERR unknown command 'select', with args beginning with: 's3' 'get'\r\n",
       "ERR unknown command 'select', with args beginning with: "},
      {"+OK\r\n-ERR no 'selects'\r\n", "ERR no "},
      {"+OK\r\n-ERR no 'select\r\n", "ERR no "},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    fixture *it = connected("redis://u:" SECRET "@h/99");
    const char *reason = feed(it, cases[i][0]);
    assert_non_null(reason);
    assert_string_equal(reason, cases[i][1]);
  }
}

/* The peer closes a handshake after |replies|. Returns the command of the next handshake. */
static void assert_next_handshake(fixture *it, const char *replies, const char *steps) {
  connect_node(it);
  rl_link_closed(&it->node.link); /* Nothing was sent yet: that tells nothing. */
  rl_buffer_clear(&it->node.link.output);
  assert_null(feed(it, replies));
  rl_link_closed(&it->node.link);
  disconnect(it, "closed");
  connect_node(it);
  assert_steps(it, steps);
  disconnect(it, "the test");
}

TEST(close_at_setname_skips_it_on_the_next_connection) {
  fixture *it = make("redis://:p@h");
  assert_next_handshake(it, "", "AUTH p;EXISTS redlock;");
  it = make("redis://:p@h");
  assert_next_handshake(it, "+OK\r\n", "AUTH p;EXISTS redlock;");
  /* It was not the command then. */
  assert_next_handshake(it, "+OK\r\n", "AUTH p;" HELLO);
  /* Nor is it when the handshake is over. */
  assert_next_handshake(it, "+OK\r\n+OK\r\n" OKS, "AUTH p;" HELLO);
}

TEST(close_at_setinfo_skips_it_on_the_next_connection) {
  for (unsigned replies = 0; replies < 2; replies++) {
    fixture *it = make("redis://:p@h");
    assert_next_handshake(it, replies == 0 ? "+OK\r\n+OK\r\n" : "+OK\r\n+OK\r\n+OK\r\n",
                          "AUTH p;CLIENT SETNAME redlock;");
    assert_next_handshake(it, "+OK\r\n+OK\r\n", "AUTH p;CLIENT SETNAME redlock;");
  }
}

/* The peer is silent after |replies|. The next handshake has |steps|. */
static void assert_handshake_after_stall(const char *replies, const char *steps) {
  fixture *it = connected("h");
  rl_buffer_clear(&it->node.link.output);
  assert_null(feed(it, replies));
  assert_non_null(rl_link_overdue(&it->node.link, it->node.link.phase_deadline_us));
  rl_link_gave_up(&it->node.link);
  disconnect(it, "overdue");
  connect_node(it);
  assert_steps(it, steps);
}

/* A proxy may drop a command that it does not know. */
TEST(peer_that_never_answers_setinfo_is_used_by_the_next_connection) {
  assert_handshake_after_stall("+OK\r\n", "CLIENT SETNAME redlock;");
  assert_handshake_after_stall("+OK\r\n+OK\r\n", "CLIENT SETNAME redlock;");
  assert_handshake_after_stall("",
                               "EXISTS redlock;" HELLO); /* It may be the node that is silent. */
}

/* A handshake ends without the replies that come after |replies|. */
static void stall_after(fixture *it, const char *replies) {
  connect_node(it);
  rl_link_sent(&it->node.link, rl_buffer_length(&it->node.link.output));
  assert_null(feed(it, replies));
  assert_int_equal(it->node.link.phase, RL_LINK_HANDSHAKE);
  rl_link_gave_up(&it->node.link);
  disconnect(it, "overdue");
}

/* First the replies to SETINFO count for SETNAME. */
TEST(peer_that_never_answers_setname_is_asked_exists) {
  fixture *it = make("h");
  stall_after(it, "+OK\r\n+OK\r\n");
  stall_after(it, "");
  connect_node(it);
  assert_steps(it, "EXISTS redlock;");
  assert_null(feed(it, "|:0\r\n"));
  assert_int_equal(it->node.link.phase, RL_LINK_UP);
  disconnect(it, "the test");
  connect_node(it); /* once for a node, not for each connection */
  assert_steps(it, "EXISTS redlock;");
}

TEST(peer_that_never_answers_client_is_asked_exists) {
  fixture *it = make("h");
  stall_after(it, "");
  stall_after(it, ":1\r\n");
  connect_node(it);
  assert_steps(it, "EXISTS redlock;");
  assert_null(feed(it, ":1\r\n"));
  assert_int_equal(it->node.link.phase, RL_LINK_UP);
}

/* Silence tells nothing about the commands: a node that goes on shows the client's name. */
TEST(silent_node_gets_the_name_when_it_answers) {
  fixture *it = make("redis://:p@h");
  for (unsigned i = 0; i < 3; i++) {
    stall_after(it, "");
    connect_node(it);
    assert_steps(it, "AUTH p;EXISTS redlock;" HELLO);
    if (i == 2) {
      assert_null(feed(it, "+OK\r\n:0\r\n+OK\r\n" OKS));
      assert_int_equal(it->node.link.phase, RL_LINK_UP);
    }
    disconnect(it, "the test");
  }
  connect_node(it);
  assert_steps(it, "AUTH p;" HELLO);
}

TEST(peer_that_never_answers_exists_is_asked_setname) {
  fixture *it = make("redis://:p@h");
  stall_after(it, "+OK\r\n"); /* It answers AUTH, but drops CLIENT and EXISTS. */
  stall_after(it, "+OK\r\n");
  connect_node(it);
  assert_steps(it, "AUTH p;" HELLO);
}

/* The reply to SUBSCRIBE counts for the CLIENT SETINFO before it. */
TEST(subscriber_gives_setinfo_up_that_is_never_answered) {
  fixture *it = make("h");
  it->node.link.channel = "redlock:call:0011223344556677";
  connect_node(it);
  rl_buffer_clear(&it->node.link.output);
  assert_null(feed(it, "+OK\r\n+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"));
  assert_int_equal(it->node.link.phase, RL_LINK_HANDSHAKE);
  rl_link_gave_up(&it->node.link);
  disconnect(it, "overdue");
  connect_node(it);
  assert_steps(it, "CLIENT SETNAME redlock;SUBSCRIBE redlock:call:0011223344556677;");
}

/* The error may be the reply to SETINFO. The next connection has only one meaning for it. */
TEST(peer_that_refuses_all_courtesies_is_used_by_the_next_connection) {
  fixture *it = connected("h");
  assert_string_equal(feed(it, "-LOADING x\r\n-LOADING x\r\n-LOADING x\r\n|-LOADING x\r\n"),
                      "LOADING x");
  disconnect(it, "LOADING x");
  assert_true(rl_node_wants_connection(&it->node, it->now_us));
  connect_node(it);
  assert_steps(it, "CLIENT SETNAME redlock;");
  assert_null(feed(it, "-LOADING x\r\n|-LOADING x\r\n"));
  assert_int_equal(it->node.link.phase, RL_LINK_UP);
}

static void queue_the_rest(fixture *it) {
  rl_buffer *output = &it->node.link.output;
  char *room = rl_buffer_reserve(output, 8, true);
  assert_non_null(room);
  memcpy(room, "the rest", 8);
  output->tail += 8;
}

/* The peer answers EXISTS while a later command of the handshake is still being written. */
TEST(exists_is_accepted_before_the_rest_is_sent) {
  for (unsigned missing = 0; missing < 2; missing++) {
    fixture *it = make("h");
    it->node.link.skips_name = true;
    connect_node(it);
    size_t exists = rl_buffer_length(&it->node.link.output);
    assert_true(exists > 0);
    queue_the_rest(it);
    rl_link_sent(&it->node.link, exists - missing);
    assert_int_equal(hear(it, ":0\r\n", 4) == NULL, missing == 0);
  }
}

TEST(close_at_setname_is_tried_again_at_once_and_once) {
  fixture *it = make("h");
  for (unsigned i = 0; i < 4; i++) {
    connect_node(it);
    rl_buffer_clear(&it->node.link.output);
    rl_link_closed(&it->node.link);
    disconnect(it, "closed");
    assert_true(rl_node_wants_connection(&it->node, it->now_us) == (i % 2 == 0));
    assert_int_equal(it->node.failures, i + 1);
  }
}

/* A node that ends closes its connections before its port. */
TEST(refused_connection_restores_setname_and_setinfo) {
  fixture *it = make("h");
  it->node.link.skips_name = true;
  it->node.link.skips_info = true;
  rl_link_connecting(&it->node.link, it->now_us);
  rl_node_disconnected(&it->node, it->now_us, "refused");
  connect_node(it);
  assert_steps(it, HELLO);
}

/* A password that was cut, or changed, by the way an error is kept is still a password. */
TEST(no_part_of_an_unusual_password_leaks) {
  fixture *it = connected("redis://:s3%09cr3t@h");
  const char *reason = feed(it, "-ERR bad password s3\tcr3t here\r\n");
  assert_non_null(reason);
  assert_null(strstr(reason, "cr3t"));
  char text[400];
  char reply[600];
  memset(text, 'x', sizeof text);
  text[300] = '\0';
  char address[420];
  (void)snprintf(address, sizeof address, "redis://:%s@h", text);
  (void)snprintf(reply, sizeof reply, "-ERR bad password %s here\r\n", text);
  it = connected(address);
  reason = feed(it, reply);
  assert_non_null(reason);
  assert_null(strstr(reason, "xxxxxxxxxx"));
}

TEST(login_has_any_bytes) {
  static const char expected[] = "*3\r\n$4\r\nAUTH\r\n$3\r\nu\x01\xff\r\n$7\r\na\0b\r\n\xff"
                                 "c\r\n";
  fixture *it = connected("redis://u%01%ff:a%00b%0d%0a%ffc@h");
  const rl_buffer *output = &it->node.link.output;
  assert_true(rl_buffer_length(output) > sizeof expected - 1);
  assert_memory_equal(output->data + output->head, expected, sizeof expected - 1);
}

TEST(password_with_a_nul_does_not_leak) {
  fixture *it = connected("redis://:a%00bcdef@h/1");
  assert_null(feed(it, "+OK\r\n"));
  assert_string_equal(feed(it, "-ERR aside\r\n"), "ERR aside");
  it = connected("redis://:a%00bcdef@h");
  assert_string_equal(feed(it, "-ERR a?bcdef\r\n"), "an error that quotes the password");
  it = connected("redis://:a%00@h"); /* The NUL that ends a text is none of a password's. */
  assert_string_equal(feed(it, "-ERR a\r\n"), "ERR a");
}

TEST(short_password_hides_no_error_that_does_not_quote_it) {
  static const char QUOTED[] = "an error that quotes the password";
  static const struct {
    const char *address;
    const char *reply;
    const char *error;
  } cases[] = {
      {"redis://:e@h", "-ERR invalid password\r\n", "ERR invalid password"},
      {"redis://:e@h", "-ERR what is e?\r\n", QUOTED},
      {"redis://:e@h", "-ERR invalid password e\r\n", QUOTED},
      {"redis://:e@h", "-e\r\n", QUOTED},
      {"redis://:e@h", "-ERR what is \"e\"\r\n", "ERR what is "},
      {"redis://:s@h", "-ERR too many connections: 10\r\n", "ERR too many connections: 10"},
      {"redis://:1@h", "-ERR too many connections: 10\r\n", "ERR too many connections: 10"},
      {"redis://:10@h", "-ERR too many connections: 10\r\n", QUOTED},
      {"redis://:pas@h", "-ERR invalid password\r\n", "ERR invalid password"},
      {"redis://:%09@h", "-ERR what?\r\n", QUOTED},
      {"redis://:-x@h", "-ERR what is user-x?\r\n", QUOTED},
      {"redis://:pass@h", "-ERR invalid password\r\n", QUOTED},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    assert_string_equal(feed(connected(cases[i].address), cases[i].reply), cases[i].error);
  }
}

TEST(long_error_without_the_password_is_kept) {
  fixture *it = make("redis://:" SECRET "@h");
  char text[RL_REPLY_TEXT_MAX + 100];
  char reply[RL_REPLY_TEXT_MAX + 110];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  (void)snprintf(reply, sizeof reply, "-%s\r\n", text);
  connect_node(it);
  const char *reason = feed(it, reply);
  text[RL_REPLY_TEXT_MAX] = '\0';
  assert_non_null(reason);
  assert_string_equal(reason, text);
}

/* Whatever an operation is answered with; only what quotes a command is cut. */
TEST(errors_of_operations_hide_the_password) {
  static const struct {
    const char *address;
    const char *reply;
    const char *said;
  } cases[] = {
      {"redis://:" SECRET "@h", "-ERR unknown command 'AUTH " SECRET "'\r\n",
       "ERR unknown command "},
      {"redis://:" SECRET "@h", "-ERR what is " SECRET "?\r\n",
       "an error that quotes the password"},
      {"redis://:" SECRET "@h", "-OOM 'maxmemory' reached\r\n", "OOM 'maxmemory' reached"},
      {"h", "-ERR unknown command 'EVALSHA'\r\n", "ERR unknown command 'EVALSHA'"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    fixture *it = connected(cases[i].address);
    while (it->node.link.phase != RL_LINK_UP) {
      assert_null(feed(it, "+OK\r\n"));
    }
    queue_set(it, 1000);
    assert_null(feed(it, cases[i].reply));
    assert_string_equal(rl_link_error_text(&it->node.link), cases[i].said);
  }
}

/* ----------------------------------------------------------------------------------- back-off */

TEST(back_off_doubles_up_to_a_second) {
  static const redlock_duration waits_us[] = {50 * MS,  100 * MS, 200 * MS, 400 * MS,
                                              800 * MS, SECONDS,  SECONDS};
  fixture *it = make("h");
  assert_true(rl_node_wants_connection(&it->node, 0));
  for (unsigned i = 0; i < COUNT_OF(waits_us); i++) {
    rl_link_connecting(&it->node.link, it->now_us);
    assert_false(rl_node_wants_connection(&it->node, it->now_us));
    rl_node_disconnected(&it->node, it->now_us, "Connection refused");
    assert_int_equal(it->node.connect_at_us, it->now_us + waits_us[i]);
    assert_int_equal(rl_node_deadline(&it->node), it->now_us + waits_us[i]);
    assert_false(rl_node_wants_connection(&it->node, it->now_us + waits_us[i] - 1));
    assert_true(rl_node_wants_connection(&it->node, it->now_us + waits_us[i]));
    it->now_us += waits_us[i];
  }
}

TEST(ten_thousand_failures_do_not_overflow_the_back_off) {
  fixture *it = make("h");
  for (unsigned i = 0; i < 10000; i++) {
    rl_link_connecting(&it->node.link, it->now_us);
    rl_node_disconnected(&it->node, it->now_us, "Connection refused");
    it->now_us = it->node.connect_at_us;
  }
  assert_int_equal(it->node.failures, 10000);
  rl_link_connecting(&it->node.link, it->now_us);
  rl_node_disconnected(&it->node, it->now_us, "Connection refused");
  assert_int_equal(it->node.connect_at_us, it->now_us + SECONDS);
}

TEST(answer_to_an_operation_resets_the_back_off) {
  fixture *it = make_up();
  it->node.failures = 5;
  queue_set(it, 1000);
  assert_null(feed(it, "+OK\r\n"));
  assert_true(it->node.link.useful);
  rl_node_disconnected(&it->node, it->now_us, "Connection reset by peer");
  assert_int_equal(it->node.failures, 0);
  assert_int_equal(it->node.connect_at_us, it->now_us);
}

TEST(connection_of_a_second_resets_the_back_off) {
  for (unsigned lasted = 0; lasted <= 1; lasted++) {
    fixture *it = make_up();
    it->node.failures = 3;
    it->now_us += SECONDS - 1 + lasted;
    rl_node_disconnected(&it->node, it->now_us, "Connection reset by peer");
    assert_int_equal(it->node.failures, lasted ? 0 : 4);
    assert_int_equal(it->node.connect_at_us, it->now_us + (lasted ? 0 : 400 * MS));
  }
}

/* ------------------------------------------------------------------------------------ silence */

TEST(silence_counts_from_the_first_command_and_from_every_byte) {
  fixture *it = make_up();
  assert_int_equal(rl_node_deadline(&it->node), REDLOCK_NEVER);
  assert_int_equal(rl_link_oldest_age(&it->node.link, it->now_us), 0);
  it->now_us += 50 * SECONDS;
  redlock_time first_us = it->now_us;
  queue_set(it, 1000);
  assert_int_equal(rl_node_deadline(&it->node), first_us + 3 * SECONDS);
  it->now_us += SECONDS;
  queue_release(it, 1);
  assert_int_equal(rl_node_deadline(&it->node), first_us + 3 * SECONDS);
  assert_int_equal(rl_link_oldest_age(&it->node.link, it->now_us), SECONDS);
  assert_null(rl_link_overdue(&it->node.link, first_us + 3 * SECONDS - 1));
  assert_string_equal(rl_link_overdue(&it->node.link, first_us + 3 * SECONDS),
                      "the node does not answer any more");
  it->now_us += SECONDS;
  assert_null(feed(it, "+"));
  assert_int_equal(rl_node_deadline(&it->node), it->now_us + 3 * SECONDS);
  assert_null(feed(it, "OK\r\n"));
  assert_int_equal(rl_link_oldest_age(&it->node.link, it->now_us), SECONDS);
  assert_null(feed(it, ":1\r\n"));
  assert_int_equal(rl_node_deadline(&it->node), REDLOCK_NEVER);
}

/* All locks of the client share the connection. */
TEST(long_ttl_does_not_allow_a_long_silence) {
  fixture *it = make_up();
  rl_attempt *attempt = attempt_of(it);
  assert_true(rl_link_queue_extend(&it->node.link, it->now_us, attempt, 1, false, 60000));
  queue_set(it, 60000);
  assert_int_equal(rl_node_deadline(&it->node), it->now_us + 3 * SECONDS);
}

/* -------------------------------------------------------------------------- what is outstanding */

TEST(outstanding_commands_keep_their_order) {
  fixture *it = make_up();
  rl_attempt *attempt = attempt_of(it);
  uint32_t in = 0;
  uint32_t out = 0;
  /* The ring grows while its head is in the middle. */
  for (unsigned burst = 1; burst < 300; burst += 37) {
    for (unsigned i = 0; i < burst; i++) {
      queue_release(it, in++);
    }
    rl_buffer_clear(&it->node.link.output);
    while (out < in - burst / 3) {
      rl_outstanding command;
      assert_true(rl_link_take(&it->node.link, &command));
      assert_int_equal(command.round, out++);
      assert_int_equal(command.kind, RL_OUTSTANDING_RELEASE);
      rl_attempt_unref(&it->pool, command.attempt);
    }
  }
  assert_int_equal(attempt->references, 1 + in - out);
}

TEST(acquires_and_waiters_have_lower_bounds) {
  fixture *it = make_up();
  for (unsigned command = 0; command < RL_LINK_OUTSTANDING_MAX; command++) {
    assert_int_equal(rl_link_has_room(&it->node.link, RL_OUTSTANDING_ACQUIRE),
                     command < RL_LINK_OUTSTANDING_ACQUIRE_MAX);
    assert_int_equal(rl_link_has_room(&it->node.link, RL_OUTSTANDING_ENQUEUE),
                     command < RL_LINK_OUTSTANDING_ACQUIRE_MAX);
    assert_true(rl_link_has_room(&it->node.link, RL_OUTSTANDING_RELEASE));
    assert_true(rl_link_has_room(&it->node.link, RL_OUTSTANDING_EXTEND));
    queue_release(it, 1);
    rl_buffer_clear(&it->node.link.output);
  }
  assert_false(rl_link_has_room(&it->node.link, RL_OUTSTANDING_RELEASE));
}

TEST(room_ends_at_the_bound_of_the_output) {
  static const struct {
    rl_outstanding_kind kind;
    size_t bytes_max;
  } cases[] = {{RL_OUTSTANDING_ACQUIRE, RL_LINK_OUTPUT_ACQUIRE_MAX},
               {RL_OUTSTANDING_EXTEND, RL_LINK_OUTPUT_MAX},
               {RL_OUTSTANDING_HEAL, RL_LINK_OUTPUT_MAX},
               {RL_OUTSTANDING_RELEASE, RL_LINK_OUTPUT_MAX}};
  fixture *it = make_up();
  assert_non_null(rl_buffer_reserve(&it->node.link.output, RL_LINK_OUTPUT_MAX, true));
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    it->node.link.output.tail = cases[i].bytes_max - 1;
    assert_true(rl_link_has_room(&it->node.link, cases[i].kind));
    it->node.link.output.tail++;
    assert_false(rl_link_has_room(&it->node.link, cases[i].kind));
  }
}

TEST(release_without_growing_allocates_nothing) {
  fixture *it = make_up();
  rl_attempt *attempt = attempt_of(it);
  unsigned capacity = it->node.link.outstanding_capacity;
  unsigned queued = 0;
  while (rl_link_queue_release(&it->node.link, it->now_us, attempt, 1, false, false)) {
    rl_buffer_clear(&it->node.link.output);
    queued++;
  }
  assert_int_equal(queued, capacity);
  assert_int_equal(it->node.link.outstanding_capacity, capacity);
  assert_int_equal(rl_buffer_length(&it->node.link.output), 0);
  assert_int_equal(attempt->references, 1 + queued);
}

TEST(large_output_buffer_is_not_kept_across_connections) {
  fixture *it = make_up();
  assert_non_null(rl_buffer_reserve(&it->node.link.output, 65536, true));
  rl_node_disconnected(&it->node, it->now_us, "Connection reset by peer");
  assert_non_null(it->node.link.output.data);
  connect_node(it);
  assert_non_null(rl_buffer_reserve(&it->node.link.output, 65537, true));
  rl_node_disconnected(&it->node, it->now_us, "Connection reset by peer");
  assert_null(it->node.link.output.data);
}

TEST(long_reason_is_cut) {
  fixture *it = make_up();
  char reason[600];
  memset(reason, 'r', sizeof reason);
  reason[sizeof reason - 1] = '\0';
  rl_node_disconnected(&it->node, it->now_us, reason);
  assert_int_equal(strlen(it->node.error), RL_NODE_ERROR_MAX);
}

TEST(every_state_has_its_name) {
  assert_string_equal(redlock_node_state_name(REDLOCK_NODE_DOWN), "down");
  assert_string_equal(redlock_node_state_name(REDLOCK_NODE_CONNECTING), "connecting");
  assert_string_equal(redlock_node_state_name(REDLOCK_NODE_UP), "up");
  assert_string_equal(redlock_node_state_name(3), "unknown");
}

TEST(freed_node_leaves_no_password) {
  fixture *it = connected("redis://:s3cr3t@h");
  assert_non_null(memmem(&it->node, sizeof it->node, "s3cr3t", 6));
  rl_node_free(&it->node, &it->pool);
  assert_null(memmem(&it->node, sizeof it->node, "s3cr3t", 6));
}

int main(void) {
  return tests_run(&(tests_fixture){.after = destroy_all});
}
