/*
 * Caller-supplied logins: the handshake, the errors, and no copies in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "options/rl_login.h"

#include "rl_core.h"
#include "rl_test.h"

#define START_US (5 * SECONDS)
#define SECRET "s3cr3t-token"

static void make(rl_core *core, const char *address_text) {
  redlock_settings settings = {0};
  redlock_node node = {0};
  rl_address address;
  node.address = address_text;
  assert_int_equal(rl_core_init(core, NULL, 0), REDLOCK_OK);
  assert_int_equal(rl_address_read(&address, &node, &settings, NULL, 0), REDLOCK_OK);
  assert_int_equal(rl_core_add(core, &address), REDLOCK_OK);
  rl_core_connecting(core, 0, START_US);
}

static void feed(rl_core *core, const char *bytes) {
  rl_core_input(core, 0, START_US, bytes, strlen(bytes));
}

static const rl_link *link_of(const rl_core *core) {
  return &core->nodes[0]->link;
}

static bool holds(const void *memory, size_t size, const char *text) {
  return memory != NULL && memmem(memory, size, text, strlen(text)) != NULL;
}

static bool output_holds(const rl_core *core, const char *text) {
  const rl_buffer *output = &link_of(core)->output;
  return holds(output->data, output->capacity, text);
}

static void send_all(rl_core *core) {
  size_t length;
  while (rl_core_output(core, 0, &length) != NULL) {
    rl_core_output_sent(core, 0, length > 10 ? 10 : length); /* In pieces. */
  }
}

/* ------------------------------------------------------------------------------------ sending */

static void assert_begins(const rl_core *core, const void *expected, size_t expected_length) {
  size_t length;
  const void *output = rl_core_output(core, 0, &length);
  assert_true(length >= expected_length);
  assert_memory_equal(output, expected, expected_length);
}

TEST(supplied_login_precedes_that_of_the_address) {
  static const char expected[] = "*3\r\n$4\r\nAUTH\r\n$2\r\nu\xff\r\n$4\r\n\0\r\n\xfe\r\n*3\r\n";
  rl_core core;
  make(&core, "redis://old:one@h");
  assert_int_equal(rl_core_login(&core, 0, "u\xff", "\0\r\n\xfe", 4), REDLOCK_OK);
  rl_core_connected(&core, 0, START_US);
  assert_begins(&core, expected, sizeof expected - 1);
  rl_core_free(&core);
}

TEST(missing_user_comes_from_the_address_without_password) {
  static const struct {
    const char *username, *password, *expected;
  } cases[] = {
      {"u", "p", "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*3\r\n"},
      {"u", NULL, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$0\r\n\r\n*3\r\n"},
      {NULL, "p", "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*3\r\n"},
      {NULL, NULL, "*3\r\n$6\r\nCLIENT\r\n"},
  };
  rl_core core;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *password = cases[i].password;
    make(&core, "h");
    assert_int_equal(rl_core_login(&core, 0, cases[i].username, password, password ? 1 : 0),
                     REDLOCK_OK);
    rl_core_connected(&core, 0, START_US);
    assert_begins(&core, cases[i].expected, strlen(cases[i].expected));
    rl_core_free(&core);
  }
}

TEST(login_has_bounds_and_a_deadline) {
  rl_core core;
  char *text = malloc(REDLOCK_PASSWORD_MAX + 2);
  assert_non_null(text);
  memset(text, 'p', REDLOCK_PASSWORD_MAX + 2);
  make(&core, "h");
  assert_int_equal(rl_core_login(&core, 0, NULL, text, REDLOCK_PASSWORD_MAX + 1),
                   REDLOCK_E_INVALID);
  assert_int_equal(rl_core_login(&core, 0, NULL, text, REDLOCK_PASSWORD_MAX), REDLOCK_OK);
  text[REDLOCK_USERNAME_MAX + 1] = '\0';
  assert_int_equal(rl_core_login(&core, 0, text, "p", 1), REDLOCK_E_INVALID);
  text[REDLOCK_USERNAME_MAX] = '\0';
  assert_int_equal(rl_core_login(&core, 0, text, "p", 1), REDLOCK_OK);
  rl_core_connected(&core, 0, START_US);
  assert_int_equal(rl_core_login(&core, 0, "u", "p", 1), REDLOCK_E_INVALID);
  rl_core_free(&core);
  free(text);
}

/* ------------------------------------------------------------------------------------- memory */

TEST(sent_login_is_overwritten) {
  rl_core core;
  make(&core, "redis://h/3");
  assert_int_equal(rl_core_login(&core, 0, "user", SECRET, strlen(SECRET)), REDLOCK_OK);
  rl_core_connected(&core, 0, START_US);
  assert_true(output_holds(&core, SECRET));
  send_all(&core);
  assert_false(output_holds(&core, "s3cr3t"));
  assert_non_null(link_of(&core)->login.password);    /* By it errors are looked through. */
  feed(&core, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n"); /* AUTH, SELECT, and three of CLIENT */
  assert_int_equal(link_of(&core)->phase, RL_LINK_UP);
  assert_null(link_of(&core)->login.password);
  assert_null(link_of(&core)->login.username);
  assert_false(link_of(&core)->login.supplied);
  rl_core_free(&core);
}

/* Memory that grows would leave the old piece behind, with the password in it. */
TEST(handshake_never_moves_its_buffer) {
  rl_core core;
  char *text = malloc(REDLOCK_PASSWORD_MAX);
  assert_non_null(text);
  memset(text, 'p', REDLOCK_PASSWORD_MAX);
  for (size_t length = 3500; length < REDLOCK_PASSWORD_MAX; length += 7) {
    make(&core, "redis://h/1000000");
    assert_int_equal(rl_core_login(&core, 0, "user", text, length), REDLOCK_OK);
    rl_core_connected(&core, 0, START_US);
    const rl_buffer *output = &link_of(&core)->output;
    size_t needed = length + 512; /* So much was there before the first byte was written. */
    assert_true(output->capacity >= needed);
    assert_true(rl_buffer_length(output) <= needed);
    rl_core_free(&core);
  }
  free(text);
}

TEST(unsent_login_is_overwritten_at_the_end) {
  rl_core core;
  make(&core, "h");
  assert_int_equal(rl_core_login(&core, 0, "user", SECRET, strlen(SECRET)), REDLOCK_OK);
  rl_core_connected(&core, 0, START_US);
  rl_core_output_sent(&core, 0, 5);
  rl_core_disconnected(&core, 0, START_US, "gone");
  assert_false(output_holds(&core, "s3cr3t"));
  assert_null(link_of(&core)->login.password);
  /* The next connection has none unless it is given. */
  rl_core_connecting(&core, 0, START_US);
  rl_core_connected(&core, 0, START_US);
  assert_begins(&core, "*3\r\n$6\r\nCLIENT", 14);
  rl_core_free(&core);
}

TEST(early_answer_ends_the_connection) {
  rl_core core;
  make(&core, "h");
  assert_int_equal(rl_core_login(&core, 0, "user", SECRET, strlen(SECRET)), REDLOCK_OK);
  rl_core_connected(&core, 0, START_US);
  feed(&core, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
  assert_int_equal(link_of(&core)->phase, RL_LINK_DOWN);
  assert_string_equal(core.nodes[0]->error, "the node answered before it was asked");
  assert_false(output_holds(&core, "s3cr3t"));
  rl_core_free(&core);
}

TEST(error_with_a_supplied_password_is_dropped) {
  rl_core core;
  make(&core, "h");
  assert_int_equal(rl_core_login(&core, 0, NULL, SECRET, strlen(SECRET)), REDLOCK_OK);
  rl_core_connected(&core, 0, START_US);
  send_all(&core);
  feed(&core, "-ERR what is " SECRET "?\r\n");
  assert_string_equal(core.nodes[0]->error, "an error that quotes the password");
  rl_core_free(&core);
}

/* --------------------------------------------------------------------------------- late logins */

TEST(missing_login_ends_the_connection) {
  rl_core core;
  make(&core, "h");
  assert_false(rl_core_awaits_login(&core, 0));
  rl_core_await_login(&core, 0);
  assert_true(rl_core_awaits_login(&core, 0));
  assert_int_equal(rl_core_deadline(&core), START_US + RL_LINK_CONNECT_TIMEOUT_US);
  rl_core_advance(&core, START_US + RL_LINK_CONNECT_TIMEOUT_US - 1);
  assert_true(rl_core_awaits_login(&core, 0));
  rl_core_advance(&core, START_US + RL_LINK_CONNECT_TIMEOUT_US);
  assert_false(rl_core_awaits_login(&core, 0));
  assert_string_equal(core.nodes[0]->error, "its credentials did not arrive in time");
  assert_int_equal(rl_core_login(&core, 0, "u", "p", 1), REDLOCK_E_INVALID);
  rl_core_free(&core);
}

TEST(supplied_login_leaves_the_rest_of_the_time) {
  rl_core core;
  make(&core, "h");
  rl_core_await_login(&core, 0);
  assert_int_equal(rl_core_login(&core, 0, "u", "p", 1), REDLOCK_OK);
  assert_false(rl_core_awaits_login(&core, 0));
  rl_core_advance(&core, START_US + RL_LINK_CONNECT_TIMEOUT_US);
  assert_string_equal(core.nodes[0]->error, "connecting took too long");
  rl_core_free(&core);
}

/* In a loop of one thread a function may have waited for all nodes, one after the other. */
TEST(late_login_leaves_the_node_time_to_answer) {
  rl_core core;
  make(&core, "h");
  rl_core_await_login(&core, 0);
  assert_int_equal(rl_core_login(&core, 0, "u", "p", 1), REDLOCK_OK);
  redlock_time late_us = START_US + RL_LINK_CONNECT_TIMEOUT_US - 1;
  rl_core_connected(&core, 0, late_us);
  rl_core_advance(&core, late_us + RL_LINK_CONNECT_TIMEOUT_US - 1);
  assert_string_equal(core.nodes[0]->error, "");
  rl_core_advance(&core, late_us + RL_LINK_CONNECT_TIMEOUT_US);
  assert_string_equal(core.nodes[0]->error, "connected, but the node does not answer");
  rl_core_free(&core);
}
