/*
 * Functions of all integration tests.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHILD_US (120 * REDLOCK_SECONDS) /* A child that takes longer hangs. */

#define FARM(name, count)                                                                          \
  farm name;                                                                                       \
  int name##_start(void **state) {                                                                 \
    (void)state;                                                                                   \
    farm_start(&name, count, NULL);                                                                \
    return 0;                                                                                      \
  }                                                                                                \
  int name##_reset(void **state) {                                                                 \
    (void)state;                                                                                   \
    farm_reset(&name);                                                                             \
    return 0;                                                                                      \
  }                                                                                                \
  int name##_end(void **state) {                                                                   \
    (void)state;                                                                                   \
    farm_end(&name);                                                                               \
    return 0;                                                                                      \
  }
FARM(five, 5)
FARM(three, 3)

static void *nothing(void *argument) {
  return argument;
}

int five_start_threaded(void **state) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  return five_start(state);
}

/* In a script, a command that ends with & ignores both, and so would all that it starts. */
__attribute__((constructor)) static void mind_signals(void) {
  (void)signal(SIGINT, SIG_DFL);
  (void)signal(SIGQUIT, SIG_DFL);
}

redlock_time stopwatch(void) {
  witness_start();
  return redlock_now();
}

void check_between(const char *what, uint64_t value, uint64_t low, uint64_t high, const char *file,
                   int line) {
  if (value < low || value > high) {
    print_error("%s is %llu, not from %llu to %llu\n", what, (unsigned long long)value,
                (unsigned long long)low, (unsigned long long)high);
    _fail(file, line);
  }
}

redlock_options once(void) {
  redlock_options options = {0};
  options.retry_count = REDLOCK_RETRIES_NONE;
  options.node_timeout_us = MS(5000);
  options.ttl_us = MS(60000);
  return options;
}

redlock_client *client_at(const char *const *addresses, unsigned count,
                          const redlock_options *options) {
  redlock_client *client;
  redlock_settings settings = {0};
  redlock_options usual = once();
  char message[256];
  settings.options = options != NULL ? options : &usual;
  if (farm_over_tls != NULL) {
    farm_over_tls->fill(&settings);
  }
  if (redlock_client_new(&client, &settings, message, sizeof message) != REDLOCK_OK) {
    fail_msg("%s", message);
  }
  for (unsigned i = 0; i < count; i++) {
    if (redlock_client_add(client, addresses[i], message, sizeof message) != REDLOCK_OK) {
      fail_msg("%s: %s", addresses[i], message);
    }
  }
  return client;
}

redlock_client *client_of(const farm *self, unsigned count, const redlock_options *options) {
  const char *addresses[FARM_NODES_MAX];
  for (unsigned i = 0; i < count; i++) {
    addresses[i] = self->nodes[i].address;
  }
  return client_at(addresses, count, options);
}

redlock_lock *new_lock(redlock_client *client, const char *resource) {
  redlock_lock *lock;
  assert_int_equal(redlock_lock_new(&lock, client, resource, strlen(resource), NULL), REDLOCK_OK);
  return lock;
}

redlock_lock *held_lock(redlock_client *client, const char *resource) {
  redlock_lock *lock = new_lock(client, resource);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  return lock;
}

void free_with_client(redlock_lock *lock) {
  redlock_client *client = redlock_lock_client(lock);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

void pump(redlock_client *client, int milliseconds) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  int timeout_ms = redlock_client_timeout_ms(client);
  if (timeout_ms < 0 || timeout_ms > milliseconds) {
    timeout_ms = milliseconds;
  }
  int ready = poll(fds, (nfds_t)count, timeout_ms);
  assert_int_equal(redlock_client_process(client, fds, ready > 0 ? count : 0), REDLOCK_OK);
}

static bool idle(redlock_client *client, bool may_be_down) {
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_node_info info;
    assert_int_equal(redlock_client_node_info(client, i, &info), REDLOCK_OK);
    if (info.state == REDLOCK_NODE_CONNECTING ||
        (info.state == REDLOCK_NODE_UP && info.outstanding > 0) ||
        (info.state == REDLOCK_NODE_DOWN && !may_be_down)) {
      return false;
    }
  }
  return true;
}

bool all_up(redlock_client *client) {
  return idle(client, false);
}

void warm_up(redlock_client *client) {
  redlock_lock *lock = held_lock(client, "warm-up");
  pump_until(client, idle(client, true));
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  pump_until(client, idle(client, true));
}

redlock_vote vote_of(redlock_lock *lock, size_t node) {
  redlock_vote_info info;
  assert_int_equal(redlock_lock_vote(lock, node, &info), REDLOCK_OK);
  return info.vote;
}

bool vote_says(redlock_lock *lock, size_t node, const char *text) {
  redlock_vote_info info;
  assert_int_equal(redlock_lock_vote(lock, node, &info), REDLOCK_OK);
  return info.error != NULL && strstr(info.error, text) != NULL;
}

/* A sanitizer replaces the allocator, so that the C library counts nothing. musl never counts. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
extern size_t __sanitizer_get_current_allocated_bytes(void);
size_t allocated_bytes(void) {
  return __sanitizer_get_current_allocated_bytes();
}
#elif !defined __GLIBC__
size_t allocated_bytes(void) {
  return 0;
}
#else
size_t allocated_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
#endif

/* The kernel lists a thread that was joined for a moment, and marks it. */
static bool has_ended(const char *thread) {
  const unsigned long exiting = 4; /* PF_EXITING of the kernel */
  char path[64], text[512] = "";
  unsigned long flags;
  (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return true;
  }
  (void)fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  const char *after_name = strrchr(text, ')');
  return after_name == NULL || sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %lu", &flags) != 1 ||
         (flags & exiting) != 0;
}

unsigned running_threads(void) {
  unsigned count = 0;
  DIR *directory = opendir("/proc/self/task");
  assert_non_null(directory);
  for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    count += entry->d_name[0] != '.' && !has_ended(entry->d_name);
  }
  (void)closedir(directory);
  return count;
}

unsigned open_descriptors(void) {
  unsigned count = 0;
  DIR *directory = opendir("/proc/self/fd");
  assert_non_null(directory);
  while (readdir(directory) != NULL) {
    count++;
  }
  (void)closedir(directory);
  return count;
}

/* The status that a child has ended with, or -1 when it has not ended in time. */
static int child_status(int (*child)(void *), void *argument) {
  int status = -1;
  pid_t pid = fork(), ended = 0;
  assert_true(pid >= 0);
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* A failure here must not go on with other tests. */
    _exit(child(argument));
  }
  for (redlock_time until_us = redlock_now() + CHILD_US; redlock_now() < until_us;) {
    ended = waitpid(pid, &status, WNOHANG);
    if (ended != 0) {
      break;
    }
    (void)poll(NULL, 0, 1);
  }
  if (ended == 0) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return -1;
  }
  assert_int_equal(ended, pid);
  return status;
}

int child_exit(int (*child)(void *), void *argument) {
  int status = child_status(child, argument);
#if defined(__SANITIZE_ADDRESS__)
  /* The runtime of gcc 12 forks while another thread is in its allocator: such a child hangs. */
  if (status == -1) {
    print_message("a child has hung, and another is tried\n");
    status = child_status(child, argument);
  }
#endif
  if (status == -1) {
    fail_msg("the child did not end");
  }
  if (WIFSIGNALED(status)) {
    fail_msg("the child was ended by signal %d", WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}

void in_child(int (*child)(void *), void *argument) {
  assert_int_equal(child_exit(child, argument), 0);
}
