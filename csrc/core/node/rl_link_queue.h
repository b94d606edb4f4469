/*
 * Commands of operations for a connection that is up.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LINK_QUEUE_H
#define RL_LINK_QUEUE_H

#include "node/rl_link.h"

/*
 * Queue a command of an attempt, and take a reference. Each returns false, and changes nothing, if
 * out of memory. With |grow| false nothing is allocated. A script is sent as text with |by_text|,
 * or if the node may not know it. A SET of several keys is a script.
 */
bool rl_link_queue_set(rl_link *link, redlock_time now_us, rl_outstanding_kind kind,
                       rl_attempt *attempt, uint32_t round, uint64_t ttl_ms);
bool rl_link_queue_extend(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          bool by_text, uint64_t ttl_ms);
bool rl_link_queue_release(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, bool grow);

/*
 * Their counterparts with a fencing token or a guard (rl_command_fenced()): TAKE replaces SET,
 * PROLONG replaces the extend. With |own|, TAKE repeats a lease with the issued token |fence|;
 * otherwise it proposes |fence|, to the server that the guard knows.
 */
bool rl_link_queue_take(rl_link *link, redlock_time now_us, rl_outstanding_kind kind,
                        rl_attempt *attempt, uint32_t round, uint64_t ttl_ms, bool own,
                        uint64_t fence);
bool rl_link_queue_prolong(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, uint64_t ttl_ms, uint64_t fence);
bool rl_link_queue_confirm(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, uint64_t ttl_ms, uint64_t fence);

/* Asks which slots of a semaphore exist: the resource of |attempt| is its name. */
bool rl_link_queue_slots(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                         bool by_text, unsigned permits);

/* Replaces the token of |handed| by the attempt's, if the key lives for more than |floor_ms|. */
bool rl_link_queue_attach(rl_link *link, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          const rl_attempt *handed, uint64_t ttl_ms, uint64_t floor_ms);

/* Deletes the key if it has the attempt's token, or with attempt->deletes_any_token in any case. */
bool rl_link_queue_force(rl_link *link, const rl_outstanding *command);

/* Queues any command of |count| arguments. */
bool rl_link_queue_arguments(rl_link *link, const rl_outstanding *command,
                             const rl_command_bytes *arguments, unsigned count);

/*
 * ENQUEUE, or ENQUEUE_LABEL with |labels|, and DEQUEUE of |entry| in the queue of the base key
 * |key| (rl_command.h). |permits| of a semaphore, or 0.
 */
bool rl_link_queue_enqueue(rl_link *link, redlock_time now_us, uint32_t ticket, const char *key,
                           size_t length, const char *entry, unsigned mode, bool labels,
                           unsigned permits);
bool rl_link_queue_dequeue(rl_link *link, redlock_time now_us, uint32_t ticket, const char *key,
                           size_t length, const char *entry, unsigned permits);

/* ENQUEUE_ALL of |entry| in the queues of all keys of |base| (rl_command.h). */
bool rl_link_queue_enqueue_all(rl_link *link, redlock_time now_us, uint32_t ticket,
                               const rl_resource *base, const char *entry, const char *before,
                               const char *notified);

/* PUBLISH of an empty message to |channel|. */
bool rl_link_queue_probe(rl_link *link, redlock_time now_us, const char *channel);

#endif
