/*
 * Events of a run. A series of runs in which one of these never occurs has not tested it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_COUNTERS_H
#define SIM_COUNTERS_H

/* X(event, text) */
#define SIM_COUNTERS(X)                                                                            \
  X(INJECTED_CRASH_WITH_DATA, "node killed, restarted with its keys")                              \
  X(INJECTED_CRASH_EMPTY, "node killed, restarted empty after the longest ttl")                    \
  X(INJECTED_LOADING, "node answers -LOADING after its restart")                                   \
  X(INJECTED_STOP, "node stopped and continued")                                                   \
  X(INJECTED_SLOW_NODE, "node slow")                                                               \
  X(INJECTED_ERRORS, "node answers errors")                                                        \
  X(INJECTED_ERROR_AFTER_EXECUTION, "node executes and answers an error")                          \
  X(INJECTED_GARBAGE, "node sends what answers no command")                                        \
  X(INJECTED_GARBAGE_UNASKED, "node sends a reply to no command")                                  \
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
  X(INJECTED_MUTE, "connection whose replies are lost, unnoticed")                                 \
  X(INJECTED_HALF_OPEN, "connection half open")                                                    \
  X(INJECTED_STEP_BACK, "wall clock of a node stepped back")                                       \
  X(INJECTED_STEP_FORWARD, "wall clock of a node stepped forward, within lock_delay")              \
  X(INJECTED_RESTART_EMPTY, "node restarted at once, without its keys")                            \
  X(INJECTED_FLUSH, "FLUSHALL")                                                                    \
  X(INJECTED_PROMOTED, "a replica that is behind takes over")                                      \
  X(INJECTED_SWITCHED, "a replica that is behind takes over, and connections stay")                \
  X(INJECTED_FAILED_BACK, "a replica that is behind takes over, and fails back")                   \
  X(INJECTED_RESTORED, "node restarted with an older copy of its keys")                            \
  X(INJECTED_FAR_STEP, "wall clock of a node stepped forward, beyond lock_delay")                  \
  X(INJECTED_CLOCK_AHEAD, "wall clock of a node far ahead")                                        \
  X(INJECTED_CLOCK_BEHIND, "node restarted without its keys, its wall clock far behind")           \
  X(INJECTED_CLOCK_RIGHT, "wall clock of a node set right")                                        \
  X(FORGOTTEN_KEY, "key that a node has lost before its time")                                     \
  X(INJECTED_PAUSE, "client paused between two calls of the core")                                 \
  X(INJECTED_STALE_READING, "client paused between clock and call of the core")                    \
  X(INJECTED_SUSPEND, "client suspended")                                                          \
  X(INJECTED_CLIENT_CRASH, "client killed")                                                        \
  X(INJECTED_CLIENT_FORK, "client reset after fork")                                               \
  X(INJECTED_CLIENT_CLOSE, "client closed")                                                        \
  X(INJECTED_TAIL_DELAY, "delay at a boundary of the ttl")                                         \
  X(INJECTED_PIECES, "bytes delivered in pieces")                                                  \
  X(INJECTED_PARTIAL_WRITE, "socket takes a part of the bytes")                                    \
  X(TWIN_TESTED, "node that refused tested for being the server that granted")                     \
  X(ZOMBIE_EXECUTED, "command executed on a connection that was given up")                         \
  X(TERM_BEGUN, "leader elected")                                                                  \
  X(TERM_OUTLIVED, "leader that goes on after the loss of its lease")                              \
  X(TERM_LOST, "leader that stops after the loss of its lease")                                    \
  X(TERM_RETURNED, "leader that returns, and campaigns again")                                     \
  X(TERM_RESIGNED, "leader that resigns")                                                          \
  X(NATIVE_RELEASED, "native release: 1")                                                          \
  X(NATIVE_DENIED, "native release or extend: 0")                                                  \
  X(NATIVE_UNKNOWN, "native command that the node does not know")                                  \
  X(NATIVE_FLAG, "native release with waiters")                                                    \
  X(NATIVE_NO_FLAG, "native release without waiters")                                              \
  X(NATIVE_EXTENDED, "native extend: OK")                                                          \
  X(NATIVE_SHORTENED, "native extend that made a key shorter")                                     \
  X(LACKS_SCRIPTS, "script sent to a node that runs none")                                         \
  X(SET_GRANTED, "SET: OK")                                                                        \
  X(SET_TAKEN, "SET: nil")                                                                         \
  X(SCRIPT_GRANTED, "script: 1")                                                                   \
  X(SCRIPT_REFUSED, "script: 0")                                                                   \
  X(SCRIPT_WRONG_TYPE, "script: WRONGTYPE")                                                        \
  X(SEVERAL_GRANTED, "a script of several keys: done")                                             \
  X(SEVERAL_REFUSED, "a script of several keys: refused")                                          \
  X(FENCE_ONE_ROUND, "fencing token: all of a majority had the same number")                       \
  X(FENCE_TWO_ROUNDS, "fencing token: confirmed by a second round")                                \
  X(FENCE_BACKFILLED, "fencing token: sent to a node that was given the key later")                \
  X(FENCE_ATTACHED, "fencing token: handed over with its lease")                                   \
  X(FENCE_MOVED, "fencing token: it went to another lock of its owner")                            \
  X(FENCE_UNCONFIRMED, "fencing token: too few have confirmed it, though a majority had granted")  \
  X(FENCE_HELD, "nested acquire that asks for a fencing token: refused")                           \
  X(TAKE_OTHER, "script: the record is another")                                                   \
  X(RECORD_EMPTY, "record made where there was none")                                              \
  X(RECORD_RESTART, "record made after a restart")                                                 \
  X(RECORD_INVALIDATED, "record deleted because its node's clock was stepped far")                 \
  X(RECORD_CLOCK, "record created again because the clock was stepped")                            \
  X(GUARD_QUARANTINED, "acquire: unavailable because nodes are in quarantine")                     \
  X(GUARD_GRANTED, "acquire: OK, though nodes are in quarantine")                                  \
  X(MARGIN_MORE, "margin of a lease above that of a bare quorum")                                  \
  X(CONFIRM_GRANTED, "fencing token confirmed by a second round")                                  \
  X(CONFIRM_REFUSED, "fencing token not confirmed because the key is gone")                        \
  X(SCRIPT_UNKNOWN, "script: NOSCRIPT")                                                            \
  X(SCRIPT_BY_TEXT, "script sent by its text")                                                     \
  X(KEY_EXPIRED, "key expired")                                                                    \
  X(HANDSHAKE_REFUSED, "handshake refused")                                                        \
  X(ACQUIRE_OK, "acquire: OK")                                                                     \
  X(ACQUIRE_TAKEN, "acquire: taken")                                                               \
  X(ACQUIRE_UNAVAILABLE, "acquire: unavailable")                                                   \
  X(ACQUIRE_EXPIRED, "acquire: expired")                                                           \
  X(ACQUIRE_RAN_OUT, "acquire: granted, expired before the caller looked")                         \
  X(ACQUIRE_RETRIED, "acquire: granted after an earlier attempt had failed")                       \
  X(ACQUIRE_CANCELLED, "acquire: cancelled")                                                       \
  X(TOKEN_SUPPLIED, "acquire: with a caller-supplied token")                                       \
  X(ACQUIRE_HELD, "acquire: refused, held already")                                                \
  X(EXTEND_OK, "extend: OK")                                                                       \
  X(EXTEND_UNAVAILABLE, "extend: unavailable")                                                     \
  X(EXTEND_LOST, "extend: lost")                                                                   \
  X(EXTEND_EXPIRED, "extend: expired")                                                             \
  X(EXTEND_CANCELLED, "extend: cancelled")                                                         \
  X(EXTEND_NOT_HELD, "extend: refused, not held")                                                  \
  X(EXTEND_AFTER_FAILURE, "extend: OK after one that failed")                                      \
  X(RENEWED, "automatic extend: OK")                                                               \
  X(RENEWAL_OVERTAKEN, "automatic extend: overtaken by the user's operation")                      \
  X(LOSS_UNAVAILABLE, "reported: a lease may be lost soon")                                        \
  X(LOSS_LOST, "reported: a lease is lost")                                                        \
  X(LOSS_EXPIRED, "reported: a lease has expired")                                                 \
  X(LOSS_MAX_HOLD, "reported: max_hold has ended a lease")                                         \
  X(REENTRY_COUNTED, "nested acquire: counted")                                                    \
  X(REENTRY_AGAIN, "nested acquire of the same lock: counted")                                     \
  X(REENTRY_LATE, "nested acquire: counted when it was tried again")                               \
  X(REENTRY_EXTENDED, "nested acquire: extended first")                                            \
  X(REENTRY_NOT_EXTENDED, "nested acquire: failed because its extend failed")                      \
  X(REENTRY_PART, "nested acquire: refused, its owner holds a part")                               \
  X(REENTRY_OVER, "nested acquire: refused, its owner's lease is over")                            \
  X(REENTRY_BUSY, "extend: refused, another of its owner's is in flight")                          \
  X(REENTRY_COUNTED_DOWN, "release: not the last")                                                 \
  X(REENTRY_FIRE_AND_FORGET, "release: not the last, fire-and-forget")                             \
  X(REENTRY_MOVED, "lease went to another lock of its owner")                                      \
  X(INJECTED_NOTIFY_LOST, "notification lost")                                                     \
  X(INJECTED_NOTIFY_LATE, "notification late")                                                     \
  X(INJECTED_SUBSCRIBER_CUT, "connection of a subscriber broken")                                  \
  X(INJECTED_SUBSCRIBER_FORGOTTEN, "connection of a subscriber half open")                         \
  X(INJECTED_DEAF, "node that does not let clients subscribe, publish or queue")                   \
  X(INJECTED_QUEUES_LOST, "node has lost only its queues")                                         \
  X(INJECTED_SPLIT, "commands to one node delayed: queues differ in order")                        \
  X(NOTIFIED, "first ticket of a queue notified")                                                  \
  X(NOTIFIED_DISCONNECTED, "disconnected first ticket of a queue evicted")                         \
  X(NOTIFIED_KILLED, "client killed after its notification")                                       \
  X(NOTIFY_UNNOTICED, "notification for a client that is gone, unnoticed by the node")             \
  X(NOTIFY_RECEIVED, "notification received")                                                      \
  X(SUBSCRIBED, "SUBSCRIBE: done")                                                                 \
  X(SUBSCRIBE_DENIED, "SUBSCRIBE: NOPERM")                                                         \
  X(SUBSCRIBER_PINGED, "PING of a subscriber")                                                     \
  X(PROBE_RECEIVED, "probe: received")                                                             \
  X(PROBE_LOST, "probe: no subscriber")                                                            \
  X(PROBE_DENIED, "probe: NOPERM")                                                                 \
  X(ENQUEUE_HELD, "ENQUEUE: the key is there")                                                     \
  X(ENQUEUE_FREE, "ENQUEUE: the key is free")                                                      \
  X(ENQUEUE_BEHIND, "ENQUEUE: the key is free, but other waiters come first")                      \
  X(ENQUEUE_ALL, "ENQUEUE_ALL: a key is there, or other waiters come first")                       \
  X(ENQUEUE_ALL_FREE, "ENQUEUE_ALL: all keys are free")                                            \
  X(RESERVED, "ENQUEUE_ALL: a free key is reserved")                                               \
  X(ENQUEUE_DENIED, "ENQUEUE: refused")                                                            \
  X(ENQUEUE_ODD, "ENQUEUE, DEQUEUE or probe answered strangely")                                   \
  X(EVICTED, "ENQUEUE: the unresponsive first ticket is evicted")                                  \
  X(ENQUEUE_JOINED, "ENQUEUE: appended without asking for the key")                                \
  X(QUEUE_FULL, "ENQUEUE: the queue is full")                                                      \
  X(QUEUE_EXPIRED, "queue expired")                                                                \
  X(NO_FLAG, "release without a waiters flag")                                                     \
  X(RELEASE_SILENT, "release that was not allowed to notify")                                      \
  X(DEQUEUED, "DEQUEUE")                                                                           \
  X(DEQUEUED_AND_NOTIFIED, "DEQUEUE: the next waiter notified")                                    \
  X(WAIT_QUEUED, "acquire queued behind another of its client")                                    \
  X(WAIT_FAIR, "acquire with fair: OK")                                                            \
  X(WAIT_SERVED, "acquire: OK after it had waited in queues")                                      \
  X(WAIT_ENDED, "acquire: its budget ended in queues")                                             \
  X(CALL_RETURNED, "a blocking call returned")                                                     \
  X(BACKFILL_SENT, "a node got its key after the lock was taken")                                  \
  X(HEAL_SENT, "heal: SET sent")                                                                   \
  X(HEAL_GRANTED, "heal: SET granted")                                                             \
  X(DETACHED, "lease detached")                                                                    \
  X(ATTACHED, "lease attached")                                                                    \
  X(ATTACH_LOST, "attach: the detached lease is gone")                                             \
  X(INSPECT_OK, "inspection: OK")                                                                  \
  X(INSPECT_HOLDER, "inspection: a token has a majority")                                          \
  X(INSPECT_MINORITY, "inspection: a token without a majority")                                    \
  X(INSPECT_OTHER, "inspection: a key of another type")                                            \
  X(INSPECT_UNAVAILABLE, "inspection: unavailable")                                                \
  X(INSPECT_HELD, "inspection: refused, held")                                                     \
  X(FORCE_OK, "release by force: OK")                                                              \
  X(FORCE_NOT_HELD, "release by force: no key")                                                    \
  X(FORCE_UNAVAILABLE, "release by force: unavailable")                                            \
  X(FORCE_ANY, "release by force of any token")                                                    \
  X(FORCED_KEY, "key of a lease deleted by force")                                                 \
  X(FORCED_OVERLAP, "lock granted while a lease lasted that was ended by force")                   \
  X(RELEASE_OK, "release: OK")                                                                     \
  X(RELEASE_EXPIRED, "release: expired")                                                           \
  X(RELEASE_LOST, "release: lost")                                                                 \
  X(RELEASE_UNAVAILABLE, "release: unavailable")                                                   \
  X(HOLD_KEPT, "release: a node keeps the key")                                                    \
  X(HOLD_REFUSED, "release: a node cannot keep the key")                                           \
  X(HOLD_PROMISED, "release: the lock is kept until hold_at_least is over")                        \
  X(HOLD_HANDED_OVER, "lease attached with the rest of hold_at_least")                             \
  X(RELEASE_REPEATED, "release: repeated by the caller")                                           \
  X(RELEASE_FIRE_AND_FORGET, "release: fire-and-forget")                                           \
  X(RELEASE_ENDS_EXTEND, "release: ended an extend in flight")                                     \
  X(RELEASE_NOT_HELD, "release: refused, not held")                                                \
  X(RELEASE_RESENT, "release sent again after a broken connection")                                \
  X(LOCK_FREED_HELD, "lock freed while it was held")                                               \
  X(LOCK_FREED_BUSY, "lock freed with an operation in flight")                                     \
  X(LEASE_RAN_OUT, "lease expired")                                                                \
  X(SEND_PACED, "operation paced because nodes have much outstanding")                             \
  X(REPLY_STALE, "reply for a round that was over")                                                \
  X(CONNECTION_REFUSED, "connection refused")                                                      \
  X(CONNECTION_TIMED_OUT, "connection given up by the core")                                       \
  X(CONNECTION_RESET, "connection reset")                                                          \
  X(ORPHAN, "SET executed after the release of its token")                                         \
  X(CHECK_OVERLAP, "grants compared with other leases")                                            \
  X(LIVENESS_GRANTED, "lock granted after the faults had stopped")                                 \
  X(SETTLED, "nothing in flight, and nothing left")

typedef enum sim_counter {
#define SIM_COUNTER_NAME(name, text) SIM_##name,
  SIM_COUNTERS(SIM_COUNTER_NAME)
#undef SIM_COUNTER_NAME
      SIM_COUNTER_COUNT
} sim_counter;

const char *sim_counter_text(sim_counter counter);

#endif
