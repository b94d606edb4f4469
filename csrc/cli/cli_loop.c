/*
 * redlock(1): waits for nodes and signals at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Write end of the pipe: a signal handler has no argument for it. */
static int cli_loop_pipe = -1;

static void cli_loop_handle(int number) {
  int saved = errno;
  unsigned char byte = (unsigned char)number;
  ssize_t written = write(cli_loop_pipe, &byte, 1); /* A full pipe already has signals to read. */
  (void)written;
  errno = saved;
}

static bool cli_loop_prepare(int fd) {
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/* Handles a signal unless it is ignored. Returns false if the system refuses. */
static bool cli_loop_take(cli_loop *loop, int number) {
  struct sigaction action = {.sa_handler = number == SIGPIPE ? SIG_IGN : cli_loop_handle,
                             .sa_flags = SA_RESTART};
  struct sigaction before;
  (void)sigemptyset(&action.sa_mask);
  if (sigaction(number, NULL, &before) != 0) {
    return false;
  }
  /* SIGCHLD must not stay ignored: waitpid() would find no status. */
  if (before.sa_handler == SIG_IGN) {
    if (number != SIGCHLD) {
      return true;
    }
    loop->ignored_children = true;
  }
  (void)sigaddset(&loop->taken, number);
  return sigaction(number, &action, NULL) == 0;
}

bool cli_loop_open(cli_loop *loop, redlock_client *client) {
  static const int numbers[] = {SIGCHLD, SIGHUP,  SIGINT,  SIGQUIT,
                                SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};
  int ends[2];
  if (pipe(ends) != 0 || !cli_loop_prepare(ends[0]) || !cli_loop_prepare(ends[1])) {
    return false;
  }
  *loop = (cli_loop){.client = client, .signals = ends[0]};
  cli_loop_pipe = ends[1];
  (void)sigemptyset(&loop->taken);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (!cli_loop_take(loop, numbers[i])) {
      return false;
    }
  }
  return pthread_sigmask(SIG_UNBLOCK, &loop->taken, &loop->before) == 0;
}

/* Returns the timeout for poll() in milliseconds, rounded up. */
static int cli_loop_timeout(redlock_client *client, redlock_time until_us) {
  redlock_time now_us = redlock_now();
  redlock_duration left_us = until_us > now_us ? until_us - now_us : 0;
  redlock_duration due_us = redlock_client_timeout(client);
  redlock_duration wait_us = due_us < left_us ? due_us : left_us;
  redlock_duration wait_ms = wait_us / REDLOCK_MILLISECONDS + (wait_us % REDLOCK_MILLISECONDS != 0);
  return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

/*
 * Waits for the client's descriptor: unlike the timeout of poll(), it also ends the wait after a
 * suspend.
 */
int cli_loop_turn(cli_loop *loop, redlock_time until_us, struct pollfd *more, size_t count) {
  struct pollfd fds[2 * REDLOCK_NODES_MAX + 1] = {{.fd = loop->signals, .events = POLLIN}};
  struct pollfd *own = fds + 1 + count;
  if (count > 0) {
    memcpy(fds + 1, more, count * sizeof *more);
  }
  *own = (struct pollfd){.fd = redlock_client_pollfd(loop->client), .events = POLLIN};
  size_t owned = own->fd >= 0 ? 1 : redlock_client_pollfds(loop->client, own, REDLOCK_NODES_MAX);
  int ready = poll(fds, (nfds_t)(1 + count + owned), cli_loop_timeout(loop->client, until_us));
  for (size_t i = 0; i < count; i++) {
    more[i].revents = ready > 0 ? fds[1 + i].revents : 0;
  }
  (void)redlock_client_process(loop->client, NULL, 0);
  while (redlock_client_next_ended(loop->client) != NULL) {
    /* Its one lock has a result, which the verb reads. */
  }
  unsigned char byte; /* SIGCHLD only ends the wait. */
  return read(loop->signals, &byte, 1) == 1 && byte != SIGCHLD ? byte : 0;
}
