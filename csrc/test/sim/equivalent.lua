-- Mutants (build-aux/sim_mutants.lua) that no test can notice, each with the reason why. "line" and
-- "mutant" are parts of the line as it is and as it was changed.
--
-- SPDX-License-Identifier: MIT

local put_off = "a release that finds no room without growing goes out in the same turn, with the launch"
local one_microsecond = "a key that has expired for certain is not released: at that microsecond both are right"
local nothing = "nothing is copied, or written, when there is nothing"
local equal = "of two equal times either is both the earlier and the later"
local any_order = "timers that are due at the same time have no order"
local behind = "behind the end of the heap stands the timer that is being put down, which is not earlier than itself"

return {
  { file = "rl_lock.c", line = "core->lock_count + 1", mutant = "core->lock_count + 2",
    why = "one timer more than needed" },
  { file = "rl_lock.c", line = "rl_lock_stop(lock, now_us, error, true);", mutant = "false", why = put_off },
  { file = "rl_lock.c", line = "rl_lock_stop(lock, now_us, REDLOCK_E_CLOSED, true);", mutant = "false",
    why = put_off },
  { file = "rl_lock.c", line = "rl_lock_drop_lease(lock, now_us, true);", mutant = "false", why = put_off },
  { file = "rl_lock.c", line = "rl_lock_let_go(lock, now_us, attempt, true);", mutant = "false", why = put_off },
  { file = "rl_core.c", line = "attempt->gone_us <= now_us", mutant = "attempt->gone_us < now_us",
    why = one_microsecond },
  { file = "rl_core.c", line = "attempt->gone_us > now_us", mutant = "attempt->gone_us >= now_us",
    why = one_microsecond },
  { file = "rl_core.c", line = "attempt->gone_us > core->now_us", mutant = "attempt->gone_us >= core->now_us",
    why = one_microsecond },
  { file = "rl_core.c", line = "if (prefix_length > 0)", mutant = ">=", why = nothing },
  { file = "rl_attempt.c", line = "prefix_length > 0", mutant = ">=", why = nothing },
  { file = "rl_attempt.c", line = "resource_length > 0", mutant = ">=", why = nothing },
  { file = "rl_time.h", line = "time_us > REDLOCK_NEVER - duration_us", mutant = ">=",
    why = "a sum that is REDLOCK_NEVER is REDLOCK_NEVER" },
  { file = "rl_time.h", line = "a_us < b_us ? a_us : b_us", mutant = "<=", why = equal },
  { file = "rl_time.h", line = "a_us > b_us ? a_us : b_us", mutant = ">=", why = equal },
  { file = "rl_timers.c", line = "[parent]->timer.due_us <= lock", mutant = "due_us < lock", why = any_order },
  { file = "rl_timers.c", line = "[child]->timer.due_us >= lock", mutant = "due_us > lock", why = any_order },
  { file = "rl_timers.c", line = "due_us < timers->locks[child]->timer.due_us", mutant = "due_us <= timers",
    why = any_order },
  { file = "rl_timers.c", line = "if (child >= timers->count) {", mutant = "child > timers->count", why = behind },
  { file = "rl_timers.c", line = "if (child + 1 < timers->count &&", mutant = "child + 1 <= timers->count",
    why = behind },
  { file = "rl_timers.c", line = "timer.due_us > last->timer.due_us", mutant = "due_us >= last",
    why = "what stands below is not earlier than what stands above, so an equal one is in its place" },
  { file = "rl_reply.c", line = "length > RL_REPLY_TEXT_MAX", mutant = "length >= RL_REPLY_TEXT_MAX",
    why = "cut to the length that it has" },
  { file = "rl_reply.c", line = "return false;", mutant = "true",
    why = "hiredis has no reply begun only while it has no byte, and no byte is too large in either case" },
  { file = "rl_reply.c", line = "while (i < held &&", mutant = "i <= held",
    why = "the NUL that ends the bytes of hiredis is no digit" },
  { file = "rl_lock.c", line = "if (result != REDLOCK_OK || lock->operation != RL_OPERATION_ACQUIRE) {",
    mutant = "REDLOCK_OK && lock->operation",
    why = "after the end only rl_lock_join() looks at it, and that wants the lease of an acquire" },
  { file = "rl_node.c", line = "start + same < text_length &&", mutant = "start + same <= text_length",
    why = "the NUL that ends the text is no byte of a password" },
  { file = "rl_options.c", line = "from_size < to_size ?", mutant = "<=", why = "equal sizes are equal" },
  { file = "rl_options.c", line = "message_size > 0", mutant = "message_size >= 0", why = nothing },
  { file = "rl_core.c", line = "owed->round, true, true);", mutant = "owed->round, false, true)",
    why = "NOSCRIPT has just been noted, so that it goes by its text" },
  { file = "rl_core.c", line = "owed->round, true,", mutant = "owed->round, false,",
    why = "NOSCRIPT has just been noted, so that it goes by its text" },
  { file = "rl_core.c", line = "owed->round, true, true);", mutant = "owed->round, true, false)",
    why = "without room it fails, and the release is tried again after a while" },
  { file = "rl_core.c", line = "return false; /* Its round is over. */", mutant = "true",
    why = "a vote of a round that is over is not counted in either case" },
  { file = "rl_core.c", line = "if (got > 0) {", mutant = "got >= 0", why = "0 has left the loop before" },
  { file = "rl_message.c", line = "if (message->length + 1 >= message->size) {", mutant = "+ 1 > message",
    why = "with room for the end of the text alone nothing is added" },
  { file = "rl_message.c", line = "if (added > 0) {", mutant = "added >= 0", why = nothing },
  { file = "rl_message.c", line = "size_t room =", mutant = "message->size + message->length",
    why = "a length beyond the end, like one at the end, lets nothing more in" },
  { file = "rl_message.c", line = "size_t room =", mutant = "message->length + 1",
    why = "a length beyond the end, like one at the end, lets nothing more in" },
}
