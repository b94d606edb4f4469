/*
 * Addresses of nodes, with their credentials.
 *
 * SPDX-License-Identifier: MIT
 *
 *     host   host:port   [ipv6]:port   redis://[[user]:password@]host[:port][/db]
 *     unix:/path[?db=n]   unix://[[user]:password@]/path[?db=n]   rediss://...
 *     sentinel://[[user]:password@]host[:port][,host[:port]...]/master
 *
 * A message names the fault and does not quote the address, which may contain a password.
 */
#include "options/rl_address.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/rl_number.h"

typedef struct rl_address_parser {
  rl_address *address;
  char *message;
  size_t message_size;
} rl_address_parser;

__attribute__((format(printf, 2, 3))) static int rl_address_fail(rl_address_parser *parser,
                                                                 const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (parser->message != NULL && parser->message_size > 0) {
    (void)vsnprintf(parser->message, parser->message_size, format, arguments);
  }
  va_end(arguments);
  return REDLOCK_E_INVALID;
}

static int rl_address_hex(char digit) {
  static const char digits[] = "0123456789abcdefABCDEF";
  const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
  int value = at != NULL ? (int)(at - digits) : -1;
  return value < 16 ? value : value - 6;
}

/*
 * Decodes %XX in |length| bytes. Appends a NUL. Sets |*used| to the number of decoded bytes; if
 * |used| is NULL, they must have no NUL.
 */
static int rl_address_unescape(rl_address_parser *parser, char *out, size_t out_max, size_t *used,
                               const char *text, size_t length, const char *what) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) {
    char byte = text[i];
    if (byte == '%') {
      int high = length - i > 2 ? rl_address_hex(text[i + 1]) : -1;
      int low = length - i > 2 ? rl_address_hex(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return rl_address_fail(parser, "the %s has a %%-escape that is not two hex digits", what);
      }
      byte = (char)(high * 16 + low);
      i += 2;
    }
    if (count == out_max) {
      return rl_address_fail(parser, "the %s is longer than %zu bytes", what, out_max);
    }
    out[count++] = byte;
  }
  out[count] = '\0';
  if (used == NULL && strlen(out) != count) {
    return rl_address_fail(parser, "the %s must not contain a NUL byte", what);
  }
  if (used != NULL) {
    *used = count;
  }
  return REDLOCK_OK;
}

/* Returns -1 if the text is no number up to |max|. */
static int rl_address_number(const char *text, size_t length, int max) {
  uint64_t number;
  bool valid =
      length > 0 && rl_number_in_digits(text, length, &number) == length && number <= (uint64_t)max;
  return valid ? (int)number : -1;
}

static int rl_address_db(rl_address_parser *parser, const char *text) {
  int db = rl_address_number(text, strlen(text), RL_OPTION_DB_MAX);
  if (db < 0) {
    return rl_address_fail(parser, "the database must be a number from 0 to %d", RL_OPTION_DB_MAX);
  }
  parser->address->db = db == 0 ? REDLOCK_DB_ZERO : db;
  return REDLOCK_OK;
}

static int rl_address_port(rl_address_parser *parser, const char *text, size_t length) {
  int port = rl_address_number(text, length, 65535);
  if (port < 1) {
    return rl_address_fail(parser, "the port must be a number from 1 to 65535");
  }
  parser->address->port = port;
  return REDLOCK_OK;
}

/* Reads a host: a name or an IP address. Other bytes usually come from a mistyped scheme. */
static int rl_address_host(rl_address_parser *parser, const char *text, size_t length) {
  if (length == 0) {
    return rl_address_fail(parser, "the host is missing");
  }
  if (length > RL_ADDRESS_HOST_MAX) {
    return rl_address_fail(parser, "the host is longer than %d bytes", RL_ADDRESS_HOST_MAX);
  }
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)text[i];
    if (byte <= 0x20 || byte == 0x7f || strchr("/@?#[]\"'<>\\", byte) != NULL) {
      return rl_address_fail(parser, "the host has a character that no host name has");
    }
  }
  memcpy(parser->address->host, text, length);
  parser->address->host[length] = '\0';
  return REDLOCK_OK;
}

/* host, host:port, [ipv6] or [ipv6]:port */
static int rl_address_host_port(rl_address_parser *parser, const char *text, size_t length) {
  const char *end = text + length;
  const char *host = text;
  const char *rest;
  size_t host_length;
  if (length > 0 && text[0] == '[') {
    const char *bracket = memchr(text, ']', length);
    if (bracket == NULL) {
      return rl_address_fail(parser, "the IPv6 address has no closing bracket");
    }
    host = text + 1;
    host_length = (size_t)(bracket - host);
    rest = bracket + 1;
    if (rest < end && *rest != ':') {
      return rl_address_fail(parser, "only a port can follow the bracket");
    }
  } else {
    rest = memchr(text, ':', length);
    if (memchr(text, ',', length) != NULL) {
      return rl_address_fail(parser, "an address names one node: pass a list of several addresses");
    }
    if (rest != NULL && memchr(rest + 1, ':', (size_t)(end - rest - 1)) != NULL) {
      return rl_address_fail(parser, "an IPv6 address needs brackets: [::1]:6379");
    }
    rest = rest == NULL ? end : rest;
    host_length = (size_t)(rest - text);
  }
  int error = rl_address_host(parser, host, host_length);
  if (error == REDLOCK_OK && rest < end) {
    error = rl_address_port(parser, rest + 1, (size_t)(end - rest - 1));
  }
  return error;
}

/* [user]:password@ or user@. |length| does not count the '@'. */
static int rl_address_userinfo(rl_address_parser *parser, const char *text, size_t length) {
  rl_address *address = parser->address;
  const char *colon = memchr(text, ':', length);
  size_t user_length = colon == NULL ? length : (size_t)(colon - text);
  int error = rl_address_unescape(parser, address->username, RL_ADDRESS_TEXT_MAX, NULL, text,
                                  user_length, "username");
  address->has_username = user_length > 0;
  if (error == REDLOCK_OK && colon != NULL) {
    error = rl_address_unescape(parser, address->password, RL_ADDRESS_TEXT_MAX,
                                &address->password_length, colon + 1, length - user_length - 1,
                                "password");
    address->has_password = 1;
  }
  return error;
}

static int rl_address_path(rl_address_parser *parser, const char *text) {
  size_t length = strcspn(text, "?");
  const char *query = text + length;
  if (text[0] != '/') {
    return rl_address_fail(parser, "the path of a Unix socket must begin with '/': unix:///path");
  }
  int error = rl_address_unescape(parser, parser->address->path, RL_ADDRESS_PATH_MAX, NULL, text,
                                  length, "path");
  if (error != REDLOCK_OK || query[0] == '\0') {
    return error;
  }
  return strncmp(query, "?db=", 4) == 0 ? rl_address_db(parser, query + 4)
                                        : rl_address_fail(parser, "only ?db=n can follow the path");
}

/* The part of a URL behind "redis://" */
static int rl_address_url(rl_address_parser *parser, const char *text) {
  size_t authority = strcspn(text, "/");
  bool has_db = text[authority] != '\0' && text[authority + 1] != '\0';
  int error = rl_address_host_port(parser, text, authority);
  return error == REDLOCK_OK && has_db ? rl_address_db(parser, text + authority + 1) : error;
}

/* ----------------------------------------------------------------------------- Sentinels */

/* Writes "host:port" or "[ipv6]:port". Returns its length. */
static int rl_address_show(char *text, size_t size, const rl_address *address) {
  bool brackets = strchr(address->host, ':') != NULL;
  return snprintf(text, size, brackets ? "[%s]:%d" : "%s:%d", address->host, address->port);
}

/* Appends the Sentinel that was read into |host| and |port|. */
static int rl_address_add_sentinel(rl_address_parser *parser) {
  rl_address *address = parser->address;
  rl_address_sentinels *sentinels = &address->sentinels;
  char one[RL_ADDRESS_HOST_MAX + 16];
  size_t used = strlen(sentinels->list);
  int length = rl_address_show(one, sizeof one, address);
  for (const char *at = sentinels->list; used > 0 && at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, one, (size_t)length) == 0 && strchr(",", at[length]) != NULL) {
      return rl_address_fail(parser, "a Sentinel is named twice");
    }
  }
  if (sentinels->count == RL_ADDRESS_SENTINELS_MAX) {
    return rl_address_fail(parser, "more than %d Sentinels are named", RL_ADDRESS_SENTINELS_MAX);
  }
  if (used + (used > 0) + (size_t)length > RL_ADDRESS_HOST_MAX) {
    return rl_address_fail(parser, "the list of Sentinels is longer than %d bytes",
                           RL_ADDRESS_HOST_MAX);
  }
  (void)snprintf(sentinels->list + used, sizeof sentinels->list - used, "%s%s", used > 0 ? "," : "",
                 one);
  sentinels->count++;
  return REDLOCK_OK;
}

/* The name of the master at its Sentinels: letters, digits, '.', '-' and '_'. */
static int rl_address_master(rl_address_parser *parser, const char *name) {
  size_t length = strlen(name);
  bool plain =
      strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
  if (length == 0 || length > RL_ADDRESS_MASTER_MAX || !plain) {
    return rl_address_fail(parser,
                           "Sentinels need the name of a master: sentinel://HOST,HOST/NAME");
  }
  memcpy(parser->address->sentinels.master, name, length + 1);
  return REDLOCK_OK;
}

/* The login before the list is that of the Sentinels. The master has that of the options. */
static int rl_address_move_login(rl_address_parser *parser) {
  rl_address *address = parser->address;
  rl_address_sentinels *sentinels = &address->sentinels;
  if (address->has_username && !address->has_password) {
    return rl_address_fail(parser, "a username needs a password; a password alone is :password@");
  }
  sentinels->has_username = address->has_username;
  sentinels->has_password = address->has_password;
  memcpy(sentinels->username, address->username, sizeof address->username);
  memcpy(sentinels->password, address->password, sizeof address->password);
  sentinels->password_length = address->password_length;
  memset(address->username, 0, sizeof address->username);
  memset(address->password, 0, sizeof address->password);
  address->has_username = address->has_password = 0;
  address->password_length = 0;
  return REDLOCK_OK;
}

/* The part of a URL behind "sentinel://" and the login */
static int rl_address_read_sentinels(rl_address_parser *parser, const char *text) {
  rl_address *address = parser->address;
  size_t length = strcspn(text, "/");
  int error = rl_address_move_login(parser);
  if (error == REDLOCK_OK) {
    error = rl_address_master(parser, text[length] == '/' ? text + length + 1 : "");
  }
  for (size_t at = 0; error == REDLOCK_OK && at <= length;) {
    const char *comma = memchr(text + at, ',', length - at);
    size_t end = comma != NULL ? (size_t)(comma - text) : length;
    address->port = RL_ADDRESS_SENTINEL_PORT;
    error = rl_address_host_port(parser, text + at, end - at);
    error = error == REDLOCK_OK ? rl_address_add_sentinel(parser) : error;
    at = end + 1;
  }
  memset(address->host, 0, sizeof address->host);
  return error;
}

/* ------------------------------------------------------------------------------ all parts */

static bool rl_address_starts(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns the last |byte| of the first |length| bytes, or NULL. */
static const char *rl_address_last(const char *text, char byte, size_t length) {
  while (length > 0 && text[length - 1] != byte) {
    length--;
  }
  return length > 0 ? text + length - 1 : NULL;
}

static int rl_address_text(rl_address_parser *parser, const char *text) {
  bool local = rl_address_starts(text, "unix://");
  bool tls = rl_address_starts(text, "rediss://");
  bool sentinels = rl_address_starts(text, "sentinel://");
  const char *scheme = strstr(text, "://");
  if (text[0] == '\0') {
    return rl_address_fail(parser, "the address is empty");
  }
  if (!local && rl_address_starts(text, "unix:/")) {
    parser->address->tls = REDLOCK_NO;
    return rl_address_path(parser, text + strlen("unix:"));
  }
  if (scheme == NULL) {
    if (strchr(text, '@') != NULL) {
      return rl_address_fail(parser,
                             "an address with a username or a password must begin with redis://");
    }
    return rl_address_host_port(parser, text, strlen(text));
  }
  if (!local && !tls && !sentinels && !rl_address_starts(text, "redis://")) {
    return rl_address_fail(parser,
                           "the scheme must be redis://, rediss://, unix:// or sentinel://");
  }
  parser->address->tls = tls ? REDLOCK_YES : local ? REDLOCK_NO : 0;
  const char *rest = scheme + 3;
  /* The last '@', because people forget to escape one in a password. A path may have one, too. */
  const char *at = rl_address_last(rest, '@', local ? strcspn(rest, "/") : strlen(rest));
  if (at != NULL) {
    int error = rl_address_userinfo(parser, rest, (size_t)(at - rest));
    if (error != REDLOCK_OK) {
      return error;
    }
    rest = at + 1;
  }
  return local       ? rl_address_path(parser, rest)
         : sentinels ? rl_address_read_sentinels(parser, rest)
                     : rl_address_url(parser, rest);
}

/* A text with its length. A length of 0 means up to the NUL. */
typedef struct rl_address_bytes {
  const char *text;
  size_t length;
} rl_address_bytes;

static int rl_address_inherit_text(rl_address_parser *parser, char *out, int *has, size_t *used,
                                   rl_address_bytes own, rl_address_bytes above, const char *what) {
  rl_address_bytes chosen = own.text != NULL ? own : above;
  if (chosen.text == NULL || (own.text == NULL && *has)) {
    return REDLOCK_OK;
  }
  size_t length = chosen.length != 0 ? chosen.length : strlen(chosen.text);
  if (length > RL_ADDRESS_TEXT_MAX) {
    return rl_address_fail(parser, "the %s is longer than %d bytes", what, RL_ADDRESS_TEXT_MAX);
  }
  memcpy(out, chosen.text, length);
  out[length] = '\0';
  *used = length;
  *has = 1;
  return REDLOCK_OK;
}

/* Each setting comes from the node, or else its address, or else its client. */
static int rl_address_inherit(rl_address_parser *parser, const redlock_node *node,
                              const redlock_settings *above) {
  rl_address *address = parser->address;
  size_t username_length;
  int db = node->db != 0 ? node->db : address->db != 0 ? address->db : above->db;
  int tls = node->tls != 0 ? node->tls : address->tls != 0 ? address->tls : above->tls;
  address->db = db == REDLOCK_DB_ZERO ? 0 : db;
  address->tls = tls == REDLOCK_YES;
  int error = rl_address_inherit_text(parser, address->username, &address->has_username,
                                      &username_length, (rl_address_bytes){node->username, 0},
                                      (rl_address_bytes){above->username, 0}, "username");
  return error != REDLOCK_OK
             ? error
             : rl_address_inherit_text(
                   parser, address->password, &address->has_password, &address->password_length,
                   (rl_address_bytes){node->password, node->password_length},
                   (rl_address_bytes){above->password, above->password_length}, "password");
}

static void rl_address_name(rl_address *address) {
  const rl_address_sentinels *sentinels = &address->sentinels;
  if (address->path[0] != '\0') {
    (void)snprintf(address->name, sizeof address->name, "unix:%s", address->path);
  } else if (sentinels->count > 0) {
    (void)snprintf(address->name, sizeof address->name, "sentinel://%s/%s", sentinels->list,
                   sentinels->master);
  } else {
    (void)rl_address_show(address->name, sizeof address->name, address);
  }
}

static int rl_address_where(rl_address_parser *parser, const redlock_node *node) {
  int count = (node->address != NULL) + (node->host != NULL) + (node->path != NULL);
  if (count != 1) {
    return rl_address_fail(parser, "a node needs exactly one of address, host and path");
  }
  if (node->address != NULL) {
    return rl_address_text(parser, node->address);
  }
  if (node->path != NULL) {
    size_t length = strlen(node->path);
    if (length == 0 || length > RL_ADDRESS_PATH_MAX) {
      return rl_address_fail(parser, "the path of a Unix socket must have 1 to %d bytes",
                             RL_ADDRESS_PATH_MAX);
    }
    memcpy(parser->address->path, node->path, length + 1);
    return REDLOCK_OK;
  }
  parser->address->port = node->port != 0 ? node->port : RL_ADDRESS_PORT;
  return rl_address_host(parser, node->host, strlen(node->host));
}

int rl_address_read(rl_address *address, const redlock_node *node, const redlock_settings *settings,
                    char *message, size_t message_size) {
  rl_address_parser parser = {address, message, message_size};
  memset(address, 0, sizeof *address);
  address->port = RL_ADDRESS_PORT;
  const char *wrong = rl_option_wrong(&rl_options_of_node, node);
  int error =
      wrong != NULL ? rl_address_fail(&parser, "%s", wrong) : rl_address_where(&parser, node);
  redlock_settings above = *settings;
  if (address->has_password || node->password != NULL) {
    above.username = NULL; /* It is not logged in to as the client's default user. */
  }
  if (address->path[0] != '\0') {
    above.tls = 0; /* A Unix socket has no use for TLS, unless it says so itself. */
  }
  error = error != REDLOCK_OK ? error : rl_address_inherit(&parser, node, &above);
  if (error != REDLOCK_OK) {
    return error;
  }
  if (address->has_username && !address->has_password && settings->credentials == NULL) {
    return rl_address_fail(&parser, "a username needs a password; a password alone is :password@");
  }
  if (address->sentinels.count > 0 && address->tls) {
    return rl_address_fail(&parser,
                           "Sentinels are asked without TLS: name the master by a DNS name "
                           "that follows it");
  }
  rl_address_name(address);
  return REDLOCK_OK;
}
