/*
 * What has occurred. A long run in which one of these never did has not tested what it claims to.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_COUNTERS_H
#define SIM_COUNTERS_H

/* Faults, then what the clients and the nodes went through. */
#define SIM_COUNTERS(X)                                                                            \
  X(INJECTED_CRASH_WITH_DATA, "node killed, restarted with its keys")                              \
  X(INJECTED_CRASH_EMPTY, "node killed, restarted empty after the longest ttl")                    \
  X(INJECTED_LOADING, "node answers -LOADING after its restart")                                   \
  X(INJECTED_STOP, "node stopped and continued")                                                   \
  X(INJECTED_SLOW_NODE, "node slow")                                                               \
  X(INJECTED_ERRORS, "node answers errors")                                                        \
  X(INJECTED_ERROR_AFTER_EXECUTION, "node executes and answers an error")                          \
  X(INJECTED_GARBAGE, "node answers what answers no command")                                      \
  X(INJECTED_GARBAGE_UNASKED, "node says something without being asked")                           \
  X(INJECTED_SCRIPT_FLUSH, "scripts flushed")                                                      \
  X(INJECTED_WRONG_TYPE, "a key of another type in the way")                                       \
  X(INJECTED_FOREIGN_KEY, "another program's key in the way")                                      \
  X(INJECTED_PARTITION, "partition, both ways")                                                    \
  X(INJECTED_PARTITION_REQUESTS, "partition, requests only")                                       \
  X(INJECTED_PARTITION_REPLIES, "partition, replies only")                                         \
  X(INJECTED_SLOW_LINK, "slow link")                                                               \
  X(INJECTED_BREAK_LOST, "connection broken, requests lost")                                       \
  X(INJECTED_BREAK_EXECUTED, "connection broken, requests executed, replies lost")                 \
  X(INJECTED_BREAK_LATER, "connection broken, requests executed later")                            \
  X(INJECTED_MUTE, "connection whose replies are lost, and nobody knows")                          \
  X(INJECTED_HALF_OPEN, "connection half open")                                                    \
  X(INJECTED_STEP_BACK, "wall clock of a node stepped back")                                       \
  X(INJECTED_STEP_FORWARD, "wall clock of a node stepped forward, within lock_delay")              \
  X(INJECTED_RESTART_EMPTY, "node restarted at once, without its keys")                            \
  X(INJECTED_FLUSH, "FLUSHALL")                                                                    \
  X(INJECTED_PROMOTED, "a replica that is behind takes over")                                      \
  X(INJECTED_SWITCHED, "a replica that is behind takes over, and connections stay")                \
  X(INJECTED_FAILED_BACK, "a replica that is behind takes over, and gives what it has back")       \
  X(INJECTED_RESTORED, "node restarted with an older copy of its keys")                            \
  X(INJECTED_FAR_STEP, "wall clock of a node stepped forward, beyond lock_delay")                  \
  X(INJECTED_CLOCK_AHEAD, "wall clock of a node far ahead")                                        \
  X(INJECTED_CLOCK_BEHIND, "node restarted without its keys, its wall clock far behind")           \
  X(INJECTED_CLOCK_RIGHT, "wall clock of a node set right")                                        \
  X(FORGOTTEN_KEY, "key that a node has lost before its time")                                     \
  X(INJECTED_PAUSE, "client paused between two calls")                                             \
  X(INJECTED_STALE_READING, "client paused between clock and call")                                \
  X(INJECTED_SUSPEND, "client suspended")                                                          \
  X(INJECTED_CLIENT_CRASH, "client killed")                                                        \
  X(INJECTED_CLIENT_FORK, "client forgets all, as a forked child does")                            \
  X(INJECTED_CLIENT_CLOSE, "client closed")                                                        \
  X(INJECTED_TAIL_DELAY, "delay at a boundary of the ttl")                                         \
  X(INJECTED_PIECES, "bytes delivered in pieces")                                                  \
  X(INJECTED_PARTIAL_WRITE, "socket takes a part of the bytes")                                    \
  X(TWIN_TESTED, "node that refused tested for being the server that granted")                     \
  X(ZOMBIE_EXECUTED, "command executed on a connection that was given up")                         \
  X(SET_GRANTED, "SET: OK")                                                                        \
  X(SET_TAKEN, "SET: nil")                                                                         \
  X(SCRIPT_GRANTED, "script: 1")                                                                   \
  X(SCRIPT_REFUSED, "script: 0")                                                                   \
  X(SCRIPT_WRONG_TYPE, "script: WRONGTYPE")                                                        \
  X(SEVERAL_GRANTED, "a script of several keys: done")                                             \
  X(SEVERAL_REFUSED, "a script of several keys: refused")                                          \
  X(FENCE_ONE_ROUND, "fencing token: all of a majority had the same number")                       \
  X(FENCE_TWO_ROUNDS, "fencing token: confirmed by a second round")                                \
  X(FENCE_KEPT, "fencing token: known on a node that has got the key late")                        \
  X(FENCE_ATTACHED, "fencing token: handed over with its lease")                                   \
  X(FENCE_MOVED, "fencing token: it went to another lock of its owner")                            \
  X(FENCE_UNCONFIRMED, "fencing token: too few have confirmed it, though a majority had granted")  \
  X(FENCE_HELD, "nested acquire that asks for a fencing token: refused")                           \
  X(TAKE_OTHER, "script: the record is another")                                                   \
  X(RECORD_EMPTY, "record made where there was none")                                              \
  X(RECORD_RESTART, "record made after a restart")                                                 \
  X(RECORD_INVALIDATED, "record deleted whose node's clock was stepped far")                       \
  X(RECORD_CLOCK, "record made anew, for the clock was stepped")                                   \
  X(GUARD_QUARANTINED, "acquire: unavailable, for nodes are in quarantine")                        \
  X(GUARD_GRANTED, "acquire: OK, though nodes are in quarantine")                                  \
  X(MARGIN_MORE, "margin of a lease above that of a bare quorum")                                  \
  X(CONFIRM_GRANTED, "fencing token confirmed by a second round")                                  \
  X(CONFIRM_REFUSED, "fencing token not confirmed, for the key is gone")                           \
  X(SCRIPT_UNKNOWN, "script: NOSCRIPT")                                                            \
  X(SCRIPT_BY_TEXT, "script sent by its text")                                                     \
  X(KEY_EXPIRED, "key expired")                                                                    \
  X(HANDSHAKE_REFUSED, "handshake refused")                                                        \
  X(ACQUIRE_OK, "acquire: OK")                                                                     \
  X(ACQUIRE_TAKEN, "acquire: taken")                                                               \
  X(ACQUIRE_UNAVAILABLE, "acquire: unavailable")                                                   \
  X(ACQUIRE_EXPIRED, "acquire: expired")                                                           \
  X(ACQUIRE_RAN_OUT, "acquire: granted, run out before the caller looked")                         \
  X(ACQUIRE_RETRIED, "acquire: granted after an earlier attempt had failed")                       \
  X(ACQUIRE_CANCELLED, "acquire: cancelled")                                                       \
  X(TOKEN_SUPPLIED, "acquire: its token given")                                                    \
  X(ACQUIRE_HELD, "acquire: refused, held already")                                                \
  X(EXTEND_OK, "extend: OK")                                                                       \
  X(EXTEND_UNAVAILABLE, "extend: unavailable")                                                     \
  X(EXTEND_LOST, "extend: lost")                                                                   \
  X(EXTEND_EXPIRED, "extend: expired")                                                             \
  X(EXTEND_CANCELLED, "extend: cancelled")                                                         \
  X(EXTEND_NOT_HELD, "extend: refused, not held")                                                  \
  X(EXTEND_AFTER_FAILURE, "extend: OK after one that failed")                                      \
  X(RENEWED, "automatic extend: OK")                                                               \
  X(RENEWAL_OVERTAKEN, "automatic extend: overtaken by an operation of the user's")                \
  X(LOSS_UNAVAILABLE, "told that a lease may be lost soon")                                        \
  X(LOSS_LOST, "told that a lease is lost")                                                        \
  X(LOSS_EXPIRED, "told that a lease has run out")                                                 \
  X(LOSS_MAX_HOLD, "told that max_hold has ended a lease")                                         \
  X(REENTRY_COUNTED, "nested acquire: counted")                                                    \
  X(REENTRY_AGAIN, "nested acquire of the same lock: counted")                                     \
  X(REENTRY_LATE, "nested acquire: counted when it was tried again")                               \
  X(REENTRY_EXTENDED, "nested acquire: extended first")                                            \
  X(REENTRY_NOT_EXTENDED, "nested acquire: failed, for its extend did")                            \
  X(REENTRY_PART, "nested acquire: refused, its owner holds a part")                               \
  X(REENTRY_OVER, "nested acquire: refused, its owner's lease is over")                            \
  X(REENTRY_BUSY, "extend: refused, another of its owner's is in flight")                          \
  X(REENTRY_COUNTED_DOWN, "release: not the last")                                                 \
  X(REENTRY_FIRE_AND_FORGET, "release: not the last, and not waited for")                          \
  X(REENTRY_MOVED, "lease went to another lock of its owner")                                      \
  X(INJECTED_CALL_LOST, "call lost on its way")                                                    \
  X(INJECTED_CALL_LATE, "call late")                                                               \
  X(INJECTED_SUBSCRIBER_CUT, "connection that hears calls broken")                                 \
  X(INJECTED_SUBSCRIBER_FORGOTTEN, "connection that hears calls half open")                        \
  X(INJECTED_DEAF, "node that does not let clients subscribe, publish or stand in queues")         \
  X(INJECTED_QUEUES_LOST, "node has lost its queues alone")                                        \
  X(INJECTED_SPLIT, "what a client sends is held up on its way to a node: calls are split")        \
  X(CALLED, "first of a queue called")                                                             \
  X(CALLED_DEAD, "first of a queue hears nothing: taken out")                                      \
  X(CALLED_DIED, "client killed after it was called")                                              \
  X(CALL_UNNOTICED, "call for a client that is gone, which the node has not noticed")              \
  X(CALL_HEARD, "call heard")                                                                      \
  X(SUBSCRIBED, "SUBSCRIBE: done")                                                                 \
  X(SUBSCRIBE_DENIED, "SUBSCRIBE: NOPERM")                                                         \
  X(SUBSCRIBER_PINGED, "connection that hears calls asked for a byte")                             \
  X(PROBE_HEARD, "probe: heard")                                                                   \
  X(PROBE_UNHEARD, "probe: nobody hears it")                                                       \
  X(PROBE_DENIED, "probe: NOPERM")                                                                 \
  X(STAND_HELD, "STAND: the key is there")                                                         \
  X(STAND_FREE, "STAND: the key is free")                                                          \
  X(STAND_BEHIND, "STAND: the key is free, but others come first")                                 \
  X(STAND_DENIED, "STAND: refused")                                                                \
  X(STAND_ODD, "STAND, LEAVE or probe answered strangely")                                         \
  X(EVICTED, "STAND: who was first and did not come is taken out")                                 \
  X(STAND_JOINED, "STAND: it joins others, and does not ask for the key")                          \
  X(QUEUE_FULL, "STAND: the queue is full")                                                        \
  X(QUEUE_EXPIRED, "queue expired")                                                                \
  X(NO_SIGN, "release without a sign that somebody waits")                                         \
  X(RELEASE_MUTE, "release that was not allowed to call")                                          \
  X(LEFT, "LEAVE")                                                                                 \
  X(LEFT_AND_CALLED, "LEAVE: the next one called")                                                 \
  X(WAIT_QUEUED, "acquire stood behind another of its client")                                     \
  X(WAIT_FAIR, "acquire with fair: OK")                                                            \
  X(WAIT_SERVED, "acquire: OK after it had waited in queues")                                      \
  X(WAIT_ENDED, "acquire: its budget ended in queues")                                             \
  X(CALL_RETURNED, "a client that does nothing between its calls returned")                        \
  X(BACKFILL_SENT, "a node got its key after the lock was taken")                                  \
  X(HEAL_SENT, "heal: SET sent")                                                                   \
  X(HEAL_GRANTED, "heal: SET granted")                                                             \
  X(DETACHED, "lease detached")                                                                    \
  X(ATTACHED, "lease attached")                                                                    \
  X(ATTACH_LOST, "attach: what was detached is there no more")                                     \
  X(INSPECT_OK, "inspection: OK")                                                                  \
  X(INSPECT_HOLDER, "inspection: a token has a majority")                                          \
  X(INSPECT_MINORITY, "inspection: a token without a majority")                                    \
  X(INSPECT_OTHER, "inspection: a key of another type")                                            \
  X(INSPECT_UNAVAILABLE, "inspection: unavailable")                                                \
  X(INSPECT_HELD, "inspection: refused, held")                                                     \
  X(FORCE_OK, "release by force: OK")                                                              \
  X(FORCE_NOT_HELD, "release by force: nothing was there")                                         \
  X(FORCE_UNAVAILABLE, "release by force: unavailable")                                            \
  X(FORCE_ANY, "release by force of whatever the key holds")                                       \
  X(FORCED_KEY, "key of a lease deleted by force")                                                 \
  X(FORCED_OVERLAP, "lock granted while a lease lasted that was ended by force")                   \
  X(RELEASE_OK, "release: OK")                                                                     \
  X(RELEASE_EXPIRED, "release: expired")                                                           \
  X(RELEASE_LOST, "release: lost")                                                                 \
  X(RELEASE_UNAVAILABLE, "release: unavailable")                                                   \
  X(RELEASE_REPEATED, "release: repeated by the caller")                                           \
  X(RELEASE_FIRE_AND_FORGET, "release: not waited for")                                            \
  X(RELEASE_ENDS_EXTEND, "release: ended an extend in flight")                                     \
  X(RELEASE_NOT_HELD, "release: refused, not held")                                                \
  X(RELEASE_RESENT, "release sent again after a broken connection")                                \
  X(LOCK_FREED_HELD, "lock freed while it was held")                                               \
  X(LOCK_FREED_BUSY, "lock freed with an operation in flight")                                     \
  X(LEASE_RAN_OUT, "lease ran out")                                                                \
  X(SEND_PACED, "launch put off, for the nodes owe much")                                          \
  X(REPLY_STALE, "reply for a round that was over")                                                \
  X(CONNECTION_REFUSED, "connection refused")                                                      \
  X(CONNECTION_TIMED_OUT, "connection given up by the core")                                       \
  X(CONNECTION_RESET, "connection reset")                                                          \
  X(ORPHAN, "SET executed after the release of its token")                                         \
  X(CHECK_OVERLAP, "grants compared with the leases of others")                                    \
  X(LIVENESS_GRANTED, "lock granted after the faults had stopped")                                 \
  X(SETTLED, "all quiet, and nothing left")

typedef enum sim_counter {
#define SIM_COUNTER_NAME(name, text) SIM_##name,
  SIM_COUNTERS(SIM_COUNTER_NAME)
#undef SIM_COUNTER_NAME
      SIM_COUNTER_COUNT
} sim_counter;

const char *sim_counter_text(sim_counter counter);

#endif
