/*
 * A client: its life, its settings and its nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_client.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rl_turn.h"
#include "net/rl_route.h"
#include "options/rl_login.h"
#include "os/rl_clock.h"

#define RL_CLIENT_TEXT(number) RL_CLIENT_TEXT_OF(number) /* a constant as text */
#define RL_CLIENT_TEXT_OF(number) #number

/* ---------------------------------------------------------------------------------- life */

static int rl_client_fail(int error, const char *sentence, char *message, size_t message_size) {
  if (message != NULL && message_size > 0) {
    (void)snprintf(message, message_size, "%s",
                   sentence != NULL ? sentence : redlock_strerror(error));
  }
  return error;
}

int rl_client_note(redlock_client *client, int error, const char *sentence) {
  client->failure = error == REDLOCK_OK ? NULL
                    : sentence != NULL  ? sentence
                                        : redlock_strerror(error);
  return error;
}

/* Returns why the settings of the guard are wrong, as a static sentence, or NULL. */
static const char *rl_client_wrong_guard(const redlock_settings *settings) {
  if (settings->guard != REDLOCK_YES) {
    return settings->guard_max_ttl_us != 0 || settings->guard_cluster != NULL
               ? "guard_max_ttl_us and guard_cluster need guard"
               : NULL;
  }
  for (const char *at = settings->guard_cluster; at != NULL && *at != '\0'; at++) {
    if (*at <= 0x20 || *at >= 0x7f) {
      return "guard_cluster must be printable, and have no spaces";
    }
  }
  return NULL;
}

/*
 * Returns true if keys of the client's locks would live too long for the guard; |message| says how
 * long.
 */
static bool rl_client_wrong_max_ttl(const redlock_settings *settings, const rl_options *options,
                                    char *message, size_t size) {
  redlock_duration longest_us = rl_guard_longest(settings->guard_max_ttl_us);
  rl_options defaults;
  rl_options_default(&defaults);
  bool too_long = rl_time_add(options->ttl_us, options->lock_delay_us) > longest_us;
  if (settings->guard != REDLOCK_YES || (!too_long && rl_options_hold_us(options) <= longest_us)) {
    return false;
  }
  if (message != NULL && !too_long) {
    (void)snprintf(message, size,
                   RL_GUARD_TOO_LONG_TO_HOLD
                   ": hold_at_least %llu ms, lock_delay %llu ms, max_ttl %llu ms%s",
                   (unsigned long long)rl_time_ms_up(options->hold_at_least_us),
                   (unsigned long long)rl_time_ms_up(options->lock_delay_us),
                   (unsigned long long)rl_time_ms_up(longest_us),
                   settings->guard_max_ttl_us == 0 ? " (the default)" : "");
  } else if (message != NULL) {
    (void)snprintf(message, size,
                   RL_GUARD_TOO_LONG ": ttl %llu ms%s, lock_delay %llu ms, max_ttl %llu ms%s",
                   (unsigned long long)rl_time_ms_up(options->ttl_us),
                   options->ttl_us == defaults.ttl_us ? " (the default)" : "",
                   (unsigned long long)rl_time_ms_up(options->lock_delay_us),
                   (unsigned long long)rl_time_ms_up(longest_us),
                   settings->guard_max_ttl_us == 0 ? " (the default)" : "");
  }
  return true;
}

/*
 * Converts the program's structs, of any version, to this version's. Returns why they are wrong, or
 * NULL.
 */
static const char *rl_client_read_settings(redlock_settings *settings, rl_options *options,
                                           const redlock_settings *given, size_t settings_size,
                                           size_t options_size) {
  redlock_options known;
  const char *wrong = NULL;
  rl_options_default(options);
  memset(settings, 0, sizeof *settings);
  if (given != NULL) {
    wrong = rl_option_fit(&rl_options_of_client, settings, given, settings_size);
  }
  if (wrong == NULL && settings->options != NULL) {
    wrong = rl_option_fit(&rl_options_of_lock, &known, settings->options, options_size);
    wrong = wrong != NULL ? wrong : rl_options_read(options, &known);
  }
  if (settings->credentials != NULL && (settings->username != NULL || settings->password != NULL)) {
    wrong = wrong != NULL
                ? wrong
                : "credentials supply username and password: give either one or the other";
  }
  wrong = wrong != NULL ? wrong : rl_option_wrong(&rl_options_of_client, settings);
  return wrong != NULL ? wrong : rl_client_wrong_guard(settings);
}

static int rl_client_configure(redlock_client *client, const redlock_settings *settings,
                               const rl_options *options, char *message, size_t message_size) {
  if (!rl_option_copy(&rl_options_of_client, &client->settings, settings) ||
      rl_core_init(&client->core, settings->prefix, settings->prefix_length) != REDLOCK_OK) {
    return rl_client_fail(REDLOCK_E_NO_MEMORY, NULL, message, message_size);
  }
  client->settings.options = NULL;
  client->core.options = *options;
  if (settings->guard == REDLOCK_YES &&
      rl_guard_open(&client->core.guards, settings->guard_max_ttl_us, settings->guard_cluster) !=
          REDLOCK_OK) {
    return rl_client_fail(REDLOCK_E_NO_MEMORY, NULL, message, message_size);
  }
  if (options->notify == REDLOCK_YES && rl_notify_open(&client->core) != REDLOCK_OK) {
    return rl_client_fail(REDLOCK_E_NO_MEMORY, NULL, message, message_size);
  }
  client->core.quorum = (unsigned)settings->quorum;
  redlock_time now_us = redlock_now();
  (void)rl_node_clock_note(&client->core.wall, rl_clock_wall(), now_us, now_us);
  return REDLOCK_OK;
}

const char *rl_client_wrong_quorum(const redlock_client *client) {
  unsigned nodes = client->core.node_count;
  unsigned quorum = client->core.quorum;
  return quorum != 0 && (quorum < rl_quorum_majority(nodes) || quorum > nodes)
             ? "the client's quorum must be from a majority of its nodes to all of them"
             : NULL;
}

void rl_client_destroy(redlock_client *client) {
  rl_mutex_lock(&client->mutex);
  rl_watchdog_stop(client);
  bool later = rl_watchdog_is_self(client);
  client->watchdog.ends_client = later ? rl_client_destroy : NULL;
  rl_mutex_unlock(&client->mutex);
  if (later) {
    return;
  }
  rl_client_close_sockets(client, rl_fork_happened(&client->mark));
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    rl_route_free(&client->routes[i]);
  }
  rl_core_free(&client->core); /* Zeros are an empty core. */
  rl_callers_free(&client->callers);
  rl_mutex_free(&client->mutex);
  rl_fork_free(&client->mark);
  rl_option_free(&rl_options_of_client, &client->settings);
  free(client);
}

/* Makes a client without settings and nodes. Returns NULL if out of memory. */
static redlock_client *rl_client_new(void) {
  redlock_client *client = calloc(1, sizeof *client);
  if (client == NULL || !rl_mutex_init(&client->mutex)) {
    free(client);
    return NULL;
  }
  rl_callers_init(&client->callers);
  rl_eventfd_init(&client->watchdog.event);
  client->watchdog.self.event = &client->watchdog.event;
  client->references = 1;
  client->epoll_fd = -1;
  rl_timerfd_init(&client->timer);
  rl_eventfd_init(&client->event);
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    rl_socket_init(&client->sockets[i]);
  }
  rl_fork_init(&client->mark);
  return client;
}

int redlock_client_new_sized(redlock_client **made, const redlock_settings *given,
                             size_t settings_size, size_t options_size, char *message,
                             size_t message_size) {
  redlock_settings settings;
  rl_options options;
  if (made == NULL) {
    return rl_client_fail(REDLOCK_E_INVALID, "client is NULL", message, message_size);
  }
  *made = NULL;
  redlock_client *client = rl_client_new();
  if (client == NULL) {
    return rl_client_fail(REDLOCK_E_NO_MEMORY, NULL, message, message_size);
  }
  const char *wrong =
      rl_client_read_settings(&settings, &options, given, settings_size, options_size);
  int error = REDLOCK_E_INVALID;
  if (wrong != NULL) {
    error = rl_client_fail(REDLOCK_E_INVALID, wrong, message, message_size);
  } else if (!rl_client_wrong_max_ttl(&settings, &options, message, message_size)) {
    error = rl_client_configure(client, &settings, &options, message, message_size);
  }
  if (error != REDLOCK_OK) {
    rl_client_destroy(client);
    return error;
  }
  *made = client;
  return REDLOCK_OK;
}

int redlock_client_add(redlock_client *client, const char *address, char *message,
                       size_t message_size) {
  redlock_node node = {.address = address};
  return redlock_client_add_node(client, &node, message, message_size);
}

/* Refuses a node that the client has already. */
static int rl_client_check_node(const redlock_client *client, const rl_address *address,
                                char *message, size_t message_size) {
  char sentence[sizeof address->name + 64];
  for (unsigned i = 0; i < client->core.node_count; i++) {
    if (strcmp(client->core.nodes[i]->address.name, address->name) == 0) {
      (void)snprintf(sentence, sizeof sentence, "%s is named twice", address->name);
      return rl_client_fail(REDLOCK_E_INVALID, sentence, message, message_size);
    }
  }
  return REDLOCK_OK;
}

/* Makes the route to a node; an external client needs none. */
static int rl_client_make_route(const redlock_client *client, rl_route *route,
                                const redlock_node *node, const rl_address *address, char *message,
                                size_t message_size) {
  char reason[RL_STREAM_ERROR_MAX] = "";
  char sentence[sizeof address->name + sizeof reason + 4];
  const rl_route *like = NULL;
  for (unsigned i = 0; i < client->core.node_count; i++) {
    like = client->routes[i].node != NULL ? &client->routes[i] : like;
  }
  int error = client->external
                  ? REDLOCK_OK
                  : rl_route_make(route, address, node, &client->settings, like, reason);
  (void)snprintf(sentence, sizeof sentence, "%s: %s", address->name, reason);
  return error == REDLOCK_OK ? REDLOCK_OK : rl_client_fail(error, sentence, message, message_size);
}

static int rl_client_add_address(redlock_client *client, const redlock_node *node,
                                 const rl_address *address, char *message, size_t message_size) {
  rl_route route = {NULL, NULL};
  unsigned index = client->core.node_count;
  int error = rl_client_check_node(client, address, message, message_size);
  if (error == REDLOCK_OK) {
    error = rl_client_make_route(client, &route, node, address, message, message_size);
  }
  if (error != REDLOCK_OK) {
    return error;
  }
  error = rl_core_add(&client->core, address);
  if (error == REDLOCK_OK) {
    client->routes[index] = route;
    return REDLOCK_OK;
  }
  rl_route_free(&route);
  const char *sentence = error == REDLOCK_E_LIMIT
                             ? "there are more than " RL_CLIENT_TEXT(REDLOCK_NODES_MAX) " nodes"
                         : error == REDLOCK_E_BUSY ? "add nodes before the first lock is made"
                                                   : NULL;
  return rl_client_fail(error, sentence, message, message_size);
}

int redlock_client_add_node_sized(redlock_client *client, const redlock_node *given,
                                  size_t node_size, char *message, size_t message_size) {
  redlock_node node;
  rl_address address;
  if (client == NULL || given == NULL) {
    return rl_client_fail(REDLOCK_E_INVALID, client == NULL ? "client is NULL" : "node is NULL",
                          message, message_size);
  }
  const char *wrong = rl_option_fit(&rl_options_of_node, &node, given, node_size);
  if (wrong != NULL) {
    return rl_client_fail(REDLOCK_E_INVALID, wrong, message, message_size);
  }
  int error = rl_address_read(&address, &node, &client->settings, message, message_size);
  if (error == REDLOCK_OK) {
    rl_client_enter(client);
    error = rl_client_add_address(client, &node, &address, message, message_size);
    rl_client_leave(client);
  }
  rl_login_overwrite(&address, sizeof address);
  return error;
}

size_t rl_client_size(const redlock_client *client) {
  return sizeof *client + RL_FORK_PAGE +
         rl_core_connection_count(&client->core) * sizeof *client->core.nodes[0];
}

redlock_client *redlock_client_ref(redlock_client *client) {
  if (client != NULL) {
    rl_client_enter(client);
    client->references++;
    rl_client_leave(client);
  }
  return client;
}

void redlock_client_free(redlock_client *client) {
  if (client == NULL) {
    return;
  }
  rl_client_enter(client);
  if (client->references == 1) {
    rl_core_close(&client->core, redlock_now());
    rl_client_drain(client, rl_time_add(redlock_now(), RL_CLIENT_DRAIN_US));
  }
  rl_client_leave_for_good(client);
}

/* Returns true if replies are still awaited; |patience_us| is that of rl_core_awaits_replies(). */
static bool rl_client_drain_within(redlock_client *client, redlock_time deadline_us,
                                   redlock_duration patience_us) {
  rl_caller *caller = rl_caller_begin(client, NULL);
  redlock_time now_us = redlock_now();
  int error = caller == NULL ? REDLOCK_E_NO_MEMORY : REDLOCK_OK;
  rl_turn_flush(client);
  while (error == REDLOCK_OK && now_us < deadline_us &&
         rl_core_awaits_replies(&client->core, now_us, patience_us)) {
    error = rl_caller_wait(client, caller, deadline_us, NULL);
    now_us = redlock_now();
  }
  if (caller != NULL) {
    rl_caller_end(client, caller);
  }
  return error == REDLOCK_OK && rl_core_awaits_replies(&client->core, now_us, patience_us);
}

void rl_client_drain(redlock_client *client, redlock_time deadline_us) {
  (void)rl_client_drain_within(client, deadline_us, rl_time_sub(deadline_us, redlock_now()));
}

bool rl_client_closing(redlock_client *client, redlock_time until_us,
                       redlock_duration patience_us) {
  rl_client_enter(client);
  rl_core_close(&client->core, redlock_now());
  bool awaits = rl_client_drain_within(client, until_us, patience_us);
  rl_client_leave(client);
  return awaits;
}

/* Returns a sentence that names the nodes without confirmation of a release. */
static const char *rl_client_unconfirmed(redlock_client *client) {
  const rl_core *core = &client->core;
  uint32_t due = rl_release_due(core);
  const char *separator = ": ";
  size_t size = sizeof client->failure_text;
  size_t used =
      (size_t)snprintf(client->failure_text, size, "not all nodes confirmed the releases in time");
  for (unsigned i = 0; i < core->node_count && used < size; i++) {
    const rl_node *node = core->nodes[i];
    if ((due & rl_node_bit(node)) != 0 || node->link.outstanding_count > 0) {
      used += (size_t)snprintf(client->failure_text + used, size - used, "%s%s", separator,
                               node->address.name);
      separator = ", ";
    }
  }
  return client->failure_text;
}

int redlock_client_close(redlock_client *client, redlock_duration timeout_us) {
  if (client == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  rl_core_close(&client->core, redlock_now());
  rl_client_drain(client, rl_time_add(redlock_now(), timeout_us));
  int error = rl_core_has_unanswered(&client->core) ? REDLOCK_E_UNAVAILABLE : REDLOCK_OK;
  (void)rl_client_note(client, error, error == REDLOCK_OK ? NULL : rl_client_unconfirmed(client));
  rl_client_close_sockets(client, false);
  rl_core_reset(&client->core);
  rl_watchdog_stop(client);
  rl_client_leave(client);
  return error;
}

/* ------------------------------------------------------------------------------------ leaving */

void rl_client_leave(redlock_client *client) {
  rl_caller_wake_threads(client, true);
}

void rl_client_leave_for_good(redlock_client *client) {
  bool last = --client->references == 0;
  /* A woken thread may give up the last reference once the mutex is free, so wake it before. */
  rl_caller_wake_threads(client, false);
  rl_mutex_unlock(&client->mutex);
  if (last) {
    rl_client_destroy(client);
  }
}

/* --------------------------------------------------------------------------------------- nodes */

const char *redlock_client_message(redlock_client *client) {
  if (client == NULL) {
    return "";
  }
  rl_client_enter(client);
  const char *message = client->failure == NULL ? "" : client->failure;
  rl_client_leave(client);
  return message;
}

size_t redlock_client_node_count(const redlock_client *client) {
  if (client == NULL) {
    return 0;
  }
  rl_client_enter((redlock_client *)client);
  size_t count = client->core.node_count;
  rl_client_leave((redlock_client *)client);
  return count;
}

const char *rl_client_copy_text(char *room, const char *text, const char *at) {
  (void)snprintf(room, REDLOCK_TEXT_MAX, "%.*s", REDLOCK_TEXT_MAX - 1, text != NULL ? text : "");
  return room[0] != '\0' ? at : NULL;
}

/* Fills |known|, whose texts will be at those of |info|. */
static void rl_client_read_node(const redlock_client *client, const rl_node *node,
                                redlock_node_info *known, const redlock_node_info *info) {
  char reason[RL_REASON_MAX + 1] = "";
  const char *notify_error = NULL;
  bool unfit = node->read_only || node->twins != 0;
  known->name = node->address.name;
  known->state = node->link.phase == RL_LINK_UP && !unfit    ? REDLOCK_NODE_UP
                 : unfit || node->link.phase == RL_LINK_DOWN ? REDLOCK_NODE_DOWN
                                                             : REDLOCK_NODE_CONNECTING;
  known->error = rl_client_copy_text(known->text, node->error, info->text);
  known->latency_us = node->link.latency_us;
  known->outstanding = node->link.outstanding_count;
  if (node->link.phase == RL_LINK_UP && node->link.guard != NULL) {
    known->quarantined_us = rl_guard_quarantined(node->link.guard, redlock_now());
    (void)rl_guard_reason(node->link.guard, redlock_now(), reason, sizeof reason);
  }
  known->quarantine = rl_client_copy_text(known->quarantine_text, reason, info->quarantine_text);
  known->notifies =
      rl_subscriber_state(&client->core, node->index, &notify_error) ? REDLOCK_YES : REDLOCK_NO;
  known->notify_error = rl_client_copy_text(known->notify_text, notify_error, info->notify_text);
}

int redlock_client_node_info_sized(redlock_client *client, size_t index, redlock_node_info *info,
                                   size_t size) {
  redlock_node_info known = {0};
  if (client == NULL || info == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  bool found = index < client->core.node_count;
  if (found) {
    rl_client_read_node(client, client->core.nodes[index], &known, info);
  }
  rl_client_leave(client);
  if (found) {
    rl_option_fill(info, size, &known, sizeof known);
  }
  return found ? REDLOCK_OK : REDLOCK_E_INVALID;
}
