/*
 * redlock run: runs a command under a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 *   RUN-1. Acquire the lock. A signal ends this. With --hold-for, extend it to that time before the
 *          command begins: then the keys last even if this process is killed.
 *   RUN-2. Start the command.
 *   RUN-3. While the command runs, the lease extends itself. With --hold-for it would do so only
 *          near the end of that time, so extend it by the ttl meanwhile: no node shortens a key,
 *          and a loss is noticed.
 *   RUN-4. If the lease ends all the same, report that at once, and end the command and its
 *          descendants: by SIGTERM, and by SIGKILL after --kill-after. --strict does so before the
 *          deadline. --on-lost=warn lets them run.
 *   RUN-5. Pass a signal on to the command, unless it has got the signal as well.
 *   RUN-6. When the command has ended, release the lock, which keeps it until the time of
 *          --hold-for is over. If the command could not be started, free the lock at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "cli_child.h"
#include "cli_run.h"

/* Time that the sender of a signal has to signal each process of a group. */
#define CLI_RUN_GATHER_US (50 * REDLOCK_MILLISECONDS)
/* Pause between two attempts to kill, because processes may fork meanwhile. */
#define CLI_RUN_KILL_US (10 * REDLOCK_MILLISECONDS)
/* Time that killed processes have to disappear. */
#define CLI_RUN_DEAD_US (5 * REDLOCK_SECONDS)

static redlock_time cli_run_earlier(redlock_time a, redlock_time b) {
  return a < b ? a : b;
}

/* ---------------------------------------------------------------------------------------- RUN-1 */

/* Returns -1, or the exit status after a message. */
static int cli_run_acquire(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_duration least_us = settings->options.hold_at_least_us;
  int status = cli_take(settings, loop, lock, NULL, NULL);
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status >= 0 || least_us <= redlock_lock_remaining(lock)) {
    return status;
  }
  status = cli_await(settings, loop, lock, redlock_lock_extend_start(lock, least_us));
  return status < 0 ? cli_result(settings, lock) : status;
}

/* ---------------------------------------------------------------------------------------- RUN-2 */

/* Sets the environment of the command: no addresses, because they may contain passwords. */
static bool cli_run_set_environment(const cli_run_state *run) {
  char text[32], number[16];
  uint64_t fence = redlock_lock_fence(run->lock);
  unsigned slot = redlock_lock_slot(run->lock);
  (void)snprintf(number, sizeof number, "%u", slot);
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)fence);
  /* This process has one thread. NOLINTBEGIN(concurrency-mt-unsafe) */
  return unsetenv("REDLOCK_NODES") == 0 && unsetenv("REDLOCK_TLS_KEY_PASSWORD") == 0 &&
         setenv(CLI_MARK, run->command.mark, 1) == 0 &&
         setenv("REDLOCK_RESOURCE", run->settings->operands[1], 1) == 0 &&
         (slot != 0 ? setenv("REDLOCK_SLOT", number, 1) : unsetenv("REDLOCK_SLOT")) == 0 &&
         (fence != 0 ? setenv("REDLOCK_FENCE", text, 1) : unsetenv("REDLOCK_FENCE")) == 0;
  /* NOLINTEND(concurrency-mt-unsafe) */
}

/* Returns the signal that the command gets if this process is killed; 0: none. */
static int cli_run_death(const cli_settings *settings) {
  return settings->warn ? 0 : settings->strict ? SIGKILL : SIGTERM;
}

/* RUN-6. The command has not begun: another host may try. */
static void cli_run_free(const cli_run_state *run) {
  char text[REDLOCK_HANDOVER_MAX];
  if (run->settings->options.hold_at_least_us != 0 &&
      redlock_lock_detach(run->lock, text, sizeof text, NULL) == REDLOCK_OK) {
    cli_handover_release(run->loop->client, text);
  } else {
    (void)redlock_lock_release(run->lock);
  }
}

int cli_run_start(cli_run_state *run, const cli_settings *settings, cli_loop *loop,
                  redlock_lock *lock) {
  const char *word = settings->operands[2];
  *run = (cli_run_state){.settings = settings,
                         .loop = loop,
                         .lock = lock,
                         .kill_us = REDLOCK_NEVER,
                         .pass_us = REDLOCK_NEVER,
                         .check_us = REDLOCK_NEVER,
                         .command = {.loop = loop,
                                     .line = &settings->line,
                                     .deadline_us = redlock_now() + redlock_lock_remaining(lock),
                                     .death = cli_run_death(settings),
                                     .kill_after_us = settings->kill_after_us}};
  cli_processes_make_mark(run->command.mark);
  int error = cli_run_set_environment(run) ? cli_child_start(&run->command) : ENOMEM;
  if (error == 0) {
    return -1;
  }
  cli_run_free(run);
  if (error == ETIME) {
    return cli_report(settings, CLI_UNAVAILABLE, "'%s' ended before the command began",
                      settings->name);
  }
  bool system = error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE;
  return cli_fail(error == ENOENT ? CLI_NOT_FOUND
                  : system        ? CLI_SYSTEM
                                  : CLI_NOT_EXECUTABLE,
                  "%s: %s", word, strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
}

/* ---------------------------------------------------------------------------------------- RUN-3 */

static void cli_run_check(cli_run_state *run, redlock_time now_us) {
  redlock_duration ttl_us = redlock_lock_ttl(run->lock);
  if (now_us < run->check_us) {
    return;
  }
  run->check_us = now_us + ttl_us / 3;
  if (redlock_lock_remaining(run->lock) > ttl_us &&
      redlock_lock_result(run->lock) != REDLOCK_PENDING) {
    (void)redlock_lock_extend_start(run->lock, ttl_us);
  }
}

/* ---------------------------------------------------------------------------------------- RUN-4 */

/* Sends SIGTERM, and plans SIGKILL. */
static void cli_run_stop(cli_run_state *run, redlock_time now_us) {
  if (run->stopping) {
    return;
  }
  run->stopping = true;
  run->kill_us = now_us + run->settings->kill_after_us;
  (void)cli_child_signal(&run->command, SIGTERM);
}

static void cli_run_kill(cli_run_state *run, redlock_time now_us) {
  if (run->stopping && now_us >= run->kill_us) {
    size_t living = cli_child_signal(&run->command, SIGKILL);
    bool late = run->give_up_us != 0 && now_us >= run->give_up_us;
    if (run->give_up_us == 0) {
      run->give_up_us = now_us + CLI_RUN_DEAD_US;
    } else if (late && !run->reported && living > 0) {
      run->reported = true;
      (void)cli_report(run->settings, 0, "'%s': %zu processes of the command cannot be killed",
                       run->settings->name, living);
    }
    run->kill_us = now_us + (late ? CLI_RUN_DEAD_US : CLI_RUN_KILL_US);
  }
}

/* Stops the command if the lock has ended. */
static void cli_run_check_lock(cli_run_state *run, redlock_time now_us) {
  bool warn = run->settings->warn;
  int error = cli_keep_check(&run->keep, run->settings, run->lock);
  if (error == REDLOCK_OK) {
    return;
  }
  if (!warn) {
    cli_run_stop(run, now_us);
    run->kill_us = run->settings->strict ? now_us : run->kill_us;
    cli_run_kill(run, now_us);
  }
  (void)cli_report(run->settings, 0, "'%s' has ended, and the command %s: %s", run->settings->name,
                   warn ? "still runs" : "is stopped", redlock_strerror(error));
  cli_keep_report_nodes(run->settings, run->loop->client);
}

/*
 * --strict: sends SIGTERM and SIGKILL so long before the deadline that a busy machine delivers
 * them in time. An eighth of the ttl is left after SIGKILL. Automatic extends need a third of the
 * ttl, so that SIGTERM comes only after they have failed several times.
 */
static redlock_time cli_run_strict(cli_run_state *run, redlock_time now_us) {
  redlock_duration ttl_us = redlock_lock_ttl(run->lock);
  if (run->settings->options.max_hold_us != 0) {
    ttl_us = cli_run_earlier(ttl_us, run->settings->options.max_hold_us);
  }
  redlock_duration left_us = redlock_lock_remaining(run->lock);
  redlock_duration kill_after_us = cli_run_earlier(run->settings->kill_after_us, ttl_us / 4);
  if (!run->settings->strict || left_us == 0 || run->give_up_us != 0) {
    return REDLOCK_NEVER; /* Its loss is reported, or SIGKILL was sent. */
  }
  redlock_time kill_us = now_us + left_us - cli_run_earlier(ttl_us / 8, left_us);
  redlock_time stop_us = kill_us - cli_run_earlier(kill_after_us, kill_us);
  if (now_us >= stop_us && !run->stopping) {
    cli_run_stop(run, now_us);
    (void)cli_report(run->settings, 0, "'%s' ends in %llu ms, and the command is stopped",
                     run->settings->name, (unsigned long long)(left_us / REDLOCK_MILLISECONDS));
  }
  if (run->stopping) {
    run->kill_us = cli_run_earlier(run->kill_us, kill_us);
  }
  return run->stopping ? kill_us : stop_us;
}

/* Returns true while the command runs, or descendants of a stopped one. */
static bool cli_run_goes_on(const cli_run_state *run, redlock_time now_us) {
  if (run->command.pid != 0) {
    return true;
  }
  if (!run->stopping || cli_child_signal(&run->command, 0) == 0) {
    return false;
  }
  return run->give_up_us == 0 || now_us < run->give_up_us;
}

/* ---------------------------------------------------------------------------------------- RUN-5 */

static void cli_run_take_signal(cli_run_state *run, int number, redlock_time now_us) {
  bool came = number != 0;
  if (came) {
    run->signals |= (uint64_t)1 << number;
    run->came |= (uint64_t)1 << number;
    run->came_late |= run->stopping ? (uint64_t)1 << number : 0;
  }
  /* The signal that has ended the canary may have hit nothing else. */
  if (came || (run->command.pid > 0 && run->command.canary_gone)) {
    run->pass_us = cli_run_earlier(run->pass_us, now_us + CLI_RUN_GATHER_US);
  }
}

static void cli_run_pass_signals(cli_run_state *run, redlock_time now_us) {
  if (now_us < run->pass_us) {
    return;
  }
  bool shared = cli_child_shared_signal(&run->command);
  for (int number = 1; number < 64; number++) {
    if (!shared && run->command.pid > 0 && (run->signals >> number & 1) != 0) {
      (void)kill(run->command.pid, number);
    }
  }
  run->signals = 0;
  run->pass_us = REDLOCK_NEVER;
}

/* Returns when the loop must turn again. */
static redlock_time cli_run_due(const cli_run_state *run, redlock_time now_us) {
  redlock_time due_us = run->pass_us;
  if (run->stopping) {
    due_us = cli_run_earlier(due_us, run->kill_us);
    if (run->command.pid == 0) { /* Descendants end without a notice. */
      due_us = cli_run_earlier(due_us, now_us + CLI_RUN_KILL_US);
    }
  }
  return cli_run_earlier(due_us, run->check_us);
}

/* RUN-6. Returns the exit status for a command that has ended with |status|. */
static int cli_run_end(cli_run_state *run, int status) {
  bool ended = cli_keep_release(run->settings, run->lock);
  if (run->stopping) {
    return CLI_LOST;
  }
  return ended && status == 0 ? cli_report(run->settings, CLI_LOST,
                                           "'%s' ended before the command did", run->settings->name)
                              : status;
}

int cli_run_wait(cli_run_state *run) {
  redlock_time now_us = redlock_now();
  if (run->settings->options.hold_at_least_us != 0) {
    run->check_us = now_us + redlock_lock_ttl(run->lock) / 3;
  }
  cli_keep_open(&run->keep, run->settings, run->lock);
  cli_child_reap(&run->command);
  while (cli_run_goes_on(run, now_us)) {
    redlock_time due_us = cli_run_due(run, now_us);
    due_us = cli_run_earlier(due_us, cli_run_strict(run, now_us));
    cli_run_kill(run, now_us);
    int number = cli_loop_turn(run->loop, due_us, NULL, 0);
    now_us = redlock_now();
    cli_child_reap(&run->command); /* may find the canary dead */
    cli_run_take_signal(run, number, now_us);
    cli_run_pass_signals(run, now_us);
    cli_run_check(run, now_us);
    cli_run_check_lock(run, now_us);
  }
  cli_child_end(&run->command);
  int state = run->command.state;
  return cli_run_end(run, WIFSIGNALED(state) ? CLI_SIGNAL + WTERMSIG(state) : WEXITSTATUS(state));
}

/* ----------------------------------------------------------------------------------------- verb */

int cli_run(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_run_state run;
  if (settings->strict && settings->warn) {
    return cli_fail(CLI_USAGE, "--strict and --on-lost=warn exclude each other");
  }
  if (settings->options.max_hold_us != 0 &&
      settings->options.hold_at_least_us > settings->options.max_hold_us) {
    return cli_fail(CLI_USAGE, "--hold-for is longer than --max-hold");
  }
  int status = cli_run_acquire(settings, loop, lock);
  status = status < 0 ? cli_run_start(&run, settings, loop, lock) : status;
  return status < 0 ? cli_run_wait(&run) : status;
}
