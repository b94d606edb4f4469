/*
 * A client: its life, its settings and its nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_H
#define RL_CLIENT_H

#include "client/rl_caller.h"
#include "client/rl_client_enter.h"
#include "client/rl_client_state.h"
#include "client/rl_watchdog.h"

#define RL_CLIENT_DRAIN_US (100 * REDLOCK_MILLISECONDS)
#define RL_CLIENT_MESSAGE_MAX 2048

/* Wakes the callers that the changes concern (rl_caller.c), and unlocks the mutex. */
void rl_client_leave(redlock_client *client);

/* Does the same, and gives up a reference without draining: the client may be freed. */
void rl_client_leave_for_good(redlock_client *client);

/*
 * Frees a client without references; unsent bytes are lost. Called by its watchdog, it does so when
 * that ends.
 */
void rl_client_destroy(redlock_client *client);

/*
 * Notes the result of a call for redlock_client_message(). |sentence| is static or the client's;
 * NULL stands for the error's own. Returns |error|.
 */
int rl_client_note(redlock_client *client, int error, const char *sentence);

/*
 * Returns why the client's quorum does not fit the number of its nodes, as a static sentence, or
 * NULL.
 */
const char *rl_client_wrong_quorum(const redlock_client *client);

/*
 * Sends what is left, and waits for the replies until |deadline_us| or redlock_client_wakeup(). The
 * caller has entered the client; other threads may enter meanwhile.
 */
void rl_client_drain(redlock_client *client, redlock_time deadline_us);

/*
 * One step of redlock_client_close(), for a caller that has something else to do: waits until
 * |until_us|, and returns true if waiting on makes sense. The last step is redlock_client_close()
 * without time. |patience_us| is the limit for all steps together.
 */
bool rl_client_closing(redlock_client *client, redlock_time until_us, redlock_duration patience_us);

/*
 * Copies |text|, which may be NULL, into |room|, of REDLOCK_TEXT_MAX bytes of an info struct.
 * Returns |at|, the place of |room| in the program's struct, or NULL without a text. (Another
 * thread may change |text| as soon as the mutex is free.)
 */
const char *rl_client_copy_text(char *room, const char *text, const char *at);

/* Returns the approximate memory of a client without its locks and its output, in bytes. */
size_t rl_client_size(const redlock_client *client);

#endif
