/*
 * A client: its life, its settings and its nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_H
#define RL_CLIENT_H

#include "client/rl_client_enter.h"
#include "client/rl_client_state.h"
#include "client/rl_client_wait.h"
#include "client/rl_watchdog.h"

#define RL_CLIENT_DRAIN_US (100 * REDLOCK_MILLISECONDS)
#define RL_CLIENT_MESSAGE_MAX 2048

/*
 * To be called last: what has changed is told to the threads that wait (rl_client_wait.c), and the
 * mutex is free.
 */
void rl_client_leave(redlock_client *client);

/* The same, and gives up a reference: the client may be gone. It is not drained. */
void rl_client_leave_for_good(redlock_client *client);

/*
 * Frees a client that nobody refers to; what has not been sent is lost. Called by its keeper, it
 * ends when that does.
 */
void rl_client_destroy(redlock_client *client);

/*
 * Notes what a call ended with for redlock_client_message(): |sentence| is static or the client's,
 * or NULL for the error's own. Returns |error|.
 */
int rl_client_note(redlock_client *client, int error, const char *sentence);

/*
 * What is wrong with the client's quorum for as many nodes as it has, as a static sentence, or
 * NULL.
 */
const char *rl_client_wrong_quorum(const redlock_client *client);

/*
 * Sends what is left and waits for the replies, at most until |deadline_us| or
 * redlock_client_wakeup(). The caller has entered; others may come while it waits.
 */
void rl_client_drain(redlock_client *client, redlock_time deadline_us);

/*
 * redlock_client_close() in steps, for a caller that has to look at something else while it waits:
 * waits until |until_us|, and returns whether it is of use to wait on. In the end
 * redlock_client_close() without time. |patience_us| is what all steps together may take.
 */
bool rl_client_closing(redlock_client *client, redlock_time until_us, redlock_duration patience_us);

/*
 * Copies |text|, which may be NULL, into |room|, of REDLOCK_TEXT_MAX bytes of an info struct.
 * Returns |at|, the place of |room| in the program's struct, or NULL without a text. (Another
 * thread may change |text| as soon as the mutex is free.)
 */
const char *rl_client_copy_text(char *room, const char *text, const char *at);

/* The memory of a client without its locks and what is being sent, about. */
size_t rl_client_size(const redlock_client *client);

#endif
