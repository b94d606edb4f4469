/*
 * redlock(1): makes the client, and hands it to the verb.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cli_fail(int status, const char *format, ...) {
  va_list arguments;
  (void)fputs("redlock: ", stderr);
  va_start(arguments, format);
  (void)vfprintf(stderr, format, arguments);
  va_end(arguments);
  (void)fputc('\n', stderr);
  return status;
}

int cli_fail_to_acquire(const cli_settings *settings, redlock_lock *lock, int error) {
  const char *message = redlock_lock_message(lock);
  int status = error == REDLOCK_E_TAKEN                                    ? settings->taken_status
               : error == REDLOCK_E_NO_MEMORY || error == REDLOCK_E_SYSTEM ? CLI_SYSTEM
               : error == REDLOCK_E_INVALID || error == REDLOCK_E_LIMIT    ? CLI_USAGE
                                                                           : CLI_UNAVAILABLE;
  return cli_fail(status, "%s", message[0] != '\0' ? message : redlock_strerror(error));
}

/* Makes the client and its nodes. Returns an error of redlock.h; |which| and |message| say of what. */
static int cli_make(redlock_client **client, const cli_settings *settings,
                    const redlock_settings *given, char which[static 32],
                    char message[static 512]) {
  int error = redlock_client_new(client, given, message, 512);
  for (size_t i = 0; error == REDLOCK_OK && i < settings->node_count; i++) {
    /* By its number: it may hold a password. */
    (void)snprintf(which, 32, "node %zu: ", i + 1);
    error = redlock_client_add(*client, settings->nodes[i], message, 512);
  }
  return error;
}

static int cli_open(redlock_client **client, const cli_settings *settings) {
  char message[512] = "";
  char which[32] = "";
  redlock_settings given = settings->tls;
  given.options = &settings->options;
  given.prefix = settings->prefix;
  given.quorum = settings->quorum;
  given.guard = settings->guard ? REDLOCK_YES : REDLOCK_NO;
  given.guard_max_ttl_us = settings->guard_max_ttl_us;
  given.guard_cluster = settings->guard_cluster;
  given.prefix_length = settings->prefix != NULL ? strlen(settings->prefix) : 0;
  int error = cli_make(client, settings, &given, which, message);
  if (error == REDLOCK_E_UNSUPPORTED) { /* A node speaks TLS. */
    given.transport = cli_tls_carrier();
    if (given.transport == NULL) {
      return CLI_SYSTEM;
    }
    redlock_client_free(*client);
    error = cli_make(client, settings, &given, which, message);
  }
  if (error == REDLOCK_OK) {
    return 0;
  }
  return cli_fail(error == REDLOCK_E_NO_MEMORY || error == REDLOCK_E_SYSTEM ? CLI_SYSTEM
                                                                            : CLI_USAGE,
                  "%s%s", which, message);
}

/* A node's connection must not be what this program, or the command, takes for its standard error. */
static bool cli_fill_standard_descriptors(void) {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  return fd >= 0 && close(fd) == 0;
}

int main(int argc, char **argv) {
  cli_settings settings;
  redlock_client *client = NULL;
  if (!cli_fill_standard_descriptors()) {
    return CLI_SYSTEM;
  }
  int status = cli_settings_read(&settings, argc, argv);
  if (status < 0) {
    status = cli_open(&client, &settings);
    if (status == 0) {
      status = settings.verb->call(&settings, client);
    }
  }
  redlock_client_free(client);
  cli_settings_free(&settings);
  return status;
}
