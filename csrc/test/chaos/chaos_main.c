/*
 * The supervisor of a chaos run: servers, proxy, workers, phases. chaos_check.c judges its log
 * afterwards.
 *
 * SPDX-License-Identifier: MIT
 *
 *     chaos --directory DIRECTORY [--seconds N] [--seed N] [--workers N] [--pace MS] [--calm N]
 *           [--warm N] [--flat N] [--settle MS] [--only FAULT] [--control NAME] [--parent PID]
 *     chaos --controls
 *
 * With --parent it ends when that process, which must be its parent, ends.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos_proxy.h"
#include "chaos_run.h"

#define MS REDLOCK_MILLISECONDS
#define TURN_US (2 * MS)
/* A half-open connection is given up after 3 s, and a node tried again within 1 s. */
#define SETTLE_MS 4500
/* More than a slow machine needs; a control, which must be caught, waits for less. */
#define PROGRESS_US (60 * REDLOCK_SECONDS)
#define PROGRESS_CONTROL_US (6 * REDLOCK_SECONDS)
#define OVERTIME 3 /* times the time at most */
#define HOPELESS_US (60 * REDLOCK_SECONDS)
#define LEAVING_US (30 * REDLOCK_SECONDS)
#define SAMPLES 30
#define SAMPLES_PER_MEASURE 3
#define SAMPLE_GAP_US (100 * MS)
#define KEYS                                                                                       \
  "local found = {} for _, key in ipairs(redis.call('keys', '" CHAOS_PREFIX "*')) do "             \
  "if not string.find(key, ':redlock-', 1, true) then " /* no wait queue */                        \
  "found[#found + 1] = key .. ' ' .. tostring(redis.call('get', key)) end end "                    \
  "return table.concat(found, '\\n')"

/* ------------------------------------------------------------------------------------ workers */

unsigned chaos_held(const chaos_run *run) {
  unsigned held = 0;
  for (unsigned i = 0; i < run->settings.workers; i++) {
    held += atomic_load(&run->shared->slots[i].held);
  }
  return held;
}

void chaos_worker_start(chaos_run *run, unsigned index) {
  char slot[16];
  char generation[16];
  chaos_hand *hand = &run->hands[index];
  (void)snprintf(slot, sizeof slot, "%u", index);
  (void)snprintf(generation, sizeof generation, "%u", hand->generation);
  sigset_t all;
  sigset_t usual;
  pid_t parent = getpid();
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, &usual); /* For the child, until it has its handlers. */
  pid_t pid = fork();
  if (pid < 0) {
    chaos_fail("cannot fork");
  }
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
      (void)execl(run->worker_path, run->worker_path, run->shared_path, run->settings.directory,
                  slot, generation, (char *)NULL);
    }
    _exit(127);
  }
  (void)sigprocmask(SIG_SETMASK, &usual, NULL);
  hand->generation++;
  atomic_store(&run->shared->slots[index].held, 0);
  atomic_store(&run->shared->slots[index].fork_wanted, CHAOS_FORK_NONE);
  atomic_store(&run->shared->slots[index].pid, pid);
}

static void worker_log_end(chaos_run *run, unsigned index, int status, const char *expected) {
  chaos_log(run->log, "main died %u %u %d %s", index, run->hands[index].generation - 1,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), expected);
  atomic_store(&run->shared->slots[index].pid, 0);
  atomic_store(&run->shared->slots[index].held, 0);
}

void chaos_worker_kill(chaos_run *run, unsigned index) {
  int status = 0;
  pid_t pid = atomic_load(&run->shared->slots[index].pid);
  if (pid > 0) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    worker_log_end(run, index, status, "expected");
  }
}

/* Workers that have ended without being asked to are put down, and replaced. */
static void workers_watch(chaos_run *run, bool leaving) {
  for (unsigned i = 0; i < run->settings.workers; i++) {
    int status = 0;
    pid_t pid = atomic_load(&run->shared->slots[i].pid);
    if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
      worker_log_end(run, i, status, leaving && status == 0 ? "expected" : "unexpected");
      if (!leaving) {
        chaos_worker_start(run, i);
      }
    }
  }
}

static unsigned count_descriptors(pid_t pid) {
  char path[64];
  unsigned count = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *directory = opendir(path);
  if (directory != NULL) {
    while (readdir(directory) != NULL) {
      count++;
    }
    (void)closedir(directory);
  }
  return count < 2 ? 0 : count - 2;
}

static void workers_measure(chaos_run *run) {
  for (unsigned i = 0; i < run->settings.workers; i++) {
    char path[64];
    unsigned long total = 0;
    unsigned long resident = 0;
    pid_t pid = atomic_load(&run->shared->slots[i].pid);
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "r") : NULL;
    if (file == NULL) {
      continue;
    }
    if (fscanf(file, "%lu %lu", &total, &resident) == 2) {
      chaos_log(run->log, "main memory %u %u %llu %lu %u %s", i, run->hands[i].generation - 1,
                (ull)redlock_now(), resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024,
                count_descriptors(pid), chaos_phase_names[atomic_load(&run->shared->phase)]);
    }
    (void)fclose(file);
  }
}

/* -------------------------------------------------------------------------------------- turns */

/*
 * One turn: waits a little, then does the due work. Logs a delay of this process, because calls may
 * have the same.
 */
static void run_turn(chaos_run *run, bool leaving) {
  redlock_time before_us = redlock_now();
  chaos_pause(TURN_US);
  redlock_time now_us = redlock_now();
  if (now_us > before_us + 100 * MS) {
    chaos_log(run->log, "main late %llu %llu", (ull)before_us, (ull)now_us);
  }
  chaos_faults_turn(run, now_us);
  workers_watch(run, leaving);
  if (now_us >= run->next_sample_us) {
    workers_measure(run);
    run->next_sample_us = now_us + REDLOCK_SECONDS;
  }
}

static void run_until(chaos_run *run, redlock_time end_us) {
  while (redlock_now() < end_us) {
    run_turn(run, false);
  }
}

static void run_phase(chaos_run *run, chaos_phase phase) {
  atomic_store(&run->shared->phase, phase);
  chaos_log(run->log, "main phase %s %llu", chaos_phase_names[phase], (ull)redlock_now());
}

/* Puts down all keys of all nodes; returns how many. */
static unsigned run_look_at_keys(chaos_run *run) {
  unsigned count = 0;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    const char *keys = chaos_farm_eval(&run->farm, i, KEYS);
    unsigned long long now_us = redlock_now();
    while (keys != NULL && strncmp(keys, CHAOS_PREFIX, strlen(CHAOS_PREFIX)) == 0) {
      unsigned resource = (unsigned)(keys[strlen(CHAOS_PREFIX)] - 'a');
      const char *token = strchr(keys, ' ') + 1;
      chaos_log(run->log, "main key %llu %u %u %.*s", now_us, i, resource,
                (int)strcspn(token, "\r\n"), token);
      count++;
      keys = token + strcspn(token, "\n");
      keys += *keys == '\n';
    }
  }
  return count;
}

static redlock_time run_horizon(const chaos_run *run) {
  redlock_time horizon_us = redlock_now() + CHAOS_KEY_LIFE_US;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    horizon_us = run->nodes[i].horizon_us > horizon_us ? run->nodes[i].horizon_us : horizon_us;
  }
  return horizon_us;
}

static bool run_all_acquired(const chaos_run *run, const uint64_t *before) {
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    if (atomic_load(&run->shared->acquired[i]) == before[i]) {
      return false;
    }
  }
  return true;
}

/*
 * Ends the faults. Every resource must be acquired, and once everything has settled the keys are
 * checked.
 */
static void run_calm(chaos_run *run) {
  uint64_t before[CHAOS_RESOURCES];
  run->calm = true;
  redlock_time hopeless_us = redlock_now() + HOPELESS_US;
  while (chaos_faults_active(run)) {
    run_turn(run, false);
    if (redlock_now() > hopeless_us) {
      chaos_fail("a fault does not come to its end");
    }
  }
  if (run->settings.control != NULL && run->settings.control->at_the_end != NULL) {
    run->settings.control->at_the_end(run);
  }
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    before[i] = atomic_load(&run->shared->acquired[i]);
  }
  /* The leases of now end before the next faults. */
  atomic_store(&run->shared->lock_delay_us,
               atomic_load(&run->shared->lock_delay_us) == 0 ? CHAOS_LOCK_DELAY_US : 0);
  run_phase(run, CHAOS_SETTLING);
  redlock_time now_us = redlock_now();
  redlock_time horizon_us = run_horizon(run);
  redlock_time settled_us = now_us + run->settings.settle_ms * MS;
  redlock_time give_up_us =
      horizon_us + (run->settings.control == NULL ? PROGRESS_US : PROGRESS_CONTROL_US);
  chaos_log(run->log, "main bound %llu %llu", (ull)now_us, (ull)give_up_us);
  run_until(run, settled_us > horizon_us ? settled_us : horizon_us);
  while (!run_all_acquired(run, before) && redlock_now() < give_up_us) {
    run_turn(run, false);
  }
  run_phase(run, CHAOS_SETTLED);
  for (unsigned i = 0; i < SAMPLES; i++) {
    (void)run_look_at_keys(run);
    if (i % SAMPLES_PER_MEASURE == 0) {
      workers_measure(run);
    }
    run_until(run, redlock_now() + SAMPLE_GAP_US);
  }
}

/* Workers end in an orderly way; the keys of those that were killed have run out long ago. */
static void run_leave(chaos_run *run) {
  unsigned left;
  run_phase(run, CHAOS_ENDING);
  atomic_store(&run->shared->quit, true);
  redlock_time give_up_us = redlock_now() + LEAVING_US;
  do {
    run_turn(run, true);
    left = 0;
    for (unsigned i = 0; i < run->settings.workers; i++) {
      left += atomic_load(&run->shared->slots[i].pid) > 0;
    }
  } while (left > 0 && redlock_now() < give_up_us);
  for (unsigned i = 0; i < run->settings.workers; i++) {
    pid_t pid = atomic_load(&run->shared->slots[i].pid);
    if (pid > 0) {
      (void)kill(pid, SIGKILL);
      (void)waitpid(pid, NULL, 0);
      worker_log_end(run, i, 0, "hung");
    }
  }
  redlock_time expired_us = redlock_now();
  redlock_time horizon_us = run_horizon(run);
  while (run_look_at_keys(run) > 0 && redlock_now() < horizon_us) {
    chaos_pause(100 * MS);
  }
  chaos_log(run->log, "main empty %llu %u", (ull)(redlock_now() - expired_us),
            run_look_at_keys(run));
}

/* -------------------------------------------------------------------------------------- phases */

static void run_faults(chaos_run *run, redlock_time end_us) {
  const chaos_control *control = run->settings.control;
  run->calm = false;
  run_phase(run, CHAOS_FAULTS);
  while (redlock_now() < end_us && !(run->overtime && !chaos_need_missing(run, NULL))) {
    if (control != NULL && control->breaks != NULL && chaos_held(run) > 0) {
      control->breaks(run);
      run_until(run, redlock_now() + 300 * MS);
    }
    run_turn(run, false);
  }
}

/*
 * Runs the phases. On a busy machine an event that must occur may still be missing at the end: then
 * the run goes on.
 */
static void run_all(chaos_run *run) {
  unsigned rounds = 0;
  redlock_time began_us = redlock_now();
  redlock_time end_us = began_us + run->settings.seconds * REDLOCK_SECONDS;
  redlock_time last_us = began_us + OVERTIME * run->settings.seconds * REDLOCK_SECONDS;
  chaos_need_log(run);
  chaos_log(run->log, "main set seed %llu", (ull)run->settings.seed);
  chaos_log(run->log, "main set workers %u", run->settings.workers);
  chaos_log(run->log, "main set resources %d", CHAOS_RESOURCES);
  chaos_log(run->log, "main set veterans %u", run->shared->veterans);
  chaos_log(run->log, "main set flat-from %llu",
            (ull)(began_us + run->settings.flat_seconds * REDLOCK_SECONDS));
  chaos_log(run->log, "main set began %llu", (ull)began_us);
  run_phase(run, CHAOS_WARMING);
  run_until(run, began_us + run->settings.warm_seconds * REDLOCK_SECONDS);
  do {
    redlock_time calm_us = redlock_now() + run->settings.calm_seconds * REDLOCK_SECONDS;
    redlock_time until_us = run->overtime ? last_us : end_us;
    run_faults(run, calm_us < until_us ? calm_us : until_us);
    run_calm(run);
    rounds += run->overtime;
    run->overtime = redlock_now() >= end_us;
  } while (!run->overtime || (redlock_now() < last_us && chaos_need_missing(run, NULL)));
  run_leave(run);
  chaos_need_log_counts(run);
  chaos_log(run->log, "main count rounds-of-overtime %u", rounds);
  chaos_log(run->log, "main set ended %llu", (ull)redlock_now());
}

static void run_open(chaos_run *run, const char *program) {
  char shim[256];
  const chaos_control *control = run->settings.control;
  uint64_t seed = run->settings.seed;
  int length = (int)(strrchr(program, '/') == NULL ? 0 : strrchr(program, '/') - program + 1);
  (void)snprintf(run->worker_path, sizeof run->worker_path, "%.*schaos_worker", length, program);
  (void)snprintf(shim, sizeof shim, "%.*schaos_clockshim.so", length, program);
  char *absolute = realpath(shim, NULL);
  if (absolute == NULL || access(run->worker_path, X_OK) != 0) {
    chaos_fail("%s and %s are not there", run->worker_path, shim);
  }
  (void)snprintf(run->shared_path, sizeof run->shared_path, "%s/shared", run->settings.directory);
  sim_random_seed(&run->random, &seed);
  run->log = chaos_log_open(run->settings.directory, "main");
  run->shared = chaos_share(run->shared_path, true);
  run->shared->seed = run->settings.seed;
  run->shared->workers = run->settings.workers;
  run->shared->veterans = (run->settings.workers + 1) / 2;
  run->shared->pace_us = run->settings.pace_ms * MS;
  run->shared->misdeed = control == NULL ? CHAOS_HONEST : (int)control->misdeed;
  atomic_store(&run->shared->lock_delay_us, CHAOS_LOCK_DELAY_US);
  run->shared->longer_holds = control != NULL && control->longer_holds;
  if (!chaos_faults_deal(run, run->settings.only)) {
    chaos_fail("%s: there is no such fault", run->settings.only);
  }
  if (control != NULL) {
    run->deck_count = 0;
  }
  run->impaired_max = (CHAOS_NODES - 1) / 2;
  chaos_farm_open(&run->farm, absolute);
  chaos_farm_start(&run->farm, control != NULL && control->volatile_nodes ? 0 : 0x0b);
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    chaos_gate *gate = &run->shared->gates[i];
    gate->server_port = run->farm.servers[i].port;
    gate->port = i % 2 == 0 ? -1 : 0;
  }
  run->proxy = chaos_proxy_start(run->shared);
  for (unsigned i = 0; i < run->settings.workers; i++) {
    chaos_worker_start(run, i);
  }
}

static void run_close(chaos_run *run) {
  (void)kill(run->proxy, SIGKILL);
  (void)waitpid(run->proxy, NULL, 0);
  chaos_farm_close(&run->farm);
  (void)unlink(run->shared_path);
}

/* --------------------------------------------------------------------------------------- usage */

static void usage(void) {
  (void)fputs(
      "usage: chaos --directory DIRECTORY [--seconds N] [--seed N] [--workers N] [--pace MS]\n"
      "             [--calm SECONDS] [--warm SECONDS] [--flat SECONDS] [--settle MS]\n"
      "             [--only FAULT] [--control NAME] [--parent PID]\n"
      "       chaos --controls\n",
      stderr);
  exit(2);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
    (void)fprintf(stderr, "chaos: %s: a number from %llu to %llu is wanted\n", text, (ull)least,
                  (ull)most);
    usage();
  }
  return value;
}

static void read_argument(chaos_settings *settings, const char *name, const char *value) {
  const struct {
    const char *name;
    unsigned *field;
    unsigned least;
    unsigned most;
  } numbers[] = {{"--seconds", &settings->seconds, 1, 1000000},
                 {"--workers", &settings->workers, 2, CHAOS_WORKERS_MAX},
                 {"--pace", &settings->pace_ms, 1, 100000},
                 {"--calm", &settings->calm_seconds, 1, 1000000},
                 {"--warm", &settings->warm_seconds, 1, 1000000},
                 {"--flat", &settings->flat_seconds, 0, 1000000},
                 {"--settle", &settings->settle_ms, 0, 100000},
                 {"--parent", &settings->parent, 1, INT_MAX}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (strcmp(name, numbers[i].name) == 0) {
      *numbers[i].field = (unsigned)number(value, numbers[i].least, numbers[i].most);
      return;
    }
  }
  if (strcmp(name, "--directory") == 0) {
    settings->directory = value;
  } else if (strcmp(name, "--seed") == 0) {
    settings->seed = number(value, 0, UINT64_MAX);
  } else if (strcmp(name, "--only") == 0) {
    settings->only = value;
  } else if (strcmp(name, "--control") == 0) {
    settings->control = chaos_control_named(value);
    if (settings->control == NULL) {
      (void)fprintf(stderr, "chaos: %s: there is no such control\n", value);
      usage();
    }
  } else {
    usage();
  }
}

int main(int count, char **arguments) {
  static chaos_run run = {.settings = {.seconds = 60,
                                       .calm_seconds = 1000000,
                                       .warm_seconds = 2,
                                       .flat_seconds = 5,
                                       .settle_ms = SETTLE_MS,
                                       .workers = 8,
                                       .pace_ms = 10,
                                       .seed = 1}};
  if (count == 2 && strcmp(arguments[1], "--controls") == 0) {
    for (const chaos_control *control = chaos_controls; control->name != NULL; control++) {
      (void)printf("%s\n", control->name);
    }
    return 0;
  }
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) {
      usage();
    }
    read_argument(&run.settings, arguments[i], arguments[i + 1]);
  }
  if (run.settings.directory == NULL) {
    usage();
  }
  if (run.settings.parent != 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)run.settings.parent) {
      chaos_fail("process %u is not the one that started this one, or has ended",
                 run.settings.parent);
    }
  }
  (void)signal(SIGPIPE, SIG_IGN);
  run_open(&run, arguments[0]);
  run_all(&run);
  run_close(&run);
  return 0;
}
