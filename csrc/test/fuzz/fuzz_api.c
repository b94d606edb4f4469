/*
 * Fuzz target: any sequence of functions of the public API, over faulty servers on loopback.
 *
 * SPDX-License-Identifier: MIT
 */
#include <poll.h>
#include <string.h>

#include "fuzz.h"
#include "loopback.h"
#include "redlock.h"

#define FUZZ_API_LOCKS 3
#define FUZZ_API_STEPS 60

static const char *const fuzz_api_replies[] = {NULL,      "-LOADING x\r\n", ":1\r\n",
                                               "$-1\r\n", "-NOSCRIPT\r\n",  "garbage\r\n",
                                               ":0\r\n",  "+OK\r\n"};

static redlock_options fuzz_api_options(fuzz_input *input) {
  redlock_options options = {0};
  options.node_timeout_us = REDLOCK_MILLISECONDS / 2;
  options.retry_count = fuzz_byte(input) % 2 == 0 ? REDLOCK_RETRIES_NONE : 1;
  options.retry_delay_us = REDLOCK_DURATION_NONE;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  options.ttl_us = REDLOCK_MILLISECONDS * (4 + (redlock_duration)fuzz_byte(input) * 8);
  return options;
}

static redlock_client *fuzz_api_client(const loopback *farm) {
  redlock_client *client;
  fuzz_require(redlock_client_new(&client, NULL, NULL, 0) == REDLOCK_OK);
  for (unsigned i = 0; i < farm->count; i++) {
    fuzz_require(redlock_client_add(client, farm->nodes[i].address, NULL, 0) == REDLOCK_OK);
  }
  return client;
}

/* Functions that return in any state. */
static void fuzz_api_look(redlock_client *client, redlock_lock *lock) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  redlock_vote_info vote;
  redlock_node_info node;
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  fuzz_require(count <= 2 * redlock_client_node_count(client));
  (void)redlock_client_timeout_ms(client);
  (void)redlock_client_pollfd(client);
  for (size_t i = 0; i <= redlock_client_node_count(client); i++) {
    (void)redlock_client_node_info(client, i, &node);
    (void)redlock_lock_vote(lock, i, &vote);
  }
  size_t token = strlen(redlock_lock_token(lock));
  fuzz_require(token == 0 || token == REDLOCK_TOKEN_LENGTH);
  (void)redlock_lock_fence(lock);
  fuzz_require(redlock_lock_message(lock) != NULL);
  fuzz_require(redlock_lock_client(lock) == client);
  (void)redlock_lock_deadline(lock);
  (void)redlock_lock_margin(lock);
}

/* A text that is used at once, and once more. */
static int fuzz_api_hand_over(redlock_client *client, redlock_lock *lock) {
  char text[REDLOCK_HANDOVER_MAX];
  size_t length;
  int error = redlock_lock_detach(lock, text, sizeof text, &length);
  for (unsigned i = 0; i < 2 && error == REDLOCK_OK; i++) {
    redlock_lock *attached = NULL;
    fuzz_require(strlen(text) == length);
    error = redlock_lock_attach(&attached, client, text, length, NULL);
    if (error == REDLOCK_OK) {
      int result = redlock_lock_acquire(attached, NULL, NULL);
      fuzz_require(result == REDLOCK_OK || redlock_lock_remaining(attached) == 0);
    }
    redlock_lock_free(attached);
  }
  return error;
}

static int fuzz_api_examine(redlock_lock *lock, unsigned flags) {
  redlock_finding_info info;
  int error = redlock_lock_doctor(lock, flags);
  for (size_t i = 0; redlock_lock_finding(lock, i, &info) == REDLOCK_OK; i++) {
    fuzz_require(i < (size_t)32 * REDLOCK_NODES_MAX && info.message == info.text);
  }
  return error;
}

/* Rare operations. */
static void fuzz_api_call_seldom(redlock_client *client, redlock_lock **slot, uint8_t what) {
  static const char token[] = "0123456789abcdef0123456789abcdef01234567";
  static const redlock_resource both[] = {{"name", 4}, {"other", 5}};
  redlock_key_info key;
  redlock_holder_info holder;
  redlock_lock *lock = *slot;
  int error = REDLOCK_OK;
  switch (what % 8) {
  case 0:
    error = redlock_lock_release_send(lock);
    break;
  case 1:
    error = redlock_lock_give_token(lock, token, sizeof token - 1);
    break;
  case 2:
    error = redlock_lock_inspect(lock);
    for (size_t i = 0; i < redlock_client_node_count(client); i++) {
      fuzz_require(redlock_lock_key(lock, i, &key) == REDLOCK_OK);
    }
    (void)redlock_lock_holder(lock, &holder);
    break;
  case 3:
    error = redlock_lock_force_release(lock, token, what & 8 ? REDLOCK_TOKEN_ANY : 40);
    break;
  case 4:
    error = fuzz_api_hand_over(client, lock);
    break;
  case 5:
    redlock_lock_free(lock);
    if (redlock_lock_new_many(slot, client, both, 2, NULL) == REDLOCK_E_CLOSED) {
      *slot = NULL;
    }
    return;
  case 6:
    (void)redlock_client_next_lost(client);
    break;
  default:
    if ((what & 64) != 0) {
      error = fuzz_api_examine(lock, what / 8 % 2);
      break;
    }
    (void)redlock_lock_lost(lock, NULL);
    redlock_client_wakeup(client);
    break;
  }
  fuzz_require(strcmp(redlock_error_name(error), "unknown") != 0);
}

static void fuzz_api_call(redlock_client *client, redlock_lock **slot, fuzz_input *input) {
  redlock_options options = fuzz_api_options(input);
  redlock_duration validity_us = 0;
  redlock_lock *lock = *slot;
  int error = REDLOCK_OK;
  uint8_t what = fuzz_byte(input);
  if (what >= 192) {
    fuzz_api_call_seldom(client, slot, what);
    return;
  }
  switch (what % 12) {
  case 0:
    error = redlock_lock_acquire_start(lock, &options);
    break;
  case 1:
    error = redlock_lock_extend_start(lock, options.ttl_us);
    break;
  case 2:
    error = redlock_lock_release_start(lock);
    break;
  case 3:
    error = redlock_lock_acquire(lock, &options, &validity_us);
    fuzz_require(error != REDLOCK_OK || validity_us > 0);
    break;
  case 4:
    error = redlock_lock_extend(lock, 0, &validity_us);
    fuzz_require(error != REDLOCK_OK || validity_us > 0);
    break;
  case 5:
    error = redlock_lock_release(lock);
    fuzz_require(error == REDLOCK_E_BUSY || redlock_lock_remaining(lock) == 0);
    break;
  case 6:
    redlock_lock_cancel(lock);
    fuzz_require(redlock_lock_result(lock) != REDLOCK_PENDING);
    break;
  case 7:
    redlock_lock_free(lock);
    if (redlock_lock_new(slot, client, "name", 4, NULL) == REDLOCK_E_CLOSED) {
      *slot = NULL;
    }
    return;
  case 8:
    (void)redlock_client_next_ended(client);
    break;
  case 9:
    fuzz_api_look(client, lock);
    break;
  case 10:
    if (options.retry_count == 1) {
      (void)redlock_client_close(client, REDLOCK_MILLISECONDS / 2);
    }
    break;
  default:
    (void)redlock_client_process(client, NULL, 0);
    break;
  }
  fuzz_require(strcmp(redlock_error_name(error), "unknown") != 0);
}

static void fuzz_api_node(loopback *farm, unsigned index, uint8_t what) {
  loopback_node *node = &farm->nodes[index];
  switch (what % 6) {
  case 0:
    if (node->listener >= 0) {
      loopback_down(farm, index);
    } else {
      loopback_up(farm, index);
    }
    break;
  case 1:
    node->deaf = !node->deaf;
    break;
  case 2:
    node->hangs_up = true;
    break;
  case 3:
    node->says = fuzz_api_replies[what / 6 % 8];
    break;
  default:
    loopback_pump(farm, 0);
    break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {data, size};
  redlock_lock *locks[FUZZ_API_LOCKS];
  uint8_t shape = fuzz_byte(&input);
  loopback *farm = loopback_new(1 + shape % 3, LOOPBACK_UNIX);
  farm->served = shape / 3 % 2 == 0; /* With a fake clock, blocking calls get replies. */
  redlock_client *client = fuzz_api_client(farm);
  for (unsigned i = 0; i < FUZZ_API_LOCKS; i++) {
    fuzz_require(redlock_lock_new(&locks[i], client, "name", i % 2 == 0 ? 4 : 3, NULL) ==
                 REDLOCK_OK);
  }
  for (unsigned i = 0; i < FUZZ_API_STEPS && input.left > 0; i++) {
    uint8_t action = fuzz_byte(&input);
    redlock_lock **slot = &locks[action / 4 % FUZZ_API_LOCKS];
    if (action % 4 == 0) {
      fuzz_api_node(farm, action / 4 % farm->count, fuzz_byte(&input));
    } else if (action % 4 == 1) {
      (void)redlock_client_process(client, NULL, 0);
      loopback_pump(farm, 0);
    } else if (*slot != NULL) {
      fuzz_api_call(client, slot, &input);
    }
  }
  for (unsigned i = 0; i < FUZZ_API_LOCKS; i++) {
    redlock_lock_free(locks[i]);
  }
  (void)redlock_client_close(client, 0);
  redlock_client_free(client);
  fuzz_require(loopback_end(farm));
  return 0;
}
