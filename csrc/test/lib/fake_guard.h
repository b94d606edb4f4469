/*
 * The part of a simulated Redis that the guard uses: its run_id, and its lineage record.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAKE_GUARD_H
#define FAKE_GUARD_H

#include "fake_store.h"
#include "resp.h"

/* Returns true if the command is the guard's question, and reading it. */
bool fake_guard_is(const resp_request *request);
bool fake_guard_parse(fake_command *command, const resp_request *request);

/* Executes it. */
void fake_guard_execute(fake_store *store, redlock_time now_us, const fake_command *command,
                        char reply[FAKE_REPLY_MAX]);

/*
 * Returns true if the command is TAKE of one server: by its text, or by a SHA-1 that is no other
 * script's.
 */
bool fake_guard_takes(const resp_request *request);

/*
 * Returns true if the node does not execute such a TAKE, because it is another server or does not
 * know the script. Then it answers |reply|.
 */
bool fake_guard_declines(fake_store *store, redlock_time now_us, const fake_command *command,
                         char reply[FAKE_REPLY_MAX]);

/* The server is started again as |run_id|; without its keys and its record if they are |lost|. */
void fake_store_restart(fake_store *store, const char *run_id, bool lost);

/* FLUSHALL: the server goes on, with the scripts that it knows. */
void fake_store_flush(fake_store *store);

#endif
