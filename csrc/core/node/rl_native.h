/*
 * Native commands: compare-and-delete and compare-and-set without a script.
 *
 * SPDX-License-Identifier: MIT
 *
 *   NAT-1. A connection tries DELIFEQ and DELEX once, after the first awaited release that is not
 *          the connection's first release. The tries have the key and token of that release. So a
 *          try deletes nothing. Its answer shows if the node knows the command, and if user and
 *          proxy permit it. A program that releases once sends no try. A node that hangs up on the
 *          tries gets none again.
 *   NAT-2. Later releases of one key use the command that the node knows. EXISTS of the waiters
 *          flag follows in the same write. EXISTS answers 1 if clients wait: then the client sends
 *          RELEASE_NOTIFY. That script notifies the first ticket if the key is free. Otherwise
 *          another client holds the key, and its release notifies. The flag stays meanwhile, so
 *          that a lost connection costs one notification at most.
 *   NAT-3. These releases use the script:
 *            - of several keys
 *            - within hold_at_least
 *            - on a connection without an answer to the tries
 *          If the node notifies waiters, these releases use the script, too:
 *            - if no caller awaits them, because the client may end before it reads the answer of
 *              EXISTS, or if they must dequeue a ticket
 *            - with a caller's token: another client may have taken the key with that token in
 *              between, and RELEASE_NOTIFY would delete it
 *   NAT-4. A node that refuses EVAL gets native commands for a minute: for extends, and for
 *          releases of one key outside hold_at_least.
 *   NAT-5. SET IFEQ replaces the life of the key, and so may shorten it: in an extend by less than
 *          is left, or executed after a later extend. Three rules prevent that (docs/safety.md):
 *            - The new end must cover the lease.
 *            - A SET IFEQ may be executed late if its connection ended before the answer, or if a
 *              proxy may have passed it on. Such a node gets no key and no extend for a longer
 *              life, not even by a script.
 *            - Keys with a caller's token are not extended: another client may have a longer lease
 *              with that token.
 */
#ifndef RL_NATIVE_H
#define RL_NATIVE_H

#include "node/rl_link.h"

/* How long a node that has refused EVAL is not asked for scripts that a native command replaces. */
#define RL_NATIVE_NO_SCRIPTS_US (60 * REDLOCK_SECONDS)

/* Commands of the kind RL_OUTSTANDING_NATIVE, besides the tries: RL_NATIVE_DELIFEQ and DELEX. */
typedef enum rl_native_step {
  RL_NATIVE_FLAG = RL_NATIVE_NONE + 1, /* NAT-2: EXISTS of the waiters flag */
  RL_NATIVE_NOTIFY                     /* NAT-2: RELEASE_NOTIFY of a released key */
} rl_native_step;

/* Returns true if the node has refused EVAL, and a native command can replace scripts. */
static inline bool rl_native_replaces_scripts(const rl_link *link, redlock_time now_us) {
  return link->no_scripts_until_us > now_us && link->native != RL_NATIVE_OFF;
}

/*
 * Return true if a native command does the release (NAT-2 to NAT-4), or the extend (NAT-4, NAT-5).
 */
bool rl_native_is_for_release(const rl_link *link, redlock_time now_us, const rl_attempt *attempt);
bool rl_native_is_for_extend(const rl_link *link, redlock_time now_us, const rl_attempt *attempt,
                             uint64_t ttl_ms);

/* NAT-5. Returns true if the node may still execute a native extend for less than |key_ms|. */
static inline bool rl_native_may_shorten(const rl_link *link, const rl_attempt *attempt,
                                         uint64_t key_ms) {
  return (attempt->may_shorten & link->bit) != 0 && key_ms > attempt->least_ms;
}

/* Queue |command| natively, as rl_link_queue.h. */
bool rl_native_queue_release(rl_link *link, rl_outstanding *command, bool grow);
bool rl_native_queue_extend(rl_link *link, rl_outstanding *command, uint64_t ttl_ms);

/*
 * NAT-1. The node has released the key of |attempt|: queues the tries, or lets a later release do
 *        so.
 */
void rl_native_try_after_release(rl_link *link, redlock_time now_us, rl_attempt *attempt);

/* NAT-2. Returns true if the next reply is that of EXISTS. */
bool rl_native_awaits_flag(const rl_link *link);

/* NAT-2. Queues the script that notifies, after the flag was found. */
bool rl_native_queue_notify(rl_link *link, redlock_time now_us, rl_attempt *attempt, bool by_text);

/* NAT-4. Forgets that the node knows no native command: the next release uses one without a try. */
void rl_native_forget_none(rl_link *link);

/* NAT-1. Notes if the node knows the command that was tried. */
void rl_native_note_try(rl_link *link, unsigned step, bool knows);

/* Returns true if the error refuses EVAL and EVALSHA themselves, not their content. */
bool rl_native_refuses_scripts(const char *error);

/*
 * Notes that the node refuses the native |command|, which did nothing: the connection does not send
 * that command again. Returns false, and notes nothing, if the reply is something else.
 */
bool rl_native_note_refusal(rl_link *link, const rl_outstanding *command);

#endif
