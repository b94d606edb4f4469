/*
 * Addresses: every form that is accepted, every way to be wrong, what is inherited, and that no
 * message holds a password.
 *
 * SPDX-License-Identifier: MIT
 */
#include "options/rl_address.h"
#include "rl_test.h"

#define SECRET "s3cr3t"

static rl_address address;
static char message[256];

static int read_from(const redlock_node *node, const redlock_settings *settings) {
  message[0] = '\0';
  return rl_address_read(&address, node, settings, message, sizeof message);
}

static int read_text(const char *text) {
  redlock_node node = {.address = text};
  redlock_settings settings = {0};
  return read_from(&node, &settings);
}

/* ------------------------------------------------------------------------------------ accepted */

typedef struct accepted {
  const char *text;
  const char *host;
  int port;
  int db;
  const char *path;
  const char *username; /* NULL: none */
  const char *password; /* NULL: none */
  const char *name;
} accepted;

static const accepted accepted_forms[] = {
    {"h", "h", 6379, 0, "", NULL, NULL, "h:6379"},
    {"redis.example.org", "redis.example.org", 6379, 0, "", NULL, NULL, "redis.example.org:6379"},
    {"10.0.0.1", "10.0.0.1", 6379, 0, "", NULL, NULL, "10.0.0.1:6379"},
    {"10.0.0.1:1", "10.0.0.1", 1, 0, "", NULL, NULL, "10.0.0.1:1"},
    {"h:65535", "h", 65535, 0, "", NULL, NULL, "h:65535"},
    {"h:0006380", "h", 6380, 0, "", NULL, NULL, "h:6380"},
    {"[::1]", "::1", 6379, 0, "", NULL, NULL, "[::1]:6379"},
    {"[::1]:7000", "::1", 7000, 0, "", NULL, NULL, "[::1]:7000"},
    {"[fe80::1%eth0]:7000", "fe80::1%eth0", 7000, 0, "", NULL, NULL, "[fe80::1%eth0]:7000"},
    {"redis://h", "h", 6379, 0, "", NULL, NULL, "h:6379"},
    {"redis://h/", "h", 6379, 0, "", NULL, NULL, "h:6379"},
    {"redis://h/0", "h", 6379, 0, "", NULL, NULL, "h:6379"},
    {"redis://h:7000/15", "h", 7000, 15, "", NULL, NULL, "h:7000"},
    {"redis://h/1000000", "h", 6379, 1000000, "", NULL, NULL, "h:6379"},
    {"redis://[::1]:7000/3", "::1", 7000, 3, "", NULL, NULL, "[::1]:7000"},
    {"redis://:" SECRET "@h", "h", 6379, 0, "", NULL, SECRET, "h:6379"},
    {"redis://u:" SECRET "@h:7000/2", "h", 7000, 2, "", "u", SECRET, "h:7000"},
    {"redis://u:@h", "h", 6379, 0, "", "u", "", "h:6379"},
    {"redis://:@h", "h", 6379, 0, "", NULL, "", "h:6379"},
    {"redis://u%3A%40%00:%25%2fx@h", NULL, 0, 0, NULL, NULL, NULL, NULL}, /* refused: NUL */
    {"redis://u%3A%40:p%25%2f%c3%A9@h", "h", 6379, 0, "", "u:@", "p%/\xc3\xa9", "h:6379"},
    {"redis://u:a@b@h", "h", 6379, 0, "", "u", "a@b", "h:6379"},
    {"redis://u:a:b@h", "h", 6379, 0, "", "u", "a:b", "h:6379"},
    {"redis://u:a/b@h", "h", 6379, 0, "", "u", "a/b", "h:6379"},
    {"unix:///run/redis.sock", "", 6379, 0, "/run/redis.sock", NULL, NULL, "unix:/run/redis.sock"},
    {"unix:/run/redis.sock", "", 6379, 0, "/run/redis.sock", NULL, NULL, "unix:/run/redis.sock"},
    {"unix:/r@s://x?db=7", "", 6379, 7, "/r@s://x", NULL, NULL, "unix:/r@s://x"},
    {"unix:///run/r%20s.sock", "", 6379, 0, "/run/r s.sock", NULL, NULL, "unix:/run/r s.sock"},
    {"unix:///r%40s?db=7", "", 6379, 7, "/r@s", NULL, NULL, "unix:/r@s"},
    {"unix:///tmp/a@b.sock", "", 6379, 0, "/tmp/a@b.sock", NULL, NULL, "unix:/tmp/a@b.sock"},
    {"unix://:p@ss@/a@b", "", 6379, 0, "/a@b", NULL, "p@ss", "unix:/a@b"},
    {"unix://:" SECRET "@/r?db=0", "", 6379, 0, "/r", NULL, SECRET, "unix:/r"},
    {"unix://u:" SECRET "@/r", "", 6379, 0, "/r", "u", SECRET, "unix:/r"},
};

TEST(every_form_is_read) {
  for (unsigned i = 0; i < COUNT_OF(accepted_forms); i++) {
    const accepted *row = &accepted_forms[i];
    int error = read_text(row->text);
    if (row->host == NULL) {
      assert_error(error, REDLOCK_E_INVALID);
      continue;
    }
    assert_string_equal(message, "");
    assert_error(error, REDLOCK_OK);
    assert_string_equal(address.host, row->host);
    assert_int_equal(address.port, row->port);
    assert_int_equal(address.db, row->db);
    assert_string_equal(address.path, row->path);
    assert_int_equal(address.has_username, row->username != NULL);
    assert_string_equal(address.username, row->username != NULL ? row->username : "");
    assert_int_equal(address.has_password, row->password != NULL);
    assert_string_equal(address.password, row->password != NULL ? row->password : "");
    assert_int_equal(address.password_length, strlen(address.password));
    assert_string_equal(address.name, row->name);
    assert_int_equal(address.tls, 0);
  }
}

/* -------------------------------------------------------------------------------------- refused */

typedef struct refused {
  const char *text;
  const char *message;
} refused;

static const refused refused_forms[] = {
    {"", "the address is empty"},
    {":6379", "the host is missing"},
    {"redis://", "the host is missing"},
    {"redis:///3", "the host is missing"},
    {"redis://:7000", "the host is missing"},
    {"[]", "the host is missing"},
    {"[]:1", "the host is missing"},
    {"h:", "the port must be a number from 1 to 65535"},
    {"h:0", "the port must be a number from 1 to 65535"},
    {"h:65536", "the port must be a number from 1 to 65535"},
    {"h:99999999999999999999", "the port must be a number from 1 to 65535"},
    {"h:-1", "the port must be a number from 1 to 65535"},
    {"h:+1", "the port must be a number from 1 to 65535"},
    {"h:6379x", "the port must be a number from 1 to 65535"},
    {"h: 6379", "the port must be a number from 1 to 65535"},
    {"[::1]:", "the port must be a number from 1 to 65535"},
    {"redis://h:/3", "the port must be a number from 1 to 65535"},
    {"[::1", "the IPv6 address has no closing bracket"},
    {"[::1]x", "only a port can follow the bracket"},
    {"[::1]6379", "only a port can follow the bracket"},
    {"::1", "an IPv6 address needs brackets: [::1]:6379"},
    {"fe80::1:6379", "an IPv6 address needs brackets: [::1]:6379"},
    {"h:1:2", "an IPv6 address needs brackets: [::1]:6379"},
    {"a host", "the host has a character that no host name has"},
    {"h/3", "the host has a character that no host name has"},
    {"h?db=3", "the host has a character that no host name has"},
    {"h\t", "the host has a character that no host name has"},
    {"h\x7f", "the host has a character that no host name has"},
    {"<h>", "the host has a character that no host name has"},
    {"redis://h?x", "the host has a character that no host name has"},
    {"u:" SECRET "@h", "an address with a username or a password must begin with redis://"},
    {"http://h", "the scheme must be redis://, rediss://, unix:// or sentinel://"},
    {"REDIS://h", "the scheme must be redis://, rediss://, unix:// or sentinel://"},
    {"tcp://u:" SECRET "@h", "the scheme must be redis://, rediss://, unix:// or sentinel://"},
    {"://h", "the scheme must be redis://, rediss://, unix:// or sentinel://"},
    {"redis://h/x", "the database must be a number from 0 to 1000000"},
    {"redis://h/-1", "the database must be a number from 0 to 1000000"},
    {"redis://h/1000001", "the database must be a number from 0 to 1000000"},
    {"redis://h/1/", "the database must be a number from 0 to 1000000"},
    {"redis://u:" SECRET "@h/x", "the database must be a number from 0 to 1000000"},
    {"redis://u:" SECRET "@h:x", "the port must be a number from 1 to 65535"},
    {"redis://u:" SECRET "%@h", "the password has a %-escape that is not two hex digits"},
    {"redis://u:" SECRET "%4@h", "the password has a %-escape that is not two hex digits"},
    {"redis://u:" SECRET "%zz@h", "the password has a %-escape that is not two hex digits"},
    {"redis://u:" SECRET "%4z@h", "the password has a %-escape that is not two hex digits"},
    {"redis://u%00:" SECRET "@h", "the username must not contain a NUL byte"},
    {"unix://:" SECRET "@/s%00", "the path must not contain a NUL byte"},
    {"redis://u%:" SECRET "@h", "the username has a %-escape that is not two hex digits"},
    {"redis://u@h", "a username needs a password; a password alone is :password@"},
    {"unix://run/redis.sock", "the path of a Unix socket must begin with '/': unix:///path"},
    {"unix://", "the path of a Unix socket must begin with '/': unix:///path"},
    {"unix://?db=1", "the path of a Unix socket must begin with '/': unix:///path"},
    {"unix://u:" SECRET "@r", "the path of a Unix socket must begin with '/': unix:///path"},
    {"unix:///r?", "only ?db=n can follow the path"},
    {"unix:///r?d", "only ?db=n can follow the path"},
    {"unix:///r?database=1", "only ?db=n can follow the path"},
    {"unix:///r?db=", "the database must be a number from 0 to 1000000"},
    {"unix:///r?db=x", "the database must be a number from 0 to 1000000"},
    {"unix:///r?db=1&x=2", "the database must be a number from 0 to 1000000"},
    {"unix:///r%", "the path has a %-escape that is not two hex digits"},
    {"sentinel://", "Sentinels need the name of a master: sentinel://HOST,HOST/NAME"},
    {"sentinel://h", "Sentinels need the name of a master: sentinel://HOST,HOST/NAME"},
    {"sentinel://h/", "Sentinels need the name of a master: sentinel://HOST,HOST/NAME"},
    {"sentinel://h/my master", "Sentinels need the name of a master: sentinel://HOST,HOST/NAME"},
    {"sentinel://h/m?db=1", "Sentinels need the name of a master: sentinel://HOST,HOST/NAME"},
    {"sentinel:///m", "the host is missing"},
    {"sentinel://a,/m", "the host is missing"},
    {"sentinel://,a/m", "the host is missing"},
    {"sentinel://a,b,a/m", "a Sentinel is named twice"},
    {"sentinel://a:1,b,a:1/m", "a Sentinel is named twice"},
    {"sentinel://a:0/m", "the port must be a number from 1 to 65535"},
    {"sentinel://::1/m", "an IPv6 address needs brackets: [::1]:6379"},
    {"sentinel://a,b,c,d,e,f,g,h,i,j/m", "more than 9 Sentinels are named"},
    {"sentinel://u@a/m", "a username needs a password; a password alone is :password@"},
    {"sentinel://u:%" SECRET "@a/m", "the password has a %-escape that is not two hex digits"},
};

TEST(wrong_form_is_named_without_its_password) {
  for (unsigned i = 0; i < COUNT_OF(refused_forms); i++) {
    int error = read_text(refused_forms[i].text);
    assert_string_equal(message, refused_forms[i].message);
    assert_error(error, REDLOCK_E_INVALID);
    assert_null(strstr(message, SECRET));
  }
}

/* Whatever one byte of an address is changed to, nothing crashes and nothing is quoted. */
TEST(message_never_contains_a_password) {
  static const char *const texts[] = {
      "redis://user:" SECRET "@host:6379/3", "unix://user:" SECRET "@/path?db=3",
      "rediss://user:" SECRET "@host", "sentinel://user:" SECRET "@a,b:1/m"};
  for (unsigned i = 0; i < COUNT_OF(texts); i++) {
    for (size_t at = 0; at < strlen(texts[i]); at++) {
      for (int byte = 0; byte < 256; byte++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", texts[i]);
        text[at] = (char)byte;
        (void)read_text(text);
        assert_null(strstr(message, "s3cr"));
        assert_null(strstr(message, "cr3t"));
      }
    }
  }
}

TEST(sentinels_are_read) {
  char text[600];
  assert_error(read_text("sentinel://a,10.0.0.2:7,[::1]:8,[::2]/my-master.1_"), REDLOCK_OK);
  assert_int_equal(address.sentinels.count, 4);
  assert_string_equal(address.sentinels.list, "a:26379,10.0.0.2:7,[::1]:8,[::2]:26379");
  assert_string_equal(address.sentinels.master, "my-master.1_");
  assert_string_equal(address.name,
                      "sentinel://a:26379,10.0.0.2:7,[::1]:8,[::2]:26379/my-master.1_");
  assert_string_equal(address.host, "");
  assert_int_equal(address.sentinels.has_password, 0);
  assert_error(read_text("sentinel://a:1,a:11,a/m"), REDLOCK_OK);
  (void)snprintf(text, sizeof text, "sentinel://%0*d,b/m", 243, 1); /* with port and comma: 255 */
  assert_error(read_text(text), REDLOCK_E_INVALID);
  assert_string_equal(message, "the list of Sentinels is longer than 255 bytes");
  (void)snprintf(text, sizeof text, "sentinel://%0*d/%0*d", 249, 1, 64, 1);
  assert_error(read_text(text), REDLOCK_OK);
  assert_int_equal(strlen(address.name), 11 + 255 + 1 + 64);
}

/* The login of the address is that of the Sentinels; the master has that of the options. */
TEST(sentinels_have_their_own_login) {
  redlock_node node = {.address = "sentinel://watch:" SECRET "%40@a/m"};
  redlock_settings settings = {.username = "locks", .password = "another", .db = 3};
  assert_error(read_from(&node, &settings), REDLOCK_OK);
  assert_string_equal(address.sentinels.username, "watch");
  assert_string_equal(address.sentinels.password, SECRET "@");
  assert_int_equal(address.sentinels.password_length, strlen(SECRET "@"));
  assert_string_equal(address.username, "locks");
  assert_string_equal(address.password, "another");
  assert_int_equal(address.db, 3);
  assert_null(strstr(address.name, SECRET));
  node.address = "sentinel://:" SECRET "@a/m";
  settings = (redlock_settings){0};
  assert_error(read_from(&node, &settings), REDLOCK_OK);
  assert_int_equal(address.sentinels.has_username, 0);
  assert_int_equal(address.has_password, 0);
  settings.tls = REDLOCK_YES;
  assert_error(read_from(&node, &settings), REDLOCK_E_INVALID);
  assert_string_equal(message,
                      "Sentinels are asked without TLS: name the master by a DNS name that "
                      "follows it");
}

TEST(tls_is_asked_for_by_scheme_node_or_client) {
  static const struct {
    const char *name;
    redlock_node node;
    redlock_settings settings;
    int tls;
  } cases[] = {
      {"the scheme", {.address = "rediss://u:" SECRET "@h"}, {0}, 1},
      {"the node", {.host = "h", .tls = REDLOCK_YES}, {0}, 1},
      {"the client", {.host = "h"}, {.tls = REDLOCK_YES}, 1},
      {"all but the node", {.host = "h", .tls = REDLOCK_NO}, {.tls = REDLOCK_YES}, 0},
      /* A Unix socket has no use for TLS, unless its node asks for it. */
      {"the client, of a path in an address", {.address = "unix:///r"}, {.tls = REDLOCK_YES}, 0},
      {"the client, of a path", {.path = "/r"}, {.tls = REDLOCK_YES}, 0},
      {"the node, of a path", {.path = "/r", .tls = REDLOCK_YES}, {.tls = REDLOCK_YES}, 1},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    assert_error(read_from(&cases[i].node, &cases[i].settings), REDLOCK_OK);
    if (address.tls != cases[i].tls) {
      fail_msg("asked for by %s: tls is %d", cases[i].name, address.tls);
    }
  }
}

/* --------------------------------------------------------------------------------------- limits */

static char *repeated(const char *before, size_t count, const char *after) {
  size_t length = strlen(before);
  char *text = malloc(length + count + strlen(after) + 1);
  assert_non_null(text);
  memcpy(text, before, length);
  memset(text + length, 'x', count);
  memcpy(text + length + count, after, strlen(after) + 1);
  return text;
}

TEST(lengths_are_limited) {
  static const struct {
    const char *before;
    size_t limit;
    const char *after;
    const char *message;
  } cases[] = {
      {"", RL_ADDRESS_HOST_MAX, ":1", "the host is longer than 255 bytes"},
      {"redis://", RL_ADDRESS_HOST_MAX, "", "the host is longer than 255 bytes"},
      {"unix:///", RL_ADDRESS_PATH_MAX - 1, "", "the path is longer than 107 bytes"},
      {"redis://", RL_ADDRESS_TEXT_MAX, ":p@h", "the username is longer than 512 bytes"},
      {"redis://:", RL_ADDRESS_TEXT_MAX, "@h", "the password is longer than 512 bytes"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    for (size_t more = 0; more <= 1; more++) {
      char *text = repeated(cases[i].before, cases[i].limit + more, cases[i].after);
      int error = read_text(text);
      assert_error(error, more ? REDLOCK_E_INVALID : REDLOCK_OK);
      assert_string_equal(message, more ? cases[i].message : "");
      free(text);
    }
  }
}

/* 256 of them are 0 to 255: with %XX, or as bytes with their length. */
TEST(password_has_any_bytes) {
  char bytes[256];
  char text[16 + 3 * 256] = "redis://u:";
  for (size_t i = 0; i < sizeof bytes; i++) {
    bytes[i] = (char)i;
    (void)snprintf(text + strlen(text), 4, "%%%02zx", i);
  }
  (void)strcat(text, "@h");
  const redlock_node nodes[] = {
      {.address = text},
      {.host = "h", .username = "u", .password = bytes, .password_length = sizeof bytes},
      {.host = "h"},
  };
  const redlock_settings levels[] = {
      {0}, {0}, {.username = "u", .password = bytes, .password_length = sizeof bytes}};
  for (size_t i = 0; i < 3; i++) {
    assert_error(read_from(&nodes[i], &levels[i]), REDLOCK_OK);
    assert_true(address.has_password);
    assert_int_equal(address.password_length, sizeof bytes);
    assert_memory_equal(address.password, bytes, sizeof bytes);
    assert_string_equal(address.username, "u");
  }
}

TEST(parts_have_length_limits) {
  char *text = repeated("", RL_ADDRESS_TEXT_MAX + 1, "");
  const struct {
    redlock_node node;
    const char *message;
  } cases[] = {
      {{.host = "h", .username = "u", .password = text}, "the password is longer than 512 bytes"},
      {{.host = "h", .username = text, .password = "p"}, "the username is longer than 512 bytes"},
      {{.path = text}, "the path of a Unix socket must have 1 to 107 bytes"},
      {{.path = ""}, "the path of a Unix socket must have 1 to 107 bytes"},
  };
  redlock_settings settings = {0};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    assert_error(read_from(&cases[i].node, &settings), REDLOCK_E_INVALID);
    assert_string_equal(message, cases[i].message);
  }
  free(text);
}

/* ---------------------------------------------------------------------------------- from parts */

TEST(host_in_parts_needs_no_brackets) {
  static const struct {
    const char *host;
    int port;
    const char *name; /* NULL: it is refused */
  } cases[] = {
      {"::1", 7000, "[::1]:7000"}, {"::1", 0, "[::1]:6379"}, {"::1", -1, NULL},
      {"::1", 65536, NULL},        {"[::1]", 1, NULL},
  };
  redlock_settings settings = {0};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_node node = {.host = cases[i].host, .port = cases[i].port};
    int error = read_from(&node, &settings);
    assert_error(error, cases[i].name == NULL ? REDLOCK_E_INVALID : REDLOCK_OK);
    assert_string_equal(error == REDLOCK_OK ? address.name : "",
                        cases[i].name ? cases[i].name : "");
  }
}

typedef struct inheritance {
  const char *address;             /* of the node */
  const char *username, *password; /* the node's own parts */
  int db;
  const char *client_username, *client_password;
  int client_db;
  const char *expected_username, *expected_password; /* NULL: none */
  int expected_db;
} inheritance;

static const inheritance inheritances[] = {
    {"h", NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, 0},
    {"h", NULL, NULL, 0, "cu", "cp", 4, "cu", "cp", 4},
    {"h", NULL, NULL, 0, NULL, "cp", 4, NULL, "cp", 4},
    {"redis://h/0", NULL, NULL, 0, "cu", "cp", 4, "cu", "cp", 0},
    {"redis://h/5", NULL, NULL, 6, "cu", "cp", 4, "cu", "cp", 6},
    {"redis://h/5", NULL, NULL, REDLOCK_DB_ZERO, "cu", "cp", 4, "cu", "cp", 0},
    {"redis://au:ap@h", NULL, NULL, 0, "cu", "cp", 4, "au", "ap", 4},
    {"redis://au:ap@h", "nu", "np", 0, "cu", "cp", 4, "nu", "np", 4},
    {"redis://au@h", NULL, NULL, 0, "cu", "cp", 0, "au", "cp", 0},
    {"redis://au@h", NULL, "np", 0, "cu", "cp", 0, "au", "np", 0},
    {"redis://:ap@h", NULL, NULL, 0, "cu", "cp", 0, NULL, "ap", 0}, /* not as the default user */
    {"h", NULL, "np", 0, "cu", "cp", 0, NULL, "np", 0},
    {"h", "nu", NULL, 0, "cu", "cp", 0, "nu", "cp", 0},
    {"redis://:@h", NULL, NULL, 0, "cu", "cp", 0, NULL, "", 0},
};

TEST(node_inherits_settings_of_its_client) {
  for (unsigned i = 0; i < COUNT_OF(inheritances); i++) {
    const inheritance *row = &inheritances[i];
    redlock_node node = {.address = row->address,
                         .username = row->username,
                         .password = row->password,
                         .db = row->db};
    redlock_settings settings = {
        .username = row->client_username, .password = row->client_password, .db = row->client_db};
    assert_error(read_from(&node, &settings), REDLOCK_OK);
    assert_int_equal(address.has_username, row->expected_username != NULL);
    assert_string_equal(address.username, row->expected_username ? row->expected_username : "");
    assert_int_equal(address.has_password, row->expected_password != NULL);
    assert_string_equal(address.password, row->expected_password ? row->expected_password : "");
    assert_int_equal(address.db, row->expected_db);
  }
}

TEST(message_is_cut_to_fit) {
  char part[8] = "";
  redlock_settings settings = {0};
  redlock_node node = {.address = ""};
  assert_error(rl_address_read(&address, &node, &settings, part, sizeof part), REDLOCK_E_INVALID);
  assert_string_equal(part, "the add");
  assert_error(rl_address_read(&address, &node, &settings, part, 0), REDLOCK_E_INVALID);
  assert_string_equal(part, "the add"); /* There is no room at all. */
  assert_error(rl_address_read(&address, &node, &settings, NULL, 0), REDLOCK_E_INVALID);
}
