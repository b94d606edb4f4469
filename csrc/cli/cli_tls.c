/*
 * redlock(1): the library of TLS, and the password of a key.
 *
 * SPDX-License-Identifier: MIT
 *
 * The tool is not linked with libredlock_tls, so that it needs OpenSSL only for TLS. It looks for
 * the library in ../lib beside itself (its RUNPATH), then in the system's directories.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

#define CLI_TLS_LIBRARY "libredlock_tls.so.0"

/* No message contains any of the file. */
int cli_tls_key_password(cli_settings *settings, const char *path) {
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
