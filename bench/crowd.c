/*
 * A crowd past this machine: thousands of clients in three regions that want a hundred keys, in virtual time.
 *
 *     crowd [--option value ...] [way ...]                       (crowd --help tells the options)
 *
 * Each client is the real core (csrc/core) with one lock. Only the clock, the network and the five nodes are played
 * here. The same seed gives the same figures. A client wants its key, waits, holds it, releases it, pauses, and wants
 * it again. Some holders stop instead of releasing: their keys run out, and other clients come in their place.
 *
 * The ways are what a client does after an attempt that failed:
 *   calls     nodes call the first who waits, as the library's default has it (csrc/core/wait/rl_notify.c)
 *   fair      likewise, and nobody overtakes those who wait
 *   polling   without calls it tries again after 200 +- 100 ms
 *   busy      after 1 +- 0.5 ms
 *   50/25     after 50 +- 25 ms, and so on
 *
 * Distances, there and back: 1 ms within a region, 30 ms between the first and the second, 80 ms from either to the
 * third. The nodes are in the regions 0 0 1 1 2, a third of each key's clients in each region. Packets of a connection
 * keep their order, so one that is late holds up those behind it. What is sent across the border of a region that is
 * cut off arrives when it is back. A node answers at once, however much it is asked: |ask/s| tells whether a server
 * could do that.
 *
 * What is printed, a line for each way:
 *   handed      how often a key went to another client than before, while somebody waited for it
 *   p50, p99    in ms, from the beginning of the release (after a death: since so many keys have run out that a
 *               majority of the nodes is free) until the next owner knows that it has the lock
 *   least       what the distances allow for the same hand-offs. The release of an owner in region R is at node n
 *               after way(R,n). The next owner, in region S, knows everything in advance and has its SET arrive just
 *               then; it has the answer after way(n,S). The quorum-th smallest of way(R,n) + way(n,S), and after a
 *               death of way(n,S). Only an owner whose key a mere quorum had can be followed sooner
 *   told        the same for one who learns of the release at the moment in which it begins, wherever it is, and
 *               only then sends the SET, which goes there and back: way(S,n) + max(way(S,n), way(R,n))
 *   called      the same for one who is called by the nodes, and sends the SET when a majority has: the quorum-th smallest of
 *               way(R,n) + way(n,S), and the quorum-th smallest of 2 way(n,S); after a death only that
 *   commands    that a node was sent for each hand-off, without handshakes
 *   executed    the same with what its scripts have executed: what INFO commandstats counts
 *   ask/s       commands a second to one node
 *   calls       that a node has published for each hand-off
 *   longest     wait in s, of those who still wait at the end, too
 *   gave up     of the waits that have ended, in %: a run that is not much longer than --wait tells little
 *   split       attempts that failed while nobody had a majority; and in % of all that failed
 *   split by    of these: by calls, for some nodes had called the client, and some another one
 *   regions     of which clients the leases were, in %
 *   two         how often two held a key at once: it must be 0, or the program exits with 1
 *
 * SPDX-License-Identifier: MIT
 */
#include "crowd.h"

#include <math.h>
#include <stddef.h>
#include <time.h>

#define CROWD_START_US REDLOCK_SECONDS
#define CROWD_COME_US REDLOCK_SECONDS /* in which all clients come */

void *crowd_allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) {
    bench_die("crowd: no memory");
  }
  return memory;
}

redlock_duration crowd_ms(double ms) {
  return (redlock_duration)llround(ms * (double)REDLOCK_MILLISECONDS);
}

/* ------------------------------------------------------------------------------------------ run */

static void crowd_seed(sim_random *random, double seed, uint64_t stream) {
  uint64_t state = (uint64_t)seed * 0x2545f4914f6cdd1du + stream;
  sim_random_seed(random, &state);
}

static void crowd_open(crowd *c, const crowd_options *options, const crowd_way *way) {
  unsigned clients = (unsigned)options->clients, keys = (unsigned)options->keys;
  size_t places = 4, channels = 64;
  memset(c, 0, sizeof *c);
  c->options = options;
  c->now_us = CROWD_START_US;
  c->end_us = c->now_us + crowd_ms(options->seconds * 1000);
  c->cut_from_us = c->now_us + crowd_ms(options->seconds * 1000 / 3);
  c->cut_to_us = c->cut_from_us + crowd_ms(options->cut_s * 1000);
  crowd_seed(&c->network, options->seed, 1);
  crowd_seed(&c->entropy, options->seed, 2);
  crowd_seed(&c->deaths, options->seed, 3);
  crowd_measure_distances(c);
  rl_options_default(&c->lock_options);
  c->calls = way->calls;
  c->lock_options.fair = way->fair ? REDLOCK_YES : REDLOCK_NO;
  c->lock_options.poll_interval_us = crowd_ms(options->slow_ms);
  c->lock_options.ttl_us = crowd_ms(options->ttl_ms);
  c->lock_options.wait_us = crowd_ms(options->wait_s * 1000);
  c->lock_options.retry_delay_us = crowd_ms(way->delay_ms);
  c->lock_options.retry_jitter_us = crowd_ms(way->jitter_ms);
  c->lock_options.auto_extend = options->hold_ms > options->ttl_ms / 3 ? REDLOCK_YES : REDLOCK_NO;
  for (; places < 2 * (size_t)keys; places *= 2) {
  }
  for (; channels < 4 * (size_t)clients; channels *= 2) {
  }
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    c->nodes[n].stored = crowd_allocate(places, sizeof *c->nodes[n].stored);
    c->nodes[n].mask = places - 1;
    c->nodes[n].index = n;
    c->nodes[n].crowd = c;
    if (c->calls) {
      c->nodes[n].subscribers = crowd_allocate(channels, sizeof *c->nodes[n].subscribers);
      c->nodes[n].subscriber_mask = channels - 1;
    }
    c->nodes[n].breaks = options->breaks;
  }
  c->keys = crowd_allocate(keys, sizeof *c->keys);
  for (unsigned k = 0; k < keys; k++) {
    (void)snprintf(c->keys[k].name, sizeof c->keys[k].name, "crowd:%u", k);
    for (unsigned n = 0; n < CROWD_NODES; n++) {
      c->keys[k].places[n] = node_place(&c->nodes[n], c->keys[k].name, strlen(c->keys[k].name));
    }
  }
  c->clients = crowd_allocate(clients, sizeof *c->clients);
  c->called = crowd_allocate(clients, sizeof *c->called);
  for (unsigned i = 0; i < clients; i++) {
    crowd_client *client = &c->clients[i];
    client->wake = (crowd_event){.kind = CROWD_WAKE, .client = i};
    client->key = i % keys;
    client->region = (i / keys + client->key) % CROWD_REGIONS; /* of each key's clients a third */
    client_start(c, client, sim_below(&c->network, CROWD_COME_US));
  }
}

static void crowd_happen(crowd *c, crowd_event *event) {
  switch (event->kind) {
  case CROWD_COMMANDS:
  case CROWD_HUNG_UP:
    node_hear(c, event);
    break;
  case CROWD_WAKE:
    client_wake(c, &c->clients[event->client]);
    return; /* It is part of the client. */
  default:
    client_hear(c, event);
    break;
  }
  free(event);
}

static void crowd_run(crowd *c) {
  while (c->heap_count > 0 && c->heap[0].at_us < c->end_us) {
    c->now_us = c->heap[0].at_us;
    while (c->heap_count > 0 && c->heap[0].at_us == c->now_us) {
      crowd_happen(c, crowd_pop(c).event);
      c->events++;
    }
    for (size_t i = 0; i < c->called_count; i++) {
      c->called[i]->called = false;
      client_turn(c, c->called[i]);
    }
    c->called_count = 0;
  }
}

static void crowd_close(crowd *c) {
  for (unsigned i = 0; i < (unsigned)c->options->clients; i++) {
    client_end(c, &c->clients[i]);
  }
  while (c->heap_count > 0) {
    crowd_event *event = c->heap[--c->heap_count].event;
    if (event->kind != CROWD_WAKE) {
      free(event);
    }
  }
  for (unsigned n = 0; n < CROWD_NODES; n++) {
    for (size_t i = 0; i <= c->nodes[n].mask; i++) {
      free(c->nodes[n].stored[i].queue);
    }
    free(c->nodes[n].stored);
    free(c->nodes[n].subscribers);
  }
  free(c->heap);
  free(c->keys);
  free(c->clients);
  free(c->called);
  free(c->handed.us);
  free(c->least.us);
  free(c->told.us);
  free(c->called_least.us);
}

/* --------------------------------------------------------------------------------- command line */

static const struct crowd_word {
  const char *name, *help;
  size_t offset;
  double fallback, low, high;
} crowd_words[] = {
    {"--clients", "how many", offsetof(crowd_options, clients), 10000, 1, 1000000},
    {"--keys", "how many", offsetof(crowd_options, keys), 100, 1, 1000000},
    {"--hold", "ms; automatic extension from a third of the ttl on",
     offsetof(crowd_options, hold_ms), 20, 0, 1e7},
    {"--pause", "ms, before the key is wanted again", offsetof(crowd_options, pause_ms), 100, 0,
     1e7},
    {"--seconds", "of virtual time", offsetof(crowd_options, seconds), 60, 1, 1e5},
    {"--wait", "s, after which a client gives up", offsetof(crowd_options, wait_s), 60, 1, 1e5},
    {"--ttl", "ms", offsetof(crowd_options, ttl_ms), 10000, 100, 1e7},
    {"--seed", "a whole number", offsetof(crowd_options, seed), 1, 0, 1e15},
    {"--deaths", "% of the holders", offsetof(crowd_options, deaths), 0.1, 0, 100},
    {"--replaced", "s after the death; 0 for never", offsetof(crowd_options, replaced_s), 1, 0,
     1e5},
    {"--cut", "s that a region is cut off, from a third of the time on",
     offsetof(crowd_options, cut_s), 5, 0, 1e5},
    {"--cut-region", "0, 1 or 2", offsetof(crowd_options, cut_region), 0, 0, 2},
    {"--late", "% of the packets", offsetof(crowd_options, late), 1, 0, 100},
    {"--late-by", "ms", offsetof(crowd_options, late_ms), 200, 0, 1e5},
    {"--slow", "ms between looks of those who wait for a call", offsetof(crowd_options, slow_ms),
     2000, 1, 1e7},
};
#define CROWD_WORDS (sizeof crowd_words / sizeof crowd_words[0])

static double *crowd_field(crowd_options *options, size_t word) {
  return (double *)(void *)((char *)options + crowd_words[word].offset);
}

static int crowd_usage(int status) {
  FILE *file = status == 0 ? stdout : stderr;
  fprintf(
      file,
      "usage: crowd [--option value ...] [polling | busy | calls | fair | <delay ms>/<jitter ms> ...]\n");
  for (size_t i = 0; i < CROWD_WORDS; i++) {
    fprintf(file, "  %-13s %s [%g]\n", crowd_words[i].name, crowd_words[i].help,
            crowd_words[i].fallback);
  }
  fprintf(file,
          "  --break       nodes ignore NX: two must be seen to hold a key, and the status be 1\n");
  return status;
}

/* Reads the options; how many words they are, or -1. */
static int crowd_read(crowd_options *options, int argc, char **argv) {
  int at = 1;
  for (size_t i = 0; i < CROWD_WORDS; i++) {
    *crowd_field(options, i) = crowd_words[i].fallback;
  }
  while (at < argc && strncmp(argv[at], "--", 2) == 0) {
    char *end = NULL;
    size_t word = 0;
    if (strcmp(argv[at], "--break") == 0) {
      options->breaks = true;
      at++;
      continue;
    }
    while (word < CROWD_WORDS && strcmp(argv[at], crowd_words[word].name) != 0) {
      word++;
    }
    if (word == CROWD_WORDS || at + 1 == argc) {
      return -1;
    }
    double value = strtod(argv[at + 1], &end);
    if (*end != '\0' || !(value >= crowd_words[word].low && value <= crowd_words[word].high)) {
      return -1;
    }
    *crowd_field(options, word) = value;
    at += 2;
  }
  return at - 1;
}

static bool crowd_read_way(const char *text, crowd_way *way) {
  way->fair = strcmp(text, "fair") == 0;
  way->calls = way->fair || strcmp(text, "calls") == 0;
  if (way->calls || strcmp(text, "polling") == 0) {
    text = "200/100";
  } else if (strcmp(text, "busy") == 0) {
    text = "1/0.5";
  }
  char end;
  return sscanf(text, "%lf/%lf%c", &way->delay_ms, &way->jitter_ms, &end) == 2 &&
         way->delay_ms > 0 && way->delay_ms < 1e7 && way->jitter_ms >= 0 && way->jitter_ms < 1e7;
}

/* What was simulated, and what the columns are. */
static void crowd_print_header(crowd_options *options) {
  printf("crowd:");
  for (size_t i = 0; i < CROWD_WORDS; i++) {
    printf(" %s=%g", crowd_words[i].name + 2, *crowd_field(options, i));
  }
  printf("%s\n%-8s %8s %5s %15s %12s %12s %12s %8s %8s %8s %7s %7s %7s %8s %6s %8s  %8s %4s\n",
         options->breaks ? " break" : "", "way", "handed", "died", "p50/p99 ms", "least", "told",
         "called", "commands", "executed", "ask/s", "calls", "longest", "gave up", "split", "%",
         "split by", "regions", "two");
}

/* Returns whether two held a key at once. */
static bool crowd_simulate(const crowd_options *options, const char *name) {
  crowd c;
  crowd_way way;
  clock_t began = clock();
  (void)crowd_read_way(name, &way);
  crowd_open(&c, options, &way);
  crowd_run(&c);
  crowd_print(&c, name);
  fprintf(stderr, "%s: %llu events, %.1f s of processor time\n", name, (unsigned long long)c.events,
          (double)(clock() - began) / CLOCKS_PER_SEC);
  bool two = c.two > 0;
  crowd_close(&c);
  return two;
}

/* The way that comes after |index| others; NULL behind the last. */
static const char *crowd_next_way(char **given, unsigned index) {
  static const char *const ways[] = {"polling", "calls", "fair", "busy", NULL};
  return *given == NULL ? ways[index] : given[index];
}

int main(int argc, char **argv) {
  crowd_options options = {.breaks = false};
  crowd_way way;
  bool two = false;
  if (argc > 1 && strcmp(argv[1], "--help") == 0) {
    return crowd_usage(0);
  }
  int words = crowd_read(&options, argc, argv);
  if (words < 0) {
    return crowd_usage(2);
  }
  char **given = argv + words + 1;
  for (unsigned i = 0; *given != NULL && given[i] != NULL; i++) {
    if (!crowd_read_way(given[i], &way)) {
      return crowd_usage(2);
    }
  }
  crowd_print_header(&options);
  for (unsigned i = 0; crowd_next_way(given, i) != NULL; i++) {
    two = crowd_simulate(&options, crowd_next_way(given, i)) || two;
  }
  return two ? 1 : 0;
}
