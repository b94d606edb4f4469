/*
 * Latency for the benchmark: a relay in front of each server.
 *
 *     far <microseconds each way> <host:port> ...
 *
 * Prints the addresses of the relays on one line, and relays until stdin ends.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../csrc/test/lib/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR_MAX 32

int main(int argc, char **argv) {
  relay relays[FAR_MAX];
  int count = argc - 2;

  if (count < 1 || count > FAR_MAX) {
    fprintf(stderr, "usage: far <microseconds each way> <host:port> ...\n");
    return 1;
  }
  for (int i = 0; i < count; i++) {
    const char *port = strrchr(argv[i + 2], ':');
    relay_start(&relays[i], atoi(port != NULL ? port + 1 : argv[i + 2]),
                (redlock_duration)atoll(argv[1]));
    printf("%s%s", relays[i].address, i + 1 < count ? " " : "\n");
  }
  fflush(stdout);
  while (getchar() != EOF) {
  }
  for (int i = 0; i < count; i++)
    relay_end(&relays[i]);
  return 0;
}
