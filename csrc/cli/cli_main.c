/*
 * redlock(1): makes the client, calls the verb, and what the verbs share.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h> /* macOS has getentropy() here */
#include <unistd.h>

#include "cli_child.h"
#include "cli_output.h"

/* Bytes of a message; a pipe takes as many at once, so that lines of processes do not mix. */
#define CLI_MESSAGE_MAX 4096
#define CLI_MESSAGE_PATIENCE_MS 10

/*
 * Drops the message if the standard error does not take it in time, because the program must go on:
 * a reader that stands still must not end the extends of a lock.
 */
static void cli_write_message(const char *format, va_list arguments) {
  char text[CLI_MESSAGE_MAX] = "redlock: ";
  struct pollfd writable = {.fd = STDERR_FILENO, .events = POLLOUT};
  size_t start = strlen(text);
  int length = vsnprintf(text + start, sizeof text - start - 1, format, arguments);
  size_t end = length < 0 ? start : start + (size_t)length;
  end = end < sizeof text - 2 ? end : sizeof text - 2;
  cli_mask_text(text, end);
  text[end++] = '\n';
  if (poll(&writable, 1, CLI_MESSAGE_PATIENCE_MS) != 0) {
    ssize_t written = write(STDERR_FILENO, text, end);
    (void)written;
  }
}

int cli_fail(int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  cli_write_message(format, arguments);
  va_end(arguments);
  return status;
}

int cli_report(const cli_settings *settings, int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!settings->quiet) {
    cli_write_message(format, arguments);
  }
  va_end(arguments);
  return status;
}

/* ---------------------------------------------------------------------------------------- verbs */

/* Returns the exit status for |error|. */
static int cli_error_status(const cli_settings *settings, int error) {
  switch (error) {
  case REDLOCK_E_TAKEN:
    return settings->taken_status;
  case REDLOCK_E_NOT_HELD:
    return CLI_NOT_HELD;
  case REDLOCK_E_LOST:
    return CLI_LOST;
  case REDLOCK_E_NO_MEMORY:
  case REDLOCK_E_SYSTEM:
    return CLI_SYSTEM;
  case REDLOCK_E_INVALID:
  case REDLOCK_E_LIMIT:
    return CLI_USAGE;
  default:
    return CLI_UNAVAILABLE;
  }
}

int cli_fail_lock(const cli_settings *settings, redlock_lock *lock, int error) {
  const char *message = redlock_lock_message(lock);
  int status = cli_error_status(settings, error);
  message = message[0] != '\0' ? message : redlock_strerror(error);
  return status == CLI_USAGE ? cli_fail(status, "%s", message)
                             : cli_report(settings, status, "%s", message);
}

int cli_await(const cli_settings *settings, cli_loop *loop, redlock_lock *lock, int error) {
  if (error != REDLOCK_OK) {
    return cli_fail_lock(settings, lock, error);
  }
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    int number = cli_loop_turn(loop, REDLOCK_NEVER, NULL, 0);
    if (number != 0) {
      redlock_lock_cancel(lock);
      return CLI_SIGNAL + number;
    }
  }
  return -1;
}

int cli_result(const cli_settings *settings, redlock_lock *lock) {
  int error = redlock_lock_result(lock);
  if (error == REDLOCK_OK) {
    return -1;
  }
  if (settings->json) {
    cli_json_failure(lock, error, redlock_lock_message(lock));
  }
  return cli_fail_lock(settings, lock, error);
}

int cli_flush(void) {
  return fflush(stdout) != 0 || ferror(stdout) != 0
             ? cli_fail(CLI_SYSTEM, "cannot write to the standard output: %m")
             : 0;
}

int cli_print_result(const cli_settings *settings, redlock_lock *lock) {
  int status = cli_flush();
  int error = redlock_lock_result(lock);
  return status == 0 && error != REDLOCK_OK ? cli_fail_lock(settings, lock, error) : status;
}

/* ----------------------------------------------------------------------------------------- main */

/* Returns true if a comma in a password seems to have divided an address. */
static bool cli_has_divided_address(const cli_settings *settings) {
  for (size_t i = 0; i < settings->node_count; i++) {
    const char *node = settings->nodes[i];
    if (strchr(node, '@') != NULL && strstr(node, ":/") == NULL) {
      return true;
    }
  }
  return false;
}

/* Makes the client and its nodes. Returns an error of redlock.h with a message. */
static int cli_make(redlock_client **client, const cli_settings *settings,
                    char message[static 512]) {
  int error = redlock_client_new(client, &settings->client, message, 512);
  for (size_t i = 0; error == REDLOCK_OK && i < settings->node_count; i++) {
    /* The message has the number of the node, because an address may contain a password. */
    size_t length = (size_t)snprintf(message, 512, "node %zu: ", i + 1);
    error = redlock_client_add(*client, settings->nodes[i], message + length, 512 - length);
  }
  return error;
}

/* Makes the client. Loads the library for TLS only if a node needs it. */
static int cli_open(redlock_client **client, cli_settings *settings) {
  char message[512] = "";
  int error = cli_make(client, settings, message);
  if (error == REDLOCK_E_UNSUPPORTED) {
    settings->client.transport = cli_tls_transport();
    if (settings->client.transport == NULL) {
      return CLI_SYSTEM;
    }
    redlock_client_free(*client);
    error = cli_make(client, settings, message);
  }
  bool system = error == REDLOCK_E_NO_MEMORY || error == REDLOCK_E_SYSTEM;
  bool divided = error == REDLOCK_E_INVALID && cli_has_divided_address(settings);
  return error == REDLOCK_OK ? -1
                             : cli_fail(system ? CLI_SYSTEM : CLI_USAGE, "%s%s", message,
                                        divided ? "; write a comma in a password as %2C" : "");
}

/* Writes the name of the lock of a verb that never has a RESOURCE: unique, because it is taken. */
static void cli_name_lock(char name[static 64], const cli_verb *verb) {
  uint64_t number = 0;
  if (getentropy(&number, sizeof number) != 0) {
    number = redlock_now() << 20 ^ (uint64_t)getpid();
  }
  (void)snprintf(name, 64, "redlock-%s-%016llx", verb->name, (unsigned long long)number);
}

/* Makes the lock of the verb. Returns -1, or the exit status after a message. */
static int cli_open_lock(redlock_lock **lock, const cli_settings *settings,
                         redlock_client *client) {
  const cli_verb *verb = settings->line.verb;
  const char *resource = settings->operands[1];
  char name[64];
  if (strstr(verb->operands, "TEXT") != NULL) {
    return cli_handover_open(lock, client, resource);
  }
  if (resource == NULL && verb->most == 0) {
    cli_name_lock(name, verb);
    resource = name;
  }
  resource = resource != NULL ? resource : "redlock-doctor";
  return redlock_lock_new(lock, client, resource, strlen(resource), NULL) == REDLOCK_OK
             ? -1
             : cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
}

/* Calls the verb. Returns the exit status. */
static int cli_call(cli_settings *settings) {
  const cli_verb *verb = settings->line.verb;
  cli_loop loop;
  redlock_client *client = NULL;
  redlock_lock *lock = NULL;
  if ((verb->groups & CLI_FOR_CLIENT) == 0) {
    return verb->call(settings, NULL, NULL);
  }
  int status = cli_open(&client, settings);
  status = status < 0 ? cli_open_lock(&lock, settings, client) : status;
  if (status < 0) {
    status = cli_loop_open(&loop, client)
                 ? verb->call(settings, &loop, lock)
                 : cli_fail(CLI_SYSTEM, "cannot create a pipe or a signal handler: %m");
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  return status;
}

/*
 * Opens descriptors 0 to 2 if they are closed: a node's connection must not become one of them.
 * They stay as useless as before: the standard input cannot be read, the output not written.
 */
static bool cli_fill_standard_descriptors(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode | O_CLOEXEC) != fd) {
      return false;
    }
  }
  return true;
}

/*
 * Ends this process by a signal, so that a shell that waits for it learns of the signal: otherwise
 * Ctrl-C would not end a loop of the shell. Returns the exit status if the signal has no effect, as
 * for PID 1.
 */
static int cli_die(int number) {
  sigset_t set;
  cli_child_forbid_core(); /* A core dump of ours says nothing. */
  (void)fflush(NULL);
  (void)signal(number, SIG_DFL);
  (void)sigemptyset(&set);
  (void)sigaddset(&set, number);
  (void)kill(getpid(), number);
  (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  return 128 + number;
}

int main(int argc, char **argv) {
  cli_settings settings;
  if (!cli_fill_standard_descriptors()) {
    return cli_fail(CLI_SYSTEM,
                    "a standard descriptor is closed, and /dev/null cannot be opened: %m");
  }
  int status = cli_settings_read(&settings, argc, argv);
  status = status < 0 ? cli_call(&settings) : status;
  return status > CLI_SIGNAL ? cli_die(status - CLI_SIGNAL) : status;
}
