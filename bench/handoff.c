/*
 * Contention for one key: processes acquire it, hold it for a while, release it, and pause.
 *
 *     handoff <way> <processes> <seconds> <hold ms> <pause ms> <host:port> ...
 *
 * The ways:
 *   notify    the library with its defaults: the nodes notify waiters
 *   fair      the same with the option fair
 *   lossy     as notify, with relays that lose every tenth message (lossy.c)
 *   relayed   as notify, with relays that lose none
 *   polling   the library without notifications: it retries after 100 to 300 ms
 *   busy      the library without notifications: it retries after 0.5 to 1.5 ms
 *   killed    as notify, with crashed holders: the key of another client lives for 300 ms, and one
 *             process waits for it. Prints the time from the expiry to the grant (p50, p99,
 *             longest)
 *   bare      no library: SET NX PX to all nodes at once; a client that fails waits for a message
 *             of the release on any node, or for 2 to 20 ms
 *
 * Prints one line: the number of grants, and of those to another process than before. Of the
 * latter: the time from the start of the release to the grant (p50, p99), and the time of waiting
 * (p50, p99, longest). Then Jain's index of the grants per process, and the number of times that
 * two processes held the key (0).
 */
#include <hiredis.h>
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

#define HANDOFF_PROCESSES_MAX 256
#define HANDOFF_SAMPLES_MAX 100000
#define HANDOFF_NODES_MAX 15
#define HANDOFF_TTL_MS 10000
#define HANDOFF_LIFE_MS 300 /* of the key of a crashed holder */
#define HANDOFF_PATIENCE_MS 30000

typedef struct handoff_share {
  atomic_uint holders;
  atomic_uint overlaps;
  atomic_int last;        /* process that released the key last */
  atomic_ullong begun_ns; /* its release */
  atomic_bool starts, ends;
  atomic_uint ready;
  atomic_uint handed, waited; /* samples */
  uint64_t handed_ns[HANDOFF_SAMPLES_MAX];
  uint64_t waited_ns[HANDOFF_SAMPLES_MAX];
  unsigned had[HANDOFF_PROCESSES_MAX];
  unsigned failed[HANDOFF_PROCESSES_MAX];
} handoff_share;

typedef struct handoff {
  handoff_share *share;
  int self;
  const char *way, *key;
  char **addresses;
  int nodes;
  redlock_lock *lock;
  redisContext *commands[HANDOFF_NODES_MAX], *messages[HANDOFF_NODES_MAX];
  char token[41];
} handoff;

static uint64_t handoff_below(uint64_t bound) {
  uint64_t drawn = 0;

  if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
    bench_die("handoff: no random numbers");
  return drawn % bound;
}

static void handoff_sleep(uint64_t us) {
  struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

  nanosleep(&time, NULL);
}

/* -------------------------------------------------------------------------------- the library */

static void library_open(handoff *h) {
  char message[256];
  redlock_client *client;
  redlock_options options = {.ttl_us = HANDOFF_TTL_MS * REDLOCK_MILLISECONDS,
                             .wait_us = HANDOFF_PATIENCE_MS * REDLOCK_MILLISECONDS};
  redlock_settings settings;

  if (strcmp(h->way, "fair") == 0)
    options.fair = REDLOCK_YES;
  if (strcmp(h->way, "polling") == 0 || strcmp(h->way, "busy") == 0)
    options.notify = REDLOCK_NO;
  if (strcmp(h->way, "busy") == 0) {
    options.retry_delay_us = REDLOCK_MILLISECONDS;
    options.retry_jitter_us = REDLOCK_MILLISECONDS / 2;
  }
  memset(&settings, 0, sizeof settings);
  settings.options = &options;
  if (redlock_client_new(&client, &settings, message, sizeof message) != REDLOCK_OK)
    bench_die("handoff: %s", message);
  for (int i = 0; i < h->nodes; i++)
    if (redlock_client_add(client, h->addresses[i], message, sizeof message) != REDLOCK_OK)
      bench_die("handoff: %s", message);
  if (redlock_lock_new(&h->lock, client, h->key, strlen(h->key), NULL) != REDLOCK_OK)
    bench_die("handoff: no lock");
}

/* ----------------------------------------------------------------------------------- the bare */

static void bare_open(handoff *h) {
  for (int i = 0; i < h->nodes; i++) {
    char host[64];
    const char *colon = strrchr(h->addresses[i], ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - h->addresses[i]), h->addresses[i]);
    h->commands[i] = redisConnect(host, atoi(colon + 1));
    h->messages[i] = redisConnect(host, atoi(colon + 1));
    if (h->commands[i] == NULL || h->commands[i]->err || h->messages[i] == NULL ||
        h->messages[i]->err)
      bench_die("handoff: no connection to %s", h->addresses[i]);
    freeReplyObject(redisCommand(h->messages[i], "SUBSCRIBE %s:released", h->key));
  }
}

/* Reads the replies of all nodes. Returns the number of successes. */
static int bare_answers(handoff *h) {
  int well = 0;
  for (int i = 0; i < h->nodes; i++) {
    redisReply *reply = NULL;
    if (redisGetReply(h->commands[i], (void **)&reply) != REDIS_OK)
      bench_die("handoff: %s", h->commands[i]->errstr);
    well += reply->type == REDIS_REPLY_STATUS || reply->integer > 0;
    freeReplyObject(reply);
  }
  return well;
}

static void bare_release(handoff *h) {
  for (int i = 0; i < h->nodes; i++)
    redisAppendCommand(
        h->commands[i], "EVAL %s 2 %s %s:released %s",
        "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end redis.call('del',KEYS[1]) "
        "redis.call('publish',KEYS[2],'1') return 1",
        h->key, h->key, h->token);
  (void)bare_answers(h);
}

/* Until the first message, or for a while. */
static void bare_wait(handoff *h) {
  struct pollfd polled[HANDOFF_NODES_MAX];
  for (int i = 0; i < h->nodes; i++)
    polled[i] = (struct pollfd){.fd = h->messages[i]->fd, .events = POLLIN};
  (void)poll(polled, (nfds_t)h->nodes, (int)(2 + handoff_below(18)));
  for (int i = 0; i < h->nodes; i++) {
    void *reply = NULL;
    if ((polled[i].revents & POLLIN) != 0 && redisBufferRead(h->messages[i]) != REDIS_OK)
      bench_die("handoff: a subscription has ended");
    while (redisGetReplyFromReader(h->messages[i], &reply) == REDIS_OK && reply != NULL)
      freeReplyObject(reply);
  }
}

static bool bare_acquire(handoff *h) {
  uint64_t until_ns = bench_now_ns() + (uint64_t)HANDOFF_PATIENCE_MS * 1000000;
  while (bench_now_ns() < until_ns) {
    for (size_t i = 0; i < sizeof h->token - 1; i += 8)
      snprintf(h->token + i, 9, "%08x", (unsigned)handoff_below(UINT32_MAX));
    for (int i = 0; i < h->nodes; i++)
      redisAppendCommand(h->commands[i], "SET %s %s NX PX %d", h->key, h->token, HANDOFF_TTL_MS);
    if (bare_answers(h) > h->nodes / 2)
      return true;
    bare_release(h);
    bare_wait(h);
  }
  return false;
}

/* ---------------------------------------------------------------------------------- processes */

static void handoff_sample(atomic_uint *count, uint64_t *samples, uint64_t value) {
  unsigned at = atomic_fetch_add(count, 1);
  if (at < HANDOFF_SAMPLES_MAX)
    samples[at] = value;
}

static void handoff_work(handoff *h, uint64_t hold_us, uint64_t pause_us) {
  handoff_share *share = h->share;
  bool bare = strcmp(h->way, "bare") == 0;

  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (bare)
    bare_open(h);
  else
    library_open(h);
  atomic_fetch_add(&share->ready, 1);
  while (!share->starts)
    handoff_sleep(1000);
  while (!share->ends) {
    uint64_t wanted_ns = bench_now_ns();
    bool ok = bare ? bare_acquire(h) : redlock_lock_acquire(h->lock, NULL, NULL) == REDLOCK_OK;
    uint64_t had_ns = bench_now_ns();
    if (!ok) {
      share->failed[h->self]++;
      continue;
    }
    if (atomic_fetch_add(&share->holders, 1) != 0)
      atomic_fetch_add(&share->overlaps, 1);
    if (share->last >= 0 && share->last != h->self && wanted_ns < share->begun_ns)
      handoff_sample(&share->handed, share->handed_ns, had_ns - share->begun_ns);
    handoff_sample(&share->waited, share->waited_ns, had_ns - wanted_ns);
    share->had[h->self]++;
    handoff_sleep(hold_us);
    share->last = h->self;
    share->begun_ns = bench_now_ns();
    atomic_fetch_sub(&share->holders, 1);
    if (bare)
      bare_release(h);
    else
      (void)redlock_lock_release(h->lock);
    handoff_sleep(pause_us);
  }
  _exit(0);
}

/* ------------------------------------------------------------------------------------- figures */

static int compare(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

static double percentile_ms(const uint64_t *sorted, unsigned count, double fraction) {
  return count == 0 ? 0 : (double)sorted[(unsigned)(fraction * (count - 1))] / 1e6;
}

static void handoff_print(handoff_share *share, int processes, double seconds) {
  unsigned handed = share->handed < HANDOFF_SAMPLES_MAX ? share->handed : HANDOFF_SAMPLES_MAX;
  unsigned waited = share->waited < HANDOFF_SAMPLES_MAX ? share->waited : HANDOFF_SAMPLES_MAX;
  double sum = 0, squares = 0;
  unsigned failed = 0;

  for (int i = 0; i < processes; i++) {
    sum += share->had[i];
    squares += (double)share->had[i] * share->had[i];
    failed += share->failed[i];
  }
  qsort(share->handed_ns, handed, sizeof *share->handed_ns, compare);
  qsort(share->waited_ns, waited, sizeof *share->waited_ns, compare);
  printf(
      "had=%.0f rate=%.1f handed=%u handoff_p50=%.3f handoff_p99=%.3f wait_p50=%.1f wait_p99=%.1f "
      "wait_max=%.1f jain=%.3f failed=%u overlaps=%u\n",
      sum, sum / seconds, share->handed, percentile_ms(share->handed_ns, handed, 0.5),
      percentile_ms(share->handed_ns, handed, 0.99), percentile_ms(share->waited_ns, waited, 0.5),
      percentile_ms(share->waited_ns, waited, 0.99), percentile_ms(share->waited_ns, waited, 1),
      squares > 0 ? sum * sum / (processes * squares) : 0, failed, share->overlaps);
}

/* -------------------------------------------------------------------------------- the killed */

static void handoff_killed(handoff *h, double seconds) {
  handoff_share *share = h->share;
  uint64_t until_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);

  library_open(h);
  bare_open(h);
  while (bench_now_ns() < until_ns) {
    uint64_t ends_ns = bench_now_ns() + HANDOFF_LIFE_MS * 1000000;
    for (int i = 0; i < h->nodes; i++)
      redisAppendCommand(h->commands[i], "SET %s killed PX %d", h->key, HANDOFF_LIFE_MS);
    if (bare_answers(h) != h->nodes || redlock_lock_acquire(h->lock, NULL, NULL) != REDLOCK_OK)
      bench_die("handoff: %s", redlock_lock_message(h->lock));
    handoff_sample(&share->waited, share->waited_ns, bench_now_ns() - ends_ns);
    (void)redlock_lock_release(h->lock);
  }
  qsort(share->waited_ns, share->waited, sizeof *share->waited_ns, compare);
  printf("had=%u after_p50=%.1f after_p99=%.1f after_max=%.1f\n", share->waited,
         percentile_ms(share->waited_ns, share->waited, 0.5),
         percentile_ms(share->waited_ns, share->waited, 0.99),
         percentile_ms(share->waited_ns, share->waited, 1));
}

int main(int argc, char **argv) {
  char key[BENCH_NAME_SIZE];
  int processes = argc > 2 ? atoi(argv[2]) : 0;
  double seconds = argc > 3 ? atof(argv[3]) : 0;
  handoff_share *share =
      mmap(NULL, sizeof *share, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (argc < 7 || processes < 1 || processes > HANDOFF_PROCESSES_MAX || share == MAP_FAILED ||
      argc - 6 > HANDOFF_NODES_MAX)
    bench_die("usage: handoff <way> <processes> <seconds> <hold ms> <pause ms> <host:port> ...");
  share->last = -1;
  bench_name(key, sizeof key, 0);
  if (strcmp(argv[1], "killed") == 0) {
    handoff h = {
        .share = share, .way = argv[1], .key = key, .addresses = argv + 6, .nodes = argc - 6};
    handoff_killed(&h, seconds);
    return 0;
  }
  for (int i = 0; i < processes; i++) {
    pid_t pid = fork();
    if (pid < 0)
      bench_die("handoff: no process");
    if (pid == 0) {
      handoff h = {.share = share,
                   .self = i,
                   .way = argv[1],
                   .key = key,
                   .addresses = argv + 6,
                   .nodes = argc - 6};
      handoff_work(&h, (uint64_t)(atof(argv[4]) * 1000), (uint64_t)(atof(argv[5]) * 1000));
    }
  }
  while (share->ready < (unsigned)processes) {
    if (waitpid(-1, NULL, WNOHANG) > 0)
      bench_die("handoff: a process has ended");
    handoff_sleep(1000);
  }
  share->starts = true;
  handoff_sleep((uint64_t)(seconds * 1e6));
  handoff_print(share, processes, seconds);
  share->ends = true;
  while (waitpid(-1, NULL, 0) > 0) {
  }
  return 0;
}
