-- The negative controls: what the checkers must notice. Each is a change of the core that makes it
-- wrong in one way, or an assumption of docs/safety.md that the simulator breaks.
--
-- build-aux/sim_controls.lua runs them: it applies a change to a copy of csrc/core (each "from" must
-- occur exactly once), builds the simulator with it, and runs seeds until a checker fails.
-- "unit" names the unit test that kills a change of which luck is a poor finder.
--
-- SPDX-License-Identifier: MIT

local controls = {}

local function assumption(breach, what)
  controls[#controls + 1] = { name = breach, what = what, breach = breach }
end

local function core(name, what, file, from, to, unit)
  controls[#controls + 1] = { name = name, what = what, file = file, from = from, to = to, unit = unit }
end

-- Assumptions A1 to A10.
assumption("node-lists", "A1, A10: clients use different lists of nodes")
assumption("databases", "A1: some clients use another database")
assumption("not-atomic", "A2: SET NX is not atomic")
assumption("failover", "A2: a replica that is behind takes over")
assumption("restart-empty", "A3: a node restarts without its data, inside the ttl")
assumption("step-forward", "A3: a node's wall clock is stepped forward beyond lock_delay")
assumption("eviction", "A3: a node evicts a key")
assumption("flush", "A3: FLUSHALL")
assumption("foreign-delete", "A3: somebody deletes the key")
assumption("fast-node", "A4: nodes' clocks run faster than drift_factor allows")
assumption("slow-client", "A4: clients' clocks run slower than drift_factor allows")
assumption("frozen-clock", "A4: a client's clock stands still in suspend")
assumption("wall-clock", "A4: a client's clock is stepped back")
assumption("token-reused", "A5: one token for all attempts of a lock")
assumption("token-shared", "A5: all clients draw the same token")
assumption("reply-lost", "A6: a reply vanishes from the stream")
assumption("late-reading", "A7: the clock is read after the commands were sent")
assumption("late-holder", "A9: holders do not stop at their deadline")

-- Counting votes.
core("quorum-off-by-one", "half the nodes are a majority", "rl_quorum.c",
  "return nodes / 2 + 1;", "return nodes < 2 ? 1 : nodes / 2;")
core("quorum-of-the-living", "a majority of the nodes that answer", "rl_quorum.c",
  "  unsigned majority = rl_quorum_majority(quorum->nodes);\n  assert(quorum->unsent == 0);",
  "  unsigned majority = rl_quorum_majority(quorum->nodes - quorum->failed);\n  assert(quorum->unsent == 0);")
core("unknown-counts", "a node that did not answer counts as granted", "rl_lock.c",
  [[  case REDLOCK_VOTE_ERROR:
  case REDLOCK_VOTE_UNKNOWN:
  default:
    lock->quorum.failed++;]],
  [[  case REDLOCK_VOTE_UNKNOWN:
    lock->quorum.granted++;
    break;
  case REDLOCK_VOTE_ERROR:
  default:
    lock->quorum.failed++;]])
core("error-counts", "an error counts as granted", "rl_core.c",
  "  return RL_BALLOT_ERROR;\n}", "  return RL_BALLOT_GRANTED;\n}")
core("taken-counts-for-extend", "a node that says 'not yours' counts for an extend", "rl_core.c",
  "  return reply->type == RL_REPLY_INTEGER && reply->integer == 0 ? RL_BALLOT_TAKEN",
  "  return reply->type == RL_REPLY_INTEGER && reply->integer == 0 ? RL_BALLOT_GRANTED")
core("nil-counts", "SET answered nil counts as granted", "rl_core.c",
  "return reply->type == RL_REPLY_NIL ? RL_BALLOT_TAKEN : RL_BALLOT_BROKEN;",
  "return reply->type == RL_REPLY_NIL ? RL_BALLOT_GRANTED : RL_BALLOT_BROKEN;")
core("any-status-counts", "any status reply to SET counts as granted", "rl_core.c",
  [[reply->type == RL_REPLY_STATUS && strcmp(reply->text, "OK") == 0) {
      return RL_BALLOT_GRANTED;]],
  [[reply->type == RL_REPLY_STATUS) {
      return RL_BALLOT_GRANTED;]])
core("any-integer-counts", "any integer but 0 counts for a script", "rl_core.c",
  "reply->type == RL_REPLY_INTEGER && reply->integer == 1) {",
  "reply->type == RL_REPLY_INTEGER && reply->integer != 0) {")
core("noscript-counts", "NOSCRIPT counts as granted", "rl_core.c",
  "    return RL_BALLOT_NO_SCRIPT;\n  }", "    return RL_BALLOT_GRANTED;\n  }")
core("round-not-checked", "a vote counts in whatever round it comes", "rl_lock.c",
  "if (owed->round != lock->round || entry->settled) {", "if (entry->settled) {")
core("one-vote-twice", "the replies of a node count as often as they come", "rl_lock.c",
  "  if (entry->settled) {\n    return;\n  }\n  entry->settled = true;", "  entry->settled = true;")
core("replies-out-of-step", "the newest command is taken for the one that was answered", "rl_node.c",
  "  *owed = node->link.owed[node->link.owed_head];\n"
  .. "  node->link.owed_head = node->link.owed_head + 1 == node->link.owed_capacity ? 0 : node->link.owed_head + 1;\n",
  "  *owed = node->link.owed[(node->link.owed_head + node->link.owed_count - 1) % node->link.owed_capacity];\n")

-- Validity.
core("elapsed-not-subtracted", "validity is counted from the decision", "rl_lock.c",
  [[static void rl_acquire_granted(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us = rl_validity_deadline(lock->round_start_us,]],
  [[static void rl_acquire_granted(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us = rl_validity_deadline(now_us,]])
core("validity-not-checked", "a majority that comes too late is a lock", "rl_lock.c",
  "  if (now_us >= deadline_us) {\n    rl_acquire_failed",
  "  if (deadline_us == 0) {\n    rl_acquire_failed", "rl_lock_acquire_test")
core("validity-at-least-a-moment", "a majority that comes too late is a lock for 5 ms", "rl_lock.c",
  "  if (now_us >= deadline_us) {\n    rl_acquire_failed(lock, now_us, REDLOCK_E_EXPIRED);\n    return;\n  }",
  "  if (now_us >= deadline_us) {\n    deadline_us = now_us + 5000;\n  }")
core("drift-dropped", "no allowance for drift", "rl_validity.c",
  "  return rl_time_add(whole, RL_VALIDITY_GRANULARITY_US);", "  return whole - whole;")
core("drift-halved", "half the allowance for drift", "rl_validity.c",
  "double exact = (double)ttl_us * drift_factor;", "double exact = (double)ttl_us * drift_factor / 2;")
core("drift-without-factor", "only the 2 ms of the allowance", "rl_validity.c",
  "double exact = (double)ttl_us * drift_factor;", "double exact = (double)ttl_us * drift_factor * 0;")
core("drift-without-granularity", "only the factor of the allowance", "rl_validity.c",
  "#define RL_VALIDITY_GRANULARITY_US (2 * REDLOCK_MILLISECONDS)",
  "#define RL_VALIDITY_GRANULARITY_US (0 * REDLOCK_MILLISECONDS)", "rl_validity_test")
core("lock-delay-counted", "lock_delay is added to the lease, too", "rl_lock.c",
  "  lock->lease = lock->attempt;\n  lock->attempt = NULL;\n  lock->deadline_us = deadline_us;",
  "  lock->lease = lock->attempt;\n  lock->attempt = NULL;\n"
  .. "  lock->deadline_us = deadline_us + lock->current.lock_delay_us;")
core("key-too-short", "nodes are asked to keep the key for 9/10 of the ttl", "rl_options.c",
  "return rl_time_ms_up(rl_time_add(ttl_us, options->lock_delay_us));",
  "return rl_time_ms_up(rl_time_add(ttl_us - ttl_us / 10, options->lock_delay_us));")
core("lock-delay-dropped", "lock_delay is not asked for", "rl_options.c",
  "return rl_time_ms_up(rl_time_add(ttl_us, options->lock_delay_us));",
  "(void)options;\n  return rl_time_ms_up(ttl_us);")

-- Extending.
core("extend-from-now", "an extension is counted from its last vote", "rl_lock.c",
  [[static void rl_extend_confirmed(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us = rl_validity_deadline(lock->round_start_us,]],
  [[static void rl_extend_confirmed(rl_lock *lock, redlock_time now_us) {
  redlock_time deadline_us = rl_validity_deadline(now_us,]])
core("extend-past-deadline", "an extension counts after the old deadline", "rl_lock.c", {
  "    if (now_us >= lock->deadline_us) {\n      rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);\n"
  .. "    } else if (decision",
  "    lock->round_deadline_us = rl_time_min(lock->round_deadline_us, lock->deadline_us);",
}, {
  "    if (lock->lease == NULL) {\n      rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);\n    } else if (decision",
  "",
})
core("extend-after-expiry", "a lease that has run out can be extended", "rl_lock.c", {
  "  if (rl_lock_remaining(lock, now_us) == 0) {\n"
  .. "    return rl_lock_refuse(lock, RL_OPERATION_EXTEND, REDLOCK_E_EXPIRED);\n  }\n",
  "  if (lock->operation == RL_OPERATION_EXTEND && rl_lock_remaining(lock, now_us) == 0) {",
  "    if (now_us >= lock->deadline_us) {\n      rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);\n"
  .. "    } else if (decision",
  "    lock->round_deadline_us = rl_time_min(lock->round_deadline_us, lock->deadline_us);",
}, {
  "",
  "  if (lock->operation == RL_OPERATION_EXTEND && lock->lease == NULL) {",
  "    if (lock->lease == NULL) {\n      rl_lock_end(lock, now_us, REDLOCK_E_EXPIRED);\n    } else if (decision",
  "",
})
core("extend-shortens", "asked for less than is left, an extension shortens the lease", "rl_lock.c",
  "lock->deadline_us = rl_time_max(lock->deadline_us, deadline_us);", "lock->deadline_us = deadline_us;")
core("extend-shortens-keys", "an extension shortens the keys of a lease", "rl_command.c",
  [["if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then "
                          "redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 1",]],
  [["return redis.call('PEXPIRE',KEYS[1],ARGV[2])",]])
core("extend-recreates", "an extension sets the key where it is missing", "rl_command.c",
  [[{"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "]],
  [[{"if redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end "
                          "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
                          "return redis.call('PEXPIRE',KEYS[1],ARGV[2])", ""},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "]])
core("extend-not-compared", "an extension prolongs whatever key there is", "rl_command.c",
  [[{"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "]],
  [[{"return redis.call('PEXPIRE',KEYS[1],ARGV[2])", ""},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "]])
core("extend-overwrites", "an extension sets the key, whoever has it", "rl_command.c",
  [[{"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "]],
  [[{"redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1", ""},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "]])
core("heal-before-majority", "a node without the key gets it before a majority has confirmed", "rl_lock.c", {
  "  assert(lock->confirmed);\n",
  "    rl_round_settle(lock, node->index, vote, error, latency_us);\n    rl_round_decide(lock, now_us);",
}, {
  "",
  "    rl_round_settle(lock, node->index, vote, error, latency_us);\n"
  .. "    if (lock->operation == RL_OPERATION_EXTEND && vote == REDLOCK_VOTE_TAKEN) {\n"
  .. "      rl_extend_heal(lock, now_us, node);\n    }\n    rl_round_decide(lock, now_us);",
})
core("heal-not-released", "a key that was given back is not released", "rl_lock.c",
  "RL_OWED_HEAL, lock->lease, lock->round, key_ms)) {\n    return;\n  }\n  lock->lease->sent |= rl_lock_bit(node);",
  "RL_OWED_HEAL, lock->lease, lock->round, key_ms)) {\n    return;\n  }")
core("failed-extend-releases", "an extension that fails releases the lease", "rl_lock.c",
  "      rl_lock_end(lock, now_us,\n"
  .. "                  decision == RL_DECISION_TAKEN ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);",
  "      rl_release_begin(lock->core, now_us, lock->lease, true);\n      rl_lock_end(lock, now_us,\n"
  .. "                  decision == RL_DECISION_TAKEN ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);")
core("failed-extend-counts", "an extension that fails moves the deadline all the same", "rl_lock.c",
  "      rl_lock_end(lock, now_us,\n"
  .. "                  decision == RL_DECISION_TAKEN ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);",
  "      lock->deadline_us += 1000;\n      rl_lock_end(lock, now_us,\n"
  .. "                  decision == RL_DECISION_TAKEN ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);")
core("extend-sent-late", "an extend goes out again by its text after its round", "rl_core.c",
  "  if (lock == NULL || lock->phase != RL_PHASE_ROUND || lock->round != owed->round) {",
  "  if (lock == NULL || lock->lease == NULL) {")

-- Setting and releasing.
core("set-without-nx", "SET without NX", "rl_command.c",
  [[  out = rl_command_argument(out, "NX", 2);]], [[  out = rl_command_argument(out, "GET", 3);]])
core("no-release-after-failure", "an attempt that failed is not released", "rl_lock.c",
  "  if (!attempt->releasing) {\n    rl_release_begin(lock->core, now_us, attempt, grow);\n  }",
  "  if (!attempt->releasing && lock->operation != RL_OPERATION_ACQUIRE) {\n"
  .. "    rl_release_begin(lock->core, now_us, attempt, grow);\n  }")
core("release-only-where-granted", "only the nodes that voted for it are sent the release", "rl_core.c",
  "  attempt->due = attempt->sent & ~attempt->released;",
  "  attempt->due = attempt->sent & ~attempt->released;\n"
  .. "  for (unsigned i = 0; attempt->lock != NULL && i < core->node_count; i++) {\n"
  .. "    if (attempt->lock->votes[i].vote != REDLOCK_VOTE_GRANTED) {\n"
  .. "      attempt->due &= ~((uint32_t)1 << i);\n    }\n  }")
core("release-not-compared", "a release deletes whatever key there is", "rl_command.c",
  [[{"if redis.call('GET',KEYS[1])==ARGV[1] then "
                           "return redis.call('DEL',KEYS[1]) end return 0",]],
  [[{"return redis.call('DEL',KEYS[1])",]])
core("release-before-the-lease-ends", "the lease stays valid while its release is on its way", "rl_lock.c",
  "  lock->lease = NULL;\n  lock->unreleased = NULL;\n  lock->deadline_us = 0;\n"
  .. "  lock->current = lock->lease_options;",
  "  if (lock->lease != NULL) {\n    (void)rl_attempt_ref(lock->lease);\n  }\n  lock->unreleased = NULL;\n"
  .. "  lock->current = lock->lease_options;")
core("release-not-repeated", "a release is lost with its connection", "rl_core.c",
  "    if (owed.kind == RL_OWED_RELEASE && attempt->expired_us > now_us) {",
  "    if (attempt->references == 0) {")
core("release-on-another-connection", "a node that did not answer in time is disconnected", "rl_node.c",
  "    return node->link.owed_count == 0 ? REDLOCK_NEVER : rl_time_add(node->link.heard_us, node->link.silence_us);",
  "    return node->link.owed_count == 0 ? REDLOCK_NEVER : rl_time_add(node->link.heard_us, 30000);")
core("release-early-answer", "a release is done with the first answer", "rl_quorum.c",
  "  if (quorum->granted >= majority) {\n    return RL_DECISION_MAJORITY;\n  }\n  if (quorum->taken >= majority) {",
  "  if (quorum->granted >= 1) {\n    return RL_DECISION_MAJORITY;\n  }\n  if (quorum->taken >= majority) {")
core("lost-set-expires-early", "a SET that a broken connection may still deliver counts from when it was sent",
  "rl_core.c",
  "    if (owed.kind != RL_OWED_RELEASE) {\n", "    if (owed.kind == RL_OWED_HANDSHAKE) {\n")
core("garbage-expires-early", "a SET that was answered with garbage counts from when it was sent", "rl_core.c",
  "    if (owed->kind != RL_OWED_RELEASE) {\n", "    if (owed->kind == RL_OWED_HANDSHAKE) {\n")
core("text-expires-early", "an extend that went again by its text counts from when it went by its name", "rl_core.c",
  "  rl_attempt_will_live(owed->attempt, now_us, key_ms);\n", "", "rl_regression_test")
core("waits-for-what-is-not-sent", "a release waits for a node on which the key has expired", "rl_core.c",
  "    if (gone || attempt->due == 0) {", "    attempt->due = gone ? 0 : attempt->due;\n    if (attempt->due == 0) {",
  "rl_regression_test")
core("cancel-leaves-keys", "what is cancelled is not released", "rl_lock.c",
  "  lock->attempt = NULL;\n  rl_lock_end(lock, now_us, error);\n  rl_release_let_go(lock, now_us, attempt, grow);",
  "  lock->attempt = NULL;\n  rl_lock_end(lock, now_us, error);\n  if (attempt != NULL) {\n"
  .. "    attempt->releasing = true;\n  }\n"
  .. "  rl_release_let_go(lock, now_us, attempt, grow);")
core("free-leaves-keys", "a lock that is freed while it is held is not released", "rl_lock.c",
  "  rl_lock_drop_lease(lock, now_us, false);\n  rl_lock_dequeue(lock);",
  "  if (lock->lease != NULL) {\n    lock->lease->releasing = true;\n  }\n"
  .. "  rl_lock_drop_lease(lock, now_us, false);\n  rl_lock_dequeue(lock);")
core("wrong-type-is-an-error", "a key of another type does not count as taken", "rl_core.c",
  [[  if (strstr(text, "WRONGTYPE") != NULL) {]], [[  if (strstr(text, "no such text") != NULL) {]],
  "rl_lock_acquire_test")

-- Budgets, bounds, liveness.
core("no-time-out", "a round does not end at its deadline", "rl_lock.c",
  "  lock->round_deadline_us = rl_time_min(rl_time_add(now_us, timeout_us), lock->budget_us);",
  "  lock->round_deadline_us = rl_time_add(now_us, 3 * timeout_us + 5000);")
core("wait-not-kept", "the budget of the call is not kept", "rl_lock.c",
  "    lock->budget_us = rl_time_add(now_us, lock->current.wait_us);",
  "    lock->budget_us = rl_time_add(now_us, lock->current.wait_us + 20000);")
core("retries-not-counted", "attempts are not counted", "rl_lock.c",
  "    lock->attempts_left--;\n", "    lock->attempts_left -= lock->random % 2;\n")
core("attempt-leaked", "an attempt is kept for ever", "rl_core.c",
  "      reason = rl_core_answered(core, node, now_us, &owed);\n"
  .. "      rl_attempt_unref(&core->attempts, owed.attempt);",
  "      reason = rl_core_answered(core, node, now_us, &owed);\n      if (owed.kind != RL_OWED_RELEASE) {\n"
  .. "        rl_attempt_unref(&core->attempts, owed.attempt);\n      }")
core("cut-short-is-unavailable", "the last attempt, cut short by the budget, makes a taken lock an unavailable one",
  "rl_lock.c", "      lock->result == REDLOCK_E_TAKEN) {", "      lock->result == REDLOCK_OK) {", "rl_regression_test")
core("asks-the-deaf", "nodes are asked however long they have not answered", "rl_lock.c",
  "  return behind_us > rl_time_max(budget_us, RL_ROUND_BEHIND_MIN_US);",
  "  return behind_us > rl_time_max(budget_us, REDLOCK_NEVER - 1);")
core("no-reconnect", "after ten failures a node is not tried any more", "rl_node.c",
  "return node->link.phase == RL_LINK_DOWN && node->connect_at_us <= now_us;",
  "return node->link.phase == RL_LINK_DOWN && node->connect_at_us <= now_us && node->failures < 10;")
core("half-open-for-ever", "a silent connection is never given up", "rl_node.c",
  "    return node->link.owed_count == 0 ? REDLOCK_NEVER : rl_time_add(node->link.heard_us, node->link.silence_us);",
  "    return REDLOCK_NEVER;")

-- So that each statement of the checkers has been seen to fail (csrc/test/sim/unreached.lua has the rest).
core("debts-kept", "a reply stays owed when its connection has gone", "rl_core.c",
  "  while (rl_link_take(&node->link, &owed)) {\n    rl_attempt *attempt = owed.attempt;",
  "  for (unsigned left = node->link.owed_count; left > 1 && rl_link_take(&node->link, &owed); left--) {\n"
  .. "    rl_attempt *attempt = owed.attempt;")
core("bytes-not-bounded", "bytes are queued for a node that takes none", "rl_node.c",
  "  return node->link.phase == RL_LINK_UP && node->link.owed_count < owed_max &&\n"
  .. "         rl_buffer_length(&node->link.output) < output_max;",
  "  return node->link.phase == RL_LINK_UP && node->link.owed_count < owed_max && output_max > 0;", "rl_core_test")
core("expired-release-kept", "the release of a key that has expired is kept for ever", "rl_core.c",
  "    if (gone || attempt->due == 0) {", "    if (attempt->due == 0) {")
core("releases-counted-for-ever", "a release that was sent still counts as one to be sent", "rl_core.c",
  "  attempt->listed = false;\n  core->releases.count--;", "  attempt->listed = false;")
core("acquired-while-held", "a lock that is held can be acquired again", "rl_lock.c",
  "  if (rl_lock_remaining(lock, now_us) > 0) {\n    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE,",
  "  if (rl_lock_remaining(lock, now_us) == REDLOCK_NEVER) {\n    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE,")
core("attempt-leaked-rarely", "one attempt in a thousand is kept for ever", "rl_lock.c",
  "    rl_release_begin(lock->core, now_us, attempt, grow);\n  }\n  rl_attempt_unref(&lock->core->attempts, attempt);",
  "    rl_release_begin(lock->core, now_us, attempt, grow);\n  }\n"
  .. "  if (attempt->expired_us % 997 != 7) {\n    rl_attempt_unref(&lock->core->attempts, attempt);\n  }")
core("waits-for-the-down", "a node that went down is waited for", "rl_lock.c",
  "  rl_round_settle(lock, node->index, REDLOCK_VOTE_ERROR, node->error, REDLOCK_NEVER);\n"
  .. "  rl_round_decide(lock, now_us);", "  rl_round_decide(lock, now_us);")
core("sets-what-it-gives-up", "a release sets the key once more before it deletes it", "rl_core.c",
  "    } else if (rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {",
  "    } else if (rl_link_queue_set(&node->link, now_us, RL_OWED_HEAL, attempt, round, 1000) &&\n"
  .. "               rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {")
core("sets-what-it-gave-up", "a release that goes out later sets the key once more", "rl_core.c",
  "    } else if (rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {",
  "    } else if ((!attempt->listed || rl_link_queue_set(&node->link, now_us, RL_OWED_HEAL, attempt, round, 1000)) &&\n"
  .. "               rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {")
core("extends-what-it-gives-up", "the token of an attempt that failed is extended before it is released", "rl_core.c",
  "    } else if (rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {",
  "    } else if (rl_link_queue_extend(&node->link, now_us, attempt, round, true, 1000) &&\n"
  .. "               rl_link_queue_release(&node->link, now_us, attempt, round, false, grow)) {")
core("release-everywhere", "a release goes to nodes that were never sent the key", "rl_core.c",
  "  attempt->due = attempt->sent & ~attempt->released;",
  "  attempt->due = (((uint32_t)1 << core->node_count) - 1) & ~attempt->released;")
core("unreleased-comes-back", "a lock whose release was not confirmed is held again", "rl_lock.c",
  "    lock->unreleased = attempt;\n  } else {",
  "    lock->lease = attempt;\n    lock->deadline_us = rl_time_add(now_us, 1000000);\n  } else {")
core("lost-too-soon", "one node that has no such key makes a released lock a lost one", "rl_quorum.c",
  "  if (quorum->taken >= majority) {", "  if (quorum->taken >= 1) {")
core("held-without-a-lease", "a lock whose lease has run out counts as held", "rl_lock.c",
  "  if (rl_lock_remaining(lock, now_us) > 0) {\n    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE,",
  "  if (lock->lease != NULL) {\n    return rl_lock_refuse(lock, RL_OPERATION_ACQUIRE,")
for _, operation in ipairs({ "ACQUIRE", "EXTEND", "RELEASE" }) do
  local what = operation:lower()
  core("refuses-to-" .. what, what .. " is refused in the ninth round", "rl_lock.c",
    "  return lock->core->closed ? rl_lock_refuse(lock, operation, REDLOCK_E_CLOSED) : REDLOCK_OK;",
    "  return lock->core->closed || (lock->round == 9 && operation == RL_OPERATION_" .. operation .. ")\n"
    .. "    ? rl_lock_refuse(lock, operation, REDLOCK_E_CLOSED) : REDLOCK_OK;")
end
core("acquire-lost", "a lock that is taken is called lost", "rl_lock.c",
  "decision == RL_DECISION_UNAVAILABLE ? REDLOCK_E_UNAVAILABLE\n : REDLOCK_E_TAKEN);",
  "decision == RL_DECISION_UNAVAILABLE ? REDLOCK_E_UNAVAILABLE : REDLOCK_E_LOST);")
core("extend-lost-too-soon", "nodes that do not answer an extend make a lock a lost one", "rl_lock.c",
  "decision == RL_DECISION_TAKEN ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);", "REDLOCK_E_LOST);")
core("extend-taken", "an extend that fails is called taken", "rl_lock.c",
  "decision == RL_DECISION_TAKEN ? REDLOCK_E_LOST : REDLOCK_E_UNAVAILABLE);", "REDLOCK_E_TAKEN);")
core("release-taken", "a lock that was lost is called taken", "rl_lock.c",
  "  return decision == RL_DECISION_TAKEN && !lock->repeated ? REDLOCK_E_LOST : REDLOCK_OK;",
  "  return decision == RL_DECISION_TAKEN && !lock->repeated ? REDLOCK_E_TAKEN : REDLOCK_OK;")
core("ended-twice", "an operation ends once more with every late vote", "rl_lock.c",
  "    /* Decided without it: for votes() to show, and for the lock to heal. */",
  "    if (lock->queue == NULL) {\n      rl_lock_enqueue(&lock->core->ended, lock);\n    }")
core("set-misspelt", "a SET that Redis does not know", "rl_command.c", [["PX", 2]], [["PY", 2]])
core("script-misspelt", "a script that is not the one of the specification", "rl_command.c",
  [["return redis.call('DEL',KEYS[1]) end return 0",]], [["return redis.call('UNLINK',KEYS[1]) end return 0",]])
core("not-resp", "a command whose length is wrong", "rl_command.c",
  [[  out = rl_command_header(out, '*', 6);]], [[  out = rl_command_header(out, '*', 7);]])
core("token-changed", "a script is sent with another token", "rl_command.c",
  "  out = rl_command_argument(out, key->token, REDLOCK_TOKEN_LENGTH);\n  if (script == RL_SCRIPT_EXTEND) {",
  "  out = rl_command_argument(out, \"0123456789012345678901234567890123456789\", REDLOCK_TOKEN_LENGTH);\n"
  .. "  if (script == RL_SCRIPT_EXTEND) {")
core("locked-out", "a lock of many rounds asks nobody any more", "rl_lock.c",
  "  return behind_us > rl_time_max(budget_us, RL_ROUND_BEHIND_MIN_US);",
  "  return behind_us > rl_time_max(budget_us, RL_ROUND_BEHIND_MIN_US) || lock->round > 12;")
core("no-deadline", "the core does not say when it wants to be called again", "rl_core.c",
  "  return deadline_us;", "  return deadline_us > core->now_us ? REDLOCK_NEVER : deadline_us;")

return controls
