/*
 * Credentials from a function of the program: their bounds, and the errors of the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_credentials.h"

#include "client_world.h"

#define USERNAME_TOO_LONG "the username is longer than 512 bytes"
#define PASSWORD_TOO_LONG "the password is longer than 16384 bytes"

typedef struct answer {
  int result;
  size_t username_length, password_length;
  const char *message;
  const char *error; /* of the node; "": the connection goes on, or waits */
} answer;

static unsigned asked;

static int fill_in(redlock_client *client, size_t node, redlock_credentials *filled, void *data) {
  const answer *given = data;
  assert_string_equal(filled->name, "127.0.0.1:1");
  asked++;
  memset(filled->username, 'u', given->username_length);
  memset(filled->password, 'p', sizeof filled->password);
  filled->password_length = given->password_length;
  (void)snprintf(filled->message, sizeof filled->message, "%s",
                 given->message != NULL ? given->message : "");
  return given->result;
}

static redlock_client *client_of_function(answer *given, const char *address) {
  redlock_client *client;
  redlock_settings settings = {.credentials = fill_in, .credentials_data = given};
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  rl_core_connecting(&client->core, 0, redlock_now());
  return client;
}

static void assert_node_error(redlock_client *client, const char *error) {
  redlock_node_info info;
  assert_error(redlock_client_node_info(client, 0, &info), REDLOCK_OK);
  assert_string_equal(info.error == NULL ? "" : info.error, error);
}

TEST(answer_of_function_is_checked) {
  static answer rows[] = {
      {.username_length = 1, .password_length = 1},
      {.username_length = 1},
      {.password_length = 1},
      {.result = REDLOCK_OK},
      {.username_length = REDLOCK_USERNAME_MAX, .password_length = REDLOCK_PASSWORD_MAX},
      {.username_length = REDLOCK_USERNAME_MAX + 1,
       .error = "it got no credentials: the username does not end"},
      {.password_length = REDLOCK_PASSWORD_MAX + 1,
       .error = "it got no credentials: " PASSWORD_TOO_LONG},
      {.result = REDLOCK_E_UNAVAILABLE,
       .message = "no network",
       .error = "it got no credentials: no network"},
      {.result = REDLOCK_E_UNAVAILABLE, .message = "", .error = "it got no credentials"},
      {.result = REDLOCK_PENDING},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    redlock_client *client = client_of_function(&rows[i], "127.0.0.1:1");
    const rl_login *login = &rl_core_peer(&client->core, 0)->link.login;
    bool goes_on = rows[i].result == REDLOCK_OK && rows[i].error == NULL;
    bool waits = rows[i].result == REDLOCK_PENDING;
    unsigned connection = REDLOCK_NODES_MAX;
    assert_int_equal(rl_credentials_ask(client, 0), goes_on);
    assert_int_equal(rl_credentials_are_awaited(client, 0, &connection), waits);
    assert_int_equal(connection, waits ? 0 : REDLOCK_NODES_MAX);
    assert_node_error(client, rows[i].error == NULL ? "" : rows[i].error);
    if (goes_on) { /* No password is NULL, so that a client without a user does not log in. */
      assert_int_equal(login->password_length, rows[i].password_length);
      assert_int_equal(login->password != NULL, rows[i].password_length > 0);
      assert_int_equal(login->username == NULL ? 0 : strlen(login->username),
                       rows[i].username_length);
      assert_int_equal(login->username != NULL, rows[i].username_length > 0);
    }
    redlock_client_free(client);
  }
}

TEST(node_with_a_password_asks_no_function) {
  answer given = {.result = REDLOCK_E_UNAVAILABLE};
  redlock_client *client = client_of_function(&given, "redis://:p@127.0.0.1:1");
  asked = 0;
  assert_true(rl_credentials_ask(client, 0));
  assert_int_equal(asked, 0);
  redlock_client_free(client);
}

TEST(late_credentials_have_bounds) {
  static char text[REDLOCK_PASSWORD_MAX + 1];
  memset(text, 'u', REDLOCK_USERNAME_MAX + 1);
  assert_string_equal(rl_credentials_wrong(text, "p", 1), USERNAME_TOO_LONG);
  text[REDLOCK_USERNAME_MAX] = '\0';
  assert_null(rl_credentials_wrong(text, NULL, 0));
  assert_null(rl_credentials_wrong(NULL, text, REDLOCK_PASSWORD_MAX));
  assert_string_equal(rl_credentials_wrong(NULL, text, sizeof text), PASSWORD_TOO_LONG);
  assert_non_null(rl_credentials_wrong("u", NULL, 1));
}

TEST(refusal_needs_no_reason) {
  answer given = {.result = REDLOCK_PENDING};
  redlock_client *client = client_of_function(&given, "127.0.0.1:1");
  assert_false(rl_credentials_ask(client, 0));
  assert_error(redlock_client_refuse_credentials(client, 0, NULL), REDLOCK_OK);
  assert_node_error(client, "it got no credentials");
  redlock_client_free(client);
}
