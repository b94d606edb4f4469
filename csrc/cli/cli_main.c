/*
 * redlock(1): makes the client, and hands it to the verb.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static int cli_open(redlock_client **client, const cli_settings *settings) {
  char message[512] = "";
  redlock_settings given = {.options = &settings->options,
                            .prefix = settings->prefix,
                            .prefix_length =
                                settings->prefix != NULL ? strlen(settings->prefix) : 0};
  int error = redlock_client_new(client, &given, message, sizeof message);
  for (size_t i = 0; error == REDLOCK_OK && i < settings->node_count; i++) {
    error = redlock_client_add(*client, settings->nodes[i], message, sizeof message);
  }
  if (error == REDLOCK_OK) {
    return 0;
  }
  return cli_fail(error == REDLOCK_E_NO_MEMORY || error == REDLOCK_E_SYSTEM ? CLI_SYSTEM
                                                                            : CLI_USAGE,
                  "%s", message);
}

int main(int argc, char **argv) {
  cli_settings settings;
  redlock_client *client = NULL;
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
