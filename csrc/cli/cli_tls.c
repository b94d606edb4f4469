/*
 * redlock(1): the options and the library of TLS.
 *
 * SPDX-License-Identifier: MIT
 *
 * The tool is not linked with libredlock_tls, so that it needs OpenSSL only for TLS. It looks for
 * the library in ../lib beside itself (its RUNPATH), then in the system's directories.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define CLI_TLS_LIBRARY "libredlock_tls.so.0"

#define CLI_TLS_TEXT(code, variable, field)                                                        \
  {CLI_OPTION_##code, variable, offsetof(redlock_settings, field)},
static const struct {
  cli_option_code code;
  const char *variable;
  size_t offset;
} cli_tls_texts[] = {CLI_TLS_TEXTS(CLI_TLS_TEXT)};
#define CLI_TLS_TEXTS_COUNT (sizeof cli_tls_texts / sizeof cli_tls_texts[0])

static const char **cli_tls_field(cli_settings *settings, size_t i) {
  return (const char **)(void *)((char *)&settings->client + cli_tls_texts[i].offset);
}

static int cli_tls_min_version(cli_settings *settings, const char *text) {
  settings->client.tls_min_version = strcmp(text, "1.2") == 0   ? REDLOCK_TLS_1_2
                                     : strcmp(text, "1.3") == 0 ? REDLOCK_TLS_1_3
                                                                : 0;
  return settings->client.tls_min_version != 0
             ? -1
             : cli_fail(CLI_USAGE, "invalid TLS version '%s': use 1.2 or 1.3", text);
}

/* Reads the first line of a file. No message contains any of it. */
static int cli_tls_key_password(cli_settings *settings, const char *path) {
  FILE *file = fopen(path, "re");
  size_t size = sizeof settings->key_password;
  if (file == NULL) {
    return cli_fail(CLI_USAGE, "cannot read %s: %m", path);
  }
  size_t length = fread(settings->key_password, 1, size, file);
  bool failed = ferror(file) != 0;
  (void)fclose(file);
  char *end = memchr(settings->key_password, '\n', length);
  length = end != NULL ? (size_t)(end - settings->key_password) : length;
  if (failed || length == 0 || length == size) {
    return cli_fail(CLI_USAGE, "%s must have a password of 1 to %zu bytes in its first line", path,
                    size - 1);
  }
  settings->key_password[length] = '\0';
  settings->client.tls_key_password = settings->key_password;
  return -1;
}

int cli_tls_option(cli_settings *settings, cli_option_code code, const char *value) {
  settings->client.tls = REDLOCK_YES;
  switch (code) {
  case CLI_OPTION_TLS_MIN_VERSION:
    return cli_tls_min_version(settings, value);
  case CLI_OPTION_TLS_KEY_PASSWORD_FILE:
    return cli_tls_key_password(settings, value);
  case CLI_OPTION_TLS_DANGEROUSLY_UNVERIFIED:
    settings->client.tls_dangerously_unverified = REDLOCK_YES;
    return -1;
  default:
    break;
  }
  for (size_t i = 0; i < CLI_TLS_TEXTS_COUNT; i++) {
    if (cli_tls_texts[i].code == code) {
      *cli_tls_field(settings, i) = value;
    }
  }
  return -1;
}

/* Returns the value of a variable, or NULL if it is unset or empty. */
static const char *cli_tls_variable(const char *name) {
  const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): the program has one thread. */
  return value != NULL && value[0] != '\0' ? value : NULL;
}

int cli_tls_environment(cli_settings *settings) {
  const char *version = cli_tls_variable("REDLOCK_TLS_MIN_VERSION");
  for (size_t i = 0; i < CLI_TLS_TEXTS_COUNT; i++) {
    const char *value = cli_tls_variable(cli_tls_texts[i].variable);
    if (value != NULL && *cli_tls_field(settings, i) == NULL) {
      (void)cli_tls_option(settings, cli_tls_texts[i].code, value);
    }
  }
  if (settings->client.tls_key_password == NULL) {
    settings->client.tls_key_password = cli_tls_variable("REDLOCK_TLS_KEY_PASSWORD");
  }
  return version != NULL && settings->client.tls_min_version == 0
             ? cli_tls_option(settings, CLI_OPTION_TLS_MIN_VERSION, version)
             : -1;
}

const redlock_transport *cli_tls_transport(void) {
  const redlock_transport *(*redlock_tls)(void) = NULL;
  void *library = dlopen(CLI_TLS_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* never closed */
  void *found = library != NULL ? dlsym(library, "redlock_tls") : NULL;
  if (found == NULL) {
    (void)cli_fail(CLI_SYSTEM, "TLS needs the library " CLI_TLS_LIBRARY ": %s",
                   dlerror()); /* NOLINT(concurrency-mt-unsafe) */
    return NULL;
  }
  memcpy(&redlock_tls, &found, sizeof redlock_tls);
  return redlock_tls();
}
