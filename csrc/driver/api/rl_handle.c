/*
 * Locks as programs see them: making and freeing them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle.h"

#include <stdlib.h>

#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "lease/rl_reentry.h"
#include "lease/rl_semaphore.h"
#include "lifecycle/rl_lifecycle.h"

#define RL_HANDLE_OVERHEAD 16 /* bytes of an allocation */

const char rl_handle_needs_auto_extend[] = "extend_every_us and max_hold_us need auto_extend";

int rl_handle_new(redlock_lock **made, redlock_client *client, const redlock_resource *resources,
                  size_t count, const rl_options *options) {
  rl_lock *lock = rl_lock_new_many(&client->core, resources, count, options);
  if (lock == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  client->references++;
  *made = rl_handle_of(lock);
  return REDLOCK_OK;
}

/* Returns why the arguments of redlock_lock_new() are wrong, as a static sentence, or NULL. */
static const char *rl_handle_wrong(const redlock_client *client, const redlock_resource *resources,
                                   size_t count) {
  if (resources == NULL || count == 0) {
    return "there is no resource";
  }
  for (size_t i = 0; i < count && i < REDLOCK_RESOURCES_MAX; i++) {
    if (resources[i].bytes == NULL && resources[i].length > 0) {
      return "resource is NULL, but has a length";
    }
    if (rl_resource_is_reserved(client->core.prefix, client->core.prefix_length, &resources[i])) {
      return "the name of a resource is reserved for the library: names that end in "
             "':redlock-fence', ':redlock-queue', ':redlock-reserved' or ':redlock-wait', and "
             "'redlock:lineage'";
    }
  }
  if (client->core.node_count == 0) {
    return "the client has no nodes";
  }
  return count <= REDLOCK_RESOURCES_MAX && rl_resource_repeats(resources, count)
             ? "a resource is named twice"
             : rl_client_wrong_quorum(client);
}

const char *rl_handle_read_options(rl_options *options, const redlock_options *given, size_t size) {
  redlock_options known;
  const char *wrong = rl_option_fit(&rl_options_of_lock, &known, given, size);
  wrong = wrong != NULL ? wrong : rl_options_read(options, &known);
  return wrong == NULL && rl_options_lack_auto_extend(options, &known) ? rl_handle_needs_auto_extend
                                                                       : wrong;
}

/* Returns which limit the resources exceed, as a static sentence, or NULL. */
static const char *rl_handle_too_many(const redlock_client *client,
                                      const redlock_resource *resources, size_t count) {
  if (count > REDLOCK_RESOURCES_MAX) {
    return "a lock has at most 64 resources";
  }
  for (size_t i = 0; i < count; i++) {
    if (resources[i].length > REDLOCK_KEY_MAX - client->core.prefix_length) {
      return "prefix and resource together are longer than 4096 bytes";
    }
  }
  return NULL;
}

/* redlock_lock_new_many() inside the client. |*wrong| is the reason, a static sentence, or NULL. */
static int rl_handle_create(redlock_lock **made, redlock_client *client,
                            const redlock_resource *resources, size_t count,
                            const redlock_options *given, size_t options_size, const char **wrong) {
  rl_options options = client->core.options;
  *wrong = rl_handle_wrong(client, resources, count);
  if (*wrong == NULL && given != NULL) {
    *wrong = rl_handle_read_options(&options, given, options_size);
  }
  if (*wrong == NULL) {
    *wrong = rl_guard_too_long(client->core.guards, &options);
  }
  if (*wrong == NULL) {
    *wrong = rl_semaphore_wrong_count(&options, count);
  }
  if (*wrong != NULL) {
    return REDLOCK_E_INVALID;
  }
  *wrong = rl_handle_too_many(client, resources, count);
  if (*wrong != NULL) {
    return REDLOCK_E_LIMIT;
  }
  return client->core.closed ? REDLOCK_E_CLOSED
                             : rl_handle_new(made, client, resources, count, &options);
}

int redlock_lock_new_sized(redlock_lock **lock, redlock_client *client, const void *resource,
                           size_t resource_length, const redlock_options *options,
                           size_t options_size) {
  redlock_resource one = {resource, resource_length};
  return redlock_lock_new_many_sized(lock, client, &one, 1, options, options_size);
}

int redlock_lock_new_many_sized(redlock_lock **lock, redlock_client *client,
                                const redlock_resource *resources, size_t count,
                                const redlock_options *options, size_t options_size) {
  const char *wrong;
  if (lock == NULL || client == NULL) {
    return REDLOCK_E_INVALID;
  }
  *lock = NULL;
  rl_client_enter(client);
  int error = rl_handle_create(lock, client, resources, count, options, options_size, &wrong);
  (void)rl_client_note(client, error, wrong);
  rl_client_leave(client);
  return error;
}

void rl_handle_take_back(redlock_lock *lock) {
  rl_extension *extension = rl_lock_of(lock)->extension;
  if (extension == NULL) {
    return;
  }
  rl_attempt_unref(&rl_client_of(lock)->core.attempts, extension->borrowed_lease);
  free(extension->borrowed_message);
  extension->borrowed_lease = NULL;
  extension->borrowed_message = NULL;
}

void redlock_lock_free(redlock_lock *lock) {
  if (lock == NULL) {
    return;
  }
  redlock_client *client = rl_client_of(lock);
  rl_client_enter(client);
  rl_handle_take_back(lock);
  rl_lock_free(rl_lock_of(lock), redlock_now());
  rl_caller_send(client);
  rl_poll_sync(client);
  rl_client_leave_for_good(client); /* Without waiting, unlike redlock_client_free(). */
}

size_t rl_handle_size(const redlock_lock *lock) {
  const rl_lock *core = rl_lock_of(lock);
  size_t own = core->has_options ? sizeof(rl_options) : 0;
  size_t votes = core->core->node_count * sizeof core->votes[0];
  size_t renewal = core->renewal != NULL ? sizeof *core->renewal + votes : 0;
  size_t extension = core->extension != NULL ? sizeof *core->extension + RL_HANDLE_OVERHEAD : 0;
  size_t owned = rl_reentry_of(core) != NULL ? sizeof(rl_reentry) + RL_HANDLE_OVERHEAD : 0;
  return sizeof *core + own + votes + renewal + extension + owned +
         rl_resource_size(core->resource) + (size_t)2 * RL_HANDLE_OVERHEAD;
}
