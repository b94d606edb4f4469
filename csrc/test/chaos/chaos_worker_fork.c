/*
 * A worker's children, and the signals that it gets.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos_worker.h"
#include "witness_clock.h"

/* ---------------------------------------------------------------------------------- children */

/* The child takes a lock of its own, on connections of its own. */
static void child_locks(worker *self) {
  redlock_lock *lock;
  unsigned resource = (unsigned)sim_below(&self->random, CHAOS_RESOURCES);
  char name = (char)('a' + resource);
  redlock_options options = worker_draw_options(self);
  options.wait_us = REDLOCK_DURATION_NONE;
  if (redlock_lock_new(&lock, self->client, &name, 1, NULL) != REDLOCK_OK) {
    _exit(4);
  }
  (void)witness_clock_start();
  self->logged_us = redlock_now();
  worker_call call = worker_begin(self, "child-acquire", options.node_timeout_us);
  int result = redlock_lock_acquire(lock, &options, NULL);
  redlock_time from_us = redlock_now();
  redlock_time deadline_us = redlock_lock_deadline(lock);
  worker_end(self, &call, result);
  if (result != REDLOCK_OK || deadline_us == 0) {
    redlock_lock_free(lock);
    return;
  }
  const char *token = redlock_lock_token(lock);
  chaos_log(self->log, "w%u.%u hold %u %s %llu %llu", self->index, self->generation, resource,
            token, (ull)from_us, (ull)deadline_us);
  chaos_pause(sim_below(&self->random, 20 * REDLOCK_MILLISECONDS));
  chaos_log(self->log, "w%u.%u leave %u %s %llu", self->index, self->generation, resource, token,
            (ull)redlock_now());
  call = worker_begin(self, "child-release", options.node_timeout_us);
  worker_end(self, &call, redlock_lock_release(lock));
  redlock_lock_free(lock); /* Or freeing the client would not be its end. */
}

/* Status 0 if the child inherited no lease. */
static int child_calls(worker *self) {
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    redlock_lock *lock = self->locks[i];
    if (redlock_lock_remaining(lock) != 0 || redlock_lock_deadline(lock) != 0 ||
        redlock_lock_token(lock)[0] != '\0' || redlock_lock_result(lock) == REDLOCK_PENDING) {
      return 3;
    }
    if (redlock_lock_extend(lock, 0, NULL) != REDLOCK_E_NOT_HELD ||
        redlock_lock_release(lock) != REDLOCK_E_NOT_HELD) {
      return 3;
    }
  }
  child_locks(self);
  for (unsigned i = 0; i < CHAOS_RESOURCES; i++) {
    redlock_lock_free(self->locks[i]);
  }
  redlock_client_free(self->client);
  return 0;
}

void worker_fork(worker *self) {
  int wanted = atomic_load(&self->slot->fork_wanted);
  unsigned place = 0;
  while (place < WORKER_CHILDREN_MAX && self->children[place] != 0) {
    place++;
  }
  if (wanted == CHAOS_FORK_NONE || place == WORKER_CHILDREN_MAX ||
      atomic_load(&self->slot->held) == 0) {
    return;
  }
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) {
    return;
  }
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || wanted == CHAOS_FORK_EXIT) {
      _exit(0);
    }
    if (wanted == CHAOS_FORK_EXEC) {
      (void)execl(self->program, self->program, "--descriptors", (char *)NULL);
      _exit(5);
    }
    _exit(child_calls(self));
  }
  self->children[place] = pid;
  self->child_kinds[place] = (chaos_fork)wanted;
  atomic_fetch_add(&self->slot->forks[wanted], 1);
  atomic_store(&self->slot->fork_wanted, CHAOS_FORK_NONE);
}

unsigned worker_await_children(worker *self) {
  unsigned left = 0;
  for (unsigned i = 0; i < WORKER_CHILDREN_MAX; i++) {
    int status = 0;
    if (self->children[i] != 0 && waitpid(self->children[i], &status, WNOHANG) != 0) {
      chaos_log(self->log, "w%u.%u child %s %d", self->index, self->generation,
                chaos_fork_names[self->child_kinds[i]],
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      atomic_fetch_add(&self->shared->children[self->child_kinds[i]], 1);
      self->children[i] = 0;
    }
    left += self->children[i] != 0;
  }
  return left;
}

int worker_count_descriptors(void) {
  unsigned count = 0;
  DIR *directory = opendir("/proc/self/fd");
  if (directory == NULL) {
    return 4;
  }
  const struct dirent *entry;
  while ((entry = readdir(directory)) != NULL) {
    count += entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) > 2;
  }
  (void)closedir(directory);
  return count == 1 ? 0 : 3; /* The one is the directory's. */
}

/* ----------------------------------------------------------------------------------- signals */

static chaos_shared *signals_shared;

static void count_signal(int number, siginfo_t *info, void *context) {
  (void)context;
  if (info->si_code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
                            number == SIGILL || number == SIGTRAP || number == SIGSYS)) {
    (void)signal(number, SIG_DFL); /* Not sent, but earned: it comes again, and ends the worker. */
    return;
  }
  atomic_fetch_add(&signals_shared->signals[number], 1);
  if (number == SIGPIPE && info->si_pid == getpid()) {
    atomic_fetch_add(&signals_shared->own_signals, 1);
  }
}

void worker_catch_signals(chaos_shared *shared, bool restart) {
  struct sigaction action = {.sa_sigaction = count_signal,
                             .sa_flags = SA_SIGINFO | (restart ? SA_RESTART : 0)};
  signals_shared = shared;
  (void)sigemptyset(&action.sa_mask);
  for (int number = 1; number < CHAOS_SIGNALS; number++) {
    (void)sigaction(number, &action, NULL); /* Fails for those that cannot be caught. */
  }
  (void)sigprocmask(SIG_SETMASK, &action.sa_mask, NULL);
}
