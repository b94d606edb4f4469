/*
 * Mixed waiters: how often each of them gets its lock.
 *
 *     mixed_waiters <seconds> <hold ms> <waiters> ... -- <host:port> ...
 *
 * Each <waiters> is a process with one client: "kind:keys", and with "+" several of them in that
 * client. Keys are separated by commas. A number and "x" before it makes so many processes. Kinds:
 *   plain     the defaults
 *   owner     each lock has an owner
 *   token     each acquire brings a token
 *   own       options of its own: another retry_delay for each waiter
 *   poll      notify = false
 *   busy      notify = false, and a retry_delay of 1 ms
 * For example 6xplain:a and 2xplain:a,b.
 *
 * Each waiter acquires, holds for <hold ms>, releases, and begins again. Prints for each kind the
 * number of locks per waiter, the longest wait in ms, and the share: the locks per waiter of the
 * kind by those of the first kind. Exits with 1 if two waiters held a key at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>
#include <redlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

#define MIX_WAITERS_MAX 2048
#define MIX_KEYS_MAX 26
#define MIX_TTL_MS 10000

typedef struct mix_waiter {
  char text[64]; /* kind:keys */
  unsigned had, failed;
  uint64_t longest_ns;
} mix_waiter;

typedef struct mix_share {
  atomic_bool starts, ends;
  atomic_uint ready, overlaps;
  atomic_int holders[MIX_KEYS_MAX];
  mix_waiter waiters[MIX_WAITERS_MAX];
} mix_share;

typedef struct mix_lock {
  redlock_lock *lock;
  mix_waiter *of;
  bool token;
  uint64_t since_ns, until_ns; /* of the wait; end of the hold, or 0 */
} mix_lock;

static mix_share *mix;

static void mix_check(int result, const char *what) {
  if (result != REDLOCK_OK)
    bench_die("mix: %s: %d", what, result);
}

static void mix_start(mix_lock *own) {
  char token[16];
  if (own->token) {
    if (getrandom(token, sizeof token, 0) != (ssize_t)sizeof token)
      bench_die("mix: no random numbers");
    mix_check(redlock_lock_give_token(own->lock, token, sizeof token), "token");
  }
  mix_check(redlock_lock_acquire_start(own->lock, NULL), "acquire");
}

static void mix_open(mix_lock *own, redlock_client *client, mix_waiter *of, unsigned index) {
  redlock_resource keys[MIX_KEYS_MAX];
  size_t count = 0;
  redlock_options options = {.ttl_us = MIX_TTL_MS * REDLOCK_MILLISECONDS,
                             .wait_us = 60 * REDLOCK_SECONDS};
  const char *names = strchr(of->text, ':');
  if (names == NULL)
    bench_die("mix: no keys in %s", of->text);
  for (const char *at = names + 1; *at != '\0'; at++)
    if (*at != ',')
      keys[count++] = (redlock_resource){at, 1};
  size_t length = (size_t)(names - of->text);
  bool busy = strncmp(of->text, "busy", length) == 0;
  if (busy || strncmp(of->text, "poll", length) == 0)
    options.notify = REDLOCK_NO;
  if (busy) {
    options.retry_delay_us = REDLOCK_MILLISECONDS;
    options.retry_jitter_us = REDLOCK_MILLISECONDS / 2;
  }
  if (strncmp(of->text, "own", length) == 0)
    options.retry_delay_us = (150 + index) * REDLOCK_MILLISECONDS;
  mix_check(redlock_lock_new_many(&own->lock, client, keys, count, &options), "lock");
  redlock_lock_set_data(own->lock, own);
  own->of = of;
  own->token = strncmp(of->text, "token", length) == 0;
  if (strncmp(of->text, "owner", length) == 0)
    mix_check(redlock_lock_set_owner(own->lock, &index, sizeof index), "owner");
}

/* Notes that the waiter holds its keys, or no longer. */
static void mix_hold(const mix_lock *own, bool begins) {
  for (const char *at = strchr(own->of->text, ':') + 1; *at != '\0'; at++) {
    if (*at >= 'a' && *at <= 'z') {
      int before = atomic_fetch_add(&mix->holders[*at - 'a'], begins ? 1 : -1);
      if (begins && before != 0)
        atomic_fetch_add(&mix->overlaps, 1);
    }
  }
}

static void mix_ended(mix_lock *own, uint64_t hold_ns) {
  uint64_t now_ns = bench_now_ns();
  if (redlock_lock_result(own->lock) != REDLOCK_OK) {
    own->of->failed++;
    mix_start(own);
    return;
  }
  uint64_t took_ns = now_ns - own->since_ns;
  own->of->longest_ns = took_ns > own->of->longest_ns ? took_ns : own->of->longest_ns;
  own->of->had++;
  mix_hold(own, true);
  own->until_ns = now_ns + hold_ns;
}

/* Ends the holds that are due. Returns the time to the next one in ms. */
static int mix_release(mix_lock *locks, unsigned count, uint64_t hold_ns) {
  uint64_t now_ns = bench_now_ns(), next_ns = now_ns + 1000000000;
  for (unsigned i = 0; i < count; i++) {
    mix_lock *own = &locks[i];
    if (own->until_ns != 0 && own->until_ns <= now_ns) {
      mix_hold(own, false);
      own->until_ns = 0;
      mix_check(redlock_lock_release_send(own->lock), "release");
      own->since_ns = bench_now_ns();
      mix_start(own);
      if (hold_ns == 0)
        next_ns = now_ns;
    } else if (own->until_ns != 0 && own->until_ns < next_ns) {
      next_ns = own->until_ns;
    }
  }
  return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns + 999999) / 1000000);
}

static void mix_run(mix_waiter *first, unsigned count, uint64_t hold_ns, char **addresses) {
  char message[256];
  redlock_client *client;
  mix_lock *locks = calloc(count, sizeof *locks);
  mix_check(redlock_client_new(&client, NULL, message, sizeof message), "client");
  for (; *addresses != NULL; addresses++)
    mix_check(redlock_client_add(client, *addresses, message, sizeof message), "node");
  for (unsigned i = 0; i < count; i++)
    mix_open(&locks[i], client, &first[i], (unsigned)(first - mix->waiters) + i);
  atomic_fetch_add(&mix->ready, 1);
  while (!mix->starts)
    usleep(1000);
  for (unsigned i = 0; i < count; i++) {
    locks[i].since_ns = bench_now_ns();
    mix_start(&locks[i]);
  }
  while (!mix->ends) {
    int left_ms = mix_release(locks, count, hold_ns),
        timeout_ms = redlock_client_timeout_ms(client);
    struct pollfd readable = {redlock_client_pollfd(client), POLLIN, 0};
    timeout_ms = timeout_ms < 0 || timeout_ms > left_ms ? left_ms : timeout_ms;
    (void)poll(&readable, 1, timeout_ms > 100 ? 100 : timeout_ms);
    (void)redlock_client_process(client, NULL, 0);
    for (redlock_lock *lock; (lock = redlock_client_next_ended(client)) != NULL;)
      mix_ended(redlock_lock_data(lock), hold_ns);
  }
  (void)redlock_client_close(client, 100 * REDLOCK_MILLISECONDS);
  _exit(0);
}

static void mix_report(unsigned count) {
  double base = 0;
  for (unsigned i = 0; i < count; i++) {
    mix_waiter *of = &mix->waiters[i];
    unsigned alike = 0, had = 0, failed = 0, least = of->had;
    uint64_t longest_ns = 0;
    if (of->text[0] == '\0')
      continue;
    for (unsigned k = count; k-- > i;) {
      mix_waiter *other = &mix->waiters[k];
      if (strcmp(other->text, of->text) == 0) {
        alike++;
        had += other->had;
        failed += other->failed;
        least = other->had < least ? other->had : least;
        longest_ns = other->longest_ns > longest_ns ? other->longest_ns : longest_ns;
        if (k != i)
          other->text[0] = '\0';
      }
    }
    base = base == 0 ? (double)had / alike : base;
    printf("%3u x %-14s %8.1f each, least %5u, failed %4u, longest %7.1f ms, share %.2f\n", alike,
           of->text, (double)had / alike, least, failed, (double)longest_ns / 1e6,
           had / base / alike);
  }
  printf("overlaps %u\n", atomic_load(&mix->overlaps));
}

int main(int argc, char **argv) {
  mix = mmap(NULL, sizeof *mix, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  unsigned count = 0, processes = 0;
  int nodes = 3;
  while (nodes < argc && strcmp(argv[nodes], "--") != 0)
    nodes++;
  if (mix == MAP_FAILED || nodes >= argc - 1)
    bench_die("usage: mixed_waiters <seconds> <hold ms> <waiters> ... -- <host:port> ...");
  uint64_t hold_ns = (uint64_t)(atof(argv[2]) * 1e6);
  for (int i = 3; i < nodes; i++) {
    char *kinds = argv[i];
    unsigned many = (unsigned)strtoul(argv[i], &kinds, 10);
    many = many == 0 ? 1 : many;
    kinds += *kinds == 'x';
    for (unsigned k = 0; k < many; k++) {
      unsigned first = count;
      char copy[4096], *rest = copy;
      (void)snprintf(copy, sizeof copy, "%s", kinds);
      for (char *kind; (kind = strsep(&rest, "+")) != NULL && count < MIX_WAITERS_MAX;)
        (void)snprintf(mix->waiters[count++].text, sizeof mix->waiters[0].text, "%s", kind);
      processes++;
      if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        mix_run(&mix->waiters[first], count - first, hold_ns, argv + nodes + 1);
      }
    }
  }
  while (mix->ready < processes)
    usleep(1000);
  mix->starts = true;
  usleep((unsigned)(atof(argv[1]) * 1e6));
  mix->ends = true;
  while (wait(NULL) > 0) {
  }
  mix_report(count);
  return atomic_load(&mix->overlaps) != 0;
}
