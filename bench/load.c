/*
 * A load simulation: thousands of clients in three regions want a hundred keys, in virtual time.
 *
 *     load [--option value ...] [way ...]                       (load --help lists the options)
 *
 * Each client is the real core (csrc/core) with one lock. The clock, the network and the five nodes
 * are simulated. The same seed gives the same figures. A client wants its key, waits, holds it,
 * releases it, pauses, and wants it again. Some holders die instead of releasing: their keys
 * expire, and successors come.
 *
 * A way is what a client does after a failed attempt:
 *   notify    nodes notify the first ticket of the queue: the library's default
 *   fair      likewise, and no client overtakes a waiter
 *   polling   without notifications: tries again after 200 +- 100 ms
 *   busy      tries again after 1 +- 0.5 ms
 *   50/25     tries again after 50 +- 25 ms, and so on
 *
 * Round trips: 1 ms within a region, 30 ms between the first and the second, 80 ms from either to
 * the third. The nodes are in the regions 0 0 1 1 2, a third of each key's clients in each region.
 * Packets of a connection keep their order, so a late one holds up those behind it. A packet that
 * crosses the border of a region that is cut off arrives when it is back. A node answers at once,
 * however much it is asked: |ask/s| shows if a server could do that.
 *
 * Output, a line for each way:
 *   handed      how often a key went to another client than before, while there was a waiter
 *   p50, p99    in ms, from the beginning of the release (after a death: since so many keys have
 *               expired that a majority of the nodes is free) until the next owner knows its lock
 *   least       what the distances allow for the same hand-offs. The release of an owner in region
 *               R is at node n after way(R,n). The next owner, in region S, knows everything in
 *               advance and has its SET arrive just then; it has the reply after way(n,S). The
 *               quorum-th smallest of way(R,n) + way(n,S), and after a death of way(n,S). Only an
 *               owner whose key a mere quorum had can be followed sooner
 *   informed    the same for a client that learns of the release when it begins, wherever that is,
 *               and then sends the SET: way(S,n) + max(way(S,n), way(R,n))
 *   notified    the same for a client that a majority notifies, and that then sends the SET: the
 *               quorum-th smallest of way(R,n) + way(n,S), and of 2 way(n,S); after a death only
 *               the latter
 *   commands    that a node got for each hand-off, without handshakes
 *   executed    the same with the commands of its scripts: what INFO commandstats counts
 *   ask/s       commands a second to one node
 *   messages    that a node has published for each hand-off
 *   longest     wait in s, also of clients that wait at the end
 *   gave up     of the ended waits, in %: tells little if a run is hardly longer than --wait
 *   split       attempts that failed while no client had a majority; and in % of all failed ones
 *   split by    of these: some nodes had notified the client, and some another one
 *   regions     shares of the leases, in %
 *   two         how often two clients held a key at once: it must be 0, or the program exits with 1
 *
 * SPDX-License-Identifier: MIT
 */
#include "load.h"

#include <math.h>
#include <stddef.h>
#include <time.h>

#define LOAD_START_US REDLOCK_SECONDS
#define LOAD_COME_US REDLOCK_SECONDS /* in which all clients come */

void *load_allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) {
    bench_die("load: no memory");
  }
  return memory;
}

redlock_duration load_ms(double ms) {
  return (redlock_duration)llround(ms * (double)REDLOCK_MILLISECONDS);
}

/* ------------------------------------------------------------------------------------------ run */

static void load_seed(sim_random *random, double seed, uint64_t stream) {
  uint64_t state = (uint64_t)seed * 0x2545f4914f6cdd1du + stream;
  sim_random_seed(random, &state);
}

static void load_open(load *c, const load_options *options, const load_way *way) {
  unsigned clients = (unsigned)options->clients, keys = (unsigned)options->keys;
  size_t slots = 4, channels = 64;
  memset(c, 0, sizeof *c);
  c->options = options;
  c->now_us = LOAD_START_US;
  c->end_us = c->now_us + load_ms(options->seconds * 1000);
  c->cut_from_us = c->now_us + load_ms(options->seconds * 1000 / 3);
  c->cut_to_us = c->cut_from_us + load_ms(options->cut_s * 1000);
  load_seed(&c->network, options->seed, 1);
  load_seed(&c->entropy, options->seed, 2);
  load_seed(&c->deaths, options->seed, 3);
  load_measure_distances(c);
  rl_options_default(&c->lock_options);
  c->notifies = way->notifies;
  c->lock_options.fair = way->fair ? REDLOCK_YES : REDLOCK_NO;
  c->lock_options.poll_interval_us = load_ms(options->slow_ms);
  c->lock_options.ttl_us = load_ms(options->ttl_ms);
  c->lock_options.wait_us = load_ms(options->wait_s * 1000);
  c->lock_options.retry_delay_us = load_ms(way->delay_ms);
  c->lock_options.retry_jitter_us = load_ms(way->jitter_ms);
  c->lock_options.auto_extend = options->hold_ms > options->ttl_ms / 3 ? REDLOCK_YES : REDLOCK_NO;
  for (; slots < 2 * (size_t)keys; slots *= 2) {
  }
  for (; channels < 4 * (size_t)clients; channels *= 2) {
  }
  for (unsigned n = 0; n < LOAD_NODES; n++) {
    c->nodes[n].stored = load_allocate(slots, sizeof *c->nodes[n].stored);
    c->nodes[n].mask = slots - 1;
    c->nodes[n].index = n;
    c->nodes[n].load = c;
    if (c->notifies) {
      c->nodes[n].subscribers = load_allocate(channels, sizeof *c->nodes[n].subscribers);
      c->nodes[n].subscriber_mask = channels - 1;
    }
    c->nodes[n].breaks = options->breaks;
  }
  c->keys = load_allocate(keys, sizeof *c->keys);
  for (unsigned k = 0; k < keys; k++) {
    (void)snprintf(c->keys[k].name, sizeof c->keys[k].name, "load:%u", k);
    for (unsigned n = 0; n < LOAD_NODES; n++) {
      c->keys[k].slots[n] = node_slot(&c->nodes[n], c->keys[k].name, strlen(c->keys[k].name));
    }
  }
  c->clients = load_allocate(clients, sizeof *c->clients);
  c->queued = load_allocate(clients, sizeof *c->queued);
  for (unsigned i = 0; i < clients; i++) {
    load_client *client = &c->clients[i];
    client->wake = (load_event){.kind = LOAD_WAKE, .client = i};
    client->key = i % keys;
    client->region = (i / keys + client->key) % LOAD_REGIONS; /* of each key's clients a third */
    client_start(c, client, sim_below(&c->network, LOAD_COME_US));
  }
}

static void load_happen(load *c, load_event *event) {
  switch (event->kind) {
  case LOAD_COMMANDS:
  case LOAD_HUNG_UP:
    node_hear(c, event);
    break;
  case LOAD_WAKE:
    client_wake(c, &c->clients[event->client]);
    return; /* It is part of the client. */
  default:
    client_hear(c, event);
    break;
  }
  free(event);
}

static void load_run(load *c) {
  while (c->heap_count > 0 && c->heap[0].at_us < c->end_us) {
    c->now_us = c->heap[0].at_us;
    while (c->heap_count > 0 && c->heap[0].at_us == c->now_us) {
      load_happen(c, load_pop(c).event);
      c->events++;
    }
    for (size_t i = 0; i < c->queued_count; i++) {
      c->queued[i]->queued = false;
      client_turn(c, c->queued[i]);
    }
    c->queued_count = 0;
  }
}

static void load_close(load *c) {
  for (unsigned i = 0; i < (unsigned)c->options->clients; i++) {
    client_end(c, &c->clients[i]);
  }
  while (c->heap_count > 0) {
    load_event *event = c->heap[--c->heap_count].event;
    if (event->kind != LOAD_WAKE) {
      free(event);
    }
  }
  for (unsigned n = 0; n < LOAD_NODES; n++) {
    for (size_t i = 0; i <= c->nodes[n].mask; i++) {
      free(c->nodes[n].stored[i].queue);
    }
    free(c->nodes[n].stored);
    free(c->nodes[n].subscribers);
  }
  free(c->heap);
  free(c->keys);
  free(c->clients);
  free(c->queued);
  free(c->handed.us);
  free(c->least.us);
  free(c->informed.us);
  free(c->notified_least.us);
}

/* --------------------------------------------------------------------------------- command line */

static const struct load_word {
  const char *name, *help;
  size_t offset;
  double fallback, low, high;
} load_words[] = {
    {"--clients", "how many", offsetof(load_options, clients), 10000, 1, 1000000},
    {"--keys", "how many", offsetof(load_options, keys), 100, 1, 1000000},
    {"--hold", "ms; automatic extension from a third of the ttl on",
     offsetof(load_options, hold_ms), 20, 0, 1e7},
    {"--pause", "ms, before the key is wanted again", offsetof(load_options, pause_ms), 100, 0,
     1e7},
    {"--seconds", "of virtual time", offsetof(load_options, seconds), 60, 1, 1e5},
    {"--wait", "s, after which a client gives up", offsetof(load_options, wait_s), 60, 1, 1e5},
    {"--ttl", "ms", offsetof(load_options, ttl_ms), 10000, 100, 1e7},
    {"--seed", "a whole number", offsetof(load_options, seed), 1, 0, 1e15},
    {"--deaths", "% of the holders", offsetof(load_options, deaths), 0.1, 0, 100},
    {"--replaced", "s after the death; 0 for never", offsetof(load_options, replaced_s), 1, 0, 1e5},
    {"--cut", "s that a region is cut off, from a third of the time on",
     offsetof(load_options, cut_s), 5, 0, 1e5},
    {"--cut-region", "0, 1 or 2", offsetof(load_options, cut_region), 0, 0, 2},
    {"--late", "% of the packets", offsetof(load_options, late), 1, 0, 100},
    {"--late-by", "ms", offsetof(load_options, late_ms), 200, 0, 1e5},
    {"--slow", "ms between polls of a waiter", offsetof(load_options, slow_ms), 2000, 1, 1e7},
};
#define LOAD_WORDS (sizeof load_words / sizeof load_words[0])

static double *load_field(load_options *options, size_t word) {
  return (double *)(void *)((char *)options + load_words[word].offset);
}

static int load_usage(int status) {
  FILE *file = status == 0 ? stdout : stderr;
  fprintf(
      file,
      "usage: load [--option value ...] [polling | busy | notify | fair | <delay ms>/<jitter ms> ...]\n");
  for (size_t i = 0; i < LOAD_WORDS; i++) {
    fprintf(file, "  %-13s %s [%g]\n", load_words[i].name, load_words[i].help,
            load_words[i].fallback);
  }
  fprintf(file,
          "  --break       nodes ignore NX: two must be seen to hold a key, and the status be 1\n");
  return status;
}

/* Reads the options; how many words they are, or -1. */
static int load_read(load_options *options, int argc, char **argv) {
  int at = 1;
  for (size_t i = 0; i < LOAD_WORDS; i++) {
    *load_field(options, i) = load_words[i].fallback;
  }
  while (at < argc && strncmp(argv[at], "--", 2) == 0) {
    char *end = NULL;
    size_t word = 0;
    if (strcmp(argv[at], "--break") == 0) {
      options->breaks = true;
      at++;
      continue;
    }
    while (word < LOAD_WORDS && strcmp(argv[at], load_words[word].name) != 0) {
      word++;
    }
    if (word == LOAD_WORDS || at + 1 == argc) {
      return -1;
    }
    double value = strtod(argv[at + 1], &end);
    if (*end != '\0' || !(value >= load_words[word].low && value <= load_words[word].high)) {
      return -1;
    }
    *load_field(options, word) = value;
    at += 2;
  }
  return at - 1;
}

static bool load_read_way(const char *text, load_way *way) {
  way->fair = strcmp(text, "fair") == 0;
  way->notifies = way->fair || strcmp(text, "notify") == 0;
  if (way->notifies || strcmp(text, "polling") == 0) {
    text = "200/100";
  } else if (strcmp(text, "busy") == 0) {
    text = "1/0.5";
  }
  char end;
  return sscanf(text, "%lf/%lf%c", &way->delay_ms, &way->jitter_ms, &end) == 2 &&
         way->delay_ms > 0 && way->delay_ms < 1e7 && way->jitter_ms >= 0 && way->jitter_ms < 1e7;
}

/* Prints the configuration and the heads of the columns. */
static void load_print_header(load_options *options) {
  printf("load:");
  for (size_t i = 0; i < LOAD_WORDS; i++) {
    printf(" %s=%g", load_words[i].name + 2, *load_field(options, i));
  }
  printf("%s\n%-8s %8s %5s %15s %12s %12s %12s %8s %8s %8s %7s %7s %7s %8s %6s %8s  %8s %4s\n",
         options->breaks ? " break" : "", "way", "handed", "died", "p50/p99 ms", "least",
         "informed", "notified", "commands", "executed", "ask/s", "messages", "longest", "gave up",
         "split", "%", "split by", "regions", "two");
}

/* Returns whether two held a key at once. */
static bool load_simulate(const load_options *options, const char *name) {
  load c;
  load_way way;
  clock_t began = clock();
  (void)load_read_way(name, &way);
  load_open(&c, options, &way);
  load_run(&c);
  load_print(&c, name);
  fprintf(stderr, "%s: %llu events, %.1f s of processor time\n", name, (unsigned long long)c.events,
          (double)(clock() - began) / CLOCKS_PER_SEC);
  bool two = c.two > 0;
  load_close(&c);
  return two;
}

/* Returns the way with this index; NULL behind the last. */
static const char *load_next_way(char **given, unsigned index) {
  static const char *const ways[] = {"polling", "notify", "fair", "busy", NULL};
  return *given == NULL ? ways[index] : given[index];
}

int main(int argc, char **argv) {
  load_options options = {.breaks = false};
  load_way way;
  bool two = false;
  if (argc > 1 && strcmp(argv[1], "--help") == 0) {
    return load_usage(0);
  }
  int words = load_read(&options, argc, argv);
  if (words < 0) {
    return load_usage(2);
  }
  char **given = argv + words + 1;
  for (unsigned i = 0; *given != NULL && given[i] != NULL; i++) {
    if (!load_read_way(given[i], &way)) {
      return load_usage(2);
    }
  }
  load_print_header(&options);
  for (unsigned i = 0; load_next_way(given, i) != NULL; i++) {
    two = load_simulate(&options, load_next_way(given, i)) || two;
  }
  return two ? 1 : 0;
}
