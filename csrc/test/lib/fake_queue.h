/*
 * The queues of a simulated Redis, in which clients wait for a key, and the messages that call them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Whoever has the connections subscribes the listeners, and takes the messages for them.
 */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H

#include "fake_store.h"

/* Returns true if it is one of the commands for calls, which fake_queue_execute() then executes. */
bool fake_queue_is(const fake_command *command);

/* |ends_us| is when the key expires, 0 when there is none. */
void fake_queue_execute(fake_store *store, const fake_command *command, redlock_time ends_us,
                        redlock_time now_us, char reply[FAKE_REPLY_MAX]);

/* A key was released; it is |free| now. Returns 2 if somebody was called, 3 if that is not allowed, else 1. */
unsigned fake_queue_released(fake_store *store, const fake_command *command, const char *key,
                             size_t length, bool free);

/* The 16 digits of the channel that a SUBSCRIBE names; "" if it is none of ours. */
const char *fake_queue_channel(const fake_command *command);

/* The connection |listener| receives from now on what is published in the channel of these 16 digits; nothing more. */
void fake_queue_subscribe(fake_store *store, unsigned listener, const char *channel);
void fake_queue_unsubscribe(fake_store *store, unsigned listener);

/* The oldest message for |listener|, as Redis sends it; 0 when there is none. Else its length. */
size_t fake_queue_take(fake_store *store, unsigned listener, char bytes[FAKE_REPLY_MAX]);

/* Who stands in the queue of the key, from 0; NULL for nobody. */
const char *fake_queue_at(fake_store *store, const char *key, unsigned index);

/* Somebody else comes last; everybody is forgotten. */
void fake_queue_put(fake_store *store, const char *key, const char *entry);
void fake_queue_clear(fake_store *store, const char *key);

#endif
