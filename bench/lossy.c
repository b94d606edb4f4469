/*
 * Message loss for the benchmark: runs a command with a relay in front of each server.
 *
 *     lossy <n: every n-th message is lost; 0 for none> <command> [argument ...] -- <host:port> ...
 *
 * Appends the addresses of the relays to the arguments of the command, and prints the number of
 * lost messages.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../csrc/test/lib/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOSSY_MAX 32

int main(int argc, char **argv) {
  relay relays[LOSSY_MAX];
  int from = 2, count, status = 0;
  unsigned lost = 0;

  while (from < argc && strcmp(argv[from], "--") != 0)
    from++;
  count = argc - from - 1;
  if (from == 2 || count < 1 || count > LOSSY_MAX) {
    fprintf(stderr, "usage: lossy <which> <command> [argument ...] -- <host:port> ...\n");
    return 1;
  }
  for (int i = 0; i < count; i++) {
    const char *port = strrchr(argv[from + 1 + i], ':');
    relay_start(&relays[i], port != NULL ? atoi(port + 1) : 0, 0);
    relays[i].order->loss = (unsigned)strtoul(argv[1], NULL, 10);
    argv[from + i] = relays[i].address;
  }
  argv[from + count] = NULL;
  pid_t pid = fork();
  if (pid == 0) {
    execv(argv[2], argv + 2);
    _exit(127);
  }
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    fprintf(stderr, "lossy: %s has failed\n", argv[2]);
    return 1;
  }
  for (int i = 0; i < count; i++) {
    lost += relays[i].order->lost;
    relay_end(&relays[i]);
  }
  printf("lost=%u\n", lost);
  return 0;
}
