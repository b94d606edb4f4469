/*
 * The queues of waiters of a simulated Redis, and its notifications.
 *
 * SPDX-License-Identifier: MIT
 *
 * The fake nodes subscribe connections, and take the messages for them.
 */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H

#include "fake_store.h"

/* Returns true if fake_queue_execute() executes the command. */
bool fake_queue_is(const fake_command *command);

/* |ends_us| is when the key expires, 0 when there is none; of each key. */
void fake_queue_execute(fake_store *store, const fake_command *command, const redlock_time *ends_us,
                        redlock_time now_us, char reply[FAKE_REPLY_MAX]);

/* A key was released and is |free| now. Returns what the script answers (wait_queue_notified). */
unsigned fake_queue_released(fake_store *store, const fake_command *command, const char *key,
                             size_t length, bool free);

/* Returns the 16 digits of the channel in a SUBSCRIBE or PUBLISH; "" for another channel. */
const char *fake_queue_channel(const fake_command *command);

/* The connection |subscriber| receives messages of this channel from now on; or no longer. */
void fake_queue_subscribe(fake_store *store, unsigned subscriber, const char *channel);
void fake_queue_unsubscribe(fake_store *store, unsigned subscriber);

/* Takes the oldest message for |subscriber|, as Redis sends it. Returns its length, or 0. */
size_t fake_queue_take(fake_store *store, unsigned subscriber, char bytes[FAKE_REPLY_MAX]);

/* Returns the entry at |index| in the queue of the key, from 0, until the next call; or NULL. */
const char *fake_queue_at(fake_store *store, const char *key, unsigned index);

/* Appends an entry; or deletes the queue. */
void fake_queue_put(fake_store *store, const char *key, const char *entry);
void fake_queue_clear(fake_store *store, const char *key);

#endif
