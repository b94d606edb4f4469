/*
 * redlock(1): TLS, its options and its library.
 *
 * SPDX-License-Identifier: MIT
 *
 * The tool is not linked with libredlock_tls: where nobody asks for TLS, nobody needs OpenSSL. It looks for the library beside
 * itself (../lib, its RUNPATH), then where the system does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define CLI_TLS_LIBRARY "libredlock_tls.so.0"

#define CLI_TLS_TEXT(code, name, variable, field)                                                  \
  {CLI_TLS_##code, variable, offsetof(redlock_settings, field)},
static const struct {
  int option;
  const char *variable;
  size_t offset;
} cli_tls_texts[] = {CLI_TLS_TEXTS(CLI_TLS_TEXT)};
#define CLI_TLS_TEXTS_COUNT (sizeof cli_tls_texts / sizeof cli_tls_texts[0])

static const char **cli_tls_field(cli_settings *settings, size_t i) {
  return (const char **)(void *)((char *)&settings->tls + cli_tls_texts[i].offset);
}

static int cli_tls_min_version(cli_settings *settings, const char *text) {
  settings->tls.tls_min_version = strcmp(text, "1.2") == 0   ? REDLOCK_TLS_1_2
                                  : strcmp(text, "1.3") == 0 ? REDLOCK_TLS_1_3
                                                             : 0;
  return settings->tls.tls_min_version != 0
             ? -1
             : cli_fail(CLI_USAGE, "not a version of TLS from 1.2 to 1.3: '%s'", text);
}

/* The first line of a file. Nothing of it is ever shown. */
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
    return cli_fail(CLI_USAGE, "%s has no password of up to %zu bytes in its first line", path,
                    size - 1);
  }
  settings->key_password[length] = '\0';
  settings->tls.tls_key_password = settings->key_password;
  return -1;
}

int cli_tls_option(cli_settings *settings, int option, const char *value) {
  settings->tls.tls = REDLOCK_YES;
  switch (option) {
  case CLI_TLS:
    return -1;
  case CLI_TLS_MIN_VERSION:
    return cli_tls_min_version(settings, value);
  case CLI_TLS_KEY_PASSWORD: /* Else it would be taken for the name of that file, and shown. */
    return cli_fail(CLI_USAGE, "others see the command line: a password is for "
                               "--tls-key-password-file, or REDLOCK_TLS_KEY_PASSWORD");
  case CLI_TLS_KEY_PASSWORD_FILE:
    return cli_tls_key_password(settings, value);
  case CLI_TLS_DANGEROUSLY_UNVERIFIED:
    settings->tls.tls_dangerously_unverified = REDLOCK_YES;
    return -1;
  default:
    break;
  }
  for (size_t i = 0; i < CLI_TLS_TEXTS_COUNT; i++) {
    if (cli_tls_texts[i].option == option) {
      *cli_tls_field(settings, i) = value;
    }
  }
  return -1;
}

/* There is one thread yet. */
static const char *cli_tls_variable(const char *name) {
  const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
  return value != NULL && value[0] != '\0' ? value : NULL;
}

int cli_tls_environment(cli_settings *settings) {
  const char *version = cli_tls_variable("REDLOCK_TLS_MIN_VERSION");
  const char *password = cli_tls_variable("REDLOCK_TLS_KEY_PASSWORD");
  for (size_t i = 0; i < CLI_TLS_TEXTS_COUNT; i++) {
    const char *value = cli_tls_variable(cli_tls_texts[i].variable);
    if (value != NULL && *cli_tls_field(settings, i) == NULL) {
      (void)cli_tls_option(settings, cli_tls_texts[i].option, value);
    }
  }
  if (password != NULL && settings->tls.tls_key_password == NULL) {
    settings->tls.tls_key_password = password;
  }
  return version != NULL && settings->tls.tls_min_version == 0
             ? cli_tls_option(settings, CLI_TLS_MIN_VERSION, version)
             : -1;
}

const redlock_transport *cli_tls_carrier(void) {
  const redlock_transport *(*redlock_tls)(void) = NULL;
  void *library = dlopen(CLI_TLS_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* It stays: there is one exit. */
  void *found = library != NULL ? dlsym(library, "redlock_tls") : NULL;
  if (found == NULL) {
    (void)cli_fail(CLI_SYSTEM, "TLS needs " CLI_TLS_LIBRARY ", a library of its own: %s",
                   dlerror()); /* NOLINT(concurrency-mt-unsafe) */
    return NULL;
  }
  memcpy(&redlock_tls, &found, sizeof redlock_tls);
  return redlock_tls();
}
